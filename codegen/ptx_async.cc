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

// ".release.cta.shared::cluster.b64 ": order, scope and place. The default scope has everyone in it who
// may be at the other end.
std::string Emitter::mbarrier_order(const Op& op, ir::MemoryOrder strong) {
  const bool remote = type(op.view()).space == ir::Space::kSharedCluster;
  const bool waits = strong == ir::MemoryOrder::kAcquire;
  const bool far = remote || (waits && kernel_.cluster.count() > 1);
  if (is_relaxed(op)) {
    use(ir::Feature::kRelaxedMbarriers);
  }
  return absl::StrCat(
      ordering_of(op, strong, far ? ir::MemoryScope::kCluster : ir::MemoryScope::kBlock),
      remote ? ".shared::cluster.b64 " : ".shared::cta.b64 ");
}

void Emitter::emit_mbarrier(OpId id, const Op& op) {
  using ir::MemoryOrder;
  const Address at = address(id, op.view());
  const auto number = [&](ValueId value) { return in_register(elements(value)[0]); };
  switch (op.opcode) {
    case ir::Opcode::kMbarrierInit:
      return out_->instruction("mbarrier.init.shared::cta.b64 ", at, ", ", number(op.count()));
    case ir::Opcode::kMbarrierInval:
      return out_->instruction("mbarrier.inval.shared::cta.b64 ", at);
    case ir::Opcode::kCopyArrive:
      return out_->instruction("cp.async.mbarrier.arrive.noinc.shared::cta.b64 ", at);
    // Another block's barrier gives no state back, so arrivals ask for none.
    case ir::Opcode::kMbarrierArrive: {
      OptionalOperand<Operand> count;
      if (valid(op.count())) count.part = number(op.count());
      return out_->instruction("mbarrier.arrive", mbarrier_order(op, MemoryOrder::kRelease), "_, ",
                               at, count);
    }
    case ir::Opcode::kMbarrierExpectTx:
      return out_->instruction("mbarrier.arrive.expect_tx",
                               mbarrier_order(op, MemoryOrder::kRelease), "_, ", at, ", ",
                               number(op.bytes()));
    case ir::Opcode::kMbarrierAnnounceTx:
      return out_->instruction("mbarrier.expect_tx", mbarrier_order(op, MemoryOrder::kRelaxed), at,
                               ", ", number(op.bytes()));
    default: {
      const Operand parity = number(op.parity());
      const Operand& ended = define(op.result())[0];
      return out_->instruction("mbarrier.test_wait.parity",
                               mbarrier_order(op, MemoryOrder::kAcquire), ended, ", ", at, ", ",
                               parity);
    }
  }
}

// PTX may give up after a while: then it is asked again.
void Emitter::emit_mbarrier_wait(OpId id, const Op& op) {
  const Address at = address(id, op.view());
  const Operand parity = in_register(elements(op.parity())[0]);
  const Operand ended = fresh(RegClass::kPred);
  const Label again = new_label();
  put_label(again);
  out_->instruction("mbarrier.try_wait.parity", mbarrier_order(op, ir::MemoryOrder::kAcquire),
                    ended, ", ", at, ", ", parity);
  branch(ended, false, again, false);
}

void Emitter::emit_mbarrier_fence() { out_->instruction("fence.mbarrier_init.release.cluster"); }

void Emitter::emit_fence_async(const Op& op) {
  static constexpr absl::string_view kSpaces[] = {".shared::cta", ".global", ""};
  out_->instruction(
      "fence.proxy.async",
      kSpaces[op.attr_or(AttrKey::kSpace, static_cast<int64_t>(ir::FenceSpace::kShared))]);
}

void Emitter::emit_store_async(OpId id, const Op& op) {
  check_bounds(id, op.view(), op.check());
  const Type value = type(op.value());
  const Address at = address(id, op.view());
  const Address told = start_of(op.barrier());
  absl::InlinedVector<Operand, 4> registers;
  for (int i = 0; i < layout_of(value).count; ++i) {
    registers.push_back(in_register(elements(op.value())[i]));
  }
  for_each_access(type(op.view()), layout_of(value), value.bytes(),
                  [&](int first, int count, absl::string_view suffix) {
                    out_->instruction("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes",
                                      suffix, ' ', at, ", ",
                                      Vector{registers.data() + first, count}, ", ", told);
                  });
}

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
