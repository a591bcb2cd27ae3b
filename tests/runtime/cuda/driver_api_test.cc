// Every value and layout that driver_api.h declares, against NVIDIA's own header where it is there.
#include "heddle/runtime/cuda/driver_api.h"

#include "gtest/gtest.h"
#include "heddle/runtime/cuda/errors.h"

#ifdef HEDDLE_HAVE_CUDA_H
#include <cuda.h>

#include <cstddef>
#include <string>
#include <type_traits>

namespace heddle::runtime::cuda {
namespace {

template <class Ours, class Theirs>
constexpr bool same(Ours ours, Theirs theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

static_assert(same(Result::kSuccess, CUDA_SUCCESS));
static_assert(same(Result::kInvalidValue, CUDA_ERROR_INVALID_VALUE));
static_assert(same(Result::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(same(Result::kNotReady, CUDA_ERROR_NOT_READY));
static_assert(same(Result::kInvalidClusterSize, CUDA_ERROR_INVALID_CLUSTER_SIZE));
static_assert(same(Result::kGraphUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE));
static_assert(sizeof(Result) == sizeof(CUresult));
static_assert(std::is_same_v<DeviceOrdinal, CUdevice>);
static_assert(std::is_same_v<DevicePointer, CUdeviceptr>);

#define SAME_DEVICE_ATTRIBUTE(ours, theirs) \
  static_assert(same(DeviceAttribute::ours, CU_DEVICE_ATTRIBUTE_##theirs))
SAME_DEVICE_ATTRIBUTE(kMaxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
SAME_DEVICE_ATTRIBUTE(kMaxBlockDimX, MAX_BLOCK_DIM_X);
SAME_DEVICE_ATTRIBUTE(kMaxBlockDimY, MAX_BLOCK_DIM_Y);
SAME_DEVICE_ATTRIBUTE(kMaxBlockDimZ, MAX_BLOCK_DIM_Z);
SAME_DEVICE_ATTRIBUTE(kMaxGridDimX, MAX_GRID_DIM_X);
SAME_DEVICE_ATTRIBUTE(kMaxGridDimY, MAX_GRID_DIM_Y);
SAME_DEVICE_ATTRIBUTE(kMaxGridDimZ, MAX_GRID_DIM_Z);
SAME_DEVICE_ATTRIBUTE(kWarpSize, WARP_SIZE);
SAME_DEVICE_ATTRIBUTE(kMultiprocessorCount, MULTIPROCESSOR_COUNT);
SAME_DEVICE_ATTRIBUTE(kL2CacheSize, L2_CACHE_SIZE);
SAME_DEVICE_ATTRIBUTE(kMaxThreadsPerMultiprocessor, MAX_THREADS_PER_MULTIPROCESSOR);
SAME_DEVICE_ATTRIBUTE(kComputeCapabilityMajor, COMPUTE_CAPABILITY_MAJOR);
SAME_DEVICE_ATTRIBUTE(kComputeCapabilityMinor, COMPUTE_CAPABILITY_MINOR);
SAME_DEVICE_ATTRIBUTE(kMaxSharedMemoryPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_DEVICE_ATTRIBUTE(kMaxRegistersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME_DEVICE_ATTRIBUTE(kPageableMemoryAccess, PAGEABLE_MEMORY_ACCESS);
SAME_DEVICE_ATTRIBUTE(kCooperativeLaunch, COOPERATIVE_LAUNCH);
SAME_DEVICE_ATTRIBUTE(kMaxSharedMemoryPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_DEVICE_ATTRIBUTE(kClusterLaunch, CLUSTER_LAUNCH);

static_assert(same(PointerAttribute::kDevicePointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER));
static_assert(same(PointerAttribute::kDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));

#define SAME_FUNCTION_ATTRIBUTE(ours, theirs) \
  static_assert(same(FunctionAttribute::ours, CU_FUNC_ATTRIBUTE_##theirs))
SAME_FUNCTION_ATTRIBUTE(kMaxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
SAME_FUNCTION_ATTRIBUTE(kSharedSizeBytes, SHARED_SIZE_BYTES);
SAME_FUNCTION_ATTRIBUTE(kLocalSizeBytes, LOCAL_SIZE_BYTES);
SAME_FUNCTION_ATTRIBUTE(kNumRegs, NUM_REGS);
SAME_FUNCTION_ATTRIBUTE(kMaxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_FUNCTION_ATTRIBUTE(kRequiredClusterWidth, REQUIRED_CLUSTER_WIDTH);
SAME_FUNCTION_ATTRIBUTE(kRequiredClusterHeight, REQUIRED_CLUSTER_HEIGHT);
SAME_FUNCTION_ATTRIBUTE(kRequiredClusterDepth, REQUIRED_CLUSTER_DEPTH);
SAME_FUNCTION_ATTRIBUTE(kNonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED);

#define SAME_JIT_OPTION(ours, theirs) static_assert(same(JitOption::ours, CU_JIT_##theirs))
SAME_JIT_OPTION(kInfoLogBuffer, INFO_LOG_BUFFER);
SAME_JIT_OPTION(kInfoLogBufferSizeBytes, INFO_LOG_BUFFER_SIZE_BYTES);
SAME_JIT_OPTION(kErrorLogBuffer, ERROR_LOG_BUFFER);
SAME_JIT_OPTION(kErrorLogBufferSizeBytes, ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_JIT_OPTION(kOptimizationLevel, OPTIMIZATION_LEVEL);
SAME_JIT_OPTION(kLogVerbose, LOG_VERBOSE);
SAME_JIT_OPTION(kGenerateLineInfo, GENERATE_LINE_INFO);

static_assert(same(CaptureStatus::kNone, CU_STREAM_CAPTURE_STATUS_NONE));
static_assert(same(CaptureStatus::kActive, CU_STREAM_CAPTURE_STATUS_ACTIVE));
static_assert(same(CaptureStatus::kInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED));
static_assert(same(LaunchAttributeId::kCooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
static_assert(same(LaunchAttributeId::kClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(same(LaunchAttributeId::kProgrammaticStreamSerialization,
                   CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
static_assert(same(kStreamNonBlocking, CU_STREAM_NON_BLOCKING));
static_assert(same(kEventDefault, CU_EVENT_DEFAULT));
static_assert(same(kEventWaitDefault, CU_EVENT_WAIT_DEFAULT));
static_assert(same(kMemHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE));
static_assert(same(kLaunchParamEnd, CU_LAUNCH_PARAM_END_AS_INT));
static_assert(same(kLaunchParamBufferPointer, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT));
static_assert(same(kLaunchParamBufferSize, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT));

#define SAME_MAP_TYPE(ours, theirs) \
  static_assert(same(TensorMapType::ours, CU_TENSOR_MAP_DATA_TYPE_##theirs))
SAME_MAP_TYPE(kUint8, UINT8);
SAME_MAP_TYPE(kUint16, UINT16);
SAME_MAP_TYPE(kUint32, UINT32);
SAME_MAP_TYPE(kInt32, INT32);
SAME_MAP_TYPE(kUint64, UINT64);
SAME_MAP_TYPE(kInt64, INT64);
SAME_MAP_TYPE(kFloat16, FLOAT16);
SAME_MAP_TYPE(kFloat32, FLOAT32);
SAME_MAP_TYPE(kFloat64, FLOAT64);
SAME_MAP_TYPE(kBfloat16, BFLOAT16);
static_assert(same(TensorMapInterleave::kNone, CU_TENSOR_MAP_INTERLEAVE_NONE));
static_assert(same(TensorMapSwizzle::kNone, CU_TENSOR_MAP_SWIZZLE_NONE));
static_assert(same(TensorMapSwizzle::k32Bytes, CU_TENSOR_MAP_SWIZZLE_32B));
static_assert(same(TensorMapSwizzle::k64Bytes, CU_TENSOR_MAP_SWIZZLE_64B));
static_assert(same(TensorMapSwizzle::k128Bytes, CU_TENSOR_MAP_SWIZZLE_128B));
static_assert(same(TensorMapPromotion::kNone, CU_TENSOR_MAP_L2_PROMOTION_NONE));
static_assert(same(TensorMapPromotion::k64Bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_64B));
static_assert(same(TensorMapPromotion::k128Bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(same(TensorMapPromotion::k256Bytes, CU_TENSOR_MAP_L2_PROMOTION_L2_256B));
static_assert(same(TensorMapFill::kZeros, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
static_assert(same(TensorMapFill::kNan, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA));
static_assert(sizeof(DriverTensorMap) == sizeof(CUtensorMap));
static_assert(alignof(DriverTensorMap) % alignof(CUtensorMap) == 0);  // 64 or 128, by version

static_assert(same(CaptureMode::kRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(same(AllocationType::kPinned, CU_MEM_ALLOCATION_TYPE_PINNED));
static_assert(same(LocationType::kDevice, CU_MEM_LOCATION_TYPE_DEVICE));
static_assert(same(PoolAttribute::kReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
static_assert(sizeof(PoolProperties) == sizeof(CUmemPoolProps));
#define SAME_POOL_FIELD(ours, theirs) \
  static_assert(offsetof(PoolProperties, ours) == offsetof(CUmemPoolProps, theirs))
SAME_POOL_FIELD(allocation, allocType);
SAME_POOL_FIELD(handle_types, handleTypes);
SAME_POOL_FIELD(location, location.type);
SAME_POOL_FIELD(device, location.id);
SAME_POOL_FIELD(security_attributes, win32SecurityAttributes);

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchAttribute::Value) == sizeof(CUlaunchAttributeValue));
static_assert(offsetof(LaunchAttribute::Value, flag) ==
              offsetof(CUlaunchAttributeValue, cooperative));
static_assert(offsetof(LaunchAttribute::Value, flag) ==
              offsetof(CUlaunchAttributeValue, programmaticStreamSerializationAllowed));
static_assert(offsetof(LaunchAttribute::Value, cluster.y) ==
              offsetof(CUlaunchAttributeValue, clusterDim.y));
static_assert(offsetof(LaunchAttribute::Value, cluster.z) ==
              offsetof(CUlaunchAttributeValue, clusterDim.z));

static_assert(sizeof(DriverLaunchConfig) == sizeof(CUlaunchConfig));
#define SAME_CONFIG_FIELD(ours, theirs) \
  static_assert(offsetof(DriverLaunchConfig, ours) == offsetof(CUlaunchConfig, theirs))
SAME_CONFIG_FIELD(grid_x, gridDimX);
SAME_CONFIG_FIELD(grid_y, gridDimY);
SAME_CONFIG_FIELD(grid_z, gridDimZ);
SAME_CONFIG_FIELD(block_x, blockDimX);
SAME_CONFIG_FIELD(block_y, blockDimY);
SAME_CONFIG_FIELD(block_z, blockDimZ);
SAME_CONFIG_FIELD(dynamic_shared_bytes, sharedMemBytes);
SAME_CONFIG_FIELD(stream, hStream);
SAME_CONFIG_FIELD(attributes, attrs);
SAME_CONFIG_FIELD(attribute_count, numAttrs);

#define SAME_NODE_FIELD(ours, theirs)                            \
  static_assert(offsetof(KernelNodeParameters, ours) ==          \
                    offsetof(CUDA_KERNEL_NODE_PARAMS, theirs) && \
                sizeof(KernelNodeParameters::ours) == sizeof(CUDA_KERNEL_NODE_PARAMS::theirs))
static_assert(sizeof(KernelNodeParameters) == sizeof(CUDA_KERNEL_NODE_PARAMS));
SAME_NODE_FIELD(function, func);
SAME_NODE_FIELD(grid_x, gridDimX);
SAME_NODE_FIELD(grid_y, gridDimY);
SAME_NODE_FIELD(grid_z, gridDimZ);
SAME_NODE_FIELD(block_x, blockDimX);
SAME_NODE_FIELD(block_y, blockDimY);
SAME_NODE_FIELD(block_z, blockDimZ);
SAME_NODE_FIELD(dynamic_shared_bytes, sharedMemBytes);
SAME_NODE_FIELD(parameters, kernelParams);
SAME_NODE_FIELD(extra, extra);
SAME_NODE_FIELD(kernel, kern);
SAME_NODE_FIELD(context, ctx);

static_assert(sizeof(GraphUpdateInfo) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(offsetof(GraphUpdateInfo, node) == offsetof(CUgraphExecUpdateResultInfo, errorNode));
static_assert(offsetof(GraphUpdateInfo, from_node) ==
              offsetof(CUgraphExecUpdateResultInfo, errorFromNode));

// A parameter of ours and of NVIDIA's that are passed alike: both pointers, or of one size.
template <class Ours, class Theirs>
constexpr bool kAlike = std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
                        sizeof(Ours) == sizeof(Theirs) &&
                        (std::is_pointer_v<Ours> || std::is_enum_v<Ours> ||
                         std::is_same_v<Ours, Theirs>);

template <class Ours, class Theirs>
struct AlikeFunctions : std::false_type {};
template <class... Ours, class... Theirs>
requires(sizeof...(Ours) ==
         sizeof...(Theirs)) struct AlikeFunctions<Result(Ours...), CUresult(Theirs...)>
    : std::bool_constant<(kAlike<Ours, Theirs> && ...)> {
};

// cuda.h maps the plain names to the current version of each function, which its text is: a symbol
// of ours with another version would have another signature. cuEventElapsedTime stays the first.
#define NAME_OF_(function) #function
#define NAME_OF(function) NAME_OF_(function)
#define CHECK_FUNCTION(member, plain)                                                     \
  EXPECT_STREQ(DriverApi().member.symbol, NAME_OF(plain));                                \
  static_assert(AlikeFunctions<std::remove_pointer_t<decltype(DriverApi().member.entry)>, \
                               decltype(plain)>::value)

TEST(DriverApiTest, FunctionsAreDeclaredAsInCudaH) {
  CHECK_FUNCTION(init, cuInit);
  CHECK_FUNCTION(driver_get_version, cuDriverGetVersion);
  CHECK_FUNCTION(get_error_name, cuGetErrorName);
  CHECK_FUNCTION(get_error_string, cuGetErrorString);
  CHECK_FUNCTION(device_get_count, cuDeviceGetCount);
  CHECK_FUNCTION(device_get, cuDeviceGet);
  CHECK_FUNCTION(device_get_name, cuDeviceGetName);
  CHECK_FUNCTION(device_get_attribute, cuDeviceGetAttribute);
  CHECK_FUNCTION(device_total_mem, cuDeviceTotalMem);
  CHECK_FUNCTION(device_get_default_mem_pool, cuDeviceGetDefaultMemPool);
  CHECK_FUNCTION(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
  CHECK_FUNCTION(mem_pool_create, cuMemPoolCreate);
  CHECK_FUNCTION(mem_pool_set_attribute, cuMemPoolSetAttribute);
  CHECK_FUNCTION(mem_pool_trim_to, cuMemPoolTrimTo);
  CHECK_FUNCTION(mem_pool_destroy, cuMemPoolDestroy);
  CHECK_FUNCTION(primary_ctx_retain, cuDevicePrimaryCtxRetain);
  CHECK_FUNCTION(primary_ctx_release, cuDevicePrimaryCtxRelease);
  CHECK_FUNCTION(ctx_get_current, cuCtxGetCurrent);
  CHECK_FUNCTION(ctx_push_current, cuCtxPushCurrent);
  CHECK_FUNCTION(ctx_pop_current, cuCtxPopCurrent);
  CHECK_FUNCTION(ctx_synchronize, cuCtxSynchronize);
  CHECK_FUNCTION(mem_get_info, cuMemGetInfo);
  CHECK_FUNCTION(mem_alloc, cuMemAlloc);
  CHECK_FUNCTION(mem_free, cuMemFree);
  CHECK_FUNCTION(mem_alloc_from_pool_async, cuMemAllocFromPoolAsync);
  CHECK_FUNCTION(mem_free_async, cuMemFreeAsync);
  CHECK_FUNCTION(mem_host_alloc, cuMemHostAlloc);
  CHECK_FUNCTION(mem_free_host, cuMemFreeHost);
  CHECK_FUNCTION(memcpy_htod_async, cuMemcpyHtoDAsync);
  CHECK_FUNCTION(memcpy_dtoh_async, cuMemcpyDtoHAsync);
  CHECK_FUNCTION(memcpy_dtod_async, cuMemcpyDtoDAsync);
  CHECK_FUNCTION(memset_d8_async, cuMemsetD8Async);
  CHECK_FUNCTION(memset_d32_async, cuMemsetD32Async);
  CHECK_FUNCTION(stream_create, cuStreamCreate);
  CHECK_FUNCTION(stream_destroy, cuStreamDestroy);
  CHECK_FUNCTION(stream_synchronize, cuStreamSynchronize);
  CHECK_FUNCTION(stream_query, cuStreamQuery);
  CHECK_FUNCTION(stream_wait_event, cuStreamWaitEvent);
  CHECK_FUNCTION(stream_is_capturing, cuStreamIsCapturing);
  CHECK_FUNCTION(stream_begin_capture, cuStreamBeginCapture);
  CHECK_FUNCTION(stream_end_capture, cuStreamEndCapture);
  CHECK_FUNCTION(graph_create, cuGraphCreate);
  CHECK_FUNCTION(graph_destroy, cuGraphDestroy);
  CHECK_FUNCTION(graph_add_empty_node, cuGraphAddEmptyNode);
  CHECK_FUNCTION(graph_add_kernel_node, cuGraphAddKernelNode);
  CHECK_FUNCTION(graph_kernel_node_set_attribute, cuGraphKernelNodeSetAttribute);
  CHECK_FUNCTION(graph_add_child_graph_node, cuGraphAddChildGraphNode);
  CHECK_FUNCTION(graph_instantiate, cuGraphInstantiate);
  CHECK_FUNCTION(graph_launch, cuGraphLaunch);
  CHECK_FUNCTION(graph_exec_update, cuGraphExecUpdate);
  CHECK_FUNCTION(graph_exec_kernel_node_set_params, cuGraphExecKernelNodeSetParams);
  CHECK_FUNCTION(graph_exec_child_graph_node_set_params, cuGraphExecChildGraphNodeSetParams);
  CHECK_FUNCTION(graph_node_set_enabled, cuGraphNodeSetEnabled);
  CHECK_FUNCTION(graph_exec_destroy, cuGraphExecDestroy);
  CHECK_FUNCTION(event_create, cuEventCreate);
  CHECK_FUNCTION(event_destroy, cuEventDestroy);
  CHECK_FUNCTION(event_record, cuEventRecord);
  CHECK_FUNCTION(event_query, cuEventQuery);
  CHECK_FUNCTION(event_synchronize, cuEventSynchronize);
  CHECK_FUNCTION(module_load_data_ex, cuModuleLoadDataEx);
  CHECK_FUNCTION(module_unload, cuModuleUnload);
  CHECK_FUNCTION(module_get_function, cuModuleGetFunction);
  CHECK_FUNCTION(func_get_attribute, cuFuncGetAttribute);
  CHECK_FUNCTION(func_set_attribute, cuFuncSetAttribute);
  CHECK_FUNCTION(launch_kernel_ex, cuLaunchKernelEx);
  CHECK_FUNCTION(occupancy_max_active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor);
  CHECK_FUNCTION(occupancy_max_active_clusters, cuOccupancyMaxActiveClusters);
  CHECK_FUNCTION(tensor_map_encode_tiled, cuTensorMapEncodeTiled);
  CHECK_FUNCTION(tensor_map_encode_im2col, cuTensorMapEncodeIm2col);
  static_assert(
      AlikeFunctions<std::remove_pointer_t<decltype(DriverApi().event_elapsed_time.entry)>,
                     decltype(cuEventElapsedTime)>::value);
  // Of cuStreamGetCaptureInfo, the version that came before CUDA 12.3, as edges have no data here: cuda.h no longer declares it.
  EXPECT_STREQ(DriverApi().stream_get_capture_info.symbol, "cuStreamGetCaptureInfo_v2");
}

struct NamedCode {
  int code;
  const char* name;
};

// Only codes whose meaning the table repeats; stringised, so that a wrong name does not compile.
#define CODE(name) \
  NamedCode { name, #name }

TEST(DriverApiTest, ErrorTableAgreesWithCudaH) {
  const NamedCode known[] = {
      CODE(CUDA_ERROR_INVALID_VALUE),
      CODE(CUDA_ERROR_OUT_OF_MEMORY),
      CODE(CUDA_ERROR_NOT_INITIALIZED),
      CODE(CUDA_ERROR_DEINITIALIZED),
      CODE(CUDA_ERROR_STUB_LIBRARY),
      CODE(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER),
      CODE(CUDA_ERROR_DEVICE_UNAVAILABLE),
      CODE(CUDA_ERROR_NO_DEVICE),
      CODE(CUDA_ERROR_INVALID_DEVICE),
      CODE(CUDA_ERROR_DEVICE_NOT_LICENSED),
      CODE(CUDA_ERROR_INVALID_IMAGE),
      CODE(CUDA_ERROR_INVALID_CONTEXT),
      CODE(CUDA_ERROR_NO_BINARY_FOR_GPU),
      CODE(CUDA_ERROR_ECC_UNCORRECTABLE),
      CODE(CUDA_ERROR_INVALID_PTX),
      CODE(CUDA_ERROR_NVLINK_UNCORRECTABLE),
      CODE(CUDA_ERROR_JIT_COMPILER_NOT_FOUND),
      CODE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
      CODE(CUDA_ERROR_JIT_COMPILATION_DISABLED),
      CODE(CUDA_ERROR_CONTAINED),
      CODE(CUDA_ERROR_INVALID_SOURCE),
      CODE(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND),
      CODE(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED),
      CODE(CUDA_ERROR_OPERATING_SYSTEM),
      CODE(CUDA_ERROR_INVALID_HANDLE),
      CODE(CUDA_ERROR_ILLEGAL_STATE),
      CODE(CUDA_ERROR_NOT_FOUND),
      CODE(CUDA_ERROR_NOT_READY),
      CODE(CUDA_ERROR_ILLEGAL_ADDRESS),
      CODE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
      CODE(CUDA_ERROR_LAUNCH_TIMEOUT),
      CODE(CUDA_ERROR_CONTEXT_IS_DESTROYED),
      CODE(CUDA_ERROR_ASSERT),
      CODE(CUDA_ERROR_HARDWARE_STACK_ERROR),
      CODE(CUDA_ERROR_ILLEGAL_INSTRUCTION),
      CODE(CUDA_ERROR_MISALIGNED_ADDRESS),
      CODE(CUDA_ERROR_INVALID_ADDRESS_SPACE),
      CODE(CUDA_ERROR_INVALID_PC),
      CODE(CUDA_ERROR_LAUNCH_FAILED),
      CODE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
      CODE(CUDA_ERROR_TENSOR_MEMORY_LEAK),
      CODE(CUDA_ERROR_NOT_PERMITTED),
      CODE(CUDA_ERROR_NOT_SUPPORTED),
      CODE(CUDA_ERROR_SYSTEM_NOT_READY),
      CODE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
      CODE(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE),
      CODE(CUDA_ERROR_MPS_CONNECTION_FAILED),
      CODE(CUDA_ERROR_MPS_RPC_FAILURE),
      CODE(CUDA_ERROR_MPS_SERVER_NOT_READY),
      CODE(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED),
      CODE(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED),
      CODE(CUDA_ERROR_MPS_CLIENT_TERMINATED),
      CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
      CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED),
      CODE(CUDA_ERROR_STREAM_CAPTURE_MERGE),
      CODE(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED),
      CODE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED),
      CODE(CUDA_ERROR_STREAM_CAPTURE_ISOLATION),
      CODE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT),
      CODE(CUDA_ERROR_CAPTURED_EVENT),
      CODE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD),
      CODE(CUDA_ERROR_TIMEOUT),
      CODE(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE),
      CODE(CUDA_ERROR_EXTERNAL_DEVICE),
      CODE(CUDA_ERROR_INVALID_CLUSTER_SIZE),
      CODE(CUDA_ERROR_FUNCTION_NOT_LOADED),
      CODE(CUDA_ERROR_UNKNOWN),
  };
  ASSERT_EQ(std::size(known), error_table().size());
  for (size_t i = 0; i < std::size(known); ++i) {
    EXPECT_EQ(error_table()[i].code, known[i].code);
    EXPECT_EQ(std::string(error_table()[i].name), known[i].name);
  }
}

}  // namespace
}  // namespace heddle::runtime::cuda

#else

TEST(DriverApiTest, FunctionsAreDeclaredAsInCudaH) {
  GTEST_SKIP() << "needs cuda.h, which this build did not find";
}

#endif
