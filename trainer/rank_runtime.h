// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/ops/op_context.h"

namespace forerun {

// What one rank computes with: a stream, memory, and the kernels of a device. Outlives every tensor
// made with it. `ops` belongs to the rank's compute thread.
struct CpuRuntime {
  explicit CpuRuntime(const KernelTable& kernels) : ops{&stream, &allocator, &kernels} {}
  CpuRuntime(const CpuRuntime&) = delete;
  CpuRuntime& operator=(const CpuRuntime&) = delete;

  InlineStream stream{Device{DeviceKind::kCpu}};
  CpuAllocator allocator;
  const OpContext ops;
};

// The same without memory: shapes only.
struct MetaRuntime {
  explicit MetaRuntime(const KernelTable& kernels) : ops{&stream, &allocator, &kernels} {}
  MetaRuntime(const MetaRuntime&) = delete;
  MetaRuntime& operator=(const MetaRuntime&) = delete;

  InlineStream stream{Device{DeviceKind::kMeta}};
  MetaAllocator allocator;
  const OpContext ops;
};

}  // namespace forerun
