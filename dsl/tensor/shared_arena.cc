#include "heddle/dsl/tensor/shared_arena.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

using ir::AttrKey;

void add_to_region(RegionState& region, const Node& array, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return;  // reported where the array was made
  ir::Kernel& kernel = trace->kernel();
  if (region.arena->number < 0) {
    region.arena->number = 0;
    kernel.walk([&](ir::OpId id) {
      const int64_t next = kernel.op(id).attr_or(AttrKey::kArena, -1) + 1;
      region.arena->number = std::max(region.arena->number, next);
    });
  }
  const ir::OpId def = kernel.value(trace->use(array, loc)).def;
  if (!ir::valid(def) || kernel.op(def).opcode != ir::Opcode::kShared) return;  // reported
  const std::string name = absl::StrCat(region.name, "[", region.arrays.size(), "]");
  ir::Op& op = kernel.op(def);
  op.set_attr(AttrKey::kArena, region.arena->number);
  op.set_attr(AttrKey::kRegion, region.number);
  op.set_attr(AttrKey::kName, static_cast<int64_t>(ir::index_of(kernel.intern(name))));
  region.arrays.push_back(array);
}

void begin_region(const RegionState& region, SourceLoc loc) {
  for (const Node& array : region.arrays) emit(op::kSharedBegin, array, loc);
}

}  // namespace heddle::detail
