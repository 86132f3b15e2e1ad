// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/mapped_file.h"
#include "core/base/output_file.h"

// Tokenized text in the two files of Megatron-LM's IndexedDataset, PREFIX.idx and PREFIX.bin.
//
// PREFIX.bin: the tokens of all sequences, nothing else. PREFIX.idx, little-endian and unpadded:
//   9 bytes  "MMIDIDX\0\0"
//   u64      version, 1
//   u8       code of the token type, see TokenType
//   u64      sequences n
//   u64      entries d of the document table, documents + 1
//   i32[n]   tokens of each sequence
//   i64[n]   byte in PREFIX.bin where each sequence starts
//   i64[d]   document i is the sequences [entry i, entry i + 1); the first entry is 0
// What follows (Megatron's modes of multimodal data) is ignored.
namespace forerun {

enum class TokenType : uint8_t {
  kUint8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUint16 = 8,
};
// Codes 6 (float64) and 7 (float32) exist in the format and hold no tokens: Open refuses them.

int64_t SizeOf(TokenType type);  // bytes of one token

// The smallest type that Megatron-LM would choose: uint16 for vocabularies under 65500, else int32.
TokenType TokenTypeFor(int64_t vocab_size);

// Reads an indexed data set through memory maps. Immutable: any thread may read.
//
// Invariants, checked once by Open
//  1. Every sequence lies inside PREFIX.bin.
//  2. The document table starts with 0, does not decrease, and ends at most at size().
class IndexedDataset {
 public:
  // Fails with one sentence that names the file and what is wrong with it.
  static absl::StatusOr<std::shared_ptr<const IndexedDataset>> Open(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType token_type() const { return type_; }
  int64_t size() const { return sequences_; }  // sequences
  int64_t documents() const { return document_entries_ - 1; }
  // Tokens of sequence `index`.
  int64_t length(int64_t index) const;
  // The first sequence of `document`; for document == documents(), the end of the last.
  int64_t document_begin(int64_t document) const;

  // Fills `out` with the tokens of sequence `index` from `begin` on; they must exist. Fails where
  // a token is negative or does not fit 32 bits.
  absl::Status Read(int64_t index, int64_t begin, absl::Span<int32_t> out) const;

 private:
  explicit IndexedDataset(std::string prefix) : prefix_(std::move(prefix)) {}
  absl::Status ReadHeader();
  absl::Status CheckSequences() const;
  absl::Status CheckDocuments() const;
  int64_t pointer(int64_t index) const;
  std::string index_path() const { return prefix_ + ".idx"; }
  std::string data_path() const { return prefix_ + ".bin"; }

  const std::string prefix_;
  std::shared_ptr<const MappedFile> index_;
  std::shared_ptr<const MappedFile> data_;
  TokenType type_ = TokenType::kUint16;
  int64_t sequences_ = 0;
  int64_t document_entries_ = 0;
};

// Writes an indexed data set. Nothing is visible under the final names before Publish; a reader
// never meets the index of other data. Belongs to one thread. Errors name the file.
class IndexedDatasetWriter {
 public:
  static absl::StatusOr<std::unique_ptr<IndexedDatasetWriter>> Create(const std::string& prefix,
                                                                      TokenType type);

  // Adds a sequence to the current document. Fails where a token does not fit the type.
  absl::Status AddSequence(absl::Span<const int32_t> tokens);
  // Ends the current document, which may have no sequences.
  void EndDocument();
  // Once, and nothing after it.
  absl::Status Publish();

  int64_t tokens() const { return bytes_ / SizeOf(type_); }

 private:
  IndexedDatasetWriter(std::string prefix, TokenType type)
      : prefix_(std::move(prefix)), type_(type) {}
  absl::Status WriteIndex();

  const std::string prefix_;
  const TokenType type_;
  std::unique_ptr<OutputFile> data_;
  std::unique_ptr<OutputFile> index_;
  std::vector<uint8_t> encoded_;  // one sequence, kept for its capacity
  std::vector<int32_t> lengths_;
  std::vector<int64_t> pointers_;
  std::vector<int64_t> documents_ = {0};
  int64_t bytes_ = 0;
};

}  // namespace forerun
