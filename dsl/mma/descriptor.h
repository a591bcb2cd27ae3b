// Matrix descriptors: how tensor cores find an operand's tile in shared memory, computed from the
// tile's layout.
//
//   const Layout tile = make_smem_layout<half>({128, 64});
//   const SmemDescriptor d = make_smem_descriptor<half>(tile, 128);   // instructions of 128 rows
//   d.stride();                                // 1024 bytes from eight rows to the next eight
//   d.start(0, 2);                             // 64: where the third k-step of 32 bytes begins
//   d.bits(d.start(0, 2));                     // 0x4000004000010004
//
// Tensor cores read *core matrices*: eight lines of 16 contiguous bytes. A descriptor says where the
// first begins, how far it is to the next along either mode (the leading and the stride byte offset,
// LBO and SBO), and which swizzle they lie under. A layout is *canonical* where each instruction's
// part of it is of this form; T stands for 16 bytes of elements, and w for the swizzle's bytes over 16:
//
//   K-major:               (rows, depth) = ((8,m),(T,2)):((wT,SBO),(1,T))
//   K-major, no swizzle:                   ((8,m),(T,2)):((T,SBO),(1,LBO))
//   MN-major:                              ((wT,m),(8,k)):((1,LBO),(wT,SBO))
//   MN-major, no swizzle:                  ((T,m),(8,k)):((1,SBO),(T,LBO))
//
// MN-major tiles are for elements of 16 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/dsl/mma/smem_layout.h"

namespace heddle {

// The descriptors of a tile: what all have in common, and where each instruction's part starts. A
// value; a layout that is not canonical gives one that is not ok().
class SmemDescriptor {
 public:
  // For make_smem_descriptor().
  SmemDescriptor(const Layout& tile, ir::Scalar scalar, int64_t rows);

  // Which mode is contiguous, and the swizzle's bytes: 0 (none), 32, 64 or 128.
  Major major() const { return major_; }
  int swizzle() const { return swizzle_; }
  // The byte offsets LBO and SBO. What an instruction does not use is 16 (leading) and 0 (stride).
  int64_t leading() const { return leading_; }
  int64_t stride() const { return stride_; }
  bool uses_leading() const { return uses_leading_; }
  bool uses_stride() const { return uses_stride_; }
  // Elements that one instruction takes along either mode: rows, and 32 bytes along the depth. And how
  // many instructions cover the tile.
  int64_t rows() const { return rows_; }
  int64_t step() const { return step_; }
  int64_t row_parts() const { return static_cast<int64_t>(row_starts_.size()); }
  int64_t steps() const { return static_cast<int64_t>(step_starts_.size()); }
  // Where the part of an instruction starts, in bytes behind the tile's first element, before the
  // swizzle: what is added to the address.
  int64_t start(int64_t row_part, int64_t step) const {
    return row_starts_[static_cast<size_t>(row_part)] + step_starts_[static_cast<size_t>(step)];
  }
  // The 64 bits of a descriptor that starts at an address of shared memory, in bytes.
  uint64_t bits(int64_t address) const;

  // Whether the layout is canonical. Else what is in the way, as a clause that follows the tile's
  // name, and how to mend it.
  bool ok() const { return what_.empty(); }
  const std::string& error() const { return what_; }
  const std::string& fix() const { return fix_; }

 private:
  bool wrong(std::string what, std::string fix);
  bool read_lines(const Layout& tile);

  int bytes_;  // of an element
  Major major_ = Major::k;
  int swizzle_ = 0;
  int64_t leading_ = 0, stride_ = 0, rows_ = 0, step_ = 1;
  bool uses_leading_ = false, uses_stride_ = false;
  std::vector<int64_t> row_starts_, step_starts_;
  std::string what_, fix_;
};

// The descriptors of a tile (rows, depth) of elements of T, for instructions of `rows` rows (of A 64,
// of B as many as the product has columns). A layout that is not canonical gives one that is not ok().
template <class T>
SmemDescriptor make_smem_descriptor(const Layout& tile, int64_t rows) {
  return SmemDescriptor(tile, detail::scalar_of<std::remove_const_t<T>>(), rows);
}
// All that a descriptor says, a line each: "LBO: 16 bytes, not used". "error: …" where it is not ok().
std::string to_string(const SmemDescriptor& descriptor);

}  // namespace heddle
