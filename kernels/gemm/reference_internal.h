// What the operation gemm computes, in double precision (entry.cc).
#pragma once

#include <vector>

#include "heddle/kernels/reference_internal.h"

namespace heddle::kernels {

// How the files of a and b lie, row by row: a row for each choice of the setting "layout".
struct GemmFiles {
  const char* name;           // the letters of a and b
  bool a_along_m, b_along_n;  // a is k x m, and b k x n
};
const std::vector<GemmFiles>& gemm_files();

// d = epilogue(alpha a b + beta c).
Outputs gemm_reference(const Settings& settings, const Tensors& tensors);

}  // namespace heddle::kernels
