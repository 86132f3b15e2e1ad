// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/testing/random_model.h"

#include <string>
#include <utility>

#include "core/random/random.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace forerun {

RandomModel::RandomModel(uint64_t seed, int parameters, int64_t most_numel, double shared)
    : seed_(seed) {
  const RandomKey key = RandomKey::Root(seed).Fold("parameters");
  for (int i = 0; i < parameters; ++i) {
    const RandomKey of = key.Fold(i);
    ParameterSpec spec;
    spec.name = "p" + std::to_string(i);
    spec.global_shape = {1 + static_cast<int64_t>(UniformAt(of, 0) * most_numel)};
    spec.box = Box::Whole(spec.global_shape);
    spec.dtype = UniformAt(of, 1) < 0.3f ? DType::kF32 : DType::kBF16;
    if (UniformAt(of, 2) < shared) spec.sharing = Sharing::kPrimary;
    owned_.push_back(std::make_unique<Parameter>(i, std::move(spec)));
    order_.push_back(owned_.back().get());
  }
}

ForwardTimeline RandomModel::Timeline(int64_t most_nanoseconds) const {
  const RandomKey key = RandomKey::Root(seed_).Fold("timeline");
  ForwardTimeline timeline;
  int64_t nanoseconds = 0;
  for (int i = 0; i <= size(); ++i) {
    nanoseconds += static_cast<int64_t>(UniformAt(key, i) * most_nanoseconds);
    const double seconds = static_cast<double>(nanoseconds) * 1e-9;
    if (i < size()) timeline.before.push_back(seconds);
    timeline.total = seconds;
  }
  return timeline;
}

std::vector<int> RandomModel::Cuts(double density) const {
  const RandomKey key = RandomKey::Root(seed_).Fold("cuts");
  std::vector<int> cuts;
  for (int place = 1; place < size(); ++place) {
    if (UniformAt(key, place) < density) cuts.push_back(place);
  }
  return cuts;
}

}  // namespace forerun
