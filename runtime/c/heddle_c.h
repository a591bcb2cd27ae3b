// Heddle from C, and from languages that call C: operations by name, on memory and streams that the caller brings.
// The shared library libheddle.so has these functions, and the kernel library behind them.
//
//   HeddleDevice* device;
//   HeddleCall* call;
//   int64_t extents[] = {8192, 4096}, strides[] = {4096, 1};
//   HeddleTensor tensors[] = {{"x", "bf16", 2, extents, strides}, {"y", "bf16", 2, extents, strides}};
//   const char* settings[] = {"dtype=bf16"};
//   const char* error = heddle_open("cuda:0", &device);
//   error = heddle_compile(device, "softmax", settings, 1, tensors, 2, &call);
//   void* pointers[] = {x, y};
//   error = heddle_launch(call, pointers, stream);   // as often as wanted, on other memory too
//   heddle_release(call);
//   heddle_close(device);
//
// A function that can fail returns NULL, or a text that says what is wrong and how to mend it; what it would have written
// is then as it was. Texts and JSON stay valid until the same thread's next call of Heddle that returns a text.
// Functions may be called from several threads; a handle must not be released while it is in use.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Changes where a function or a struct below does.
#define HEDDLE_C_ABI 1

// HEDDLE_C_ABI of the library that is loaded.
int heddle_c_abi(void);

// A device: a GPU by its primary context, which CUDA's runtime and frameworks use too, or an interpreter.
typedef struct HeddleDevice HeddleDevice;

// Opens "cuda:0", or "interp", which needs no GPU.
const char* heddle_open(const char* name, HeddleDevice** device);
// Its calls must be released before; memory that is still allocated is freed. NULL is nothing to do.
void heddle_close(HeddleDevice* device);
// {"name": "NVIDIA H200", "compute_capability": 90, "sm_count": 132, "l2_bytes": …, "driver_version": 13000}
const char* heddle_device_info(HeddleDevice* device, const char** json);

// All operations with their arguments and settings, as `heddle list --json` prints them.
const char* heddle_operations(const char** json);
// The tensors of a call in the operation's order, and the sizes that its dimensions have: {"tensors": [{"name": "x",
// "dtype": "bf16", "extents": [8192, 4096], "reads": true, "writes": false}, …], "sizes": {"rows": 8192, …}}.
// Settings are "name=value", sizes "rows=8192"; what is not given has its default.
const char* heddle_tensors(const char* operation, const char* const* settings, int setting_count,
                           const char* const* sizes, int size_count, const char** json);

// A tensor argument: its name and element type as the operation has them (f32, f16, bf16, e4m3, i32, …), and extents and
// strides in elements.
typedef struct HeddleTensor {
  const char* name;
  const char* dtype;
  int32_t rank;
  const int64_t* extents;
  const int64_t* strides;
} HeddleTensor;

// Likewise of a call on these tensors, of which their names, element types and extents matter: those that are not given, such as
// results, have the extents that follow.
const char* heddle_bind(const char* operation, const char* const* settings, int setting_count,
                        const HeddleTensor* tensors, int tensor_count, const char** json);

// An operation with settings, on tensors of some shapes and strides.
typedef struct HeddleCall HeddleCall;

// Prepares a call and compiles its kernels, for memory that is aligned to 256 bytes and does not overlap. All tensors of the
// operation must be given, in any order. The arrays may go afterwards. An operation that reads results while it runs
// compiles its kernels in its first launch. Elements of a tensor that the operation writes must lie apart.
const char* heddle_compile(HeddleDevice* device, const char* operation, const char* const* settings,
                           int setting_count, const HeddleTensor* tensors, int tensor_count,
                           HeddleCall** call);
void heddle_release(HeddleCall* call);

// Enqueues the call on a stream: a CUstream of the device's primary context; NULL is the default stream. `pointers` are
// addresses on the device in the order of the tensors that heddle_compile() was given; an offset belongs to the address.
// Memory that overlaps or is aligned to less than a variant of the kernel wants gets another one, compiled then. On an interpreter the
// call is complete on return. A GPU's driver is asked whether kernels reach the memory until a launch of the call has succeeded.
const char* heddle_launch(HeddleCall* call, void* const* pointers, void* stream);

// Called when a line of a list has been compiled, or has failed: how many have ended of how many, what it was, and what is wrong with it; NULL: nothing. It
// is called from any thread, never twice at once.
typedef void (*HeddleProgress)(void* context, int32_t done, int32_t total, const char* job,
                               const char* error);
// Compiles the calls of a warm-up list, on all cores, or on so many threads where `threads` is more than 0: heddle_compile() of such a call then takes no
// time. A program that runs with HEDDLE_RECORD=FILE in its environment writes one. `progress` and `json` may be NULL; `json` says how many of the lines were
// warmed, which were skipped, and which have failed: {"lines": 12, "warmed": 9, "there": 1, "skipped": [{"line": 3, "what": "kernel row_sum", "why": …}],
// "failed": […], "kernels": 14, "from_disk": 3, "seconds": 0.4}. An error of a line is no error of the call; a file that is damaged is.
const char* heddle_warm_up(HeddleDevice* device, const char* path, int32_t threads,
                           HeddleProgress progress, void* context, const char** json);

// Memory of the device, aligned to 256 bytes, for callers that have no allocator of their own; and copies between it
// and the host, which are complete on return. `to` or `from` may lie within an allocation.
const char* heddle_allocate(HeddleDevice* device, size_t bytes, void** memory);
void heddle_free(HeddleDevice* device, void* memory);
const char* heddle_upload(HeddleDevice* device, void* to, const void* from, size_t bytes);
const char* heddle_download(HeddleDevice* device, void* to, const void* from, size_t bytes);
// Gives a tensor to another library: a DLManagedTensorVersioned of DLPack, or where `versioned` is 0 a DLManagedTensor, whose deleter has to be
// called once. `memory` is what heddle_allocate() gave; it lives until heddle_free() or heddle_close() and the deleters of all such tensors have been
// called. Of an interpreter it is memory of the host, of which every byte must have been written. Work that writes it has to be waited for.
const char* heddle_to_dlpack(HeddleDevice* device, void* memory, const HeddleTensor* tensor,
                             int versioned, void** managed);
// Waits for all streams of the device. An error may be that of an earlier launch.
const char* heddle_synchronize(HeddleDevice* device);

#ifdef __cplusplus
}
#endif
