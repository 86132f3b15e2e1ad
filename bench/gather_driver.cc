// SPDX-License-Identifier: Apache-2.0
#include "bench/gather_driver.h"

#include <numeric>
#include <utility>

#include "bench/one_ahead_chain.h"
#include "core/base/check.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/testing/layered_rank.h"

namespace forerun {
namespace {

class GateDriver final : public GatherDriver {
 public:
  GateDriver(const SyncCase& sync_case, const OpContext& op, comm::ProcessGroup& group,
             bool overlap, const SecondsClock& clock)
      : stream_(*op.stream),
        model_({sync_case.numel, sync_case.registration}, op, group, overlap, clock) {}

  void Update(int layer, absl::FunctionRef<void()> write) override {
    model_.gate().Accept(model_.bucket(layer), stream_);
    write();
    model_.gate().Publish(model_.bucket(layer));
  }
  void EndUpdate() override { model_.gate().Finish(stream_); }
  void Read(int layer) override {
    const Parameter& parameter = model_.parameter(layer);
    model_.gate().Read(parameter, stream_, parameter.name());
  }
  std::vector<double> TakeWaited() override {
    const std::vector<TransferRecord> records = model_.gate().log().records();
    model_.gate().log().ResetRecords();
    std::vector<double> waited;
    for (int layer = 0; layer < model_.layers(); ++layer) {
      waited.push_back(records[model_.bucket(layer)].waited);
    }
    return waited;
  }

 private:
  Stream& stream_;
  LayeredRank model_;
};

class OneAheadDriver final : public GatherDriver {
 public:
  OneAheadDriver(const SyncCase& sync_case, const std::vector<int>& order, const OpContext& op,
                 comm::ProcessGroup& group, SecondsClock clock)
      : stream_(*op.stream),
        group_(group),
        clock_(std::move(clock)),
        chain_(order),
        works_(sync_case.layers()),
        waited_(sync_case.layers()) {
    for (int64_t numel : sync_case.numel) {
      buckets_.push_back(op.Empty({numel}, DType::kF32));
      const int64_t shard = numel / group.size();
      shards_.push_back(buckets_.back().Slice(0, group.rank() * shard, (group.rank() + 1) * shard));
    }
  }

  void Update(int, absl::FunctionRef<void()> write) override { write(); }
  void EndUpdate() override { chain_.OnStep(); }
  void Read(int layer) override {
    const double begin = clock_();
    Start(chain_.OnWanted(layer));
    works_[layer].Wait(stream_);
    waited_[layer] += clock_() - begin;
    Start(chain_.OnWaited(layer));
  }
  std::vector<double> TakeWaited() override {
    return std::exchange(waited_, std::vector<double>(waited_.size()));
  }

 private:
  void Start(const std::vector<int>& buckets) {
    for (int b : buckets) works_[b] = group_.AllGather(shards_[b], buckets_[b]);
  }

  Stream& stream_;
  comm::ProcessGroup& group_;
  const SecondsClock clock_;
  OneAheadChain chain_;
  std::vector<Tensor> buckets_;  // by layer, as are the rest
  std::vector<Tensor> shards_;
  std::vector<comm::Work> works_;
  std::vector<double> waited_;
};

std::vector<int> InOrder(int layers) {
  std::vector<int> order(layers);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

std::vector<GatherPolicy> GatherPolicies() {
  return {GatherPolicy::kForwardEager, GatherPolicy::kForwardOneAhead,
          GatherPolicy::kRegistrationOneAhead, GatherPolicy::kBlocking};
}

std::string NameOf(GatherPolicy policy) {
  switch (policy) {
    case GatherPolicy::kForwardEager:
      return "forward-eager";
    case GatherPolicy::kForwardOneAhead:
      return "forward-one-ahead";
    case GatherPolicy::kRegistrationOneAhead:
      return "registration-one-ahead";
    case GatherPolicy::kBlocking:
      return "blocking";
  }
  return "";
}

std::unique_ptr<GatherDriver> MakeGatherDriver(GatherPolicy policy, const SyncCase& sync_case,
                                               const OpContext& op, comm::ProcessGroup& group,
                                               const SecondsClock& clock) {
  switch (policy) {
    case GatherPolicy::kForwardEager:
    case GatherPolicy::kBlocking:
      return std::make_unique<GateDriver>(sync_case, op, group,
                                          policy == GatherPolicy::kForwardEager, clock);
    case GatherPolicy::kForwardOneAhead:
      return std::make_unique<OneAheadDriver>(sync_case, InOrder(sync_case.layers()), op, group,
                                              clock);
    case GatherPolicy::kRegistrationOneAhead:
      return std::make_unique<OneAheadDriver>(sync_case, sync_case.registration, op, group, clock);
  }
  return nullptr;
}

}  // namespace forerun
