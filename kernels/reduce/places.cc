// Places of extrema.
#include "heddle/kernels/reduce/reducer_kernels_internal.h"

namespace heddle::kernels {

HEDDLE_REDUCE(Places)

}  // namespace heddle::kernels
