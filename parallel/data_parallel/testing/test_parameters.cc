// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/testing/test_parameters.h"

#include "absl/strings/string_view.h"
#include "core/base/check.h"

namespace forerun {

TestParameters::TestParameters(bool mixed) {
  const DType half = mixed ? DType::kBF16 : DType::kF32;
  const auto trainable = ParameterKind::kTrainable;
  const Parameter* last = Declare("last", {200}, half, trainable, true);
  frozen_ = {Declare("frozen", {5}, DType::kF32, ParameterKind::kFrozen, false)};
  const Parameter* cut = Declare("cut", {40, 33}, half, trainable, true);
  const Parameter* optional =
      Declare("optional", {10}, DType::kF32, ParameterKind::kOptional, true);
  const Parameter* bias = Declare("bias", {70}, DType::kF32, trainable, false);
  const Parameter* first = Declare("first", {3, 50}, DType::kF32, trainable, true);
  order_ = {first, bias, cut, last, optional};
}

const Parameter* TestParameters::Declare(const char* name, const Shape& shape, DType dtype,
                                         ParameterKind kind, bool weight_decay) {
  return &registry_.Declare({.name = name,
                             .global_shape = shape,
                             .box = Box::Whole(shape),
                             .dtype = dtype,
                             .kind = kind,
                             .weight_decay = weight_decay},
                            Init::Normal(1.0));
}

const Parameter& TestParameters::named(const char* name) const {
  for (const Parameter* parameter : registry_.parameters()) {
    if (parameter->name() == name) return *parameter;
  }
  FR_CHECK(false) << "no parameter " << name;
  return *order_[0];
}

BucketPlan TestParameters::Plan(int shards) const {
  BucketPlanOptions options;
  options.shards = shards;
  options.cuts = {1};
  options.max_bucket_bytes = 2048;
  return BucketPlan(order_, options);
}

void TestParameters::Initialise(BucketBuffer& buffer) const {
  for (const Parameter* parameter : registry_.parameters()) {
    std::vector<float> values(parameter->numel());
    InitialValue(*parameter, registry_.init(*parameter), 3, absl::MakeSpan(values));
    const Tensor tensor = buffer.Initial(*parameter);
    VisitFloating(parameter->dtype(), [&](auto element) {
      using T = decltype(element);
      for (size_t i = 0; i < values.size(); ++i) tensor.mutable_data<T>()[i] = T(values[i]);
    });
  }
}

}  // namespace forerun
