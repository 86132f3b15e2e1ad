// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/fake/fake_group.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "parallel/comm/arguments.h"
#include "parallel/comm/completable_work.h"

namespace forerun::comm {
namespace {

void Require(const absl::Status& arguments) { FR_CHECK(arguments.ok()) << arguments.message(); }

// Ends as `status` says, in the first wait for it.
class EndsWhenWaited final : public CompletableWork {
 public:
  explicit EndsWhenWaited(absl::Status status)
      : CompletableWork(absl::nullopt), status_(std::move(status)) {}

  void Synchronize() override {
    Complete(status_);
    CompletableWork::Synchronize();
  }

 private:
  const absl::Status status_;
};

class FakeGroup final : public ProcessGroup {
 public:
  FakeGroup(std::string name, int rank, int size, FakeEnd end)
      : name_(std::move(name)), rank_(rank), size_(size), end_(end) {}

  const std::string& name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Arithmetic arithmetic() const override { return Arithmetic::kOrdered; }

  Work AllReduce(const Tensor& tensor, ReduceOp) override {
    return Issue(CheckAllReduce(*this, tensor));
  }
  Work AllGather(const Tensor& input, const Tensor& output) override {
    return Issue(CheckAllGather(*this, input, output));
  }
  Work ReduceScatter(const Tensor& input, const Tensor& output, ReduceOp) override {
    return Issue(CheckReduceScatter(*this, input, output));
  }
  Work Broadcast(const Tensor& tensor, int root) override {
    return Issue(CheckBroadcast(*this, tensor, root));
  }
  Work Send(const Tensor& tensor, int peer) override {
    return Issue(CheckSend(*this, tensor, peer));
  }
  Work Recv(const Tensor& tensor, int peer) override {
    return Issue(CheckRecv(*this, tensor, peer));
  }
  Work Barrier() override { return Issue(absl::OkStatus()); }
  void Abort(const absl::Status& status) override {
    if (status_.ok()) status_ = status;
  }

 private:
  Work Issue(const absl::Status& arguments) const {
    Require(arguments);
    if (status_.ok() && end_ == FakeEnd::kAtOnce) return Work();
    const auto work = std::make_shared<EndsWhenWaited>(status_);
    if (end_ == FakeEnd::kAtOnce) work->Complete(status_);
    return Work(work);
  }

  const std::string name_;
  const int rank_;
  const int size_;
  const FakeEnd end_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<ProcessGroup> FakeGroupFactory::Create(const std::string& name,
                                                       absl::Span<const int> members) {
  const auto found = std::find(members.begin(), members.end(), rank_);
  FR_CHECK(found != members.end()) << "rank " << rank_ << " is not a member of group " << name;
  return std::make_unique<FakeGroup>(name, static_cast<int>(found - members.begin()),
                                     static_cast<int>(members.size()), end_);
}

}  // namespace forerun::comm
