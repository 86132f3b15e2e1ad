// SPDX-License-Identifier: Apache-2.0
#include "core/device/device.h"

namespace forerun {
namespace {

class DoneEvent final : public Event {
 public:
  bool Done() const override { return true; }
  void Synchronize() const override {}
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Device& device) {
  switch (device.kind) {
    case DeviceKind::kCpu:
      return out << "cpu";
    case DeviceKind::kMeta:
      return out << "meta";
    case DeviceKind::kCuda:
      return out << "cuda:" << device.index;
  }
  return out;
}

std::shared_ptr<const Event> InlineStream::Record() { return std::make_shared<DoneEvent>(); }

}  // namespace forerun
