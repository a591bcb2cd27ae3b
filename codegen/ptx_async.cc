// Copies that nobody waits for at once, and barriers of a part of a block and of a cluster.
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/atomic.h"

namespace heddle::codegen {

using ir::AttrKey;

void Emitter::emit_copy_async(OpId id, const Op& op) {
  const bool conditional = op.opcode == ir::Opcode::kCopyAsyncIf;
  // Of the destination, then of the source.
  const absl::Span<const ValueId> checks = op.checks();
  if (!checks.empty()) check_bounds(id, op.dst(), checks[0]);
  if (checks.size() > 1 && options_.device_checks) {
    Operand inside = elements(checks[1])[0];
    if (conditional) {
      const Operand skips = fresh(RegClass::kPred);
      out_->instruction("not.pred ", skips, ", ", in_register(elements(op.condition())[0]));
      const Operand either = fresh(RegClass::kPred);
      out_->instruction("or.pred ", either, ", ", in_register(inside), ", ", skips);
      inside = either;
    }
    fail_outside(id, op.src(), inside);
  }
  const int bytes = static_cast<int>(*op.attr(AttrKey::kWidth)) * bytes_of(type(op.dst()).scalar);
  const Address to = start_of(op.dst());
  const Address from = start_of(op.src());
  // How many bytes are read; zeros stand for the others.
  OptionalOperand<Operand> taken;
  if (conditional) {
    const Operand condition = elements(op.condition())[0];
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
  out_->instruction(waits ? "bar.sync " : "bar.arrive ", elements(op.id())[0], ", ",
                    *op.attr(AttrKey::kThreads));
}

// --- Barriers in shared memory, and bulk copies ---

void Emitter::emit_mbarrier(OpId id, const Op& op) {
  const Address at = address(id, op.view());
  if (op.opcode == ir::Opcode::kMbarrierInit) {
    return out_->instruction("mbarrier.init.shared::cta.b64 ", at, ", ",
                             in_register(elements(op.count())[0]));
  }
  // Other blocks' barriers are arrived at for the whole cluster, and give no state back.
  const bool remote = type(op.view()).space == ir::Space::kSharedCluster;
  const absl::string_view where =
      remote ? ".release.cluster.shared::cluster.b64 _" : ".release.cta.shared::cta.b64 _";
  if (op.opcode == ir::Opcode::kMbarrierArrive) {
    return out_->instruction("mbarrier.arrive", where, ", ", at);
  }
  out_->instruction("mbarrier.arrive.expect_tx", where, ", ", at, ", ",
                    in_register(elements(op.bytes())[0]));
}

// PTX may give up after a while: then it is asked again.
void Emitter::emit_mbarrier_wait(OpId id, const Op& op) {
  const Address at = address(id, op.view());
  const Operand parity = in_register(elements(op.parity())[0]);
  const Operand ended = fresh(RegClass::kPred);
  const Label again = new_label();
  put_label(again);
  // Other blocks of a cluster may arrive as well, and bring data.
  const bool alone = kernel_.cluster.count() == 1;
  out_->instruction("mbarrier.try_wait.parity.acquire", alone ? ".cta" : ".cluster",
                    ".shared::cta.b64 ", ended, ", ", at, ", ", parity);
  branch(ended, false, again, false);
}

void Emitter::emit_mbarrier_fence() { out_->instruction("fence.mbarrier_init.release.cluster"); }

void Emitter::emit_bulk(const Op& op) {
  const bool reduces = op.opcode == ir::Opcode::kBulkReduce;
  const bool tells = op.opcode != ir::Opcode::kBulkStore && valid(op.barrier());
  const bool multicasts = op.opcode == ir::Opcode::kBulkLoad && valid(op.mask());
  const auto is_global = [&](ValueId view) { return type(view).space == ir::Space::kGlobal; };
  OptionalOperand<Address> barrier;
  if (tells) barrier.part = start_of(op.barrier());
  OptionalOperand<Operand> ranks;
  if (multicasts) {
    ranks.part = fresh(RegClass::kB16);
    out_->instruction("cvt.u16.u32 ", *ranks.part, ", ", elements(op.mask())[0]);
  }
  std::string head = absl::StrCat(reduces ? "cp.reduce.async.bulk" : "cp.async.bulk",
                                  is_global(op.dst()) ? ".global" : ".shared::cluster",
                                  is_global(op.src()) ? ".global" : ".shared::cta",
                                  tells ? ".mbarrier::complete_tx::bytes" : ".bulk_group",
                                  multicasts ? ".multicast::cluster" : "", cache_modifiers(op));
  if (reduces) {
    const auto kind = static_cast<ir::AtomicOp>(*op.attr(AttrKey::kOp));
    absl::StrAppend(&head, ".", ir::kAtomicOpNames[static_cast<size_t>(kind)],
                    atomic_type(kind, ir::Type::of(type(op.dst()).scalar)));
  }
  const Address to = start_of(op.dst());
  const Address from = start_of(op.src());
  const Operand bytes = in_register(elements(op.bytes())[0]);
  out_->instruction(head, ' ', to, ", ", from, ", ", bytes, barrier, ranks, policy_of(op));
}

void Emitter::emit_bulk_prefetch(const Op& op) {
  const Address from = start_of(op.src());
  const Operand bytes = in_register(elements(op.bytes())[0]);
  out_->instruction("cp.async.bulk.prefetch.L2.global", cache_modifiers(op), ' ', from, ", ", bytes,
                    policy_of(op));
}

void Emitter::emit_set_max_registers(const Op& op) {
  const bool more = op.attr_or(AttrKey::kIncrease, 0) != 0;
  out_->instruction(more ? "setmaxnreg.inc.sync.aligned.u32 " : "setmaxnreg.dec.sync.aligned.u32 ",
                    *op.attr(AttrKey::kCount));
}

}  // namespace heddle::codegen
