// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>

// Where memory lies, and in which order work on it happens. Small on purpose: what a backend adds
// (handles, pools, graphs) stays behind these interfaces.
namespace forerun {

enum class DeviceKind : uint8_t {
  kCpu,
  kCuda,
  kMeta,  // shapes only: tensors without memory
};

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;

  bool operator==(const Device&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Device& device);

// A point in a stream. Immutable once recorded; any thread may ask.
class Event {
 public:
  virtual ~Event() = default;
  // Whether all work issued to the stream before the record has ended.
  virtual bool Done() const = 0;
  // Blocks the host until Done().
  virtual void Synchronize() const = 0;
};

// A queue of work that runs in order. On cpu and meta work runs in the caller, so the queue is
// always empty. A stream belongs to one thread.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  // Marks everything issued so far.
  virtual std::shared_ptr<const Event> Record() = 0;
  // Work issued from now on starts after `event`; the host does not wait where the device can.
  virtual void WaitFor(const Event& event) = 0;
  // Blocks the host until everything issued so far has ended.
  virtual void Synchronize() = 0;
};

// The stream of a device whose work runs in the caller: cpu and meta.
class InlineStream final : public Stream {
 public:
  explicit InlineStream(Device device) : device_(device) {}
  Device device() const override { return device_; }
  std::shared_ptr<const Event> Record() override;
  void WaitFor(const Event& event) override { event.Synchronize(); }
  void Synchronize() override {}

 private:
  const Device device_;
};

}  // namespace forerun
