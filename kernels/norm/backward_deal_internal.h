// How the rows of norms' backward passes are dealt out: in three ways. Internal to the norms.
#pragma once

#include <string>
#include <vector>

#include "heddle/kernels/rows/turn_deal.h"

namespace heddle::kernels {

// What is launched: one pass over x and dy where rows are taken in turn, so that threads keep the sums of their columns; else
// two passes, of rows and of columns.
struct BackwardDeal : TurnDeal {
  // As TurnDeal's, or "apart".
  std::string to_string() const { return in_turn() ? TurnDeal::to_string() : "apart"; }
};

// Rows of x, dy and dx.
struct BackwardProblem {
  RowsProblem rows;
  int sums;  // of a column: 1, or 2 where rows are centred
  // As RowsProblem's.
  std::string to_string() const { return rows.to_string(); }
};

// All deals that are worth measuring; and the one that is launched where none was.
std::vector<BackwardDeal> backward_deals(const BackwardProblem& problem, const DeviceInfo& device);
BackwardDeal deal_backward(const BackwardProblem& problem, const DeviceInfo& device);

}  // namespace heddle::kernels
