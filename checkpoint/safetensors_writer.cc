// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "checkpoint/safetensors.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace forerun {
namespace {

constexpr int64_t kAlignment = 8;  // bytes

absl::string_view CodeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kF64:
      return "F64";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
  }
  FR_CHECK(false) << "dtype " << static_cast<int>(dtype);
  return "";
}

// Where each entry's bytes start, counted from the end of the header: wide types first.
std::vector<int64_t> Offsets(const std::vector<SafetensorsEntry>& entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return SizeOf(entries[a].dtype) > SizeOf(entries[b].dtype);
  });
  std::vector<int64_t> offsets(entries.size());
  int64_t end = 0;
  for (const size_t i : order) {
    offsets[i] = end;
    end += entries[i].bytes();
  }
  return offsets;
}

// The length and the padded JSON.
std::string Header(const std::vector<SafetensorsEntry>& entries,
                   const std::vector<int64_t>& offsets, const SafetensorsMetadata& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (size_t i = 0; i < entries.size(); ++i) {
    const absl::Span<const int64_t> dims = entries[i].shape.dims();
    const bool is_new =
        header
            .emplace(
                entries[i].key,
                nlohmann::json{{"dtype", std::string(CodeOf(entries[i].dtype))},
                               {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                               {"data_offsets", {offsets[i], offsets[i] + entries[i].bytes()}}})
            .second;
    FR_CHECK(is_new) << "the key " << entries[i].key << " occurs twice";
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::vector<SafetensorsEntry> entries,
                                     std::unique_ptr<OutputFile> file)
    : entries_(std::move(entries)), file_(std::move(file)), positions_(Offsets(entries_)) {}

absl::StatusOr<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::Create(
    const std::string& path, std::vector<SafetensorsEntry> entries,
    const SafetensorsMetadata& metadata) {
  FR_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Create(path));
  std::unique_ptr<SafetensorsWriter> writer(
      new SafetensorsWriter(std::move(entries), std::move(file)));
  const std::string header = Header(writer->entries_, writer->positions_, metadata);
  FR_RETURN_IF_ERROR(writer->file_->Append(header));
  for (int64_t& position : writer->positions_) position += static_cast<int64_t>(header.size());
  return writer;
}

absl::Status SafetensorsWriter::Write(size_t index, const void* values) {
  FR_CHECK_LT(index, entries_.size());
  ++written_;
  return file_->WriteAt(positions_[index], values, entries_[index].bytes());
}

absl::Status SafetensorsWriter::Publish() {
  FR_CHECK_EQ(written_, entries_.size()) << "entries of " << file_->path();
  return file_->Publish();
}

}  // namespace forerun
