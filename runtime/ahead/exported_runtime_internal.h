// The C that every exported library has: it finds the driver, chooses and loads machine code, and runs the steps of a call. The
// tables that it reads are written by export.cc.
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

enum { WORKSPACE = -1, MAX_RANK = 5, MAX_BLOCK = 32768, MAX_PARAMETERS = 4096 };

struct place {
  int32_t tensor; /* or WORKSPACE */
  int64_t offset; /* bytes */
};
/* A place in a kernel's parameter block that gets an address. */
struct address {
  int32_t offset;
  struct place place;
};
/* One that gets a tensor map: arguments of cuTensorMapEncode*. */
struct map {
  int32_t offset;
  struct place place;
  int32_t type, rank, swizzle, promotion, fill, im2col;
  uint64_t extents[MAX_RANK], strides[MAX_RANK];
  uint32_t box[MAX_RANK];
  int32_t lower[MAX_RANK], upper[MAX_RANK];
};
struct code {
  const unsigned char* bytes;
  const char* entry;
};
enum { LAUNCH, FILL8, FILL32, COPY };
struct step {
  int32_t kind;
  /* of a launch */
  int32_t code;
  uint32_t grid[3], block[3], cluster[3], shared_bytes;
  int32_t cooperative, programmatic;
  const unsigned char* parameters;
  int64_t parameter_bytes;
  const int32_t* places; /* of parameters that the driver takes one by one */
  int32_t place_count, address_count, map_count;
  const struct address* addresses;
  const struct map* maps;
  /* of a fill or a copy */
  struct place to, from;
  uint32_t value;
  int64_t count;
};
/* A call for one architecture and one choice of sizes. */
struct plan {
  int32_t capability; /* 90 */
  int32_t exact;      /* runs on that one alone, not on later ones of its generation */
  const int64_t* sizes;
  const int64_t* bytes;       /* of each tensor */
  const int32_t* alignments;  /* likewise */
  const int32_t* written;     /* likewise */
  int32_t no_overlap;
  int64_t workspace_bytes;
  const struct step* steps;
  int32_t step_count;
};

)c";

// The functions, which stand behind them.
inline constexpr char kExportedFunctions[] = R"c(
/* CUlaunchAttribute, CUlaunchConfig, CUtensorMap */
struct attribute {
  int32_t id;
  char padding[4];
  union {
    char padding[64];
    int32_t flag;
    uint32_t cluster[3];
  } value;
};
struct config {
  uint32_t grid[3], block[3], shared_bytes;
  void* stream;
  struct attribute* attributes;
  uint32_t attribute_count;
};
struct tensor_map {
  uint64_t opaque[16];
} __attribute__((aligned(128)));

static struct {
  int (*ctx_get_current)(void**);
  int (*ctx_get_device)(int*);
  int (*device_get_attribute)(int*, int, int);
  int (*get_error_name)(int, const char**);
  int (*module_load_data)(void**, const void*, unsigned, int*, void**);
  int (*module_get_function)(void**, void*, const char*);
  int (*func_set_attribute)(void*, int, int);
  int (*launch_kernel_ex)(const struct config*, void*, void**, void**);
  int (*memset_d8_async)(unsigned long long, unsigned char, size_t, void*);
  int (*memset_d32_async)(unsigned long long, unsigned, size_t, void*);
  int (*memcpy_dtod_async)(unsigned long long, unsigned long long, size_t, void*);
  int (*encode_tiled)(struct tensor_map*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                      const uint32_t*, int, int, int, int);
  int (*encode_im2col)(struct tensor_map*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int32_t*,
                       const int32_t*, uint32_t, uint32_t, const uint32_t*, int, int, int, int);
} driver;

static __thread char error_text[768];

static int fail(int code, const char* format, ...) {
  va_list arguments;
  int length = snprintf(error_text, sizeof error_text, "%s: ", NAME);
  va_start(arguments, format);
  vsnprintf(error_text + length, sizeof error_text - (size_t)length, format, arguments);
  va_end(arguments);
  return code;
}

static int driver_failed(int result, const char* call) {
  const char* name = NULL;
  if (driver.get_error_name == NULL || driver.get_error_name(result, &name) != 0) name = "an error";
  return fail(result, "%s failed: %s (%d)", call, name, result);
}

static int find_driver(void) {
  static const struct {
    const char* name;
    void* to;
  } functions[] = {{"cuCtxGetCurrent", &driver.ctx_get_current},
                   {"cuCtxGetDevice", &driver.ctx_get_device},
                   {"cuDeviceGetAttribute", &driver.device_get_attribute},
                   {"cuGetErrorName", &driver.get_error_name},
                   {"cuModuleLoadDataEx", &driver.module_load_data},
                   {"cuModuleGetFunction", &driver.module_get_function},
                   {"cuFuncSetAttribute", &driver.func_set_attribute},
                   {"cuLaunchKernelEx", &driver.launch_kernel_ex},
                   {"cuMemsetD8Async", &driver.memset_d8_async},
                   {"cuMemsetD32Async", &driver.memset_d32_async},
                   {"cuMemcpyDtoDAsync_v2", &driver.memcpy_dtod_async},
                   {"cuTensorMapEncodeTiled", &driver.encode_tiled},
                   {"cuTensorMapEncodeIm2col", &driver.encode_im2col}};
  size_t i;
  const char* name = getenv("HEDDLE_CUDA_LIBRARY");
  void* library = dlopen(name != NULL && *name != 0 ? name : "libcuda.so.1", RTLD_NOW);
  if (library == NULL) return fail(NO_DRIVER, "NVIDIA's driver is not there: %s", dlerror());
  for (i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    void* function = dlsym(library, functions[i].name);
    if (function == NULL) return fail(NO_DRIVER, "the driver has no %s: install one of CUDA 12.0 or later", functions[i].name);
    memcpy(functions[i].to, &function, sizeof function);
  }
  return 0;
}

/* A kernel that a context has loaded; modules stay loaded. */
struct loaded {
  void* context;
  const struct code* code;
  void* function;
  struct loaded* next;
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct loaded* all_loaded;
static int driver_found;

/* The function of a step in a context; the mutex is held. */
static int load(void* context, const struct step* step, void** function) {
  const struct code* code = &codes[step->code];
  struct loaded* one;
  void* module;
  int result;
  for (one = all_loaded; one != NULL; one = one->next) {
    if (one->context == context && one->code == code) break;
  }
  if (one == NULL) {
    if ((result = driver.module_load_data(&module, code->bytes, 0, NULL, NULL)) != 0)
      return driver_failed(result, "cuModuleLoadDataEx");
    one = malloc(sizeof *one);
    if (one == NULL) return fail(NO_MEMORY, "no memory");
    one->context = context;
    one->code = code;
    if ((result = driver.module_get_function(&one->function, module, code->entry)) != 0) {
      free(one);
      return driver_failed(result, "cuModuleGetFunction");
    }
    one->next = all_loaded;
    all_loaded = one;
  }
  *function = one->function;
  /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED */
  if (step->shared_bytes > 0 && (result = driver.func_set_attribute(one->function, 8, (int)step->shared_bytes)) != 0)
    return driver_failed(result, "cuFuncSetAttribute");
  if (step->cluster[0] * step->cluster[1] * step->cluster[2] > 8 &&
      (result = driver.func_set_attribute(one->function, 14, 1)) != 0)
    return driver_failed(result, "cuFuncSetAttribute");
  return 0;
}

static unsigned long long address_of(struct place place, void* const* tensors, void* workspace) {
  const char* base = place.tensor == WORKSPACE ? workspace : tensors[place.tensor];
  return (unsigned long long)(uintptr_t)(base + place.offset);
}

static int encode(const struct map* map, void* address, unsigned char* to) {
  struct tensor_map encoded;
  const uint32_t steps[MAX_RANK] = {1, 1, 1, 1, 1};
  int result = map->im2col
                   ? driver.encode_im2col(&encoded, map->type, (uint32_t)map->rank, address, map->extents, map->strides, map->lower,
                                          map->upper, map->box[0], map->box[1], steps, 0, map->swizzle, map->promotion, map->fill)
                   : driver.encode_tiled(&encoded, map->type, (uint32_t)map->rank, address, map->extents, map->strides, map->box,
                                         steps, 0, map->swizzle, map->promotion, map->fill);
  if (result != 0) return driver_failed(result, "cuTensorMapEncode");
  memcpy(to, &encoded, sizeof encoded);
  return 0;
}

static int launch(const struct step* step, void* context, void* stream, void* const* tensors, void* workspace) {
  unsigned char block[MAX_BLOCK] __attribute__((aligned(128)));
  void* parameters[MAX_PARAMETERS];
  struct attribute attributes[3];
  struct config config;
  size_t bytes = (size_t)step->parameter_bytes;
  void* extra[] = {(void*)1, block, (void*)2, &bytes, NULL}; /* CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END */
  void* function;
  int i, result;
  pthread_mutex_lock(&mutex);
  result = load(context, step, &function);
  pthread_mutex_unlock(&mutex);
  if (result != 0) return result;
  memcpy(block, step->parameters, bytes);
  for (i = 0; i < step->address_count; ++i) {
    unsigned long long address = address_of(step->addresses[i].place, tensors, workspace);
    memcpy(block + step->addresses[i].offset, &address, sizeof address);
  }
  for (i = 0; i < step->map_count; ++i) {
    void* address = (void*)(uintptr_t)address_of(step->maps[i].place, tensors, workspace);
    if ((result = encode(&step->maps[i], address, block + step->maps[i].offset)) != 0) return result;
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
    struct attribute* one = &attributes[config.attribute_count++];
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
  result = driver.launch_kernel_ex(&config, function, step->place_count > 0 ? parameters : NULL,
                                   step->place_count > 0 || bytes == 0 ? NULL : extra);
  return result != 0 ? driver_failed(result, "cuLaunchKernelEx") : 0;
}

static int run_step(const struct step* step, void* context, void* stream, void* const* tensors, void* workspace) {
  unsigned long long to = address_of(step->to, tensors, workspace), from = address_of(step->from, tensors, workspace);
  size_t count = (size_t)step->count;
  int result = 0;
  switch (step->kind) {
    case LAUNCH:
      return launch(step, context, stream, tensors, workspace);
    case FILL8:
      result = driver.memset_d8_async(to, (unsigned char)step->value, count, stream);
      return result != 0 ? driver_failed(result, "cuMemsetD8Async") : 0;
    case FILL32:
      result = driver.memset_d32_async(to, step->value, count, stream);
      return result != 0 ? driver_failed(result, "cuMemsetD32Async") : 0;
    default:
      result = driver.memcpy_dtod_async(to, from, count, stream);
      return result != 0 ? driver_failed(result, "cuMemcpyDtoDAsync") : 0;
  }
}

static int has_sizes(const struct plan* plan, const int64_t* sizes) {
  return memcmp(plan->sizes, sizes, SIZES * sizeof *sizes) == 0;
}

/* The plan of a device for these sizes: of its own capability, else of the greatest below it. */
static int choose(const int64_t* sizes, void** context, const struct plan** chosen) {
  int device, major, minor, result, i, any = 0;
  pthread_mutex_lock(&mutex);
  result = driver_found ? 0 : find_driver();
  driver_found = result == 0;
  pthread_mutex_unlock(&mutex);
  if (result != 0) return result;
  if ((result = driver.ctx_get_current(context)) != 0) return driver_failed(result, "cuCtxGetCurrent");
  if (*context == NULL) return fail(NO_CONTEXT, "no CUDA context is current: call cudaSetDevice() or cuCtxSetCurrent() first");
  if ((result = driver.ctx_get_device(&device)) != 0) return driver_failed(result, "cuCtxGetDevice");
  /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR */
  if ((result = driver.device_get_attribute(&major, 75, device)) != 0 ||
      (result = driver.device_get_attribute(&minor, 76, device)) != 0)
    return driver_failed(result, "cuDeviceGetAttribute");
  *chosen = NULL;
  for (i = 0; i < (int)(sizeof plans / sizeof plans[0]); ++i) {
    const struct plan* plan = &plans[i];
    const struct plan* best = *chosen;
    int capability = 10 * major + minor;
    if (plan->exact ? plan->capability != capability : plan->capability / 10 != major || plan->capability > capability) continue;
    any = 1;
    if (!has_sizes(plan, sizes)) continue;
    if (best == NULL || plan->capability > best->capability || (plan->capability == best->capability && plan->exact)) *chosen = plan;
  }
  if (!any) return fail(NO_CODE, "there is no code for this GPU, of compute capability %d.%d: " ARCHITECTURES, major, minor);
  if (*chosen == NULL) {
    char given[256] = "";
    for (i = 0; i < SIZES; ++i) {
      size_t length = strlen(given);
      snprintf(given + length, sizeof given - length, "%s%s=%lld", i > 0 ? ", " : "", size_names[i], (long long)sizes[i]);
    }
    return fail(NO_SIZES, "there is no code for %s: " BUILT_FOR, given);
  }
  return 0;
}

static int check(const struct plan* plan, void* const* tensors, const void* workspace, size_t workspace_bytes) {
  int i, j;
  for (i = 0; i < TENSORS; ++i) {
    if (tensors[i] == NULL) return fail(BAD_POINTER, "%s is NULL", tensor_names[i]);
    if ((uintptr_t)tensors[i] % (uintptr_t)plan->alignments[i] != 0)
      return fail(BAD_POINTER, "%s lies at %p, and has to lie at a multiple of %d bytes", tensor_names[i], tensors[i], plan->alignments[i]);
  }
  if ((int64_t)workspace_bytes < plan->workspace_bytes || (plan->workspace_bytes > 0 && workspace == NULL))
    return fail(BAD_POINTER, "the workspace has %lld bytes, and %lld are needed: see %s_workspace_bytes()",
                workspace == NULL ? 0LL : (long long)workspace_bytes, (long long)plan->workspace_bytes, NAME);
  if ((uintptr_t)workspace % 256 != 0) return fail(BAD_POINTER, "the workspace lies at %p, and has to lie at a multiple of 256 bytes", workspace);
  if (!plan->no_overlap) return 0;
  for (i = 0; i < TENSORS; ++i) {
    for (j = 0; j < TENSORS; ++j) {
      const char *a = tensors[i], *b = tensors[j];
      if (i != j && plan->written[i] && a < b + plan->bytes[j] && b < a + plan->bytes[i])
        return fail(BAD_POINTER, "%s shares memory with %s, and the code is for tensors that do not", tensor_names[i], tensor_names[j]);
    }
  }
  return 0;
}

static int run_call(void* stream, void* const* tensors, const int64_t* sizes, void* workspace, size_t workspace_bytes) {
  const struct plan* plan;
  void* context;
  int i, result = choose(sizes, &context, &plan);
  if (result != 0 || (result = check(plan, tensors, workspace, workspace_bytes)) != 0) return result;
  for (i = 0; i < plan->step_count; ++i) {
    if ((result = run_step(&plan->steps[i], context, stream, tensors, workspace)) != 0) return result;
  }
  return 0;
}

static size_t most_workspace(const int64_t* sizes) {
  size_t most = 0;
  int i;
  for (i = 0; i < (int)(sizeof plans / sizeof plans[0]); ++i) {
    if (has_sizes(&plans[i], sizes) && (size_t)plans[i].workspace_bytes > most) most = (size_t)plans[i].workspace_bytes;
  }
  return most;
}
)c";

}  // namespace heddle::runtime
