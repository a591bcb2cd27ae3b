// How the rows of a matrix are dealt out to threads: kernels that read each row once and keep it in registers.
//
//   const RowDeal deal = deal_rows(rows_of(x, y), device);
//   kernel(deal).launch(stream, row_shape(deal, rows), x, y);
//
// A row belongs to a few lanes of a warp, to a block, or to a cluster of blocks. Short rows are held in registers;
// longer ones in shared memory, which is loaded without registers, so that more loads are under way; rows that not
// even a cluster's holds are read once for each pass over them. Kernels that read a row once, and write little, hold
// none, and deal long rows out to as many blocks as the device needs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/kernels/vectors.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// What a thread, a block and a cluster have of the rows of a matrix.
struct RowDeal {
  int threads = 32;     // of a block that share a row: 1, 2, 4, … 32, or a multiple of 32
  int rows = 1;         // of a block; more than one where a warp or less shares a row
  int blocks = 1;       // that share a row: of a cluster, or
  bool apart = false;   // of none, and each has a result of its own
  int vectors = 1;      // of a row that a thread has in registers at once: a part
  int width = 1;        // elements of a vector
  bool peeled = false;  // vectors begin where memory is aligned, behind the row's first elements
  bool whole = false;   // every thread's vectors lie in the row
  // Of a row in registers: so many of each thread's vectors lie in every row, its first ones. 0 is always true.
  int whole_vectors = 0;
  int kept = 0;  // parts of a thread that wait in shared memory; 0: its only one in registers
  bool in_parts = false;  // a row is more than either holds
  bool floods = false;    // the launch floods L2 (kernels/l2.h); no part of what is chosen
  // What tells apart the deals of one kind of rows: "threads=32 rows=4 blocks=1 vectors=2 kept=0".
  std::string to_string() const;
  friend bool operator==(const RowDeal&, const RowDeal&) = default;
};

// Rows of a matrix in memory.
struct RowsOf {
  int64_t columns;    // elements of a row
  int element_bytes;  // bytes of an element
  bool aligned;       // every row begins where a vector may
  bool alike;         // in all matrices rows begin equally many elements behind such places
  int inputs = 1;     // matrices that are read
  int64_t rows = 0;   // of elements that are read once; 0: they are read more often
};

// The rows of matrices that are read and written together, of which one is read: all of as many columns. Vectors have as many
// elements as 16 bytes have of the largest ones, and smaller elements of other matrices are aligned where theirs begin so.
template <class... T>
RowsOf rows_of(const TensorRef<T, 2>&... matrices);

// How rows of this kind are best dealt out on a device.
RowDeal deal_rows(const RowsOf& rows, const DeviceInfo& device);

// So many rows of a kind: what deals are measured for (runtime/tuning/tunable.h).
struct RowsProblem {
  RowsOf of;     // the kind
  int64_t rows;  // how many
  // What tells problems apart: "64x1000 of 4 bytes, 2 inputs, unaligned".
  std::string to_string() const;
};
// All deals that are worth measuring, deal_rows()'s among them; of rows that are read once, that one alone.
std::vector<RowDeal> row_deals(const RowsProblem& problem, const DeviceInfo& device);

// The deal of rows that the registers of a cluster hold, if the largest one's do: with fewer blocks of a multiprocessor than
// rows in shared memory have, but more of a row on its way at once.
std::optional<RowDeal> deal_in_registers(const RowsOf& rows, const DeviceInfo& device);

// Blocks of a cluster, at most; 1 where a device has none.
int most_blocks(const DeviceInfo& device);

// Shared memory of a block that keeps rows of so many matrices there, at most.
int64_t shared_bytes(const RowDeal& deal, int inputs);

// Says of a deal whether all vectors lie in every row, and how many of each thread's do.
void find_whole(const RowsOf& rows, RowDeal& deal);
// Says of a deal whether its launch floods L2.
inline void set_floods(bool floods, RowDeal& deal) { deal.floods = floods; }

// Results that a row has: one, or one of each block.
inline int results_of_row(const RowDeal& deal) { return deal.apart ? deal.blocks : 1; }

// The launch for so many rows.
LaunchShape row_shape(const RowDeal& deal, int64_t rows);

// --- implementation ---

template <class... T>
RowsOf rows_of(const TensorRef<T, 2>&... matrices) {
  RowsOf all{.columns = 0, .element_bytes = 1, .aligned = true, .alike = true};
  uint64_t first[2] = {0, 0};
  bool any = false;
  constexpr uint64_t kLargest = std::max({sizeof(T)...}), kWidth = kVectorBytes / kLargest;
  const auto add = [&](const auto& matrix, uint64_t bytes) {
    const uint64_t start = reinterpret_cast<uint64_t>(matrix.data) / bytes % kWidth,
                   pitch = static_cast<uint64_t>(matrix.strides[0]) % kWidth;
    const bool dense = matrix.strides[1] == 1;
    all.columns = matrix.extents[1];
    all.element_bytes = static_cast<int>(kLargest);
    all.aligned = all.aligned && dense && start == 0 && (pitch == 0 || matrix.extents[0] <= 1);
    all.alike = all.alike && dense && (!any || (start == first[0] && pitch == first[1]));
    first[0] = start, first[1] = pitch, any = true;
  };
  (add(matrices, sizeof(T)), ...);
  return all;
}

}  // namespace heddle::kernels
