// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background_save.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "checkpoint/test_state.h"
#include "core/base/mutex.h"
#include "core/base/output_file.h"
#include "core/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

std::string Folder(absl::string_view name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/background_", name);
  std::filesystem::remove_all(folder);
  return folder;
}

// Lets a save agree only once it is open.
class Gate {
 public:
  absl::Status Pass(const absl::Status& mine) {
    MutexLock lock(&mutex_);
    while (!open_) changed_.Wait(&mutex_);
    return mine;
  }
  void Open() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status Alone(const absl::Status& mine) { return mine; }

TEST(BackgroundSave, WritesTheBytesOfThatMomentAsASaveInTheForegroundDoes) {
  TestState state;
  TestState::Piece& w = state.AddWhole("w", Shape{3, 5}, DType::kF32);
  state.AddWhole("empty", Shape{0}, DType::kF32);
  state.Add({"w2", Shape{8}, Box::Whole(Shape{8}), 0, 3, DType::kU8});
  state.Add({"w2", Shape{8}, Box::Whole(Shape{8}), 3, 5, DType::kU8}).FillBytes(4);
  w.FillBytes(1);
  SaveOptions options{Folder("here"), 3, 0, 1, {{"seed", "7"}}};
  Stateful* const states[] = {&state};
  ASSERT_TRUE(SaveCheckpoint(options, states, Alone).ok());
  const std::string here = options.directory;
  options.directory = Folder("there");
  Gate gate;
  BackgroundSave background([&](const absl::Status& mine) { return gate.Pass(mine); });
  ASSERT_TRUE(background.Start(options, states).ok());
  EXPECT_FALSE(background.ended());
  w.FillBytes(2);
  gate.Open();
  ASSERT_TRUE(background.Wait().ok());
  for (const std::string file :
       {"/iter_0000003/manifest.json", "/iter_0000003/rank_00000.safetensors",
        "/latest_checkpointed_iteration.txt"}) {
    EXPECT_EQ(*ReadFile(here + file), *ReadFile(options.directory + file)) << file;
  }
}

TEST(BackgroundSave, TheNextOneWaitsForItAndAnErrorIsReportedOnce) {
  TestState state;
  state.AddWhole("w", Shape{3}, DType::kF32);
  Stateful* const states[] = {&state};
  const std::string directory = Folder("errors");
  BackgroundSave background(Alone);
  EXPECT_TRUE(background.Wait().ok());
  ASSERT_TRUE(WriteFile(directory, "in the way").ok());
  ASSERT_TRUE(background.Start({directory, 1, 0, 1, {}}, states).ok());
  while (!background.ended()) std::this_thread::yield();
  EXPECT_THAT(std::string(background.Start({directory, 2, 0, 1, {}}, states).message()),
              testing::HasSubstr(directory));
  EXPECT_FALSE(background.ended());
  std::filesystem::remove(directory);
  ASSERT_TRUE(background.Start({directory, 2, 0, 1, {}}, states).ok());
  ASSERT_TRUE(background.Start({directory, 3, 0, 1, {}}, states).ok());
  EXPECT_TRUE(Checkpoint::Open(directory, 2).ok());
  EXPECT_TRUE(background.Wait().ok());
  EXPECT_EQ(*LatestIteration(directory), 3);
  state.fail = true;
  EXPECT_EQ(background.Start({directory, 4, 0, 1, {}}, states).message(), "this state fails");
}

}  // namespace
}  // namespace forerun
