#include "heddle/heddle.h"
using namespace heddle;

const auto kernel = define_kernel("kernel(n)", [](Int n) { device_assert(n > 0); });

// expect-error: a floating-point number for an integer parameter of the kernel: round it yourself
absl::Status launch(const Stream& stream) { return kernel.launch(stream, {}, 3.7); }
