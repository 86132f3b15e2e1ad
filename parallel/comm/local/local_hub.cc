// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/local_hub.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/mutex.h"
#include "parallel/comm/local/local_work.h"
#include "parallel/comm/movement.h"

namespace forerun::comm {
namespace {

using WorkPtr = std::shared_ptr<CompletableWork>;

// A collective of which some ranks have arrived.
struct Collective {
  std::vector<Arrival> arrivals;
  std::vector<WorkPtr> works;  // null: not arrived
  int arrived = 0;
  int phase = 0;
  int tasks_left = 0;  // of this phase
};

// A message of which one side has come.
struct Message {
  Tensor tensor;
  WorkPtr work;
};

// From one rank to another, first in, first out; one of the two is empty.
struct Channel {
  std::deque<Message> sends;
  std::deque<Message> recvs;
};

// What all members of a group share.
struct GroupState {
  std::string name;
  int size = 0;
  std::vector<uint64_t> issued;  // collectives, by rank
  std::map<uint64_t, std::shared_ptr<Collective>> waiting;  // by sequence number
  std::map<std::pair<int, int>, Channel> channels;          // by (from, to)
};

}  // namespace

// The state of a world, under one lock; data moves and callbacks run outside it.
class LocalHub::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(int world_size, const Options& options)
      : options_(options), progress_(world_size), creations_(world_size) {}

  int world_size() const { return static_cast<int>(progress_.size()); }

  absl::Status status() const {
    MutexLock lock(&mutex_);
    return status_;
  }

  // The n-th time that a rank makes a group of this name and these members is the n-th group.
  std::shared_ptr<GroupState> Group(const std::string& name, absl::Span<const int> members,
                                    int world_rank) {
    const std::string key = absl::StrCat(name, "/", absl::StrJoin(members, ","));
    MutexLock lock(&mutex_);
    const int creation = creations_[world_rank][key]++;
    std::shared_ptr<GroupState>& group = groups_[absl::StrCat(key, "#", creation)];
    if (group == nullptr) {
      group = std::make_shared<GroupState>();
      group->name = name;
      group->size = static_cast<int>(members.size());
      group->issued.assign(members.size(), 0);
    }
    return group;
  }

  comm::Work Arrive(const std::shared_ptr<GroupState>& group, absl::Span<const int> members,
                    int rank, Arrival arrival) {
    std::shared_ptr<Collective> full;
    WorkPtr work;
    absl::Status failure;
    {
      MutexLock lock(&mutex_);
      const uint64_t sequence = group->issued[rank]++;
      work = MakeWork([this, group, sequence, text = arrival.Describe()] {
        return DescribeCollective(*group, sequence, text);
      });
      failure = status_;
      if (failure.ok()) {
        std::shared_ptr<Collective>& collective = group->waiting[sequence];
        if (collective == nullptr) {
          collective = std::make_shared<Collective>();
          collective->arrivals.resize(group->size);
          collective->works.resize(group->size);
        }
        failure = CheckMatch(*group, *collective, sequence, rank, arrival);
        collective->arrivals[rank] = std::move(arrival);
        collective->works[rank] = work;
        if (++collective->arrived == group->size && failure.ok()) {
          full = std::move(collective);
          group->waiting.erase(sequence);
        }
      }
    }
    if (!failure.ok()) {
      Fail(failure);
      work->Complete(status());
    }
    if (full != nullptr) Move(full, members);
    return comm::Work(work);
  }

  comm::Work Transfer(const std::shared_ptr<GroupState>& group, int rank, int peer, bool send,
                      const Tensor& tensor) {
    const std::pair<int, int> direction = send ? std::pair(rank, peer) : std::pair(peer, rank);
    WorkPtr work;
    Message other;
    absl::Status failure;
    {
      MutexLock lock(&mutex_);
      work = MakeWork([group, rank, peer, send, bytes = tensor.bytes()] {
        return absl::StrCat("group ", group->name, ": rank ", rank,
                            send ? "'s Send of " : "'s Recv of ", bytes, " bytes",
                            send ? " to rank " : " from rank ", peer, " found no partner");
      });
      failure = status_;
      Channel& channel = group->channels[direction];
      std::deque<Message>& partners = send ? channel.recvs : channel.sends;
      if (failure.ok() && partners.empty()) {
        (send ? channel.sends : channel.recvs).push_back({tensor, work});
      } else if (failure.ok()) {
        other = std::move(partners.front());
        partners.pop_front();
        failure = CheckMessage(*group, direction, send ? tensor : other.tensor,
                               send ? other.tensor : tensor);
      }
    }
    if (!failure.ok()) {
      Fail(failure);
      other.tensor = Tensor();
      work->Complete(status());
      if (other.work != nullptr) other.work->Complete(status());
    } else if (other.work != nullptr) {
      const Tensor& from = send ? tensor : other.tensor;
      const Tensor& to = send ? other.tensor : tensor;
      std::memcpy(to.raw_mutable_data(), from.raw_data(), static_cast<size_t>(from.bytes()));
      other.tensor = Tensor();  // the partner may end, and its memory with it, once it is told
      other.work->Complete(absl::OkStatus());
      work->Complete(absl::OkStatus());
    }
    return comm::Work(work);
  }

  // Ends everything that waits for a partner. What has all its partners ends by itself.
  void Fail(const absl::Status& failure) {
    std::vector<WorkPtr> works;
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return;
      status_ = failure;
      for (auto& [key, group] : groups_) {
        for (auto& [sequence, collective] : group->waiting) {
          works.insert(works.end(), collective->works.begin(), collective->works.end());
        }
        for (auto& [direction, channel] : group->channels) {
          for (Message& message : channel.sends) works.push_back(message.work);
          for (Message& message : channel.recvs) works.push_back(message.work);
        }
        group->waiting.clear();
        group->channels.clear();
      }
    }
    for (const WorkPtr& work : works) {
      if (work != nullptr) work->Complete(failure);
    }
  }

  void StartProgress(int rank) {
    MutexLock lock(&mutex_);
    progress_[rank].running = true;
    progress_[rank].thread = std::thread([this, rank] { Progress(rank); });
  }

  void StopProgress(int rank) {
    std::thread thread;
    {
      MutexLock lock(&mutex_);
      progress_[rank].running = false;
      progress_[rank].changed.NotifyAll();
      thread = std::move(progress_[rank].thread);
    }
    thread.join();
  }

 private:
  // A rank's progress thread, and what it is to do.
  struct ProgressState {
    std::thread thread;
    CondVar changed;
    std::deque<std::function<void()>> tasks;
    bool running = false;
  };

  WorkPtr MakeWork(std::function<std::string()> describe) {
    return std::make_shared<CompletableWork>(
        options_.deadline, [this, self = weak_from_this(), describe = std::move(describe)] {
          const auto core = self.lock();
          if (core == nullptr) return;
          const double seconds = static_cast<double>(options_.deadline.count()) / 1e3;
          Fail(absl::DeadlineExceededError(
              absl::StrCat(describe(), " within ", seconds, " s")));
        });
  }

  std::string DescribeCollective(const GroupState& group, uint64_t sequence,
                                 const std::string& text) {
    std::vector<int> arrived, missing;
    MutexLock lock(&mutex_);
    const auto found = group.waiting.find(sequence);
    for (int rank = 0; rank < group.size; ++rank) {
      const bool here = found == group.waiting.end() || found->second->works[rank] != nullptr;
      (here ? arrived : missing).push_back(rank);
    }
    return absl::StrCat("group ", group.name, ": ", text, " (collective ", sequence,
                        "): ranks ", absl::StrJoin(arrived, ", "), " arrived, ranks ",
                        absl::StrJoin(missing, ", "), " did not");
  }

  static absl::Status CheckMatch(const GroupState& group, const Collective& collective,
                                 uint64_t sequence, int rank, const Arrival& arrival) {
    for (int other = 0; other < group.size; ++other) {
      if (collective.works[other] == nullptr) continue;
      const std::string theirs = collective.arrivals[other].Describe();
      if (theirs == arrival.Describe()) return absl::OkStatus();
      return absl::FailedPreconditionError(
          absl::StrCat("group ", group.name, ": collective ", sequence, " is ", theirs,
                       " on rank ", other, " and ", arrival.Describe(), " on rank ", rank));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckMessage(const GroupState& group, std::pair<int, int> direction,
                                   const Tensor& sent, const Tensor& received) {
    if (sent.dtype() == received.dtype() && sent.numel() == received.numel()) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", group.name, ": rank ", direction.first, " sends ", sent.numel(), " ",
        NameOf(sent.dtype()), " and rank ", direction.second, " receives ", received.numel(), " ",
        NameOf(received.dtype())));
  }

  // All ranks have arrived: moves the data, here or on the progress threads.
  void Move(const std::shared_ptr<Collective>& collective, absl::Span<const int> members) {
    const int size = static_cast<int>(collective->arrivals.size());
    const Arrival& any = collective->arrivals[0];
    const int64_t bytes = any.output.defined() ? any.output.bytes() * size : 0;
    if (bytes <= options_.inline_bytes) {
      for (int phase = 0; phase < Phases(any.kind); ++phase) {
        for (int rank = 0; rank < size; ++rank) RunTask(collective->arrivals, rank, phase);
      }
      return CompleteAll(*collective);
    }
    StartPhase(collective, std::vector<int>(members.begin(), members.end()));
  }

  void StartPhase(const std::shared_ptr<Collective>& collective, const std::vector<int>& members) {
    std::vector<std::function<void()>> orphans;  // of ranks that have left
    {
      MutexLock lock(&mutex_);
      collective->tasks_left = static_cast<int>(members.size());
      for (size_t rank = 0; rank < members.size(); ++rank) {
        auto task = [this, collective, members, rank] {
          RunTask(collective->arrivals, static_cast<int>(rank), collective->phase);
          EndTask(collective, members);
        };
        ProgressState& progress = progress_[members[rank]];
        if (!progress.running) {
          orphans.push_back(std::move(task));
          continue;
        }
        progress.tasks.push_back(std::move(task));
        progress.changed.NotifyOne();
      }
    }
    for (const auto& task : orphans) task();
  }

  void EndTask(const std::shared_ptr<Collective>& collective, const std::vector<int>& members) {
    {
      MutexLock lock(&mutex_);
      if (--collective->tasks_left > 0) return;
    }
    // Nobody else touches the collective between two phases.
    if (++collective->phase < Phases(collective->arrivals[0].kind)) {
      return StartPhase(collective, members);
    }
    CompleteAll(*collective);
  }

  static void CompleteAll(Collective& collective) {
    collective.arrivals.clear();  // lets go of the buffers
    for (const WorkPtr& work : collective.works) work->Complete(absl::OkStatus());
  }

  void Progress(int rank) {
    mutex_.Lock();
    ProgressState& progress = progress_[rank];
    while (progress.running || !progress.tasks.empty()) {
      if (progress.tasks.empty()) {
        progress.changed.Wait(&mutex_);
        continue;
      }
      std::function<void()> task = std::move(progress.tasks.front());
      progress.tasks.pop_front();
      mutex_.Unlock();
      task();
      task = nullptr;
      mutex_.Lock();
    }
    mutex_.Unlock();
  }

  const Options options_;
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<GroupState>> groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<ProgressState> progress_;  // by world rank; members guarded by mutex_
  std::vector<std::map<std::string, int>> creations_ ABSL_GUARDED_BY(mutex_);
};

class LocalHub::Group final : public ProcessGroup {
 public:
  Group(std::shared_ptr<Core> core, std::string name, std::vector<int> members, int rank,
        int world_rank)
      : core_(std::move(core)),
        name_(std::move(name)),
        members_(std::move(members)),
        rank_(rank),
        state_(core_->Group(name_, members_, world_rank)) {}

  const std::string& name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  Arithmetic arithmetic() const override { return Arithmetic::kOrdered; }

  comm::Work AllReduce(const Tensor& tensor, ReduceOp op) override {
    return Arrive({OpKind::kAllReduce, op, 0, tensor, tensor});
  }
  comm::Work AllGather(const Tensor& input, const Tensor& output) override {
    FR_CHECK_EQ(input.numel() * size(), output.numel()) << "AllGather in " << name_;
    return Arrive({OpKind::kAllGather, ReduceOp::kSum, 0, input, output});
  }
  comm::Work ReduceScatter(const Tensor& input, const Tensor& output, ReduceOp op) override {
    FR_CHECK_EQ(output.numel() * size(), input.numel()) << "ReduceScatter in " << name_;
    return Arrive({OpKind::kReduceScatter, op, 0, input, output});
  }
  comm::Work Broadcast(const Tensor& tensor, int root) override {
    return Arrive({OpKind::kBroadcast, ReduceOp::kSum, root, tensor, tensor});
  }
  comm::Work Barrier() override { return Arrive({}); }
  comm::Work Send(const Tensor& tensor, int peer) override {
    return core_->Transfer(state_, rank_, peer, /*send=*/true, tensor);
  }
  comm::Work Recv(const Tensor& tensor, int peer) override {
    return core_->Transfer(state_, rank_, peer, /*send=*/false, tensor);
  }
  void Abort(const absl::Status& status) override { core_->Fail(status); }

 private:
  comm::Work Arrive(Arrival arrival) {
    return core_->Arrive(state_, members_, rank_, std::move(arrival));
  }

  const std::shared_ptr<Core> core_;
  const std::string name_;
  const std::vector<int> members_;
  const int rank_;
  const std::shared_ptr<GroupState> state_;
};

class LocalHub::Factory final : public GroupFactory {
 public:
  Factory(std::shared_ptr<Core> core, int rank) : core_(std::move(core)), rank_(rank) {
    core_->StartProgress(rank_);
  }
  ~Factory() override { core_->StopProgress(rank_); }
  int rank() const override { return rank_; }
  int world_size() const override { return core_->world_size(); }
  std::unique_ptr<ProcessGroup> Create(const std::string& name,
                                       absl::Span<const int> members) override {
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i] != rank_) continue;
      return std::make_unique<Group>(core_, name, std::vector<int>(members.begin(), members.end()),
                                     static_cast<int>(i), rank_);
    }
    FR_CHECK(false) << "rank " << rank_ << " is not a member of group " << name;
    return nullptr;
  }

 private:
  const std::shared_ptr<Core> core_;
  const int rank_;
};

LocalHub::LocalHub(int world_size, const Options& options)
    : core_(std::make_shared<Core>(world_size, options)) {}
LocalHub::~LocalHub() = default;
int LocalHub::world_size() const { return core_->world_size(); }
std::unique_ptr<GroupFactory> LocalHub::Join(int rank) {
  return std::make_unique<Factory>(core_, rank);
}
void LocalHub::Abort(const absl::Status& status) { core_->Fail(status); }
absl::Status LocalHub::status() const { return core_->status(); }

}  // namespace forerun::comm
