// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/program/recording_group.h"

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace forerun::comm {

class RecordingGroupFactory::Recorder {
 public:
  class Group;

  int AddGroup(GroupIdentity group) {
    MutexLock lock(&mutex_);
    program_.groups.push_back(std::move(group));
    program_.operations.emplace_back();
    return static_cast<int>(program_.groups.size()) - 1;
  }

  // The place of the operation among those of its group.
  int Issued(int group, const Operation& operation) {
    MutexLock lock(&mutex_);
    const int index = static_cast<int>(program_.operations[group].size());
    program_.operations[group].push_back(operation);
    program_.events.push_back({group, index, /*wait=*/false});
    return index;
  }

  void Waited(int group, int operation) {
    MutexLock lock(&mutex_);
    program_.events.push_back({group, operation, /*wait=*/true});
  }

  Program program() const {
    MutexLock lock(&mutex_);
    return program_;
  }

 private:
  mutable Mutex mutex_;
  Program program_ ABSL_GUARDED_BY(mutex_);
};

class RecordingGroupFactory::Recorder::Group final : public ProcessGroup {
 public:
  Group(std::unique_ptr<ProcessGroup> inner, std::shared_ptr<Recorder> recorder, int index)
      : inner_(std::move(inner)), recorder_(std::move(recorder)), index_(index) {}

  const std::string& name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Arithmetic arithmetic() const override { return inner_->arithmetic(); }

  Work AllReduce(const Tensor& tensor, ReduceOp op) override {
    const int issued = Log(OpKind::kAllReduce, tensor, -1, op);
    return Watch(issued, inner_->AllReduce(tensor, op));
  }
  Work AllGather(const Tensor& input, const Tensor& output) override {
    const int issued = Log(OpKind::kAllGather, output);
    return Watch(issued, inner_->AllGather(input, output));
  }
  Work ReduceScatter(const Tensor& input, const Tensor& output, ReduceOp op) override {
    const int issued = Log(OpKind::kReduceScatter, input, -1, op);
    return Watch(issued, inner_->ReduceScatter(input, output, op));
  }
  Work Broadcast(const Tensor& tensor, int root) override {
    const int issued = Log(OpKind::kBroadcast, tensor, root);
    return Watch(issued, inner_->Broadcast(tensor, root));
  }
  Work Send(const Tensor& tensor, int peer) override {
    const int issued = Log(OpKind::kSend, tensor, peer);
    return Watch(issued, inner_->Send(tensor, peer));
  }
  Work Recv(const Tensor& tensor, int peer) override {
    const int issued = Log(OpKind::kRecv, tensor, peer);
    return Watch(issued, inner_->Recv(tensor, peer));
  }
  Work Barrier() override {
    const int issued = recorder_->Issued(index_, Operation{});
    return Watch(issued, inner_->Barrier());
  }
  void Abort(const absl::Status& status) override { inner_->Abort(status); }

 private:
  class WatchedWork;

  // Before the inner group has it: a completion may issue the next operation from inside the call.
  int Log(OpKind kind, const Tensor& tensor, int peer = -1, ReduceOp reduce = ReduceOp::kSum) {
    return recorder_->Issued(index_, {kind, reduce, peer, tensor.numel(), tensor.dtype()});
  }
  Work Watch(int operation, Work inner);

  const std::unique_ptr<ProcessGroup> inner_;
  const std::shared_ptr<Recorder> recorder_;
  const int index_;
};

class RecordingGroupFactory::Recorder::Group::WatchedWork final : public Work::State {
 public:
  WatchedWork(std::shared_ptr<Recorder> recorder, int group, int operation, Work inner)
      : recorder_(std::move(recorder)),
        group_(group),
        operation_(operation),
        inner_(std::move(inner)) {}

  bool Done() const override { return inner_.Done(); }
  void Wait(Stream& stream) override {
    LogWait();
    inner_.Wait(stream);
  }
  void Synchronize() override {
    LogWait();
    inner_.Synchronize();
  }
  void OnDone(std::function<void(const absl::Status&)> callback) override {
    inner_.OnDone(std::move(callback));
  }

 private:
  void LogWait() {
    if (!waited_.exchange(true)) recorder_->Waited(group_, operation_);
  }

  const std::shared_ptr<Recorder> recorder_;
  const int group_;
  const int operation_;
  const Work inner_;
  std::atomic<bool> waited_{false};
};

Work RecordingGroupFactory::Recorder::Group::Watch(int operation, Work inner) {
  return Work(std::make_shared<WatchedWork>(recorder_, index_, operation, std::move(inner)));
}

RecordingGroupFactory::RecordingGroupFactory(GroupFactory& inner)
    : inner_(inner), recorder_(std::make_shared<Recorder>()) {}
RecordingGroupFactory::~RecordingGroupFactory() = default;

std::unique_ptr<ProcessGroup> RecordingGroupFactory::Create(const std::string& name,
                                                            absl::Span<const int> members) {
  const int index = recorder_->AddGroup({name, {members.begin(), members.end()}});
  return std::make_unique<Recorder::Group>(inner_.Create(name, members), recorder_, index);
}

Program RecordingGroupFactory::program() const { return recorder_->program(); }

}  // namespace forerun::comm
