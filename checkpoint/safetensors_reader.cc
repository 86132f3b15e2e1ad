// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "checkpoint/safetensors.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace forerun {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;

template <typename... Args>
absl::Status Fault(const std::string& path, const Args&... args) {
  return absl::DataLossError(absl::StrCat(path, args...));
}

absl::optional<DType> DTypeOfCode(const std::string& code) {
  if (code == "F32") return DType::kF32;
  if (code == "BF16") return DType::kBF16;
  if (code == "F16") return DType::kF16;
  if (code == "F64") return DType::kF64;
  if (code == "I32") return DType::kI32;
  if (code == "I64") return DType::kI64;
  if (code == "U8") return DType::kU8;
  return absl::nullopt;
}

// A member that is a list of unsigned numbers.
absl::optional<std::vector<uint64_t>> Numbers(const json& object, const char* member) {
  const auto list = object.find(member);
  if (list == object.end() || !list->is_array()) return absl::nullopt;
  std::vector<uint64_t> numbers;
  for (const json& number : *list) {
    if (!number.is_number_unsigned()) return absl::nullopt;
    numbers.push_back(number.get<uint64_t>());
  }
  return numbers;
}

// The bytes that a tensor of these dims takes, if it has few enough dims and no number overflows.
absl::optional<uint64_t> BytesOf(const std::vector<uint64_t>& dims, DType dtype) {
  if (dims.size() > Shape::kMaxRank) return absl::nullopt;
  int64_t bytes = SizeOf(dtype);
  for (const uint64_t dim : dims) {
    if (__builtin_mul_overflow(bytes, dim, &bytes)) return absl::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

// One tensor of the header; an error lacks the file's name.
absl::StatusOr<SafetensorsReader::Values> ParseTensor(const std::string& key, const json& object,
                                                      absl::Span<const uint8_t> data) {
  const auto fault = [&key](const auto&... args) {
    return Fault("", ": its tensor ", key, " ", args...);
  };
  if (!object.is_object()) return fault("is not described");
  const auto code = object.find("dtype");
  if (code == object.end() || !code->is_string()) return fault("has no dtype");
  const absl::optional<DType> dtype = DTypeOfCode(code->get<std::string>());
  if (!dtype) return fault("has dtype ", code->get<std::string>(), ", which is not supported");
  const auto dims = Numbers(object, "shape");
  if (!dims) return fault("has no shape");
  const auto offsets = Numbers(object, "data_offsets");
  if (!offsets || offsets->size() != 2) return fault("has no data_offsets");
  const uint64_t begin = (*offsets)[0];
  const uint64_t end = (*offsets)[1];
  const auto bytes = BytesOf(*dims, *dtype);
  if (!bytes || begin > end || end - begin != *bytes) {
    return fault("lies at bytes ", begin, " to ", end, ", which does not match its shape");
  }
  if (end > data.size()) {
    return fault("ends at byte ", end, " of ", data.size(), ", so the file is truncated");
  }
  const std::vector<int64_t> extents(dims->begin(), dims->end());
  return SafetensorsReader::Values{*dtype, Shape(extents), data.subspan(begin, end - begin)};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const SafetensorsReader>> SafetensorsReader::Open(
    const std::string& path) {
  FR_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  std::shared_ptr<SafetensorsReader> reader(new SafetensorsReader(std::move(file)));
  FR_RETURN_IF_ERROR(reader->Parse());
  return std::shared_ptr<const SafetensorsReader>(std::move(reader));
}

const SafetensorsReader::Values* SafetensorsReader::Find(const std::string& key) const {
  const auto it = tensors_.find(key);
  return it == tensors_.end() ? nullptr : &it->second;
}

absl::Status SafetensorsReader::Parse() {
  const absl::Span<const uint8_t> bytes = file_->bytes();
  if (bytes.size() < kLengthBytes) {
    return Fault(path(), " is truncated: it has ", bytes.size(),
                 " bytes, not even a header's length");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - kLengthBytes) {
    return Fault(path(), " is truncated or no safetensors file: its header takes ", length,
                 " bytes and it has ", bytes.size());
  }
  const absl::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                                 length);
  const absl::Span<const uint8_t> data = bytes.subspan(kLengthBytes + length);
  FR_RETURN_IF_ERROR(ParseHeader(header, data));
  return CheckCoverage(data);
}

absl::Status SafetensorsReader::ParseHeader(absl::string_view header,
                                            absl::Span<const uint8_t> data) {
  const json object = json::parse(header.begin(), header.end(), nullptr, false);
  if (!object.is_object()) return Fault(path(), " is no safetensors file: its header is not JSON");
  for (const auto& [key, value] : object.items()) {
    if (key != "__metadata__") {
      absl::StatusOr<Values> tensor = ParseTensor(key, value, data);
      if (!tensor.ok()) return Fault(path(), " is corrupt", tensor.status().message());
      tensors_.emplace(key, *std::move(tensor));
      continue;
    }
    if (!value.is_object()) return Fault(path(), " is corrupt: its metadata is no object");
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string())
        return Fault(path(), " is corrupt: its metadata has a member without text");
      metadata_.emplace(name, text.get<std::string>());
    }
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::CheckCoverage(absl::Span<const uint8_t> data) const {
  std::vector<std::pair<size_t, size_t>> ranges;  // begin, end
  for (const auto& [key, tensor] : tensors_) {
    const size_t begin = static_cast<size_t>(tensor.bytes.data() - data.data());
    if (!tensor.bytes.empty()) ranges.emplace_back(begin, begin + tensor.bytes.size());
  }
  std::sort(ranges.begin(), ranges.end());
  size_t end = 0;
  for (const auto& range : ranges) {
    if (range.first < end)
      return Fault(path(), " is corrupt: its tensors overlap at byte ", range.first);
    if (range.first > end) return Fault(path(), " is corrupt: no tensor holds its byte ", end);
    end = range.second;
  }
  if (end == data.size()) return absl::OkStatus();
  return Fault(path(), " is corrupt: it has ", data.size(), " bytes of tensors and describes ",
               end);
}

}  // namespace forerun
