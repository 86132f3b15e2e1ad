// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace forerun {
namespace {

absl::Status OutsideVocabulary(int32_t id, int64_t vocab_size) {
  return absl::InvalidArgumentError(
      absl::StrCat("token ", id, " lies outside the vocabulary of ", vocab_size));
}

}  // namespace

absl::Status ByteTokenizer::Encode(absl::string_view text, std::vector<int32_t>* tokens) const {
  for (const char c : text) tokens->push_back(static_cast<uint8_t>(c));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ByteTokenizer::Decode(absl::Span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t id : tokens) {
    if (id < 0 || id > eod()) return OutsideVocabulary(id, vocab_size());
    if (id != eod()) text.push_back(static_cast<char>(id));
  }
  return text;
}

absl::Status NullTokenizer::Encode(absl::string_view text, std::vector<int32_t>* tokens) const {
  const size_t before = tokens->size();
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0 || id >= ids_) {
      tokens->resize(before);
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is not a token id from 0 to ", ids_ - 1));
    }
    tokens->push_back(id);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> NullTokenizer::Decode(absl::Span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t id : tokens) {
    if (id < 0 || id > eod()) return OutsideVocabulary(id, vocab_size());
    if (id != eod()) absl::StrAppend(&text, text.empty() ? "" : " ", id);
  }
  return text;
}

absl::StatusOr<std::unique_ptr<const Tokenizer>> TokenizerByType(absl::string_view type,
                                                                 int64_t vocab_size) {
  if (type == "ByteTokenizer") return std::make_unique<const ByteTokenizer>();
  if (type == "NullTokenizer") {
    if (vocab_size < 1 || vocab_size > std::numeric_limits<int32_t>::max() - 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tokenizer-type NullTokenizer needs --vocab-size, the number of ids, and ",
                       vocab_size, " is none"));
    }
    return std::make_unique<const NullTokenizer>(static_cast<int32_t>(vocab_size));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no tokenizer '", type,
                   "'; --tokenizer-type knows ByteTokenizer and NullTokenizer"));
}

}  // namespace forerun
