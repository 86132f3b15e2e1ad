// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace forerun {

// A whole file in memory, read-only, paged in on demand. Immutable: any thread may read. It stays
// valid if the file is renamed, replaced by a rename, or removed; nobody may truncate it in place.
class MappedFile {
 public:
  // NotFound: "there is no file PATH". Otherwise one sentence that names the file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  absl::Span<const uint8_t> bytes() const { return bytes_; }

 private:
  MappedFile(std::string path, absl::Span<const uint8_t> bytes);

  const std::string path_;
  const absl::Span<const uint8_t> bytes_;
};

}  // namespace forerun
