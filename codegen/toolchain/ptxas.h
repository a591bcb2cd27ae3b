// Assembles PTX into a cubin with ptxas, as a program or as a library, and checks what comes out.
//
//   AssembleOptions options;
//   options.arch = "sm_90a";
//   options.entries = {"row_sum"};
//   std::vector<Diagnostic> said;
//   StatusOr<Assembly> assembly = assemble(ptx, options, &said);
//   if (IsUnimplemented(assembly.status())) ...  // the driver may be newer: let it assemble
//   if (!assembly.ok()) {
//     for (const Diagnostic& d : said) ...             // d.ptx_line leads back to the op
//   }
//
// PTX and cubin pass through memory; a cache on disk is the caller's to name.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/codegen/toolchain/assembler.h"
#include "heddle/codegen/toolchain/ptxas_report.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

class DiskCache;

struct AssembleOptions {
  std::string arch{};                  // "sm_90a"
  std::vector<std::string> entries{};  // kernels that the cubin must hold
  int opt_level = 3;                   // 0 to 3
  bool line_info = true;               // keep `.loc` for profilers and debuggers
  // At most so many registers a thread, 1 to 255, whatever the PTX says; 0 = as the PTX says.
  int max_registers = 0;
  std::vector<std::string> extra_flags{};  // of allowed_ptxas_flags(), "--name" or "--name=value"
  Assembler assembler = Assembler::kAny;
  std::string ptxas_path{};    // of the program: absolute; empty = look for it (tool_path.h)
  std::string library_path{};  // of the library: likewise
  std::chrono::milliseconds timeout{60'000};
  DiskCache* cache = nullptr;  // where what ptxas makes is looked for, and kept; nullptr = nowhere
  bool renew = false;          // keeps it there, but does not look for it
  std::string keep_ptx_dir{};  // where a failure leaves the PTX, for a report; empty = nowhere
};

struct Assembly {
  std::string cubin;
  std::vector<EntryReport> entries;     // every kernel of the PTX, in the order compiled
  std::vector<Diagnostic> diagnostics;  // information and warnings
  Tool made_by = Tool::kPtxas;          // or kPtxLibrary
  std::string ptxas_path;
  ToolVersion ptxas_version;
  std::chrono::microseconds wall_time{0};  // that ptxas ran; 0 from the cache
  bool from_cache = false;                 // an earlier run, perhaps of another process, made it

  // nullptr: no such kernel.
  const EntryReport* find(absl::string_view entry) const;
};

// `diagnostics`, where given, receives all that ptxas said, whether or not it succeeded. Every
// message names ptxas' path and version and the target. Codes:
//   kInvalidArgument    an option is wrong, or ptxas refused the PTX: each error with its PTX line
//   kUnimplemented      this ptxas does not know the target or the PTX version
//   kDeadlineExceeded   it ran into the timeout
//   kInternal           it crashed
//   kResourceExhausted  it was killed for want of memory, or its output was too large
//   kDataLoss           it reported success, yet the cubin is cut, foreign or lacks a kernel
//   kAborted            it was replaced while it ran, twice
//   kUnknown            it failed and did not say why
//   and the codes of find_tool.
StatusOr<Assembly> assemble(absl::string_view ptx, const AssembleOptions& options,
                            std::vector<Diagnostic>* diagnostics = nullptr);

// The flags that extra_flags may name, each with its values: "--fmad=true|false". None of them
// reads or writes a file or changes what kind of file comes out.
std::vector<std::string> allowed_ptxas_flags();

// The arguments that `assemble` runs ptxas with; part of what makes a cubin what it is, so a cache
// puts them into its key. kInvalidArgument for options that are wrong.
StatusOr<std::vector<std::string>> ptxas_arguments(const AssembleOptions& options);

}  // namespace heddle::codegen
