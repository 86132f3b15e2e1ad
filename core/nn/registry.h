// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/autograd/parameter.h"

namespace forerun {

// How a parameter starts. Values are a function of (seed, logical name, index in the global
// shape), so every layout starts from the same model.
struct Init {
  enum class Kind : uint8_t { kZeros, kOnes, kNormal };
  Kind kind = Kind::kZeros;
  double stddev = 0.0;  // kNormal

  static Init Zeros() { return {Kind::kZeros, 0.0}; }
  static Init Ones() { return {Kind::kOnes, 0.0}; }
  static Init Normal(double stddev) { return {Kind::kNormal, stddev}; }
};

// Owns the parameters of one model chunk.
//
// Layers declare parameters while they are built and keep the reference; ids count declarations,
// until Permute gives them anew, in any order. The order changes nothing but ids: that is what
// Forerun promises, so a model's builder may pass any. Belongs to one thread while it is built;
// constant afterwards, and then any thread may ask.
class ParameterRegistry {
 public:
  // The reference is good for the life of the registry.
  const Parameter& Declare(ParameterSpec spec, Init init);

  // Of the declarations so far the first that is wrong, in one sentence: its name was declared
  // before, or its box leaves its global shape. Nothing may be done with the model then.
  const absl::Status& status() const { return status_; }

  // All parameters by id. Declaration order, unless Permute was called.
  absl::Span<const Parameter* const> parameters() const { return order_; }
  const Init& init(const Parameter& parameter) const;

  // The registration order becomes order[0], order[1], ... of the declarations, and ids follow.
  // Before the first use of an id. `order` is a permutation: anything else fails a check.
  void Permute(absl::Span<const int> order);

 private:
  std::vector<std::unique_ptr<Parameter>> owned_;  // by declaration
  std::vector<const Parameter*> order_;            // by id
  std::vector<Init> inits_;                        // by id
  absl::flat_hash_set<std::string> names_;
  absl::Status status_;
};

// Writes the local box of a parameter's initial value, row-major: numel() elements. Key:
// Root(seed).Fold("init").Fold(name); logical index: row-major in the global shape, so boxes that
// tile a parameter hold exactly the values of the whole. Padding is zero.
void InitialValue(const Parameter& parameter, const Init& init, uint64_t seed,
                  absl::Span<float> out);

}  // namespace forerun
