// SPDX-License-Identifier: Apache-2.0
#include "tools/document_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace forerun {

bool IsJsonLines(absl::string_view path) {
  return absl::EndsWith(path, ".jsonl") || absl::EndsWith(path, ".json");
}

DocumentReader::DocumentReader(std::shared_ptr<const MappedFile> file,
                               std::vector<std::string> keys)
    : file_(std::move(file)), keys_(std::move(keys)), is_json_(IsJsonLines(file_->path())) {}

absl::StatusOr<std::unique_ptr<DocumentReader>> DocumentReader::Open(
    const std::string& path, std::vector<std::string> keys) {
  FR_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return std::unique_ptr<DocumentReader>(new DocumentReader(std::move(file), std::move(keys)));
}

std::string DocumentReader::Where() const {
  return absl::StrCat(file_->path(), " line ", document_line_);
}

bool DocumentReader::NextLine(absl::string_view* line) {
  const absl::string_view text(reinterpret_cast<const char*>(file_->bytes().data()),
                               file_->bytes().size());
  if (position_ == text.size()) return false;
  const size_t feed = text.find('\n', position_);
  const size_t end = feed == absl::string_view::npos ? text.size() : feed;
  *line = absl::StripSuffix(text.substr(position_, end - position_), "\r");
  position_ = feed == absl::string_view::npos ? end : feed + 1;
  ++lines_;
  return true;
}

bool DocumentReader::NextFullLine(absl::string_view* line) {
  while (NextLine(line)) {
    if (!absl::StripAsciiWhitespace(*line).empty()) return true;
  }
  return false;
}

absl::StatusOr<bool> DocumentReader::Next(std::vector<std::string>* texts) {
  absl::string_view line;
  if (!NextFullLine(&line)) return false;
  document_line_ = lines_;
  if (is_json_) {
    FR_RETURN_IF_ERROR(ParseJson(line, texts));
    return true;
  }
  std::string document(line);
  while (NextLine(&line) && !absl::StripAsciiWhitespace(line).empty()) {
    absl::StrAppend(&document, "\n", line);
  }
  texts->assign(1, std::move(document));
  return true;
}

absl::Status DocumentReader::ParseJson(absl::string_view line,
                                       std::vector<std::string>* texts) const {
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line.begin(), line.end());
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(), " is not JSON, from its byte ", error.byte, " on"));
  }
  if (!object.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(Where(), " is JSON but not an object"));
  }
  texts->clear();
  for (const std::string& key : keys_) {
    const auto value = object.find(key);
    if (value == object.end() || !value->is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Where(), " has no text under the key \"", key, "\""));
    }
    texts->push_back(std::move(value->get_ref<std::string&>()));
  }
  return absl::OkStatus();
}

}  // namespace forerun
