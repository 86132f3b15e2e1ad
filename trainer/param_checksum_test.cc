// SPDX-License-Identifier: Apache-2.0
#include "trainer/param_checksum.h"

#include <string>

#include "absl/strings/match.h"
#include "core/autograd/parameter.h"
#include "core/nn/registry.h"
#include "core/nn/testing/plain_reader.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/agreement.h"
#include "parallel/data_parallel/testing/rank_job.h"

namespace forerun {
namespace {

void Declare(ParameterRegistry& registry) {
  for (const char* name : {"a", "b"}) {
    ParameterSpec spec;
    spec.name = name;
    spec.global_shape = {3, 5};
    spec.box = Box::Whole(spec.global_shape);
    registry.Declare(spec, Init::Normal(1.0));
  }
}

TEST(ParamHashes, ReplicasThatDifferInOneElementAreFoundAndTheParameterNamed) {
  for (bool differ : {false, true}) {
    const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
      ParameterRegistry registry;
      Declare(registry);
      PlainReader reader(rank.op, registry, /*seed=*/7);
      if (differ && rank.rank == 1) {
        reader.value(*registry.parameters()[1]).mutable_data<float>()[14] += 1.0f;
      }
      return CheckAgreement(rank.op, rank.group, "weights after iteration 5",
                            ParamHashes(rank.op, registry.parameters(), reader));
    });
    EXPECT_EQ(status.ok(), !differ);
    if (differ) {
      EXPECT_TRUE(absl::StrContains(status.message(), "weights after iteration 5")) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "\"b ")) << status;
    }
  }
}

}  // namespace
}  // namespace forerun
