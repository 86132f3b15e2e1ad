// SPDX-License-Identifier: Apache-2.0
// All interleavings of 3 ranks, 3 buckets and 2 steps. In every state each rank may do its next
// instruction (begin a step, read a parameter, announce, contribute, accept, publish), and may
// learn that any gather or reduction under way has ended: each of these is one choice.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "gtest/gtest.h"
#include "parallel/data_parallel/proof/interleavings.h"

namespace forerun::proof {
namespace {

using Kind = Instruction::Kind;

constexpr int kRanks = 3;
constexpr int kBuckets = 3;
constexpr int kSteps = 2;
constexpr int64_t kBytes = 10;  // of a bucket

// Three parameters, each a bucket. Each rank reads in its own order and contributes in another,
// and may leave some out.
struct Orders {
  std::vector<int> reads;
  std::vector<int> contributions;
};

std::vector<Instruction> Program(const Orders& orders, int rank, ChainSpec& spec) {
  std::vector<Instruction> program;
  for (int step = 0; step < kSteps; ++step) {
    if (step > 0 && !spec.orders.empty()) program.push_back({Kind::kSetOrder, 0});
    program.push_back({Kind::kBeginStep, 1});
    for (int parameter : orders.reads) program.push_back({Kind::kRead, parameter});
    program.push_back({Kind::kAnnounce, 0, static_cast<int64_t>(spec.announcements.size())});
    spec.announcements.push_back(orders.contributions);
    for (int parameter : orders.contributions) {
      program.push_back({Kind::kContribute, parameter, 100 * step + 10 * rank + 1});
    }
    program.push_back({Kind::kAwaitReductions});
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      program.push_back({Kind::kAccept, bucket});
      program.push_back({Kind::kPublish, bucket});
    }
  }
  for (int parameter = 0; parameter < kBuckets; ++parameter) {
    program.push_back({Kind::kRead, parameter});
  }
  return program;
}

// `new_order`: of gathers from the second step on, if given.
ChainSpec SmallChain(int64_t window, const std::vector<Orders>& orders,
                     const std::vector<int>& new_order = {}) {
  ChainSpec spec;
  if (!new_order.empty()) spec.orders.push_back(new_order);
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    spec.gather.order.push_back(bucket);
    spec.gather.bytes.push_back(kBytes);
    spec.reduce.parameters_of_bucket.push_back({bucket});
    spec.reduce.chunk_of_parameter.push_back(0);
    spec.reduce.order.push_back(kBuckets - 1 - bucket);
    spec.buckets_of_parameter.push_back({bucket});
  }
  spec.gather.window_bytes = window;
  spec.awaited_of_parameter = spec.buckets_of_parameter;
  for (int rank = 0; rank < kRanks; ++rank) {
    spec.programs.push_back(Program(orders[rank], rank, spec));
  }
  spec.Complete();
  return spec;
}

void ExpectNoFault(const char* what, const ChainSpec& spec) {
  const Exploration all = ExploreAll(spec);
  ASSERT_FALSE(all.fault.has_value()) << NameOf(all.fault->property) << ": " << all.fault->text;
  std::printf("%s: %lld states, %lld transitions, no fault\n", what,
              static_cast<long long>(all.states), static_cast<long long>(all.transitions));
}

std::vector<Orders> OneOrder() {
  return {{{0, 1, 2}, {2, 1, 0}}, {{0, 1, 2}, {2, 1, 0}}, {{0, 1, 2}, {2, 1, 0}}};
}

std::vector<Orders> OrdersOfTheirOwn() {
  return {{{0, 1, 2}, {2, 1, 0}}, {{1, 0}, {1, 0}}, {{2, 0, 1}, {0, 1, 2}}};
}

TEST(ExhaustiveChain, NothingStartsBeforeItIsWanted) {
  ExpectNoFault("no window", SmallChain(0, OrdersOfTheirOwn()));
}

TEST(ExhaustiveChain, OneBucketInFlight) {
  ExpectNoFault("window of one", SmallChain(kBytes, OrdersOfTheirOwn()));
}

TEST(ExhaustiveChain, TwoBucketsInFlight) {
  ExpectNoFault("window of two", SmallChain(2 * kBytes, OneOrder()));
}

TEST(ExhaustiveChain, ANewOrderInTheSecondStep) {
  ExpectNoFault("new order", SmallChain(2 * kBytes, OrdersOfTheirOwn(), {2, 0, 1}));
}

TEST(ExhaustiveChain, EveryBucketInFlight) {
  ExpectNoFault("window of all", SmallChain(3 * kBytes, OrdersOfTheirOwn()));
}

}  // namespace
}  // namespace forerun::proof
