// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/local_world.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace forerun::comm {

// The work of one rank in one operation.
class LocalWorld::RankWork final : public CompletableWork {
 public:
  RankWork(std::weak_ptr<LocalWorld> world, int world_rank, std::chrono::milliseconds deadline)
      : CompletableWork(deadline), world_(std::move(world)), world_rank_(world_rank) {}

 private:
  // A world that has ended has completed all its works.
  void OnTimeout() override {
    if (const auto world = world_.lock()) world->OnTimeout(*this);
  }
  void Run(const std::function<void()>& callbacks) override {
    if (const auto world = world_.lock()) return world->RunFor(world_rank_, callbacks);
    callbacks();
  }

  const std::weak_ptr<LocalWorld> world_;
  const int world_rank_;
};

// Guarded by the world's lock, but that arrivals are constant while it moves, and then belong to
// the one thread that completes it.
struct LocalMeeting {
  LocalGroupState* const group;     // lives as long as the world
  absl::optional<uint64_t> number;  // of a collective; none: a message
  std::vector<int> ranks;           // in the group, by arrival
  std::vector<Arrival> arrivals;
  std::vector<std::shared_ptr<CompletableWork>> works;  // null: not arrived
  int missing = 0;
  // While it moves.
  bool inline_move = false;
  int phase = 0;
  int queued = 0;   // tasks
  int running = 0;  // tasks
  bool withdrawn = false;

  LocalMeeting(LocalGroupState* the_group, std::vector<int> the_ranks)
      : group(the_group),
        ranks(std::move(the_ranks)),
        arrivals(ranks.size()),
        works(ranks.size()),
        missing(static_cast<int>(ranks.size())) {}
};

// Guarded by the world's lock, but for the first two, which are constant.
struct LocalGroupState {
  std::string name;
  std::vector<int> members;
  std::vector<uint64_t> issued;                               // collectives, by rank
  std::map<uint64_t, std::shared_ptr<LocalMeeting>> waiting;  // collectives, by number
  bool moving = false;                                        // a collective
  std::deque<std::shared_ptr<LocalMeeting>> ready;            // collectives whose turn comes later
  // Messages by (from, to), oldest first. All lack the same half.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<LocalMeeting>>> channels;
};

namespace {

std::string RankList(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "));
}

// "group dp: AllReduce of 5 fp32 (sum) (collective 3)", "group pp: rank 0's Send of 5 fp32 to rank
// 1". Somebody has arrived.
std::string Name(const LocalMeeting& meeting) {
  const size_t here = meeting.works[0] == nullptr && !meeting.number.has_value() ? 1 : 0;
  if (!meeting.number.has_value()) {
    return absl::StrCat("group ", meeting.group->name, ": rank ", meeting.ranks[here], "'s ",
                        meeting.arrivals[here].Describe(), here == 0 ? " to rank " : " from rank ",
                        meeting.ranks[1 - here]);
  }
  size_t first = 0;
  while (meeting.works[first] == nullptr) ++first;
  return absl::StrCat("group ", meeting.group->name, ": ", meeting.arrivals[first].Describe(),
                      " (collective ", *meeting.number, ")");
}

std::string DescribeLate(const LocalMeeting& meeting, double seconds) {
  if (!meeting.number.has_value()) {
    return absl::StrCat(Name(meeting), " found no partner within ", seconds, " s");
  }
  std::vector<int> arrived, missing;
  for (size_t i = 0; i < meeting.ranks.size(); ++i) {
    (meeting.works[i] != nullptr ? arrived : missing).push_back(meeting.ranks[i]);
  }
  return absl::StrCat(Name(meeting), ": ", RankList(arrived), " arrived, ", RankList(missing),
                      " did not within ", seconds, " s");
}

absl::Status CheckMatch(const LocalMeeting& meeting, int index, const Arrival& arrival) {
  for (size_t i = 0; i < meeting.ranks.size(); ++i) {
    if (meeting.works[i] == nullptr) continue;
    const Arrival& other = meeting.arrivals[i];
    if (other.Matches(arrival)) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("group ", meeting.group->name, ": collective ", *meeting.number, " is ",
                     other.Describe(), " on rank ", meeting.ranks[i], " and ", arrival.Describe(),
                     " on rank ", meeting.ranks[index]));
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const LocalMeeting& meeting, int index, const Arrival& arrival) {
  if (meeting.works[1 - index] == nullptr) return absl::OkStatus();
  const Tensor& sent = index == 0 ? arrival.input : meeting.arrivals[0].input;
  const Tensor& received = index == 1 ? arrival.input : meeting.arrivals[1].input;
  if (sent.dtype() == received.dtype() && sent.numel() == received.numel()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("group ", meeting.group->name, ": rank ", meeting.ranks[0], " sends ",
                   sent.numel(), " ", NameOf(sent.dtype()), " and rank ", meeting.ranks[1],
                   " receives ", received.numel(), " ", NameOf(received.dtype())));
}

}  // namespace

LocalWorld::LocalWorld(int size, std::chrono::milliseconds deadline, int64_t inline_bytes)
    : deadline_(deadline),
      inline_bytes_(inline_bytes),
      size_(size),
      progress_(size),
      left_(size),
      creations_(size) {}

LocalWorld::~LocalWorld() { Fail(absl::CancelledError("the ranks' world has ended")); }

absl::Status LocalWorld::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void LocalWorld::Join(int rank) {
  FR_CHECK(rank >= 0 && rank < size_) << "rank " << rank << " of " << size_;
  MutexLock lock(&mutex_);
  FR_CHECK(progress_[rank] == nullptr && !left_[rank]) << "rank " << rank << " joins twice";
  progress_[rank] = std::make_unique<ProgressThread>();
}

void LocalWorld::Leave(int rank) {
  std::unique_ptr<ProgressThread> progress;  // ends, with what it still has to do, out of the lock
  absl::Status failure;
  Meetings failed;
  {
    MutexLock lock(&mutex_);
    progress = std::move(progress_[rank]);
    left_[rank] = true;
    for (const MeetingPtr& meeting : Waiting()) {
      if (failure.ok()) failure = CheckPresent(*meeting);
    }
    if (!failure.ok()) failed = FailLocked(failure);
  }
  Complete(failed, failure);
}

LocalGroupState* LocalWorld::Group(const std::string& name, absl::Span<const int> members,
                                   int world_rank) {
  const std::string key = absl::StrCat(name, "/", absl::StrJoin(members, ","));
  MutexLock lock(&mutex_);
  const int creation = creations_[world_rank][key]++;
  std::unique_ptr<LocalGroupState>& group = groups_[absl::StrCat(key, "#", creation)];
  if (group == nullptr) {
    group = std::make_unique<LocalGroupState>();
    group->name = name;
    group->members.assign(members.begin(), members.end());
    group->issued.assign(members.size(), 0);
  }
  return group.get();
}

template <typename Find>
Work LocalWorld::Arrive(int world_rank, int index, Arrival arrival, const Find& find) {
  const auto work = std::make_shared<RankWork>(weak_from_this(), world_rank, deadline_);
  MeetingPtr meeting;
  absl::Status failure;
  Meetings failed;
  bool moves = false;
  {
    MutexLock lock(&mutex_);
    failure = status_;
    if (failure.ok()) {
      meeting = find();
      failure = Add(meeting, index, std::move(arrival), work);
      if (!failure.ok()) failed = FailLocked(failure);
      moves = failure.ok() && meeting->missing == 0 && TakeTurn(meeting);
    }
  }
  Complete(failed, failure);
  if (!failure.ok()) work->Complete(failure);
  if (moves) Move(std::move(meeting));
  return Work(work);
}

Work LocalWorld::Collective(LocalGroupState& group, int rank, Arrival arrival) {
  return Arrive(group.members[rank], rank, std::move(arrival), [&] {
    mutex_.AssertHeld();
    return FindCollective(group, group.issued[rank]++);
  });
}

Work LocalWorld::Message(LocalGroupState& group, int from, int to, int half, const Tensor& tensor) {
  const Arrival arrival{half == 0 ? OpKind::kSend : OpKind::kRecv, ReduceOp::kSum, 0, tensor,
                        tensor};
  return Arrive(group.members[half == 0 ? from : to], half, arrival, [&] {
    mutex_.AssertHeld();
    return FindMessage(group, from, to, half);
  });
}

Work LocalWorld::Send(LocalGroupState& group, int rank, int peer, const Tensor& tensor) {
  return Message(group, rank, peer, /*half=*/0, tensor);
}

Work LocalWorld::Recv(LocalGroupState& group, int rank, int peer, const Tensor& tensor) {
  return Message(group, peer, rank, /*half=*/1, tensor);
}

LocalWorld::MeetingPtr LocalWorld::FindCollective(LocalGroupState& group, uint64_t number) {
  MeetingPtr& meeting = group.waiting[number];
  if (meeting == nullptr) {
    std::vector<int> ranks(group.members.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    meeting = std::make_shared<LocalMeeting>(&group, std::move(ranks));
    meeting->number = number;
  }
  return meeting;
}

LocalWorld::MeetingPtr LocalWorld::FindMessage(LocalGroupState& group, int from, int to, int half) {
  std::deque<MeetingPtr>& channel = group.channels[{from, to}];
  if (channel.empty() || channel.front()->works[half] != nullptr) {
    channel.push_back(std::make_shared<LocalMeeting>(&group, std::vector<int>{from, to}));
    return channel.back();
  }
  return channel.front();
}

absl::Status LocalWorld::Add(const MeetingPtr& meeting, int index, Arrival arrival,
                             std::shared_ptr<RankWork> work) {
  LocalGroupState& group = *meeting->group;
  const bool collective = meeting->number.has_value();
  const absl::Status match =
      collective ? CheckMatch(*meeting, index, arrival) : CheckMessage(*meeting, index, arrival);
  meeting->arrivals[index] = std::move(arrival);
  meeting->works[index] = std::move(work);
  --meeting->missing;
  if (!match.ok()) return match;
  if (meeting->missing > 0) return CheckPresent(*meeting);
  if (collective) {
    group.waiting.erase(*meeting->number);
  } else {
    group.channels[{meeting->ranks[0], meeting->ranks[1]}].pop_front();
  }
  const auto ranks = static_cast<int64_t>(meeting->ranks.size());
  meeting->inline_move =
      group.members.size() == 1 || LargestBytes(meeting->arrivals) * ranks <= inline_bytes_;
  moving_.insert(meeting);
  return absl::OkStatus();
}

bool LocalWorld::TakeTurn(const MeetingPtr& meeting) {
  LocalGroupState& group = *meeting->group;
  const bool collective = meeting->number.has_value();
  if (collective && group.moving) {
    group.ready.push_back(meeting);
    return false;
  }
  group.moving |= collective;
  if (meeting->inline_move) meeting->running = 1;  // from here on a failure leaves it to its thread
  return true;
}

absl::Status LocalWorld::CheckPresent(const LocalMeeting& meeting) const {
  for (size_t i = 0; i < meeting.ranks.size(); ++i) {
    if (meeting.works[i] != nullptr || !left_[meeting.group->members[meeting.ranks[i]]]) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(Name(meeting), " waits for rank ", meeting.ranks[i], ", which has left"));
  }
  return absl::OkStatus();
}

LocalWorld::Meetings LocalWorld::Waiting() const {
  Meetings meetings;
  for (const auto& [key, group] : groups_) {
    for (const auto& [number, meeting] : group->waiting) meetings.push_back(meeting);
    for (const auto& [direction, channel] : group->channels) {
      meetings.insert(meetings.end(), channel.begin(), channel.end());
    }
  }
  return meetings;
}

LocalWorld::Meetings LocalWorld::FailLocked(const absl::Status& status) {
  if (!status_.ok()) return {};
  status_ = status;
  Meetings ended = Waiting();
  for (auto& [key, group] : groups_) {
    group->waiting.clear();
    group->channels.clear();
    group->ready.clear();
  }
  for (auto moving = moving_.begin(); moving != moving_.end();) {
    LocalMeeting& meeting = **moving;
    meeting.withdrawn = true;
    meeting.queued = 0;
    const bool idle = meeting.running == 0;
    if (idle) ended.push_back(*moving);
    moving = idle ? moving_.erase(moving) : std::next(moving);
  }
  return ended;
}

void LocalWorld::Fail(const absl::Status& status) {
  Meetings ended;
  {
    MutexLock lock(&mutex_);
    ended = FailLocked(status);
  }
  Complete(ended, status);
}

void LocalWorld::Move(MeetingPtr meeting) {
  while (meeting != nullptr) {
    meeting = meeting->inline_move ? MoveInline(meeting) : StartPhase(meeting);
  }
}

LocalWorld::MeetingPtr LocalWorld::MoveInline(const MeetingPtr& meeting) {
  for (int phase = 0; phase < Phases(meeting->arrivals[0].kind); ++phase) {
    for (size_t index = 0; index < meeting->ranks.size(); ++index) {
      RunTask(meeting->arrivals, static_cast<int>(index), phase);
    }
  }
  return End(meeting);
}

LocalWorld::MeetingPtr LocalWorld::StartPhase(const MeetingPtr& meeting) {
  std::vector<int> orphans;  // tasks of ranks that have left
  {
    MutexLock lock(&mutex_);
    if (meeting->withdrawn) return nullptr;
    const int ranks = static_cast<int>(meeting->ranks.size());
    const int first = meeting->number.has_value() ? 0 : 1;  // a sender has nothing to do
    meeting->queued = ranks - first;
    for (int index = first; index < ranks; ++index) {
      ProgressThread* const progress =
          progress_[meeting->group->members[meeting->ranks[index]]].get();
      if (progress == nullptr) {
        orphans.push_back(index);
      } else {
        progress->Post([this, meeting, index] { Move(RunTaskOf(meeting, index)); });
      }
    }
  }
  MeetingPtr next;
  for (int index : orphans) {
    if (MeetingPtr ready = RunTaskOf(meeting, index)) next = std::move(ready);
  }
  return next;
}

LocalWorld::MeetingPtr LocalWorld::RunTaskOf(const MeetingPtr& meeting, int index) {
  {
    MutexLock lock(&mutex_);
    if (meeting->withdrawn) return nullptr;
    --meeting->queued;
    ++meeting->running;
  }
  RunTask(meeting->arrivals, index, meeting->phase);
  bool more;
  {
    MutexLock lock(&mutex_);
    if (--meeting->running > 0 || meeting->queued > 0) return nullptr;
    more = !meeting->withdrawn && ++meeting->phase < Phases(meeting->arrivals[0].kind);
    if (!more) moving_.erase(meeting);
  }
  return more ? StartPhase(meeting) : End(meeting);
}

// Complete first: whoever waits for what comes next finds this one done.
LocalWorld::MeetingPtr LocalWorld::End(const MeetingPtr& meeting) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    moving_.erase(meeting);
    status = status_;
  }
  Complete({meeting}, status);
  if (!meeting->number.has_value()) return nullptr;
  LocalGroupState& group = *meeting->group;
  MutexLock lock(&mutex_);
  group.moving = false;
  if (group.ready.empty()) return nullptr;
  MeetingPtr next = std::move(group.ready.front());
  group.ready.pop_front();
  TakeTurn(next);
  return next;
}

void LocalWorld::Complete(const Meetings& meetings, const absl::Status& status) {
  // All buffers are let go before anybody is told: who was told may end what owns their memory.
  for (const MeetingPtr& meeting : meetings) meeting->arrivals.clear();
  for (const MeetingPtr& meeting : meetings) {
    for (const auto& work : meeting->works) {
      if (work != nullptr) work->Complete(status);
    }
  }
}

void LocalWorld::OnTimeout(const RankWork& work) {
  absl::Status failure;
  Meetings failed;
  {
    MutexLock lock(&mutex_);
    if (work.Done()) return;
    const double seconds = static_cast<double>(deadline_.count()) / 1e3;
    std::string late = absl::StrCat("an operation whose ranks have all arrived did not end within ",
                                    seconds, " s");
    for (const MeetingPtr& meeting : Waiting()) {
      const auto& works = meeting->works;
      const bool found =
          std::any_of(works.begin(), works.end(), [&](const auto& w) { return w.get() == &work; });
      if (found) late = DescribeLate(*meeting, seconds);
    }
    failure = absl::DeadlineExceededError(late);
    failed = FailLocked(failure);
  }
  Complete(failed, failure);
}

void LocalWorld::RunFor(int world_rank, const std::function<void()>& callbacks) {
  {
    MutexLock lock(&mutex_);
    if (progress_[world_rank] != nullptr) return progress_[world_rank]->Post(callbacks);
  }
  callbacks();
}

}  // namespace forerun::comm
