// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

using Vector = std::vector<double>;

// All elements, row-major: read once, as each is used many times.
Vector ValuesOf(const Tensor& x) {
  const Elements elements(x);
  Vector values(x.numel());
  for (int64_t i = 0; i < x.numel(); ++i) values[i] = elements[i];
  return values;
}

// One (sample, query head) of the problem and the rows that it reads.
struct Head {
  const AttentionOptions& options;
  int64_t s, b, heads, kv_heads, d;
  int64_t sample, head;

  int64_t QueryIndex(int64_t i, int64_t x) const {
    return ((i * b + sample) * heads + head) * d + x;
  }
  int64_t KeyIndex(int64_t j, int64_t x) const {
    return ((j * b + sample) * kv_heads + head / (heads / kv_heads)) * d + x;
  }
  // What dropout multiplies P[i, j] with: 0 or 1 / (1 - p).
  double Mask(int64_t i, int64_t j) const {
    if (options.dropout == 0.0f) return 1.0;
    const int64_t row =
        (options.first_sample + sample) * options.total_heads + options.first_head + head;
    const float uniform = UniformAt(options.key, static_cast<uint64_t>((row * s + i) * s + j));
    return uniform < options.dropout ? 0.0 : 1.0 / (1.0 - static_cast<double>(options.dropout));
  }
};

double Dot(const Vector& x, const Vector& y, const Head& at, int64_t i, int64_t j) {
  double sum = 0.0;
  for (int64_t c = 0; c < at.d; ++c) sum += x[at.QueryIndex(i, c)] * y[at.KeyIndex(j, c)];
  return sum;
}

// Softmax over the first i + 1 scores of row i; `logsumexp` gets the logarithm of its divisor.
Vector Probabilities(const Vector& q, const Vector& k, const Head& at, int64_t i,
                     double* logsumexp) {
  Vector p(i + 1);
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j <= i; ++j) {
    p[j] = static_cast<double>(at.options.scale) * Dot(q, k, at, i, j);
    largest = std::max(largest, p[j]);
  }
  double sum = 0.0;
  for (double score : p) sum += std::exp(score - largest);
  *logsumexp = largest + std::log(sum);
  for (double& score : p) score = std::exp(score - *logsumexp);
  return p;
}

// Adds the gradients of row i. dk and dv are summed over rows, and over the heads of a group.
void RowBackward(const Vector& q, const Vector& k, const Vector& v, const Vector& dout,
                 const Head& at, int64_t i, const Elements& dq, Vector* dk, Vector* dv) {
  double unused;
  const Vector p = Probabilities(q, k, at, i, &unused);
  Vector dp(i + 1);
  double weighted = 0.0;
  for (int64_t j = 0; j <= i; ++j) {
    dp[j] = at.Mask(i, j) * Dot(dout, v, at, i, j);
    weighted += p[j] * dp[j];
  }
  Vector dq_row(at.d, 0.0);
  for (int64_t j = 0; j <= i; ++j) {
    const double ds = static_cast<double>(at.options.scale) * p[j] * (dp[j] - weighted);
    const double kept = p[j] * at.Mask(i, j);
    for (int64_t c = 0; c < at.d; ++c) {
      dq_row[c] += ds * k[at.KeyIndex(j, c)];
      (*dk)[at.KeyIndex(j, c)] += ds * q[at.QueryIndex(i, c)];
      (*dv)[at.KeyIndex(j, c)] += kept * dout[at.QueryIndex(i, c)];
    }
  }
  for (int64_t c = 0; c < at.d; ++c) dq.Set(at.QueryIndex(i, c), dq_row[c]);
}

template <typename Visit>
void ForHeads(const Tensor& q, const Tensor& k, const AttentionOptions& options, Visit visit) {
  for (int64_t sample = 0; sample < q.dim(1); ++sample) {
    for (int64_t head = 0; head < q.dim(2); ++head) {
      visit(Head{options, q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3), sample, head});
    }
  }
}

class ReferenceAttention final : public AttentionKernels {
 public:
  void Forward(const OpContext&, const Tensor& q, const Tensor& k, const Tensor& v,
               const AttentionOptions& options, const AttentionResult& result) const override {
    const Vector queries = ValuesOf(q), keys = ValuesOf(k), values = ValuesOf(v);
    const Elements out(result.out), logsumexp(result.logsumexp);
    ForHeads(q, k, options, [&](const Head& at) {
      for (int64_t i = 0; i < at.s; ++i) {
        double divisor;
        const Vector p = Probabilities(queries, keys, at, i, &divisor);
        logsumexp.Set((at.sample * at.heads + at.head) * at.s + i, divisor);
        for (int64_t c = 0; c < at.d; ++c) {
          double sum = 0.0;
          for (int64_t j = 0; j <= i; ++j) sum += p[j] * at.Mask(i, j) * values[at.KeyIndex(j, c)];
          out.Set(at.QueryIndex(i, c), sum);
        }
      }
    });
  }

  // Takes nothing from the forward pass: it recomputes in double.
  void Backward(const OpContext&, const Tensor& q, const Tensor& k, const Tensor& v,
                const AttentionResult&, const Tensor& dout, const AttentionOptions& options,
                const AttentionGradients& gradients) const override {
    const Vector queries = ValuesOf(q), keys = ValuesOf(k), values = ValuesOf(v);
    const Vector out_gradient = ValuesOf(dout);
    const Elements dq(gradients.dq);
    Vector dk(k.numel(), 0.0), dv(v.numel(), 0.0);
    ForHeads(q, k, options, [&](const Head& at) {
      for (int64_t i = 0; i < at.s; ++i) {
        RowBackward(queries, keys, values, out_gradient, at, i, dq, &dk, &dv);
      }
    });
    const Elements dk_out(gradients.dk), dv_out(gradients.dv);
    for (int64_t i = 0; i < k.numel(); ++i) {
      dk_out.Set(i, dk[i]);
      dv_out.Set(i, dv[i]);
    }
  }
};

}  // namespace

const AttentionKernels& Attention() {
  static const ReferenceAttention kernels;
  return kernels;
}

}  // namespace forerun::reference
