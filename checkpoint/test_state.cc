// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/test_state.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "checkpoint/checkpoint.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

// Threads that agree, again and again.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks) {}

  absl::Status Agree(const absl::Status& mine) {
    MutexLock lock(&mutex_);
    arriving_.Update(mine);
    const int64_t generation = generation_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++generation_;
      agreed_ = std::exchange(arriving_, absl::OkStatus());
      changed_.NotifyAll();
    }
    while (generation_ == generation) changed_.Wait(&mutex_);
    return agreed_;  // which stays until all have met again
  }

 private:
  const int ranks_;
  Mutex mutex_;
  CondVar changed_;
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status arriving_ ABSL_GUARDED_BY(mutex_);  // the first error of this meeting
  absl::Status agreed_ ABSL_GUARDED_BY(mutex_);    // of the last one
};

StatePiece ToStatePiece(const TestState::Piece& piece) {
  return {piece.name, piece.global, piece.box, piece.begin, piece.tensor()};
}

}  // namespace

Tensor TestState::Piece::tensor() const {
  return Tensor::Wrap(nullptr, const_cast<uint8_t*>(memory.data()), Shape{numel}, dtype);
}

void TestState::Piece::FillBytes(int seed) {
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<uint8_t>(static_cast<size_t>(seed) * 131 + i * 37);
  }
}

TestState::Piece& TestState::Add(Piece piece) {
  piece.memory.resize(static_cast<size_t>(piece.numel * SizeOf(piece.dtype)));
  return pieces_.emplace_back(std::move(piece));
}

TestState::Piece& TestState::AddWhole(const std::string& name, const Shape& global, DType dtype) {
  return Add({name, global, Box::Whole(global), 0, global.numel(), dtype});
}

std::vector<std::vector<uint8_t>> TestState::bytes() const {
  std::vector<std::vector<uint8_t>> bytes;
  for (const Piece& piece : pieces_) bytes.push_back(piece.memory);
  return bytes;
}

absl::Status TestState::Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) {
  for (const Piece& piece : pieces_) FR_RETURN_IF_ERROR(save(ToStatePiece(piece)));
  return fail ? absl::InternalError("this state fails") : absl::OkStatus();
}

absl::Status TestState::Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) {
  for (const Piece& piece : pieces_) FR_RETURN_IF_ERROR(load(ToStatePiece(piece)));
  return absl::OkStatus();
}

std::vector<absl::Status> SaveRanksEach(const std::string& directory, int64_t iteration, int ranks,
                                        const MakeState& make) {
  Meeting meeting(ranks);
  std::vector<absl::Status> statuses(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<TestState> state = make(rank);
      Stateful* const states[] = {state.get()};
      statuses[static_cast<size_t>(rank)] =
          SaveCheckpoint({directory, iteration, rank, ranks, {}}, states,
                         [&meeting](const absl::Status& mine) { return meeting.Agree(mine); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

absl::Status SaveRanks(const std::string& directory, int64_t iteration, int ranks,
                       const MakeState& make) {
  for (const absl::Status& status : SaveRanksEach(directory, iteration, ranks, make)) {
    FR_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace forerun
