// SPDX-License-Identifier: Apache-2.0
#include "core/base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/mapped_file.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// 0, or the error number.
int WriteFully(int fd, int64_t offset, const char* data, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t written = pwrite(fd, data, static_cast<size_t>(bytes), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    data += written;
    offset += written;
    bytes -= written;
  }
  return 0;
}

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat(path, " cannot be written: ", std::strerror(error)));
}

}  // namespace

OutputFile::OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(Aside().c_str());
}

std::string OutputFile::Aside() const { return absl::StrCat(path_, ".tmp"); }

absl::Status OutputFile::Failed(int error) const { return CannotWrite(path_, error); }

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  const std::string aside = absl::StrCat(path, ".tmp");
  const int fd = open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return CannotWrite(path, errno);
  return std::unique_ptr<OutputFile>(new OutputFile(path, fd));
}

absl::Status OutputFile::Flush() {
  const int error =
      WriteFully(fd_, appended_, buffer_.data(), static_cast<int64_t>(buffer_.size()));
  if (error != 0) return Failed(error);
  appended_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Append(const void* data, int64_t bytes) {
  FR_CHECK_GE(fd_, 0) << path_ << " was already published";
  const size_t count = static_cast<size_t>(bytes);
  if (buffer_.size() + count > kBufferBytes) FR_RETURN_IF_ERROR(Flush());
  if (count <= kBufferBytes) {
    buffer_.append(static_cast<const char*>(data), count);
    return absl::OkStatus();
  }
  FR_RETURN_IF_ERROR(WriteAt(appended_, data, bytes));
  appended_ += bytes;
  return absl::OkStatus();
}

absl::Status OutputFile::Append(absl::string_view text) {
  return Append(text.data(), static_cast<int64_t>(text.size()));
}

absl::Status OutputFile::WriteAt(int64_t offset, const void* data, int64_t bytes) {
  FR_CHECK_GE(fd_, 0) << path_ << " was already published";
  const int error = WriteFully(fd_, offset, static_cast<const char*>(data), bytes);
  return error == 0 ? absl::OkStatus() : Failed(error);
}

absl::Status OutputFile::Publish() {
  FR_CHECK_GE(fd_, 0) << path_ << " was already published";
  FR_RETURN_IF_ERROR(Flush());
  if (fsync(fd_) != 0) return Failed(errno);
  if (std::rename(Aside().c_str(), path_.c_str()) != 0) return Failed(errno);
  close(std::exchange(fd_, -1));
  return SyncDirectory(DirectoryOf(path_));
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, OutputFile::Create(path));
  FR_RETURN_IF_ERROR(file->Append(contents));
  return file->Publish();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  FR_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return std::string(file->bytes().begin(), file->bytes().end());
}

absl::Status SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return CannotWrite(directory, errno);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  // Some file systems cannot sync a directory, and then need not.
  if (result == 0 || error == EINVAL) return absl::OkStatus();
  return CannotWrite(directory, error);
}

}  // namespace forerun
