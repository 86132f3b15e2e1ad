// SPDX-License-Identifier: Apache-2.0
// What any layout saves, any other loads.
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/test_state.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

struct TensorInfo {
  std::string name;
  Shape global;
};

const std::vector<TensorInfo>& Tensors() {
  static const auto& tensors = *new std::vector<TensorInfo>{{"embedding", Shape{23, 8}},
                                                            {"fc1", Shape{2, 12, 5}},
                                                            {"bias", Shape{17}},
                                                            {"step", Shape{}},
                                                            {"deep", Shape{2, 3, 2, 3}}};
  return tensors;
}

// Element with row-major index i in the global shape.
int32_t ValueAt(size_t tensor, int64_t index) {
  return static_cast<int32_t>(1000 * static_cast<int64_t>(tensor) + index);
}

int64_t Draw(std::mt19937& random, int64_t low, int64_t high) {  // both included
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// Cuts a box in two along a random dim, again and again; the parts tile it.
std::vector<Box> RandomTiling(std::mt19937& random, const Shape& global) {
  std::vector<Box> boxes = {Box::Whole(global)};
  for (int64_t cuts = global.rank() == 0 ? 0 : Draw(random, 0, 4); cuts > 0; --cuts) {
    const size_t chosen =
        static_cast<size_t>(Draw(random, 0, static_cast<int64_t>(boxes.size()) - 1));
    const int dim = static_cast<int>(Draw(random, 0, global.rank() - 1));
    const int64_t at = Draw(random, 0, boxes[chosen].extent[dim]);
    Box rest = boxes[chosen];
    rest.offset.set(dim, rest.offset[dim] + at);
    rest.extent.set(dim, rest.extent[dim] - at);
    boxes[chosen].extent.set(dim, at);
    boxes.push_back(rest);
  }
  return boxes;
}

// All tensors over `ranks`, each box cut into flat ranges and each range given to some rank.
std::vector<std::unique_ptr<TestState>> RandomLayout(std::mt19937& random, int ranks) {
  std::vector<std::unique_ptr<TestState>> states;
  for (int rank = 0; rank < ranks; ++rank) states.push_back(std::make_unique<TestState>());
  for (const TensorInfo& tensor : Tensors()) {
    for (const Box& box : RandomTiling(random, tensor.global)) {
      const int64_t numel = box.extent.numel();
      int64_t end = 0;
      do {
        const int64_t begin = end;
        end = Draw(random, 0, 1) == 0 ? numel : Draw(random, begin, numel);
        TestState& state = *states[static_cast<size_t>(Draw(random, 0, ranks - 1))];
        state.Add({tensor.name, tensor.global, box, begin, end - begin, DType::kI32});
      } while (end < numel);
    }
  }
  return states;
}

// Calls visit(value the element must have, its place) for each element of a state.
template <typename Visit>
void ForEachElement(TestState& state, Visit&& visit) {
  for (TestState::Piece& piece : state.pieces()) {
    size_t tensor = 0;
    while (Tensors()[tensor].name != piece.name) ++tensor;
    int32_t* values = piece.tensor().mutable_data<int32_t>();
    for (int64_t i = 0; i < piece.numel; ++i) {
      int64_t rest = piece.begin + i;
      int64_t index = 0;
      int64_t stride = 1;
      for (int d = piece.global.rank() - 1; d >= 0; --d) {
        index += (piece.box.offset[d] + rest % piece.box.extent[d]) * stride;
        rest /= piece.box.extent[d];
        stride *= piece.global[d];
      }
      visit(ValueAt(tensor, index), values + i);
    }
  }
}

TEST(Reshard, AnyLayoutLoadsWhatAnyOtherSaved) {
  std::mt19937 random(5);
  const std::string directory = testing::TempDir() + "/reshard";
  for (int trial = 0; trial < 40; ++trial) {
    auto saved = RandomLayout(random, static_cast<int>(Draw(random, 1, 6)));
    for (auto& state : saved) {
      ForEachElement(*state, [](int32_t value, int32_t* at) { *at = value; });
    }
    const absl::Status status =
        SaveRanks(directory, trial % 3, static_cast<int>(saved.size()),
                  [&](int rank) { return std::move(saved[static_cast<size_t>(rank)]); });
    ASSERT_TRUE(status.ok()) << status;
    auto loaded = RandomLayout(random, static_cast<int>(Draw(random, 1, 6)));
    std::vector<std::thread> ranks;
    for (auto& state : loaded) {
      ranks.emplace_back([&directory, &state] {
        const auto checkpoint = Checkpoint::Open(directory);
        ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
        const absl::Status load = (*checkpoint)->Load(*state);
        ASSERT_TRUE(load.ok()) << load;
        ForEachElement(*state, [](int32_t value, int32_t* at) { ASSERT_EQ(*at, value); });
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
}

}  // namespace
}  // namespace forerun
