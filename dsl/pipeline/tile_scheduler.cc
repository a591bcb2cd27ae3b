#include "heddle/dsl/pipeline/tile_scheduler.h"

#include "heddle/dsl/math/divmod.h"
#include "heddle/dsl/math/integer.h"

namespace heddle {

// The host knows all divisors before a launch: the last band has another height than the others.
Tile PersistentTiles::at(const Int& i) const {
  const auto [batch, in_batch] = FastDivmod(max(rows_ * columns_, 1)).divmod(i);
  const auto [band, in_band] = FastDivmod(max(columns_ * order_.band, 1)).divmod(in_batch);
  const Int first = band * order_.band;
  const Int last_height = rows_ % order_.band;
  const Bool is_last = rows_ - first < order_.band;
  const auto [full_column, full_row] = FastDivmod(order_.band).divmod(in_band);
  const auto [last_column, last_row] = FastDivmod(max(last_height, 1)).divmod(in_band);
  return {first + select(is_last, last_row, full_row), select(is_last, last_column, full_column),
          batch};
}

}  // namespace heddle
