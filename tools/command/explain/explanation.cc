#include "heddle/tools/command/explain/explanation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/ir/analysis/liveness.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"

namespace heddle::tools {
namespace {

using absl::string_view;
using runtime::Compilation;
using Place = std::pair<std::string, int>;

// Of the opcodes that begin so; the first row that fits decides.
struct SassKind {
  string_view prefix, kind;
};
constexpr SassKind kSassKinds[] = {
    {"HGMMA", "tensor cores"},
    {"QGMMA", "tensor cores"},
    {"IGMMA", "tensor cores"},
    {"HMMA", "tensor cores"},
    {"IMMA", "tensor cores"},
    {"QMMA", "tensor cores"},
    {"DMMA", "tensor cores"},
    {"WARPGROUP", "synchronisation"},
    {"WARPSYNC", "synchronisation"},
    {"LDGDEPBAR", "synchronisation"},
    {"LDGSTS", "global memory"},
    {"LDG", "global memory"},
    {"STG", "global memory"},
    {"ATOMG", "global memory"},
    {"RED", "global memory"},
    {"UTMA", "global memory"},
    {"UBLKCP", "global memory"},
    {"UBLKRED", "global memory"},
    {"LDSM", "shared memory"},
    {"STSM", "shared memory"},
    {"LDS", "shared memory"},
    {"STS", "shared memory"},
    {"STAS", "shared memory"},
    {"ATOMS", "shared memory"},
    {"LDL", "local memory"},
    {"STL", "local memory"},
    {"LDC", "moves"},
    {"LD", "global memory"},
    {"ST", "global memory"},
    {"ATOM", "global memory"},
    {"MUFU", "special functions"},
    {"REDUX", "between lanes"},
    {"SHFL", "between lanes"},
    {"VOTE", "between lanes"},
    {"MATCH", "between lanes"},
    {"ELECT", "between lanes"},
    {"BAR", "synchronisation"},
    {"SYNCS", "synchronisation"},
    {"MEMBAR", "synchronisation"},
    {"DEPBAR", "synchronisation"},
    {"ERRBAR", "synchronisation"},
    {"FENCE", "synchronisation"},
    {"CCTL", "synchronisation"},
    {"UCGABAR", "synchronisation"},
    {"ACQBULK", "synchronisation"},
    {"BRA", "control"},
    {"EXIT", "control"},
    {"BSSY", "control"},
    {"BSYNC", "control"},
    {"CALL", "control"},
    {"RET", "control"},
    {"BREAK", "control"},
    {"NANOSLEEP", "control"},
    {"NOP", "control"},
    {"I2F", "conversions"},
    {"F2I", "conversions"},
    {"F2F", "conversions"},
    {"I2I", "conversions"},
    {"F2", "conversions"},
    {"FRND", "conversions"},
    {"FADD", "floats"},
    {"FMUL", "floats"},
    {"FFMA", "floats"},
    {"FMNMX", "floats"},
    {"FSEL", "floats"},
    {"FSET", "floats"},
    {"FCHK", "floats"},
    {"HADD", "floats"},
    {"HMUL", "floats"},
    {"HFMA", "floats"},
    {"HMNMX", "floats"},
    {"HSET", "floats"},
    {"DADD", "floats"},
    {"DMUL", "floats"},
    {"DFMA", "floats"},
    {"DSET", "floats"},
    {"IMAD.MOV", "moves"},
    {"MOV", "moves"},
    {"S2", "moves"},
    {"CS2", "moves"},
    {"R2", "moves"},
    {"P2R", "moves"},
    {"IADD", "integers"},
    {"IMAD", "integers"},
    {"IMUL", "integers"},
    {"ISET", "integers"},
    {"IMNMX", "integers"},
    {"IABS", "integers"},
    {"LEA", "integers"},
    {"LOP", "integers"},
    {"SHF", "integers"},
    {"SEL", "integers"},
    {"PRMT", "integers"},
    {"POPC", "integers"},
    {"FLO", "integers"},
    {"BREV", "integers"},
    {"SGXT", "integers"},
    {"BMSK", "integers"},
    {"VI", "integers"},
    {"VA", "integers"},
    {"VM", "integers"},
    {"PLOP", "integers"},
    {"IDP", "integers"},
};

string_view kind_by_prefix(string_view opcode) {
  for (const SassKind& row : kSassKinds) {
    if (absl::StartsWith(opcode, row.prefix)) return row.kind;
  }
  return {};
}

// The lines of source files that can be read. Those of Heddle's own headers are called heddle/…; they and relative
// paths are looked for in the current folder and those around it.
class Sources {
 public:
  std::string line(const std::string& file, int number) {
    auto [it, is_new] = files_.try_emplace(file);
    if (is_new) {
      std::ifstream in = open(file);
      for (std::string line; std::getline(in, line);) it->second.push_back(line);
    }
    if (number < 1 || static_cast<size_t>(number) > it->second.size()) return "";
    return it->second[static_cast<size_t>(number) - 1];
  }

 private:
  static std::ifstream open(const std::string& file) {
    std::ifstream in(file);
    std::error_code error;
    for (auto folder = std::filesystem::current_path(error); !in.is_open() && !folder.empty();
         folder = folder.parent_path()) {
      in.open(folder / file);
      if (!in.is_open()) in.open(folder / std::string(absl::StripPrefix(file, "heddle/")));
      if (folder == folder.parent_path()) break;
    }
    return in;
  }

  std::map<std::string, std::vector<std::string>> files_;
};

// Ops by line and mnemonic.
std::map<Place, std::map<string_view, int>> ops_of_lines(const ir::Kernel& kernel) {
  std::map<Place, std::map<string_view, int>> counts;
  kernel.walk([&](ir::OpId id) {
    if (kernel.op(id).opcode == ir::Opcode::kYield) return;
    const ir::Loc loc = kernel.loc(id);
    ++counts[{std::string(loc.file), loc.line}][info(kernel.op(id)).mnemonic];
  });
  return counts;
}

class Explainer {
 public:
  Explainer(const Compilation& compilation, string_view passes, string_view listing)
      : compilation_(compilation), kernel_(compilation.optimized) {
    result_.kernel = compilation.name;
    result_.target = std::string(kernel_.target->name);
    const codegen::EntryReport* const report = compilation.assembly.find(compilation.ptx.entry);
    if (report != nullptr) result_.resources = *report;
    const std::vector<codegen::SassInstruction> sass = codegen::sass_opcodes(listing);
    find_lines(sass);
    const ir::Liveness liveness(kernel_);
    result_.peak_registers = liveness.peak();
    ir::WarpAccesses accesses(kernel_);
    add_ops(kernel_.body(), 0, 0, liveness, accesses, ir::ValueNames(kernel_));
    add_ptx();
    for (const codegen::SassInstruction& instruction : sass) add_instruction(instruction);
    add_changes(passes);
  }

  Explanation take() { return std::move(result_); }

 private:
  int line_of(const std::string& file, int number) const {
    const auto it = numbers_.find({file, number});
    return it == numbers_.end() ? -1 : it->second;
  }
  int line_of(ir::OpId id) const {
    const ir::Loc loc = kernel_.loc(id);
    return line_of(std::string(loc.file), loc.line);
  }

  void find_lines(const std::vector<codegen::SassInstruction>& sass) {
    const auto meet = [&](const std::string& file, int number) {
      if (!file.empty()) numbers_.try_emplace({file, number}, 0);
    };
    for (const ir::Kernel* kernel : {&compilation_.traced, &compilation_.optimized}) {
      kernel->walk([&](ir::OpId id) {
        const ir::Loc loc = kernel->loc(id);
        meet(std::string(loc.file), loc.line);
      });
    }
    for (const codegen::SassInstruction& instruction : sass)
      meet(instruction.file, instruction.line);
    Sources sources;
    for (auto& [place, index] : numbers_) {
      index = static_cast<int>(result_.lines.size());
      Explanation::Line& line = result_.lines.emplace_back();
      line.file = place.first;
      line.number = place.second;
      line.source = sources.line(place.first, place.second);
    }
  }

  void add_ops(ir::RegionId region, int indent, int loops, const ir::Liveness& liveness,
               ir::WarpAccesses& accesses, const ir::ValueNames& names) {
    for (const ir::OpId id : kernel_.ops(region)) {
      const ir::Op& op = kernel_.op(id);
      Explanation::Row& row = result_.ir.emplace_back();
      row.text = ir::print_op(kernel_, id, names);
      row.line = line_of(id);
      row.indent = indent;
      row.registers = liveness.registers_at(id);
      if (row.line >= 0 && op.opcode != ir::Opcode::kYield) {
        Explanation::Line& line = result_.lines[static_cast<size_t>(row.line)];
        ++line.ir;
        line.registers = std::max(line.registers, row.registers);
        line.loops = std::max(line.loops, loops);
        add_access(op, accesses, line);
      }
      for (const ir::RegionId inner : op.regions) {
        add_ops(inner, indent + 1, loops + (ir::is_loop(op) ? 1 : 0), liveness, accesses, names);
      }
    }
  }

  void add_access(const ir::Op& op, ir::WarpAccesses& accesses, Explanation::Line& line) const {
    if (!ir::is_lane_access(op)) return;
    Explanation::Access access{
        absl::StrCat(info(op).mnemonic, ".", name_of(kernel_.type(op.view()).space)), 1,
        accesses.of(op)};
    for (Explanation::Access& known : line.accesses) {
      if (known.op == access.op && known.warp == access.warp) {
        ++known.count;
        return;
      }
    }
    line.accesses.push_back(std::move(access));
  }

  void add_ptx() {
    const std::vector<ir::OpId>& ops = compilation_.ptx.line_ops;
    const std::vector<string_view> lines = absl::StrSplit(compilation_.ptx.text, '\n');
    for (size_t i = 0; i < lines.size(); ++i) {
      const string_view words = absl::StripLeadingAsciiWhitespace(lines[i]);
      if (words.empty() || absl::StartsWith(words, ".loc")) continue;
      Explanation::Row& row = result_.ptx.emplace_back();
      row.text = std::string(lines[i]);
      const ir::OpId op = i + 1 < ops.size() ? ops[i + 1] : ir::OpId::kNone;
      if (!ir::valid(op) || absl::StrContains("{}./$", words[0])) continue;
      row.line = line_of(op);
      if (row.line >= 0) ++result_.lines[static_cast<size_t>(row.line)].ptx;
    }
  }

  void add_instruction(const codegen::SassInstruction& instruction) {
    const std::string kind(kind_of_sass(instruction.opcode));
    const int line = line_of(instruction.file, instruction.line);
    result_.sass.push_back({instruction.text, line, 0, 0, kind});
    ++result_.mix[kind];
    if (line < 0) return;
    ++result_.lines[static_cast<size_t>(line)].sass;
    ++result_.lines[static_cast<size_t>(line)].mix[kind];
  }

  // The pipeline is run up to each of its passes, and the kernels are compared.
  void add_changes(string_view passes) {
    auto before = ops_of_lines(compilation_.traced);
    const auto ran = static_cast<int>(compilation_.report.passes.size());
    for (int limit = 1; limit <= ran; ++limit) {
      const ir::PassRun& pass = compilation_.report.passes[static_cast<size_t>(limit) - 1];
      if (!pass.changed) continue;
      ir::Kernel kernel = compilation_.traced;
      if (!ir::run_pipeline(kernel, passes, {.pass_limit = limit}).ok()) return;
      auto after = ops_of_lines(kernel);
      for (const auto& [place, index] : numbers_) {
        Explanation::Change change{pass.name};
        for (const auto& [mnemonic, count] : before[place]) {
          change.removed += std::max(0, count - after[place][mnemonic]);
        }
        for (const auto& [mnemonic, count] : after[place]) {
          change.added += std::max(0, count - before[place][mnemonic]);
        }
        if (change.added + change.removed > 0) {
          result_.lines[static_cast<size_t>(index)].changes.push_back(std::move(change));
        }
      }
      before = std::move(after);
    }
  }

  const Compilation& compilation_;
  const ir::Kernel& kernel_;
  std::map<Place, int> numbers_;  // in lines
  Explanation result_;
};

}  // namespace

double Explanation::Line::cost() const {
  const int instructions = sass > 0 ? sass : ptx;
  return instructions * std::pow(8.0, std::min(loops, 4));
}

string_view kind_of_sass(string_view opcode) {
  if (const string_view kind = kind_by_prefix(opcode); !kind.empty()) return kind;
  // Of a warp's uniform registers.
  if (absl::StartsWith(opcode, "U")) {
    if (const string_view kind = kind_by_prefix(opcode.substr(1)); !kind.empty()) return kind;
  }
  return "other";
}

Explanation explain(const Compilation& compilation, string_view passes, string_view listing) {
  return Explainer(compilation, passes, listing).take();
}

}  // namespace heddle::tools
