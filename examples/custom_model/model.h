// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/autograd/context.h"
#include "core/autograd/functions.h"
#include "core/nn/functions.h"
#include "core/nn/registry.h"
#include "parallel/tensor_parallel/vocab_parallel_cross_entropy.h"

// A model of one's own: parameters, and a forward pass over the library's functions. It guesses
// the next token from the one before, by a table that is read at both ends and an MLP between.
// The order of declaration is no plan of anything: here it is the reverse of the order of use.
class NextTokenModel {
 public:
  static constexpr int64_t kVocab = 256;

  forerun::Value Loss(const forerun::ForwardContext& context, const forerun::Tensor& tokens,
                      const forerun::Tensor& targets, forerun::comm::ProcessGroup& self) const {
    const forerun::Value x = Embedding(context, tokens, table_, /*first_row=*/0, "table");
    forerun::Value y = RmsNorm(context, x, norm_, /*epsilon=*/1e-5f, "norm");
    y = LinearGelu(context, y, fc1_, &fc1_bias_, forerun::GeluKind::kTanh, "fc1");
    y = Add(context, x, Linear(context, y, fc2_, /*bias=*/nullptr, "fc2"));
    const forerun::Value logits = Linear(context, y, table_, /*bias=*/nullptr, "logits");
    const forerun::Value losses = VocabParallelCrossEntropy(context, logits, targets, kVocab, self);
    return ScaledMean(context, losses, 1.0f);
  }

  const forerun::ParameterRegistry& registry() const { return registry_; }

 private:
  static constexpr int64_t kHidden = 64;

  const forerun::Parameter& Declare(const char* name, const forerun::Shape& shape,
                                    forerun::Init init) {
    return registry_.Declare({.name = name,
                              .global_shape = shape,
                              .box = forerun::Box::Whole(shape),
                              .weight_decay = shape.rank() > 1},
                             init);
  }

  using Init = forerun::Init;
  forerun::ParameterRegistry registry_;
  const forerun::Parameter& fc2_ = Declare("fc2", {kHidden, 4 * kHidden}, Init::Normal(0.02));
  const forerun::Parameter& fc1_bias_ = Declare("fc1.bias", {4 * kHidden}, Init::Zeros());
  const forerun::Parameter& fc1_ = Declare("fc1", {4 * kHidden, kHidden}, Init::Normal(0.02));
  const forerun::Parameter& norm_ = Declare("norm", {kHidden}, Init::Ones());
  const forerun::Parameter& table_ = Declare("table", {kVocab, kHidden}, Init::Normal(0.1));
};
