// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/link_group.h"

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "core/base/mutex.h"
#include "parallel/comm/completable_work.h"

namespace forerun::comm {
namespace {

// The first error of a group, shared with its transfers, which may outlive it.
class FirstError {
 public:
  void Set(const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (status_.ok()) status_ = status;
  }
  absl::Status Get() const {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// An operation of the inner group, and its occupancy of the link.
class Transfer final : public CompletableWork, public std::enable_shared_from_this<Transfer> {
 public:
  // Without an end: occupies the link only when the inner operation has ended.
  Transfer(std::shared_ptr<Link> link, std::shared_ptr<FirstError> error, LinkRecord record,
           absl::optional<Clock::Time> end, Work inner)
      : CompletableWork(absl::nullopt),
        link_(std::move(link)),
        error_(std::move(error)),
        inner_(std::move(inner)),
        record_(std::move(record)),
        end_(end) {}

  void Start() {
    inner_.OnDone(
        [self = shared_from_this()](const absl::Status& status) { self->InnerEnded(status); });
  }

  // The deadline is the inner operation's: once that has ended the clock alone decides.
  void Synchronize() override {
    while (!Done() && link_->clock().Advance()) {
    }
    inner_.Synchronize();
    CompletableWork::Synchronize();
  }

 private:
  void InnerEnded(const absl::Status& status) {
    if (!status.ok()) {
      error_->Set(status);
      return Complete(status);
    }
    if (!end_.has_value()) {
      const Link::Occupancy occupancy = link_->Occupy(record_.bytes);
      record_.started = occupancy.start;
      end_ = occupancy.end;
    }
    link_->clock().CallAt(*end_, [self = shared_from_this()] { self->End(); });
  }

  void End() {
    const absl::Status status = error_->Get();
    if (status.ok()) {
      record_.ended = link_->clock().Now();
      link_->AddRecord(record_);
    }
    Complete(status);
  }

  const std::shared_ptr<Link> link_;
  const std::shared_ptr<FirstError> error_;
  const Work inner_;
  // Of whoever brings the operation on: the issuer, the inner completion, the clock, in turn.
  LinkRecord record_;
  absl::optional<Clock::Time> end_;
};

class LinkGroup final : public ProcessGroup {
 public:
  LinkGroup(std::unique_ptr<ProcessGroup> inner, std::shared_ptr<Link> link)
      : inner_(std::move(inner)), link_(std::move(link)), error_(std::make_shared<FirstError>()) {}

  const std::string& name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Arithmetic arithmetic() const override { return inner_->arithmetic(); }

  Work AllReduce(const Tensor& tensor, ReduceOp op) override {
    return Carry(OpKind::kAllReduce, tensor.bytes(), [&] { return inner_->AllReduce(tensor, op); });
  }
  Work AllGather(const Tensor& input, const Tensor& output) override {
    return Carry(OpKind::kAllGather, output.bytes(),
                 [&] { return inner_->AllGather(input, output); });
  }
  Work ReduceScatter(const Tensor& input, const Tensor& output, ReduceOp op) override {
    return Carry(OpKind::kReduceScatter, input.bytes(),
                 [&] { return inner_->ReduceScatter(input, output, op); });
  }
  Work Broadcast(const Tensor& tensor, int root) override {
    return Carry(OpKind::kBroadcast, tensor.bytes(),
                 [&] { return inner_->Broadcast(tensor, root); });
  }
  Work Send(const Tensor& tensor, int peer) override {
    return Carry(OpKind::kSend, tensor.bytes(), [&] { return inner_->Send(tensor, peer); });
  }
  Work Recv(const Tensor& tensor, int peer) override {
    return Carry(OpKind::kRecv, tensor.bytes(), [&] { return inner_->Recv(tensor, peer); });
  }
  Work Barrier() override {
    return Carry(OpKind::kBarrier, 0, [&] { return inner_->Barrier(); });
  }
  void Abort(const absl::Status& status) override {
    error_->Set(status);
    inner_->Abort(status);
  }

 private:
  Work Carry(OpKind kind, int64_t whole_bytes, absl::FunctionRef<Work()> issue) {
    LinkRecord record{name(), kind, WireBytes(kind, whole_bytes, size()), link_->clock().Now()};
    absl::optional<Clock::Time> end;
    if (kind != OpKind::kRecv) {
      const Link::Occupancy occupancy = link_->Occupy(record.bytes);
      record.started = occupancy.start;
      end = occupancy.end;
    }
    const auto transfer =
        std::make_shared<Transfer>(link_, error_, std::move(record), end, issue());
    transfer->Start();
    return Work(transfer);
  }

  const std::unique_ptr<ProcessGroup> inner_;
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<FirstError> error_;
};

}  // namespace

LinkGroupFactory::LinkGroupFactory(GroupFactory& inner, LinkOf link_of)
    : inner_(inner), link_of_(std::move(link_of)) {}

LinkGroupFactory::LinkGroupFactory(GroupFactory& inner, std::shared_ptr<Link> link)
    : LinkGroupFactory(inner, [link = std::move(link)](const std::string&, absl::Span<const int>) {
        return link;
      }) {}

std::unique_ptr<ProcessGroup> LinkGroupFactory::Create(const std::string& name,
                                                       absl::Span<const int> members) {
  std::unique_ptr<ProcessGroup> group = inner_.Create(name, members);
  std::shared_ptr<Link> link = members.size() > 1 ? link_of_(name, members) : nullptr;
  if (link == nullptr) return group;
  return std::make_unique<LinkGroup>(std::move(group), std::move(link));
}

}  // namespace forerun::comm
