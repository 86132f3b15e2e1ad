// SPDX-License-Identifier: Apache-2.0
#include "tools/preprocess.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "data/indexed_dataset.h"
#include "data/tokenizer.h"
#include "tools/document_reader.h"

namespace forerun {
namespace {

class Progress {
 public:
  Progress(int64_t interval, const DocumentReader& reader, std::ostream& out)
      : interval_(interval), reader_(reader), out_(out) {}

  void DocumentDone() {
    ++documents_;
    const double now = Seconds();
    const bool due = interval_ > 0 ? documents_ % interval_ == 0 : now >= next_;
    if (!due) return;
    next_ = now + 1;
    Print();
  }

  void Print() const {
    constexpr double kMega = 1e6;
    const double read = static_cast<double>(reader_.bytes_read()) / kMega;
    const double total = static_cast<double>(reader_.bytes_total()) / kMega;
    const double seconds = std::max(Seconds(), 1e-9);
    out_ << absl::StreamFormat("Processed %d documents (%.1f of %.1f MB, %.0f docs/s, %.1f MB/s)",
                               documents_, read, total, static_cast<double>(documents_) / seconds,
                               read / seconds)
         << std::endl;
  }

  int64_t documents() const { return documents_; }

 private:
  using Clock = std::chrono::steady_clock;
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  const Clock::time_point start_ = Clock::now();
  const int64_t interval_;
  const DocumentReader& reader_;
  std::ostream& out_;
  int64_t documents_ = 0;
  double next_ = 1;  // seconds
};

using Writers = std::vector<std::unique_ptr<IndexedDatasetWriter>>;

std::string OutputPrefix(const PreprocessOptions& options, const std::string& key) {
  return absl::StrCat(options.output_prefix, "_", key, "_document");
}

absl::Status CheckOptions(const PreprocessOptions& options) {
  if (options.json_keys.empty()) return absl::InvalidArgumentError("--json-keys names no key");
  std::vector<std::string> keys = options.json_keys;
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--json-keys names ", *twice, " twice"));
  }
  if (keys.size() > 1 && !IsJsonLines(options.input)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--json-keys names several keys, and ", options.input,
                     " is plain text: only the names of JSON lines end in .jsonl or .json"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Writers> CreateWriters(const PreprocessOptions& options, TokenType type) {
  Writers writers;
  for (const std::string& key : options.json_keys) {
    FR_ASSIGN_OR_RETURN(writers.emplace_back(),
                        IndexedDatasetWriter::Create(OutputPrefix(options, key), type));
  }
  return writers;
}

absl::Status WriteDocument(const std::vector<int32_t>& tokens, IndexedDatasetWriter& writer) {
  if (!tokens.empty()) FR_RETURN_IF_ERROR(writer.AddSequence(tokens));
  writer.EndDocument();
  return absl::OkStatus();
}

absl::Status Tokenize(const PreprocessOptions& options, const Tokenizer& tokenizer,
                      DocumentReader& reader, const Writers& writers, Progress& progress) {
  std::vector<std::string> texts;
  std::vector<int32_t> tokens;
  while (true) {
    FR_ASSIGN_OR_RETURN(const bool found, reader.Next(&texts));
    if (!found) return absl::OkStatus();
    for (size_t i = 0; i < texts.size(); ++i) {
      tokens.clear();
      const absl::Status encoded = tokenizer.Encode(texts[i], &tokens);
      if (!encoded.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(reader.Where(), ": ", encoded.message()));
      }
      if (options.append_eod && !tokens.empty()) tokens.push_back(tokenizer.eod());
      FR_RETURN_IF_ERROR(WriteDocument(tokens, *writers[i]));
    }
    progress.DocumentDone();
  }
}

}  // namespace

absl::Status Preprocess(const PreprocessOptions& options, std::ostream& out) {
  FR_RETURN_IF_ERROR(CheckOptions(options));
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<const Tokenizer> tokenizer,
                      TokenizerByType(options.tokenizer_type, options.vocab_size));
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<DocumentReader> reader,
                      DocumentReader::Open(options.input, options.json_keys));
  FR_ASSIGN_OR_RETURN(const Writers writers,
                      CreateWriters(options, TokenTypeFor(tokenizer->vocab_size())));
  Progress progress(options.log_interval, *reader, out);
  FR_RETURN_IF_ERROR(Tokenize(options, *tokenizer, *reader, writers, progress));
  progress.Print();
  if (progress.documents() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(options.input, " has no documents"));
  }
  for (size_t i = 0; i < writers.size(); ++i) {
    FR_RETURN_IF_ERROR(writers[i]->Publish());
    out << "Wrote " << writers[i]->tokens() << " tokens to "
        << OutputPrefix(options, options.json_keys[i]) << ".bin and .idx" << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace forerun
