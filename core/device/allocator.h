// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "core/device/device.h"

namespace forerun {

// Memory of one device. Any thread may call. Outlives what it handed out.
//
// Memory is given back in stream order: Free(p, n, s) says that work issued to `s` so far may still
// use `p`, and that nothing later will; n is what was asked for.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual Device device() const = 0;
  // At least `bytes` bytes, aligned to kAlignment and not cleared. Never null but on meta, where
  // it always is. Running out is fatal and says how much was asked for.
  virtual void* Allocate(size_t bytes, Stream& stream) = 0;
  virtual void Free(void* memory, size_t bytes, Stream& stream) = 0;
  // Bytes now allocated, and the most there ever were, with what a backend rounds up to.
  virtual int64_t bytes_in_use() const = 0;
  virtual int64_t peak_bytes() const = 0;

  static constexpr size_t kAlignment = 64;  // bytes: a cache line, and an AVX-512 vector
};

// Keeps freed blocks by size class and hands them out again, so that a training step, which asks
// for the same sizes over and over, meets the operating system in its first step only. Where that
// has no more, the kept blocks are given up first.
//
// Under AddressSanitizer a freed block, and a block beyond the bytes asked for, is poisoned.
class CpuAllocator final : public Allocator {
 public:
  CpuAllocator() = default;
  ~CpuAllocator() override;
  Device device() const override { return Device{DeviceKind::kCpu}; }
  void* Allocate(size_t bytes, Stream& stream) override;
  void Free(void* memory, size_t bytes, Stream& stream) override;
  int64_t bytes_in_use() const override;
  int64_t peak_bytes() const override;

 private:
  // A block of a size class: a kept one, or a new one; null where there is no memory.
  void* Take(size_t size);
  void ReleaseKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<size_t, std::vector<void*>> free_ ABSL_GUARDED_BY(mutex_);  // by size class
  int64_t bytes_in_use_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t peak_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Counts what a real device would hold; hands out nothing.
class MetaAllocator final : public Allocator {
 public:
  Device device() const override { return Device{DeviceKind::kMeta}; }
  void* Allocate(size_t bytes, Stream& stream) override;
  void Free(void* memory, size_t bytes, Stream& stream) override;
  int64_t bytes_in_use() const override;
  int64_t peak_bytes() const override;

 private:
  mutable Mutex mutex_;
  int64_t bytes_in_use_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t peak_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace forerun
