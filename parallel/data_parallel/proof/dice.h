// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/random/random.h"

namespace forerun::proof {

// Draws one after the other from one key: the same key gives the same draws everywhere.
class Dice {
 public:
  explicit Dice(RandomKey key) : key_(key) {}

  // In [0, n).
  int Below(int n) { return static_cast<int>(UniformAt(key_, draws_++) * static_cast<float>(n)); }
  // In [low, high].
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool Chance(float probability) { return UniformAt(key_, draws_++) < probability; }

  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (int i = static_cast<int>(items.size()) - 1; i > 0; --i) {
      std::swap(items[i], items[Below(i + 1)]);
    }
  }

 private:
  RandomKey key_;
  uint64_t draws_ = 0;
};

}  // namespace forerun::proof
