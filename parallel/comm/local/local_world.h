// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"
#include "parallel/comm/completable_work.h"
#include "parallel/comm/local/progress_thread.h"
#include "parallel/comm/movement.h"
#include "parallel/comm/work.h"

namespace forerun::comm {

struct LocalGroupState;  // what the members of a group share
struct LocalMeeting;     // an operation, from its first rank's arrival until it has ended

// Where ranks that are threads of one process meet: the state behind a LocalHub. Any thread may
// call. One lock guards everything; data moves and works complete outside of it.
//
// Life of an operation: it waits until all its ranks have arrived, and, a collective, until those
// of its group that came before it have ended; then its tasks (movement.h) run, either all of them
// in one thread (that arrived last, or ended the one before), or each on its rank's progress
// thread; then its works complete. A failure ends it at once while it waits; while it moves, tasks
// that have not begun are withdrawn and it ends when those that have are over, so that nobody's
// buffer is touched after the end.
class LocalWorld : public std::enable_shared_from_this<LocalWorld> {
 public:
  LocalWorld(int size, std::chrono::milliseconds deadline, int64_t inline_bytes);
  // Ends what still waits, with an error.
  ~LocalWorld();

  int size() const { return size_; }
  absl::Status status() const;

  // A rank comes once, before it makes groups, and leaves once. What waits for a rank that has
  // left, or comes to, fails; messages that it sent can still be received.
  void Join(int rank);
  void Leave(int rank);

  // The n-th time that a rank makes a group of this name and these members is the n-th such group.
  // Lives as long as the world.
  LocalGroupState* Group(const std::string& name, absl::Span<const int> members, int world_rank);

  // Operations of `rank` in `group`, whose arguments are checked.
  Work Collective(LocalGroupState& group, int rank, Arrival arrival);
  Work Send(LocalGroupState& group, int rank, int peer, const Tensor& tensor);
  Work Recv(LocalGroupState& group, int rank, int peer, const Tensor& tensor);

  // The first status counts.
  void Fail(const absl::Status& status);

 private:
  class RankWork;
  using MeetingPtr = std::shared_ptr<LocalMeeting>;
  using Meetings = std::vector<MeetingPtr>;

  // The collective of this number, or the oldest message in this direction that lacks its `half`;
  // a new one, which waits, if there is none.
  MeetingPtr FindCollective(LocalGroupState& group, uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  MeetingPtr FindMessage(LocalGroupState& group, int from, int to, int half)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Arrival number `index` of a meeting; an error if it does not fit. Once all are there it is
  // ready.
  absl::Status Add(const MeetingPtr& meeting, int index, Arrival arrival,
                   std::shared_ptr<RankWork> work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Work Message(LocalGroupState& group, int from, int to, int half, const Tensor& tensor);
  template <typename Find>
  Work Arrive(int world_rank, int index, Arrival arrival, const Find& find);

  absl::Status CheckPresent(const LocalMeeting& meeting) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Meetings Waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first status counts. Returns what can end now; its works are for the caller to complete.
  [[nodiscard]] Meetings FailLocked(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether a ready meeting may move now; a collective has to wait for the one before it.
  bool TakeTurn(const MeetingPtr& meeting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves a meeting whose turn it is, and then those whose turn comes with its end.
  void Move(MeetingPtr meeting);
  // Each returns what moves next if it has ended a meeting, otherwise null. Runs every task here;
  // or posts those of the next phase to progress threads, which run one each.
  MeetingPtr MoveInline(const MeetingPtr& meeting);
  MeetingPtr StartPhase(const MeetingPtr& meeting);
  MeetingPtr RunTaskOf(const MeetingPtr& meeting, int index);
  MeetingPtr End(const MeetingPtr& meeting);
  static void Complete(const Meetings& meetings, const absl::Status& status);

  void OnTimeout(const RankWork& work);
  // Runs callbacks where they harm nobody: on the rank's progress thread while there is one.
  void RunFor(int world_rank, const std::function<void()>& callbacks);

  const std::chrono::milliseconds deadline_;
  const int64_t inline_bytes_;
  const int size_;

  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<LocalGroupState>> groups_ ABSL_GUARDED_BY(mutex_);
  std::set<MeetingPtr> moving_ ABSL_GUARDED_BY(mutex_);
  // By world rank.
  std::vector<std::unique_ptr<ProgressThread>> progress_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> left_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::map<std::string, int>> creations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace forerun::comm
