// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "core/ops/op_context.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"
#include "parallel/comm/work.h"
#include "parallel/pipeline/schedule.h"

namespace forerun::pipeline {

// Shape and dtype of what travels into a chunk for a microbatch, and back out as its gradient.
struct ActivationSpec {
  Shape shape;
  DType dtype = DType::kF32;
};

// What a stage computes. Called by the executor in the schedule's order, on the compute thread.
class StageModel {
 public:
  virtual ~StageModel() = default;
  // Of the input of a chunk, which is the output of the chunk before. Both ends of a message must
  // say the same; lengths may differ by microbatch.
  virtual ActivationSpec Activation(int microbatch, int chunk) const = 0;
  // `input` is undefined where the model begins. Returns the activation for the next chunk; what
  // the last chunk returns goes nowhere.
  virtual Tensor Forward(int microbatch, int chunk, const Tensor& input) = 0;
  // `grad_output` is undefined where the model ends: the loss is the stage's own affair. Returns
  // the gradient of the input, undefined where the model begins.
  virtual Tensor Backward(int microbatch, int chunk, const Tensor& grad_output) = 0;
  // The halves of Backward, for schedules that have them apart.
  virtual Tensor BackwardInput(int microbatch, int chunk, const Tensor& grad_output) = 0;
  virtual void BackwardWeight(int microbatch, int chunk) = 0;
};

// When an action ran, in the clock's seconds; `waited` of it blocked in its receive.
struct ActionRecord {
  Action action;
  double start = 0.0;
  double end = 0.0;
  double waited = 0.0;
};

struct StageRun {
  std::vector<ActionRecord> actions;
  double waited = 0.0;  // in receives and at the last sends: exposed time
};

// Runs one stage's list. It knows no schedule by name.
//
// The receive of an action is posted before the action ahead of it runs, so that the message comes
// in under that compute. Sends are issued and left; the last ones are waited for before Run
// returns. A group of one rank has no neighbours and no messages.
//
// Failure: a GroupError, of a message or from inside the model, aborts the group, so that the other
// stages end with the same error, and is passed on when none of this stage's messages is under way
// any more: the memory they used may then go.
// The context, and the group (the pipeline's, stage = rank), outlive it.
class Executor {
 public:
  Executor(const OpContext& context, comm::ProcessGroup& group, std::function<double()> clock);

  // `chunks`: how many each stage holds.
  StageRun Run(const ActionList& actions, int chunks, StageModel& model);

 private:
  struct Incoming;
  // Each adds the message that it issues, if any, to `issued`.
  Incoming Post(const Action& action, int chunks, const StageModel& model,
                std::vector<comm::Work>& issued);
  void Send(const Action& action, int chunks, Tensor result, std::vector<comm::Work>& issued);
  StageRun RunActions(const ActionList& actions, int chunks, StageModel& model,
                      std::vector<comm::Work>& issued);
  Tensor Compute(const Action& action, const Tensor& input, StageModel& model);
  void Abandon(const absl::Status& error, const std::vector<comm::Work>& issued);
  int PeerPiece(const Action& action, int chunks, bool source) const;

  const OpContext& context_;
  comm::ProcessGroup& group_;
  const std::function<double()> clock_;
};

}  // namespace forerun::pipeline
