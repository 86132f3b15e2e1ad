// SPDX-License-Identifier: Apache-2.0
// The speed of a training step on one machine, beside what the matmul library does on the same
// shapes and what the memory moves, measured in the same run:
//   bazel run -c opt //bench:train_step -- --model gpt2-124m --batch 4 --seq 64 --dtype fp32
//     --threads 2
// Figures are medians over steps; the matmul library runs every shape once after every step, and
// the ratio is the median of the steps' own.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/machine_rates.h"
#include "bench/training_run.h"
#include "core/base/parallel_for.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

struct Options {
  std::string model = "gpt2-124m";
  std::string dtype = "fp32";
  int64_t batch = 4;  // samples a step, over all ranks
  int64_t seq = 64;
  int threads = 2;  // of each rank
  int dp = 1, tp = 1, pp = 1;
  int last_layers = 0;  // of the last stage; 0: a share like the others'
  int64_t microbatches = 1;
  int steps = 7;
};

GptConfig Gpt2(int layers, int64_t hidden, int64_t heads, int64_t vocabulary) {
  GptConfig config;
  config.num_layers = layers;
  config.hidden_size = hidden;
  config.ffn_hidden_size = 4 * hidden;
  config.num_attention_heads = config.num_query_groups = heads;
  config.vocab_size = vocabulary;
  config.max_position_embeddings = 1024;
  return config;
}

const std::map<std::string, GptConfig>& Models() {
  static const std::map<std::string, GptConfig> models = {
      {"gpt2-124m", Gpt2(12, 768, 12, 50257)},
      {"bytes-4x256", Gpt2(4, 256, 4, 256)},
      {"bytes-8x512", Gpt2(8, 512, 8, 256)},
  };
  return models;
}

TrainingSpec SpecOf(const Options& options) {
  TrainingSpec spec;
  spec.config = Models().at(options.model);
  spec.config.seq_length = options.seq;
  spec.config.max_position_embeddings = std::max<int64_t>(1024, options.seq);
  spec.config.dtype = options.dtype == "bf16" ? DType::kBF16 : DType::kF32;
  spec.config.padded_vocab_size = PaddedVocabSize(spec.config.vocab_size, 128, options.tp);
  spec.config.end_stages.last = options.last_layers;
  spec.options.seq_length = options.seq;
  spec.options.global_batch_size = options.batch;
  spec.options.micro_batch_size = options.batch / options.dp / options.microbatches;
  spec.data_parallel_size = options.dp;
  spec.tensor_model_parallel_size = options.tp;
  spec.pipeline_model_parallel_size = options.pp;
  spec.threads_per_rank = options.threads;
  spec.steps = options.steps;
  return spec;
}

double MedianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

// Parameters, their gradients, moments and masters, and what a tape must keep of a step: of each
// layer its two inputs to norms and their outputs, q, k, v, the attention's output and the MLP's
// inner values before and after the activation; of the head its input before and after the norm.
double ComputedBytes(const GptConfig& config, int64_t tokens) {
  const bool narrow = config.dtype == DType::kBF16;
  const double width = narrow ? 2.0 : 4.0;
  const double parameters = static_cast<double>(config.ParameterCount());
  const double state = parameters * (width + 4.0 + 8.0 + (narrow ? 4.0 : 0.0));
  const int64_t h = config.hidden_size, f = config.ffn_hidden_size;
  const int64_t qkv =
      config.num_query_groups * (config.queries_per_group() + 2) * config.head_dim();
  const double layer = static_cast<double>(4 * h + qkv + h + (config.swiglu ? 3 : 2) * f);
  const double activations = static_cast<double>(tokens) * width *
                             (layer * config.num_layers + 2.0 * static_cast<double>(h));
  return state + activations;
}

void PrintOneRank(const TrainingSpec& spec, const TrainingResult& result,
                  const std::vector<double>& ratios, const std::vector<double>& rates,
                  double copy_rate, double resident) {
  const int64_t tokens = spec.options.global_batch_size * spec.options.seq_length;
  const double flops =
      static_cast<double>(LinearFlops(spec.config, tokens) + AttentionFlops(spec.config, tokens));
  std::printf(
      "GFLOP/s: %.0f in forward and backward; the matmul library on these shapes %.0f; "
      "ratio %.2f\n",
      flops / (result.forward + result.backward) / 1e9, MedianOf(rates) / 1e9, MedianOf(ratios));
  const auto parameters = static_cast<double>(spec.config.ParameterCount());
  const double moved = parameters * (spec.config.dtype == DType::kBF16 ? 34.0 : 32.0);
  std::printf("optimizer: %.1f GB/s; a copy here %.1f GB/s; ratio %.2f\n",
              moved / result.update / 1e9, copy_rate / 1e9, moved / result.update / copy_rate);
  const double computed = ComputedBytes(spec.config, tokens);
  std::printf(
      "memory: %.0f MiB of tensors at most, computed minimum %.0f MiB, ratio %.2f; peak "
      "resident %.0f MiB\n",
      static_cast<double>(result.peak_bytes) / 0x1p20, computed / 0x1p20,
      static_cast<double>(result.peak_bytes) / computed, resident / 0x1p20);
}

absl::Status Measure(const Options& options) {
  TrainingSpec spec = SpecOf(options);
  const int64_t tokens = options.batch * options.seq;
  std::vector<double> ratios, rates;
  double resident = 0.0;
  std::unique_ptr<MatmulRate> matmul;
  if (spec.world_size() == 1) {
    spec.after_step = [&](const StepMetrics& step) {
      if (matmul == nullptr) {
        resident = PeakResidentBytes();  // of training alone
        matmul = std::make_unique<MatmulRate>(spec.config, tokens);
      }
      const double rate =
          static_cast<double>(LinearFlops(spec.config, tokens)) / matmul->StepSeconds();
      const double seconds = (step.phases.forward_ms + step.phases.backward_ms) / 1e3;
      const auto flops = static_cast<double>(LinearFlops(spec.config, tokens) +
                                             AttentionFlops(spec.config, tokens));
      rates.push_back(rate);
      ratios.push_back(flops / seconds / rate);
    };
  }
  FR_ASSIGN_OR_RETURN(const TrainingResult result, RunTraining(spec));
  std::printf(
      "%s %s batch %ld x %ld, dp %d tp %d pp %d, %d threads a rank: step %.1f ms (forward "
      "%.1f, backward %.1f, optimizer %.1f), %.0f tokens/s, loss %.4f\n",
      options.model.c_str(), options.dtype.c_str(), options.batch, options.seq, options.dp,
      options.tp, options.pp, options.threads, result.step * 1e3, result.forward * 1e3,
      result.backward * 1e3, result.update * 1e3, static_cast<double>(tokens) / result.step,
      result.loss);
  if (spec.world_size() > 1) return absl::OkStatus();
  SetLoopThreads(options.threads);
  PrintOneRank(spec, result, ratios, rates, CopyBytesPerSecond(), resident);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of a training step on one machine.");
  std::vector<std::string> models;
  for (const auto& [name, config] : Models()) models.push_back(name);
  app.add_option("--model", options.model)->check(CLI::IsMember(models));
  app.add_option("--dtype", options.dtype)->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--batch", options.batch, "samples a step")->check(CLI::PositiveNumber);
  app.add_option("--seq", options.seq, "tokens a sample")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "of each rank")->check(CLI::PositiveNumber);
  app.add_option("--dp", options.dp)->check(CLI::PositiveNumber);
  app.add_option("--tp", options.tp)->check(CLI::PositiveNumber);
  app.add_option("--pp", options.pp)->check(CLI::PositiveNumber);
  app.add_option("--last-layers", options.last_layers, "of the last stage")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--microbatches", options.microbatches)->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (options.batch % (options.dp * options.microbatches) != 0) {
    std::cerr << "train_step: --batch " << options.batch
              << " is not a multiple of dp x microbatches\n";
    return 2;
  }
  const absl::Status status = Measure(options);
  if (status.ok()) return 0;
  std::cerr << "train_step: " << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) { return forerun::Main(argc, argv); }
