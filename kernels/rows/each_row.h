// What kernels of rows are written with. Internal to the kernels.
//
//   each_row(deal, x, [&](const RowThreads& threads, const auto& row) {
//     const RowPart<T> mine = row.load(0, T(0));
//     const Float total = threads.reduce(mine.template fold<float>(…), plus());
//     Row<T>(threads, y).store(0, mine.template map<T>(…));
//   });
//
// and launched by launch_rows(). softmax/softmax.cc and norm/norm.cc are examples.
#pragma once

#include "absl/strings/str_cat.h"
#include "heddle/kernels/rows/row.h"

namespace heddle::kernels {

// The rows that a block has a share of, one after the other: while it works on one, the copy engine brings its
// vectors of the next.
template <class T>
class CopiedRows {
 public:
  // With the block's copy and its barrier in shared memory; all threads of the block.
  CopiedRows(const RowDeal& deal, const Tensor<const T, 2>& x)
      : deal_(deal), x_(x), vectors_(int64_t{deal.threads} * deal.vectors * deal.width), full_(1) {
    If(thread_idx.x == 0, [&] {
      full_.init(0, 1);
      fence_mbarrier_init();
    });
    sync_threads();
  }

  // Begins to copy a row, if there is one.
  void start(const Int& row) const {
    If(thread_idx.x == 0 && row < x_.shape(0), [&] {
      const RowThreads threads(deal_, row, x_.shape(0));
      const Row<const T> in(threads, x_);
      const Int count = in.count(0) * deal_.width;
      full_.expect_tx(0, cast<uint32_t>(count * static_cast<int>(sizeof(T))));
      If(count > 0, [&] {
        const auto from = x_.at(row, in.column(in.begin(0)));
        bulk_load(vectors_.at(0), from, count, full_, 0);
      });
    });
  }

  // A row that is being copied, as the trip's number says which. Once it is loaded the next one is begun.
  class Copied : public Row<const T> {
   public:
    // The row of `threads`, and the one that follows.
    Copied(const CopiedRows& rows, const RowThreads& threads, const Int& trip, const Int& next)
        : Row<const T>(threads, rows.x_), rows_(rows), trip_(trip), next_(next) {}
    // What this thread has of it; once.
    RowPart<T> load(const Int&, const T& outside) const {
      rows_.full_.wait(0, cast<uint32_t>(trip_ & 1));
      const RowPart<T> part = Row<const T>::load(rows_.vectors_, outside);
      fence_async();
      sync_threads();
      rows_.start(next_);
      return part;
    }

   private:
    const CopiedRows& rows_;
    const Int trip_, next_;
  };

 private:
  const RowDeal deal_;
  const Tensor<const T, 2> x_;
  const Shared<T> vectors_;
  const Mbarrier full_;
};

// body(threads, row) for each row that this thread has a share of. Of a row it loads part 0 once, and other parts as
// often as it likes.
template <class T, class Body>
void each_row(const RowDeal& deal, const Tensor<const T, 2>& x, Body body) {
  const Int rows = x.shape(0);
  const Int first = deal.blocks > 1 ? block_idx.x / deal.blocks : Int(block_idx.x);
  if (!deal.copied) {
    const RowThreads threads(deal, deal.rows > 1 ? first * deal.rows + thread_idx.y : first, rows);
    return body(threads, Row<const T>(threads, x));
  }
  const CopiedRows<T> copied(deal, x);
  const Int clusters = grid_dim.x / deal.blocks;
  copied.start(first);
  For(range(first, rows, clusters), Int(0), [&](const Int& row, const Int& trip) {
    const RowThreads threads(deal, row, rows);
    body(threads, typename CopiedRows<T>::Copied(copied, threads, trip, row + clusters));
    return trip + 1;
  });
}

// kInvalidArgument where two matrices, x and y, have not the same extents.
template <class T, class U>
Status check_same_extents(const char* kernel, const TensorRef<T, 2>& x, const TensorRef<U, 2>& y) {
  if (x.extents[0] == y.extents[0] && x.extents[1] == y.extents[1]) return OkStatus();
  const auto text = [](const auto& a) { return absl::StrCat(a.extents[0], " × ", a.extents[1]); };
  return InvalidArgumentError(
      absl::StrCat(kernel, ": x is ", text(x), " and y ", text(y), "; both need the same extents"));
}

// Launches the family's kernel for how rows are best dealt out, x being the first of its arguments; nothing where there are no
// elements. kInvalidArgument for rows of more than 2^31 - 65536 elements.
template <class Family, class T, class... Rest>
Status launch_rows(const Stream& stream, const Family& family, const RowsOf& of,
                   const TensorRef<T, 2>& x, const Rest&... rest) {
  constexpr int64_t kMostColumns =
      (int64_t{1} << 31) - 65536;  // vectors of the last part are counted in 32 bits
  const int64_t rows = x.extents[0];
  if (rows == 0 || of.columns == 0) return OkStatus();
  if (of.columns > kMostColumns) {
    return InvalidArgumentError(absl::StrCat(
        "rows of ", of.columns, " elements; kernels of rows take at most ", kMostColumns));
  }
  const DeviceInfo& device = stream.device().info();
  const RowDeal deal = deal_rows(of, device);
  return family(deal).launch(stream, row_shape(deal, rows, device), x, rest...);
}

}  // namespace heddle::kernels
