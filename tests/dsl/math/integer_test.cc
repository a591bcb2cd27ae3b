// Integer functions of the language from lambda to result, on whatever device the tests run on,
// against the host's arithmetic.
#include <bit>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

template <class T>
std::vector<T> samples(int count) {
  std::vector<T> values = {0,
                           1,
                           2,
                           31,
                           32,
                           33,
                           static_cast<T>(-1),
                           static_cast<T>(-2),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max()};
  std::mt19937_64 random(7);
  while (static_cast<int>(values.size()) < count) values.push_back(static_cast<T>(random()));
  return values;
}

constexpr int kCount = 128;

// Runs `body(a, b, c)` in a thread for each of many triples and compares with `host(a, b, c)`.
template <class T, class R, class Body, class Host>
void expect_same(const char* name, Body body, Host host) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = local_kernel(
      name, [&](Tensor<const T, 1> a, Tensor<const T, 1> b, Tensor<const T, 1> c, Tensor<R, 1> y) {
        const Int i = thread_idx.x;
        y(i) = body(a(i), b(i), c(i));
      });
  const std::vector<T> values = samples<T>(kCount);
  std::vector<T> columns[3];
  for (int i = 0; i < kCount; ++i) {
    columns[0].push_back(values[i]);
    columns[1].push_back(values[(7 * i + 3) % kCount]);
    columns[2].push_back(values[(11 * i + 5) % kCount]);
  }
  std::vector<Buffer> memory;
  for (const std::vector<T>& column : columns) {
    memory.push_back(device.upload(absl::MakeConstSpan(column)).value());
  }
  const Buffer out = device.allocate(kCount * sizeof(R)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = kCount}, as_tensor<const T>(memory[0], {kCount}),
                            as_tensor<const T>(memory[1], {kCount}),
                            as_tensor<const T>(memory[2], {kCount}), as_tensor<R>(out, {kCount})),
              IsOk())
      << name;
  const std::vector<R> got = out.download<R>(stream).value();
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(got[i], host(columns[0][i], columns[1][i], columns[2][i]))
        << name << " of " << columns[0][i] << ", " << columns[1][i] << ", " << columns[2][i];
  }
}

template <class T>
class IntegerTest : public testing::Test {};
using Types = testing::Types<int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(IntegerTest, Types);

TYPED_TEST(IntegerTest, Bits) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  using V = Value<T>;
  expect_same<T, int>(
      "popc", [](V a, V, V) { return popc(a); },
      [](T a, T, T) { return std::popcount(static_cast<U>(a)); });
  expect_same<T, int>(
      "clz", [](V a, V, V) { return clz(a); },
      [](T a, T, T) { return std::countl_zero(static_cast<U>(a)); });
  expect_same<T, int>(
      "ffs", [](V a, V, V) { return ffs(a); },
      [](T a, T, T) { return a == 0 ? 0 : std::countr_zero(static_cast<U>(a)) + 1; });
  expect_same<T, T>(
      "brev", [](V a, V, V) { return brev(a); },
      [](T a, T, T) {
        U r = 0;
        for (size_t i = 0; i < 8 * sizeof(T); ++i) r = r << 1 | (static_cast<U>(a) >> i & 1);
        return static_cast<T>(r);
      });
  // Fields of every length, at the top too.
  expect_same<T, T>(
      "extract",
      [](V a, V b, V c) {
        return bit_extract(a, cast<uint32_t>(b) % 70u, cast<uint32_t>(c) % 70u);
      },
      [](T a, T b, T c) {
        const uint32_t start = static_cast<uint32_t>(b) % 70,
                       length = static_cast<uint32_t>(c) % 70;
        const uint32_t bits = 8 * sizeof(T);
        T result = 0;
        for (uint32_t i = 0; i < std::min(length, bits); ++i) {
          const uint32_t from = start + i;
          const bool sign = std::is_signed_v<T> && a < 0;
          const bool set = from < bits ? (static_cast<U>(a) >> from & 1) != 0 : sign;
          if (set) result = static_cast<T>(static_cast<U>(result) | U{1} << i);
        }
        const bool negative = std::is_signed_v<T> && length > 0 && length < bits &&
                              (static_cast<U>(result) >> (length - 1) & 1) != 0;
        return negative ? static_cast<T>(static_cast<U>(result) | ~U{0} << length) : result;
      });
  expect_same<T, T>(
      "insert",
      [](V a, V b, V c) {
        return bit_insert(a, b, cast<uint32_t>(c) % 70u, cast<uint32_t>(a) % 70u);
      },
      [](T a, T b, T c) {
        const uint32_t start = static_cast<uint32_t>(c) % 70,
                       length = static_cast<uint32_t>(a) % 70;
        U result = static_cast<U>(a);
        for (uint32_t i = 0; i < length && start + i < 8 * sizeof(T); ++i) {
          const U one = U{1} << (start + i);
          const bool set = i < 8 * sizeof(T) && (static_cast<U>(b) >> i & 1) != 0;
          result = set ? result | one : result & ~one;
        }
        return static_cast<T>(result);
      });
}

TYPED_TEST(IntegerTest, Arithmetic) {
  using T = TypeParam;
  using V = Value<T>;
  __extension__ using Wide = __int128;
  __extension__ using UnsignedWide = unsigned __int128;
  using Product = std::conditional_t<std::is_signed_v<T>, Wide, UnsignedWide>;
  expect_same<T, T>(
      "mulhi_", [](V a, V b, V) { return mulhi(a, b); },
      [](T a, T b, T) {
        return static_cast<T>(static_cast<Product>(a) * static_cast<Product>(b) >> 8 * sizeof(T));
      });
  const auto defined = [](T a, T b) {
    return b != 0 &&
           !(std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min());
  };
  const auto divisor = [](V a, V b) {
    V lowest = std::numeric_limits<T>::min(), minus_one = static_cast<T>(-1);
    return select((b == 0) | ((b == minus_one) & (a == lowest)), V(1), b);
  };
  expect_same<T, T>(
      "floor_div_", [&](V a, V b, V) { return floor_div(a, divisor(a, b)); },
      [&](T a, T b, T) {
        if (!defined(a, b)) b = 1;
        const T q = a / b;
        return static_cast<T>(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);
      });
  expect_same<T, T>(
      "floor_mod_", [&](V a, V b, V) { return floor_mod(a, divisor(a, b)); },
      [&](T a, T b, T) {
        if (!defined(a, b)) b = 1;
        const T r = a % b;
        return static_cast<T>(r != 0 && (r < 0) != (b < 0) ? r + b : r);
      });
}

TYPED_TEST(IntegerTest, Averages) {
  using T = TypeParam;
  using V = Value<T>;
  __extension__ using Wide = __int128;
  expect_same<T, T>(
      "hadd_", [](V a, V b, V) { return hadd(a, b); },
      [](T a, T b, T) { return static_cast<T>((Wide{a} + Wide{b}) >> 1); });
  expect_same<T, T>(
      "rhadd_", [](V a, V b, V) { return rhadd(a, b); },
      [](T a, T b, T) { return static_cast<T>((Wide{a} + Wide{b} + 1) >> 1); });
}

TEST(WordTest, ClampedFunnelsAndDotProductsOfHalves) {
  using U = uint32_t;
  // Counts around 32 too.
  expect_same<U, U>(
      "shift_lc", [](UInt a, UInt b, UInt c) { return funnelshift_lc(a, b, c % 40u); },
      [](U a, U b, U c) {
        const uint64_t both = uint64_t{b} << 32 | a;
        return static_cast<U>((both << std::min(c % 40, 32u)) >> 32);
      });
  expect_same<U, U>(
      "shift_rc", [](UInt a, UInt b, UInt c) { return funnelshift_rc(a, b, c); },
      [](U a, U b, U c) { return static_cast<U>((uint64_t{b} << 32 | a) >> std::min(c, 32u)); });
  const auto product = [](auto half, auto byte) {
    return static_cast<U>(static_cast<int64_t>(half) * static_cast<int64_t>(byte));
  };
  expect_same<int32_t, int32_t>(
      "dp2a", [](Int a, Int b, Int c) { return dp2a_lo(a, b, c) ^ dp2a_hi(b, a, c); },
      [&](int32_t a, int32_t b, int32_t c) {
        const auto dot = [&](int32_t halves, int32_t bytes) {
          return static_cast<U>(c) +
                 product(static_cast<int16_t>(halves), static_cast<int8_t>(bytes)) +
                 product(static_cast<int16_t>(halves >> 16), static_cast<int8_t>(bytes >> 8));
        };
        return static_cast<int32_t>(dot(a, b) ^ dot(b, a >> 16));
      });
  expect_same<U, U>(
      "dp2a_unsigned", [](UInt a, UInt b, UInt c) { return dp2a_lo(a, b, c) ^ dp2a_hi(b, a, c); },
      [&](U a, U b, U c) {
        const auto dot = [&](U halves, U bytes) {
          return c + product(static_cast<uint16_t>(halves), static_cast<uint8_t>(bytes)) +
                 product(static_cast<uint16_t>(halves >> 16), static_cast<uint8_t>(bytes >> 8));
        };
        return dot(a, b) ^ dot(b, a >> 16);
      });
}

TEST(WordTest, WideProductsAndCarries) {
  expect_same<int32_t, int64_t>(
      "mad", [](Int a, Int b, Int c) { return mad_wide(a, b, cast<int64_t>(c)); },
      [](int32_t a, int32_t b, int32_t c) { return int64_t{a} * b + c; });
  expect_same<uint32_t, uint64_t>(
      "mul", [](UInt a, UInt b, UInt) { return mul_wide(a, b); },
      [](uint32_t a, uint32_t b, uint32_t) { return uint64_t{a} * b; });
  // 128-bit sums and differences, by their upper words: (a, b) + (c, a), (a, b) - (c, a).
  __extension__ using Wide = unsigned __int128;
  const auto wide = [](uint64_t high, uint64_t low) { return Wide{high} << 64 | low; };
  expect_same<uint64_t, uint64_t>(
      "add",
      [](UInt64 a, UInt64 b, UInt64 c) {
        const Sum<uint64_t> low = add_carry(b, a);
        return add_carry(a, c, low.carry).value;
      },
      [&](uint64_t a, uint64_t b, uint64_t c) {
        return static_cast<uint64_t>((wide(a, b) + wide(c, a)) >> 64);
      });
  expect_same<uint64_t, uint64_t>(
      "sub",
      [](UInt64 a, UInt64 b, UInt64 c) {
        const Sum<uint64_t> low = sub_borrow(b, a);
        return sub_borrow(a, c, low.carry).value;
      },
      [&](uint64_t a, uint64_t b, uint64_t c) {
        return static_cast<uint64_t>((wide(a, b) - wide(c, a)) >> 64);
      });
}

TEST(WordTest, BytesAndFunnels) {
  using U = uint32_t;
  expect_same<U, U>(
      "left", [](UInt a, UInt b, UInt c) { return funnelshift_l(a, b, c); },
      [](U a, U b, U c) { return static_cast<U>((uint64_t{b} << 32 | a) << (c % 32) >> 32); });
  expect_same<U, U>(
      "right", [](UInt a, UInt b, UInt c) { return funnelshift_r(a, b, c); },
      [](U a, U b, U c) { return static_cast<U>((uint64_t{b} << 32 | a) >> (c % 32)); });
  expect_same<U, U>(
      "permuted", [](UInt a, UInt b, UInt c) { return byte_perm(a, b, c); },
      [](U a, U b, U c) {
        U result = 0;
        for (int i = 0; i < 4; ++i, c >>= 4) {
          const auto byte = static_cast<uint8_t>((uint64_t{b} << 32 | a) >> 8 * (c & 7));
          const U picked = (c & 8) == 0 ? byte : byte >> 7 != 0 ? 0xFFu : 0u;
          result |= picked << 8 * i;
        }
        return result;
      });
  expect_same<U, U>(
      "majority", [](UInt a, UInt b, UInt c) { return lop3<0xE8>(a, b, c); },
      [](U a, U b, U c) { return (a & b) | (a & c) | (b & c); });
  expect_same<U, U>(
      "parity", [](UInt a, UInt b, UInt c) { return lop3<0x96>(a, b, c); },
      [](U a, U b, U c) { return a ^ b ^ c; });
  expect_same<int32_t, int32_t>(
      "dot", [](Int a, Int b, Int c) { return dp4a(a, b, c); },
      [](int32_t a, int32_t b, int32_t c) {
        auto sum = static_cast<U>(c);
        for (int i = 0; i < 32; i += 8) {
          sum += static_cast<U>(static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i));
        }
        return static_cast<int32_t>(sum);
      });
  expect_same<U, U>(
      "udot", [](UInt a, UInt b, UInt c) { return dp4a(a, b, c); },
      [](U a, U b, U c) {
        for (int i = 0; i < 32; i += 8) c += (a >> i & 0xFF) * (b >> i & 0xFF);
        return c;
      });
}

TEST(WordTest, DifferencesOfBytes) {
  using U = uint32_t;
  expect_same<int32_t, int32_t>(
      "distance", [](Int a, Int b, Int) { return vabsdiff4(a, b); },
      [](int32_t a, int32_t b, int32_t) {
        U result = 0;
        for (int i = 0; i < 32; i += 8) {
          result |=
              static_cast<U>(std::abs(static_cast<int8_t>(a >> i) - static_cast<int8_t>(b >> i)))
              << i;
        }
        return static_cast<int32_t>(result);
      });
  expect_same<U, U>(
      "udistance", [](UInt a, UInt b, UInt) { return vabsdiff4(a, b); },
      [](U a, U b, U) {
        U result = 0;
        for (int i = 0; i < 32; i += 8) {
          const U x = a >> i & 0xFF, y = b >> i & 0xFF;
          result |= (x < y ? y - x : x - y) << i;
        }
        return result;
      });
}

TEST(FloatTest, Roundings) {
  const auto bits = [](Float x) { return bitcast<uint32_t>(x); };
  const auto host = [](uint32_t a, float (*f)(float)) {
    const float value = std::bit_cast<float>(a);
    return std::isnan(value) ? 0u : std::bit_cast<uint32_t>(f(value));
  };
  // Numbers of every size; a NaN's bits are nobody's business.
  const auto rounded = [&](Float x, Float y) { return select(x == x, bits(y), UInt(0)); };
  using U = uint32_t;
  const auto number = [](UInt a) { return bitcast<float>(a); };
  expect_same<U, U>(
      "down", [&](UInt a, UInt, UInt) { return rounded(number(a), floor(number(a))); },
      [&](U a, U, U) { return host(a, std::floor); });
  expect_same<U, U>(
      "up", [&](UInt a, UInt, UInt) { return rounded(number(a), ceil(number(a))); },
      [&](U a, U, U) { return host(a, std::ceil); });
  expect_same<U, U>(
      "zero", [&](UInt a, UInt, UInt) { return rounded(number(a), trunc(number(a))); },
      [&](U a, U, U) { return host(a, std::trunc); });
  expect_same<U, U>(
      "even", [&](UInt a, UInt, UInt) { return rounded(number(a), rint(number(a))); },
      [&](U a, U, U) { return host(a, std::nearbyint); });
}

}  // namespace
}  // namespace heddle
