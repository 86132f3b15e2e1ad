// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/param_reader.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/lease_book.h"
#include "parallel/data_parallel/param_sync.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

// The gate, and the driver of ParamSync: every value of a parameter leaves through Read, which
// waits for the bucket's gather; every update goes Accept, write the shard, Publish.
//
// Threads: Read, EndReads, Accept, Publish and Finish are the compute thread's. Completions arrive
// on any thread and let the chain go on from there. No lock is held while the group is called, so a
// completion may run inside a call of this very gate.
class ParamGate final : public ParamReader {
 public:
  struct Options {
    // Gathers start as soon as their shard is published and run under the next forward pass.
    // Otherwise all of them end in Finish.
    bool overlap = true;
    int64_t window_bytes = int64_t{256} << 20;  // issued and not completed
    // Debugging: what has not been gathered yet is NaN, so a stale read cannot hide.
    bool poison = false;
  };

  // The group has as many ranks as the plan has shards. Buffer, group and clock outlive the gate.
  ParamGate(BucketBuffer& buffer, comm::ProcessGroup& group, const Options& options,
            SecondsClock clock);
  // Ends the gathers of what was published, unless the group has failed. Without a window that lets
  // them flow, what no reader has asked for is not gathered any more.
  ~ParamGate() override;

  ParamLease Read(const Parameter& parameter, Stream& stream, absl::string_view reader) override;

  // The step reads no more, and this rank will now wait for others: starts what nobody here read
  // and no window lets go, since another rank may be waiting for it.
  void EndReads();
  // Before any bucket of a step is accepted: fails with the names of parameter and holder if a
  // lease is alive, for its tensor would change under whoever kept it.
  absl::Status CheckNoLeases() const;
  // Before this rank's shard of the bucket is written: waits until the last gather has ended, and
  // advances the version.
  void Accept(int bucket, Stream& stream);
  // After it was written: the bucket's gather may start.
  void Publish(int bucket);
  // After the last bucket of a step. Blocks until all is gathered where gathers do not overlap.
  void Finish(Stream& stream);

  // The order of gathers, and of updates: forward order, until another is adopted. The new one is a
  // permutation, the same on every rank; this waits until all buckets are current.
  std::vector<int> order() const;
  void SetOrder(std::vector<int> order, Stream& stream);

  const BucketPlan& plan() const { return buffer_.plan(); }
  int64_t version(int bucket) const;
  TransferLog& log();  // of the gathers

 private:
  class Chain;

  void Poison(int bucket);

  BucketBuffer& buffer_;
  const Options options_;
  const int shard_;
  const std::shared_ptr<LeaseBook> leases_;
  const std::shared_ptr<Chain> chain_;  // shared with completions in flight
};

}  // namespace forerun
