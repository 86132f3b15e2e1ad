// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/autograd/param_reader.h"
#include "parallel/data_parallel/forward_order.h"

namespace forerun {

// What happens when forward passes read parameters in another order than the recorded one. The gate
// keeps every read right in any case; only speed is at stake.
enum class ForwardOrderMode : uint8_t {
  kStrict,  // the step ends with an error
  kWarn,    // differences are counted and the first is named
  kAdopt,   // and gathers follow a new order that all ranks saw several steps running
};
// "strict", "warn" or "adopt"; an error lists the names.
absl::StatusOr<ForwardOrderMode> ForwardOrderModeByName(absl::string_view name);

// Compares what a chunk's training forward passes really read with its graph. A read costs the
// appending of a pointer; the walk along the graph comes at the end of the pass.
//
// A read is as expected when it is the graph's next, uses of optional parameters left out. After
// one that is not, the walk goes on behind the next use of that parameter. Belongs to the compute
// thread.
class OrderWatch {
 public:
  struct Differences {
    int64_t passes = 0;  // that differed
    int64_t reads = 0;   // that were not the graph's next
    std::string first;   // a sentence; empty if there is none
  };

  // The graph outlives the watch.
  explicit OrderWatch(const ForwardOrderGraph& graph) : graph_(graph) {}

  // Reads count from BeginPass to EndPass: those of recomputation in the backward pass do not.
  void BeginPass();
  void OnRead(const Parameter& parameter) {
    if (inside_) reads_.push_back(&parameter);
  }
  void EndPass();

  const Differences& differences() const { return differences_; }
  // Fails, naming it, where a pass never read a parameter that the graph reads and that is not
  // optional: other ranks may have, and nobody said that this could happen.
  absl::Status status() const { return status_; }
  // What the last pass read, in its order.
  absl::Span<const Parameter* const> reads() const { return reads_; }

 private:
  // The index of the graph's next use of `parameter` from `at` on, stepping over optional ones
  // only, or else -1.
  int Expected(const Parameter* parameter, int at) const;
  void Note(size_t read, int at);
  void CheckAllRead();

  const ForwardOrderGraph& graph_;
  bool inside_ = false;
  std::vector<const Parameter*> reads_;
  Differences differences_;
  absl::Status status_;
};

// The reader of training forward passes: tells the watch and asks the gate. Both outlive it.
class WatchedReader final : public ParamReader {
 public:
  WatchedReader(OrderWatch& watch, ParamReader& gate) : watch_(watch), gate_(gate) {}
  ParamLease Read(const Parameter& parameter, Stream& stream, absl::string_view reader) override {
    watch_.OnRead(parameter);
    return gate_.Read(parameter, stream, reader);
  }

 private:
  OrderWatch& watch_;
  ParamReader& gate_;
};

}  // namespace forerun
