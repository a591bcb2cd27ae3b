// Counts of a kernel at each stage: IR ops, PTX instructions, machine instructions, and the resources of
// the machine code.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/ir/kernel.h"
#include "nlohmann/json_fwd.hpp"

namespace heddle::tools {

using Counts = std::map<std::string, int>;

// Ops by mnemonic, regions included.
Counts count_ops(const ir::Kernel& kernel);
// Instructions by opcode with its modifiers ("ld.global.v4.f32"), without predicates; directives
// and labels are none.
Counts count_ptx_instructions(absl::string_view ptx);

// What ptxas reported of a kernel, with its warnings; several lines.
std::string describe(const codegen::Assembly& assembly, absl::string_view entry);

// Stages that a dump did not reach are absent.
struct Statistics {
  std::string kernel;
  std::string target;
  std::optional<Counts> trace, ir, ptx, sass;
  std::optional<codegen::EntryReport> resources;
  // The most registers that hold values at once in a source line, as ir/analysis/liveness.h counts them.
  struct Pressure {
    std::string place;
    int registers = 0;
  };
  // By line, those with most first.
  std::optional<std::vector<Pressure>> live;
};

// Of the kernel behind the passes.
std::vector<Statistics::Pressure> pressures_of(const ir::Kernel& kernel);

// A table: resources, then a column of opcodes for each stage.
std::string to_text(const Statistics& statistics);
nlohmann::ordered_json to_json(const Statistics& statistics);

}  // namespace heddle::tools
