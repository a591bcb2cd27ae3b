// What became of a kernel, as data: what its author wants to know of the machine code, of how it was made, and of how much of it a
// multiprocessor runs at once.
//
//   KernelReport report = kernel_report(compiled.compilation());
//   if (report.code && report.code->spill_load_bytes > 0) ...
//   for (const KernelReport::Remark& said : report.remarks) std::cout << said.place.file << ":" << said.place.line << ": " << said.text;
//   std::cout << to_text(report) << to_json(report);
//
// `heddle dump KERNEL --report` prints it, with --json as JSON; HEDDLE_LOG=info the main of it, of each kernel that is compiled (log.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/codegen/toolchain/ptxas_report.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/observe/occupancy.h"

namespace heddle::runtime {

// Who makes the machine code: nobody of what the interpreter runs, the driver when it loads the PTX, ptxas as a library in this
// process or as a program; or it is taken from the disk's cache, where an earlier run of them left it.
enum class CodeOrigin : uint8_t { kNobody, kDriver, kLibrary, kProgram, kDiskCache };
// "nobody", "driver", "library", "program", "disk cache"
absl::string_view name_of(CodeOrigin origin);

// What is known of a compiled kernel.
struct KernelReport {
  std::string name;      // the kernel's
  ir::SourceLine place;  // where it was defined
  std::string target;    // "sm_90a"
  Dim3 block, cluster;   // in threads and blocks; a block of {0, 0, 0}: any
  std::string passes;    // by which it was optimised
  bool recalled =
      false;  // another process has traced it (recall/recall.h): its ops are those of the host
  // Ops of the program as its author wrote it, and behind the passes.
  int ops_traced = 0, ops_optimized = 0;
  StageTimes times;  // in microseconds

  CodeOrigin origin = CodeOrigin::kNobody;  // of the machine code
  bool ptx_edited = false;                  // a watch has changed the PTX (compile_watch.h)

  // What tracing or a pass asked of the arguments: launches whose arguments differ in it get a variant of their own.
  struct Guard {
    int argument = 0;       // its number among the kernel's parameters
    std::string name;       // and its name
    std::string fact;       // "align", "extent_div": kFacts of ir/launch/fact.h
    int mode = 0;           // of the tensor, where the fact is one of a mode
    int64_t value = 0;      // that the fact has
    bool relied_on = true;  // false: the fact says nothing, and the code does without
    std::string describe;   // "starts at a multiple of 16 bytes"
  };
  std::vector<Guard> guards;

  // What ptxas says of the machine code. Registers, spills and stack are a thread's; shared memory is a block's.
  struct Code {
    std::string assembler;  // "ptxas 13.0.88", "libnvptxcompiler.so 13.0"
    int registers = 0;      // of a thread
    // What a thread stores and loads since registers did not suffice, and its stack, which holds that and its arrays.
    int spill_store_bytes = 0, spill_load_bytes = 0;
    int stack_bytes = 0;
    int64_t static_shared_bytes = 0;   // of arrays that the PTX declares
    int64_t dynamic_shared_bytes = 0;  // of arrays that it does not, and what the launch asks for
    int constant_bytes = 0;            // of the kernel's own banks: parameters, literals
    int code_bytes = 0;                // of instructions
    std::optional<int> barriers;       // ptxas says them from 12.5 on
    int64_t cubin_bytes = 0;           // of the whole file
  };
  // Empty where it was not assembled, or is by the driver when it is loaded.
  std::optional<Code> code;
  // Empty where there is no code, and of a block that the launch chooses.
  std::optional<Occupancy> occupancy;

  // A warning of ptxas, or a note of it that something costs speed.
  struct Remark {
    codegen::Severity severity = codegen::Severity::kWarning;  // kInfo: a note
    std::string code;                                          // "C7510"; may be empty
    std::string text;                                          // what ptxas says
    int ptx_line = 0;                                          // 0: it names none
    std::string op;        // of the optimised program, that the line comes from; may be empty
    ir::SourceLine place;  // of the C++ line; `file` is empty where it is not known
  };
  std::vector<Remark> remarks;
};

// Of a compilation, for launches that ask for so much dynamic shared memory (LaunchShape::shared_bytes).
KernelReport kernel_report(const Compilation& compilation, int64_t shared_bytes = 0);

// "24 registers, no spills, 1024 bytes of shared memory; 4 blocks and 32 of 64 warps a multiprocessor, limited by registers"; empty
// without machine code.
std::string summary(const KernelReport& report);
// Several lines for people.
std::string to_text(const KernelReport& report);
// A JSON object, indented by two blanks: the members above by their names, and what is not known left out.
std::string to_json(const KernelReport& report);

}  // namespace heddle::runtime

namespace heddle {
using runtime::kernel_report;
using runtime::KernelReport;
}  // namespace heddle
