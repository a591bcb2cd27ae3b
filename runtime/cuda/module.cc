#include "heddle/runtime/cuda/module.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/toolchain/cubin.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/module_state.h"

namespace heddle::runtime {

using cuda::CudaBackend;
using cuda::FunctionAttribute;
using cuda::JitOption;
using cuda::Result;

namespace {

// Characters that the driver's assembler may write to each of its two logs.
constexpr size_t kLogBytes = 16 * 1024;

StatusOr<std::shared_ptr<CudaBackend>> cuda_backend(const Device& device) {
  if (device.kind() == BackendKind::kCuda) {
    return std::static_pointer_cast<CudaBackend>(device.backend());
  }
  return FailedPreconditionError(
      absl::StrCat("machine code cannot be loaded on ", device.name(),
                   ", which interprets kernels; load it on a cuda device"));
}

// The part of a log that says what is wrong, on one line.
std::string first_complaint(const std::string& log) {
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) return std::string(line);
  }
  return "";
}

struct AttributeRow {
  FunctionAttribute attribute;
  void (*store)(int value, FunctionAttributes& attributes);
};

constexpr AttributeRow kAttributes[] = {
    {FunctionAttribute::kNumRegs, [](int v, FunctionAttributes& a) { a.registers = v; }},
    {FunctionAttribute::kLocalSizeBytes, [](int v, FunctionAttributes& a) { a.local_bytes = v; }},
    {FunctionAttribute::kMaxThreadsPerBlock,
     [](int v, FunctionAttributes& a) { a.max_threads_per_block = v; }},
    {FunctionAttribute::kSharedSizeBytes,
     [](int v, FunctionAttributes& a) { a.static_shared_bytes = v; }},
};

// Read only where clusters exist; 0 stands for no requirement.
constexpr AttributeRow kClusterAttributes[] = {
    {FunctionAttribute::kRequiredClusterWidth,
     [](int v, FunctionAttributes& a) { a.required_cluster.x = v > 0 ? v : 1; }},
    {FunctionAttribute::kRequiredClusterHeight,
     [](int v, FunctionAttributes& a) { a.required_cluster.y = v > 0 ? v : 1; }},
    {FunctionAttribute::kRequiredClusterDepth,
     [](int v, FunctionAttributes& a) { a.required_cluster.z = v > 0 ? v : 1; }},
};

}  // namespace

StatusOr<Module> Module::load_cubin(const Device& device, absl::Span<const uint8_t> image) {
  const StatusOr<std::shared_ptr<CudaBackend>> backend = cuda_backend(device);
  if (!backend.ok()) return backend.status();
  // The driver trusts the sizes in the image's header and takes no length.
  const StatusOr<codegen::Cubin> cubin = codegen::read_cubin(
      absl::string_view(reinterpret_cast<const char*>(image.data()), image.size()));
  if (!cubin.ok()) {
    return InvalidArgumentError(absl::StrCat("the cubin cannot be loaded on ", device.name(), ": ",
                                             cubin.status().message()));
  }
  return load_checked(*backend, image.data());
}

StatusOr<Module> Module::load(const Device& device, const codegen::Assembly& assembly) {
  const StatusOr<std::shared_ptr<CudaBackend>> backend = cuda_backend(device);
  if (!backend.ok()) return backend.status();
  return load_checked(*backend, assembly.cubin.data());
}

StatusOr<Module> Module::load_checked(const std::shared_ptr<CudaBackend>& backend,
                                      const void* image) {
  cuda::ModuleHandle handle = nullptr;
  if (Status s =
          backend->call(backend->api().module_load_data_ex, &handle, image, 0u, nullptr, nullptr);
      !s.ok()) {
    return s;
  }
  return Module(std::make_shared<cuda::ModuleState>(backend, handle, ""));
}

StatusOr<Module> Module::load_ptx(const Device& device, const std::string& ptx,
                                  const JitOptions& options) {
  const StatusOr<std::shared_ptr<CudaBackend>> backend = cuda_backend(device);
  if (!backend.ok()) return backend.status();
  CudaBackend& gpu = **backend;
  if (gpu.lost()) return gpu.health();

  std::string info(kLogBytes, '\0');
  std::string errors(kLogBytes, '\0');
  // Numbers are passed as the pointer's value.
  const auto number = [](size_t value) { return reinterpret_cast<void*>(value); };
  std::vector<std::pair<JitOption, void*>> table = {
      {JitOption::kInfoLogBuffer, info.data()},
      {JitOption::kInfoLogBufferSizeBytes, number(kLogBytes)},
      {JitOption::kErrorLogBuffer, errors.data()},
      {JitOption::kErrorLogBufferSizeBytes, number(kLogBytes)},
      {JitOption::kOptimizationLevel, number(static_cast<size_t>(options.optimization_level))},
      {JitOption::kLogVerbose, number(1)},
      {JitOption::kGenerateLineInfo, number(options.line_info ? 1 : 0)},
  };
  if (options.max_registers > 0) {
    table.emplace_back(JitOption::kMaxRegisters,
                       number(static_cast<size_t>(options.max_registers)));
  }
  std::vector<JitOption> keys;
  std::vector<void*> values;
  for (const auto& [key, value] : table) {
    keys.push_back(key);
    values.push_back(value);
  }

  const CudaBackend::Scope scope(gpu);
  if (scope.result() != Result::kSuccess) return gpu.fail(scope.failed_call(), scope.result());
  cuda::ModuleHandle handle = nullptr;
  const Result result = gpu.api().module_load_data_ex(
      &handle, ptx.c_str(), static_cast<unsigned>(keys.size()), keys.data(), values.data());
  info.resize(info.find('\0') == std::string::npos ? info.size() : info.find('\0'));
  errors.resize(errors.find('\0') == std::string::npos ? errors.size() : errors.find('\0'));
  if (result != Result::kSuccess) {
    return gpu.fail(gpu.api().module_load_data_ex.symbol, result, "PTX", first_complaint(errors));
  }
  return Module(std::make_shared<cuda::ModuleState>(*backend, handle, std::move(info)));
}

StatusOr<Function> Module::function(absl::string_view name) const {
  CudaBackend& gpu = *state_->backend;
  if (gpu.lost()) return gpu.health();
  const LaunchSite site(std::string(name), "", 0);
  std::lock_guard<std::mutex> lock(state_->mutex);
  std::weak_ptr<cuda::FunctionState>& known = state_->functions[site.kernel()];
  if (std::shared_ptr<cuda::FunctionState> state = known.lock()) return Function(std::move(state));

  const CudaBackend::Scope scope(gpu);
  if (scope.result() != Result::kSuccess) return gpu.fail(scope.failed_call(), scope.result());
  cuda::FunctionHandle handle = nullptr;
  Result result = gpu.api().module_get_function(&handle, state_->handle, site.kernel().c_str());
  if (result != Result::kSuccess) {
    return gpu.fail(gpu.api().module_get_function.symbol, result, site.describe());
  }

  const auto& get = gpu.api().func_get_attribute;
  FunctionAttributes attributes;
  int dynamic_shared = 0;
  int value = 0;
  for (const AttributeRow& row : kAttributes) {
    result = get(&value, row.attribute, handle);
    if (result != Result::kSuccess) return gpu.fail(get.symbol, result, site.describe());
    row.store(value, attributes);
  }
  result = get(&dynamic_shared, FunctionAttribute::kMaxDynamicSharedSizeBytes, handle);
  if (result != Result::kSuccess) return gpu.fail(get.symbol, result, site.describe());
  if (gpu.info().cluster_launch) {
    for (const AttributeRow& row : kClusterAttributes) {
      result = get(&value, row.attribute, handle);
      if (result != Result::kSuccess) return gpu.fail(get.symbol, result, site.describe());
      row.store(value, attributes);
    }
  }
  auto state = std::make_shared<cuda::FunctionState>(state_, handle, site.kernel(), attributes,
                                                     dynamic_shared);
  known = state;
  return Function(std::move(state));
}

const std::string& Module::jit_log() const { return state_->log; }

const std::string& Function::name() const { return state_->site.kernel(); }

const FunctionAttributes& Function::attributes() const { return state_->attributes; }

Status Function::reserve_dynamic_shared(int64_t bytes) const {
  return cuda::reserve_dynamic_shared(*state_, bytes, state_->site);
}

void Function::describe_parameters(std::shared_ptr<const cuda::KernelParameters> parameters) const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->described = std::move(parameters);
}

StatusOr<int64_t> Function::max_resident_blocks(const LaunchShape& shape) const {
  return cuda::max_resident_blocks(*state_, shape, state_->site);
}

}  // namespace heddle::runtime
