// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/simulate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace forerun::pipeline {
namespace {

constexpr ActionKind F = ActionKind::kForward;
constexpr ActionKind B = ActionKind::kBackward;
constexpr ActionKind I = ActionKind::kBackwardInput;
constexpr ActionKind W = ActionKind::kBackwardWeight;

// Backward takes twice as long as forward, and messages are free.
constexpr ActionCosts kFreeMessages{1.0, 1.0, 1.0, 0.0};

std::vector<std::pair<int, int>> Sizes() {
  std::vector<std::pair<int, int>> sizes;
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 8; ++m) sizes.push_back({p, m});
  }
  return sizes;
}

// All chunks' forward passes, the first chunk first, then all backward passes.
Schedule InterleavedGPipe(int stages, int microbatches, int chunks) {
  Schedule schedule;
  schedule.microbatches = microbatches;
  schedule.chunks = chunks;
  ActionList list;
  for (int c = 0; c < chunks; ++c) {
    for (int m = 0; m < microbatches; ++m) list.push_back({F, m, c});
  }
  for (int c = chunks - 1; c >= 0; --c) {
    for (int m = 0; m < microbatches; ++m) list.push_back({B, m, c});
  }
  schedule.stages.assign(stages, list);
  return schedule;
}

// 1F1B with backward in halves, all weight gradients last.
Schedule WeightsLast(int stages, int microbatches) {
  Schedule schedule = OneFOneB(stages, microbatches);
  for (ActionList& list : schedule.stages) {
    for (Action& action : list) {
      if (action.kind == B) action.kind = I;
    }
    for (int m = 0; m < microbatches; ++m) list.push_back({W, m});
  }
  return schedule;
}

TEST(Simulate, SchedulesAreSoundForAllSizes) {
  for (const auto& [p, m] : Sizes()) {
    SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
    for (const Schedule& schedule : {GPipe(p, m), OneFOneB(p, m), ForwardOnly(p, m),
                                     WeightsLast(p, m), InterleavedGPipe(p, m, 2)}) {
      EXPECT_TRUE(Verify(schedule).ok()) << Verify(schedule);
    }
  }
}

TEST(Simulate, TheBubbleIsStagesLessOneOverMicrobatches) {
  for (const auto& [p, m] : Sizes()) {
    for (const Schedule& schedule : {GPipe(p, m), OneFOneB(p, m)}) {
      const auto simulation = Simulate(schedule, kFreeMessages);
      ASSERT_TRUE(simulation.ok()) << simulation.status();
      EXPECT_NEAR(simulation->bubble, (p - 1.0) / m, 1e-12) << "p " << p << " m " << m;
      EXPECT_NEAR(simulation->makespan, 3.0 * (m + p - 1), 1e-9) << "p " << p << " m " << m;
    }
  }
}

TEST(Simulate, GPipeKeepsAllActivationsAndOneFOneBTheDistanceToTheEnd) {
  for (const auto& [p, m] : Sizes()) {
    const Simulation gpipe = *Simulate(GPipe(p, m), kFreeMessages);
    const Simulation one_f_one_b = *Simulate(OneFOneB(p, m), kFreeMessages);
    for (int s = 0; s < p; ++s) {
      EXPECT_EQ(gpipe.peak_activations[s], m);
      EXPECT_EQ(one_f_one_b.peak_activations[s], std::min(m, p - s)) << "p " << p << " m " << m;
    }
  }
}

TEST(Simulate, ActivationsLiveUntilTheWeightGradientsAreDone) {
  EXPECT_EQ(Simulate(WeightsLast(2, 5), kFreeMessages)->peak_activations, (std::vector<int>{5, 5}));
}

TEST(Simulate, ForwardOnlyFillsThePipelineOnce) {
  const Simulation simulation = *Simulate(ForwardOnly(3, 4), kFreeMessages);
  EXPECT_EQ(simulation.makespan, 6.0);
}

// The oracle: start times grow until every action starts no earlier than the action before it on
// its stage ends, and its message arrives.
double OracleMakespan(const Schedule& schedule, const ActionCosts& costs) {
  const int stages = static_cast<int>(schedule.stages.size());
  std::map<std::tuple<int, ActionKind, int>, double> ends;  // by stage, kind, microbatch
  double makespan = 0.0;
  for (bool changed = true; changed;) {
    changed = false;
    for (int s = 0; s < stages; ++s) {
      double before = 0.0;
      for (const Action& a : schedule.stages[s]) {
        const int source = a.kind == F ? s - 1 : s + 1;
        double start = before;
        if (source >= 0 && source < stages) {
          start = std::max(start, ends[{source, a.kind, a.microbatch}] + costs.message);
        }
        const double cost =
            a.kind == F ? costs.forward : costs.backward_input + costs.backward_weight;
        double& end = ends[{s, a.kind, a.microbatch}];
        changed |= end != start + cost;
        before = end = start + cost;
        makespan = std::max(makespan, end);
      }
    }
  }
  return makespan;
}

TEST(Simulate, TimesAreTheLongestPathsWithMessagesToo) {
  const ActionCosts costs{1.25, 1.5, 0.75, 0.5};
  for (const auto& [p, m] : Sizes()) {
    for (const Schedule& schedule : {GPipe(p, m), OneFOneB(p, m)}) {
      EXPECT_EQ(Simulate(schedule, costs)->makespan, OracleMakespan(schedule, costs));
    }
  }
}

TEST(Simulate, TheTimelineDrawsPassesAndIdleTime) {
  EXPECT_EQ(Timeline(*Simulate(GPipe(2, 2), kFreeMessages), 9),
            "stage 0 |01...aabb|\n"
            "stage 1 |.01aabb..|\n");
}

// A sound schedule, broken in one way, and the sentence that must say so.
struct Mutant {
  const char* what;
  Schedule schedule;
  std::function<void(Schedule&)> mutate;
  const char* sentence;
};

std::vector<Mutant> Mutants() {
  return {
      {"forward passes swapped at the sender", OneFOneB(3, 4),
       [](Schedule& s) { std::swap(s.stages[0][0], s.stages[0][1]); },
       "stage 1: F0 would receive the message for microbatch 1 of model piece 1 from stage 0"},
      {"messages taken in another order than sent", GPipe(2, 3),
       [](Schedule& s) { std::swap(s.stages[1][0], s.stages[1][2]); },
       "stage 1: F2 would receive the message for microbatch 0 of model piece 1 from stage 0"},
      {"gradients taken in another order than sent", GPipe(3, 3),
       [](Schedule& s) { std::swap(s.stages[1][4], s.stages[1][5]); },
       "stage 1: B2 would receive the message for microbatch 1 of model piece 1 from stage 2"},
      {"backward pass missing", OneFOneB(2, 3), [](Schedule& s) { s.stages[1].pop_back(); },
       "stage 1: the backward pass of microbatch 2, chunk 0 is missing"},
      {"forward and backward pass missing", GPipe(2, 2),
       [](Schedule& s) {
         s.stages[0] = {{F, 0}, {B, 0}};
       },
       "stage 0: the forward pass of microbatch 1, chunk 0 is missing"},
      {"forward pass doubled", OneFOneB(2, 2),
       [](Schedule& s) {
         s.stages[0].insert(s.stages[0].begin(), {F, 0});
       },
       "stage 0: F0 runs twice"},
      {"backward pass doubled", OneFOneB(2, 2),
       [](Schedule& s) {
         s.stages[1].push_back({B, 1});
       },
       "stage 1: B1 runs twice"},
      {"backward pass and its half", OneFOneB(2, 2),
       [](Schedule& s) {
         s.stages[1].push_back({I, 1});
       },
       "stage 1: I1 runs twice"},
      {"microbatch of another", OneFOneB(2, 3), [](Schedule& s) { s.stages[1][2].microbatch = 2; },
       "stage 1: B1 runs before its forward"},
      {"microbatch that does not exist", OneFOneB(2, 3),
       [](Schedule& s) { s.stages[0][1].microbatch = 3; }, "stage 0: F3 is of no microbatch"},
      {"negative microbatch", GPipe(2, 3), [](Schedule& s) { s.stages[1][1].microbatch = -1; },
       "stage 1: F-1 is of no microbatch"},
      {"chunk that does not exist", OneFOneB(2, 3), [](Schedule& s) { s.stages[0][1].chunk = 1; },
       "stage 0: F1.1 is of no microbatch"},
      {"backward before forward", OneFOneB(2, 2),
       [](Schedule& s) { std::swap(s.stages[1][0], s.stages[1][1]); },
       "stage 1: B0 runs before its forward pass"},
      {"weight gradients before input gradients", WeightsLast(2, 2),
       [](Schedule& s) { std::swap(s.stages[0][2], s.stages[0][4]); },
       "stage 0: W0 runs before its input gradients"},
      {"weight gradients missing", WeightsLast(2, 2), [](Schedule& s) { s.stages[0].pop_back(); },
       "stage 0: the backward pass of microbatch 1, chunk 0 is missing"},
      {"weight gradients twice", OneFOneB(2, 2),
       [](Schedule& s) {
         s.stages[0].push_back({W, 0});
       },
       "stage 0: W0 runs twice"},
      {"backward pass in an evaluation", ForwardOnly(2, 2),
       [](Schedule& s) {
         s.stages[1].push_back({B, 0});
       },
       "stage 1: the backward pass of microbatch 0, chunk 0 should not run"},
      {"circular wait", GPipe(2, 2),
       [](Schedule& s) {
         s.stages[0] = {{F, 0}, {B, 0}, {F, 1}, {B, 1}};
       },
       "stage 0: B0 waits for ever for a message from stage 1"},
      {"circular wait through chunks", InterleavedGPipe(2, 1, 2),
       [](Schedule& s) { std::swap(s.stages[0][0], s.stages[0][1]); },
       "stage 0: F0.1 waits for ever for a message from stage 1"},
  };
}

TEST(Simulate, EveryMutantIsRefusedByASentenceThatNamesStageAndAction) {
  for (Mutant& mutant : Mutants()) {
    SCOPED_TRACE(mutant.what);
    ASSERT_TRUE(Verify(mutant.schedule).ok()) << Verify(mutant.schedule);
    mutant.mutate(mutant.schedule);
    const absl::Status status = Verify(mutant.schedule);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(mutant.sentence), absl::string_view::npos) << status;
  }
}

// Of one microbatch nothing may move: every swap of neighbours breaks it.
TEST(Simulate, EverySwapOfOneMicrobatchIsRefused) {
  for (int p = 1; p <= 4; ++p) {
    for (int s = 0; s < p; ++s) {
      Schedule schedule = OneFOneB(p, 1);
      std::swap(schedule.stages[s][0], schedule.stages[s][1]);
      EXPECT_FALSE(Verify(schedule).ok()) << "p " << p << " stage " << s;
    }
  }
}

}  // namespace
}  // namespace forerun::pipeline
