/* A program that runs an operation of Heddle's and has nothing of Heddle: softmax, as 'heddle build' exports it, and NVIDIA's driver.

     heddle build softmax --shape 4x1000 --arch sm_80,sm_90a -o built
     cc -std=c99 -Ibuilt tools/example/host.c built/softmax.c -ldl -lpthread -lm -o host && ./host

   The driver is loaded here so that the program links without one; -lcuda and <cuda.h> do as well. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softmax.h"

enum { ROWS = 4, COLUMNS = 1000, ELEMENTS = ROWS * COLUMNS, BYTES = ELEMENTS * sizeof(float) };

typedef unsigned long long device_address;

static struct {
  int (*init)(unsigned);
  int (*primary_context)(void** context, int device);
  int (*push_context)(void* context);
  int (*allocate)(device_address* address, size_t bytes);
  int (*copy_to_device)(device_address to, const void* from, size_t bytes, void* stream);
  int (*copy_to_host)(void* to, device_address from, size_t bytes, void* stream);
  int (*synchronize)(void* stream);
} cuda;

static void load_driver(void) {
  const struct {
    const char* name;
    void* to;
  } functions[] = {{"cuInit", &cuda.init},
                   {"cuDevicePrimaryCtxRetain", &cuda.primary_context},
                   {"cuCtxPushCurrent_v2", &cuda.push_context},
                   {"cuMemAlloc_v2", &cuda.allocate},
                   {"cuMemcpyHtoDAsync_v2", &cuda.copy_to_device},
                   {"cuMemcpyDtoHAsync_v2", &cuda.copy_to_host},
                   {"cuStreamSynchronize", &cuda.synchronize}};
  const char* const name = getenv("HEDDLE_CUDA_LIBRARY"); /* a test's stand-in */
  void* const library = dlopen(name != NULL ? name : "libcuda.so.1", RTLD_NOW);
  size_t i;
  for (i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    void* const function = library == NULL ? NULL : dlsym(library, functions[i].name);
    if (function == NULL) {
      fprintf(stderr, "host: NVIDIA's driver is missing or too old: %s\n", dlerror());
      exit(1);
    }
    memcpy(functions[i].to, &function, sizeof function);
  }
}

static void check(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "host: %s failed: %d\n", what, result);
  exit(1);
}

int main(void) {
  static float values[ELEMENTS];
  void *context, *const stream = NULL, *workspace = NULL;
  device_address x, y;
  size_t workspace_bytes;
  int row, column;

  load_driver();
  check(cuda.init(0), "cuInit");
  check(cuda.primary_context(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuda.push_context(context), "cuCtxPushCurrent");
  check(cuda.allocate(&x, BYTES), "cuMemAlloc");
  check(cuda.allocate(&y, BYTES), "cuMemAlloc");

  for (row = 0; row < ROWS; ++row)
    for (column = 0; column < COLUMNS; ++column) values[row * COLUMNS + column] = (float)row * (float)sin(column);
  check(cuda.copy_to_device(x, values, BYTES, stream), "cuMemcpyHtoD");
  check(cuda.copy_to_device(y, values, BYTES, stream), "cuMemcpyHtoD");

  workspace_bytes = softmax_workspace_bytes(ROWS, COLUMNS);
  if (workspace_bytes > 0) {
    device_address address;
    check(cuda.allocate(&address, workspace_bytes), "cuMemAlloc");
    workspace = (void*)(uintptr_t)address;
  }
  if (softmax(stream, (const float*)(uintptr_t)x, (float*)(uintptr_t)y, ROWS, COLUMNS, workspace, workspace_bytes) != 0) {
    fprintf(stderr, "host: %s\n", softmax_error());
    return 1;
  }
  check(cuda.copy_to_host(values, y, BYTES, stream), "cuMemcpyDtoH");
  check(cuda.synchronize(stream), "cuStreamSynchronize");

  for (row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (column = 0; column < COLUMNS; ++column) sum += values[row * COLUMNS + column];
    printf("row %d adds up to %.6f\n", row, sum);
  }
  /* Other sizes than it was built for are an error that says so. */
  if (softmax(stream, (const float*)(uintptr_t)x, (float*)(uintptr_t)y, ROWS + 1, COLUMNS, workspace, workspace_bytes) == 0) return 1;
  printf("%s\n", softmax_error());
  return 0;
}
