// The programs of this folder as operations, so that the heddle command runs and shows them.
#include "absl/strings/str_cat.h"
#include "heddle/kernels/learn/01_saxpy.h"
#include "heddle/kernels/learn/02_transpose.h"
#include "heddle/kernels/learn/03_histogram.h"
#include "heddle/kernels/learn/04_nbody.h"
#include "heddle/kernels/learn/05_mandelbrot.h"
#include "heddle/kernels/learn/06_black_scholes.h"
#include "heddle/kernels/learn/07_bitonic_sort.h"
#include "heddle/kernels/learn/08_scan.h"
#include "heddle/kernels/learn/09_spmv.h"
#include "heddle/kernels/learn/10_pi.h"
#include "heddle/kernels/learn/11_stencil.h"
#include "heddle/kernels/learn/12_cluster_histogram.h"
#include "heddle/kernels/learn/13_layout_row_sum.h"
#include "heddle/kernels/learn/14_tv_add.h"
#include "heddle/kernels/learn/15_swizzled_transpose.h"
#include "heddle/kernels/learn/16_permute.h"
#include "heddle/kernels/learn/references_internal.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/runtime/specialize.h"

namespace heddle::learn {
namespace {

template <class T, int Rank = 1>
using In = TensorRef<const T, Rank>;
template <class T, int Rank = 1>
using Out = TensorRef<T, Rank>;

// Launches a kernel that adds to `output`, which is cleared before. A fill believes the address that
// it is given, so the arguments are checked first.
template <class T, class... P, class... Args>
Status launch_cleared(const Stream& stream, const Kernel<P...>& kernel, const LaunchShape& shape,
                      const Out<T>& output, const Args&... args) {
  if (stream.backend() == nullptr) return runtime::moved_from("a Stream");
  const ir::KernelSource& source = kernel.source();
  if (Status s = runtime::check_arguments(runtime::describe(source), source.params(),
                                          runtime::PackedArguments<P...>(stream, args...),
                                          *stream.backend());
      !s.ok()) {
    return s;
  }
  const int64_t count = output.extents[0];
  if (count > 1 && output.strides[0] != 1) {
    return InvalidArgumentError(absl::StrCat(runtime::describe(source),
                                             " adds to a tensor with stride ", output.strides[0],
                                             ", and only a contiguous one can be cleared before"));
  }
  if (Status s = stream.fill8(reinterpret_cast<runtime::DeviceAddress>(output.data), 0,
                              sizeof(T) * static_cast<size_t>(count));
      !s.ok()) {
    return s;
  }
  return kernel.launch(stream, shape, args...);
}

const Registered kSaxpy({
    .name = "saxpy",
    .summary = "y = a x + y",
    .arguments = {"a: f32", "x: f32[n]", "y: inout f32[n]"},
    .functions = {host_function([](const Stream& stream, float a, const In<float>& x,
                                   const Out<float>& y) {
      return saxpy.launch(stream, saxpy_shape(y.extents[0]), a, x, y);
    })},
    .settings = {{.name = "a", .help = "factor", .default_value = "2"}},
    .sizes = {{"n", 1 << 20}},
    .reference = reference::saxpy,
});

const Registered kTranspose({
    .name = "padded_transpose",
    .summary = "y = the transpose of x",
    .arguments = {"x: f32[rows, columns]", "y: f32[columns, rows]"},
    .functions = {host_function([](const Stream& stream, const In<float, 2>& x,
                                   const Out<float, 2>& y) {
      return transpose.launch(stream, transpose_shape(x.extents[0], x.extents[1]), x, y);
    })},
    .sizes = {{"rows", 1024}, {"columns", 1024}},
    .reference = reference::transpose,
});

constexpr int64_t kHistogramBlocks = 256, kHistogramClusters = 16;

const Registered kHistogram({
    .name = "byte_histogram",
    .summary = "how often each byte occurs",
    .arguments = {"words: u32[n]", "bins: u32[256]"},
    .functions = {host_function([](const Stream& stream, const In<uint32_t>& words,
                                   const Out<uint32_t>& bins) {
      return launch_cleared(stream, histogram, histogram_shape(kHistogramBlocks), bins, words,
                            bins);
    })},
    .sizes = {{"n", 1 << 20}},
    .reference = reference::histogram,
});

const Registered kNbody({
    .name = "nbody",
    .summary = "one step of n bodies that attract each other",
    .arguments = {"body: f32[n, 4]", "velocity: inout f32[n, 4]", "moved: f32[n, 4]", "dt: f32"},
    .functions = {host_function([](const Stream& stream, const In<float, 2>& body,
                                   const Out<float, 2>& velocity, const Out<float, 2>& moved,
                                   float dt) {
      return nbody.launch(stream, nbody_shape(body.extents[0]), body, velocity, moved, dt);
    })},
    .settings = {{.name = "dt", .help = "time step", .default_value = "0.01"}},
    .sizes = {{"n", 1 << 14}},
    .reference = reference::nbody,
});

const Registered kMandelbrot({
    .name = "mandelbrot",
    .summary = "steps until each point of a window escapes",
    .arguments = {"image: i32[height, width]", "left: f32", "top: f32", "step: f32", "limit: i32"},
    .functions = {host_function([](const Stream& stream, const Out<int32_t, 2>& image, float left,
                                   float top, float step, int limit) {
      return mandelbrot.launch(stream, mandelbrot_shape(image.extents[0], image.extents[1]), image,
                               Window{left, top, step}, limit);
    })},
    .settings = {{.name = "left", .help = "of the window", .default_value = "-2"},
                 {.name = "top", .help = "of the window", .default_value = "-1.25"},
                 {.name = "step", .help = "between points", .default_value = "0.0025"},
                 {.name = "limit", .help = "of the steps", .default_value = "256"}},
    .sizes = {{"height", 1000}, {"width", 1200}},
    .reference = reference::mandelbrot,
});

const Registered kBlackScholes({
    .name = "black_scholes",
    .summary = "prices of European options, an even number of them",
    .arguments = {"rate: f32", "volatility: f32", "price: f32[n]", "strike: f32[n]",
                  "years: f32[n]", "call: f32[n]", "put: f32[n]"},
    .functions = {host_function([](const Stream& stream, float rate, float volatility,
                                   const In<float>& price, const In<float>& strike,
                                   const In<float>& years, const Out<float>& call,
                                   const Out<float>& put) {
      return black_scholes.launch(stream, black_scholes_shape(price.extents[0]),
                                  Market{rate, volatility}, price, strike, years, call, put);
    })},
    .settings = {{.name = "rate", .default_value = "0.02"},
                 {.name = "volatility", .default_value = "0.3"}},
    .sizes = {{"n", 1 << 20}},
    .reference = reference::black_scholes,
});

const Registered kBitonicSort({
    .name = "bitonic_sort",
    .summary = "keys in ascending order, a power of two of them",
    .arguments = {"keys: inout u32[n]"},
    .functions = {host_function(bitonic_sort)},
    .sizes = {{"n", 1 << 16}},
    .reference = reference::bitonic_sort,
});

const Registered kScan({
    .name = "lookback_scan",
    .summary = "prefix sums in one pass, of a multiple of 4 numbers",
    .arguments = {"x: u32[n]", "y: u32[n]"},
    .functions = {host_function([](const Stream& stream, const In<uint32_t>& x,
                                   const Out<uint32_t>& y) {
      const int64_t n = x.extents[0], words = scan_tiles(n) + 1;
      StatusOr<Buffer> progress = stream.device().allocate(words * sizeof(uint64_t));
      if (!progress.ok()) return progress.status();
      if (Status s = progress->fill(stream, 0); !s.ok()) return s;
      return scan.launch(stream, scan_shape(n), x, y, as_tensor<uint64_t>(*progress, {words}));
    })},
    .sizes = {{"n", 1 << 20}},
    .reference = reference::scan,
});

const Registered kSpmv({
    .name = "spmv",
    .summary = "y = A x, A sparse in CSR",
    .arguments = {"start: i32[rows + 1]", "column: i32[elements]", "value: f32[elements]",
                  "x: f32[columns]", "y: f32[rows]"},
    .functions = {host_function([](const Stream& stream, const In<int32_t>& start,
                                   const In<int32_t>& column, const In<float>& value,
                                   const In<float>& x, const Out<float>& y) {
      return spmv.launch(stream, spmv_shape(y.extents[0]), start, column, value, x, y);
    })},
    .sizes = {{"rows", 1 << 16}, {"columns", 1 << 16}, {"elements", 1 << 20}},
    .reference = reference::spmv,
});

constexpr int64_t kPiBlocks = 256;

const Registered kMonteCarloPi({
    .name = "monte_carlo_pi",
    .summary = "of 2 n points, those within the quarter circle",
    .arguments = {"hits: u64[1]", "n: i32", "seed: u32"},
    .functions = {host_function([](const Stream& stream, const Out<uint64_t>& hits, int n,
                                   uint32_t seed) {
      return launch_cleared(stream, monte_carlo_pi, pi_shape(kPiBlocks), hits, hits, n, seed);
    })},
    .settings = {{.name = "n", .help = "pairs of points", .default_value = "100000"},
                 {.name = "seed", .help = "of the random numbers", .default_value = "42"}},
    .reference = reference::monte_carlo_pi,
});

const Registered kStencil({
    .name = "stencil",
    .summary = "weighted sums of neighbours in three dimensions",
    .arguments = {"x: f32[planes + 8, rows + 8, columns + 8]", "y: f32[planes, rows, columns]"},
    .functions = {host_function([](const Stream& stream, const In<float, 3>& x,
                                   const Out<float, 3>& y) {
      return stencil.launch(stream, stencil_shape(y.extents[1], y.extents[2]), x, y);
    })},
    .sizes = {{"planes", 256}, {"rows", 256}, {"columns", 256}},
    .reference = reference::stencil,
});

const Registered kClusterHistogram({
    .name = "cluster_histogram",
    .summary = "how often each 16-bit value occurs, by clusters",
    .arguments = {"words: u32[n]", "bins: u32[65536]"},
    .functions = {host_function([](const Stream& stream, const In<uint32_t>& words,
                                   const Out<uint32_t>& bins) {
      return launch_cleared(stream, cluster_histogram, cluster_histogram_shape(kHistogramClusters),
                            bins, words, bins);
    })},
    .sizes = {{"n", 1 << 20}},
    .reference = reference::cluster_histogram,
});

const Registered kLayoutRowSum({
    .name = "layout_row_sum",
    .summary = "the sum of each row, by layouts",
    .arguments = {"x: f32[rows, columns]", "y: f32[rows]"},
    .functions = {host_function([](const Stream& stream, const In<float, 2>& x,
                                   const Out<float>& y) {
      return layout_row_sum.launch(stream, layout_row_sum_shape(x.extents[0]), x, y);
    })},
    .sizes = {{"rows", 1024}, {"columns", 4096}},
    .reference = kernels::row_sums,
});

const Registered kTvAdd({
    .name = "tv_add",
    .summary = "z = x + y, by a thread-value layout",
    .arguments = {"x: f32[rows, columns]", "y: f32[rows, columns]", "z: f32[rows, columns]"},
    .functions = {host_function([](const Stream& stream, const In<float, 2>& x,
                                   const In<float, 2>& y, const Out<float, 2>& z) {
      return tv_add.launch(stream, tv_add_shape(x.extents[0], x.extents[1]), x, y, z);
    })},
    .sizes = {{"rows", 1024}, {"columns", 1024}},
    .reference = reference::tv_add,
});

const Registered kSwizzledTranspose({
    .name = "swizzled_transpose",
    .summary = "y = the transpose of x, through a swizzled tile",
    .arguments = {"x: f32[rows, columns]", "y: f32[columns, rows]"},
    .functions = {host_function([](const Stream& stream, const In<float, 2>& x,
                                   const Out<float, 2>& y) {
      const LaunchShape shape = swizzled_transpose_shape(x.extents[0], x.extents[1]);
      return swizzled_transpose.launch(stream, shape, x, y);
    })},
    .sizes = {{"rows", 1024}, {"columns", 1024}},
    .reference = reference::transpose,
});

const Registered kSwapHeads({
    .name = "swap_heads",
    .summary = "y(b, h, s, w) = x(b, s, h, w)",
    .arguments = {"x: f32[batch, sequence, heads, width]", "y: f32[batch, heads, sequence, width]"},
    .functions = {host_function([](const Stream& stream, const In<float, 4>& x,
                                   const Out<float, 4>& y) {
      const int64_t elements = x.extents[0] * x.extents[1] * x.extents[2] * x.extents[3];
      return swap_heads.launch(stream, swap_heads_shape(elements), x, y);
    })},
    .sizes = {{"batch", 4}, {"sequence", 1024}, {"heads", 16}, {"width", 64}},
    .reference = reference::swap_heads,
});

}  // namespace
}  // namespace heddle::learn
