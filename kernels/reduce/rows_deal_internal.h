// How rows whose elements lie side by side are dealt out to be reduced. Internal to the kernels.
#pragma once

#include <string>
#include <vector>

#include "heddle/kernels/reduce/reduce.h"
#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// By number: "sum", "mean", ….
const std::vector<std::string>& reduction_names();

// Rows that a block copies to shared memory, one for each thread; 0 threads: rows are dealt out by a RowDeal.
struct TogetherDeal {
  int columns = 1;  // of a row
  int threads = 0;
  friend bool operator==(const TogetherDeal&, const TogetherDeal&) = default;
};

// One of both.
struct RowsReduceDeal {
  RowDeal rows;
  TogetherDeal together;
  // "together threads=128", or the RowDeal's.
  std::string to_string() const;
  friend bool operator==(const RowsReduceDeal&, const RowsReduceDeal&) = default;
};

// A reduction of rows.
struct RowsReduceProblem {
  RowsProblem rows;
  bool packed;  // rows lie one behind the other, and the first one begins where an access does
  Reduction reduction;
  // "argmax of 64x31 of 2 bytes, unaligned, packed".
  std::string to_string() const;
};

// All deals that are worth measuring; and what is launched where none was.
std::vector<RowsReduceDeal> rows_reduce_deals(const RowsReduceProblem& problem,
                                              const DeviceInfo& device);
RowsReduceDeal deal_rows_reduce(const RowsReduceProblem& problem, const DeviceInfo& device);

}  // namespace heddle::kernels
