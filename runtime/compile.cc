#include "heddle/runtime/compile.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "heddle/runtime/compile_option_text.h"
#include "heddle/runtime/dump.h"
#include "heddle/runtime/launch_limits.h"
#include "heddle/runtime/named_extents.h"
#include "heddle/runtime/observe/compile_log_internal.h"
#include "heddle/runtime/observe/ranges.h"
#include "heddle/runtime/observe/watches_internal.h"
#include "heddle/runtime/specialize.h"
#include "heddle/runtime/stopwatch_internal.h"

namespace heddle::runtime {
namespace {

Status add_context(const Status& status, const Compilation& compilation) {
  return Status(status.code(), absl::StrCat(compilation.describe(), ": ", status.message()));
}

constexpr char kPassesVariable[] = "HEDDLE_PASSES";
const char* passes_of_environment() { return std::getenv(kPassesVariable); }

// Says where passes come from that nobody wrote into the program.
Status blame_environment(const Status& status, const std::string& passes) {
  const char* const wanted = passes_of_environment();
  if (wanted == nullptr || passes != wanted) return status;
  return Status(status.code(), absl::StrCat(kPassesVariable, ": ", status.message()));
}

// ptxas speaks of PTX lines; the user wrote C++ ones. Empty where it names none, or one of
// nobody's.
std::string explain_line(const Compilation& compilation, const codegen::Diagnostic& said) {
  const std::optional<PtxOrigin> origin = origin_of_line(compilation, said.ptx_line);
  if (!origin) return "";
  const ir::SourceLine& at = origin->place;
  const std::string place = at.file.empty() ? "" : absl::StrCat(" (", at.file, ":", at.line, ")");
  return absl::StrCat("\n  PTX line ", said.ptx_line, " comes from: ", origin->op, place);
}

std::string explain_errors(const Compilation& compilation,
                           const std::vector<codegen::Diagnostic>& said) {
  std::string text;
  for (const codegen::Diagnostic& diagnostic : said) {
    if (diagnostic.is_error()) absl::StrAppend(&text, explain_line(compilation, diagnostic));
  }
  return text;
}

// What helps against a note: of the first row whose text stands in it.
struct Remedy {
  absl::string_view note;
  absl::string_view fix;
};
constexpr Remedy kRemedies[] = {
    {"unable to determine register count at entry",
     "give the kernel a fixed block, CompileOptions{.block = …}"},
    {"to allow debugging", "compile without --device-debug"},
    {"'setmaxnreg' ignored", "leave more registers to the threads that give some away"},
    {"insufficient register resources", "use smaller tiles, or more warp groups for each"},
    {"non wgmma instructions",
     "settle the fragment with wgmma.wait before anything else uses its registers"},
    {"is injected", "settle the fragment with wgmma.wait before anything else uses its registers"},
    {"ill formed pipeline stage", "close each group with wgmma.commit, on every path"},
    {"in divergent path", "branch around wgmma and its waits by conditions of whole warp groups"},
    {"spills", "use smaller tiles, or more warp groups for each"},
    {"", "mend what it names"},
};

// The remedies for all notes, each once.
class Remedies {
 public:
  void add(absl::string_view note) {
    for (const Remedy& remedy : kRemedies) {
      if (!absl::StrContains(note, remedy.note)) continue;
      if (!absl::StrContains(text_, remedy.fix)) absl::StrAppend(&text_, remedy.fix, ", or ");
      return;
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Refuses what ptxas only notes: that it gave up the speed that wgmma is for.
Status check_speed_of_wgmma(const Compilation& compilation) {
  // Of a kernel that was recalled the PTX is there.
  const bool has_wgmma = compilation.recalled
                             ? absl::StrContains(compilation.ptx.text, "wgmma.mma_async")
                             : ir::has_op(compilation.optimized, ir::Opcode::kWgmma);
  if (!has_wgmma) return OkStatus();
  std::string text;
  Remedies remedies;
  for (const codegen::Diagnostic& said : compilation.assembly.diagnostics) {
    if (!said.is_performance_note()) continue;
    remedies.add(said.text);
    const std::string code = said.code.empty() ? "" : absl::StrCat("(", said.code, ") ");
    absl::StrAppend(&text, "\n  ", code, said.text, explain_line(compilation, said));
  }
  const codegen::EntryReport* const entry = compilation.assembly.find(compilation.ptx.entry);
  if (entry != nullptr && entry->spill_store_bytes + entry->spill_load_bytes > 0) {
    absl::StrAppend(&text, "\n  it needs more than ", entry->registers,
                    " registers a thread, and spills ", entry->spill_store_bytes,
                    " bytes to memory");
    remedies.add("spills");
  }
  if (text.empty()) return OkStatus();
  return FailedPreconditionError(
      absl::StrCat("ptxas gave up the speed of its wgmmas:", text, "\n  fix: ", remedies.text(),
                   "take the kernel as it is with CompileOptions{.allow_slow_wgmma = true}"));
}

}  // namespace

Status assemble_ptx(Compilation& compilation) {
  const CompileOptions& options = compilation.options;
  codegen::AssembleOptions assemble_options;
  assemble_options.arch = std::string(compilation.optimized.target->name);
  assemble_options.entries = {compilation.ptx.entry};
  assemble_options.opt_level = options.opt_level;
  assemble_options.max_registers = options.max_registers;
  assemble_options.extra_flags = options.ptxas_flags;
  assemble_options.line_info = options.line_info;
  assemble_options.assembler = options.assembler;
  assemble_options.ptxas_path = options.ptxas_path;
  assemble_options.library_path = options.ptx_library_path;
  std::shared_ptr<codegen::DiskCache> cache;
  if (options.disk_cache != DiskCaching::kOff) cache = codegen::DiskCache::of_user();
  assemble_options.cache = cache.get();
  assemble_options.renew = options.disk_cache == DiskCaching::kRenew;
  std::vector<codegen::Diagnostic> said;
  StatusOr<codegen::Assembly> assembly =
      codegen::assemble(compilation.ptx.text, assemble_options, &said);
  if (!assembly.ok()) {
    return Status(assembly.status().code(),
                  absl::StrCat(assembly.status().message(), explain_errors(compilation, said)));
  }
  compilation.assembly = *std::move(assembly);
  compilation.times.ptxas = static_cast<double>(compilation.assembly.wall_time.count());
  return options.allow_slow_wgmma ? OkStatus() : check_speed_of_wgmma(compilation);
}

namespace {

void dump_stages(const Compilation& compilation, Dumps& dumps) {
  if (dumps.wanted("trace")) dumps.show("trace.ir", ir::print(compilation.traced, {.locs = true}));
  if (dumps.wanted("constants")) dumps.show("constants", list_constants(compilation.traced));
  if (dumps.wanted("ir")) dumps.show("ir", ir::print(compilation.optimized, {.locs = true}));
  if (dumps.wanted("ptx") && !compilation.ptx.text.empty()) {
    dumps.show("ptx", compilation.ptx.text);
  }
}

}  // namespace

std::string default_passes() {
  const char* const wanted = passes_of_environment();
  return wanted != nullptr ? std::string(wanted) : std::string(ir::kDefaultLevel);
}

void Compilation::prepare_launches() {
  at_launch = ir::LaunchProgram(optimized, layout);
  tensor_maps = ir::TensorMaps(optimized, layout);
  if (!tensor_maps.empty()) places = layout.places();
}

std::string Compilation::describe() const {
  return LaunchSite(name, place.file, place.line).describe();
}

std::optional<PtxOrigin> origin_of_line(const Compilation& compilation, int ptx_line) {
  const auto line = static_cast<size_t>(ptx_line);
  if (line >= compilation.ptx.line_ops.size()) return std::nullopt;
  const ir::OpId op = compilation.ptx.line_ops[line];
  if (!ir::valid(op)) return std::nullopt;
  const ir::Loc loc = compilation.optimized.loc(op);
  return PtxOrigin{ir::print_op(compilation.optimized, op), {std::string(loc.file), loc.line}};
}

StatusOr<const ir::Target*> target_of(const CompileOptions& options) {
  if (options.target.empty()) return &ir::default_target();
  const ir::Target* const target = ir::find_target(options.target);
  if (target != nullptr) return target;
  return InvalidArgumentError(
      absl::StrCat("unknown target '", options.target, "': Heddle knows ", ir::target_names()));
}

ir::TraceResult trace_source(const ir::KernelSource& source,
                             const ir::Specialization& specialization) {
  ir::Kernel launched(source.name());
  launched.block = specialization.block;
  launched.cluster = specialization.cluster;
  launched.target = specialization.target;
  const ir::SourceLine place = source.place();
  if (!place.file.empty()) launched.defined = launched.intern_loc(place.file, place.line);
  if (ir::Diagnostics wrong = ir::verify_launch(launched); !wrong.empty()) {
    return {std::move(launched), std::move(wrong), /*abandoned=*/true};
  }
  ir::TraceResult traced = source.trace(specialization);
  if (traced.abandoned) return traced;
  require_named_extents(traced.kernel, source.params(), specialization.arguments);
  ir::Diagnostics found = ir::verify(traced.kernel, ir::Stage::kTraced);
  std::move(found.begin(), found.end(), std::back_inserter(traced.diagnostics));
  return traced;
}

namespace {

// What compile_source() does, but for the log and the profiler's range.
StatusOr<std::shared_ptr<const Compilation>> run_stages(
    const ir::KernelSource& source, ir::Specialization specialization, const CompileOptions& asked,
    std::shared_ptr<const Compilation>* partial) {
  const StatusOr<CompileOptions> resolved = with_environment(asked);
  if (!resolved.ok()) return resolved.status();
  CompileOptions options = *resolved;
  if (options.assembler == Assembler::kDriver) {
    if (!options.ptxas_flags.empty()) {
      return InvalidArgumentError(
          absl::StrCat(describe(source), ": the driver takes no flags of ptxas, such as ",
                       options.ptxas_flags[0], "; fix: leave them out, or another assembler"));
    }
    // Of a program that did not ask for the driver: HEDDLE_OPTIONS leaves what it makes to the launch.
    if (asked.assembler != Assembler::kDriver) options.stage = std::min(options.stage, Stage::kPtx);
  }
  if (Status s = check_dump_stages(options.keep); !s.ok()) return s;
  specialization.block = options.block;
  specialization.cluster = options.cluster;
  if (!options.target.empty()) {
    const StatusOr<const ir::Target*> target = target_of(options);
    if (!target.ok()) return target.status();
    specialization.target = *target;
  }

  Stopwatch stopwatch;
  ir::TraceResult traced = trace_source(source, specialization);
  const ir::Diagnostics mistakes = std::move(traced.diagnostics);
  auto compilation = std::make_shared<Compilation>(std::move(traced));
  compilation->name = source.name();
  compilation->options = options;
  compilation->place = source.place();
  compilation->params.assign(source.params().begin(), source.params().end());
  compilation->times.trace = stopwatch.lap();
  const Watches watches(options);
  Dumps dumps(compilation->name, specialization.target->name, options.keep, options.keep_dir);
  if (!mistakes.empty()) {
    if (dumps.wanted("trace")) {
      dumps.show("trace.ir", ir::print(compilation->traced, {.locs = true}));
    }
    if (Status s = watches.see_mistakes(*compilation, mistakes); !s.ok()) return s;
    return ir::to_status(compilation->describe(), mistakes);
  }

  if (Status s = watches.see_trace(*compilation); !s.ok()) return s;

  stopwatch.lap();  // what others do is not the compiler's time
  ir::PipelineOptions pipeline;
  if (options.pipeline != nullptr) pipeline = *options.pipeline;
  pipeline.report = &compilation->report;
  ir::Analyses analyses(compilation->optimized);
  pipeline.analyses = &analyses;
  if (Status s = ir::run_pipeline(compilation->optimized, options.passes, pipeline); !s.ok()) {
    return add_context(blame_environment(s, options.passes), *compilation);
  }
  compilation->times.passes = stopwatch.lap();
  if (Status s = watches.see_ir(*compilation); !s.ok()) return s;
  stopwatch.lap();

  if (options.stage >= Stage::kPtx) {
    StatusOr<codegen::PtxModule> ptx =
        codegen::emit_ptx(analyses, {.device_checks = options.device_checks});
    if (!ptx.ok()) return add_context(ptx.status(), *compilation);
    compilation->ptx = *std::move(ptx);
    compilation->times.emit = stopwatch.lap();
    if (Status s = watches.edit_ptx(*compilation); !s.ok()) return s;
  }
  // The emitter may ask for facts too.
  compilation->guards.assign(compilation->optimized.facts_read().begin(),
                             compilation->optimized.facts_read().end());
  compilation->layout = options.stage >= Stage::kPtx ? compilation->ptx.params
                                                     : ir::param_layout(compilation->optimized);
  compilation->prepare_launches();
  dump_stages(*compilation, dumps);
  if (const auto why = compilation->at_launch.refuses_all()) {
    return InvalidArgumentError(absl::StrCat(compilation->describe(), " can never launch: ", *why));
  }

  if (options.stage >= Stage::kCubin) {
    stopwatch.lap();
    const Status assembled = assemble_ptx(*compilation);
    compilation->times.assemble = stopwatch.lap();
    if (!assembled.ok()) {
      if (partial != nullptr) *partial = compilation;
      return add_context(assembled, *compilation);
    }
    if (Status s = watches.see_cubin(*compilation); !s.ok()) return s;
    if (dumps.wanted("cubin")) dumps.show("cubin", compilation->assembly.cubin, /*binary=*/true);
  }
  return compilation;
}

}  // namespace

StatusOr<std::shared_ptr<const Compilation>> compile_source(
    const ir::KernelSource& source, ir::Specialization specialization,
    const CompileOptions& options, std::shared_ptr<const Compilation>* partial) {
  const ProfilerRange range("compile", source.name());
  StatusOr<std::shared_ptr<const Compilation>> compilation =
      run_stages(source, std::move(specialization), options, partial);
  if (compilation.ok()) {
    log_compilation(**compilation);
  } else if (partial == nullptr || *partial == nullptr) {
    log_failed_compilation(describe(source), compilation.status());
  }
  return compilation;
}

}  // namespace heddle::runtime
