// SPDX-License-Identifier: Apache-2.0
#include "core/device/allocator.h"
#include "core/device/device.h"
#include "gtest/gtest.h"

// Blocks are kept and handed out again, which would hide errors from AddressSanitizer; so the
// allocator tells it which bytes are whose.
namespace forerun {
namespace {

TEST(CpuAllocatorUnderAsan, AFreedBlockIsNotToBeTouched) {
  CpuAllocator allocator;
  InlineStream stream(Device{});
  auto* block = static_cast<volatile char*>(allocator.Allocate(100, stream));
  block[99] = 1;
  allocator.Free(const_cast<char*>(block), 100, stream);
  EXPECT_DEATH(block[0] = 1, "use-after-poison");
}

TEST(CpuAllocatorUnderAsan, NothingBehindTheBytesAskedForIsToBeTouched) {
  CpuAllocator allocator;
  InlineStream stream(Device{});
  for (int round = 0; round < 2; ++round) {  // a new block, then the same again
    auto* block = static_cast<volatile char*>(allocator.Allocate(100, stream));
    EXPECT_DEATH(block[100] = 1, "use-after-poison");
    allocator.Free(const_cast<char*>(block), 100, stream);
  }
}

}  // namespace
}  // namespace forerun
