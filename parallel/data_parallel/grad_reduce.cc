// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/grad_reduce.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace forerun {

GradReduce::GradReduce(ReducePlan plan)
    : plan_(std::move(plan)),
      buckets_of_parameter_(plan_.chunk_of_parameter.size()),
      parameters_of_chunk_(plan_.chunks),
      expected_(plan_.chunk_of_parameter.size(), 0),
      arrived_(plan_.chunk_of_parameter.size(), 0),
      counted_(plan_.chunk_of_parameter.size(), false),
      incomplete_of_bucket_(plan_.parameters_of_bucket.size(), 0),
      to_announce_(plan_.chunks, 0),
      cursor_(plan_.order.size()) {
  FR_CHECK_EQ(plan_.order.size(), plan_.parameters_of_bucket.size()) << "buckets in the order";
  for (size_t b = 0; b < plan_.parameters_of_bucket.size(); ++b) {
    for (int parameter : plan_.parameters_of_bucket[b]) {
      buckets_of_parameter_[parameter].push_back(static_cast<int>(b));
    }
  }
  for (size_t p = 0; p < plan_.chunk_of_parameter.size(); ++p) {
    parameters_of_chunk_[plan_.chunk_of_parameter[p]].push_back(static_cast<int>(p));
  }
}

void GradReduce::SetOrder(std::vector<int> order) {
  FR_CHECK(AllIssued()) << "the order of reductions changes within a step";
  FR_CHECK(std::is_permutation(order.begin(), order.end(), plan_.order.begin(), plan_.order.end()))
      << "the new order of reductions is no permutation of the old one";
  plan_.order = std::move(order);
}

void GradReduce::BeginStep(int microbatches) {
  FR_CHECK(AllIssued()) << "a step begins with " << plan_.order.size() - cursor_
                        << " buckets of the last one not reduced";
  FR_CHECK_GE(microbatches, 1) << "microbatches";
  std::fill(expected_.begin(), expected_.end(), 0);
  std::fill(arrived_.begin(), arrived_.end(), 0);
  counted_.assign(counted_.size(), false);
  for (size_t b = 0; b < incomplete_of_bucket_.size(); ++b) {
    incomplete_of_bucket_[b] = static_cast<int>(plan_.parameters_of_bucket[b].size());
  }
  to_announce_.assign(to_announce_.size(), microbatches);
  cursor_ = 0;
}

GradReduce::Commands GradReduce::OnAnnounced(int chunk, absl::Span<const int> contributions) {
  FR_CHECK_GT(to_announce_[chunk], 0) << "more forward passes than microbatches, chunk " << chunk;
  for (int parameter : contributions) ++expected_[parameter];
  Commands commands;
  if (--to_announce_[chunk] == 0) {
    for (int parameter : parameters_of_chunk_[chunk]) CompleteIfDone(parameter, commands);
    AdvanceCursor(commands);
  }
  return commands;
}

GradReduce::Commands GradReduce::OnContributed(int parameter) {
  ++arrived_[parameter];
  FR_CHECK_LE(arrived_[parameter], expected_[parameter])
      << "contributions to parameter " << parameter << " and what its tapes announced";
  Commands commands;
  CompleteIfDone(parameter, commands);
  AdvanceCursor(commands);
  return commands;
}

bool GradReduce::Complete(int parameter) const {
  return to_announce_[plan_.chunk_of_parameter[parameter]] == 0 &&
         arrived_[parameter] == expected_[parameter];
}

void GradReduce::CompleteIfDone(int parameter, Commands& commands) {
  if (!Complete(parameter) || counted_[parameter]) return;
  counted_[parameter] = true;
  if (expected_[parameter] == 0) commands.zero_fill.push_back(parameter);
  for (int bucket : buckets_of_parameter_[parameter]) --incomplete_of_bucket_[bucket];
}

void GradReduce::AdvanceCursor(Commands& commands) {
  while (!AllIssued() && incomplete_of_bucket_[plan_.order[cursor_]] == 0) {
    commands.reduce.push_back(plan_.order[cursor_++]);
  }
}

}  // namespace forerun
