// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/program/program.h"

#include "absl/strings/str_cat.h"

namespace forerun::comm {
namespace {

std::string At(const std::vector<Operation>& operations, size_t index) {
  return index < operations.size() ? operations[index].ToString() : "nothing";
}

}  // namespace

std::string Operation::ToString() const {
  if (kind == OpKind::kBarrier) return std::string(NameOf(kind));
  std::string text = absl::StrCat(NameOf(kind), " of ", numel, " ", NameOf(dtype));
  if (kind == OpKind::kBroadcast || kind == OpKind::kRecv) {
    absl::StrAppend(&text, " from ", peer);
  } else if (kind == OpKind::kSend) {
    absl::StrAppend(&text, " to ", peer);
  } else if (kind != OpKind::kAllGather) {
    absl::StrAppend(&text, reduce == ReduceOp::kSum ? " (sum)" : " (max)");
  }
  return text;
}

int64_t Program::operation_count() const {
  int64_t count = 0;
  for (const std::vector<Operation>& of_group : operations) {
    count += static_cast<int64_t>(of_group.size());
  }
  return count;
}

std::string FirstDifference(const Program& a, absl::string_view a_name, const Program& b,
                            absl::string_view b_name) {
  if (a.groups != b.groups) {
    return absl::StrCat(a_name, " and ", b_name, " have not made the same groups");
  }
  for (size_t g = 0; g < a.groups.size(); ++g) {
    const std::vector<Operation>&of_a = a.operations[g], &of_b = b.operations[g];
    if (of_a == of_b) continue;
    size_t i = 0;
    while (i < of_a.size() && i < of_b.size() && of_a[i] == of_b[i]) ++i;
    return absl::StrCat("operation ", i, " of group ", a.groups[g].name, ": ", a_name, " has ",
                        At(of_a, i), " where ", b_name, " has ", At(of_b, i));
  }
  return "";
}

}  // namespace forerun::comm
