// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/onednn_matmul.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/parallel_for.h"
#include "core/ops/cpu/float_matrix.h"
#include "core/ops/cpu/matmul_epilogue.h"
#include "core/ops/cpu/onednn_primitives.h"

namespace forerun::cpu {
namespace {

using DataType = dnnl::memory::data_type;

DataType DataTypeOf(const Tensor& x) {
  return x.dtype() == DType::kBF16 ? DataType::bf16 : DataType::f32;
}

// Isas are sets of features, one bit each.
bool Has(dnnl::cpu_isa wanted) {
  const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); };
  return (bits(dnnl::get_effective_cpu_isa()) & bits(wanted)) == bits(wanted);
}

const char* IsaName() {
  using dnnl::cpu_isa;
  if (Has(cpu_isa::avx512_core_amx)) return "avx512_core_amx";
  if (Has(cpu_isa::avx512_core_bf16)) return "avx512_core_bf16";
  if (Has(cpu_isa::avx512_core_vnni)) return "avx512_core_vnni";
  if (Has(cpu_isa::avx512_core)) return "avx512_core";
  return Has(cpu_isa::avx2) ? "avx2" : "less than avx2";
}

// A matrix of one row has no distance between rows; the same key then serves all views.
int64_t RowStride(const Tensor& x) { return x.dim(0) == 1 ? x.dim(1) : x.strides()[0]; }

MatmulKey KeyOf(const Tensor& a, const Tensor& b, const MatmulOptions& options, const Tensor& out) {
  return MatmulKey{
      .m = out.dim(0),
      .n = out.dim(1),
      .k = a.dim(options.transpose_a ? 0 : 1),
      .a_row = RowStride(a),
      .b_row = RowStride(b),
      .c_row = RowStride(out),
      .in = DataTypeOf(a),
      .out = DataTypeOf(out),
      .transpose_a = options.transpose_a,
      .transpose_b = options.transpose_b,
      .bias = options.bias.defined(),
      .accumulate = options.accumulate,
      .threads = LoopThreads(),
  };
}

// Whether oneDNN's gemm takes the product: it copies its factors into panels, where the matmul
// primitive reads them as they lie. That pays where the rows of b are far apart: at 3 KiB and more
// the primitive does 110 to 180 GFLOP/s where gemm does 190 to 220 (two cores, AVX-512); with b
// transposed, or its rows near each other, it is the faster one.
//
// A rule of shapes alone and not a measurement, so that ranks, runs and resumed runs choose alike.
bool PacksFactors(const Tensor& a, const Tensor& b, const MatmulOptions& options,
                  const Tensor& out) {
  constexpr int64_t kFarApart = 768;  // elements
  constexpr int64_t kFewRows = 16;    // too few to pay for the copy
  return !options.transpose_b && !options.bias.defined() && a.dtype() == DType::kF32 &&
         out.dtype() == DType::kF32 && RowStride(b) >= kFarApart && out.dim(0) >= kFewRows;
}

void Gemm(const Tensor& a, const Tensor& b, const MatmulOptions& options, const Tensor& out) {
  const int64_t k = a.dim(options.transpose_a ? 0 : 1);
  const dnnl_status_t status =
      dnnl_sgemm(options.transpose_a ? 'T' : 'N', options.transpose_b ? 'T' : 'N', out.dim(0),
                 out.dim(1), k, 1.0f, a.data<float>(), RowStride(a), b.data<float>(), RowStride(b),
                 options.accumulate ? 1.0f : 0.0f, out.mutable_data<float>(), RowStride(out));
  FR_CHECK_EQ(status, dnnl_success) << "oneDNN's gemm of " << a.shape() << " and " << b.shape();
}

class OneDnnKernels final : public MatmulKernels {
 public:
  OneDnnKernels()
      : engine_(dnnl::engine::kind::cpu, 0),
        multiplies_bf16_(OneDnnMultipliesBFloat16()),
        primitives_(std::make_unique<MatmulPrimitives>(engine_)) {}

  void Matmul(const OpContext& context, const Tensor& a, const Tensor& b,
              const MatmulOptions& options, const Tensor& out) const override {
    const Tensor& product = ProductTarget(options, out);
    if (a.dtype() == DType::kF32 || (a.dtype() == DType::kBF16 && multiplies_bf16_)) {
      Multiply(context, a, b, options, product);
    } else {
      MultiplyAsFloats(context, a, b, options, product);
    }
    Activate(context, options, out);
  }

 private:
  // out (+)= op(a) op(b) + bias, in dtypes that oneDNN takes.
  void Multiply(const OpContext& context, const Tensor& a, const Tensor& b,
                const MatmulOptions& options, const Tensor& out) const {
    if (PacksFactors(a, b, options, out)) return Gemm(a, b, options, out);
    const auto made = primitives_->Get(KeyOf(a, b, options, out));
    const Tensor scratch =
        context.Empty({static_cast<int64_t>(made->scratchpad.get_size())}, DType::kU8);
    const auto argument = [&](const dnnl::memory::desc& desc, const void* data) {
      return dnnl::memory(desc, engine_, const_cast<void*>(data));
    };
    std::unordered_map<int, dnnl::memory> arguments{
        {DNNL_ARG_SRC, argument(made->a, a.raw_data())},
        {DNNL_ARG_WEIGHTS, argument(made->b, b.raw_data())},
        {DNNL_ARG_DST, argument(made->c, out.raw_mutable_data())},
        {DNNL_ARG_SCRATCHPAD, argument(made->scratchpad, scratch.raw_data())},
    };
    if (options.bias.defined()) {
      arguments.emplace(DNNL_ARG_BIAS, argument(made->bias, options.bias.raw_data()));
    }
    dnnl::stream stream(engine_);
    made->primitive.execute(stream, arguments);
    stream.wait();
  }

  // The same where oneDNN does not take the dtype of a and b. The floats of a long factor would go
  // to memory and back, so a long dim is taken in pieces.
  void MultiplyAsFloats(const OpContext& context, const Tensor& a, const Tensor& b,
                        const MatmulOptions& options, const Tensor& out) const {
    constexpr int64_t kPiece = 4096;
    const int64_t m = out.dim(0), n = out.dim(1), k = a.dim(options.transpose_a ? 0 : 1);
    MatmulOptions piece = options;
    if (m > kPiece && m >= n && m >= k) {
      for (int64_t i = 0; i < m; i += kPiece) {
        const int64_t end = std::min(m, i + kPiece);
        MultiplyFloats(context, a.Slice(options.transpose_a ? 1 : 0, i, end), b, options,
                       out.Slice(0, i, end));
      }
    } else if (n > kPiece && n >= k) {
      for (int64_t j = 0; j < n; j += kPiece) {
        const int64_t end = std::min(n, j + kPiece);
        if (options.bias.defined()) piece.bias = options.bias.Slice(0, j, end);
        MultiplyFloats(context, a, b.Slice(options.transpose_b ? 0 : 1, j, end), piece,
                       out.Slice(1, j, end));
      }
    } else if (k > kPiece && out.dtype() == DType::kF32) {
      for (int64_t p = 0; p < k; p += kPiece) {
        const int64_t end = std::min(k, p + kPiece);
        MultiplyFloats(context, a.Slice(options.transpose_a ? 0 : 1, p, end),
                       b.Slice(options.transpose_b ? 1 : 0, p, end), piece, out);
        piece.bias = Tensor();
        piece.accumulate = true;
      }
    } else if (k > kPiece) {
      const Tensor sums =
          options.accumulate ? FloatMatrix(context, out) : context.Empty(out.shape(), DType::kF32);
      MultiplyAsFloats(context, a, b, options, sums);
      RoundMatrix(sums, out);
    } else {
      MultiplyFloats(context, a, b, options, out);
    }
  }

  void MultiplyFloats(const OpContext& context, const Tensor& a, const Tensor& b,
                      const MatmulOptions& options, const Tensor& out) const {
    MatmulOptions as_floats = options;
    if (options.bias.defined()) {
      const Tensor row = options.bias.View({1, options.bias.dim(0)});
      as_floats.bias = FloatMatrix(context, row).View(options.bias.shape());
    }
    const Tensor left = FloatMatrix(context, a), right = FloatMatrix(context, b);
    if (out.dtype() == DType::kF32) {
      Multiply(context, left, right, as_floats, out);
      return;
    }
    const Tensor floats =
        options.accumulate ? FloatMatrix(context, out) : context.Empty(out.shape(), DType::kF32);
    Multiply(context, left, right, as_floats, floats);
    RoundMatrix(floats, out);
  }

  const dnnl::engine engine_;
  const bool multiplies_bf16_;
  // Grows behind its own locks; the kernels themselves never change.
  const std::unique_ptr<MatmulPrimitives> primitives_;
};

}  // namespace

bool OneDnnMultipliesBFloat16() { return Has(dnnl::cpu_isa::avx512_core_bf16); }

std::string OneDnnChoice() {
  const dnnl_version_t& version = *dnnl_version();
  return absl::StrCat("oneDNN ", version.major, ".", version.minor, ".", version.patch, " for ",
                      IsaName(), ", bf16 ",
                      OneDnnMultipliesBFloat16() ? "directly" : "through fp32");
}

const MatmulKernels& OneDnnMatmul() {
  static const OneDnnKernels kernels;
  return kernels;
}

}  // namespace forerun::cpu
