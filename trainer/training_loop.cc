// SPDX-License-Identifier: Apache-2.0
#include "trainer/training_loop.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "checkpoint/checkpoint.h"
#include "core/base/machine_memory.h"
#include "core/base/status_macros.h"
#include "core/ops/cpu/kernels.h"
#include "core/ops/cpu/matmul.h"
#include "optim/lr_schedule.h"
#include "parallel/comm/local/run_ranks.h"
#include "parallel/data_parallel/agreement.h"
#include "trainer/checkpoint_loading.h"
#include "trainer/checkpoint_metadata.h"
#include "trainer/checkpoint_saver.h"
#include "trainer/job_check.h"
#include "trainer/overlap_report.h"
#include "trainer/rank_runtime.h"
#include "trainer/rank_trainer.h"

namespace forerun {
namespace {

// One rank's run through the iterations.
class TrainingLoop {
 public:
  TrainingLoop(const Arguments& arguments, const Datasets& datasets, const GptConfig& config,
               RankTrainer& trainer, std::unique_ptr<comm::ProcessGroup> saving,
               const TrainingOutput& output)
      : arguments_(arguments),
        datasets_(datasets),
        config_(config),
        trainer_(trainer),
        output_(output),
        speaks_(trainer.parallel().rank() == 0),
        saver_(arguments.checkpoint, std::move(saving),
               [this](absl::string_view text) { Print(text); }) {}

  absl::Status Run() {
    FR_RETURN_IF_ERROR(Begin());
    const TrainingArguments& training = arguments_.training;
    if (done_ > 0 && done_ >= training.train_iters) {
      Print(absl::StrCat("nothing to train: iteration ", done_, " of --train-iters ",
                         training.train_iters, " is done"));
    }
    for (int64_t i = done_ + 1; i <= training.train_iters; ++i) {
      FR_ASSIGN_OR_RETURN(const StepMetrics metrics,
                          trainer_.TrainStep(i, schedule_.At(i - 1), *datasets_.train, consumed_));
      consumed_ = metrics.consumed_samples;
      done_ = i;
      ++steps_reported_;
      Report(metrics);
      Trace(/*all=*/false);
      FR_RETURN_IF_ERROR(saver_.AfterStep());
      FR_RETURN_IF_ERROR(CheckReplicas());
      const int64_t timing = arguments_.output.timing_interval;
      if (timing > 0 && i % timing == 0) ReportOverlap();
      if (training.eval_interval > 0 && i % training.eval_interval == 0 &&
          i < training.train_iters) {
        FR_RETURN_IF_ERROR(Evaluate());
      }
      const bool due =
          arguments_.checkpoint.save_interval > 0 && i % arguments_.checkpoint.save_interval == 0;
      if (due && i < training.train_iters) FR_RETURN_IF_ERROR(Save());
    }
    return End();
  }

 private:
  void Print(absl::string_view text) const {
    if (speaks_ && output_.print) output_.print(text);
  }

  absl::Status Begin() {
    const TrainingArguments& training = arguments_.training;
    FR_ASSIGN_OR_RETURN(const LrDecay decay, LrDecayByName(training.lr_decay_style));
    schedule_ = {training.lr, training.min_lr, decay, training.lr_warmup_iters,
                 training.lr_decay_iters};
    if (arguments_.start.checkpoint.has_value()) FR_RETURN_IF_ERROR(Load());
    return absl::OkStatus();
  }

  absl::Status Load() {
    const StartPoint& start = arguments_.start;
    FR_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint,
                        Checkpoint::Open(arguments_.checkpoint.load, start.checkpoint));
    const Metadata& saved = checkpoint->metadata();
    FR_RETURN_IF_ERROR(CheckSameModel(saved, ModelMetadata(arguments_, config_.vocab_size)));
    const auto load = [&](Stateful& state) { return LoadInAnyPrecision(*checkpoint, state); };
    FR_RETURN_IF_ERROR(Agree(trainer_.LoadWeights(load)));
    if (start.with_optimizer) FR_RETURN_IF_ERROR(Agree(trainer_.LoadOptimizer(load)));
    done_ = start.iteration;
    consumed_ = start.consumed_samples;
    Print(absl::StrCat("loaded checkpoint ", checkpoint->path(), " at iteration ", done_));
    if (!start.note.empty()) Print(start.note);
    const auto kernels = saved.find("kernels");
    if (kernels != saved.end() && kernels->second != cpu::MatmulChoice()) {
      Print(absl::StrCat("it was written with ", kernels->second, " and goes on with ",
                         cpu::MatmulChoice(), ": bits may differ from an unbroken run's"));
    }
    return absl::OkStatus();
  }

  absl::Status Agree(const absl::Status& mine) {
    return AgreeOnStatus(trainer_.parallel().world(), mine);
  }

  absl::Status Save() {
    const Grid& grid = trainer_.parallel().grid();
    Metadata metadata = ModelMetadata(arguments_, config_.vocab_size);
    metadata.merge(ScheduleMetadata(arguments_.training));
    metadata["seed"] = absl::StrCat(arguments_.training.seed);
    metadata["consumed_samples"] = absl::StrCat(consumed_);
    metadata["kernels"] = cpu::MatmulChoice();
    metadata["layout"] =
        absl::StrCat("tp=", grid.tp_size(), " pp=", grid.pp_size(), " dp=", grid.dp_size());
    return saver_.Save(done_, std::move(metadata), trainer_.state());
  }

  void Report(const StepMetrics& metrics) {
    if (!speaks_) return;
    if (output_.on_step) output_.on_step(metrics);
    const TrainingArguments& training = arguments_.training;
    interval_ms_ += metrics.step_ms;
    ++interval_steps_;
    if (metrics.iteration % training.log_interval != 0 &&
        metrics.iteration != training.train_iters) {
      return;
    }
    StepMetrics shown = metrics;
    shown.step_ms = interval_ms_ / static_cast<double>(interval_steps_);
    shown.tokens_per_second =
        static_cast<double>(training.global_batch_size * arguments_.model.seq_length) /
        (shown.step_ms / 1e3);
    interval_ms_ = 0.0;
    interval_steps_ = 0;
    Print(LogLine(shown, training.train_iters, training.global_batch_size));
  }

  void Trace(bool all) {
    if (!output_.on_trace) return;
    output_.on_trace(trainer_.parallel().rank(), trainer_.TakeTrace(all),
                     trainer_.data_parallel().plan());
  }

  absl::Status CheckReplicas() {
    const int64_t interval = arguments_.training.check_weight_hash_interval;
    if (interval == 0 || done_ % interval != 0) return absl::OkStatus();
    return trainer_.CheckReplicas(done_);
  }

  // What communication cost in the steps since the last table, and whether passes read in another
  // order.
  void ReportOverlap() {
    DataParallel& parallel = trainer_.data_parallel();
    Print(absl::StrCat("communication of rank 0 over ", steps_reported_, " steps:\n",
                       OverlapReport({parallel.plan(), parallel.costs(), parallel.prediction(),
                                      parallel.gate().log().records(),
                                      parallel.reducer().log().records(), steps_reported_})));
    const OrderWatch::Differences differences = parallel.forward_passes().differences();
    if (differences.passes > 0) {
      Print(absl::StrCat("forward order: ", differences.reads, " reads in ", differences.passes,
                         " passes of rank 0 were not as recorded; the first: ", differences.first));
    }
    steps_reported_ = 0;
    parallel.gate().log().ResetRecords();
    parallel.reducer().log().ResetRecords();
  }

  absl::Status Evaluate() {
    if (datasets_.valid == nullptr || arguments_.training.eval_iters == 0) {
      return absl::OkStatus();
    }
    FR_ASSIGN_OR_RETURN(const double loss,
                        trainer_.Evaluate(*datasets_.valid, arguments_.training.eval_iters));
    if (speaks_ && output_.on_evaluation) output_.on_evaluation(loss);
    Print(absl::StrFormat(" validation loss at iteration %d: %.6E | perplexity: %.4f |", done_,
                          loss, std::exp(loss)));
    return absl::OkStatus();
  }

  absl::Status End() {
    if (steps_reported_ > 0) ReportOverlap();
    FR_RETURN_IF_ERROR(Evaluate());
    Trace(/*all=*/true);
    if (!arguments_.checkpoint.save.empty()) FR_RETURN_IF_ERROR(Save());
    FR_RETURN_IF_ERROR(saver_.Finish());
    if (arguments_.output.param_checksum) {
      const uint64_t checksum = trainer_.ParamChecksum();
      if (speaks_ && output_.on_checksum) output_.on_checksum(checksum);
      Print(absl::StrFormat("parameter checksum: %016x", checksum));
    }
    return absl::OkStatus();
  }

  const Arguments& arguments_;
  const Datasets& datasets_;
  const GptConfig& config_;
  RankTrainer& trainer_;
  const TrainingOutput& output_;
  const bool speaks_;
  CheckpointSaver saver_;
  LrSchedule schedule_;
  int64_t done_ = 0;            // iterations, of earlier runs too
  int64_t steps_reported_ = 0;  // since the last table
  int64_t consumed_ = 0;
  double interval_ms_ = 0.0;
  int64_t interval_steps_ = 0;
};

std::string StartInWords(const StartPoint& start) {
  if (!start.checkpoint.has_value()) return "the seed";
  return absl::StrCat("checkpoint ", *start.checkpoint, " of checksum ", start.checksum);
}

std::string Announcement(const Arguments& arguments, const GptConfig& config,
                         const RankTrainer& trainer, bool evaluates) {
  const Grid& grid = trainer.parallel().grid();
  std::string text = absl::StrFormat(
      "%d parameters; tp=%d pp=%d dp=%d, %d threads a rank; %d microbatches of %d samples a step",
      config.ParameterCount(), grid.tp_size(), grid.pp_size(), grid.dp_size(),
      arguments.parallel.threads_per_rank, trainer.microbatches(),
      arguments.training.micro_batch_size);
  absl::StrAppend(&text, "\nmatrix products: ", cpu::MatmulChoice());
  if (arguments.model.bf16 && !cpu::HasFastBFloat16()) {
    absl::StrAppend(&text, "; this machine has no fast bf16, so --bf16 saves memory and no time");
  }
  for (const std::string& flag : arguments.without_effect) {
    absl::StrAppend(&text, "\n", flag, " is accepted and has no effect here");
  }
  if (arguments.training.eval_iters > 0 && !evaluates) {
    absl::StrAppend(&text, "\nno evaluation: --split ", arguments.data.split,
                    " leaves no documents for it");
  }
  return text;
}

// Before it is asked for, which may end more than this process.
absl::Status CheckMemory(double needed) {
  const auto there = static_cast<double>(MachineMemoryBytes());
  if (needed <= there) return absl::OkStatus();
  const auto gibibytes = [](double bytes) {
    return absl::StrFormat("%.1f GiB", bytes / static_cast<double>(int64_t{1} << 30));
  };
  return absl::ResourceExhaustedError(absl::StrCat("the ranks need ", gibibytes(needed),
                                                   " of memory together, and this machine has ",
                                                   gibibytes(there)));
}

// Of all ranks, before any of them is there.
absl::Status CheckWholeJob(const Arguments& arguments, const TrainingOutput& output) {
  FR_ASSIGN_OR_RETURN(const ChunkFactory make_chunk, ChunkFactoryOf(arguments));
  FR_ASSIGN_OR_RETURN(const Grid grid, GridOf(arguments));
  FR_ASSIGN_OR_RETURN(const JobCheckReport report,
                      CheckJob(grid, make_chunk, RankTrainerOptionsOf(arguments)));
  if (output.print) output.print(report.ToString());
  return CheckMemory(report.bytes);
}

absl::Status CheckThreads(const ParallelArguments& a) {
  constexpr int kMostRanks = 1024, kMostThreads = 4096;
  if (a.world_size > kMostRanks) {
    return absl::InvalidArgumentError(absl::StrCat("--world-size ", a.world_size, " is above the ",
                                                   kMostRanks,
                                                   " ranks that run as threads of one process"));
  }
  if (a.world_size * a.threads_per_rank <= kMostThreads) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--world-size ", a.world_size, " x --threads-per-rank ", a.threads_per_rank,
                   " is above the ", kMostThreads, " threads of one process"));
}

// Before hours of training, not after them.
absl::Status MakeSaveFolder(const std::string& folder) {
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the folder --save ", folder, " cannot be made: ", error.message()));
}

}  // namespace

absl::Status RunTraining(const Arguments& arguments, const Datasets& datasets,
                         comm::GroupFactory& factory, const TrainingOutput& output) {
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigOf(arguments));
  FR_ASSIGN_OR_RETURN(const ChunkFactory make_chunk, ChunkFactoryOf(arguments));
  FR_ASSIGN_OR_RETURN(const Grid grid, GridOf(arguments));
  const CpuRuntime runtime(cpu::Kernels());
  RankTrainerOptions options = RankTrainerOptionsOf(arguments);
  options.kernels = cpu::MatmulChoice();
  options.start = StartInWords(arguments.start);
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<RankTrainer> trainer,
                      RankTrainer::Create(runtime.ops, factory, grid, make_chunk, options));
  if (factory.rank() == 0 && output.print) {
    output.print(Announcement(arguments, config, *trainer, datasets.valid != nullptr));
  }
  std::vector<int> all(factory.world_size());
  std::iota(all.begin(), all.end(), 0);
  return TrainingLoop(arguments, datasets, config, *trainer, factory.Create("save", all), output)
      .Run();
}

absl::Status TrainWithThreads(const Arguments& arguments, const TrainingOutput& output) {
  FR_RETURN_IF_ERROR(CheckThreads(arguments.parallel));
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigOf(arguments));
  FR_ASSIGN_OR_RETURN(const Datasets datasets, OpenDatasets(arguments, config));
  FR_RETURN_IF_ERROR(CheckWholeJob(arguments, output));
  FR_RETURN_IF_ERROR(MakeSaveFolder(arguments.checkpoint.save));
  comm::RunRanksOptions options;
  options.hub.deadline = std::chrono::milliseconds(
      static_cast<int64_t>(arguments.parallel.distributed_timeout_minutes * 60e3));
  options.threads_per_rank = arguments.parallel.threads_per_rank;
  return comm::RunRanks(arguments.parallel.world_size, options, [&](comm::GroupFactory& factory) {
    return RunTraining(arguments, datasets, factory, output);
  });
}

}  // namespace forerun
