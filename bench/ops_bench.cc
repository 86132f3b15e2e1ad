// SPDX-License-Identifier: Apache-2.0
// What the kernels of one rank reach: rates of matmul and attention on shapes of training.
//   bazel run //bench:ops_bench -- --benchmark_filter=Matmul
#include "benchmark/benchmark.h"
#include "core/ops/attention.h"
#include "core/ops/copy.h"
#include "core/ops/cpu/kernels.h"
#include "core/ops/matmul.h"

namespace forerun {
namespace {

struct Runtime {
  InlineStream stream{Device{}};
  CpuAllocator allocator;
  OpContext ops{&stream, &allocator, &cpu::Kernels()};

  Tensor Ones(const Shape& shape, DType dtype) {
    Tensor tensor = ops.Empty(shape, dtype);
    Fill(ops, 1.0f, tensor);
    return tensor;
  }
};

void SetRate(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(
      flops * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}

// Arguments: rows (tokens), output features, input features, whether in bf16.
void BM_MatmulForward(benchmark::State& state) {
  Runtime runtime;
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const DType dtype = state.range(3) != 0 ? DType::kBF16 : DType::kF32;
  const Tensor x = runtime.Ones({m, k}, dtype);
  const Tensor weight = runtime.Ones({n, k}, dtype);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Matmul(runtime.ops, x, weight, {.transpose_b = true}));
  }
  SetRate(state, 2.0 * static_cast<double>(m * n * k));
}
BENCHMARK(BM_MatmulForward)
    ->Args({256, 768, 768, 0})
    ->Args({256, 3072, 768, 0})
    ->Args({256, 3072, 768, 1})
    ->Args({512, 64, 128, 0});

// A weight's gradient: dy^T x, added to fp32.
void BM_MatmulWeightGradient(benchmark::State& state) {
  Runtime runtime;
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const Tensor dy = runtime.Ones({m, n}, DType::kF32);
  const Tensor x = runtime.Ones({m, k}, DType::kF32);
  const Tensor gradient = runtime.Ones({n, k}, DType::kF32);
  for (auto _ : state) {
    MatmulInto(runtime.ops, dy, x, {.transpose_a = true, .accumulate = true}, gradient);
  }
  SetRate(state, 2.0 * static_cast<double>(m * n * k));
}
BENCHMARK(BM_MatmulWeightGradient)->Args({256, 3072, 768})->Args({512, 64, 128});

// Arguments: sequence, samples, heads, head width. Counts the flops of the causal half.
void BM_AttentionForward(benchmark::State& state) {
  Runtime runtime;
  const int64_t s = state.range(0), b = state.range(1), h = state.range(2), d = state.range(3);
  const Tensor q = runtime.Ones({s, b, h, d}, DType::kF32);
  for (auto _ : state) {
    benchmark::DoNotOptimize(CausalAttention(runtime.ops, q, q, q, {.scale = 0.125f}));
  }
  SetRate(state, 2.0 * static_cast<double>(b * h * s * s * d));
}
BENCHMARK(BM_AttentionForward)->Args({128, 4, 2, 32})->Args({256, 4, 12, 64});

}  // namespace
}  // namespace forerun

BENCHMARK_MAIN();
