// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/mutex.h"
#include "parallel/comm/conformance.h"
#include "parallel/comm/conformance_oracle.h"

namespace forerun::comm {
namespace {

constexpr std::chrono::milliseconds kShort{30};  // where being late is what is tested
constexpr std::chrono::minutes kLong{2};

// Nobody sends this rank anything: ends only with the group.
Work UntilTheGroupFails(RankUnderTest& rank) {
  return rank.group.Recv(Zeros<uint8_t>(1), (rank.rank() + 1) % rank.size());
}

TEST_P(Conformance, AMismatchNamesBothRanksAndOperations) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const std::vector<std::pair<std::string, std::function<Work(ProcessGroup&)>>> others = {
      {"AllReduce of 9 fp32 (sum)",
       [](ProcessGroup& group) { return group.AllReduce(Zeros<float>(9), ReduceOp::kSum); }},
      {"AllReduce of 8 fp64 (sum)",
       [](ProcessGroup& group) { return group.AllReduce(Zeros<double>(8), ReduceOp::kSum); }},
      {"AllReduce of 8 fp32 (max)",
       [](ProcessGroup& group) { return group.AllReduce(Zeros<float>(8), ReduceOp::kMax); }},
      {"Broadcast of 8 fp32 from rank 1",
       [](ProcessGroup& group) { return group.Broadcast(Zeros<float>(8), 1); }},
      {"Barrier", [](ProcessGroup& group) { return group.Barrier(); }},
  };
  const int last = size() - 1;
  for (const auto& [name, issue] : others) {
    const std::vector<std::string> texts = {"group world", absl::StrCat(name, " on rank ", last),
                                            "AllReduce of 8 fp32 (sum) on rank "};
    OnEveryRankOfAFailingWorld(kLong, texts, [&, &issue = issue](RankUnderTest& rank) {
      rank.Dawdle();
      ExpectFails(rank.rank() == last ? issue(rank.group)
                                      : rank.group.AllReduce(Zeros<float>(8), ReduceOp::kSum),
                  texts);
    });
  }
}

TEST_P(Conformance, AMessageOfAnotherSizeThanExpectedNamesBothRanks) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const std::vector<std::string> texts = {"group world", "rank 0 sends 4 fp32",
                                          "rank 1 receives 5 fp32"};
  OnEveryRankOfAFailingWorld(kLong, texts, [&](RankUnderTest& rank) {
    if (rank.rank() == 0) return ExpectFails(rank.group.Send(Zeros<float>(4), 1), texts);
    if (rank.rank() == 1) return ExpectFails(rank.group.Recv(Zeros<float>(5), 0), texts);
    ExpectFails(UntilTheGroupFails(rank), texts);
  });
}

TEST_P(Conformance, APassedDeadlineNamesWhoArrivedAndWhoDidNot) {
  if (size() == 1) GTEST_SKIP() << "nobody to wait for";
  const int last = size() - 1;
  std::vector<int> arrived(last);
  for (int rank = 0; rank < last; ++rank) arrived[rank] = rank;
  const std::vector<std::string> texts = {
      "group world: AllReduce of 8 fp32 (sum)",
      absl::StrCat(last == 1 ? "rank " : "ranks ", absl::StrJoin(arrived, ", "), " arrived"),
      absl::StrCat("rank ", last, " did not within 0.03 s")};
  OnEveryRankOfAFailingWorld(kShort, texts, [&](RankUnderTest& rank) {
    const auto all_reduce = [&] { return rank.group.AllReduce(Zeros<float>(8), ReduceOp::kSum); };
    Work work;
    if (rank.rank() == last) {
      work = UntilTheGroupFails(rank);
    } else if (rank.rank() > 0) {
      work = all_reduce();
      static_cast<void>(rank.group.Send(Zeros<float>(1), 0));
    } else {  // waits once the others have arrived; only a Work's own waits have a deadline
      for (int peer = 1; peer < last; ++peer) AwaitEnd(rank.group.Recv(Zeros<float>(1), peer));
      return ExpectFails(all_reduce(), texts);
    }
    AwaitEnd(work);
    ExpectFails(work, texts);
  });
}

TEST_P(Conformance, AMessageThatMissesItsDeadlineNamesBothRanks) {
  if (size() == 1) GTEST_SKIP() << "nobody to wait for";
  const std::vector<std::string> texts = {"group world: rank 0's Recv of 3 fp32 from rank 1",
                                          "within 0.03 s"};
  OnEveryRankOfAFailingWorld(kShort, texts, [&](RankUnderTest& rank) {
    if (rank.rank() == 0) return ExpectFails(rank.group.Recv(Zeros<float>(3), 1), texts);
    const Work work = UntilTheGroupFails(rank);
    AwaitEnd(work);
    ExpectFails(work, texts);
  });
}

TEST_P(Conformance, AbortEndsWhatIsInFlightAndWhatComesLaterWithTheFirstError) {
  const std::vector<std::string> texts = {"the last rank has had enough"};
  OnEveryRankOfAFailingWorld(kLong, texts, [&](RankUnderTest& rank) {
    if (rank.rank() == rank.size() - 1) {
      rank.Dawdle();
      rank.group.Abort(absl::AbortedError(texts[0]));
    } else {
      ExpectFails(rank.group.AllReduce(Zeros<float>(8), ReduceOp::kSum), texts);
    }
    rank.group.Abort(absl::AbortedError("a later reason"));
    ExpectFails(rank.group.Barrier(), texts);
    ExpectFails(rank.group.Send(Zeros<float>(8), 0), texts);
    std::string told;
    rank.group.Broadcast(Zeros<float>(8), 0).OnDone([&](const absl::Status& status) {
      told = std::string(status.message());
    });
    EXPECT_EQ(told, texts[0]);
  });
}

TEST_P(Conformance, EverybodyEndsWheneverOneRankAborts) {
  for (int operations : {0, 1, 3, 10}) {
    const std::vector<std::string> texts = {"stopped"};
    OnEveryRankOfAFailingWorld(kLong, texts, [&](RankUnderTest& rank) {
      const int next = (rank.rank() + 1) % rank.size();
      const int previous = (rank.rank() + rank.size() - 1) % rank.size();
      for (int i = 0;; ++i) {
        rank.Dawdle();
        std::vector<Work> works = {rank.group.AllReduce(Zeros<float>(2000), ReduceOp::kSum),
                                   rank.group.Send(Zeros<double>(100), next),
                                   rank.group.Recv(Zeros<double>(100), previous)};
        if (rank.rank() == 0 && i == operations) {
          rank.group.Abort(absl::AbortedError(texts[0]));
        }
        for (const Work& work : works) work.Synchronize();
      }
    });
  }
}

TEST_P(Conformance, FailedOperationsTellTheirCallbacks) {
  OnEveryRankOfAFailingWorld(kLong, {"broken"}, [&](RankUnderTest& rank) {
    struct Told {
      Mutex mutex;
      CondVar changed;
      std::string message;
    };
    const auto told = std::make_shared<Told>();
    const Work work = UntilTheGroupFails(rank);
    work.OnDone([told](const absl::Status& status) {
      MutexLock lock(&told->mutex);
      told->message = std::string(status.message());
      told->changed.NotifyAll();
    });
    rank.group.Abort(absl::AbortedError("broken"));
    MutexLock lock(&told->mutex);
    while (told->message.empty()) told->changed.Wait(&told->mutex);
    EXPECT_EQ(told->message, "broken");
  });
}

}  // namespace
}  // namespace forerun::comm
