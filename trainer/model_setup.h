// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/split.h"
#include "models/config.h"
#include "parallel/topology/grid.h"
#include "trainer/arguments.h"
#include "trainer/rank_trainer.h"

namespace forerun {

// From flags to the pieces that a trainer composes. Each fails in one sentence.

// The model; validated, for this tensor and pipeline size too.
absl::StatusOr<GptConfig> ConfigOf(const Arguments& arguments);
absl::StatusOr<ChunkFactory> ChunkFactoryOf(const Arguments& arguments);
absl::StatusOr<Grid> GridOf(const Arguments& arguments);
RankTrainerOptions RankTrainerOptionsOf(const Arguments& arguments);

// The datasets of a job, shared by its ranks.
struct Datasets {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> valid;  // null where the split has no validation part
};
absl::StatusOr<Datasets> OpenDatasets(const Arguments& arguments, const GptConfig& config);

// What a checkpoint says about the model it holds, enough to build it again for generation; and
// back. Reading fails naming the entry that is missing.
std::map<std::string, std::string> ModelMetadata(const GptConfig& config,
                                                 const std::string& tokenizer_type);
absl::StatusOr<GptConfig> ConfigFromMetadata(const std::map<std::string, std::string>& metadata);
// Fails, naming the first difference, where a checkpoint's model is another one.
absl::Status CheckSameModel(const std::map<std::string, std::string>& saved,
                            const std::map<std::string, std::string>& wanted);

}  // namespace forerun
