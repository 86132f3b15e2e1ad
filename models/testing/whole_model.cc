// SPDX-License-Identifier: Apache-2.0
#include "models/testing/whole_model.h"

#include <memory>
#include <utility>

#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/testing/plain_reader.h"
#include "core/ops/copy.h"
#include "models/gpt.h"
#include "parallel/tensor_parallel/testing/box_indices.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"

namespace forerun {
namespace {

// One stage of one tensor-parallel rank.
class StageRun {
 public:
  StageRun(const WholeModelCase& model, const TestDevice& device, GptChunk::Stage stage,
           comm::ProcessGroup& group)
      : model_(model),
        device_(device),
        chunk_(GptChunk::Create(model.config, stage, group, model.order).value()),
        reader_(device.op(), chunk_->registry(), model.seed),
        sink_(device.op()) {}

  // The activation of the stage before, undefined for the first, to this one's.
  Tensor Forward(Tensor input) {
    const ForwardContext context{.op = device_.op(),
                                 .reader = reader_,
                                 .tape = &tape_,
                                 .random = RandomKey::Root(model_.seed).Fold("step"),
                                 .first_sample = 1,
                                 .global_batch = model_.b + 2,
                                 .training = true};
    if (!chunk_->first()) input_ = tape_.Leaf(std::move(input));
    const Shape shape = {model_.s, model_.b};
    output_ = chunk_->Forward(
        context, input_,
        {device_.Tokens(shape, model_.tokens), device_.Tokens(shape, model_.targets)});
    return output_.tensor;
  }

  // The gradient of the output to that of the input.
  Tensor Backward(Tensor gradient) {
    tape_.Backward(device_.op(), output_, std::move(gradient), sink_);
    return chunk_->first() ? Tensor() : tape_.LeafGradient(input_);
  }

  // Adds this rank's part of every gradient to the whole of its first holder.
  void AddTo(std::map<std::string, std::vector<double>>& gradients, bool only_split) const {
    for (const Parameter* parameter : chunk_->registry().parameters()) {
      if (only_split && parameter->replicated()) continue;
      std::vector<double>& whole = gradients[parameter->name()];
      whole.resize(static_cast<size_t>(parameter->global_shape().numel()));
      const std::vector<float> part = sink_.Values(*parameter);
      const std::vector<int64_t> at = IndicesOf(parameter->box(), parameter->global_shape());
      for (size_t i = 0; i < at.size(); ++i) whole[at[i]] += part[i];
    }
  }

 private:
  const WholeModelCase& model_;
  const TestDevice& device_;
  const std::unique_ptr<GptChunk> chunk_;
  PlainReader reader_;
  MapSink sink_;
  Tape tape_;
  Value input_;
  Value output_;
};

// All stages of one tensor-parallel rank.
class RankRun {
 public:
  RankRun(const WholeModelCase& model, int stages, comm::ProcessGroup& group)
      : device_(DeviceKind::kCpu) {
    for (int stage = 0; stage < stages; ++stage) {
      stages_.push_back(std::make_unique<StageRun>(
          model, device_, GptChunk::Stage{.stage = stage, .stages = stages}, group));
    }
  }

  void Run() {
    Tensor x;
    for (const auto& stage : stages_) x = stage->Forward(x);
    loss_ = x.data<float>()[0];
    Tensor gradient = device_.op().Empty(x.shape(), x.dtype());
    Fill(device_.op(), 1.0f, gradient);
    for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) {
      gradient = (*stage)->Backward(gradient);
    }
  }

  double loss() const { return loss_; }
  const std::vector<std::unique_ptr<StageRun>>& stages() const { return stages_; }

 private:
  const TestDevice device_;
  std::vector<std::unique_ptr<StageRun>> stages_;
  double loss_ = 0.0;
};

}  // namespace

WholeModelRun RunWholeModel(const WholeModelCase& model, int tensor_parallel, int stages) {
  std::vector<std::unique_ptr<RankRun>> ranks(tensor_parallel);
  ForEachRank(tensor_parallel, [&](comm::ProcessGroup& group) {
    auto rank = std::make_unique<RankRun>(model, stages, group);
    rank->Run();
    ranks[group.rank()] = std::move(rank);
  });
  WholeModelRun result{.loss = ranks[0]->loss()};
  for (const auto& rank : ranks) {
    for (const auto& stage : rank->stages()) stage->AddTo(result.gradients, rank != ranks[0]);
  }
  return result;
}

}  // namespace forerun
