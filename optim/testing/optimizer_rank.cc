// SPDX-License-Identifier: Apache-2.0
#include "optim/testing/optimizer_rank.h"

#include <numeric>
#include <utility>

#include "core/autograd/testing/test_device.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

double NoClock() { return 0.0; }

std::vector<int> AllRanks(int ranks) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

OpContext WithKernels(OpContext op, const KernelTable* kernels) {
  if (kernels != nullptr) op.kernels = kernels;
  return op;
}

}  // namespace

OptimizerRank::OptimizerRank(const TestParameters& parameters, const RankContext& rank,
                             const Options& options, const StateMap* checkpoint)
    : parameters_(parameters),
      rank_(rank.rank),
      ranks_(rank.group.size()),
      op_(WithKernels(rank.op, options.kernels)),
      gather_(rank.factory.Create(
          "gather", options.sharded ? AllRanks(ranks_) : std::vector<int>{rank.rank})),
      plan_(parameters.Plan(options.sharded ? ranks_ : 1)),
      buffer_(plan_, parameters.frozen(), op_) {
  reducer_ =
      std::make_unique<GradReducer>(buffer_, std::vector<int>(plan_.parameters().size(), 0), 1,
                                    rank.group, GradReducer::Options{options.overlap}, NoClock);
  ParamGate::Options gate;
  gate.overlap = options.overlap;
  gate.window_bytes = options.window_bytes;
  gate.poison = true;
  gate_ = std::make_unique<ParamGate>(buffer_, *gather_, gate, NoClock);
  std::vector<const Parameter*> all(parameters.order().begin(), parameters.order().end());
  state_ = std::make_unique<ParameterState>(std::move(all), buffer_, *gate_,
                                            [this](const Parameter&) { return rank_ == 0; });
  parameters.Initialise(buffer_);
  if (checkpoint != nullptr) FR_CHECK(checkpoint->Load(*state_).ok()) << "loading parameters";
  OptimizerPlacement placement;
  placement.world = &rank.group;
  placement.owns = [once = options.sharded || rank_ == 0,
                    counts = options.counts](const Parameter& parameter) {
    return once && (counts == nullptr || counts(parameter));
  };
  optimizer_ = std::make_unique<DistributedOptimizer>(
      op_, ShardWriter(buffer_, gather_->rank()), *reducer_, *gate_, placement, options.optimizer);
  if (checkpoint != nullptr) FR_CHECK(checkpoint->Load(*optimizer_).ok()) << "loading moments";
}

absl::StatusOr<DistributedOptimizer::StepResult> OptimizerRank::Step(int step,
                                                                     const GradientSource& total) {
  reducer_->BeginStep(1);
  reducer_->Announce(0, parameters_.order());
  for (const Parameter* parameter : parameters_.order()) Contribute(step, *parameter, total);
  return optimizer_->Step(0.125);
}

// All ranks but the last contribute their rank plus one, the last what is missing.
void OptimizerRank::Contribute(int step, const Parameter& parameter, const GradientSource& total) {
  const GradSlot slot = reducer_->Slot(parameter);
  const float others = static_cast<float>(ranks_ * (ranks_ - 1) / 2);
  for (int64_t i = 0; i < parameter.numel(); ++i) {
    slot.grad.mutable_data<float>()[i] =
        rank_ < ranks_ - 1 ? static_cast<float>(rank_ + 1) : total(step, parameter, i) - others;
  }
  reducer_->Contributed(parameter, op_.stream->Record());
}

std::vector<std::vector<double>> OptimizerRank::Read() {
  std::vector<std::vector<double>> values;
  for (const Parameter* parameter : parameters_.order()) {
    const ParamLease lease = gate_->Read(*parameter, *op_.stream, "test");
    values.push_back(ValuesOf(lease.tensor()));
  }
  return values;
}

absl::Status OptimizerRank::Save(StateMap& checkpoint) {
  FR_RETURN_IF_ERROR(checkpoint.Save(*state_));
  return checkpoint.Save(*optimizer_);
}

}  // namespace forerun
