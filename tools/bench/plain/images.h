// Pixels and grids in two dimensions, one thread an output.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::plain {

// Bytes of red, green and blue to grey (ITU-R BT.601 in 1/256).
inline const auto grey =
    define_kernel("grey(rgb, y)", [](Tensor<const uint8_t, 2> rgb, Tensor<uint8_t, 1> y) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < y.shape(0), [&] {
        const Int sum = 77 * rgb(i, 0) + 150 * rgb(i, 1) + 29 * rgb(i, 2);
        y(i) = cast<uint8_t>(sum >> 8);
      });
    });

// After PolyBench/GPU's 2DCONV: 3 x 3, the frame left alone.
inline const auto convolution = define_kernel("convolution(a, b)", [](Tensor<const float, 2> a,
                                                                      Tensor<float, 2> b) {
  constexpr float kWeights[3][3] = {{0.2f, 0.5f, -0.8f}, {-0.3f, 0.6f, -0.9f}, {0.4f, 0.7f, 0.1f}};
  const Int j = block_idx.x * block_dim.x + thread_idx.x;
  const Int i = block_idx.y * block_dim.y + thread_idx.y;
  If(i > 0 && i < a.shape(0) - 1 && j > 0 && j < a.shape(1) - 1, [&] {
    Var<float> sum(0.0f);
    for (int r = -1; r <= 1; ++r) {
      for (int s = -1; s <= 1; ++s) sum += kWeights[s + 1][r + 1] * a(i + r, j + s);
    }
    b(i, j) = sum;
  });
});

// What a step of hotspot takes: the inverse of the resistances, and the step over the capacity.
struct Heat {
  Float across, down, up, step;
};

// After Rodinia's hotspot: a step of a chip's temperature, edges repeated.
inline const auto hotspot = define_kernel(
    "hotspot(power, x, y, across, down, up, step)",
    [](Tensor<const float, 2> power, Tensor<const float, 2> x, Tensor<float, 2> y, Heat heat) {
      constexpr float kAmbient = 80;
      const Int j = block_idx.x * block_dim.x + thread_idx.x;
      const Int i = block_idx.y * block_dim.y + thread_idx.y;
      const Int rows = x.shape(0), columns = x.shape(1);
      If(i < rows && j < columns, [&] {
        const Float here = x(i, j);
        const Float north = x(max(i - 1, 0), j), south = x(min(i + 1, rows - 1), j);
        const Float west = x(i, max(j - 1, 0)), east = x(i, min(j + 1, columns - 1));
        y(i, j) = here + heat.step * (power(i, j) + (south + north - 2.0f * here) * heat.down +
                                      (east + west - 2.0f * here) * heat.across +
                                      (kAmbient - here) * heat.up);
      });
    });

// What im2col takes: of the image, of the filter, of the result.
struct Window {
  Int height, width, size, pad, stride, out_height, out_width;
};

// After Caffe's im2col_gpu_kernel: one thread a channel and pixel of the result.
inline const auto im2col = define_kernel(
    "im2col(image, columns, height, width, size, pad, stride, out_height, out_width)",
    [](Tensor<const float, 1> image, Tensor<float, 1> columns, Window w) {
      const Int n = block_idx.x * block_dim.x + thread_idx.x;
      const Int pixels = w.out_height * w.out_width;
      If(n < columns.shape(0) / (w.size * w.size), [&] {
        const Int row = n / w.out_width, out_column = n % w.out_width;
        const Int out_row = row % w.out_height, channel = row / w.out_height;
        const Int first_row = out_row * w.stride - w.pad, first = out_column * w.stride - w.pad;
        const Int start = (channel * w.height + first_row) * w.width + first;
        Var<int32_t> place((channel * w.size * w.size * w.out_height + out_row) * w.out_width +
                           out_column);
        for (Int r : range(w.size)) {
          for (Int s : range(w.size)) {
            const Int i = first_row + r, j = first + s;
            const Bool inside = i >= 0 && j >= 0 && i < w.height && j < w.width;
            const Float value = If(
                inside, [&] { return Float(image(start + r * w.width + s)); },
                [] { return Float(0); });
            columns(place) = value;
            place += pixels;
          }
        }
      });
    });

}  // namespace heddle::plain
