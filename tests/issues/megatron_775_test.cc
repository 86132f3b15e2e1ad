// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 775, InfiniTrain 213, picotron 5: gradients reduced once a microbatch, or before the
// last one, or twice; the norm was wrong and replicas drifted apart. The kind of fault: a reduction
// other than once a step and after the last contribution.
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/device/device.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

TEST(Megatron775, EveryBucketIsReducedOnceAStepAndTheNormIsThatOfOneRank) {
  JobSpec reference = T0();
  reference.iterations = 3;
  const auto expected = RunJob(reference);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (int pp : {1, 2}) {
    for (bool overlap : {false, true}) {
      JobSpec spec = T0Overlapped();
      spec.iterations = reference.iterations;
      spec.pp = pp;
      spec.dp = 2;
      spec.options.data_parallel.overlap_grad_reduce = overlap;
      const auto result = RunJob(spec);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(OncePerStepDifference(*result, spec.iterations), "");
      EXPECT_EQ(BoundDifference(*result, *expected, spec.config), "") << pp << overlap;
    }
  }
}

// Of the ranks of one stage, all hold the same parameters after every step.
class Replicas {
 public:
  void Add(RankTrainer& trainer, int64_t step) {
    InlineStream host(Device{});
    std::vector<float> values;
    for (const Parameter* parameter : trainer.chunk().registry().parameters()) {
      const ParamLease lease = trainer.data_parallel().gate().Read(*parameter, host, "test");
      const float* data = lease.tensor().data<float>();
      values.insert(values.end(), data, data + lease.tensor().numel());
    }
    MutexLock lock(&mutex_);
    const auto [first, added] = seen_.try_emplace({step, trainer.parallel().at().pp}, values);
    EXPECT_TRUE(added || first->second == values) << "after step " << step;
    ++count_;
  }
  int count() {
    MutexLock lock(&mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  std::map<std::pair<int64_t, int>, std::vector<float>> seen_ ABSL_GUARDED_BY(mutex_);
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(Megatron775, ThreeMicrobatchesOverTwoStagesMakeOneReductionAndEqualReplicas) {
  JobSpec plain = T0();
  plain.pp = plain.dp = 2;
  plain.options.global_batch_size = 6;
  plain.iterations = 3;
  const auto expected = RunJob(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();
  JobSpec spec = plain;
  spec.options.data_parallel = T0Overlapped().options.data_parallel;
  Replicas replicas;
  spec.inspect = [&](RankTrainer& trainer, int64_t done) {
    replicas.Add(trainer, done);
    return absl::OkStatus();
  };
  const auto result = RunJob(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(replicas.count(), 4 * 4);  // ranks, and before and after each step
  EXPECT_EQ(OncePerStepDifference(*result, spec.iterations), "");
  EXPECT_EQ(BitDifference(*result, *expected), "");
}

}  // namespace
}  // namespace forerun
