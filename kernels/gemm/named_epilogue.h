// Epilogues by name, for callers that choose one at run time, such as `heddle run gemm --set
// epilogue=bias_gelu`. A row of the table is an epilogue: traced for the kernel, and in double
// precision for its reference.
//
//   const NamedEpilogue& row = named_epilogues()[5];   // {"bias_gelu", …}
//   gemm_with(stream, ChosenEpilogue<half>{5}, a, b, d, alpha, beta, c, bias, residual);
#pragma once

#include <functional>
#include <vector>

#include "heddle/kernels/gemm/epilogue.h"

namespace heddle::kernels {

// What an epilogue may add, in the order of the sums; asked for where it is added.
struct TracedAddends {
  // The bias of each element's column, and the residual of each element.
  std::function<Fragment<float>()> bias, residual;
  // Whether results are rounded to 16 bits, for which faster functions are close enough.
  bool is_narrow = false;
};
// The same of one element.
struct Addends {
  // 0 where the row takes none.
  double bias = 0, residual = 0;
};

// An epilogue of x = alpha * a * b^T + beta * c.
struct NamedEpilogue {
  const char* name;     // as `--set epilogue=` has it
  bool bias, residual;  // which of the two it takes
  Fragment<float> (*traced)(const Fragment<float>& x, const TracedAddends& with);  // in the kernel
  double (*exact)(double x, const Addends& with);                                  // its reference
  // For its reference: how much it enlarges an error of x at most; and what its own function is off, of
  // 1 + |x|, for results of 32 bits and of 16.
  double slope = 1, rounding = 0, narrow_rounding = 0;
};
// The rows, the first of which leaves x as it is.
const std::vector<NamedEpilogue>& named_epilogues();
// A row for gemm_with(); what it takes is what gemm() has, and bias and residual. Those that it does not
// use may be empty.
template <class D>
struct ChosenEpilogue {
  int row = 0;          // of named_epilogues()
  bool scales = false;  // by alpha
  bool adds = false;    // beta * c

  friend bool operator==(const ChosenEpilogue&, const ChosenEpilogue&) = default;
  // What is stored.
  Fragment<float> operator()(const GemmPart& part, const Fragment<float>& sums, Float alpha,
                             Float beta, Tensor<const D, 3> c, Tensor<const float, 1> bias,
                             Tensor<const D, 3> residual) const {
    const Fragment<float> scaled = scales ? sums * alpha : sums;
    return named_epilogues()[static_cast<size_t>(row)].traced(
        adds ? scaled + part.of(c) * beta : scaled,
        {[&] { return part.by_column(bias); }, [&] { return part.of(residual); }, sizeof(D) <= 2});
  }
};

}  // namespace heddle::kernels
