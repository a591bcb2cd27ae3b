// What the lanes of a warp touch together: sectors of global memory, and conflicts of shared memory's banks.
//
//   WarpAccesses accesses(kernel);
//   if (const auto access = accesses.of(load)) access->transactions   // 8 where 4 would do
//
// Offsets are computed for the 32 lanes of the block's first warp, in the first trip of the loops around the access.
// Numbers that all lanes share and only the launch knows, such as a row's pitch, are taken to be a multiple of 4096;
// arrays and tensors begin at multiples of 128 bytes. Lanes that a branch leaves out touch nothing. What depends on data, in
// memory or by such a branch, is not known.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

struct WarpAccess {
  Space space{};
  int lane_bytes = 0;  // of each lane
  // Global memory: sectors of 32 bytes. Shared memory: rounds of its 32 banks, one more for each conflict.
  int transactions = 0;
  int fewest = 0;  // that the bytes which are touched could have come in

  bool operator==(const WarpAccess&) const = default;
};

// Whether an op reads or writes a view's memory where each lane says: loads, stores, atomics, matrices.
bool is_lane_access(const Op& op);

class WarpAccesses {
 public:
  explicit WarpAccesses(const Kernel& kernel) : kernel_(kernel), uniformity_(kernel) {}

  // Of such an op; nullopt for others, for other spaces, and where the lanes' places are not known.
  std::optional<WarpAccess> of(const Op& op);

 private:
  using Lanes = std::array<int64_t, 32>;

  std::optional<Lanes> lanes(ValueId value, int depth = 0);
  std::optional<Lanes> compute(ValueId value, int depth);
  std::optional<Lanes> bytes_into_root(ValueId view, int depth);
  // The lanes that come to a region, a bit each; nullopt where that depends on data.
  std::optional<uint32_t> lanes_of(RegionId region);

  const Kernel& kernel_;
  Uniformity uniformity_;
  IdMap<ValueId, int> memo_{-1};  // in results_
  std::vector<std::optional<Lanes>> results_;
};

}  // namespace heddle::ir
