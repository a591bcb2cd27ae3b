// Tensors with layouts: what they read and write, on whatever device the tests run on.
#include <numeric>
#include <vector>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

template <class T>
Buffer on_device(const std::vector<T>& values) {
  return test_device().upload(absl::MakeConstSpan(values)).value();
}

bool on_interpreter() { return test_device_name() == "interp"; }

// Runs body(x, y) on a matrix that counts from 0 and one of zeros of another shape.
template <class Body>
StatusOr<std::vector<int32_t>> run_matrix(LaunchShape shape, int64_t rows, int64_t columns,
                                          int64_t out_rows, int64_t out_columns, Body body) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel = local_kernel(
      "matrix(x, y)", [&](Tensor<const int32_t, 2> x, Tensor<int32_t, 2> y) { body(x, y); });
  const Buffer x = on_device(counting(static_cast<int>(rows * columns)));
  const Buffer y = on_device(std::vector<int32_t>(static_cast<size_t>(out_rows * out_columns)));
  Status status = kernel.launch(stream, shape, as_tensor<const int32_t>(x, {rows, columns}),
                                as_tensor<int32_t>(y, {out_rows, out_columns}));
  if (status.ok()) status = stream.synchronize();
  if (!status.ok()) return status;
  return y.download<int32_t>(stream);
}

TEST(Tensors, ElementsByCoordinatesOfEveryKind) {
  const auto got = run("kinds", {.block = 1}, 64, [](auto x, auto y) {
    const auto t = make_tensor(x, make_layout({{2, 4}, 8}, {{32, 1}, 4}));  // ((2,4),8)
    y(0) = t({{1, 2}, 3});                                                  // 32 + 2 + 12
    y(1) = t({5, 3});  // mode 0 by one number: (1,2)
    y(2) = t(29);      // all by one number: (1,2), 3
    Int i = assume_uniform(x(5));
    y(3) = t(i, 3);
    y(4) = t({{1, cast<int32_t>(x(2))}, 3});
    y(5) = t(_, 3)(5);
    y(6) = t.slice({{1, _}, 3})(2);
    y(7) = t(i + 24);
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(std::vector<int32_t>(got->begin(), got->begin() + 8),
              ElementsAre(46, 46, 46, 46, 46, 46, 46, 46));
}

TEST(Tensors, TilesAndPartitionsSeeTheMatrix) {
  const auto got = run_matrix(
      {.grid = {3, 2}, .block = 32}, 16, 24, 16, 24,
      [](Tensor<const int32_t, 2> x, Tensor<int32_t, 2> y) {
        const Layout threads = make_layout({8, 4}, {4, 1});
        const auto part = [&](const auto& t) {
          return local_partition(local_tile(t, {8, 8}, {block_idx.y, block_idx.x}), threads,
                                 thread_idx.x);
        };
        const auto from = part(x);
        const auto where = part(make_identity_tensor({16, 24}));
        const auto to = part(y);
        for (int i = 0; i < 2; ++i) {
          const IntTuple c = where(0, i);
          to(0, i) = from(0, i) * 10000 + Int(get(c, 0).value()) * 100 + Int(get(c, 1).value());
        }
      });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 16 * 24; ++i) ASSERT_EQ((*got)[i], i * 10000 + i / 24 * 100 + i % 24) << i;
}

TEST(Tensors, SwizzledSharedMemoryGivesBackWhatItTook) {
  const auto got = run_matrix(
      {.block = 64}, 16, 64, 16, 64, [](Tensor<const int32_t, 2> x, Tensor<int32_t, 2> y) {
        const auto tile = make_smem_tensor<int32_t>(
            make_composed_layout(Swizzle(3, 2, 3), 0, make_layout({16, 64}, {64, 1})));
        const Layout rows = make_layout({4, 16}, {16, 1});
        copy(local_partition(local_tile(x, {16, 64}, {0, 0}), rows, thread_idx.x),
             local_partition(tile, rows, thread_idx.x));
        sync_threads();
        // By other threads than wrote them, four neighbours at once.
        const auto mine = zipped_divide(tile, {1, 4});
        const auto to = zipped_divide(y, {1, 4});
        const Int t = thread_idx.x;
        for (int k = 0; k < 4; ++k) copy(mine(_, t + 64 * k), to(_, t + 64 * k));
      });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, ElementsAreArray(counting(16 * 64)));
}

// Whatever arrays lie before it.
TEST(Tensors, ASwizzleDoesToAddressesWhatItDoesToIndices) {
  const auto got = run("address", {.block = 1}, 4, [](auto, auto y) {
    const Shared<int32_t> first(4);
    const Layout rows = make_layout({8, 64}, {64, 1});
    const auto tile = make_smem_tensor<half>(make_composed_layout(Swizzle(3, 3, 3), 0, rows));
    first(0) = 0;
    tile({3, 8}) = half(0.0f);
    const auto address = [](const auto& place) { return cast<int32_t>(address_of(place)); };
    y(0) = address(tile.at({0, 0})) & 1023;
    // Bits 7 to 9 of the address, added to bits 4 to 6.
    y(1) = address(tile.at({3, 8})) & 1023;
    y(2) = (3 * 128 + 8 * 2) ^ 3 * 16;
    y(3) = first(0);
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ((*got)[0], 0);
  EXPECT_EQ((*got)[1], (*got)[2]);
}

TEST(Tensors, PredicatesKeepToTheEdges) {
  for (const auto& [rows, columns] : {std::pair{8, 16}, {9, 16}, {8, 17}, {1, 1}, {13, 31}}) {
    const auto got = run_matrix(
        {.grid = {2, 2}, .block = 32}, rows, columns, rows, columns,
        [](Tensor<const int32_t, 2> x, Tensor<int32_t, 2> y) {
          const auto [tile, tv] = make_layout_tv(make_layout({8, 4}, {4, 1}), make_layout({1, 4}));
          const Layout threads_values = tv;
          const IntTuple tiler = tile, extents{x.shape(0), x.shape(1)};
          const auto part = [&](const auto& t) {
            return composition(local_tile(t, tiler, {block_idx.y, block_idx.x}), threads_values)(
                thread_idx.x, _);
          };
          const auto there = within(part(make_identity_tensor(extents)), extents);
          auto r = make_tensor<int32_t>(4);
          fill(r, -1);
          copy_if(there, part(x), r);
          transform(
              r, [](const Int& a) { return a + 1; }, r);
          copy_if(there, r, part(y));
        });
    ASSERT_THAT(got, IsOk());
    for (int i = 0; i < rows * columns; ++i) ASSERT_EQ((*got)[i], i + 1) << rows << "x" << columns;
  }
}

TEST(Tensors, FlagsAreAPredicateToo) {
  const auto got = run("flags", {.block = 4}, 64, [](auto x, auto y) {
    const auto from = zipped_divide(x, {make_layout({4, 4}, {1, 16})})(_, thread_idx.x);
    const auto to = zipped_divide(y, {make_layout({4, 4}, {1, 16})})(_, thread_idx.x);
    // One flag for each four neighbours.
    const auto flags = make_tensor<bool>(make_layout({4, 4}, {0, 1}));
    for (int i = 0; i < 4; ++i) flags(0, i) = thread_idx.x != i;
    copy_if(flags, from, to);
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) EXPECT_EQ((*got)[i], i / 4 % 4 == i / 16 ? 0 : i) << i;
}

TEST(Tensors, FlagsMayBeReadOnlyMemory) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel = define_kernel(
      "masked(x, flags, y)",
      [](Tensor<const int32_t, 1> x, Tensor<const bool, 1> flags, Tensor<int32_t, 1> y) {
        const auto part = [](const auto& t) { return zipped_divide(t, 4)(_, thread_idx.x); };
        const Tensor<const bool> mine = part(flags);
        copy_if(mine, part(x), part(y));
        // Again, by an atom.
        const auto square = [](const auto& t) { return make_tensor(t, make_layout({4, 4})); };
        const auto tiled = make_tiled_copy(make_copy_atom<int32_t>(CopyUniversal{32}),
                                           make_layout({2, 2}), make_layout({1, 1}));
        const auto thread = tiled.get_slice(thread_idx.x);
        copy_if(tiled, thread.partition_S(square(flags)), thread.partition_S(square(x)),
                thread.partition_D(square(y)));
      });
  std::vector<uint8_t> flags(16);
  for (int i = 0; i < 16; ++i) flags[i] = i % 3 == 0;
  const Buffer x = on_device(counting(16)), where = on_device(flags);
  const Buffer y = on_device(std::vector<int32_t>(16, -1));
  ASSERT_THAT(kernel.launch(stream, {.block = 4}, as_tensor<const int32_t>(x, {16}),
                            as_tensor<const bool>(where, {16}), as_tensor<int32_t>(y, {16})),
              IsOk());
  const auto got = y.download<int32_t>(stream).value();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(got[i], i % 3 == 0 ? i : -1) << i;
}

TEST(Tensors, CopiesConvert) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel =
      define_kernel("convert(x, y)", [](Tensor<const half, 1> x, Tensor<float, 1> y) {
        const auto from = zipped_divide(x, 16)(_, thread_idx.x);
        const auto r = make_tensor<float>(16);
        copy(from, r);
        axpby(2.0f, r, 0.0f, zipped_divide(y, 16)(_, thread_idx.x));
      });
  std::vector<half> x;
  for (int i = 0; i < 64; ++i) x.push_back(half(static_cast<float>(i)));
  const Buffer in = on_device(x), out = on_device(std::vector<float>(64));
  ASSERT_THAT(kernel.launch(stream, {.block = 4}, as_tensor<const half>(in, {64}),
                            as_tensor<float>(out, {64})),
              IsOk());
  const auto got = out.download<float>(stream).value();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], 2.0f * i);
}

TEST(Tensors, ProductsAndSums) {
  const auto got = run("gemm", {.block = 1}, 64, [](auto x, auto y) {
    const auto a = make_tensor(x, make_layout({3, 4}, {4, 1}));  // a(m,k) = 4m + k
    const auto b = make_tensor(x, make_layout({2, 4}, {1, 2}));  // b(n,k) = n + 2k
    const auto c = make_tensor<int32_t>({3, 2});
    fill(c, 5);
    gemm(a, b, c);
    copy(c, make_tensor(y, make_layout({3, 2}, {2, 1})));
    const auto sums = reduce(c, 1, plus());
    copy(sums, zipped_divide(y, 3)(_, 2));
    y(9) = reduce(a, plus());
    const auto scaled = make_tensor<int32_t>({3, 4});
    transform(
        scaled, [](const Int& p, const Int& q, const Int& r) { return p * q + r; }, a,
        make_tensor(x, make_layout({1, 4})), make_tensor(x, make_layout({3})));
    copy(scaled, make_tensor(y, make_layout({3, 4}, {16, 1})));
    axpby(3, make_tensor(x, make_layout(4)), 10, zipped_divide(y, 4)(_, 15));
  });
  ASSERT_THAT(got, IsOk());
  const auto a = [](int m, int k) { return 4 * m + k; };
  for (int m = 0; m < 3; ++m) {
    int sum[2] = {5, 5};
    for (int k = 0; k < 4; ++k) {
      for (int n = 0; n < 2; ++n) sum[n] += a(m, k) * (n + 2 * k);
    }
    for (int k = 0; k < 4; ++k) {
      EXPECT_EQ((*got)[16 * m + k], a(m, k) * k + m) << m << k;
    }
    EXPECT_EQ((*got)[6 + m], sum[0] + sum[1]);
  }
  EXPECT_EQ((*got)[9], 66);
  EXPECT_THAT(std::vector<int32_t>(got->begin() + 60, got->end()), ElementsAre(0, 3, 6, 9));
}

TEST(Tensors, RegistersLiveThroughLoopsAndBranches) {
  const auto got = run("loop", {.block = 32}, 32, [](auto x, auto y) {
    const auto r = make_tensor<int32_t>({2, 2});
    for (int i = 0; i < 4; ++i) r(i) = thread_idx.x + i;
    for (Int k : range(x(4))) {
      If(k % 2 == 0, [&] { r(1, 0) = r(1, 0) + 10; }).Else([&] { r(0, 1) = r(0, 0); });
    }
    y(thread_idx.x) = r(0) + r(1) * 100 + r(2) * 10000 + r(3) * 1000000;
  });
  ASSERT_THAT(got, IsOk());
  for (int t = 0; t < 32; ++t) {
    EXPECT_EQ((*got)[t], t + (t + 21) * 100 + t * 10000 + (t + 3) * 1000000);
  }
}

TEST(Tensors, CopiesOfAnyExtentLoop) {
  for (const int n : {1, 7, 64}) {
    const auto got = run("loop", {.block = 1}, n, [](auto x, auto y) { copy(x, y); });
    ASSERT_THAT(got, IsOk());
    EXPECT_THAT(*got, ElementsAreArray(counting(n)));
  }
}

TEST(Tensors, RegistersForCoordinatesAreTheirOwn) {
  const auto got = run("own", {.block = 4}, 64, [](auto x, auto y) {
    const auto tiled = make_tiled_copy(make_copy_atom<int32_t>(CopyUniversal{32}),
                                       make_layout({2, 2}), make_layout({1, 1}));
    const auto mine = tiled.get_slice(thread_idx.x);
    const auto from = mine.partition_S(make_tensor(x, make_layout({4, 4})));
    const auto where = mine.partition_S(make_identity_tensor({4, 4}));
    const auto there = make_fragment_like<bool>(where);
    for (int i = 0; i < 4; ++i) there(i) = within(where(i), {3, 1});
    const auto r = make_fragment_like(from);
    fill(r, -1);
    copy_if(there, from, r);
    copy(r, mine.partition_D(make_tensor(y, make_layout({4, 4}))));
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 16; ++i) EXPECT_EQ((*got)[i], i % 4 < 3 && i / 4 < 1 ? i : -1) << i;
}

TEST(Tensors, WhatIsNotCopiedStaysAsItWas) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel =
      define_kernel("kept(x, y)", [](Tensor<const int8_t, 1> x, Tensor<float, 1> y) {
        const auto r = make_tensor<float>(4);
        fill(r, 3.25f);
        const auto only = make_tensor<bool>(4);
        for (int i = 0; i < 4; ++i) only(i) = thread_idx.x == i - 1;
        copy_if(only, local_tile(x, {4}, {0}), r);
        copy(r, local_tile(y, {4}, {0}));
      });
  const Buffer x = on_device(std::vector<int8_t>{7, 5, 7, 7}), y = on_device(std::vector<float>(4));
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<const int8_t>(x, {4}),
                            as_tensor<float>(y, {4})),
              IsOk());
  EXPECT_EQ(y.download<float>(stream).value(), (std::vector<float>{3.25f, 5, 3.25f, 3.25f}));
}

TEST(Tensors, NothingLiesWithinNothing) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel =
      define_kernel("empty(x, y)", [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
        If(within({0}, {x.shape(0)}), [&] { y(0) = 1; });
        y(1) = 2;
      });
  const Buffer x = on_device(std::vector<int32_t>{0}), y = on_device(std::vector<int32_t>{5, 5});
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<const int32_t>(x, {0}),
                            as_tensor<int32_t>(y, {2})),
              IsOk());
  EXPECT_THAT(y.download<int32_t>(stream).value(), ElementsAre(5, 2));
}

TEST(Tensors, NumbersOfLayoutsDoNotOverflow) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel = define_kernel("far(n, k, y)", [](Int64 n, Int k, Tensor<int64_t, 1> y) {
    const auto where = make_identity_tensor({1000, 2000000000});
    const IntTuple at = where(n);
    y(0) = get(at, 0).value().wide();
    y(1) = get(at, 1).value().wide();
    y(2) = cast<int64_t>(Int(ceil_div(SymInt(n), 1000000000)));
    y(3) = cast<int64_t>(Int(ceil_div(SymInt(k), 128)));
    y(4) = cast<int64_t>(Int(floor_div(SymInt(k) + 200, 128)));
    y(5) = cast<int64_t>(Int(get(at, 1).value()));
  });
  const Buffer y = on_device(std::vector<int64_t>(6));
  ASSERT_THAT(
      kernel.launch(stream, {.block = 1}, 5000000007, 2147483630, as_tensor<int64_t>(y, {6})),
      IsOk());
  EXPECT_THAT(y.download<int64_t>(stream).value(),
              ElementsAre(7, 5000000, 6, 16777216, 16777217, 5000000));
}

// An extent that is read twice is one number, though only one of them was asked for its divisor.
TEST(Tensors, WhatDividesANumberIsNotTakenForGranted) {
  const auto got = run_matrix({.block = 1}, 8, 1, 3, 1, [](auto x, auto y) {
    SymInt quarter;
    ASSERT_TRUE(divides(4, SymInt(x.shape(0)), &quarter));
    const SymInt sum = quarter + SymInt(x.shape(0));
    y(0, 0) = Int(mod(sum, 3));
    y(1, 0) = Int(ceil_div(sum, 3));
    y(2, 0) = Int(floor_div(sum, 3));
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, ElementsAre(1, 4, 3));
}

// What is read by a number is the same whether the extents are known or not.
TEST(Tensors, CoordinatesOfNumbersDoNotDependOnWhatIsKnown) {
  using Matrix = Tensor<const int32_t, 4>;
  using View = Tensor<const int32_t> (*)(const Matrix&);
  const View views[] = {
      [](const Matrix& x) { return Tensor<const int32_t>(x); },
      [](const Matrix& x) {
        return select(x, {3, 1, 2, 0});
      },
      [](const Matrix& x) {
        return select(x, {2, 0, 3, 1});
      },
      [](const Matrix& x) { return group_modes(x, 0, 2); },
      [](const Matrix& x) { return group_modes(x, 1, 3); },
      [](const Matrix& x) { return group_modes(group_modes(x, 0, 2), 1, 3); },
      [](const Matrix& x) {
        return group_modes(select(x, {1, 3, 0, 2}), 0, 3);
      },
  };
  const Stream stream = test_device().create_stream().value();
  Buffer y = on_device(std::vector<int32_t>(128));
  for (const std::vector<int64_t>& extents :
       {std::vector<int64_t>{2, 3, 4, 5}, {3, 1, 7, 2}, {5, 5, 2, 2}, {1, 4, 3, 6}}) {
    const int64_t count = extents[0] * extents[1] * extents[2] * extents[3];
    const Buffer x = on_device(counting(static_cast<int>(count)));
    for (const View view : views) {
      const auto kernel = local_kernel("linear(x, y)", [view](Matrix in, Tensor<int32_t, 1> out) {
        const Tensor<const int32_t> all = view(in);
        const Int i = thread_idx.x;
        If(i < size(all), [&] { out(i) = all(i); });
      });
      std::vector<int32_t> read[2];
      for (const bool known : {false, true}) {
        const std::vector<int64_t> unknown(4, kAny);
        const auto compiled = kernel.compile(
            Signature{tensor(known ? extents : unknown), tensor({kAny})},
            CompileOptions{.block = {128, 1, 1}, .target = "", .stage = Stage::kPtx});
        ASSERT_THAT(compiled, IsOk());
        ASSERT_THAT(y.fill(stream, 0), IsOk());
        ASSERT_THAT(compiled->launch(stream, {.block = 128},
                                     as_tensor<const int32_t>(
                                         x, {extents[0], extents[1], extents[2], extents[3]}),
                                     as_tensor<int32_t>(y, {128})),
                    IsOk());
        const auto got = y.download<int32_t>(stream);
        ASSERT_THAT(got, IsOk());
        read[known ? 1 : 0] = *got;
      }
      EXPECT_EQ(read[0], read[1]) << testing::PrintToString(extents);
    }
  }
}

TEST(Tensors, PromisedDivisorsAreKnownAndChecked) {
  const auto promised = [](int added) {
    return run("promise", {.block = 1}, 16, [added](auto x, auto y) {
      const IntTuple shape = assume({x(5) + added, x.shape(0)}, 8);
      y(0) = Int(get(shape, 0).value());
      const auto t = make_tensor(x, make_layout(shape));
      y(1) = static_cast<int>(get(get_divisibility(t.layout().stride()), 1).value().value());
    });
  };
  const auto kept = promised(3);
  ASSERT_THAT(kept, IsOk());
  EXPECT_THAT(std::vector<int32_t>(kept->begin(), kept->begin() + 2), ElementsAre(8, 8));
  if (!on_interpreter()) return;
  const auto broken = promised(4);
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(std::string(broken.status().message()),
              HasSubstr("9 is promised to be a multiple of 8"));
}

TEST(Tensors, ASliceOutsideTheTensorIsReported) {
  if (!on_interpreter()) GTEST_SKIP() << "the interpreter checks bounds";
  const auto got = run("slice", {.block = 32}, 64, [](auto x, auto y) {
    const auto t = make_tensor(x, make_layout({4, 8}, {8, 1}));
    y(thread_idx.x) = t(thread_idx.x, _)(1);
  });
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(
      std::string(got.status().message()),
      HasSubstr("[tensor<ptr<i32, gmem> o (8):(1)> at 1, sliced at 4], outside the tensor's "
                "shape: 4 is not in [0, 4)"));
}

TEST(Tensors, ANegativeCoordinateIsReported) {
  if (!on_interpreter()) GTEST_SKIP() << "the interpreter checks promises";
  const auto got = run("negative", {.block = 1}, 4, [](auto x, auto y) {
    If(within({x(0) - 5, 0}, {4, 8}), [&] { y(0) = 1; });
  });
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("-5"));
}

TEST(Tensors, ReachBeyondThirtyTwoBits) {
  // Bytes, so that 2^31 of them are memory that a machine has; few are touched.
  const int64_t columns = (int64_t{1} << 31) + 32;
  const Stream stream = test_device().create_stream().value();
  auto memory = test_device().allocate(2 * columns);
  if (!memory.ok()) GTEST_SKIP() << memory.status();
  const auto kernel = define_kernel("far(x, y)", [](Tensor<uint8_t, 2> x, Tensor<int32_t, 1> y) {
    const auto tile = local_tile(x, {2, 32}, {0, block_idx.x + 67108864});  // from byte 2^31 on
    const auto mine = local_partition(tile, make_layout({1, 32}), thread_idx.x);
    for (int row = 0; row < 2; ++row) mine(row, 0) = cast<uint8_t>(thread_idx.x + 100 * row);
    sync_threads();
    const auto flat = make_tensor(pointer<uint8_t>(address_of(x.at(0, 0))),
                                  make_layout({SymInt(x.shape64(1)), 2}));
    y(thread_idx.x) = cast<int32_t>(flat(cast<int64_t>(thread_idx.x) + (int64_t{1} << 31), 1));
  });
  const Buffer out = on_device(std::vector<int32_t>(32));
  ASSERT_THAT(kernel.launch(stream, {.block = 32}, as_tensor<uint8_t>(*memory, {2, columns}),
                            as_tensor<int32_t>(out, {32})),
              IsOk());
  std::vector<int32_t> want(32);
  std::iota(want.begin(), want.end(), 100);
  const auto got = out.download<int32_t>(stream);
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, want);
}

TEST(Tensors, AnAccessOutsideItsViewNamesLayoutAndCoordinate) {
  if (!on_interpreter()) GTEST_SKIP() << "the interpreter checks bounds";
  const auto got =
      run_matrix({.block = 32}, 4, 8, 4, 8, [](Tensor<const int32_t, 2> x, Tensor<int32_t, 2> y) {
        const auto tile = local_tile(x, {8, 8}, {0, 0});
        y(0, thread_idx.x % 8) = tile(thread_idx.x / 8 * 2, thread_idx.x % 8);
      });
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().message()),
              HasSubstr("reads x(4, 0) [tensor<ptr<i32, gmem> o (8,8):(?,1)> at (4,0)], outside "
                        "its extents (4, 8): index 4 of mode 0 is not in [0, 4)"));
}

TEST(Tensors, ACoordinateOutsideTheTensorIsNoElementOfItsMemory) {
  if (!on_interpreter()) GTEST_SKIP() << "the interpreter checks bounds";
  const auto got = run("outside", {.block = 32}, 64, [](auto x, auto y) {
    const auto t = make_tensor(x, make_layout({4, 8}, {8, 1}));
    y(thread_idx.x) = t(0, thread_idx.x);
  });
  ASSERT_FALSE(got.ok());
  EXPECT_THAT(
      std::string(got.status().message()),
      HasSubstr("reads arg0(8) [tensor<ptr<i32, gmem> o (4,8):(8,1)> at (0,8)], outside the "
                "tensor's shape: 8 is not in [0, 8)"));
}

}  // namespace
}  // namespace heddle
