// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace forerun {

// Text to token ids and back. Immutable: any thread may call. Ids lie in [0, vocab_size()).
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocab_size() const = 0;
  virtual int32_t eod() const = 0;  // the id that ends a document

  // Appends the tokens of `text`. Fails, with nothing appended, on text that it cannot express.
  virtual absl::Status Encode(absl::string_view text, std::vector<int32_t>* tokens) const = 0;
  // The text of `tokens`, end-of-document tokens left out. Fails on an id out of range.
  virtual absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const = 0;
};

// Ids 0 to 255 are bytes, 256 ends a document. Expresses any text.
class ByteTokenizer final : public Tokenizer {
 public:
  int64_t vocab_size() const override { return 257; }
  int32_t eod() const override { return 256; }
  absl::Status Encode(absl::string_view text, std::vector<int32_t>* tokens) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const override;
};

// The text is ids already, decimal numbers between spaces: what another program tokenized. As in
// Megatron-LM, ids 0 to n - 1 are the text's and n ends a document: the vocabulary has n + 1 ids.
class NullTokenizer final : public Tokenizer {
 public:
  explicit NullTokenizer(int32_t ids) : ids_(ids) {}
  int64_t vocab_size() const override { return int64_t{ids_} + 1; }
  int32_t eod() const override { return ids_; }
  absl::Status Encode(absl::string_view text, std::vector<int32_t>* tokens) const override;
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> tokens) const override;

 private:
  const int32_t ids_;
};

// The tokenizer that --tokenizer-type names. `vocab_size` is --vocab-size, which NullTokenizer
// needs (its n above) and the others ignore. An unknown type is an error that lists the known ones.
absl::StatusOr<std::unique_ptr<const Tokenizer>> TokenizerByType(absl::string_view type,
                                                                 int64_t vocab_size = 0);

}  // namespace forerun
