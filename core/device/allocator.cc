// SPDX-License-Identifier: Apache-2.0
#include "core/device/allocator.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/check.h"

namespace forerun {
namespace {

// Larger requests come from a negative or overflown number.
constexpr size_t kMostBytes = size_t{1} << 62;

// Classes a quarter of a power of two apart: at most 25 % of a block is slack, and tensors of
// nearly the same size share blocks.
size_t SizeClass(size_t bytes) {
  bytes = std::max(bytes, Allocator::kAlignment);
  size_t power = Allocator::kAlignment;
  while (power * 2 <= bytes) power *= 2;
  const size_t step = std::max(power / 4, Allocator::kAlignment);
  return (bytes + step - 1) / step * step;
}

}  // namespace

CpuAllocator::~CpuAllocator() {
  MutexLock lock(&mutex_);
  FR_CHECK_EQ(bytes_in_use_, 0) << "bytes of an allocator that goes away are still in use";
  ReleaseKept();
}

void CpuAllocator::ReleaseKept() {
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) std::free(block);
    blocks.clear();
  }
}

void* CpuAllocator::Take(size_t size) {
  MutexLock lock(&mutex_);
  bytes_in_use_ += static_cast<int64_t>(size);
  peak_bytes_ = std::max(peak_bytes_, bytes_in_use_);
  std::vector<void*>& kept = free_[size];
  if (!kept.empty()) {
    void* block = kept.back();
    kept.pop_back();
    return block;
  }
  void* block = std::aligned_alloc(kAlignment, size);
  if (block != nullptr) return block;
  ReleaseKept();
  return std::aligned_alloc(kAlignment, size);
}

void* CpuAllocator::Allocate(size_t bytes, Stream&) {
  FR_CHECK_LE(bytes, kMostBytes) << "a size that no memory has";
  const size_t size = SizeClass(bytes);
  void* block = Take(size);
  FR_CHECK(block != nullptr) << "out of memory: asked for " << bytes << " bytes, "
                             << bytes_in_use() - static_cast<int64_t>(size) << " in use";
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + bytes, size - bytes);
  return block;
}

void CpuAllocator::Free(void* memory, size_t bytes, Stream&) {
  const size_t size = SizeClass(bytes);
  ASAN_POISON_MEMORY_REGION(memory, size);
  MutexLock lock(&mutex_);
  bytes_in_use_ -= static_cast<int64_t>(size);
  free_[size].push_back(memory);
}

int64_t CpuAllocator::bytes_in_use() const {
  MutexLock lock(&mutex_);
  return bytes_in_use_;
}

int64_t CpuAllocator::peak_bytes() const {
  MutexLock lock(&mutex_);
  return peak_bytes_;
}

void* MetaAllocator::Allocate(size_t bytes, Stream&) {
  FR_CHECK_LE(bytes, kMostBytes) << "a size that no memory has";
  MutexLock lock(&mutex_);
  bytes_in_use_ += static_cast<int64_t>(bytes);
  peak_bytes_ = std::max(peak_bytes_, bytes_in_use_);
  return nullptr;
}

void MetaAllocator::Free(void*, size_t bytes, Stream&) {
  MutexLock lock(&mutex_);
  bytes_in_use_ -= static_cast<int64_t>(bytes);
}

int64_t MetaAllocator::bytes_in_use() const {
  MutexLock lock(&mutex_);
  return bytes_in_use_;
}

int64_t MetaAllocator::peak_bytes() const {
  MutexLock lock(&mutex_);
  return peak_bytes_;
}

}  // namespace forerun
