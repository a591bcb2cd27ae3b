// The kernels of a product on Hopper's tensor cores: one for each element type and configuration.
#pragma once

#include "heddle/kernels/gemm/config.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// d = a * b^T of batches: a is (m, k, batch), b is (n, k, batch) and d is (m, n, batch).
template <class T>
using GemmKernel = Kernel<Tensor<const T, 3>, Tensor<const T, 3>, Tensor<T, 3>>;
template <class T>
const GemmKernel<T>& hopper_gemm(const GemmConfig& config);

}  // namespace heddle::kernels
