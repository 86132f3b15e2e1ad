// SPDX-License-Identifier: Apache-2.0
#include "trainer/start_point.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "core/base/status_macros.h"
#include "core/base/user_path.h"
#include "trainer/checkpoint_metadata.h"

namespace forerun {
namespace {

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenLoad(const CheckpointArguments& a) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
      Checkpoint::Open(ResolveUserPath(a.load), a.ckpt_step);
  if (!absl::IsNotFound(checkpoint.status())) return checkpoint;
  return absl::FailedPreconditionError(checkpoint.status().message());  // NotFound means --help
}

// What means nothing without a checkpoint.
absl::Status CheckLoads(const CheckpointArguments& a) {
  for (const auto& [given, flag] :
       {std::pair(a.ckpt_step.has_value(), "--ckpt-step"), std::pair(a.finetune, "--finetune"),
        std::pair(a.use_checkpoint_args, "--use-checkpoint-args"),
        std::pair(a.use_checkpoint_schedule, "--use-checkpoint-opt_param-scheduler")}) {
    if (given && a.load.empty())
      return absl::InvalidArgumentError(absl::StrCat(flag, " needs --load"));
  }
  return absl::OkStatus();
}

absl::Status CheckConflicts(const CheckpointArguments& a) {
  if (!a.use_checkpoint_schedule) return absl::OkStatus();
  for (const auto& [given, flag] :
       {std::pair(a.override_schedule, "--override-opt_param-scheduler"),
        std::pair(a.finetune, "--finetune"), std::pair(a.no_load_optim, "--no-load-optim")}) {
    if (!given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag,
                     " takes this run's schedule and --use-checkpoint-opt_param-scheduler "
                     "the checkpoint's: give one of them"));
  }
  return absl::OkStatus();
}

absl::Status ResolveSchedule(const Checkpoint& checkpoint, Arguments& arguments) {
  const CheckpointArguments& a = arguments.checkpoint;
  if (a.override_schedule) return absl::OkStatus();
  if (a.use_checkpoint_schedule) return TakeSchedule(checkpoint.metadata(), arguments.training);
  return CheckSameSchedule(checkpoint.metadata(), arguments.training);
}

// The state of all randomness is the seed.
absl::Status ResolveSeed(const Checkpoint& checkpoint, Arguments& arguments) {
  FR_ASSIGN_OR_RETURN(const int64_t seed, IntegerEntry(checkpoint.metadata(), "seed"));
  if (seed == arguments.training.seed) return absl::OkStatus();
  arguments.start.note = absl::StrCat("the checkpoint's seed ", seed, " goes on, not --seed ",
                                      arguments.training.seed, " (--no-load-rng takes that)");
  arguments.training.seed = seed;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Arguments> ModelOfCheckpoint(const CheckpointArguments& a) {
  FR_RETURN_IF_ERROR(CheckLoads(a));
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, OpenLoad(a));
  Arguments arguments;
  FR_RETURN_IF_ERROR(TakeModel(checkpoint->metadata(), arguments));
  return arguments;
}

absl::Status ResolveStart(Arguments& arguments) {
  const CheckpointArguments& a = arguments.checkpoint;
  FR_RETURN_IF_ERROR(CheckLoads(a));
  FR_RETURN_IF_ERROR(CheckConflicts(a));
  if (a.load.empty()) return absl::OkStatus();
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, OpenLoad(a));
  StartPoint& start = arguments.start;
  start.checkpoint = checkpoint->iteration();
  start.checksum = checkpoint->checksum();
  if (a.finetune) return absl::OkStatus();
  start.iteration = checkpoint->iteration();
  FR_ASSIGN_OR_RETURN(start.consumed_samples,
                      IntegerEntry(checkpoint->metadata(), "consumed_samples"));
  start.with_optimizer = !a.no_load_optim;
  if (start.with_optimizer) FR_RETURN_IF_ERROR(ResolveSchedule(*checkpoint, arguments));
  return a.no_load_rng ? absl::OkStatus() : ResolveSeed(*checkpoint, arguments);
}

}  // namespace forerun
