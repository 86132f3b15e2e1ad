// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace forerun {

std::string LogLine(const StepMetrics& m, int64_t train_iters, int64_t global_batch_size) {
  const std::string now = absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::Now(), absl::LocalTimeZone());
  return absl::StrFormat(
      " [%s] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | "
      "tokens/s: %.0f | exposed (ms): gather %.1f, reduce %.1f, pipeline %.1f | "
      "learning rate: %.6E | global batch size: %5d | lm loss: %.6E | grad norm: %.3f |",
      now, m.iteration, train_iters, m.consumed_samples, m.step_ms, m.tokens_per_second,
      m.exposed.param_gather_ms, m.exposed.grad_reduce_ms, m.exposed.pipeline_ms, m.lr,
      global_batch_size, m.loss, m.grad_norm);
}

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& path) {
  std::ofstream file(path, std::ios::app);
  if (!file) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write metrics file ", path, ": ", std::strerror(errno)));
  }
  return MetricsFile(path, std::move(file));
}

absl::Status MetricsFile::Write(const StepMetrics& m) {
  const nlohmann::ordered_json line = {
      {"iteration", m.iteration},
      {"consumed_samples", m.consumed_samples},
      {"loss", m.loss},
      {"grad_norm", m.grad_norm},
      {"lr", m.lr},
      {"tokens_per_second", m.tokens_per_second},
      {"step_ms", m.step_ms},
      {"exposed_ms",
       {{"param_gather", m.exposed.param_gather_ms},
        {"grad_reduce", m.exposed.grad_reduce_ms},
        {"pipeline", m.exposed.pipeline_ms}}},
  };
  file_ << line.dump() << std::endl;
  if (file_) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("cannot write metrics file ", path_, ": ", std::strerror(errno)));
}

}  // namespace forerun
