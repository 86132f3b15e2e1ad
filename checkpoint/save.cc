// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "core/base/check.h"
#include "core/base/output_file.h"
#include "core/base/status_macros.h"
#include "core/device/device.h"
#include "xxhash.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, " cannot be made: ", error.message()));
}

absl::Status Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, " cannot be removed: ", error.message()));
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(from, " cannot be renamed to ", to, ": ", std::strerror(errno)));
}

absl::Status CheckValues(const StatePiece& piece) {
  FR_CHECK(piece.values.defined() && piece.values.is_contiguous()) << piece.name;
  const Region region{piece.box, piece.begin, piece.values.numel()};
  FR_CHECK(IsInside(region, piece.global))
      << piece.name << ": elements from " << piece.begin << " on of a box of " << piece.box.extent
      << " at " << piece.box.offset << " in " << piece.global;
  if (piece.values.device().kind == DeviceKind::kCpu) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(piece.name, " is to be saved from memory that is not the cpu's"));
}

// What one rank saves. Two passes over the states: the first lists, the second writes.
class RankWriter {
 public:
  RankWriter(const std::string& folder, int rank)
      : file_name_(RankFile(rank)), path_(absl::StrCat(folder, "/", file_name_)) {}

  absl::Status Run(absl::Span<Stateful* const> states) {
    for (Stateful* state : states) {
      FR_RETURN_IF_ERROR(state->Save([this](const StatePiece& piece) { return List(piece); }));
    }
    const SafetensorsMetadata metadata = {{kPiecesMetadata, PiecesToJson(pieces_)}};
    FR_ASSIGN_OR_RETURN(writer_, SafetensorsWriter::Create(path_, entries_, metadata));
    for (Stateful* state : states) {
      FR_RETURN_IF_ERROR(state->Save([this](const StatePiece& piece) { return Write(piece); }));
    }
    return writer_->Publish();
  }

 private:
  absl::Status List(const StatePiece& piece) {
    FR_RETURN_IF_ERROR(CheckValues(piece));
    const Tensor& values = piece.values;
    const uint64_t hash = XXH64(values.raw_data(), static_cast<size_t>(values.bytes()), 0);
    const Region region{piece.box, piece.begin, values.numel()};
    pieces_.push_back({piece.name, piece.global, region, values.dtype(), file_name_,
                       UniqueKey(piece.name), hash});
    // A piece that is a whole box has the box's shape, for other programs to read.
    const bool is_whole = values.numel() == piece.box.extent.numel();
    entries_.push_back(
        {pieces_.back().key, values.dtype(), is_whole ? piece.box.extent : Shape{values.numel()}});
    return absl::OkStatus();
  }

  absl::Status Write(const StatePiece& piece) {
    const size_t index = next_++;
    const bool same = index < pieces_.size() && pieces_[index].name == piece.name &&
                      pieces_[index].region.begin == piece.begin &&
                      pieces_[index].region.numel == piece.values.numel();
    FR_CHECK(same) << "piece " << index << " (" << piece.name << ") differs between two passes";
    return writer_->Write(index, piece.values.raw_data());
  }

  std::string UniqueKey(const std::string& name) {
    std::string key = name;
    for (int i = 1; !keys_.insert(key).second; ++i) key = absl::StrCat(name, "#", i);
    return key;
  }

  const std::string file_name_;
  const std::string path_;
  std::vector<SavedPiece> pieces_;
  std::vector<SafetensorsEntry> entries_;
  std::set<std::string> keys_;
  std::unique_ptr<SafetensorsWriter> writer_;
  size_t next_ = 0;
};

// Every element of every tensor is saved once. Counting shows all but a gap that makes up for a
// double, which loading would find.
absl::Status CheckCoverage(const std::vector<SavedPiece>& pieces) {
  struct Seen {
    Shape global;
    int64_t numel = 0;
  };
  std::map<std::string, Seen> tensors;
  for (const SavedPiece& piece : pieces) {
    Seen& seen = tensors.try_emplace(piece.name, Seen{piece.global}).first->second;
    if (!(seen.global == piece.global)) {
      return absl::InternalError(absl::StrCat("ranks save ", piece.name, " with the shapes ",
                                              seen.global.ToString(), " and ",
                                              piece.global.ToString()));
    }
    seen.numel += piece.region.numel;
  }
  for (const auto& [name, seen] : tensors) {
    if (seen.numel == seen.global.numel()) continue;
    return absl::InternalError(absl::StrCat("the ranks together save ", seen.numel, " elements of ",
                                            name, ", whose shape ", seen.global.ToString(), " has ",
                                            seen.global.numel()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> CollectManifest(const SaveOptions& options, const std::string& folder) {
  Manifest manifest{options.iteration, options.world_size, options.metadata, {}};
  for (int rank = 0; rank < options.world_size; ++rank) {
    const auto file = SafetensorsReader::Open(absl::StrCat(folder, "/", RankFile(rank)));
    FR_RETURN_IF_ERROR(file.status());
    const auto text = (*file)->metadata().find(kPiecesMetadata);
    FR_CHECK(text != (*file)->metadata().end()) << (*file)->path();
    FR_ASSIGN_OR_RETURN(std::vector<SavedPiece> pieces, ParsePieces(text->second, (*file)->path()));
    std::move(pieces.begin(), pieces.end(), std::back_inserter(manifest.pieces));
  }
  FR_RETURN_IF_ERROR(CheckCoverage(manifest.pieces));
  return manifest;
}

// Gives the finished folder `aside` its name. At each moment either `folder` or the older one under
// `old` is there.
absl::Status PublishFolder(const std::string& directory, const std::string& aside,
                           const std::string& folder, const std::string& old) {
  FR_RETURN_IF_ERROR(SyncDirectory(aside));
  if (Exists(folder)) {
    FR_RETURN_IF_ERROR(Remove(old));
    FR_RETURN_IF_ERROR(Rename(folder, old));
  }
  FR_RETURN_IF_ERROR(Rename(aside, folder));
  return SyncDirectory(directory);
}

// Removes the checkpoint of an iteration. It is gone at once or there as a whole.
absl::Status RemoveIteration(const std::string& directory, int64_t iteration) {
  const std::string folder = IterationFolder(directory, iteration);
  if (!Exists(folder)) return absl::OkStatus();
  const std::string aside = absl::StrCat(folder, ".tmp");
  FR_RETURN_IF_ERROR(Remove(aside));
  FR_RETURN_IF_ERROR(Rename(folder, aside));
  return Remove(aside);
}

absl::Status NameLatest(const SaveOptions& options) {
  const absl::StatusOr<int64_t> before = LatestIteration(options.directory);
  FR_RETURN_IF_ERROR(
      WriteFile(LatestFile(options.directory), absl::StrCat(options.iteration, "\n")));
  const bool goes = before.ok() && *before < options.iteration && options.retain_interval > 0 &&
                    *before % options.retain_interval != 0;
  return goes ? RemoveIteration(options.directory, *before) : absl::OkStatus();
}

absl::Status Publish(const SaveOptions& options, const std::string& folder,
                     const std::string& aside) {
  FR_ASSIGN_OR_RETURN(const Manifest manifest, CollectManifest(options, aside));
  FR_RETURN_IF_ERROR(WriteFile(absl::StrCat(aside, "/", kManifestFile), manifest.ToJson()));
  const std::string old = absl::StrCat(folder, ".old");
  FR_RETURN_IF_ERROR(PublishFolder(options.directory, aside, folder, old));
  FR_RETURN_IF_ERROR(NameLatest(options));
  return Remove(old);
}

// Clears what interrupted saves and removals of any iteration left at `path`. An .old folder whose
// iteration has no other is its checkpoint, and gets the name back.
absl::Status CleanUp(const fs::path& path) {
  if (!absl::StartsWith(path.filename().string(), kIterationPrefix)) return absl::OkStatus();
  if (path.extension() == ".tmp") return Remove(path.string());
  if (path.extension() != ".old") return absl::OkStatus();
  const std::string folder = fs::path(path).replace_extension().string();
  return Exists(folder) ? Remove(path.string()) : Rename(path.string(), folder);
}

absl::Status CleanUpAll(const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat(directory, " cannot be read: ", error.message()));
  }
  for (const fs::path& path : paths) FR_RETURN_IF_ERROR(CleanUp(path));
  return absl::OkStatus();
}

absl::Status PrepareFolder(const std::string& directory, const std::string& aside) {
  FR_RETURN_IF_ERROR(MakeFolders(directory));
  FR_RETURN_IF_ERROR(CleanUpAll(directory));
  return MakeFolders(aside);
}

}  // namespace

absl::Status SaveCheckpoint(const SaveOptions& options, absl::Span<Stateful* const> states,
                            Agree agree) {
  FR_CHECK(options.rank >= 0 && options.rank < options.world_size);
  const std::string folder = IterationFolder(options.directory, options.iteration);
  const std::string aside = absl::StrCat(folder, ".tmp");
  const bool leads = options.rank == 0;
  FR_RETURN_IF_ERROR(agree(leads ? PrepareFolder(options.directory, aside) : absl::OkStatus()));
  // The writer has closed, or removed, its file before anyone is told.
  const absl::Status written = RankWriter(aside, options.rank).Run(states);
  absl::Status status = agree(written);
  if (status.ok()) status = agree(leads ? Publish(options, folder, aside) : absl::OkStatus());
  if (!status.ok() && leads) Remove(aside).IgnoreError();  // it may be why the disk is full
  return status;
}

}  // namespace forerun
