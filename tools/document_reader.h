// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mapped_file.h"

namespace forerun {

// The documents of a text file, in order, one at a time.
//
// A file named *.jsonl or *.json has a JSON object a line, and a document is what the keys hold
// there; empty lines are skipped. Any other file is plain text: a document is the lines up to the
// next blank one (or to the end), joined by line feeds; carriage returns at line ends are dropped.
class DocumentReader {
 public:
  // `keys`: the strings wanted of each JSON object; plain text has one nameless string.
  static absl::StatusOr<std::unique_ptr<DocumentReader>> Open(const std::string& path,
                                                              std::vector<std::string> keys);

  // Fills `texts` with the next document's string for each key; false where there is none left.
  // A fault is one sentence with the file and the line.
  absl::StatusOr<bool> Next(std::vector<std::string>* texts);

  // "FILE line N", for the line at which the document last read starts.
  std::string Where() const;
  int64_t bytes_read() const { return static_cast<int64_t>(position_); }
  int64_t bytes_total() const { return static_cast<int64_t>(file_->bytes().size()); }

 private:
  DocumentReader(std::shared_ptr<const MappedFile> file, std::vector<std::string> keys);
  bool NextLine(absl::string_view* line);
  bool NextFullLine(absl::string_view* line);
  absl::Status ParseJson(absl::string_view line, std::vector<std::string>* texts) const;

  const std::shared_ptr<const MappedFile> file_;
  const std::vector<std::string> keys_;
  const bool is_json_;
  size_t position_ = 0;  // of the next line
  int64_t lines_ = 0;    // read so far
  int64_t document_line_ = 0;
};

// Whether the file's name says that it has JSON lines.
bool IsJsonLines(absl::string_view path);

}  // namespace forerun
