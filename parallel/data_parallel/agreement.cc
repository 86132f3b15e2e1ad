// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/agreement.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/random/random.h"
#include "core/tensor/host_tensor.h"

namespace forerun {
namespace {

// Every rank's `value`, by rank. Where nothing moves (a fake group), they are all as this one.
std::vector<int64_t> Gather(Stream& stream, comm::ProcessGroup& group, int64_t value) {
  const Tensor mine = HostTensor({1}, DType::kI64);
  *mine.mutable_data<int64_t>() = value;
  const Tensor all = HostTensor({group.size()}, DType::kI64);
  std::fill_n(all.mutable_data<int64_t>(), group.size(), value);
  group.AllGather(mine, all).Wait(stream);
  return {all.data<int64_t>(), all.data<int64_t>() + group.size()};
}

// Every rank's text, by rank.
std::vector<std::string> GatherTexts(Stream& stream, comm::ProcessGroup& group,
                                     absl::string_view text) {
  const std::vector<int64_t> sizes = Gather(stream, group, static_cast<int64_t>(text.size()));
  const int64_t longest = std::max<int64_t>(1, *std::max_element(sizes.begin(), sizes.end()));
  const Tensor mine = HostTensor({longest}, DType::kU8);
  std::copy(text.begin(), text.end(), mine.mutable_data<uint8_t>());
  const Tensor all = HostTensor({group.size() * longest}, DType::kU8);
  group.AllGather(mine, all).Wait(stream);
  std::vector<std::string> texts;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto* begin = reinterpret_cast<const char*>(all.data<uint8_t>()) + rank * longest;
    texts.emplace_back(begin, sizes[rank]);
  }
  return texts;
}

// The lines of a text. A last one that ends as lines do has none after it.
std::vector<absl::string_view> Lines(absl::string_view text) {
  if (text.empty()) return {};
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

std::string Describe(absl::Span<const absl::string_view> lines, size_t index) {
  if (index >= lines.size()) return "nothing";
  return lines[index].empty() ? "an empty line" : absl::StrCat("\"", lines[index], "\"");
}

// The first line in which two texts differ, from both.
std::pair<std::string, std::string> FirstDifference(const std::string& a, const std::string& b) {
  const std::vector<absl::string_view> lines_a = Lines(a), lines_b = Lines(b);
  size_t i = 0;
  while (i < lines_a.size() && i < lines_b.size() && lines_a[i] == lines_b[i]) ++i;
  return {Describe(lines_a, i), Describe(lines_b, i)};
}

}  // namespace

absl::Status CheckAgreement(const OpContext& context, comm::ProcessGroup& group,
                            absl::string_view what, absl::string_view text) {
  const auto hash = static_cast<int64_t>(RandomKey::Root(0).Fold(text).value());
  const std::vector<int64_t> hashes = Gather(*context.stream, group, hash);
  const auto other =
      std::find_if(hashes.begin(), hashes.end(), [&](int64_t h) { return h != hashes[0]; });
  if (other == hashes.end()) return absl::OkStatus();
  const std::vector<std::string> texts = GatherTexts(*context.stream, group, text);
  const auto rank = other - hashes.begin();
  const auto [first, second] = FirstDifference(texts[0], texts[rank]);
  return absl::FailedPreconditionError(absl::StrCat("ranks of group ", group.name(),
                                                    " differ in their ", what, ": rank 0 has ",
                                                    first, " where rank ", rank, " has ", second));
}

absl::Status AgreeOnStatus(comm::ProcessGroup& group, const absl::Status& mine) {
  InlineStream host(Device{});
  const std::vector<int64_t> codes = Gather(host, group, static_cast<int64_t>(mine.code()));
  const auto bad = std::find_if(codes.begin(), codes.end(), [](int64_t code) { return code != 0; });
  if (bad == codes.end()) return absl::OkStatus();
  const std::vector<std::string> texts = GatherTexts(host, group, mine.message());
  return absl::Status(static_cast<absl::StatusCode>(*bad), texts[bad - codes.begin()]);
}

void TakeLargest(const OpContext& context, comm::ProcessGroup& group, absl::Span<double> values) {
  const Tensor tensor = HostTensor({static_cast<int64_t>(values.size())}, DType::kF64);
  double* elements = tensor.mutable_data<double>();
  std::copy(values.begin(), values.end(), elements);
  group.AllReduce(tensor, comm::ReduceOp::kMax).Wait(*context.stream);
  std::copy(elements, elements + values.size(), values.begin());
}

}  // namespace forerun
