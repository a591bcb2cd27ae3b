#include "heddle/tools/command/launched_kernels.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/specialize.h"
#include "heddle/tools/command/execution.h"

namespace heddle::tools {
namespace {

using runtime::Compilation;

// Compiles to the last stage that can be reached, so that earlier stages are shown where a later one
// failed; `failure` then says why.
std::shared_ptr<const Compilation> compile_far(const ir::KernelSource& source,
                                               const ir::Specialization& specialization,
                                               runtime::CompileOptions options, Status& failure) {
  while (true) {
    std::shared_ptr<const Compilation> partial;
    StatusOr<std::shared_ptr<const Compilation>> done =
        runtime::compile_source(source, specialization, options, &partial);
    if (done.ok()) return *std::move(done);
    failure.Update(done.status());
    if (partial != nullptr || options.stage == runtime::Stage::kIr) return partial;
    options.stage = runtime::Stage::kIr;
    // The passes were watched the first time.
    auto quiet = std::make_shared<ir::PipelineOptions>(*options.pipeline);
    quiet->print_before.clear();
    quiet->print_after.clear();
    quiet->on_change = nullptr;
    options.pipeline = std::move(quiet);
  }
}

class Compiler {
 public:
  Compiler(const ir::Target& target, runtime::CompileOptions compile, const PassOptions& passes)
      : target_(target), compile_(std::move(compile)), passes_(passes) {
    compile_.target = std::string(target.name);
    compile_.allow_slow_wgmma = true;  // what ptxas notes is shown, not refused
    compile_.pipeline = std::make_shared<const ir::PipelineOptions>(pipeline_options(passes));
    if (passes.passes) compile_.passes = *passes.passes;
  }

  Status add(const DryLaunch& launch) {
    if (launch.source == nullptr) return OkStatus();  // its author has seen it compiled
    if (is_there(launch)) return OkStatus();
    ir::Specialization specialization =
        runtime::specialize(*launch.source, launch.arguments, target_);
    specialization.block = launch.shape.block_to_compile();
    specialization.cluster = launch.shape.cluster;
    ir::TraceResult traced = runtime::trace_source(*launch.source, specialization);
    if (traced.diagnostics.empty()) {
      misuse_ = check_pipeline(traced.kernel, compile_.passes, passes_);
      if (!misuse_.ok()) return misuse_;
    }
    runtime::CompileOptions compile = compile_;
    compile.block = launch.shape.block_to_compile();
    compile.cluster = launch.shape.cluster;
    variants_.push_back({runtime::KernelCache::of(*launch.source).kernel_id(), launch.shape.block,
                         launch.shape.cluster});
    LaunchedKernel& kernel = kernels_.emplace_back(
        LaunchedKernel{name_for(codegen::ptx_identifier(launch.source->name())),
                       std::move(traced.kernel), nullptr, OkStatus()});
    kernel.compilation =
        compile_far(*launch.source, specialization, std::move(compile), kernel.failure);
    return OkStatus();
  }

  std::vector<LaunchedKernel> take() { return std::move(kernels_); }
  // What is wrong with the passes.
  const Status& misuse() const { return misuse_; }

 private:
  // Of the kernel of the same place in kernels_.
  struct Variant {
    uint64_t kernel_id;
    Dim3 block, cluster;
  };

  // Whether a variant that is there would run, as KernelCache chooses. One that has mistakes is there once.
  bool is_there(const DryLaunch& launch) const {
    const uint64_t kernel_id = runtime::KernelCache::of(*launch.source).kernel_id();
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const Variant& variant = variants_[i];
      const auto& compilation = kernels_[i].compilation;
      if (variant.kernel_id == kernel_id && variant.block == launch.shape.block &&
          variant.cluster == launch.shape.cluster &&
          (compilation == nullptr ||
           runtime::ArgumentPlan(compilation->guards, compilation->params, {})
               .fits(launch.arguments))) {
        return true;
      }
    }
    return false;
  }

  // "k", "k.1", … for the variants of one name.
  std::string name_for(const std::string& kernel) {
    std::string name = kernel;
    for (int i = 1; !names_.insert(name).second; ++i) name = absl::StrCat(kernel, ".", i);
    return name;
  }

  const ir::Target& target_;
  runtime::CompileOptions compile_;
  const PassOptions& passes_;
  std::vector<Variant> variants_;
  std::set<std::string> names_;
  std::vector<LaunchedKernel> kernels_;
  Status misuse_;
};

}  // namespace

StatusOr<LaunchedKernels> compile_launches(const runtime::BoundCall& call, const ir::Target& target,
                                           runtime::CompileOptions compile,
                                           const PassOptions& passes) {
  Compiler compiler(target, std::move(compile), passes);
  const Device device = runtime::open_dry_run(
      runtime::info_of(target), [&](const DryLaunch& launch) { return compiler.add(launch); });
  const StatusOr<DeviceArguments> arguments = DeviceArguments::allocate(device, call);
  if (!arguments.ok()) return arguments.status();
  Status done = call.function->call(device.default_stream(), arguments->arguments());
  if (!compiler.misuse().ok()) return compiler.misuse();
  return LaunchedKernels{compiler.take(), std::move(done)};
}

StatusOr<const ir::Target*> target_named(const std::string& name) {
  if (name.empty()) return &ir::default_target();
  if (const ir::Target* const target = ir::find_target(name)) return target;
  return InvalidArgumentError(
      absl::StrCat("unknown target '", name, "'; there are ", ir::target_names()));
}

}  // namespace heddle::tools
