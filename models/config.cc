// SPDX-License-Identifier: Apache-2.0
#include "models/config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "parallel/tensor_parallel/split.h"

namespace forerun {
namespace {

absl::Status CheckMultiple(absl::string_view what, int64_t value, absl::string_view of,
                           int64_t divisor) {
  if (value % divisor == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", value, " is not a multiple of ", of, " ", divisor));
}

absl::Status CheckSizes(const GptConfig& c) {
  for (const auto& [name, value] :
       {std::pair<absl::string_view, int64_t>{"num_layers", c.num_layers},
        {"hidden_size", c.hidden_size},
        {"ffn_hidden_size", c.ffn_hidden_size},
        {"num_attention_heads", c.num_attention_heads},
        {"num_query_groups", c.num_query_groups},
        {"seq_length", c.seq_length},
        {"vocab_size", c.vocab_size}}) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(name, " must be at least 1, got ", value));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFractions(const GptConfig& c) {
  for (const auto& [name, p] :
       {std::pair<absl::string_view, float>{"attention_dropout", c.attention_dropout},
        {"hidden_dropout", c.hidden_dropout}}) {
    if (!(p >= 0.0f && p < 1.0f)) {
      return absl::InvalidArgumentError(absl::StrCat(name, " must be in [0, 1), got ", p));
    }
  }
  if (!(c.norm_epsilon > 0.0f)) {
    return absl::InvalidArgumentError(
        absl::StrCat("norm_epsilon must be positive, got ", c.norm_epsilon));
  }
  if (!(c.init_method_std >= 0.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("init_method_std must not be negative, got ", c.init_method_std));
  }
  return absl::OkStatus();
}

absl::Status CheckPositions(const GptConfig& c) {
  const bool learned = c.position_embedding == PositionEmbedding::kLearned;
  if (learned && c.max_position_embeddings < c.seq_length) {
    return absl::InvalidArgumentError(absl::StrCat("max_position_embeddings ",
                                                   c.max_position_embeddings,
                                                   " is less than seq_length ", c.seq_length));
  }
  if (!learned && c.head_dim() % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("rotary position embeddings need an even head size, got hidden_size / "
                     "num_attention_heads = ",
                     c.head_dim()));
  }
  return absl::OkStatus();
}

int64_t NormCount(const GptConfig& c) {
  return c.norm == NormKind::kLayerNorm ? 2 * c.hidden_size : c.hidden_size;
}

int64_t LayerCount(const GptConfig& c) {
  const int64_t qkv = c.num_query_groups * (c.queries_per_group() + 2) * c.head_dim();
  const int64_t fc1 = (c.swiglu ? 2 : 1) * c.ffn_hidden_size;
  int64_t count = (qkv + c.hidden_size + fc1 + c.ffn_hidden_size) * c.hidden_size;
  if (c.add_bias_linear) count += qkv + fc1 + 2 * c.hidden_size;
  if (c.post_sublayer_norms) count += 2 * c.hidden_size;
  return count + 2 * NormCount(c);
}

}  // namespace

absl::Status GptConfig::Validate() const {
  FR_RETURN_IF_ERROR(CheckSizes(*this));
  FR_RETURN_IF_ERROR(
      CheckMultiple("hidden_size", hidden_size, "num_attention_heads", num_attention_heads));
  FR_RETURN_IF_ERROR(CheckMultiple("num_attention_heads", num_attention_heads, "num_query_groups",
                                   num_query_groups));
  if (padded_vocab_size < vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat("padded_vocab_size ", padded_vocab_size,
                                                   " is less than vocab_size ", vocab_size));
  }
  FR_RETURN_IF_ERROR(CheckPositions(*this));
  FR_RETURN_IF_ERROR(CheckFractions(*this));
  if (!IsFloating(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights must have a floating dtype, got ", NameOf(dtype)));
  }
  return absl::OkStatus();
}

absl::Status GptConfig::ValidateSplit(int tensor_parallel_size, int stages) const {
  if (tensor_parallel_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor-parallel size must be at least 1, got ", tensor_parallel_size));
  }
  FR_RETURN_IF_ERROR(CheckSplit("num_attention_heads", num_attention_heads, tensor_parallel_size));
  FR_RETURN_IF_ERROR(CheckSplit("num_query_groups", num_query_groups, tensor_parallel_size));
  FR_RETURN_IF_ERROR(CheckSplit("ffn_hidden_size", ffn_hidden_size, tensor_parallel_size));
  FR_RETURN_IF_ERROR(CheckSplit("padded_vocab_size", padded_vocab_size, tensor_parallel_size));
  return LayersOfStage(num_layers, stages, 0, end_stages).status();
}

int64_t GptConfig::ParameterCount() const {
  int64_t count = vocab_size * hidden_size;
  if (position_embedding == PositionEmbedding::kLearned) {
    count += max_position_embeddings * hidden_size;
  }
  count += num_layers * LayerCount(*this) + NormCount(*this);
  if (!tied_embeddings) count += vocab_size * hidden_size;
  return count;
}

int64_t PaddedVocabSize(int64_t vocab_size, int64_t divisor, int tensor_parallel_size) {
  const int64_t multiple = divisor * tensor_parallel_size;
  return (vocab_size + multiple - 1) / multiple * multiple;
}

absl::StatusOr<LayerRange> LayersOfStage(int num_layers, int stages, int stage, EndStages ends) {
  if (stages < 1 || stages > num_layers) {
    return absl::InvalidArgumentError(absl::StrCat(num_layers, " layers cannot be split over ",
                                                   stages, " pipeline stages: each needs one"));
  }
  if (stage < 0 || stage >= stages) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no pipeline stage ", stage, " of ", stages));
  }
  const int first = ends.first > 0 ? 1 : 0, last = ends.last > 0 ? 1 : 0;
  const int shared_stages = stages - first - last;
  const int shared_layers = num_layers - ends.first - ends.last;
  if (shared_stages < 0 || shared_layers < shared_stages ||
      (shared_stages == 0 && shared_layers != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_layers, " layers cannot be split over ", stages, " pipeline stages with ",
                     ends.first, " in the first and ", ends.last, " in the last (0: any)"));
  }
  if (first == 1 && stage == 0) return LayerRange{0, ends.first};
  if (last == 1 && stage == stages - 1) return LayerRange{num_layers - ends.last, num_layers};
  const int each = shared_layers / shared_stages;
  const int longer = shared_layers % shared_stages;  // stages with one layer more
  const int place = stage - first;
  const int begin = ends.first + place * each + std::min(place, longer);
  return LayerRange{.begin = begin, .end = begin + each + (place < longer ? 1 : 0)};
}

}  // namespace forerun
