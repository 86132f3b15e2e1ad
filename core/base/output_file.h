// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace forerun {

// A new file, written aside as PATH.tmp and published as PATH by Publish. Until then what PATH was
// before stays untouched; a crash leaves at most PATH.tmp, which the next writer replaces.
// Belongs to one thread; one writer for a path at a time. Errors name the file.
class OutputFile {
 public:
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  // Removes what was written, unless it was published.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }

  // Writes after what was appended before. Buffered.
  absl::Status Append(const void* data, int64_t bytes);
  absl::Status Append(absl::string_view text);
  // Writes at `offset` bytes from the start, where nothing is appended. Not buffered.
  absl::Status WriteAt(int64_t offset, const void* data, int64_t bytes);

  // Forces the bytes to the disk and gives the file its name, replacing an older one. Once.
  absl::Status Publish();

 private:
  OutputFile(std::string path, int fd);
  absl::Status Flush();
  absl::Status Failed(int error) const;
  std::string Aside() const;

  const std::string path_;
  int fd_;                // -1 once published
  int64_t appended_ = 0;  // bytes written by Append, without the buffer's
  std::string buffer_;
};

// One small file, written aside and published.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

// The whole of a small file.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Makes renames, creations and removals inside `directory` durable.
absl::Status SyncDirectory(const std::string& directory);

}  // namespace forerun
