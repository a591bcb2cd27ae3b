// Copies of boxes by the copy engine (TMA). A tensor map is the generic address of a parameter.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/check.h"
#include "heddle/ir/launch/tensor_map.h"

namespace heddle::codegen {

using ir::AttrKey;
using ir::Opcode;

void Emitter::emit_tensor_map(OpId id, const Op& op) {
  const auto& maps = params_.tensor_maps;
  const auto slot = std::find_if(maps.begin(), maps.end(),
                                 [id](const ir::MapSlot& candidate) { return candidate.op == id; });
  HEDDLE_CHECK(slot != maps.end(), "the parameter block lacks a tensor map");
  const size_t index =
      params_.slots.size() + params_.at_launch.size() + static_cast<size_t>(slot - maps.begin());
  const Operand in_param_space = fresh(RegClass::kB64);
  entry_text_.instruction("mov.b64 ", in_param_space, ", ", param_name(index));
  entry_text_.instruction("cvta.param.u64 ", define(op.result())[0], ", ", in_param_space);
}

Emitter::Box Emitter::box_at(const Op& op) {
  Box box{.dimensions = absl::StrCat(static_cast<int>(type(op.map()).rank), "d"),
          .map = elements(op.map())[0],
          .coordinates = {}};
  for (const ValueId coordinate : op.coordinates()) {
    box.coordinates.push_back(in_register(elements(coordinate)[0]));
  }
  return box;
}

void Emitter::emit_tma_load(const Op& op) {
  const Box box = box_at(op);
  OptionalOperand<Operand> ranks;
  if (op.opcode == Opcode::kTmaLoadMulticast) {
    ranks.part = fresh(RegClass::kB16);
    out_->instruction("cvt.u16.u32 ", *ranks.part, ", ", elements(op.mask())[0]);
  }
  out_->instruction("cp.async.bulk.tensor.", box.dimensions,
                    ".shared::cluster.global.tile.mbarrier::complete_tx::bytes",
                    ranks.part ? ".multicast::cluster" : "", cache_modifiers(op), ' ',
                    start_of(op.dst()), ", [", box.map, ", ", box.place(), "], ",
                    start_of(op.barrier()), ranks, policy_of(op));
}

void Emitter::emit_tma_store(const Op& op) {
  const Box box = box_at(op);
  std::string head = "cp.async.bulk.tensor.";
  std::string reduction;
  if (op.opcode == Opcode::kTmaReduce) {
    head = "cp.reduce.async.bulk.tensor.";
    reduction = absl::StrCat(".", ir::kAtomicOpNames[static_cast<size_t>(*op.attr(AttrKey::kOp))]);
  }
  out_->instruction(head, box.dimensions, ".global.shared::cta", reduction, ".tile.bulk_group",
                    cache_modifiers(op), " [", box.map, ", ", box.place(), "], ",
                    start_of(op.src()), policy_of(op));
}

void Emitter::emit_tma_prefetch(const Op& op) {
  const Box box = box_at(op);
  out_->instruction("cp.async.bulk.prefetch.tensor.", box.dimensions, ".L2.global.tile",
                    cache_modifiers(op), " [", box.map, ", ", box.place(), ']', policy_of(op));
}

}  // namespace heddle::codegen
