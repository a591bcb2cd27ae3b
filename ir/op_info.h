// What ir/ops.def says of an op, as data. Every query about an op goes through info(); nothing else
// switches over opcodes to learn a trait, an effect or a target.
//
//   if (has(info(op), Trait::kPure) && ...) hoist(op);
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "heddle/ir/attr.h"
#include "heddle/ir/target.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

// Behind these come ops that programs and plug-ins add (custom_op.h).
enum class Opcode : uint16_t {
#define HEDDLE_OP(name, ...) k##name,
#include "heddle/ir/ops.def"
};
inline constexpr int kOpcodeCount = 0
#define HEDDLE_OP(...) +1
#include "heddle/ir/ops.def"
    ;

namespace detail {
enum class TraitIndex : uint8_t {
#define HEDDLE_TRAIT(enumerator, ...) enumerator,
#include "heddle/ir/traits.def"
};
}  // namespace detail

// Bits of OpInfo::traits (traits.def).
enum Trait : uint32_t {
  kNoTraits = 0,
#define HEDDLE_TRAIT(enumerator, ...) \
  enumerator = uint32_t{1} << static_cast<int>(detail::TraitIndex::enumerator),
#include "heddle/ir/traits.def"
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
  kTile,
  kTensorMap,
  kAny,
  kI32,
  kU32,
  kI64,
  kBool,
};
// The role's word in a signature: "T", "V", "i32".
absl::string_view name_of(Role role);
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
constexpr bool admits(DataClass data_class, Scalar scalar) {
  if (data_class != DataClass::kData && info(scalar).storage_only) return false;
  switch (data_class) {
    case DataClass::kNone:
      return false;
    case DataClass::kNumber:
      return is_integer(scalar) || is_float(scalar);
    case DataClass::kInteger:
      return is_integer(scalar);
    case DataClass::kFloat:
      return is_float(scalar);
    case DataClass::kIntOrBool:
      return is_integer(scalar) || scalar == Scalar::kBool;
    case DataClass::kIntFloatOrBool:
    case DataClass::kData:
      return scalar != Scalar::kNone;
  }
  return false;
}

struct OpInfo {
  absl::string_view mnemonic;
  Signature signature;
  DataClass data_class = DataClass::kNone;
  std::array<AttrRule, 7> attrs{};
  uint8_t attr_count = 0;
  uint32_t traits = 0;
  Scope convergence = Scope::kThread;
  // How far threads have the same result, if they have the same operands: the grid, where the result
  // follows from these.
  Scope uniform = Scope::kThread;
  // Bit i: where operand i may be uninitialised, so may the results. Of other operands the op itself
  // is reported. Bit 7 stands for all from the eighth on.
  uint8_t poison = 0;
  Effects effects;
  Targets targets;
};

constexpr bool has(const OpInfo& info, Trait trait) { return (info.traits & trait) != 0; }
// Whether the results of an op may be uninitialised where that operand is.
constexpr bool passes_poison(const OpInfo& info, size_t operand) {
  return (info.poison >> std::min<size_t>(operand, 7) & 1) != 0;
}
// An op that stays although nothing uses its results, and never moves past another such op.
constexpr bool has_side_effect(const OpInfo& info) {
  return (info.traits & (kVolatile | kBlocking | kTerminator)) != 0 || info.effects.writes != 0 ||
         info.effects.orders || info.effects.unnamed;
}
constexpr bool is_convergent(const OpInfo& info) { return info.convergence != Scope::kThread; }
// A warp op whose last operand, if it is given, is the mask of the lanes that take part.
constexpr bool takes_mask(const OpInfo& info) {
  const Signature& signature = info.signature;
  if (info.convergence != Scope::kWarp || signature.operand_count == 0) return false;
  const Position& last = signature.operands[signature.operand_count - 1];
  return last.role == Role::kU32 && last.arity == Arity::kOptional;
}

inline const OpInfo& info(Opcode opcode);
// Which operand of an op has that name: an index, or -1 where its signature has no such name.
inline int operand_index(Opcode opcode, OperandName name);
std::optional<Opcode> opcode_from_mnemonic(absl::string_view mnemonic);

namespace detail {
using OperandIndices = std::array<std::array<int8_t, kOperandNameCount>, kOpcodeCount>;
extern const OperandIndices kOperandIndices;
extern const std::array<OpInfo, kOpcodeCount> kOpInfos;
const OpInfo& custom_info(Opcode opcode);
int custom_operand_index(Opcode opcode, OperandName name);
std::optional<Opcode> builtin_opcode(absl::string_view mnemonic);
std::optional<Opcode> custom_opcode(absl::string_view mnemonic);
}  // namespace detail

inline const OpInfo& info(Opcode opcode) {
  const auto index = static_cast<size_t>(opcode);
  return index < kOpcodeCount ? detail::kOpInfos[index] : detail::custom_info(opcode);
}

inline int operand_index(Opcode opcode, OperandName name) {
  if (static_cast<size_t>(opcode) >= kOpcodeCount) {
    return detail::custom_operand_index(opcode, name);
  }
  return detail::kOperandIndices[static_cast<size_t>(opcode)][static_cast<size_t>(name)];
}

}  // namespace heddle::ir
