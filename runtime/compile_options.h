// How a kernel is to be compiled.
//
//   CompileOptions{.block = {512, 1, 1}, .target = "sm_90a"}
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/ir/dim3.h"

namespace heddle::ir {
struct PipelineOptions;
}

namespace heddle::runtime {

enum class Stage : uint8_t {
  kIr,     // traced and optimised: what the interpreter runs
  kPtx,    // and emitted: what the driver's assembler takes
  kCubin,  // and assembled by ptxas
};

// The pipeline that kernels are usually compiled with.
std::string default_passes();

struct CompileOptions {
  // The launch's shape where it is known; {0, 0, 0}: a kernel for any block.
  Dim3 block{0, 0, 0};
  Dim3 cluster{1, 1, 1};
  // "sm_90a"; empty: the device's, or sm_90a without one.
  std::string target = {};
  // Passes by name, with commas between them.
  std::string passes = default_passes();
  // How to watch or bisect them (ir/passes/pipeline.h); nullptr: simply run them.
  std::shared_ptr<const ir::PipelineOptions> pipeline = nullptr;
  // Turns what the interpreter checks of every access into assertions of the kernel.
  bool device_checks = false;
  // ptxas: 0 to 3; at most so many registers (0: as the block allows); flags of its allow-list;
  // where it is (empty: look for it).
  int opt_level = 3;
  int max_registers = 0;
  std::vector<std::string> ptxas_flags = {};
  std::string ptxas_path = {};
  // What ptxas only notes of a kernel that uses tensor cores by wgmma is an error unless this is
  // set: that it runs wgmmas one after the other, puts waits of its own between them, drops
  // set_max_registers, or spills registers to memory. Each costs much of the speed that wgmma is
  // for.
  bool allow_slow_wgmma = false;
  Stage stage = Stage::kCubin;
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::CompileOptions;
using runtime::Stage;
}  // namespace heddle
