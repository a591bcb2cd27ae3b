// How the rows of norms' backward passes are dealt out: in three ways. Internal to the norms.
#pragma once

#include <string>
#include <vector>

#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// One pass over x and dy where threads have the same columns of all rows and keep the sums of these, in registers:
//
//   kHeld    a block has a row, or several short ones, in registers
//   kStaged  a block or a cluster has rows in shared memory, which bulk copies bring (sm_90)
//
// and two passes, of rows and of columns, where neither can be:
//
//   kApart
enum class BackwardWay { kHeld, kStaged, kApart };

// What is launched.
struct BackwardDeal {
  BackwardWay way = BackwardWay::kApart;
  RowDeal rows{};        // but of kApart
  int stages = 0;        // of kStaged: rows that are there, or on their way
  int of_processor = 1;  // blocks that a multiprocessor has at once
  // "held threads=512 rows=1 blocks=1 vectors=2 kept=0, 2 a multiprocessor", "staged 3 threads=…".
  std::string to_string() const;
  friend bool operator==(const BackwardDeal&, const BackwardDeal&) = default;
};

// Rows of x, dy and dx.
struct BackwardProblem {
  RowsProblem rows;
  int sums;  // of a column: 1, or 2 where rows are centred
  // As RowsProblem's.
  std::string to_string() const;
};

// All deals that are worth measuring; and the one that is launched where none was.
std::vector<BackwardDeal> backward_deals(const BackwardProblem& problem, const DeviceInfo& device);
BackwardDeal deal_backward(const BackwardProblem& problem, const DeviceInfo& device);

// Blocks, or clusters, of a launch, each of which takes several rows: so many that those of a peeled deal have rows that begin
// equally far behind aligned places.
int64_t backward_groups(const BackwardDeal& deal, int64_t rows, const DeviceInfo& device);

}  // namespace heddle::kernels
