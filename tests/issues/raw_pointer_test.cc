// SPDX-License-Identifier: Apache-2.0
// apex 1559: a weight that is read through a raw pointer escapes the wait for its gather. Here
// there is no way from a parameter to memory, a lease's tensor is read-only, and what is read
// without a lease is NaN in poison mode (ParamGate: PoisonIsAllButTheOwnShardFromTheAcceptanceOn).
#include <memory>
#include <utility>

#include "core/autograd/param_reader.h"
#include "core/autograd/parameter.h"
#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/bucket_buffer.h"

namespace forerun {
namespace {

template <typename T>
concept LeadsToMemory = requires(T& t) {
  t.data();
}
|| requires(T& t) { t.raw_data(); }
|| requires(T& t) { t.tensor(); }
|| requires(T& t) { t.value(); };
template <typename T>
concept GivesBuckets = requires(T& t) {
  t.ParamBucket(0);
}
|| requires(T& t) { t.Param(std::declval<const Parameter&>()); };

static_assert(LeadsToMemory<ParamLease>, "the concept sees what it looks for");
static_assert(!LeadsToMemory<const Parameter>);
static_assert(!LeadsToMemory<const ParameterSpec>);
static_assert(!GivesBuckets<BucketBuffer>, "values leave the buffer through the gate");

TEST(RawPointerDeathTest, ALeaseCannotBeWrittenThrough) {
  const auto holder = std::make_shared<float>(1.0f);
  const ParamLease lease(
      Tensor::Wrap(holder, holder.get(), {1}, DType::kF32, Device{}, Tensor::Access::kReadOnly));
  EXPECT_EQ(*lease.tensor().data<float>(), 1.0f);
  EXPECT_DEATH(*lease.tensor().mutable_data<float>() = 2.0f, "");
}

}  // namespace
}  // namespace forerun
