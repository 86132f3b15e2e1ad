// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/autograd/grad_sink.h"
#include "core/autograd/parameter.h"
#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// The simplest sink: one fp32 tensor a parameter, overwritten by its first contribution and added
// to by later ones. It fails a check where the order of GradSink's class comment is not kept, and
// fills a slot with NaN before it is overwritten, so that an element left out shows. Belongs to
// one thread; the context's members outlive it.
class MapSink final : public GradSink {
 public:
  explicit MapSink(const OpContext& context) : context_(context) {}

  GradSlot Slot(const Parameter& parameter) override;
  void Contributed(const Parameter& parameter, std::shared_ptr<const Event> event) override;

  // The sum of all contributions so far, undefined where there were none.
  Tensor gradient(const Parameter& parameter) const;
  // Its elements (cpu).
  std::vector<float> Values(const Parameter& parameter) const;
  int contributions(const Parameter& parameter) const;
  // One entry a contribution so far.
  const std::vector<const Parameter*>& log() const { return log_; }

  // Forgets all: the next contribution of each parameter overwrites.
  void Clear();

 private:
  struct Sum {
    Tensor gradient;
    int contributions = 0;
    bool open = false;  // between Slot and Contributed
  };
  const OpContext context_;
  absl::flat_hash_map<const Parameter*, Sum> sums_;
  std::vector<const Parameter*> log_;
};

}  // namespace forerun
