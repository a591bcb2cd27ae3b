// Variances.
#include "heddle/kernels/reduce/reducer_kernels_internal.h"

namespace heddle::kernels {

HEDDLE_REDUCE(Spread)

}  // namespace heddle::kernels
