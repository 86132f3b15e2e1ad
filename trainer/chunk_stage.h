// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/ops/op_context.h"
#include "core/random/random.h"
#include "models/chunk.h"
#include "parallel/data_parallel/data_parallel.h"
#include "parallel/pipeline/executor.h"

namespace forerun {

// One step of one model chunk, as the pipeline's executor sees it: keeps a tape a microbatch from
// its forward to its backward pass, tells the reducer what each tape will contribute, and keeps
// the losses. Made anew for every step; belongs to the compute thread. What it is given outlives
// it.
class ChunkStage final : public pipeline::StageModel {
 public:
  struct Step {
    std::vector<Microbatch> microbatches;
    std::vector<int64_t> first_sample;  // of each microbatch, in the global batch
    int64_t global_batch = 0;           // samples of the step
    RandomKey random = RandomKey::Root(0);
    // Gradient of the step's mean loss by one microbatch's: 1 / microbatches of all ranks.
    float loss_scale = 1.0f;
    bool training = true;  // false: no tapes, no dropout
  };

  ChunkStage(const OpContext& context, const ModelChunk& chunk, DataParallel& data_parallel,
             Step step);

  pipeline::ActivationSpec Activation(int microbatch, int chunk) const override;
  Tensor Forward(int microbatch, int chunk, const Tensor& input) override;
  Tensor Backward(int microbatch, int chunk, const Tensor& grad_output) override;
  Tensor BackwardInput(int microbatch, int chunk, const Tensor& grad_output) override;
  void BackwardWeight(int microbatch, int chunk) override;

  // Of the microbatches that the model's last chunk has run here; 0 on other stages. Reads values.
  double LossSum() const;

 private:
  struct Pass {
    Tape tape;
    Value input;
    Value output;
  };

  Tensor Seed(const Tensor& grad_output) const;

  const OpContext& context_;
  const ModelChunk& chunk_;
  DataParallel& data_parallel_;
  const Step step_;
  std::vector<absl::optional<Pass>> passes_;  // by microbatch, between forward and backward
  std::vector<Tensor> losses_;                // in the order in which they were computed
};

}  // namespace forerun
