// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/recompute.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace forerun {
namespace {

// The segment on a tape of its own.
struct SegmentRun {
  SegmentRun(ForwardContext context, const Segment& segment, const Value& x) {
    context.tape = &tape;
    input = x.constant() ? x : tape.Leaf(x.tensor);
    output = segment(context, input);
  }
  Tape tape;
  Value input;
  Value output;
};

class RecomputeNode final : public Node {
 public:
  RecomputeNode(const ForwardContext& context, const Value& x, Segment segment,
                std::vector<const Parameter*> contributions)
      : context_(context),
        x_(x),
        segment_(std::move(segment)),
        contributions_(std::move(contributions)) {}
  absl::string_view name() const override { return "recompute"; }

  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    run_ = std::make_unique<SegmentRun>(context_, segment_, x_);
    x_ = Value();
    FR_CHECK(run_->tape.contributions() == absl::MakeConstSpan(contributions_))
        << "a recomputed segment used other weights than before";
    run_->tape.BackwardInput(context, run_->output, grad_outputs[0]);
    if (wanted[0]) grad_inputs[0] = run_->tape.LeafGradient(run_->input);
    run_->output = run_->input = Value();
  }

  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> /*grad_outputs*/,
                      GradSink& sink) override {
    run_->tape.BackwardWeight(context, sink);
  }

 private:
  const ForwardContext context_;
  Value x_;
  const Segment segment_;
  const std::vector<const Parameter*> contributions_;
  std::unique_ptr<SegmentRun> run_;
};

}  // namespace

Value Recompute(const ForwardContext& context, const Value& x, Segment segment) {
  if (context.tape == nullptr || !context.recompute) return segment(context, x);
  Tensor output;
  std::vector<const Parameter*> contributions;
  {
    // Recorded only to learn what it contributes to; what it saved is gone at the brace.
    const SegmentRun run(context, segment, x);
    const auto promised = run.tape.contributions();
    contributions.assign(promised.begin(), promised.end());
    output = run.output.tensor;
  }
  auto node = std::make_unique<RecomputeNode>(context, x, std::move(segment), contributions);
  return context.Record(std::move(node), {x}, std::move(output), contributions);
}

}  // namespace forerun
