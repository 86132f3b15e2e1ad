// SPDX-License-Identifier: Apache-2.0
#include "trainer/model_setup.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "data/blended_dataset.h"
#include "data/cyclic_dataset.h"
#include "data/gpt_dataset.h"
#include "data/mock_dataset.h"
#include "data/tokenizer.h"
#include "models/gpt.h"
#include "models/recompute_plan.h"
#include "models/registration_order.h"

namespace forerun {
namespace {

absl::StatusOr<int64_t> VocabSize(const Arguments& arguments) {
  // NullTokenizer adds an id of its own to those of the flag.
  const bool counts_all = arguments.data.tokenizer_type != "NullTokenizer";
  if (counts_all && arguments.model.vocab_size > 0) return arguments.model.vocab_size;
  FR_ASSIGN_OR_RETURN(const auto tokenizer,
                      TokenizerByType(arguments.data.tokenizer_type, arguments.model.vocab_size));
  return tokenizer->vocab_size();
}

// More has no machine the memory or the time for, and counts of it would not fit 64 bits.
absl::Status CheckFits(const GptConfig& config, double micro_batch_size) {
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto ffn = static_cast<double>(config.ffn_hidden_size);
  const auto vocab = static_cast<double>(config.padded_vocab_size);
  const auto positions = static_cast<double>(config.max_position_embeddings);
  const auto length = static_cast<double>(config.seq_length);
  const double tokens = length * micro_batch_size;
  const double layers = config.num_layers * (4.0 * hidden + 3.0 * ffn) * hidden;
  const double head = vocab * hidden;
  const struct {
    const char* what;
    double count, most;
  } limits[] = {
      {"parameters", layers + 2.0 * head + positions * hidden, 1e16},
      {"activations a microbatch",
       (config.num_layers * (8.0 * hidden + 2.0 * ffn) + vocab) * tokens, 1e16},
      {"operations a microbatch",
       2.0 * tokens * (layers + head + 2.0 * config.num_layers * length * hidden), 2e18},
  };
  for (const auto& limit : limits) {
    if (limit.count <= limit.most) continue;
    return absl::InvalidArgumentError(absl::StrCat("the model has about ", limit.count, " ",
                                                   limit.what, ", and no more than ", limit.most,
                                                   " can be planned"));
  }
  return absl::OkStatus();
}

RecomputePlan RecomputePlanOf(const RecomputeArguments& arguments) {
  if (!arguments.full()) return {};
  return {
      arguments.method == "block" ? RecomputePlan::Method::kBlock : RecomputePlan::Method::kUniform,
      static_cast<int>(*arguments.num_layers)};
}

absl::StatusOr<Datasets> MockDatasets(const Arguments& arguments, const GptConfig& config) {
  constexpr int64_t kSamples = int64_t{1} << 20;
  const uint64_t seed = arguments.training.seed;
  return Datasets{
      std::make_shared<MockDataset>(kSamples, config.seq_length, config.vocab_size, seed),
      std::make_shared<MockDataset>(kSamples, config.seq_length, config.vocab_size, seed + 1)};
}

absl::StatusOr<Datasets> BlendedDatasets(const Arguments& arguments, const GptConfig& config) {
  FR_ASSIGN_OR_RETURN(const CorpusBlend blend, CorpusBlend::Open(arguments.data.blend));
  FR_ASSIGN_OR_RETURN(const Split split, Split::Parse(arguments.data.split));
  const uint64_t seed = arguments.training.seed;
  GptDatasetOptions options{config.seq_length, config.vocab_size, seed, SplitPart::kTrain};
  Datasets datasets;
  FR_ASSIGN_OR_RETURN(datasets.train, blend.Part(split, options));
  const bool evaluates =
      arguments.training.eval_iters > 0 && split.weights[static_cast<int>(SplitPart::kValid)] > 0.0;
  if (!evaluates) return datasets;
  options.part = SplitPart::kValid;
  auto valid = blend.Part(split, options);
  if (!valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(valid.status().message(), "; --eval-iters 0 does without it"));
  }
  datasets.valid = *std::move(valid);
  return datasets;
}

}  // namespace

absl::StatusOr<GptConfig> ConfigOf(const Arguments& arguments) {
  const ModelArguments& model = arguments.model;
  const ParallelArguments& parallel = arguments.parallel;
  GptConfig config;
  config.num_layers = static_cast<int>(model.num_layers);
  config.hidden_size = model.hidden_size;
  config.ffn_hidden_size = model.ffn_hidden_size;
  config.num_attention_heads = model.num_attention_heads;
  config.num_query_groups = model.num_query_groups;
  config.seq_length = model.seq_length;
  config.max_position_embeddings = model.max_position_embeddings;
  FR_ASSIGN_OR_RETURN(config.vocab_size, VocabSize(arguments));
  config.padded_vocab_size = PaddedVocabSize(config.vocab_size, model.make_vocab_size_divisible_by,
                                             parallel.tensor_model_parallel_size);
  config.position_embedding = model.position_embedding_type == "rope" ? PositionEmbedding::kRope
                                                                      : PositionEmbedding::kLearned;
  config.rotary_base = static_cast<double>(model.rotary_base);
  config.norm = model.normalization == "RMSNorm" ? NormKind::kRmsNorm : NormKind::kLayerNorm;
  config.norm_epsilon = static_cast<float>(model.norm_epsilon);
  config.swiglu = model.swiglu;
  config.add_bias_linear = !model.disable_bias_linear;
  config.tied_embeddings = !model.untie_embeddings_and_output_weights;
  config.post_sublayer_norms = model.post_sublayer_norms;
  config.attention_dropout = static_cast<float>(model.attention_dropout);
  config.hidden_dropout = static_cast<float>(model.hidden_dropout);
  config.init_method_std = model.init_method_std;
  config.dtype = model.bf16 ? DType::kBF16 : DType::kF32;
  config.end_stages = {static_cast<int>(parallel.decoder_first_pipeline_num_layers),
                       static_cast<int>(parallel.decoder_last_pipeline_num_layers)};
  FR_RETURN_IF_ERROR(config.Validate());
  FR_RETURN_IF_ERROR(CheckFits(config, static_cast<double>(arguments.training.micro_batch_size)));
  FR_RETURN_IF_ERROR(config.ValidateSplit(parallel.tensor_model_parallel_size,
                                          parallel.pipeline_model_parallel_size));
  return config;
}

absl::StatusOr<ChunkFactory> ChunkFactoryOf(const Arguments& arguments) {
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigOf(arguments));
  FR_ASSIGN_OR_RETURN(const RegistrationOrder order,
                      RegistrationOrder::Parse(arguments.model.registration_order));
  return ChunkFactory(
      [config, order, recompute = RecomputePlanOf(arguments.recompute)](
          const ParallelContext& parallel) -> absl::StatusOr<std::unique_ptr<ModelChunk>> {
        return GptChunk::Create(config, {parallel.at().pp, parallel.grid().pp_size()},
                                parallel.tensor(), order, recompute);
      });
}

absl::StatusOr<Grid> GridOf(const Arguments& arguments) {
  const ParallelArguments& parallel = arguments.parallel;
  return Grid::Create(parallel.world_size, parallel.tensor_model_parallel_size,
                      parallel.pipeline_model_parallel_size);
}

RankTrainerOptions RankTrainerOptionsOf(const Arguments& arguments) {
  const ParallelArguments& parallel = arguments.parallel;
  const TrainingArguments& training = arguments.training;
  RankTrainerOptions options;
  options.data_parallel.shard_optimizer = parallel.use_distributed_optimizer;
  options.data_parallel.overlap_grad_reduce = parallel.overlap_grad_reduce;
  options.data_parallel.overlap_param_gather = parallel.overlap_param_gather;
  options.data_parallel.bucket_numel = parallel.ddp_bucket_size;
  options.data_parallel.gather_window_bytes = parallel.param_gather_window_mb << 20;
  options.data_parallel.poison_stale_params = arguments.output.poison_stale_params;
  options.data_parallel.forward_order = *ForwardOrderModeByName(parallel.forward_order);
  options.optimizer.adamw = {static_cast<float>(training.adam_beta1),
                             static_cast<float>(training.adam_beta2),
                             static_cast<float>(training.adam_eps)};
  options.optimizer.weight_decay = training.weight_decay;
  options.optimizer.clip_grad = training.clip_grad;
  options.pipeline_schedule = parallel.pipeline_schedule;
  options.seed = training.seed;
  options.seq_length = arguments.model.seq_length;
  options.micro_batch_size = training.micro_batch_size;
  options.global_batch_size = training.global_batch_size;
  return options;
}

absl::StatusOr<Datasets> OpenDatasets(const Arguments& arguments, const GptConfig& config) {
  FR_ASSIGN_OR_RETURN(Datasets datasets, arguments.data.mock_data
                                             ? MockDatasets(arguments, config)
                                             : BlendedDatasets(arguments, config));
  if (arguments.data.dataloader_type == "cyclic") {
    datasets.train = std::make_shared<CyclicDataset>(datasets.train, arguments.training.seed);
  }
  return datasets;
}

absl::StatusOr<GptConfig> ConfigFromMetadata(const Metadata& metadata) {
  Arguments arguments;
  FR_RETURN_IF_ERROR(TakeModel(metadata, arguments));
  return ConfigOf(arguments);
}

}  // namespace forerun
