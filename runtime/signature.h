// Signatures: what a kernel is compiled for, without arguments.
//
//   Signature signature = {tensor({kAny, 1024}).aligned(16), tensor({kAny}), scalar()};
//   auto compiled = row_sum.compile(signature, CompileOptions{.block = {512, 1, 1}});
//
// Element types come from the kernel's own parameters. By default, tensors are row-major,
// contiguous along the last mode, aligned to their elements, with offsets that fit in 31 bits. A
// launch refuses arguments that differ, before anything runs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace heddle::runtime {

// An extent or stride that the launch decides.
inline constexpr int64_t kAny = INT64_MIN;

// What is known of an argument that a kernel is compiled for. Functions set a property and return
// the object.
struct ArgumentSpec {
  std::vector<int64_t> extents;        // elements, or kAny
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

// A tensor with these extents, in elements, or kAny.
inline ArgumentSpec tensor(std::vector<int64_t> extents) {
  ArgumentSpec spec;
  spec.extents = std::move(extents);
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
using runtime::tensor;
}  // namespace heddle
