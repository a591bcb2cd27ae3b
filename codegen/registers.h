// Virtual registers of PTX and what instructions read.
//
// PTX has as many registers as one declares; ptxas assigns the real ones. Classes are by width and
// without a type, so that i32, u32 and f32 share registers and a bitcast is a rename:
//
//   %b  8 bits: what a conversion of pairs of 4-bit floats reads or writes, and nothing else
//   %p  predicates: bool                  %r   32 bits: i32, u32, f32, tf32, four packed bytes, two
//   packed %h  16 bits: i16, u16, f16, bf16           16-bit elements; one of i8, u8, e4m3, …
//                                         %rd  64 bits: i64, u64, f64, addresses, descriptors
//
// PTX computes with no bytes. One alone is the low byte of its register, with zeros above.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "heddle/ir/type.h"

namespace heddle::codegen {

enum class RegClass : uint8_t { kPred, kB8, kB16, kB32, kB64 };
inline constexpr int kRegClassCount = 5;

struct RegClassInfo {
  absl::string_view type;    // as `.reg` and `mov` spell it
  absl::string_view prefix;  // of register names
};
inline constexpr std::array<RegClassInfo, kRegClassCount> kRegClasses = {{
    {"pred", "%p"},
    {"b8", "%b"},
    {"b16", "%h"},
    {"b32", "%r"},
    {"b64", "%rd"},
}};
constexpr const RegClassInfo& info(RegClass c) { return kRegClasses[static_cast<size_t>(c)]; }

// What an instruction reads: a register, or the bits of a constant of that width.
struct Operand {
  RegClass reg_class = RegClass::kB32;
  bool is_constant = false;
  uint64_t payload = 0;  // the register's number, or the constant's bits, zero-extended

  bool operator==(const Operand&) const = default;
  static constexpr Operand constant(RegClass c, uint64_t bits) { return {c, true, bits}; }
  static constexpr Operand b32(uint32_t bits) { return constant(RegClass::kB32, bits); }
  static constexpr Operand b64(uint64_t bits) { return constant(RegClass::kB64, bits); }
};

// The class that one element of this type lives in.
constexpr RegClass class_of(ir::Scalar scalar) {
  switch (ir::info(scalar).bits) {
    case 8:
      return scalar == ir::Scalar::kBool ? RegClass::kPred : RegClass::kB32;
    case 16:
      return RegClass::kB16;
    case 64:
      return RegClass::kB64;
    default:
      return RegClass::kB32;
  }
}

// Vectors and fragments of 8- and 16-bit elements hold four or two of them in each register, the
// first one lowest.
constexpr int elements_per_register(ir::Type type) {
  const int bits = ir::info(type.scalar).bits;
  if (type.kind == ir::TypeKind::kScalar || type.scalar == ir::Scalar::kBool) return 1;
  return bits == 8 || bits == 16 ? 32 / bits : 1;
}
constexpr bool is_packed(ir::Type type) { return elements_per_register(type) > 1; }
// Where the values of a type live: `count` registers of that class; none for views.
struct RegLayout {
  RegClass reg_class = RegClass::kB32;
  int count = 0;
  bool operator==(const RegLayout&) const = default;
};
constexpr RegLayout layout_of(ir::Type type) {
  switch (type.kind) {
    case ir::TypeKind::kNone:
    case ir::TypeKind::kView:
      return {};
    case ir::TypeKind::kCheck:
      return {RegClass::kPred, 1};
    case ir::TypeKind::kDescriptor:
    case ir::TypeKind::kTensorMap:
      return {RegClass::kB64, 1};
    case ir::TypeKind::kScalar:
    case ir::TypeKind::kVector:
    case ir::TypeKind::kFragment:
    case ir::TypeKind::kPending:
      break;
  }
  const int each = elements_per_register(type);
  return {each > 1 ? RegClass::kB32 : class_of(type.scalar), (type.count + each - 1) / each};
}

// Hands out registers, and counts them for the declarations.
class RegisterFile {
 public:
  Operand fresh(RegClass c) { return {c, false, counts_[static_cast<size_t>(c)]++}; }
  uint32_t count(RegClass c) const { return counts_[static_cast<size_t>(c)]; }

 private:
  std::array<uint32_t, kRegClassCount> counts_{};
};

}  // namespace heddle::codegen
