// SPDX-License-Identifier: Apache-2.0
#include "core/nn/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/parallel_for.h"
#include "core/random/random.h"

namespace forerun {
namespace {

absl::Status CheckBox(const ParameterSpec& spec) {
  const Shape& global = spec.global_shape;
  if (spec.box.offset.rank() != global.rank() || spec.box.extent.rank() != global.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the box of parameter ", spec.name, " has not the ", global.rank(),
                     " dims of its global shape ", global.ToString()));
  }
  for (int dim = 0; dim < global.rank(); ++dim) {
    const int64_t begin = spec.box.offset[dim];
    const int64_t end = begin + spec.box.extent[dim];
    if (begin >= 0 && begin <= end && end <= global[dim]) continue;
    return absl::InvalidArgumentError(absl::StrCat("the box [", begin, ", ", end, ") of dim ", dim,
                                                   " of parameter ", spec.name,
                                                   " leaves its global shape ", global.ToString()));
  }
  if (spec.padding_rows == 0) return absl::OkStatus();
  if (global.rank() > 0 && spec.padding_rows > 0 && spec.padding_rows < global[0]) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(spec.padding_rows, " padding rows of parameter ",
                                                 spec.name, " of shape ", global.ToString()));
}

// A box, row-major, as runs that are contiguous in the global tensor too.
class BoxRuns {
 public:
  BoxRuns(const Shape& global, const Box& box)
      : box_(box), strides_(global.ContiguousStrides()), outer_dims_(global.rank()) {
    // Dims that the box fills join the run, and so does the first that it does not.
    bool full = true;
    while (full && outer_dims_ > 0) {
      --outer_dims_;
      length_ *= box.extent[outer_dims_];
      full = box.extent[outer_dims_] == global[outer_dims_];
    }
  }

  int64_t length() const { return length_; }

  // Index in the global tensor of the first element of run `run`.
  int64_t GlobalBegin(int64_t run) const {
    int64_t index = 0;
    for (int dim = box_.extent.rank() - 1; dim >= 0; --dim) {
      int64_t place = box_.offset[dim];
      if (dim < outer_dims_) {
        place += run % box_.extent[dim];
        run /= box_.extent[dim];
      }
      index += place * strides_[dim];
    }
    return index;
  }

 private:
  const Box& box_;
  const Shape strides_;
  int outer_dims_;
  int64_t length_ = 1;
};

void FillNormalBox(const Parameter& parameter, RandomKey key, double stddev,
                   absl::Span<float> out) {
  constexpr int64_t kGrain = 1 << 14;
  const BoxRuns runs(parameter.global_shape(), parameter.box());
  ParallelFor(parameter.numel(), kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t place = begin % runs.length();
      const int64_t count = std::min(runs.length() - place, end - begin);
      const int64_t first = runs.GlobalBegin(begin / runs.length()) + place;
      FillNormal(key, static_cast<uint64_t>(first), stddev, out.subspan(begin, count));
      begin += count;
    }
  });
}

}  // namespace

const Parameter& ParameterRegistry::Declare(ParameterSpec spec, Init init) {
  status_.Update(CheckBox(spec));
  if (!names_.insert(spec.name).second) {
    status_.Update(
        absl::InvalidArgumentError(absl::StrCat("parameter ", spec.name, " is declared twice")));
  }
  const int id = static_cast<int>(owned_.size());
  owned_.push_back(std::make_unique<Parameter>(id, std::move(spec)));
  order_.push_back(owned_.back().get());
  inits_.push_back(init);
  return *owned_.back();
}

const Init& ParameterRegistry::init(const Parameter& parameter) const {
  const size_t id = static_cast<size_t>(parameter.id());
  FR_CHECK(id < order_.size() && order_[id] == &parameter)
      << parameter.name() << " belongs to another registry";
  return inits_[id];
}

void ParameterRegistry::Permute(absl::Span<const int> order) {
  FR_CHECK_EQ(order.size(), owned_.size()) << "length of the registration order";
  std::vector<const Parameter*> parameters;
  std::vector<Init> inits;
  std::vector<bool> seen(order.size(), false);
  for (int declaration : order) {
    const bool valid = declaration >= 0 && declaration < static_cast<int>(owned_.size());
    FR_CHECK(valid && !seen[declaration])
        << "the registration order is no permutation: it has " << declaration;
    seen[declaration] = true;
    parameters.push_back(owned_[declaration].get());
    inits.push_back(init(*parameters.back()));
  }
  for (size_t id = 0; id < order.size(); ++id) owned_[order[id]]->id_ = static_cast<int>(id);
  order_ = std::move(parameters);
  inits_ = std::move(inits);
}

void InitialValue(const Parameter& parameter, const Init& init, uint64_t seed,
                  absl::Span<float> out) {
  FR_CHECK_EQ(static_cast<int64_t>(out.size()), parameter.numel())
      << "memory for the initial value of " << parameter.name();
  switch (init.kind) {
    case Init::Kind::kZeros:
      std::fill(out.begin(), out.end(), 0.0f);
      break;
    case Init::Kind::kOnes:
      std::fill(out.begin(), out.end(), 1.0f);
      break;
    case Init::Kind::kNormal:
      FillNormalBox(parameter, RandomKey::Root(seed).Fold("init").Fold(parameter.name()),
                    init.stddev, out);
      break;
  }
  std::fill(out.begin() + parameter.logical_box().extent.numel(), out.end(), 0.0f);  // padding
}

}  // namespace forerun
