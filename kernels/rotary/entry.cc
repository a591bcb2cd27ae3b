// rotary and its gradient as operations.
#include <cmath>

#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/rotary/rotary.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

Outputs turned(const Settings& settings, const Tensors& tensors, const char* from, const char* to,
               double direction) {
  const runtime::HostValues &x = tensors.at(from), &cosine = tensors.at("cosine"),
                            &sine = tensors.at("sine");
  const bool halves = settings.find("pairs")->second == "halves";
  const int64_t heads = x.shape.extents[1], elements = x.shape.extents[2], half = elements / 2;
  const Rounding last = rounding_of(tensors.at(to).shape.dtype);
  return only_output(tensors, to, [&](int64_t at) {
    const int64_t element = at % elements, first = at - element, token = first / elements / heads,
                  i = halves ? element % half : element / 2;
    const bool is_first = halves ? element < half : element % 2 == 0;
    const int64_t partner = halves ? (is_first ? element + half : element - half) : element ^ 1;
    const auto angle = static_cast<size_t>(token * half + i);
    const double s = direction * sine.values[angle] * (is_first ? -1 : 1),
                 own = x.values[static_cast<size_t>(at)] * cosine.values[angle],
                 other = x.values[static_cast<size_t>(first + partner)] * s;
    return last.of(own + other, (std::abs(own) + 2 * std::abs(other)) * kRounding + 0x1p-149);
  });
}
Outputs rotary_reference(const Settings& settings, const Tensors& tensors) {
  return turned(settings, tensors, "x", "y", 1);
}
Outputs rotary_backward_reference(const Settings& settings, const Tensors& tensors) {
  return turned(settings, tensors, "dy", "dx", -1);
}

template <class T>
using Rotary = Status(const Stream&, RotaryPairs, const TensorRef<const T, 3>&,
                      const TensorRef<const float, 2>&, const TensorRef<const float, 2>&,
                      const TensorRef<T, 3>&);

const std::vector<runtime::Setting> kSettings = {
    {.name = "dtype", .help = "element type of what turns; the angles are f32"},
    {.name = "pairs",
     .help = "which elements turn together: i and i + half, or 2 i and 2 i + 1",
     .default_value = "halves",
     .choices = {"halves", "neighbours"}}};

const Registered registered_rotary({
    .name = "rotary",
    .summary = "y = x, pairs of whose elements turn by their token's angles",
    .arguments = {"pairs: choice", "x: dtype[tokens, heads, elements]", "cosine: f32[tokens, half]",
                  "sine: f32[tokens, half]", "y: dtype[tokens, heads, elements]"},
    .functions = {host_function<Rotary<float>>(rotary<float>),
                  host_function<Rotary<half>>(rotary<half>),
                  host_function<Rotary<bfloat16>>(rotary<bfloat16>)},
    .settings = kSettings,
    .sizes = {{"tokens", 8192}, {"heads", 32}, {"elements", 128}, {"half", 64}},
    .reference = rotary_reference,
});

const Registered registered_rotary_backward({
    .name = "rotary_backward",
    .summary = "dx of dy, where y = rotary(x)",
    .arguments = {"pairs: choice", "dy: dtype[tokens, heads, elements]",
                  "cosine: f32[tokens, half]", "sine: f32[tokens, half]",
                  "dx: dtype[tokens, heads, elements]"},
    .functions = {host_function<Rotary<float>>(rotary_backward<float>),
                  host_function<Rotary<half>>(rotary_backward<half>),
                  host_function<Rotary<bfloat16>>(rotary_backward<bfloat16>)},
    .settings = kSettings,
    .sizes = {{"tokens", 8192}, {"heads", 32}, {"elements", 128}, {"half", 64}},
    .reference = rotary_backward_reference,
});

}  // namespace
}  // namespace heddle::kernels
