// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_rates.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/base/parallel_for.h"
#include "dnnl.hpp"

namespace forerun {
namespace {

using dnnl::memory;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// [rows, columns], stored transposed where asked.
memory::desc Matrix(int64_t rows, int64_t columns, memory::data_type type, bool transposed) {
  return {{rows, columns}, type, transposed ? memory::dims{1, rows} : memory::dims{columns, 1}};
}

memory Filled(const memory::desc& desc) {
  memory made(desc, Engine());
  auto* bytes = static_cast<uint8_t*>(made.get_data_handle());
  std::fill(bytes, bytes + desc.get_size(), uint8_t{0x3c});  // about 0.01 in fp32 and bf16
  return made;
}

}  // namespace

// One of the three products of a linear layer.
struct MatmulRate::Product {
  Product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b, memory::data_type in,
          memory::data_type out, int64_t times)
      : a(Filled(Matrix(m, k, in, transpose_a))),
        b(Filled(Matrix(k, n, in, transpose_b))),
        c(Filled(Matrix(m, n, out, false))),
        primitive(dnnl::matmul::primitive_desc(
            dnnl::matmul::desc(a.get_desc(), b.get_desc(), c.get_desc()), Engine())),
        count(times) {
    Run();
  }
  void Run() const {
    dnnl::stream stream(Engine());
    const std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}};
    primitive.execute(stream, arguments);
    stream.wait();
  }

  memory a, b, c;
  dnnl::matmul primitive;
  int64_t count;
};

std::vector<LinearShape> LinearShapes(const GptConfig& config) {
  const int64_t h = config.hidden_size, layers = config.num_layers;
  const int64_t qkv =
      config.num_query_groups * (config.queries_per_group() + 2) * config.head_dim();
  const int64_t fc1 = config.ffn_hidden_size * (config.swiglu ? 2 : 1);
  return {{qkv, h, layers},
          {h, h, layers},
          {fc1, h, layers},
          {h, config.ffn_hidden_size, layers},
          {config.padded_vocab_size, h, 1}};
}

int64_t LinearFlops(const GptConfig& config, int64_t tokens) {
  int64_t flops = 0;
  for (const LinearShape& shape : LinearShapes(config)) {
    flops += 3 * 2 * tokens * shape.n * shape.k * shape.count;
  }
  return flops;
}

int64_t AttentionFlops(const GptConfig& config, int64_t tokens) {
  return 3 * 4 * config.seq_length / 2 * tokens * config.num_attention_heads * config.head_dim() *
         config.num_layers;
}

MatmulRate::MatmulRate(const GptConfig& config, int64_t tokens) {
  const auto in = config.dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
  for (const auto& [n, k, count] : LinearShapes(config)) {
    products_.emplace_back(tokens, n, k, false, true, in, in, count);
    products_.emplace_back(tokens, k, n, false, false, in, in, count);
    products_.emplace_back(n, k, tokens, true, false, in, memory::data_type::f32, count);
  }
}

MatmulRate::~MatmulRate() = default;

double MatmulRate::StepSeconds() const {
  double seconds = 0.0;
  for (const Product& product : products_) {
    const double begin = Seconds();
    product.Run();
    seconds += (Seconds() - begin) * static_cast<double>(product.count);
  }
  return seconds;
}

double CopyBytesPerSecond() {
  constexpr int64_t kFloats = 64 << 20;
  std::vector<float> from(kFloats, 1.0f), to(kFloats);
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 5; ++repetition) {
    const double begin = Seconds();
    ParallelFor(kFloats, 4096, [&](int64_t first, int64_t last) {
      std::copy(from.data() + first, from.data() + last, to.data() + first);
    });
    best = std::min(best, Seconds() - begin);
  }
  return 2.0 * kFloats * sizeof(float) / best;
}

}  // namespace forerun
