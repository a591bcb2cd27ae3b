// Vectors whose elements share an instruction: sums in memory, arithmetic of halves, reductions of
// a warp.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using testing::HasSubstr;

const ArgumentSpec kAligned = tensor({kAny}).aligned(16);
constexpr int kBlocks = 4, kThreads = 64, kAll = kBlocks * kThreads;

// Every thread adds 1 to each element, up to numbers that all types hold.
template <class T, int N>
void expect_sums(const char* name) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel(name, [](Tensor<T, 1> y, Tensor<T, 1> old) {
    const Vec<T, N> step = Vec<float, N>(Float(1.0f)).template as<T>();
    atomic_add(y.template vec<N>(N), step);
    const Int i = block_idx.x * kThreads + thread_idx.x;
    old.template vec<N>(i * N) = atomic_add(y.template vec<N>(0), step);
  });
  const std::vector<T> zeros(2 * N, T(0.0f));
  const Buffer y = device.upload(absl::MakeConstSpan(zeros)).value();
  const Buffer old = device.allocate(kAll * N * sizeof(T)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = kBlocks, .block = kThreads}, as_tensor<T>(y, {2 * N}),
                            as_tensor<T>(old, {kAll * N})),
              IsOk());
  const auto number = [](T x) {
    if constexpr (std::is_same_v<T, float>) {
      return x;
    } else {
      return x.to_float();
    }
  };
  const std::vector<T> sums = y.template download<T>(stream).value();
  for (const T sum : sums) EXPECT_EQ(number(sum), kAll);
  // Each element is an atomic of its own: every value was seen once.
  const std::vector<T> seen = old.template download<T>(stream).value();
  for (int e = 0; e < N; ++e) {
    std::vector<bool> found(kAll);
    for (int i = 0; i < kAll; ++i) {
      const auto before = static_cast<size_t>(number(seen[static_cast<size_t>(i * N + e)]));
      ASSERT_LT(before, found.size());
      EXPECT_FALSE(found[before]) << name << " saw " << before << " twice in element " << e;
      found[before] = true;
    }
  }
}

TEST(VectorAtomics, AddToNeighboursInGlobalMemory) {
  expect_sums<float, 2>("float2");
  expect_sums<float, 4>("float4");
  expect_sums<half, 2>("half2");
  expect_sums<half, 4>("half4");
  expect_sums<half, 8>("half8");
  expect_sums<bfloat16, 2>("bf2");
  expect_sums<bfloat16, 4>("bf4");
  expect_sums<bfloat16, 8>("bf8");
}

TEST(VectorAtomics, AddToPairsInSharedMemory) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("shared_pairs", [](Tensor<half, 1> y) {
    Shared<half> sums(2);
    If(thread_idx.x == 0, [&] { sums.vec<2>(0) = Vec<half, 2>(cast<half>(Float(0.0f))); });
    sync_threads();
    const Half mine = cast<half>(select(thread_idx.x % 2 == 0, 0.5f, -0.25f));
    atomic_add(sums.vec<2>(0), Vec<half, 2>(mine, cast<half>(Float(1.0f))), MemoryOrder::relaxed,
               MemoryScope::block);
    sync_threads();
    If(thread_idx.x == 0, [&] { y.vec<2>(0) = sums.vec<2>(0); });
  });
  const Buffer y = device.allocate(2 * sizeof(half)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = kThreads}, as_tensor<half>(y, {2})), IsOk());
  const auto got = y.download<half>(stream).value();
  EXPECT_EQ(got[0].to_float(), kThreads / 8);
  EXPECT_EQ(got[1].to_float(), kThreads);
}

TEST(VectorAtomics, NameWhatLacksThemAtTheLine) {
  const auto compile = [](const auto& kernel, const char* target) {
    return kernel
        .compile(Signature{kAligned},
                 CompileOptions{.block = {32, 1, 1}, .target = target, .stage = Stage::kPtx})
        .status();
  };
  const auto quad = define_kernel(
      "quad", [](Tensor<float, 1> y) { atomic_add(y.vec<4>(0), Vec<float, 4>(Float(1.0f))); });
  EXPECT_THAT(compile(quad, "sm_80"),
              Fails(StatusCode::kInvalidArgument, "packed_test.cc:",
                    "sm_80 has no atomic add of vec<f32, 4>; sm_90 is the first that has"));
  EXPECT_THAT(compile(quad, "sm_90"), IsOk());
  const auto doubles = define_kernel(
      "doubles", [](Tensor<double, 1> y) { atomic_add(y.vec<2>(0), Vec<double, 2>(Double(1.0))); });
  EXPECT_THAT(compile(doubles, "sm_90a"), Fails(StatusCode::kInvalidArgument, "packed_test.cc:",
                                                "no GPU has atomic add of vec<f64, 2>"));
}

// Blackwell moves 32 bytes at once.
TEST(WideVectors, AreOneAccessWhereTheTargetHasIt) {
  const auto kernel = define_kernel("wide(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    const Int i = (block_idx.x * kThreads + thread_idx.x) * 8;
    y.vec<8>(i) = x.vec<8>(i) * 2.0f;
  });
  const auto compile = [&](const char* target, int64_t alignment) {
    const ArgumentSpec spec = tensor({kAny}).aligned(alignment);
    return kernel.compile(
        Signature{spec, spec},
        CompileOptions{.block = {kThreads, 1, 1}, .target = target, .stage = Stage::kPtx});
  };
  const auto wide = compile("sm_100", 32);
  ASSERT_THAT(wide, IsOk());
  EXPECT_THAT(wide->ptx(), HasSubstr("ld.global.v8.b32"));
  EXPECT_THAT(wide->ptx(), HasSubstr("st.global.v8.b32"));
  EXPECT_THAT(wide->ptx(), HasSubstr("mul.rn.f32x2"));
  EXPECT_THAT(compile("sm_100", 16).status(),
              Fails(StatusCode::kInvalidArgument,
                    "packed_test.cc:", "a multiple of 32 bytes, and only 16 can be proved"));
  EXPECT_THAT(compile("sm_90a", 32).status(),
              Fails(StatusCode::kInvalidArgument, "packed_test.cc:", "at most 16 bytes on sm_90a",
                    "compile the kernel for sm_100, the first that moves 32 bytes"));
  if (on_gpu() && test_device().info().compute_major < 10) return;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> values(8 * kAll), doubled;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (const float value : values) doubled.push_back(2 * value);
  const Buffer x = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer y = device.allocate(values.size() * sizeof(float)).value();
  const auto launch = [&](const auto& what) {
    return what.launch(stream, {.grid = kBlocks, .block = kThreads},
                       as_tensor<const float>(x, {8 * kAll}), as_tensor<float>(y, {8 * kAll}));
  };
  ASSERT_THAT(on_gpu() ? launch(kernel) : launch(*wide), IsOk());
  EXPECT_EQ(y.download<float>(stream).value(), doubled);
}

// Elementwise functions of packed halves, against the same one by one.
template <class T>
void expect_elementwise(const char* name) {
  constexpr int kWidth = 8;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      define_kernel(name, [](Tensor<const T, 1> x, Tensor<T, 1> packed, Tensor<T, 1> single) {
        const Int i = thread_idx.x * kWidth;
        const Vec<T, kWidth> a = x.template vec<kWidth>(i);
        const Vec<T, kWidth> b = x.template vec<kWidth>(i + kWidth);
        const Vec<T, kWidth> results[] = {a + b,     a - b,        a * b,  min(a, b),
                                          max(a, b), fma(a, b, a), abs(a), -b};
        for (int f = 0; f < 8; ++f) {
          const Int at = (f * kThreads + thread_idx.x) * kWidth;
          packed.template vec<kWidth>(at) = results[f];
          for (int e = 0; e < kWidth; ++e) {
            const Value<T> p = a[e], q = b[e];
            const Value<T> alone[] = {p + q,     p - q,        p * q,  min(p, q),
                                      max(p, q), fma(p, q, p), abs(p), -q};
            single(at + e) = alone[f];
          }
        }
      });
  std::vector<T> values;
  for (int i = 0; i < (kThreads + 1) * kWidth; ++i) {
    values.push_back(T(std::ldexp((i * 53) % 97 - 48, i % 13 - 9)));
  }
  const Buffer x = device.upload(absl::MakeConstSpan(values)).value();
  constexpr int64_t kResults = 8 * kThreads * kWidth;
  const Buffer packed = device.allocate(kResults * sizeof(T)).value();
  const Buffer single = device.allocate(kResults * sizeof(T)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = kThreads},
                            as_tensor<const T>(x, {static_cast<int64_t>(values.size())}),
                            as_tensor<T>(packed, {kResults}), as_tensor<T>(single, {kResults})),
              IsOk());
  EXPECT_EQ(packed.template download<uint16_t>(stream).value(),
            single.template download<uint16_t>(stream).value());
}

TEST(PackedArithmetic, IsThatOfTheElements) {
  expect_elementwise<half>("halves");
  expect_elementwise<bfloat16>("brains");
}

// A warp's reductions of integers are one instruction each.
TEST(WarpReduce, OfIntegersIsRedux) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("redux", [](Tensor<int, 1> y, Tensor<uint32_t, 1> z) {
    const Int lane = lane_id();
    const Int mixed = (lane * 37) % 19 - 9;
    const UInt word = cast<uint32_t>(lane * 0x01234567) ^ 0x80000000u;
    const Int ints[] = {warp_reduce(mixed, plus()), warp_reduce(mixed, minimum()),
                        warp_reduce(mixed, maximum()), warp_reduce(mixed | 5, bitwise_and())};
    const UInt words[] = {warp_reduce(word, plus()),       warp_reduce(word, minimum()),
                          warp_reduce(word, maximum()),    warp_reduce(word | 5u, bitwise_and()),
                          warp_reduce(word, bitwise_or()), warp_reduce(word, bitwise_xor())};
    for (int k = 0; k < 4; ++k) y(k * 32 + lane) = ints[k];
    for (int k = 0; k < 6; ++k) z(k * 32 + lane) = words[k];
    y(128 + lane) = warp_reduce(mixed, plus(), 16);
  });
  const auto compiled =
      kernel.compile(Signature{kAligned, kAligned},
                     CompileOptions{.block = {32, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  for (const char* instruction :
       {"redux.sync.add.", "redux.sync.min.s32", "redux.sync.max.s32", "redux.sync.min.u32",
        "redux.sync.max.u32", "redux.sync.and.b32", "redux.sync.or.b32", "redux.sync.xor.b32"}) {
    EXPECT_THAT(compiled->ptx(), HasSubstr(instruction));
  }
  const Buffer y = device.allocate(5 * 32 * 4).value();
  const Buffer z = device.allocate(6 * 32 * 4).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 32}, as_tensor<int32_t>(y, {160}),
                            as_tensor<uint32_t>(z, {192})),
              IsOk());
  int32_t ints[] = {0, 100, -100, -1};
  uint32_t words[] = {0, ~0u, 0, ~0u, 0, 0};
  int32_t halves[] = {0, 0};
  for (int lane = 0; lane < 32; ++lane) {
    const int32_t mixed = (lane * 37) % 19 - 9;
    const uint32_t word = static_cast<uint32_t>(lane) * 0x01234567u ^ 0x80000000u;
    ints[0] += mixed;
    ints[1] = std::min(ints[1], mixed);
    ints[2] = std::max(ints[2], mixed);
    ints[3] &= mixed | 5;
    words[0] += word;
    words[1] = std::min(words[1], word);
    words[2] = std::max(words[2], word);
    words[3] &= word | 5u;
    words[4] |= word;
    words[5] ^= word;
    halves[lane / 16] += mixed;
  }
  const auto got_ints = y.download<int32_t>(stream).value();
  const auto got_words = z.download<uint32_t>(stream).value();
  for (int lane = 0; lane < 32; ++lane) {
    for (int k = 0; k < 4; ++k)
      EXPECT_EQ(got_ints[static_cast<size_t>(k * 32 + lane)], ints[k]) << k;
    for (int k = 0; k < 6; ++k) {
      EXPECT_EQ(got_words[static_cast<size_t>(k * 32 + lane)], words[k]) << k;
    }
    EXPECT_EQ(got_ints[static_cast<size_t>(128 + lane)], halves[lane / 16]) << lane;
  }
}

}  // namespace
}  // namespace heddle
