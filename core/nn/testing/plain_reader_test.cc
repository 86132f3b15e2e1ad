// SPDX-License-Identifier: Apache-2.0
#include "core/nn/testing/plain_reader.h"

#include <vector>

#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

class PlainReaderTest : public testing::Test {
 protected:
  const Parameter& Declare(const char* name, DType dtype) {
    const Shape shape{2, 3};
    return registry_.Declare(
        {.name = name, .global_shape = shape, .box = Box::Whole(shape), .dtype = dtype},
        Init::Normal(1.0));
  }
  ParameterRegistry registry_;
  TestDevice cpu_{DeviceKind::kCpu};
};

TEST_F(PlainReaderTest, StartsFromTheInitialValueInTheParametersDType) {
  for (const auto& [name, dtype] : {std::pair{"a", DType::kF32}, {"b", DType::kBF16}}) {
    const Parameter& parameter = Declare(name, dtype);
    PlainReader reader(cpu_.op(), registry_, 9);
    std::vector<float> expected(parameter.numel());
    InitialValue(parameter, registry_.init(parameter), 9, absl::MakeSpan(expected));
    const Tensor value = reader.Read(parameter, *cpu_.op().stream, "test").tensor();
    EXPECT_TRUE(value.read_only());
    for (int64_t i = 0; i < value.numel(); ++i) {
      const float rounded =
          dtype == DType::kF32 ? expected[i] : static_cast<float>(BFloat16(expected[i]));
      EXPECT_EQ(ValuesOf(value)[i], rounded);
    }
  }
}

TEST_F(PlainReaderTest, CountsLeasesUntilTheirLastViewIsGone) {
  const Parameter& parameter = Declare("a", DType::kF32);
  Tensor view;
  PlainReader reader(cpu_.op(), registry_, 9);
  {
    const ParamLease lease = reader.Read(parameter, *cpu_.op().stream, "layer");
    view = lease.tensor().Slice(0, 1, 2);
  }
  EXPECT_EQ(reader.live_leases(), 1);
  view = Tensor();
  EXPECT_EQ(reader.live_leases(), 0);
  EXPECT_EQ(reader.reads(), std::vector<std::string>{"layer a"});
}

TEST_F(PlainReaderTest, ReadsMetaTensorsOnMeta) {
  const Parameter& parameter = Declare("a", DType::kF32);
  TestDevice meta(DeviceKind::kMeta);
  PlainReader reader(meta.op(), registry_, 9);
  const ParamLease lease = reader.Read(parameter, *meta.op().stream, "layer");
  EXPECT_TRUE(lease.tensor().is_meta());
  EXPECT_EQ(lease.tensor().shape(), parameter.shape());
}

}  // namespace
}  // namespace forerun
