// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include <memory>
#include <utility>

#include "core/autograd/functions.h"
#include "core/base/check.h"

namespace forerun {
namespace {

class DropoutNode final : public Node {
 public:
  explicit DropoutNode(DropoutOptions options) : options_(std::move(options)) {}
  absl::string_view name() const override { return "dropout"; }
  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (wanted[0]) grad_inputs[0] = Dropout(context, grad_outputs[0], options_);
  }

 private:
  const DropoutOptions options_;
};

}  // namespace

Value Dropout(const ForwardContext& context, const Value& x, const DropoutSite& site) {
  if (!context.training || site.p == 0.0f) return x;
  const Shape& shape = x.tensor.shape();
  FR_CHECK_EQ(shape.rank(), 3) << "dropout " << site.site << " of " << shape;
  const int64_t rows = site.total_rows == 0 ? shape[0] : site.total_rows;
  const int64_t width = site.total_width == 0 ? shape[2] : site.total_width;
  DropoutOptions options;
  options.p = site.p;
  options.key = context.random.Fold(site.site);
  options.global = Shape{rows, context.global_batch, width};
  options.offset = Shape{site.first_row, context.first_sample, site.first_column};
  for (int dim = 0; dim < 3; ++dim) {
    FR_CHECK_LE(options.offset[dim] + shape[dim], options.global[dim])
        << "dropout " << site.site << ": dim " << dim << " of " << shape << " at " << options.offset
        << " leaves " << options.global;
  }
  Tensor y = Dropout(context.op, x.tensor, options);
  return context.Record(std::make_unique<DropoutNode>(options), {x}, std::move(y));
}

}  // namespace forerun
