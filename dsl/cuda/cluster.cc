#include "heddle/dsl/cuda/cluster.h"

#include "heddle/dsl/trace/trace_internal.h"

namespace heddle {
namespace detail {

Node emit_map_shared(Node view, Node block, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return made_outside(view.type, "map_shared", loc);
  trace->set_place(loc);
  const ir::ValueId array = trace->use(view, loc);
  const ir::Type own = trace->kernel().type(array);
  const ir::Type mapped =
      ir::Type::view(own.scalar, ir::Space::kSharedCluster, own.rank, own.read_only);
  return trace->node(
      trace->create(ir::Opcode::kMapShared, {array, trace->use(block, loc)}, mapped));
}

}  // namespace detail

void cluster_arrive(MemoryOrder order, SourceLoc loc) {
  const ir::Attr attr{ir::AttrKey::kOrder, static_cast<int64_t>(order)};
  detail::record(ir::Opcode::kClusterArrive, {}, {}, {attr}, loc);
}

int cluster_size() {
  detail::Trace* const trace = detail::Trace::current();
  return trace == nullptr ? 1 : static_cast<int>(trace->kernel().cluster.count());
}

}  // namespace heddle
