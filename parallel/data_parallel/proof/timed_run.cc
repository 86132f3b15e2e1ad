// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/proof/timed_run.h"

#include <chrono>
#include <vector>

#include "parallel/comm/link/virtual_clock.h"
#include "parallel/data_parallel/proof/chain_world.h"

namespace forerun::proof {
namespace {

class TimedRun {
 public:
  TimedRun(const ChainSpec& spec, const Delays& delays, Dice dice)
      : delays_(delays), dice_(dice), world_(spec) {}

  absl::optional<Fault> Run() {
    possible_ = world_.Begin();
    Schedule();
    while (!world_.fault().has_value() && clock_.Advance()) {
    }
    if (!world_.fault().has_value()) world_.CheckEnd();
    return world_.fault();
  }

 private:
  void Schedule() {
    for (const Choice& choice : possible_) {
      const comm::Clock::Time delay(Delay(choice.kind));
      clock_.CallAt(clock_.Now() + delay, [this, choice] {
        possible_.clear();
        world_.Take(choice, possible_);
        Schedule();
      });
    }
  }

  int Delay(Choice::Kind kind) {
    const int usual = kind == Choice::Kind::kCompute ? delays_.compute : delays_.message;
    return dice_.Below(usual + 1) * (dice_.Chance(0.05f) ? 30 : 1);
  }

  const Delays delays_;
  Dice dice_;
  comm::VirtualClock clock_;
  ChainWorld world_;
  std::vector<Choice> possible_;  // newly
};

}  // namespace

absl::optional<Fault> RunInVirtualTime(const ChainSpec& spec, const Delays& delays, Dice dice) {
  return TimedRun(spec, delays, dice).Run();
}

}  // namespace forerun::proof
