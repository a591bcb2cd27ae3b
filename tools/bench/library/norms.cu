// Twins of the norms, also of sums with a residual, and of their gradients: a block has a row in registers.
#include "columns.cuh"
#include "groups.cuh"
#include "part.cuh"

namespace {

// The mean of some elements, and that of their squared distances from it.
struct Moments {
  float mean, variance;
};
// Of equally many elements each, by Chan, Golub and LeVeque.
struct MergeMoments {};
template <int kLanes>
__device__ Moments over_lanes(Moments mine, MergeMoments) {
  const float mean = over_lanes<kLanes>(mine.mean, Plus()) / kLanes, apart = mine.mean - mean;
  return {mean, over_lanes<kLanes>(mine.variance + apart * apart, Plus()) / kLanes};
}
template <int kVectors>
__device__ Moments moments(const Part<kVectors>& part) {
  constexpr int kCount = Part<kVectors>::kCount;
  const float mean = part.sum() / kCount;
  const float squares = part.fold([&](float v, int) { return (v - mean) * (v - mean); }, Plus());
  return block_reduce<kThreads>(Moments{mean, squares / kCount}, MergeMoments());
}

__device__ float square(float v, int) { return v * v; }

template <int kVectors>
__device__ void rms_norm(const Part<kVectors>& part, const float* __restrict__ w,
                         float* __restrict__ y, float epsilon) {
  constexpr int kElements = kThreads * Part<kVectors>::kCount;
  const float squares = block_reduce<kThreads>(part.fold(square, Plus()), Plus());
  const float scale = rsqrtf(squares / kElements + epsilon);
  const Part<kVectors> weight(w);
  part.map([&](float v, int i) { return v * scale * weight[i]; }).store(y);
}

template <int kVectors>
__device__ void layer_norm(const Part<kVectors>& part, const float* __restrict__ w,
                           const float* __restrict__ b, float* __restrict__ y, float epsilon) {
  const Moments all = moments(part);
  const float scale = rsqrtf(all.variance + epsilon);
  const Part<kVectors> weight(w), bias(b);
  part.map([&](float v, int i) { return (v - all.mean) * scale * weight[i] + bias[i]; }).store(y);
}

// The block's row of x + residual, which is stored.
__device__ Part<2> added(const float* __restrict__ x, const float* __restrict__ residual,
                         float* __restrict__ sum) {
  const Part<2> part(row_of<kColumnsOfTwo>(x)), more(row_of<kColumnsOfTwo>(residual));
  const Part<2> both = part.map([&](float v, int i) { return v + more[i]; });
  both.store(row_of<kColumnsOfTwo>(sum));
  return both;
}

}  // namespace

extern "C" __global__ __launch_bounds__(kThreads) void cuda_rms_norm(const float* __restrict__ x,
                                                                     const float* __restrict__ w,
                                                                     float* __restrict__ y,
                                                                     float epsilon) {
  rms_norm(Part<>(row_of(x)), w, row_of(y), epsilon);
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_layer_norm(const float* __restrict__ x,
                                                                       const float* __restrict__ w,
                                                                       const float* __restrict__ b,
                                                                       float* __restrict__ y,
                                                                       float epsilon) {
  layer_norm(Part<>(row_of(x)), w, b, row_of(y), epsilon);
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_add_rms_norm(
    const float* __restrict__ x, const float* __restrict__ residual, const float* __restrict__ w,
    float* __restrict__ y, float* __restrict__ sum, float epsilon) {
  rms_norm(added(x, residual, sum), w, row_of<kColumnsOfTwo>(y), epsilon);
}
extern "C" __global__ __launch_bounds__(kThreads) void cuda_add_layer_norm(
    const float* __restrict__ x, const float* __restrict__ residual, const float* __restrict__ w,
    const float* __restrict__ b, float* __restrict__ y, float* __restrict__ sum, float epsilon) {
  layer_norm(added(x, residual, sum), w, b, row_of<kColumnsOfTwo>(y), epsilon);
}

// Blocks that take one row after the other, and keep the sums of their columns in registers: dx, and of each block the
// sums for w, and for b.
extern "C" __global__ __launch_bounds__(kThreads, 2) void cuda_rms_norm_backward(
    const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ dy,
    float* __restrict__ dx, float* __restrict__ sums, float epsilon, int rows) {
  const Part<2> weight(w);
  Part<2> of_w;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const Part<2> part(row_of<kColumnsOfTwo>(x, row)), by(row_of<kColumnsOfTwo>(dy, row));
    const Part<2> s = by.map([&](float d, int i) { return d * weight[i]; });
    const float2 mine = make_float2(part.fold(square, Plus()),
                                    s.fold([&](float v, int i) { return v * part[i]; }, Plus()));
    __syncthreads();  // all have read what the last row's came to
    const float2 both = block_reduce<kThreads>(mine, Plus());
    const float scale = rsqrtf(both.x / kColumnsOfTwo + epsilon),
                slope = both.y / kColumnsOfTwo * scale * scale;
    s.map([&](float v, int i) {
       return (v - part[i] * slope) * scale;
     }).store(row_of<kColumnsOfTwo>(dx, row));
    of_w = of_w.map([&](float sum, int i) { return sum + by[i] * (part[i] * scale); });
  }
  of_w.store(row_of<kColumnsOfTwo>(sums));
}

// The two reductions of a row have memory of their own, so that the barrier of either lies between the other's.
extern "C" __global__ __launch_bounds__(kThreads, 2) void cuda_layer_norm_backward(
    const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ dy,
    float* __restrict__ dx, float* __restrict__ sums, float epsilon, int rows) {
  const Part<2> weight(w);
  Part<2> of_w, of_b;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    const Part<2> part(row_of<kColumnsOfTwo>(x, row)), by(row_of<kColumnsOfTwo>(dy, row));
    const Moments all = moments(part);
    const Part<2> apart = part.map([&](float v, int) { return v - all.mean; });
    const Part<2> s = by.map([&](float d, int i) { return d * weight[i]; });
    const float2 mine =
        make_float2(s.sum(), s.fold([&](float v, int i) { return v * apart[i]; }, Plus()));
    const float2 both = block_reduce<kThreads>(mine, Plus());
    const float scale = rsqrtf(all.variance + epsilon), mean_of_s = both.x / kColumnsOfTwo,
                slope = both.y / kColumnsOfTwo * scale * scale;
    s.map([&](float v, int i) {
       return (v - mean_of_s - apart[i] * slope) * scale;
     }).store(row_of<kColumnsOfTwo>(dx, row));
    of_w = of_w.map([&](float sum, int i) { return sum + by[i] * (apart[i] * scale); });
    of_b = of_b.map([&](float sum, int i) { return sum + by[i]; });
  }
  of_w.store(row_of<kColumnsOfTwo>(sums));
  of_b.store(row_of<kColumnsOfTwo>(sums, gridDim.x + blockIdx.x));
}

// What the blocks of a norm's gradient have of the weights': (weights, blocks, columns).
extern "C" __global__ __launch_bounds__(256) void cuda_add_up_weights(
    const float* __restrict__ sums, float* __restrict__ y, int blocks, int columns) {
  sum_columns<4, 32, 8, 16>(sums, y, blocks, columns, blocks);
}
