// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/autograd/grad_sink.h"
#include "core/autograd/parameter.h"
#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// A tensor in a forward pass, and where its gradient is kept on the tape that recorded it.
struct Value {
  static constexpr int kConstant = -1;  // has no gradient

  Tensor tensor;
  int id = kConstant;

  bool constant() const { return id == kConstant; }
};

// One recorded operator: what its backward needs. Coarse on purpose (a linear layer, a norm, an
// attention), so that a tape is short and a node can do its work with few, large kernels.
//
// The two halves are apart so that a schedule may run weight gradients later than input
// gradients (zero bubble). Each is called at most once, BackwardInput first; both see the same
// gradients. The node is destroyed after its last half, and with it what it saved.
class Node {
 public:
  virtual ~Node() = default;
  virtual absl::string_view name() const = 0;  // a literal
  // Sets grad_inputs[i] for each input i that is `wanted`; others are left undefined. A gradient
  // of an output that nothing used is undefined here, but never all of them. Results may share
  // memory with grad_outputs: nobody writes to a gradient once it is returned.
  virtual void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                             absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) = 0;
  // Contributes once to each weight that was given to Tape::Record.
  virtual void BackwardWeight(const OpContext&, absl::Span<const Tensor> /*grad_outputs*/,
                              GradSink&) {}
  // Both halves, where they run together: for a node that can share work between them. Same bits.
  virtual void Backward(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                        absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs,
                        GradSink& sink) {
    BackwardInput(context, grad_outputs, wanted, grad_inputs);
    BackwardWeight(context, grad_outputs, sink);
  }
};

// The record of one forward pass of one chunk for one microbatch; replayed in reverse, once.
// Belongs to one thread.
//
// Invariants
//  1. The backward pass makes every contribution of contributions(), once, operator by operator in
//     reverse. Of an operator that the differentiated output does not depend on, neither half is
//     called: the tape contributes zero to its weights.
//  2. Joined or apart, the two halves make the same contributions with the same bits.
//  3. A gradient of a value that several operators take is their sum, added in reverse order.
//  4. What a node saved, and the gradients that passed through it, are freed as soon as its last
//     half has run.
//  5. A value belongs to the tape that made it.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(Tape&&) noexcept;
  Tape& operator=(Tape&&) noexcept;

  // An input from outside whose gradient is wanted (an activation from the stage before).
  Value Leaf(Tensor tensor);

  // Records an operator. `weights` are the trainable parameters it contributes to, one entry a
  // contribution. Where every input is constant and there are no weights, nothing is recorded and
  // the outputs are constants.
  std::vector<Value> Record(std::unique_ptr<Node> node, absl::Span<const Value> inputs,
                            absl::Span<const Tensor> outputs,
                            absl::Span<const Parameter* const> weights = {});
  // The same for one output.
  Value Record1(std::unique_ptr<Node> node, absl::Span<const Value> inputs, Tensor output,
                absl::Span<const Parameter* const> weights = {});

  // Replays in reverse from the gradient of `output`. Weight gradients are contributed right
  // after the node's input gradients. Leaves' gradients are then in LeafGradient.
  void Backward(const OpContext& context, const Value& output, Tensor grad_output, GradSink& sink);
  // The two halves apart: BackwardInput keeps what BackwardWeight needs.
  void BackwardInput(const OpContext& context, const Value& output, Tensor grad_output);
  void BackwardWeight(const OpContext& context, GradSink& sink);

  // The gradient of a leaf after the backward pass, undefined if nothing used it.
  Tensor LeafGradient(const Value& leaf) const;

  // One entry a contribution that the backward pass will make, in the order of the forward pass.
  absl::Span<const Parameter* const> contributions() const;

  // What was recorded, for whoever draws the data flow: operator names, and which operators'
  // outputs each read. Index in recording order.
  struct Operator {
    absl::string_view name;
    absl::InlinedVector<int, 4> producers;  // earlier operators whose outputs this one takes
    absl::InlinedVector<const Parameter*, 2> weights;
  };
  std::vector<Operator> Operators() const;

 private:
  struct Entry;
  void Replay(const OpContext& context, const Value& output, Tensor grad_output, GradSink* sink);
  // With a sink, the weight half too.
  void ReplayInput(const OpContext& context, GradSink* sink, Entry& entry);
  void ReplayWeight(const OpContext& context, GradSink& sink, Entry& entry);
  static void ContributeZeros(const OpContext& context, GradSink& sink, const Entry& entry);
  void Accumulate(const OpContext& context, int id, const Tensor& gradient);
  bool Owns(int id) const { return id >= 0 && id < static_cast<int>(producer_.size()); }

  std::vector<Entry> entries_;
  std::vector<Tensor> gradients_;  // by value id
  std::vector<int> producer_;      // by value id: index in entries_, -1 for leaves
  std::vector<const Parameter*> contributions_;
  bool replayed_ = false;
};

}  // namespace forerun
