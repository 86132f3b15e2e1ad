// SPDX-License-Identifier: Apache-2.0
// At each change that a save makes to the file system, the process dies or the system refuses: what
// the latest file names is then a whole checkpoint, the new one or the one before, and the next
// save works. The calls are counted, and refused, in this binary's own versions of them.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/test_state.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

constexpr int kDead = 42;  // exit code

// What happens at the call with number `at`, counted from 1; 0: nothing. One thread.
struct Fault {
  int at = 0;
  int error = 0;  // 0: the process dies before the call
  int calls = 0;
};
Fault fault;

// Whether this call is refused, and then errno is set.
bool Refused() {
  if (++fault.calls != fault.at) return false;
  if (fault.error == 0) _exit(kDead);
  errno = fault.error;
  return true;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if ((flags & O_CREAT) != 0 && Refused()) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

// Dies, or is refused, after half of the bytes.
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (fault.calls + 1 == fault.at) syscall(SYS_pwrite64, fd, data, bytes / 2, offset);
  return Refused() ? -1 : syscall(SYS_pwrite64, fd, data, bytes, offset);
}

// No power fails here, and a disk takes its time.
int fsync(int) { return Refused() ? -1 : 0; }

int rename(const char* from, const char* to) noexcept {
  return Refused() ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}

int mkdir(const char* path, mode_t mode) noexcept {
  return Refused() ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int unlink(const char* path) noexcept {
  return Refused() ? -1 : static_cast<int>(syscall(SYS_unlink, path));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  return Refused() ? -1 : static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
}

}  // extern "C"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::vector<uint8_t>>;

// A save over an older checkpoint. `again`: of the same iteration.
struct Scenario {
  int64_t iteration;
  int64_t retain_interval;
};

class InterruptedSave : public testing::TestWithParam<Scenario> {
 protected:
  InterruptedSave() {
    w_ = &state_.AddWhole("w", Shape{5, 7}, DType::kF32);
    state_.AddWhole("v", Shape{3}, DType::kF32);
  }

  Bytes Values(int fill) {
    w_->FillBytes(fill);
    return state_.bytes();
  }
  absl::Status Save(int64_t iteration, int fill) {
    w_->FillBytes(fill);
    const SaveOptions options{directory_, iteration, 0, 1, {}, GetParam().retain_interval};
    return SaveCheckpoint(options, {&state_}, [](const absl::Status& mine) { return mine; });
  }
  // One of the two checkpoints is the newest, and whole.
  void ExpectWhole() {
    const auto checkpoint = Checkpoint::Open(directory_);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status() << " after " << fault.at;
    EXPECT_EQ((*checkpoint)->Verify(), absl::OkStatus()) << "after " << fault.at;
    w_->FillBytes(0);
    ASSERT_EQ((*checkpoint)->Load(state_), absl::OkStatus()) << "after " << fault.at;
    const Bytes loaded = state_.bytes();
    EXPECT_TRUE(loaded == Values(kOld) || loaded == Values(kNew)) << "after " << fault.at;
  }
  void Restart() {
    fault = {};
    fs::remove_all(directory_);
    ASSERT_EQ(Save(kFirst, kOld), absl::OkStatus());
  }
  void ExpectNextSaveWorks() {
    fault = {};
    ASSERT_EQ(Save(GetParam().iteration, kNew), absl::OkStatus());
    EXPECT_EQ(*LatestIteration(directory_), GetParam().iteration);
    ExpectWhole();
  }

  static constexpr int64_t kFirst = 1;
  static constexpr int kOld = 1, kNew = 2;
  const std::string directory_ = absl::StrCat(testing::TempDir(), "/interrupted");
  TestState state_;
  TestState::Piece* w_ = nullptr;
};

TEST_P(InterruptedSave, DeathAtAnyStepLeavesAWholeCheckpointTheNewest) {
  int deaths = 0;
  for (bool died = true; died; ++deaths) {
    Restart();
    const pid_t child = fork();
    if (child == 0) {
      fault = {deaths + 1, 0, 0};
      _exit(Save(GetParam().iteration, kNew).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    died = WIFEXITED(status) && WEXITSTATUS(status) == kDead;
    EXPECT_TRUE(died || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
    ExpectWhole();
    ExpectNextSaveWorks();
  }
  EXPECT_GT(deaths, 15);
}

TEST_P(InterruptedSave, ARefusalAtAnyStepIsAnErrorThatNamesAFileAndLeavesAWholeCheckpoint) {
  for (const int error : {ENOSPC, EACCES}) {
    for (int at = 1;; ++at) {
      Restart();
      fault = {at, error, 0};
      const absl::Status status = Save(GetParam().iteration, kNew);
      const bool reached = fault.calls >= at;
      fault.at = 0;
      ExpectWhole();
      if (!reached) break;
      EXPECT_FALSE(status.ok()) << at;
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr(directory_));
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr(std::strerror(error)));
      EXPECT_FALSE(fs::exists(absl::StrCat(directory_, "/iter_0000002.tmp"))) << at;
      ExpectNextSaveWorks();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Newer, InterruptedSave, testing::Values(Scenario{2, 0}));
INSTANTIATE_TEST_SUITE_P(Again, InterruptedSave, testing::Values(Scenario{1, 0}));
INSTANTIATE_TEST_SUITE_P(NewerAndTheOldOneGoes, InterruptedSave, testing::Values(Scenario{2, 5}));

}  // namespace
}  // namespace forerun
