// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/tensor/stateful.h"

namespace forerun {

// A checkpoint in memory, of whole (not tensor-parallel) tensors. Ranks share it; any thread may
// call.
class StateMap {
 public:
  // Fails where an element was saved before.
  absl::Status Save(Stateful& state);
  // Fails where something was never saved.
  absl::Status Load(Stateful& state) const;

  std::vector<std::string> names() const;
  std::vector<double> values(const std::string& name) const;
  bool Complete() const;  // every element of what was saved was saved
  bool operator==(const StateMap& other) const;

 private:
  struct Entry {
    std::vector<double> values;
    std::vector<bool> saved;
    bool operator==(const Entry&) const = default;
  };
  std::map<std::string, Entry> Entries() const;
  absl::Status SavePiece(const StatePiece& piece);
  absl::Status LoadPiece(const StatePiece& piece) const;

  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace forerun
