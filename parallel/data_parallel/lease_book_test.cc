// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/lease_book.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(LeaseBook, ALeaseLastsAsLongAsItsToken) {
  const auto book = std::make_shared<LeaseBook>(2);
  EXPECT_FALSE(book->Holder(1).has_value());
  auto lease = book->Open(1, "fc1");
  const auto copy = lease;
  lease = nullptr;
  EXPECT_EQ(book->Holder(1), absl::make_optional<std::string>("fc1"));
  EXPECT_FALSE(book->Holder(0).has_value()) << "another parameter";
}

TEST(LeaseBook, NamesOneOfThoseWhoStillHold) {
  const auto book = std::make_shared<LeaseBook>(1);
  auto first = book->Open(0, "embedding");
  auto second = book->Open(0, "head");
  first = nullptr;
  EXPECT_EQ(*book->Holder(0), "head");
  second = nullptr;
  EXPECT_FALSE(book->Holder(0).has_value());
}

TEST(LeaseBook, OneHolderMayHoldTwice) {
  const auto book = std::make_shared<LeaseBook>(1);
  auto first = book->Open(0, "fc1");
  auto second = book->Open(0, "fc1");
  first = nullptr;
  EXPECT_TRUE(book->Holder(0).has_value());
}

TEST(LeaseBook, ALeaseMayOutliveWhoeverMadeTheBook) {
  auto book = std::make_shared<LeaseBook>(1);
  const std::weak_ptr<LeaseBook> watch = book;
  auto lease = book->Open(0, "fc1");
  book = nullptr;
  EXPECT_FALSE(watch.expired());
  lease = nullptr;
  EXPECT_TRUE(watch.expired());
}

TEST(LeaseBook, LeasesEndOnAnyThread) {
  constexpr int kThreads = 4, kParameters = 3;
  const auto book = std::make_shared<LeaseBook>(kParameters);
  std::vector<std::shared_ptr<const void>> handed;
  for (int i = 0; i < kThreads; ++i) handed.push_back(book->Open(i % kParameters, "main"));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      handed[i] = nullptr;
      for (int n = 0; n < 500; ++n) {
        const auto lease = book->Open(n % kParameters, "thread");
        EXPECT_TRUE(book->Holder(n % kParameters).has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int p = 0; p < kParameters; ++p) EXPECT_FALSE(book->Holder(p).has_value());
}

}  // namespace
}  // namespace forerun
