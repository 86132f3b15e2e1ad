// SPDX-License-Identifier: Apache-2.0
// mutate SOURCE OUTPUT FIND REPLACEMENT [FIND REPLACEMENT]...: copies a source with each text
// replaced. Each must be found exactly once, so that a mutant never turns into the original.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace {

bool ReplaceOnce(std::string& text, const std::string& find, const std::string& replacement) {
  const size_t at = text.find(find);
  if (at == std::string::npos || text.find(find, at + 1) != std::string::npos) return false;
  text.replace(at, find.size(), replacement);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc % 2 == 0) return 2;
  std::ifstream source(argv[1]);
  std::string text{std::istreambuf_iterator<char>(source), {}};
  for (int i = 3; i < argc; i += 2) {
    if (ReplaceOnce(text, argv[i], argv[i + 1])) continue;
    std::fprintf(stderr, "%s must have exactly once what a mutant of it changes:\n%s\n", argv[1],
                 argv[i]);
    return 1;
  }
  std::ofstream(argv[2]) << text;
  return 0;
}
