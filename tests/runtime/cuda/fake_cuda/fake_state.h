// What the stand-in for libcuda holds, and how tests steer it.
#pragma once

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/fake_cuda/fake_cuda.h"

namespace heddle::runtime::cuda {

// The stack of current contexts of a thread. It has no destructor: kernels of static storage call the driver after those of a
// thread's objects have run.
struct ContextStack {
  static constexpr int kMost = 16;
  ContextHandle items[kMost] = {};
  int count = 0;

  bool empty() const { return count == 0; }
  ContextHandle back() const { return items[count - 1]; }
  void push_back(ContextHandle context) {
    if (count == kMost) std::abort();
    items[count++] = context;
  }
  void pop_back() { --count; }
  void clear() { count = 0; }
};
inline thread_local ContextStack contexts;

struct Fault {
  int code;
  int after;
};

// Nodes in the order in which they were added: launches, all of a child graph's where it is one.
struct FakeGraph {
  struct Node {
    GraphNodeHandle handle;
    std::vector<FakeLaunch> launches;
    bool enabled;
  };
  std::vector<Node> nodes;

  Node* find(GraphNodeHandle handle) {
    for (Node& node : nodes) {
      if (node.handle == handle) return &node;
    }
    return nullptr;
  }
  std::vector<FakeLaunch> launches() const {
    std::vector<FakeLaunch> all;
    for (const Node& node : nodes) {
      if (node.enabled) all.insert(all.end(), node.launches.begin(), node.launches.end());
    }
    return all;
  }
};
struct FakeCapture {
  uint64_t id;
  GraphHandle graph;
};

struct Fake final : FakeCuda {
  std::mutex mutex;
  bool initialized = false;
  int version = 13000;
  int device_count = 2;
  size_t total_memory = size_t{1} << 32;
  int blocks_per_sm = 2;
  int active_clusters = 4;
  int parameter_count = 0;
  uint64_t resets = 0;
  std::string kernels;  // none: any
  bool capturing = false;
  bool busy = false;
  int pending_fault = 0;
  std::map<std::string, Fault> faults;
  std::map<FunctionAttribute, int> function_attributes;
  std::map<DeviceAttribute, int> device_attributes;  // other than the usual ones
  std::vector<std::string> log;
  std::vector<FakeLaunch> launched;
  std::map<DevicePointer, size_t> allocations;
  DevicePointer foreign = 0;  // the allocation that is another device's
  std::set<void*> host_allocations;
  std::map<const void*, uint64_t> pools;  // and what each keeps
  CaptureMode capture_mode = CaptureMode::kGlobal;
  std::set<const void*> streams;
  std::map<DriverStream, FakeCapture> captures;
  std::map<GraphHandle, FakeGraph> graphs;
  std::map<GraphExecHandle, FakeGraph> executables;
  std::set<const void*> events;
  std::set<const void*> modules;
  std::map<const void*, std::string> functions;
  std::map<DeviceOrdinal, int> retained;
  uintptr_t next_handle = 0x1000;

  void forget() {
    version = 13000;
    device_count = 2;
    total_memory = size_t{1} << 32;
    blocks_per_sm = 2;
    active_clusters = 4;
    parameter_count = 0;
    kernels = "row_sum\ncopy\n";
    capturing = false;
    capture_mode = CaptureMode::kGlobal;
    busy = false;
    pending_fault = 0;
    faults.clear();
    log.clear();
    launched.clear();
    foreign = 0;
    device_attributes.clear();
    function_attributes = {{FunctionAttribute::kMaxThreadsPerBlock, 1024},
                           {FunctionAttribute::kSharedSizeBytes, 1024},
                           {FunctionAttribute::kLocalSizeBytes, 16},
                           {FunctionAttribute::kNumRegs, 40},
                           {FunctionAttribute::kMaxDynamicSharedSizeBytes, 48128},
                           {FunctionAttribute::kRequiredClusterWidth, 0},
                           {FunctionAttribute::kRequiredClusterHeight, 0},
                           {FunctionAttribute::kRequiredClusterDepth, 0},
                           {FunctionAttribute::kNonPortableClusterSizeAllowed, 0}};
  }
  Fake() {
    forget();
    kernels.clear();
  }

  bool is_stream(const void* stream) const {
    return stream == nullptr || streams.count(stream) != 0;
  }

  template <class Handle>
  Handle make_handle() {
    return reinterpret_cast<Handle>(next_handle += 0x10);
  }
  size_t used() const {
    size_t bytes = 0;
    for (const auto& [address, size] : allocations) bytes += size;
    return bytes;
  }

  void reset() override {
    std::lock_guard<std::mutex> lock(mutex);
    forget();
  }
  void fail(const char* symbol, int code, int after) override {
    std::lock_guard<std::mutex> lock(mutex);
    faults[symbol] = {code, after};
  }
  void fault(int code) override {
    std::lock_guard<std::mutex> lock(mutex);
    pending_fault = code;
  }
  void set_version(int value) override { version = value; }
  void set_device_count(int count) override { device_count = count; }
  void set_device_attribute(DeviceAttribute attribute, int value) override {
    device_attributes[attribute] = value;
  }
  void set_memory(size_t total) override { total_memory = total; }
  void set_blocks_per_sm(int blocks) override { blocks_per_sm = blocks; }
  void set_active_clusters(int clusters) override { active_clusters = clusters; }
  void set_parameter_count(int count) override { parameter_count = count; }
  void set_kernels(const char* names) override { kernels = names; }
  void set_function_attribute(FunctionAttribute attribute, int value) override {
    function_attributes[attribute] = value;
  }
  void set_capturing(bool value) override { capturing = value; }
  void set_busy(bool value) override { busy = value; }

  std::vector<std::string> calls() override {
    std::lock_guard<std::mutex> lock(mutex);
    return log;
  }
  int call_count() override {
    std::lock_guard<std::mutex> lock(mutex);
    return static_cast<int>(log.size());
  }
  std::vector<FakeLaunch> launches() override {
    std::lock_guard<std::mutex> lock(mutex);
    return launched;
  }
  FakeLive live() override {
    std::lock_guard<std::mutex> lock(mutex);
    FakeLive live;
    live.allocations = static_cast<int>(allocations.size());
    live.host_allocations = static_cast<int>(host_allocations.size());
    live.pools = static_cast<int>(pools.size());
    live.streams = static_cast<int>(streams.size());
    live.events = static_cast<int>(events.size());
    live.modules = static_cast<int>(modules.size());
    live.graphs = static_cast<int>(graphs.size() + executables.size());
    for (const auto& [device, count] : retained) live.contexts += count;
    return live;
  }
  void drop_live() override {
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto& [address, size] : allocations) std::free(reinterpret_cast<void*>(address));
    for (void* memory : host_allocations) std::free(memory);
    allocations.clear();
    host_allocations.clear();
    pools.clear();
    streams.clear();
    events.clear();
    modules.clear();
    captures.clear();
    graphs.clear();
    executables.clear();
    retained.clear();
  }
  ContextHandle current_context() override { return contexts.empty() ? nullptr : contexts.back(); }
  void set_current_context(ContextHandle context) override {
    contexts.clear();
    if (context != nullptr) contexts.push_back(context);
  }
  void renew_contexts() override { ++resets; }
  void set_foreign(DevicePointer address) override { foreign = address; }
  ContextHandle foreign_context() override { return reinterpret_cast<ContextHandle>(0xF00D); }
};

}  // namespace heddle::runtime::cuda
