// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/testing/test_device.h"
#include "core/ops/op_context.h"
#include "gtest/gtest.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {

// The value of an element after the update of `step`: exact in bf16, and another one every step.
inline float ValueAt(int step, int bucket, int64_t i) {
  return static_cast<float>((37 * step + 11 * bucket + i) % 251);
}

// One rank's buffer behind its gate, and an optimizer that writes ValueAt.
class GateRank {
 public:
  GateRank(const TestParameters& parameters, const OpContext& op, comm::ProcessGroup& group,
           const ParamGate::Options& options)
      : plan_(parameters.Plan(group.size())),
        op_(op),
        buffer_(plan_, parameters.frozen(), op),
        writer_(buffer_, group.rank()) {
    parameters.Initialise(buffer_);
    gate_ = std::make_unique<ParamGate>(buffer_, group, options, [] { return 0.0; });
  }

  ParamGate& gate() { return *gate_; }
  const BucketPlan& plan() const { return plan_; }
  ShardWriter& writer() { return writer_; }
  int buckets() const { return static_cast<int>(plan_.buckets().size()); }

  void Update(int step) {
    for (int b = 0; b < buckets(); ++b) {
      gate_->Accept(b, *op_.stream);
      Write(b, step);
      gate_->Publish(b);
    }
    gate_->Finish(*op_.stream);
  }
  void Write(int bucket, int step) {
    const Tensor shard = writer_.Params(bucket);
    VisitFloating(shard.dtype(), [&](auto element) {
      using T = decltype(element);
      for (int64_t i = 0; i < shard.numel(); ++i) {
        shard.mutable_data<T>()[i] = T(ValueAt(step, bucket, writer_.shard() * shard.numel() + i));
      }
    });
  }

  // Reads a parameter and compares it with what step's update must have left.
  void ExpectValue(const Parameter& parameter, int step) {
    const ParamLease lease = gate_->Read(parameter, *op_.stream, "test");
    const std::vector<double> values = ValuesOf(lease.tensor());
    const int index = plan_.IndexOf(parameter);
    for (int bucket : plan_.BucketsOf(index)) {
      for (const BucketPiece& piece : plan_.buckets()[bucket].pieces) {
        if (piece.parameter != &parameter) continue;
        for (int64_t i = 0; i < piece.numel; ++i) {
          ASSERT_EQ(values[piece.parameter_begin + i],
                    ValueAt(step, bucket, piece.bucket_begin + i))
              << parameter.name() << " at " << piece.parameter_begin + i << " in step " << step;
        }
      }
    }
  }

 private:
  const BucketPlan plan_;
  const OpContext& op_;
  BucketBuffer buffer_;
  ShardWriter writer_;
  std::unique_ptr<ParamGate> gate_;
};

}  // namespace forerun
