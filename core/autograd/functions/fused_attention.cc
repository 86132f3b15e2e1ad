// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <utility>

#include "core/autograd/functions.h"
#include "core/base/check.h"
#include "core/ops/attention.h"
#include "core/ops/copy.h"
#include "core/ops/rope.h"

namespace forerun {
namespace {

// Where queries, keys and values lie in [s, b, groups * (queries + 2) * d].
class FusedLayout {
 public:
  FusedLayout(const Shape& fused, const FusedAttentionSpec& spec)
      : shape_(fused), groups_(spec.groups), queries_(spec.queries), head_dim_(spec.head_dim) {
    FR_CHECK_EQ(fused.rank(), 3) << "fused qkv " << fused;
    FR_CHECK_EQ(fused[2], groups_ * (queries_ + 2) * head_dim_)
        << "fused qkv " << fused << " of " << groups_ << " groups of " << queries_ << " queries of "
        << head_dim_;
  }

  const Shape& fused() const { return shape_; }
  Shape Heads(int64_t heads) const { return Shape{shape_[0], shape_[1], heads, head_dim_}; }
  int64_t heads() const { return groups_ * queries_; }
  int64_t groups() const { return groups_; }

  // Whether all queries have one stride from head to head, so that a view can hold them.
  bool QueriesAreStrided() const { return groups_ == 1 || queries_ == 1; }
  // [s, b, heads, d] where they are, otherwise [s, b, groups, queries * d].
  Tensor Queries(const Tensor& fused) const {
    if (groups_ == 1) return fused.SplitDim(2, queries_ + 2, head_dim_).Slice(2, 0, queries_);
    return Part(fused, 0, queries_);
  }
  Tensor Keys(const Tensor& fused) const { return Part(fused, queries_, queries_ + 1); }
  Tensor Values(const Tensor& fused) const { return Part(fused, queries_ + 1, queries_ + 2); }

  // The shape of a contiguous tensor that Queries() can be copied from or to.
  Shape QueriesShape() const {
    if (QueriesAreStrided()) return Heads(heads());
    return Shape{shape_[0], shape_[1], groups_, queries_ * head_dim_};
  }

 private:
  // Heads [begin, end) of every group: [s, b, groups, (end - begin) * d].
  Tensor Part(const Tensor& fused, int64_t begin, int64_t end) const {
    return fused.SplitDim(2, groups_, (queries_ + 2) * head_dim_)
        .Slice(3, begin * head_dim_, end * head_dim_);
  }

  const Shape shape_;
  const int64_t groups_;
  const int64_t queries_;
  const int64_t head_dim_;
};

struct Projections {
  Tensor q;
  Tensor k;
  Tensor v;
};

struct Rotation {
  bool on = false;
  double base = 0.0;
};

// A copy in memory of its own, even of what is contiguous already.
Tensor Copy(const OpContext& context, const Tensor& x) {
  Tensor copy = context.Empty(x.shape(), x.dtype());
  CopyInto(context, x, copy);
  return copy;
}

// Views where they do. Otherwise all three become tensors of their own, so that a tape need not
// keep the fused one beside them.
Projections Split(const OpContext& context, const FusedLayout& layout, const Rotation& rotation,
                  const Tensor& fused) {
  Projections heads{layout.Queries(fused), layout.Keys(fused), layout.Values(fused)};
  if (!rotation.on && layout.QueriesAreStrided()) return heads;
  if (!layout.QueriesAreStrided()) {
    heads.q = Copy(context, heads.q).View(layout.Heads(layout.heads()));
  }
  if (rotation.on) {
    const RopeOptions rope{.base = rotation.base};
    heads.q = Rope(context, heads.q, rope);
    heads.k = Rope(context, heads.k, rope);
  } else {
    heads.k = Copy(context, heads.k);
  }
  heads.v = Copy(context, heads.v);
  return heads;
}

class FusedAttentionNode final : public Node {
 public:
  FusedAttentionNode(const FusedLayout& layout, Projections heads, AttentionResult result,
                     const AttentionOptions& options, const Rotation& rotation)
      : layout_(layout),
        heads_(std::move(heads)),
        result_(std::move(result)),
        options_(options),
        rotation_(rotation) {}
  absl::string_view name() const override { return "fused_causal_attention"; }

  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (!wanted[0]) return;
    const Tensor fused = context.Empty(layout_.fused(), heads_.q.dtype());
    const Tensor dout = grad_outputs[0].View(layout_.Heads(layout_.heads()));
    const AttentionGradients gradients = Targets(context, fused);
    CausalAttentionBackward(context, heads_.q, heads_.k, heads_.v, result_, dout, options_,
                            gradients);
    if (!layout_.QueriesAreStrided() || rotation_.on) {
      const Tensor dq = RotatedBack(context, gradients.dq);
      CopyInto(context, dq.View(layout_.QueriesShape()), layout_.Queries(fused));
    }
    if (rotation_.on) CopyInto(context, RotatedBack(context, gradients.dk), layout_.Keys(fused));
    grad_inputs[0] = fused;
  }

 private:
  // Straight into the fused gradient, but for what has to be rotated or rearranged first.
  AttentionGradients Targets(const OpContext& context, const Tensor& fused) const {
    AttentionGradients targets{layout_.Queries(fused), layout_.Keys(fused), layout_.Values(fused)};
    if (!layout_.QueriesAreStrided() || rotation_.on) {
      targets.dq = context.Empty(layout_.Heads(layout_.heads()), fused.dtype());
    }
    if (rotation_.on) targets.dk = context.Empty(layout_.Heads(layout_.groups()), fused.dtype());
    return targets;
  }

  Tensor RotatedBack(const OpContext& context, const Tensor& gradient) const {
    if (!rotation_.on) return gradient;
    return Rope(context, gradient, {.base = rotation_.base, .inverse = true});
  }

  const FusedLayout layout_;
  const Projections heads_;
  const AttentionResult result_;
  const AttentionOptions options_;
  const Rotation rotation_;
};

AttentionOptions OptionsOf(const ForwardContext& context, const FusedAttentionSpec& spec) {
  AttentionOptions options;
  options.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(spec.head_dim)));
  options.dropout = context.training ? spec.dropout : 0.0f;
  options.key = context.random.Fold(spec.site);
  options.first_sample = context.first_sample;
  options.first_head = spec.first_group * spec.queries;
  const int64_t total_groups = spec.total_groups == 0 ? spec.groups : spec.total_groups;
  FR_CHECK_LE(spec.first_group + spec.groups, total_groups) << "kv groups of " << spec.site;
  options.total_heads = total_groups * spec.queries;
  return options;
}

}  // namespace

Value FusedCausalAttention(const ForwardContext& context, const Value& qkv,
                           const FusedAttentionSpec& spec) {
  const FusedLayout layout(qkv.tensor.shape(), spec);
  const AttentionOptions options = OptionsOf(context, spec);
  const Rotation rotation{spec.rope, spec.rope_base};
  Projections heads = Split(context.op, layout, rotation, qkv.tensor);
  AttentionResult result = CausalAttention(context.op, heads.q, heads.k, heads.v, options);
  Tensor out =
      result.out.View(Shape{layout.fused()[0], layout.fused()[1], layout.heads() * spec.head_dim});
  return context.Record(std::make_unique<FusedAttentionNode>(layout, std::move(heads),
                                                             std::move(result), options, rotation),
                        {qkv}, std::move(out));
}

}  // namespace forerun
