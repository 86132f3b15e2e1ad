// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/measure_costs.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/ops/copy.h"
#include "core/ops/matmul.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/agreement.h"

namespace forerun {
namespace {

constexpr int64_t kSmallBytes = int64_t{4} << 10, kLargeBytes = int64_t{1} << 20;
constexpr int64_t kCopyBytes = int64_t{1} << 20;
constexpr int kRepetitions = 5;
constexpr double kLeastAlpha = 1e-6;
constexpr double kLeastSeconds = 1e-9;  // of whatever takes any time

// `prepare` before each repetition is not timed.
double MedianSeconds(const SecondsClock& clock, absl::FunctionRef<void()> prepare,
                     absl::FunctionRef<void()> run) {
  std::vector<double> seconds;
  for (int i = 0; i <= kRepetitions; ++i) {
    prepare();
    const double begin = clock();
    run();
    if (i > 0) seconds.push_back(std::max(kLeastSeconds, clock() - begin));
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRepetitions / 2, seconds.end());
  return seconds[kRepetitions / 2];
}

class Stopwatch {
 public:
  Stopwatch(const OpContext& context, const DataParallelGroups& groups, const SecondsClock& clock)
      : context_(context), groups_(groups), clock_(clock) {}

  // Seconds of a small and of a large collective.
  std::array<double, 2> Gathers() const {
    if (groups_.gather->size() == 1) return {0.0, 0.0};
    return {Gather(kSmallBytes), Gather(kLargeBytes)};
  }
  std::array<double, 2> Reductions() const { return {Reduce(kSmallBytes), Reduce(kLargeBytes)}; }
  // Seconds of a flop, and of a byte read or written.
  double Flop(const MatmulProbe& probe) const {
    const Tensor a = Ones({probe.rows, probe.in}, probe.dtype);
    const Tensor b = Ones({probe.out, probe.in}, probe.dtype);
    const Tensor out = Ones({probe.rows, probe.out}, probe.dtype);
    const double seconds = Compute([&] { MatmulInto(context_, a, b, {.transpose_b = true}, out); });
    return seconds / static_cast<double>(2 * probe.rows * probe.in * probe.out);
  }
  double Byte() const {
    const Tensor from = Ones({kCopyBytes / SizeOf(DType::kF32)}, DType::kF32);
    const Tensor to = Ones(from.shape(), DType::kF32);
    return Compute([&] { CopyInto(context_, from, to); }) / static_cast<double>(2 * kCopyBytes);
  }

 private:
  Tensor Ones(const Shape& shape, DType dtype) const {
    const Tensor tensor = context_.Empty(shape, dtype);
    Fill(context_, 1.0f, tensor);
    return tensor;
  }
  // Of so many bytes or a little more: all ranks' parts are equal.
  Tensor Whole(int64_t bytes) const {
    const int64_t ranks = groups_.reduce->size();
    return Ones({(bytes / SizeOf(DType::kF32) + ranks - 1) / ranks * ranks}, DType::kF32);
  }
  static Tensor PartOf(const Tensor& whole, const comm::ProcessGroup& group) {
    const int64_t part = whole.numel() / group.size();
    return whole.Slice(0, group.rank() * part, (group.rank() + 1) * part);
  }

  double Collective(comm::ProcessGroup& group, absl::FunctionRef<comm::Work()> issue) const {
    return MedianSeconds(
        clock_, [&] { group.Barrier().Synchronize(); }, [&] { issue().Synchronize(); });
  }
  double Gather(int64_t bytes) const {
    comm::ProcessGroup& group = *groups_.gather;
    const Tensor whole = Whole(bytes), part = PartOf(whole, group);
    return Collective(group, [&] { return group.AllGather(part, whole); });
  }
  double Reduce(int64_t bytes) const {
    comm::ProcessGroup& group = *groups_.reduce;
    const Tensor whole = Whole(bytes), part = PartOf(whole, group);
    const bool sharded = groups_.gather->size() > 1;
    return Collective(group, [&] {
      return sharded ? group.ReduceScatter(whole, part, comm::ReduceOp::kSum)
                     : group.AllReduce(whole, comm::ReduceOp::kSum);
    });
  }

  double Compute(absl::FunctionRef<void()> run) const {
    const auto wait = [&] { context_.stream->Synchronize(); };
    return MedianSeconds(clock_, wait, [&] {
      run();
      wait();
    });
  }

  const OpContext& context_;
  const DataParallelGroups& groups_;
  const SecondsClock& clock_;
};

LinkCost Fit(double small_seconds, double large_seconds) {
  LinkCost link;
  link.beta = std::max(
      0.0, (large_seconds - small_seconds) / static_cast<double>(kLargeBytes - kSmallBytes));
  link.alpha = std::max(kLeastAlpha, small_seconds - link.beta * static_cast<double>(kSmallBytes));
  return link;
}

}  // namespace

MatmulProbe ProbeOf(absl::Span<const ForwardOrderGraph* const> chunks) {
  constexpr int64_t kMost = 512;
  MatmulProbe probe;
  int64_t largest = 0, numel = 0, flops = 0;
  for (const ForwardOrderGraph* chunk : chunks) {
    flops += chunk->work().flops;
    for (const Parameter* parameter : chunk->first_use_order()) {
      numel += parameter->numel();
      if (parameter->shape().rank() < 2 || parameter->numel() <= largest) continue;
      largest = parameter->numel();
      probe.in = std::min(kMost, parameter->shape()[-1]);
      probe.out = std::min(kMost, largest / parameter->shape()[-1]);
      probe.dtype = parameter->dtype();
    }
  }
  // Each element of a weight takes part in one multiplication and addition a row.
  if (numel > 0) probe.rows = std::min(kMost, std::max<int64_t>(1, flops / (2 * numel)));
  return probe;
}

Costs MeasureCosts(const OpContext& context, const DataParallelGroups& groups,
                   const MatmulProbe& probe, const SecondsClock& clock) {
  const Stopwatch stopwatch(context, groups, clock);
  const auto gathers = stopwatch.Gathers(), reductions = stopwatch.Reductions();
  double agreed[] = {
      gathers[0],      gathers[1], reductions[0], reductions[1], stopwatch.Flop(probe),
      stopwatch.Byte()};
  // Along the rows of the grid, then over the rows: the largest of all.
  for (comm::ProcessGroup* group : {groups.tensor_parallel, groups.reduce}) {
    TakeLargest(context, *group, agreed);
  }
  Costs costs;
  if (groups.gather->size() > 1) costs.gather = Fit(agreed[0], agreed[1]);
  costs.reduce = Fit(agreed[2], agreed[3]);
  costs.flop = agreed[4];
  costs.byte = agreed[5];
  costs.update = kUpdateBytes * costs.byte;
  return costs;
}

}  // namespace forerun
