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

// The lanes copy the parameter's map to shared memory, a word each; one replaces what differs; then the warp copies
// the map to global memory, with a fence to the proxy that reads maps.
void Emitter::emit_tensor_map_replace(const Op& op) {
  const Operand lane = entry(Entry::kLane);
  const Operand near = near_address(start_of(op.src()));
  const Operand offset = fresh(RegClass::kB32), word_to = fresh(RegClass::kB32);
  out_->instruction("shl.b32 ", offset, ", ", lane, ", 2");
  out_->instruction("add.s32 ", word_to, ", ", near, ", ", offset);
  const Operand wide = fresh(RegClass::kB64), word_from = fresh(RegClass::kB64);
  out_->instruction("cvt.u64.u32 ", wide, ", ", offset);
  out_->instruction("add.s64 ", word_from, ", ", elements(op.map())[0], ", ", wide);
  const Operand word = fresh(RegClass::kB32);
  out_->instruction("ld.b32 ", word, ", ", Address{word_from});
  out_->instruction("st.shared.b32 ", Address{word_to}, ", ", word);
  out_->instruction("bar.warp.sync 0xffffffff");

  const Operand leads = fresh(RegClass::kPred);
  out_->instruction("setp.eq.b32 ", leads, ", ", lane, ", 0");
  const auto replace = [&](absl::string_view field, const Operand& value,
                           std::optional<int> dimension = std::nullopt) {
    const std::string ordinal = dimension ? absl::StrCat(", ", *dimension) : "";
    out_->instruction(PredicatePrefix{leads}, "tensormap.replace.tile.", field,
                      ".shared::cta.b1024.", info(value.reg_class).type, ' ', Address{near},
                      ordinal, ", ", value);
  };
  const Operand start = fresh(RegClass::kB64);
  generic_address(start_of(op.view()), start);
  replace("global_address", start);
  const int rank = type(op.result()).rank;
  const int size = bytes_of(type(op.result()).scalar);
  const auto number = [&](int i) {
    return in_register(elements(op.numbers()[static_cast<size_t>(i)])[0]);
  };
  for (int d = 0; d < rank; ++d) {
    const Operand extent = fresh(RegClass::kB32);
    out_->instruction("cvt.u32.u64 ", extent, ", ", number(d));
    replace("global_dim", extent, d);
  }
  for (int d = 1; d < rank; ++d) {
    const Operand bytes = fresh(RegClass::kB64);
    out_->instruction("mul.lo.s64 ", bytes, ", ", number(rank + d - 1), ", ", size);
    replace("global_stride", bytes, d - 1);
  }
  out_->instruction("bar.warp.sync 0xffffffff");
  const Address target = start_of(op.dst());
  out_->instruction(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned ",
      target, ", ", Address{near}, ", ", ir::kTensorMapBytes);
  const Operand made = define(op.result())[0];
  generic_address(target, made);
  out_->instruction("fence.proxy.tensormap::generic.acquire.gpu ", Address{made}, ", ",
                    ir::kTensorMapBytes);
}

Emitter::Box Emitter::box_at(const Op& op) {
  Box box{.dimensions = absl::StrCat(static_cast<int>(type(op.map()).rank), "d"),
          .map = elements(op.map())[0],
          .coordinates = {}};
  const auto rank = static_cast<size_t>(type(op.map()).rank);
  for (const ValueId coordinate : op.coordinates().first(rank)) {
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
  // Offsets of an im2col map.
  absl::InlinedVector<Operand, 3> offsets;
  for (const ValueId offset : op.coordinates().subspan(box.coordinates.size())) {
    offsets.push_back(fresh(RegClass::kB16));
    out_->instruction("cvt.u16.u32 ", offsets.back(), ", ", in_register(elements(offset)[0]));
  }
  OptionalOperand<Vector> away;
  if (!offsets.empty()) {
    away.part = Vector{offsets.data(), static_cast<int>(offsets.size()), /*braced=*/true};
  }
  out_->instruction("cp.async.bulk.tensor.", box.dimensions, ".shared::cluster.global",
                    away.part ? ".im2col" : ".tile", ".mbarrier::complete_tx::bytes",
                    ranks.part ? ".multicast::cluster" : "", cache_modifiers(op), ' ',
                    start_of(op.dst()), ", [", box.map, ", ", box.place(), "], ",
                    start_of(op.barrier()), away, ranks, policy_of(op));
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
