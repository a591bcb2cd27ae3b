// gemm as an operation.
//
// How the files of a and b lie is said with the letters of BLAS, which CuTe uses too: N is a matrix
// that is contiguous along its first mode, of m x k or k x n, and T one that is contiguous along the
// second. As NumPy writes matrices, row by row, that is
//
//   layout  a        b        CuTe
//   tn      [m, k]   [n, k]   both K-major, as gemm() takes them; the only one of tf32 and e4m3
//   tt      [m, k]   [k, n]   a K-major, b N-major
//   nn      [k, m]   [n, k]   a M-major, b K-major
//   nt      [k, m]   [k, n]   a M-major, b N-major
//
// (BLAS counts columns first: its T is a k x m matrix, column by column, and that is the same memory.)
//
// Lines of any length will do: those that are no multiple of 16 bytes are copied to ones that are.
#include "absl/strings/str_join.h"
#include "heddle/kernels/gemm/fused.h"
#include "heddle/kernels/gemm/gemm.h"
#include "heddle/kernels/gemm/named_epilogue.h"
#include "heddle/kernels/gemm/padded_internal.h"
#include "heddle/kernels/gemm/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// Settings whose choices are rows of a table.
enum class LayoutRow : int {};
enum class EpilogueRow : int {};

template <class T>
TensorRef<T, 2> transposed(const TensorRef<T, 2>& x) {
  TensorRef<T, 2> made = x;
  std::swap(made.extents[0], made.extents[1]);
  std::swap(made.strides[0], made.strides[1]);
  return made;
}

// What is not there, as an empty tensor that nobody reads.
template <class T>
TensorRef<T, 3> or_empty(const std::optional<TensorRef<T, 2>>& x) {
  return x ? detail::in_batches(*x) : TensorRef<T, 3>();
}

// The operation of an element type of a and b, and of d.
template <class T, class D>
Status run_gemm(const Stream& stream, const TensorRef<const T, 2>& a_file,
                const TensorRef<const T, 2>& b_file, const TensorRef<D, 2>& d, LayoutRow layout,
                float alpha, float beta, const std::optional<TensorRef<const D, 2>>& c,
                EpilogueRow epilogue, const std::optional<TensorRef<const float, 1>>& bias,
                const std::optional<TensorRef<const D, 2>>& residual) {
  const StatusOr<Padded<T>> a_lines = padded(stream, a_file), b_lines = padded(stream, b_file);
  if (!a_lines.ok()) return a_lines.status();
  if (!b_lines.ok()) return b_lines.status();
  const GemmFiles& files = gemm_files()[static_cast<size_t>(layout)];
  const auto a = files.a_along_m ? transposed(a_lines->tensor) : a_lines->tensor;
  const auto b = files.b_along_n ? transposed(b_lines->tensor) : b_lines->tensor;
  const auto row = static_cast<int>(epilogue);
  if (row == 0 && alpha == 1 && beta == 0) return gemm(stream, a, b, d);
  if (row == 0) {
    return gemm(stream, a, b, d, {alpha, beta}, c.value_or(TensorRef<const D, 2>()));
  }
  return gemm_with(stream, ChosenEpilogue<D>{row, alpha != 1, beta != 0}, a, b, d, alpha, beta,
                   or_empty(c), bias.value_or(TensorRef<const float, 1>()), or_empty(residual));
}

// "layout=nn|nt": the rows of a table of which something is so.
template <class Row>
std::string where(const char* setting, const std::vector<Row>& rows, bool Row::*is_so) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.*is_so) names.push_back(row.name);
  }
  return absl::StrCat(" if ", setting, "=", absl::StrJoin(names, "|"));
}
template <class Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

#define HEDDLE_GEMM_FUNCTION(T, D) host_function(run_gemm<T, D>)

const Registered registered_gemm({
    .name = "gemm",
    .summary = "d = epilogue(alpha a b + beta c) on Hopper's tensor cores, summed in f32",
    .arguments = {"a: dtype[k, m]" + where("layout", gemm_files(), &GemmFiles::a_along_m),
                  "a: dtype[m, k]",
                  "b: dtype[k, n]" + where("layout", gemm_files(), &GemmFiles::b_along_n),
                  "b: dtype[n, k]", "d: out[m, n]", "layout: choice", "alpha: f32", "beta: f32",
                  "c: out[m, n] if beta!=0", "epilogue: choice",
                  "bias: f32[n]" + where("epilogue", named_epilogues(), &NamedEpilogue::bias),
                  "residual: out[m, n]" +
                      where("epilogue", named_epilogues(), &NamedEpilogue::residual)},
    // Of each type of a and b first the one that d has where nobody says it.
    .functions = {HEDDLE_GEMM_FUNCTION(half, half), HEDDLE_GEMM_FUNCTION(half, float),
                  HEDDLE_GEMM_FUNCTION(bfloat16, bfloat16), HEDDLE_GEMM_FUNCTION(bfloat16, float),
                  HEDDLE_GEMM_FUNCTION(tfloat32, float),
                  HEDDLE_GEMM_FUNCTION(float8_e4m3, bfloat16),
                  HEDDLE_GEMM_FUNCTION(float8_e4m3, half),
                  HEDDLE_GEMM_FUNCTION(float8_e4m3, float)},
    .settings =
        {{.name = "dtype", .help = "element type of a and b"},
         {.name = "out",
          .help = "element type of c, d and residual; follows dtype: f16, bf16, of tf32 "
                  "f32, of e4m3 bf16"},
         {.name = "layout",
          .help = "of the files of a and b, by CuTe's letters: a is [m, k] for t and [k, m] "
                  "for n, b is [n, k] for n and [k, n] for t",
          .default_value = "tn",
          .choices = names_of(gemm_files())},
         {.name = "alpha", .help = "factor of the product", .default_value = "1"},
         {.name = "beta", .help = "factor of c; 0: there is no c", .default_value = "0"},
         {.name = "epilogue",
          .help = "of x = alpha a b + beta c; bias_gelu_residual is gelu(x + bias) + residual",
          .default_value = "none",
          .choices = names_of(named_epilogues())}},
    .refusals = {{.condition = "dtype=tf32|e4m3 and layout=tt|nn|nt",
                  .why = "the tensor cores read operands that are contiguous along another mode "
                         "than k for elements of 16 bits alone; fix: set layout=tn and store a as "
                         "[m, k] and b as [n, k], or set dtype=f16 or bf16"}},
    .sizes = {{"m", 4096}, {"n", 4096}, {"k", 4096}},
    .reference = gemm_reference,
});

#undef HEDDLE_GEMM_FUNCTION

}  // namespace
}  // namespace heddle::kernels
