// Copies that nobody waits for at once, and barriers of a part of a block and of a cluster.
#include "heddle/codegen/ptx_emitter.h"

namespace heddle::codegen {

using ir::AttrKey;

void Emitter::emit_copy_async(OpId id, const Op& op) {
  for (size_t check = 2; check < op.operands.size(); ++check) check_bounds(id, op, check);
  const int bytes =
      static_cast<int>(*op.attr(AttrKey::kWidth)) * bytes_of(type(op.operands[0]).scalar);
  const Address to = start_of(op.operands[0]);
  const Address from = start_of(op.operands[1]);
  // What goes to shared memory need not stay in L1, where PTX allows to say so.
  out_->instruction(bytes == 16 ? "cp.async.cg" : "cp.async.ca", ".shared.global ", to, ", ", from,
                    ", ", bytes);
}

void Emitter::emit_named_barrier(const Op& op) {
  const bool waits = op.opcode == ir::Opcode::kBarrierSync;
  out_->instruction(waits ? "bar.sync " : "bar.arrive ", elements(op.operands[0])[0], ", ",
                    *op.attr(AttrKey::kThreads));
}

// --- Barriers in shared memory, and bulk copies ---

void Emitter::emit_mbarrier(OpId id, const Op& op) {
  raise_version(80);
  const Type view = type(op.operands[0]);
  const Address at = address(id, op.operands[0]);
  const auto value = [&] { return in_register(elements(op.operands[2])[0]); };
  if (op.opcode == ir::Opcode::kMbarrierInit) {
    return out_->instruction("mbarrier.init.shared::cta.b64 ", at, ", ", value());
  }
  // Other blocks' barriers are arrived at for the whole cluster, and give no state back.
  const bool remote = view.space == ir::Space::kSharedCluster;
  const absl::string_view where =
      remote ? ".release.cluster.shared::cluster.b64 _" : ".release.cta.shared::cta.b64 _";
  if (op.opcode == ir::Opcode::kMbarrierArrive) {
    return out_->instruction("mbarrier.arrive", where, ", ", at);
  }
  out_->instruction("mbarrier.arrive.expect_tx", where, ", ", at, ", ", value());
}

// PTX may give up after a while: then it is asked again.
void Emitter::emit_mbarrier_wait(OpId id, const Op& op) {
  raise_version(80);
  const Address at = address(id, op.operands[0]);
  const Operand parity = in_register(elements(op.operands[2])[0]);
  const Operand ended = fresh(RegClass::kPred);
  const Label again = new_label();
  put_label(again);
  out_->instruction("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 ", ended, ", ", at, ", ",
                    parity);
  branch(ended, false, again, false);
}

void Emitter::emit_mbarrier_fence() {
  raise_version(80);
  out_->instruction("fence.mbarrier_init.release.cluster");
}

void Emitter::emit_bulk(const Op& op) {
  raise_version(80);
  const Address to = start_of(op.operands[0]);
  const Address from = start_of(op.operands[1]);
  const Operand bytes = in_register(elements(op.operands[2])[0]);
  if (op.opcode == ir::Opcode::kBulkStore) {
    return out_->instruction("cp.async.bulk.global.shared::cta.bulk_group ", to, ", ", from, ", ",
                             bytes);
  }
  out_->instruction("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ", to, ", ",
                    from, ", ", bytes, ", ", start_of(op.operands[3]));
}

void Emitter::emit_set_max_registers(const Op& op) {
  const bool more = op.attr_or(AttrKey::kIncrease, 0) != 0;
  out_->instruction(more ? "setmaxnreg.inc.sync.aligned.u32 " : "setmaxnreg.dec.sync.aligned.u32 ",
                    *op.attr(AttrKey::kCount));
}

}  // namespace heddle::codegen
