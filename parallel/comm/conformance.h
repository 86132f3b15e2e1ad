// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/process_group.h"

// What process_group.h promises, as tests that every ordered backend passes:
//
//   INSTANTIATE_TEST_SUITE_P(Local, Conformance, testing::ValuesIn(Cases()), CaseName);
//
// Ranks share no memory in these tests: each computes what the others brought (ValueOf). So they
// hold where ranks are processes, too.
namespace forerun::comm {

struct ConformanceCase {
  using RankBody = std::function<absl::Status(GroupFactory&)>;

  std::string name;  // letters and digits
  int size = 1;      // ranks
  // Runs `body` on each rank of a world whose waits have this deadline (where ranks are processes,
  // on this one), as RunRanks does. Returns the first error.
  std::function<absl::Status(std::chrono::milliseconds deadline, const RankBody& body)> run;
};
std::ostream& operator<<(std::ostream& out, const ConformanceCase& c);
std::string CaseName(const testing::TestParamInfo<ConformanceCase>& info);

// One rank in a test.
struct RankUnderTest {
  GroupFactory& factory;
  ProcessGroup& group;  // of all ranks, named "world"
  std::mt19937 random;  // differs by rank

  int rank() const { return group.rank(); }
  int size() const { return group.size(); }
  // A few microseconds to a millisecond, or none: ranks arrive in any order.
  void Dawdle();
};

class Conformance : public testing::TestWithParam<ConformanceCase> {
 protected:
  using Body = absl::FunctionRef<void(RankUnderTest&)>;

  int size() const { return GetParam().size; }
  void OnEveryRank(Body body);
  // Expects the world to fail, with an error that has all these texts in it.
  void OnEveryRankOfAFailingWorld(std::chrono::milliseconds deadline,
                                  const std::vector<std::string>& texts, Body body);
};

// Blocks until the operation has ended, without a deadline.
void AwaitEnd(const Work& work);
// Expects the operation to have failed, or to fail, with an error that has these texts in it.
void ExpectFails(const Work& work, const std::vector<std::string>& texts);

}  // namespace forerun::comm
