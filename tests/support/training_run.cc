// SPDX-License-Identifier: Apache-2.0
#include "tests/support/training_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "checkpoint/checkpoint.h"
#include "core/base/status_macros.h"
#include "core/tensor/host_tensor.h"
#include "trainer/arguments.h"
#include "trainer/metrics.h"
#include "trainer/training_loop.h"

namespace forerun {
namespace {

bool Near(double a, double b, double bound) { return std::abs(a - b) <= bound * std::abs(b); }

absl::StatusOr<Tensor> Whole(Checkpoint& checkpoint, const SavedTensor& tensor) {
  const Tensor values = HostTensor({tensor.shape.numel()}, tensor.dtype);
  FR_RETURN_IF_ERROR(
      checkpoint.LoadPiece({tensor.name, tensor.shape, Box::Whole(tensor.shape), 0, values}));
  return values;
}

absl::StatusOr<std::string> Compare(Checkpoint& a, Checkpoint& b) {
  const std::vector<SavedTensor> tensors = a.tensors();
  if (tensors != b.tensors()) return std::string("names, shapes or types of tensors");
  for (const SavedTensor& tensor : tensors) {
    FR_ASSIGN_OR_RETURN(const Tensor x, Whole(a, tensor));
    FR_ASSIGN_OR_RETURN(const Tensor y, Whole(b, tensor));
    if (std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.bytes())) != 0) {
      return tensor.name;
    }
  }
  return std::string();
}

}  // namespace

const char kT0Flags[] =
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --ffn-hidden-size 128 "
    "--seq-length 32 --micro-batch-size 1 --global-batch-size 12 --lr 1e-3 --lr-decay-iters 10 "
    "--lr-warmup-iters 2 --mock-data --eval-iters 0 --threads-per-rank 1 --param-checksum ";
const char kOverlapFlags[] =
    "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
    "--ddp-bucket-size 8192 --poison-stale-params ";

bool TrainingRun::Said(absl::string_view text) const {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return absl::StrContains(line, text); });
}

absl::StatusOr<TrainingRun> TrainWith(absl::string_view flags) {
  const std::vector<std::string> args = absl::StrSplit(flags, ' ', absl::SkipEmpty());
  FR_ASSIGN_OR_RETURN(const Arguments arguments, ParseArguments(args));
  TrainingRun run;
  TrainingOutput output;
  output.print = [&](absl::string_view line) { run.lines.emplace_back(line); };
  output.on_step = [&](const StepMetrics& step) {
    run.iterations.push_back(step.iteration);
    run.losses.push_back(step.loss);
    run.grad_norms.push_back(step.grad_norm);
    run.lrs.push_back(step.lr);
  };
  output.on_checksum = [&](uint64_t checksum) { run.checksum = checksum; };
  FR_RETURN_IF_ERROR(TrainWithThreads(arguments, output));
  return run;
}

std::string StepDifference(const TrainingRun& part, const TrainingRun& whole, double bound) {
  for (size_t i = 0; i < part.iterations.size(); ++i) {
    const auto same =
        std::find(whole.iterations.begin(), whole.iterations.end(), part.iterations[i]);
    const std::string step = absl::StrCat(" of iteration ", part.iterations[i]);
    if (same == whole.iterations.end()) return absl::StrCat("absence", step);
    const size_t j = same - whole.iterations.begin();
    if (!Near(part.losses[i], whole.losses[j], bound)) {
      return absl::StrCat("loss", step, ": ", part.losses[i], " and ", whole.losses[j]);
    }
    if (!Near(part.grad_norms[i], whole.grad_norms[j], bound)) {
      return absl::StrCat("gradient norm", step, ": ", part.grad_norms[i], " and ",
                          whole.grad_norms[j]);
    }
    if (part.lrs[i] != whole.lrs[j]) return absl::StrCat("learning rate", step);
  }
  return "";
}

std::string TensorDifference(const std::string& folder_a, const std::string& folder_b,
                             int64_t iteration) {
  const auto a = Checkpoint::Open(folder_a, iteration), b = Checkpoint::Open(folder_b, iteration);
  for (const auto* opened : {&a, &b}) {
    if (!opened->ok()) return std::string(opened->status().message());
  }
  const absl::StatusOr<std::string> difference = Compare(**a, **b);
  return difference.ok() ? *difference : std::string(difference.status().message());
}

}  // namespace forerun
