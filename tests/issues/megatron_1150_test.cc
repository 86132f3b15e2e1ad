// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 1150: a trainable weight that no pass uses; its bucket was never ready, and the job
// hung or died on an assertion without text. The kind of fault: waiting for a gradient that nobody
// will bring.
#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/job.h"
#include "tests/support/letter_chunk.h"

namespace forerun {
namespace {

LetterModel Unused(const std::string& optional) {
  LetterModel model = LetterModel::Running("AB");
  model.registered = "AUB";
  model.optional = optional;
  return model;
}

JobSpec Job(const LetterModel& model) {
  JobSpec spec = T0Overlapped();
  spec.dp = 2;
  spec.make_chunk = MakeLetterChunk(model);
  return spec;
}

TEST(Megatron1150, AWeightThatNoPassUsesIsAnErrorThatNamesIt) {
  EXPECT_EQ(RunJob(Job(Unused(""))).status().message(),
            "forward order: no operator of the forward pass reads U; declare what a model may "
            "leave out as optional");
}

TEST(Megatron1150, DeclaredOptionalItIsOnlyDecayed) {
  JobSpec reference = T0();
  reference.make_chunk = MakeLetterChunk({.registered = "AB"});
  const auto expected = RunJob(reference);
  JobSpec spec = Job(Unused("U"));
  const auto result = RunJob(spec);
  spec.iterations = 0;
  const auto initial = RunJob(spec);
  ASSERT_TRUE(expected.ok() && result.ok() && initial.ok());
  EXPECT_EQ(BoundDifference(*result, *expected, spec.config), "");
  EXPECT_EQ(OncePerStepDifference(*result, reference.iterations), "");
  const double decay = std::pow(1.0 - spec.lr * spec.options.optimizer.weight_decay,
                                static_cast<double>(reference.iterations));
  const std::vector<float>& before = initial->weights.at("U");
  const std::vector<float>& after = result->weights.at("U");
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    ASSERT_NEAR(after[i], before[i] * decay, 1e-6 * std::abs(before[i])) << i;
  }
}

}  // namespace
}  // namespace forerun
