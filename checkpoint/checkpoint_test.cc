// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "checkpoint/paths.h"
#include "checkpoint/test_state.h"
#include "core/base/output_file.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/stateful.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() { fs::remove_all(directory_); }

  absl::Status Save(int64_t iteration, TestState& state,
                    std::map<std::string, std::string> metadata = {}) {
    return SaveCheckpoint({directory_, iteration, 0, 1, std::move(metadata)}, {&state},
                          [](const absl::Status& mine) { return mine; });
  }
  absl::Status Load(TestState& state, absl::optional<int64_t> iteration = absl::nullopt) {
    const auto checkpoint = Checkpoint::Open(directory_, iteration);
    return checkpoint.ok() ? (*checkpoint)->Load(state) : checkpoint.status();
  }
  std::string LoadError(TestState& state) { return std::string(Load(state).message()); }
  std::string OpenError(absl::optional<int64_t> iteration = absl::nullopt) {
    return std::string(Checkpoint::Open(directory_, iteration).status().message());
  }
  std::string Folder(int64_t iteration) {
    return absl::StrCat(directory_, "/iter_000000", iteration);
  }

  const std::string directory_ = absl::StrCat(
      testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(CheckpointTest, RoundTripsEveryTypeBitwiseWithScalarsAndMetadata) {
  TestState saved;
  TestState loaded;
  int fill = 1;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32,
                            DType::kI64, DType::kU8}) {
    const std::string name(NameOf(dtype));
    saved.AddWhole(name, Shape{3, 5}, dtype).FillBytes(fill++);
    loaded.AddWhole(name, Shape{3, 5}, dtype).FillBytes(0);
  }
  saved.AddWhole("step", Shape{}, DType::kI64).FillBytes(99);
  loaded.AddWhole("step", Shape{}, DType::kI64).FillBytes(0);
  ASSERT_TRUE(Save(3, saved, {{"consumed_samples", "96"}}).ok());
  const auto checkpoint = Checkpoint::Open(directory_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->iteration(), 3);
  EXPECT_EQ((*checkpoint)->world_size(), 1);
  EXPECT_EQ((*checkpoint)->metadata().at("consumed_samples"), "96");
  EXPECT_TRUE((*checkpoint)->Contains("step"));
  EXPECT_FALSE((*checkpoint)->Contains("other"));
  const absl::Status status = (*checkpoint)->Load(loaded);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(loaded.bytes(), saved.bytes());
}

TEST_F(CheckpointTest, FloatingTypesAreCastAndOthersAreNot) {
  TestState saved;
  TestState::Piece& w = saved.AddWhole("w", Shape{4}, DType::kF32);
  const float values[4] = {1.0f, 1.0f + 3.0f / 256, -2.5f, 65536.0f};
  std::memcpy(w.memory.data(), values, sizeof values);
  ASSERT_TRUE(Save(1, saved).ok());
  TestState wider;
  const TestState::Piece& d = wider.AddWhole("w", Shape{4}, DType::kF64);
  TestState narrower;
  const TestState::Piece& b = narrower.AddWhole("w", Shape{4}, DType::kBF16);
  ASSERT_TRUE(Load(wider).ok());
  ASSERT_TRUE(Load(narrower).ok());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(d.tensor().data<double>()[i], values[i]);
    EXPECT_EQ(b.tensor().data<BFloat16>()[i].bits, BFloat16(values[i]).bits);
  }
  TestState integer;
  integer.AddWhole("w", Shape{4}, DType::kI32);
  EXPECT_THAT(LoadError(integer), HasSubstr("w is int32 here and fp32 in the checkpoint"));
}

TEST_F(CheckpointTest, WhatIsMissingOrShapedOtherwiseIsNamed) {
  TestState saved;
  saved.AddWhole("w", Shape{4, 6}, DType::kF32);
  ASSERT_TRUE(Save(1, saved).ok());
  TestState absent;
  absent.AddWhole("v", Shape{4, 6}, DType::kF32);
  EXPECT_THAT(LoadError(absent), HasSubstr("iter_0000001 has no v"));
  TestState other;
  other.AddWhole("w", Shape{6, 4}, DType::kF32);
  EXPECT_THAT(LoadError(other), HasSubstr("w has shape [6, 4] here and [4, 6] in the checkpoint"));
}

TEST_F(CheckpointTest, TheFirstMissingRangeIsNamed) {
  // Saved: elements 0 to 11 twice, 12 to 23 never, so that a count alone would not notice.
  TestState saved;
  saved.Add({"w", Shape{4, 6}, Box::Whole(Shape{4, 6}), 0, 12, DType::kF32});
  saved.Add({"w", Shape{4, 6}, Box::Whole(Shape{4, 6}), 0, 12, DType::kF32});
  ASSERT_TRUE(Save(1, saved).ok());
  TestState loaded;
  loaded.Add({"w", Shape{4, 6}, {Shape{1, 2}, Shape{3, 4}}, 1, 9, DType::kF32});
  EXPECT_THAT(LoadError(loaded),
              HasSubstr("lacks elements 4 to 10 of the box [3, 4] at [1, 2] of w"));
}

TEST_F(CheckpointTest, ASaveThatLeavesElementsOutOrDoublesThemIsRefused) {
  for (const int64_t numel : {5, 7}) {
    TestState state;
    state.Add({"w", Shape{6}, Box::Whole(Shape{6}), 0, 4, DType::kF32});
    state.Add({"w", Shape{6}, Box::Whole(Shape{6}), 6 - (numel - 4), numel - 4, DType::kF32});
    EXPECT_THAT(std::string(Save(1, state).message()),
                HasSubstr(absl::StrCat("save ", numel, " elements of w, whose shape [6] has 6")));
    EXPECT_FALSE(fs::exists(Folder(1)));
  }
}

TEST_F(CheckpointTest, FoldersWithoutACheckpointAreToldApart) {
  EXPECT_TRUE(absl::IsNotFound(Checkpoint::Open(directory_).status()));
  EXPECT_THAT(OpenError(), HasSubstr("holds no checkpoint: there is no file"));
  EXPECT_THAT(OpenError(5), HasSubstr("has no checkpoint of iteration 5"));
  fs::create_directories(Folder(5));
  EXPECT_THAT(OpenError(5), HasSubstr("iter_0000005 is not a checkpoint: there is no file"));
  ASSERT_TRUE(WriteFile(Folder(5) + "/manifest.json", "{}").ok());
  EXPECT_THAT(OpenError(5), HasSubstr("manifest.json is not the manifest of a checkpoint"));
  ASSERT_TRUE(WriteFile(LatestFile(directory_), "six").ok());
  EXPECT_THAT(OpenError(), HasSubstr("does not hold the number of an iteration"));
  ASSERT_TRUE(WriteFile(LatestFile(directory_), "6").ok());
  EXPECT_THAT(OpenError(), HasSubstr("has no checkpoint of iteration 6"));
}

TEST_F(CheckpointTest, TheLatestIsLoadedUnlessAnotherIsAskedFor) {
  TestState state;
  TestState::Piece& w = state.AddWhole("w", Shape{8}, DType::kU8);
  for (const int64_t iteration : {1, 2}) {
    w.FillBytes(static_cast<int>(iteration));
    ASSERT_TRUE(Save(iteration, state).ok());
  }
  const auto two = state.bytes();
  w.FillBytes(1);
  const auto one = state.bytes();
  ASSERT_TRUE(Load(state).ok());
  EXPECT_EQ(state.bytes(), two);
  ASSERT_TRUE(Load(state, 1).ok());
  EXPECT_EQ(state.bytes(), one);
  EXPECT_EQ(*ReadFile(LatestFile(directory_)), "2\n");
}

TEST_F(CheckpointTest, SavingAnIterationAgainReplacesItAndCleansUpAfterInterruptedSaves) {
  TestState state;
  TestState::Piece& w = state.AddWhole("w", Shape{8}, DType::kU8);
  ASSERT_TRUE(Save(1, state).ok());
  w.FillBytes(42);
  const auto expected = state.bytes();
  for (const char* left : {"1.tmp/stale", "7.tmp/stale", "1.old/stale", "5.old/all_there_is"}) {
    fs::create_directories(absl::StrCat(directory_, "/iter_000000", left));
  }
  ASSERT_TRUE(Save(1, state).ok());
  w.FillBytes(0);
  ASSERT_TRUE(Load(state).ok());
  EXPECT_EQ(state.bytes(), expected);
  EXPECT_FALSE(fs::exists(Folder(1) + ".old"));
  EXPECT_FALSE(fs::exists(Folder(1) + ".tmp"));
  EXPECT_FALSE(fs::exists(Folder(1) + "/stale"));
  EXPECT_FALSE(fs::exists(Folder(7) + ".tmp"));
  EXPECT_FALSE(fs::exists(Folder(5) + ".old"));
  EXPECT_TRUE(fs::exists(Folder(5) + "/all_there_is"));
}

TEST_F(CheckpointTest, TheOneBeforeGoesUnlessItsIterationIsRetained) {
  TestState state;
  state.AddWhole("w", Shape{8}, DType::kU8);
  for (const int64_t iteration : {2, 3, 4, 6, 5}) {  // the last: a run that began again before 6
    const SaveOptions options{directory_, iteration, 0, 1, {}, /*retain_interval=*/2};
    ASSERT_TRUE(
        SaveCheckpoint(options, {&state}, [](const absl::Status& mine) { return mine; }).ok());
    EXPECT_TRUE(Load(state).ok());
  }
  std::set<int64_t> kept;
  for (int64_t iteration = 1; iteration <= 6; ++iteration) {
    if (fs::exists(Folder(iteration))) kept.insert(iteration);
    EXPECT_FALSE(fs::exists(Folder(iteration) + ".tmp"));
  }
  EXPECT_EQ(kept, (std::set<int64_t>{2, 4, 5, 6}));
}

TEST_F(CheckpointTest, AnInterruptedSaveLeavesTheOlderCheckpoint) {
  TestState state;
  TestState::Piece& w = state.AddWhole("w", Shape{8}, DType::kU8);
  ASSERT_TRUE(Save(1, state).ok());
  const auto expected = state.bytes();
  for (const int64_t iteration : {1, 2}) {
    for (int fatal = 1; fatal <= 2; ++fatal) {  // the barrier at which the job dies
      w.FillBytes(77);
      int count = 0;
      const absl::Status status = SaveCheckpoint(
          {directory_, iteration, 0, 1, {}}, {&state}, [&](const absl::Status& mine) {
            return ++count == fatal ? absl::AbortedError("killed") : mine;
          });
      EXPECT_EQ(status.message(), "killed");
      ASSERT_TRUE(Load(state).ok());
      EXPECT_EQ(state.bytes(), expected);
    }
  }
  // Between the two renames of a replacement only the older one is there, under another name.
  fs::rename(Folder(1), Folder(1) + ".old");
  w.FillBytes(0);
  ASSERT_TRUE(Load(state).ok());
  EXPECT_EQ(state.bytes(), expected);
  ASSERT_TRUE(Save(1, state).ok());
  EXPECT_FALSE(fs::exists(Folder(1) + ".old"));
}

TEST_F(CheckpointTest, AStateThatCannotBeSavedPublishesNothing) {
  TestState state;
  state.AddWhole("w", Shape{8}, DType::kU8);
  ASSERT_TRUE(Save(1, state).ok());
  state.fail = true;
  EXPECT_EQ(Save(2, state).message(), "this state fails");
  EXPECT_FALSE(fs::exists(Folder(2)));
  EXPECT_EQ(*LatestIteration(directory_), 1);
}

// Fails once its file is there.
class FailsWhenWritten final : public Stateful {
 public:
  absl::Status Save(absl::FunctionRef<absl::Status(const StatePiece&)>) override {
    return ++passes_ == 2 ? absl::InternalError("this state fails") : absl::OkStatus();
  }
  absl::Status Load(absl::FunctionRef<absl::Status(const StatePiece&)>) override {
    return absl::OkStatus();
  }

 private:
  int passes_ = 0;
};

// Otherwise its file would go while rank 0 removes the folder, which then may fail.
TEST_F(CheckpointTest, ARankThatFailsHasRemovedItsFileWhenTheOthersLearnOfIt) {
  FailsWhenWritten state;
  const auto agree = [&](const absl::Status& mine) {
    EXPECT_TRUE(mine.ok() || fs::is_empty(Folder(1) + ".tmp"));
    return mine;
  };
  EXPECT_EQ(SaveCheckpoint({directory_, 1, 0, 1, {}}, {&state}, agree).message(),
            "this state fails");
}

// Changes one byte of a file in place.
void FlipByte(const std::string& path, int64_t position) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(position);
  const char flipped = static_cast<char>(file.get() ^ 0x10);
  file.seekp(position);
  file.put(flipped);
}

TEST_F(CheckpointTest, ACorruptByteAnywhereIsAnErrorThatNamesTheFile) {
  TestState state;
  state.AddWhole("w", Shape{8}, DType::kF32).FillBytes(5);
  state.AddWhole("v", Shape{3}, DType::kU8).FillBytes(6);
  ASSERT_TRUE(Save(1, state).ok());
  const auto expected = state.bytes();
  for (const std::string name : {"/manifest.json", "/rank_00000.safetensors"}) {
    const std::string path = Folder(1) + name;
    const int64_t size = static_cast<int64_t>(fs::file_size(path));
    for (int64_t i = 0; i < size; ++i) {
      FlipByte(path, i);
      const absl::Status status = Load(state);
      // Padding and the rank's own description of its pieces are not read on loading.
      if (status.ok()) {
        EXPECT_EQ(state.bytes(), expected) << path << " byte " << i;
      } else {
        EXPECT_THAT(std::string(status.message()), HasSubstr(name)) << i;
      }
      FlipByte(path, i);
    }
  }
  const std::string path = Folder(1) + "/rank_00000.safetensors";
  FlipByte(path, static_cast<int64_t>(fs::file_size(path)) - 1);
  EXPECT_THAT(LoadError(state), HasSubstr("is corrupt: the bytes of v"));
}

TEST_F(CheckpointTest, TruncatedAndMissingFilesAreNamed) {
  TestState state;
  state.AddWhole("w", Shape{8}, DType::kF32);
  ASSERT_TRUE(Save(1, state).ok());
  const std::string path = Folder(1) + "/rank_00000.safetensors";
  for (uintmax_t size = fs::file_size(path); size-- > 0;) {
    fs::resize_file(path, size);
    ASSERT_THAT(LoadError(state), HasSubstr("rank_00000.safetensors")) << size;
  }
  fs::remove(path);
  EXPECT_EQ(LoadError(state), "there is no file " + path);
  fs::resize_file(Folder(1) + "/manifest.json", 20);
  EXPECT_THAT(LoadError(state), HasSubstr("manifest.json is corrupt"));
}

TEST_F(CheckpointTest, OnlyFilesThatAreNeededAreReadAndChecked) {
  const auto part = [](int rank) {
    auto state = std::make_unique<TestState>();
    state->Add({"w", Shape{8}, Box::Whole(Shape{8}), 4 * rank, 4, DType::kF32}).FillBytes(rank + 1);
    return state;
  };
  ASSERT_TRUE(SaveRanks(directory_, 1, 2, part).ok());
  fs::resize_file(Folder(1) + "/rank_00001.safetensors", 3);
  const auto first = part(0);
  const auto expected = first->bytes();
  EXPECT_TRUE(Load(*first).ok());
  EXPECT_EQ(first->bytes(), expected);
  EXPECT_THAT(LoadError(*part(1)), HasSubstr("rank_00001.safetensors is truncated"));
}

TEST_F(CheckpointTest, ARankThatFailsFailsAllAndNobodyHangs) {
  const auto part = [](int rank) {
    auto state = std::make_unique<TestState>();
    state->Add({"w", Shape{8}, Box::Whole(Shape{8}), 2 * rank, 2, DType::kF32});
    state->fail = rank == 2;
    return state;
  };
  std::vector<absl::Status> statuses = SaveRanksEach(directory_, 1, 4, part);
  for (const absl::Status& status : statuses) EXPECT_EQ(status.message(), "this state fails");
  EXPECT_FALSE(fs::exists(Folder(1)));
  EXPECT_FALSE(fs::exists(Folder(1) + ".tmp"));
}

}  // namespace
}  // namespace forerun
