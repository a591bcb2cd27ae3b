#include <algorithm>
#include <bit>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/map/copy.h"
#include "heddle/kernels/norm/arguments_internal.h"
#include "heddle/kernels/norm/norm.h"
#include "heddle/kernels/norm/norm_rows_internal.h"
#include "heddle/kernels/reduce/columns_internal.h"
#include "heddle/kernels/reduce/reducer_internal.h"
#include "heddle/kernels/rows/row_kernel.h"

namespace heddle::kernels {
namespace {

// Rows that a block holds in registers: so many elements of x and of dy a thread, besides those of the next row and the sums
// of their columns, of so many threads at most. Those that a multiprocessor has at once, for their registers; and those of
// a block that has several rows.
constexpr int kHeldElements = 8, kMostThreads = 1024, kResidentThreads = 1024, kSharedThreads = 128;
// Elements of a row that are loaded one by one, at most: of 32 bits and of 16.
constexpr int kMostSingles = 1024, kMostNarrowSingles = 128;

// Two sums that are formed together.
struct TwoSums {
  Float first, second;
};
struct AddSums {
  TwoSums operator()(const TwoSums& a, const TwoSums& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

// Of a row: of squares of x - mean, of s, and of s (x - mean), which store_gradient() speaks of.
struct RowSums {
  Float squares, of_s, of_products;
};
struct AddRowSums {
  RowSums operator()(const RowSums& a, const RowSums& b) const {
    return {a.squares + b.squares, a.of_s + b.of_s, a.of_products + b.of_products};
  }
};

// The sum of all elements of a part.
inline Float sum_of(const RowPart<float>& part) {
  return part.template fold<float>([](const Fragment<float>& v) { return v; }, plus());
}

// A row's gradient. With s = w dy, dx = scale (s - mean of s - (x - mean) scale² (mean of s (x - mean))); where rows are not
// centred the means of s and x do not take part.
template <class T, bool kCentred>
RowScale store_gradient(const RowThreads& threads, const InputRow<T>& x, const InputRow<T>& dy,
                        const Tensor<const T, 1>& w, const Row<T>& dx, const Float& eps) {
  const Float n = cast<float>(x.columns());
  const auto scaled = [](const Fragment<T>& d, const Fragment<T>& by) {
    return wide(d) * wide(by);
  };
  // The mean first, and then what elements differ from it: a row is read once, or long ones again.
  const Float per_element = fast::rcp(n);
  const Float mean =
      kCentred ? threads.reduce(x.fold(
                                    Float(0),
                                    [&](const RowPart<T>& part) {
                                      return sum_of(part.template map<float>(
                                                 [](const Fragment<T>& v) { return wide(v); })) *
                                             per_element;
                                    },
                                    plus()),
                                plus())
               : Float(0);
  Var<float> squares(0.0f), of_s(0.0f), of_products(0.0f);
  x.each(
      [&](const Int& number, const RowPart<T>& part, const RowPart<T>& d) {
        const RowPart<float> s = d.template map<float>(scaled, dx.beside(w, number));
        const RowPart<float> apart = part.template map<float>(
            [&](const Fragment<T>& v) { return kCentred ? wide(v) - mean : wide(v); });
        const auto times = [](const Fragment<float>& a, const Fragment<float>& b) { return a * b; };
        const auto square = [](const Fragment<float>& a) { return a * a; };
        // What is outside the row is 0, and so counts where it is set apart from the mean.
        squares += kCentred ? apart.template fold_row<float>(square, plus(), Float(0))
                            : apart.template fold<float>(square, plus());
        if (kCentred) of_s += sum_of(s);
        of_products += sum_of(s.template map<float>(times, apart));
      },
      dy);
  const auto in_row = [&]() -> RowSums {
    if constexpr (kCentred) {
      return threads.reduce(RowSums{squares, of_s, of_products}, AddRowSums());
    } else {
      const TwoSums two = threads.reduce(TwoSums{squares, of_products}, AddSums());
      return {two.first, Float(0), two.second};
    }
  };
  const RowSums sums = in_row();
  const Float scale = fast::rsqrt(fast::div(sums.squares, n) + eps),
              mean_of_s = fast::div(sums.of_s, n),
              slope = fast::div(sums.of_products, n) * scale * scale;
  x.each(
      [&](const Int& number, const RowPart<T>& part, const RowPart<T>& d) {
        const auto gradient = [&](const Fragment<T>& v, const Fragment<T>& g,
                                  const Fragment<T>& by) {
          if constexpr (kCentred) {
            return ((scaled(g, by) - mean_of_s - (wide(v) - mean) * slope) * scale)
                .template as<T>();
          } else {
            return ((scaled(g, by) - wide(v) * slope) * scale).template as<T>();
          }
        };
        dx.store(number, part.template map<T>(gradient, d, dx.beside(w, number)));
      },
      dy);
  return {mean, scale};
}

// What a weight's gradient gets of a row's elements.
template <class T, bool kCentred>
Fragment<float> of_weight(const Fragment<T>& v, const Fragment<T>& d, const RowScale& row) {
  const Fragment<float> apart = kCentred ? wide(v) - row.mean : wide(v);
  return wide(d) * (apart * row.scale);
}

// What a thread has of the rows that come next.
template <class T>
class NextRows {
 public:
  // Of none where rows are not loaded ahead.
  NextRows(bool ahead, const RowPart<T>& first) : in_row_(first.in_row) {
    if (!ahead) return;
    for (const Fragment<T>& v : first.vectors) vectors_.emplace_back(v);
  }
  // These; `after` comes next.
  RowPart<T> take(const RowPart<T>& after) {
    RowPart<T> out{{}, in_row_};
    for (size_t v = 0; v < vectors_.size(); ++v) {
      out.vectors.push_back(vectors_[v]);
      vectors_[v] = after.vectors[v];
    }
    return out;
  }

 private:
  std::deque<Var<Fragment<T>>> vectors_;
  const std::vector<Bool> in_row_;
};

// Blocks that take one row, or some short ones, after the other, and keep the sums of their columns in registers: dx, and
// of each block the sums for w and, where rows are centred, for b.
template <class T, bool kCentred>
void held_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Tensor<const T, 1>& w,
               const Tensor<const T, 2>& dy, const Tensor<T, 2>& dx, const Tensor<float, 3>& sums,
               const Float& eps) {
  const T zero(0.0f);
  std::deque<Var<Fragment<float>>> of_w, of_b;
  for (int v = 0; v < deal.vectors; ++v) {
    of_w.emplace_back(Fragment<float>(deal.width, 0.0f));
    of_b.emplace_back(Fragment<float>(deal.width, 0.0f));
  }
  const Int rows = x.shape(0), groups = (rows + (deal.rows - 1)) / deal.rows;
  const auto threads_of = [&](const Int& group) {
    return RowThreads(deal, deal.rows > 1 ? group * deal.rows + thread_idx.y : group, rows);
  };
  const auto load = [&](const Tensor<const T, 2>& matrix, const Int& group) {
    const RowThreads threads = threads_of(min(group, groups - 1));
    return Row<const T>(threads, matrix).load(0, zero);
  };
  // The elements of the row, or rows, that come next are loaded while these are worked on, where they take few registers,
  // or no other block of the multiprocessor works meanwhile.
  const bool ahead = sizeof(T) == 2 || deal.threads > kResidentThreads / 2;
  NextRows<T> next_x(ahead, load(x, block_idx.x)), next_dy(ahead, load(dy, block_idx.x));
  For(range(block_idx.x, groups, grid_dim.x), [&](const Int& at) {
    const RowThreads threads = threads_of(at);
    const auto take = [&](const Tensor<const T, 2>& matrix, NextRows<T>& next) {
      return ahead ? next.take(load(matrix, at + grid_dim.x)) : load(matrix, at);
    };
    const RowPart<T> this_x = take(x, next_x), this_dy = take(dy, next_dy);
    const InputRow<T> in(threads, x, this_x), gradient(threads, dy, this_dy);
    const RowScale row =
        store_gradient<T, kCentred>(threads, in, gradient, w, Row<T>(threads, dx), eps);
    in.each(
        [&](const Int&, const RowPart<T>& part, const RowPart<T>& d) {
          // The last row, which others repeat, counts once.
          const auto counted = [&](const Fragment<float>& sum) {
            return deal.rows > 1 ? select(threads.exists(), sum, Fragment<float>(deal.width, 0.0f))
                                 : sum;
          };
          for (size_t v = 0; v < of_w.size(); ++v) {
            of_w[v] = of_w[v] + counted(of_weight<T, kCentred>(part.vectors[v], d.vectors[v], row));
            if (kCentred) of_b[v] = of_b[v] + counted(wide(d.vectors[v]));
          }
        },
        gradient);
  });
  const Int columns = x.shape(1);
  const int span = deal.threads * deal.vectors * deal.width;
  const Int own = deal.rows > 1 ? Int(thread_idx.y) : Int(0);
  Shared<float, 2> all({deal.rows, span});
  for (int which = 0; which < (kCentred ? 2 : 1); ++which) {
    auto& of = which == 0 ? of_w : of_b;
    for (int v = 0; v < deal.vectors; ++v) {
      const Int column = (thread_idx.x + v * deal.threads) * deal.width;
      for (int i = 0; i < deal.width; ++i) all(own, column + i) = of[v][i];
    }
    sync_threads();
    For(range(own * deal.threads + thread_idx.x, min(columns, span), deal.threads * deal.rows),
        [&](const Int& column) {
          std::vector<Float> of_rows;
          for (int r = 0; r < deal.rows; ++r) of_rows.push_back(all(r, column));
          sums(which, block_idx.x, column) = in_tree(of_rows, plus());
        });
    if (kCentred && which == 0) sync_threads();
  }
}

// Rows that a block does not hold: dx, and what each row is normalised by.
template <class T, bool kCentred>
void row_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Tensor<const T, 1>& w,
              const Tensor<const T, 2>& dy, const Tensor<T, 2>& dx, const Tensor<float, 2>& scales,
              const Float& eps) {
  const T zero(0.0f);
  of_row(deal, x, zero, [&](const RowThreads& threads, const InputRow<T>& in) {
    const InputRow<T> gradient(threads, dy, zero);
    const RowScale row =
        store_gradient<T, kCentred>(threads, in, gradient, w, Row<T>(threads, dx), eps);
    If(threads.is_first(), [&] {
      scales(0, threads.row()) = row.mean;
      scales(1, threads.row()) = row.scale;
    });
  });
}

// Of those, the sums of columns: a stretch of the rows is a block's.
struct ColumnSums {
  using State = TwoSums;
  using Stored = TwoSums;
  TwoSums nothing() const { return {0, 0}; }
  TwoSums merge(const TwoSums& a, const TwoSums& b) const { return AddSums()(a, b); }
};
template <class T, bool kCentred>
void column_body(const ColumnDeal& deal, const Tensor<const T, 2>& x, const Tensor<const T, 2>& dy,
                 const Tensor<const float, 2>& scales, const Tensor<float, 3>& sums) {
  const auto in = x.assume_aligned(), gradient = dy.assume_aligned();
  reduce_columns_body(
      deal, ColumnSums(), x.shape(0), x.shape(1), sums.shape(1),
      [&](const Int&, const Int& row, const Int& column, int loads) {
        std::vector<Fragment<float>> of_w, of_b;
        for (int u = 0; u < loads; ++u) {
          const Int at = row + u * deal.rows;
          const Fragment<T> d(gradient.elements(deal.width, at, column));
          const RowScale scale{kCentred ? Float(scales(0, at)) : Float(0), scales(1, at)};
          of_w.push_back(
              of_weight<T, kCentred>(Fragment<T>(in.elements(deal.width, at, column)), d, scale));
          of_b.push_back(wide(d));
        }
        const auto all = [](std::vector<Fragment<float>> of) {
          return in_tree(std::move(of),
                         [](const Fragment<float>& a, const Fragment<float>& b) { return a + b; });
        };
        const Fragment<float> first = all(of_w), second = all(of_b);
        StateRow<TwoSums> out;
        for (int i = 0; i < deal.width; ++i) out.push({first[i], kCentred ? second[i] : Float(0)});
        return out;
      },
      [&](const Int&, const Int& stretch, const Int& column, const TwoSums& of) {
        sums(0, stretch, column) = of.first;
        if (kCentred) sums(1, stretch, column) = of.second;
      });
}

// How a block holds rows of x and dy, if it can. In all rows a thread has the same columns, so that vectors begin with
// the rows, or are single elements, of short rows: of longer ones these would be too many accesses.
std::optional<RowDeal> held_deal(const RowsOf& of) {
  RowDeal deal;
  const int widest = kVectorBytes / of.element_bytes;
  deal.width = of.aligned && of.columns % widest == 0 ? widest : 1;
  const int singles = of.element_bytes < 4 ? kMostNarrowSingles : kMostSingles;
  if (deal.width == 1 && of.columns > singles) return std::nullopt;
  const int64_t vectors = of.columns / deal.width;
  const auto needed = [](int64_t n, int64_t each) { return (n + each - 1) / each; };
  const int64_t threads = needed(vectors, needed(kHeldElements, deal.width));
  if (threads > kMostThreads) return std::nullopt;
  deal.threads =
      static_cast<int>(threads <= kWarpSize ? std::bit_ceil(static_cast<uint64_t>(threads))
                                            : needed(threads, kWarpSize) * kWarpSize);
  deal.rows = threads <= kWarpSize ? kSharedThreads / deal.threads : 1;
  deal.vectors = static_cast<int>(needed(vectors, deal.threads));
  deal.whole = vectors == int64_t{deal.threads} * deal.vectors;
  return deal;
}

template <class T, bool kCentred>
class Backward {
 public:
  // db is that of layer_norm alone.
  Backward(const Stream& stream, const TensorRef<const T, 2>& x, const TensorRef<const T, 1>& w,
           const TensorRef<const T, 2>& dy, const TensorRef<T, 2>& dx, const TensorRef<T, 1>& dw,
           const TensorRef<T, 1>* db, float eps)
      : stream_(stream), x_(x), w_(w), dy_(dy), dx_(dx), dw_(dw), db_(db), eps_(eps) {}

  Status run() const {
    constexpr const char* kName = kCentred ? "layer_norm_backward" : "rms_norm_backward";
    if (Status s = check_same_extents(kName, {"x", x_}, {"dy", dy_}); !s.ok()) return s;
    if (Status s = check_same_extents(kName, {"x", x_}, {"dx", dx_}); !s.ok()) return s;
    if (Status s = check_columns(kName, "w", w_.extents[0], columns()); !s.ok()) return s;
    if (Status s = check_columns(kName, "dw", dw_.extents[0], columns()); !s.ok()) return s;
    if (db_ != nullptr) {
      if (Status s = check_columns(kName, "db", db_->extents[0], columns()); !s.ok()) return s;
    }
    if (Status s = check_rows_counted(kName, rows()); !s.ok()) return s;
    if (columns() < 0) {
      return InvalidArgumentError(absl::StrCat(kName, ": rows of ", columns(), " elements"));
    }
    if (Status s = check_memory(kName, "dw", dw_.data); !s.ok()) return s;
    if (db_ != nullptr) {
      if (Status s = check_memory(kName, "db", db_->data); !s.ok()) return s;
    }
    if (columns() == 0) return OkStatus();
    RowsOf of = rows_of(x_, dy_, dx_);
    of.inputs = 2;
    const auto held = held_deal(of);
    if (held) return run_held(*held);
    for (const auto& [name, matrix] : {std::pair("x", x_.data), std::pair("dy", dy_.data)}) {
      if (matrix != dx_.data || rows() == 0) continue;
      return InvalidArgumentError(
          absl::StrCat(kName, ": dx is the memory of ", name,
                       ", which is read again for the weights of rows of ", columns(),
                       " elements that begin where they do; give dx memory of its own"));
    }
    return run_apart(of);
  }

 private:
  static constexpr int kWeights = kCentred ? 2 : 1;
  // Vectors of columns, which are written last.
  Status check_memory(const char* kernel, const char* name, const T* data) const {
    if (data != nullptr || columns() <= 0) return OkStatus();
    return InvalidArgumentError(absl::StrCat(kernel, ": ", name, " is a null pointer"));
  }

  int64_t rows() const { return x_.extents[0]; }
  int64_t columns() const { return x_.extents[1]; }

  Status run_held(const RowDeal& deal) const {
    static const auto kernels =
        kernel_family(kCentred ? "layer_norm_backward(x, w, dy, dx, sums, eps)"
                               : "rms_norm_backward(x, w, dy, dx, sums, eps)",
                      [](Host<RowDeal> how, Tensor<const T, 2> x, Tensor<const T, 1> w,
                         Tensor<const T, 2> dy, Tensor<T, 2> dx, Tensor<float, 3> sums,
                         Float eps) { held_body<T, kCentred>(how, x, w, dy, dx, sums, eps); });
    const int64_t threads = deal.threads * deal.rows,
                  resident = stream_.device().info().sm_count *
                             std::max<int64_t>(kResidentThreads / threads, 1),
                  blocks = std::min((rows() + deal.rows - 1) / deal.rows, resident);
    return with_sums(std::max<int64_t>(blocks, 1), [&](const TensorRef<float, 3>& sums) {
      return kernels(deal).launch(stream_, {.grid = blocks, .block = {deal.threads, deal.rows}}, x_,
                                  w_, dy_, dx_, sums, eps_);
    });
  }

  Status run_apart(const RowsOf& of) const {
    static const auto of_rows =
        kernel_family(kCentred ? "layer_norm_backward_rows(x, w, dy, dx, scales, eps)"
                               : "rms_norm_backward_rows(x, w, dy, dx, scales, eps)",
                      [](Host<RowDeal> how, Tensor<const T, 2> x, Tensor<const T, 1> w,
                         Tensor<const T, 2> dy, Tensor<T, 2> dx, Tensor<float, 2> scales,
                         Float eps) { row_body<T, kCentred>(how, x, w, dy, dx, scales, eps); });
    static const auto of_columns =
        kernel_family(kCentred ? "layer_norm_backward_columns(x, dy, scales, sums)"
                               : "rms_norm_backward_columns(x, dy, scales, sums)",
                      [](Host<ColumnDeal> how, Tensor<const T, 2> x, Tensor<const T, 2> dy,
                         Tensor<const float, 2> scales, Tensor<float, 3> sums) {
                        column_body<T, kCentred>(how, x, dy, scales, sums);
                      });
    const StatusOr<Buffer> memory = stream_.allocate(2 * rows() * sizeof(float));
    if (!memory.ok()) return memory.status();
    const auto scales = as_tensor<float>(*memory, {int64_t{2}, rows()});
    if (Status s = launch_rows(stream_, of_rows, of, x_, w_, dy_, dx_, scales, eps_); !s.ok())
      return s;
    const auto as_columns = [&](const TensorRef<const T, 2>& matrix) {
      return columns_at_once(
          seen_as<3>(matrix, {1, rows(), columns()}, {0, matrix.strides[0], matrix.strides[1]}));
    };
    const ColumnsOf all{1, rows(), columns(), std::min(as_columns(x_), as_columns(dy_))};
    const ColumnDeal deal = deal_columns(all);
    const int64_t split = stretches(all, deal, stream_.device().info());
    return with_sums(split, [&](const TensorRef<float, 3>& sums) {
      return of_columns(deal).launch(stream_, column_shape(all, deal, split), x_, dy_,
                                     TensorRef<const float, 2>(scales), sums);
    });
  }

  // launch(sums) stores `count` sums of each column for each weight; these are added up and rounded.
  template <class Launch>
  Status with_sums(int64_t count, Launch launch) const {
    const StatusOr<Buffer> memory =
        stream_.allocate(kWeights * (count + 1) * columns() * sizeof(float));
    if (!memory.ok()) return memory.status();
    auto* const begin = reinterpret_cast<float*>(static_cast<uintptr_t>(memory->address()));
    const TensorRef<float, 3> sums(begin, {kWeights, count, columns()});
    const TensorRef<float, 2> all(begin + kWeights * count * columns(), {kWeights, columns()});
    if (rows() == 0) {
      if (Status s = fill(stream_, 0.0f, all); !s.ok()) return s;
    } else {
      if (Status s = launch(sums); !s.ok()) return s;
      if (Status s = reduce(stream_, Reduction::kSum, TensorRef<const float, 3>(sums), all);
          !s.ok()) {
        return s;
      }
    }
    const auto of_weight = [&](int which) {
      return TensorRef<const float, 1>(all.data + which * columns(), {columns()});
    };
    if (Status s = cast(stream_, of_weight(0), dw_); !s.ok()) return s;
    return db_ == nullptr ? OkStatus() : cast(stream_, of_weight(1), *db_);
  }

  const Stream& stream_;
  const TensorRef<const T, 2>& x_;
  const TensorRef<const T, 1>& w_;
  const TensorRef<const T, 2>& dy_;
  const TensorRef<T, 2>& dx_;
  const TensorRef<T, 1>& dw_;
  const TensorRef<T, 1>* const db_;
  const float eps_;
};

}  // namespace

template <class T>
Status rms_norm_backward(const Stream& stream, const TensorRef<const T, 2>& x,
                         const TensorRef<const T, 1>& w, const TensorRef<const T, 2>& dy,
                         const TensorRef<T, 2>& dx, const TensorRef<T, 1>& dw, float eps) {
  return Backward<T, false>(stream, x, w, dy, dx, dw, nullptr, eps).run();
}
template <class T>
Status layer_norm_backward(const Stream& stream, const TensorRef<const T, 2>& x,
                           const TensorRef<const T, 1>& w, const TensorRef<const T, 2>& dy,
                           const TensorRef<T, 2>& dx, const TensorRef<T, 1>& dw,
                           const TensorRef<T, 1>& db, float eps) {
  return Backward<T, true>(stream, x, w, dy, dx, dw, &db, eps).run();
}

#define HEDDLE_FOR(T)                                                                              \
  template Status rms_norm_backward<T>(const Stream&, const TensorRef<const T, 2>&,                \
                                       const TensorRef<const T, 1>&, const TensorRef<const T, 2>&, \
                                       const TensorRef<T, 2>&, const TensorRef<T, 1>&, float);     \
  template Status layer_norm_backward<T>(const Stream&, const TensorRef<const T, 2>&,              \
                                         const TensorRef<const T, 1>&,                             \
                                         const TensorRef<const T, 2>&, const TensorRef<T, 2>&,     \
                                         const TensorRef<T, 1>&, const TensorRef<T, 1>&, float);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
