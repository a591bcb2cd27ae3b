// How the rows of norms are dealt out. Internal to the norms.
#pragma once

#include <string>
#include <vector>

#include "heddle/kernels/rows/turn_deal.h"

namespace heddle::kernels {

// Rows of x, of y and, where they are sums, of a residual and of these.
struct NormProblem {
  RowsProblem rows;
  bool centred;
  // As RowsProblem's.
  std::string to_string() const { return rows.to_string(); }
};

// All deals that are worth measuring; and the one that is launched where none was. Each row is taken once (deal.h); or blocks take
// them in turn, from shared memory, which leaves the weights in registers: these cost much where rows begin at odd places, so that
// they are loaded element by element.
std::vector<TurnDeal> norm_deals(const NormProblem& problem, const DeviceInfo& device);
TurnDeal deal_norm(const NormProblem& problem, const DeviceInfo& device);

}  // namespace heddle::kernels
