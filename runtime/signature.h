// Signatures: what a kernel is compiled for, without arguments.
//
//   Signature signature = {tensor({sym("rows"), 1024}).aligned(16), tensor({sym("rows")}), scalar()};
//   auto compiled = row_sum.compile(signature, CompileOptions{.block = {512, 1, 1}});
//
// Element types come from the kernel's own parameters. By default, tensors are row-major,
// contiguous along the last mode, aligned to their elements, with offsets that fit in 31 bits. A
// launch refuses arguments that differ, before anything runs.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace heddle::runtime {

// An extent or stride that the launch decides.
inline constexpr int64_t kAny = INT64_MIN;

// An extent of a signature: a number of elements, kAny, or sym("rows"): one that the launch decides, the same wherever the signature has
// that name. A launch whose tensors differ in it is refused, and the code has one value for all of them.
struct Extent {
  int64_t number = kAny;  // of elements, or kAny
  std::string name = {};  // empty: it has none

  // A number, or kAny.
  template <std::integral T>
  Extent(T elements) : number(static_cast<int64_t>(elements)) {}  // NOLINT: converts
  // One that the launch decides, by its name.
  explicit Extent(std::string symbol) : name(std::move(symbol)) {}
};
// An extent by its name, which is an identifier.
inline Extent sym(std::string name) { return Extent(std::move(name)); }

// What is known of an argument that a kernel is compiled for. Functions set a property and return
// the object.
struct ArgumentSpec {
  std::vector<int64_t> extents;        // elements, or kAny
  std::vector<std::string> names;      // of extents: sym(); "" is none. Empty: none has one
  std::vector<int64_t> given_strides;  // elements, or kAny; empty: contiguous in `stride_order`
  std::vector<int> stride_order;       // 0 for the fastest mode; empty: row-major
  int64_t alignment = 1;               // bytes, a power of two; above 32 counts as 32
  int64_t stride_divisor = 1;          // of the strides that the launch decides
  int64_t extent_divisor = 1;          // of the extents that it decides
  bool may_pass_32_bits = false;       // offsets or extents may pass 2^31
  bool overlaps_none = false;          // shares no memory with an argument that the kernel writes

  // The address is a multiple of so many bytes, a power of two.
  ArgumentSpec& aligned(int64_t bytes) {
    alignment = bytes;
    return *this;
  }
  // The strides, in elements, or kAny.
  ArgumentSpec& strides(std::vector<int64_t> s) {
    given_strides = std::move(s);
    return *this;
  }
  // Every stride but the unit one is a multiple of this many elements: what wide accesses to each
  // row of a matrix need.
  ArgumentSpec& strides_divisible_by(int64_t elements) {
    stride_divisor = elements;
    return *this;
  }
  // Every extent that the launch decides is a multiple of this many elements: what wide accesses
  // that end with a row need.
  ArgumentSpec& extents_divisible_by(int64_t elements) {
    extent_divisor = elements;
    return *this;
  }
  // Contiguous, with modes in this order: 0 for the fastest.
  ArgumentSpec& order(std::vector<int> o) {
    stride_order = std::move(o);
    return *this;
  }
  // It shares no memory with an argument that the kernel writes.
  ArgumentSpec& no_overlap() {
    overlaps_none = true;
    return *this;
  }
  // Its offsets or extents may need more than 31 bits.
  ArgumentSpec& beyond_32_bits() {
    may_pass_32_bits = true;
    return *this;
  }
};

// A tensor with these extents, in elements: numbers, kAny, or sym("rows").
inline ArgumentSpec tensor(std::vector<int64_t> extents) {
  ArgumentSpec spec;
  spec.extents = std::move(extents);
  return spec;
}
inline ArgumentSpec tensor(std::initializer_list<Extent> extents) {
  ArgumentSpec spec;
  for (const Extent& extent : extents) {
    spec.extents.push_back(extent.number);
    spec.names.push_back(extent.name);
  }
  return spec;
}
// A value, or a pointer, of which at most the alignment is given.
inline ArgumentSpec scalar() { return {}; }
inline ArgumentSpec pointer() { return {}; }

// One for each parameter of the kernel, or for each member of a struct.
using Signature = std::vector<ArgumentSpec>;

}  // namespace heddle::runtime

namespace heddle {
using runtime::ArgumentSpec;
using runtime::kAny;
using runtime::pointer;
using runtime::scalar;
using runtime::Signature;
using runtime::sym;
using runtime::tensor;
}  // namespace heddle
