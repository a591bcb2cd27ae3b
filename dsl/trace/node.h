// How the proxies talk to the trace: erased values, and the calls that record an op. Everything
// here is out of line, so that the DSL's headers need nothing of the IR's.
//
// Calls that record are cold: a kernel's body runs once for each variant, and what the compiler
// then leaves out of line is a third of the object code and of the time to compile it.
#pragma once

#include <cstdint>

#include "heddle/dsl/scalar.h"
#include "heddle/dsl/trace/source_loc.h"

namespace heddle::ir {
enum class Opcode : uint16_t;
enum class TypeKind : uint8_t;
}  // namespace heddle::ir

namespace heddle::detail {

// The type of a Node: element, kind and count, as in ir/type.h.
struct NodeType {
  ir::Scalar scalar{};
  ir::TypeKind kind{};
  uint16_t count = 1;
};

// Whether a host number is one that its type does not hold, and of which kind it is.
enum class Misfit : uint8_t { kFits, kSigned, kUnsigned };

// A value of the kernel that is being traced, or a host constant that no op stands for yet: it
// becomes one where it is used.
struct Node {
  static constexpr uint32_t kHost = 0xFFFFFFFF;
  // A host integer that the type does not hold, kept as it was given.
  static constexpr uint32_t kHostSigned = kHost - 1;
  static constexpr uint32_t kHostUnsigned = kHost - 2;
  NodeType type;
  uint32_t id = kHost;  // the IR value
  uint64_t bits = 0;    // of the host constant; of an IR value, the serial number of its trace
  bool is_host() const { return id >= kHostUnsigned; }
  Misfit misfit() const {
    return id == kHostSigned     ? Misfit::kSigned
           : id == kHostUnsigned ? Misfit::kUnsigned
                                 : Misfit::kFits;
  }
};

NodeType scalar_type(ir::Scalar scalar);
template <class T>
NodeType scalar_type() {
  return scalar_type(scalar_of<T>());
}
NodeType vector_type(ir::Scalar scalar, int count);
// The same shape of other elements.
NodeType with_scalar(NodeType type, ir::Scalar scalar);
// A fragment has 1 to kMaxFragment elements; another count is reported.
inline constexpr int kMaxFragment = 1024;
NodeType fragment_type(ir::Scalar scalar, int count, SourceLoc loc);

template <class T>
Node host_node(T value) {
  return {.type = scalar_type<T>(), .bits = bits_of(value)};
}
// A host number where a T is wanted. An integer that T does not hold is reported where a kernel
// uses it: here, or, of a number made outside of a kernel, where that comes into one.
Node misfit_node(NodeType wanted, uint64_t value, Misfit misfit, SourceLoc loc);
template <class T, class H>
Node host_constant(H value, SourceLoc loc) {
  if constexpr (std::is_integral_v<H> && std::is_integral_v<T>) {
    if (!fits<T>(value)) {
      return misfit_node(scalar_type<T>(), static_cast<uint64_t>(value),
                         std::is_unsigned_v<H> ? Misfit::kUnsigned : Misfit::kSigned, loc);
    }
  }
  return host_node(static_cast<T>(value));
}

// Ops by the names that ir/ops.def gives them.
namespace op {
#define HEDDLE_OP(name, ...) extern const ir::Opcode k##name;
#include "heddle/ir/ops.def"
}  // namespace op

// Records an op whose result type follows from its operands. Operands come one by one: every
// operator of every kernel is inlined, and this is the cheapest call to compile.
[[gnu::cold]] Node emit(ir::Opcode opcode, SourceLoc loc);
[[gnu::cold]] Node emit(ir::Opcode opcode, const Node& a, SourceLoc loc);
[[gnu::cold]] Node emit(ir::Opcode opcode, const Node& a, const Node& b, SourceLoc loc);
[[gnu::cold]] Node emit(ir::Opcode opcode, const Node& a, const Node& b, const Node& c,
                        SourceLoc loc);
// Records an op with a result of the type given.
[[gnu::cold]] Node emit_as(NodeType type, ir::Opcode opcode, const Node& a, SourceLoc loc);
// The bits of a scalar as those of another type of its width; a host constant stays one.
Node emit_bitcast(const Node& scalar, ir::Scalar to, SourceLoc loc);
// A scalar as every element of `shape`; what has that shape already stays as it is, and another one
// is reported.
Node spread(const Node& node, NodeType shape, SourceLoc loc);
// An op on each element; scalars beside vectors or fragments spread over theirs.
[[gnu::cold]] Node emit_spread(ir::Opcode opcode, const Node& a, const Node& b, SourceLoc loc);
[[gnu::cold]] Node emit_spread(ir::Opcode opcode, const Node& a, const Node& b, const Node& c,
                               SourceLoc loc);
// Likewise select, whose condition is one for all or one each, and shifts, by one count or one
// each.
Node emit_select(const Node& condition, const Node& a, const Node& b, SourceLoc loc);
Node emit_shift(ir::Opcode opcode, const Node& a, const Node& n, SourceLoc loc);
// A byte permutation, of each element of operands of one shape.
Node emit_byte_perm(const Node& a, const Node& b, const Node& selector, SourceLoc loc);
// All of them at the shape of the largest.
void spread_all(Node* nodes, int count, SourceLoc loc);
// The number of the first of `width` elements out of `count`; one that is outside is reported, and
// becomes 0.
int checked_element(int index, int width, int count, SourceLoc loc);
// pack: many operands.
Node emit_pack(NodeType type, const Node* elements, int count, SourceLoc loc);
// The same elements as a value of another kind, a scalar where it is one; they must be as many.
Node regrouped(const Node& elements, NodeType type, SourceLoc loc);
// extract and slice: from element `index` on.
[[gnu::cold]] Node emit_part(NodeType type, ir::Opcode opcode, Node whole, int index,
                             SourceLoc loc);
// What is promised of an integer: its bounds, both included, and what divides it.
struct Promise {
  int64_t min = INT64_MIN, max = INT64_MAX, divisor = 1;
  const char* name = nullptr;  // what messages call the integer
};
Node emit_assume_range(const Node& value, const Promise& promise, SourceLoc loc);
Node emit_expect(const Node& condition, bool likely, SourceLoc loc);

// A point of the program: what is recorded At() it later runs there, in front of what was recorded
// since.
struct Point {
  uint64_t trace = 0;   // 0: outside any kernel
  uint32_t region = 0;  // in which,
  uint32_t behind = 0;  // and behind which op
};
Point here();

// Mutable variables.
[[gnu::cold]] Node new_slot(Node init, SourceLoc loc);
[[gnu::cold]] Node read_slot(Node slot, NodeType type, SourceLoc loc);
[[gnu::cold]] void write_slot(Node slot, Node value, SourceLoc loc);

// Records a mistake of the user; tracing goes on.
void report(SourceLoc loc, const char* message, const char* fix);

// Whether a traced loop is open: what is recorded now runs more than once.
bool in_loop();

// Whether a value is the same host constant in every trace of this kernel; then its bits.
bool is_constant(Node node, uint64_t* bits);

}  // namespace heddle::detail
