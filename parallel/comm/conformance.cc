// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/conformance.h"

#include <numeric>
#include <thread>

#include "gmock/gmock.h"

namespace forerun::comm {
namespace {

using testing::HasSubstr;

constexpr std::chrono::minutes kLong{2};  // for what is not expected to be late

absl::Status RunBody(const ConformanceCase& c, std::chrono::milliseconds deadline,
                     absl::FunctionRef<void(RankUnderTest&)> body) {
  return c.run(deadline, [&](GroupFactory& factory) {
    std::vector<int> members(c.size);
    std::iota(members.begin(), members.end(), 0);
    const auto group = factory.Create("world", members);
    RankUnderTest rank{factory, *group, std::mt19937(17u * c.size + factory.rank())};
    body(rank);
    return absl::OkStatus();
  });
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ConformanceCase& c) { return out << c.name; }

std::string CaseName(const testing::TestParamInfo<ConformanceCase>& info) {
  return info.param.name;
}

void RankUnderTest::Dawdle() {
  const uint32_t choice = random() % 8;
  if (choice < 4) return;
  std::this_thread::sleep_for(std::chrono::microseconds(choice == 7 ? random() % 1000 : choice));
}

void Conformance::OnEveryRank(Body body) {
  const absl::Status status = RunBody(GetParam(), kLong, body);
  EXPECT_TRUE(status.ok()) << status;
}

void Conformance::OnEveryRankOfAFailingWorld(std::chrono::milliseconds deadline,
                                             const std::vector<std::string>& texts, Body body) {
  const absl::Status status = RunBody(GetParam(), deadline, body);
  EXPECT_FALSE(status.ok());
  for (const std::string& text : texts) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

void AwaitEnd(const Work& work) {
  while (!work.Done()) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

void ExpectFails(const Work& work, const std::vector<std::string>& texts) {
  try {
    work.Synchronize();
    ADD_FAILURE() << "the operation ended well";
  } catch (const GroupError& error) {
    for (const std::string& text : texts) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

}  // namespace forerun::comm
