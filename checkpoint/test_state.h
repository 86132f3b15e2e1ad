// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/stateful.h"
#include "core/tensor/tensor.h"

namespace forerun {

// State made of pieces in its own memory, for tests.
class TestState final : public Stateful {
 public:
  struct Piece {
    std::string name;
    Shape global;
    Box box;
    int64_t begin = 0;
    int64_t numel = 0;
    DType dtype = DType::kF32;
    std::vector<uint8_t> memory = {};

    Tensor tensor() const;
    // A pattern that depends on `seed` only.
    void FillBytes(int seed);
  };

  // References stay valid.
  Piece& Add(Piece piece);
  Piece& AddWhole(const std::string& name, const Shape& global, DType dtype);
  std::vector<std::vector<uint8_t>> bytes() const;
  std::deque<Piece>& pieces() { return pieces_; }

  absl::Status Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) override;
  absl::Status Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) override;

  bool fail = false;  // Save ends with "this state fails"

 private:
  std::deque<Piece> pieces_;
};

using MakeState = std::function<std::unique_ptr<TestState>(int rank)>;

// Saves a checkpoint from `ranks` threads at once; each rank's status.
std::vector<absl::Status> SaveRanksEach(const std::string& directory, int64_t iteration, int ranks,
                                        const MakeState& make);
// The first that is not ok.
absl::Status SaveRanks(const std::string& directory, int64_t iteration, int ranks,
                       const MakeState& make);

}  // namespace forerun
