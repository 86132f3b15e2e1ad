// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/proof/interleavings.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "parallel/data_parallel/proof/chain_world.h"

namespace forerun::proof {
namespace {

struct State {
  ChainWorld world;
  std::vector<Choice> possible;
};

}  // namespace

Exploration ExploreAll(const ChainSpec& spec) {
  Exploration result;
  absl::flat_hash_set<size_t> seen;
  std::vector<State> open;
  open.push_back({ChainWorld(spec), ChainWorld(spec).Begin()});
  while (!open.empty()) {
    State state = std::move(open.back());
    open.pop_back();
    if (state.possible.empty()) state.world.CheckEnd();
    result.fault = state.world.fault();
    if (result.fault.has_value()) break;
    for (size_t i = 0; i < state.possible.size(); ++i) {
      State next = state;
      const Choice choice = next.possible[i];
      next.possible.erase(next.possible.begin() + static_cast<std::ptrdiff_t>(i));
      next.world.Take(choice, next.possible);
      ++result.transitions;
      if (seen.insert(absl::HashOf(next.world)).second) open.push_back(std::move(next));
    }
  }
  result.states = static_cast<int64_t>(seen.size()) + 1;
  return result;
}

}  // namespace forerun::proof
