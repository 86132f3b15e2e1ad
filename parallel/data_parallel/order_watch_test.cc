// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/order_watch.h"

#include <map>
#include <memory>
#include <string>

#include "core/autograd/tape.h"
#include "core/device/device.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

// Parameters a..e, of which c is optional, and a graph that reads a b c d a; e is optional and not
// in the recorded pass.
class OrderWatchTest : public testing::Test {
 protected:
  OrderWatchTest() {
    for (char name : std::string("abcde")) {
      ParameterSpec spec;
      spec.name = std::string(1, name);
      spec.global_shape = {4};
      spec.box = Box::Whole(spec.global_shape);
      if (name == 'c' || name == 'e') spec.kind = ParameterKind::kOptional;
      owned_.push_back(std::make_unique<Parameter>(static_cast<int>(owned_.size()), spec));
      all_.push_back(owned_.back().get());
    }
    graph_ = std::make_unique<ForwardOrderGraph>(
        *RecordForwardOrder(all_, [&](ParamReader& reader, Tape&) {
          InlineStream stream(Device{DeviceKind::kMeta});
          for (char name : std::string("abcda")) {
            (void)reader.Read(Named(name), stream, std::string("layer ") + name);
          }
        }));
    watch_ = std::make_unique<OrderWatch>(*graph_);
  }

  const Parameter& Named(char name) const { return *all_[name - 'a']; }

  void Pass(const std::string& names) {
    watch_->BeginPass();
    for (char name : names) watch_->OnRead(Named(name));
    watch_->EndPass();
  }

  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<const Parameter*> all_;
  std::unique_ptr<ForwardOrderGraph> graph_;
  std::unique_ptr<OrderWatch> watch_;
};

TEST_F(OrderWatchTest, TheRecordedOrderIsNoDifference) {
  Pass("abcda");
  Pass("abcda");
  EXPECT_EQ(watch_->differences().passes, 0);
  EXPECT_TRUE(watch_->status().ok());
}

TEST_F(OrderWatchTest, LeavingOutAnOptionalUseIsNoDifference) {
  Pass("abda");
  EXPECT_EQ(watch_->differences().reads, 0);
  EXPECT_TRUE(watch_->status().ok());
}

TEST_F(OrderWatchTest, AnOptionalParameterThatTheRecordedPassLeftOutIsCounted) {
  Pass("abecda");
  EXPECT_EQ(watch_->differences().reads, 1);
  EXPECT_EQ(watch_->differences().first,
            "a forward pass read e at place 2 where layer c was to read c");
}

TEST_F(OrderWatchTest, ASwapIsCountedAndTheFirstDifferenceNamed) {
  Pass("abcda");
  Pass("bacda");
  Pass("bacda");
  EXPECT_EQ(watch_->differences().passes, 2);
  EXPECT_EQ(watch_->differences().first,
            "a forward pass read b at place 0 where layer a was to read a");
  EXPECT_TRUE(watch_->status().ok()) << "everything was read";
}

TEST_F(OrderWatchTest, AnotherNumberOfUsesIsADifferenceAndNoError) {
  Pass("abcd");
  EXPECT_EQ(watch_->differences().passes, 1);
  EXPECT_EQ(watch_->differences().first,
            "a forward pass ended at place 4 where layer a was to read a");
  Pass("abcdaa");
  EXPECT_EQ(watch_->differences().passes, 2);
  EXPECT_TRUE(watch_->status().ok());
}

TEST_F(OrderWatchTest, AParameterThatIsNotOptionalAndNotReadIsAnErrorThatNamesIt) {
  Pass("abca");
  EXPECT_EQ(
      watch_->status().message(),
      "forward order: a forward pass did not read d, which the recorded one does; declare what "
      "a model may leave out as optional");
}

TEST_F(OrderWatchTest, ReadsOutsideAPassDoNotCount) {
  Pass("abcda");
  watch_->OnRead(Named('d'));
  EXPECT_EQ(watch_->reads().size(), 5u);
  Pass("abcda");
  EXPECT_EQ(watch_->differences().reads, 0);
}

TEST(ForwardOrderModeByName, KnowsThreeNames) {
  EXPECT_EQ(*ForwardOrderModeByName("strict"), ForwardOrderMode::kStrict);
  EXPECT_EQ(*ForwardOrderModeByName("warn"), ForwardOrderMode::kWarn);
  EXPECT_EQ(*ForwardOrderModeByName("adopt"), ForwardOrderMode::kAdopt);
  EXPECT_EQ(ForwardOrderModeByName("lax").status().message(), "lax is not strict, warn or adopt");
}

}  // namespace
}  // namespace forerun
