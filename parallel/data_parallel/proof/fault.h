// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace forerun::proof {

// What the proof holds to be true of every run.
enum class Property : uint8_t {
  kFreshRead,    // a read sees, in every shard, the version of the last accepted step
  kGateClosed,   // the gate is closed from acceptance until the gather has ended
  kOnceAStep,    // each gather and each reduction comes once a step, in plan order
  kOneSequence,  // all ranks issue one sequence
  kAfterUpdate,  // a gather is issued only after this rank's own update has ended
  kExactSum,     // what is reduced is every contribution of every microbatch and rank, once
  kNotTouched,   // nobody writes to a buffer while an operation has it
  kWindow,       // what the chain starts by itself fits into the window, or is alone in flight;
                 // a reader advances it to the wanted bucket and no further
  kEager,        // what is published, next, and fits into the window has been started
  kNoDeadlock,   // every rank comes to its end
};

absl::string_view NameOf(Property property);

struct Fault {
  Property property;
  std::string text;
};

}  // namespace forerun::proof
