#include "heddle/runtime/launch.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"

namespace heddle::runtime {
namespace {

Dim3 to_dim3(const Extent3& extent) { return {extent.x, extent.y, extent.z}; }

std::string describe(const ir::KernelSource& source) {
  const ir::Place place = source.place();
  if (place.file.empty()) return absl::StrCat("kernel '", source.name(), "'");
  return absl::StrCat("kernel '", source.name(), "' (", place.file, ":", place.line, ")");
}

// The strides of a contiguous tensor, as far as its extents are known. The fastest mode's is 1.
std::vector<int64_t> contiguous_strides(const ArgumentSpec& spec) {
  const int rank = static_cast<int>(spec.extents.size());
  std::vector<int> modes(rank);  // from fastest to slowest
  for (int i = 0; i < rank; ++i) {
    modes[spec.stride_order.empty() ? rank - 1 - i : spec.stride_order[i]] = i;
  }
  std::vector<int64_t> strides(rank, kAny);
  int64_t stride = 1;
  for (const int mode : modes) {
    strides[mode] = stride;
    if (stride == kAny || spec.extents[mode] == kAny) {
      stride = kAny;
    } else {
      stride *= std::max<int64_t>(1, spec.extents[mode]);
    }
  }
  return strides;
}

bool is_permutation_of_modes(const std::vector<int>& order, size_t rank) {
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int>(i)) return false;
  }
  return order.size() == rank;
}

absl::Status check_spec(const ArgumentSpec& spec, const ir::ParamInfo& param,
                        absl::string_view what) {
  const size_t rank = param.type.is_view() && !param.unbounded ? param.type.rank : 0;
  if (spec.extents.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat("the signature gives ", spec.extents.size(),
                                                   " extents for ", what, ", which has ", rank,
                                                   " modes"));
  }
  if (!spec.given_strides.empty() && spec.given_strides.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat("the signature gives ",
                                                   spec.given_strides.size(), " strides for ", what,
                                                   ", which has ", rank, " modes"));
  }
  if (!spec.stride_order.empty() && !is_permutation_of_modes(spec.stride_order, rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the stride order of ", what, " must number its ", rank, " modes from 0 (the fastest)"));
  }
  return absl::OkStatus();
}

int64_t to_level(int64_t divisor) {
  if (divisor <= 1) return 1;
  return std::min<int64_t>(16, divisor & -divisor);
}

// The facts that a signature promises of one argument.
void add_facts(const ArgumentSpec& spec, const ir::ParamInfo& param, int index,
               ir::Specialization& specialization) {
  const auto fact = [&](ir::FactKind kind, int dim, int64_t value) {
    specialization.facts.push_back(
        {{kind, static_cast<uint8_t>(index), static_cast<uint8_t>(dim)}, value});
  };
  const int64_t own = ir::bytes_of(param.type.scalar);
  fact(ir::FactKind::kAlignment, 0, std::max(to_level(own), to_level(spec.alignment)));
  fact(ir::FactKind::kNoOverlap, 0, spec.alone ? 1 : 0);
  if (param.unbounded) return;
  fact(ir::FactKind::kFits32, 0, spec.large ? 0 : 1);
  const ir::Specialization::Argument& layout = specialization.arguments[index];
  for (int dim = 0; dim < static_cast<int>(layout.extents.size()); ++dim) {
    fact(ir::FactKind::kExtentFits32, dim, spec.large ? 0 : 1);
    if (layout.extents[dim] != kAny) fact(ir::FactKind::kExtent, dim, layout.extents[dim]);
    if (layout.strides[dim] == kAny) {
      fact(ir::FactKind::kStrideDivisor, dim, to_level(spec.stride_divisor));
    }
  }
}

// What the code has fixed that the guards do not say: extents and strides of the signature.
absl::Status check_fixed(const Compilation& compilation, Arguments arguments) {
  for (int i = 0; i < static_cast<int>(compilation.params.size()); ++i) {
    const ir::Param& param = compilation.optimized.params()[i];
    if (compilation.params[i].unbounded) continue;
    const int rank = static_cast<int>(param.extents.size());
    const auto differs = [&](const char* what, int dim, int64_t fixed, int64_t given) {
      return absl::InvalidArgumentError(absl::StrCat(
          describe_argument(compilation.params, i), " of ", compilation.describe(), " has ", what,
          " ", given, " in mode ", dim, ", and this variant was compiled for ", fixed,
          "; fix: compile it with kAny there, or let launch() choose the variant"));
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
  return absl::OkStatus();
}

std::string promise(const ir::Guard& guard) {
  switch (guard.fact.kind) {
    case ir::FactKind::kAlignment:
      return absl::StrCat("starts at a multiple of ", guard.value, " bytes");
    case ir::FactKind::kExtentDivisor:
      return absl::StrCat("has an extent in mode ", guard.fact.dim, " that ", guard.value,
                          " divides");
    case ir::FactKind::kStrideDivisor:
      return absl::StrCat("has a stride in mode ", guard.fact.dim, " that ", guard.value,
                          " divides");
    case ir::FactKind::kUnitStride:
      return absl::StrCat("is contiguous along mode ", guard.fact.dim);
    case ir::FactKind::kFits32:
      return "has offsets that fit in 31 bits";
    case ir::FactKind::kExtentFits32:
      return absl::StrCat("has an extent in mode ", guard.fact.dim, " that fits in 31 bits");
    case ir::FactKind::kNoOverlap:
      return "shares no memory with an argument that the kernel writes";
    case ir::FactKind::kExtent:
      return absl::StrCat("has extent ", guard.value, " in mode ", guard.fact.dim);
  }
  check_failed(__FILE__, __LINE__, "guard.fact.kind", "unknown fact");
}

}  // namespace

CompiledKernel::CompiledKernel(std::shared_ptr<const Compilation> compilation)
    : state_(std::make_shared<State>()) {
  state_->compilation = std::move(compilation);
}

const codegen::EntryReport* CompiledKernel::report() const {
  return compilation().assembly.find(compilation().ptx.entry);
}

absl::Status CompiledKernel::launch(const Stream& stream, const LaunchConfig& config,
                                    Arguments arguments) const {
  const Compilation& code = compilation();
  if (absl::Status s = check_arguments(code.describe(), code.params, arguments); !s.ok()) return s;
  if (absl::Status s = check_fixed(code, arguments); !s.ok()) return s;
  const Executable* executable = nullptr;
  {
    const std::lock_guard<std::mutex> lock(state_->loading);
    for (const auto& loaded : state_->loaded) {
      if (loaded->backend() == stream.backend().get()) executable = loaded.get();
    }
    if (executable == nullptr) {
      absl::StatusOr<std::unique_ptr<Executable>> loaded =
          Executable::load(stream.backend(), state_->compilation);
      if (!loaded.ok()) return loaded.status();
      executable = state_->loaded.emplace_back(*std::move(loaded)).get();
    }
  }
  if (const ir::Guard* broken = executable->broken_guard(arguments)) {
    return absl::InvalidArgumentError(
        absl::StrCat(code.describe(), " was compiled for an ",
                     describe_argument(code.params, broken->fact.param), " that ", promise(*broken),
                     ", and this one does not; fix: change the signature, or let "
                     "launch() choose the variant"));
  }
  return executable->launch(config, arguments);
}

absl::StatusOr<ir::Specialization> specialize(const ir::KernelSource& source,
                                              const Signature& signature) {
  const absl::Span<const ir::ParamInfo> params = source.params();
  if (signature.size() != params.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the signature of ", describe(source), " has ",
                                                   signature.size(),
                                                   " arguments; the kernel takes ", params.size()));
  }
  ir::Specialization specialization;
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    const ArgumentSpec& spec = signature[i];
    const std::string what = absl::StrCat(describe_argument(params, i), " of ", describe(source));
    if (absl::Status s = check_spec(spec, params[i], what); !s.ok()) return s;
    ir::Specialization::Argument& layout = specialization.arguments.emplace_back();
    if (params[i].type.is_view()) {
      const std::vector<int64_t> strides =
          spec.given_strides.empty() ? contiguous_strides(spec) : spec.given_strides;
      layout.extents.assign(spec.extents.begin(), spec.extents.end());
      layout.strides.assign(strides.begin(), strides.end());
      add_facts(spec, params[i], i, specialization);
    }
  }
  return specialization;
}

absl::StatusOr<CompiledKernel> compile(const ir::KernelSource& source, const Signature& signature,
                                       const CompileOptions& options) {
  absl::StatusOr<ir::Specialization> specialization = specialize(source, signature);
  if (!specialization.ok()) return specialization.status();
  absl::StatusOr<std::shared_ptr<const Compilation>> compilation =
      compile_source(source, *std::move(specialization), options);
  if (!compilation.ok()) return compilation.status();
  return CompiledKernel(*std::move(compilation));
}

absl::Status launch(const Stream& stream, const ir::KernelSource& source,
                    const LaunchConfig& config, Arguments arguments) {
  const Backend* const backend = stream.backend().get();
  KernelCache& cache = KernelCache::of(source);
  // On every launch, since a variant that fits says nothing of null pointers.
  if (!arguments_are_sound(source.params(), arguments)) {
    return check_arguments(describe(source), source.params(), arguments);
  }
  const Executable* executable = cache.find(backend, config, arguments);
  if (executable == nullptr) {
    const absl::StatusOr<const Executable*> compiled =
        cache.find_or_compile(source, stream.backend(), config, arguments);
    if (!compiled.ok()) return compiled.status();
    executable = *compiled;
  }
  return executable->launch(config, arguments);
}

LaunchConfig to_config(const LaunchShape& shape, const Stream& stream) {
  return {.grid = to_dim3(shape.grid),
          .block = to_dim3(shape.block),
          .cluster = to_dim3(shape.cluster),
          .dynamic_shared_bytes = shape.shared_bytes,
          .cooperative = shape.cooperative,
          .stream = &stream};
}

}  // namespace heddle::runtime
