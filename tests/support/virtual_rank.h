// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "core/autograd/testing/test_device.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/link/clock.h"
#include "parallel/comm/link/link_group.h"
#include "parallel/comm/link/virtual_clock.h"
#include "parallel/data_parallel/testing/layered_rank.h"

namespace forerun {

// One data-parallel rank of two in virtual time: compute takes the time that it is told to, and
// every message takes its bytes' time on one link. The product's own gate, reducer and records; all
// times are exact, to the nanosecond.
class VirtualRank {
 public:
  using Time = comm::Clock::Time;
  static constexpr Time kUnit = std::chrono::microseconds(100);

  struct Spec {
    // By layer: how long its gather, or its reduction, is on the link. Multiples of kUnit.
    std::vector<Time> messages;
    Time forward{0};  // of a layer
    Time backward{0};
    Time update{0};  // of a bucket
    bool overlap = true;
  };

  explicit VirtualRank(const Spec& spec);

  // The phases of a step, in this order. Each returns when it ended.
  Time Forward();
  Time Backward();
  Time WaitForReductions();
  Time Update();

  LayeredRank& model() { return *model_; }

 private:
  const Spec spec_;
  comm::VirtualClock clock_;
  TestDevice device_{DeviceKind::kCpu};
  comm::FakeGroupFactory fake_{0, 2};
  comm::LinkGroupFactory linked_;
  std::unique_ptr<comm::ProcessGroup> group_;
  std::unique_ptr<LayeredRank> model_;
};

}  // namespace forerun
