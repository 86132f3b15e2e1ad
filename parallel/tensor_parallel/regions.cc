// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/regions.h"

#include <memory>

#include "core/ops/copy.h"

namespace forerun {
namespace {

class CopyToRegionNode final : public Node {
 public:
  explicit CopyToRegionNode(comm::ProcessGroup& group) : group_(group) {}
  absl::string_view name() const override { return "copy_to_region"; }

  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool>, absl::Span<Tensor> grad_inputs) override {
    // Nobody writes to a gradient that was handed on, so the sum needs memory of its own.
    grad_inputs[0] = context.Empty(grad_outputs[0].shape(), grad_outputs[0].dtype());
    CopyInto(context, grad_outputs[0], grad_inputs[0]);
    group_.AllReduce(grad_inputs[0], comm::ReduceOp::kSum).Wait(*context.stream);
  }

 private:
  comm::ProcessGroup& group_;
};

class ReduceFromRegionNode final : public Node {
 public:
  absl::string_view name() const override { return "reduce_from_region"; }

  void BackwardInput(const OpContext&, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool>, absl::Span<Tensor> grad_inputs) override {
    grad_inputs[0] = grad_outputs[0];
  }
};

}  // namespace

Value CopyToRegion(const ForwardContext& context, const Value& x, comm::ProcessGroup& group) {
  if (group.size() == 1) return x;
  return context.Record(std::make_unique<CopyToRegionNode>(group), {x}, x.tensor);
}

Value ReduceFromRegion(const ForwardContext& context, const Value& x, comm::ProcessGroup& group) {
  if (group.size() == 1) return x;
  group.AllReduce(x.tensor, comm::ReduceOp::kSum).Wait(*context.op.stream);
  return context.Record(std::make_unique<ReduceFromRegionNode>(), {x}, x.tensor);
}

}  // namespace forerun
