// What `heddle run gemm --check` allows: what tensor cores lose, of which there is a model here, and no more.
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/float_bits.h"
#include "heddle/runtime/operation/registry.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using ir::Scalar;
using runtime::Expected;
using runtime::HostValues;

using Values = std::function<double(std::mt19937& random)>;

double uniform(std::mt19937& random) { return std::uniform_real_distribution<>(-1, 1)(random); }
double positive(std::mt19937& random) { return std::uniform_real_distribution<>(0, 1)(random); }
double whole(std::mt19937& random) { return std::uniform_int_distribution<>(-3, 3)(random); }
// Large ones of both signs, of which little remains.
double cancelling(std::mt19937& random) {
  return std::ldexp(uniform(random), std::uniform_int_distribution<>(-6, 6)(random));
}

HostValues matrix(Scalar dtype, std::vector<int64_t> extents, const Values& values, unsigned seed) {
  std::mt19937 random(seed);
  HostValues made{{dtype, extents}, {}};
  for (int64_t i = 0; i < extents[0] * extents[1]; ++i) {
    made.values.push_back(ir::float_value(dtype, ir::float_bits(dtype, values(random))));
  }
  return made;
}

constexpr int64_t kRows = 6, kColumns = 7;

// A product with f32 results, and what its reference says.
struct Product {
  Product(const char* dtype_, Scalar scalar, int64_t depth_, const Values& values)
      : depth(depth_),
        a(matrix(scalar, {kRows, depth_}, values, 1)),
        b(matrix(scalar, {kColumns, depth_}, values, 2)) {
    const runtime::Operation& gemm = *runtime::find_operation("gemm");
    const Settings settings = gemm.resolve({{"dtype", dtype_}, {"out", "f32"}}).value();
    expected = gemm.spec()
                   .reference(settings,
                              {{"a", a}, {"b", b}, {"d", {{Scalar::kF32, {kRows, kColumns}}, {}}}})
                   .value()
                   .at("d");
  }
  double term(int64_t i, int64_t k) const {
    return a.values[static_cast<size_t>(i / kColumns * depth + k)] *
           b.values[static_cast<size_t>(i % kColumns * depth + k)];
  }

  int64_t depth;
  HostValues a, b;
  Expected expected;
};

double cut(double x, double unit) { return std::trunc(x / unit) * unit; }

// The sum of an element as tensor cores form it, from a place of the depth up to another.
float tensor_core_sum(const Product& product, int64_t i, int instruction, int bits, int64_t from,
                      int64_t to) {
  double sum = 0;
  for (int64_t first = from; first < to; first += instruction) {
    double largest = std::abs(sum);
    for (int64_t k = first; k < std::min(first + instruction, to); ++k) {
      largest = std::max(largest, std::abs(product.term(i, k)));
    }
    if (largest == 0) continue;
    const double unit = std::ldexp(1.0, std::ilogb(largest) - bits);
    double next = cut(sum, unit);
    for (int64_t k = first; k < std::min(first + instruction, to); ++k) {
      next += cut(product.term(i, k), unit);
    }
    sum = next == 0 ? 0 : cut(next, std::ldexp(1.0, std::ilogb(next) - 23));
  }
  return static_cast<float>(sum);
}

struct Type {
  const char* name;
  Scalar scalar;
  int instruction, bits;
};
constexpr Type kTypes[] = {{"f16", Scalar::kF16, 16, 24},
                           {"bf16", Scalar::kBF16, 16, 24},
                           {"tf32", Scalar::kTF32, 8, 24},
                           {"e4m3", Scalar::kE4M3, 32, 13}};

TEST(GemmReference, AllowsWhatTensorCoresLose) {
  for (const Type& type : kTypes) {
    for (const Values& values :
         {Values(uniform), Values(positive), Values(whole), Values(cancelling)}) {
      for (const int64_t depth : {1, 40, 1024, 8200}) {
        const Product product(type.name, type.scalar, depth, values);
        for (int64_t i = 0; i < kRows * kColumns; ++i) {
          const double exact = product.expected.values[static_cast<size_t>(i)];
          const double allowed = product.expected.tolerance[static_cast<size_t>(i)];
          const double whole_sum =
              tensor_core_sum(product, i, type.instruction, type.bits, 0, depth);
          ASSERT_NEAR(whole_sum, exact, allowed) << type.name << " " << depth << " " << i;
          // And in two parts, as kernels with few tiles form it.
          const int64_t middle = depth / 2 / type.instruction * type.instruction;
          const double parts =
              static_cast<double>(
                  tensor_core_sum(product, i, type.instruction, type.bits, 0, middle)) +
              tensor_core_sum(product, i, type.instruction, type.bits, middle, depth);
          ASSERT_NEAR(parts, exact, allowed) << type.name << " " << depth << " " << i;
        }
      }
    }
  }
}

// Where one instruction is left out, most elements show it.
TEST(GemmReference, SeesAMissingInstruction) {
  for (const Type& type : kTypes) {
    for (const int64_t depth : {64, 1024, 4096}) {
      const Product product(type.name, type.scalar, depth, uniform);
      int seen = 0;
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        double missing = 0;
        for (int64_t k = 0; k < type.instruction; ++k) missing += product.term(i, k);
        seen += std::abs(missing) > product.expected.tolerance[static_cast<size_t>(i)];
      }
      EXPECT_GE(seen, kRows * kColumns / 2) << type.name << " " << depth;
    }
  }
}

TEST(GemmReference, RoundsToTheTypeOfTheResult) {
  const runtime::Operation& gemm = *runtime::find_operation("gemm");
  const auto expected = [&](const char* out, Scalar scalar, double a) {
    const Settings settings = gemm.resolve({{"dtype", out}, {"out", out}}).value();
    return gemm.spec()
        .reference(settings, {{"a", {{scalar, {1, 1}}, {a}}},
                              {"b", {{scalar, {1, 1}}, {1}}},
                              {"d", {{scalar, {1, 1}}, {}}}})
        .value()
        .at("d");
  };
  const Expected half = expected("f16", Scalar::kF16, 1);
  EXPECT_EQ(half.values[0], 1);
  EXPECT_GE(half.tolerance[0], 0x1p-11);
  EXPECT_LE(half.tolerance[0], 0x1.01p-11);
  EXPECT_LE(expected("bf16", Scalar::kBF16, 1).tolerance[0], 0x1.01p-8);
  // What f16 does not hold is infinite, and near its limit both will do.
  EXPECT_EQ(expected("f16", Scalar::kF16, 70000).values[0], HUGE_VAL);
  EXPECT_EQ(expected("f16", Scalar::kF16, -70000).values[0], -HUGE_VAL);
  EXPECT_EQ(expected("f16", Scalar::kF16, 65520).tolerance[0], HUGE_VAL);
  EXPECT_LT(expected("f16", Scalar::kF16, 65400).tolerance[0], 33);
}

}  // namespace
}  // namespace heddle
