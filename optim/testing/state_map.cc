// SPDX-License-Identifier: Apache-2.0
#include "optim/testing/state_map.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace forerun {
namespace {

// Calls visit with a zero of the element type.
template <typename Visit>
absl::Status VisitElement(DType dtype, Visit&& visit) {
  return dtype == DType::kI64 ? visit(int64_t{0}) : VisitFloating(dtype, visit);
}

}  // namespace

absl::Status StateMap::Save(Stateful& state) {
  return state.Save([this](const StatePiece& piece) { return SavePiece(piece); });
}

absl::Status StateMap::Load(Stateful& state) const {
  return state.Load([this](const StatePiece& piece) { return LoadPiece(piece); });
}

std::map<std::string, StateMap::Entry> StateMap::Entries() const {
  MutexLock lock(&mutex_);
  return entries_;
}

std::vector<std::string> StateMap::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Entries()) names.push_back(name);
  return names;
}

std::vector<double> StateMap::values(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? std::vector<double>() : found->second.values;
}

bool StateMap::Complete() const {
  for (const auto& [name, entry] : Entries()) {
    if (std::count(entry.saved.begin(), entry.saved.end(), false) > 0) return false;
  }
  return true;
}

bool StateMap::operator==(const StateMap& other) const { return Entries() == other.Entries(); }

absl::Status StateMap::SavePiece(const StatePiece& piece) {
  MutexLock lock(&mutex_);
  Entry& entry = entries_[piece.name];
  entry.values.resize(piece.global.numel());
  entry.saved.resize(piece.global.numel());
  return VisitElement(piece.values.dtype(), [&](auto element) -> absl::Status {
    const auto* values = piece.values.data<decltype(element)>();
    for (int64_t i = 0; i < piece.values.numel(); ++i) {
      if (entry.saved[piece.begin + i]) {
        return absl::AlreadyExistsError(absl::StrCat(piece.name, " at ", piece.begin + i));
      }
      entry.saved[piece.begin + i] = true;
      entry.values[piece.begin + i] = static_cast<double>(static_cast<float>(values[i]));
    }
    return absl::OkStatus();
  });
}

absl::Status StateMap::LoadPiece(const StatePiece& piece) const {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(piece.name);
  if (found == entries_.end()) return absl::NotFoundError(piece.name);
  return VisitElement(piece.values.dtype(), [&](auto element) -> absl::Status {
    using T = decltype(element);
    for (int64_t i = 0; i < piece.values.numel(); ++i) {
      piece.values.mutable_data<T>()[i] =
          T(static_cast<float>(found->second.values[piece.begin + i]));
    }
    return absl::OkStatus();
  });
}

}  // namespace forerun
