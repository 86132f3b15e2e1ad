// SPDX-License-Identifier: Apache-2.0
#include "core/nn/testing/plain_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace forerun {
namespace {

Tensor MakeInitialValue(const OpContext& context, const Parameter& parameter, const Init& init,
                        uint64_t seed) {
  Tensor value = context.Empty(parameter.shape(), parameter.dtype());
  if (value.is_meta()) return value;
  std::vector<float> initial(parameter.numel());
  InitialValue(parameter, init, seed, absl::MakeSpan(initial));
  VisitFloating(parameter.dtype(), [&](auto element) {
    using T = decltype(element);
    T* out = value.mutable_data<T>();
    for (size_t i = 0; i < initial.size(); ++i) out[i] = T(initial[i]);
  });
  return value;
}

}  // namespace

PlainReader::PlainReader(const OpContext& context, const ParameterRegistry& registry,
                         uint64_t seed) {
  for (const Parameter* parameter : registry.parameters()) {
    values_[parameter] = MakeInitialValue(context, *parameter, registry.init(*parameter), seed);
  }
}

ParamLease PlainReader::Read(const Parameter& parameter, Stream& /*stream*/,
                             absl::string_view reader) {
  reads_.push_back(absl::StrCat(reader, " ", parameter.name()));
  const Tensor& stored = value(parameter);
  void* data = stored.is_meta() ? nullptr : stored.raw_mutable_data();
  // The owner keeps the memory alive and counts itself out when the last view is gone.
  ++*live_leases_;
  std::shared_ptr<const void> owner(new Tensor(stored),
                                    [count = live_leases_](const Tensor* tensor) {
                                      delete tensor;
                                      --*count;
                                    });
  return ParamLease(Tensor::Wrap(std::move(owner), data, parameter.shape(), parameter.dtype(),
                                 stored.device(), Tensor::Access::kReadOnly));
}

const Tensor& PlainReader::value(const Parameter& parameter) const {
  const auto found = values_.find(&parameter);
  FR_CHECK(found != values_.end()) << parameter.name() << " is not in this reader's registry";
  return found->second;
}

}  // namespace forerun
