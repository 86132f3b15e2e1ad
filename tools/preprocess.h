// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace forerun {

// The flags of preprocess_data.
struct PreprocessOptions {
  std::string input;
  std::string output_prefix;
  std::string tokenizer_type = "ByteTokenizer";
  int64_t vocab_size = 0;  // NullTokenizer's
  bool append_eod = false;
  std::vector<std::string> json_keys = {"text"};
  int64_t log_interval = 0;  // documents between progress lines; 0: a line a second
};

// Tokenizes the documents of `input` into OUTPUT_PREFIX_<key>_document.bin and .idx, for each key,
// as Megatron-LM's tool does: a document is one sequence, or none where it has no tokens. Progress
// goes to `progress`. On an error, which is one sentence, the output files are not touched.
absl::Status Preprocess(const PreprocessOptions& options, std::ostream& progress);

}  // namespace forerun
