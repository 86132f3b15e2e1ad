// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/types/span.h"
#include "core/autograd/param_reader.h"
#include "core/autograd/parameter.h"
#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// A hash of all weights of the model, the same on every rank: the sum over parameters, modulo
// 2^64, of XXH64(values of the local box) seeded by XXH64(name) plus the box's first global index.
// It does not depend on the order of parameters, on buckets or on data-parallel size. `owns` says
// which rank counts a parameter. A collective call over `world`; values are read through the gate.
uint64_t ParamChecksum(const OpContext& context, absl::Span<const Parameter* const> parameters,
                       ParamReader& reader, const std::function<bool(const Parameter&)>& owns,
                       comm::ProcessGroup& world);

// One line a parameter, its name and the hash of its local box: equal on data-parallel replicas.
// Values are read through the gate.
std::string ParamHashes(const OpContext& context, absl::Span<const Parameter* const> parameters,
                        ParamReader& reader);

}  // namespace forerun
