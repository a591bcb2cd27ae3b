#include "heddle/kernels/gemm/gemm.h"

#include "heddle/kernels/gemm/fused.h"

namespace heddle::kernels {
namespace detail {
namespace {

constexpr int kMapAlignment = 16;  // bytes of the strides of what the copy engine reads and writes

std::string extents_of(const OperandShape& x) {
  return absl::StrCat(x.extents[0], " x ", x.extents[1],
                      x.extents[2] == 1 ? "" : absl::StrCat(" (", x.extents[2], " of them)"));
}

// Which mode an operand is contiguous along; an error says what it takes.
StatusOr<Major> major_of(const char* name, const OperandShape& x, int element_bytes) {
  const bool along_k = x.strides[1] == 1 || x.extents[1] == 1;
  const bool along_rows = element_bytes == 2 && (x.strides[0] == 1 || x.extents[0] == 1);
  const int64_t other = along_k ? x.strides[0] : x.strides[1];
  if (!along_k && !along_rows) {
    return InvalidArgumentError(absl::StrCat(
        "gemm: ", name, " has strides ", x.strides[0], " and ", x.strides[1],
        element_bytes == 2 ? ", and one of them has to be 1"
                           : ", and the second has to be 1, for only elements of 16 bits may be "
                             "contiguous along the other mode",
        "; fix: copy it to contiguous memory"));
  }
  if (x.extents[along_k ? 0 : 1] > 1 && other * element_bytes % kMapAlignment != 0) {
    return InvalidArgumentError(absl::StrCat(
        "gemm: ", name, " has lines ", other * element_bytes,
        " bytes apart, and the copy engine takes multiples of 16; fix: pad them with elements"));
  }
  return along_k ? Major::k : Major::mn;
}

// The bytes from a matrix's first to behind its last; strides are not negative.
struct Bytes {
  uint64_t begin, end;
  Bytes(const OperandShape& x, int element_bytes) : begin(x.address), end(x.address) {
    const int64_t last = (x.extents[0] - 1) * x.strides[0] + (x.extents[1] - 1) * x.strides[1];
    end += static_cast<uint64_t>((last + 1) * element_bytes);
  }
};

// Whether d is sure to share memory with an operand, both with elements. Matrices side by side, in rows of the same memory,
// do not; of several matrices only the first elements are looked at. Problems of no memory are asked for while tuning.
bool shares_memory(const OperandShape& d, int d_bytes, const OperandShape& x, int x_bytes) {
  if (d.address == 0 || x.address == 0) return false;
  if (d.address == x.address) return true;
  if (d.extents[2] != 1 || x.extents[2] != 1) return false;
  const Bytes of_d(d, d_bytes), of_x(x, x_bytes);
  if (of_d.end <= of_x.begin || of_x.end <= of_d.begin) return false;
  const int lines = x.strides[1] == 1 ? 0 : 1;  // the mode that is not contiguous
  const int64_t pitch_of_x = x.extents[lines] > 1 ? x.strides[lines] * x_bytes : 0;
  const int64_t pitch_of_d = d.extents[0] > 1 ? d.strides[0] * d_bytes : 0;
  const int64_t pitch = std::max(pitch_of_x, pitch_of_d);
  if (pitch == 0) return true;
  if (pitch_of_x != 0 && pitch_of_d != 0 && pitch_of_x != pitch_of_d) return false;
  // Where a line of the one begins within the lines of the other.
  const bool d_is_first = of_d.begin < of_x.begin;
  const auto apart =
      static_cast<int64_t>(d_is_first ? of_x.begin - of_d.begin : of_d.begin - of_x.begin) % pitch;
  const int64_t other = apart == 0 ? 0 : pitch - apart;
  const int64_t in_d = d_is_first ? apart : other, in_x = d_is_first ? other : apart;
  return in_d < d.extents[1] * d_bytes || in_x < x.extents[1 - lines] * x_bytes;
}

// What the strides of operands whose extents fit each other say.
StatusOr<GemmProblem> with_strides(GemmProblem problem, const OperandShapes& x) {
  problem.element_bytes = x.element_bytes;
  problem.result_bytes = x.result_bytes;
  if (problem.is_empty()) return problem;
  for (const auto& [name, operand, major] :
       {std::tuple("a", &x.a, &problem.a), std::tuple("b", &x.b, &problem.b)}) {
    const StatusOr<Major> found = major_of(name, *operand, x.element_bytes);
    if (!found.ok()) return found.status();
    *major = *found;
  }
  if (x.d.strides[1] != 1 && x.d.extents[1] > 1) {
    return InvalidArgumentError(absl::StrCat("gemm: d has strides ", x.d.strides[0], " and ",
                                             x.d.strides[1],
                                             ", and its rows have to be contiguous; fix: give it "
                                             "contiguous memory"));
  }
  for (const auto& [name, operand] : {std::pair("a", &x.a), std::pair("b", &x.b)}) {
    if (!shares_memory(x.d, x.result_bytes, *operand, x.element_bytes)) continue;
    return InvalidArgumentError(
        absl::StrCat("gemm: d shares memory with ", name,
                     ", which is read while d is written; give d memory of its own"));
  }
  // The copy engine writes whole 16 bytes, also where a row ends inside of them.
  const auto whole = [&](int64_t elements) {
    return elements * x.result_bytes % kMapAlignment == 0;
  };
  problem.stores_boxes = x.d.address % kMapAlignment == 0 && whole(x.d.extents[1]) &&
                         whole(x.d.strides[0]) && whole(x.d.strides[2]);
  return problem;
}

// Whether a is m x k, b n x k and d m x n, with k above 0.
bool fit(const OperandShapes& x) {
  return x.a.extents[1] != 0 && x.b.extents[1] == x.a.extents[1] &&
         x.d.extents[0] == x.a.extents[0] && x.d.extents[1] == x.b.extents[0] &&
         x.d.extents[2] == x.a.extents[2];
}

}  // namespace

StatusOr<GemmProblem> gemm_problem(const OperandShapes& x) {
  if (!fit(x) || x.b.extents[2] != x.d.extents[2]) {
    const bool b_is_transposed =
        x.b.extents[0] == x.a.extents[1] && x.b.extents[1] == x.d.extents[1];
    return InvalidArgumentError(absl::StrCat(
        "gemm: a is ", extents_of(x.a), ", b ", extents_of(x.b), " and d ", extents_of(x.d),
        "; a takes m x k, b n x k and d m x n, with k above 0",
        b_is_transposed ? ": b looks transposed, swap its extents and its strides" : ""));
  }
  return with_strides(
      {.m = x.a.extents[0], .n = x.b.extents[0], .k = x.a.extents[1], .batches = x.d.extents[2]},
      x);
}

StatusOr<GemmProblem> problem_of_groups(const OperandShapes& x, int64_t groups,
                                        bool in_one_matrix) {
  if (!fit(x) || x.b.extents[2] != groups || x.d.extents[2] != (in_one_matrix ? 1 : groups)) {
    return InvalidArgumentError(absl::StrCat(
        "gemm of groups: a is ", extents_of(x.a), ", b ", extents_of(x.b), " and d ",
        extents_of(x.d), ", and ", groups, " groups are told of; b takes n x k for each group, ",
        in_one_matrix ? "a m x k and d m x n" : "and so does a m x k and d m x n",
        ", with k above 0"));
  }
  // The rows are not known here: the model of the device takes groups to be of equal size.
  const int64_t rows = x.a.extents[0];
  const int64_t shared = in_one_matrix && groups > 0 ? (rows + groups - 1) / groups : rows;
  return with_strides({.m = shared,
                       .n = x.b.extents[0],
                       .k = x.a.extents[1],
                       .batches = groups,
                       .ends_inside = true,
                       .unknown_rows = in_one_matrix},
                      x);
}

Status no_workspace(const GemmConfig& config) {
  return InvalidArgumentError(
      absl::StrCat("gemm: the configuration ", config.to_string(),
                   " brings sums together in a workspace; gemm_stream_k_by() takes one"));
}

}  // namespace detail

namespace {

struct Scaled {
  Fragment<float> operator()(const GemmPart&, const Fragment<float>& sums, Float alpha) const {
    return sums * alpha;
  }
};
template <class D>
struct Added {
  Fragment<float> operator()(const GemmPart& part, const Fragment<float>& sums, Float alpha,
                             Float beta, Tensor<const D, 3> c) const {
    return sums * alpha + part.of(c) * beta;
  }
};

Status wrong_addend(const int64_t* c, const int64_t* d) {
  return InvalidArgumentError(absl::StrCat("gemm: c is ", c[0], " x ", c[1], " and d ", d[0], " x ",
                                           d[1], "; both are m x n"));
}

}  // namespace

#define HEDDLE_DEFINE_GEMM(T, D)                                                                   \
  Status gemm(const Stream& stream, const TensorRef<const T, 2>& a,                                \
              const TensorRef<const T, 2>& b, const TensorRef<D, 2>& d) {                          \
    return gemm_with(stream, PlainSums(), a, b, d);                                                \
  }                                                                                                \
  Status gemm(const Stream& stream, const TensorRef<const T, 3>& a,                                \
              const TensorRef<const T, 3>& b, const TensorRef<D, 3>& d) {                          \
    return gemm_with(stream, PlainSums(), a, b, d);                                                \
  }                                                                                                \
  Status gemm(const Stream& stream, const TensorRef<const T, 2>& a,                                \
              const TensorRef<const T, 2>& b, const TensorRef<D, 2>& d, const GemmScale& scale,    \
              const TensorRef<const D, 2>& c) {                                                    \
    if (scale.beta == 0) return gemm_with(stream, Scaled(), a, b, d, scale.alpha);                 \
    if (c.extents[0] != d.extents[0] || c.extents[1] != d.extents[1]) {                            \
      return wrong_addend(c.extents, d.extents);                                                   \
    }                                                                                              \
    return gemm_with(stream, Added<D>(), a, b, d, scale.alpha, scale.beta, detail::in_batches(c)); \
  }                                                                                                \
  static_assert(true)
HEDDLE_GEMM_TYPES(HEDDLE_DEFINE_GEMM);

}  // namespace heddle::kernels
