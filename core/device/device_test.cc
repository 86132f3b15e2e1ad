// SPDX-License-Identifier: Apache-2.0
#include "core/device/device.h"

#include <sstream>

#include "gtest/gtest.h"

namespace forerun {
namespace {

std::string Name(Device device) {
  std::ostringstream out;
  out << device;
  return out.str();
}

TEST(Device, PrintsItsKindAndWhereThereAreSeveralItsIndex) {
  EXPECT_EQ(Name(Device{}), "cpu");
  EXPECT_EQ(Name(Device{DeviceKind::kMeta}), "meta");
  EXPECT_EQ(Name(Device{DeviceKind::kCuda, 3}), "cuda:3");
}

TEST(InlineStream, WorkIsDoneWhenItIsIssued) {
  InlineStream stream(Device{DeviceKind::kMeta});
  EXPECT_EQ(stream.device(), Device{DeviceKind::kMeta});
  const std::shared_ptr<const Event> event = stream.Record();
  EXPECT_TRUE(event->Done());
  event->Synchronize();
  stream.WaitFor(*event);
  stream.Synchronize();
}

}  // namespace
}  // namespace forerun
