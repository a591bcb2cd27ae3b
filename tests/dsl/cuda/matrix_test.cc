// Matrices of a warp, from lambda to result on whatever device the tests run on: every element
// type, count and transposition against what the PTX ISA's figures say, and mistakes.
#include <cstring>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// Each of two warps has a tile of 32 rows of 16 bytes, 32 bytes apart.
constexpr int kThreads = 64, kRowBytes = 32, kBytes = kThreads * kRowBytes;

uint8_t content(int byte) { return static_cast<uint8_t>(byte * 37 + byte / 256 * 11); }

// The row that a thread gives: out of order.
Int row_of(const Int& thread) { return thread / 32 * 32 + (thread % 32 * 7 + 3) % 32; }
int row_of(int thread) { return thread / 32 * 32 + (thread % 32 * 7 + 3) % 32; }

// The byte of the tiles that byte `i` of a thread's fragment is.
int place_of(int thread, int i, bool transpose) {
  const int lane = thread % 32, first = thread - lane + i / 4 * 8, byte = i % 4;
  if (transpose)
    return row_of(first + lane % 4 * 2 + byte / 2) * kRowBytes + lane / 4 * 2 + byte % 2;
  return row_of(first + lane / 4) * kRowBytes + lane % 4 * 4 + byte;
}

// What body(x, tile, y) makes of bytes from 0 to kBytes, through elements of T.
template <class T, class Body>
StatusOr<std::vector<uint8_t>> run_tiles(const char* name, Body body) {
  constexpr int kCount = kBytes / static_cast<int>(sizeof(T));
  const auto kernel = local_kernel(name, [&](Tensor<const T, 1> x, Tensor<T, 1> y) {
    const Shared<T, 2> tile({kThreads, kRowBytes / static_cast<int>(sizeof(T))});
    body(x, tile, y);
  });
  std::vector<uint8_t> bytes(kBytes);
  for (int i = 0; i < kBytes; ++i) bytes[static_cast<size_t>(i)] = content(i);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(bytes)).value();
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<uint8_t>(kBytes))).value();
  Status status = kernel.launch(stream, {.block = kThreads}, as_tensor<const T>(in, {kCount}),
                                as_tensor<T>(out, {kCount}));
  if (status.ok()) status = stream.synchronize();
  if (!status.ok()) return status;
  return out.download<uint8_t>(stream);
}

template <class T>
class Matrices : public ::testing::Test {};
using Elements = ::testing::Types<uint8_t, float8_e4m3, int16_t, half, bfloat16, int32_t, float>;
TYPED_TEST_SUITE(Matrices, Elements);

template <class T>
std::vector<bool> transpositions() {
  return sizeof(T) == 2 ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

TYPED_TEST(Matrices, AreLoaded) {
  constexpr int kColumns = kRowBytes / static_cast<int>(sizeof(TypeParam));
  for (const int count : {1, 2, 4}) {
    for (const bool transpose : transpositions<TypeParam>()) {
      const auto got = run_tiles<TypeParam>("loads", [&](auto& x, auto& tile, auto& y) {
        const Int t = thread_idx.x;
        for (int c = 0; c < kColumns; ++c) tile(t, c) = x(t * kColumns + c);
        sync_warp();
        const auto fragment = ldmatrix(tile.at(row_of(t), 0), count, transpose);
        for (int e = 0; e < fragment.size(); ++e) y(t * fragment.size() + e) = fragment[e];
      });
      ASSERT_THAT(got, IsOk());
      for (int i = 0; i < kThreads * 4 * count; ++i) {
        ASSERT_EQ((*got)[static_cast<size_t>(i)],
                  content(place_of(i / (4 * count), i % (4 * count), transpose)))
            << count << " matrices, " << (transpose ? "transposed, " : "") << "byte " << i;
      }
    }
  }
}

TYPED_TEST(Matrices, AreStored) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no stmatrix, which came with clusters";
  constexpr int kColumns = kRowBytes / static_cast<int>(sizeof(TypeParam));
  for (const int count : {1, 2, 4}) {
    for (const bool transpose : transpositions<TypeParam>()) {
      const int elements = 4 * count / static_cast<int>(sizeof(TypeParam));
      const auto got = run_tiles<TypeParam>("stores", [&](auto& x, auto& tile, auto& y) {
        const Int t = thread_idx.x;
        for (int c = 0; c < kColumns; ++c) tile(t, c) = x(t * kColumns + c);
        const auto fragment = x.elements(elements, t * elements);
        sync_warp();
        stmatrix(tile.at(row_of(t), 0), fragment, transpose);
        sync_warp();
        for (int c = 0; c < kColumns; ++c) y(t * kColumns + c) = tile(t, c);
      });
      ASSERT_THAT(got, IsOk());
      std::vector<uint8_t> expected(kBytes);
      for (int i = 0; i < kBytes; ++i) expected[static_cast<size_t>(i)] = content(i);
      for (int i = 0; i < kThreads * 4 * count; ++i) {
        const int place = place_of(i / (4 * count), i % (4 * count), transpose);
        expected[static_cast<size_t>(place)] = content(i);
      }
      EXPECT_EQ(*got, expected) << count << " matrices" << (transpose ? ", transposed" : "");
    }
  }
}

// The two halves of what mma.m16n8k16 multiplies, as dsl/cuda/matrix.h shows them.
TEST(Matrix, HasTensorCoresOrder) {
  const auto got =
      run("operands", {.block = 32}, 256, [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        const Shared<half, 2> a({16, 16}), b({16, 8});
        const Int lane = lane_id();
        for (int i = 0; i < 256; i += 32) {
          const Int at = lane + i;
          a(at / 16, at % 16) = cast<half>(x(at));
          If(at < 128, [&] { b(at / 8, at % 8) = cast<half>(x(at)); });
        }
        sync_warp();
        const Fragment<half> fa = ldmatrix(a.at(lane % 16, lane / 16 * 8), 4);
        const Fragment<half> fb = ldmatrix(b.at(lane % 16, 0), 2, true);
        for (int e = 0; e < 4; ++e) {
          y(lane * 8 + e) = cast<int32_t>(fa[2 * e]) * 1000 + cast<int32_t>(fa[2 * e + 1]);
          y(lane * 8 + 4 + e) = cast<int32_t>(fb[e]);
        }
      });
  ASSERT_THAT(got, IsOk());
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int e = 0; e < 4; ++e) {
      const int a = (group + e % 2 * 8) * 16 + pair + e / 2 * 8;  // row and column of the first
      EXPECT_EQ((*got)[static_cast<size_t>(lane * 8 + e)], a * 1000 + a + 1);
      const int b = (pair + e % 2 + e / 2 * 8) * 8 + group;
      EXPECT_EQ((*got)[static_cast<size_t>(lane * 8 + 4 + e)], b);
    }
  }
}

// --- Mistakes ---

template <class Body>
std::string message_of(Body body, LaunchShape shape = {.block = 32}) {
  return std::string(run("mistake", shape, 64,
                         [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                           const Shared<half, 2> tile({32, 8});
                           for (int c = 0; c < 8; ++c) tile(thread_idx.x, c) = half(1.0f);
                           sync_warp();
                           body(x, tile, y);
                         })
                         .status()
                         .message());
}

TEST(Matrix, WhatIsNoMatrixIsReported) {
  const auto expect = [](auto body, const char* message) {
    const std::string got = message_of(body);
    EXPECT_THAT(got, HasSubstr("matrix_test.cc:"));
    EXPECT_THAT(got, HasSubstr(message));
  };
  expect([](auto& x, auto&, auto&) { ldmatrix(x.at(0), 4); },
         "ldmatrix of matrices in global memory\n  fix: copy the tile to a Shared array first: "
         "ldmatrix and stmatrix reach the block's own shared memory alone");
  expect([](auto&, auto& tile, auto&) { ldmatrix(tile.at(0, 0), 3); },
         "ldmatrix of 3 matrices\n  fix: a warp loads 1, 2 or 4 of them at once");
  expect([](auto&, auto&, auto&) { ldmatrix(Shared<double>(64).at(0), 1); },
         "ldmatrix of f64, an element of 64 bits\n  fix: it moves elements of 1, 2 or 4 bytes that "
         "are no bools: access these one by one");
  expect([](auto&, auto&, auto&) { ldmatrix(Shared<bool>(64).at(0), 1); },
         "ldmatrix of bool, an element of 8 bits");
  expect([](auto&, auto&, auto&) { ldmatrix(Shared<float>(64).at(0), 1, true); },
         "ldmatrix that transposes f32, an element of 32 bits\n  fix: it transposes elements of 16 "
         "bits: leave `transpose` out");
  expect([](auto&, auto& tile, auto&) { ldmatrix(tile.as_volatile().at(0, 0), 1); },
         "ldmatrix of a view with as_volatile()");
  expect([](auto&, auto& tile, auto&) { ldmatrix(tile.with(Cache::l2).at(0, 0), 1); },
         "ldmatrix of a view with a Cache");
  expect([](auto&, auto& tile, auto&) { ldmatrix(tile.at(lane_id(), lane_id() % 2), 4); },
         "an access to 8 elements needs an address that is a multiple of 16 bytes, and only 2 can "
         "be proved (the offset)");
  expect(
      [](auto&, auto& tile, auto&) {
        stmatrix(tile.at(lane_id(), 0), Fragment<half>(6, half(0.0f)));
      },
      "stmatrix of a fragment of 6 x f16, which is 12 bytes\n  fix: a lane has 4 bytes of each of "
      "1, 2 or 4 matrices: 2, 4 or 8 of these elements");
  expect([](auto& x, auto&, auto& y) { stmatrix(y.at(x(0)), Fragment<int32_t>(4, 1)); },
         "stmatrix of matrices in global memory");
}

TEST(Matrix, AllLanesLoadTogether) {
  const std::string message = message_of([](auto&, auto& tile, auto& y) {
    If(lane_id() < 16,
       [&] { y(lane_id()) = cast<int32_t>(ldmatrix(tile.at(lane_id(), 0), 2)[0]); });
  });
  EXPECT_THAT(message, HasSubstr("matrix_test.cc:"));
  EXPECT_THAT(message, HasSubstr("'ldmatrix' under a condition that differs between threads: all "
                                 "threads of a warp must reach it together"));
}

TEST(Matrix, RowsOutsideTheTileAreReported) {
  if (test_device_name() != "interp") GTEST_SKIP() << "checks are the interpreter's";
  const auto load = [](int count) {
    return message_of([&](auto&, auto& tile, auto& y) {
      y(lane_id()) = cast<int32_t>(ldmatrix(tile.at(lane_id() + 17, 0), count)[0]);
    });
  };
  EXPECT_EQ(load(1), "");
  EXPECT_THAT(load(2), HasSubstr("error: reads 8 elements of "));
  EXPECT_THAT(load(2), HasSubstr("thread (15, 0, 0))"));
  EXPECT_THAT(load(2), HasSubstr("(32, 0), outside its extents (32, 8): index 32 of mode 0 is not "
                                 "in [0, 32)"));
}

}  // namespace
}  // namespace heddle
