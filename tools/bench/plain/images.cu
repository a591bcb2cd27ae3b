// Twins of images.h.
extern "C" __global__ __launch_bounds__(256) void cuda_grey(const unsigned char* __restrict__ rgb,
                                                            unsigned char* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8;
}

extern "C" __global__ __launch_bounds__(256) void cuda_convolution(const float* __restrict__ a,
                                                                   float* __restrict__ b, int rows,
                                                                   int columns) {
  constexpr float kWeights[3][3] = {{0.2f, 0.5f, -0.8f}, {-0.3f, 0.6f, -0.9f}, {0.4f, 0.7f, 0.1f}};
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 0 && i < rows - 1 && j > 0 && j < columns - 1) {
    float sum = 0;
    for (int r = -1; r <= 1; ++r) {
      for (int s = -1; s <= 1; ++s) sum += kWeights[s + 1][r + 1] * a[(i + r) * columns + j + s];
    }
    b[i * columns + j] = sum;
  }
}

struct Heat {
  float across, down, up, step;
};
extern "C" __global__ __launch_bounds__(256) void cuda_hotspot(const float* __restrict__ power,
                                                               const float* __restrict__ x,
                                                               float* __restrict__ y, Heat heat,
                                                               int rows, int columns) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= rows || j >= columns) return;
  const float here = x[i * columns + j];
  const float north = x[max(i - 1, 0) * columns + j], south = x[min(i + 1, rows - 1) * columns + j];
  const float west = x[i * columns + max(j - 1, 0)],
              east = x[i * columns + min(j + 1, columns - 1)];
  y[i * columns + j] =
      here + heat.step * (power[i * columns + j] + (south + north - 2.0f * here) * heat.down +
                          (east + west - 2.0f * here) * heat.across + (80.0f - here) * heat.up);
}

struct Window {
  int height, width, size, pad, stride, out_height, out_width;
};
extern "C" __global__ __launch_bounds__(256) void cuda_im2col(const float* __restrict__ image,
                                                              float* __restrict__ columns, Window w,
                                                              int count) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= count) return;
  const int row = n / w.out_width, out_column = n % w.out_width;
  const int out_row = row % w.out_height, channel = row / w.out_height;
  const int first_row = out_row * w.stride - w.pad, first = out_column * w.stride - w.pad;
  image += (channel * w.height + first_row) * w.width + first;
  columns += (channel * w.size * w.size * w.out_height + out_row) * w.out_width + out_column;
  for (int r = 0; r < w.size; ++r) {
    for (int s = 0; s < w.size; ++s) {
      const int i = first_row + r, j = first + s;
      const bool inside = i >= 0 && j >= 0 && i < w.height && j < w.width;
      *columns = inside ? image[r * w.width + s] : 0;
      columns += w.out_height * w.out_width;
    }
  }
}
