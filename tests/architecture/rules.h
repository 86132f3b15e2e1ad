// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace forerun::architecture {

// The layers, lowest first, and which others each may use.
struct Layers {
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> allowed;

  // The layer of a path ("core/base/check.h") or of a label without its slashes ("core/base:check").
  // Empty where there is none (third_party, build_defs).
  std::string LayerOf(const std::string& path) const;

  // A layer may always use itself.
  bool MayUse(const std::string& user, const std::string& used) const;
};

// Reads a line for each layer: its name, then those that it may use.
Layers ParseLayers(const std::string& text);

// What is wrong with one file: sentences that start with `path:line: ` or `path: `. The rules are
//  1. The licence stands in the first three lines.
//  2. A header has fewer than 350 lines, a source fewer than 500.
//  3. No thread_local: context is passed.
//  4. No conditional compilation: backends are chosen at link time. Highway's own macros are free,
//     since it compiles a source once for each instruction set.
//  5. An #include names a header of this layer or of one that it may use.
//  6. So does a label in a BUILD file.
//  7. A package is private by default; what it shows, it shows to the group of its own layer or to
//     packages that may use it.
// Rules 3 to 7 hold in layers only.
std::vector<std::string> CheckFile(const Layers& layers, const std::string& path,
                                   const std::string& text);

}  // namespace forerun::architecture
