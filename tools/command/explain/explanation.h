// What became of each source line of a kernel: its ops, instructions, registers and accesses, and which passes changed it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/ir/analysis/warp_accesses.h"
#include "heddle/runtime/compile.h"
#include "nlohmann/json_fwd.hpp"

namespace heddle::tools {

struct Explanation {
  // A line of IR, PTX or machine code.
  struct Row {
    std::string text;
    int line = -1;      // in `lines`; -1: of no source line
    int indent = 0;     // IR: how many ops are around it
    int registers = 0;  // IR: that hold values while it runs
    std::string kind;   // machine code: what sort of instruction it is
  };
  // Ops of a line that touch memory alike.
  struct Access {
    std::string op;  // "load.global"
    int count = 0;
    std::optional<ir::WarpAccess> warp;  // nullopt: not known
  };
  // How many ops of a line a pass added and took away.
  struct Change {
    std::string pass;
    int added = 0, removed = 0;
  };
  struct Line {
    std::string file;
    int number = 0;
    std::string source;  // empty: the file is not here
    int ir = 0, ptx = 0, sass = 0;
    int registers = 0;  // the most while one of its ops runs
    int loops = 0;      // the most around one of its ops
    std::map<std::string, int> mix;
    std::vector<Access> accesses;
    std::vector<Change> changes;

    // Instructions, those in loops counted eight times for each.
    double cost() const;
  };

  std::string kernel, target;
  std::optional<codegen::EntryReport> resources;  // as ptxas says
  int peak_registers = 0;                         // of values, as the analysis of the IR says
  std::map<std::string, int> mix;                 // machine instructions by kind
  std::vector<Line> lines;                        // by file and number
  std::vector<Row> ir, ptx, sass;
};

// Of a compilation by these passes, with its machine code as a listing, which is empty where there is none.
Explanation explain(const runtime::Compilation& compilation, absl::string_view passes,
                    absl::string_view listing);

// The sort of a machine instruction: "integers", "shared memory", "tensor cores".
absl::string_view kind_of_sass(absl::string_view opcode);

std::string to_text(const Explanation& explanation);
nlohmann::ordered_json to_json(const Explanation& explanation);
// One page that needs no other file.
std::string to_html(const Explanation& explanation);

}  // namespace heddle::tools
