// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/forward_order.h"

#include <memory>
#include <string>
#include <vector>

#include "core/autograd/context.h"
#include "core/autograd/functions.h"
#include "core/autograd/recompute.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/functions.h"
#include "core/nn/registry.h"
#include "core/ops/meta/kernels.h"
#include "core/ops/op_context.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

constexpr int64_t kWidth = 4;
constexpr int64_t kVocabulary = 6;

// A chunk that does what a careless model may: registers in another order than it runs, borrows a
// weight, ties its head, freezes one parameter and leaves two out.
class Chunk {
 public:
  Chunk() {
    Declare("zeta", {kWidth}, ParameterKind::kOptional);
    Declare("value", {kWidth, kWidth});
    Declare("alpha", {kWidth}, ParameterKind::kOptional);
    Declare("norm", {kWidth}, ParameterKind::kFrozen);
    Declare("query_bias", {kWidth});
    Declare("query", {kWidth, kWidth});
    Declare("embedding", {kVocabulary, kWidth});
  }

  const Parameter& Declare(const std::string& name, const Shape& shape,
                           ParameterKind kind = ParameterKind::kTrainable) {
    return registry_.Declare(
        {.name = name, .global_shape = shape, .box = Box::Whole(shape), .kind = kind},
        Init::Zeros());
  }
  const Parameter& operator[](const std::string& name) const {
    for (const Parameter* parameter : parameters()) {
      if (parameter->name() == name) return *parameter;
    }
    ADD_FAILURE() << name;
    return *parameters()[0];
  }
  absl::Span<const Parameter* const> parameters() const { return registry_.parameters(); }

  // embedding -> norm -> (query, value) -> + -> query again -> head on the embedding.
  Value Forward(const ForwardContext& context, const Tensor& tokens) const {
    const Chunk& p = *this;
    const Value x = Embedding(context, tokens, p["embedding"], 0, "word_embeddings");
    const Value normed = RmsNorm(context, x, p["norm"], 1e-5f, "norm");
    const Value query = Linear(context, normed, p["query"], &p["query_bias"], "query");
    const Value value = Linear(context, normed, p["value"], nullptr, "value");
    const Value sum = Add(context, query, value);
    const Value again = Linear(context, sum, p["query"], nullptr, "borrower");
    return Linear(context, again, p["embedding"], nullptr, "head");
  }

 private:
  ParameterRegistry registry_;
};

class ForwardOrderTest : public testing::Test {
 protected:
  absl::StatusOr<ForwardOrderGraph> Record(const Chunk& chunk) {
    return RecordForwardOrder(chunk.parameters(), [&](ParamReader& reader, Tape& tape) {
      chunk.Forward(Context(reader, tape), tokens_);
    });
  }
  ForwardContext Context(ParamReader& reader, Tape& tape) { return {meta_.op(), reader, &tape}; }

  static std::vector<std::string> Names(absl::Span<const Parameter* const> parameters) {
    std::vector<std::string> names;
    for (const Parameter* parameter : parameters) names.push_back(parameter->name());
    return names;
  }

  TestDevice meta_{DeviceKind::kMeta};
  Tensor tokens_ = meta_.Tokens({1, 3}, {0, 0, 0});
};

TEST_F(ForwardOrderTest, UsesComeInTheOrderOfReadsWithTheirReaders) {
  const Chunk chunk;
  const ForwardOrderGraph graph = *Record(chunk);
  std::vector<std::string> uses;
  for (const Use& use : graph.uses()) uses.push_back(use.reader + " " + use.parameter->name());
  EXPECT_EQ(uses, (std::vector<std::string>{"word_embeddings embedding", "norm norm", "query query",
                                            "query query_bias", "value value", "borrower query",
                                            "head embedding"}));
}

TEST_F(ForwardOrderTest, FirstUseOrderHasTrainableParametersOnceAndLeftOutOnesLast) {
  const Chunk chunk;
  EXPECT_EQ(
      Names(Record(chunk)->first_use_order()),
      (std::vector<std::string>{"embedding", "query", "query_bias", "value", "alpha", "zeta"}));
}

TEST_F(ForwardOrderTest, EdgesLeadFromUseToUseThroughOperatorsWithoutWeights) {
  const Chunk chunk;
  const ForwardOrderGraph graph = *Record(chunk);
  const std::vector<std::vector<int>> expected = {{},  {},        {0}, {0},  // through the norm
                                                  {0}, {2, 3, 4},            // through the sum
                                                  {5}};
  EXPECT_EQ(graph.Sources(), expected);
}

TEST_F(ForwardOrderTest, CountsReadsAndContributionsOfEachParameter) {
  const Chunk chunk;
  const ForwardOrderGraph graph = *Record(chunk);
  const auto expect = [&](const char* name, int uses, int contributions) {
    EXPECT_EQ(graph.use_count(chunk[name]), uses) << name;
    EXPECT_EQ(graph.contribution_count(chunk[name]), contributions) << name;
  };
  expect("embedding", 2, 2);
  expect("query", 2, 2);
  expect("query_bias", 1, 1);
  expect("value", 1, 1);
  expect("norm", 1, 0);
  expect("alpha", 0, 0);
}

TEST_F(ForwardOrderTest, TheOrderOfRegistrationChangesNothing) {
  const Chunk chunk;
  std::vector<const Parameter*> reversed(chunk.parameters().rbegin(), chunk.parameters().rend());
  const auto forward = [&](ParamReader& reader, Tape& tape) {
    chunk.Forward(Context(reader, tape), tokens_);
  };
  EXPECT_EQ(RecordForwardOrder(reversed, forward)->ToString(), Record(chunk)->ToString());
  EXPECT_EQ(Names(RecordForwardOrder(reversed, forward)->first_use_order()),
            Names(Record(chunk)->first_use_order()));
}

TEST_F(ForwardOrderTest, UnusedTrainableParametersAreAnErrorThatNamesThem) {
  Chunk chunk;
  chunk.Declare("forgotten", {kWidth});
  chunk.Declare("lost", {kWidth});
  EXPECT_EQ(Record(chunk).status().message(),
            "forward order: no operator of the forward pass reads forgotten, lost; declare what a "
            "model may leave out as optional");
}

TEST_F(ForwardOrderTest, AnUnusedFrozenParameterIsNoError) {
  Chunk chunk;
  chunk.Declare("buffer", {kWidth}, ParameterKind::kFrozen);
  EXPECT_TRUE(Record(chunk).ok()) << Record(chunk).status();
}

TEST_F(ForwardOrderTest, AParameterOfAnotherChunkIsAnErrorThatNamesIt) {
  const Chunk chunk, other;
  const auto graph = RecordForwardOrder(chunk.parameters(), [&](ParamReader& reader, Tape& tape) {
    const ForwardContext context = Context(reader, tape);
    const Value logits = chunk.Forward(context, tokens_);
    Embedding(context, tokens_, other["embedding"], 0, "thief");
    (void)logits;
  });
  EXPECT_EQ(graph.status().message(),
            "forward order: thief reads parameter embedding, which is not registered in this model "
            "chunk");
}

TEST_F(ForwardOrderTest, ARecomputedSegmentIsRecordedLikeTheSegment) {
  const Chunk chunk;
  const auto graph = RecordForwardOrder(chunk.parameters(), [&](ParamReader& reader, Tape& tape) {
    const ForwardContext context = Context(reader, tape);
    const Value x = Embedding(context, tokens_, chunk["embedding"], 0, "word_embeddings");
    Recompute(context, x, [&](const ForwardContext& inner, const Value& in) {
      const Value query = Linear(inner, in, chunk["query"], &chunk["query_bias"], "query");
      return Linear(inner, query, chunk["value"], nullptr, "value");
    });
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(
      Names(graph->first_use_order()),
      (std::vector<std::string>{"embedding", "query", "query_bias", "value", "alpha", "zeta"}));
  EXPECT_EQ(graph->contribution_count(chunk["query"]), 1);
}

TEST_F(ForwardOrderTest, AReboundGraphSpeaksOfTheTwins) {
  const Chunk meta, training;
  const ForwardOrderGraph graph = *Record(meta);
  const ForwardOrderGraph rebound = graph.ReboundTo(training.parameters());
  EXPECT_EQ(rebound.ToString(), graph.ToString());
  EXPECT_EQ(rebound.uses()[0].parameter, &training["embedding"]);
  EXPECT_EQ(rebound.first_use_order()[1], &training["query"]);
  EXPECT_EQ(rebound.first_use_order().size(), graph.first_use_order().size());
  EXPECT_EQ(rebound.use_count(training["query"]), 2);
  EXPECT_EQ(rebound.contribution_count(training["embedding"]), 2);
  EXPECT_EQ(rebound.use_count(meta["query"]), 0);
}

TEST_F(ForwardOrderTest, AUseKnowsTheWorkThatWasDoneBeforeIt) {
  const Chunk chunk;
  const meta::CountingKernels counting;
  const OpContext op{meta_.op().stream, meta_.op().allocator, &counting.table()};
  const ForwardOrderGraph graph = *RecordForwardOrder(
      chunk.parameters(),
      [&](ParamReader& reader, Tape& tape) {
        chunk.Forward(ForwardContext{op, reader, &tape}, tokens_);
      },
      &counting.work());
  constexpr int64_t kLinear = 2 * 3 * kWidth * kWidth;  // flops; three tokens
  std::vector<int64_t> flops;
  for (const Use& use : graph.uses()) flops.push_back(use.before.flops);
  EXPECT_EQ(flops, (std::vector<int64_t>{0, 0, 0, 0, kLinear, 2 * kLinear, 3 * kLinear}));
  EXPECT_EQ(graph.work().flops, 3 * kLinear + 2 * 3 * kWidth * kVocabulary);
  EXPECT_EQ(graph.uses()[0].before, ComputeWork());
  EXPECT_LT(graph.uses()[1].before.bytes, graph.uses()[2].before.bytes) << "the norm";
  EXPECT_EQ(graph.ReboundTo(chunk.parameters()).work(), graph.work());
}

TEST_F(ForwardOrderTest, AGraphIsNotReboundToAnotherModel) {
  const Chunk chunk;
  const ForwardOrderGraph graph = *Record(chunk);
  ParameterRegistry stranger;
  for (int i = 0; i < 7; ++i) {
    stranger.Declare({.name = "x" + std::to_string(i), .global_shape = {1}, .box = Box::Whole({1})},
                     Init::Zeros());
  }
  EXPECT_DEATH(graph.ReboundTo(stranger.parameters()), "instances of a chunk register alike");
}

}  // namespace
}  // namespace forerun
