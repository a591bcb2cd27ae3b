// After cuda-samples' Mandelbrot: a thread a point, 16 × 16 blocks. fmaf as in Heddle's program, so
// that both round alike and every count must agree.
extern "C" __global__ void cuda_mandelbrot(int* __restrict__ image, int height, int width, float left,
                                      float top, float step, int limit) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= height || column >= width) return;
  const float re = fmaf(static_cast<float>(column), step, left);
  const float im = fmaf(static_cast<float>(row), step, top);
  float x = 0, y = 0;
  int count = 0;
  while (count < limit && fmaf(x, x, y * y) <= 4.0f) {
    const float next = fmaf(x, x, fmaf(-y, y, re));
    y = fmaf(x + x, y, im);
    x = next;
    ++count;
  }
  image[row * width + column] = count;
}
