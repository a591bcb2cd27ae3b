// dropout as an operation.
#include "absl/strings/numbers.h"
#include "heddle/kernels/dropout/dropout.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

Outputs dropout_reference(const Settings& settings, const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const int64_t columns = x.shape.extents[1];
  const float probability = real(settings, "p"), scale = 1 / (1 - probability);
  uint64_t seed = 0;
  (void)absl::SimpleAtoi(settings.find("seed")->second, &seed);
  const Rounding last = rounding_of(tensors.at("y").shape.dtype);
  return only_output(tensors, "y", [&](int64_t i) {
    if (!dropout_keeps(probability, seed, static_cast<uint32_t>(i / columns),
                       static_cast<uint32_t>(i % columns))) {
      return Close{0};
    }
    const double product = x.values[static_cast<size_t>(i)] * static_cast<double>(scale);
    return last.of(product, std::abs(product) * kRounding);
  });
}

template <class T>
using Dropout = Status(const Stream&, const TensorRef<const T, 2>&, float, uint64_t,
                       const TensorRef<T, 2>&);

const Registered registered_dropout({
    .name = "dropout",
    .summary = "y = x / (1 - p), or 0 with probability p, as place and seed say",
    .arguments = {"x: dtype[rows, columns]", "p: f32", "seed: u64", "y: dtype[rows, columns]"},
    .functions = {host_function<Dropout<float>>(dropout<float>),
                  host_function<Dropout<half>>(dropout<half>),
                  host_function<Dropout<bfloat16>>(dropout<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of x and y"},
                 {.name = "p", .help = "how likely an element becomes 0", .default_value = "0.1"},
                 {.name = "seed", .help = "of the random numbers", .default_value = "42"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = dropout_reference,
});

}  // namespace
}  // namespace heddle::kernels
