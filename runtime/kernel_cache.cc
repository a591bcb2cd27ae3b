#include "heddle/runtime/kernel_cache.h"

#include <cstdio>
#include <set>
#include <utility>

#include "heddle/ir/target.h"
#include "heddle/runtime/recall/recall.h"
#include "heddle/runtime/specialize.h"

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
  if (!any || !ptxas_missing) return compilation;
  say_driver_assembles(compilation.status());
  return partial;
}

}  // namespace

// What a launch needs that no variant of its device is.
struct KernelCache::Wanted {
  BackendKind kind;  // the interpreter's compilations hold no machine code
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
  const std::lock_guard<std::mutex> lock(adding_);
  if (const Executable* found = find(backend.get(), shape, arguments)) return found;
  CompileOptions options;
  if (const auto asked = backend->launch_options()) options = *asked;
  options.stage = Stage::kCubin;
  options = Executable::options_for(*backend, options);
  options.block = shape.block_to_compile();
  options.cluster = shape.cluster;
  const StatusOr<const ir::Target*> target = target_of(options);
  if (!target.ok()) return target.status();
  StatusOr<std::shared_ptr<const Compilation>> compilation =
      find_compilation({backend->kind(), *target, shape, arguments});
  if (*compilation == nullptr) compilation = compile_for(source, options, **target, arguments);
  if (!compilation.ok()) return compilation.status();
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
  auto* const variant =
      new Variant{*std::move(executable), shape.block, shape.cluster, *target, newest_.load()};
  newest_.store(variant, std::memory_order_release);
  return variant->executable.get();
}

std::shared_ptr<const Compilation> KernelCache::find_compilation(const Wanted& wanted) const {
  for (const Variant* v = newest_.load(std::memory_order_acquire); v != nullptr; v = v->next) {
    if (v->target == wanted.target && v->block == wanted.shape.block &&
        v->cluster == wanted.shape.cluster && v->executable->backend()->kind() == wanted.kind &&
        v->executable->matches_exactly(wanted.arguments)) {
      return v->executable->shared_compilation();
    }
  }
  return nullptr;
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
