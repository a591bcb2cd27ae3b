// Between the files of the CUTLASS peer: a kernel that can be launched again and again.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace peer {

// d = a * b^T; strides of one mode are 1 and those of the other are the leading dimensions. Of groups, m is the
// rows of all of them, or those that each has room for, and the batch is the groups.
struct Problem {
  int m, n, k, batch;
  bool masked;                        // groups have a matrix each
  int64_t lda, ldb, ldd;              // in elements
  int64_t batch_a, batch_b, batch_d;  // strides between the products of a batch
};

// Pointers of a launch.
struct Pointers {
  const void* a;
  const void* b;
  void* d;
  void* workspace;
  const void* more[2];  // what stands behind d: factors of a and b, or the groups' rows
};

// A kernel with its arguments for one set of pointers: launching it costs no more than a launch.
class Bound {
 public:
  virtual ~Bound() = default;
  virtual const char* run(cudaStream_t stream) = 0;  // nullptr or an error
};

// One row of cutlass_gemm.def.
struct Row {
  const char* name;
  const char* operations;  // that it solves, of peer.h, and one variant of them
  const char* variant;
  const char* dtype;  // of a and b, as peer.h spells it
  const char* dtype_d;
  bool a_along_k, b_along_k;  // which mode is contiguous
  int swizzles;               // how many values of bind()'s `swizzle` differ
  size_t (*workspace)(const Problem&);
  // nullptr with *error where the kernel does not take the problem.
  std::unique_ptr<Bound> (*bind)(const Problem&, const Pointers&, int swizzle, cudaStream_t,
                                 const char** error);
};

// The row of a number.
template <int kNumber>
Row made_row();

}  // namespace peer
