// SPDX-License-Identifier: Apache-2.0
// Tokenizes text into the indexed files that --data-path names. Flags are Megatron-LM's.
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "core/base/flag_names.h"
#include "core/base/user_path.h"
#include "tools/preprocess.h"
#include "trainer/flag_values.h"

namespace forerun {
namespace {

constexpr char kAbout[] =
    "Tokenizes text into PREFIX_text_document.bin and .idx, the files that --data-path names.\n"
    "A file named *.jsonl or *.json has one JSON object a line, whose key \"text\" holds a "
    "document.\n"
    "Any other file is plain text, and blank lines separate its documents.";

// Flags of Megatron-LM's tool that change nothing here.
struct WithoutEffect {
  std::string dataset_impl = "mmap";
  int64_t workers = 1;
};

void AddFlags(CLI::App& app, PreprocessOptions& options, WithoutEffect& without_effect) {
  AddPlain(app, "--input", options.input, "text or JSON lines")->required();
  AddPlain(app, "--output-prefix", options.output_prefix,
           "path of the output, without _text_document")
      ->required();
  app.add_option("--tokenizer-type", options.tokenizer_type, "ByteTokenizer or NullTokenizer");
  app.add_option("--vocab-size", options.vocab_size, "number of ids, for NullTokenizer");
  app.add_flag("--append-eod", options.append_eod,
               "end each document with the end-of-document token");
  app.add_option("--json-keys", options.json_keys, "keys to extract; each gets its own files");
  app.add_option("--log-interval", options.log_interval,
                 "documents between progress lines; 0: a line a second");
  app.add_option("--dataset-impl", without_effect.dataset_impl, "only mmap")
      ->check(CLI::IsMember({"mmap"}));
  app.add_option("--workers", without_effect.workers, "accepted and not needed");
}

int Fail(const std::string& what) {
  std::cerr << "preprocess_data: " << what << std::endl;
  return 1;
}

int Main(std::vector<std::string> arguments) {
  PreprocessOptions options;
  WithoutEffect without_effect;
  CLI::App app(kAbout, "preprocess_data");
  app.option_defaults()->always_capture_default();
  AddFlags(app, options, without_effect);
  arguments = NormalizeFlagNames(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    return Fail(error.what());
  }
  options.input = ResolveUserPath(options.input);
  options.output_prefix = ResolveUserPath(options.output_prefix);
  const absl::Status status = Preprocess(options, std::cerr);
  return status.ok() ? 0 : Fail(std::string(status.message()));
}

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) {
  return forerun::Main(std::vector<std::string>(argv + 1, argv + argc));
}
