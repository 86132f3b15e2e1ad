// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// What one rank can see to be wrong with its own call, by rules 5 and 6 of process_group.h: OK, or
// one sentence that names group, operation and tensor. Pure; looks at no element, so meta tensors
// will do. Every backend asks, with FR_CHECK: a bad call is a broken program.
absl::Status CheckAllReduce(const ProcessGroup& group, const Tensor& tensor);
absl::Status CheckAllGather(const ProcessGroup& group, const Tensor& input, const Tensor& output);
absl::Status CheckReduceScatter(const ProcessGroup& group, const Tensor& input,
                                const Tensor& output);
absl::Status CheckBroadcast(const ProcessGroup& group, const Tensor& tensor, int root);
absl::Status CheckSend(const ProcessGroup& group, const Tensor& tensor, int peer);
absl::Status CheckRecv(const ProcessGroup& group, const Tensor& tensor, int peer);

}  // namespace forerun::comm
