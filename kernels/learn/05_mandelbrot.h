// 5. Mandelbrot set: a loop whose length only the data know.
//
//   mandelbrot.launch(stream, mandelbrot_shape(height, width), image, View{-2, -1.25, 0.003f},
//   256);
//
// z ← z² + c is repeated until |z| > 2 or a limit. A While carries the values that change and asks
// before each trip. A warp goes on until its last thread is done, so square blocks waste less than
// long ones: near points take about equally long.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

// The image's corner in the complex plane, and the distance of its points.
struct Window {
  Float left, top, step;
};

struct Orbit {
  Float re, im;
  Int count;
};

inline const auto mandelbrot = define_kernel(
    "mandelbrot(image, left, top, step, limit)",
    [](Tensor<int32_t, 2> image, Window window, Int limit) {
      Int row = block_idx.y * block_dim.y + thread_idx.y;
      Int column = block_idx.x * block_dim.x + thread_idx.x;
      If(row < image.shape(0) && column < image.shape(1), [&] {
        Float re = fma(cast<float>(column), window.step, window.left);
        Float im = fma(cast<float>(row), window.step, window.top);
        Orbit end = While(
            Orbit{0, 0, 0},
            [&](Orbit z) { return z.count < limit && fma(z.re, z.re, z.im * z.im) <= 4.0f; },
            [&](Orbit z) {
              return Orbit{fma(z.re, z.re, fma(-z.im, z.im, re)), fma(z.re + z.re, z.im, im),
                           z.count + 1};
            });
        image(row, column) = end.count;
      });
    });

constexpr LaunchShape mandelbrot_shape(int64_t height, int64_t width) {
  return {.grid = {(width + 15) / 16, (height + 15) / 16}, .block = {16, 16}};
}

}  // namespace heddle::learn
