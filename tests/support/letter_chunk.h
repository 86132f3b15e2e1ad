// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "models/chunk.h"
#include "trainer/rank_trainer.h"

namespace forerun {

// A model whose order of use a test chooses: an embedding, whose table is the head's weight too,
// and square layers named by letters.
struct LetterModel {
  std::string registered = "ABC";  // layers, in this order
  std::string optional;            // of these
  std::string frozen;
  int segment = 0;  // layers that are recomputed as one; 0: none are

  // What a forward pass runs: "A" is layer A; "a" a plain function that borrows A's weight. Passes
  // of training count from 1; 0 is the recorded one. Rank is the data-parallel one. By default the
  // registered layers.
  std::function<std::string(int64_t pass, int rank)> path;

  static LetterModel Running(std::string path) {
    LetterModel model;
    model.path = [path](int64_t, int) { return path; };
    return model;
  }
};

class LetterChunk final : public ModelChunk {
 public:
  static constexpr int64_t kVocabulary = 128;
  static constexpr int64_t kHidden = 64;

  // The group is a tensor-parallel one, of one rank.
  LetterChunk(LetterModel model, comm::ProcessGroup& group, int rank);

  const ParameterRegistry& registry() const override { return registry_; }
  bool first() const override { return true; }
  bool last() const override { return true; }
  Value Forward(const ForwardContext& context, const Value& input,
                const Microbatch& microbatch) const override;
  Value Logits(const ForwardContext& context, const Value& input,
               const Tensor& tokens) const override;
  Shape ActivationShape(int64_t s, int64_t b) const override { return {s, b, kHidden}; }
  DType activation_dtype() const override { return DType::kF32; }

 private:
  const Parameter& Declare(const std::string& name, const Shape& shape, ParameterKind kind);
  Value RunLayers(const ForwardContext& context, const Value& input, const std::string& path) const;

  const LetterModel model_;
  comm::ProcessGroup& group_;
  const int rank_;
  ParameterRegistry registry_;
  const Parameter* table_;
  std::map<char, const Parameter*> layers_;
  mutable std::atomic<int64_t> passes_{0};  // of training
};

// For JobSpec::make_chunk.
ChunkFactory MakeLetterChunk(LetterModel model);

}  // namespace forerun
