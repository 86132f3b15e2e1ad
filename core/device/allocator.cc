// SPDX-License-Identifier: Apache-2.0
#include "core/device/allocator.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/check.h"

namespace forerun {
namespace {

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
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) std::free(block);
  }
}

void* CpuAllocator::Allocate(size_t bytes, Stream&) {
  const size_t size = SizeClass(bytes);
  {
    MutexLock lock(&mutex_);
    bytes_in_use_ += size;
    peak_bytes_ = std::max(peak_bytes_, bytes_in_use_);
    std::vector<void*>& blocks = free_[size];
    if (!blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      return block;
    }
  }
  void* block = std::aligned_alloc(kAlignment, size);
  FR_CHECK(block != nullptr) << "out of memory: asked for " << bytes << " bytes";
  return block;
}

void CpuAllocator::Free(void* memory, size_t bytes, Stream&) {
  const size_t size = SizeClass(bytes);
  MutexLock lock(&mutex_);
  bytes_in_use_ -= size;
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
  MutexLock lock(&mutex_);
  bytes_in_use_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, bytes_in_use_);
  return nullptr;
}

void MetaAllocator::Free(void*, size_t bytes, Stream&) {
  MutexLock lock(&mutex_);
  bytes_in_use_ -= bytes;
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
