// Inputs of the products, and whether results are right: by Heddle's kernels, and on the host in double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "heddle/runtime/heddle.h"
#include "heddle/tools/bench/figures.h"
#include "heddle/tools/bench/peers/peer.h"

namespace heddle::bench {

using runtime::DeviceAddress;

// An element type of the benchmark.
struct Dtype {
  const char* name;
  int bytes;
  const char* result;  // the type of d
  int bits;            // of an input's random number: so many that the type holds it exactly, or 24
  double relative;     // how much of a result rounding to d's type may change
  // How much the order of the sums may change, for each element of a sum: f32, of which the tensor cores keep 14
  // bits where they multiply e4m3.
  double absolute;
};
inline constexpr Dtype kDtypes[] = {
    {"bf16", 2, "bf16", 24, 0x1p-8, 0x1p-20}, {"f16", 2, "f16", 24, 0x1p-11, 0x1p-20},
    {"tf32", 4, "f32", 11, 0x1p-23, 0x1p-20}, {"e4m3", 1, "bf16", 24, 0x1p-8, 0x1p-13},
    {"f32", 4, "f32", 24, 0x1p-23, 0x1p-20},  {"i32", 4, "i32", 0, 0, 0},
};
inline const Dtype* dtype_of(const std::string& name) {
  for (const Dtype& dtype : kDtypes) {
    if (name == dtype.name) return &dtype;
  }
  return nullptr;
}

// The random number of element i: a multiple of 2^(1 - bits) in [-1, 1), before it is rounded to the element's type.
inline uint32_t random_bits(uint32_t i, uint32_t seed) {
  const uint32_t state = i * 747796405u + seed;
  const uint32_t word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
  return (word >> 22) ^ word;
}
inline float random_number(uint32_t i, uint32_t seed, int bits) {
  return std::ldexp(static_cast<float>(random_bits(i, seed) >> (32 - bits)), 1 - bits) - 1;
}

template <class T>
const auto& fill_kernel() {
  static const auto kernel = define_kernel(
      "fill(x, seed, shift, step)", [](Tensor<T, 1> x, UInt seed, UInt shift, Float step) {
        const Int first = block_idx.x * block_dim.x + thread_idx.x;
        for (Int i : range(first, x.shape(0), grid_dim.x * block_dim.x)) {
          const UInt state = cast<uint32_t>(i) * 747796405u + seed;
          const UInt word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
          const UInt bits = (word >> 22) ^ word;
          x(i) = cast<T>(cast<float>(bits >> shift) * step - 1.0f);
        }
      });
  return kernel;
}

// Counts the elements of y that are not x's within the tolerance; NaN is within none.
template <class T>
const auto& compare_kernel() {
  static const auto kernel = define_kernel(
      "compare(x, y, wrong, relative, absolute)",
      [](Tensor<const T, 1> x, Tensor<const T, 1> y, Tensor<int32_t, 1> wrong, Float relative,
         Float absolute) {
        const Int first = block_idx.x * block_dim.x + thread_idx.x;
        for (Int i : range(first, x.shape(0), grid_dim.x * block_dim.x)) {
          const Float expected = cast<float>(x(i));
          const Float off = abs(cast<float>(y(i)) - expected);
          If(!(off <= absolute + relative * abs(expected)), [&] { atomic_add(wrong(0), 1); });
        }
      });
  return kernel;
}

inline constexpr LaunchShape kWide = {.grid = 1024, .block = 256};

template <class T>
Status fill_as(const Stream& stream, DeviceAddress at, int64_t count, uint32_t seed, int bits) {
  return fill_kernel<T>().launch(stream, kWide, TensorRef<T, 1>(reinterpret_cast<T*>(at), {count}),
                                 seed, static_cast<uint32_t>(32 - bits),
                                 std::ldexp(1.0f, 1 - bits));
}
inline Status fill_random(const Stream& stream, const Dtype& dtype, DeviceAddress at, int64_t count,
                          uint32_t seed) {
  const std::string name = dtype.name;
  if (name == "bf16") return fill_as<bfloat16>(stream, at, count, seed, dtype.bits);
  if (name == "f16") return fill_as<half>(stream, at, count, seed, dtype.bits);
  if (name == "e4m3") return fill_as<float8_e4m3>(stream, at, count, seed, dtype.bits);
  return fill_as<float>(stream, at, count, seed, dtype.bits);
}

// The element that fill_random() wrote.
inline double filled(const Dtype& dtype, int64_t i, uint32_t seed) {
  const float number = random_number(static_cast<uint32_t>(i), seed, dtype.bits);
  const std::string name = dtype.name;
  if (name == "bf16") return bfloat16(number).to_float();
  if (name == "f16") return half(number).to_float();
  if (name == "e4m3") return float8_e4m3(number).to_float();
  return number;
}

// An element in memory.
inline double number_at(const std::string& dtype, const void* bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, bytes, static_cast<size_t>(dtype_of(dtype)->bytes));
  if (dtype == "bf16") return bfloat16::from_bits(static_cast<uint16_t>(bits)).to_float();
  if (dtype == "f16") return half::from_bits(static_cast<uint16_t>(bits)).to_float();
  float number;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

template <class T>
Status compare_as(const Stream& stream, DeviceAddress x, DeviceAddress y, int64_t count,
                  const Buffer& wrong, double relative, double absolute) {
  return compare_kernel<T>().launch(
      stream, kWide, TensorRef<const T, 1>(reinterpret_cast<const T*>(x), {count}),
      TensorRef<const T, 1>(reinterpret_cast<const T*>(y), {count}), as_tensor<int32_t>(wrong, {1}),
      static_cast<float>(relative), static_cast<float>(absolute));
}

// How many of `count` elements differ.
inline int32_t count_wrong(const Device& device, const Stream& stream, const std::string& dtype,
                           DeviceAddress x, DeviceAddress y, int64_t count, double relative,
                           double absolute) {
  Buffer wrong = take(device.allocate(sizeof(int32_t)));
  check(wrong.fill(stream, 0));
  if (dtype == "bf16") check(compare_as<bfloat16>(stream, x, y, count, wrong, relative, absolute));
  if (dtype == "f16") check(compare_as<half>(stream, x, y, count, wrong, relative, absolute));
  if (dtype == "f32") check(compare_as<float>(stream, x, y, count, wrong, relative, absolute));
  return take(wrong.download<int32_t>(stream))[0];
}

}  // namespace heddle::bench
