// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "parallel/comm/conformance.h"
#include "parallel/comm/conformance_oracle.h"

namespace forerun::comm {
namespace {

constexpr int64_t kNumels[] = {0, 1, 5, 64, 1000};  // with and without parts for every rank
constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kMax};

std::vector<int> EveryOther(int size, int first) {
  std::vector<int> members;
  for (int rank = first; rank < size; rank += 2) members.push_back(rank);
  return members;
}

TEST_P(Conformance, AllReduceGivesEveryRankTheTreeSum) {
  OnEveryRank([](RankUnderTest& rank) {
    ForEachSummable([&](auto zero) {
      using T = decltype(zero);
      uint64_t seed = 1;
      for (ReduceOp op : kReduceOps) {
        for (int64_t numel : kNumels) {
          const Tensor tensor = TensorOf(ValuesOf<T>(++seed, rank.rank(), numel));
          rank.group.AllReduce(tensor, op).Synchronize();
          ExpectValues(ReduceOracle<T>(seed, rank.size(), 0, numel, op), tensor);
        }
      }
    });
  });
}

TEST_P(Conformance, ReduceScatterGivesEachRankItsPartOfTheTreeSum) {
  OnEveryRank([](RankUnderTest& rank) {
    ForEachSummable([&](auto zero) {
      using T = decltype(zero);
      uint64_t seed = 100;
      for (ReduceOp op : kReduceOps) {
        for (int64_t numel : kNumels) {
          const std::vector<T> values = ValuesOf<T>(++seed, rank.rank(), numel * rank.size());
          const Tensor input = TensorOf(values);
          const Tensor output = Zeros<T>(numel);
          rank.group.ReduceScatter(input, output, op).Synchronize();
          ExpectValues(values, input);
          ExpectValues(ReduceOracle<T>(seed, rank.size(), rank.rank() * numel, numel, op), output);
        }
      }
    });
  });
}

TEST_P(Conformance, ReduceScatterInPlaceWritesTheOwnPartAlone) {
  OnEveryRank([](RankUnderTest& rank) {
    for (int64_t numel : kNumels) {
      const uint64_t seed = 200 + static_cast<uint64_t>(numel);
      const int64_t begin = rank.rank() * numel;
      std::vector<float> values = ValuesOf<float>(seed, rank.rank(), numel * rank.size());
      const Tensor whole = TensorOf(values);
      rank.group.ReduceScatter(whole, whole.Slice(0, begin, begin + numel), ReduceOp::kSum)
          .Synchronize();
      const auto part = ReduceOracle<float>(seed, rank.size(), begin, numel, ReduceOp::kSum);
      std::copy(part.begin(), part.end(), values.begin() + begin);
      ExpectValues(values, whole);
    }
  });
}

template <typename T>
std::vector<T> GatherOracle(uint64_t seed, int ranks, int64_t numel) {
  std::vector<T> values;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<T> part = ValuesOf<T>(seed, rank, numel);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

TEST_P(Conformance, AllGatherPutsTheRanksPartsInOrder) {
  OnEveryRank([](RankUnderTest& rank) {
    const auto check = [&](auto zero) {
      using T = decltype(zero);
      for (int64_t numel : kNumels) {
        const uint64_t seed = 300 + static_cast<uint64_t>(numel);
        const Tensor input = TensorOf(ValuesOf<T>(seed, rank.rank(), numel));
        const Tensor output = Zeros<T>(numel * rank.size());
        rank.group.AllGather(input.AsReadOnly(), output).Synchronize();
        ExpectValues(GatherOracle<T>(seed, rank.size(), numel), output);
      }
    };
    ForEachSummable(check);
    check(uint8_t{});
  });
}

TEST_P(Conformance, AllGatherInPlaceKeepsTheOwnPart) {
  OnEveryRank([](RankUnderTest& rank) {
    for (int64_t numel : kNumels) {
      const uint64_t seed = 400 + static_cast<uint64_t>(numel);
      const std::vector<double> own = ValuesOf<double>(seed, rank.rank(), numel);
      std::vector<double> values(numel * rank.size(), -1.0);
      std::copy(own.begin(), own.end(), values.begin() + rank.rank() * numel);
      const Tensor whole = TensorOf(values);
      const int64_t begin = rank.rank() * numel;
      rank.group.AllGather(whole.Slice(0, begin, begin + numel), whole).Synchronize();
      ExpectValues(GatherOracle<double>(seed, rank.size(), numel), whole);
    }
  });
}

TEST_P(Conformance, BroadcastGivesEveryRankTheRootsValues) {
  OnEveryRank([](RankUnderTest& rank) {
    const auto check = [&](auto zero) {
      using T = decltype(zero);
      for (int root = 0; root < rank.size(); ++root) {
        for (int64_t numel : kNumels) {
          const Tensor tensor = TensorOf(ValuesOf<T>(500, rank.rank(), numel));
          rank.group.Broadcast(tensor, root).Synchronize();
          ExpectValues(ValuesOf<T>(500, root, numel), tensor);
        }
      }
    };
    check(float{});
    check(Float16{});
    check(uint8_t{});
  });
}

TEST_P(Conformance, OperationsOfAGroupOfOneAreDoneAtOnce) {
  OnEveryRank([](RankUnderTest& rank) {
    const auto alone = rank.factory.Create("alone", {rank.factory.rank()});
    const std::vector<float> values = ValuesOf<float>(600, rank.rank(), 1000);
    const Tensor tensor = TensorOf(values);
    const Tensor gathered = Zeros<float>(1000);
    const Tensor scattered = Zeros<float>(1000);
    const Tensor received = Zeros<float>(1000);
    EXPECT_TRUE(alone->AllReduce(tensor, ReduceOp::kSum).Done());
    EXPECT_TRUE(alone->AllGather(tensor, gathered).Done());
    EXPECT_TRUE(alone->ReduceScatter(tensor, scattered, ReduceOp::kMax).Done());
    EXPECT_TRUE(alone->Broadcast(tensor, 0).Done());
    EXPECT_TRUE(alone->Barrier().Done());
    const Work sent = alone->Send(tensor, 0);
    EXPECT_TRUE(alone->Recv(received, 0).Done());
    EXPECT_TRUE(sent.Done());
    for (const Tensor& result : {tensor, gathered, scattered, received}) {
      ExpectValues(values, result);
    }
  });
}

TEST_P(Conformance, OperationsIssuedBackToBackAllEnd) {
  OnEveryRank([](RankUnderTest& rank) {
    constexpr int kOperations = 40;
    std::vector<Tensor> sums, wholes;
    std::vector<Work> works;
    for (int i = 0; i < kOperations; ++i) {
      rank.Dawdle();
      sums.push_back(TensorOf(ValuesOf<float>(700 + i, rank.rank(), 100 + i)));
      works.push_back(rank.group.AllReduce(sums.back(), ReduceOp::kSum));
      wholes.push_back(Zeros<int32_t>(i * rank.size()));
      works.push_back(rank.group.AllGather(TensorOf(ValuesOf<int32_t>(800 + i, rank.rank(), i)),
                                           wholes.back()));
      works.push_back(rank.group.Barrier());
    }
    std::shuffle(works.begin(), works.end(), rank.random);
    for (const Work& work : works) work.Synchronize();
    for (int i = 0; i < kOperations; ++i) {
      ExpectValues(ReduceOracle<float>(700 + i, rank.size(), 0, 100 + i, ReduceOp::kSum), sums[i]);
      ExpectValues(GatherOracle<int32_t>(800 + i, rank.size(), i), wholes[i]);
    }
  });
}

TEST_P(Conformance, AnOperationGoesOnThoughNobodyKeepsItsWorkOrItsTensors) {
  OnEveryRank([](RankUnderTest& rank) {
    for (int i = 0; i < 20; ++i) {
      rank.Dawdle();
      static_cast<void>(
          rank.group.AllReduce(TensorOf(ValuesOf<float>(i, rank.rank(), 500)), ReduceOp::kSum));
    }
    rank.group.Barrier().Synchronize();
  });
}

TEST_P(Conformance, GroupsThatOverlapWorkAtOnceInAnyOrderAmongThem) {
  OnEveryRank([](RankUnderTest& rank) {
    std::vector<int> everybody = EveryOther(rank.size(), 0);
    const std::vector<int> odd = EveryOther(rank.size(), 1);
    const std::vector<int> side = rank.rank() % 2 == 0 ? everybody : odd;
    everybody.insert(everybody.end(), odd.begin(), odd.end());
    std::vector<std::unique_ptr<ProcessGroup>> groups;
    groups.push_back(rank.factory.Create("shuffled", everybody));
    groups.push_back(rank.factory.Create("shuffled", everybody));  // another of the same name
    groups.push_back(rank.factory.Create("side", side));
    std::vector<Tensor> results;
    std::vector<Work> works;
    for (int round = 0; round < 10; ++round) {
      std::vector<int> order = {0, 1, 2};
      std::shuffle(order.begin(), order.end(), rank.random);
      results.resize(results.size() + 3);
      for (int g : order) {
        rank.Dawdle();
        const Tensor tensor = TensorOf(ValuesOf<float>(900 + 3 * round + g, groups[g]->rank(), 70));
        results[3 * round + g] = tensor;
        works.push_back(groups[g]->AllReduce(tensor, ReduceOp::kSum));
      }
    }
    for (const Work& work : works) work.Synchronize();
    for (size_t i = 0; i < results.size(); ++i) {
      const int ranks = groups[i % 3]->size();
      ExpectValues(ReduceOracle<float>(900 + i, ranks, 0, 70, ReduceOp::kSum), results[i]);
    }
  });
}

TEST_P(Conformance, NoGroupsProgressDependsOnAnothers) {
  OnEveryRank([](RankUnderTest& rank) {
    std::vector<int> members = EveryOther(2 * rank.size(), 0);
    for (int& member : members) member /= 2;
    const auto other = rank.factory.Create("other", members);
    const Tensor tensor = Zeros<float>(300);
    if (rank.rank() == 0) {
      other->Barrier().Synchronize();
      rank.group.AllReduce(tensor, ReduceOp::kSum).Synchronize();
    } else {
      const Work first = rank.group.AllReduce(tensor, ReduceOp::kSum);
      other->Barrier().Synchronize();
      first.Synchronize();
    }
  });
}

// Issues an operation, and from its completion the next one, each under the rank's lock.
class CallbackChain : public std::enable_shared_from_this<CallbackChain> {
 public:
  CallbackChain(ProcessGroup& group, Mutex& rank_lock, int operations)
      : group_(group), rank_lock_(rank_lock), left_(operations), tensor_(Zeros<int64_t>(200)) {
    std::fill_n(tensor_.mutable_data<int64_t>(), 200, 1);
  }

  void IssueNext() {
    Work work;
    {
      MutexLock lock(&rank_lock_);
      work = group_.AllReduce(tensor_, ReduceOp::kSum);
    }
    work.OnDone([chain = shared_from_this()](const absl::Status& status) { chain->Ended(status); });
  }

  Tensor AwaitTensor() {
    MutexLock lock(&mutex_);
    while (left_ > 0) changed_.Wait(&mutex_);
    return tensor_;
  }

 private:
  void Ended(const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    { MutexLock rank_lock(&rank_lock_); }
    bool more;
    {
      MutexLock lock(&mutex_);
      more = --left_ > 0;
      if (!more) changed_.NotifyAll();
    }
    if (more) IssueNext();
  }

  ProcessGroup& group_;
  Mutex& rank_lock_;
  Mutex mutex_;
  CondVar changed_;
  int left_ ABSL_GUARDED_BY(mutex_);
  const Tensor tensor_;
};

TEST_P(Conformance, CallbacksIssueOperationsUnderALockThatIssuersHold) {
  OnEveryRank([](RankUnderTest& rank) {
    constexpr int kOperations = 12;
    std::vector<int> members = EveryOther(2 * rank.size(), 0);
    for (int& member : members) member /= 2;
    const auto other = rank.factory.Create("other", members);
    const auto lock = std::make_unique<Mutex>();
    const auto first = std::make_shared<CallbackChain>(rank.group, *lock, kOperations);
    const auto second = std::make_shared<CallbackChain>(*other, *lock, kOperations);
    first->IssueNext();
    rank.Dawdle();
    second->IssueNext();
    int64_t expected = 1;
    for (int i = 0; i < kOperations; ++i) expected *= rank.size();
    for (const auto& chain : {first, second}) {
      ExpectValues(std::vector<int64_t>(200, expected), chain->AwaitTensor());
    }
    rank.group.Barrier().Synchronize();  // nobody leaves while another's callback uses a group
  });
}

TEST_P(Conformance, AWorkTellsItsEndToAllWhoAsk) {
  OnEveryRank([](RankUnderTest& rank) {
    const Work work = rank.group.AllReduce(Zeros<float>(50), ReduceOp::kSum);
    const Work copy = work;
    InlineStream stream(Device{});
    work.Wait(stream);
    EXPECT_TRUE(work.Done());
    EXPECT_TRUE(copy.Done());
    copy.Synchronize();
    work.Synchronize();
    int calls = 0;
    copy.OnDone([&](const absl::Status& status) { calls += status.ok() ? 1 : 0; });
    EXPECT_EQ(calls, 1);
  });
}

}  // namespace
}  // namespace forerun::comm
