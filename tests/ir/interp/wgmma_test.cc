// Tensor-core products: every swizzle, both element types, scaling, and what goes wrong.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/interp/harness.h"

namespace heddle::ir::interp {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 64;
constexpr int kThreads = 128;

// Where a K-major tile of `depth` halves a row keeps element (row, k), in halves, by the PTX ISA's
// matrix layouts: rows of a swizzle's width, eight of them a pattern; or 8 x 16-byte core matrices.
struct TileLayout {
  int swizzle;  // bytes; 0: none
  int depth;    // halves of a row
  int rows;

  int leading() const { return swizzle == 0 ? rows * 16 : 16; }
  int stride() const { return swizzle == 0 ? 128 : 8 * swizzle; }
  int halves() const { return rows * depth; }
  int offset(int row, int k) const {
    if (swizzle == 0) {
      // Core matrices of one column follow each other, then the next column.
      return k / 8 * (rows * 8) + row * 8 + k % 8;
    }
    const int per_row = swizzle / 2;
    // Tiles wider than a pattern's row would be several patterns; these tests keep to one.
    const int plain = row * per_row * 2 + k * 2;
    const int chunk = plain / 16 % 8;
    const int line = plain / 128 % 8;
    const int mixed = swizzle == 128  ? chunk ^ line
                      : swizzle == 64 ? chunk ^ (line % 4)
                                      : chunk ^ (line % 2);
    return (plain / 128 * 128 + mixed * 16 + plain % 16) / 2;
  }
};

// d = a b^T over the depth of the tile, one product for each 16 of it; `zero` starts with scale
// false on an accumulator that nobody wrote.
struct Product {
  KernelTest t{"gemm"};
  TileLayout a_layout;
  TileLayout b_layout;
  int columns;

  Product(Scalar scalar, int swizzle, int depth, int n, bool zero)
      : a_layout{swizzle, depth, kRows}, b_layout{swizzle, depth, n}, columns(n) {
    const ValueId a = t.tensor("a", scalar, {a_layout.halves()});
    const ValueId b = t.tensor("b", scalar, {b_layout.halves()});
    const ValueId d = t.tensor("d", Scalar::kF32, {kThreads, n / 2});
    const ValueId tile_a = shared(scalar, a_layout.halves());
    const ValueId tile_b = shared(scalar, b_layout.halves());
    copy(a, tile_a, a_layout.halves());
    copy(b, tile_b, b_layout.halves());
    t.op(Opcode::kFenceAsync, {});
    t.op(Opcode::kBarrier, {});
    const Type fragment = Type::fragment(Scalar::kF32, n / 2);
    ValueId accumulator =
        zero ? t.op(Opcode::kUndef, {}, fragment) : t.op(Opcode::kSplat, {t.f32(0.5f)}, fragment);
    accumulator = t.op(Opcode::kWgmmaBegin, {accumulator});
    // The k-loop carries the pending accumulator.
    const ValueId init[] = {accumulator};
    const OpId loop = t.b.begin_for(t.i32(0), t.i32(depth / 16), t.i32(1), init);
    const auto args = t.kernel.region(t.b.region()).args;
    // A step along K is 32 bytes within a swizzled row, two columns of core matrices otherwise.
    const auto descriptor = [&](ValueId tile, const TileLayout& layout) {
      const int step = layout.swizzle == 0 ? layout.leading() : 16;
      return t.op(Opcode::kSmemDesc, {tile, t.op(Opcode::kMul, {args[0], t.i32(step)})},
                  Type::none(),
                  {{AttrKey::kLeading, layout.leading()},
                   {AttrKey::kStride, layout.stride()},
                   {AttrKey::kSwizzle, layout.swizzle}});
    };
    const ValueId desc_a = descriptor(tile_a, a_layout);
    const ValueId desc_b = descriptor(tile_b, b_layout);
    t.line(30);
    const ValueId next = zero ? t.op(Opcode::kWgmma, {args[1], desc_a, desc_b,
                                                      t.op(Opcode::kNe, {args[0], t.i32(0)})})
                              : t.op(Opcode::kWgmma, {args[1], desc_a, desc_b});
    t.op(Opcode::kWgmmaCommit, {});
    t.b.yield({next});
    t.b.end_region();
    const ValueId settled = t.op(Opcode::kWgmmaWait, {t.kernel.op(loop).result()}, Type::none(),
                                 {{AttrKey::kGroups, 0}});
    for (int e = 0; e < n / 2; ++e) {
      const ValueId at = t.op(Opcode::kFma, {t.thread(), t.i32(n / 2), t.i32(e)});
      t.store(d, at, t.op(Opcode::kExtract, {settled}, kF32Type, {{AttrKey::kIndex, e}}));
    }
  }

  ValueId shared(Scalar scalar, int64_t count) {
    const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{count});
    return t.op(Opcode::kShared, {}, Type::view(scalar, Space::kShared, 1),
                {{AttrKey::kExtents, list}, {AttrKey::kAlign, 1024}});
  }
  void copy(ValueId from, ValueId to, int64_t count) {
    t.b.begin_for(t.thread(), t.i32(count), t.i32(kThreads), {});
    const ValueId i = t.kernel.region(t.b.region()).args[0];
    t.store(to, i, t.load(from, i));
    t.b.yield({});
    t.b.end_region();
  }
};

// Small integers are exact in both types, and so are their sums.
int a_value(int row, int k) { return (row * 7 + k * 3) % 11 - 5; }
int b_value(int column, int k) { return (column * 5 + k) % 7 - 3; }

uint16_t half_bits(Scalar scalar, int value) {
  const uint32_t bits = static_cast<uint32_t>(bits_of_f32(static_cast<float>(value)));
  if (scalar == Scalar::kBF16) return static_cast<uint16_t>(bits >> 16);
  if (value == 0) return 0;
  const uint32_t exponent = (bits >> 23 & 0xFF) - 127 + 15;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3FF));
}

void fill(Product& p, Scalar scalar) {
  std::vector<uint16_t> a(static_cast<size_t>(p.a_layout.halves()));
  std::vector<uint16_t> b(static_cast<size_t>(p.b_layout.halves()));
  for (int k = 0; k < p.a_layout.depth; ++k) {
    for (int row = 0; row < kRows; ++row) {
      a[p.a_layout.offset(row, k)] = half_bits(scalar, a_value(row, k));
    }
    for (int column = 0; column < p.columns; ++column) {
      b[p.b_layout.offset(column, k)] = half_bits(scalar, b_value(column, k));
    }
  }
  p.t.fill(0, a);
  p.t.fill(1, b);
}

TEST(InterpWgmma, EverySwizzleAndType) {
  const struct {
    int swizzle, depth, n;
  } shapes[] = {{0, 16, 8},    {0, 32, 64},    {32, 16, 16},
                {64, 32, 128}, {128, 64, 256}, {128, 64, 24}};
  for (const Scalar scalar : {Scalar::kBF16, Scalar::kF16}) {
    for (const auto& shape : shapes) {
      for (const bool zero : {true, false}) {
        Product p(scalar, shape.swizzle, shape.depth, shape.n, zero);
        fill(p, scalar);
        ASSERT_OK(p.t.run({.block = {kThreads, 1, 1}}));
        const std::vector<float> d = p.t.read<float>(2);
        for (int thread = 0; thread < kThreads; ++thread) {
          for (int e = 0; e < shape.n / 2; ++e) {
            const int row = thread / 32 * 16 + thread % 32 / 4 + (e & 2) * 4;
            const int column = e / 4 * 8 + thread % 4 * 2 + e % 2;
            float expected = zero ? 0 : 0.5f;
            for (int k = 0; k < shape.depth; ++k) {
              expected += static_cast<float>(a_value(row, k) * b_value(column, k));
            }
            ASSERT_EQ(d[thread * (shape.n / 2) + e], expected)
                << info(scalar).name << " swizzle " << shape.swizzle << " n " << shape.n << " row "
                << row << " column " << column;
          }
        }
      }
    }
  }
}

TEST(InterpWgmma, NeedsWholeWarpGroups) {
  Product p(Scalar::kBF16, 128, 64, 16, false);
  fill(p, Scalar::kBF16);
  EXPECT_THAT(p.t.failure({.block = {96, 1, 1}}),
              HasSubstr("kernel.cc:30: error: wgmma is run by warp 0, which is not part of a whole "
                        "warp-group of 128 threads (kernel 'gemm', block (0, 0, 0))\n"
                        "  fix: launch blocks of a multiple of 128 threads"));
}

// The simplest product, with one thing after another wrong.
struct Wrong {
  KernelTest t;
  ValueId tile, descriptor, accumulator;
  explicit Wrong(int64_t halves, bool written = true) {
    const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{halves});
    tile = t.op(Opcode::kShared, {}, Type::view(Scalar::kBF16, Space::kShared, 1),
                {{AttrKey::kExtents, list}, {AttrKey::kAlign, 1024}});
    if (written) {
      t.b.begin_for(t.thread(), t.i32(halves), t.i32(kThreads), {});
      t.store(tile, t.kernel.region(t.b.region()).args[0],
              t.b.constant(Type::of(Scalar::kBF16), 0x3F80));
      t.b.yield({});
      t.b.end_region();
      t.op(Opcode::kBarrier, {});
    }
    t.line(40);
  }
  ValueId describe(ValueId offset) {
    return t.op(Opcode::kSmemDesc, {tile, offset}, Type::none(),
                {{AttrKey::kLeading, 128}, {AttrKey::kStride, 256}, {AttrKey::kSwizzle, 0}});
  }
  ValueId begin(ValueId value) { return t.op(Opcode::kWgmmaBegin, {value}); }
  ValueId zeros() { return t.op(Opcode::kSplat, {t.f32(0)}, Type::fragment(Scalar::kF32, 4)); }
  std::string failure() { return t.failure({.block = {kThreads, 1, 1}}); }
};

TEST(InterpWgmma, ReportsWhatIsWrong) {
  {
    Wrong w(1024, /*written=*/false);
    const ValueId d = w.describe(w.t.i32(0));
    w.t.op(Opcode::kWgmma, {w.begin(w.zeros()), d, d});
    EXPECT_THAT(w.failure(),
                HasSubstr("kernel.cc:40: error: operand a of this wgmma: row 0 of the "
                          "tile, at byte 0 of shared memory, is read before anybody has "
                          "written it"));
  }
  {
    Wrong w(512);
    const ValueId d = w.describe(w.t.i32(0));
    w.t.op(Opcode::kWgmma, {w.begin(w.zeros()), d, d});
    EXPECT_THAT(w.failure(),
                HasSubstr("operand a of this wgmma: row 32 of the tile, at byte 1024 of "
                          "shared memory, lies outside the block's 1024 bytes"));
  }
  {
    Wrong w(2048);
    const ValueId good = w.describe(w.t.i32(0));
    const ValueId odd = w.describe(w.t.i32(4));
    w.t.op(Opcode::kWgmma, {w.begin(w.zeros()), good, odd});
    EXPECT_THAT(w.failure(), HasSubstr("operand b of this wgmma: row 0 of the tile, at byte 8 of "
                                       "shared memory, does not start at a multiple of 16 bytes"));
  }
  {
    Wrong w(2048);
    const ValueId d = w.describe(w.t.op(Opcode::kMul, {w.t.op(Opcode::kWarpId, {}), w.t.i32(8)}));
    w.t.op(Opcode::kWgmma, {w.begin(w.zeros()), d, d});
    EXPECT_THAT(w.failure(), HasSubstr("the descriptors of this wgmma differ between the threads"));
  }
  {
    Wrong w(2048);
    const ValueId d = w.describe(w.t.i32(0));
    const ValueId scale = w.t.op(Opcode::kLt, {w.t.thread(), w.t.i32(64)});
    w.t.op(Opcode::kWgmma, {w.begin(w.zeros()), d, d, scale});
    EXPECT_THAT(w.failure(), HasSubstr("the scale of this wgmma differs between the threads"));
  }
  {
    Wrong w(2048);
    const ValueId d = w.describe(w.t.i32(0));
    const ValueId undef = w.t.op(Opcode::kUndef, {}, Type::fragment(Scalar::kF32, 4));
    w.t.op(Opcode::kWgmma, {w.begin(undef), d, d});
    EXPECT_THAT(w.failure(),
                HasSubstr("this wgmma adds to an accumulator that nobody has written"));
  }
  {
    Wrong w(2048);
    const ValueId d = w.describe(w.t.i32(0));
    w.t.b.begin_if(w.t.op(Opcode::kLt, {w.t.thread(), w.t.i32(32)}));
    w.t.op(Opcode::kWgmma, {w.begin(w.zeros()), d, d});
    w.t.b.yield({});
    w.t.b.next_region();
    w.t.b.yield({});
    w.t.b.end_region();
    EXPECT_THAT(w.failure(),
                HasSubstr("kernel.cc:40: error: warp-group op that not every thread "
                          "reaches: thread (0, 0, 0) waits here for ever; warp 0 is at "
                          "the warp-group's op of kernel.cc:40, warps 1 to 3 are at its "
                          "end"));
  }
}

// Parts of a fragment that are read before it is handed over keep their values.
TEST(InterpWgmma, BeginCopiesTheAccumulator) {
  Wrong w(2048);
  KernelTest& t = w.t;
  const ValueId out = t.tensor("out", Scalar::kF32, {kThreads, 2});
  const ValueId settled = w.zeros();
  const ValueId before = t.op(Opcode::kExtract, {settled}, kF32Type, {{AttrKey::kIndex, 0}});
  t.op(Opcode::kFenceAsync, {});
  t.op(Opcode::kBarrier, {});
  const ValueId d = w.describe(t.i32(0));
  const ValueId pending = t.op(Opcode::kWgmma, {w.begin(settled), d, d});
  t.op(Opcode::kWgmmaCommit, {});
  const ValueId after = t.op(Opcode::kWgmmaWait, {pending}, Type::none(), {{AttrKey::kGroups, 0}});
  const ValueId row = t.op(Opcode::kMul, {t.thread(), t.i32(2)});
  t.store(out, row, before);
  t.store(out, t.op(Opcode::kAdd, {row, t.i32(1)}),
          t.op(Opcode::kExtract, {after}, kF32Type, {{AttrKey::kIndex, 0}}));
  ASSERT_OK(t.run({.block = {kThreads, 1, 1}}));
  EXPECT_EQ(t.read<float>(0)[0], 0);
  EXPECT_EQ(t.read<float>(0)[1], 16);
}

}  // namespace
}  // namespace heddle::ir::interp
