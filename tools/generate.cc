// SPDX-License-Identifier: Apache-2.0
// Lets a checkpoint's model continue a text. One rank, whatever layout saved the checkpoint.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "core/base/flag_names.h"
#include "core/base/parallel_for.h"
#include "core/base/status_macros.h"
#include "core/base/user_path.h"
#include "core/ops/cpu/kernels.h"
#include "core/random/random.h"
#include "data/tokenizer.h"
#include "models/gpt.h"
#include "parallel/comm/local/local_hub.h"
#include "parallel/topology/parallel_context.h"
#include "trainer/flag_values.h"
#include "trainer/model_setup.h"
#include "trainer/rank_runtime.h"

namespace forerun {
namespace {

struct GenerateOptions {
  std::string load;
  std::string prompt = "The ";
  int64_t num_tokens = 200;
  double temperature = 0.8;
  int top_k = 40;
  int64_t seed = 1234;
};

// Weights of a checkpoint, loaded when first read.
class CheckpointReader final : public ParamReader {
 public:
  CheckpointReader(const OpContext& context, Checkpoint& checkpoint)
      : context_(context), checkpoint_(checkpoint) {}

  absl::Status LoadAll(absl::Span<const Parameter* const> parameters) {
    for (const Parameter* parameter : parameters) {
      Tensor value = context_.Empty(parameter->shape(), parameter->dtype());
      value.Clear();  // padding, which is not saved and comes last
      const Box box = parameter->logical_box();
      const Tensor saved = value.View({value.numel()}).Slice(0, 0, box.extent.numel());
      FR_RETURN_IF_ERROR(
          checkpoint_.LoadPiece({parameter->name(), parameter->logical_shape(), box, 0, saved}));
      values_.emplace(parameter, value.AsReadOnly());
    }
    return absl::OkStatus();
  }
  ParamLease Read(const Parameter& parameter, Stream&, absl::string_view) override {
    return ParamLease(values_.at(&parameter));
  }

 private:
  const OpContext& context_;
  Checkpoint& checkpoint_;
  std::map<const Parameter*, Tensor> values_;
};

// Draws from softmax(logits / temperature) over the k largest.
int32_t Sample(const std::vector<float>& logits, const GenerateOptions& options, float uniform) {
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const size_t k = std::min<size_t>(order.size(), options.top_k);
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (options.temperature <= 0.0) return order[0];
  double total = 0.0;
  std::vector<double> weights;
  for (size_t i = 0; i < k; ++i) {
    weights.push_back(std::exp((logits[order[i]] - logits[order[0]]) / options.temperature));
    total += weights.back();
  }
  double rest = uniform * total;
  for (size_t i = 0; i < k; ++i) {
    rest -= weights[i];
    if (rest < 0.0) return order[i];
  }
  return order[k - 1];
}

// The scores of what follows the last token.
std::vector<float> NextLogits(const OpContext& context, const GptChunk& model, ParamReader& reader,
                              const GptConfig& config, absl::Span<const int32_t> tokens) {
  const auto length = static_cast<int64_t>(tokens.size());
  Tensor input = context.Empty({length, 1}, DType::kI32);
  std::copy(tokens.begin(), tokens.end(), input.mutable_data<int32_t>());
  const ForwardContext forward{context, reader};
  const Value logits = model.Logits(forward, Value{}, input);
  const Tensor last = logits.tensor.Slice(0, length - 1, length);
  std::vector<float> scores(config.vocab_size);
  VisitFloating(last.dtype(), [&](auto zero) {
    const auto* data = last.data<decltype(zero)>();
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(data[i]);
  });
  return scores;
}

absl::Status Generate(const GenerateOptions& options) {
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(options.load));
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigFromMetadata(checkpoint->metadata()));
  FR_ASSIGN_OR_RETURN(
      const std::unique_ptr<const Tokenizer> tokenizer,
      TokenizerByType(checkpoint->metadata().at("tokenizer_type"), config.vocab_size - 1));
  const CpuRuntime runtime(cpu::Kernels());
  comm::LocalHub hub(1, {});
  const std::unique_ptr<comm::GroupFactory> factory = hub.Join(0);
  const ParallelContext parallel(*Grid::Create(1, 1, 1), *factory);
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<GptChunk> model,
                      GptChunk::Create(config, {0, 1}, parallel.tensor()));
  CheckpointReader reader(runtime.ops, *checkpoint);
  FR_RETURN_IF_ERROR(reader.LoadAll(model->registry().parameters()));

  std::vector<int32_t> tokens;
  FR_RETURN_IF_ERROR(tokenizer->Encode(options.prompt, &tokens));
  if (tokens.empty()) tokens.push_back(tokenizer->eod());
  const int64_t longest = config.position_embedding == PositionEmbedding::kLearned
                              ? config.max_position_embeddings
                              : config.seq_length;
  const RandomKey key = RandomKey::Root(static_cast<uint64_t>(options.seed)).Fold("generate");
  for (int64_t i = 0; i < options.num_tokens; ++i) {
    const size_t begin = std::max<int64_t>(0, static_cast<int64_t>(tokens.size()) - longest);
    const std::vector<float> logits =
        NextLogits(runtime.ops, *model, reader, config, absl::MakeConstSpan(tokens).subspan(begin));
    tokens.push_back(Sample(logits, options, UniformAt(key, i)));
    if (tokens.back() == tokenizer->eod()) break;
  }
  FR_ASSIGN_OR_RETURN(const std::string text, tokenizer->Decode(tokens));
  std::printf("%s\n", text.c_str());
  return absl::OkStatus();
}

int Fail(absl::string_view what) {
  std::fprintf(stderr, "generate: %.*s\n", static_cast<int>(what.size()), what.data());
  return 1;
}

int Main(std::vector<std::string> arguments) {
  GenerateOptions options;
  CLI::App app("Lets a checkpoint's model continue a text.", "generate");
  AddPlain(app, "--load", options.load, "folder of the checkpoint")->required();
  app.add_option("--prompt", options.prompt, "what to continue")->default_str("'The '");
  Add(app, "--num-tokens", options.num_tokens, "tokens to write at most");
  Add(app, "--temperature", options.temperature, "of sampling; 0: always the likeliest");
  Add(app, "--top-k", options.top_k, "tokens to choose among");
  Add(app, "--seed", options.seed, "of sampling");
  arguments = NormalizeFlagNames(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    return Fail(error.what());
  }
  for (const auto& [flag, value, least] :
       {std::tuple("--num-tokens", static_cast<double>(options.num_tokens), 0),
        std::tuple("--temperature", options.temperature, 0),
        std::tuple("--top-k", static_cast<double>(options.top_k), 1),
        std::tuple("--seed", static_cast<double>(options.seed), 0)}) {
    if (value < least) return Fail(absl::StrCat(flag, " ", value, " is not at least ", least));
  }
  options.load = ResolveUserPath(options.load);
  SetLoopThreads(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  const absl::Status status = Generate(options);
  return status.ok() ? 0 : Fail(status.message());
}

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) {
  return forerun::Main(std::vector<std::string>(argv + 1, argv + argc));
}
