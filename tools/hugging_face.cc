// SPDX-License-Identifier: Apache-2.0
#include "tools/hugging_face.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "checkpoint/safetensors.h"
#include "core/base/status_macros.h"
#include "core/tensor/host_tensor.h"
#include "models/config.h"
#include "trainer/model_setup.h"

namespace forerun {
namespace {

// Rows [begin, begin + count) of a tensor seen as a matrix: all dims but the last are its rows; a
// vector is one column.
struct Rows {
  int64_t begin = 0;
  int64_t count = 0;
};

// A tensor of the exported file: some rows of one of the checkpoint's.
struct Export {
  std::string key;
  SavedTensor source;
  Shape shape;
  std::vector<Rows> rows;
  bool transposed = false;
};

struct Matrix {
  explicit Matrix(const Shape& shape)
      : columns(shape.rank() > 1 ? shape[-1] : 1), rows(shape.numel() / columns) {}
  int64_t columns;
  int64_t rows;
};

Export ExportOf(const std::string& key, const SavedTensor& source, std::vector<Rows> rows,
                bool transposed = false) {
  int64_t count = 0;
  for (const Rows& run : rows) count += run.count;
  Shape shape = {count};
  if (source.shape.rank() > 1) {
    const int64_t columns = source.shape[-1];
    shape = transposed ? Shape{columns, count} : Shape{count, columns};
  }
  return {key, source, shape, std::move(rows), transposed};
}

// Of a fused projection, where each group has its queries, then a key, then a value.
struct QkvRows {
  explicit QkvRows(const GptConfig& config) {
    const int64_t d = config.head_dim(), queries = config.queries_per_group();
    for (int64_t group = 0; group < config.num_query_groups; ++group) {
      const int64_t begin = group * (queries + 2) * d;
      q.push_back({begin, queries * d});
      k.push_back({begin + queries * d, d});
      v.push_back({begin + (queries + 1) * d, d});
    }
  }
  std::vector<Rows> All() const {
    std::vector<Rows> all = q;
    all.insert(all.end(), k.begin(), k.end());
    all.insert(all.end(), v.begin(), v.end());
    return all;
  }
  std::vector<Rows> q, k, v;
};

bool IsGpt2(const GptConfig& c) {
  return c.position_embedding == PositionEmbedding::kLearned && c.norm == NormKind::kLayerNorm &&
         !c.swiglu && c.add_bias_linear && c.num_query_groups == c.num_attention_heads &&
         !c.post_sublayer_norms;
}

bool IsLlama(const GptConfig& c) {
  return c.position_embedding == PositionEmbedding::kRope && c.norm == NormKind::kRmsNorm &&
         c.swiglu && !c.add_bias_linear && !c.post_sublayer_norms;
}

// A name of ours in three parts: "layers.3.mlp.fc1.weight" is {"3", "mlp.fc1", "weight"}; outside
// the layers the first is empty.
struct Name {
  explicit Name(const std::string& name) {
    std::vector<std::string> parts = absl::StrSplit(name, '.');
    tensor = parts.back();
    parts.pop_back();
    if (parts[0] == "layers") {
      layer = parts[1];
      parts.erase(parts.begin(), parts.begin() + 2);
    }
    for (const std::string& part : parts) absl::StrAppend(&module, module.empty() ? "" : ".", part);
  }
  std::string layer, module, tensor;
};

// Every name that a model of its family has is in the map.
using Modules = std::map<std::string, std::string>;

std::vector<Export> Gpt2Exports(const SavedTensor& source, const GptConfig& config) {
  static const auto& modules = *new Modules{{"embedding.word_embeddings", "wte"},
                                            {"embedding.position_embeddings", "wpe"},
                                            {"input_norm", "ln_1"},
                                            {"attention.qkv", "attn.c_attn"},
                                            {"attention.proj", "attn.c_proj"},
                                            {"pre_mlp_norm", "ln_2"},
                                            {"mlp.fc1", "mlp.c_fc"},
                                            {"mlp.fc2", "mlp.c_proj"},
                                            {"final_norm", "ln_f"}};
  const std::vector<Rows> all = {{0, Matrix(source.shape).rows}};
  if (source.name == "output.weight") return {ExportOf("lm_head.weight", source, all)};
  const Name name(source.name);
  const std::string layer = name.layer.empty() ? "" : absl::StrCat("h.", name.layer, ".");
  const std::string key =
      absl::StrCat("transformer.", layer, modules.at(name.module), ".", name.tensor);
  const bool conv1d = !name.layer.empty() && source.shape.rank() > 1;
  const bool fused = name.module == "attention.qkv";
  return {ExportOf(key, source, fused ? QkvRows(config).All() : all, conv1d)};
}

std::vector<Export> LlamaExports(const SavedTensor& source, const GptConfig& config) {
  static const auto& modules = *new Modules{{"embedding.word_embeddings", "embed_tokens"},
                                            {"input_norm", "input_layernorm"},
                                            {"attention.proj", "self_attn.o_proj"},
                                            {"pre_mlp_norm", "post_attention_layernorm"},
                                            {"mlp.fc2", "mlp.down_proj"},
                                            {"final_norm", "norm"}};
  const int64_t rows = Matrix(source.shape).rows;
  if (source.name == "output.weight") return {ExportOf("lm_head.weight", source, {{0, rows}})};
  const Name name(source.name);
  const std::string prefix =
      absl::StrCat("model.", name.layer.empty() ? "" : absl::StrCat("layers.", name.layer, "."));
  if (name.module == "attention.qkv") {
    const QkvRows qkv(config);
    return {ExportOf(prefix + "self_attn.q_proj.weight", source, qkv.q),
            ExportOf(prefix + "self_attn.k_proj.weight", source, qkv.k),
            ExportOf(prefix + "self_attn.v_proj.weight", source, qkv.v)};
  }
  if (name.module == "mlp.fc1") {
    return {ExportOf(prefix + "mlp.gate_proj.weight", source, {{0, rows / 2}}),
            ExportOf(prefix + "mlp.up_proj.weight", source, {{rows / 2, rows / 2}})};
  }
  return {ExportOf(absl::StrCat(prefix, modules.at(name.module), ".", name.tensor), source,
                   {{0, rows}})};
}

std::vector<Export> OwnExports(const SavedTensor& source) {
  return {{source.name, source, source.shape, {{0, Matrix(source.shape).rows}}}};
}

// Copies the rows, or with `transposed` makes them columns. `size`: bytes of an element.
std::vector<uint8_t> Rearranged(const uint8_t* from, const Export& to, int64_t size) {
  const int64_t columns = Matrix(to.source.shape).columns;
  const int64_t height = to.shape.numel() / std::max<int64_t>(1, columns);
  std::vector<uint8_t> bytes(static_cast<size_t>(to.shape.numel() * size));
  int64_t target = 0;
  for (const Rows& run : to.rows) {
    for (int64_t row = run.begin; row < run.begin + run.count; ++row, ++target) {
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t at = to.transposed ? column * height + target : target * columns + column;
        std::memcpy(&bytes[at * size], from + (row * columns + column) * size, size);
      }
    }
  }
  return bytes;
}

absl::Status WriteExports(Checkpoint& checkpoint, const std::vector<Export>& exports,
                          const std::string& path) {
  std::vector<SafetensorsEntry> entries;
  for (const Export& to : exports) entries.push_back({to.key, to.source.dtype, to.shape});
  // What readers of such files ask for.
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                      SafetensorsWriter::Create(path, entries, {{"format", "pt"}}));
  for (size_t i = 0; i < exports.size(); ++i) {
    const SavedTensor& source = exports[i].source;
    const Tensor values = HostTensor({source.shape.numel()}, source.dtype);
    FR_RETURN_IF_ERROR(
        checkpoint.LoadPiece({source.name, source.shape, Box::Whole(source.shape), 0, values}));
    const std::vector<uint8_t> bytes = Rearranged(static_cast<const uint8_t*>(values.raw_data()),
                                                  exports[i], SizeOf(source.dtype));
    FR_RETURN_IF_ERROR(writer->Write(i, bytes.data()));
  }
  return writer->Publish();
}

}  // namespace

absl::StatusOr<std::string> ExportWeights(Checkpoint& checkpoint, const std::string& path) {
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigFromMetadata(checkpoint.metadata()));
  const bool gpt2 = IsGpt2(config), llama = IsLlama(config);
  std::vector<Export> exports;
  for (const SavedTensor& tensor : checkpoint.tensors()) {
    if (absl::StartsWith(tensor.name, "optimizer.")) continue;
    const std::vector<Export> more = gpt2    ? Gpt2Exports(tensor, config)
                                     : llama ? LlamaExports(tensor, config)
                                             : OwnExports(tensor);
    exports.insert(exports.end(), more.begin(), more.end());
  }
  FR_RETURN_IF_ERROR(WriteExports(checkpoint, exports, path));
  return std::string(gpt2 ? "GPT-2" : llama ? "Llama" : "own");
}

}  // namespace forerun
