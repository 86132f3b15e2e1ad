// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// One operation that was issued to a fake group.
struct FakeOp {
  std::string group;
  OpKind kind = OpKind::kBarrier;
  int peer = -1;      // of a message or the root of a broadcast
  int64_t bytes = 0;  // of the output, or of what is sent
  DType dtype = DType::kU8;
};

// Groups in which nothing moves and everything ends at once: any rank of a world of any size, alone
// in its process, on meta tensors or on real ones whose values then do not matter. What was issued
// is written down, in order, in a log that the caller owns and that outlives the groups. An aborted
// group's later operations have failed at once. One thread.
class FakeGroupFactory final : public GroupFactory {
 public:
  FakeGroupFactory(int rank, int world_size, std::vector<FakeOp>* log)
      : rank_(rank), world_size_(world_size), log_(log) {}
  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::unique_ptr<ProcessGroup> Create(const std::string& name,
                                       absl::Span<const int> members) override;

 private:
  const int rank_;
  const int world_size_;
  std::vector<FakeOp>* const log_;
};

}  // namespace forerun::comm
