// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/fake/fake_group.h"

#include <algorithm>

#include "core/base/check.h"
#include "parallel/comm/arguments.h"
#include "parallel/comm/completable_work.h"

namespace forerun::comm {
namespace {

void Require(const absl::Status& arguments) { FR_CHECK(arguments.ok()) << arguments.message(); }

class FakeGroup final : public ProcessGroup {
 public:
  FakeGroup(std::string name, int rank, int size, std::vector<FakeOp>* log)
      : name_(std::move(name)), rank_(rank), size_(size), log_(log) {}

  const std::string& name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Arithmetic arithmetic() const override { return Arithmetic::kOrdered; }

  Work AllReduce(const Tensor& tensor, ReduceOp) override {
    Require(CheckAllReduce(*this, tensor));
    return Log(OpKind::kAllReduce, tensor);
  }
  Work AllGather(const Tensor& input, const Tensor& output) override {
    Require(CheckAllGather(*this, input, output));
    return Log(OpKind::kAllGather, output);
  }
  Work ReduceScatter(const Tensor& input, const Tensor& output, ReduceOp) override {
    Require(CheckReduceScatter(*this, input, output));
    return Log(OpKind::kReduceScatter, input);
  }
  Work Broadcast(const Tensor& tensor, int root) override {
    Require(CheckBroadcast(*this, tensor, root));
    return Log(OpKind::kBroadcast, tensor, root);
  }
  Work Send(const Tensor& tensor, int peer) override {
    Require(CheckSend(*this, tensor, peer));
    return Log(OpKind::kSend, tensor, peer);
  }
  Work Recv(const Tensor& tensor, int peer) override {
    Require(CheckRecv(*this, tensor, peer));
    return Log(OpKind::kRecv, tensor, peer);
  }
  Work Barrier() override {
    log_->push_back({name_, OpKind::kBarrier});
    return Ended();
  }
  void Abort(const absl::Status& status) override {
    if (status_.ok()) status_ = status;
  }

 private:
  Work Log(OpKind kind, const Tensor& tensor, int peer = -1) {
    log_->push_back({name_, kind, peer, tensor.bytes(), tensor.dtype()});
    return Ended();
  }

  Work Ended() const {
    if (status_.ok()) return Work();
    const auto failed = std::make_shared<CompletableWork>(absl::nullopt);
    failed->Complete(status_);
    return Work(failed);
  }

  const std::string name_;
  const int rank_;
  const int size_;
  std::vector<FakeOp>* const log_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<ProcessGroup> FakeGroupFactory::Create(const std::string& name,
                                                       absl::Span<const int> members) {
  const auto found = std::find(members.begin(), members.end(), rank_);
  FR_CHECK(found != members.end()) << "rank " << rank_ << " is not a member of group " << name;
  return std::make_unique<FakeGroup>(name, static_cast<int>(found - members.begin()),
                                     static_cast<int>(members.size()), log_);
}

}  // namespace forerun::comm
