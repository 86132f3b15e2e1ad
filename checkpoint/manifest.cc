// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "xxhash.h"

namespace forerun {
namespace {

using nlohmann::json;

constexpr char kFormat[] = "forerun checkpoint";

std::string Compact(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string Hex(uint64_t number) { return absl::StrCat(absl::Hex(number, absl::kZeroPad16)); }

std::string Checksum(const json& content) {
  const std::string text = Compact(content);
  return Hex(XXH64(text.data(), text.size(), 0));
}

std::vector<int64_t> ToList(const Shape& shape) {
  return std::vector<int64_t>(shape.dims().begin(), shape.dims().end());
}

json ToJson(const SavedPiece& piece) {
  return {{"name", piece.name},
          {"global", ToList(piece.global)},
          {"offset", ToList(piece.region.box.offset)},
          {"extent", ToList(piece.region.box.extent)},
          {"begin", piece.region.begin},
          {"numel", piece.region.numel},
          {"dtype", std::string(NameOf(piece.dtype))},
          {"file", piece.file},
          {"key", piece.key},
          {"xxhash64", Hex(piece.hash)}};
}

json ToJson(absl::Span<const SavedPiece> pieces) {
  json list = json::array();
  for (const SavedPiece& piece : pieces) list.push_back(ToJson(piece));
  return list;
}

// What the readers below throw; it ends at the public functions.
struct Malformed {
  std::string what;
};

Shape ReadShape(const json& list) {
  const std::vector<int64_t> dims = list.get<std::vector<int64_t>>();
  if (dims.size() > Shape::kMaxRank) throw Malformed{"a shape has too many dims"};
  for (const int64_t dim : dims) {
    if (dim < 0) throw Malformed{"a shape has a negative dim"};
  }
  return Shape(dims);
}

DType ReadDType(const std::string& name) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32,
                            DType::kI64, DType::kU8}) {
    if (NameOf(dtype) == name) return dtype;
  }
  throw Malformed{absl::StrCat("there is no dtype ", name)};
}

SavedPiece ReadPiece(const json& object) {
  SavedPiece piece;
  piece.name = object.at("name").get<std::string>();
  piece.global = ReadShape(object.at("global"));
  piece.region.box = {ReadShape(object.at("offset")), ReadShape(object.at("extent"))};
  piece.region.begin = object.at("begin").get<int64_t>();
  piece.region.numel = object.at("numel").get<int64_t>();
  piece.dtype = ReadDType(object.at("dtype").get<std::string>());
  piece.file = object.at("file").get<std::string>();
  piece.key = object.at("key").get<std::string>();
  if (!absl::SimpleHexAtoi(object.at("xxhash64").get<std::string>(), &piece.hash)) {
    throw Malformed{"a hash is no number"};
  }
  if (!IsInside(piece.region, piece.global)) {
    throw Malformed{absl::StrCat("a piece of ", piece.name, " lies outside its tensor")};
  }
  if (piece.file.find('/') != std::string::npos) throw Malformed{"a file lies elsewhere"};
  return piece;
}

std::vector<SavedPiece> ReadPieces(const json& list) {
  std::vector<SavedPiece> pieces;
  pieces.reserve(list.size());
  for (const json& object : list) pieces.push_back(ReadPiece(object));
  return pieces;
}

Manifest ReadManifest(const json& content) {
  Manifest manifest;
  manifest.iteration = content.at("iteration").get<int64_t>();
  manifest.world_size = content.at("world_size").get<int64_t>();
  manifest.metadata = content.at("metadata").get<std::map<std::string, std::string>>();
  manifest.pieces = ReadPieces(content.at("pieces"));
  return manifest;
}

// read(), with what it throws as a status.
template <typename Read>
auto Guarded(const std::string& path, Read&& read) -> absl::StatusOr<decltype(read())> {
  try {
    return read();
  } catch (const Malformed& fault) {
    return absl::DataLossError(absl::StrCat(path, " is corrupt: ", fault.what));
  } catch (const json::exception& fault) {
    return absl::DataLossError(absl::StrCat(path, " is corrupt: ", fault.what()));
  }
}

}  // namespace

std::string Manifest::ToJson() const {
  json content = {{"iteration", iteration}, {"world_size", world_size}, {"metadata", metadata}};
  content["pieces"] = forerun::ToJson(pieces);
  const json whole = {{"format", kFormat},
                      {"version", kVersion},
                      {"checksum", Checksum(content)},
                      {"content", std::move(content)}};
  return Compact(whole) + "\n";
}

absl::StatusOr<Manifest> Manifest::Parse(absl::string_view text, const std::string& path) {
  const json whole = json::parse(text.begin(), text.end(), nullptr, false);
  if (whole.is_discarded()) {
    return absl::DataLossError(absl::StrCat(path, " is corrupt: it is not JSON"));
  }
  if (!whole.is_object() || whole.value("format", json()) != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not the manifest of a checkpoint of this program"));
  }
  const json version = whole.value("version", json());
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has version ", Compact(version),
                                                   ", this build reads version ", kVersion));
  }
  const json content = whole.value("content", json());
  if (whole.value("checksum", json()) != Checksum(content)) {
    return absl::DataLossError(absl::StrCat(path, " is corrupt: its checksum does not match"));
  }
  return Guarded(path, [&] {
    Manifest manifest = ReadManifest(content);
    manifest.checksum = Checksum(content);
    return manifest;
  });
}

std::string PiecesToJson(absl::Span<const SavedPiece> pieces) { return Compact(ToJson(pieces)); }

absl::StatusOr<std::vector<SavedPiece>> ParsePieces(absl::string_view text,
                                                    const std::string& path) {
  return Guarded(path, [&] { return ReadPieces(json::parse(text.begin(), text.end())); });
}

}  // namespace forerun
