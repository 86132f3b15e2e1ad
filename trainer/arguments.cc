// SPDX-License-Identifier: Apache-2.0
#include "trainer/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/base/flag_names.h"
#include "core/base/status_macros.h"
#include "core/base/user_path.h"
#include "models/registration_order.h"
#include "optim/lr_schedule.h"
#include "parallel/data_parallel/order_watch.h"
#include "parallel/pipeline/schedule.h"

namespace forerun {
namespace {

// Flags of Megatron-LM that choose among implementations which do not exist here.
constexpr const char* kSwitchesWithoutEffect[] = {
    "--use-mcore-models",         "--no-gradient-accumulation-fusion",
    "--use-flash-attn",           "--no-async-tensor-model-parallel-allreduce",
    "--no-masked-softmax-fusion", "--no-bias-gelu-fusion",
    "--no-bias-swiglu-fusion",    "--no-bias-dropout-fusion",
};
constexpr const char* kOptionsWithoutEffect[] = {"--transformer-impl", "--distributed-backend",
                                                 "--num-workers", "--attention-backend"};

// A number, or the word auto.
void AddBucketSize(CLI::App& app, absl::optional<int64_t>& size) {
  const char* flag = "--ddp-bucket-size";
  const auto parse = [&size, flag](const std::string& text) {
    size.reset();
    if (text == "auto") return;
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number)) {
      throw CLI::ConversionError(flag, std::vector<std::string>{text});
    }
    size = number;
  };
  app.add_option_function<std::string>(
      flag, parse, "elements at which a bucket is closed, or auto: what hides most (default)");
}

void AddParallel(CLI::App& app, ParallelArguments& a) {
  app.add_option("--tensor-model-parallel-size", a.tensor_model_parallel_size,
                 "ranks that split each layer");
  app.add_option("--pipeline-model-parallel-size", a.pipeline_model_parallel_size,
                 "stages that split the layers");
  app.add_option("--world-size", a.world_size,
                 "ranks, as threads of this process; default tensor x pipeline");
  app.add_option("--threads-per-rank", a.threads_per_rank,
                 "compute threads of a rank; default cores / ranks");
  app.add_flag("--sequence-parallel", a.sequence_parallel,
               "split norms and dropout over the sequence (only the identity, at tensor size 1)");
  app.add_flag("--use-distributed-optimizer", a.use_distributed_optimizer,
               "shard optimizer state over data-parallel ranks");
  app.add_flag("--overlap-grad-reduce", a.overlap_grad_reduce,
               "reduce gradients under the backward pass");
  app.add_flag("--overlap-param-gather", a.overlap_param_gather,
               "gather parameters under the optimizer and the forward pass");
  AddBucketSize(app, a.ddp_bucket_size);
  app.add_option("--param-gather-window-mb", a.param_gather_window_mb,
                 "MiB of parameter gathers in flight; 0: none before it is wanted");
  app.add_option("--pipeline-schedule", a.pipeline_schedule, "1f1b or gpipe");
  app.add_option("--forward-order", a.forward_order,
                 "strict, warn or adopt: where forward passes read in another order than recorded");
  app.add_option("--distributed-timeout-minutes", a.distributed_timeout_minutes,
                 "how long a rank waits for another");
}

void AddModel(CLI::App& app, ModelArguments& a) {
  app.add_option("--num-layers", a.num_layers, "transformer layers")->required();
  app.add_option("--hidden-size", a.hidden_size, "width of the residual stream")->required();
  app.add_option("--ffn-hidden-size", a.ffn_hidden_size,
                 "width inside the MLP; default 4 x hidden");
  app.add_option("--num-attention-heads", a.num_attention_heads, "query heads")->required();
  app.add_flag("--group-query-attention", a.group_query_attention,
               "query heads share key and value heads");
  app.add_option("--num-query-groups", a.num_query_groups, "key and value heads when grouped");
  app.add_option("--seq-length", a.seq_length, "tokens of a sample")->required();
  app.add_option("--max-position-embeddings", a.max_position_embeddings,
                 "learned positions; default the sequence length");
  app.add_option("--position-embedding-type", a.position_embedding_type,
                 "learned_absolute or rope");
  app.add_option("--rotary-base", a.rotary_base, "base of rotary angles");
  app.add_option("--normalization", a.normalization, "LayerNorm or RMSNorm");
  app.add_option("--norm-epsilon", a.norm_epsilon, "added to the variance");
  app.add_flag("--swiglu", a.swiglu, "gated MLP with SiLU");
  app.add_flag("--disable-bias-linear", a.disable_bias_linear, "linear layers without biases");
  app.add_flag("--untie-embeddings-and-output-weights", a.untie_embeddings_and_output_weights,
               "an output projection of its own");
  app.add_option("--vocab-size", a.vocab_size, "tokens; default the tokenizer's");
  app.add_option("--make-vocab-size-divisible-by", a.make_vocab_size_divisible_by,
                 "pad the vocabulary to a multiple of this x the tensor size");
  app.add_option("--init-method-std", a.init_method_std, "deviation of initial weights");
  app.add_option("--attention-dropout", a.attention_dropout, "dropout of attention probabilities");
  app.add_option("--hidden-dropout", a.hidden_dropout, "dropout of activations");
  app.add_flag("--post-sublayer-norms", a.post_sublayer_norms,
               "RMSNorms after attention and MLP, registered last in their layer");
  app.add_option("--registration-order", a.registration_order,
                 "forward, reversed, mlp-first or shuffled:SEED; changes no result");
  app.add_flag("--bf16", a.bf16, "weights and activations in bfloat16");
}

void AddTraining(CLI::App& app, TrainingArguments& a) {
  app.add_option("--micro-batch-size", a.micro_batch_size, "samples of a forward pass")->required();
  app.add_option("--global-batch-size", a.global_batch_size,
                 "samples of a step; default micro batch x data-parallel size");
  app.add_option("--train-iters", a.train_iters, "steps")->required();
  app.add_option("--lr", a.lr, "peak learning rate")->required();
  app.add_option("--min-lr", a.min_lr, "learning rate after the decay");
  app.add_option("--lr-decay-style", a.lr_decay_style, "constant, linear or cosine");
  app.add_option("--lr-decay-iters", a.lr_decay_iters, "end of the decay; default train-iters");
  app.add_option("--lr-warmup-iters", a.lr_warmup_iters, "steps of linear warm-up");
  app.add_option("--clip-grad", a.clip_grad, "limit of the global gradient norm; 0: none");
  app.add_option("--weight-decay", a.weight_decay, "decay of weights, not of norms and biases");
  app.add_option("--adam-beta1", a.adam_beta1, "decay of the first moment");
  app.add_option("--adam-beta2", a.adam_beta2, "decay of the second moment");
  app.add_option("--adam-eps", a.adam_eps, "added to the root of the second moment");
  app.add_option("--seed", a.seed, "of weights, data order and dropout");
  app.add_flag("--deterministic-mode", a.deterministic_mode,
               "fixed kernel choice (this build has only one)");
  app.add_option("--eval-interval", a.eval_interval, "steps between evaluations; 0: none");
  app.add_option("--eval-iters", a.eval_iters, "global batches of an evaluation; 0: none");
  app.add_option("--log-interval", a.log_interval, "steps between log lines");
  app.add_option("--check-weight-hash-across-dp-replicas-interval", a.check_weight_hash_interval,
                 "steps between comparisons of the replicas' weights; 0: none");
}

void AddRecompute(CLI::App& app, RecomputeArguments& a) {
  app.add_option("--recompute-granularity", a.granularity,
                 "full: layers keep only inputs and run once more in the backward pass");
  app.add_option("--recompute-method", a.method,
                 "uniform: a stage's layers in groups; block: its first layers, one by one");
  app.add_option("--recompute-num-layers", a.num_layers, "layers of a group, or of the block");
}

void AddDataAndOutput(CLI::App& app, DataArguments& data, OutputArguments& output) {
  app.add_option("--data-path", data.data_path, "prefix of the .bin and .idx files");
  app.add_option("--split", data.split, "shares of documents for training, validation, test");
  app.add_option("--tokenizer-type", data.tokenizer_type, "ByteTokenizer or NullTokenizer");
  app.add_flag("--mock-data", data.mock_data, "synthetic tokens instead of files");
  app.add_option("--save", output.save, "folder for checkpoints");
  app.add_option("--load", output.load, "folder of the checkpoint to go on from");
  app.add_option("--save-interval", output.save_interval, "steps between checkpoints");
  app.add_option("--metrics-file", output.metrics_file, "one JSON object a step, appended");
  app.add_option("--trace-file", output.trace_file,
                 "compute and communication of every rank, for ui.perfetto.dev");
  app.add_option("--timing-interval", output.timing_interval,
                 "steps between tables of the time that communication cost; 0: one at the end");
  app.add_option(
      "--dump-forward-order", output.dump_forward_order,
      "file for the recorded uses of parameters: a table, or Graphviz if it ends in .dot");
  app.add_flag("--poison-stale-params", output.poison_stale_params,
               "debugging: parameters not yet gathered are NaN");
  app.add_flag("--param-checksum", output.param_checksum, "print a hash of the final weights");
  app.add_flag("--dry-run", output.dry_run, "print plans and memory of every rank, train nothing");
}

void AddWithoutEffect(CLI::App& app, std::vector<std::string>& said) {
  for (const char* name : kSwitchesWithoutEffect) {
    app.add_flag_function(
        name, [&said, name](int64_t) { said.push_back(name); }, "no effect here");
  }
  for (const char* name : kOptionsWithoutEffect) {
    app.add_option_function<std::string>(
        name, [&said, name](const std::string&) { said.push_back(name); }, "no effect here");
  }
}

// What CLI11 says of a value that it cannot convert, "--lr = fast", in a sentence.
std::string ConversionSentence(absl::string_view name_and_value) {
  const size_t at = name_and_value.find(" = ");
  const absl::string_view name = name_and_value.substr(0, at);
  if (at == absl::string_view::npos) return absl::StrCat(name, " has a value that is no number");
  absl::string_view value = name_and_value.substr(at + 3);
  value.remove_prefix(value.rfind(',') + 1);  // all of a repeated flag's are there
  double number = 0.0;
  const bool is_number = absl::SimpleAtod(value, &number);
  return absl::StrCat(
      name, " ", value,
      is_number ? " is not a whole number in the range of this flag" : " is not a number");
}

// What was wrong, as one sentence that names the flag. A flag that does not exist comes before what
// else may follow from its being mistyped.
std::string SentenceOf(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (!unknown.empty()) {
    const std::string& first = unknown.front();
    return absl::StartsWith(first, "-")
               ? absl::StrCat("there is no flag ", first.substr(0, first.find('=')))
               : absl::StrCat("the argument ", first, " belongs to no flag");
  }
  absl::string_view what = error.what();
  if (absl::ConsumePrefix(&what, "Could not convert: ")) return ConversionSentence(what);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return absl::StrCat(what.substr(0, what.find(':')), " needs a value");
  }
  return std::string(what);
}

absl::Status Invalid(absl::string_view flag, absl::string_view value, absl::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, " is not ", rule));
}

// Sizes and counts: far above anything sensible, and products of a few of them fit.
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

struct Integer {
  const char* flag;
  int64_t value;
  int64_t least;
};
absl::Status CheckIntegers(std::initializer_list<Integer> integers) {
  for (const Integer& i : integers) {
    if (i.value < i.least) {
      return Invalid(i.flag, absl::StrCat(i.value), absl::StrCat("at least ", i.least));
    }
    if (i.value > kMost) {
      return Invalid(i.flag, absl::StrCat(i.value), absl::StrCat("at most ", kMost));
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
  FR_RETURN_IF_ERROR(
      CheckIntegers({{"--tensor-model-parallel-size", a.tensor_model_parallel_size, 1},
                     {"--pipeline-model-parallel-size", a.pipeline_model_parallel_size, 1},
                     {"--world-size", a.world_size, 0},
                     {"--threads-per-rank", a.threads_per_rank, 0},
                     {"--param-gather-window-mb", a.param_gather_window_mb, 1}}));
  // More would not fit an int; and then the default world is their product.
  const int64_t model = int64_t{a.tensor_model_parallel_size} * a.pipeline_model_parallel_size;
  if (a.world_size == 0) a.world_size = static_cast<int>(std::min(model, kMost));
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
                     {"--num-query-groups", a.num_query_groups, 1},
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
  if (!a.group_query_attention) a.num_query_groups = a.num_attention_heads;
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
      {{"--micro-batch-size", a.micro_batch_size, 1},
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
  const int64_t stages = a.parallel.pipeline_model_parallel_size;
  return (a.model.num_layers + stages - 1) / stages;
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
  FR_RETURN_IF_ERROR(CheckIntegers({{"--save-interval", a.output.save_interval, 0},
                                    {"--timing-interval", a.output.timing_interval, 0}}));
  if (!a.data.mock_data && a.data.data_path.empty() && !a.output.dry_run) {
    return absl::InvalidArgumentError("either --data-path or --mock-data is needed");
  }
  for (std::string* path :
       {&a.data.data_path, &a.output.save, &a.output.load, &a.output.metrics_file,
        &a.output.trace_file, &a.output.dump_forward_order}) {
    if (!path->empty()) *path = ResolveUserPath(*path);
  }
  if (a.output.save_interval > 0 && a.output.save.empty()) {
    return absl::InvalidArgumentError("--save-interval needs --save");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Arguments> ParseArguments(absl::Span<const std::string> args) {
  Arguments arguments;
  CLI::App app("Trains a GPT with tensor, pipeline and data parallelism.", "pretrain_gpt");
  // The last one counts where a flag is repeated, as in Megatron-LM.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddParallel(app, arguments.parallel);
  AddModel(app, arguments.model);
  AddTraining(app, arguments.training);
  AddRecompute(app, arguments.recompute);
  AddDataAndOutput(app, arguments.data, arguments.output);
  AddWithoutEffect(app, arguments.without_effect);
  try {
    std::vector<std::string> reversed = NormalizeFlagNames(args);
    std::reverse(reversed.begin(), reversed.end());  // as CLI11 wants a vector
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return absl::NotFoundError(app.help());
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrReplaceAll(SentenceOf(app, error), {{"\n", " "}}));
  }
  FR_RETURN_IF_ERROR(ResolveParallel(arguments.parallel));
  FR_RETURN_IF_ERROR(ResolveModel(arguments.model));
  FR_RETURN_IF_ERROR(ResolveTraining(arguments.training, arguments.parallel));
  FR_RETURN_IF_ERROR(CheckRecompute(arguments));
  FR_RETURN_IF_ERROR(ResolveDataAndOutput(arguments));
  return arguments;
}

}  // namespace forerun
