#include "heddle/kernels/reduce/reduce.h"

#include "absl/strings/str_cat.h"
#include "heddle/kernels/reduce/reducer_internal.h"

namespace heddle::kernels {
namespace {

bool is_place(Reduction r) { return r == Reduction::kArgmax || r == Reduction::kArgmin; }
bool is_extremum(Reduction r) {
  return is_place(r) || r == Reduction::kMax || r == Reduction::kMin;
}

// What is wrong with reducing `count` elements to each of those of y.
template <class T, class R>
Status check(Reduction reduction, int64_t count, bool any) {
  if constexpr (std::is_integral_v<T>) {
    if (reduction == Reduction::kMean || reduction == Reduction::kNorm2 ||
        reduction == Reduction::kVar) {
      return InvalidArgumentError(
          "reduce: mean, norm2 and var are of floats; fix: cast the integers first (map/copy.h)");
    }
  } else if (is_place(reduction) != std::is_same_v<R, int64_t>) {
    return InvalidArgumentError(is_place(reduction)
                                    ? "reduce: places are integers; fix: y of int64_t"
                                    : "reduce: only places are integers; fix: y of float");
  }
  if (any && count == 0 && is_extremum(reduction)) {
    return InvalidArgumentError("reduce: of no elements none is the largest or smallest");
  }
  if (is_place(reduction) && count > kMostCounted) {
    return InvalidArgumentError(
        absl::StrCat("reduce: ", count, " elements; places are counted up to ", kMostCounted));
  }
  return OkStatus();
}

// f(reducer) of the kind that the reduction is of.
template <class T, class R, class F>
Status with_reducer(const Stream& stream, Reduction reduction, F f) {
  if constexpr (std::is_integral_v<T>) {
    return is_place(reduction) ? f(Reducer<IntegerPlaces>(stream, reduction))
                               : f(Reducer<IntegerValues>(stream, reduction));
  } else if constexpr (std::is_same_v<R, int64_t>) {
    return f(Reducer<Places>(stream, reduction));
  } else if (reduction == Reduction::kVar) {
    return f(Reducer<Spread>(stream, reduction));
  } else {
    return f(Reducer<Values>(stream, reduction));
  }
}

template <class T, class R>
Status reduce_middle(const Stream& stream, Reduction reduction, const TensorRef<const T, 3>& x,
                     const TensorRef<R, 2>& y) {
  if (y.extents[0] != x.extents[0] || y.extents[1] != x.extents[2]) {
    return InvalidArgumentError(absl::StrCat(
        "reduce: x is ", x.extents[0], " × ", x.extents[1], " × ", x.extents[2], " and y ",
        y.extents[0], " × ", y.extents[1], "; y has the first and the last extent of x"));
  }
  const bool any = y.extents[0] * y.extents[1] > 0;
  if (Status s = check<T, R>(reduction, x.extents[1], any); !s.ok()) return s;
  return with_reducer<T, R>(stream, reduction,
                            [&](const auto& reducer) { return reducer.middle(x, y); });
}

template <class T, class R>
Status reduce_matrix(const Stream& stream, Reduction reduction, Along along,
                     const TensorRef<const T, 2>& x, const TensorRef<R, 1>& y) {
  const int64_t rows = x.extents[0], columns = x.extents[1];
  const int64_t wanted = along == Along::kLast ? rows : along == Along::kFirst ? columns : 1;
  if (y.extents[0] != wanted) {
    return InvalidArgumentError(absl::StrCat("reduce: x is ", rows, " × ", columns, " and y has ",
                                             y.extents[0], " elements; fix: ", wanted));
  }
  const TensorRef<R, 2> results = seen_as<2>(y, {1, wanted}, {0, y.strides[0]});
  if (along == Along::kAll) {
    if (Status s = check<T, R>(reduction, rows * columns, true); !s.ok()) return s;
    return with_reducer<T, R>(stream, reduction,
                              [&](const auto& reducer) { return reducer.all(x, results); });
  }
  const int combined = along == Along::kLast ? 1 : 0;
  return reduce_middle(stream, reduction,
                       seen_as<3>(x, {1, x.extents[combined], wanted},
                                  {0, x.strides[combined], x.strides[1 - combined]}),
                       results);
}

}  // namespace

#define HEDDLE_FOR(T, R)                                                                      \
  template <>                                                                                 \
  Status reduce<T>(const Stream& stream, Reduction reduction, const TensorRef<const T, 3>& x, \
                   const TensorRef<R, 2>& y) {                                                \
    return reduce_middle(stream, reduction, x, y);                                            \
  }                                                                                           \
  template <>                                                                                 \
  Status reduce<T>(const Stream& stream, Reduction reduction, Along along,                    \
                   const TensorRef<const T, 2>& x, const TensorRef<R, 1>& y) {                \
    return reduce_matrix(stream, reduction, along, x, y);                                     \
  }
HEDDLE_FOR(float, float)
HEDDLE_FOR(half, float)
HEDDLE_FOR(bfloat16, float)
HEDDLE_FOR(float, int64_t)
HEDDLE_FOR(half, int64_t)
HEDDLE_FOR(bfloat16, int64_t)
HEDDLE_FOR(int32_t, int64_t)
HEDDLE_FOR(uint8_t, int64_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
