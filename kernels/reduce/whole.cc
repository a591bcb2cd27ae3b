// Sums, products, extrema and places of integers.
#include "heddle/kernels/reduce/reducer_kernels_internal.h"

namespace heddle::kernels {

HEDDLE_REDUCE_WHOLE(WholeValues)
HEDDLE_REDUCE_WHOLE(WholePlaces)

}  // namespace heddle::kernels
