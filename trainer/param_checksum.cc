// SPDX-License-Identifier: Apache-2.0
#include "trainer/param_checksum.h"

#include <xxhash.h>

#include "absl/strings/str_cat.h"
#include "core/tensor/host_tensor.h"

namespace forerun {
namespace {

uint64_t HashOf(const Parameter& parameter, const Tensor& value) {
  uint64_t seed = XXH64(parameter.name().data(), parameter.name().size(), 0);
  const Shape strides = parameter.global_shape().ContiguousStrides();
  for (int dim = 0; dim < strides.rank(); ++dim) {
    seed += static_cast<uint64_t>(parameter.box().offset[dim] * strides[dim]);
  }
  return XXH64(value.raw_data(), static_cast<size_t>(value.bytes()), seed);
}

}  // namespace

std::string ParamHashes(const OpContext& context, absl::Span<const Parameter* const> parameters,
                        ParamReader& reader) {
  std::string lines;
  for (const Parameter* parameter : parameters) {
    const ParamLease lease = reader.Read(*parameter, *context.stream, "weight hash");
    absl::StrAppend(&lines, parameter->name(), " ",
                    absl::Hex(HashOf(*parameter, lease.tensor()), absl::kZeroPad16), "\n");
  }
  return lines;
}

uint64_t ParamChecksum(const OpContext& context, absl::Span<const Parameter* const> parameters,
                       ParamReader& reader, const std::function<bool(const Parameter&)>& owns,
                       comm::ProcessGroup& world) {
  uint64_t sum = 0;
  for (const Parameter* parameter : parameters) {
    const ParamLease lease = reader.Read(*parameter, *context.stream, "checksum");
    if (owns(*parameter)) sum += HashOf(*parameter, lease.tensor());
  }
  const Tensor word = HostTensor({1}, DType::kI64);
  *word.mutable_data<int64_t>() = static_cast<int64_t>(sum);
  world.AllReduce(word, comm::ReduceOp::kSum).Wait(*context.stream);
  return static_cast<uint64_t>(*word.data<int64_t>());
}

}  // namespace forerun
