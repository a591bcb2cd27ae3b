// Prints a kernel as PTX.
//
//   StatusOr<PtxModule> module = emit_ptx(kernel);
//   if (!module.ok()) return module.status();      // each error with the user's line and the fix
//   assemble(module->text, {.arch = "sm_90a", .entries = {module->entry}});
//   ir::OpId op = module->line_ops[error.ptx_line];  // what ptxas complains about
//
// How the IR maps on PTX stands at the top of ptx_emitter.h.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/analysis/analyses.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

struct PtxOptions {
  // `.loc` lines, which lead profilers and debuggers back to the user's source.
  bool line_info = true;
  // Every access with a bounds check stops the kernel where the check fails.
  bool device_checks = false;
};

struct PtxModule {
  std::string text;
  std::string entry;  // the kernel's name as a PTX identifier
  // The op behind each line of the text, by its number, which starts at 1; OpId::kNone for lines
  // that belong to the kernel as a whole.
  std::vector<ir::OpId> line_ops;
  ir::ParamLayout params;  // what the text declares, without places that nothing reads
  int shared_bytes = 0;    // of shared memory that the text itself declares
  // What the launch has to ask for as dynamic shared memory, in bytes, before what the kernel's
  // own `shared.dynamic` needs: more than 48 KB cannot be declared, and where there is dynamic
  // shared memory the arrays lie in front of it.
  int dynamic_shared_base = 0;
};

// The kernel must have passed ir::verify at Stage::kEmittable. The same kernel gives the same text
// in every run. InvalidArgument, with every place, where it has an op that its target lacks, or
// that would have to move an accumulator which the tensor cores still write.
StatusOr<PtxModule> emit_ptx(const ir::Kernel& kernel, const PtxOptions& options = {});
// The same of the kernel that the analyses are of, which may know something of it already.
StatusOr<PtxModule> emit_ptx(ir::Analyses& analyses, const PtxOptions& options = {});

// What a kernel of that name is called in PTX: characters that PTX does not take become '_'.
std::string ptx_identifier(absl::string_view name);

}  // namespace heddle::codegen
