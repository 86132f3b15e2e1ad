// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/testing/map_sink.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"

namespace forerun {

GradSlot MapSink::Slot(const Parameter& parameter) {
  Sum& sum = sums_[&parameter];
  FR_CHECK(parameter.trainable()) << parameter.name() << " is frozen";
  FR_CHECK(!sum.open) << "two contributions to " << parameter.name() << " at one time";
  sum.open = true;
  if (sum.contributions == 0) {
    sum.gradient = context_.Empty(parameter.shape(), DType::kF32);
    if (!sum.gradient.is_meta()) {
      std::fill_n(sum.gradient.mutable_data<float>(), parameter.numel(),
                  std::numeric_limits<float>::quiet_NaN());
    }
  }
  return {sum.gradient, sum.contributions > 0};
}

void MapSink::Contributed(const Parameter& parameter, std::shared_ptr<const Event> event) {
  Sum& sum = sums_[&parameter];
  FR_CHECK(sum.open) << "a contribution to " << parameter.name() << " without its slot";
  FR_CHECK(event != nullptr) << "a contribution to " << parameter.name() << " without an event";
  sum.open = false;
  ++sum.contributions;
  log_.push_back(&parameter);
}

Tensor MapSink::gradient(const Parameter& parameter) const {
  const auto found = sums_.find(&parameter);
  return found == sums_.end() ? Tensor() : found->second.gradient;
}

std::vector<float> MapSink::Values(const Parameter& parameter) const {
  const Tensor tensor = gradient(parameter);
  FR_CHECK(tensor.defined()) << "nothing contributed to " << parameter.name();
  const float* data = tensor.data<float>();
  return {data, data + tensor.numel()};
}

int MapSink::contributions(const Parameter& parameter) const {
  const auto found = sums_.find(&parameter);
  return found == sums_.end() ? 0 : found->second.contributions;
}

void MapSink::Clear() {
  sums_.clear();
  log_.clear();
}

}  // namespace forerun
