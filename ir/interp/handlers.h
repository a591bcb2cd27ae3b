// Which handler runs an op on an element type. Internal; lower/*.cc asks, the files named below
// answer. A nullptr means that ops.def has no such op.
#pragma once

#include "heddle/ir/interp/code.h"
#include "heddle/ir/op_info.h"

namespace heddle::ir::interp {

// --- arithmetic.cc, bits.cc, compare.cc: d = op(a, b, c), elementwise over `count` elements ---
Handler elementwise_handler(Opcode opcode, Scalar scalar);
Handler arithmetic_handler(Opcode opcode, Scalar scalar);
Handler bits_handler(Opcode opcode, Scalar scalar);
Handler compare_handler(Opcode opcode, Scalar scalar);
// fma.cc: f32 and f64, with the processor's instruction where it has one. The portable one computes
// the same bits.
Handler fma_handler(Scalar scalar);
Handler portable_fma_handler(Scalar scalar);
// d = a ? b : c, a one bool for all elements; `bytes` is an element's size.
Handler select_handler(int bytes);

// --- rounding.cc: f32 and f64; aux: a Rounding ---
Handler rounded_handler(Opcode opcode, Scalar scalar);
Handler rounded_convert_handler(Scalar from, Scalar to);

// --- flush.cc: d = a without subnormals, f32; and d = c, a quotient a / b, without those that are
// subnormal before they are rounded ---
Handler flush_handler();
Handler flush_quotient_handler();

// --- convert.cc ---
Handler convert_handler(Scalar from, Scalar to);

// --- move.cc ---
// d = a. The blended form leaves the lanes outside the mask alone.
Handler copy_handler(int bytes, bool blended);
// Every element of d = a, which has one.
Handler splat_handler(int bytes);
// Poison words (Code::poison_offset). `aux` packs the element sizes of d, a, b and c, a byte each:
// 0 for an operand that is never poisoned, 0x80 added where one element stands for all of d's. d =
// a | b | c
Handler poison_union_handler();
// d = a's poison, or that of b where a is true and of c where it is false
Handler poison_select_handler();
// d = a in the lanes of the mask
Handler poison_blend_handler();
// Reports the active lanes in which one of `count` elements of a is poisoned. `aux` is a
// DefinedUse, and 256 times the element size.
Handler require_defined_handler();

// What an unwritten value was about to be used for.
enum class DefinedUse : uint32_t {
  kIf,
  kWhile,
  kLoopBounds,
  kAddress,
  kBounds,
  kStored,
  kAssert,
  kShuffleLane,
  kLaneMask,
  kVote,
  kScale,
  kPrinted,
  kInlinePtx,
  kCustomOp,
  kTakenApart,
  kMultiplied,
};

// --- control.cc: `count` is the frame ---
Handler if_handler();    // a: condition; aux: where the else branch, or what follows, starts
Handler else_handler();  // aux: where what follows starts
Handler end_if_handler();
Handler for_handler(bool wide);  // dst: i; a, b, c: start, stop, step; aux: index in Code::loops
Handler for_next_handler(bool wide);  // dst: i; c: step; aux: index in Code::loops
Handler while_handler();
Handler while_test_handler();  // a: condition; aux: index in Code::loops
Handler while_next_handler();  // aux: index in Code::loops
Handler end_handler();
Handler barrier_handler();
// --- watched.cc: for programs that are watched (watch.h). a: addresses; b: offset, or kNone; aux:
// index in Code::accesses; count: rows of matrices, or 0 ---
Handler watched_access_handler();
// A pending accumulator moves from register a to dst.
Handler watched_move_handler();
// aux: groups that may be under way
Handler watched_handler(Opcode opcode);
Handler memory_order_handler();
// What may order the block's accesses in a way that only the program knows (races.h).
Handler order_handler();
// --- cluster.cc; named barriers: a: its number; aux: threads ---
Handler named_sync_handler();
Handler named_arrive_handler();
Handler cluster_arrive_handler();
Handler cluster_wait_handler();
Handler map_shared_handler();  // d, a: addresses; b: rank
// --- mbarrier.cc: a: address; b: count, bytes or parity, or kNone; dst: what a test gives ---
Handler mbarrier_handler(Opcode opcode);
// --- bulk.cc: dst: the mbarrier's address, or kNone; a: source, b: destination, c: bytes; aux:
// index in Code::accesses: of the global side, or of the destination where both are shared ---
Handler bulk_handler(bool checked);
// --- store_async.cc: a: addresses, b: the mbarriers' addresses, c: stored, count: elements; aux: index
// in Code::accesses ---
Handler store_async_handler();
// --- tensor_map.cc: a: where the map is put together in shared memory, b: where it lies in global
// memory; aux: index in Code::map_replacements ---
Handler map_replace_handler();
// --- box.cc: a: where the box is in shared memory; b: the mbarrier's address, or kNone; aux: index
// in Code::boxes ---
Handler box_handler(bool checked);
Handler assert_handler();  // a: condition; aux: index in Code::texts
Handler trap_handler();
Handler require_nonzero_handler(int bytes);  // a: divisor
// --- promise.cc: a: a value; range: aux: index in Code::promises ---
Handler require_uniform_handler(int bytes);
Handler require_range_handler(Scalar scalar);
Handler unreachable_handler();

// --- collective.cc: b: lane; c: mask, or kNone; aux: width of a segment ---
Handler shuffle_handler(Opcode opcode, int bytes, bool checked);
// `aux`: width, and 256 times the element size
Handler poison_shuffle_handler(Opcode opcode);
Handler vote_handler(Opcode opcode, bool checked);  // a: predicate; b: mask, or kNone
Handler warp_sync_handler();                        // a: mask, or kNone
// a: value, b: mask, or kNone; redux: aux: an AtomicOp
Handler match_handler(Opcode opcode, int bytes, bool checked);
Handler redux_handler(AtomicOp op, Scalar scalar, bool checked);
Handler elect_handler(bool checked);  // b: mask, or kNone
Handler active_mask_handler();

// --- host.cc: what the host does for the kernel; dst: nanoseconds; aux: index in Code::prints or
// Code::rules ---
Handler clock_handler();
Handler printf_handler();
Handler rule_handler();
Handler warp_rule_handler();  // b: the mask of the lanes that take part, or none
Handler no_rule_handler();

Handler e2m1_handler(Opcode opcode);  // convert.cc; count: pairs

// --- access.cc: dst: loaded; a: view's address; b: offset; c: stored; aux: index in Code::accesses
// ---
Handler access_handler(const Access& access, bool checked);
// a: source, b: destination, c: where the source is read, or kNone; aux: index in Code::accesses of
// the read; the write is the next
Handler copy_handler_async(bool checked);
AtomicStep atomic_step(AtomicOp op, Scalar scalar);
// d = a + b * element size (aux); d and a are addresses.
Handler address_handler(bool wide);
// Forgets what the active lanes have written to a local array of `aux` bytes at a.
Handler begin_local_handler();
// dst: ok, a bool; a: coordinate; b: extent; count: width; aux: 1 when dst holds earlier modes'
// answer
enum class ExtentKind : uint8_t { kClamped, kNarrow, kWide };
Handler bounds_handler(bool wide_coordinate, ExtentKind extent);

// --- matrix.cc: dst: loaded; a: rows' addresses; c: stored; count: matrices; aux: index in
// Code::accesses, of a row ---
Handler matrix_handler(int bytes, bool store, bool transposed);

// --- mma.cc: a, b: fragments; c: accumulator; aux: index in Code::mmas ---
Handler mma_handler();

// --- wgmma.cc: dst: accumulator; a: fragment, or, as b, a descriptor's address; c: scale, or kNone; count: elements
// of the accumulator; aux: index in Code::wgmmas ---
Handler wgmma_handler();

}  // namespace heddle::ir::interp
