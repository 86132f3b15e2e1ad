// SPDX-License-Identifier: Apache-2.0
#include "trainer/argument_checks.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/base/user_path.h"
#include "data/blend_spec.h"
#include "data/split.h"
#include "data/tokenizer.h"
#include "models/registration_order.h"
#include "optim/lr_schedule.h"
#include "parallel/data_parallel/order_watch.h"
#include "parallel/pipeline/schedule.h"

namespace forerun {
namespace {

absl::Status Invalid(absl::string_view flag, absl::string_view value, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, " is not ", rule));
}

// Sizes and counts: far above anything sensible, and products of a few of them fit.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// More than any machine has cores, and fewer than would exhaust one.
constexpr int64_t kMostThreads = 1024;

// More than any job has, and few enough to plan with.
constexpr int64_t kMostRanks = 1 << 24, kMostSamples = 1 << 16, kMostLayersOfAStage = 1 << 14;

struct Integer {
  const char* flag;
  int64_t value;
  int64_t least;
  int64_t most = kMost;
};
absl::Status CheckIntegers(std::initializer_list<Integer> integers) {
  for (const Integer& i : integers) {
    if (i.value < i.least) {
      return Invalid(i.flag, absl::StrCat(i.value), absl::StrCat("at least ", i.least));
    }
    if (i.value > i.most) {
      return Invalid(i.flag, absl::StrCat(i.value), absl::StrCat("at most ", i.most));
    }
  }
  return absl::OkStatus();
}

enum class Interval { kPositive, kNotNegative, kFraction };
struct Real {
  const char* flag;
  double value;
  Interval interval;
};
bool Lies(double value, Interval interval) {
  if (!std::isfinite(value)) return false;
  if (interval == Interval::kPositive) return value > 0.0;
  return value >= 0.0 && (interval == Interval::kNotNegative || value < 1.0);
}
absl::Status CheckReals(std::initializer_list<Real> reals) {
  for (const Real& r : reals) {
    if (Lies(r.value, r.interval)) continue;
    return Invalid(r.flag, absl::StrCat(r.value),
                   r.interval == Interval::kPositive      ? "a number above 0"
                   : r.interval == Interval::kNotNegative ? "a number of 0 or more"
                                                          : "a number from 0 to below 1");
  }
  return absl::OkStatus();
}

absl::Status CheckWorldSize(const ParallelArguments& a) {
  const int64_t model = int64_t{a.tensor_model_parallel_size} * a.pipeline_model_parallel_size;
  if (a.world_size % model == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--world-size ", a.world_size, " is not a multiple of tensor size ",
      a.tensor_model_parallel_size, " x pipeline size ", a.pipeline_model_parallel_size));
}

absl::Status ResolveParallel(ParallelArguments& a) {
  FR_RETURN_IF_ERROR(CheckIntegers(
      {{"--tensor-model-parallel-size", a.tensor_model_parallel_size, 1},
       {"--pipeline-model-parallel-size", a.pipeline_model_parallel_size, 1},
       {"--decoder-first-pipeline-num-layers", a.decoder_first_pipeline_num_layers, 0},
       {"--decoder-last-pipeline-num-layers", a.decoder_last_pipeline_num_layers, 0},
       {"--world-size", a.world_size, 0, kMostRanks},
       {"--threads-per-rank", a.threads_per_rank, 0, kMostThreads},
       {"--param-gather-window-mb", a.param_gather_window_mb, 1}}));
  const int64_t model = int64_t{a.tensor_model_parallel_size} * a.pipeline_model_parallel_size;
  if (model > kMostRanks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor size ", a.tensor_model_parallel_size, " x pipeline size ",
        a.pipeline_model_parallel_size, " is above the ", kMostRanks, " ranks of the largest job"));
  }
  if (a.world_size == 0) a.world_size = static_cast<int>(model);
  FR_RETURN_IF_ERROR(CheckWorldSize(a));
  FR_RETURN_IF_ERROR(pipeline::ScheduleByName(a.pipeline_schedule, 1, 1).status());
  if (!ForwardOrderModeByName(a.forward_order).ok()) {
    return Invalid("--forward-order", a.forward_order, "strict, warn or adopt");
  }
  if (a.sequence_parallel && a.tensor_model_parallel_size > 1) {
    return absl::UnimplementedError(
        absl::StrCat("--sequence-parallel is not supported yet with --tensor-model-parallel-size ",
                     a.tensor_model_parallel_size));
  }
  for (const auto& [given, flag] :
       {std::pair(a.use_distributed_optimizer, "--use-distributed-optimizer"),
        std::pair(a.overlap_grad_reduce, "--overlap-grad-reduce")}) {
    if (a.overlap_param_gather && !given) {
      return absl::InvalidArgumentError(absl::StrCat("--overlap-param-gather needs ", flag));
    }
  }
  if (a.ddp_bucket_size.has_value() && *a.ddp_bucket_size < 1) {
    return Invalid("--ddp-bucket-size", absl::StrCat(*a.ddp_bucket_size), "at least 1");
  }
  FR_RETURN_IF_ERROR(CheckReals(
      {{"--distributed-timeout-minutes", a.distributed_timeout_minutes, Interval::kPositive}}));
  constexpr double kMostMinutes = 1e6;  // two years
  a.distributed_timeout_minutes = std::min(a.distributed_timeout_minutes, kMostMinutes);
  if (a.threads_per_rank == 0) {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    a.threads_per_rank = std::max(1, cores / a.world_size);
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const ModelArguments& a) {
  FR_RETURN_IF_ERROR(
      CheckIntegers({{"--num-layers", a.num_layers, 1},
                     {"--hidden-size", a.hidden_size, 1},
                     {"--ffn-hidden-size", a.ffn_hidden_size, 0},
                     {"--num-attention-heads", a.num_attention_heads, 1},
                     {"--num-query-groups", a.num_query_groups, 0},
                     {"--seq-length", a.seq_length, 1},
                     {"--max-position-embeddings", a.max_position_embeddings, 0},
                     {"--rotary-base", a.rotary_base, 1},
                     {"--vocab-size", a.vocab_size, 0},
                     {"--make-vocab-size-divisible-by", a.make_vocab_size_divisible_by, 1}}));
  return CheckReals({{"--norm-epsilon", a.norm_epsilon, Interval::kPositive},
                     {"--init-method-std", a.init_method_std, Interval::kNotNegative},
                     {"--attention-dropout", a.attention_dropout, Interval::kFraction},
                     {"--hidden-dropout", a.hidden_dropout, Interval::kFraction}});
}

absl::Status ResolveModel(ModelArguments& a) {
  FR_RETURN_IF_ERROR(CheckModel(a));
  if (a.ffn_hidden_size == 0) {
    a.ffn_hidden_size = a.swiglu ? (a.hidden_size * 8 / 3 + 63) / 64 * 64 : 4 * a.hidden_size;
  }
  if (a.max_position_embeddings == 0) a.max_position_embeddings = a.seq_length;
  if (a.num_query_groups == 0) {
    a.num_query_groups = a.group_query_attention ? 1 : a.num_attention_heads;
  }
  if (!a.group_query_attention && a.num_query_groups != a.num_attention_heads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--num-query-groups ", a.num_query_groups, " needs --group-query-attention"));
  }
  if (a.position_embedding_type != "learned_absolute" && a.position_embedding_type != "rope") {
    return absl::InvalidArgumentError(
        absl::StrCat("--position-embedding-type ", a.position_embedding_type,
                     " is not known; choose learned_absolute or rope"));
  }
  if (a.normalization != "LayerNorm" && a.normalization != "RMSNorm") {
    return absl::InvalidArgumentError(absl::StrCat("--normalization ", a.normalization,
                                                   " is not known; choose LayerNorm or RMSNorm"));
  }
  return RegistrationOrder::Parse(a.registration_order).status();
}

absl::Status CheckTraining(const TrainingArguments& a) {
  FR_RETURN_IF_ERROR(CheckIntegers(
      {{"--micro-batch-size", a.micro_batch_size, 1, kMostSamples},
       {"--global-batch-size", a.global_batch_size, 0},
       {"--train-iters", a.train_iters, 0},
       {"--lr-decay-iters", a.lr_decay_iters, 0},
       {"--lr-warmup-iters", a.lr_warmup_iters, 0},
       {"--eval-interval", a.eval_interval, 0},
       {"--eval-iters", a.eval_iters, 0},
       {"--log-interval", a.log_interval, 1},
       {"--check-weight-hash-across-dp-replicas-interval", a.check_weight_hash_interval, 0}}));
  FR_RETURN_IF_ERROR(CheckReals({{"--lr", a.lr, Interval::kNotNegative},
                                 {"--min-lr", a.min_lr, Interval::kNotNegative},
                                 {"--clip-grad", a.clip_grad, Interval::kNotNegative},
                                 {"--weight-decay", a.weight_decay, Interval::kNotNegative},
                                 {"--adam-beta1", a.adam_beta1, Interval::kFraction},
                                 {"--adam-beta2", a.adam_beta2, Interval::kFraction},
                                 {"--adam-eps", a.adam_eps, Interval::kPositive}}));
  if (a.seed < 0) return Invalid("--seed", absl::StrCat(a.seed), "at least 0");
  FR_RETURN_IF_ERROR(LrDecayByName(a.lr_decay_style).status());
  if (a.min_lr <= a.lr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--min-lr ", a.min_lr, " is above --lr ", a.lr));
}

absl::Status ResolveTraining(TrainingArguments& a, const ParallelArguments& parallel) {
  FR_RETURN_IF_ERROR(CheckTraining(a));
  const int64_t samples = a.micro_batch_size * parallel.data_parallel_size();
  if (a.global_batch_size == 0) a.global_batch_size = samples;
  if (a.global_batch_size % samples != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--global-batch-size ", a.global_batch_size, " is not a multiple of micro batch size ",
        a.micro_batch_size, " x data-parallel size ", parallel.data_parallel_size()));
  }
  if (a.lr_decay_iters == 0) a.lr_decay_iters = a.train_iters;
  if (a.lr_warmup_iters > 0 && a.lr_warmup_iters >= a.lr_decay_iters) {
    return absl::InvalidArgumentError(absl::StrCat("--lr-warmup-iters ", a.lr_warmup_iters,
                                                   " is not below the ", a.lr_decay_iters,
                                                   " iterations of the decay"));
  }
  return absl::OkStatus();
}

// The most layers that a stage has.
int64_t LayersOfAStage(const Arguments& a) {
  const int64_t first = a.parallel.decoder_first_pipeline_num_layers;
  const int64_t last = a.parallel.decoder_last_pipeline_num_layers;
  const int64_t shared_stages = std::max<int64_t>(
      1, a.parallel.pipeline_model_parallel_size - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0));
  const int64_t shared = a.model.num_layers - first - last;
  return std::max({first, last, (shared + shared_stages - 1) / shared_stages});
}

absl::Status CheckLayers(const Arguments& a) {
  const int64_t layers = LayersOfAStage(a);
  if (layers <= kMostLayersOfAStage) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--num-layers ", a.model.num_layers,
                                                 " gives a pipeline stage ", layers,
                                                 " layers, which can have ", kMostLayersOfAStage));
}

absl::Status CheckNoRecompute(const RecomputeArguments& a) {
  const bool method = !a.method.empty();
  if (!method && !a.num_layers.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(method ? "--recompute-method" : "--recompute-num-layers",
                   " needs --recompute-granularity full"));
}

absl::Status CheckFullRecompute(const RecomputeArguments& a, int64_t layers_of_a_stage) {
  if (a.method.empty() || !a.num_layers.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--recompute-granularity full needs ",
                     a.method.empty() ? "--recompute-method" : "--recompute-num-layers"));
  }
  if (a.method != "uniform" && a.method != "block") {
    return Invalid("--recompute-method", a.method, "uniform or block");
  }
  if (*a.num_layers >= 1 && *a.num_layers <= layers_of_a_stage) return absl::OkStatus();
  return Invalid("--recompute-num-layers", absl::StrCat(*a.num_layers),
                 absl::StrCat("from 1 to ", layers_of_a_stage, ", the layers of a stage"));
}

absl::Status CheckRecompute(const Arguments& a) {
  const std::string& granularity = a.recompute.granularity;
  if (granularity == "selective") {
    return absl::UnimplementedError("--recompute-granularity selective is not supported");
  }
  if (granularity.empty()) return CheckNoRecompute(a.recompute);
  if (granularity != "full") return Invalid("--recompute-granularity", granularity, "full");
  return CheckFullRecompute(a.recompute, LayersOfAStage(a));
}

absl::Status ResolveDataAndOutput(Arguments& a) {
  FR_RETURN_IF_ERROR(CheckIntegers({{"--timing-interval", a.output.timing_interval, 0}}));
  FR_RETURN_IF_ERROR(Split::Parse(a.data.split).status());
  FR_ASSIGN_OR_RETURN(a.data.blend, BlendSpec::Parse(a.data.data_path));
  for (std::string& prefix : a.data.blend.prefixes) prefix = ResolveUserPath(prefix);
  if (a.data.dataloader_type != "single" && a.data.dataloader_type != "cyclic") {
    return Invalid("--dataloader-type", a.data.dataloader_type, "single or cyclic");
  }
  constexpr int64_t kAnyVocabulary = 1;
  FR_RETURN_IF_ERROR(TokenizerByType(a.data.tokenizer_type, kAnyVocabulary).status());
  if (a.data.mock_data && !a.data.data_path.empty()) {
    a.without_effect.push_back("--data-path beside --mock-data");
  }
  if (!a.data.mock_data && a.data.data_path.empty() && !a.output.dry_run) {
    return absl::InvalidArgumentError("either --data-path or --mock-data is needed");
  }
  for (std::string* path : {&a.checkpoint.save, &a.checkpoint.load, &a.output.metrics_file,
                            &a.output.trace_file, &a.output.dump_forward_order}) {
    if (!path->empty()) *path = ResolveUserPath(*path);
  }
  return absl::OkStatus();
}

absl::Status CheckSaving(const CheckpointArguments& a) {
  FR_RETURN_IF_ERROR(CheckIntegers({{"--save-interval", a.save_interval, 0},
                                    {"--save-retain-interval", a.save_retain_interval, 0},
                                    {"--ckpt-step", a.ckpt_step.value_or(0), 0}}));
  for (const auto& [given, flag] : {std::pair(a.save_interval > 0, "--save-interval"),
                                    std::pair(a.async_save, "--async-save")}) {
    if (given && a.save.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " needs --save"));
    }
  }
  if (a.save_retain_interval == 0) return absl::OkStatus();
  if (a.save_interval > 0 && a.save_retain_interval % a.save_interval == 0) return absl::OkStatus();
  return Invalid("--save-retain-interval", absl::StrCat(a.save_retain_interval),
                 absl::StrCat("a multiple of --save-interval ", a.save_interval));
}

}  // namespace

absl::Status ResolveArguments(Arguments& arguments) {
  FR_RETURN_IF_ERROR(ResolveParallel(arguments.parallel));
  FR_RETURN_IF_ERROR(ResolveModel(arguments.model));
  FR_RETURN_IF_ERROR(ResolveTraining(arguments.training, arguments.parallel));
  FR_RETURN_IF_ERROR(CheckLayers(arguments));
  FR_RETURN_IF_ERROR(CheckRecompute(arguments));
  FR_RETURN_IF_ERROR(CheckSaving(arguments.checkpoint));
  return ResolveDataAndOutput(arguments);
}

}  // namespace forerun
