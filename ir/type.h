// The types of IR values.
//
//   f32  vec<f32, 4>  frag<f32, 64>  pending<f32, 64>  view<const f32, global, 2>  var<i32>
//   smem_desc<bf16>  tensor_map<bf16, 2>
//
// A Type is eight bytes, compared by value. Scalars, vectors and fragments are *data*: element type
// and count. A vector is at most one memory access wide; a fragment is a register tile of any size.
// Ops that work on scalars apply to the elements of both.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace heddle::ir {

// Element types (scalars.def).
enum class Scalar : uint8_t {
  kNone,
#define HEDDLE_SCALAR_TYPE(enumerator, ...) enumerator,
#include "heddle/ir/scalars.def"
};
inline constexpr int kScalarCount = 1
#define HEDDLE_SCALAR_TYPE(...) +1
#include "heddle/ir/scalars.def"
    ;

// kPair: two numbers in one element, which no op but those that take it apart looks into.
enum class ScalarClass : uint8_t { kNone, kBool, kSigned, kUnsigned, kFloat, kPair };

struct ScalarInfo {
  absl::string_view name;
  int bits = 0;
  ScalarClass scalar_class = ScalarClass::kNone;
  bool storage_only = false;
};

inline constexpr std::array<ScalarInfo, kScalarCount> kScalars = {{
    {"none"},
#define HEDDLE_SCALAR_TYPE(enumerator, name, bits, scalar_class, storage_only, host) \
  {name, bits, ScalarClass::scalar_class, storage_only},
#include "heddle/ir/scalars.def"
}};

constexpr const ScalarInfo& info(Scalar scalar) { return kScalars[static_cast<size_t>(scalar)]; }
constexpr int bytes_of(Scalar scalar) { return info(scalar).bits / 8; }
constexpr bool is_float(Scalar scalar) { return info(scalar).scalar_class == ScalarClass::kFloat; }
constexpr bool is_half(Scalar scalar) { return is_float(scalar) && info(scalar).bits == 16; }
constexpr bool is_signed(Scalar scalar) {
  return info(scalar).scalar_class == ScalarClass::kSigned;
}
constexpr bool is_integer(Scalar scalar) {
  return is_signed(scalar) || info(scalar).scalar_class == ScalarClass::kUnsigned;
}
// The bits that a value of a type may have; of a bool the lowest.
constexpr uint64_t bits_mask(Scalar scalar) {
  return scalar == Scalar::kBool ? 1 : ~uint64_t{0} >> (64 - info(scalar).bits);
}
// The number that an integer's or a bool's bits stand for; those of u64 as they are.
constexpr int64_t number_of(Scalar scalar, uint64_t bits) {
  const int unused = 64 - info(scalar).bits;
  return is_signed(scalar) ? static_cast<int64_t>(bits << unused) >> unused
                           : static_cast<int64_t>(bits & bits_mask(scalar));
}
std::optional<Scalar> scalar_from_name(absl::string_view name);

// Where the memory behind a view lives.
enum class Space : uint8_t { kNone, kGlobal, kShared, kSharedCluster, kParam, kConst, kLocal };
inline constexpr int kSpaceCount = 7;
absl::string_view name_of(Space space);
std::optional<Space> space_from_name(absl::string_view name);

enum class TypeKind : uint8_t {
  kNone,
  kScalar,      // one element
  kVector,      // 2 to 16 elements, at most 16 bytes (32 on sm_100)
  kFragment,    // a register tile whose registers hold settled values
  kPending,     // a fragment that an asynchronous tensor-core op still writes or reads
  kView,        // a window on memory: element type, address space, rank
  kCheck,       // the outcome of a bounds test, consumed by the access that it guards
  kDescriptor,  // a shared-memory matrix descriptor derived from a view
  kTensorMap,   // how the copy engine finds boxes of a tensor
};
inline constexpr int kTypeKindCount = 9;
inline constexpr int kMaxTensorMapRank = 5;

struct Type {
  TypeKind kind = TypeKind::kNone;
  Scalar scalar = Scalar::kNone;  // element type
  Space space = Space::kNone;     // views only
  uint8_t rank = 0;               // views and tensor maps
  uint16_t count = 0;             // elements: 1 for a scalar; 0 where there are none
  bool read_only = false;         // views only: no store goes through this name
  bool slot = false;              // a mutable variable that holds a value of the rest of the type

  bool operator==(const Type&) const = default;

  static constexpr Type none() { return {}; }
  static constexpr Type of(Scalar s) {
    return {.kind = TypeKind::kScalar, .scalar = s, .count = 1};
  }
  static constexpr Type vector(Scalar s, int n) {
    return {.kind = TypeKind::kVector, .scalar = s, .count = static_cast<uint16_t>(n)};
  }
  static constexpr Type fragment(Scalar s, int n) {
    return {.kind = TypeKind::kFragment, .scalar = s, .count = static_cast<uint16_t>(n)};
  }
  static constexpr Type pending(Scalar s, int n) {
    return {.kind = TypeKind::kPending, .scalar = s, .count = static_cast<uint16_t>(n)};
  }
  static constexpr Type view(Scalar s, Space space, int rank, bool read_only = false) {
    return {.kind = TypeKind::kView,
            .scalar = s,
            .space = space,
            .rank = static_cast<uint8_t>(rank),
            .read_only = read_only};
  }
  static constexpr Type check() { return {.kind = TypeKind::kCheck}; }
  static constexpr Type descriptor(Scalar s) {
    return {.kind = TypeKind::kDescriptor, .scalar = s};
  }

  static constexpr Type tensor_map(Scalar s, int rank) {
    return {.kind = TypeKind::kTensorMap, .scalar = s, .rank = static_cast<uint8_t>(rank)};
  }

  constexpr bool is_scalar() const { return kind == TypeKind::kScalar && !slot; }
  constexpr bool is_view() const { return kind == TypeKind::kView; }
  constexpr bool is_pending() const { return kind == TypeKind::kPending; }
  // Scalars, vectors and settled fragments: what elementwise ops take.
  constexpr bool is_data() const {
    return !slot &&
           (kind == TypeKind::kScalar || kind == TypeKind::kVector || kind == TypeKind::kFragment);
  }
  constexpr bool is_bool() const { return is_scalar() && scalar == Scalar::kBool; }
  constexpr bool is_index() const {
    return is_scalar() && (scalar == Scalar::kI32 || scalar == Scalar::kI64);
  }
  // Size in memory of all elements.
  constexpr int bytes() const { return bytes_of(scalar) * count; }

  // The same shape with another element type; the slot's content; a slot for this type.
  constexpr Type with_scalar(Scalar s) const {
    Type t = *this;
    t.scalar = s;
    return t;
  }
  constexpr Type element() const { return of(scalar); }
  constexpr Type content() const {
    Type t = *this;
    t.slot = false;
    return t;
  }
  constexpr Type as_slot() const {
    Type t = *this;
    t.slot = true;
    return t;
  }
};

inline constexpr Type kBoolType = Type::of(Scalar::kBool);
inline constexpr Type kI32Type = Type::of(Scalar::kI32);
inline constexpr Type kU32Type = Type::of(Scalar::kU32);
inline constexpr Type kI64Type = Type::of(Scalar::kI64);
inline constexpr Type kF32Type = Type::of(Scalar::kF32);

std::string to_string(Type type);
// Parses what to_string prints; nullopt where `text` is no type.
std::optional<Type> type_from_string(absl::string_view text);

}  // namespace heddle::ir
