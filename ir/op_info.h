// What ir/ops.def says of an op, as data. Every query about an op goes through info(); nothing else
// switches over opcodes to learn a trait, an effect or a target.
//
//   if (has(info(op), Trait::kPure) && ...) hoist(op);
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "heddle/ir/attr.h"
#include "heddle/ir/target.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

enum class Opcode : uint8_t {
#define HEDDLE_OP(name, ...) k##name,
#include "heddle/ir/ops.def"
};
inline constexpr int kOpcodeCount = 0
#define HEDDLE_OP(...) +1
#include "heddle/ir/ops.def"
    ;

// Bits of OpInfo::traits.
enum Trait : uint16_t {
  kNoTraits = 0,
  kPure = 1,         // depends on operands and attributes only: may be removed, merged, moved
  kCommutative = 2,  // the first two operands may be swapped
  kTerminator = 4,   // ends its region
  kRegions = 8,      // owns regions
  kFresh = 16,       // makes a new object each time: removable when unused, never merged
  kNotSpeculatable =
      32,              // its operands may be illegal where the program would not reach it: only to
                       // be run where the program is sure to run it
  kVolatile = 64,      // has an effect of its own: never removed, merged or reordered
  kBlocking = 128,     // waits for other threads; never removed, merged or reordered either
  kApproximate = 256,  // result within a stated bound only: never folded
  kForwards = 512,     // its result is its first operand, of which it says something
  kPromise = 1024      // states what holds where it stands (see "Promises" in ops.def): never
                       // removed, unless an equal one has been made before it
};

// The set of threads that must arrive at an op together; also the levels of uniformity, from a
// value that each thread has its own of to one that the whole grid shares.
enum class Scope : uint8_t { kThread, kWarp, kWarpGroup, kBlock, kCluster, kGrid };
inline constexpr int kScopeCount = 6;
absl::string_view name_of(Scope scope);

// Whether writes of other grids that run meanwhile, which could not be seen before an op, may be
// seen behind it. An op with the attribute `scope` has to reach beyond the cluster for that.
enum class Admits : uint8_t {
  kNothing,
  kByAcquire,  // where its attribute `order` acquires
  kOtherGrids,
};

// Memory effects: bit i of a mask is operand i, a view or a descriptor derived from one.
struct Effects {
  uint8_t reads = 0;
  uint8_t writes = 0;
  bool async = false;    // through the asynchronous proxy, complete only after the op that waits
  bool orders = false;   // orders every access before it against every access after it
  bool unnamed = false;  // may also write memory that no operand names
  Admits admits = Admits::kNothing;

  constexpr bool touches_memory() const { return reads != 0 || writes != 0 || orders; }
};

// The roles that an operand or result can have in a signature (legend in ops.def).
enum class Role : uint8_t {
  kT,
  kBoolLikeT,
  kDataLikeT,
  kIndex,
  kElement,
  kView,
  kSlot,
  kCheck,
  kFragment,
  kPending,
  kDescriptor,
  kAny,
  kI32,
  kU32,
  kI64,
  kBool,
};
enum class Arity : uint8_t { kOne, kOptional, kMany };

// The names of operands (operands.def).
enum class OperandName : uint8_t {
#define HEDDLE_OPERAND(name, enumerator) enumerator,
#define HEDDLE_OPERANDS(name, enumerator) enumerator,
#include "heddle/ir/operands.def"
};
inline constexpr int kOperandNameCount = 0
#define HEDDLE_OPERAND(...) +1
#define HEDDLE_OPERANDS(...) +1
#include "heddle/ir/operands.def"
    ;
absl::string_view name_of(OperandName name);

struct Position {
  OperandName name{};  // operands alone
  Role role = Role::kAny;
  Arity arity = Arity::kOne;
  bool tied = false;  // operands: a result shares its registers
};

struct Signature {
  std::array<Position, 5> operands{};
  std::array<Position, 2> results{};
  uint8_t operand_count = 0;
  uint8_t result_count = 0;
};

struct AttrRule {
  AttrKey key{};
  bool required = true;
};

// What T may be in a row.
enum class DataClass : uint8_t {
  kNone,
  kNumber,
  kInteger,
  kFloat,
  kIntOrBool,
  kIntFloatOrBool,
  kData
};
bool admits(DataClass data_class, Scalar scalar);

struct OpInfo {
  absl::string_view mnemonic;
  Signature signature;
  DataClass data_class = DataClass::kNone;
  std::array<AttrRule, 4> attrs{};
  uint8_t attr_count = 0;
  uint16_t traits = 0;
  Scope convergence = Scope::kThread;
  Effects effects;
  Targets targets = Targets::kEverywhere;
};

constexpr bool has(const OpInfo& info, Trait trait) { return (info.traits & trait) != 0; }
// An op that stays although nothing uses its results, and never moves past another such op.
constexpr bool has_side_effect(const OpInfo& info) {
  return (info.traits & (kVolatile | kBlocking | kTerminator)) != 0 || info.effects.writes != 0 ||
         info.effects.orders || info.effects.unnamed;
}
constexpr bool is_convergent(const OpInfo& info) { return info.convergence != Scope::kThread; }

const OpInfo& info(Opcode opcode);
// Which operand of an op has that name: an index, or -1 where its signature has no such name.
inline int operand_index(Opcode opcode, OperandName name);
std::optional<Opcode> opcode_from_mnemonic(absl::string_view mnemonic);

namespace detail {
using OperandIndices = std::array<std::array<int8_t, kOperandNameCount>, kOpcodeCount>;
extern const OperandIndices kOperandIndices;
}  // namespace detail

inline int operand_index(Opcode opcode, OperandName name) {
  return detail::kOperandIndices[static_cast<size_t>(opcode)][static_cast<size_t>(name)];
}

}  // namespace heddle::ir
