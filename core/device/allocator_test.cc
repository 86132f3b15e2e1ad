// SPDX-License-Identifier: Apache-2.0
#include "core/device/allocator.h"

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
