// The functions of graphs that the stand-in for libcuda exports.
#include <algorithm>

#include "runtime/cuda/fake_cuda/fake_call.h"

using namespace heddle::runtime::cuda;  // NOLINT: the functions below stand outside any namespace

namespace {

constexpr Result kIllegalState{401};

// Adds a node that depends on nodes of the same graph.
Result add(Call& call, GraphHandle graph, GraphNodeHandle* node, const GraphNodeHandle* after,
           size_t count, std::vector<FakeLaunch> launches) {
  if (call.faulted()) return call.result();
  const auto found = fake().graphs.find(graph);
  if (found == fake().graphs.end()) return kInvalidHandle;
  for (size_t i = 0; i < count; ++i) {
    if (found->second.find(after[i]) == nullptr) return kInvalidValue;
  }
  *node = fake().make_handle<GraphNodeHandle>();
  found->second.nodes.push_back({*node, std::move(launches), true});
  return Result::kSuccess;
}

// A node of an executable.
FakeGraph::Node* node_of(GraphExecHandle executable, GraphNodeHandle node) {
  const auto found = fake().executables.find(executable);
  return found == fake().executables.end() ? nullptr : found->second.find(node);
}

FakeLaunch launch_of(const KernelNodeParameters& node) {
  FakeLaunch launch = launch_of(node.function, node.parameters, node.extra);
  launch.config = {node.grid_x,
                   node.grid_y,
                   node.grid_z,
                   node.block_x,
                   node.block_y,
                   node.block_z,
                   node.dynamic_shared_bytes,
                   nullptr,
                   nullptr,
                   0};
  return launch;
}

}  // namespace

extern "C" {

Result cuStreamBeginCapture_v2(DriverStream stream, CaptureMode mode) {
  Call call("cuStreamBeginCapture_v2", kContext, text(static_cast<uint64_t>(mode)));
  if (call.faulted()) return call.result();
  if (stream == nullptr) return kCaptureUnsupported;
  if (!fake().is_stream(stream)) return kInvalidHandle;
  if (fake().captures.count(stream) != 0) return kIllegalState;
  const auto graph = fake().make_handle<GraphHandle>();
  fake().graphs[graph];
  fake().captures[stream] = {reinterpret_cast<uint64_t>(graph), graph};
  return Result::kSuccess;
}

Result cuStreamEndCapture(DriverStream stream, GraphHandle* graph) {
  Call call("cuStreamEndCapture", kContext);
  const auto found = fake().captures.find(stream);
  if (found == fake().captures.end()) return kIllegalState;
  const GraphHandle captured = found->second.graph;
  fake().captures.erase(found);
  if (call.faulted()) {
    fake().graphs.erase(captured);
    return call.result();
  }
  *graph = captured;
  return Result::kSuccess;
}

Result cuStreamGetCaptureInfo_v2(DriverStream stream, CaptureStatus* status, uint64_t* id,
                                 GraphHandle*, const GraphNodeHandle**, size_t*) {
  Call call("cuStreamGetCaptureInfo_v2", kContext);
  if (call.failed()) return call.result();
  const auto found = fake().captures.find(stream);
  *status = found == fake().captures.end() ? CaptureStatus::kNone : CaptureStatus::kActive;
  if (found != fake().captures.end()) *id = found->second.id;
  return Result::kSuccess;
}

Result cuGraphCreate(GraphHandle* graph, unsigned) {
  Call call("cuGraphCreate", kInit);
  if (call.failed()) return call.result();
  *graph = fake().make_handle<GraphHandle>();
  fake().graphs[*graph];
  return Result::kSuccess;
}

Result cuGraphDestroy(GraphHandle graph) {
  Call call("cuGraphDestroy", kInit);
  if (call.failed()) return call.result();
  return fake().graphs.erase(graph) != 0 ? Result::kSuccess : kInvalidHandle;
}

Result cuGraphAddEmptyNode(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                           size_t count) {
  Call call("cuGraphAddEmptyNode", kContext);
  return add(call, graph, node, after, count, {});
}

Result cuGraphAddKernelNode_v2(GraphNodeHandle* node, GraphHandle graph,
                               const GraphNodeHandle* after, size_t count,
                               const KernelNodeParameters* parameters) {
  Call call("cuGraphAddKernelNode_v2", kContext, text(count));
  return add(call, graph, node, after, count, {launch_of(*parameters)});
}

Result cuGraphKernelNodeSetAttribute(GraphNodeHandle node, LaunchAttributeId id,
                                     const LaunchAttribute::Value* value) {
  Call call("cuGraphKernelNodeSetAttribute", kContext, text(static_cast<uint64_t>(id)));
  if (call.failed()) return call.result();
  if (id == LaunchAttributeId::kProgrammaticStreamSerialization) return kInvalidValue;
  for (auto& [handle, graph] : fake().graphs) {
    FakeGraph::Node* const found = graph.find(node);
    if (found == nullptr) continue;
    found->launches[0].attributes.push_back({id, {}, *value});
    return Result::kSuccess;
  }
  return kInvalidHandle;
}

Result cuGraphAddChildGraphNode(GraphNodeHandle* node, GraphHandle graph,
                                const GraphNodeHandle* after, size_t count, GraphHandle child) {
  Call call("cuGraphAddChildGraphNode", kContext, text(count));
  return add(call, graph, node, after, count, fake().graphs[child].launches());
}

Result cuGraphInstantiateWithFlags(GraphExecHandle* executable, GraphHandle graph,
                                   unsigned long long) {  // NOLINT: the ABI says so
  Call call("cuGraphInstantiateWithFlags", kContext);
  if (call.faulted()) return call.result();
  *executable = fake().make_handle<GraphExecHandle>();
  fake().executables[*executable] = fake().graphs[graph];
  return Result::kSuccess;
}

Result cuGraphLaunch(GraphExecHandle executable, DriverStream stream) {
  Call call("cuGraphLaunch", kContext);
  if (call.faulted()) return call.result();
  const auto found = fake().executables.find(executable);
  if (found == fake().executables.end()) return kInvalidHandle;
  if (fake().captures.count(stream) != 0) return kCaptureUnsupported;
  const std::vector<FakeLaunch> launches = found->second.launches();
  fake().launched.insert(fake().launched.end(), launches.begin(), launches.end());
  return Result::kSuccess;
}

Result cuGraphExecUpdate_v2(GraphExecHandle executable, GraphHandle graph, GraphUpdateInfo* info) {
  Call call("cuGraphExecUpdate_v2", kContext);
  if (call.faulted()) return call.result();
  FakeGraph& target = fake().executables[executable];
  const FakeGraph& source = fake().graphs[graph];
  info->result = target.nodes.size() == source.nodes.size() ? 0 : 2;
  if (info->result != 0) return Result::kGraphUpdateFailure;
  target = source;
  return Result::kSuccess;
}

Result cuGraphExecKernelNodeSetParams_v2(GraphExecHandle executable, GraphNodeHandle node,
                                         const KernelNodeParameters* parameters) {
  Call call("cuGraphExecKernelNodeSetParams_v2", kContext);
  if (call.faulted()) return call.result();
  FakeGraph::Node* const found = node_of(executable, node);
  if (found == nullptr) return kInvalidHandle;
  FakeLaunch launch = launch_of(*parameters);
  launch.attributes = found->launches[0].attributes;
  found->launches = {std::move(launch)};
  return Result::kSuccess;
}

Result cuGraphExecChildGraphNodeSetParams(GraphExecHandle executable, GraphNodeHandle node,
                                          GraphHandle child) {
  Call call("cuGraphExecChildGraphNodeSetParams", kContext);
  if (call.faulted()) return call.result();
  FakeGraph::Node* const found = node_of(executable, node);
  if (found == nullptr) return kInvalidHandle;
  std::vector<FakeLaunch> launches = fake().graphs[child].launches();
  if (launches.size() != found->launches.size()) return Result::kGraphUpdateFailure;
  found->launches = std::move(launches);
  return Result::kSuccess;
}

Result cuGraphNodeSetEnabled(GraphExecHandle executable, GraphNodeHandle node, unsigned enabled) {
  Call call("cuGraphNodeSetEnabled", kContext, text(enabled));
  if (call.faulted()) return call.result();
  FakeGraph::Node* const found = node_of(executable, node);
  if (found == nullptr) return kInvalidHandle;
  found->enabled = enabled != 0;
  return Result::kSuccess;
}

Result cuGraphExecDestroy(GraphExecHandle executable) {
  Call call("cuGraphExecDestroy", kInit);
  if (call.failed()) return call.result();
  return fake().executables.erase(executable) != 0 ? Result::kSuccess : kInvalidHandle;
}

}  // extern "C"
