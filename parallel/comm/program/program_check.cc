// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/program/program_check.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace forerun::comm {
namespace {

bool IsMessage(OpKind kind) { return kind == OpKind::kSend || kind == OpKind::kRecv; }

// One event, and which operation it is about: the sequence-th of the rank's collectives in the
// group, or of its messages in one direction with one peer.
struct Step {
  bool wait = false;
  int group = 0;  // of the program
  int64_t sequence = 0;
  const Operation* operation = nullptr;
};

std::vector<Step> StepsOf(const Program& program) {
  std::map<std::tuple<int, OpKind, int>, int64_t> counts;
  std::vector<std::vector<int64_t>> sequences(program.groups.size());
  std::vector<Step> steps;
  steps.reserve(program.events.size());
  for (const Program::Event& event : program.events) {
    const Operation& operation = program.operations[event.group][event.operation];
    if (!event.wait) {
      const bool message = IsMessage(operation.kind);
      sequences[event.group].push_back(
          counts[{event.group, message ? operation.kind : OpKind::kBarrier,
                  message ? operation.peer : -1}]++);
    }
    steps.push_back({event.wait, event.group, sequences[event.group][event.operation], &operation});
  }
  return steps;
}

// A collective that some ranks of its group have issued, but not all.
struct Collective {
  const Operation* operation;
  int first_rank;
  int arrived = 0;
};

// What is open in a group, and who waits. The n-th collective ends before the next does, since
// each rank issues them in order.
struct GroupState {
  std::deque<Collective> open;
  int64_t ended = 0;
  std::vector<int> waiting;
};

// Messages of one direction between two ranks of a group.
struct Channel {
  int64_t sent = 0;
  int64_t received = 0;
  std::deque<const Operation*> unmatched;  // all sends, or all receives
  std::vector<int> waiting;

  int64_t ended() const { return std::min(sent, received); }
};

class Checker {
 public:
  explicit Checker(const JobPrograms& job)
      : job_(job), groups_(job.groups().size()), ranks_(job.ranks().size()) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Program* program = job.ranks()[r].program;
      std::unique_ptr<const std::vector<Step>>& steps = steps_of_[program];
      if (steps == nullptr) {
        steps = std::make_unique<const std::vector<Step>>(StepsOf(*program));
      }
      ranks_[r].steps = steps.get();
      runnable_.push_back(static_cast<int>(r));
    }
  }

  absl::Status Run() {
    while (!runnable_.empty()) {
      const int rank = runnable_.front();
      runnable_.pop_front();
      FR_RETURN_IF_ERROR(Advance(rank));
    }
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!Finished(static_cast<int>(r))) return Stuck(static_cast<int>(r));
    }
    return CheckNothingOpen();
  }

 private:
  struct RankState {
    const std::vector<Step>* steps = nullptr;
    size_t next = 0;
  };

  bool Finished(int rank) const { return ranks_[rank].next == ranks_[rank].steps->size(); }
  const Step& NextStep(int rank) const { return (*ranks_[rank].steps)[ranks_[rank].next]; }
  int GroupOf(int rank, const Step& step) const { return job_.ranks()[rank].groups[step.group]; }
  int PeerOf(int rank, const Step& step) const {
    return job_.groups()[GroupOf(rank, step)].members[step.operation->peer];
  }
  Channel& ChannelOf(int rank, const Step& step) {
    const bool sends = step.operation->kind == OpKind::kSend;
    const int peer = PeerOf(rank, step);
    return channels_[{GroupOf(rank, step), sends ? rank : peer, sends ? peer : rank}];
  }

  // Until the rank blocks or ends.
  absl::Status Advance(int rank) {
    for (; !Finished(rank); ++ranks_[rank].next) {
      const Step& step = NextStep(rank);
      const bool message = IsMessage(step.operation->kind);
      if (!step.wait) {
        FR_RETURN_IF_ERROR(message ? IssueMessage(rank, step) : IssueCollective(rank, step));
        continue;
      }
      GroupState& group = groups_[GroupOf(rank, step)];
      Channel* channel = message ? &ChannelOf(rank, step) : nullptr;
      if (step.sequence < (message ? channel->ended() : group.ended)) continue;
      (message ? channel->waiting : group.waiting).push_back(rank);
      break;
    }
    return absl::OkStatus();
  }

  absl::Status IssueCollective(int rank, const Step& step) {
    const int index = GroupOf(rank, step);
    GroupState& group = groups_[index];
    const auto place = static_cast<size_t>(step.sequence - group.ended);
    if (place == group.open.size()) group.open.push_back({step.operation, rank});
    Collective& collective = group.open[place];
    if (collective.operation != step.operation && !(*collective.operation == *step.operation)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "group ", job_.groups()[index].name, ": collective ", step.sequence, " of rank ", rank,
          " is ", step.operation->ToString(), " where that of rank ", collective.first_rank, " is ",
          collective.operation->ToString()));
    }
    if (++collective.arrived < static_cast<int>(job_.groups()[index].members.size())) {
      return absl::OkStatus();
    }
    group.open.pop_front();
    ++group.ended;
    Wake(group.waiting);
    return absl::OkStatus();
  }

  absl::Status IssueMessage(int rank, const Step& step) {
    Channel& channel = ChannelOf(rank, step);
    const bool sends = step.operation->kind == OpKind::kSend;
    ++(sends ? channel.sent : channel.received);
    if (channel.unmatched.empty() ||
        (sends ? channel.sent > channel.received : channel.received > channel.sent)) {
      channel.unmatched.push_back(step.operation);
      return absl::OkStatus();
    }
    const Operation& other = *channel.unmatched.front();
    channel.unmatched.pop_front();
    if (other.numel != step.operation->numel || other.dtype != step.operation->dtype) {
      return absl::FailedPreconditionError(absl::StrCat(
          "group ", job_.groups()[GroupOf(rank, step)].name, ": rank ", rank, " issues ",
          Describe(rank, step), " where rank ", PeerOf(rank, step), " issued ", NameOf(other.kind),
          " of ", other.numel, " ", NameOf(other.dtype), ", message ", step.sequence, " that way"));
    }
    Wake(channel.waiting);
    return absl::OkStatus();
  }

  // They look again.
  void Wake(std::vector<int>& waiting) {
    runnable_.insert(runnable_.end(), waiting.begin(), waiting.end());
    waiting.clear();
  }

  // Peers by world rank.
  std::string Describe(int rank, const Step& step) const {
    Operation operation = *step.operation;
    if (operation.peer >= 0) operation.peer = PeerOf(rank, step);
    return operation.ToString();
  }

  // Of `rank`'s operations in the same sequence as `step`, another rank's: whether `other` has
  // issued its part of that one.
  bool HasIssued(int other, int rank, const Step& step) const {
    const int index = GroupOf(rank, step);
    const bool message = IsMessage(step.operation->kind);
    const bool sends = step.operation->kind == OpKind::kSend;
    int64_t count = 0;
    for (size_t i = 0; i < ranks_[other].next; ++i) {
      const Step& theirs = (*ranks_[other].steps)[i];
      if (theirs.wait || GroupOf(other, theirs) != index) continue;
      const OpKind kind = theirs.operation->kind;
      if (!message) {
        count += IsMessage(kind) ? 0 : 1;
      } else if (kind == (sends ? OpKind::kRecv : OpKind::kSend)) {
        count += PeerOf(other, theirs) == rank ? 1 : 0;
      }
    }
    return count > step.sequence;
  }

  // The first rank without which the operation cannot end.
  int MissingFrom(int rank, const Step& step) const {
    if (IsMessage(step.operation->kind)) return PeerOf(rank, step);
    for (int member : job_.groups()[GroupOf(rank, step)].members) {
      if (!HasIssued(member, rank, step)) return member;
    }
    FR_CHECK(false) << "rank " << rank << " waits for what has ended";
    return -1;
  }

  std::string WaitOf(int rank, int missing) const {
    const Step& step = NextStep(rank);
    return absl::StrCat("rank ", rank, " waits for ", Describe(rank, step), " in group ",
                        job_.groups()[GroupOf(rank, step)].name, ", which rank ", missing,
                        Finished(missing) ? " never joins" : " has not joined");
  }

  // From one rank to the one it waits for, until one has ended or the circle is closed.
  absl::Status Stuck(int rank) const {
    std::vector<int> chain;
    while (!Finished(rank) && std::find(chain.begin(), chain.end(), rank) == chain.end()) {
      chain.push_back(rank);
      rank = MissingFrom(rank, NextStep(rank));
    }
    if (Finished(rank)) return absl::FailedPreconditionError(WaitOf(chain.back(), rank));
    std::vector<std::string> waits;
    chain.erase(chain.begin(), std::find(chain.begin(), chain.end(), rank));
    for (size_t i = 0; i < chain.size(); ++i) {
      waits.push_back(WaitOf(chain[i], chain[(i + 1) % chain.size()]));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("ranks wait for each other for ever: ", absl::StrJoin(waits, "; ")));
  }

  // All ranks have ended: nobody waited for what is left, and it never ends.
  absl::Status CheckNothingOpen() const {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const int rank = static_cast<int>(r);
      for (const Step& step : *ranks_[r].steps) {
        if (step.wait || Ended(rank, step)) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("rank ", rank, " issues ", Describe(rank, step), " in group ",
                         job_.groups()[GroupOf(rank, step)].name, ", which rank ",
                         MissingFrom(rank, step), " never joins"));
      }
    }
    return absl::OkStatus();
  }

  bool Ended(int rank, const Step& step) const {
    if (!IsMessage(step.operation->kind)) return step.sequence < groups_[GroupOf(rank, step)].ended;
    const bool sends = step.operation->kind == OpKind::kSend;
    const int peer = PeerOf(rank, step);
    return step.sequence <
           channels_.at({GroupOf(rank, step), sends ? rank : peer, sends ? peer : rank}).ended();
  }

  const JobPrograms& job_;
  absl::flat_hash_map<const Program*, std::unique_ptr<const std::vector<Step>>> steps_of_;
  std::vector<GroupState> groups_;
  absl::flat_hash_map<std::tuple<int, int, int>, Channel> channels_;  // group, from, to
  std::vector<RankState> ranks_;
  std::deque<int> runnable_;
};

}  // namespace

absl::Status JobPrograms::AddRank(const Program& program, absl::Span<const GroupIdentity> groups) {
  FR_CHECK_EQ(program.groups.size(), groups.size()) << "groups of a rank, and of its program";
  const int rank = static_cast<int>(ranks_.size());
  Rank added{&program, {}};
  for (const GroupIdentity& group : groups) {
    if (std::find(group.members.begin(), group.members.end(), rank) == group.members.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " makes group ", group.name, " without itself"));
    }
    const auto [found, made] = index_.try_emplace(group.name, static_cast<int>(groups_.size()));
    if (made) groups_.push_back(group);
    const GroupIdentity& known = groups_[found->second];
    if (known.members != group.members) {
      return absl::FailedPreconditionError(
          absl::StrCat("group ", group.name, " has ranks ", absl::StrJoin(known.members, ","),
                       " on one rank and ", absl::StrJoin(group.members, ","), " on rank ", rank));
    }
    added.groups.push_back(found->second);
  }
  ranks_.push_back(std::move(added));
  return absl::OkStatus();
}

absl::Status CheckPrograms(const JobPrograms& job) { return Checker(job).Run(); }

}  // namespace forerun::comm
