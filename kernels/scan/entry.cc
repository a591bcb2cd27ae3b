// scan as an operation.
#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/scan/scan.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// A term is added within a vector, up to a lane, a warp, a tile, a group of tiles and the groups in front.
Outputs scan_reference(const Settings& settings, const Tensors& tensors) {
  const auto heads = tensors.find("heads");
  const runtime::HostValues& x = tensors.at("x");
  const int64_t columns = x.shape.extents[1];
  const bool exclusive = settings.find("kind")->second == "exclusive";
  const ir::Scalar dtype = tensors.at("y").shape.dtype;
  Sum sum, before;
  return only_output(tensors, "y", [&](int64_t i) {
    const bool begins = heads != tensors.end() && heads->second.values[static_cast<size_t>(i)] != 0;
    if (i % columns == 0 || begins) sum = {};
    before = sum;
    sum.add(x.values[i]);
    const Sum& y = exclusive ? before : sum;
    if (dtype == ir::Scalar::kI32) return Close{y.value};
    const Close exact = y.within(64 + static_cast<double>(columns) / (1 << 19));
    return rounding_of(dtype).of(exact.value, exact.tolerance);
  });
}

template <class T>
using Scan = Status(const Stream&, Prefix, const TensorRef<const T, 2>&, const TensorRef<T, 2>&);

const std::vector<runtime::Setting>& settings() {
  static const auto& all =
      *new std::vector<runtime::Setting>{{.name = "dtype", .help = "element type of x and y"},
                                         {.name = "kind",
                                          .help = "whether a sum includes the element at its place",
                                          .default_value = "inclusive",
                                          .choices = {"inclusive", "exclusive"}}};
  return all;
}

const Registered registered_scan({
    .name = "scan",
    .summary = "y(r, c) = x(r, 0) + … + x(r, c)",
    .arguments = {"kind: choice", "x: dtype[rows, columns]", "y: dtype[rows, columns]"},
    .functions = {host_function<Scan<float>>(scan<float>), host_function<Scan<half>>(scan<half>),
                  host_function<Scan<bfloat16>>(scan<bfloat16>),
                  host_function<Scan<int32_t>>(scan<int32_t>)},
    .settings = settings(),
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = scan_reference,
});

template <class T>
using SegmentedScan = Status(const Stream&, Prefix, const TensorRef<const T, 2>&,
                             const TensorRef<const uint8_t, 2>&, const TensorRef<T, 2>&);

const Registered registered_segmented_scan({
    .name = "segmented_scan",
    .summary = "y(r, c) = the sum of x(r, …) from the last place up to c on where heads is not 0",
    .arguments = {"kind: choice", "x: dtype[rows, columns]", "heads: u8[rows, columns]",
                  "y: dtype[rows, columns]"},
    .functions = {host_function<SegmentedScan<float>>(segmented_scan<float>),
                  host_function<SegmentedScan<half>>(segmented_scan<half>),
                  host_function<SegmentedScan<bfloat16>>(segmented_scan<bfloat16>),
                  host_function<SegmentedScan<int32_t>>(segmented_scan<int32_t>)},
    .settings = settings(),
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = scan_reference,
});

}  // namespace
}  // namespace heddle::kernels
