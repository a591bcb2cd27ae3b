// Products of matrices in the interpreter: what they compute. When a warp-group's product does, and how its tiles lie
// in shared memory, is in wgmma.cc.
//
// Elements are numbers, f64: products of two elements are exact, and of integers all sums are. Matrices are column by
// column, as elements are numbered in mma_atom.h.
#pragma once

#include <array>

#include "absl/strings/string_view.h"
#include "heddle/ir/interp/machine.h"

namespace heddle::ir::interp {

// An operand: a is m x k, b n x k.
struct Matrix {
  Matrix(int row_count, int column_count) : rows(row_count), columns(column_count) {}

  double& at(int row, int column) { return numbers[static_cast<size_t>(row + rows * column)]; }
  void negate();

  int rows, columns;
  std::array<double, 256 * 32> numbers;  // the first rows * columns of them
};

// The numbers of `count` elements that lie side by side.
void read_numbers(Scalar scalar, const void* elements, int count, double* numbers);

// Reads the operand whose fragments are in the same register of consecutive warps.
void read_fragments(const FragmentPlaces& places, Scalar scalar, const Warp* first, uint32_t reg,
                    Matrix* matrix);

// Writes accumulator + a * b, or a * b where nothing is kept, to registers `to` of consecutive warps; the
// accumulator is in registers `from`, a number a warp. Each element is rounded once.
struct Accumulators {
  const FragmentPlaces* places = nullptr;
  Scalar scalar{};
  std::array<uint32_t, 4> from{}, to{};
  bool keep = true;
};
void multiply(const Matrix& a, const Matrix& b, const Accumulators& accumulators,
              const Warp* first);

// All 32 lanes of the warp are at the instruction, checks or no checks; else a report of `what` ("products of
// matrices").
bool whole_warp_is_here(const Instr* instr, const Warp& warp, absl::string_view what);

}  // namespace heddle::ir::interp
