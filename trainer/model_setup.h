// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/split.h"
#include "models/config.h"
#include "parallel/topology/grid.h"
#include "trainer/arguments.h"
#include "trainer/checkpoint_metadata.h"
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

// The model that a checkpoint holds, for one rank. Fails naming the entry that is missing.
absl::StatusOr<GptConfig> ConfigFromMetadata(const Metadata& metadata);

}  // namespace forerun
