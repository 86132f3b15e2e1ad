// SPDX-License-Identifier: Apache-2.0
#include "data/indexed_dataset.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

constexpr char kMagic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t kVersion = 1;
constexpr int64_t kVersionAt = 9;
constexpr int64_t kTypeAt = 17;
constexpr int64_t kSequencesAt = 18;
constexpr int64_t kDocumentsAt = 26;
constexpr int64_t kHeaderBytes = 34;

// The tables lie at odd addresses.
template <typename T>
T Load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename... Args>
absl::Status Fault(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

// Calls visit(T{}) with the C++ type of the tokens.
template <typename Visitor>
auto VisitTokens(TokenType type, Visitor&& visit) {
  switch (type) {
    case TokenType::kUint8:
      return visit(uint8_t{});
    case TokenType::kInt8:
      return visit(int8_t{});
    case TokenType::kInt16:
      return visit(int16_t{});
    case TokenType::kInt32:
      return visit(int32_t{});
    case TokenType::kInt64:
      return visit(int64_t{});
    case TokenType::kUint16:
      return visit(uint16_t{});
  }
  FR_CHECK(false) << "token type " << static_cast<int>(type);
  return visit(uint8_t{});
}

std::string NameOfCode(uint8_t code) {
  if (code == 6) return "float64";
  if (code == 7) return "float32";
  return absl::StrCat("an unknown type (code ", code, ")");
}

bool IsTokenType(uint8_t code) { return code >= 1 && code <= 8 && code != 6 && code != 7; }

}  // namespace

int64_t SizeOf(TokenType type) {
  return VisitTokens(type, [](auto token) { return static_cast<int64_t>(sizeof token); });
}

TokenType TokenTypeFor(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

absl::StatusOr<std::shared_ptr<const IndexedDataset>> IndexedDataset::Open(
    const std::string& prefix) {
  const std::shared_ptr<IndexedDataset> dataset(new IndexedDataset(prefix));
  FR_ASSIGN_OR_RETURN(dataset->index_, MappedFile::Open(dataset->index_path()));
  FR_RETURN_IF_ERROR(dataset->ReadHeader());
  FR_ASSIGN_OR_RETURN(dataset->data_, MappedFile::Open(dataset->data_path()));
  FR_RETURN_IF_ERROR(dataset->CheckSequences());
  FR_RETURN_IF_ERROR(dataset->CheckDocuments());
  return std::shared_ptr<const IndexedDataset>(dataset);
}

absl::Status IndexedDataset::ReadHeader() {
  const absl::Span<const uint8_t> bytes = index_->bytes();
  const int64_t size = static_cast<int64_t>(bytes.size());
  const std::string path = index_path();
  const size_t present = std::min(bytes.size(), sizeof kMagic);
  if (present > 0 && std::memcmp(bytes.data(), kMagic, present) != 0) {
    return Fault(path, " is not the index of a data set: it does not start with MMIDIDX");
  }
  if (size < kHeaderBytes) {
    return Fault(path, " is truncated: its header takes ", kHeaderBytes, " bytes and it has ",
                 size);
  }
  const uint64_t version = Load<uint64_t>(bytes.data() + kVersionAt);
  if (version != kVersion) {
    return Fault(path, " has version ", version, ", this build reads version ", kVersion);
  }
  const uint8_t code = bytes[kTypeAt];
  if (!IsTokenType(code))
    return Fault(path, " holds tokens of ", NameOfCode(code), ", which is not supported");
  type_ = static_cast<TokenType>(code);
  const uint64_t sequences = Load<uint64_t>(bytes.data() + kSequencesAt);
  const uint64_t documents = Load<uint64_t>(bytes.data() + kDocumentsAt);
  const uint64_t tables = static_cast<uint64_t>(size - kHeaderBytes);
  // Divided, not multiplied: a corrupt count must not overflow.
  const bool fits = sequences <= tables / 12 && documents <= (tables - sequences * 12) / 8;
  if (!fits) {
    return Fault(path, " is truncated: the tables of ", sequences, " sequences and ", documents,
                 " document entries do not fit its ", size, " bytes");
  }
  sequences_ = static_cast<int64_t>(sequences);
  document_entries_ = static_cast<int64_t>(documents);
  return absl::OkStatus();
}

absl::Status IndexedDataset::CheckSequences() const {
  const int64_t data_bytes = static_cast<int64_t>(data_->bytes().size());
  const int64_t token_bytes = SizeOf(type_);
  int64_t end = 0;
  for (int64_t i = 0; i < sequences_; ++i) {
    // A pointer above 2^62 would overflow below; no file is that long.
    if (length(i) < 0 || pointer(i) < 0 || pointer(i) > std::numeric_limits<int64_t>::max() / 2) {
      return Fault(index_path(), " is corrupt: sequence ", i, " has ", length(i),
                   " tokens at byte ", pointer(i));
    }
    end = std::max(end, pointer(i) + length(i) * token_bytes);
  }
  if (end <= data_bytes) return absl::OkStatus();
  return Fault(data_path(), " is truncated: its index speaks of ", end, " bytes and it has ",
               data_bytes);
}

absl::Status IndexedDataset::CheckDocuments() const {
  if (document_entries_ == 0 || document_begin(0) != 0) {
    return Fault(index_path(), " is corrupt: its document table does not start with 0");
  }
  for (int64_t i = 0; i < documents(); ++i) {
    if (document_begin(i) <= document_begin(i + 1) && document_begin(i + 1) <= sequences_) continue;
    return Fault(index_path(), " is corrupt: document ", i, " is the sequences from ",
                 document_begin(i), " to ", document_begin(i + 1), " of ", sequences_);
  }
  return absl::OkStatus();
}

int64_t IndexedDataset::length(int64_t index) const {
  FR_CHECK(index >= 0 && index < sequences_) << "sequence " << index << " of " << sequences_;
  return Load<int32_t>(index_->bytes().data() + kHeaderBytes + 4 * index);
}

int64_t IndexedDataset::pointer(int64_t index) const {
  return Load<int64_t>(index_->bytes().data() + kHeaderBytes + 4 * sequences_ + 8 * index);
}

int64_t IndexedDataset::document_begin(int64_t document) const {
  FR_CHECK(document >= 0 && document < document_entries_)
      << "document " << document << " of " << documents();
  return Load<int64_t>(index_->bytes().data() + kHeaderBytes + 12 * sequences_ + 8 * document);
}

absl::Status IndexedDataset::Read(int64_t index, int64_t begin, absl::Span<int32_t> out) const {
  const int64_t count = static_cast<int64_t>(out.size());
  FR_CHECK(begin >= 0 && begin + count <= length(index))
      << "tokens " << begin << " to " << begin + count << " of " << length(index);
  const uint8_t* from = data_->bytes().data() + pointer(index) + begin * SizeOf(type_);
  return VisitTokens(type_, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t token = Load<T>(from + i * static_cast<int64_t>(sizeof(T)));
      if (token < 0 || token > std::numeric_limits<int32_t>::max()) {
        return Fault(data_path(), " is corrupt: token ", begin + i, " of sequence ", index, " is ",
                     token);
      }
      out[static_cast<size_t>(i)] = static_cast<int32_t>(token);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<IndexedDatasetWriter>> IndexedDatasetWriter::Create(
    const std::string& prefix, TokenType type) {
  std::unique_ptr<IndexedDatasetWriter> writer(new IndexedDatasetWriter(prefix, type));
  FR_ASSIGN_OR_RETURN(writer->data_, OutputFile::Create(prefix + ".bin"));
  FR_ASSIGN_OR_RETURN(writer->index_, OutputFile::Create(prefix + ".idx"));
  return writer;
}

absl::Status IndexedDatasetWriter::AddSequence(absl::Span<const int32_t> tokens) {
  if (tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return Fault(prefix_, ".idx cannot hold a sequence of ", tokens.size(), " tokens");
  }
  encoded_.resize(tokens.size() * static_cast<size_t>(SizeOf(type_)));
  const absl::Status fits = VisitTokens(type_, [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    uint8_t* to = encoded_.data();
    for (const int32_t token : tokens) {
      const T value = static_cast<T>(token);
      if (static_cast<int64_t>(value) != token) {
        return Fault(prefix_, ".bin holds tokens of ", sizeof(T), " bytes, and ", token,
                     " does not fit");
      }
      std::memcpy(to, &value, sizeof value);
      to += sizeof value;
    }
    return absl::OkStatus();
  });
  FR_RETURN_IF_ERROR(fits);
  FR_RETURN_IF_ERROR(data_->Append(encoded_.data(), static_cast<int64_t>(encoded_.size())));
  lengths_.push_back(static_cast<int32_t>(tokens.size()));
  pointers_.push_back(bytes_);
  bytes_ += static_cast<int64_t>(encoded_.size());
  return absl::OkStatus();
}

void IndexedDatasetWriter::EndDocument() {
  documents_.push_back(static_cast<int64_t>(lengths_.size()));
}

absl::Status IndexedDatasetWriter::WriteIndex() {
  char header[kHeaderBytes];
  const uint64_t sequences = lengths_.size();
  const uint64_t documents = documents_.size();
  std::memcpy(header, kMagic, sizeof kMagic);
  std::memcpy(header + kVersionAt, &kVersion, sizeof kVersion);
  header[kTypeAt] = static_cast<char>(type_);
  std::memcpy(header + kSequencesAt, &sequences, sizeof sequences);
  std::memcpy(header + kDocumentsAt, &documents, sizeof documents);
  FR_RETURN_IF_ERROR(index_->Append(header, kHeaderBytes));
  FR_RETURN_IF_ERROR(index_->Append(lengths_.data(), static_cast<int64_t>(sequences * 4)));
  FR_RETURN_IF_ERROR(index_->Append(pointers_.data(), static_cast<int64_t>(sequences * 8)));
  return index_->Append(documents_.data(), static_cast<int64_t>(documents * 8));
}

absl::Status IndexedDatasetWriter::Publish() {
  FR_RETURN_IF_ERROR(WriteIndex());
  // An older index must not meet the new tokens, whenever this is interrupted.
  std::remove((prefix_ + ".idx").c_str());
  FR_RETURN_IF_ERROR(data_->Publish());
  return index_->Publish();
}

}  // namespace forerun
