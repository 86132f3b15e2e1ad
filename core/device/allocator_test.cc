// SPDX-License-Identifier: Apache-2.0
#include "core/device/allocator.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(CpuAllocator, BlocksAreAlignedAndReused) {
  CpuAllocator allocator;
  InlineStream stream(Device{});
  void* first = allocator.Allocate(1000, stream);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % Allocator::kAlignment, 0u);
  allocator.Free(first, 1000, stream);
  EXPECT_EQ(allocator.bytes_in_use(), 0);
  EXPECT_EQ(allocator.Allocate(1000, stream), first);
  EXPECT_GE(allocator.peak_bytes(), 1000);
  allocator.Free(first, 1000, stream);
}

TEST(CpuAllocator, AtMostAFifthOfABlockIsSlack) {
  CpuAllocator allocator;
  InlineStream stream(Device{});
  for (int64_t bytes = 0; bytes < 40000; bytes += bytes / 7 + 1) {
    void* block = allocator.Allocate(bytes, stream);
    const int64_t taken = allocator.bytes_in_use();
    EXPECT_GE(taken, bytes);
    EXPECT_LE(taken - bytes, std::max<int64_t>(Allocator::kAlignment, taken / 5)) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % Allocator::kAlignment, 0u);
    std::memset(block, 1, bytes);
    allocator.Free(block, bytes, stream);
  }
}

TEST(CpuAllocator, PeakIsTheMostThatWasEverInUse) {
  CpuAllocator allocator;
  InlineStream stream(Device{});
  void* a = allocator.Allocate(1 << 12, stream);
  void* b = allocator.Allocate(1 << 12, stream);
  allocator.Free(a, 1 << 12, stream);
  allocator.Free(b, 1 << 12, stream);
  a = allocator.Allocate(1 << 10, stream);
  EXPECT_EQ(allocator.bytes_in_use(), 1 << 10);
  EXPECT_EQ(allocator.peak_bytes(), 1 << 13);
  allocator.Free(a, 1 << 10, stream);
}

TEST(CpuAllocator, RunningOutIsFatalAndSaysHowMuchWasAskedFor) {
  CpuAllocator allocator;
  InlineStream stream(Device{});
  EXPECT_DEATH(allocator.Allocate(size_t{1} << 60, stream),
               "1152921504606846976 bytes|0x1000000000000000");
  EXPECT_DEATH(allocator.Allocate(static_cast<size_t>(-8), stream), "no memory has");
}

TEST(CpuAllocator, MemoryThatOutlivesItIsFatal) {
  EXPECT_DEATH(
      {
        InlineStream stream(Device{});
        CpuAllocator allocator;
        allocator.Allocate(100, stream);
      },
      "still in use");
}

TEST(CpuAllocator, ThreadsNeverShareALiveBlock) {
  CpuAllocator allocator;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      InlineStream stream(Device{});
      for (int round = 0; round < 200; ++round) {
        auto* block = static_cast<char*>(allocator.Allocate(256, stream));
        std::memset(block, t, 256);
        std::this_thread::yield();
        for (int i = 0; i < 256; ++i) ASSERT_EQ(block[i], t);
        allocator.Free(block, 256, stream);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.bytes_in_use(), 0);
}

TEST(MetaAllocator, CountsWithoutMemory) {
  MetaAllocator allocator;
  InlineStream stream(Device{DeviceKind::kMeta});
  EXPECT_EQ(allocator.Allocate(int64_t{1} << 50, stream), nullptr);
  EXPECT_EQ(allocator.peak_bytes(), int64_t{1} << 50);
}

}  // namespace
}  // namespace forerun
