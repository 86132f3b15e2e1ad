// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/matmul.h"
#include "core/ops/cpu/plain_matmul.h"
#include "core/ops/matmul.h"
#include "gtest/gtest.h"

// Ranks that are threads of one process share the kernels, and what those keep behind them.
namespace forerun::conformance {
namespace {

const KernelTable& Cpu() {
  static const KernelTable table{.matmul = &cpu::Matmul()};
  return table;
}
const KernelTable& Plain() {
  static const KernelTable table{.matmul = &cpu::PlainMatmul()};
  return table;
}

class MatmulConcurrencyTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  const KernelTable& kernels() const { return *std::get<0>(GetParam()).kernels; }

  // Products of many shapes, so that threads meet shapes that are new to the kernels.
  std::vector<Tensor> Products(const Host& host) const {
    const DType dtype = std::get<1>(GetParam());
    std::vector<Tensor> results;
    for (int64_t size = 8; size < 32; ++size) {
      const Tensor a = Random(host, {size, 24}, dtype, 1);
      const Tensor b = Random(host, {size + 3, 24}, dtype, 2);
      results.push_back(Matmul(host.context(), a, b, {.transpose_b = true}));
      const Tensor wide = Random(host, {24, 768 + size}, dtype, 3);  // rows far apart
      results.push_back(Matmul(host.context(), a, wide));
    }
    return results;
  }
};

TEST_P(MatmulConcurrencyTest, EveryThreadGetsTheBitsOfASingleOne) {
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<Host>> hosts;  // outlive the results
  std::vector<std::vector<Tensor>> results(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) hosts.push_back(std::make_unique<Host>(kernels()));
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { results[i] = Products(*hosts[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  const Host host(kernels());
  const std::vector<Tensor> alone = Products(host);
  for (const std::vector<Tensor>& result : results) {
    for (size_t i = 0; i < alone.size(); ++i) {
      ExpectSameBits(result[i], alone[i], "product " + std::to_string(i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, MatmulConcurrencyTest,
                         testing::Combine(testing::Values(Backend{"Cpu", &Cpu()},
                                                          Backend{"Plain", &Plain()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
