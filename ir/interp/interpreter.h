// Runs compiled kernels: the GPU that every machine has, and a checker that no GPU has.
//
//   Memory memory;
//   const uint64_t x = memory.allocate(4096).value();
//   ...                                              // lay out the parameters (abi.h), compile
//   Status status = run(program, {.grid = {8, 1, 1}, .block = {128, 1, 1}, .params = params},
//                             memory);
//
// Blocks run one after another, the warps of a block in turn: a warp runs until it has to wait for
// others, and gives way after every trip of a `while`. What it computes is the same every time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/ir/interp/program.h"
#include "heddle/ir/status.h"

namespace heddle::ir::interp {

struct LaunchArgs {
  Dim3 grid = {};
  Dim3 block = {};
  absl::Span<const std::byte> params = {};  // as param_layout says
  int dynamic_shared_bytes = 0;
  // All blocks run at the same time, so that they can wait for each other.
  bool cooperative = false;
};

// Ten seconds or so: an endless loop ends in a report, and what blocks usually do is far from it.
inline constexpr int64_t kDefaultMaxInstructions = 1'000'000'000;

// When asynchronous work of a checked program (copies, tensor-core products) is done: at once, as late
// as the program allows, or at times that follow from a seed. What a correct program computes is the
// same; what is reported nearly so, because reports follow from what orders accesses and not from
// when they happen.
struct Completion {
  enum class When : uint8_t { kEarly, kLate, kSeeded };
  When when = When::kLate;
  uint64_t seed = 0;

  bool operator==(const Completion&) const = default;
};
// "early", "late" or "seed:7"; kInvalidArgument for anything else.
StatusOr<Completion> parse_completion(absl::string_view text);

struct RunOptions {
  Completion completion = {};
  // Stops a run where a block, or the blocks that run together, executes more instructions than
  // this (a warp's instruction counts once; the count is taken at the end of each loop trip).
  // 0: no limit.
  int64_t max_instructions = kDefaultMaxInstructions;
  // How many mistakes to collect before the run stops; each op is reported once.
  int max_reports = 1;
};

// What a run did. Lanes that were not active do not count.
struct Counters {
  int64_t instructions = 0;  // of warps
  int64_t lane_ops = 0;      // arithmetic results: elements times lanes
  int64_t loads = 0;         // of threads, vectors counting once
  int64_t stores = 0;
  int64_t bytes_loaded = 0;
  int64_t bytes_stored = 0;

  bool operator==(const Counters&) const = default;
};

// Runs a grid to its end. Addresses in `params` are those of `memory`, which must not change
// meanwhile except through the kernel.
//
// kInvalidArgument: the launch does not fit the program. kFailedPrecondition: the kernel is wrong;
// the message has, for each mistake, the user's line, what a thread of which block did, why it is
// wrong and how to mend it. kResourceExhausted: the instruction limit was reached; the
// message has the loop, and what its condition depends on.
//
// Counting makes a run about 1.5 times slower.
Status run(const Program& program, const LaunchArgs& args, Memory& memory,
           const RunOptions& options = {}, Counters* counters = nullptr);

}  // namespace heddle::ir::interp
