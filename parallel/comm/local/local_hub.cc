// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/local_hub.h"

#include <set>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "parallel/comm/arguments.h"
#include "parallel/comm/local/local_world.h"
#include "parallel/comm/movement.h"

namespace forerun::comm {
namespace {

void Require(const absl::Status& arguments) { FR_CHECK(arguments.ok()) << arguments.message(); }

class LocalGroup final : public ProcessGroup {
 public:
  LocalGroup(std::shared_ptr<LocalWorld> world, std::string name, std::vector<int> members,
             int rank)
      : world_(std::move(world)),
        name_(std::move(name)),
        rank_(rank),
        size_(static_cast<int>(members.size())),
        state_(*world_->Group(name_, members, members[rank])) {}

  const std::string& name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Arithmetic arithmetic() const override { return Arithmetic::kOrdered; }

  Work AllReduce(const Tensor& tensor, ReduceOp op) override {
    Require(CheckAllReduce(*this, tensor));
    return Collective({OpKind::kAllReduce, op, 0, tensor, tensor});
  }
  Work AllGather(const Tensor& input, const Tensor& output) override {
    Require(CheckAllGather(*this, input, output));
    return Collective({OpKind::kAllGather, ReduceOp::kSum, 0, input, output});
  }
  Work ReduceScatter(const Tensor& input, const Tensor& output, ReduceOp op) override {
    Require(CheckReduceScatter(*this, input, output));
    return Collective({OpKind::kReduceScatter, op, 0, input, output});
  }
  Work Broadcast(const Tensor& tensor, int root) override {
    Require(CheckBroadcast(*this, tensor, root));
    return Collective({OpKind::kBroadcast, ReduceOp::kSum, root, tensor, tensor});
  }
  Work Barrier() override { return Collective({}); }
  Work Send(const Tensor& tensor, int peer) override {
    Require(CheckSend(*this, tensor, peer));
    return world_->Send(state_, rank_, peer, tensor);
  }
  Work Recv(const Tensor& tensor, int peer) override {
    Require(CheckRecv(*this, tensor, peer));
    return world_->Recv(state_, rank_, peer, tensor);
  }
  void Abort(const absl::Status& status) override { world_->Fail(status); }

 private:
  Work Collective(Arrival arrival) { return world_->Collective(state_, rank_, std::move(arrival)); }

  const std::shared_ptr<LocalWorld> world_;
  const std::string name_;
  const int rank_;
  const int size_;
  LocalGroupState& state_;  // the world's
};

class LocalFactory final : public GroupFactory {
 public:
  LocalFactory(std::shared_ptr<LocalWorld> world, int rank)
      : world_(std::move(world)), rank_(rank) {
    world_->Join(rank_);
  }
  ~LocalFactory() override { world_->Leave(rank_); }
  int rank() const override { return rank_; }
  int world_size() const override { return world_->size(); }
  std::unique_ptr<ProcessGroup> Create(const std::string& name,
                                       absl::Span<const int> members) override {
    int rank = -1;
    std::set<int> seen;
    for (size_t i = 0; i < members.size(); ++i) {
      FR_CHECK(members[i] >= 0 && members[i] < world_size() && seen.insert(members[i]).second)
          << "group " << name << " has member " << members[i] << " of a world of " << world_size()
          << ", or has it twice";
      if (members[i] == rank_) rank = static_cast<int>(i);
    }
    FR_CHECK(rank >= 0) << "rank " << rank_ << " is not a member of group " << name;
    return std::make_unique<LocalGroup>(world_, name,
                                        std::vector<int>(members.begin(), members.end()), rank);
  }

 private:
  const std::shared_ptr<LocalWorld> world_;
  const int rank_;
};

}  // namespace

LocalHub::LocalHub(int world_size, const Options& options)
    : world_(std::make_shared<LocalWorld>(world_size, options.deadline, options.inline_bytes)) {}
LocalHub::~LocalHub() = default;
int LocalHub::world_size() const { return world_->size(); }
std::unique_ptr<GroupFactory> LocalHub::Join(int rank) {
  return std::make_unique<LocalFactory>(world_, rank);
}
void LocalHub::Abort(const absl::Status& status) { world_->Fail(status); }
absl::Status LocalHub::status() const { return world_->status(); }

}  // namespace forerun::comm
