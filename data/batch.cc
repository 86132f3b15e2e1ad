// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <vector>

#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/tensor/dtype.h"
#include "core/tensor/host_tensor.h"

namespace forerun {
absl::StatusOr<TokenBatch> MakeTokenBatch(const Dataset& dataset,
                                          absl::Span<const int64_t> samples) {
  FR_CHECK(!samples.empty());
  const int64_t length = dataset.seq_length();
  const int64_t batch = static_cast<int64_t>(samples.size());
  const TokenBatch result{HostTensor({length, batch}, DType::kI32),
                          HostTensor({length, batch}, DType::kI32)};
  int32_t* tokens = result.tokens.mutable_data<int32_t>();
  int32_t* targets = result.targets.mutable_data<int32_t>();
  std::vector<int32_t> sample(static_cast<size_t>(length) + 1);
  for (int64_t i = 0; i < batch; ++i) {
    FR_RETURN_IF_ERROR(dataset.Get(samples[i], absl::MakeSpan(sample)));
    for (int64_t t = 0; t < length; ++t) {
      tokens[t * batch + i] = sample[t];
      targets[t * batch + i] = sample[t + 1];
    }
  }
  return result;
}

}  // namespace forerun
