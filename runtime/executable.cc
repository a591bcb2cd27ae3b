#include "heddle/runtime/executable.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/launch/shared_layout.h"
#include "heddle/runtime/compile_option_text.h"
#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/loss_report.h"
#include "heddle/runtime/interp_backend.h"
#include "heddle/runtime/observe/log.h"
#include "heddle/runtime/observe/ranges.h"
#include "heddle/runtime/stopwatch_internal.h"

namespace heddle::runtime {
namespace {

StatusOr<Module> load_module(const std::shared_ptr<Backend>& backend,
                             const Compilation& compilation) {
  const Device device(backend);
  const CompileOptions& options = compilation.options;
  if (compilation.assembly.cubin.empty()) {
    // The driver has one level more than ptxas, which is its own highest.
    constexpr int kHighest = 3;
    const int level =
        options.opt_level == kHighest ? JitOptions().optimization_level : options.opt_level;
    return Module::load_ptx(device, compilation.ptx.text,
                            {.optimization_level = level,
                             .max_registers = options.max_registers,
                             .line_info = options.line_info});
  }
  return Module::load(device, compilation.assembly);
}

void log_load(const LaunchSite& site, const std::string& device, size_t cubin_bytes, double us) {
  if (!logs(LogLevel::kDebug)) return;
  log(LogLevel::kDebug,
      absl::StrFormat("%s: %s %s in %.2f ms", site.describe(), device,
                      cubin_bytes == 0 ? "assembled and loaded its PTX"
                                       : absl::StrCat("loaded ", cubin_bytes, " bytes of cubin"),
                      us / 1e3));
}

// What a report on a lost device says of the arguments.
std::shared_ptr<const cuda::KernelParameters> parameters_of(const Compilation& code) {
  auto described = std::make_shared<cuda::KernelParameters>();
  for (size_t i = 0; i < code.params.size(); ++i) {
    cuda::KernelParameters::Parameter parameter{code.params[i].name, code.params[i].type, {}, {}};
    if (i < code.optimized.params().size() && !code.params[i].unbounded) {
      parameter.extents = code.optimized.params()[i].extents;
      parameter.strides = code.optimized.params()[i].strides;
    }
    described->parameters.push_back(std::move(parameter));
  }
  described->slots = code.layout.slots;
  return described;
}

}  // namespace

Executable::Executable(std::shared_ptr<Backend> backend,
                       std::shared_ptr<const Compilation> compilation)
    : backend_(std::move(backend)),
      compilation_(std::move(compilation)),
      site_(compilation_->name, compilation_->place.file, compilation_->place.line),
      plan_(compilation_->guards, compilation_->params, compilation_->layout) {}

CompileOptions Executable::options_for(const Backend& backend, CompileOptions options) {
  // Of what is wrong with the environment compiling speaks.
  options = with_environment(options).value_or(options);
  if (backend.kind() == BackendKind::kInterp) {
    options.stage = Stage::kIr;
    return options;
  }
  if (options.assembler == Assembler::kDriver) options.stage = std::min(options.stage, Stage::kPtx);
  const DeviceInfo& info = backend.info();
  if (options.target.empty()) {
    if (const ir::Target* target = ir::target_for_device(info.compute_major, info.compute_minor)) {
      options.target = std::string(target->name);
    }
  }
  return options;
}

CompileOptions Executable::launch_options_for(const Backend& backend) {
  CompileOptions options;
  if (const auto asked = backend.launch_options()) options = *asked;
  options.stage = Stage::kCubin;
  return options_for(backend, std::move(options));
}

StatusOr<std::unique_ptr<Executable>> Executable::load(
    const std::shared_ptr<Backend>& backend, std::shared_ptr<const Compilation> compilation) {
  auto executable = std::unique_ptr<Executable>(new Executable(backend, std::move(compilation)));
  const Compilation& code = executable->compilation();
  if (backend->kind() == BackendKind::kInterp) {
    if (code.recalled) {
      return FailedPreconditionError(absl::StrCat(
          code.describe(), " was taken over from another process as machine code alone, which ",
          backend->name(),
          " cannot run; fix: compile it with CompileOptions{.recall = Recall::kOff}"));
    }
    StatusOr<ir::interp::Program> program = ir::interp::compile(code.optimized);
    if (!program.ok()) return program.status();
    executable->program_ = std::make_shared<const ir::interp::Program>(*std::move(program));
    executable->may_wait_ = may_wait_for_launch_before(code.optimized);
    return executable;
  }
  Stopwatch stopwatch;
  StatusOr<Module> module = load_module(backend, code);
  if (!module.ok()) {
    const Status& why = module.status();
    return Status(why.code(),
                  absl::StrCat(executable->site_.describe(), ", compiled for ",
                               code.optimized.target->name, ": ", why.message()),
                  why.driver_code());
  }
  log_load(executable->site_, backend->name(), code.assembly.cubin.size(), stopwatch.lap());
  StatusOr<Function> function = module->function(code.ptx.entry);
  if (!function.ok()) return function.status();
  if (static_cast<cuda::CudaBackend&>(*backend).reporter() != nullptr) {
    function->describe_parameters(parameters_of(code));
  }
  executable->function_ = *std::move(function);
  return executable;
}

bool Executable::matches_exactly(Arguments arguments) const { return plan_.fits(arguments); }

Status Executable::launch_observed(const Stream& stream, const LaunchShape& shape,
                                   Arguments arguments, PreparedLaunch& prepared) const {
  if (!launches_are_observed()) return launch_unobserved(stream, shape, arguments, prepared);
  const ProfilerRange range(site_.kernel());
  const Status status = launch_unobserved(stream, shape, arguments, prepared);
  log_launch(site_, backend_->name(), shape, status);
  // The next one like it is to be seen too.
  prepared.again = false;
  return status;
}

Status Executable::launch_unobserved(const Stream& stream, const LaunchShape& shape,
                                     Arguments arguments, PreparedLaunch& prepared) const {
  prepared.again = false;
  prepared.block.resize(compilation_->layout.bytes + kPackSlack);
  std::byte* const block = prepared.block.data();
  plan_.pack(arguments, block);
  LaunchShape full = shape;
  full.block = shape.block_to_launch(compilation_->optimized.block);
  if (compilation_->at_launch.concerns(shape.grid.x)) {
    ir::LaunchDims dims{.grid = full.grid, .block = full.block};
    const ir::LaunchDims asked = dims;
    if (!compilation_->at_launch.run(block, dims)) {
      return InvalidArgumentError(absl::StrCat(
          site_.describe(), " cannot launch: ", compilation_->at_launch.refusal(block, asked)));
    }
    full.grid = dims.grid;
    // The kernel's own grid may come out empty: then there is nothing to do.
    const bool empty = full.grid.x == 0 || full.grid.y == 0 || full.grid.z == 0;
    if (empty && dims.grid != asked.grid) return OkStatus();
  }
  if (!compilation_->tensor_maps.empty()) {
    const Status encoded =
        compilation_->tensor_maps.encode(block, [this](const ir::TensorMap& map, std::byte* to) {
          return backend_->encode_tensor_map(map, to);
        });
    if (!encoded.ok()) {
      return Status(encoded.code(),
                    absl::StrCat(site_.describe(), " cannot launch: ", encoded.message()));
    }
  }
  if (!function_) return launch_on_interp(stream, full, arguments, block);
  // What the kernel's own arrays take of the dynamic memory comes on top of what the launch asks for.
  if (shape.shared_bytes < 0 || shape.shared_bytes > backend_->info().limits.max_shared_per_block) {
    return check_launch_limits(backend_->info(), full, site_);
  }
  full.shared_bytes += compilation_->ptx.dynamic_shared_base;
  if (Status s = check_launch(*function_, full, &site_, prepared.checked); !s.ok()) return s;
  prepared.bytes = compilation_->layout.bytes;
  prepared.places = compilation_->places;
  prepared.again = true;
  return prepared.enqueue(stream.handle());
}

Status Executable::launch_on_interp(const Stream& stream, const LaunchShape& shape,
                                    Arguments arguments, const std::byte* block) const {
  if (Status s = check_launch_limits(backend_->info(), shape, site_); !s.ok()) return s;
  // What a multiprocessor's threads allow; a GPU's registers and shared memory may allow fewer.
  const DeviceInfo& info = backend_->info();
  const int64_t arrays = ir::shared_layout(compilation_->optimized).bytes;
  if (arrays + shape.shared_bytes > info.limits.max_shared_per_block) {
    return InvalidArgumentError(absl::StrCat(
        site_.describe(), " cannot launch: a block needs ", arrays, " + ", shape.shared_bytes,
        " bytes of static and dynamic shared memory, but has at most ",
        info.limits.max_shared_per_block, " on ", info.name,
        "; fix: let each block work on less at a time"));
  }
  const int64_t resident = info.sm_count * (info.max_threads_per_sm / shape.block.count());
  if (Status s = check_cooperative(info, shape, resident, site_); !s.ok()) return s;
  auto& device = static_cast<InterpBackend&>(*backend_);
  // A graph may outlive the kernel, and the arguments.
  return device.run_or_record(
      stream.handle(),
      [&device, code = compilation_, program = program_, site = site_, shape, may_wait = may_wait_,
       params = std::vector(block, block + program_->param_bytes()),
       args = std::vector(arguments.begin(), arguments.end())](StreamHandle on) {
        Status beside =
            device.launches().note(on, site, shape.programmatic, may_wait, code->params, args);
        if (!beside.ok()) return beside;
        return ir::interp::run(
            *program,
            {.grid = shape.grid,
             .block = shape.block,
             .params = params,
             .dynamic_shared_bytes = static_cast<int>(shape.shared_bytes),
             .cooperative = shape.cooperative},
            device.memory(),
            {.completion = device.completion(), .max_instructions = device.max_instructions()});
      },
      shape);
}

}  // namespace heddle::runtime
