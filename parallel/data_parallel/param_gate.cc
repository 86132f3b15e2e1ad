// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/param_gate.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace forerun {
namespace {

GatherPlan PlanOf(const BucketPlan& plan, const ParamGate::Options& options) {
  GatherPlan gather;
  for (size_t b = 0; b < plan.buckets().size(); ++b) {
    gather.order.push_back(static_cast<int>(b));
    gather.bytes.push_back(plan.buckets()[b].bytes());
  }
  gather.window_bytes = options.overlap ? options.window_bytes : 0;
  return gather;
}

void FillNan(const Tensor& tensor) {
  VisitFloating(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(tensor.mutable_data<T>(), tensor.numel(),
                T(std::numeric_limits<float>::quiet_NaN()));
  });
}

}  // namespace

// ParamSync under a lock, the group it commands, and the queue between them. Whoever finds the
// queue idle drains it: so commands reach the group one at a time and in order, from whatever
// thread they come, and no lock is held in the group.
class ParamGate::Chain : public std::enable_shared_from_this<ParamGate::Chain> {
 public:
  Chain(GatherPlan plan, std::vector<Tensor> inputs, std::vector<Tensor> outputs,
        comm::ProcessGroup& group, SecondsClock clock)
      : inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        group_(group),
        log_(plan.bytes, std::move(clock)),
        sync_(std::move(plan)),
        gathers_(inputs_.size()) {}

  TransferLog& log() { return log_; }

  // Whether the gather of the current version has come to its turn.
  bool Queued(int bucket) const {
    MutexLock lock(&mutex_);
    return gathers_[bucket].queued;
  }

  int64_t Version(int bucket) const {
    MutexLock lock(&mutex_);
    return sync_.version(bucket);
  }

  // Whether some bucket was accepted and not yet published.
  bool InsideStep() const {
    MutexLock lock(&mutex_);
    for (size_t b = 0; b < gathers_.size(); ++b) {
      if (sync_.Accepted(static_cast<int>(b))) return true;
    }
    return false;
  }

  void Accept(int bucket) {
    MutexLock lock(&mutex_);
    gathers_[bucket] = Gather{};
    sync_.OnAccepted(bucket);
  }

  void Publish(int bucket) {
    {
      MutexLock lock(&mutex_);
      Enqueue(sync_.OnPublished(bucket));
    }
    Drain();
  }

  void EndReads() {
    {
      MutexLock lock(&mutex_);
      Enqueue(sync_.OnReadsEnded());
    }
    Drain();
  }

  // Blocks until the bucket is current; throws GroupError.
  void WaitCurrent(int bucket, Stream& stream, absl::string_view reader) {
    double begin;
    bool missed;
    int64_t version, id;
    {
      MutexLock lock(&mutex_);
      Gather& gather = gathers_[bucket];
      const bool current = sync_.Current(bucket);
      if (current && gather.wanted) return;
      gather.wanted = true;
      begin = log_.Now();
      version = sync_.version(bucket);
      missed = !current && !gather.queued;
      if (!current) Enqueue(sync_.OnWanted(bucket));
      id = gather.id;
      log_.Wanted(id, begin);
      if (current) return;
    }
    Drain();
    const comm::Work work = Issued(bucket);
    work.Wait(stream);
    OnGathered(bucket, version);
    log_.Waited(id, log_.Now() - begin, missed, reader);
  }

  std::vector<int> Order() const {
    MutexLock lock(&mutex_);
    return sync_.plan().order;
  }

  // All buckets are current.
  void SetOrder(std::vector<int> order) {
    MutexLock lock(&mutex_);
    sync_.SetOrder(std::move(order));
  }

  // No gather is issued any more, and none is being issued, once this returns. Memory is let go:
  // a completion that is just ending on another rank's thread may keep this object a moment longer
  // than its rank lives.
  void Stop() {
    MutexLock lock(&mutex_);
    stopped_ = true;
    while (draining_) changed_.Wait(&mutex_);
    inputs_.clear();
    outputs_.clear();
    gathers_.clear();
  }

 private:
  // The gather of a bucket's current version.
  struct Gather {
    bool queued = false;
    bool issued = false;
    bool ended = false;
    bool wanted = false;
    int64_t id = -1;  // in the log
    comm::Work work;
  };

  void Enqueue(const std::vector<int>& started) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (int bucket : started) {
      gathers_[bucket].queued = true;
      gathers_[bucket].id = log_.Issued(bucket, sync_.version(bucket));
      queue_.push_back(bucket);
    }
  }

  void Drain() {
    mutex_.Lock();
    if (draining_) return mutex_.Unlock();
    draining_ = true;
    while (!queue_.empty() && !stopped_) {
      const int bucket = queue_.front();
      queue_.pop_front();
      log_.Started(gathers_[bucket].id);
      const int64_t version = sync_.version(bucket);
      mutex_.Unlock();
      comm::Work work = group_.AllGather(inputs_[bucket], outputs_[bucket]);
      mutex_.Lock();
      gathers_[bucket].work = work;
      gathers_[bucket].issued = true;
      changed_.NotifyAll();
      mutex_.Unlock();
      work.OnDone([chain = shared_from_this(), bucket, version](const absl::Status& status) {
        if (status.ok()) chain->OnGathered(bucket, version);
      });
      mutex_.Lock();
    }
    draining_ = false;
    changed_.NotifyAll();
    mutex_.Unlock();
  }

  // Another thread may be between taking the command off the queue and calling the group.
  comm::Work Issued(int bucket) {
    MutexLock lock(&mutex_);
    while (!gathers_[bucket].issued) changed_.Wait(&mutex_);
    return gathers_[bucket].work;
  }

  // Called by the completion and by a reader that has waited: the first one counts. The other may
  // come much later, on a thread that was held up, when the next version's gather is under way.
  void OnGathered(int bucket, int64_t version) {
    {
      MutexLock lock(&mutex_);
      if (stopped_ || sync_.version(bucket) != version) return;
      Gather& gather = gathers_[bucket];
      if (gather.ended || !gather.queued) return;
      gather.ended = true;
      log_.Ended(gather.id);
      Enqueue(sync_.OnGathered(bucket));
    }
    Drain();
  }

  // By bucket: own shard, and the whole. Constant until Stop; read by whoever drains.
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  comm::ProcessGroup& group_;
  TransferLog log_;

  mutable Mutex mutex_;
  CondVar changed_;
  ParamSync sync_ ABSL_GUARDED_BY(mutex_);
  std::deque<int> queue_ ABSL_GUARDED_BY(mutex_);  // commands not yet given to the group
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Gather> gathers_ ABSL_GUARDED_BY(mutex_);
};

ParamGate::ParamGate(BucketBuffer& buffer, comm::ProcessGroup& group, const Options& options,
                     SecondsClock clock)
    : buffer_(buffer),
      options_(options),
      shard_(group.rank()),
      leases_(std::make_shared<LeaseBook>(static_cast<int>(buffer.plan().parameters().size()))),
      chain_([&] {
        FR_CHECK_EQ(group.size(), buffer.plan().shards()) << "ranks that gather, and shards";
        const ShardWriter writer(buffer, group.rank());
        std::vector<Tensor> inputs, outputs;
        for (size_t b = 0; b < buffer.plan().buckets().size(); ++b) {
          inputs.push_back(writer.Params(static_cast<int>(b)));
          outputs.push_back(buffer.ParamBucket(static_cast<int>(b)));
        }
        return std::make_shared<Chain>(PlanOf(buffer.plan(), options), std::move(inputs),
                                       std::move(outputs), group, std::move(clock));
      }()) {}

ParamGate::~ParamGate() {
  InlineStream host(Device{});
  try {
    // Other ranks may be waiting for this one's part. A step that broke off is another matter:
    // its gathers cannot be issued, and whoever broke it off has aborted the group. So are gathers
    // on demand that nobody here has asked for: they end only if all ranks go on reading, and this
    // one may have broken off.
    const bool flows = options_.overlap && options_.window_bytes > 0;
    const int buckets = static_cast<int>(buffer_.plan().buckets().size());
    for (int b = 0; b < buckets && !chain_->InsideStep(); ++b) {
      if (flows || chain_->Queued(b)) chain_->WaitCurrent(b, host, "the end of training");
    }
  } catch (const comm::GroupError&) {
    // The group's failure has been thrown where it mattered; here it only ends the waiting.
  }
  chain_->Stop();
}

ParamLease ParamGate::Read(const Parameter& parameter, Stream& stream, absl::string_view reader) {
  buffer_.Seal();
  Tensor value = buffer_.Param(parameter);
  if (!parameter.trainable()) return ParamLease(value.AsReadOnly());
  const int index = buffer_.plan().IndexOf(parameter);
  for (int bucket : buffer_.plan().BucketsOf(index)) chain_->WaitCurrent(bucket, stream, reader);
  return ParamLease(value.OwnedBy(leases_->Open(index, reader)).AsReadOnly());
}

void ParamGate::EndReads() { chain_->EndReads(); }

absl::Status ParamGate::CheckNoLeases() const {
  absl::Span<const Parameter* const> parameters = buffer_.plan().parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto holder = leases_->Holder(static_cast<int>(i));
    if (!holder.has_value()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("parameter ", parameters[i]->name(), " cannot be updated: ", *holder,
                     " still holds a tensor of it from before the optimizer step"));
  }
  return absl::OkStatus();
}

void ParamGate::Accept(int bucket, Stream& stream) {
  buffer_.Seal();
  chain_->WaitCurrent(bucket, stream, "the optimizer");
  chain_->Accept(bucket);
  if (options_.poison) Poison(bucket);
}

void ParamGate::Publish(int bucket) { chain_->Publish(bucket); }

void ParamGate::Finish(Stream& stream) {
  if (options_.overlap) return;
  for (size_t b = 0; b < buffer_.plan().buckets().size(); ++b) {
    chain_->WaitCurrent(static_cast<int>(b), stream, "the end of the step");
  }
}

void ParamGate::Poison(int bucket) {
  const Tensor whole = buffer_.ParamBucket(bucket);
  const int64_t shard_numel = whole.numel() / buffer_.plan().shards();
  for (int shard = 0; shard < buffer_.plan().shards(); ++shard) {
    if (shard == shard_) continue;
    FillNan(whole.Slice(0, shard * shard_numel, (shard + 1) * shard_numel));
  }
}

int64_t ParamGate::version(int bucket) const { return chain_->Version(bucket); }
TransferLog& ParamGate::log() { return chain_->log(); }
std::vector<int> ParamGate::order() const { return chain_->Order(); }

void ParamGate::SetOrder(std::vector<int> order, Stream& stream) {
  for (int bucket : chain_->Order()) chain_->WaitCurrent(bucket, stream, "a new gather order");
  chain_->SetOrder(std::move(order));
}

}  // namespace forerun
