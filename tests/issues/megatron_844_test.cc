// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 844, 656, PyTorch 176076: copies of a tied table that drift apart over stages, or
// elements of it that no rank updates. The kind of fault: the gradient of a table that two layers
// use is not the sum of both uses, everywhere. (1548, the sum itself, at one stage:
// //models:gpt_gradients_test.)
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/device/device.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

constexpr char kTable[] = "embedding.word_embeddings.weight";

JobSpec Tied(JobSpec spec) {
  spec.config.tied_embeddings = true;
  return spec;
}

std::vector<float> ReadTable(RankTrainer& trainer, const Parameter& table) {
  InlineStream host(Device{});
  const ParamLease lease = trainer.data_parallel().gate().Read(table, host, "test");
  return {lease.tensor().data<float>(), lease.tensor().data<float>() + lease.tensor().numel()};
}

// The table of every rank that has one, of each step.
class Tables {
 public:
  void Add(RankTrainer& trainer, int64_t step) {
    for (const Parameter* parameter : trainer.chunk().registry().parameters()) {
      if (parameter->name() != kTable) continue;
      const std::vector<float> table = ReadTable(trainer, *parameter);
      MutexLock lock(&mutex_);
      const auto [first, added] = first_.try_emplace(step, table);
      EXPECT_EQ(first->second, table) << "after step " << step;
      ++count_;
    }
  }
  int64_t count() {
    MutexLock lock(&mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  std::map<int64_t, std::vector<float>> first_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// `spec`'s first and last stages hold equal tables after every step, and train as one rank does.
void ExpectTablesAgree(JobSpec spec, const JobResult& expected) {
  Tables tables;
  spec.inspect = [&](RankTrainer& trainer, int64_t done) {
    tables.Add(trainer, done);
    return absl::OkStatus();
  };
  const auto result = RunJob(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(tables.count(), 2 * spec.dp * (spec.iterations + 1));
  EXPECT_EQ(BoundDifference(*result, expected, spec.config), "");
}

TEST(Megatron844, TheFirstAndLastStagesTablesStayEqualInBucketsOfAnySize) {
  const auto expected = RunJob(Tied(T0()));
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const int64_t bucket : {20000, 100000000}) {
    JobSpec spec = Tied(T0Overlapped());
    spec.pp = spec.dp = 2;
    spec.options.data_parallel.bucket_numel = bucket;
    ExpectTablesAgree(spec, *expected);
  }
}

TEST(Megatron656, TablesFourStagesApartStayEqualForFiftySteps) {
  JobSpec reference = Tied(T0());
  reference.iterations = 50;
  const auto expected = RunJob(reference);
  ASSERT_TRUE(expected.ok()) << expected.status();
  JobSpec spec = Tied(T0Overlapped());
  spec.pp = 4;
  spec.dp = 2;
  spec.iterations = 50;
  ExpectTablesAgree(spec, *expected);
}

TEST(PyTorch176076, EveryElementOfATinyTiedTableMoves) {
  JobSpec reference = Tied(T0());
  reference.config.vocab_size = reference.config.padded_vocab_size = 5;
  const auto expected = RunJob(reference);
  ASSERT_TRUE(expected.ok()) << expected.status();
  JobSpec spec = reference;
  spec.options = T0Overlapped().options;
  spec.dp = 2;
  std::vector<float> before;
  spec.inspect = [&](RankTrainer& trainer, int64_t done) {
    if (done > 0 || trainer.parallel().rank() > 0) return absl::OkStatus();
    for (const Parameter* parameter : trainer.chunk().registry().parameters()) {
      if (parameter->name() == kTable) before = ReadTable(trainer, *parameter);
    }
    return absl::OkStatus();
  };
  const auto result = RunJob(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(BoundDifference(*result, *expected, spec.config), "");
  const std::vector<float>& after = result->weights.at(kTable);
  ASSERT_EQ(after.size(), 5u * 64u);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NE(before[i], after[i]) << i;
}

}  // namespace
}  // namespace forerun
