// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/autograd/param_reader.h"
#include "core/autograd/parameter.h"
#include "core/nn/registry.h"
#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// The simplest gate: one plain tensor a parameter, always current. For tests of whatever reads
// parameters. It owns the values and outlives its leases. Belongs to one thread.
class PlainReader final : public ParamReader {
 public:
  // Every parameter of `registry` at its initial value, in its dtype, on the context's device
  // (cpu, or meta: no values then). Neither argument is kept.
  PlainReader(const OpContext& context, const ParameterRegistry& registry, uint64_t seed);

  ParamLease Read(const Parameter& parameter, Stream& stream, absl::string_view reader) override;

  // Where the values lie; to change them is what a test's optimizer does.
  const Tensor& value(const Parameter& parameter) const;

  // One entry a Read so far, "<reader> <parameter>".
  const std::vector<std::string>& reads() const { return reads_; }
  // Leases not yet given back.
  int64_t live_leases() const { return *live_leases_; }

 private:
  absl::flat_hash_map<const Parameter*, Tensor> values_;
  std::vector<std::string> reads_;
  const std::shared_ptr<int64_t> live_leases_ = std::make_shared<int64_t>(0);
};

}  // namespace forerun
