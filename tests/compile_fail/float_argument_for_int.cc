// Numbers for integers, at a launch and for a family.
#include "heddle/dsl/kernel_family.h"
#include "heddle/heddle.h"
using namespace heddle;

const auto kernel = define_kernel("kernel(n)", [](Int n) { device_assert(n > 0); });
const auto family = kernel_family("family(n)", [](int host, Int n) { device_assert(n > host); });

// clang-format off
Status launch(const Stream& stream) {
  (void)family(3.7);  // expect-first: a floating-point number for an integer parameter .* round it yourself
  return kernel.launch(stream, {}, 3.7);  // expect-first: a floating-point number for an integer parameter .* round it yourself
}
