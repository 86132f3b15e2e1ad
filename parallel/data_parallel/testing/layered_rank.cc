// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/testing/layered_rank.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/device/device.h"
#include "parallel/data_parallel/forward_order.h"

namespace forerun {

LayeredRank::LayeredRank(const Layers& layers, const OpContext& op, comm::ProcessGroup& group,
                         bool overlap, const SecondsClock& clock) {
  FR_CHECK_EQ(layers.numel.size(), layers.registration.size()) << "layers that are registered";
  parameters_.resize(layers.numel.size());
  for (int layer : layers.registration) {
    const Shape shape{layers.numel[layer]};
    parameters_[layer] = &registry_.Declare(
        {.name = absl::StrCat("layer", layer), .global_shape = shape, .box = Box::Whole(shape)},
        Init::Zeros());
  }
  const auto graph = RecordForwardOrder(registry_.parameters(), [this](ParamReader& reader, Tape&) {
    InlineStream meta(Device{DeviceKind::kMeta});
    for (const Parameter* parameter : parameters_) {
      reader.Read(*parameter, meta, parameter->name());
    }
  });
  FR_CHECK(graph.ok()) << graph.status().message();
  plan_ = std::make_unique<BucketPlan>(
      graph->first_use_order(), BucketPlanOptions{.shards = group.size(), .bucket_numel = 1});
  buffer_ = std::make_unique<BucketBuffer>(*plan_, absl::Span<const Parameter* const>(), op);
  reducer_ =
      std::make_unique<GradReducer>(*buffer_, std::vector<int>(layers.numel.size(), 0),
                                    /*chunks=*/1, group, GradReducer::Options{overlap}, clock);
  gate_ = std::make_unique<ParamGate>(*buffer_, group, ParamGate::Options{overlap}, clock);
}

}  // namespace forerun
