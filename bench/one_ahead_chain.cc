// SPDX-License-Identifier: Apache-2.0
#include "bench/one_ahead_chain.h"

#include <cstddef>

namespace forerun {

OneAheadChain::OneAheadChain(const std::vector<int>& order)
    : successor_(order.size(), -1), started_(order.size(), false) {
  for (size_t i = 0; i + 1 < order.size(); ++i) successor_[order[i]] = order[i + 1];
}

void OneAheadChain::OnStep() { started_.assign(started_.size(), false); }

std::vector<int> OneAheadChain::OnWanted(int bucket) { return Start(bucket); }

std::vector<int> OneAheadChain::OnWaited(int bucket) {
  return successor_[bucket] < 0 ? std::vector<int>{} : Start(successor_[bucket]);
}

std::vector<int> OneAheadChain::Start(int bucket) {
  if (started_[bucket]) return {};
  started_[bucket] = true;
  return {bucket};
}

}  // namespace forerun
