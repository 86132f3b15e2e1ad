// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/executor.h"

#include <utility>

#include "core/base/check.h"

namespace forerun::pipeline {

// A message that an action needs: undefined and done at the model's ends.
struct Executor::Incoming {
  Tensor tensor;
  comm::Work work;
};

Executor::Executor(const OpContext& context, comm::ProcessGroup& group,
                   std::function<double()> clock)
    : context_(context), group_(group), clock_(std::move(clock)) {}

// The model piece that an action's message comes from or goes to, -1 if there is none.
int Executor::PeerPiece(const Action& action, int chunks, bool source) const {
  if (action.kind == ActionKind::kBackwardWeight) return -1;
  const int piece = action.chunk * group_.size() + group_.rank();
  const bool forward = action.kind == ActionKind::kForward;
  const int peer = forward == source ? piece - 1 : piece + 1;
  return peer < 0 || peer >= chunks * group_.size() ? -1 : peer;
}

Executor::Incoming Executor::Post(const Action& action, int chunks, const StageModel& model,
                                  std::vector<comm::Work>& issued) {
  const int piece = PeerPiece(action, chunks, /*source=*/true);
  if (piece < 0) return {};
  // A gradient has the shape of the activation that the next piece was sent.
  const int of_chunk = action.kind == ActionKind::kForward ? action.chunk : piece / group_.size();
  const ActivationSpec spec = model.Activation(action.microbatch, of_chunk);
  Tensor tensor = context_.Empty(spec.shape, spec.dtype);
  issued.push_back(group_.Recv(tensor, piece % group_.size()));
  return {tensor, issued.back()};
}

Tensor Executor::Compute(const Action& action, const Tensor& input, StageModel& model) {
  switch (action.kind) {
    case ActionKind::kForward:
      return model.Forward(action.microbatch, action.chunk, input);
    case ActionKind::kBackward:
      return model.Backward(action.microbatch, action.chunk, input);
    case ActionKind::kBackwardInput:
      return model.BackwardInput(action.microbatch, action.chunk, input);
    case ActionKind::kBackwardWeight:
      model.BackwardWeight(action.microbatch, action.chunk);
  }
  return Tensor();
}

void Executor::Send(const Action& action, int chunks, Tensor result,
                    std::vector<comm::Work>& issued) {
  const int piece = PeerPiece(action, chunks, /*source=*/false);
  if (piece < 0) return;
  FR_CHECK(result.defined()) << ToString(action) << " has nothing to send";
  issued.push_back(group_.Send(result, piece % group_.size()));
}

StageRun Executor::RunActions(const ActionList& actions, int chunks, StageModel& model,
                              std::vector<comm::Work>& issued) {
  StageRun run;
  Incoming next = actions.empty() ? Incoming{} : Post(actions[0], chunks, model, issued);
  for (size_t i = 0; i < actions.size(); ++i) {
    const Incoming incoming = std::move(next);
    next = i + 1 < actions.size() ? Post(actions[i + 1], chunks, model, issued) : Incoming{};
    ActionRecord record{actions[i], clock_(), 0.0, 0.0};
    incoming.work.Wait(*context_.stream);
    record.waited = clock_() - record.start;
    Send(actions[i], chunks, Compute(actions[i], incoming.tensor, model), issued);
    record.end = clock_();
    run.waited += record.waited;
    run.actions.push_back(record);
  }
  const double drained = clock_();
  for (const comm::Work& work : issued) work.Wait(*context_.stream);
  run.waited += clock_() - drained;
  return run;
}

// The caller's memory may go as soon as he has the error, so no message may still hold any: the
// abort ends those without a partner, and the others end by themselves.
void Executor::Abandon(const absl::Status& error, const std::vector<comm::Work>& issued) {
  group_.Abort(error);
  for (const comm::Work& work : issued) {
    try {
      work.Synchronize();
    } catch (const comm::GroupError&) {  // the one that is being reported
    }
  }
}

StageRun Executor::Run(const ActionList& actions, int chunks, StageModel& model) {
  std::vector<comm::Work> issued;
  try {
    return RunActions(actions, chunks, model, issued);
  } catch (const comm::GroupError& error) {
    Abandon(error.status(), issued);
    throw;
  }
}

}  // namespace forerun::pipeline
