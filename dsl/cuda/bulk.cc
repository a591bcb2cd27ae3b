#include "heddle/dsl/cuda/bulk.h"

#include "heddle/dsl/access_internal.h"

namespace heddle::detail {

using ir::AttrKey;
using ir::Opcode;

namespace {

// The view that starts at a place, of one element: the copy says how far it goes.
ir::ValueId start_of(Trace& trace, const Access& place, ir::Scalar scalar) {
  const AccessOperands p = record_access(trace, place, scalar_type(scalar), place.loc);
  return part_of(trace, p.view, p.offset);
}

ir::ValueId bytes_of(Trace& trace, const Node& elements, ir::Scalar scalar, SourceLoc loc) {
  const ir::ValueId size =
      trace.constant(ir::kI32Type, static_cast<uint64_t>(ir::bytes_of(scalar)));
  return trace.create(Opcode::kBitcast,
                      {trace.create(Opcode::kMul, {trace.use(elements, loc), size})}, ir::kU32Type);
}

Trace* current(SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) report(loc, "a bulk copy outside a kernel", "write it in the lambda");
  return trace;
}

// The barrier that is told, as a view.
ir::ValueId told_by(Trace& trace, const BulkBarrier& barrier, SourceLoc loc) {
  const ir::ValueId words = trace.use(barrier.words, loc);
  return part_of(trace, words, trace.use(barrier.index, loc));
}

void record_copy(Trace& trace, Opcode opcode, const BulkCopy& copy, const BulkBarrier* barrier,
                 const Node* ranks, AccessAttrs attrs) {
  const SourceLoc loc = copy.to.loc;
  absl::InlinedVector<ir::ValueId, 5> operands = {start_of(trace, copy.to, copy.scalar),
                                                  start_of(trace, copy.from, copy.scalar),
                                                  bytes_of(trace, copy.count, copy.scalar, loc)};
  if (barrier != nullptr) operands.push_back(told_by(trace, *barrier, loc));
  if (ranks != nullptr) operands.push_back(trace.use(*ranks, loc));
  const AccessAttrs hints = copy_attrs(trace, {&copy.to, &copy.from});
  attrs.insert(attrs.end(), hints.begin(), hints.end());
  trace.create(opcode, operands, ir::Type::none(), attrs);
}

}  // namespace

void emit_bulk(ir::Opcode opcode, const BulkCopy& copy, const BulkBarrier* barrier,
               const Node* ranks) {
  if (Trace* const trace = current(copy.to.loc))
    record_copy(*trace, opcode, copy, barrier, ranks, {});
}

int bytes_of(const Node& value) { return ir::bytes_of(value.type.scalar); }

void emit_store_async(const Access& to, const Node& value, const BulkBarrier& barrier,
                      SourceLoc loc) {
  Trace* const trace = current(loc);
  if (trace == nullptr) return;
  const AccessOperands place = record_access(*trace, to, value.type, loc);
  absl::InlinedVector<ir::ValueId, 5> operands = {place.view, trace->use(value, loc), place.offset,
                                                  told_by(*trace, barrier, loc)};
  if (ir::valid(place.check)) operands.push_back(place.check);
  trace->create(Opcode::kStoreAsync, operands, ir::Type::none());
}

void emit_bulk_reduce(AtomicKind kind, const BulkCopy& copy, const BulkBarrier* barrier) {
  Trace* const trace = current(copy.to.loc);
  if (trace == nullptr) return;
  record_copy(*trace, Opcode::kBulkReduce, copy, barrier, nullptr,
              {{AttrKey::kOp, static_cast<int64_t>(kind)}});
}

void emit_bulk_prefetch(const Access& from, ir::Scalar scalar, const Node& count) {
  Trace* const trace = current(from.loc);
  if (trace == nullptr) return;
  const ir::ValueId source = start_of(*trace, from, scalar);
  trace->create(Opcode::kBulkPrefetch, {source, bytes_of(*trace, count, scalar, from.loc)},
                ir::Type::none(), copy_attrs(*trace, {&from}));
}

void emit_bulk_wait(ir::Opcode opcode, int groups, SourceLoc loc) {
  const ir::Attr attr{AttrKey::kGroups, groups};
  record(opcode, {}, {}, absl::MakeConstSpan(&attr, 1), loc);
}

}  // namespace heddle::detail
