// SPDX-License-Identifier: Apache-2.0
#include "trainer/overlap_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace forerun {
namespace {

constexpr char kHeads[] = "%6s %10s | %20s %6s %6s %20s | %20s %20s | %s\n";

// "1.234 (1.200)": measured and predicted milliseconds.
std::string Both(double measured, double predicted) {
  return absl::StrFormat("%.3f (%.3f)", measured, predicted);
}

std::string BucketLine(const OverlapFigures& figures, size_t b, double to_ms) {
  const TransferRecord& gather = figures.gathers[b];
  const TransferRecord& reduce = figures.reductions[b];
  const BucketPrediction& predicted = figures.prediction.buckets[b];
  const std::string waited =
      gather.first_reader.empty() ? "" : absl::StrCat(" (", gather.first_reader, ")");
  return absl::StrFormat(
      kHeads, absl::StrCat(b), absl::StrFormat("%.1f", static_cast<double>(gather.bytes) / 1024.0),
      Both(gather.in_flight * to_ms, predicted.gather * 1e3), absl::StrCat(gather.waits),
      absl::StrCat(gather.misses), Both(gather.waited * to_ms, predicted.waited * 1e3),
      Both(reduce.in_flight * to_ms, predicted.reduce * 1e3),
      absl::StrFormat("%.3f", reduce.waited * to_ms),
      absl::StrCat(figures.plan.buckets()[b].pieces[0].parameter->name(), waited));
}

std::string Prices(const Costs& costs) {
  const auto link = [](const LinkCost& cost) {
    return absl::StrFormat("%.0f us + %.2f us/KiB", cost.alpha * 1e6, cost.beta * 1024 * 1e6);
  };
  const bool measured = costs.ToString() != Costs::Nominal().ToString();
  return absl::StrFormat("(predicted with %s: gathers of %s, reductions of %s, %.0f GFLOP/s)\n",
                         measured ? "what was measured" : "nominal costs, nothing was measured",
                         link(costs.gather), link(costs.reduce), 1e-9 / costs.flop);
}

// The gathers' own time, and how much there is to hide it under.
std::string Excess(const Prediction& prediction) {
  if (prediction.buckets.empty()) return "";
  double gathers = 0.0;
  for (const BucketPrediction& bucket : prediction.buckets) gathers += bucket.gather;
  const double compute = prediction.buckets.back().wanted;
  if (gathers <= compute) return "";
  return absl::StrFormat(
      "gathers take %.1f ms by this, and the update and forward pass before the last one is wanted "
      "%.1f ms: communication exceeds compute, and no order hides the rest\n",
      gathers * 1e3, compute * 1e3);
}

}  // namespace

std::string OverlapReport(const OverlapFigures& figures) {
  const double to_ms = 1e3 / static_cast<double>(std::max<int64_t>(1, figures.steps));
  std::string table =
      absl::StrFormat(kHeads, "bucket", "KiB", "gather", "waits", "misses", "exposed", "reduction",
                      "exposed", "first parameter (first to wait)");
  double gather_ms = 0.0, reduce_ms = 0.0;
  for (size_t b = 0; b < figures.plan.buckets().size(); ++b) {
    absl::StrAppend(&table, BucketLine(figures, b, to_ms));
    gather_ms += figures.gathers[b].waited * to_ms;
    reduce_ms += figures.reductions[b].waited * to_ms;
  }
  const Prediction& prediction = figures.prediction;
  absl::StrAppendFormat(&table, kHeads, "sum", "", "", "", "",
                        Both(gather_ms, prediction.stall * 1e3), "",
                        Both(reduce_ms, prediction.tail * 1e3), "ms a step (predicted)");
  const bool messages = std::any_of(
      prediction.buckets.begin(), prediction.buckets.end(),
      [](const BucketPrediction& bucket) { return bucket.gather > 0.0 || bucket.reduce > 0.0; });
  if (messages) absl::StrAppend(&table, Prices(figures.costs), Excess(prediction));
  return table;
}

}  // namespace forerun
