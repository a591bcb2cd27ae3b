// Products by the tensor cores, of tiles whose descriptors come from their layouts.
#include "heddle/dsl/mma/wgmma.h"

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kDepth = 128;

bool has_wgmma() {
  const DeviceInfo& info = test_device().info();
  return info.cluster_launch && (info.compute_major == 9 || test_device().name() == "interp");
}

// Rows of a swizzle's width, and as many panels of them as the depth takes.
Layout panels(int rows, int depth, int swizzle_bytes) {
  const int width = swizzle_bytes / 2;
  const int bits = swizzle_bytes == 128 ? 3 : swizzle_bytes == 64 ? 2 : 1;
  return composition(Swizzle(bits, 3, 3),
                     make_layout({rows, {width, depth / width}}, {width, {1, rows * width}}));
}

// d = a * b^T of one warpgroup; a is 64 x 128, b N x 128.
template <class T>
void run_product(int columns, int swizzle_bytes) {
  const int width = swizzle_bytes / 2;
  const auto kernel = define_kernel(
      "product(a, b, d)", [=](Tensor<const T, 2> a, Tensor<const T, 2> b, Tensor<float, 2> d) {
        const TensorMap a_map(a, {64, width}, {.swizzle = swizzle_bytes});
        const int b_box[] = {columns, width};
        const TensorMap b_map(b, b_box, {.swizzle = swizzle_bytes});
        const heddle::Tensor<T> a_tile = make_smem_tensor<T>(panels(64, kDepth, swizzle_bytes));
        const heddle::Tensor<T> b_tile =
            make_smem_tensor<T>(panels(columns, kDepth, swizzle_bytes));
        const Mbarrier full(1);
        If(thread_idx.x == 0, [&] {
          full.init(0, 1);
          fence_mbarrier_init();
        });
        sync_threads();
        If(thread_idx.x == 0, [&] {
          full.expect_tx(0, static_cast<uint32_t>((64 + columns) * kDepth * 2));
          for (int k = 0; k < kDepth; k += width) {
            tma_load(a_tile.at({0, k}), a_map, {0, k}, full, 0);
            tma_load(b_tile.at({0, k}), b_map, {0, k}, full, 0);
          }
        });
        full.wait(0, 0u);
        // Two k-blocks, of which the first adds to nothing.
        Accumulator<float> sum = wgmma_begin<float>(columns);
        sum = wgmma(sum, local_tile(a_tile, {64, kDepth / 2}, {0, 0}),
                    local_tile(b_tile, {columns, kDepth / 2}, {0, 0}), false);
        wgmma_commit();
        sum = wgmma(sum, local_tile(a_tile, {64, kDepth / 2}, {0, 1}),
                    local_tile(b_tile, {columns, kDepth / 2}, {0, 1}));
        wgmma_commit();
        const Fragment<float> out = wgmma_wait(sum);
        const Int row = thread_idx.x / 32 * 16 + thread_idx.x % 32 / 4;
        const Int column = thread_idx.x % 4 * 2;
        for (int i = 0; i < out.size(); ++i) {
          d(row + i / 2 % 2 * 8, column + i / 4 * 8 + i % 2) = out[i];
        }
      });
  const auto element = [](int row, int k, int seed) {
    return static_cast<float>((row * 7 + k * 5 + seed) % 13 - 6);
  };
  std::vector<T> a, b;
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < kDepth; ++k) a.emplace_back(element(row, k, 1));
  }
  for (int row = 0; row < columns; ++row) {
    for (int k = 0; k < kDepth; ++k) b.emplace_back(element(row, k, 2));
  }
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a_memory = device.upload<T>(a).value();
  const Buffer b_memory = device.upload<T>(b).value();
  const Buffer d_memory =
      device.allocate(static_cast<size_t>(64 * columns) * sizeof(float)).value();
  ASSERT_THAT(
      kernel.launch(stream, {.grid = 1, .block = 128}, as_tensor<const T>(a_memory, {64, kDepth}),
                    as_tensor<const T>(b_memory, {columns, kDepth}),
                    as_tensor<float>(d_memory, {64, columns})),
      IsOk());
  const std::vector<float> d = d_memory.download<float>(stream).value();
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < columns; ++column) {
      float wanted = 0;
      for (int k = 0; k < kDepth; ++k) wanted += element(row, k, 1) * element(column, k, 2);
      ASSERT_EQ(d[static_cast<size_t>(row * columns + column)], wanted)
          << row << " " << column << " of " << columns << " under " << swizzle_bytes;
    }
  }
}

TEST(Wgmma, MultipliesUnderEachSwizzle) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const int swizzle : {32, 64, 128}) {
    run_product<bfloat16>(64, swizzle);
    run_product<half>(64, swizzle);
  }
}

TEST(Wgmma, MultipliesOfEveryWidth) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (int columns = 8; columns <= 256; columns += 8) {
    run_product<bfloat16>(columns, 128);
  }
}

// Stores a product's sums to where each thread has them.
void store_sums(const Tensor<float, 2>& d, const Fragment<float>& sums) {
  const Int row = thread_idx.x / 32 * 16 + thread_idx.x % 32 / 4;
  for (int i = 0; i < sums.size(); ++i) {
    d(row + i / 2 % 2 * 8, thread_idx.x % 4 * 2 + i / 4 * 8 + i % 2) = sums[i];
  }
}
// What a kernel of one warpgroup writes to 64 x 64 elements; nothing and a failure where it cannot be launched.
std::vector<float> results_of(const Kernel<Tensor<float, 2>>& kernel) {
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer d = device.allocate(64 * 64 * sizeof(float)).value();
  const Status launched =
      kernel.launch(stream, {.grid = 1, .block = 128}, as_tensor<float>(d, {64, 64}));
  EXPECT_THAT(launched, IsOk());
  return launched.ok() ? d.download<float>(stream).value() : std::vector<float>();
}

// What the threads write needs a fence; tiles without a swizzle.
TEST(Wgmma, MultipliesWhatThreadsWrote) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const auto kernel = define_kernel("written(d)", [](Tensor<float, 2> d) {
    const Layout plain = make_layout({64, {8, 2}}, {8, {1, 512}});
    const auto a = make_smem_tensor<half>(plain);
    const auto b = make_smem_tensor<half>(plain);
    const Int row = thread_idx.x % 64;
    for (int k = 0; k < 8; ++k) {
      const Int column = thread_idx.x / 64 * 8 + k;
      a(row, column) = cast<half>(row + column);
      b(row, column) = cast<half>(select(row == column, 1, 0));
    }
    fence_async();
    sync_threads();
    Accumulator<float> sum = wgmma_begin(Fragment<float>(32, 0.5f));
    sum = wgmma(sum, a, b);
    wgmma_commit();
    const Fragment<float> out = wgmma_wait(sum);
    store_sums(d, out);
  });
  const std::vector<float> got = results_of(kernel);
  ASSERT_EQ(got.size(), 64 * 64);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      EXPECT_EQ(got[static_cast<size_t>(row * 64 + column)],
                column < 16 ? static_cast<float>(row + column) + 0.5f : 0.5f);
    }
  }
}

// a in registers, by the layout of the sums of another product, and MN-major b; a * -b.
TEST(Wgmma, MultipliesRegisters) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const auto kernel = define_kernel("registers(d)", [](Tensor<float, 2> d) {
    const auto b = make_smem_tensor<half>(make_smem_layout<half>({64, 32}, Major::mn));
    const Int thread = thread_idx.x;
    for (int k = 0; k < 16; ++k) {
      const Int column = thread / 64 * 16 + k;
      b(thread % 64, column) = cast<half>(thread % 64 + 2 * column);
    }
    fence_async();
    sync_threads();
    // a(row, k) = row where k is 5, else 0.
    const Int row = thread / 32 * 16 + thread % 32 / 4;
    std::vector<Half> a;
    for (int i = 0; i < 16; ++i) {
      const Int k = thread % 4 * 2 + i % 2 + i / 4 % 2 * 8 + i / 8 * 16;
      a.push_back(cast<half>(select(k == 5, row + i / 2 % 2 * 8, 0)));
    }
    const auto registers = make_tensor<half>(make_layout({16}));
    for (int i = 0; i < 16; ++i) registers(i) = a[static_cast<size_t>(i)];
    Accumulator<half> sum = wgmma_begin<half>(64);
    const PendingOperand<half> operand = wgmma_operand(load(registers));
    sum = wgmma(sum, operand, b, false, {.b = true});
    wgmma_commit();
    wgmma_wait(operand);
    const Fragment<half> out = wgmma_wait(sum);
    store_sums(d, cast<float>(out));
  });
  const std::vector<float> got = results_of(kernel);
  ASSERT_EQ(got.size(), 64 * 64);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      EXPECT_EQ(got[static_cast<size_t>(row * 64 + column)],
                half(static_cast<float>(-row * (column + 10))).to_float())
          << row << " " << column;
    }
  }
}

// Sums that a loop takes from the tensor cores, scales, and gives back.
TEST(Wgmma, AddsToSumsThatALoopRescales) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int kTrips = 4;
  const auto kernel = define_kernel("rescaled(d)", [](Tensor<float, 2> d) {
    const Layout plain = make_layout({64, {8, 2}}, {8, {1, 512}});
    const auto a = make_smem_tensor<half>(plain);
    const auto b = make_smem_tensor<half>(plain);
    const Int row = thread_idx.x % 64;
    for (int k = 0; k < 8; ++k) {
      const Int column = thread_idx.x / 64 * 8 + k;
      a(row, column) = cast<half>(row);
      b(row, column) = cast<half>(select(column == 3, row - 20, 0));
    }
    fence_async();
    sync_threads();
    const Fragment<float> out = For(range(kTrips), Fragment<float>(32, 8.0f),
                                    [&](const Int&, const Fragment<float>& so_far) {
                                      Accumulator<float> sum = wgmma_begin(so_far * 0.5f);
                                      sum = wgmma(sum, a, b);
                                      wgmma_commit();
                                      return wgmma_wait(sum);
                                    });
    store_sums(d, out);
  });
  const std::vector<float> got = results_of(kernel);
  ASSERT_EQ(got.size(), 64 * 64);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 64; ++column) {
      float wanted = 8;
      for (int trip = 0; trip < kTrips; ++trip) {
        wanted = wanted / 2 + static_cast<float>(row * (column - 20));
      }
      EXPECT_EQ(got[static_cast<size_t>(row * 64 + column)], wanted) << row << " " << column;
    }
  }
}

std::string mistake_of(const Layout& a, const Layout& b, int columns) {
  const auto kernel = define_kernel("mistake(d)", [=](Tensor<float, 1> d) {
    const auto a_tile = make_smem_tensor<half>(a);
    const auto b_tile = make_smem_tensor<half>(b);
    Accumulator<float> sum = wgmma_begin<float>(columns);
    sum = wgmma(sum, a_tile, b_tile, false);
    wgmma_commit();
    d(0) = wgmma_wait(sum)[0];
  });
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {128, 1, 1};
  options.stage = Stage::kPtx;
  return std::string(kernel.compile(Signature{tensor({kAny})}, options).status().message());
}

TEST(Wgmma, SaysWhyALayoutIsNotCanonical) {
  const Layout good = composition(Swizzle(3, 3, 3), make_layout({64, 64}, {64, 1}));
  EXPECT_EQ(mistake_of(good, good, 64), "");
  EXPECT_THAT(mistake_of(make_layout({64, 64}, {64, 1}), good, 64),
              HasSubstr("is not canonical: element (1, 0) is 64 elements behind the first, and a "
                        "matrix descriptor with no swizzle has it 8 behind"));
  EXPECT_THAT(mistake_of(composition(Swizzle(2, 3, 3), make_layout({64, 64}, {64, 1})), good, 64),
              HasSubstr("a matrix descriptor with a swizzle of 64 bytes has it 32 behind"));
  EXPECT_THAT(mistake_of(composition(Swizzle(3, 4, 3), make_layout({64, 64}, {64, 1})), good, 64),
              HasSubstr("is swizzled as no matrix descriptor can say"));
  EXPECT_THAT(mistake_of(composition(Swizzle(3, 3, 3), make_layout({64, 8}, {64, 1})), good, 64),
              HasSubstr("has 8 columns"));
  EXPECT_THAT(mistake_of(good, good, 128),
              HasSubstr("has 64 rows\n  fix: an instruction takes 128"));
  EXPECT_EQ(mistake_of(make_smem_layout<half>({64, 64}, Major::mn),
                       make_smem_layout<half>({64, 64}, Major::mn), 64),
            "");
  EXPECT_THAT(mistake_of(make_smem_layout<half>({128, 64}), good, 64),
              HasSubstr("into an accumulator of 64 x 64"));
}

}  // namespace
}  // namespace heddle
