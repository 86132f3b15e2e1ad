// SPDX-License-Identifier: Apache-2.0
#include "core/ops/meta/kernels.h"

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

class MetaActivation final : public ActivationKernels {
 public:
  void Gelu(const OpContext&, const Tensor&, GeluKind, const Tensor&) const override {}
  void GeluBackward(const OpContext&, const Tensor&, const Tensor&, GeluKind,
                    const Tensor&) const override {}
  void Swiglu(const OpContext&, const Tensor&, const Tensor&) const override {}
  void SwigluBackward(const OpContext&, const Tensor&, const Tensor&,
                      const Tensor&) const override {}
};

class MetaAttention final : public AttentionKernels {
 public:
  void Forward(const OpContext&, const Tensor&, const Tensor&, const Tensor&,
               const AttentionOptions&, const AttentionResult&) const override {}
  void Backward(const OpContext&, const Tensor&, const Tensor&, const Tensor&,
                const AttentionResult&, const Tensor&, const AttentionOptions&,
                const AttentionGradients&) const override {}
};

class MetaCast final : public CastKernels {
 public:
  void Cast(const OpContext&, const Tensor&, const Tensor&) const override {}
};

class MetaCopy final : public CopyKernels {
 public:
  void Copy(const OpContext&, const Tensor&, const Tensor&) const override {}
  void Fill(const OpContext&, float, const Tensor&) const override {}
};

class MetaCrossEntropy final : public CrossEntropyKernels {
 public:
  void RowMax(const OpContext&, const Tensor&, const VocabularyRange&,
              const Tensor&) const override {}
  void SumExpAndTarget(const OpContext&, const Tensor&, const Tensor&, const Tensor&,
                       const VocabularyRange&, const Tensor&) const override {}
  void Loss(const OpContext&, const Tensor&, const Tensor&) const override {}
  void Backward(const OpContext&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                const Tensor&, const VocabularyRange&, const Tensor&) const override {}
};

class MetaDropout final : public DropoutKernels {
 public:
  void Dropout(const OpContext&, const Tensor&, const DropoutOptions&,
               const Tensor&) const override {}
};

class MetaElementwise final : public ElementwiseKernels {
 public:
  void Add(const OpContext&, const Tensor&, const Tensor&, const Tensor&) const override {}
  void AddRow(const OpContext&, const Tensor&, const Tensor&, const Tensor&) const override {}
  void Scale(const OpContext&, const Tensor&, float, const Tensor&) const override {}
};

class MetaEmbedding final : public EmbeddingKernels {
 public:
  void Forward(const OpContext&, const Tensor&, const Tensor&, int64_t,
               const Tensor&) const override {}
  void Backward(const OpContext&, const Tensor&, const Tensor&, int64_t, bool,
                const Tensor&) const override {}
};

class MetaMatmul final : public MatmulKernels {
 public:
  void Matmul(const OpContext&, const Tensor&, const Tensor&, const MatmulOptions&,
              const Tensor&) const override {}
};

class MetaNorm final : public NormKernels {
 public:
  void LayerNorm(const OpContext&, const Tensor&, const Tensor&, const Tensor&, float,
                 const LayerNormResult&) const override {}
  void LayerNormBackwardInput(const OpContext&, const Tensor&, const Tensor&, const Tensor&,
                              const Tensor&, const Tensor&, const Tensor&) const override {}
  void LayerNormBackwardWeight(const OpContext&, const Tensor&, const Tensor&, const Tensor&,
                               const Tensor&, bool, const Tensor&, bool,
                               const Tensor&) const override {}
  void RmsNorm(const OpContext&, const Tensor&, const Tensor&, float,
               const RmsNormResult&) const override {}
  void RmsNormBackwardInput(const OpContext&, const Tensor&, const Tensor&, const Tensor&,
                            const Tensor&, const Tensor&) const override {}
  void RmsNormBackwardWeight(const OpContext&, const Tensor&, const Tensor&, const Tensor&, bool,
                             const Tensor&) const override {}
};

class MetaReduce final : public ReduceKernels {
 public:
  void SumRows(const OpContext&, const Tensor&, bool, const Tensor&) const override {}
  void Mean(const OpContext&, const Tensor&, const Tensor&) const override {}
};

class MetaRope final : public RopeKernels {
 public:
  void Rope(const OpContext&, const Tensor&, const RopeOptions&, const Tensor&) const override {}
};

struct AllKernels {
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

}  // namespace

const KernelTable& Kernels() {
  static const AllKernels all{};
  static const KernelTable table{
      .activation = &all.activation,
      .attention = &all.attention,
      .cast = &all.cast,
      .copy = &all.copy,
      .cross_entropy = &all.cross_entropy,
      .dropout = &all.dropout,
      .elementwise = &all.elementwise,
      .embedding = &all.embedding,
      .matmul = &all.matmul,
      .norm = &all.norm,
      .reduce = &all.reduce,
      .rope = &all.rope,
  };
  return table;
}

}  // namespace forerun::meta
