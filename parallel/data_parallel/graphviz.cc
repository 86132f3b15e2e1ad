// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/graphviz.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace forerun {

std::string GraphvizCluster(const ForwardOrderGraph& graph, absl::string_view name) {
  const auto node = [&](size_t use) {
    return absl::StrCat("\"", absl::CEscape(name), " ", use, "\"");
  };
  std::string text = absl::StrCat("subgraph \"cluster ", absl::CEscape(name), "\" {\n  label=\"",
                                  absl::CEscape(name), "\";\n");
  const std::vector<std::vector<int>> sources = graph.Sources();
  for (size_t i = 0; i < graph.uses().size(); ++i) {
    const Use& use = graph.uses()[i];
    absl::StrAppend(&text, "  ", node(i), " [label=\"", i, ": ",
                    absl::CEscape(use.parameter->name()), "\\nread by ", absl::CEscape(use.reader),
                    "\"];\n");
    for (int source : sources[i])
      absl::StrAppend(&text, "  ", node(source), " -> ", node(i), ";\n");
  }
  absl::StrAppend(&text, "}\n");
  return text;
}

}  // namespace forerun
