// SPDX-License-Identifier: Apache-2.0
#include "optim/distributed_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/autograd/parameter_piece.h"
#include "core/base/status_macros.h"
#include "core/ops/cast.h"
#include "core/tensor/host_tensor.h"
#include "optim/grad_clip.h"

namespace forerun {
namespace {

// The part of a shard's tensor that a piece fills.
Tensor PartOf(const Tensor& tensor, const BucketPiece& piece) {
  return tensor.Slice(0, piece.bucket_begin, piece.bucket_begin + piece.numel);
}

StatePiece StepPiece(const Tensor& value) {
  return {"optimizer.step", Shape{}, Box::Whole(Shape{}), 0, value};
}

Tensor Zeros(const OpContext& context, int64_t numel) {
  Tensor tensor = context.Empty({numel}, DType::kF32);
  tensor.Clear();
  return tensor;
}

}  // namespace

DistributedOptimizer::DistributedOptimizer(const OpContext& context, ShardWriter writer,
                                           GradReducer& reducer, ParamGate& gate,
                                           OptimizerPlacement placement,
                                           const OptimizerOptions& options)
    : context_(context),
      arithmetic_(ShardArithmeticOf(context.allocator->device().kind)),
      writer_(writer),
      reducer_(reducer),
      gate_(gate),
      placement_(std::move(placement)),
      options_(options) {
  for (size_t b = 0; b < writer_.plan().buckets().size(); ++b) {
    const int bucket = static_cast<int>(b);
    const int64_t numel = writer_.shard_numel(bucket);
    BucketState state{Tensor(), Zeros(context, numel), Zeros(context, numel)};
    if (writer_.plan().buckets()[b].dtype != DType::kF32) {
      state.master = Cast(context, writer_.Params(bucket), DType::kF32);
    }
    states_.push_back(std::move(state));
  }
}

absl::StatusOr<DistributedOptimizer::StepResult> DistributedOptimizer::Step(double lr) {
  gate_.EndReads();
  // Reductions were issued in reverse order and end about so.
  for (int b = static_cast<int>(states_.size()) - 1; b >= 0; --b) {
    reducer_.Wait(b, *context_.stream);
  }
  ReduceShared();
  StepResult result;
  result.grad_norm = GlobalNorm();
  if (!std::isfinite(result.grad_norm)) return result;
  FR_RETURN_IF_ERROR(gate_.CheckNoLeases());
  const float scale = ClipFactor(result.grad_norm, options_.clip_grad);
  ++updates_;
  for (int bucket : gate_.order()) {
    gate_.Accept(bucket, *context_.stream);
    Update(bucket, lr, scale);
    gate_.Publish(bucket);
  }
  gate_.Finish(*context_.stream);
  result.updated = true;
  return result;
}

void DistributedOptimizer::ReduceShared() {
  for (size_t b = 0; b < states_.size(); ++b) {
    const Bucket& bucket = writer_.plan().buckets()[b];
    if (bucket.pieces[0].parameter->sharing() == Sharing::kNone) continue;
    placement_.embedding->AllReduce(writer_.Grads(static_cast<int>(b)), comm::ReduceOp::kSum)
        .Wait(*context_.stream);
  }
}

double DistributedOptimizer::GlobalNorm() {
  ExactSum sum;
  for (size_t b = 0; b < states_.size(); ++b) {
    const Tensor grads = writer_.Grads(static_cast<int>(b));
    for (const BucketPiece& piece : writer_.Pieces(static_cast<int>(b))) {
      if (placement_.owns(*piece.parameter)) arithmetic_.AddSquares(PartOf(grads, piece), sum);
    }
  }
  // Through memory that the collective keeps alive, should it fail.
  const Tensor words = HostTensor({static_cast<int64_t>(sum.words().size())}, DType::kI64);
  auto* data = words.mutable_data<int64_t>();
  std::copy(sum.words().begin(), sum.words().end(), data);
  placement_.world->AllReduce(words, comm::ReduceOp::kSum).Wait(*context_.stream);
  std::copy_n(data, sum.words().size(), sum.words().begin());
  return std::sqrt(sum.Value());
}

void DistributedOptimizer::Update(int bucket, double lr, float grad_scale) {
  const BucketState& state = states_[bucket];
  const Tensor params = writer_.Params(bucket);
  const Tensor grads = writer_.Grads(bucket);
  const bool rounded = state.master.defined();
  const Tensor& master = rounded ? state.master : params;
  for (const BucketPiece& piece : writer_.Pieces(bucket)) {
    const double decay = piece.parameter->weight_decay() ? options_.weight_decay : 0.0;
    const AdamWStep adamw{static_cast<float>(lr), static_cast<float>(decay), grad_scale, updates_};
    arithmetic_.AdamW(options_.adamw, adamw, PartOf(master, piece), PartOf(state.exp_avg, piece),
                      PartOf(state.exp_avg_sq, piece), PartOf(grads, piece),
                      rounded ? PartOf(params, piece) : Tensor());
  }
}

absl::Status DistributedOptimizer::VisitShards(
    bool only_owned, absl::FunctionRef<absl::Status(const StatePiece&)> visit) {
  for (size_t b = 0; b < states_.size(); ++b) {
    const BucketState& state = states_[b];
    for (const BucketPiece& piece : writer_.Pieces(static_cast<int>(b))) {
      const Parameter& parameter = *piece.parameter;
      if (only_owned && !placement_.owns(parameter)) continue;
      const std::pair<absl::string_view, const Tensor*> kinds[] = {
          {"master", &state.master},
          {"exp_avg", &state.exp_avg},
          {"exp_avg_sq", &state.exp_avg_sq}};
      for (const auto& [kind, tensor] : kinds) {
        if (!tensor->defined()) continue;
        const auto state_piece =
            PieceOf(parameter, absl::StrCat("optimizer.", kind, ".", parameter.name()),
                    piece.parameter_begin, PartOf(*tensor, piece));
        if (state_piece.has_value()) FR_RETURN_IF_ERROR(visit(*state_piece));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DistributedOptimizer::Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) {
  FR_RETURN_IF_ERROR(VisitShards(/*only_owned=*/true, save));
  if (placement_.world->rank() != 0) return absl::OkStatus();
  const Tensor updates = HostTensor({1}, DType::kI64);
  *updates.mutable_data<int64_t>() = updates_;
  return save(StepPiece(updates));
}

absl::Status DistributedOptimizer::Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) {
  FR_RETURN_IF_ERROR(VisitShards(/*only_owned=*/false, load));
  const Tensor updates = HostTensor({1}, DType::kI64);
  FR_RETURN_IF_ERROR(load(StepPiece(updates)));
  updates_ = *updates.data<int64_t>();
  return absl::OkStatus();
}

}  // namespace forerun
