// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/config.h"

namespace forerun {

// Which layers of a stage keep only their input for the backward pass, which runs them once more
// (core/autograd/recompute.h): Megatron-LM's full recompute granularity. Saves memory for time and
// changes no bit.
struct RecomputePlan {
  enum class Method : uint8_t {
    kNone,     // all layers keep what their backward pass needs
    kUniform,  // all layers, in groups of num_layers; each group keeps its input
    kBlock,    // the first num_layers, one by one; the others keep all
  };
  Method method = Method::kNone;
  int num_layers = 1;  // at least 1; more than a stage has means all of them
};

// Layers that run one after the other: as one recomputed segment, or as they are.
struct LayerSegment {
  LayerRange layers;  // counted from the stage's first
  bool recompute = false;

  bool operator==(const LayerSegment&) const = default;
};

// Cuts the layers of a stage into segments: in order, each layer in exactly one.
std::vector<LayerSegment> SegmentsOf(int layers, const RecomputePlan& plan);

}  // namespace forerun
