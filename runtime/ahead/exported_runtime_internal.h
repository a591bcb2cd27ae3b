// The C that every exported library has: it finds the driver, chooses and loads machine code, and runs the steps of a call. The
// tables that it reads are written by export.cc. All names begin with heddle_, so that none is the library's own.
#pragma once

namespace heddle::runtime {

// The types of its tables, which stand in front of these.
inline constexpr char kExportedTypes[] = R"c(
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEDDLE_WORKSPACE = -1, HEDDLE_MAX_RANK = 5 };

struct heddle_place {
  int32_t tensor; /* or HEDDLE_WORKSPACE */
  int64_t offset; /* bytes */
};
/* A place in a kernel's parameter block that gets an address. */
struct heddle_address {
  int32_t offset;
  struct heddle_place place;
};
/* One that gets a tensor map: arguments of cuTensorMapEncode*. */
struct heddle_map {
  int32_t offset;
  struct heddle_place place;
  int32_t type, rank, swizzle, promotion, fill, im2col;
  uint64_t extents[HEDDLE_MAX_RANK], strides[HEDDLE_MAX_RANK];
  uint32_t box[HEDDLE_MAX_RANK];
  int32_t lower[HEDDLE_MAX_RANK], upper[HEDDLE_MAX_RANK];
};
struct heddle_code {
  const unsigned char* bytes;
  const char* entry;
};
enum { HEDDLE_LAUNCH, HEDDLE_FILL8, HEDDLE_FILL32, HEDDLE_COPY };
struct heddle_step {
  int32_t kind;
  /* of a launch */
  int32_t code;
  uint32_t grid[3], block[3], cluster[3], shared_bytes;
  int32_t cooperative, programmatic;
  const unsigned char* parameters;
  int64_t parameter_bytes;
  const int32_t* places; /* of parameters that the driver takes one by one */
  int32_t place_count, address_count, map_count;
  const struct heddle_address* addresses;
  const struct heddle_map* maps;
  /* of a fill or a copy */
  struct heddle_place to, from;
  uint32_t value;
  int64_t count;
};
/* A call for one architecture and one choice of sizes. */
struct heddle_plan {
  int32_t capability; /* 90 */
  int32_t exact;      /* runs on that one alone, not on later ones of its generation */
  const int64_t* sizes;
  const int64_t* bytes;       /* of each tensor */
  const int32_t* alignments;  /* likewise */
  const int32_t* written;     /* likewise */
  int32_t shared_bytes; /* the most that a block of its kernels has */
  int64_t workspace_bytes;
  const struct heddle_step* steps;
  int32_t step_count;
};

)c";

// The functions, which stand behind them.
inline constexpr char kExportedFunctions[] = R"c(
/* CUlaunchAttribute, CUlaunchConfig, CUtensorMap */
struct heddle_attribute {
  int32_t id;
  char padding[4];
  union {
    char padding[64];
    int32_t flag;
    uint32_t cluster[3];
  } value;
};
struct heddle_config {
  uint32_t grid[3], block[3], shared_bytes;
  void* stream;
  struct heddle_attribute* attributes;
  uint32_t attribute_count;
};
struct heddle_tensor_map {
  uint64_t opaque[16];
} __attribute__((aligned(128)));

static struct {
  int (*ctx_get_current)(void**);
  int (*ctx_get_id)(void*, unsigned long long*);
  int (*ctx_get_device)(int*);
  int (*device_get_attribute)(int*, int, int);
  int (*get_error_name)(int, const char**);
  int (*module_load_data)(void**, const void*, unsigned, int*, void**);
  int (*module_unload)(void*);
  int (*module_get_function)(void**, void*, const char*);
  int (*func_set_attribute)(void*, int, int);
  int (*thread_exchange_capture_mode)(int*);
  int (*launch_kernel_ex)(const struct heddle_config*, void*, void**, void**);
  int (*memset_d8_async)(unsigned long long, unsigned char, size_t, void*);
  int (*memset_d32_async)(unsigned long long, unsigned, size_t, void*);
  int (*memcpy_dtod_async)(unsigned long long, unsigned long long, size_t, void*);
  int (*encode_tiled)(struct heddle_tensor_map*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                      const uint32_t*, int, int, int, int);
  int (*encode_im2col)(struct heddle_tensor_map*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int32_t*,
                       const int32_t*, uint32_t, uint32_t, const uint32_t*, int, int, int, int);
} heddle_driver;

static __thread char heddle_error_text[768];

static int heddle_fail(int code, const char* format, ...) {
  va_list arguments;
  int length = snprintf(heddle_error_text, sizeof heddle_error_text, "%s: ", HEDDLE_NAME);
  va_start(arguments, format);
  vsnprintf(heddle_error_text + length, sizeof heddle_error_text - (size_t)length, format, arguments);
  va_end(arguments);
  return code;
}

static int heddle_driver_failed(int result, const char* call) {
  const char* name = NULL;
  if (heddle_driver.get_error_name == NULL || heddle_driver.get_error_name(result, &name) != 0) name = "an error";
  return heddle_fail(result, "%s failed: %s (%d)", call, name, result);
}

static int heddle_find_driver(void) {
  static const struct {
    const char* name;
    void* to;
  } functions[] = {{"cuCtxGetCurrent", &heddle_driver.ctx_get_current},
                   {"cuCtxGetId", &heddle_driver.ctx_get_id},
                   {"cuCtxGetDevice", &heddle_driver.ctx_get_device},
                   {"cuDeviceGetAttribute", &heddle_driver.device_get_attribute},
                   {"cuGetErrorName", &heddle_driver.get_error_name},
                   {"cuModuleLoadDataEx", &heddle_driver.module_load_data},
                   {"cuModuleUnload", &heddle_driver.module_unload},
                   {"cuModuleGetFunction", &heddle_driver.module_get_function},
                   {"cuFuncSetAttribute", &heddle_driver.func_set_attribute},
                   {"cuThreadExchangeStreamCaptureMode", &heddle_driver.thread_exchange_capture_mode},
                   {"cuLaunchKernelEx", &heddle_driver.launch_kernel_ex},
                   {"cuMemsetD8Async", &heddle_driver.memset_d8_async},
                   {"cuMemsetD32Async", &heddle_driver.memset_d32_async},
                   {"cuMemcpyDtoDAsync_v2", &heddle_driver.memcpy_dtod_async},
                   {"cuTensorMapEncodeTiled", &heddle_driver.encode_tiled},
                   {"cuTensorMapEncodeIm2col", &heddle_driver.encode_im2col}};
  size_t i;
  const char* name = getenv("HEDDLE_CUDA_LIBRARY");
  void* library = dlopen(name != NULL && *name != 0 ? name : "libcuda.so.1", RTLD_NOW);
  if (library == NULL) return heddle_fail(HEDDLE_NO_DRIVER, "NVIDIA's driver is not there: %s", dlerror());
  for (i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    void* function = dlsym(library, functions[i].name);
    if (function == NULL) return heddle_fail(HEDDLE_NO_DRIVER, "the driver has no %s: install one of CUDA 12.0 or later", functions[i].name);
    memcpy(functions[i].to, &function, sizeof function);
  }
  return 0;
}

/* A kernel that a context has loaded; modules stay loaded. A context is known by its number, which no later one gets. */
struct heddle_loaded {
  unsigned long long context;
  const struct heddle_code* code;
  void* function;
  int32_t shared_bytes, large_clusters; /* that it may have */
  struct heddle_loaded* next;
};
static pthread_mutex_t heddle_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct heddle_loaded* heddle_all_loaded;
static int heddle_driver_found;

static int heddle_load_code(unsigned long long context, const struct heddle_code* code, struct heddle_loaded** loaded) {
  void *module, *function;
  struct heddle_loaded* one;
  int result, mode = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED: a stream may be captured meanwhile, and nothing is enqueued here */
  heddle_driver.thread_exchange_capture_mode(&mode);
  result = heddle_driver.module_load_data(&module, code->bytes, 0, NULL, NULL);
  heddle_driver.thread_exchange_capture_mode(&mode);
  if (result != 0) return heddle_driver_failed(result, "cuModuleLoadDataEx");
  result = heddle_driver.module_get_function(&function, module, code->entry);
  if (result != 0) {
    heddle_driver.module_unload(module);
    return heddle_driver_failed(result, "cuModuleGetFunction");
  }
  one = malloc(sizeof *one);
  if (one == NULL) {
    heddle_driver.module_unload(module);
    return heddle_fail(HEDDLE_NO_MEMORY, "no memory");
  }
  one->context = context;
  one->code = code;
  one->function = function;
  one->shared_bytes = one->large_clusters = 0;
  one->next = heddle_all_loaded;
  heddle_all_loaded = *loaded = one;
  return 0;
}

/* The function of a step in a context, ready to be launched; the mutex is held. */
static int heddle_load(unsigned long long context, const struct heddle_step* step, void** function) {
  const struct heddle_code* code = &heddle_codes[step->code];
  struct heddle_loaded* one;
  int result;
  for (one = heddle_all_loaded; one != NULL; one = one->next) {
    if (one->context == context && one->code == code) break;
  }
  if (one == NULL && (result = heddle_load_code(context, code, &one)) != 0) return result;
  *function = one->function;
  /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED. Other threads may be launching it, so what
     it may have only grows. */
  if ((int32_t)step->shared_bytes > one->shared_bytes) {
    if ((result = heddle_driver.func_set_attribute(one->function, 8, (int)step->shared_bytes)) != 0)
      return heddle_driver_failed(result, "cuFuncSetAttribute");
    one->shared_bytes = (int32_t)step->shared_bytes;
  }
  if (step->cluster[0] * step->cluster[1] * step->cluster[2] > 8 && !one->large_clusters) {
    if ((result = heddle_driver.func_set_attribute(one->function, 14, 1)) != 0) return heddle_driver_failed(result, "cuFuncSetAttribute");
    one->large_clusters = 1;
  }
  return 0;
}

static unsigned long long heddle_address_of(struct heddle_place place, void* const* tensors, void* workspace) {
  const char* base = place.tensor == HEDDLE_WORKSPACE ? workspace : tensors[place.tensor];
  return (unsigned long long)(uintptr_t)(base + place.offset);
}

static int heddle_encode(const struct heddle_map* map, void* address, unsigned char* to) {
  struct heddle_tensor_map encoded;
  const uint32_t steps[HEDDLE_MAX_RANK] = {1, 1, 1, 1, 1};
  int result = map->im2col
                   ? heddle_driver.encode_im2col(&encoded, map->type, (uint32_t)map->rank, address, map->extents, map->strides, map->lower,
                                          map->upper, map->box[0], map->box[1], steps, 0, map->swizzle, map->promotion, map->fill)
                   : heddle_driver.encode_tiled(&encoded, map->type, (uint32_t)map->rank, address, map->extents, map->strides, map->box,
                                         steps, 0, map->swizzle, map->promotion, map->fill);
  if (result != 0) return heddle_driver_failed(result, "cuTensorMapEncode");
  memcpy(to, &encoded, sizeof encoded);
  return 0;
}

static int heddle_launch(const struct heddle_step* step, void* function, void* stream, void* const* tensors, void* workspace) {
  unsigned char block[HEDDLE_MOST_BYTES] __attribute__((aligned(128)));
  void* parameters[HEDDLE_MOST_PLACES];
  struct heddle_attribute attributes[3];
  struct heddle_config config;
  size_t bytes = (size_t)step->parameter_bytes;
  void* extra[] = {(void*)1, block, (void*)2, &bytes, NULL}; /* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END */
  int i, result;
  memcpy(block, step->parameters, bytes);
  for (i = 0; i < step->address_count; ++i) {
    unsigned long long address = heddle_address_of(step->addresses[i].place, tensors, workspace);
    memcpy(block + step->addresses[i].offset, &address, sizeof address);
  }
  for (i = 0; i < step->map_count; ++i) {
    void* address = (void*)(uintptr_t)heddle_address_of(step->maps[i].place, tensors, workspace);
    if ((result = heddle_encode(&step->maps[i], address, block + step->maps[i].offset)) != 0) return result;
  }
  for (i = 0; i < step->place_count; ++i) parameters[i] = block + step->places[i];
  memset(attributes, 0, sizeof attributes);
  memset(&config, 0, sizeof config);
  memcpy(config.grid, step->grid, sizeof config.grid);
  memcpy(config.block, step->block, sizeof config.block);
  config.shared_bytes = step->shared_bytes;
  config.stream = stream;
  config.attributes = attributes;
  if (step->cluster[0] * step->cluster[1] * step->cluster[2] > 1) {
    struct heddle_attribute* one = &attributes[config.attribute_count++];
    one->id = 4; /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    memcpy(one->value.cluster, step->cluster, sizeof step->cluster);
  }
  if (step->programmatic) {
    attributes[config.attribute_count].id = 6; /* _PROGRAMMATIC_STREAM_SERIALIZATION */
    attributes[config.attribute_count++].value.flag = 1;
  }
  if (step->cooperative) {
    attributes[config.attribute_count].id = 2; /* _COOPERATIVE */
    attributes[config.attribute_count++].value.flag = 1;
  }
  result = heddle_driver.launch_kernel_ex(&config, function, step->place_count > 0 ? parameters : NULL,
                                   step->place_count > 0 || bytes == 0 ? NULL : extra);
  return result != 0 ? heddle_driver_failed(result, "cuLaunchKernelEx") : 0;
}

static int heddle_run_step(const struct heddle_step* step, void* function, void* stream, void* const* tensors, void* workspace) {
  unsigned long long to = heddle_address_of(step->to, tensors, workspace), from = heddle_address_of(step->from, tensors, workspace);
  size_t count = (size_t)step->count;
  int result = 0;
  switch (step->kind) {
    case HEDDLE_LAUNCH:
      return heddle_launch(step, function, stream, tensors, workspace);
    case HEDDLE_FILL8:
      result = heddle_driver.memset_d8_async(to, (unsigned char)step->value, count, stream);
      return result != 0 ? heddle_driver_failed(result, "cuMemsetD8Async") : 0;
    case HEDDLE_FILL32:
      result = heddle_driver.memset_d32_async(to, step->value, count, stream);
      return result != 0 ? heddle_driver_failed(result, "cuMemsetD32Async") : 0;
    default:
      result = heddle_driver.memcpy_dtod_async(to, from, count, stream);
      return result != 0 ? heddle_driver_failed(result, "cuMemcpyDtoDAsync") : 0;
  }
}

static int heddle_has_sizes(const struct heddle_plan* plan, const int64_t* sizes) {
  return memcmp(plan->sizes, sizes, HEDDLE_SIZES * sizeof *sizes) == 0;
}

/* The plan of a device for these sizes: of its own capability, else of the greatest below it. */
static int heddle_choose(const int64_t* sizes, unsigned long long* context, const struct heddle_plan** chosen) {
  int device, major, minor, shared, result, i, any = 0, too_large = 0;
  void* current = NULL;
  pthread_mutex_lock(&heddle_mutex);
  result = heddle_driver_found ? 0 : heddle_find_driver();
  heddle_driver_found = result == 0;
  pthread_mutex_unlock(&heddle_mutex);
  if (result != 0) return result;
  result = heddle_driver.ctx_get_current(&current);
  /* CUDA_ERROR_NOT_INITIALIZED: nobody has called it yet. */
  if (result != 0 && result != 3) return heddle_driver_failed(result, "cuCtxGetCurrent");
  if (current == NULL) return heddle_fail(HEDDLE_NO_CONTEXT, "no CUDA context is current: call cudaSetDevice() or cuCtxSetCurrent() first");
  if ((result = heddle_driver.ctx_get_id(current, context)) != 0) return heddle_driver_failed(result, "cuCtxGetId");
  if ((result = heddle_driver.ctx_get_device(&device)) != 0) return heddle_driver_failed(result, "cuCtxGetDevice");
  /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR, _MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
  if ((result = heddle_driver.device_get_attribute(&major, 75, device)) != 0 ||
      (result = heddle_driver.device_get_attribute(&minor, 76, device)) != 0 ||
      (result = heddle_driver.device_get_attribute(&shared, 97, device)) != 0)
    return heddle_driver_failed(result, "cuDeviceGetAttribute");
  *chosen = NULL;
  for (i = 0; i < (int)(sizeof heddle_plans / sizeof heddle_plans[0]); ++i) {
    const struct heddle_plan* plan = &heddle_plans[i];
    const struct heddle_plan* best = *chosen;
    int capability = 10 * major + minor;
    if (plan->exact ? plan->capability != capability : plan->capability / 10 != major || plan->capability > capability) continue;
    any = 1;
    if (!heddle_has_sizes(plan, sizes)) continue;
    if (plan->shared_bytes > shared) {
      too_large = plan->shared_bytes;
      continue;
    }
    if (best == NULL || plan->capability > best->capability || (plan->capability == best->capability && plan->exact)) *chosen = plan;
  }
  if (!any) return heddle_fail(HEDDLE_NO_CODE, "there is no code for this GPU, of compute capability %d.%d: " HEDDLE_ARCHITECTURES, major, minor);
  if (*chosen == NULL && too_large > 0)
    return heddle_fail(HEDDLE_NO_CODE, "the code takes %d bytes of shared memory for a block, and this GPU has %d: " HEDDLE_ARCHITECTURES, too_large, shared);
  if (*chosen == NULL) {
    char given[256] = "";
    for (i = 0; i < HEDDLE_SIZES; ++i) {
      size_t length = strlen(given);
      snprintf(given + length, sizeof given - length, "%s%s=%lld", i > 0 ? ", " : "", heddle_size_names[i], (long long)sizes[i]);
    }
    return heddle_fail(HEDDLE_NO_SIZES, "there is no code for %s: " HEDDLE_BUILT_FOR, given);
  }
  return 0;
}

static int heddle_check(const struct heddle_plan* plan, void* const* tensors, const void* workspace, size_t workspace_bytes) {
  int i, j;
  for (i = 0; i < HEDDLE_TENSORS; ++i) {
    if (tensors[i] == NULL) return heddle_fail(HEDDLE_BAD_POINTER, "%s is NULL", heddle_tensor_names[i]);
    if ((uintptr_t)tensors[i] % (uintptr_t)plan->alignments[i] != 0)
      return heddle_fail(HEDDLE_BAD_POINTER, "%s lies at %p, and has to lie at a multiple of %d bytes", heddle_tensor_names[i], tensors[i], plan->alignments[i]);
  }
  if ((int64_t)workspace_bytes < plan->workspace_bytes || (plan->workspace_bytes > 0 && workspace == NULL))
    return heddle_fail(HEDDLE_BAD_POINTER, "the workspace has %lld bytes, and %lld are needed: see %s_workspace_bytes()",
                workspace == NULL ? 0LL : (long long)workspace_bytes, (long long)plan->workspace_bytes, HEDDLE_NAME);
  if ((uintptr_t)workspace % 256 != 0) return heddle_fail(HEDDLE_BAD_POINTER, "the workspace lies at %p, and has to lie at a multiple of 256 bytes", workspace);
  for (i = 0; i < HEDDLE_TENSORS; ++i) {
    const char *a = tensors[i], *b = workspace;
    if (plan->workspace_bytes > 0 && a < b + plan->workspace_bytes && b < a + plan->bytes[i])
      return heddle_fail(HEDDLE_BAD_POINTER, "%s shares memory with the workspace", heddle_tensor_names[i]);
  }
  for (i = 0; i < HEDDLE_TENSORS; ++i) {
    for (j = 0; j < HEDDLE_TENSORS; ++j) {
      const char *a = tensors[i], *b = tensors[j];
      if (i != j && plan->written[i] && a < b + plan->bytes[j] && b < a + plan->bytes[i])
        return heddle_fail(HEDDLE_BAD_POINTER, "%s shares memory with %s, and the code is for tensors that do not", heddle_tensor_names[i], heddle_tensor_names[j]);
    }
  }
  return 0;
}

static int heddle_run_call(void* stream, void* const* tensors, const int64_t* sizes, void* workspace, size_t workspace_bytes) {
  const struct heddle_plan* plan = NULL;
  void* functions[HEDDLE_MOST_STEPS] = {NULL};
  unsigned long long context;
  int i, result = heddle_choose(sizes, &context, &plan);
  if (result != 0 || (result = heddle_check(plan, tensors, workspace, workspace_bytes)) != 0) return result;
  /* All code first, so that a call whose code cannot be loaded enqueues nothing. */
  pthread_mutex_lock(&heddle_mutex);
  for (i = 0; i < plan->step_count && result == 0; ++i) {
    if (plan->steps[i].kind == HEDDLE_LAUNCH) result = heddle_load(context, &plan->steps[i], &functions[i]);
  }
  pthread_mutex_unlock(&heddle_mutex);
  for (i = 0; i < plan->step_count && result == 0; ++i) {
    result = heddle_run_step(&plan->steps[i], functions[i], stream, tensors, workspace);
  }
  return result;
}

static size_t heddle_most_workspace(const int64_t* sizes) {
  size_t most = 0;
  int i;
  for (i = 0; i < (int)(sizeof heddle_plans / sizeof heddle_plans[0]); ++i) {
    if (heddle_has_sizes(&heddle_plans[i], sizes) && (size_t)heddle_plans[i].workspace_bytes > most) most = (size_t)heddle_plans[i].workspace_bytes;
  }
  return most;
}
)c";

}  // namespace heddle::runtime
