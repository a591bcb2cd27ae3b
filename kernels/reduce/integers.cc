// Sums, products, extrema and places of integers.
#include "heddle/kernels/reduce/reducer_kernels_internal.h"

namespace heddle::kernels {

HEDDLE_REDUCE_INTEGERS(IntegerValues)
HEDDLE_REDUCE_INTEGERS(IntegerPlaces)

}  // namespace heddle::kernels
