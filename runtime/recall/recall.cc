#include "heddle/runtime/recall/recall.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/codegen/cache/fields.h"
#include "heddle/ir/passes/pass.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/compile_option_text.h"
#include "heddle/runtime/dump.h"
#include "heddle/runtime/observe/compile_log_internal.h"
#include "heddle/runtime/observe/watches_internal.h"
#include "heddle/runtime/recall/code_identity.h"
#include "heddle/runtime/recall/kept_compilation.h"
#include "heddle/runtime/specialize.h"
#include "heddle/runtime/stopwatch_internal.h"

namespace heddle::runtime {
namespace {

using codegen::append_field;

// Sets of facts that are kept of one kernel: a search reads all of them.
constexpr size_t kMostVariants = 64;

// "x 1 9 2 0 0": its name, and its type.
std::string text_of(const ir::ParamInfo& param) {
  const ir::Type& type = param.type;
  return absl::StrCat(param.name, " ", static_cast<int>(type.kind), " ",
                      static_cast<int>(type.scalar), " ", type.rank, " ", type.read_only, " ",
                      param.unbounded);
}

// Extents, strides and names that a signature fixes; of a launch there are none.
std::string text_of(const ir::Specialization::Argument& argument) {
  return absl::StrCat(absl::StrJoin(argument.extents, ","), ";",
                      absl::StrJoin(argument.strides, ","), ";",
                      absl::StrJoin(argument.names, ","));
}

// The kernel, the code behind it, and all that the code is compiled for but the facts of arguments. nullopt: it is not known.
std::optional<std::string> key_of_kernel(const ir::KernelSource& source,
                                         const ir::Specialization& specialization,
                                         const CompileOptions& options) {
  const std::optional<ir::KernelSource::Origin> origin = source.origin();
  if (!origin) return std::nullopt;
  const std::optional<std::string> code = code_identity(origin->code);
  static const std::optional<std::string> heddle =
      code_identity(reinterpret_cast<const void*>(&key_of_kernel));
  if (!code || !heddle) return std::nullopt;
  std::string key;
  append_field(key, "heddle compilation 1");
  append_field(key, *heddle);
  append_field(key, *code);
  append_field(key, origin->values);
  append_field(key, describe(source));
  for (const ir::ParamInfo& param : source.params()) append_field(key, text_of(param));
  append_field(key, specialization.target->name);
  append_field(key,
               absl::StrCat(ir::to_string(options.block), " ", ir::to_string(options.cluster)));
  for (const ir::Specialization::Argument& argument : specialization.arguments) {
    append_field(key, text_of(argument));
  }
  append_field(key, options.passes);
  append_field(key, absl::StrCat(options.device_checks ? "checks " : "",
                                 options.allow_slow_wgmma ? "slow" : ""));
  return key;
}

// Passes of a program's own, or of a plug-in, are code that no key names.
bool has_own_passes() {
  const auto registry = ir::process_passes();
  return !registry.ok() || (*registry)->passes().size() != ir::builtin_passes().size();
}

// Whether somebody wants to see stages that a recalled kernel does not have.
bool is_watched(const CompileOptions& options, absl::string_view kernel) {
  return options.pipeline != nullptr || Watches(options).any() ||
         Dumps(kernel, options.target, options.keep, options.keep_dir).any_wanted();
}

// What may be recalled of one kernel, for arguments like these.
class Recalled {
 public:
  // `options` are complete: with those of the environment.
  Recalled(const ir::KernelSource& source, const ir::Specialization& specialization,
           const CompileOptions& options);

  // The compilation for these arguments, assembled; nullptr where none is kept, or none may be taken. An error is the assembler's.
  StatusOr<std::shared_ptr<const Compilation>> find() const;
  // Keeps a compilation that was made because none was found. Where one is to be checked it compares the two, and says on stderr
  // where they differ.
  void keep(const Compilation& compilation) const;

 private:
  std::string key_of(absl::string_view guards) const;
  // The sets of facts that are kept, those of the last compilation first.
  std::vector<std::string> known_guards() const;
  bool holds(absl::string_view guards) const;
  void check(const Compilation& compilation, absl::string_view bytes) const;

  const ir::KernelSource& source_;
  const ir::Specialization& specialization_;
  const CompileOptions& options_;
  std::shared_ptr<codegen::DiskCache> cache_;  // nullptr: nothing is recalled
  std::string key_;
};

Recalled::Recalled(const ir::KernelSource& source, const ir::Specialization& specialization,
                   const CompileOptions& options)
    : source_(source), specialization_(specialization), options_(options) {
  const bool wanted = options.recall != Recall::kOff && options.stage == Stage::kCubin &&
                      options.disk_cache != DiskCaching::kOff;
  if (!wanted || is_watched(options, source.name()) || has_own_passes()) return;
  std::optional<std::string> key = key_of_kernel(source, specialization, options);
  if (!key) return;
  key_ = *std::move(key);
  cache_ = codegen::DiskCache::of_user();
}

std::string Recalled::key_of(absl::string_view guards) const {
  std::string key = key_;
  append_field(key, guards);
  return key;
}

std::vector<std::string> Recalled::known_guards() const {
  std::vector<std::string> all;
  const std::optional<std::string> kept = cache_->find(key_);
  if (!kept) return all;
  codegen::Fields fields(*kept);
  while (const auto guards = fields.next()) all.emplace_back(*guards);
  return all;
}

// A trace for these arguments reads the same values, and so comes out the same.
bool Recalled::holds(absl::string_view encoded) const {
  const std::optional<std::vector<ir::Guard>> guards = decode_guards(encoded);
  if (!guards) return false;
  const std::vector<ir::Guard>& facts = specialization_.facts;
  return std::all_of(guards->begin(), guards->end(), [&](const ir::Guard& guard) {
    const auto known = std::find_if(facts.begin(), facts.end(),
                                    [&](const ir::Guard& fact) { return fact.fact == guard.fact; });
    const int64_t value = known != facts.end() ? known->value : ir::info(guard.fact.kind).unknown;
    return value == guard.value;
  });
}

StatusOr<std::shared_ptr<const Compilation>> Recalled::find() const {
  if (cache_ == nullptr || options_.recall != Recall::kUse) return nullptr;
  if (options_.disk_cache == DiskCaching::kRenew) return nullptr;
  Stopwatch stopwatch;
  for (const std::string& guards : known_guards()) {
    if (!holds(guards)) continue;
    const std::optional<std::string> bytes = cache_->find(key_of(guards));
    if (!bytes) return nullptr;
    const std::shared_ptr<Compilation> known = decode_compilation(*bytes, source_, options_);
    if (known == nullptr) return nullptr;
    known->times.trace = stopwatch.lap();
    if (Status s = assemble_ptx(*known); !s.ok()) return s;
    known->times.assemble = stopwatch.lap();
    log_compilation(*known);
    return known;
  }
  return nullptr;
}

void Recalled::keep(const Compilation& compilation) const {
  if (cache_ == nullptr || compilation.assembly.cubin.empty()) return;
  // The names of a timeline's ranges are known to the process that traces the kernel (dsl/cuda/timeline.h).
  if (absl::StrContains(compilation.ptx.text, "%globaltimer")) return;
  const std::string bytes = encode_compilation(compilation, source_);
  if (bytes.empty()) return;
  if (options_.recall == Recall::kCheck) check(compilation, bytes);
  const std::string guards = encode_guards(compilation.guards);
  const std::string label = absl::StrCat(compilation.describe(), ", recalled");
  cache_->store(key_of(guards), label, bytes);
  std::vector<std::string> all = known_guards();
  all.erase(std::remove(all.begin(), all.end(), guards), all.end());
  all.insert(all.begin(), guards);
  if (all.size() > kMostVariants) all.resize(kMostVariants);
  std::string list;
  for (const std::string& known : all) append_field(list, known);
  cache_->store(key_, label, list);
}

void Recalled::check(const Compilation& compilation, absl::string_view bytes) const {
  for (const std::string& guards : known_guards()) {
    if (!holds(guards)) continue;
    const std::optional<std::string> kept = cache_->find(key_of(guards));
    if (!kept || *kept == bytes) return;
    std::fprintf(stderr,
                 "heddle: %s is another program than the one that an earlier process kept, and "
                 "--recall=use would have run that one: its "
                 "lambda reads what is neither its parameter nor captured; fix: give it such "
                 "values as those of a kernel_family, "
                 "or compile it without --recall\n",
                 compilation.describe().c_str());
    return;
  }
}

}  // namespace

StatusOr<std::shared_ptr<const Compilation>> recall_or_compile(
    const ir::KernelSource& source, const ir::Specialization& specialization,
    const CompileOptions& asked, std::shared_ptr<const Compilation>* partial) {
  const StatusOr<CompileOptions> options = with_environment(asked);
  if (!options.ok()) return options.status();
  ir::Specialization complete = specialization;
  if (!options->target.empty()) {
    const StatusOr<const ir::Target*> target = target_of(*options);
    if (!target.ok()) return target.status();
    complete.target = *target;
  }
  const Recalled recalled(source, complete, *options);
  StatusOr<std::shared_ptr<const Compilation>> known = recalled.find();
  if (known.ok() && *known != nullptr) return known;
  // Where the assembler failed, compiling says why.
  StatusOr<std::shared_ptr<const Compilation>> made =
      compile_source(source, specialization, asked, partial);
  if (made.ok()) recalled.keep(**made);
  return made;
}

}  // namespace heddle::runtime
