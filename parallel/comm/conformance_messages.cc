// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "parallel/comm/conformance.h"
#include "parallel/comm/conformance_oracle.h"

namespace forerun::comm {
namespace {

uint64_t SeedOf(int from, int to, int number) {
  return static_cast<uint64_t>(1000 + 64 * (from * 8 + to) + number);
}

int64_t NumelOf(int number) { return 37 * number; }  // the first is empty

TEST_P(Conformance, MessagesOfADirectionArriveInOrderWithManyInFlight) {
  OnEveryRank([](RankUnderTest& rank) {
    constexpr int kMessages = 6;
    struct Received {
      int from;
      int number;
      Tensor tensor;
    };
    std::vector<Received> received;
    std::vector<Work> works;
    for (int number = 0; number < kMessages; ++number) {
      std::vector<std::pair<int, bool>> calls;  // peer, whether it is a Send: itself, too
      for (int peer = 0; peer < rank.size(); ++peer) {
        calls.insert(calls.end(), {{peer, true}, {peer, false}});
      }
      std::shuffle(calls.begin(), calls.end(), rank.random);
      for (const auto& [peer, send] : calls) {
        rank.Dawdle();
        if (send) {
          works.push_back(rank.group.Send(
              TensorOf(ValuesOf<float>(SeedOf(rank.rank(), peer, number), 0, NumelOf(number))),
              peer));
        } else {
          received.push_back({peer, number, Zeros<float>(NumelOf(number))});
          works.push_back(rank.group.Recv(received.back().tensor, peer));
        }
      }
    }
    for (const Work& work : works) work.Synchronize();
    for (const Received& message : received) {
      const uint64_t seed = SeedOf(message.from, rank.rank(), message.number);
      ExpectValues(ValuesOf<float>(seed, 0, NumelOf(message.number)), message.tensor);
    }
  });
}

TEST_P(Conformance, IssuingNeverWaitsForAPartner) {
  OnEveryRank([](RankUnderTest& rank) {
    const int next = (rank.rank() + 1) % rank.size();
    const int previous = (rank.rank() + rank.size() - 1) % rank.size();
    // Round a ring everybody sends first and receives later.
    const Tensor token = TensorOf(ValuesOf<int32_t>(1, rank.rank(), 3000));
    const Tensor received = Zeros<int32_t>(3000);
    const Work sent = rank.group.Send(token, next);
    const Work sum = rank.group.AllReduce(Zeros<float>(100), ReduceOp::kSum);
    rank.group.Recv(received, previous).Synchronize();
    sent.Synchronize();
    sum.Synchronize();
    ExpectValues(ValuesOf<int32_t>(1, previous, 3000), received);
  });
}

TEST_P(Conformance, MessagesAndCollectivesDoNotWaitForEachOther) {
  OnEveryRank([](RankUnderTest& rank) {
    const int last = rank.size() - 1;
    const Tensor tensor = TensorOf(std::vector<double>(20, 1.0));
    if (rank.rank() == last) {  // joins the collective only once the message has come
      const Tensor message = Zeros<double>(1);
      const Work received = rank.group.Recv(message, 0);
      if (rank.rank() == 0) static_cast<void>(rank.group.Send(TensorOf<double>({7.0}), last));
      received.Synchronize();
      ExpectValues<double>({7.0}, message);
      rank.group.AllReduce(tensor, ReduceOp::kSum).Synchronize();
    } else {
      const Work sum = rank.group.AllReduce(tensor, ReduceOp::kSum);
      if (rank.rank() == 0) rank.group.Send(TensorOf<double>({7.0}), last).Synchronize();
      sum.Synchronize();
    }
    ExpectValues(std::vector<double>(20, rank.size()), tensor);
  });
}

}  // namespace
}  // namespace forerun::comm
