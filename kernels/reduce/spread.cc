// Variances.
#include "heddle/kernels/reduce/reducer_internal.h"

namespace heddle::kernels {

HEDDLE_REDUCE(Spread)

}  // namespace heddle::kernels
