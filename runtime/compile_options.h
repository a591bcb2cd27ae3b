// How a kernel is to be compiled.
//
//   CompileOptions{.block = {512, 1, 1}, .target = "sm_90a"}
//
// As text, in the environment or of one's own: compile_option_text.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/codegen/toolchain/assembler.h"
#include "heddle/ir/dim3.h"

namespace heddle::ir {
struct PipelineOptions;
}

namespace heddle::runtime {

struct CompileWatch;

// How far to compile. Each stage includes those before it.
enum class Stage : uint8_t {
  kIr,     // traced and optimised: what the interpreter runs
  kPtx,    // and emitted: what the driver's assembler takes
  kCubin,  // and assembled by ptxas
};

// What a compilation does with the cache of assembled kernels that the user has on disk (HEDDLE_CACHE_DIR).
enum class DiskCaching : uint8_t {
  kOff,    // nothing: ptxas runs
  kUse,    // takes what is there; keeps what is made
  kRenew,  // keeps what is made, and takes nothing
};

// Whether a launch, or compile(), takes what another process has compiled for such arguments, without tracing the kernel
// (recall/recall.h); its IR is not known then. That is right as long as the kernel's lambda computes from its captures and parameters alone: what else it reads while it is traced (a global
// variable, the environment, a file) and a change in other libraries that it calls are not noticed.
enum class Recall : uint8_t {
  kOff,
  kUse,
  kCheck,  // the kernel is compiled all the same; a difference is said on stderr, and what was kept is replaced
};

// The passes that run where nothing else is asked for: those of the environment variable HEDDLE_PASSES, such as
// "O3,-vectorize", or else the level O3.
std::string default_passes();

// How a kernel is compiled: for which block and target, by which passes, with which options of
// ptxas.
struct CompileOptions {
  // The launch's block, in threads; {0, 0, 0}: a dynamic block, so that it runs with any.
  Dim3 block{0, 0, 0};
  // The launch's cluster, in blocks.
  Dim3 cluster{1, 1, 1};
  // The architecture, such as "sm_90a"; empty: the device's, or sm_90a without a device.
  std::string target = {};
  // Passes by name, with commas between them, or a level, O0 to O3; "O3,-licm" leaves one out
  // (ir/passes/pipeline_text.h).
  std::string passes = default_passes();
  // How to watch or bisect them (ir/passes/pipeline.h); nullptr: simply run them.
  std::shared_ptr<const ir::PipelineOptions> pipeline = nullptr;
  // Functions that see its stages, and may edit its PTX (observe/compile_watch.h); nullptr: none.
  std::shared_ptr<const CompileWatch> watch = nullptr;
  // Checks every access in the kernel as the interpreter does, by assertions.
  bool device_checks = false;
  codegen::Assembler assembler = codegen::Assembler::kAny;
  int opt_level = 3;                          // of ptxas: 0 to 3
  int max_registers = 0;                      // of a thread; 0: as many as the block allows
  bool line_info = true;                      // profilers and debuggers show the kernel's C++ lines
  std::vector<std::string> ptxas_flags = {};  // further flags, of an allow-list
  std::string ptxas_path = {};                // of the program; empty: look for it
  std::string ptx_library_path = {};          // of the library; likewise
  // Accepts a slow kernel with wgmma. Otherwise it is an error where ptxas notes of such a kernel
  // that it serialises wgmmas, puts waits of its own between them, drops set_max_registers, or
  // spills registers to memory: each costs much of wgmma's speed.
  bool allow_slow_wgmma = false;
  // Where HEDDLE_CACHE is "off", it is off.
  DiskCaching disk_cache = DiskCaching::kUse;
  // Needs the cache on disk.
  Recall recall = Recall::kOff;
  // Stages to show, with commas between them: of trace, ir, ptx, cubin, constants, or all; and the folder for them, made where there
  // is none: <folder>/<kernel>.<arch>.ptx. Empty: stderr.
  std::string keep = {};
  std::string keep_dir = {};
  // How far to compile.
  Stage stage = Stage::kCubin;
};

}  // namespace heddle::runtime

namespace heddle {
using codegen::Assembler;
using runtime::CompileOptions;
using runtime::DiskCaching;
using runtime::Recall;
using runtime::Stage;
}  // namespace heddle
