// Functions that see compilations while they happen, and may edit PTX.
//
//   auto watch = std::make_shared<CompileWatch>();
//   watch->on_ir = [](const Compilation& c) { std::cout << ir::print(c.optimized); };
//   watch->on_ptx = [](const Compilation& c, std::string& ptx) { if (c.name == "row_sum") tune(ptx); };
//   auto compiled = row_sum.compile(signature, {.watch = watch});     // one compilation
//   auto before = watch_compilations(watch);                          // all of the process, launches' too
//
// Each is called once a compilation, on the thread that compiles: several threads may call one at the same time. While a launch
// compiles, other launches of the kernel wait; a function may not launch that kernel itself. A launch that finds its kernel in the
// cache in memory compiles nothing, and calls none. What is found on disk, by its PTX, calls all of them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "heddle/ir/diagnostic.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/compile.h"

namespace heddle::runtime {

// The stages, in their order; a function that is empty is not called. What one throws is an error of the compilation.
struct CompileWatch {
  // A function that sees a stage.
  using See = std::function<void(const Compilation&)>;

  See on_trace;  // `traced`, `params`; a kernel without mistakes
  // All that is wrong with a kernel, before it becomes the text of an error: `traced` is the program as far as it came.
  std::function<void(const Compilation&, const ir::Diagnostics&)> on_mistakes;
  See on_ir;  // `optimized`, `report`: behind the passes
  // `ptx`, and its text, which is assembled as the function leaves it: the cache on disk keeps code by the text. Lines that are
  // changed lead no error back to the C++ source.
  std::function<void(const Compilation&, std::string& ptx)> on_ptx;
  See on_cubin;  // `assembly`: the machine code
};

// From now on `watch` sees every compilation of the process, besides the one of its options, whose functions are called first. Returns
// the watch that was there before; nullptr: none. Kernels that are compiled already stay as they are. Thread-safe.
std::shared_ptr<const CompileWatch> watch_compilations(std::shared_ptr<const CompileWatch> watch);

}  // namespace heddle::runtime

namespace heddle {
using runtime::CompileWatch;
using runtime::watch_compilations;
}  // namespace heddle
