// SPDX-License-Identifier: Apache-2.0
#include "trainer/overlap_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace forerun {

std::string OverlapReport(const BucketPlan& plan, const std::vector<TransferRecord>& gathers,
                          const std::vector<TransferRecord>& reductions, int64_t steps) {
  const double to_ms = 1e3 / static_cast<double>(std::max<int64_t>(1, steps));
  std::string table = absl::StrFormat("%6s %10s | %9s %7s %7s %10s | %9s %10s | %s\n", "bucket",
                                      "KiB", "gather", "waits", "misses", "exposed", "reduces",
                                      "exposed", "first parameter (first to wait)");
  double gather_ms = 0.0, reduce_ms = 0.0;
  for (size_t b = 0; b < plan.buckets().size(); ++b) {
    const TransferRecord& gather = gathers[b];
    const TransferRecord& reduce = reductions[b];
    const std::string waited =
        gather.first_reader.empty() ? "" : absl::StrCat(" (", gather.first_reader, ")");
    absl::StrAppendFormat(&table, "%6d %10.1f | %9.3f %7d %7d %10.3f | %9d %10.3f | %s%s\n",
                          static_cast<int>(b), static_cast<double>(gather.bytes) / 1024.0,
                          gather.in_flight * to_ms, gather.waits, gather.misses,
                          gather.waited * to_ms, reduce.transfers, reduce.waited * to_ms,
                          plan.buckets()[b].pieces[0].parameter->name(), waited);
    gather_ms += gather.waited * to_ms;
    reduce_ms += reduce.waited * to_ms;
  }
  absl::StrAppendFormat(&table, "%6s %10s | %9s %7s %7s %10.3f | %9s %10.3f | ms a step\n", "sum",
                        "", "", "", "", gather_ms, "", reduce_ms);
  return table;
}

}  // namespace forerun
