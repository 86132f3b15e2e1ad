// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "checkpoint/manifest.h"
#include "checkpoint/region.h"
#include "checkpoint/safetensors.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/stateful.h"

// Checkpoints: what the ranks of a job hold, by (tensor name, logical range), so that any layout
// loads what any other saved. docs/checkpoint.md says more.
//
//   DIR/iter_0000010/rank_00003.safetensors   what rank 3 saved; its metadata say which pieces
//   DIR/iter_0000010/manifest.json            every piece of all ranks, with hashes
//   DIR/latest_checkpointed_iteration.txt     "10"
//
// A checkpoint is written as iter_0000010.tmp and renamed when it is complete and on the disk. One
// of the same iteration that was there before is kept as iter_0000010.old until then; a reader that
// finds no iter_0000010 takes that one. So whenever a save is interrupted, what the latest file
// names can be loaded; the next save cleans up.
namespace forerun {

struct SaveOptions {
  std::string directory;  // DIR, on a file system that all ranks share; made where missing
  int64_t iteration = 0;
  int rank = 0;
  int world_size = 1;
  std::map<std::string, std::string> metadata;  // rank 0's counts
  // Once this checkpoint is the latest, the one that was before is removed, unless its iteration is
  // a multiple of this. 0: it stays.
  int64_t retain_interval = 0;
};

// How all ranks of a job learn whether each of them went well: returns once all have called it,
// each with its own status, and then ok on all or an error on all.
using Agree = absl::FunctionRef<absl::Status(const absl::Status& mine)>;

// Saves what `states` say, each rank its own; all ranks of the job call it. They agree up to three
// times; where one fails, all return an error, and nothing is published.
//
// Every state's Save is called twice, to learn what there is and to write it, and must give the
// same both times. Values lie on the cpu. Over all ranks each element of a tensor is saved once:
// anything else is an error that names the tensor.
absl::Status SaveCheckpoint(const SaveOptions& options, absl::Span<Stateful* const> states,
                            Agree agree);

// The iteration of the latest checkpoint in DIR. NotFound where there is none.
absl::StatusOr<int64_t> LatestIteration(const std::string& directory);

// A tensor of a checkpoint.
struct SavedTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::kF32;

  bool operator==(const SavedTensor&) const = default;
};

// A checkpoint open for loading. Each rank opens its own; it belongs to one thread. Files are
// mapped when first needed, and a piece's bytes are checked against their hash before first use.
class Checkpoint {
 public:
  // The checkpoint of `iteration`, or the latest in DIR. One sentence that names the file says
  // what is wrong: no checkpoint, none of that iteration, not a checkpoint, corrupt.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& directory, absl::optional<int64_t> iteration = absl::nullopt);

  const std::string& path() const { return path_; }  // DIR/iter_0000010
  int64_t iteration() const { return manifest_.iteration; }
  int64_t world_size() const { return manifest_.world_size; }  // ranks that saved
  const std::string& checksum() const { return manifest_.checksum; }
  const std::map<std::string, std::string>& metadata() const { return manifest_.metadata; }
  std::vector<SavedTensor> tensors() const;  // by name
  // Whether anything of the tensor was saved.
  bool Contains(const std::string& name) const { return by_name_.contains(name); }

  // Fills all that the state needs.
  absl::Status Load(Stateful& state);
  // Fills one piece from every saved piece that overlaps it. Floating types are cast (fp64 to a
  // 16-bit type by way of fp32); other types must be the same. Fails on a tensor that was not
  // saved, another global shape, missing elements and corrupt files, and then the piece's values
  // are unspecified.
  absl::Status LoadPiece(const StatePiece& piece);
  // Reads everything: every piece matches its hash, and every element of every tensor was saved
  // exactly once. Fails naming the first file or tensor of which that is not so.
  absl::Status Verify();

 private:
  Checkpoint(std::string path, Manifest manifest);
  absl::Status CheckPiece(const StatePiece& piece, const SavedPiece& saved) const;
  // The bytes of a saved piece, once they match their hash.
  absl::StatusOr<absl::Span<const uint8_t>> Bytes(size_t index);
  absl::Status VerifyCoverage(const SavedTensor& tensor) const;
  absl::StatusOr<const SafetensorsReader*> File(const std::string& name);

  const std::string path_;
  const Manifest manifest_;
  absl::flat_hash_map<std::string, std::vector<size_t>> by_name_;  // into manifest_.pieces
  absl::flat_hash_map<std::string, std::shared_ptr<const SafetensorsReader>> files_;
  std::vector<bool> verified_;  // of manifest_.pieces
};

}  // namespace forerun
