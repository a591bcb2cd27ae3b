// Loops over long arrays.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::plain {

// After BabelStream: a = b + scalar c, one thread an element.
inline const auto triad = define_kernel(
    "triad(a, b, c, scalar)",
    [](Tensor<float, 1> a, Tensor<const float, 1> b, Tensor<const float, 1> c, Float scalar) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < a.shape(0), [&] { a(i) = b(i) + scalar * c(i); });
    });

// After BabelStream: each block's part of the dot product of a and b.
inline const auto dot =
    define_kernel("dot(a, b, sums)",
                  [](Tensor<const float, 1> a, Tensor<const float, 1> b, Tensor<float, 1> sums) {
                    Var<float> sum(0.0f);
                    const Int first = block_idx.x * block_dim.x + thread_idx.x;
                    for (Int i : range(first, a.shape(0), block_dim.x * grid_dim.x))
                      sum += a(i) * b(i);
                    const Float total = block_reduce(Float(sum), plus());
                    If(thread_idx.x == 0, [&] { sums(block_idx.x) = total; });
                  });

// y = y + a x of half precision, in a loop with the grid's stride.
inline const auto half_axpy =
    define_kernel("half_axpy(x, y, a)", [](Tensor<const half, 1> x, Tensor<half, 1> y, Half a) {
      const Int first = block_idx.x * block_dim.x + thread_idx.x;
      for (Int i : range(first, x.shape(0), block_dim.x * grid_dim.x)) y(i) = fma(a, x(i), y(i));
    });

// y = x scale in 8 bits, and back in 16: what a quantised model does between products.
inline const auto quantise = define_kernel(
    "quantise(x, y, scale)", [](Tensor<const float, 1> x, Tensor<float8_e4m3, 1> y, Float scale) {
      const Int first = block_idx.x * block_dim.x + thread_idx.x;
      for (Int i : range(first, x.shape(0), block_dim.x * grid_dim.x))
        y(i) = cast<float8_e4m3>(x(i) * scale);
    });
inline const auto dequantise = define_kernel(
    "dequantise(x, y, scale)", [](Tensor<const float8_e4m3, 1> x, Tensor<half, 1> y, Half scale) {
      const Int first = block_idx.x * block_dim.x + thread_idx.x;
      for (Int i : range(first, x.shape(0), block_dim.x * grid_dim.x))
        y(i) = cast<half>(x(i)) * scale;
    });

// Stockham's Fourier transform of 512 complex numbers a block, in shared memory: nine steps of radix 2. `roots` are
// exp(-i pi k / 256).
inline const auto fft = define_kernel(
    "fft(x, roots, y)",
    [](Tensor<const float, 3> x, Tensor<const float, 2> roots, Tensor<float, 3> y) {
      constexpr int kHalf = 256, kSteps = 9;
      Shared<float, 3> numbers({2, 2 * kHalf, 2});
      const Int of_block = block_idx.x;
      const UInt thread = cast<uint32_t>(Int(thread_idx.x));
      for (int part : {0, 1}) {
        numbers(0, thread, part) = x(of_block, thread, part);
        numbers(0, thread + kHalf, part) = x(of_block, thread + kHalf, part);
      }
      for (Int step : range(kSteps)) {
        sync_threads();
        const UInt width = UInt(1) << cast<uint32_t>(step);
        const UInt k = thread % width, group = thread / width;
        const Int from = step % 2, to = 1 - from;
        const Float re = numbers(from, thread + kHalf, 0), im = numbers(from, thread + kHalf, 1);
        const UInt root = k * (kHalf / width);
        const Float c = roots(root, 0), s = roots(root, 1);
        const Float product_re = re * c - im * s, product_im = re * s + im * c;
        const Float a_re = numbers(from, thread, 0), a_im = numbers(from, thread, 1);
        const UInt first = group * width * 2 + k, second = first + width;
        numbers(to, first, 0) = a_re + product_re;
        numbers(to, first, 1) = a_im + product_im;
        numbers(to, second, 0) = a_re - product_re;
        numbers(to, second, 1) = a_im - product_im;
      }
      sync_threads();
      for (int part : {0, 1}) {
        y(of_block, thread, part) = numbers(kSteps % 2, thread, part);
        y(of_block, thread + kHalf, part) = numbers(kSteps % 2, thread + kHalf, part);
      }
    });

// After cuda-samples' fastWalshTransform, modulateKernel's partner: four elements `stride` apart.
inline const auto walsh = define_kernel(
    "walsh(x, y, stride)", [](Tensor<const float, 1> x, Tensor<float, 1> y, Int stride) {
      const Int n = block_idx.x * block_dim.x + thread_idx.x;
      If(n < x.shape(0) / 4, [&] {
        const Int low = n & (stride - 1), first = (n - low) * 4 + low;
        const Float a = x(first), b = x(first + stride), c = x(first + 2 * stride);
        const Float d = x(first + 3 * stride);
        const Float ac = a + c, bd = b + d, a_c = a - c, b_d = b - d;
        y(first) = ac + bd;
        y(first + stride) = ac - bd;
        y(first + 2 * stride) = a_c + b_d;
        y(first + 3 * stride) = a_c - b_d;
      });
    });

// After HeCBench's gelu: bias + GELU by tanh, in place, of half precision.
inline const auto bias_gelu =
    define_kernel("bias_gelu(x, bias, y)",
                  [](Tensor<const half, 2> x, Tensor<const half, 1> bias, Tensor<half, 2> y) {
                    const Int row = block_idx.x;
                    for (Int i : range(thread_idx.x, x.shape(1), block_dim.x)) {
                      const Float v = cast<float>(x(row, i)) + cast<float>(bias(i));
                      const Float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
                      y(row, i) = cast<half>(0.5f * v * (1.0f + tanh(inner)));
                    }
                  });

}  // namespace heddle::plain
