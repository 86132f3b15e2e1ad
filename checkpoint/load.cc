// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/paths.h"
#include "core/base/check.h"
#include "core/base/mapped_file.h"
#include "core/base/output_file.h"
#include "core/base/status_macros.h"
#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "xxhash.h"

namespace forerun {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The folder of an iteration, or what a save that was interrupted while it replaced it left.
absl::StatusOr<std::string> FindFolder(const std::string& directory, int64_t iteration) {
  const std::string folder = IterationFolder(directory, iteration);
  for (const std::string& path : {folder, absl::StrCat(folder, ".old")}) {
    if (IsFolder(path)) return path;
  }
  return absl::NotFoundError(
      absl::StrCat(directory, " has no checkpoint of iteration ", iteration));
}

double ToDouble(double value) { return value; }
template <typename T>
double ToDouble(T value) {
  return static_cast<float>(value);
}

void Store(double value, double* to) { *to = value; }
template <typename T>
void Store(double value, T* to) {
  *to = T(static_cast<float>(value));
}

// Casts `count` elements that may be unaligned.
void Cast(const uint8_t* from, DType from_type, void* to, DType to_type, int64_t count) {
  VisitFloating(from_type, [&](auto from_zero) {
    using From = decltype(from_zero);
    VisitFloating(to_type, [&](auto to_zero) {
      using To = decltype(to_zero);
      To* out = static_cast<To*>(to);
      for (int64_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
        Store(ToDouble(value), out + i);
      }
    });
  });
}

// Fills elements of `values` from the bytes of a saved piece.
void Fill(const Tensor& values, const SavedPiece& saved, absl::Span<const uint8_t> bytes,
          const std::vector<SharedRun>& runs) {
  uint8_t* to = static_cast<uint8_t*>(values.raw_mutable_data());
  const int64_t to_size = SizeOf(values.dtype());
  const int64_t from_size = SizeOf(saved.dtype);
  for (const SharedRun& run : runs) {
    const uint8_t* source = bytes.data() + run.from * from_size;
    uint8_t* target = to + run.to * to_size;
    if (saved.dtype == values.dtype()) {
      std::memcpy(target, source, static_cast<size_t>(run.count * to_size));
    } else {
      Cast(source, saved.dtype, target, values.dtype(), run.count);
    }
  }
}

// Which elements of a piece have been filled.
class Coverage {
 public:
  void Add(const std::vector<SharedRun>& runs) {
    for (const SharedRun& run : runs) {
      if (!ranges_.empty() && ranges_.back().second == run.to) {
        ranges_.back().second += run.count;
      } else {
        ranges_.emplace_back(run.to, run.to + run.count);
      }
    }
  }

  // The first range of [0, numel) that was not filled; empty where all were.
  std::pair<int64_t, int64_t> FirstGap(int64_t numel) {
    std::sort(ranges_.begin(), ranges_.end());
    int64_t end = 0;
    for (const auto& range : ranges_) {
      if (range.first > end) return {end, range.first};
      end = std::max(end, range.second);
    }
    return {end, numel};
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;
};

}  // namespace

absl::StatusOr<int64_t> LatestIteration(const std::string& directory) {
  const std::string path = LatestFile(directory);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(
        absl::StrCat(directory, " holds no checkpoint: ", text.status().message()));
  }
  FR_RETURN_IF_ERROR(text.status());
  int64_t iteration = 0;
  if (absl::SimpleAtoi(*text, &iteration) && iteration >= 0) return iteration;
  return absl::DataLossError(absl::StrCat(path, " does not hold the number of an iteration"));
}

Checkpoint::Checkpoint(std::string path, Manifest manifest)
    : path_(std::move(path)), manifest_(std::move(manifest)), verified_(manifest_.pieces.size()) {
  for (size_t i = 0; i < manifest_.pieces.size(); ++i) {
    by_name_[manifest_.pieces[i].name].push_back(i);
  }
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& directory,
                                                             absl::optional<int64_t> iteration) {
  if (!iteration) {
    FR_ASSIGN_OR_RETURN(iteration, LatestIteration(directory));
  }
  FR_ASSIGN_OR_RETURN(std::string folder, FindFolder(directory, *iteration));
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat(folder, " is not a checkpoint: ", text.status().message()));
  }
  FR_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Parse(*text, path));
  return std::unique_ptr<Checkpoint>(new Checkpoint(std::move(folder), std::move(manifest)));
}

std::vector<SavedTensor> Checkpoint::tensors() const {
  std::map<std::string, SavedTensor> tensors;
  for (const SavedPiece& piece : manifest_.pieces) {
    tensors.try_emplace(piece.name, SavedTensor{piece.name, piece.global, piece.dtype});
  }
  std::vector<SavedTensor> list;
  for (auto& [name, tensor] : tensors) list.push_back(std::move(tensor));
  return list;
}

absl::Status Checkpoint::Load(Stateful& state) {
  return state.Load([this](const StatePiece& piece) { return LoadPiece(piece); });
}

absl::Status Checkpoint::CheckPiece(const StatePiece& piece, const SavedPiece& saved) const {
  if (!(piece.global == saved.global)) {
    return absl::InvalidArgumentError(
        absl::StrCat(piece.name, " has shape ", piece.global.ToString(), " here and ",
                     saved.global.ToString(), " in the checkpoint ", path_));
  }
  const DType type = piece.values.dtype();
  if (type == saved.dtype || (IsFloating(type) && IsFloating(saved.dtype))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(piece.name, " is ", NameOf(type), " here and ",
                                                 NameOf(saved.dtype), " in the checkpoint ",
                                                 path_));
}

absl::Status Checkpoint::LoadPiece(const StatePiece& piece) {
  FR_CHECK(piece.values.defined() && piece.values.is_contiguous()) << piece.name;
  FR_CHECK(piece.values.device().kind == DeviceKind::kCpu) << piece.name;
  const Region wanted{piece.box, piece.begin, piece.values.numel()};
  FR_CHECK(IsInside(wanted, piece.global)) << piece.name;
  const auto found = by_name_.find(piece.name);
  if (found == by_name_.end()) {
    return absl::NotFoundError(absl::StrCat("the checkpoint ", path_, " has no ", piece.name));
  }
  Coverage coverage;
  for (const size_t index : found->second) {
    const SavedPiece& saved = manifest_.pieces[index];
    FR_RETURN_IF_ERROR(CheckPiece(piece, saved));
    const std::vector<SharedRun> runs = SharedRuns(wanted, saved.region);
    if (runs.empty()) continue;
    FR_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, Bytes(index));
    Fill(piece.values, saved, bytes, runs);
    coverage.Add(runs);
  }
  const auto [begin, end] = coverage.FirstGap(wanted.numel);
  if (begin >= end) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the checkpoint ", path_, " lacks elements ",
                                          piece.begin + begin, " to ", piece.begin + end,
                                          " of the box ", piece.box.extent.ToString(), " at ",
                                          piece.box.offset.ToString(), " of ", piece.name));
}

absl::StatusOr<const SafetensorsReader*> Checkpoint::File(const std::string& name) {
  std::shared_ptr<const SafetensorsReader>& file = files_[name];
  if (file == nullptr) {
    FR_ASSIGN_OR_RETURN(file, SafetensorsReader::Open(absl::StrCat(path_, "/", name)));
  }
  return file.get();
}

absl::StatusOr<absl::Span<const uint8_t>> Checkpoint::Bytes(size_t index) {
  const SavedPiece& saved = manifest_.pieces[index];
  FR_ASSIGN_OR_RETURN(const SafetensorsReader* file, File(saved.file));
  const SafetensorsReader::Values* values = file->Find(saved.key);
  if (values == nullptr || values->dtype != saved.dtype ||
      values->shape.numel() != saved.region.numel) {
    return absl::DataLossError(
        absl::StrCat(file->path(), " is corrupt: it lacks ", saved.key, " as the manifest has it"));
  }
  if (!verified_[index] && XXH64(values->bytes.data(), values->bytes.size(), 0) != saved.hash) {
    return absl::DataLossError(absl::StrCat(file->path(), " is corrupt: the bytes of ", saved.key,
                                            " do not match their hash"));
  }
  verified_[index] = true;
  return values->bytes;
}

absl::Status Checkpoint::Verify() {
  for (size_t index = 0; index < manifest_.pieces.size(); ++index) {
    FR_RETURN_IF_ERROR(Bytes(index).status());
  }
  for (const SavedTensor& tensor : tensors()) FR_RETURN_IF_ERROR(VerifyCoverage(tensor));
  return absl::OkStatus();
}

// No element twice, and as many as there are: then each is there.
absl::Status Checkpoint::VerifyCoverage(const SavedTensor& tensor) const {
  const std::vector<size_t>& pieces = by_name_.at(tensor.name);
  int64_t numel = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const SavedPiece& piece = manifest_.pieces[pieces[i]];
    if (!(piece.global == tensor.shape) || piece.dtype != tensor.dtype) {
      return absl::DataLossError(absl::StrCat("pieces of ", tensor.name, " in the checkpoint ",
                                              path_, " differ in shape or type"));
    }
    numel += piece.region.numel;
    for (size_t j = 0; j < i; ++j) {
      if (SharedRuns(piece.region, manifest_.pieces[pieces[j]].region).empty()) continue;
      return absl::DataLossError(
          absl::StrCat("the checkpoint ", path_, " holds elements of ", tensor.name, " twice"));
    }
  }
  if (numel == tensor.shape.numel()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the checkpoint ", path_, " holds ", numel, " of ",
                                          tensor.shape.numel(), " elements of ", tensor.name));
}

}  // namespace forerun
