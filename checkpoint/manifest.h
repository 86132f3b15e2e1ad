// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "checkpoint/region.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace forerun {

// Where a part of a logical tensor lies in a checkpoint.
struct SavedPiece {
  std::string name;
  Shape global;
  Region region;
  DType dtype = DType::kF32;
  std::string file;   // in the checkpoint's folder
  std::string key;    // of the tensor in that file
  uint64_t hash = 0;  // XXH64 of its bytes

  bool operator==(const SavedPiece&) const = default;
};

// The contents of a checkpoint's manifest.json: what was saved, and where every piece of it lies.
struct Manifest {
  static constexpr int kVersion = 1;

  int64_t iteration = 0;
  int64_t world_size = 1;  // ranks that saved
  std::map<std::string, std::string> metadata;
  std::vector<SavedPiece> pieces;
  std::string checksum;  // of what was parsed, all the above

  // JSON: {"format", "version", "checksum", "content"}; the checksum is XXH64 of the content's
  // compact form.
  std::string ToJson() const;
  // `path` is what errors name: not a manifest, another version, a wrong checksum.
  static absl::StatusOr<Manifest> Parse(absl::string_view json, const std::string& path);
};

// A list of pieces alone: what a rank says in its own file.
std::string PiecesToJson(absl::Span<const SavedPiece> pieces);
absl::StatusOr<std::vector<SavedPiece>> ParsePieces(absl::string_view json,
                                                    const std::string& path);

}  // namespace forerun
