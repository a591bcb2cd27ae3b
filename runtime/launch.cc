#include "heddle/runtime/launch.h"

#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/launch_memo.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/reachable_memory.h"
#include "heddle/runtime/recall/recall.h"
#include "heddle/runtime/specialize.h"

namespace heddle::runtime {
namespace {

// What the code has fixed that the guards do not say: extents and strides of the signature.
Status check_fixed(const Compilation& compilation, Arguments arguments) {
  for (int i = 0; i < static_cast<int>(compilation.params.size()); ++i) {
    const ir::Param& param = compilation.optimized.params()[i];
    if (compilation.params[i].unbounded) continue;
    const int rank = static_cast<int>(param.extents.size());
    const std::vector<ir::DeclaredExtent>& declared = compilation.params[i].extents;
    const auto differs = [&](const char* what, int dim, int64_t fixed, int64_t given) {
      const bool by_author = !declared.empty() && declared[dim].number == fixed;
      return InvalidArgumentError(absl::StrCat(
          describe_argument(compilation.params, i), " of ", compilation.describe(), " has ", what,
          " ", given, " in mode ", dim, ", and this variant was compiled for ", fixed,
          by_author ? ", which the kernel's declaration says; fix: pass a tensor with that extent"
                    : "; fix: compile it with kAny there, or let launch() choose the variant"));
    };
    // Extents first: they are what the caller chose, and strides follow from them.
    for (int dim = 0; dim < rank; ++dim) {
      if (param.extents[dim] != kAny && param.extents[dim] != arguments[i].extents[dim]) {
        return differs("extent", dim, param.extents[dim], arguments[i].extents[dim]);
      }
    }
    for (int dim = 0; dim < rank; ++dim) {
      // The stride of a mode with one element is never used.
      if (param.strides[dim] != kAny && param.strides[dim] != arguments[i].strides[dim] &&
          arguments[i].extents[dim] > 1) {
        return differs("stride", dim, param.strides[dim], arguments[i].strides[dim]);
      }
    }
  }
  return OkStatus();
}

// The block that the code was compiled for.
Status check_block(const Compilation& compilation, const LaunchShape& shape) {
  const Dim3 block = compilation.optimized.block;
  if (shape.block_to_launch(block) == block || compilation.optimized.has_dynamic_block()) {
    return OkStatus();
  }
  return InvalidArgumentError(absl::StrCat(compilation.describe(), " was compiled for a block of ",
                                           to_string(block), " and launched with ",
                                           to_string(shape.block),
                                           "; fix: launch it with that block, compile it for this "
                                           "one, or let launch() choose the variant"));
}

// The facts that tracing or a pass relied on.
Status check_guards(const Compilation& compilation, Arguments arguments) {
  for (const ir::Guard& guard : compilation.guards) {
    if (satisfies(guard, fact_value(guard.fact, compilation.params, arguments))) continue;
    return InvalidArgumentError(absl::StrCat(
        compilation.describe(), " was compiled for an ",
        describe_argument(compilation.params, guard.fact.param), " that ", describe_guard(guard),
        ", and this one does not; fix: change the signature, or let "
        "launch() choose the variant"));
  }
  return OkStatus();
}

}  // namespace

struct CompiledKernel::State {
  std::shared_ptr<const Compilation> compilation;
  std::mutex loading;
  std::vector<std::unique_ptr<Executable>> loaded;  // one a device
};

CompiledKernel::CompiledKernel(std::shared_ptr<const Compilation> compilation)
    : state_(std::make_shared<State>()) {
  state_->compilation = std::move(compilation);
}

const Compilation& CompiledKernel::compilation() const { return *state_->compilation; }
const ir::Kernel& CompiledKernel::trace() const { return compilation().traced; }
const ir::Kernel& CompiledKernel::ir() const { return compilation().optimized; }
const std::string& CompiledKernel::ptx() const { return compilation().ptx.text; }
const std::string& CompiledKernel::cubin() const { return compilation().assembly.cubin; }

const codegen::EntryReport* CompiledKernel::report() const {
  return compilation().assembly.find(compilation().ptx.entry);
}

Status CompiledKernel::launch(const Stream& stream, const LaunchShape& shape,
                              Arguments arguments) const {
  const Compilation& code = compilation();
  if (stream.backend() == nullptr) return moved_from("a Stream");
  if (!arguments_are_sound(code.params, arguments)) {
    return check_arguments(code.describe(), code.params, arguments, *stream.backend());
  }
  if (Status s = check_fixed(code, arguments); !s.ok()) return s;
  if (Status s = check_block(code, shape); !s.ok()) return s;
  if (Status s = check_guards(code, arguments); !s.ok()) return s;
  if (stream.backend()->kind() == BackendKind::kDryRun) {
    return static_cast<const DryRunBackend&>(*stream.backend())
        .launch({.compiled = &code, .shape = shape, .arguments = arguments});
  }
  const Executable* executable = nullptr;
  {
    const std::lock_guard<std::mutex> lock(state_->loading);
    for (const auto& loaded : state_->loaded) {
      if (loaded->backend() == stream.backend().get()) executable = loaded.get();
    }
    if (executable == nullptr) {
      if (Status s = check_reach(code.describe(), code.params, arguments, *stream.backend());
          !s.ok()) {
        return s;
      }
      StatusOr<std::unique_ptr<Executable>> loaded =
          Executable::load(stream.backend(), state_->compilation);
      if (!loaded.ok()) return loaded.status();
      executable = state_->loaded.emplace_back(*std::move(loaded)).get();
    }
  }
  return executable->launch(stream, shape, arguments);
}

StatusOr<CompiledKernel> compile(const ir::KernelSource& source, const Signature& signature,
                                 const CompileOptions& options) {
  const StatusOr<const ir::Target*> target = target_of(options);
  if (!target.ok()) return target.status();
  StatusOr<ir::Specialization> specialization = specialize(source, signature, **target);
  if (!specialization.ok()) return specialization.status();
  StatusOr<std::shared_ptr<const Compilation>> compilation =
      recall_or_compile(source, *specialization, options);
  if (!compilation.ok()) return compilation.status();
  return CompiledKernel(*std::move(compilation));
}

namespace {

// What a launch runs; nullptr on a device that runs nothing.
StatusOr<const Executable*> executable_for(const Stream& stream, const ir::KernelSource& source,
                                           const LaunchShape& shape, Arguments arguments) {
  KernelCache& cache = KernelCache::of(source);
  const Backend* const backend = stream.backend().get();
  if (const Executable* const found = cache.find(backend, shape, arguments)) return found;
  // Has no executables, so the usual launch need not ask.
  if (backend->kind() == BackendKind::kDryRun) return nullptr;
  if (Status s = check_reach(describe(source), source.params(), arguments, *stream.backend());
      !s.ok()) {
    return s;
  }
  return cache.find_or_compile(source, stream.backend(), shape, arguments);
}

// A launch of arguments as data: `prepared` where the caller keeps what is worked out.
Status launch_by(const Stream& stream, const ir::KernelSource& source, const LaunchShape& shape,
                 Arguments arguments, bool sound, PreparedLaunch& prepared) {
  if (stream.backend() == nullptr) return moved_from("a Stream");
  // On every launch, since a variant that fits says nothing of null pointers.
  if (!sound) {
    return check_arguments(describe(source), source.params(), arguments, *stream.backend());
  }
  const StatusOr<const Executable*> executable = executable_for(stream, source, shape, arguments);
  if (!executable.ok()) return executable.status();
  if (*executable == nullptr) {
    return static_cast<const DryRunBackend&>(*stream.backend())
        .launch({.source = &source, .shape = shape, .arguments = arguments});
  }
  return (*executable)->launch(stream, shape, arguments, prepared);
}

}  // namespace

Status launch(const Stream& stream, const ir::KernelSource& source, const LaunchShape& shape,
              Arguments arguments) {
  PreparedLaunch prepared;
  return launch_by(stream, source, shape, arguments,
                   arguments_are_sound(source.params(), arguments), prepared);
}

Status launch_typed(const Stream& stream, const ir::KernelSource& source, const LaunchShape& shape,
                    Arguments arguments, bool sound, const LaunchKey& key) {
  LaunchMemo* const memo = LaunchMemo::of_thread();
  if (memo == nullptr) {
    PreparedLaunch prepared;
    return launch_by(stream, source, shape, arguments, sound, prepared);
  }
  const uint64_t kernel = KernelCache::of(source).kernel_id();
  LaunchMemo::Entry& entry = memo->entry(kernel, key);
  entry.launch.again = false;
  Status status = launch_by(stream, source, shape, arguments, sound, entry.launch);
  if (!entry.launch.again) return status;
  entry.kernel = kernel;
  entry.backend = stream.backend().get();
  entry.shape = shape;
  entry.words.assign(key.words.begin(), key.words.end());
  return status;
}

bool launch_again(const Stream& stream, const ir::KernelSource& source, const LaunchShape& shape,
                  const LaunchKey& key, Status& status) {
  LaunchMemo* const memo = LaunchMemo::of_thread();
  if (memo == nullptr) return false;
  const uint64_t kernel = KernelCache::of(source).kernel_id();
  const LaunchMemo::Entry& entry = memo->entry(kernel, key);
  if (!entry.is(kernel, stream.backend().get(), shape, key)) return false;
  status = entry.launch.enqueue(stream.handle());
  return true;
}

}  // namespace heddle::runtime
