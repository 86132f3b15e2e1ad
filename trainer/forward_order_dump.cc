// SPDX-License-Identifier: Apache-2.0
#include "trainer/forward_order_dump.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/data_parallel/graphviz.h"
#include "trainer/model_setup.h"
#include "trainer/rank_trainer.h"

namespace forerun {
namespace {

absl::StatusOr<std::string> DescribeStage(const Arguments& arguments, const Grid& grid, int stage,
                                          const ChunkFactory& make_chunk, bool graphviz) {
  comm::FakeGroupFactory factory(grid.RankAt({0, 0, stage}), grid.world_size());
  const ParallelContext parallel(grid, factory);
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<ModelChunk> chunk, make_chunk(parallel));
  FR_ASSIGN_OR_RETURN(
      const ForwardOrderGraph graph,
      RecordChunkOrder(*chunk, arguments.model.seq_length, arguments.training.micro_batch_size));
  const std::string name = absl::StrCat("stage ", stage);
  return graphviz ? GraphvizCluster(graph, name) : absl::StrCat(name, "\n", graph.ToString());
}

}  // namespace

absl::Status DumpForwardOrder(const Arguments& arguments) {
  const std::string& path = arguments.output.dump_forward_order;
  const bool graphviz = absl::EndsWith(path, ".dot");
  FR_ASSIGN_OR_RETURN(const ChunkFactory make_chunk, ChunkFactoryOf(arguments));
  FR_ASSIGN_OR_RETURN(
      const Grid grid,
      Grid::Create(arguments.parallel.world_size, arguments.parallel.tensor_model_parallel_size,
                   arguments.parallel.pipeline_model_parallel_size));
  std::string text = graphviz ? "digraph forward_order {\n  node [shape=box];\n" : "";
  for (int stage = 0; stage < grid.pp_size(); ++stage) {
    FR_ASSIGN_OR_RETURN(const std::string described,
                        DescribeStage(arguments, grid, stage, make_chunk, graphviz));
    absl::StrAppend(&text, described);
  }
  if (graphviz) absl::StrAppend(&text, "}\n");
  std::ofstream file(path, std::ios::trunc);
  file << text << std::flush;
  if (file) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("cannot write --dump-forward-order ", path, ": ", std::strerror(errno)));
}

}  // namespace forerun
