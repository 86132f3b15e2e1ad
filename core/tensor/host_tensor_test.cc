// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/host_tensor.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(HostTensor, IsClearedAndOwnedByItsViews) {
  for (int64_t numel : {1, 3, 17}) {
    const Tensor last =
        HostTensor({numel, 2}, DType::kI64).View({2 * numel}).Slice(0, numel, 2 * numel);
    for (int64_t i = 0; i < numel; ++i) EXPECT_EQ(last.data<int64_t>()[i], 0);
    last.mutable_data<int64_t>()[numel - 1] = 5;
    EXPECT_EQ(last.data<int64_t>()[numel - 1], 5);
  }
  EXPECT_EQ(HostTensor({0}, DType::kF32).numel(), 0);
}

}  // namespace
}  // namespace forerun
