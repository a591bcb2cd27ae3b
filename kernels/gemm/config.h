// How a matrix product is cut into tiles on Hopper: what a kernel of the family is compiled for, and
// the choice for a shape.
//
//   const GemmConfig config = choose_gemm(problem, device.info());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/dsl/mma/smem_layout.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/device_info.h"
#include "heddle/runtime/launch.h"

namespace heddle::kernels {

// A product's extents, and its elements' bytes.
struct GemmProblem {
  // a is m x k, b n x k, d m x n, as often as there are batches.
  int64_t m = 0, n = 0, k = 0, batches = 1;
  Major a = Major::k, b = Major::k;  // along which mode the operands are contiguous
  // Bytes of an element of a and b, and of d.
  int element_bytes = 2;
  int result_bytes = 2;
  bool stores_boxes = true;     // whether the copy engine can store the result
  bool fused = false;           // whether an epilogue follows, which takes registers
  bool reads_matrices = false;  // and whether it reads or writes others of the result's extents
  bool scaled = false;          // whether blocks along k have factors (scaled.h)
  bool ends_inside = false;     // whether results end inside of d (grouped.h)
  bool unknown_rows = false;    // whether the device alone knows each batch's rows; m is their mean

  // "4096x4096x512 x 8 tn, 2 into 2 bytes, fused": everything that configurations are chosen by.
  std::string to_string() const;
  // Whether there is no result.
  bool is_empty() const { return m == 0 || n == 0 || batches == 0; }
};

// Rows of a product of the tensor cores.
inline constexpr int kProductRows = 64;

// The configuration of a kernel. A block computes tiles of m x n, each warpgroup some of the rows.
struct GemmConfig {
  int m = 128, n = 256, k = 64;               // a tile, and the depth of a stage
  int stages = 4;                             // of a and b in shared memory
  int groups = 2;                             // warpgroups that multiply
  int cluster_rows = 2, cluster_columns = 1;  // blocks of a cluster, in tiles
  int split = 1;                              // blocks of a cluster that share a tile's depth
  bool stream_k = false;                      // clusters share the depths of tiles (stream_k.h)
  bool ping_pong = false;                     // each warpgroup has tiles of its own (turns.h)
  int a_rows = 0;                             // of a tile that are loaded; 0: all
  int band = 8;                               // tiles below each other before the next column
  bool keeps_band = false;                    // a's rows of a band in L2, and not b
  int store_columns = 64;                     // of the results that are stored at once
  int store_buffers = 2;                      // for them, in shared memory
  bool stores_boxes = true;                   // by the copy engine, else by threads
  Major a = Major::k, b = Major::k;           // along which mode the operands are contiguous

  friend bool operator==(const GemmConfig&, const GemmConfig&) = default;

  // "128x256x64 4 stages, 2 warpgroups, cluster 2x1, band 8, store 64x2"
  std::string to_string() const;
  // Warpgroups that multiply a tile together, and the rows of each.
  int groups_of_tile() const { return ping_pong ? 1 : groups; }
  int rows_of_group() const { return m / groups_of_tile(); }
  int cluster() const { return cluster_rows * cluster_columns * split; }
  // Columns of a tile whose results a block stores.
  int columns() const { return n / split; }
  // Registers of a thread that loads, and of one that multiplies, where each sum is of so many numbers; 0:
  // what all have from the start is enough, as it is for few columns and no epilogue.
  struct Registers {
    // Of a thread that loads, and of one that multiplies.
    int few, many;
  };
  Registers registers(int accumulators, bool has_epilogue) const;
  // Rows of results in shared memory: of each tile that the block has at one time.
  int result_rows() const { return m * (groups / groups_of_tile()); }
  // Bytes of shared memory of a block.
  int64_t shared_bytes(const GemmProblem& problem) const;
  // Tiles of a product.
  int64_t tiles(const GemmProblem& problem) const;
};

// All configurations that a device can run, in the order of preference among equals.
std::vector<GemmConfig> gemm_configs(const GemmProblem& problem, const runtime::DeviceInfo& device);
// The one that a model of the device expects to be the fastest: of those that have been measured, which
// are the ones without split and stream_k, and with ping_pong those without clusters; and of those with
// stream_k, whose kernels take a workspace (gemm_stream_k.h), if there are any.
GemmConfig choose_gemm(const GemmProblem& problem, const runtime::DeviceInfo& device);
// The same, but for what `heddle tune` found the fastest (runtime/tuning/tunable.h).
GemmConfig tuned_gemm(const GemmProblem& problem, const runtime::DeviceInfo& device);
std::optional<GemmConfig> choose_stream_k(const GemmProblem& problem,
                                          const runtime::DeviceInfo& device);
// kInvalidArgument where a configuration, of the caller's making, has no kernel for a problem.
Status check_config(const GemmConfig& config, const GemmProblem& problem,
                    const runtime::DeviceInfo& device);
// The time that the model expects, in cycles of a multiprocessor.
double expected_cycles(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device);
// The launch of a configuration.
LaunchShape gemm_shape(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device);

}  // namespace heddle::kernels
