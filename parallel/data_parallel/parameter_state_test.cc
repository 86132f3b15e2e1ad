// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/parameter_state.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

double NoClock() { return 0.0; }

// A checkpoint in memory.
using Saved = std::map<std::string, std::vector<double>>;

class ParameterStateTest : public testing::Test {
 protected:
  std::vector<const Parameter*> All() const {
    std::vector<const Parameter*> all(parameters_.order().begin(), parameters_.order().end());
    all.insert(all.end(), parameters_.frozen().begin(), parameters_.frozen().end());
    return all;
  }

  // Every element counts up by one, as an optimizer would.
  static void Update(BucketBuffer& buffer, ParamGate& gate, int shard, Stream& stream) {
    const ShardWriter writer(buffer, shard);
    for (int b = 0; b < static_cast<int>(buffer.plan().buckets().size()); ++b) {
      gate.Accept(b, stream);
      const Tensor params = writer.Params(b);
      VisitFloating(params.dtype(), [&](auto element) {
        using T = decltype(element);
        for (int64_t i = 0; i < params.numel(); ++i) {
          T& value = params.mutable_data<T>()[i];
          value = T(static_cast<float>(value) + 1.0f);
        }
      });
      gate.Publish(b);
    }
  }

  static absl::Status SaveTo(Saved& saved, const StatePiece& piece) {
    EXPECT_TRUE(piece.values.read_only());
    EXPECT_EQ(piece.begin, 0);
    EXPECT_EQ(piece.values.numel(), piece.box.extent.numel());
    EXPECT_TRUE(saved.emplace(piece.name, ValuesOf(piece.values)).second) << piece.name;
    return absl::OkStatus();
  }
  static absl::Status LoadFrom(const Saved& saved, const StatePiece& piece) {
    const std::vector<double>& values = saved.at(piece.name);
    VisitFloating(piece.values.dtype(), [&](auto element) {
      using T = decltype(element);
      for (size_t i = 0; i < values.size(); ++i) {
        piece.values.mutable_data<T>()[i] = T(static_cast<float>(values[i]));
      }
    });
    return absl::OkStatus();
  }

  const TestParameters parameters_{/*mixed=*/true};
};

TEST_F(ParameterStateTest, SavesTheCurrentValuesOnTheRankThatSavesAndTwiceTheSame) {
  std::vector<Saved> once(2), twice(2);
  const absl::Status status = RankJob(2).Run([&](const RankContext& rank) -> absl::Status {
    const BucketPlan plan = parameters_.Plan(2);
    BucketBuffer buffer(plan, parameters_.frozen(), rank.op);
    ParamGate::Options options;
    options.poison = true;
    options.window_bytes = 0;  // nothing is gathered unless somebody reads
    ParamGate gate(buffer, rank.group, options, NoClock);
    ParameterState state(All(), buffer, gate, [&](const Parameter& parameter) {
      return (parameter.id() % 2 == 0) == (rank.rank == 0);
    });
    for (int step = 0; step < 3; ++step) Update(buffer, gate, rank.rank, *rank.op.stream);
    for (Saved* saved : {&once[rank.rank], &twice[rank.rank]}) {
      const absl::Status done =
          state.Save([&](const StatePiece& piece) { return SaveTo(*saved, piece); });
      if (!done.ok()) return done;
    }
    return gate.CheckNoLeases();
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(once, twice);
  for (const Parameter* parameter : All()) {
    const int rank = parameter->id() % 2;
    ASSERT_TRUE(once[rank].count(parameter->name())) << parameter->name();
    EXPECT_FALSE(once[1 - rank].count(parameter->name())) << parameter->name();
    EXPECT_EQ(once[rank][parameter->name()],
              std::vector<double>(parameter->numel(), parameter->trainable() ? 3.0 : 0.0));
  }
}

TEST_F(ParameterStateTest, LoadGivesBackWhatWasSavedAtAnotherDataParallelSize) {
  Saved saved, restored;
  const auto save_at = [&](int ranks, const Saved* load, Saved& to) {
    return RankJob(ranks).Run([&](const RankContext& rank) -> absl::Status {
      const BucketPlan plan = parameters_.Plan(ranks);
      BucketBuffer buffer(plan, parameters_.frozen(), rank.op);
      ParamGate gate(buffer, rank.group, {}, NoClock);
      ParameterState state(All(), buffer, gate,
                           [&](const Parameter&) { return rank.rank == ranks - 1; });
      if (load == nullptr) {
        parameters_.Initialise(buffer);
      } else {
        const absl::Status loaded =
            state.Load([&](const StatePiece& piece) { return LoadFrom(*load, piece); });
        if (!loaded.ok()) return loaded;
      }
      return state.Save([&](const StatePiece& piece) { return SaveTo(to, piece); });
    });
  };
  ASSERT_TRUE(save_at(1, nullptr, saved).ok());
  ASSERT_EQ(saved.size(), All().size());
  ASSERT_TRUE(save_at(3, &saved, restored).ok());
  EXPECT_EQ(restored, saved);
}

TEST_F(ParameterStateTest, PiecesSayWhereTheyLieInTheModel) {
  const absl::Status status = RankJob(1).Run([&](const RankContext& rank) {
    const BucketPlan plan = parameters_.Plan(1);
    BucketBuffer buffer(plan, parameters_.frozen(), rank.op);
    ParamGate gate(buffer, rank.group, {}, NoClock);
    ParameterState state(All(), buffer, gate, [](const Parameter&) { return true; });
    return state.Save([&](const StatePiece& piece) {
      const Parameter& parameter = parameters_.named(piece.name.c_str());
      EXPECT_EQ(piece.global, parameter.global_shape());
      EXPECT_EQ(piece.box, parameter.box());
      EXPECT_EQ(piece.values.dtype(), parameter.dtype());
      EXPECT_EQ(piece.values.rank(), 1);
      return absl::OkStatus();
    });
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ParameterStateTest, ErrorsEndSaveAndLoad) {
  const absl::Status full = absl::ResourceExhaustedError("disk full");
  const absl::Status status = RankJob(1).Run([&](const RankContext& rank) {
    const BucketPlan plan = parameters_.Plan(1);
    BucketBuffer buffer(plan, parameters_.frozen(), rank.op);
    ParamGate gate(buffer, rank.group, {}, NoClock);
    ParameterState state(All(), buffer, gate, [](const Parameter&) { return true; });
    int calls = 0;
    const auto fail = [&](const StatePiece&) { return ++calls == 2 ? full : absl::OkStatus(); };
    EXPECT_EQ(state.Load(fail), full);
    EXPECT_EQ(calls, 2);
    calls = 0;
    EXPECT_EQ(state.Save(fail), full);
    EXPECT_EQ(calls, 2);
    EXPECT_DEATH((void)state.Load(fail), "is initialised after the first read");
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace forerun
