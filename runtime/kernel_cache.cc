#include "heddle/runtime/kernel_cache.h"

#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "heddle/ir/target.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/ahead/launch_recorder.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/named_extents.h"
#include "heddle/runtime/observe/compile_log_internal.h"
#include "heddle/runtime/observe/log.h"
#include "heddle/runtime/recall/recall.h"
#include "heddle/runtime/specialize.h"
#include "heddle/runtime/stopwatch_internal.h"

namespace heddle::runtime {
namespace {

// Said once a process: the driver's assembler does ptxas' work, slowly and without a report.
void say_driver_assembles(const Status& why) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "heddle: the driver assembles kernels itself, since ptxas cannot: %s\n",
                 std::string(why.message()).c_str());
  });
}

// A GPU that is older or newer than every target.
Status no_target(absl::string_view kernel, const Backend& device) {
  const DeviceInfo& info = device.info();
  const ir::Target &oldest = ir::kTargets.front(), &newest = ir::kTargets.back();
  const bool is_old = info.compute_major * 10 + info.compute_minor < oldest.sm;
  // What holds for one chip alone does not move to later ones.
  const absl::string_view movable = absl::StripSuffix(newest.name, "a");
  return FailedPreconditionError(absl::StrCat(
      kernel, " cannot be compiled for ", device.name(), ": ", info.name,
      " has compute capability ", info.compute_major, ".", info.compute_minor,
      ", and Heddle compiles for ", oldest.name, " to ", newest.name, "; fix: ",
      is_old ? absl::StrCat("use a GPU of compute capability ", oldest.sm / 10, ".", oldest.sm % 10,
                            " or newer, or the interpreter, Device::open(\"interp\")")
             : absl::StrCat("update Heddle, or let the driver translate older code, "
                            "HEDDLE_OPTIONS=\"--gpu-arch=",
                            movable, " --assembler=driver\"")));
}

auto find_fact(const std::vector<ir::Guard>& guards, const ir::Fact& fact) {
  return absl::c_find_if(guards, [&](const ir::Guard& guard) { return guard.fact == fact; });
}

// "block 512x1x1, cluster 2x1x1"
std::string describe_shape(const Dim3& block, const Dim3& cluster) {
  const bool any = block.x == ir::kBlockOfKernel;
  return absl::StrCat(any ? "the kernel's own block" : absl::StrCat("block ", ir::to_string(block)),
                      cluster == Dim3() ? "" : absl::StrCat(", cluster ", ir::to_string(cluster)));
}

StatusOr<std::shared_ptr<const Compilation>> compile_for(const ir::KernelSource& source,
                                                         const CompileOptions& options,
                                                         const ir::Target& target,
                                                         Arguments arguments) {
  std::shared_ptr<const Compilation> partial;
  StatusOr<std::shared_ptr<const Compilation>> compilation =
      recall_or_compile(source, specialize(source, arguments, target), options, &partial);
  const StatusCode code = compilation.status().code();
  const bool ptxas_missing = code == StatusCode::kNotFound || code == StatusCode::kUnimplemented;
  // What is asked for is taken or refused.
  const bool any = partial != nullptr && partial->options.assembler == Assembler::kAny;
  if (!any || !ptxas_missing) {
    if (partial != nullptr) log_failed_compilation(describe(source), compilation.status());
    return compilation;
  }
  say_driver_assembles(compilation.status());
  log_compilation(*partial);
  return partial;
}

}  // namespace

// What a launch needs that no variant of its device is.
struct KernelCache::Wanted {
  const Backend& device;
  const ir::Target* target;
  const LaunchShape& shape;
  Arguments arguments;
};

KernelCache& KernelCache::of(const ir::KernelSource& source) {
  ir::KernelSource::Attachment* attached = source.attachment();
  if (attached == nullptr) attached = source.attach(std::make_unique<KernelCache>());
  // The runtime alone attaches to kernels.
  return static_cast<KernelCache&>(*attached);
}

uint64_t KernelCache::next_kernel_id() {
  static std::atomic<uint64_t> next{0};
  return next.fetch_add(1);
}

KernelCache::~KernelCache() {
  for (Variant* variant = newest_.load(); variant != nullptr;) {
    delete std::exchange(variant, variant->next);
  }
}

const Executable* KernelCache::find(const Backend* backend, const LaunchShape& shape,
                                    Arguments arguments) const {
  for (const Variant* variant = newest_.load(std::memory_order_acquire); variant != nullptr;
       variant = variant->next) {
    const Executable& executable = *variant->executable;
    if (executable.backend() == backend && variant->block == shape.block &&
        variant->cluster == shape.cluster && executable.matches_exactly(arguments)) {
      return &executable;
    }
  }
  return nullptr;
}

StatusOr<const Executable*> KernelCache::find_or_compile(const ir::KernelSource& source,
                                                         const std::shared_ptr<Backend>& backend,
                                                         const LaunchShape& shape,
                                                         Arguments arguments) {
  Stopwatch all;
  std::unique_lock<std::mutex> lock(adding_, std::try_to_lock);
  const bool waits = !lock.owns_lock();
  if (waits) lock.lock();
  if (const Executable* found = find(backend.get(), shape, arguments)) {
    if (waits && logs(LogLevel::kInfo)) {
      log_wait_for_thread(describe(source), backend->name(), all.lap());
    }
    return found;
  }
  if (Status s = check_declared_numbers(source, arguments); !s.ok()) return s;
  CompileOptions options = Executable::launch_options_for(*backend);
  if (backend->kind() == BackendKind::kCuda && options.target.empty()) {
    return no_target(describe(source), *backend);
  }
  options.block = shape.block_to_compile();
  options.cluster = shape.cluster;
  const StatusOr<const ir::Target*> target = target_of(options);
  if (!target.ok()) return target.status();
  const Wanted wanted{*backend, *target, shape, arguments};
  Stopwatch stopwatch;
  StatusOr<std::shared_ptr<const Compilation>> compilation = find_compilation(wanted);
  const bool is_there = *compilation != nullptr;
  if (!is_there) compilation = compile_for(source, options, **target, arguments);
  if (!compilation.ok()) return compilation.status();
  const double compile_us = is_there ? -1 : stopwatch.lap();
  const bool from_disk = (*compilation)->assembly.from_cache;
  StatusOr<std::unique_ptr<Executable>> executable =
      Executable::load(backend, *std::move(compilation));
  // The driver refuses what the disk's cache gave: it is made anew, once.
  if (from_disk && IsInvalidArgument(executable.status())) {
    options.disk_cache = DiskCaching::kRenew;
    compilation = compile_for(source, options, **target, arguments);
    if (!compilation.ok()) return compilation.status();
    executable = Executable::load(backend, *std::move(compilation));
  }
  if (!executable.ok()) return executable.status();
  if (logs(LogLevel::kInfo)) {
    log_wait({.kernel = describe(source),
              .device = backend->name(),
              .variant = size() + 1,
              .reason = why_none_fits(wanted),
              .compile_us = compile_us,
              .load_us = stopwatch.lap(),
              .wait_us = all.lap()});
  }
  auto* const variant =
      new Variant{*std::move(executable), shape.block, shape.cluster, *target, newest_.load()};
  newest_.store(variant, std::memory_order_release);
  if (launches_are_recorded()) record_variant(source, shape, **target, options, arguments);
  return variant->executable.get();
}

std::shared_ptr<const Compilation> KernelCache::find_compilation(const Wanted& wanted) const {
  for (const Variant* v = newest_.load(std::memory_order_acquire); v != nullptr; v = v->next) {
    if (v->target == wanted.target && v->block == wanted.shape.block &&
        v->cluster == wanted.shape.cluster &&
        v->executable->backend()->kind() == wanted.device.kind() &&
        v->executable->matches_exactly(wanted.arguments)) {
      return v->executable->shared_compilation();
    }
  }
  return nullptr;
}

std::string KernelCache::why_none_fits(const Wanted& wanted) const {
  const auto kind = wanted.device.kind();
  const Variant* nearest = nullptr;
  int nearest_number = 0;
  std::vector<ir::Guard> nearest_differ;  // the facts that differ, as they are now
  std::string other_shapes;
  int number = size();
  for (const Variant* v = newest_.load(std::memory_order_acquire); v != nullptr;
       v = v->next, --number) {
    if (v->target != wanted.target || v->executable->backend()->kind() != kind) continue;
    if (v->block != wanted.shape.block || v->cluster != wanted.shape.cluster) {
      if (other_shapes.empty()) other_shapes = describe_shape(v->block, v->cluster);
      continue;
    }
    const Compilation& code = v->executable->compilation();
    std::vector<ir::Guard> differ;
    for (const ir::Guard& now : all_facts(code.params, wanted.arguments, *wanted.target)) {
      const auto then = find_fact(code.guards, now.fact);
      if (then != code.guards.end() && then->value != now.value) differ.push_back(now);
    }
    if (nearest != nullptr && differ.size() > nearest_differ.size()) continue;
    nearest = v;
    nearest_number = number;
    nearest_differ = std::move(differ);
  }
  if (size() == 0) return "it is the kernel's first";
  if (nearest == nullptr && other_shapes.empty()) {
    return absl::StrCat("none was for ", kind == BackendKind::kInterp
                                             ? "the interpreter"
                                             : std::string(wanted.target->name));
  }
  if (nearest == nullptr) {
    return absl::StrCat("it is the first with ",
                        describe_shape(wanted.shape.block, wanted.shape.cluster), "; another has ",
                        other_shapes);
  }
  if (nearest_differ.empty()) {
    return absl::StrCat("variant ", nearest_number, " would do, which ", wanted.device.name(),
                        " had not loaded");
  }
  const Compilation& code = nearest->executable->compilation();
  return absl::StrJoin(nearest_differ, ", and ", [&](std::string* out, const ir::Guard& now) {
    absl::StrAppend(out, describe_argument(code.params, now.fact.param), " ", describe_guard(now),
                    ", while for variant ", nearest_number, " it ",
                    describe_guard(*find_fact(code.guards, now.fact)));
  });
}

int KernelCache::compilations() const {
  std::set<const Compilation*> distinct;
  for (const Variant* v = newest_.load(std::memory_order_acquire); v != nullptr; v = v->next) {
    distinct.insert(&v->executable->compilation());
  }
  return static_cast<int>(distinct.size());
}

int KernelCache::size() const {
  int count = 0;
  for (const Variant* v = newest_.load(std::memory_order_acquire); v != nullptr; v = v->next) {
    ++count;
  }
  return count;
}

}  // namespace heddle::runtime
