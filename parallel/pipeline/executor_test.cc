// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/executor.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/local/run_ranks.h"
#include "parallel/comm/work.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/pipeline/simulate.h"

namespace forerun::pipeline {
namespace {

using Integers = std::vector<int64_t>;

// A model of exact arithmetic: piece k is y = w_k x + k, elementwise, and the loss of microbatch m
// is (m + 1) times the sum of the last y. Microbatch m has m + 2 elements.
int64_t WeightOf(int piece) { return piece % 3 + 1; }
int64_t NumelOf(int microbatch) { return microbatch + 2; }
int64_t InputOf(int microbatch, int64_t i) { return 10 * microbatch + i - 3; }

// One stage of it, on tensors.
class ToyStage : public StageModel {
 public:
  ToyStage(const OpContext& context, int stage, int stages, int chunks)
      : context_(context), stage_(stage), stages_(stages), pieces_(stages * chunks) {}

  ActivationSpec Activation(int microbatch, int) const override {
    return {{NumelOf(microbatch)}, DType::kI64};
  }
  Tensor Forward(int microbatch, int chunk, const Tensor& input) override {
    const int piece = chunk * stages_ + stage_;
    EXPECT_EQ(input.defined(), piece > 0);
    Integers& x = inputs_[{microbatch, piece}];
    for (int64_t i = 0; i < NumelOf(microbatch); ++i) {
      x.push_back(input.defined() ? input.data<int64_t>()[i] : InputOf(microbatch, i));
    }
    Integers y;
    for (int64_t value : x) y.push_back(WeightOf(piece) * value + piece);
    if (piece == pieces_ - 1) outputs[microbatch] = y;
    return ToTensor(y);
  }
  Tensor Backward(int microbatch, int chunk, const Tensor& grad_output) override {
    const Tensor grad_input = BackwardInput(microbatch, chunk, grad_output);
    BackwardWeight(microbatch, chunk);
    return grad_input;
  }
  Tensor BackwardInput(int microbatch, int chunk, const Tensor& grad_output) override {
    const int piece = chunk * stages_ + stage_;
    EXPECT_EQ(grad_output.defined(), piece < pieces_ - 1);
    Integers& dy = grads_[{microbatch, piece}];
    for (int64_t i = 0; i < NumelOf(microbatch); ++i) {
      dy.push_back(grad_output.defined() ? grad_output.data<int64_t>()[i] : microbatch + 1);
    }
    if (piece == 0) return Tensor();
    Integers dx;
    for (int64_t value : dy) dx.push_back(WeightOf(piece) * value);
    return ToTensor(dx);
  }
  void BackwardWeight(int microbatch, int chunk) override {
    const int piece = chunk * stages_ + stage_;
    const Integers& x = inputs_[{microbatch, piece}];
    const Integers& dy = grads_[{microbatch, piece}];
    for (size_t i = 0; i < x.size(); ++i) weight_grads[piece] += dy[i] * x[i];
    inputs_.erase({microbatch, piece});
    grads_.erase({microbatch, piece});
  }

  std::map<int, Integers> outputs;      // of the model, by microbatch
  std::map<int, int64_t> weight_grads;  // by piece

 private:
  Tensor ToTensor(const Integers& values) const {
    Tensor tensor = context_.Empty({static_cast<int64_t>(values.size())}, DType::kI64);
    std::copy(values.begin(), values.end(), tensor.mutable_data<int64_t>());
    return tensor;
  }

  const OpContext& context_;
  const int stage_;
  const int stages_;
  const int pieces_;
  std::map<std::pair<int, int>, Integers> inputs_;  // by microbatch and piece, as are grads_
  std::map<std::pair<int, int>, Integers> grads_;
};

// What a job computes, over all stages.
struct Result {
  std::map<int, Integers> outputs;
  std::map<int, int64_t> weight_grads;

  bool operator==(const Result&) const = default;
};

// The same without stages, schedules or tensors.
Result Serial(int pieces, int microbatches, bool backward) {
  Result result;
  for (int m = 0; m < microbatches; ++m) {
    for (int64_t i = 0; i < NumelOf(m); ++i) {
      Integers x{InputOf(m, i)};
      for (int k = 0; k < pieces; ++k) x.push_back(WeightOf(k) * x.back() + k);
      result.outputs[m].push_back(x.back());
      int64_t grad = m + 1;
      for (int k = pieces - 1; k >= 0 && backward; --k) {
        result.weight_grads[k] += grad * x[k];
        grad *= WeightOf(k);
      }
    }
  }
  return result;
}

// rank_main(context, group) on every stage. A rank's memory ends with it, on failure too: its
// allocator checks that no message still holds any.
template <typename RankMain>
absl::Status RunStages(int stages, const RankMain& rank_main) {
  std::vector<int> members(stages);
  for (int s = 0; s < stages; ++s) members[s] = s;
  return comm::RunRanks(stages, {}, [&](comm::GroupFactory& factory) -> absl::Status {
    const TestDevice device(DeviceKind::kCpu);
    const auto group = factory.Create("pp", members);
    rank_main(device.op(), *group);
    return absl::OkStatus();
  });
}

// A clock that shows how often it was asked.
std::function<double()> CountingClock() {
  return [ticks = 0.0]() mutable { return ticks += 1.0; };
}

Result RunSchedule(const Schedule& schedule) {
  const int stages = static_cast<int>(schedule.stages.size());
  std::vector<std::unique_ptr<ToyStage>> models(stages);
  std::vector<StageRun> runs(stages);
  const absl::Status status =
      RunStages(stages, [&](const OpContext& context, comm::ProcessGroup& group) {
        const int stage = group.rank();
        models[stage] = std::make_unique<ToyStage>(context, stage, stages, schedule.chunks);
        Executor executor(context, group, CountingClock());
        runs[stage] = executor.Run(schedule.stages[stage], schedule.chunks, *models[stage]);
      });
  EXPECT_TRUE(status.ok()) << status;
  Result result;
  for (int s = 0; s < stages; ++s) {
    result.outputs.insert(models[s]->outputs.begin(), models[s]->outputs.end());
    result.weight_grads.insert(models[s]->weight_grads.begin(), models[s]->weight_grads.end());
    ActionList ran;
    for (const ActionRecord& record : runs[s].actions) {
      ran.push_back(record.action);
      EXPECT_LE(record.start + record.waited, record.end);
    }
    EXPECT_EQ(ran, schedule.stages[s]);
  }
  return result;
}

TEST(Executor, SchedulesGiveTheSerialResult) {
  for (int p = 1; p <= 4; ++p) {
    for (int m = 1; m <= 6; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      EXPECT_EQ(RunSchedule(GPipe(p, m)), Serial(p, m, true));
      EXPECT_EQ(RunSchedule(OneFOneB(p, m)), Serial(p, m, true));
      EXPECT_EQ(RunSchedule(ForwardOnly(p, m)), Serial(p, m, false));
    }
  }
}

TEST(Executor, TheHalvesOfBackwardGiveTheSameAsTheWhole) {
  Schedule schedule = OneFOneB(3, 4);
  for (ActionList& list : schedule.stages) {
    for (Action& action : list) {
      if (action.kind == ActionKind::kBackward) action.kind = ActionKind::kBackwardInput;
    }
    for (int m = 3; m >= 0; --m) list.push_back({ActionKind::kBackwardWeight, m});
  }
  ASSERT_TRUE(Verify(schedule).ok()) << Verify(schedule);
  EXPECT_EQ(RunSchedule(schedule), Serial(3, 4, true));
}

TEST(Executor, SeveralChunksAStageGiveTheSameAsOne) {
  for (int p = 2; p <= 3; ++p) {
    Schedule schedule;
    schedule.microbatches = 3;
    schedule.chunks = 2;
    ActionList list;
    for (int c : {0, 1}) {
      for (int m = 0; m < 3; ++m) list.push_back({ActionKind::kForward, m, c});
    }
    for (int c : {1, 0}) {
      for (int m = 0; m < 3; ++m) list.push_back({ActionKind::kBackward, m, c});
    }
    schedule.stages.assign(p, list);
    ASSERT_TRUE(Verify(schedule).ok()) << Verify(schedule);
    EXPECT_EQ(RunSchedule(schedule), Serial(2 * p, 3, true));
  }
}

// Breaks off in one action.
class FailingStage final : public ToyStage {
 public:
  FailingStage(const OpContext& context, int stage, int stages, bool in_backward)
      : ToyStage(context, stage, stages, 1), in_backward_(in_backward) {}

  Tensor Forward(int microbatch, int chunk, const Tensor& input) override {
    if (!in_backward_ && microbatch == 1) Fail();
    return ToyStage::Forward(microbatch, chunk, input);
  }
  Tensor Backward(int microbatch, int chunk, const Tensor& grad_output) override {
    if (in_backward_ && microbatch == 1) Fail();
    return ToyStage::Backward(microbatch, chunk, grad_output);
  }

 private:
  static void Fail() { throw comm::GroupError(absl::UnavailableError("the cable was cut")); }
  const bool in_backward_;
};

TEST(Executor, AGroupErrorOfOneStageEndsAllWithThatError) {
  constexpr int kStages = 3;
  for (int failing = 0; failing < kStages; ++failing) {
    for (bool in_backward : {false, true}) {
      SCOPED_TRACE(testing::Message() << "stage " << failing << " backward " << in_backward);
      const Schedule schedule = OneFOneB(kStages, 4);
      std::vector<std::string> errors(kStages);
      const absl::Status status =
          RunStages(kStages, [&](const OpContext& context, comm::ProcessGroup& group) {
            const int stage = group.rank();
            std::unique_ptr<ToyStage> model =
                stage == failing
                    ? std::make_unique<FailingStage>(context, stage, kStages, in_backward)
                    : std::make_unique<ToyStage>(context, stage, kStages, 1);
            try {
              Executor(context, group, CountingClock()).Run(schedule.stages[stage], 1, *model);
            } catch (const comm::GroupError& error) {
              errors[stage] = error.what();
              throw;
            }
          });
      EXPECT_EQ(status, absl::UnavailableError("the cable was cut"));
      // The gradients of stages behind the failing one may have gone through already.
      for (int s = 0; s <= failing; ++s) EXPECT_EQ(errors[s], "the cable was cut") << s;
    }
  }
}

// Says another shape than its neighbour does.
class LongerStage final : public ToyStage {
 public:
  using ToyStage::ToyStage;
  ActivationSpec Activation(int microbatch, int) const override {
    return {{NumelOf(microbatch) + 1}, DType::kI64};
  }
};

TEST(Executor, NeighboursThatDisagreeOnAShapeEndInAnErrorWithBothSizes) {
  const absl::Status status = RunStages(2, [&](const OpContext& context,
                                               comm::ProcessGroup& group) {
    ToyStage first(context, 0, 2, 1);
    LongerStage second(context, 1, 2, 1);
    ToyStage& model = group.rank() == 0 ? first : second;
    Executor(context, group, CountingClock()).Run(OneFOneB(2, 1).stages[group.rank()], 1, model);
  });
  EXPECT_EQ(status.message(), "group pp: rank 0 sends 2 int64 and rank 1 receives 3 int64");
}

TEST(ExecutorDeathTest, AForwardPassMustGiveSomethingToSend) {
  class Silent final : public StageModel {
   public:
    ActivationSpec Activation(int, int) const override { return {{1}, DType::kF32}; }
    Tensor Forward(int, int, const Tensor&) override { return Tensor(); }
    Tensor Backward(int, int, const Tensor&) override { return Tensor(); }
    Tensor BackwardInput(int, int, const Tensor&) override { return Tensor(); }
    void BackwardWeight(int, int) override {}
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    (void)RunStages(2, [&](const OpContext& context, comm::ProcessGroup& group) {
      Silent model;
      Executor(context, group, CountingClock())
          .Run(ForwardOnly(2, 1).stages[group.rank()], 1, model);
    });
  };
  EXPECT_DEATH(run(), "F0 has nothing to send");
}

}  // namespace
}  // namespace forerun::pipeline
