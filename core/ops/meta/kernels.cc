// SPDX-License-Identifier: Apache-2.0
#include "core/ops/meta/kernels.h"

#include <initializer_list>

#include "core/ops/activation.h"
#include "core/ops/attention.h"
#include "core/ops/cast.h"
#include "core/ops/copy.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"
#include "core/ops/reduce.h"
#include "core/ops/rope.h"

namespace forerun::meta {
namespace {

// Where work is added up; nowhere for kernels that do not count.
class Counter {
 public:
  explicit Counter(ComputeWork* work) : work_(work) {}

  void AddFlops(int64_t flops) const {
    if (work_ != nullptr) work_->flops += flops;
  }
  // Read or written; those that are undefined are not.
  void AddBytes(std::initializer_list<const Tensor*> tensors) const {
    if (work_ == nullptr) return;
    for (const Tensor* tensor : tensors) {
      if (tensor->defined()) work_->bytes += tensor->bytes();
    }
  }

 private:
  ComputeWork* const work_;
};

template <typename Family>
class Counting : public Family {
 public:
  explicit Counting(ComputeWork* work) : counter_(work) {}

 protected:
  const Counter counter_;
};

class MetaActivation final : public Counting<ActivationKernels> {
 public:
  using Counting::Counting;
  void Gelu(const OpContext&, const Tensor& x, GeluKind, const Tensor& y) const override {
    counter_.AddBytes({&x, &y});
  }
  void GeluBackward(const OpContext&, const Tensor& x, const Tensor& dy, GeluKind,
                    const Tensor& dx) const override {
    counter_.AddBytes({&x, &dy, &dx});
  }
  void Swiglu(const OpContext&, const Tensor& x, const Tensor& y) const override {
    counter_.AddBytes({&x, &y});
  }
  void SwigluBackward(const OpContext&, const Tensor& x, const Tensor& dy,
                      const Tensor& dx) const override {
    counter_.AddBytes({&x, &dy, &dx});
  }
};

class MetaAttention final : public Counting<AttentionKernels> {
 public:
  using Counting::Counting;
  void Forward(const OpContext&, const Tensor& q, const Tensor&, const Tensor&,
               const AttentionOptions&, const AttentionResult&) const override {
    counter_.AddFlops(2 * HalfProduct(q));
  }
  void Backward(const OpContext&, const Tensor& q, const Tensor&, const Tensor&,
                const AttentionResult&, const Tensor&, const AttentionOptions&,
                const AttentionGradients&) const override {
    counter_.AddFlops(5 * HalfProduct(q));
  }

 private:
  // q is [s, b, heads, d]; half of an s x s x d product for each sample and head.
  static int64_t HalfProduct(const Tensor& q) { return q.numel() * q.dim(0); }
};

class MetaCast final : public Counting<CastKernels> {
 public:
  using Counting::Counting;
  void Cast(const OpContext&, const Tensor& x, const Tensor& out) const override {
    counter_.AddBytes({&x, &out});
  }
};

class MetaCopy final : public Counting<CopyKernels> {
 public:
  using Counting::Counting;
  void Copy(const OpContext&, const Tensor& from, const Tensor& to) const override {
    counter_.AddBytes({&from, &to});
  }
  void Fill(const OpContext&, float, const Tensor& out) const override {
    counter_.AddBytes({&out});
  }
};

class MetaCrossEntropy final : public Counting<CrossEntropyKernels> {
 public:
  using Counting::Counting;
  void RowMax(const OpContext&, const Tensor& logits, const VocabularyRange&,
              const Tensor& row_max) const override {
    counter_.AddBytes({&logits, &row_max});
  }
  void SumExpAndTarget(const OpContext&, const Tensor& logits, const Tensor&, const Tensor&,
                       const VocabularyRange&, const Tensor& sums) const override {
    counter_.AddBytes({&logits, &sums});
  }
  void Loss(const OpContext&, const Tensor& sums, const Tensor& loss) const override {
    counter_.AddBytes({&sums, &loss});
  }
  void Backward(const OpContext&, const Tensor& logits, const Tensor&, const Tensor&, const Tensor&,
                const Tensor&, const VocabularyRange&, const Tensor& dlogits) const override {
    counter_.AddBytes({&logits, &dlogits});
  }
};

class MetaDropout final : public Counting<DropoutKernels> {
 public:
  using Counting::Counting;
  void Dropout(const OpContext&, const Tensor& x, const DropoutOptions&,
               const Tensor& y) const override {
    counter_.AddBytes({&x, &y});
  }
};

class MetaElementwise final : public Counting<ElementwiseKernels> {
 public:
  using Counting::Counting;
  void Add(const OpContext&, const Tensor& a, const Tensor& b, const Tensor& out) const override {
    counter_.AddBytes({&a, &b, &out});
  }
  void AddRow(const OpContext&, const Tensor& x, const Tensor&, const Tensor& out) const override {
    counter_.AddBytes({&x, &out});
  }
  void Scale(const OpContext&, const Tensor& x, float, const Tensor& out) const override {
    counter_.AddBytes({&x, &out});
  }
};

class MetaEmbedding final : public Counting<EmbeddingKernels> {
 public:
  using Counting::Counting;
  void Forward(const OpContext&, const Tensor&, const Tensor&, int64_t,
               const Tensor& out) const override {
    counter_.AddBytes({&out, &out});
  }
  void Backward(const OpContext&, const Tensor&, const Tensor& dout, int64_t, bool,
                const Tensor&) const override {
    counter_.AddBytes({&dout, &dout});
  }
};

class MetaMatmul final : public Counting<MatmulKernels> {
 public:
  using Counting::Counting;
  void Matmul(const OpContext&, const Tensor& a, const Tensor&, const MatmulOptions& options,
              const Tensor& out) const override {
    counter_.AddFlops(2 * out.numel() * a.dim(options.transpose_a ? 0 : 1));
  }
};

class MetaNorm final : public Counting<NormKernels> {
 public:
  using Counting::Counting;
  void LayerNorm(const OpContext&, const Tensor& x, const Tensor&, const Tensor&, float,
                 const LayerNormResult& out) const override {
    counter_.AddBytes({&x, &out.y});
  }
  void LayerNormBackwardInput(const OpContext&, const Tensor& x, const Tensor&, const Tensor&,
                              const Tensor&, const Tensor& dy, const Tensor& dx) const override {
    counter_.AddBytes({&x, &dy, &dx});
  }
  void LayerNormBackwardWeight(const OpContext&, const Tensor& x, const Tensor&, const Tensor&,
                               const Tensor& dy, bool, const Tensor& dgamma, bool,
                               const Tensor& dbeta) const override {
    counter_.AddBytes({&x, &dy, &dgamma, &dbeta});
  }
  void RmsNorm(const OpContext&, const Tensor& x, const Tensor&, float,
               const RmsNormResult& out) const override {
    counter_.AddBytes({&x, &out.y});
  }
  void RmsNormBackwardInput(const OpContext&, const Tensor& x, const Tensor&, const Tensor&,
                            const Tensor& dy, const Tensor& dx) const override {
    counter_.AddBytes({&x, &dy, &dx});
  }
  void RmsNormBackwardWeight(const OpContext&, const Tensor& x, const Tensor&, const Tensor& dy,
                             bool, const Tensor& dgamma) const override {
    counter_.AddBytes({&x, &dy, &dgamma});
  }
};

class MetaReduce final : public Counting<ReduceKernels> {
 public:
  using Counting::Counting;
  void SumRows(const OpContext&, const Tensor& x, bool, const Tensor& sums) const override {
    counter_.AddBytes({&x, &sums});
  }
  void Mean(const OpContext&, const Tensor& x, const Tensor&) const override {
    counter_.AddBytes({&x});
  }
};

class MetaRope final : public Counting<RopeKernels> {
 public:
  using Counting::Counting;
  void Rope(const OpContext&, const Tensor& x, const RopeOptions&, const Tensor& y) const override {
    counter_.AddBytes({&x, &y});
  }
};

}  // namespace

struct AllKernels {
  explicit AllKernels(ComputeWork* work)
      : activation(work),
        attention(work),
        cast(work),
        copy(work),
        cross_entropy(work),
        dropout(work),
        elementwise(work),
        embedding(work),
        matmul(work),
        norm(work),
        reduce(work),
        rope(work) {}

  KernelTable Table() const {
    return {
        .activation = &activation,
        .attention = &attention,
        .cast = &cast,
        .copy = &copy,
        .cross_entropy = &cross_entropy,
        .dropout = &dropout,
        .elementwise = &elementwise,
        .embedding = &embedding,
        .matmul = &matmul,
        .norm = &norm,
        .reduce = &reduce,
        .rope = &rope,
    };
  }

  MetaActivation activation;
  MetaAttention attention;
  MetaCast cast;
  MetaCopy copy;
  MetaCrossEntropy cross_entropy;
  MetaDropout dropout;
  MetaElementwise elementwise;
  MetaEmbedding embedding;
  MetaMatmul matmul;
  MetaNorm norm;
  MetaReduce reduce;
  MetaRope rope;
};

const KernelTable& Kernels() {
  static const AllKernels all(/*work=*/nullptr);
  static const KernelTable table = all.Table();
  return table;
}

CountingKernels::CountingKernels()
    : all_(std::make_unique<AllKernels>(&work_)), table_(all_->Table()) {}

CountingKernels::~CountingKernels() = default;

}  // namespace forerun::meta
