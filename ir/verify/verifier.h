// Whether a kernel is one: everything that passes, the interpreter and the emitter rely on.
//
//   Diagnostics wrong = verify(kernel);
//   if (!wrong.empty()) return to_status("kernel 'row_sum'", wrong);
//
// All mistakes are reported, each with the user's line, the op, the reason and the fix. Only where
// the structure itself is broken do the later checks stay silent.
//
// Structure
//   - `for` owns one region, `while` and `if` two, other ops none.
//   - A region that an op owns ends in a yield, which stands nowhere else; the body has no yield.
//   - What goes round a loop has one type: first value, argument, yielded value, result. A `while`
//     condition yields one bool. Both regions of an `if` yield its results. A loop's start, stop,
//     step and variable have one type, and a constant step is not zero.
//   - A value is used after its definition, inside the region that defines it.
// Ops, by their row of ops.def
//   - Operands and results have the number, roles and types of the signature, and T is in its
//   class.
//   - Attributes are those of the row, all required ones are there, and each is in range.
//   - The target has the op for the element type.
//   - A vector has 2 to 16 elements and at most 32 bytes. A memory access moves a power of two of
//     elements and at most 16 bytes (32 from sm_100 on).
//   - Views are parameters, shared arrays or parts of views; checks go from `bounds` to the access;
//     descriptors from `smem.desc` to wgmma; variables are only read and written. None of them is
//     carried, yielded or kept in a variable. No store goes through a read-only view.
// Fragments (design: one owner of the registers at a time)
//   - A pending fragment is used exactly once on every path, by wgmma, wgmma.wait, a loop that
//     carries it, or the yield that ends the loop's region. wgmmas may read one as operand a before that, any
//     number of times, unless the tensor cores write it.
//   - A tied operand, pending or settled, is not used after the tie on any path; a loop does not
//     consume what was made outside it.
//   - What a loop yields for a carried pending fragment is in that fragment's registers.
//   - A wait settles what it lists: the wgmmas that wrote or read it are in commit groups that the wait does not leave
//     in flight.
//   - No `if` hands out a pending fragment, since its branches would be joined by copies.
// Convergence
//   - An op that threads must reach together is under conditions that are the same for all of them,
//     or is a warp op with an explicit mask.
// The kernel
//   - Parameters are scalars and views with as many extents and strides as modes, and fit in 4096
//     bytes; block, cluster, shared memory and facts are within the target's limits.
// Stages
//   - kTraced alone: it has an effect, a store to memory that outlives the block, or an assertion.
//   - kPureSsa: no variables are left. kEmittable: the name is also an identifier of PTX.
#pragma once

#include "heddle/ir/diagnostic.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

// How far a kernel has come. kRewritten: passes have run on it. From there on each stage asks for
// everything that the one before does.
enum class Stage : uint8_t { kTraced, kRewritten, kPureSsa, kEmittable };

// Empty where the kernel is right. Safe on any kernel whose ids are in range.
Diagnostics verify(const Kernel& kernel, Stage stage = Stage::kTraced);
// Of these the mistakes in the kernel's block and cluster: what can be known before there are ops.
Diagnostics verify_launch(const Kernel& kernel);

}  // namespace heddle::ir
