// SPDX-License-Identifier: Apache-2.0
#include "tests/architecture/rules.h"

#include <algorithm>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace forerun::architecture {
namespace {

constexpr size_t kHeaderLimit = 350;
constexpr size_t kSourceLimit = 500;
constexpr size_t kLicenceLines = 3;

// One file being checked, and what was found.
struct File {
  const Layers& layers;
  std::string path;
  std::string layer;
  std::vector<std::string> lines;
  std::vector<std::string> faults;

  void Fault(const std::string& what) { faults.push_back(absl::StrCat(path, ": ", what)); }
  void Fault(size_t line, const std::string& what) {
    faults.push_back(absl::StrCat(path, ":", line + 1, ": ", what));
  }
  bool EndsWith(const std::string& suffix) const { return absl::EndsWith(path, suffix); }
};

void CheckLicence(File& file) {
  for (size_t i = 0; i < std::min(kLicenceLines, file.lines.size()); ++i) {
    if (absl::StrContains(file.lines[i], "SPDX-License-Identifier: Apache-2.0")) return;
  }
  file.Fault("no SPDX licence line");
}

void CheckLength(File& file) {
  const size_t limit = file.EndsWith(".h") ? kHeaderLimit : kSourceLimit;
  if (file.lines.size() < limit) return;
  file.Fault(absl::StrCat(file.lines.size(), " lines, must stay under ", limit));
}

void CheckLanguage(File& file) {
  static const std::regex kString(R"re("([^"\\]|\\.)*")re");
  static const std::regex kThreadLocal(R"(\bthread_local\b)");
  static const std::regex kConditional(R"(^\s*#\s*(if|ifdef|ifndef|elif)\b(?!.*\bHWY_))");
  for (size_t i = 0; i < file.lines.size(); ++i) {
    std::string line = std::regex_replace(file.lines[i], kString, "\"\"");
    line.resize(std::min(line.size(), line.find("//")));
    if (std::regex_search(line, kThreadLocal)) file.Fault(i, "thread_local; pass the context");
    if (std::regex_search(line, kConditional)) {
      file.Fault(i, "conditional compilation; choose at link time");
    }
  }
}

void CheckIncludes(File& file) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::smatch match;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    if (!std::regex_search(file.lines[i], match, kInclude)) continue;
    const std::string header = match[1];
    const std::string used = file.layers.LayerOf(header);
    if (used.empty() || file.layers.MayUse(file.layer, used)) continue;
    file.Fault(i, absl::StrCat(file.layer, " must not include ", header));
  }
}

// The package_group of a layer: its path below core and for comm and topology, else its last name.
std::string GroupOf(const std::string& layer) {
  const bool whole = absl::StartsWith(layer, "core/") || layer == "parallel/comm" ||
                     layer == "parallel/topology";
  const std::string name = whole ? layer : layer.substr(layer.rfind('/') + 1);
  return "build_defs:users_of_" + absl::StrReplaceAll(name, {{"/", "_"}});
}

void CheckLabel(File& file, size_t line, const std::string& label) {
  if (label == "visibility:public") file.Fault(line, "public; name a group of //build_defs");
  if (absl::StartsWith(label, "build_defs:users_of_") && label != GroupOf(file.layer)) {
    file.Fault(line, absl::StrCat("shown to //", label, " and not //", GroupOf(file.layer)));
  }
  const std::string other = file.layers.LayerOf(label);
  if (other.empty()) return;
  const bool is_visibility =
      absl::EndsWith(label, ":__pkg__") || absl::EndsWith(label, ":__subpackages__");
  const std::string& user = is_visibility ? other : file.layer;
  const std::string& used = is_visibility ? file.layer : other;
  if (file.layers.MayUse(user, used)) return;
  file.Fault(line, absl::StrCat(user, " must not depend on ", used, " (//", label, ")"));
}

void CheckBuildFile(File& file) {
  static const std::regex kLabel(R"re("//([^"]*)")re");
  bool is_private = false;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    std::string line = file.lines[i];
    line.resize(std::min(line.size(), line.find('#')));
    is_private |= absl::StrContains(line, R"(default_visibility = ["//visibility:private"])");
    for (std::sregex_iterator it(line.begin(), line.end(), kLabel), end; it != end; ++it) {
      CheckLabel(file, i, (*it)[1]);
    }
  }
  if (!is_private) file.Fault("the package is not private by default");
}

}  // namespace

std::string Layers::LayerOf(const std::string& path) const {
  for (const std::string& layer : order) {
    if (!absl::StartsWith(path, layer)) continue;
    if (path.size() == layer.size() || path[layer.size()] == '/' || path[layer.size()] == ':') {
      return layer;
    }
  }
  return "";
}

bool Layers::MayUse(const std::string& user, const std::string& used) const {
  if (user == used) return true;
  const auto it = allowed.find(user);
  return it != allowed.end() && it->second.count(used) > 0;
}

Layers ParseLayers(const std::string& text) {
  Layers layers;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    layers.order.push_back(words[0]);
    layers.allowed[words[0]] = {words.begin() + 1, words.end()};
  }
  return layers;
}

std::vector<std::string> CheckFile(const Layers& layers, const std::string& path,
                                   const std::string& text) {
  File file{layers, path, layers.LayerOf(path), absl::StrSplit(text, '\n'), {}};
  if (!file.lines.empty() && file.lines.back().empty()) file.lines.pop_back();
  const bool is_code = file.EndsWith(".h") || file.EndsWith(".cc") || file.EndsWith(".cu");
  CheckLicence(file);
  if (is_code) CheckLength(file);
  if (file.layer.empty()) return file.faults;
  if (is_code) {
    CheckLanguage(file);
    CheckIncludes(file);
  }
  if (file.EndsWith("/BUILD")) CheckBuildFile(file);
  return file.faults;
}

}  // namespace forerun::architecture
