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

}  // namespace heddle::codegen
