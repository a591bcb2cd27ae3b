// A CUDA graph of what a stream is given, through the driver's own functions.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "heddle/runtime/device.h"

namespace heddle::bench {

// What body() enqueues on a stream of the first CUDA device, captured: launch() enqueues it again. The device's context
// stays current on the thread.
class Graph {
 public:
  template <class Body>
  Graph(const Stream& stream, Body body) : stream_(handle(stream)) {
    constexpr int kGlobalMode = 0;
    call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context_, 0);
    call<int(void*)>("cuCtxSetCurrent", context_);
    call<int(void*, int)>("cuStreamBeginCapture_v2", stream_, kGlobalMode);
    body();
    call<int(void*, void**)>("cuStreamEndCapture", stream_, &graph_);
    call<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags", &exec_, graph_, 0);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    call<int(void*)>("cuGraphExecDestroy", exec_);
    call<int(void*)>("cuGraphDestroy", graph_);
    call<int(int)>("cuDevicePrimaryCtxRelease_v2", 0);
  }

  void launch() const { call<int(void*, void*)>("cuGraphLaunch", exec_, stream_); }

 private:
  static void* handle(const Stream& stream) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(stream.handle()));
  }
  template <class F, class... Arguments>
  static void call(const char* name, Arguments... arguments) {
    static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto function = reinterpret_cast<F*>(dlsym(driver, name));
    const int result = function == nullptr ? -1 : function(arguments...);
    if (result == 0) return;
    std::fprintf(stderr, "%s failed: %d\n", name, result);
    std::abort();
  }

  void* const stream_;
  void* context_ = nullptr;
  void* graph_ = nullptr;
  void* exec_ = nullptr;
};

}  // namespace heddle::bench
