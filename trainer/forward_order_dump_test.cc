// SPDX-License-Identifier: Apache-2.0
#include "trainer/forward_order_dump.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

std::string Dump(const std::string& file) {
  std::vector<std::string> args;
  for (const char* arg : {"--num-layers",
                          "2",
                          "--hidden-size",
                          "16",
                          "--num-attention-heads",
                          "2",
                          "--seq-length",
                          "8",
                          "--micro-batch-size",
                          "1",
                          "--train-iters",
                          "1",
                          "--lr",
                          "1e-3",
                          "--mock-data",
                          "--vocab-size",
                          "16",
                          "--pipeline-model-parallel-size",
                          "2",
                          "--post-sublayer-norms",
                          "--dump-forward-order"}) {
    args.push_back(arg);
  }
  args.push_back(testing::TempDir() + "/" + file);
  const absl::StatusOr<Arguments> arguments = ParseArguments(args);
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  const absl::Status dumped = DumpForwardOrder(*arguments);
  EXPECT_TRUE(dumped.ok()) << dumped;
  std::ifstream in(args.back());
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ForwardOrderDump, ATableShowsEveryStageInOrderOfUse) {
  const std::string table = Dump("order.txt");
  const size_t first = table.find("stage 0"), second = table.find("stage 1");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  const size_t attention = table.find("post_attention_norm", first);
  const size_t mlp = table.find("mlp.fc1.weight", first);
  ASSERT_LT(mlp, second);
  EXPECT_LT(attention, mlp) << "a norm that is registered last stands where it runs";
}

TEST(ForwardOrderDump, GraphvizHasANodeAUseAndArrows) {
  const std::string graph = Dump("order.dot");
  EXPECT_TRUE(absl::StartsWith(graph, "digraph forward_order {"));
  EXPECT_TRUE(absl::StrContains(graph, "\"stage 1 0\" [label="));
  EXPECT_TRUE(absl::StrContains(graph, "\"stage 1 0\" -> \"stage 1 2\"") ||
              absl::StrContains(graph, "\"stage 1 1\" -> \"stage 1 2\""))
      << graph;
  EXPECT_TRUE(absl::EndsWith(graph, "}\n}\n"));
}

TEST(ForwardOrderDump, AFileThatCannotBeWrittenIsNamed) {
  const absl::StatusOr<Arguments> arguments = ParseArguments(
      {"--num-layers", "1", "--hidden-size", "16", "--num-attention-heads", "2", "--seq-length",
       "8", "--micro-batch-size", "1", "--train-iters", "1", "--lr", "1e-3", "--mock-data",
       "--vocab-size", "16", "--dump-forward-order", "/no/such/folder/order.txt"});
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_EQ(
      DumpForwardOrder(*arguments).message(),
      "cannot write --dump-forward-order /no/such/folder/order.txt: No such file or directory");
}

}  // namespace
}  // namespace forerun
