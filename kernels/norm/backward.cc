#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/map/copy.h"
#include "heddle/kernels/norm/arguments_internal.h"
#include "heddle/kernels/norm/backward_apart_internal.h"
#include "heddle/kernels/norm/backward_deal_internal.h"
#include "heddle/kernels/norm/backward_held_internal.h"
#include "heddle/kernels/norm/backward_staged_internal.h"
#include "heddle/kernels/norm/norm.h"

namespace heddle::kernels {
namespace {

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
    const BackwardProblem problem{{of, rows()}, kWeights};
    const DeviceInfo& device = stream_.device().info();
    static const runtime::Tunable<BackwardProblem, BackwardDeal> tunable(kName, backward_deals,
                                                                         deal_backward);
    BackwardDeal deal = tunable.choose(problem, device);
    set_floods(floods_l2(stored_bytes(dx_), device), deal);
    if (deal.in_turn()) return run_at_once(deal);
    if (!is_in_place()) return run_apart(dx_);
    // x and dy are read again behind dx.
    const StatusOr<Buffer> memory = stream_.allocate(rows() * columns() * sizeof(T));
    if (!memory.ok()) return memory.status();
    const auto apart = as_tensor<T>(*memory, {rows(), columns()});
    if (Status s = run_apart(apart); !s.ok()) return s;
    return copy(stream_, TensorRef<const T, 2>(apart), dx_);
  }

 private:
  static constexpr int kWeights = WeightSums<T, kCentred>::kWeights;
  // Vectors of columns, which are written last.
  Status check_memory(const char* kernel, const char* name, const T* data) const {
    if (data != nullptr || columns() <= 0) return OkStatus();
    return InvalidArgumentError(absl::StrCat(kernel, ": ", name, " is a null pointer"));
  }

  int64_t rows() const { return x_.extents[0]; }
  int64_t columns() const { return x_.extents[1]; }

  bool is_in_place() const { return x_.data == dx_.data || dy_.data == dx_.data; }

  Status run_at_once(const TurnDeal& deal) const {
    static const auto kernels =
        kernel_family(kCentred ? "layer_norm_backward(x, w, dy, dx, sums, eps)"
                               : "rms_norm_backward(x, w, dy, dx, sums, eps)",
                      [](Host<TurnDeal> how, Tensor<const T, 2> x, Tensor<const T, 1> w,
                         Tensor<const T, 2> dy, Tensor<T, 2> dx, Tensor<float, 3> sums, Float eps) {
                        if (how.stages > 0) {
                          staged_body<T, kCentred>(how, x, w, dy, dx, sums, eps);
                        } else {
                          held_body<T, kCentred>(how, x, w, dy, dx, sums, eps);
                        }
                      });
    const DeviceInfo& device = stream_.device().info();
    const int64_t groups = turn_groups(deal, rows(), device);
    return with_sums(std::max<int64_t>(groups, 1), [&](const TensorRef<float, 3>& sums) {
      return kernels(deal).launch(stream_, turn_shape(deal, rows(), device), x_, w_, dy_, dx_, sums,
                                  eps_);
    });
  }

  Status run_apart(const TensorRef<T, 2>& to) const {
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
    RowsOf of = rows_of(x_, dy_, to);
    of.inputs = 2;
    if (Status s = launch_rows(stream_, of_rows, of, x_, w_, dy_, to, scales, eps_); !s.ok())
      return s;
    const auto as_columns = [&](const TensorRef<const T, 2>& matrix) {
      return columns_at_once(
          seen_as<3>(matrix, {1, rows(), columns()}, {0, matrix.strides[0], matrix.strides[1]}));
    };
    const ColumnsOf all{1, rows(), columns(), std::min(as_columns(x_), as_columns(dy_))};
    const DeviceInfo& device = stream_.device().info();
    const ColumnDeal deal = deal_columns(all, device);
    const int64_t split = stretches(all, deal, device);
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
