// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"

namespace forerun {

struct VocabParallelEmbeddingSpec {
  std::string name;               // the parameter is <name>.weight
  int64_t vocab_size = 0;         // tokens that exist
  int64_t padded_vocab_size = 0;  // rows of the table
  int64_t hidden_size = 0;
  DType dtype = DType::kF32;
  Init init;
  Sharing sharing = Sharing::kNone;
};

// A table of word vectors whose rows are split over the ranks of a group. A rank looks up the
// tokens whose rows it holds and takes zero for the others; the sum over ranks leaves the region.
// The registry and the group outlive it. That the rows can be split is checked.
class VocabParallelEmbedding {
 public:
  VocabParallelEmbedding(ParameterRegistry& registry, comm::ProcessGroup& group,
                         const VocabParallelEmbeddingSpec& spec);

  // tokens int32 [s, b] -> [s, b, hidden_size], the same on every rank.
  Value Forward(const ForwardContext& context, const Tensor& tokens) const;

  // The table, for an output projection that is tied to it.
  const Parameter& weight() const { return *weight_; }

 private:
  const std::string name_;
  comm::ProcessGroup* const group_;
  const Parameter* const weight_;
};

}  // namespace forerun
