// SPDX-License-Identifier: Apache-2.0
#include "trainer/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/base/flag_names.h"
#include "core/base/status_macros.h"
#include "trainer/argument_checks.h"
#include "trainer/flag_values.h"
#include "trainer/start_point.h"

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
  const std::string flag = "--ddp-bucket-size";
  const auto parse = [&size, flag](const std::string& text) {
    size.reset();
    if (text != "auto") ReadFlag(flag, text, size);
  };
  app.add_option_function<std::string>(
      flag, parse, "elements at which a bucket is closed, or auto: what hides most (default)");
}

void AddParallel(CLI::App& app, ParallelArguments& a) {
  Add(app, "--tensor-model-parallel-size", a.tensor_model_parallel_size,
      "ranks that split each layer");
  Add(app, "--pipeline-model-parallel-size", a.pipeline_model_parallel_size,
      "stages that split the layers");
  AddPlain(app, "--decoder-first-pipeline-num-layers", a.decoder_first_pipeline_num_layers,
           "layers of the first stage; default a share like the others'");
  AddPlain(app, "--decoder-last-pipeline-num-layers", a.decoder_last_pipeline_num_layers,
           "layers of the last stage; default a share like the others'");
  AddPlain(app, "--world-size", a.world_size,
           "ranks, as threads of this process; default tensor x pipeline");
  AddPlain(app, "--threads-per-rank", a.threads_per_rank,
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
  Add(app, "--param-gather-window-mb", a.param_gather_window_mb,
      "MiB of parameter gathers in flight ahead of their use, at least 1");
  Add(app, "--pipeline-schedule", a.pipeline_schedule, "1f1b or gpipe");
  Add(app, "--forward-order", a.forward_order,
      "strict, warn or adopt: where forward passes read in another order than recorded");
  Add(app, "--distributed-timeout-minutes", a.distributed_timeout_minutes,
      "how long a rank waits for another");
}

void AddModel(CLI::App& app, ModelArguments& a, bool required) {
  AddPlain(app, "--num-layers", a.num_layers, "transformer layers")->required(required);
  AddPlain(app, "--hidden-size", a.hidden_size, "width of the residual stream")->required(required);
  AddPlain(app, "--ffn-hidden-size", a.ffn_hidden_size, "width inside the MLP; default 4 x hidden");
  AddPlain(app, "--num-attention-heads", a.num_attention_heads, "query heads")->required(required);
  app.add_flag("--group-query-attention", a.group_query_attention,
               "query heads share key and value heads");
  AddPlain(app, "--num-query-groups", a.num_query_groups,
           "key and value heads when grouped; default 1");
  AddPlain(app, "--seq-length", a.seq_length, "tokens of a sample")->required(required);
  AddPlain(app, "--max-position-embeddings", a.max_position_embeddings,
           "learned positions; default the sequence length");
  Add(app, "--position-embedding-type", a.position_embedding_type, "learned_absolute or rope");
  Add(app, "--rotary-base", a.rotary_base, "base of rotary angles");
  Add(app, "--normalization", a.normalization, "LayerNorm or RMSNorm");
  Add(app, "--norm-epsilon", a.norm_epsilon, "added to the variance");
  app.add_flag("--swiglu", a.swiglu, "gated MLP with SiLU");
  app.add_flag("--disable-bias-linear", a.disable_bias_linear, "linear layers without biases");
  app.add_flag("--untie-embeddings-and-output-weights", a.untie_embeddings_and_output_weights,
               "an output projection of its own");
  AddPlain(app, "--vocab-size", a.vocab_size, "tokens; default the tokenizer's");
  Add(app, "--make-vocab-size-divisible-by", a.make_vocab_size_divisible_by,
      "pad the vocabulary to a multiple of this x the tensor size");
  Add(app, "--init-method-std", a.init_method_std, "deviation of initial weights");
  Add(app, "--attention-dropout", a.attention_dropout, "dropout of attention probabilities");
  Add(app, "--hidden-dropout", a.hidden_dropout, "dropout of activations");
  app.add_flag("--post-sublayer-norms", a.post_sublayer_norms,
               "RMSNorms after attention and MLP, registered last in their layer");
  Add(app, "--registration-order", a.registration_order,
      "forward, reversed, mlp-first or shuffled:SEED; changes no result");
  app.add_flag("--bf16", a.bf16, "weights and activations in bfloat16");
}

void AddTraining(CLI::App& app, TrainingArguments& a) {
  AddPlain(app, "--micro-batch-size", a.micro_batch_size, "samples of a forward pass")->required();
  AddPlain(app, "--global-batch-size", a.global_batch_size,
           "samples of a step; default micro batch x data-parallel size");
  AddPlain(app, "--train-iters", a.train_iters, "steps")->required();
  AddPlain(app, "--lr", a.lr, "peak learning rate")->required();
  Add(app, "--min-lr", a.min_lr, "learning rate after the decay");
  Add(app, "--lr-decay-style", a.lr_decay_style, "constant, linear or cosine");
  AddPlain(app, "--lr-decay-iters", a.lr_decay_iters, "end of the decay; default train-iters");
  Add(app, "--lr-warmup-iters", a.lr_warmup_iters, "steps of linear warm-up");
  Add(app, "--clip-grad", a.clip_grad, "limit of the global gradient norm; 0: none");
  Add(app, "--weight-decay", a.weight_decay, "decay of weights, not of norms and biases");
  Add(app, "--adam-beta1", a.adam_beta1, "decay of the first moment");
  Add(app, "--adam-beta2", a.adam_beta2, "decay of the second moment");
  Add(app, "--adam-eps", a.adam_eps, "added to the root of the second moment");
  Add(app, "--seed", a.seed, "of weights, data order and dropout");
  app.add_flag("--deterministic-mode", a.deterministic_mode,
               "fixed kernel choice (this build has only one)");
  Add(app, "--eval-interval", a.eval_interval, "steps between evaluations; 0: none");
  Add(app, "--eval-iters", a.eval_iters, "global batches of an evaluation; 0: none");
  Add(app, "--log-interval", a.log_interval, "steps between log lines");
  Add(app, "--check-weight-hash-across-dp-replicas-interval", a.check_weight_hash_interval,
      "steps between comparisons of the replicas' weights; 0: none");
}

void AddRecompute(CLI::App& app, RecomputeArguments& a) {
  AddPlain(app, "--recompute-granularity", a.granularity,
           "full: layers keep only inputs and run once more in the backward pass");
  AddPlain(app, "--recompute-method", a.method,
           "uniform: a stage's layers in groups; block: its first layers, one by one");
  AddPlain(app, "--recompute-num-layers", a.num_layers, "layers of a group, or of the block");
}

// Takes any number of words; of a repeated flag, those of the last.
void AddDataPath(CLI::App& app, std::vector<std::string>& words) {
  using Words = std::vector<std::vector<std::string>>;
  app.add_option_function<Words>(
         "--data-path",
         [&words](const Words& given) {
           words.clear();
           for (const std::string& word : given.back()) {
             ReadFlag("--data-path", word, words.emplace_back());
           }
         },
         "prefix of the .bin and .idx files, or WEIGHT PREFIX WEIGHT PREFIX ...")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddDataAndOutput(CLI::App& app, DataArguments& data, OutputArguments& output) {
  AddDataPath(app, data.data_path);
  Add(app, "--split", data.split, "shares of documents for training, validation, test");
  Add(app, "--dataloader-type", data.dataloader_type,
      "single: samples in the data set's order; cyclic: drawn anew in every epoch");
  Add(app, "--tokenizer-type", data.tokenizer_type, "ByteTokenizer or NullTokenizer");
  app.add_flag("--mock-data", data.mock_data, "synthetic tokens instead of files");
  AddPlain(app, "--metrics-file", output.metrics_file, "one JSON object a step, appended");
  AddPlain(app, "--trace-file", output.trace_file,
           "compute and communication of every rank, for ui.perfetto.dev");
  Add(app, "--timing-interval", output.timing_interval,
      "steps between tables of the time that communication cost; 0: one at the end");
  AddPlain(app, "--dump-forward-order", output.dump_forward_order,
           "file for the recorded uses of parameters: a table, or Graphviz if it ends in .dot");
  app.add_flag("--poison-stale-params", output.poison_stale_params,
               "debugging: parameters not yet gathered are NaN");
  app.add_flag("--param-checksum", output.param_checksum, "print a hash of the final weights");
  app.add_flag("--dry-run", output.dry_run, "print plans and memory of every rank, train nothing");
}

void AddCheckpoint(CLI::App& app, CheckpointArguments& a) {
  AddPlain(app, "--save", a.save, "folder for checkpoints");
  AddPlain(app, "--load", a.load, "folder of the checkpoint to go on from");
  AddPlain(app, "--ckpt-step", a.ckpt_step, "iteration to load; default the newest");
  Add(app, "--save-interval", a.save_interval, "steps between checkpoints; 0: one at the end");
  AddPlain(app, "--save-retain-interval", a.save_retain_interval,
           "steps between checkpoints that are kept when a newer one is there; default all");
  app.add_flag("--async-save", a.async_save, "train on while a checkpoint is written");
  app.add_flag("--finetune", a.finetune,
               "load weights alone and begin at iteration 0, with this run's schedule and seed");
  app.add_flag("--no-load-optim", a.no_load_optim,
               "load no optimizer state, and take this run's schedule");
  app.add_flag("--no-load-rng", a.no_load_rng, "take this run's seed, not the checkpoint's");
  app.add_flag("--override-opt-param-scheduler", a.override_schedule,
               "take this run's learning-rate schedule, not the checkpoint's");
  app.add_flag("--use-checkpoint-opt-param-scheduler", a.use_checkpoint_schedule,
               "take the checkpoint's learning-rate schedule, not this run's");
  app.add_flag("--use-checkpoint-args", a.use_checkpoint_args,
               "take the model's flags from the checkpoint of --load");
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
  if (absl::ConsumePrefix(&what, "Could not convert: ")) {
    const std::string flag(what.substr(0, what.find(' ')));
    const bool takes_values = app.get_option(flag)->get_items_expected_max() > 0;
    return flag + (takes_values ? " has an empty value" : " takes no value but true or false");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return absl::StrCat(what.substr(0, what.find(':')), " needs a value");
  }
  return std::string(what);
}

enum class Model : uint8_t { kRequired, kOptional };

// What the command line says, over `arguments`.
absl::StatusOr<Arguments> ParseOver(Arguments arguments, Model model,
                                    absl::Span<const std::string> args) {
  CLI::App app("Trains a GPT with tensor, pipeline and data parallelism.", "pretrain_gpt");
  // The last one counts where a flag is repeated, as in Megatron-LM.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddParallel(app, arguments.parallel);
  AddModel(app, arguments.model, model == Model::kRequired);
  AddTraining(app, arguments.training);
  AddRecompute(app, arguments.recompute);
  AddDataAndOutput(app, arguments.data, arguments.output);
  AddCheckpoint(app, arguments.checkpoint);
  AddWithoutEffect(app, arguments.without_effect);
  app.footer("What follows = is a default; a flag without a value is off unless it is given.");
  try {
    std::vector<std::string> reversed = NormalizeFlagNames(args);
    std::reverse(reversed.begin(), reversed.end());  // as CLI11 wants a vector
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return absl::NotFoundError(app.help());
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrReplaceAll(SentenceOf(app, error), {{"\n", " "}}));
  }
  return arguments;
}

}  // namespace

absl::StatusOr<Arguments> ParseArguments(absl::Span<const std::string> args) {
  const std::vector<std::string> names = NormalizeFlagNames(args);
  const bool model_from_file =
      std::find(names.begin(), names.end(), "--use-checkpoint-args") != names.end();
  const Model model = model_from_file ? Model::kOptional : Model::kRequired;
  FR_ASSIGN_OR_RETURN(Arguments arguments, ParseOver({}, model, args));
  if (model_from_file) {
    FR_ASSIGN_OR_RETURN(Arguments saved, ModelOfCheckpoint(arguments.checkpoint));
    FR_ASSIGN_OR_RETURN(arguments, ParseOver(std::move(saved), model, args));
  }
  FR_RETURN_IF_ERROR(ResolveArguments(arguments));
  FR_RETURN_IF_ERROR(ResolveStart(arguments));
  return arguments;
}

}  // namespace forerun
