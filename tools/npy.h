// NumPy's .npy files: input and output of the tools.
//
//   StatusOr<HostArray> x = read_npy("x.npy");
//   use(x->shape.dtype, x->shape.extents, x->bytes());
//   Status status = write_npy("y.npy", *x);
//
// Formats 1.0 to 3.0; little-endian bool, int8 to int64, uint8, uint32, uint64, float16, float32,
// float64. NumPy has no bf16: bf16 is stored as uint16 bit patterns, and uint16 is always read so. Floats
// of 8 bits are stored as uint8 bit patterns and tf32 as float32, which are read as themselves.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::tools {

// A tensor in host memory: row-major, without gaps.
struct HostArray {
  runtime::TensorShape shape;
  std::unique_ptr<std::byte[]> data;
  size_t byte_count = 0;

  absl::Span<const std::byte> bytes() const { return {data.get(), byte_count}; }
  absl::Span<std::byte> bytes() { return {data.get(), byte_count}; }

  // Uninitialised memory of that shape. kInvalidArgument for a negative extent or more bytes than
  // an address can count, kResourceExhausted where there is not enough.
  static StatusOr<HostArray> allocate(runtime::TensorShape shape);
};

// Whether NumPy has a float type; others are stored as bit patterns, or as float32.
bool numpy_has_float(ir::Scalar float_type);
// Whether files of both types are the same, so that one can be read as the other.
bool same_in_numpy(ir::Scalar a, ir::Scalar b);

// The header of a file.
struct NpyHeader {
  runtime::TensorShape shape;
  bool fortran_order = false;
  size_t data_offset = 0;  // bytes from the file's start
  size_t data_bytes = 0;
};

// `start` is the file's beginning, kMostNpyHeaderBytes of it or all. kInvalidArgument says what is
// wrong as a clause: "is no .npy file".
inline constexpr size_t kMostNpyHeaderBytes = size_t{1} << 16;
StatusOr<NpyHeader> parse_npy_header(absl::string_view start);

// Arrays in Fortran order come out row-major. Every error is one line that starts with the path:
// kInvalidArgument for a file that is malformed, cut off, too long or of an unknown type, else why
// it could not be read.
StatusOr<HostArray> read_npy(const std::string& path);

// Writes format 1.0, over whatever was there.
Status write_npy(const std::string& path, const HostArray& array);

}  // namespace heddle::tools
