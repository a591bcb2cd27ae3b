// Kernels on the interpreter: launches and their expected results, as `execute` and `expect` write them.
//
//   ; execute: %x = iota(4), %y = unwritten(4), %n = 4, grid = 2, block = (64, 1, 1)
//   ; expect: %y = [0, 2, 4, 6]
//   ; expect: %x = iota(4)
//
// Each parameter is given a value: a scalar a literal; a view memory (values.h), seen with the extents of
// the list, or as `iota(8) as (2, 3) strides (4, 1)`; `%x`, the same memory as an earlier parameter;
// `null`; or `freed(8)`, memory that is no longer there. Settings: grid (by default the kernel's own, or
// one cluster), block (needed where the kernel leaves it open), dynamic_shared in bytes, cooperative,
// completion = late, max_instructions, max_reports.
//
// What the kernel requires of its launches is tested first; a refusal is a report, at its `require` or
// `launch_grid`. `expect: grid = (4, 2, 1)` tells the grid of the launch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/testing/expectations.h"
#include "heddle/runtime/testing/values.h"

namespace heddle::filetest {

// What one parameter is given.
struct LaunchArgument {
  enum class Kind : uint8_t { kScalar, kMemory, kAlias, kNull, kFreed };
  Kind kind = Kind::kScalar;
  uint64_t bits = 0;             // scalars
  ElementList list;              // memory
  size_t alias = 0;              // the parameter whose memory it is
  std::vector<int64_t> extents;  // as the kernel sees them
  std::vector<int64_t> strides;
};

struct Launch {
  std::vector<LaunchArgument> arguments;
  ir::Dim3 grid, block;  // grid.x may be ir::kGridOfKernel
  int dynamic_shared = 0;
  bool cooperative = false;
  ir::interp::RunOptions options = {};
};
StatusOr<Launch> read_launch(const ir::Kernel& kernel, absl::string_view settings);

// What a launch left behind: the report, its grid, and the bits of each parameter's memory.
struct LaunchResult {
  std::string report;
  ir::Dim3 grid = {};
  std::vector<std::vector<uint64_t>> memory;
};
LaunchResult run_launch(const ir::Kernel& kernel, const Launch& plan);

// One line of `expect`: "%y = [1, 2] within 2 ulp" or "grid = (4, 2, 1)".
struct ExpectedResult {
  int line = 0;
  std::optional<ir::Dim3> grid;
  std::optional<size_t> param;  // whose memory
  ElementList list;
  Bound bound;
};
StatusOr<ExpectedResult> read_expected(const ir::Kernel& kernel, const Wanted& wanted);

// Why the result is not what is expected: "%y[3] is 7 instead of 6, and 2 more"; empty where it is.
std::string difference(const ir::Kernel& kernel, const ExpectedResult& expected,
                       const LaunchResult& result);

// The parameter's name in the text, with its percent sign.
std::string name_of_param(const ir::Kernel& kernel, size_t param);

}  // namespace heddle::filetest
