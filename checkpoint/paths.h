// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

// The names of a checkpoint's files; see checkpoint.h.
namespace forerun {

constexpr char kManifestFile[] = "manifest.json";
constexpr char kIterationPrefix[] = "iter_";
constexpr char kPiecesMetadata[] = "forerun.pieces";  // in a rank's file

inline std::string LatestFile(const std::string& directory) {
  return absl::StrCat(directory, "/latest_checkpointed_iteration.txt");
}

inline std::string IterationFolder(const std::string& directory, int64_t iteration) {
  return absl::StrFormat("%s/%s%07d", directory, kIterationPrefix, iteration);
}

inline std::string RankFile(int rank) { return absl::StrFormat("rank_%05d.safetensors", rank); }

}  // namespace forerun
