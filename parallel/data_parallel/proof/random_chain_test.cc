// SPDX-License-Identifier: Apache-2.0
// The chain in random runs. The first argument is the number of cases.
#include "parallel/data_parallel/proof/random_chain.h"

#include <cstdio>
#include <cstdlib>

#include "gtest/gtest.h"

namespace forerun::proof {
namespace {

uint64_t cases = 0;

TEST(RandomChain, NoPropertyIsEverViolated) {
  for (uint64_t seed = 0; seed < cases; ++seed) {
    const absl::optional<Fault> fault = RunRandomCase(seed);
    ASSERT_FALSE(fault.has_value())
        << "case " << seed << ", " << NameOf(fault->property) << ": " << fault->text;
  }
  std::printf("%llu cases, no fault\n", static_cast<unsigned long long>(cases));
}

}  // namespace
}  // namespace forerun::proof

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  forerun::proof::cases = std::strtoull(argv[1], nullptr, 10);
  return RUN_ALL_TESTS();
}
