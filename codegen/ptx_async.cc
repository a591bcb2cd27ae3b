// Copies that nobody waits for at once, and barriers of a part of a block and of a cluster.
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/atomic.h"

namespace heddle::codegen {

using ir::AttrKey;

void Emitter::emit_copy_async(OpId id, const Op& op) {
  const bool conditional = op.opcode == ir::Opcode::kCopyAsyncIf;
  const size_t to_check = conditional ? 3 : 2, from_check = to_check + 1;
  if (op.operands.size() > to_check) check_bounds(id, op, to_check);
  if (op.operands.size() > from_check && options_.device_checks) {
    Operand inside = elements(op.operands[from_check])[0];
    if (conditional) {
      const Operand skips = fresh(RegClass::kPred);
      out_->instruction("not.pred ", skips, ", ", in_register(elements(op.operands[2])[0]));
      const Operand either = fresh(RegClass::kPred);
      out_->instruction("or.pred ", either, ", ", in_register(inside), ", ", skips);
      inside = either;
    }
    fail_outside(id, op.operands[1], inside);
  }
  const int bytes =
      static_cast<int>(*op.attr(AttrKey::kWidth)) * bytes_of(type(op.operands[0]).scalar);
  const Address to = start_of(op.operands[0]);
  const Address from = start_of(op.operands[1]);
  // How many bytes are read; zeros stand for the others.
  OptionalOperand<Operand> taken;
  if (conditional) {
    const Operand condition = elements(op.operands[2])[0];
    const auto all = static_cast<uint32_t>(bytes);
    taken.part = condition.is_constant ? Operand::b32(condition.payload != 0 ? all : 0)
                                       : fresh(RegClass::kB32);
    if (!condition.is_constant) {
      out_->instruction("selp.b32 ", *taken.part, ", ", bytes, ", 0, ", condition);
    }
  }
  // What goes to shared memory need not stay in L1, where PTX allows to say so.
  out_->instruction(bytes == 16 ? "cp.async.cg" : "cp.async.ca", ".shared.global",
                    cache_modifiers(op), ' ', to, ", ", from, ", ", bytes, taken, policy_of(op));
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
  // Other blocks of a cluster may arrive as well, and bring data.
  const bool alone = kernel_.cluster.count() == 1;
  out_->instruction("mbarrier.try_wait.parity.acquire", alone ? ".cta" : ".cluster",
                    ".shared::cta.b64 ", ended, ", ", at, ", ", parity);
  branch(ended, false, again, false);
}

void Emitter::emit_mbarrier_fence() {
  raise_version(80);
  out_->instruction("fence.mbarrier_init.release.cluster");
}

void Emitter::emit_bulk(const Op& op) {
  raise_version(80);
  const bool reduces = op.opcode == ir::Opcode::kBulkReduce;
  const bool tells = op.operands.size() > 3;
  const auto is_global = [&](size_t i) { return type(op.operands[i]).space == ir::Space::kGlobal; };
  OptionalOperand<Address> barrier;
  if (tells) barrier.part = start_of(op.operands[3]);
  OptionalOperand<Operand> ranks;
  if (op.operands.size() > 4) {
    ranks.part = fresh(RegClass::kB16);
    out_->instruction("cvt.u16.u32 ", *ranks.part, ", ", elements(op.operands[4])[0]);
  }
  std::string head = absl::StrCat(reduces ? "cp.reduce.async.bulk" : "cp.async.bulk",
                                  is_global(0) ? ".global" : ".shared::cluster",
                                  is_global(1) ? ".global" : ".shared::cta",
                                  tells ? ".mbarrier::complete_tx::bytes" : ".bulk_group",
                                  ranks.part ? ".multicast::cluster" : "", cache_modifiers(op));
  if (reduces) {
    const auto kind = static_cast<ir::AtomicOp>(*op.attr(AttrKey::kOp));
    absl::StrAppend(&head, ".", ir::kAtomicOpNames[static_cast<size_t>(kind)],
                    atomic_type(kind, ir::Type::of(type(op.operands[0]).scalar)));
  }
  const Address to = start_of(op.operands[0]);
  const Address from = start_of(op.operands[1]);
  const Operand bytes = in_register(elements(op.operands[2])[0]);
  out_->instruction(head, ' ', to, ", ", from, ", ", bytes, barrier, ranks, policy_of(op));
}

void Emitter::emit_bulk_prefetch(const Op& op) {
  raise_version(80);
  const Address from = start_of(op.operands[0]);
  const Operand bytes = in_register(elements(op.operands[1])[0]);
  out_->instruction("cp.async.bulk.prefetch.L2.global", cache_modifiers(op), ' ', from, ", ", bytes,
                    policy_of(op));
}

void Emitter::emit_set_max_registers(const Op& op) {
  const bool more = op.attr_or(AttrKey::kIncrease, 0) != 0;
  out_->instruction(more ? "setmaxnreg.inc.sync.aligned.u32 " : "setmaxnreg.dec.sync.aligned.u32 ",
                    *op.attr(AttrKey::kCount));
}

}  // namespace heddle::codegen
