// The C by which an exported library offers its function in the form of TVM-FFI: it reads the arguments, checks them, and calls the
// plain function. It declares what it uses of TVM-FFI's C ABI and of DLPack itself, and finds functions of libtvm_ffi at run time,
// so that neither is needed to build the library or to load it. The tables that it reads are written by export_tvm_ffi.cc.
#pragma once

namespace heddle::runtime {

// The types of its tables, which stand in front of these.
inline constexpr char kTvmFfiTypes[] = R"c(
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DLPack 1: DLDevice, DLDataType, DLTensor */
struct heddle_device {
  int32_t type, id;
};
struct heddle_dtype {
  uint8_t code, bits;
  uint16_t lanes;
};
struct heddle_tensor {
  void* data;
  struct heddle_device device;
  int32_t rank;
  struct heddle_dtype dtype;
  const int64_t* shape;
  const int64_t* strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
};
/* TVM-FFI 0.1: TVMFFIObject, TVMFFIAny */
struct heddle_object {
  uint64_t references;
  int32_t type;
  uint32_t padding;
  void (*deleter)(void*, int);
};
struct heddle_any {
  int32_t type;
  uint32_t padding;
  union {
    int64_t integer;
    void* pointer;
  } value;
};
#define HEDDLE_ASSERT(name, condition) typedef char heddle_assert_##name[(condition) ? 1 : -1]
HEDDLE_ASSERT(device, sizeof(struct heddle_device) == 8);
HEDDLE_ASSERT(dtype, sizeof(struct heddle_dtype) == 4 && offsetof(struct heddle_dtype, lanes) == 2);
HEDDLE_ASSERT(tensor, sizeof(struct heddle_tensor) == 48 && offsetof(struct heddle_tensor, device) == 8);
HEDDLE_ASSERT(rank, offsetof(struct heddle_tensor, rank) == 16 && offsetof(struct heddle_tensor, dtype) == 20);
HEDDLE_ASSERT(shape, offsetof(struct heddle_tensor, shape) == 24 && offsetof(struct heddle_tensor, strides) == 32);
HEDDLE_ASSERT(offset, offsetof(struct heddle_tensor, byte_offset) == 40);
HEDDLE_ASSERT(object, sizeof(struct heddle_object) == 24 && offsetof(struct heddle_object, type) == 8);
HEDDLE_ASSERT(any, sizeof(struct heddle_any) == 16 && offsetof(struct heddle_any, value) == 8);

enum { HEDDLE_NONE = 0, HEDDLE_INT = 1, HEDDLE_TENSOR_POINTER = 7, HEDDLE_MOVED = 10, HEDDLE_TENSOR_OBJECT = 70 }; /* TVMFFITypeIndex */
enum { HEDDLE_CUDA = 2 };                                                                                          /* DLDeviceType */
enum { HEDDLE_FIXED = -1, HEDDLE_FREE = -2, HEDDLE_SHOWN_MODES = 8 };

/* An extent of an argument: a size and a number that is added to it. */
struct heddle_extent {
  int32_t size; /* HEDDLE_FIXED: it is the number; HEDDLE_FREE: any */
  int64_t number;
};
/* What an argument has to be. */
struct heddle_argument {
  const char* name;
  struct heddle_dtype dtype;
  int32_t rank;
  const struct heddle_extent* extents;
  const char* shape; /* "[rows, columns]" */
};

)c";

// The functions, which stand behind them and behind heddle_launch() and heddle_workspace_bytes().
inline constexpr char kTvmFfiFunctions[] = R"c(
static struct {
  void (*set_raised)(const char* kind, const char* message);
  void* (*get_stream)(int32_t device_type, int32_t device_id);
  void* (*get_allocator)(void);
  int (*allocate)(struct heddle_tensor* like, void** tensor);
  int (*release)(void* object);
} heddle_ffi;

static struct {
  int (*ctx_get_device)(int*);
  int (*device_get)(int*, int);
  int (*primary_ctx_retain)(void**, int);
  int (*primary_ctx_release)(int);
  int (*ctx_push_current)(void*);
  int (*ctx_pop_current)(void**);
  int (*get_error_name)(int, const char**);
} heddle_driver;

static pthread_mutex_t heddle_mutex = PTHREAD_MUTEX_INITIALIZER;
static int heddle_ffi_found, heddle_driver_found;

/* Finds functions by their names: that of the first which is not there, or NULL. `library` is NULL for what the process has loaded. */
struct heddle_symbol {
  const char* name;
  void* to;
};
static const char* heddle_find(void* library, const struct heddle_symbol* symbols, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) {
    void* function = dlsym(library == NULL ? RTLD_DEFAULT : library, symbols[i].name);
    if (function == NULL) return symbols[i].name;
    memcpy(symbols[i].to, &function, sizeof function);
  }
  return NULL;
}

/* libtvm_ffi, which who calls has loaded; 0, or -1 with the reason on the standard error, as nobody else could be told. */
static int heddle_find_ffi(void) {
  static const struct heddle_symbol symbols[] = {{"TVMFFIErrorSetRaisedFromCStr", &heddle_ffi.set_raised},
                                                 {"TVMFFIEnvGetStream", &heddle_ffi.get_stream},
                                                 {"TVMFFIEnvGetDLPackManagedTensorAllocator", &heddle_ffi.get_allocator},
                                                 {"TVMFFIEnvTensorAlloc", &heddle_ffi.allocate},
                                                 {"TVMFFIObjectDecRef", &heddle_ffi.release}};
  const char* missing = NULL;
  if (__atomic_load_n(&heddle_ffi_found, __ATOMIC_ACQUIRE)) return 0;
  pthread_mutex_lock(&heddle_mutex);
  if (!heddle_ffi_found) {
    missing = heddle_find(NULL, symbols, sizeof symbols / sizeof symbols[0]);
    if (missing != NULL) { /* it may be there for others alone */
      void* library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD);
      if (library != NULL) missing = heddle_find(library, symbols, sizeof symbols / sizeof symbols[0]);
    }
    __atomic_store_n(&heddle_ffi_found, missing == NULL, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&heddle_mutex);
  if (missing == NULL) return 0;
  fprintf(stderr,
          "%s: the function for TVM-FFI was called, and libtvm_ffi is not loaded or too old: there is no %s; fix: load it first (in Python: "
          "import tvm_ffi), or call %s() of %s.h\n",
          HEDDLE_NAME, missing, HEDDLE_NAME, HEDDLE_NAME);
  return -1;
}

static int heddle_raise(const char* kind, const char* format, ...) {
  char text[1536];
  va_list arguments;
  int length = snprintf(text, sizeof text, "%s: ", HEDDLE_NAME);
  va_start(arguments, format);
  vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
  va_end(arguments);
  heddle_ffi.set_raised(kind, text);
  return -1;
}

static const char* heddle_type_name(int32_t type, char* other, size_t bytes) {
  static const char* const names[] = {"None",
                                      "an int",
                                      "a bool",
                                      "a float",
                                      "a pointer",
                                      "a dtype",
                                      "a device",
                                      NULL,
                                      "a string",
                                      "bytes",
                                      "another object that is moved",
                                      "a string",
                                      "bytes",
                                      [65] = "a string",
                                      "bytes",
                                      [68] = "a function",
                                      "a shape",
                                      [71] = "an array",
                                      "a map",
                                      [74] = "a Python object",
                                      "a list",
                                      "a dict"};
  if (type >= 0 && (size_t)type < sizeof names / sizeof names[0] && names[type] != NULL) return names[type];
  snprintf(other, bytes, "an object of type %d", (int)type);
  return other;
}

static const char* heddle_device_name(struct heddle_device device, char* to, size_t bytes) {
  static const char* const names[] = {NULL,     "cpu",   NULL, "cuda_host", "opencl",    NULL, NULL,
                                      "vulkan", "metal", NULL, "rocm",      "rocm_host", NULL, "cuda_managed"};
  const char* name = NULL;
  if (device.type >= 0 && (size_t)device.type < sizeof names / sizeof names[0]) name = names[device.type];
  if (device.type == HEDDLE_CUDA) {
    snprintf(to, bytes, "cuda:%d", (int)device.id);
  } else if (name != NULL) {
    snprintf(to, bytes, "%s", name);
  } else {
    snprintf(to, bytes, "a device of type %d", (int)device.type);
  }
  return to;
}

static const char* heddle_dtype_name(struct heddle_dtype dtype, char* to, size_t bytes) {
  static const char* const names[] = {"int%d",       "uint%d",          "float%d",        "handle%d",           "bfloat%d",      "complex%d",
                                      "bool",        "float8_e3m4",     "float8_e4m3",    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
                                      "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",      "float6_e3m2fn", "float4_e2m1fn"};
  const int named = dtype.code < sizeof names / sizeof names[0];
  int length = named ? snprintf(to, bytes, names[dtype.code], dtype.bits) : snprintf(to, bytes, "type %d of %d bits", dtype.code, dtype.bits);
  if (dtype.lanes != 1) snprintf(to + length, bytes - (size_t)length, "x%d", dtype.lanes);
  return to;
}

/* "[4, 1000]" */
static const char* heddle_numbers(const int64_t* numbers, int32_t count, char* to, size_t bytes) {
  int32_t i, length = snprintf(to, bytes, "[");
  for (i = 0; i < count && i < HEDDLE_SHOWN_MODES; ++i)
    length += snprintf(to + length, bytes - (size_t)length, "%s%lld", i > 0 ? ", " : "", (long long)numbers[i]);
  snprintf(to + length, bytes - (size_t)length, "%s]", count > HEDDLE_SHOWN_MODES ? ", ..." : "");
  return to;
}

/* "x: float32[rows, columns], y: float32[rows]" */
static const char* heddle_signature(char* to, size_t bytes) {
  char dtype[64];
  int i, length = 0;
  for (i = 0; i < HEDDLE_TENSORS && (size_t)length < bytes; ++i)
    length += snprintf(to + length, bytes - (size_t)length, "%s%s: %s%s", i > 0 ? ", " : "", heddle_arguments[i].name,
                       heddle_dtype_name(heddle_arguments[i].dtype, dtype, sizeof dtype), heddle_arguments[i].shape);
  return to;
}

/* The tensor of an argument; NULL where it is none. */
static const struct heddle_tensor* heddle_tensor_of(const struct heddle_any* argument) {
  const struct heddle_object* object = argument->value.pointer;
  if (argument->type == HEDDLE_TENSOR_POINTER) return argument->value.pointer;
  if (argument->type == HEDDLE_MOVED) {
    object = *(struct heddle_object* const*)argument->value.pointer;
  } else if (argument->type != HEDDLE_TENSOR_OBJECT) {
    return NULL;
  }
  return object == NULL || object->type != HEDDLE_TENSOR_OBJECT ? NULL : (const struct heddle_tensor*)(object + 1);
}

/* What a call has been found to be, argument by argument. */
struct heddle_call {
  struct heddle_device device;
  int64_t sizes[HEDDLE_SIZES + 1];
  int32_t said[HEDDLE_SIZES + 1]; /* the argument that said a size first, from 1; 0: none yet */
};

/* Whether the extents are those that are expected; sizes are learnt. `why` becomes the sizes that others said, which contradict. */
static int heddle_extents_fit(const struct heddle_argument* expected, const struct heddle_tensor* tensor, int32_t number, struct heddle_call* call,
                              char* why, size_t bytes) {
  int32_t mode, length = 0, fit = 1;
  for (mode = 0; mode < expected->rank; ++mode) {
    const struct heddle_extent one = expected->extents[mode];
    if (one.size == HEDDLE_FREE) continue;
    if (one.size == HEDDLE_FIXED) {
      fit &= tensor->shape[mode] == one.number;
    } else if (call->said[one.size] == 0) {
      call->said[one.size] = number;
      call->sizes[one.size] = (int64_t)((uint64_t)tensor->shape[mode] - (uint64_t)one.number);
    } else if ((uint64_t)tensor->shape[mode] != (uint64_t)call->sizes[one.size] + (uint64_t)one.number) {
      fit = 0;
      if ((size_t)length < bytes)
        length += snprintf(why + length, bytes - (size_t)length, "%s %s=%lld by argument %d", length > 0 ? "," : " with", heddle_size_names[one.size],
                           (long long)call->sizes[one.size], (int)call->said[one.size]);
    }
  }
  return fit;
}

/* Whether the elements lie row by row without gaps; `expected` becomes the strides that say so. */
static int heddle_is_row_major(const struct heddle_tensor* tensor, int64_t* expected) {
  int32_t mode;
  uint64_t stride = 1;
  int row_major = 1;
  for (mode = tensor->rank; mode-- > 0;) {
    expected[mode] = (int64_t)stride;
    if (tensor->strides != NULL && tensor->shape[mode] != 1 && tensor->strides[mode] != (int64_t)stride) row_major = 0;
    stride *= (uint64_t)tensor->shape[mode];
  }
  return row_major;
}

/* Checks argument `number`, from 1, and takes its sizes and its device; its address. -1 where it has raised an error. */
static int heddle_take(const struct heddle_any* argument, int32_t number, const struct heddle_argument* expected, struct heddle_call* call,
                       const struct heddle_tensor** taken, void** address) {
  const struct heddle_tensor* tensor = heddle_tensor_of(argument);
  char one[256], other[256], why[256] = "";
  int64_t strides[HEDDLE_MOST_RANK];
  const char* name = expected->name;
  const struct heddle_dtype want = expected->dtype;
  if (tensor == NULL)
    return heddle_raise(
        "TypeError", "argument %d, %s, is %s, and a tensor is expected: %s%s", (int)number, name,
        argument->type == HEDDLE_TENSOR_POINTER ? "a DLTensor pointer that is NULL" : heddle_type_name(argument->type, one, sizeof one),
        heddle_dtype_name(want, other, sizeof other), expected->shape);
  if (tensor->device.type != HEDDLE_CUDA)
    return heddle_raise("ValueError", "argument %d, %s, is on %s, and a tensor on a CUDA device is expected", (int)number, name,
                        heddle_device_name(tensor->device, one, sizeof one));
  if (number > 1 && tensor->device.id != call->device.id)
    return heddle_raise("ValueError", "argument %d, %s, is on %s, and the first one on %s: all have to be on one device", (int)number, name,
                        heddle_device_name(tensor->device, one, sizeof one), heddle_device_name(call->device, other, sizeof other));
  call->device = tensor->device;
  if (tensor->dtype.code != want.code || tensor->dtype.bits != want.bits || tensor->dtype.lanes != want.lanes)
    return heddle_raise("TypeError", "argument %d, %s, has elements of %s, and %s is expected", (int)number, name,
                        heddle_dtype_name(tensor->dtype, one, sizeof one), heddle_dtype_name(want, other, sizeof other));
  if (tensor->rank > 0 && tensor->shape == NULL)
    return heddle_raise("ValueError", "argument %d, %s, has %d dimensions and no shape", (int)number, name, (int)tensor->rank);
  if (tensor->rank != expected->rank || !heddle_extents_fit(expected, tensor, number, call, why, sizeof why))
    return heddle_raise("ValueError", "argument %d, %s, has the shape %s, and %s is expected%s", (int)number, name,
                        heddle_numbers(tensor->shape, tensor->rank, one, sizeof one), expected->shape, why);
  if (!heddle_is_row_major(tensor, strides))
    return heddle_raise(
        "ValueError", "argument %d, %s, has the strides %s, and %s is expected: row-major without gaps; fix: pass a contiguous tensor", (int)number,
        name, heddle_numbers(tensor->strides, tensor->rank, one, sizeof one), heddle_numbers(strides, tensor->rank, other, sizeof other));
  *taken = tensor;
  *address = tensor->data == NULL ? NULL : (char*)tensor->data + tensor->byte_offset;
  return 0;
}

static int heddle_driver_raise(int result, const char* call, struct heddle_device device) {
  char where[64];
  const char* name = NULL;
  if (heddle_driver.get_error_name(result, &name) != 0 || name == NULL) name = "an error";
  return heddle_raise("RuntimeError", "%s failed for %s: %s (%d)", call, heddle_device_name(device, where, sizeof where), name, result);
}

/* Makes the context of the tensors' device current, as frameworks need not have done: its primary one, unless one of that device is. */
static int heddle_enter(struct heddle_device device, int* ordinal, int* entered) {
  static const struct heddle_symbol symbols[] = {{"cuCtxGetDevice", &heddle_driver.ctx_get_device},
                                                 {"cuDeviceGet", &heddle_driver.device_get},
                                                 {"cuDevicePrimaryCtxRetain", &heddle_driver.primary_ctx_retain},
                                                 {"cuDevicePrimaryCtxRelease_v2", &heddle_driver.primary_ctx_release},
                                                 {"cuCtxPushCurrent_v2", &heddle_driver.ctx_push_current},
                                                 {"cuCtxPopCurrent_v2", &heddle_driver.ctx_pop_current},
                                                 {"cuGetErrorName", &heddle_driver.get_error_name}};
  void* context;
  int current, result;
  *entered = 0;
  if (!__atomic_load_n(&heddle_driver_found, __ATOMIC_ACQUIRE)) {
    const char* name = getenv("HEDDLE_CUDA_LIBRARY");
    void* library = dlopen(name != NULL && *name != 0 ? name : "libcuda.so.1", RTLD_NOW);
    int found = 0;
    if (library == NULL) return 0; /* the plain function says so */
    pthread_mutex_lock(&heddle_mutex);
    found = heddle_driver_found || heddle_find(library, symbols, sizeof symbols / sizeof symbols[0]) == NULL;
    __atomic_store_n(&heddle_driver_found, found, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&heddle_mutex);
    if (!found) return 0;
  }
  if ((result = heddle_driver.device_get(ordinal, device.id)) != 0) return heddle_driver_raise(result, "cuDeviceGet", device);
  if (heddle_driver.ctx_get_device(&current) == 0 && current == *ordinal) return 0;
  if ((result = heddle_driver.primary_ctx_retain(&context, *ordinal)) != 0) return heddle_driver_raise(result, "cuDevicePrimaryCtxRetain", device);
  if ((result = heddle_driver.ctx_push_current(context)) != 0) {
    heddle_driver.primary_ctx_release(*ordinal);
    return heddle_driver_raise(result, "cuCtxPushCurrent", device);
  }
  *entered = 1;
  return 0;
}
static void heddle_leave(int ordinal) {
  void* context;
  heddle_driver.ctx_pop_current(&context);
  heddle_driver.primary_ctx_release(ordinal);
}

/* The bytes from the first multiple of HEDDLE_ROOM on; 0 where there is none. */
static size_t heddle_align(char** address, int64_t bytes) {
  const size_t gap = (size_t)(-(uintptr_t)*address % HEDDLE_ROOM);
  *address += gap;
  return *address == NULL || bytes < (int64_t)gap ? 0 : (size_t)bytes - gap;
}

/* In the context of the device. Without a workspace of the caller's, one of the caller's allocator, which takes what is given back in the order of
 * the stream. */
static int heddle_run(const struct heddle_call* call, void* const* tensors, const struct heddle_tensor* given, void* workspace) {
  const size_t needed = heddle_workspace_bytes(call->sizes);
  char* scratch = workspace;
  size_t bytes = given == NULL ? 0 : heddle_align(&scratch, given->shape[0]);
  void *stream = heddle_ffi.get_stream(HEDDLE_CUDA, call->device.id), *allocated = NULL;
  int result;
  if (given != NULL && bytes < needed)
    return heddle_raise("ValueError", "argument %d, workspace, has %lld bytes, and %lld are needed: see %s_workspace_bytes()", HEDDLE_TENSORS + 1,
                        (long long)given->shape[0], (long long)(needed + HEDDLE_ROOM), HEDDLE_NAME);
  if (given == NULL && needed > 0) {
    int64_t shape[1];
    struct heddle_tensor like;
    const struct heddle_tensor* made;
    shape[0] = (int64_t)(needed + HEDDLE_ROOM);
    memset(&like, 0, sizeof like);
    like.device = call->device;
    like.rank = 1;
    like.dtype = heddle_workspace.dtype;
    like.shape = shape;
    if (heddle_ffi.get_allocator() == NULL)
      return heddle_raise(
          "ValueError",
          "it needs a workspace, and no framework that allocates one has called it; fix: pass a tensor of uint8[%lld] behind the others",
          (long long)shape[0]);
    if (heddle_ffi.allocate(&like, &allocated) != 0) return -1; /* the error is raised */
    made = (const struct heddle_tensor*)((struct heddle_object*)allocated + 1);
    scratch = made->data == NULL ? NULL : (char*)made->data + made->byte_offset;
    bytes = heddle_align(&scratch, shape[0]);
  }
  result = heddle_launch(stream, tensors, call->sizes, scratch, bytes);
  if (allocated != NULL) heddle_ffi.release(allocated);
  if (result != 0) {
    const char* kind = result == HEDDLE_NO_SIZES || result == HEDDLE_BAD_POINTER ? "ValueError"
                       : result == HEDDLE_NO_MEMORY                              ? "MemoryError"
                                                                                 : "RuntimeError";
    heddle_ffi.set_raised(kind, heddle_error());
    return -1;
  }
  return 0;
}

static int heddle_call_ffi(const struct heddle_any* args, int32_t count, struct heddle_any* result) {
  struct heddle_call call;
  void *tensors[HEDDLE_TENSORS], *workspace = NULL;
  char signature[1024];
  const struct heddle_tensor *taken, *given = NULL;
  int32_t i;
  int ordinal = 0, entered, failed;
  if (heddle_find_ffi() != 0) return -1;
  if (count != HEDDLE_TENSORS && count != HEDDLE_TENSORS + 1)
    return heddle_raise("TypeError", "%d argument%s given, and %d are expected: %s; or one more, a workspace: uint8[bytes]", (int)count,
                        count == 1 ? " is" : "s are", HEDDLE_TENSORS, heddle_signature(signature, sizeof signature));
  memset(&call, 0, sizeof call);
  for (i = 0; i < HEDDLE_TENSORS; ++i) {
    if (heddle_take(&args[i], i + 1, &heddle_arguments[i], &call, &taken, &tensors[i]) != 0) return -1;
  }
  if (count > HEDDLE_TENSORS && args[HEDDLE_TENSORS].type != HEDDLE_NONE &&
      heddle_take(&args[HEDDLE_TENSORS], HEDDLE_TENSORS + 1, &heddle_workspace, &call, &given, &workspace) != 0)
    return -1;
  if (heddle_enter(call.device, &ordinal, &entered) != 0) return -1;
  failed = heddle_run(&call, tensors, given, workspace);
  if (entered) heddle_leave(ordinal);
  if (failed) return -1;
  memset(result, 0, sizeof *result); /* None */
  return 0;
}

static int heddle_call_workspace_bytes(const struct heddle_any* args, int32_t count, struct heddle_any* result) {
  int64_t sizes[HEDDLE_SIZES + 1];
  size_t bytes;
  char other[64];
  int32_t i;
  if (heddle_find_ffi() != 0) return -1;
  if (count != HEDDLE_SIZES)
    return heddle_raise("TypeError", "for the bytes of a workspace %d argument%s given, and %d are expected: " HEDDLE_SIZE_LIST, (int)count,
                        count == 1 ? " is" : "s are", HEDDLE_SIZES);
  for (i = 0; i < HEDDLE_SIZES; ++i) {
    if (args[i].type != HEDDLE_INT)
      return heddle_raise("TypeError", "for the bytes of a workspace argument %d, %s, is %s, and an int is expected", (int)i + 1,
                          heddle_size_names[i], heddle_type_name(args[i].type, other, sizeof other));
    sizes[i] = args[i].value.integer;
  }
  bytes = heddle_workspace_bytes(sizes);
  memset(result, 0, sizeof *result);
  result->type = HEDDLE_INT;
  result->value.integer = (int64_t)(bytes > 0 ? bytes + HEDDLE_ROOM : 0);
  return 0;
}
)c";

}  // namespace heddle::runtime
