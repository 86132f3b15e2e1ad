// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/grad_reducer.h"

#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "core/random/random.h"
#include "gtest/gtest.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

using Floats = std::vector<float>;

double NoClock() { return 0.0; }

// What one rank contributes in one step: by parameter, the gradients of each of its uses.
class Contributions {
 public:
  Contributions(const TestParameters& parameters, int rank, int step)
      : parameters_(parameters), rank_(rank), step_(step) {}

  // The tape's entries of one microbatch: "first" twice, as a tied weight; "optional" on some
  // ranks only.
  std::vector<const Parameter*> Of(int microbatch) const {
    std::vector<const Parameter*> uses;
    for (const Parameter* parameter : parameters_.order()) {
      const bool optional = parameter->kind() == ParameterKind::kOptional;
      if (!optional || (rank_ + microbatch + step_) % 3 == 0) uses.push_back(parameter);
    }
    uses.push_back(&parameters_.named("first"));
    return uses;
  }

  Floats Gradient(const Parameter& parameter, int microbatch, int use) const {
    Floats gradient(parameter.numel());
    const RandomKey key = RandomKey::Root(step_)
                              .Fold(parameter.name())
                              .Fold(rank_)
                              .Fold(static_cast<uint64_t>(16 * microbatch + use));
    FillNormal(key, 0, 1.0, absl::MakeSpan(gradient));
    return gradient;
  }

  // The rank's own sum, in the order of contributions.
  Floats Sum(const Parameter& parameter, int microbatches) const {
    Floats sum;
    for (int m = 0; m < microbatches; ++m) {
      const auto uses = Of(m);
      for (int use = 0; use < std::count(uses.begin(), uses.end(), &parameter); ++use) {
        const Floats gradient = Gradient(parameter, m, use);
        if (sum.empty()) {
          sum = gradient;
        } else {
          for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
        }
      }
    }
    sum.resize(parameter.numel(), 0.0f);
    return sum;
  }

 private:
  const TestParameters& parameters_;
  const int rank_;
  const int step_;
};

// The sum over ranks [begin, end) along the tree that groups promise.
Floats TreeSum(const std::vector<Floats>& by_rank, size_t begin, size_t end) {
  if (end - begin == 1) return by_rank[begin];
  size_t half = 1;
  while (2 * half < end - begin) half *= 2;
  Floats sum = TreeSum(by_rank, begin, begin + half);
  const Floats right = TreeSum(by_rank, begin + half, end);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

struct ReduceCase {
  int ranks;
  bool sharded;
  bool overlap;
  int chunks;
  int64_t inline_bytes;
};

std::string NameOf(const ReduceCase& c) {
  return std::to_string(c.ranks) + (c.sharded ? "Sharded" : "Whole") +
         (c.overlap ? "Overlap" : "Late") + std::to_string(c.chunks) +
         (c.inline_bytes == 0 ? "Progress" : "Inline");
}

std::vector<ReduceCase> Cases() {
  std::vector<ReduceCase> cases;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (bool sharded : {false, true}) {
      for (bool overlap : {false, true}) {
        cases.push_back({ranks, sharded, overlap, ranks % 2 + 1, overlap ? 0 : 64 << 10});
      }
    }
  }
  return cases;
}

class GradReducerWorld : public testing::TestWithParam<ReduceCase> {
 protected:
  // The first two parameters are the first chunk's where there are two chunks.
  int ChunkOf(int parameter) const { return GetParam().chunks == 2 && parameter >= 2 ? 1 : 0; }
  std::vector<int> ChunkOfParameter() const {
    std::vector<int> chunks;
    for (int p = 0; p < static_cast<int>(parameters_.order().size()); ++p) {
      chunks.push_back(ChunkOf(p));
    }
    return chunks;
  }

  // One step of a rank: all forward passes, then backward passes whose contributions come in an
  // order of the rank's own.
  void RunBackward(GradReducer& reducer, const BucketPlan& plan, int rank, int step,
                   int microbatches) {
    const Contributions contributions(parameters_, rank, step);
    reducer.BeginStep(microbatches);
    for (int m = 0; m < microbatches; ++m) {
      for (int chunk = 0; chunk < GetParam().chunks; ++chunk) {
        std::vector<const Parameter*> announced;
        for (const Parameter* parameter : contributions.Of(m)) {
          if (ChunkOf(plan.IndexOf(*parameter)) == chunk) announced.push_back(parameter);
        }
        reducer.Announce(chunk, announced);
      }
    }
    for (int m = 0; m < microbatches; ++m) {
      const auto uses = contributions.Of(m);
      const RandomKey key = RandomKey::Root(rank).Fold(step).Fold(m);
      std::map<const Parameter*, int> made;
      for (size_t i = 0; i < uses.size(); ++i) {
        const Parameter& parameter = *uses[PermutationAt(key, uses.size(), i)];
        Contribute(reducer, parameter, contributions.Gradient(parameter, m, made[&parameter]++));
      }
    }
  }

  static void Contribute(GradReducer& reducer, const Parameter& parameter, const Floats& gradient) {
    const GradSlot slot = reducer.Slot(parameter);
    ASSERT_EQ(slot.grad.shape(), parameter.shape());
    float* grad = slot.grad.mutable_data<float>();
    for (size_t i = 0; i < gradient.size(); ++i) {
      grad[i] = slot.accumulate ? grad[i] + gradient[i] : gradient[i];
    }
    InlineStream stream(Device{});
    reducer.Contributed(parameter, stream.Record());
  }

  void ExpectReduced(const ShardWriter& writer, int step, int microbatches) {
    std::map<const Parameter*, Floats> expected;
    for (const Parameter* parameter : parameters_.order()) {
      std::vector<Floats> by_rank;
      for (int r = 0; r < GetParam().ranks; ++r) {
        by_rank.push_back(Contributions(parameters_, r, step).Sum(*parameter, microbatches));
      }
      expected[parameter] = TreeSum(by_rank, 0, by_rank.size());
    }
    for (int b = 0; b < static_cast<int>(writer.plan().buckets().size()); ++b) {
      const Tensor grads = writer.Grads(b);
      for (const BucketPiece& piece : writer.Pieces(b)) {
        for (int64_t i = 0; i < piece.numel; ++i) {
          ASSERT_EQ(grads.data<float>()[piece.bucket_begin + i],
                    expected[piece.parameter][piece.parameter_begin + i])
              << piece.parameter->name() << " at " << piece.parameter_begin + i;
        }
      }
    }
  }

  absl::Status RunRank(const RankContext& rank, std::vector<int>& issued) {
    const int shards = GetParam().sharded ? GetParam().ranks : 1;
    const BucketPlan plan = parameters_.Plan(shards);
    BucketBuffer buffer(plan, parameters_.frozen(), rank.op);
    const ShardWriter writer(buffer, GetParam().sharded ? rank.rank : 0);
    GradReducer reducer(buffer, ChunkOfParameter(), GetParam().chunks, rank.group,
                        {GetParam().overlap}, NoClock);
    for (int step = 0; step < 3; ++step) {
      const int microbatches = step + 1;
      RunBackward(reducer, plan, rank.rank, step, microbatches);
      for (int b = static_cast<int>(plan.buckets().size()) - 1; b >= 0; --b) {
        reducer.Wait(b, *rank.op.stream);
        EXPECT_EQ(reducer.log().records()[b].transfers, step + 1);
      }
      ExpectReduced(writer, step, microbatches);
    }
    issued = BucketsOf(reducer.log().TakeAllEvents());
    EXPECT_TRUE(reducer.log().TakeAllEvents().empty());
    return absl::OkStatus();
  }

  const TestParameters parameters_{/*mixed=*/true};
};

// The expected bits know nothing of shards, buckets, overlap or chunks: so those change nothing.
TEST_P(GradReducerWorld, GradientsAreTheTreeSumOfRanksSumsAndRanksIssueOneSequence) {
  comm::LocalHub::Options hub;
  hub.inline_bytes = GetParam().inline_bytes;
  std::vector<std::vector<int>> issued(GetParam().ranks);
  RankJob job(GetParam().ranks, hub);
  const absl::Status status =
      job.Run([&](const RankContext& rank) { return RunRank(rank, issued[rank.rank]); });
  ASSERT_TRUE(status.ok()) << status;
  const int shards = GetParam().sharded ? GetParam().ranks : 1;
  const int buckets = static_cast<int>(parameters_.Plan(shards).buckets().size());
  std::vector<int> expected;
  for (int i = 0; i < 3 * buckets; ++i) expected.push_back(buckets - 1 - i % buckets);
  for (const std::vector<int>& sequence : issued) EXPECT_EQ(sequence, expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, GradReducerWorld, testing::ValuesIn(Cases()),
                         [](const auto& info) { return NameOf(info.param); });

// A producer of its own: a thread that writes a gradient once somebody waits for its event.
class WriterThread final : public Event {
 public:
  WriterThread(const Tensor& grad, float value)
      : thread_([this, grad, value] {
          MutexLock lock(&mutex_);
          while (!awaited_) changed_.Wait(&mutex_);
          std::fill_n(grad.mutable_data<float>(), grad.numel(), value);
          done_ = true;
          changed_.NotifyAll();
        }) {}
  ~WriterThread() override {
    Await();
    thread_.join();
  }
  bool Done() const override {
    MutexLock lock(&mutex_);
    return done_;
  }
  void Synchronize() const override { Await(); }

 private:
  void Await() const {
    MutexLock lock(&mutex_);
    awaited_ = true;
    changed_.NotifyAll();
    while (!done_) changed_.Wait(&mutex_);
  }

  mutable Mutex mutex_;
  mutable CondVar changed_;
  mutable bool awaited_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class GradReducerTest : public testing::Test {
 protected:
  // One rank's reducer, in one chunk.
  struct Rank {
    Rank(const TestParameters& parameters, const RankContext& context, bool overlap)
        : plan(parameters.Plan(context.group.size())),
          buffer(plan, parameters.frozen(), context.op),
          reducer(buffer, std::vector<int>(parameters.order().size(), 0), 1, context.group,
                  {overlap}, NoClock) {}

    void Contribute(const Parameter& parameter) {
      const GradSlot slot = reducer.Slot(parameter);
      std::fill_n(slot.grad.mutable_data<float>(), slot.grad.numel(), 1.0f);
      InlineStream stream(Device{});
      reducer.Contributed(parameter, stream.Record());
    }

    const BucketPlan plan;
    BucketBuffer buffer;
    GradReducer reducer;
  };

  const TestParameters parameters_;
};

TEST_F(GradReducerTest, BucketsGoAsSoonAsTheyAreCompleteWithOverlapAndNotBeforeWithout) {
  for (bool overlap : {false, true}) {
    const absl::Status status = RankJob(1).Run([&](const RankContext& context) {
      Rank rank(parameters_, context, overlap);
      rank.reducer.BeginStep(1);
      rank.reducer.Announce(0, parameters_.order());
      rank.Contribute(parameters_.named("optional"));
      EXPECT_TRUE(rank.reducer.log().TakeAllEvents().empty());
      rank.Contribute(parameters_.named("last"));
      EXPECT_EQ(rank.reducer.log().TakeAllEvents().size(), overlap ? 1u : 0u);
      for (const char* name : {"first", "bias", "cut"}) rank.Contribute(parameters_.named(name));
      rank.reducer.Wait(0, *context.op.stream);
      EXPECT_EQ(rank.reducer.log().TakeAllEvents().size(),
                rank.plan.buckets().size() - (overlap ? 1 : 0));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(GradReducerTest, AProducerOnAnotherThreadIsAwaitedBeforeItsBucketIsReduced) {
  const absl::Status status = RankJob(1).Run([&](const RankContext& context) {
    Rank rank(parameters_, context, /*overlap=*/true);
    rank.reducer.BeginStep(1);
    rank.reducer.Announce(0, parameters_.order());
    for (const Parameter* parameter : parameters_.order()) {
      const GradSlot slot = rank.reducer.Slot(*parameter);
      rank.reducer.Contributed(*parameter, std::make_shared<WriterThread>(slot.grad, 3.0f));
    }
    const ShardWriter writer(rank.buffer, 0);
    for (size_t b = 0; b < rank.plan.buckets().size(); ++b) {
      rank.reducer.Wait(static_cast<int>(b), *context.op.stream);
      const Tensor grads = writer.Grads(static_cast<int>(b));
      for (const BucketPiece& piece : writer.Pieces(static_cast<int>(b))) {
        for (int64_t i = 0; i < piece.numel; ++i) {
          EXPECT_EQ(grads.data<float>()[piece.bucket_begin + i], 3.0f) << piece.parameter->name();
        }
      }
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(GradReducerTest, TheOptimizerDoesNotRunBeforeTheLastContribution) {
  const absl::Status status = RankJob(1).Run([&](const RankContext& context) {
    Rank rank(parameters_, context, /*overlap=*/true);
    rank.reducer.BeginStep(1);
    rank.reducer.Announce(0, parameters_.order());
    EXPECT_DEATH(rank.reducer.Wait(0, *context.op.stream), "before the last backward pass");
    for (const Parameter* parameter : parameters_.order()) rank.Contribute(*parameter);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(GradReducerTest, TheErrorOfOneRankEndsTheWaitsOfAll) {
  for (bool overlap : {false, true}) {
    std::vector<std::string> errors(3);
    const absl::Status status = RankJob(3).Run([&](const RankContext& context) -> absl::Status {
      Rank rank(parameters_, context, overlap);
      rank.reducer.BeginStep(1);
      rank.reducer.Announce(0, parameters_.order());
      const auto order = parameters_.order();
      for (size_t i = order.size(); i-- > 0;) {
        if (context.rank == 2 && i == 1) return absl::InternalError("backward broke off");
        rank.Contribute(*order[i]);
      }
      try {
        for (int b = static_cast<int>(rank.plan.buckets().size()) - 1; b >= 0; --b) {
          rank.reducer.Wait(b, *context.op.stream);
        }
      } catch (const comm::GroupError& error) {
        errors[context.rank] = error.what();
        throw;
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(status, absl::InternalError("backward broke off"));
    EXPECT_EQ(errors, (std::vector<std::string>{"backward broke off", "backward broke off", ""}));
  }
}

}  // namespace
}  // namespace forerun
