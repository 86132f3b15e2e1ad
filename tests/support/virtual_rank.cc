// SPDX-License-Identifier: Apache-2.0
#include "tests/support/virtual_rank.h"

#include <cstdint>
#include <numeric>

namespace forerun {
namespace {

// A bucket has a multiple of 2 x 64 fp32 elements, and half of its bytes are on the wire.
constexpr int64_t kNumelOfUnit = 128;
constexpr double kBytesPerSecond = 256.0 / 100e-6;

LayeredRank::Layers LayersOf(const std::vector<VirtualRank::Time>& messages) {
  LayeredRank::Layers layers;
  for (const VirtualRank::Time time : messages) {
    layers.numel.push_back(kNumelOfUnit * (time / VirtualRank::kUnit));
  }
  layers.registration.resize(messages.size());
  std::iota(layers.registration.rbegin(), layers.registration.rend(), 0);  // reversed
  return layers;
}

}  // namespace

VirtualRank::VirtualRank(const Spec& spec)
    : spec_(spec),
      linked_(fake_, std::make_shared<comm::Link>(
                         comm::Link::Options{.bytes_per_second = kBytesPerSecond}, clock_)),
      group_(linked_.Create("dp", {0, 1})),
      model_(std::make_unique<LayeredRank>(
          LayersOf(spec.messages), device_.op(), *group_, spec.overlap,
          [this] { return std::chrono::duration<double>(clock_.Now()).count(); })) {}

VirtualRank::Time VirtualRank::Forward() {
  model_->reducer().BeginStep(1);
  std::vector<const Parameter*> uses;
  for (int layer = 0; layer < model_->layers(); ++layer) {
    const Parameter& parameter = model_->parameter(layer);
    model_->gate().Read(parameter, *device_.op().stream, parameter.name());
    clock_.AdvanceBy(spec_.forward);
    uses.push_back(&parameter);
  }
  model_->reducer().Announce(/*chunk=*/0, uses);
  return clock_.Now();
}

VirtualRank::Time VirtualRank::Backward() {
  for (int layer = model_->layers() - 1; layer >= 0; --layer) {
    clock_.AdvanceBy(spec_.backward);
    model_->reducer().Slot(model_->parameter(layer));
    model_->reducer().Contributed(model_->parameter(layer), device_.op().stream->Record());
  }
  return clock_.Now();
}

VirtualRank::Time VirtualRank::WaitForReductions() {
  for (int layer = model_->layers() - 1; layer >= 0; --layer) {
    model_->reducer().Wait(model_->bucket(layer), *device_.op().stream);
  }
  return clock_.Now();
}

VirtualRank::Time VirtualRank::Update() {
  Stream& stream = *device_.op().stream;
  for (int layer = 0; layer < model_->layers(); ++layer) {
    model_->gate().Accept(model_->bucket(layer), stream);
    clock_.AdvanceBy(spec_.update);
    model_->gate().Publish(model_->bucket(layer));
  }
  model_->gate().Finish(stream);
  return clock_.Now();
}

}  // namespace forerun
