// The programs of this folder for `heddle dump`: what each becomes for the arguments that are
// usual.
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
#include "heddle/runtime/registry.h"

namespace heddle::learn {
namespace {

KernelEntry entry(const char* name, const char* summary, const ir::KernelSource& source,
                  const Signature& signature, const Dim3& block, int cluster = 1) {
  CompileOptions options;
  options.block = block;
  options.cluster = {cluster, 1, 1};
  return {.name = name,
          .summary = summary,
          .variant = [=, &source](const Settings&) -> absl::StatusOr<Variant> {
            return Variant{&source, signature, options};
          }};
}

const ArgumentSpec kVector = tensor({kAny}).aligned(16);
const ArgumentSpec kMatrix = tensor({kAny, kAny}).aligned(16);
const ArgumentSpec kVolume = tensor({kAny, kAny, kAny}).aligned(16);
const ArgumentSpec kHeads = tensor({kAny, kAny, kAny, kAny}).aligned(16);
const ArgumentSpec kBodies4 = tensor({kAny, 4}).aligned(16);
const Dim3 kSortBlock = kSortThreads;

const Registered registered[] = {
    Registered(entry("saxpy", "y = a x + y", saxpy.source(), {scalar(), kVector, kVector},
                     saxpy_shape(1).block)),
    Registered(entry("transpose", "y = the transpose of x", transpose.source(), {kMatrix, kMatrix},
                     transpose_shape(1, 1).block)),
    Registered(entry("histogram", "how often each byte occurs", histogram.source(),
                     {kVector, kVector}, histogram_shape(1).block)),
    Registered(entry("nbody", "one step of n bodies that attract each other", nbody.source(),
                     {kBodies4, kBodies4, kBodies4, scalar()}, nbody_shape(1).block)),
    Registered(entry("mandelbrot", "steps until each point of a window escapes",
                     mandelbrot.source(), {kMatrix, scalar(), scalar(), scalar(), scalar()},
                     mandelbrot_shape(1, 1).block)),
    Registered(entry("black_scholes", "prices of European options", black_scholes.source(),
                     {scalar(), scalar(), kVector, kVector, kVector, kVector, kVector},
                     black_scholes_shape(2).block)),
    Registered(entry("sort_tiles", "bitonic sort within tiles", sort_tiles.source(), {kVector},
                     kSortBlock)),
    Registered(entry("merge_far", "a bitonic merge step between tiles", merge_far.source(),
                     {kVector, scalar(), scalar()}, kSortBlock)),
    Registered(entry("merge_near", "the last bitonic merge steps, within tiles",
                     merge_near.source(), {kVector, scalar()}, kSortBlock)),
    Registered(entry("scan", "prefix sums in one pass", scan.source(), {kVector, kVector, kVector},
                     scan_shape(1).block)),
    Registered(entry("spmv", "y = A x, A sparse in CSR", spmv.source(),
                     {kVector, kVector, kVector, kVector, kVector}, spmv_shape(1).block)),
    Registered(entry("monte_carlo_pi", "points within the quarter circle", monte_carlo_pi.source(),
                     {kVector, scalar(), scalar()}, pi_shape(1).block)),
    Registered(entry("stencil", "weighted sums of neighbours in three dimensions", stencil.source(),
                     {kVolume, kVolume}, stencil_shape(1, 1).block)),
    Registered(entry("cluster_histogram", "how often each 16-bit value occurs, by clusters",
                     cluster_histogram.source(), {kVector, kVector},
                     cluster_histogram_shape(1).block, kClusterBlocks)),
    Registered(entry("layout_row_sum", "the sum of each row, by layouts", layout_row_sum.source(),
                     {kMatrix, kVector}, layout_row_sum_shape(1).block)),
    Registered(entry("tv_add", "z = x + y, by a thread-value layout", tv_add.source(),
                     {kMatrix, kMatrix, kMatrix}, tv_add_shape(1, 1).block)),
    Registered(entry("swizzled_transpose", "y = the transpose of x, through a swizzled tile",
                     swizzled_transpose.source(), {kMatrix, kMatrix},
                     swizzled_transpose_shape(1, 1).block)),
    Registered(entry("swap_heads", "y(b, h, s, w) = x(b, s, h, w)", swap_heads.source(),
                     {kHeads, kHeads}, swap_heads_shape(1).block)),
};

}  // namespace
}  // namespace heddle::learn
