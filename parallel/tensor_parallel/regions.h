// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "parallel/comm/process_group.h"

// The borders of a tensor-parallel region: outside every rank of the group holds the same
// activations, inside each works on its own part of the weights (Shoeybi et al. 2019, the
// functions f and g). Both are the identity on a group of one. They wait for their collective.
// The group outlives the tape.
namespace forerun {

// Into a region. Forward: identity. Backward: the gradient is summed over ranks.
Value CopyToRegion(const ForwardContext& context, const Value& x, comm::ProcessGroup& group);

// Out of a region. Forward: x is summed over ranks, in place, so x's tensor must be contiguous
// and kept by nobody: the result of a matmul, of an embedding. Backward: identity.
Value ReduceFromRegion(const ForwardContext& context, const Value& x, comm::ProcessGroup& group);

}  // namespace forerun
