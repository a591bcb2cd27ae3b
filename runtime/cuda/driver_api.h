// The part of the CUDA driver API that Heddle calls, declared here so that it builds without
// cuda.h: types, constants, and a table of functions that is filled from the loaded library.
//
// Names follow CUDA's with its prefix taken off; every value is checked against cuda.h by a test
// where that header is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::runtime::cuda {

// CUresult. Only codes that the code acts on have a name; errors.cc has the table of all.
enum class Result : int32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotReady = 600,
  kGraphUpdateFailure = 910,
  kInvalidClusterSize = 912,
};

// CUdevice, CUdeviceptr and the opaque handles.
using DeviceOrdinal = int;
using DevicePointer = unsigned long long;  // NOLINT: the ABI says so
using ContextHandle = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using DriverStream = struct StreamTag*;
using DriverEvent = struct EventTag*;
using MemoryPoolHandle = struct MemoryPoolTag*;
using GraphHandle = struct GraphTag*;
using GraphNodeHandle = struct GraphNodeTag*;
using GraphExecHandle = struct GraphExecTag*;
using LibraryKernelHandle = struct LibraryKernelTag*;

// CUdevice_attribute
enum class DeviceAttribute : int32_t {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxBlockDimY = 3,
  kMaxBlockDimZ = 4,
  kMaxGridDimX = 5,
  kMaxGridDimY = 6,
  kMaxGridDimZ = 7,
  kWarpSize = 10,
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kPageableMemoryAccess = 88,
  kCooperativeLaunch = 95,
  kMaxSharedMemoryPerBlockOptin = 97,
  kMemoryPools = 115,
  kClusterLaunch = 120,
};

// CUpointer_attribute
enum class PointerAttribute : int32_t { kDevicePointer = 3, kDeviceOrdinal = 9 };

// CUfunction_attribute
enum class FunctionAttribute : int32_t {
  kMaxThreadsPerBlock = 0,
  kSharedSizeBytes = 1,
  kLocalSizeBytes = 3,
  kNumRegs = 4,
  kMaxDynamicSharedSizeBytes = 8,
  kRequiredClusterWidth = 11,
  kRequiredClusterHeight = 12,
  kRequiredClusterDepth = 13,
  kNonPortableClusterSizeAllowed = 14,
};

// CUjit_option
enum class JitOption : int32_t {
  kMaxRegisters = 0,
  kInfoLogBuffer = 3,
  kInfoLogBufferSizeBytes = 4,
  kErrorLogBuffer = 5,
  kErrorLogBufferSizeBytes = 6,
  kOptimizationLevel = 7,
  kLogVerbose = 12,
  kGenerateLineInfo = 13,
};

// CUstreamCaptureStatus
enum class CaptureStatus : int32_t { kNone = 0, kActive = 1, kInvalidated = 2 };

// CUlaunchAttributeID
enum class LaunchAttributeId : int32_t {
  kCooperative = 2,
  kClusterDimension = 4,
  kProgrammaticStreamSerialization = 6,
};

// CUtensorMapDataType
enum class TensorMapType : int32_t {
  kUint8 = 0,
  kUint16 = 1,
  kUint32 = 2,
  kInt32 = 3,
  kUint64 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kTfloat32 = 11,
};
// CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
enum class TensorMapInterleave : int32_t { kNone = 0 };
enum class TensorMapSwizzle : int32_t { kNone = 0, k32Bytes = 1, k64Bytes = 2, k128Bytes = 3 };
enum class TensorMapPromotion : int32_t { kNone = 0, k64Bytes = 1, k128Bytes = 2, k256Bytes = 3 };
enum class TensorMapFill : int32_t { kZeros = 0, kNan = 1 };
// CUtensorMap
struct alignas(128) DriverTensorMap {
  uint64_t opaque[16];
};

// CUstreamCaptureMode
enum class CaptureMode : int32_t { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

// CUmemAllocationType, CUmemLocationType, CUmemPool_attribute
enum class AllocationType : int32_t { kPinned = 1 };
enum class LocationType : int32_t { kDevice = 1 };
enum class PoolAttribute : int32_t { kReleaseThreshold = 4 };
// CUmemPoolProps
struct PoolProperties {
  AllocationType allocation = AllocationType::kPinned;
  int32_t handle_types = 0;
  LocationType location = LocationType::kDevice;
  DeviceOrdinal device = 0;
  void* security_attributes = nullptr;
  size_t most_bytes = 0;  // 0: as many as there are
  uint8_t reserved[56] = {};
};

inline constexpr unsigned kStreamNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventDefault = 0;       // CU_EVENT_DEFAULT
inline constexpr unsigned kEventWaitDefault = 0;   // CU_EVENT_WAIT_DEFAULT
inline constexpr unsigned kMemHostAllocPortable = 1;

// CU_LAUNCH_PARAM_*: keys of the list that cuLaunchKernelEx takes as `extra`.
inline constexpr uintptr_t kLaunchParamEnd = 0;
inline constexpr uintptr_t kLaunchParamBufferPointer = 1;
inline constexpr uintptr_t kLaunchParamBufferSize = 2;

// CUlaunchAttribute
struct LaunchAttribute {
  LaunchAttributeId id;
  char padding[4];
  union Value {
    char padding[64];
    int32_t flag;
    struct {
      uint32_t x, y, z;
    } cluster;
  } value;
};

// CUlaunchConfig
struct DriverLaunchConfig {
  uint32_t grid_x, grid_y, grid_z;
  uint32_t block_x, block_y, block_z;
  uint32_t dynamic_shared_bytes;
  DriverStream stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};

// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNodeParameters {
  FunctionHandle function;
  uint32_t grid_x, grid_y, grid_z;
  uint32_t block_x, block_y, block_z;
  uint32_t dynamic_shared_bytes;
  void** parameters;
  void** extra;
  LibraryKernelHandle kernel;  // where there is no function
  ContextHandle context;
};

// CUgraphExecUpdateResultInfo
struct GraphUpdateInfo {
  int32_t result;
  GraphNodeHandle node;
  GraphNodeHandle from_node;
};

// Member, exported symbol, signature. The symbols carry the version whose signature is given here.
#define HEDDLE_CUDA_FUNCTIONS(F)                                                                   \
  F(init, "cuInit", Result(unsigned))                                                              \
  F(driver_get_version, "cuDriverGetVersion", Result(int*))                                        \
  F(get_error_name, "cuGetErrorName", Result(Result, const char**))                                \
  F(get_error_string, "cuGetErrorString", Result(Result, const char**))                            \
  F(device_get_count, "cuDeviceGetCount", Result(int*))                                            \
  F(device_get, "cuDeviceGet", Result(DeviceOrdinal*, int))                                        \
  F(device_get_name, "cuDeviceGetName", Result(char*, int, DeviceOrdinal))                         \
  F(device_get_attribute, "cuDeviceGetAttribute", Result(int*, DeviceAttribute, DeviceOrdinal))    \
  F(device_total_mem, "cuDeviceTotalMem_v2", Result(size_t*, DeviceOrdinal))                       \
  F(device_get_default_mem_pool, "cuDeviceGetDefaultMemPool",                                      \
    Result(MemoryPoolHandle*, DeviceOrdinal))                                                      \
  F(mem_pool_create, "cuMemPoolCreate", Result(MemoryPoolHandle*, const PoolProperties*))          \
  F(mem_pool_set_attribute, "cuMemPoolSetAttribute",                                               \
    Result(MemoryPoolHandle, PoolAttribute, void*))                                                \
  F(mem_pool_trim_to, "cuMemPoolTrimTo", Result(MemoryPoolHandle, size_t))                         \
  F(mem_pool_destroy, "cuMemPoolDestroy", Result(MemoryPoolHandle))                                \
  F(primary_ctx_retain, "cuDevicePrimaryCtxRetain", Result(ContextHandle*, DeviceOrdinal))         \
  F(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", Result(DeviceOrdinal))                    \
  F(ctx_get_current, "cuCtxGetCurrent", Result(ContextHandle*))                                    \
  F(ctx_push_current, "cuCtxPushCurrent_v2", Result(ContextHandle))                                \
  F(ctx_pop_current, "cuCtxPopCurrent_v2", Result(ContextHandle*))                                 \
  F(ctx_synchronize, "cuCtxSynchronize", Result())                                                 \
  F(mem_get_info, "cuMemGetInfo_v2", Result(size_t*, size_t*))                                     \
  F(mem_alloc, "cuMemAlloc_v2", Result(DevicePointer*, size_t))                                    \
  F(mem_free, "cuMemFree_v2", Result(DevicePointer))                                               \
  F(mem_alloc_from_pool_async, "cuMemAllocFromPoolAsync",                                          \
    Result(DevicePointer*, size_t, MemoryPoolHandle, DriverStream))                                \
  F(mem_free_async, "cuMemFreeAsync", Result(DevicePointer, DriverStream))                         \
  F(mem_host_alloc, "cuMemHostAlloc", Result(void**, size_t, unsigned))                            \
  F(mem_free_host, "cuMemFreeHost", Result(void*))                                                 \
  F(memcpy_htod_async, "cuMemcpyHtoDAsync_v2",                                                     \
    Result(DevicePointer, const void*, size_t, DriverStream))                                      \
  F(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2", Result(void*, DevicePointer, size_t, DriverStream)) \
  F(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2",                                                     \
    Result(DevicePointer, DevicePointer, size_t, DriverStream))                                    \
  F(memset_d8_async, "cuMemsetD8Async", Result(DevicePointer, uint8_t, size_t, DriverStream))      \
  F(memset_d32_async, "cuMemsetD32Async", Result(DevicePointer, uint32_t, size_t, DriverStream))   \
  F(stream_create, "cuStreamCreate", Result(DriverStream*, unsigned))                              \
  F(stream_destroy, "cuStreamDestroy_v2", Result(DriverStream))                                    \
  F(stream_synchronize, "cuStreamSynchronize", Result(DriverStream))                               \
  F(stream_query, "cuStreamQuery", Result(DriverStream))                                           \
  F(stream_wait_event, "cuStreamWaitEvent", Result(DriverStream, DriverEvent, unsigned))           \
  F(thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", Result(CaptureMode*))       \
  F(stream_is_capturing, "cuStreamIsCapturing", Result(DriverStream, CaptureStatus*))              \
  F(stream_begin_capture, "cuStreamBeginCapture_v2", Result(DriverStream, CaptureMode))            \
  F(stream_end_capture, "cuStreamEndCapture", Result(DriverStream, GraphHandle*))                  \
  F(stream_get_capture_info, "cuStreamGetCaptureInfo_v2",                                          \
    Result(DriverStream, CaptureStatus*, uint64_t*, GraphHandle*, const GraphNodeHandle**,         \
           size_t*))                                                                               \
  F(graph_create, "cuGraphCreate", Result(GraphHandle*, unsigned))                                 \
  F(graph_destroy, "cuGraphDestroy", Result(GraphHandle))                                          \
  F(graph_add_empty_node, "cuGraphAddEmptyNode",                                                   \
    Result(GraphNodeHandle*, GraphHandle, const GraphNodeHandle*, size_t))                         \
  F(graph_add_kernel_node, "cuGraphAddKernelNode_v2",                                              \
    Result(GraphNodeHandle*, GraphHandle, const GraphNodeHandle*, size_t,                          \
           const KernelNodeParameters*))                                                           \
  F(graph_kernel_node_set_attribute, "cuGraphKernelNodeSetAttribute",                              \
    Result(GraphNodeHandle, LaunchAttributeId, const LaunchAttribute::Value*))                     \
  F(graph_add_child_graph_node, "cuGraphAddChildGraphNode",                                        \
    Result(GraphNodeHandle*, GraphHandle, const GraphNodeHandle*, size_t, GraphHandle))            \
  F(graph_instantiate, "cuGraphInstantiateWithFlags",                                              \
    Result(GraphExecHandle*, GraphHandle, unsigned long long)) /* NOLINT */                        \
  F(graph_launch, "cuGraphLaunch", Result(GraphExecHandle, DriverStream))                          \
  F(graph_exec_update, "cuGraphExecUpdate_v2",                                                     \
    Result(GraphExecHandle, GraphHandle, GraphUpdateInfo*))                                        \
  F(graph_exec_kernel_node_set_params, "cuGraphExecKernelNodeSetParams_v2",                        \
    Result(GraphExecHandle, GraphNodeHandle, const KernelNodeParameters*))                         \
  F(graph_exec_child_graph_node_set_params, "cuGraphExecChildGraphNodeSetParams",                  \
    Result(GraphExecHandle, GraphNodeHandle, GraphHandle))                                         \
  F(graph_node_set_enabled, "cuGraphNodeSetEnabled",                                               \
    Result(GraphExecHandle, GraphNodeHandle, unsigned))                                            \
  F(graph_exec_destroy, "cuGraphExecDestroy", Result(GraphExecHandle))                             \
  F(event_create, "cuEventCreate", Result(DriverEvent*, unsigned))                                 \
  F(event_destroy, "cuEventDestroy_v2", Result(DriverEvent))                                       \
  F(event_record, "cuEventRecord", Result(DriverEvent, DriverStream))                              \
  F(event_query, "cuEventQuery", Result(DriverEvent))                                              \
  F(event_synchronize, "cuEventSynchronize", Result(DriverEvent))                                  \
  F(event_elapsed_time, "cuEventElapsedTime", Result(float*, DriverEvent, DriverEvent))            \
  F(module_load_data_ex, "cuModuleLoadDataEx",                                                     \
    Result(ModuleHandle*, const void*, unsigned, JitOption*, void**))                              \
  F(module_unload, "cuModuleUnload", Result(ModuleHandle))                                         \
  F(module_get_function, "cuModuleGetFunction",                                                    \
    Result(FunctionHandle*, ModuleHandle, const char*))                                            \
  F(func_get_attribute, "cuFuncGetAttribute", Result(int*, FunctionAttribute, FunctionHandle))     \
  F(func_set_attribute, "cuFuncSetAttribute", Result(FunctionHandle, FunctionAttribute, int))      \
  F(launch_kernel_ex, "cuLaunchKernelEx",                                                          \
    Result(const DriverLaunchConfig*, FunctionHandle, void**, void**))                             \
  F(occupancy_max_active_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                    \
    Result(int*, FunctionHandle, int, size_t))                                                     \
  F(occupancy_max_active_clusters, "cuOccupancyMaxActiveClusters",                                 \
    Result(int*, FunctionHandle, const DriverLaunchConfig*))                                       \
  F(tensor_map_encode_tiled, "cuTensorMapEncodeTiled",                                             \
    Result(DriverTensorMap*, TensorMapType, uint32_t, void*, const uint64_t*, const uint64_t*,     \
           const uint32_t*, const uint32_t*, TensorMapInterleave, TensorMapSwizzle,                \
           TensorMapPromotion, TensorMapFill))                                                     \
  F(tensor_map_encode_im2col, "cuTensorMapEncodeIm2col",                                           \
    Result(DriverTensorMap*, TensorMapType, uint32_t, void*, const uint64_t*, const uint64_t*,     \
           const int*, const int*, uint32_t, uint32_t, const uint32_t*, TensorMapInterleave,       \
           TensorMapSwizzle, TensorMapPromotion, TensorMapFill))                                   \
  F(pointer_get_attribute, "cuPointerGetAttribute", Result(void*, PointerAttribute, DevicePointer))

// A function of the loaded library, and the name that errors give it.
template <class Signature>
struct DriverFunction;

template <class... Args>
struct DriverFunction<Result(Args...)> {
  const char* symbol;
  Result (*entry)(Args...) = nullptr;

  Result operator()(Args... args) const { return entry(args...); }
};

struct DriverApi {
#define HEDDLE_DECLARE_FUNCTION(member, symbol, signature) DriverFunction<signature> member{symbol};
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_DECLARE_FUNCTION)
#undef HEDDLE_DECLARE_FUNCTION
};

}  // namespace heddle::runtime::cuda
