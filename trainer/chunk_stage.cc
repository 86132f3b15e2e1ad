// SPDX-License-Identifier: Apache-2.0
#include "trainer/chunk_stage.h"

#include <utility>

#include "core/autograd/param_reader.h"
#include "core/ops/copy.h"

namespace forerun {

ChunkStage::ChunkStage(const OpContext& context, const ModelChunk& chunk,
                       DataParallel& data_parallel, Step step)
    : context_(context),
      chunk_(chunk),
      data_parallel_(data_parallel),
      step_(std::move(step)),
      passes_(step_.microbatches.size()) {}

pipeline::ActivationSpec ChunkStage::Activation(int microbatch, int) const {
  const Tensor& tokens = step_.microbatches[microbatch].tokens;
  return {chunk_.ActivationShape(tokens.dim(0), tokens.dim(1)), chunk_.activation_dtype()};
}

Tensor ChunkStage::Forward(int microbatch, int chunk, const Tensor& input) {
  Pass pass;
  pass.input = step_.training && input.defined() ? pass.tape.Leaf(input) : Value{input};
  ParamReader& reader = step_.training ? data_parallel_.forward_passes().Begin(chunk)
                                       : static_cast<ParamReader&>(data_parallel_.gate());
  const ForwardContext context{context_,
                               reader,
                               step_.training ? &pass.tape : nullptr,
                               step_.random,
                               step_.first_sample[microbatch],
                               step_.global_batch,
                               step_.training};
  pass.output = chunk_.Forward(context, pass.input, step_.microbatches[microbatch]);
  const Tensor output = pass.output.tensor;
  if (chunk_.last()) losses_.push_back(output);
  if (step_.training) {
    data_parallel_.forward_passes().End(chunk);
    data_parallel_.reducer().Announce(chunk, pass.tape.contributions());
    passes_[microbatch] = std::move(pass);
  }
  return output;
}

double ChunkStage::LossSum() const {
  double sum = 0.0;
  for (const Tensor& loss : losses_) sum += *loss.data<float>();
  return sum;
}

Tensor ChunkStage::Seed(const Tensor& grad_output) const {
  if (!chunk_.last()) return grad_output;
  Tensor seed = context_.Empty({1}, DType::kF32);
  Fill(context_, step_.loss_scale, seed);
  return seed;
}

Tensor ChunkStage::Backward(int microbatch, int, const Tensor& grad_output) {
  Pass pass = *std::exchange(passes_[microbatch], absl::nullopt);
  pass.tape.Backward(context_, pass.output, Seed(grad_output), data_parallel_.reducer());
  return pass.input.constant() ? Tensor() : pass.tape.LeafGradient(pass.input);
}

Tensor ChunkStage::BackwardInput(int microbatch, int, const Tensor& grad_output) {
  Pass& pass = *passes_[microbatch];
  pass.tape.BackwardInput(context_, pass.output, Seed(grad_output));
  return pass.input.constant() ? Tensor() : pass.tape.LeafGradient(pass.input);
}

void ChunkStage::BackwardWeight(int microbatch, int) {
  Pass pass = *std::exchange(passes_[microbatch], absl::nullopt);
  pass.tape.BackwardWeight(context_, data_parallel_.reducer());
}

}  // namespace forerun
