// SPDX-License-Identifier: Apache-2.0
#include "core/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace forerun {
namespace {

absl::Status Failed(const std::string& path, int error) {
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat("there is no file ", path));
  return absl::UnavailableError(absl::StrCat(path, " cannot be read: ", std::strerror(error)));
}

}  // namespace

MappedFile::MappedFile(std::string path, absl::Span<const uint8_t> bytes)
    : path_(std::move(path)), bytes_(bytes) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed(path, errno);
  const absl::Cleanup close_file = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return Failed(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  absl::Span<const uint8_t> bytes;
  if (info.st_size > 0) {  // mmap refuses an empty range
    const size_t size = static_cast<size_t>(info.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return Failed(path, errno);
    bytes = {static_cast<const uint8_t*>(data), size};
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
}

}  // namespace forerun
