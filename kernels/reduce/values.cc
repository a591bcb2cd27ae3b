// Sums, products, extrema.
#include "heddle/kernels/reduce/reducer_kernels_internal.h"

namespace heddle::kernels {

HEDDLE_REDUCE(Values)

}  // namespace heddle::kernels
