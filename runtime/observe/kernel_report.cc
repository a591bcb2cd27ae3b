#include "heddle/runtime/observe/kernel_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/argument_facts.h"

namespace heddle::runtime {
namespace {

int count_ops(const ir::Kernel& kernel) {
  int count = 0;
  kernel.walk([&](ir::OpId id) { count += kernel.op(id).opcode != ir::Opcode::kYield ? 1 : 0; });
  return count;
}

KernelReport::Guard guard_of(const Compilation& compilation, const ir::Guard& guard) {
  return {guard.fact.param,
          compilation.params[guard.fact.param].name,
          std::string(ir::info(guard.fact.kind).name),
          guard.fact.dim,
          guard.value,
          guard.value != ir::info(guard.fact.kind).unknown,
          describe_guard(guard)};
}

CodeOrigin origin_of(const Compilation& compilation) {
  const codegen::Assembly& assembly = compilation.assembly;
  if (compilation.ptx.text.empty()) return CodeOrigin::kNobody;
  if (assembly.cubin.empty()) return CodeOrigin::kDriver;
  if (assembly.from_cache) return CodeOrigin::kDiskCache;
  return assembly.made_by == codegen::Tool::kPtxLibrary ? CodeOrigin::kLibrary
                                                        : CodeOrigin::kProgram;
}

std::optional<KernelReport::Code> code_of(const Compilation& compilation, int64_t shared_bytes) {
  const codegen::Assembly& assembly = compilation.assembly;
  const codegen::EntryReport* const entry = assembly.find(compilation.ptx.entry);
  if (assembly.cubin.empty() || entry == nullptr) return std::nullopt;
  return KernelReport::Code{
      .assembler = absl::StrCat(codegen::tool_name(assembly.made_by), " ",
                                assembly.ptxas_version.to_string()),
      .registers = entry->registers,
      .spill_store_bytes = entry->spill_store_bytes,
      .spill_load_bytes = entry->spill_load_bytes,
      .stack_bytes = entry->stack_frame_bytes,
      .static_shared_bytes = entry->shared_bytes,
      .dynamic_shared_bytes = compilation.ptx.dynamic_shared_base + shared_bytes,
      .constant_bytes = entry->constant_bytes,
      .code_bytes = entry->code_bytes,
      .barriers = entry->barriers,
      .cubin_bytes = static_cast<int64_t>(assembly.cubin.size())};
}

std::vector<KernelReport::Remark> remarks_of(const Compilation& compilation) {
  std::vector<KernelReport::Remark> remarks;
  for (const codegen::Diagnostic& said : compilation.assembly.diagnostics) {
    if (said.severity == codegen::Severity::kInfo && !said.is_performance_note()) continue;
    PtxOrigin origin = origin_of_line(compilation, said.ptx_line).value_or(PtxOrigin{});
    remarks.push_back({said.severity, said.code, said.text, said.ptx_line, std::move(origin.op),
                       std::move(origin.place)});
  }
  return remarks;
}

std::string describe(const Occupancy& occupancy) {
  const std::string limits = absl::StrJoin(
      occupancy.limits, " and ",
      [](std::string* out, OccupancyLimit limit) { absl::StrAppend(out, name_of(limit)); });
  if (occupancy.blocks == 0) {
    return absl::StrCat("no block fits a multiprocessor, for want of ", limits);
  }
  return absl::StrCat(ir::counted(occupancy.blocks, "block"), " and ", occupancy.warps, " of ",
                      occupancy.max_warps, " warps a multiprocessor, limited by ", limits);
}

std::string describe(const KernelReport::Code& code) {
  const std::string spills =
      code.spill_store_bytes + code.spill_load_bytes == 0
          ? "no spills"
          : absl::StrCat(code.spill_store_bytes, " bytes spilled by stores, ",
                         code.spill_load_bytes, " by loads");
  return absl::StrCat(ir::counted(code.registers, "register"), ", ", spills, ", ",
                      ir::counted(code.static_shared_bytes + code.dynamic_shared_bytes, "byte"),
                      " of shared memory");
}

// "row_sum.cc:14: "
std::string prefix_of(const ir::SourceLine& place) {
  return place.file.empty() ? "" : absl::StrCat(place.file, ":", place.line, ": ");
}

}  // namespace

absl::string_view name_of(CodeOrigin origin) {
  constexpr absl::string_view kNames[] = {"nobody", "driver", "library", "program", "disk cache"};
  return kNames[static_cast<size_t>(origin)];
}

KernelReport kernel_report(const Compilation& compilation, int64_t shared_bytes) {
  const ir::Kernel& kernel = compilation.optimized;
  KernelReport report{.name = compilation.name,
                      .place = compilation.place,
                      .target = std::string(kernel.target->name),
                      .block = kernel.block,
                      .cluster = kernel.cluster,
                      .passes = compilation.options.passes,
                      .recalled = compilation.recalled,
                      .ops_traced = count_ops(compilation.traced),
                      .ops_optimized = count_ops(kernel),
                      .times = compilation.times,
                      .origin = origin_of(compilation),
                      .ptx_edited = compilation.ptx_edited,
                      .guards = {},
                      .code = code_of(compilation, shared_bytes),
                      .occupancy = {},
                      .remarks = remarks_of(compilation)};
  for (const ir::Guard& guard : compilation.guards) {
    report.guards.push_back(guard_of(compilation, guard));
  }
  if (const auto& code = report.code) {
    report.occupancy = occupancy_of(
        *kernel.target, {.threads = kernel.block.count(),
                         .registers = code->registers,
                         .shared_bytes = code->static_shared_bytes + code->dynamic_shared_bytes,
                         .barriers = code->barriers.value_or(0)});
  }
  return report;
}

std::string summary(const KernelReport& report) {
  if (!report.code) return "";
  return absl::StrCat(describe(*report.code), report.occupancy ? "; " : "",
                      report.occupancy ? describe(*report.occupancy) : "");
}

std::string to_text(const KernelReport& report) {
  std::string text =
      absl::StrCat("kernel ", report.name,
                   report.place.file.empty()
                       ? ""
                       : absl::StrCat(" (", report.place.file, ":", report.place.line, ")"),
                   " for ", report.target, "\n");
  const auto line = [&](absl::string_view name, absl::string_view value) {
    absl::StrAppendFormat(&text, "%-12s %s\n", name, value);
  };
  std::string block = report.block.x == 0 ? "any" : ir::to_string(report.block);
  if (report.cluster.count() > 1) {
    absl::StrAppend(&block, ", in clusters of ", ir::to_string(report.cluster), " blocks");
  }
  line("block", block);
  if (const auto& code = report.code) {
    line("code", describe(*code));
    line("", absl::StrCat(ir::counted(code->stack_bytes, "byte"), " of stack, ",
                          code->static_shared_bytes, " of static and ", code->dynamic_shared_bytes,
                          " of dynamic shared memory, ", code->constant_bytes, " of constants, ",
                          code->code_bytes, " of instructions"));
    line("made by",
         absl::StrCat(code->assembler, report.origin == CodeOrigin::kDiskCache
                                           ? ", earlier: it is from the disk's cache"
                                           : absl::StrCat(", the ", name_of(report.origin))));
  } else if (report.origin == CodeOrigin::kDriver) {
    line("made by", "the driver, when it loads the PTX");
  }
  if (report.ptx_edited) line("", "of PTX that a watch has edited");
  if (report.occupancy) line("occupancy", describe(*report.occupancy));
  line("ops", report.recalled ? "not known: another process has traced it"
                              : absl::StrCat(report.ops_traced, " traced, ", report.ops_optimized,
                                             " after ", report.passes));
  const StageTimes& t = report.times;
  line("ms", absl::StrFormat("%.2f trace, %.2f passes, %.2f PTX, %.2f assembling", t.trace / 1e3,
                             t.passes / 1e3, t.emit / 1e3, t.assemble / 1e3));
  absl::string_view heading = "relies on";
  for (const KernelReport::Guard& guard : report.guards) {
    if (!guard.relied_on) continue;
    line(std::exchange(heading, ""),
         absl::StrCat("argument ", guard.argument, " ('", guard.name, "') ", guard.describe));
  }
  heading = "ptxas says";
  for (const KernelReport::Remark& remark : report.remarks) {
    line(std::exchange(heading, ""),
         absl::StrCat(prefix_of(remark.place),
                      remark.code.empty() ? "" : absl::StrCat("(", remark.code, ") "), remark.text,
                      remark.op.empty() ? "" : absl::StrCat(" [", remark.op, "]")));
  }
  return text;
}

}  // namespace heddle::runtime
