// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/order_watch.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace forerun {

absl::StatusOr<ForwardOrderMode> ForwardOrderModeByName(absl::string_view name) {
  if (name == "strict") return ForwardOrderMode::kStrict;
  if (name == "warn") return ForwardOrderMode::kWarn;
  if (name == "adopt") return ForwardOrderMode::kAdopt;
  return absl::InvalidArgumentError(absl::StrCat(name, " is not strict, warn or adopt"));
}

void OrderWatch::BeginPass() {
  FR_CHECK(!inside_) << "a forward pass begins within another";
  inside_ = true;
  reads_.clear();
}

int OrderWatch::Expected(const Parameter* parameter, int at) const {
  const absl::Span<const Use> uses = graph_.uses();
  for (; at < static_cast<int>(uses.size()); ++at) {
    if (uses[at].parameter == parameter) return at;
    if (uses[at].parameter->kind() != ParameterKind::kOptional) break;
  }
  return -1;
}

void OrderWatch::EndPass() {
  FR_CHECK(inside_) << "no forward pass has begun";
  inside_ = false;
  const absl::Span<const Use> uses = graph_.uses();
  const int size = static_cast<int>(uses.size());
  const int64_t before = differences_.reads;
  int at = 0;
  for (size_t read = 0; read < reads_.size(); ++read) {
    const int expected = Expected(reads_[read], at);
    if (expected >= 0) {
      at = expected + 1;
      continue;
    }
    Note(read, at);
    int next = at;
    while (next < size && uses[next].parameter != reads_[read]) ++next;
    if (next < size) at = next + 1;
  }
  while (at < size && uses[at].parameter->kind() == ParameterKind::kOptional) ++at;
  const bool differs = differences_.reads > before || at < size;
  if (!differs) return;
  if (differences_.reads == before) Note(reads_.size(), at);
  ++differences_.passes;
  CheckAllRead();
}

void OrderWatch::Note(size_t read, int at) {
  ++differences_.reads;
  if (!differences_.first.empty()) return;
  const absl::Span<const Use> uses = graph_.uses();
  const std::string what =
      read < reads_.size() ? absl::StrCat("read ", reads_[read]->name()) : "ended";
  const std::string expected =
      at < static_cast<int>(uses.size())
          ? absl::StrCat(uses[at].reader, " was to read ", uses[at].parameter->name())
          : "it was to end";
  differences_.first =
      absl::StrCat("a forward pass ", what, " at place ", read, " where ", expected);
}

void OrderWatch::CheckAllRead() {
  if (!status_.ok()) return;
  const absl::flat_hash_set<const Parameter*> read(reads_.begin(), reads_.end());
  for (const Use& use : graph_.uses()) {
    if (use.parameter->kind() != ParameterKind::kTrainable || read.contains(use.parameter))
      continue;
    status_ = absl::FailedPreconditionError(absl::StrCat(
        "forward order: a forward pass did not read ", use.parameter->name(),
        ", which the recorded one does; declare what a model may leave out as optional"));
    return;
  }
}

}  // namespace forerun
