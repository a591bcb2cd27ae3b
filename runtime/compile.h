// From a kernel's source to code: trace, optimise, emit, assemble. Every stage is kept, so that it
// can be looked at.
//
//   auto compilation = compile_source(source, specialization, {.stage = Stage::kCubin});
//   std::cout << ir::print((*compilation)->optimized) << (*compilation)->ptx.text;
//
// Stages are cumulative. HEDDLE_DUMP=trace,ir,ptx,constants (in the environment) prints them of
// every kernel that a program compiles, to stderr or into files below HEDDLE_DUMP_DIR.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/codegen/ptx.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/launch/tensor_map.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/compile_options.h"

namespace heddle::runtime {

// Microseconds that each stage took; 0 where it did not run.
struct StageTimes {
  double trace =
      0;  // the lambda, and the verifier on what it recorded; or reading what was kept of it
  double passes = 0;    // the pipeline
  double emit = 0;      // IR to PTX
  double assemble = 0;  // our side and ptxas
  double ptxas = 0;     // ptxas alone

  StageTimes& operator+=(const StageTimes& more) {
    trace += more.trace;
    passes += more.passes;
    emit += more.emit;
    assemble += more.assemble;
    ptxas += more.ptxas;
    return *this;
  }
};

// A compiled kernel with all of its stages.
struct Compilation {
  // From a trace.
  explicit Compilation(ir::TraceResult result)
      : traced(std::move(result.kernel)), optimized(traced) {}

  std::string name;                   // the kernel's
  CompileOptions options;             // as it was compiled: with those of the environment
  ir::SourceLine place;               // where it was defined
  std::vector<ir::ParamInfo> params;  // a parameter each, or a member of a struct
  ir::Kernel traced;                  // as its author wrote it
  ir::Kernel optimized;               // after the passes
  ir::PipelineReport report;          // what each pass did
  // What the code relies on: facts that tracing or a pass read.
  std::vector<ir::Guard> guards;
  ir::ParamLayout layout;       // where each parameter lies in the parameter block
  ir::LaunchProgram at_launch;  // what the host computes before a launch
  ir::TensorMaps tensor_maps;   // and encodes
  // Of the parameters in the block, where the kernel has tensor maps: assemblers align those by their
  // address, and so the distances between parameters are theirs to know.
  std::vector<int> places;
  codegen::PtxModule ptx;      // from Stage::kPtx on
  bool ptx_edited = false;     // its text is not the emitter's: a watch has changed it
  codegen::Assembly assembly;  // from Stage::kCubin on
  StageTimes times;
  // Taken over from another process (recall/recall.h): it was not traced, and its IR is what the host computes.
  bool recalled = false;

  // Works out at_launch, tensor_maps and places from the optimised kernel and the layout.
  void prepare_launches();
  // "kernel 'row_sum' (row_sum.cc:14)"
  std::string describe() const;
};

// What a line of a compilation's PTX comes from.
struct PtxOrigin {
  std::string op;        // of the optimised program, printed
  ir::SourceLine place;  // `file` is empty where it is not known
};
// nullopt for a line of nobody's, and for no line, 0.
std::optional<PtxOrigin> origin_of_line(const Compilation& compilation, int ptx_line);

// The target that options name, or the default one. kInvalidArgument for an unknown name.
StatusOr<const ir::Target*> target_of(const CompileOptions& options);

// Traces a kernel. The result has everything that is wrong with it: the diagnostics of tracing and
// of the verifier. For a block or cluster that cannot be launched it has that error alone: the kernel's
// body, which may loop over its threads, is not traced.
ir::TraceResult trace_source(const ir::KernelSource& source,
                             const ir::Specialization& specialization);

// Compiles a kernel up to `options.stage`. Errors: all mistakes in the kernel at once; an unknown
// target or pass; an op that the target lacks; ptxas missing or failing, with the PTX line, the op
// and the C++ line of each of its errors; ptxas giving up the speed of wgmma, likewise
// (CompileOptions::allow_slow_wgmma). Where it is ptxas that fails, `partial` (if given) still
// receives the compilation up to its PTX, and the log has nothing of it: the caller decides what that is.
StatusOr<std::shared_ptr<const Compilation>> compile_source(
    const ir::KernelSource& source, ir::Specialization specialization,
    const CompileOptions& options, std::shared_ptr<const Compilation>* partial = nullptr);

// Makes machine code of a compilation's PTX, as its options say. Errors: those of ptxas, as above.
Status assemble_ptx(Compilation& compilation);

}  // namespace heddle::runtime

namespace heddle {
using runtime::Compilation;
}  // namespace heddle
