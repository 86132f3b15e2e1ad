// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/mapped_file.h"
#include "core/base/output_file.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

// Files of named tensors in the safetensors format, which other programs read too:
//   u64      length n of the header, little-endian
//   char[n]  JSON: {"KEY": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//            "__metadata__": {"NAME": "text", ...}}, padded with spaces so that 8 + n is a
//            multiple of 8
//   bytes    the tensors, row-major; offsets count from here
// The tensors fill the bytes without gap or overlap; wide types come first, so each is aligned.
// Types: F64 F32 F16 BF16 I64 I32 U8.
namespace forerun {

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string key;  // not "__metadata__"
  DType dtype = DType::kF32;
  Shape shape;

  int64_t bytes() const { return shape.numel() * SizeOf(dtype); }
};

// Writes one file, which has its name only once published. Belongs to one thread. Errors name the
// file.
class SafetensorsWriter {
 public:
  // Keys are distinct.
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      const std::string& path, std::vector<SafetensorsEntry> entries,
      const SafetensorsMetadata& metadata);

  // Writes the values of entries[index], entries[index].bytes() bytes. Each entry once, in any
  // order.
  absl::Status Write(size_t index, const void* values);
  // Once, after all entries.
  absl::Status Publish();

 private:
  SafetensorsWriter(std::vector<SafetensorsEntry> entries, std::unique_ptr<OutputFile> file);

  const std::vector<SafetensorsEntry> entries_;
  const std::unique_ptr<OutputFile> file_;
  std::vector<int64_t> positions_;  // in the file, of each entry
  size_t written_ = 0;
};

// Reads one file through a memory map. Immutable: any thread may read.
//
// Invariants, checked by Open: the header is well formed; each tensor's bytes match its type and
// shape and lie in the file; tensors neither overlap nor leave gaps.
class SafetensorsReader {
 public:
  struct Values {
    DType dtype = DType::kF32;
    Shape shape;
    absl::Span<const uint8_t> bytes;  // in the map; in foreign files they may be unaligned
  };

  // Fails with one sentence that names the file and what is wrong with it.
  static absl::StatusOr<std::shared_ptr<const SafetensorsReader>> Open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const SafetensorsMetadata& metadata() const { return metadata_; }
  const std::map<std::string, Values>& tensors() const { return tensors_; }
  const Values* Find(const std::string& key) const;  // null where there is none

 private:
  explicit SafetensorsReader(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}
  absl::Status Parse();
  absl::Status ParseHeader(absl::string_view header, absl::Span<const uint8_t> data);
  absl::Status CheckCoverage(absl::Span<const uint8_t> data) const;

  const std::shared_ptr<const MappedFile> file_;
  SafetensorsMetadata metadata_;
  std::map<std::string, Values> tensors_;
};

}  // namespace forerun
