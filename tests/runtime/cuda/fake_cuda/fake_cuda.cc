// The functions that the stand-in for libcuda exports.
#include "runtime/cuda/fake_cuda/fake_cuda.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>

#include "runtime/cuda/fake_cuda/fake_call.h"

namespace heddle::runtime::cuda {
namespace {

// "7=4 13=1 0=64": the options of a load that are numbers; the pointers among them come as "…".
std::string numbers_of(unsigned count, const JitOption* options, void* const* values) {
  std::string list;
  for (unsigned i = 0; i < count; ++i) {
    const auto value = reinterpret_cast<uint64_t>(values[i]);
    list +=
        text(static_cast<uint64_t>(options[i])) + "=" + (value < 4096 ? text(value) : "…") + " ";
  }
  return list;
}

Result copy(Call& call, void* to, const void* from, size_t bytes) {
  if (call.faulted()) return call.result();
  std::memcpy(to, from, bytes);
  return Result::kSuccess;
}

Result allocate(Call& call, DevicePointer* address, size_t bytes) {
  if (call.faulted()) return call.result();
  if (bytes == 0) return kInvalidValue;
  if (bytes > fake().total_memory - fake().used()) return Result::kOutOfMemory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  *address = reinterpret_cast<DevicePointer>(memory);
  fake().allocations[*address] = bytes;
  return Result::kSuccess;
}

Result deallocate(Call& call, DevicePointer address) {
  if (call.failed()) return call.result();
  if (fake().allocations.erase(address) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(address));
  call.faulted();
  return call.result();
}

}  // namespace
}  // namespace heddle::runtime::cuda

using namespace heddle::runtime::cuda;  // NOLINT: the functions below stand outside any namespace

extern "C" {

FakeCuda* heddle_fake_cuda() { return &fake(); }

void heddle_fake_cuda_pretend(int version, int major, int minor) {
  fake().set_version(version);
  fake().set_device_attribute(DeviceAttribute::kComputeCapabilityMajor, major);
  fake().set_device_attribute(DeviceAttribute::kComputeCapabilityMinor, minor);
}

Result cuInit(unsigned) {
  Call call("cuInit", kNothing);
  if (call.failed()) return call.result();
  fake().initialized = true;
  return Result::kSuccess;
}

Result cuDriverGetVersion(int* version) {
  Call call("cuDriverGetVersion", kNothing);
  if (call.failed()) return call.result();
  *version = fake().version;
  return Result::kSuccess;
}

Result cuGetErrorName(Result result, const char** name) {
  Call call("cuGetErrorName", kNothing);
  if (call.failed()) return call.result();
  *name = static_cast<int>(result) == 555 ? "CUDA_ERROR_FROM_THE_FUTURE" : nullptr;
  return *name == nullptr ? kInvalidValue : Result::kSuccess;
}

Result cuGetErrorString(Result, const char** name) {
  Call call("cuGetErrorString", kNothing);
  if (call.failed()) return call.result();
  *name = "the fake's text";
  return Result::kSuccess;
}

Result cuDeviceGetCount(int* count) {
  Call call("cuDeviceGetCount", kInit);
  if (call.failed()) return call.result();
  *count = fake().device_count;
  return Result::kSuccess;
}

Result cuDeviceGet(DeviceOrdinal* device, int ordinal) {
  Call call("cuDeviceGet", kInit);
  if (call.failed()) return call.result();
  *device = ordinal;
  return Result::kSuccess;
}

Result cuDeviceGetName(char* name, int length, DeviceOrdinal) {
  Call call("cuDeviceGetName", kInit);
  if (call.failed()) return call.result();
  std::snprintf(name, static_cast<size_t>(length), "Fake GPU");
  return Result::kSuccess;
}

Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceOrdinal) {
  Call call("cuDeviceGetAttribute", kInit, text(static_cast<uint64_t>(attribute)));
  if (call.failed()) return call.result();
  static const std::map<DeviceAttribute, int> values = {
      {DeviceAttribute::kMaxThreadsPerBlock, 1024},
      {DeviceAttribute::kMaxBlockDimX, 1024},
      {DeviceAttribute::kMaxBlockDimY, 1024},
      {DeviceAttribute::kMaxBlockDimZ, 64},
      {DeviceAttribute::kMaxGridDimX, 2147483647},
      {DeviceAttribute::kMaxGridDimY, 65535},
      {DeviceAttribute::kMaxGridDimZ, 65535},
      {DeviceAttribute::kWarpSize, 32},
      {DeviceAttribute::kMultiprocessorCount, 10},
      {DeviceAttribute::kL2CacheSize, 1 << 20},
      {DeviceAttribute::kMaxThreadsPerMultiprocessor, 2048},
      {DeviceAttribute::kComputeCapabilityMajor, 9},
      {DeviceAttribute::kComputeCapabilityMinor, 0},
      {DeviceAttribute::kMaxSharedMemoryPerMultiprocessor, 233472},
      {DeviceAttribute::kMaxRegistersPerMultiprocessor, 65536},
      {DeviceAttribute::kCooperativeLaunch, 1},
      {DeviceAttribute::kMaxSharedMemoryPerBlockOptin, 232448},
      {DeviceAttribute::kMemoryPools, 1},
      {DeviceAttribute::kPageableMemoryAccess, 0},
      {DeviceAttribute::kClusterLaunch, 1},
  };
  const auto found = values.find(attribute);
  if (found == values.end()) return kInvalidValue;
  const auto set = fake().device_attributes.find(attribute);
  *value = set == fake().device_attributes.end() ? found->second : set->second;
  return Result::kSuccess;
}

Result cuDeviceTotalMem_v2(size_t* bytes, DeviceOrdinal) {
  Call call("cuDeviceTotalMem_v2", kInit);
  if (call.failed()) return call.result();
  *bytes = fake().total_memory;
  return Result::kSuccess;
}

Result cuDeviceGetDefaultMemPool(MemoryPoolHandle* pool, DeviceOrdinal) {
  Call call("cuDeviceGetDefaultMemPool", kInit);
  if (call.failed()) return call.result();
  *pool = reinterpret_cast<MemoryPoolHandle>(0x900);
  return Result::kSuccess;
}

Result cuMemPoolCreate(MemoryPoolHandle* pool, const PoolProperties* properties) {
  Call call("cuMemPoolCreate", kContext, text(static_cast<uint64_t>(properties->device)));
  if (call.failed()) return call.result();
  *pool = fake().make_handle<MemoryPoolHandle>();
  if (fake().capturing && fake().capture_mode != CaptureMode::kRelaxed) return kCaptureUnsupported;
  fake().pools[*pool] = 0;
  return Result::kSuccess;
}

Result cuMemPoolSetAttribute(MemoryPoolHandle pool, PoolAttribute attribute, void* value) {
  Call call("cuMemPoolSetAttribute", kInit);
  if (call.failed()) return call.result();
  const auto found = fake().pools.find(pool);
  if (found == fake().pools.end() || attribute != PoolAttribute::kReleaseThreshold)
    return kInvalidValue;
  found->second = *static_cast<const uint64_t*>(value);
  return Result::kSuccess;
}

Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  Call call("cuThreadExchangeStreamCaptureMode", kInit, text(static_cast<uint64_t>(*mode)));
  if (call.failed()) return call.result();
  std::swap(*mode, fake().capture_mode);
  return Result::kSuccess;
}

Result cuMemPoolDestroy(MemoryPoolHandle pool) {
  Call call("cuMemPoolDestroy", kInit);
  if (call.failed()) return call.result();
  return fake().pools.erase(pool) != 0 ? Result::kSuccess : kInvalidValue;
}

Result cuMemPoolTrimTo(MemoryPoolHandle, size_t) {
  Call call("cuMemPoolTrimTo", kInit);
  return call.result();
}

Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceOrdinal device) {
  Call call("cuDevicePrimaryCtxRetain", kInit);
  if (call.failed()) return call.result();
  ++fake().retained[device];
  *context = primary_context(device);
  return Result::kSuccess;
}

Result cuDevicePrimaryCtxRelease_v2(DeviceOrdinal device) {
  Call call("cuDevicePrimaryCtxRelease_v2", kInit);
  if (call.failed()) return call.result();
  if (fake().retained[device] == 0) return kInvalidContext;
  --fake().retained[device];
  return Result::kSuccess;
}

Result cuCtxGetCurrent(ContextHandle* context) {
  Call call("cuCtxGetCurrent", kInit);
  if (call.failed()) return call.result();
  *context = fake().current_context();
  return Result::kSuccess;
}

// Not Heddle's, but of what it exports.
Result cuCtxGetId(ContextHandle context, unsigned long long* id) {  // NOLINT: the ABI says so
  Call call("cuCtxGetId", kInit);
  if (call.failed()) return call.result();
  *id = reinterpret_cast<uintptr_t>(context) + fake().resets * 0x10000;
  return Result::kSuccess;
}

Result cuCtxGetDevice(DeviceOrdinal* device) {
  Call call("cuCtxGetDevice", kContext);
  if (call.failed()) return call.result();
  *device = 0;
  return Result::kSuccess;
}

Result cuCtxPushCurrent_v2(ContextHandle context) {
  Call call("cuCtxPushCurrent_v2", kInit);
  if (call.failed()) return call.result();
  contexts.push_back(context);
  return Result::kSuccess;
}

Result cuCtxPopCurrent_v2(ContextHandle* context) {
  Call call("cuCtxPopCurrent_v2", kInit);
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return call.result();
}

Result cuCtxSynchronize() {
  Call call("cuCtxSynchronize", kContext);
  call.faulted();
  return call.result();
}

Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  Call call("cuMemGetInfo_v2", kContext);
  if (call.faulted()) return call.result();
  *free = fake().total_memory - fake().used();
  *total = fake().total_memory;
  return Result::kSuccess;
}

Result cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  Call call("cuMemAlloc_v2", kContext, text(bytes));
  return allocate(call, address, bytes);
}

Result cuMemFree_v2(DevicePointer address) {
  Call call("cuMemFree_v2", kContext);
  return deallocate(call, address);
}

// A pool that keeps less than everything gives memory back whenever somebody waits.
Result cuMemAllocFromPoolAsync(DevicePointer* address, size_t bytes, MemoryPoolHandle pool,
                               DriverStream stream) {
  Call call("cuMemAllocFromPoolAsync", kContext, text(bytes));
  const auto found = fake().pools.find(pool);
  if (found == fake().pools.end() || found->second != ~uint64_t{0}) return kInvalidValue;
  return fake().is_stream(stream) ? allocate(call, address, bytes) : kInvalidHandle;
}

Result cuMemFreeAsync(DevicePointer address, DriverStream stream) {
  Call call("cuMemFreeAsync", kContext);
  return fake().is_stream(stream) ? deallocate(call, address) : kInvalidHandle;
}

Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  Call call("cuMemHostAlloc", kContext);
  if (call.faulted()) return call.result();
  *memory = std::malloc(bytes);
  fake().host_allocations.insert(*memory);
  return Result::kSuccess;
}

Result cuMemFreeHost(void* memory) {
  Call call("cuMemFreeHost", kContext);
  if (call.failed()) return call.result();
  if (fake().host_allocations.erase(memory) == 0) return kInvalidValue;
  std::free(memory);
  call.faulted();
  return call.result();
}

// Of an allocation that is another device's, its owner alone.
Result cuPointerGetAttribute(void* value, PointerAttribute attribute, DevicePointer address) {
  Call call("cuPointerGetAttribute", kContext, text(static_cast<uint64_t>(attribute)));
  if (call.faulted()) return call.result();
  const auto& all = fake().allocations;
  auto found = all.upper_bound(address);
  const bool ours =
      found != all.begin() && address - std::prev(found)->first < std::prev(found)->second;
  const bool foreign = ours && std::prev(found)->first == fake().foreign;
  if (!ours && fake().host_allocations.count(reinterpret_cast<void*>(address)) == 0) {
    return kInvalidValue;
  }
  if (attribute == PointerAttribute::kDeviceOrdinal) {
    *static_cast<int*>(value) = foreign ? 1 : 0;
    return Result::kSuccess;
  }
  if (attribute != PointerAttribute::kDevicePointer || foreign) return kInvalidValue;
  *static_cast<DevicePointer*>(value) = address;
  return Result::kSuccess;
}

Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, DriverStream) {
  Call call("cuMemcpyHtoDAsync_v2", kContext, text(bytes));
  return copy(call, reinterpret_cast<void*>(to), from, bytes);
}

Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, DriverStream) {
  Call call("cuMemcpyDtoHAsync_v2", kContext, text(bytes));
  return copy(call, to, reinterpret_cast<const void*>(from), bytes);
}

Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, DriverStream) {
  Call call("cuMemcpyDtoDAsync_v2", kContext, text(bytes));
  return copy(call, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}

Result cuMemsetD8Async(DevicePointer to, uint8_t value, size_t count, DriverStream) {
  Call call("cuMemsetD8Async", kContext, text(count));
  if (call.faulted()) return call.result();
  std::memset(reinterpret_cast<void*>(to), value, count);
  return Result::kSuccess;
}

Result cuMemsetD32Async(DevicePointer to, uint32_t value, size_t count, DriverStream) {
  Call call("cuMemsetD32Async", kContext, text(count));
  if (call.faulted()) return call.result();
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(reinterpret_cast<void*>(to + i * sizeof(value)), &value, sizeof(value));
  }
  return Result::kSuccess;
}

Result cuStreamCreate(DriverStream* stream, unsigned flags) {
  Call call("cuStreamCreate", kContext, text(flags));
  if (call.faulted()) return call.result();
  *stream = fake().make_handle<DriverStream>();
  fake().streams.insert(*stream);
  return Result::kSuccess;
}

Result cuStreamDestroy_v2(DriverStream stream) {
  Call call("cuStreamDestroy_v2", kContext);
  if (call.failed()) return call.result();
  if (fake().streams.erase(stream) == 0) return kInvalidHandle;
  call.faulted();
  return call.result();
}

Result cuStreamSynchronize(DriverStream stream) {
  Call call("cuStreamSynchronize", kContext);
  if (call.faulted()) return call.result();
  if (fake().captures.count(stream) != 0) return kCaptureUnsupported;
  return fake().is_stream(stream) ? Result::kSuccess : kInvalidHandle;
}

Result cuStreamQuery(DriverStream) {
  Call call("cuStreamQuery", kContext);
  if (call.faulted()) return call.result();
  return fake().busy ? Result::kNotReady : Result::kSuccess;
}

Result cuStreamWaitEvent(DriverStream stream, DriverEvent event, unsigned) {
  Call call("cuStreamWaitEvent", kContext, text(reinterpret_cast<uintptr_t>(stream)));
  if (call.faulted()) return call.result();
  return fake().events.count(event) != 0 ? Result::kSuccess : kInvalidHandle;
}

Result cuStreamIsCapturing(DriverStream stream, CaptureStatus* status) {
  Call call("cuStreamIsCapturing", kContext);
  if (call.failed()) return call.result();
  const bool captured = fake().capturing || fake().captures.count(stream) != 0;
  *status = captured ? CaptureStatus::kActive : CaptureStatus::kNone;
  return Result::kSuccess;
}

Result cuEventCreate(DriverEvent* event, unsigned) {
  Call call("cuEventCreate", kContext);
  if (call.faulted()) return call.result();
  *event = fake().make_handle<DriverEvent>();
  fake().events.insert(*event);
  return Result::kSuccess;
}

Result cuEventDestroy_v2(DriverEvent event) {
  Call call("cuEventDestroy_v2", kContext);
  if (call.failed()) return call.result();
  if (fake().events.erase(event) == 0) return kInvalidHandle;
  call.faulted();
  return call.result();
}

Result cuEventRecord(DriverEvent event, DriverStream stream) {
  Call call("cuEventRecord", kContext, text(reinterpret_cast<uintptr_t>(stream)));
  if (call.faulted()) return call.result();
  return fake().events.count(event) != 0 ? Result::kSuccess : kInvalidHandle;
}

Result cuEventQuery(DriverEvent) {
  Call call("cuEventQuery", kContext);
  if (call.faulted()) return call.result();
  return fake().busy ? Result::kNotReady : Result::kSuccess;
}

Result cuEventSynchronize(DriverEvent) {
  Call call("cuEventSynchronize", kContext);
  call.faulted();
  return call.result();
}

Result cuEventElapsedTime(float* milliseconds, DriverEvent, DriverEvent) {
  Call call("cuEventElapsedTime", kContext);
  if (call.faulted()) return call.result();
  *milliseconds = 1.5f;
  return Result::kSuccess;
}

Result cuModuleLoadDataEx(ModuleHandle* module, const void*, unsigned count, JitOption* options,
                          void** values) {
  Call call("cuModuleLoadDataEx", kContext, numbers_of(count, options, values));
  for (unsigned i = 0; i < count; ++i) {
    const bool failed = call.failed();
    if (options[i] == JitOption::kErrorLogBuffer && failed) {
      std::strcpy(static_cast<char*>(values[i]), "\nptxas line 7; syntax error near 'adt'\nmore\n");
    }
    if (options[i] == JitOption::kInfoLogBuffer && !failed) {
      std::strcpy(static_cast<char*>(values[i]), "used 40 registers");
    }
  }
  if (call.faulted()) return call.result();
  *module = fake().make_handle<ModuleHandle>();
  fake().modules.insert(*module);
  return Result::kSuccess;
}

Result cuModuleUnload(ModuleHandle module) {
  Call call("cuModuleUnload", kContext);
  if (call.failed()) return call.result();
  if (fake().modules.erase(module) == 0) return kInvalidHandle;
  call.faulted();
  return call.result();
}

Result cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  Call call("cuModuleGetFunction", kContext, name);
  if (call.faulted()) return call.result();
  if (fake().modules.count(module) == 0) return kInvalidHandle;
  bool found = fake().kernels.empty();
  std::istringstream known(fake().kernels);
  for (std::string kernel; std::getline(known, kernel);) found |= kernel == name;
  if (!found) return kNotFound;
  *function = fake().make_handle<FunctionHandle>();
  fake().functions[*function] = name;
  return Result::kSuccess;
}

Result cuFuncGetAttribute(int* value, FunctionAttribute attribute, FunctionHandle) {
  Call call("cuFuncGetAttribute", kContext, text(static_cast<uint64_t>(attribute)));
  if (call.faulted()) return call.result();
  const auto found = fake().function_attributes.find(attribute);
  if (found == fake().function_attributes.end()) return kInvalidValue;
  *value = found->second;
  return Result::kSuccess;
}

Result cuFuncSetAttribute(FunctionHandle, FunctionAttribute attribute, int value) {
  Call call("cuFuncSetAttribute", kContext,
            text(static_cast<uint64_t>(attribute)) + "=" + std::to_string(value));
  if (call.faulted()) return call.result();
  fake().function_attributes[attribute] = value;
  return Result::kSuccess;
}

#ifndef HEDDLE_FAKE_WITHOUT_LAUNCH
Result cuLaunchKernelEx(const DriverLaunchConfig* config, FunctionHandle function,
                        void** parameters, void** extra) {
  Call call("cuLaunchKernelEx", kContext, fake().functions[function]);
  if (call.faulted()) return call.result();
  if (parameters != nullptr && extra != nullptr) return kInvalidValue;
  FakeLaunch launch = launch_of(function, parameters, extra);
  launch.config = *config;
  launch.attributes.assign(config->attributes, config->attributes + config->attribute_count);
  const auto capture = fake().captures.find(config->stream);
  if (capture != fake().captures.end()) {
    fake().graphs[capture->second.graph].nodes.push_back({nullptr, {std::move(launch)}, true});
  } else {
    fake().launched.push_back(std::move(launch));
  }
  return Result::kSuccess;
}
#endif

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle, int threads,
                                                   size_t shared) {
  Call call("cuOccupancyMaxActiveBlocksPerMultiprocessor", kContext,
            std::to_string(threads) + " " + text(shared));
  if (call.faulted()) return call.result();
  *blocks = fake().blocks_per_sm;
  return Result::kSuccess;
}

Result cuOccupancyMaxActiveClusters(int* clusters, FunctionHandle,
                                    const DriverLaunchConfig* config) {
  Call call("cuOccupancyMaxActiveClusters", kContext);
  if (call.faulted()) return call.result();
  const auto& cluster = config->attributes[0].value.cluster;
  const bool allowed =
      fake().function_attributes[FunctionAttribute::kNonPortableClusterSizeAllowed] != 0;
  if (cluster.x * cluster.y * cluster.z > 8 && !allowed) return Result::kInvalidClusterSize;
  *clusters = fake().active_clusters;
  return Result::kSuccess;
}

// The fake's map is what it was given: address, extents, strides and box, 32 bits of each.
Result cuTensorMapEncodeTiled(DriverTensorMap* map, TensorMapType type, uint32_t rank,
                              void* address, const uint64_t* extents, const uint64_t* strides,
                              const uint32_t* box, const uint32_t*, TensorMapInterleave,
                              TensorMapSwizzle swizzle, TensorMapPromotion, TensorMapFill) {
  Call call("cuTensorMapEncodeTiled", kContext,
            std::to_string(rank) + " " + std::to_string(static_cast<int>(type)) + " " +
                std::to_string(static_cast<int>(swizzle)));
  if (call.faulted()) return call.result();
  if (reinterpret_cast<uintptr_t>(map) % alignof(DriverTensorMap) != 0) return kInvalidValue;
  *map = {};
  map->opaque[0] = reinterpret_cast<uintptr_t>(address);
  for (uint32_t d = 0; d < rank; ++d) {
    map->opaque[1 + d] = extents[d];
    if (d > 0) map->opaque[6 + d] = strides[d - 1];
    map->opaque[11 + d] = box[d];
  }
  return Result::kSuccess;
}

Result cuTensorMapEncodeIm2col(DriverTensorMap* map, TensorMapType, uint32_t rank, void* address,
                               const uint64_t*, const uint64_t*, const int* lower, const int* upper,
                               uint32_t channels, uint32_t pixels, const uint32_t*,
                               TensorMapInterleave, TensorMapSwizzle, TensorMapPromotion,
                               TensorMapFill) {
  std::string bounds;
  for (uint32_t d = 0; d + 2 < rank; ++d) {
    bounds += " " + std::to_string(lower[d]) + ".." + std::to_string(upper[d]);
  }
  Call call("cuTensorMapEncodeIm2col", kContext,
            std::to_string(rank) + " " + std::to_string(channels) + " " + std::to_string(pixels) +
                bounds);
  if (call.faulted()) return call.result();
  *map = {};
  map->opaque[0] = reinterpret_cast<uintptr_t>(address);
  return Result::kSuccess;
}

}  // extern "C"
