// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/uniforms.h"

#include <vector>

#include "gtest/gtest.h"

namespace forerun::cpu {
namespace {

TEST(Uniforms, AreThoseDrawnOneByOne) {
  const RandomKey key = RandomKey::Root(11).Fold("mask");
  for (uint64_t begin : {uint64_t{0}, uint64_t{3}, uint64_t{0x3fffffff1}, ~uint64_t{0} - 999}) {
    for (int64_t count : {0, 1, 5, 127, 128, 131, 700}) {
      std::vector<float> actual(count, -1.0f);
      Uniforms(key, begin, count, actual.data());
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(actual[i], UniformAt(key, begin + i)) << "index " << begin << " + " << i;
      }
    }
  }
}

}  // namespace
}  // namespace forerun::cpu
