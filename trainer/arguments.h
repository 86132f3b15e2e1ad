// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "data/blend_spec.h"

namespace forerun {

// What a user can say to a trainer, as Megatron-LM names it and with its defaults. Each group of
// flags is one struct; arguments.cc has the one table that ties flags to fields.
struct ParallelArguments {
  int tensor_model_parallel_size = 1;
  int pipeline_model_parallel_size = 1;
  int64_t decoder_first_pipeline_num_layers = 0;  // 0: a share like the others'
  int64_t decoder_last_pipeline_num_layers = 0;
  int world_size = 0;        // 0: tensor x pipeline
  int threads_per_rank = 0;  // 0: the machine's cores over the ranks, at least one
  bool sequence_parallel = false;
  bool use_distributed_optimizer = false;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  absl::optional<int64_t> ddp_bucket_size;  // elements; unset: auto
  int64_t param_gather_window_mb = 256;     // MiB
  std::string pipeline_schedule = "1f1b";
  std::string forward_order = "warn";
  double distributed_timeout_minutes = 10.0;

  int data_parallel_size() const {
    return world_size / (tensor_model_parallel_size * pipeline_model_parallel_size);
  }
};

struct ModelArguments {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;  // 0: 4 x hidden; with swiglu 8/3 of it, rounded up to 64
  int64_t num_attention_heads = 0;
  bool group_query_attention = false;
  int64_t num_query_groups = 0;  // 0: 1 when grouped, otherwise the heads
  int64_t seq_length = 0;
  int64_t max_position_embeddings = 0;  // 0: seq_length
  std::string position_embedding_type = "learned_absolute";
  int64_t rotary_base = 10000;
  std::string normalization = "LayerNorm";
  double norm_epsilon = 1e-5;
  bool swiglu = false;
  bool disable_bias_linear = false;
  bool untie_embeddings_and_output_weights = false;
  int64_t vocab_size = 0;  // 0: the tokenizer's
  int64_t make_vocab_size_divisible_by = 128;
  double init_method_std = 0.02;
  double attention_dropout = 0.1;
  double hidden_dropout = 0.1;
  bool post_sublayer_norms = false;
  std::string registration_order = "forward";
  bool bf16 = false;
};

struct TrainingArguments {
  int64_t micro_batch_size = 0;
  int64_t global_batch_size = 0;  // 0: micro batch x data parallel size
  int64_t train_iters = 0;
  double lr = 0.0;
  double min_lr = 0.0;
  std::string lr_decay_style = "linear";
  int64_t lr_decay_iters = 0;  // 0: train_iters
  int64_t lr_warmup_iters = 0;
  double clip_grad = 1.0;
  double weight_decay = 0.01;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_eps = 1e-8;
  int64_t seed = 1234;
  bool deterministic_mode = false;
  int64_t eval_interval = 1000;
  int64_t eval_iters = 100;
  int64_t log_interval = 100;
  int64_t check_weight_hash_interval = 0;  // steps; 0: never
};

struct RecomputeArguments {
  std::string granularity;  // --recompute-granularity: empty or full
  std::string method;       // --recompute-method: empty, uniform or block
  absl::optional<int64_t> num_layers;

  bool full() const { return !granularity.empty(); }
};

struct DataArguments {
  std::vector<std::string> data_path;  // prefixes of .bin and .idx files, weights before them
  BlendSpec blend;                     // no flag: what data_path says
  std::string split = "969,30,1";
  std::string tokenizer_type = "ByteTokenizer";
  std::string dataloader_type = "single";
  bool mock_data = false;
};

struct CheckpointArguments {
  std::string save;
  std::string load;
  absl::optional<int64_t> ckpt_step;  // to load; unset: the newest
  int64_t save_interval = 0;          // 0: only at the end
  int64_t save_retain_interval = 0;   // 0: all are kept
  bool async_save = false;
  bool finetune = false;
  bool no_load_optim = false;
  bool no_load_rng = false;
  bool override_schedule = false;        // --override-opt_param-scheduler
  bool use_checkpoint_schedule = false;  // --use-checkpoint-opt_param-scheduler
  bool use_checkpoint_args = false;
};

// Where a run begins. No flags: what the checkpoint of --load says of it.
struct StartPoint {
  absl::optional<int64_t> checkpoint;  // the iteration to load; none: values come from the seed
  std::string checksum;                // of that checkpoint
  bool with_optimizer = false;
  int64_t iteration = 0;  // steps that are done
  int64_t consumed_samples = 0;
  std::string note;  // for the user
};

struct OutputArguments {
  std::string metrics_file;
  std::string trace_file;
  std::string dump_forward_order;
  int64_t timing_interval = 0;  // steps; 0: only at the end
  bool poison_stale_params = false;
  bool param_checksum = false;
  bool dry_run = false;
};

struct Arguments {
  ParallelArguments parallel;
  ModelArguments model;
  TrainingArguments training;
  RecomputeArguments recompute;
  DataArguments data;
  CheckpointArguments checkpoint;
  OutputArguments output;
  StartPoint start;
  std::vector<std::string> without_effect;  // accepted flags that mean nothing here

  int64_t microbatches() const {
    return training.global_batch_size / (training.micro_batch_size * parallel.data_parallel_size());
  }
};

// Parses a command line without the program's name. Dashes and underscores are the same in flag
// names. Relative paths are made absolute, from the user's directory. Fills what follows from
// other flags, and with --load from the checkpoint's manifest, the only file that is read.
// Validates everything that needs no other: one sentence that names the flag. Returns NotFound with
// the help text as its message for --help.
absl::StatusOr<Arguments> ParseArguments(absl::Span<const std::string> args);

}  // namespace forerun
