#include "heddle/runtime/kernel_cache.h"

#include <cstdio>
#include <utility>

#include "heddle/ir/target.h"

namespace heddle::runtime {
namespace {

ir::Dim3 to_ir(const Dim3& dim) {
  return {static_cast<int>(dim.x), static_cast<int>(dim.y), static_cast<int>(dim.z)};
}

// Said once a process: the driver's assembler does ptxas' work, slowly and without a report.
void say_driver_assembles(const absl::Status& why) {
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr, "heddle: the driver assembles kernels itself, since ptxas cannot: %s\n",
                 std::string(why.message()).c_str());
  });
}

absl::StatusOr<std::unique_ptr<Executable>> compile_for(const ir::KernelSource& source,
                                                        const std::shared_ptr<Backend>& backend,
                                                        const LaunchConfig& config,
                                                        Arguments arguments) {
  CompileOptions options = Executable::options_for(*backend, {});
  options.block = to_ir(config.block);
  options.cluster = to_ir(config.cluster);
  ir::Specialization specialization;
  const ir::Target* const target = ir::find_target(options.target);
  specialization.facts =
      all_facts(source.params(), arguments,
                (target != nullptr ? *target : ir::default_target()).max_access_bytes);
  std::shared_ptr<const Compilation> partial;
  absl::StatusOr<std::shared_ptr<const Compilation>> compilation =
      compile_source(source, std::move(specialization), options, &partial);
  const absl::StatusCode code = compilation.status().code();
  const bool ptxas_missing =
      code == absl::StatusCode::kNotFound || code == absl::StatusCode::kUnimplemented;
  if (partial != nullptr && ptxas_missing) {
    say_driver_assembles(compilation.status());
    compilation = std::move(partial);
  }
  if (!compilation.ok()) return compilation.status();
  return Executable::load(backend, *std::move(compilation));
}

}  // namespace

KernelCache& KernelCache::of(const ir::KernelSource& source) {
  ir::KernelSource::Attachment* attached = source.attachment();
  if (attached == nullptr) attached = source.attach(std::make_unique<KernelCache>());
  // The runtime alone attaches to kernels.
  return static_cast<KernelCache&>(*attached);
}

KernelCache::~KernelCache() {
  for (Variant* variant = newest_.load(); variant != nullptr;) {
    delete std::exchange(variant, variant->next);
  }
}

const Executable* KernelCache::find(const Backend* backend, const LaunchConfig& config,
                                    Arguments arguments) const {
  for (const Variant* variant = newest_.load(std::memory_order_acquire); variant != nullptr;
       variant = variant->next) {
    const Executable& executable = *variant->executable;
    if (executable.backend() == backend && variant->block == config.block &&
        variant->cluster == config.cluster && executable.matches_exactly(arguments)) {
      return &executable;
    }
  }
  return nullptr;
}

absl::StatusOr<const Executable*> KernelCache::find_or_compile(
    const ir::KernelSource& source, const std::shared_ptr<Backend>& backend,
    const LaunchConfig& config, Arguments arguments) {
  const std::lock_guard<std::mutex> lock(adding_);
  if (const Executable* found = find(backend.get(), config, arguments)) return found;
  absl::StatusOr<std::unique_ptr<Executable>> executable =
      compile_for(source, backend, config, arguments);
  if (!executable.ok()) return executable.status();
  auto* const variant =
      new Variant{*std::move(executable), config.block, config.cluster, newest_.load()};
  newest_.store(variant, std::memory_order_release);
  return variant->executable.get();
}

int KernelCache::size() const {
  int count = 0;
  for (const Variant* v = newest_.load(std::memory_order_acquire); v != nullptr; v = v->next) {
    ++count;
  }
  return count;
}

}  // namespace heddle::runtime
