#include "heddle/runtime/ahead/recorded_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/runtime/argument_plan.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/specialize.h"

namespace heddle::runtime {
namespace {

// As drivers align what they allocate.
constexpr int64_t kWorkspaceAlignment = 256;

Status needs_its_host(absl::string_view why) {
  return UnimplementedError(absl::StrCat(
      "the operation cannot be run without its host function: it ", why,
      "; fix: compile it ahead of time by compile_all_calls(), which fills the cache"));
}

// A dry run that writes down what is enqueued.
class Recorder final : public DryRunBackend {
 public:
  Recorder(const DeviceInfo& info, const ir::Target& target, const CompileOptions& options)
      : DryRunBackend(info, [this](const DryLaunch& launch) { return record(launch); }),
        target_(target),
        options_(options) {
    options_.stage = Stage::kCubin;
  }

  // A tensor of the call; its address.
  DeviceAddress add_tensor(RecordedTensor tensor) {
    const DeviceAddress address = DryRunBackend::allocate(tensor.bytes + kGap).value();
    ranges_.push_back({address, tensor.bytes, {static_cast<int>(call_.tensors.size()), 0}, false});
    call_.tensors.push_back(std::move(tensor));
    return address;
  }
  RecordedCall take() { return std::move(call_); }
  const Status& failure() const { return failure_; }

  StatusOr<DeviceAddress> allocate(size_t size) override {
    const auto bytes = static_cast<int64_t>(size);
    for (Range& range : ranges_) {
      if (!range.free || range.bytes < bytes || range.bytes / 2 > bytes) continue;
      range.free = false;
      return range.begin;
    }
    StatusOr<DeviceAddress> address = DryRunBackend::allocate(bytes + kGap);
    if (!address.ok()) return address;
    ranges_.push_back({*address, bytes, {RecordedPlace::kWorkspace, call_.workspace_bytes}, false});
    call_.workspace_bytes +=
        (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    return address;
  }
  // Steps run in order, so that what comes next may use it.
  void deallocate(DeviceAddress address) noexcept override {
    for (Range& range : ranges_) {
      if (range.begin == address) range.free = range.place.tensor == RecordedPlace::kWorkspace;
    }
  }
  Status copy_to_device(StreamHandle, DeviceAddress, const void*, size_t) override {
    return fail(needs_its_host("copies from host memory"));
  }
  Status copy_to_host(StreamHandle, void*, DeviceAddress, size_t, Unwritten) override {
    return fail(needs_its_host("reads results"));
  }
  Status copy_on_device(StreamHandle, DeviceAddress to, DeviceAddress from, size_t bytes) override {
    RecordedCopy copy{.bytes = static_cast<int64_t>(bytes)};
    if (Status s = locate(to, copy.to); !s.ok()) return s;
    if (Status s = locate(from, copy.from); !s.ok()) return s;
    call_.steps.emplace_back(copy);
    return OkStatus();
  }
  Status fill8(StreamHandle, DeviceAddress to, uint8_t value, size_t count) override {
    return fill(to, value, 1, count);
  }
  Status fill32(StreamHandle, DeviceAddress to, uint32_t value, size_t count) override {
    return fill(to, value, sizeof(value), count);
  }

 private:
  // Between ranges, so that an address at the end of one is not the next one's.
  static constexpr int64_t kGap = 256;
  struct Range {
    DeviceAddress begin;
    int64_t bytes;
    RecordedPlace place;
    bool free;
  };
  // A kernel that was compiled for a block and a cluster.
  struct Variant {
    uint64_t kernel_id;
    Dim3 block, cluster;
    std::shared_ptr<const Compilation> compilation;
  };

  Status fail(Status status) {
    failure_.Update(status);
    return status;
  }

  Status locate(DeviceAddress address, RecordedPlace& place) {
    for (const Range& range : ranges_) {
      const auto offset = static_cast<int64_t>(address - range.begin);
      if (offset < 0 || offset > range.bytes) continue;
      place = {range.place.tensor, range.place.offset + offset};
      return OkStatus();
    }
    return fail(
        needs_its_host("uses memory that is neither an argument nor allocated in its stream"));
  }

  Status fill(DeviceAddress to, uint32_t value, int unit_bytes, size_t count) {
    RecordedFill fill{
        .value = value, .unit_bytes = unit_bytes, .count = static_cast<int64_t>(count)};
    if (Status s = locate(to, fill.to); !s.ok()) return s;
    call_.steps.emplace_back(fill);
    return OkStatus();
  }

  StatusOr<std::shared_ptr<const Compilation>> compile(const DryLaunch& launch) {
    const uint64_t kernel_id = KernelCache::of(*launch.source).kernel_id();
    for (const Variant& variant : variants_) {
      if (variant.kernel_id == kernel_id && variant.block == launch.shape.block &&
          variant.cluster == launch.shape.cluster &&
          ArgumentPlan(variant.compilation->guards, variant.compilation->params, {})
              .fits(launch.arguments)) {
        return variant.compilation;
      }
    }
    ir::Specialization specialization = specialize(*launch.source, launch.arguments, target_);
    specialization.block = launch.shape.block_to_compile();
    specialization.cluster = launch.shape.cluster;
    CompileOptions options = options_;
    options.block = launch.shape.block_to_compile();
    options.cluster = launch.shape.cluster;
    StatusOr<std::shared_ptr<const Compilation>> compiled =
        compile_source(*launch.source, std::move(specialization), options);
    if (compiled.ok() && (*compiled)->assembly.cubin.empty()) {
      return FailedPreconditionError(
          absl::StrCat((*compiled)->describe(),
                       ": the driver is chosen to assemble kernels, and machine code is needed "
                       "ahead of time; fix: choose another --assembler in HEDDLE_OPTIONS"));
    }
    if (compiled.ok()) {
      variants_.push_back({kernel_id, launch.shape.block, launch.shape.cluster, *compiled});
    }
    return compiled;
  }

  Status record(const DryLaunch& launch) {
    if (launch.source == nullptr) {
      return fail(needs_its_host("launches a kernel that it compiled itself"));
    }
    StatusOr<std::shared_ptr<const Compilation>> compiled = compile(launch);
    if (!compiled.ok()) return fail(compiled.status());
    const Compilation& kernel = **compiled;
    RecordedLaunch recorded{.kernel = *compiled, .shape = launch.shape};
    recorded.block.resize(kernel.layout.bytes + kPackSlack);
    ArgumentPlan(kernel.guards, kernel.params, kernel.layout)
        .pack(launch.arguments, recorded.block.data());

    recorded.shape.block = launch.shape.block_to_launch(kernel.optimized.block);
    ir::LaunchDims dims{.grid = launch.shape.grid, .block = recorded.shape.block};
    const ir::LaunchDims asked = dims;
    if (kernel.at_launch.concerns(dims.grid.x) &&
        !kernel.at_launch.run(recorded.block.data(), dims)) {
      return fail(InvalidArgumentError(absl::StrCat(
          kernel.describe(),
          " cannot launch: ", kernel.at_launch.refusal(recorded.block.data(), asked))));
    }
    recorded.shape.grid = dims.grid;
    if (dims.grid.x == 0 || dims.grid.y == 0 || dims.grid.z == 0) return OkStatus();
    recorded.shape.shared_bytes += kernel.ptx.dynamic_shared_base;

    // A kernel's own maps are remembered and not encoded again; new ones are.
    const Status encoded =
        ir::TensorMaps(kernel.optimized, kernel.layout)
            .encode(recorded.block.data(), [&](const ir::TensorMap& map, std::byte* to) {
              RecordedLaunch::Map& slot = recorded.maps.emplace_back();
              slot.offset = static_cast<int>(to - recorded.block.data());
              slot.map = map;
              slot.map.address = 0;
              return locate(map.address, slot.place);
            });
    if (!encoded.ok()) return fail(encoded);
    for (const ir::ParamSlot& slot : kernel.layout.slots) {
      if (slot.kind != ir::SlotKind::kAddress) continue;
      const uint64_t bits = launch.arguments[slot.param].bits;
      if (bits == 0) continue;  // a tensor that is not there: nothing is read of it
      RecordedLaunch::Address& address = recorded.addresses.emplace_back();
      address.offset = slot.offset;
      if (Status s = locate(bits, address.place); !s.ok()) return s;
    }
    recorded.block.resize(kernel.layout.bytes);
    call_.steps.emplace_back(std::move(recorded));
    return OkStatus();
  }

  const ir::Target& target_;
  CompileOptions options_;
  RecordedCall call_;
  std::vector<Range> ranges_;
  std::vector<Variant> variants_;
  Status failure_;
};

}  // namespace

StatusOr<RecordedCall> record_call(const BoundCall& call, const DeviceInfo& info,
                                   const CompileOptions& options) {
  const StatusOr<const ir::Target*> target = target_of(options);
  if (!target.ok()) return target.status();
  const auto recorder = std::make_shared<Recorder>(info, **target, options);
  // Tensors are recorded at addresses that suit everything, and both host functions and kernels choose by that.
  const int alignment = std::max<int>((*target)->max_access_bytes, ir::kTensorMapMultiple);
  std::vector<std::vector<int64_t>> strides(call.values.size());
  std::vector<Argument> arguments;
  for (size_t i = 0; i < call.values.size(); ++i) {
    const BoundCall::Value& value = call.values[i];
    const OperationArgument& declared = *value.argument;
    if (!declared.is_tensor()) {
      arguments.push_back(scalar_argument(value.bits));
      continue;
    }
    const std::vector<int64_t>& extents = value.shape.extents;
    const int64_t element_bytes = ir::bytes_of(value.shape.dtype);
    strides[i].resize(extents.size());
    int64_t elements = 1;
    for (size_t mode = extents.size(); mode-- > 0;) {
      strides[i][mode] = elements;
      if (__builtin_mul_overflow(elements, extents[mode], &elements) ||
          elements > INT64_MAX / element_bytes) {
        return InvalidArgumentError(absl::StrCat("'", declared.name, "' of ", describe(value.shape),
                                                 " has too many bytes"));
      }
    }
    if (elements == 0) {
      return InvalidArgumentError(absl::StrCat("'", declared.name, "' of ", describe(value.shape),
                                               " has no elements: there is nothing to build"));
    }
    const int64_t bytes = elements * element_bytes;
    const DeviceAddress address =
        recorder->add_tensor({declared.name, value.shape, declared.is_read(), declared.is_written(),
                              bytes, std::max<int>(element_bytes, alignment), declared.dimensions});
    arguments.push_back(tensor_argument(address, extents.data(), strides[i].data(),
                                        static_cast<int>(extents.size()),
                                        static_cast<int>(element_bytes), bytes));
  }
  const Status done = call.function->call(Device(recorder).default_stream(), arguments);
  // What went wrong first says more than what the operation makes of it.
  if (!recorder->failure().ok()) return recorder->failure();
  if (!done.ok()) return done;
  RecordedCall recorded = recorder->take();
  recorded.multiprocessors = static_cast<int>(info.sm_count);
  return recorded;
}

}  // namespace heddle::runtime
