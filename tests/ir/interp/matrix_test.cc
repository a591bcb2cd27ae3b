// Matrices of a warp: every count, element size and transposition against tables of the PTX ISA's
// that are written here once more, and what goes wrong.
#include "absl/strings/str_cat.h"
#include "ir/interp/harness.h"

namespace heddle::ir::interp {
namespace {

using ::testing::HasSubstr;

constexpr int kThreads = 32;
constexpr int kTileBytes = 1024;

// Where byte `byte` of what a lane has of a matrix lies: by the ISA's figures, thread by thread.
// Rows go to four lanes each, in their order; transposed, columns do.
struct Cell {
  int row, byte;
};
Cell cell_in_figure(int lane, int byte, bool transpose) {
  Cell figure[32][4];
  int at = 0;
  for (int line = 0; line < 8; ++line) {
    for (int column = 0; column < 8; ++column, ++at) {
      // 16-bit cells in the order of the figure: two a lane.
      for (int half = 0; half < 2; ++half) {
        figure[at / 2][at % 2 * 2 + half] =
            transpose ? Cell{column, 2 * line + half} : Cell{line, 2 * column + half};
      }
    }
  }
  return figure[lane][byte];
}

// The byte of the tile at which the row starts that a lane gives: rows lie apart, and out of order.
int row_start(int lane) { return (lane * 7 + 3) % 32 * 32; }
uint8_t content(int byte) { return static_cast<uint8_t>(byte * 37 + byte / 256); }

// A kernel with a tile in shared memory, 1024 bytes of elements of a type, and its offsets.
struct Tile {
  KernelTest t{"matrices"};
  Scalar scalar;
  int size;
  ValueId bytes;  // argument 0: the tile's content before
  ValueId out;    // argument 1: what the lanes load, or the tile's content after
  ValueId tile;
  explicit Tile(Scalar s) : scalar(s), size(bytes_of(s)) {
    t.kernel.block = {kThreads, 1, 1};
    bytes = t.tensor("in", s, {kTileBytes / size});
    out = t.tensor("out", s, {kTileBytes / size});
    const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{kTileBytes / size});
    tile = t.op(Opcode::kShared, {}, Type::view(s, Space::kShared, 1),
                {{AttrKey::kExtents, list},
                 {AttrKey::kName, static_cast<int64_t>(index_of(t.kernel.intern("tile")))}});
  }
  void copy(ValueId from, ValueId to) {
    t.b.begin_for(t.thread(), t.i32(kTileBytes / size), t.i32(kThreads), {});
    const ValueId i = t.kernel.region(t.b.region()).args[0];
    t.store(to, i, t.load(from, i));
    t.b.yield({});
    t.b.end_region();
    t.op(Opcode::kWarpSync, {});
  }
  // (lane * 7 + 3) % 32 * 32 bytes in elements; nonsense in the lanes that give no row.
  ValueId rows(int count, Type index = kI32Type) {
    const auto number = [&](int64_t n) { return t.b.constant_int(index, n); };
    ValueId lane = t.op(Opcode::kLaneId, {});
    const ValueId gives = t.op(Opcode::kLt, {lane, t.i32(8 * count)});
    if (index != kI32Type) lane = t.op(Opcode::kConvert, {lane}, index);
    const ValueId row = t.op(Opcode::kFma, {lane, number(7), number(3)});
    const ValueId start =
        t.op(Opcode::kMul, {t.op(Opcode::kAnd, {row, number(31)}), number(32 / size)});
    return t.op(Opcode::kSelect, {gives, start, number(1'000'000'007)});
  }
  Type fragment(int count) const { return Type::fragment(scalar, 4 * count / size); }
  std::vector<Attr> attrs(int count, bool transpose) const {
    std::vector<Attr> list = {{AttrKey::kCount, count}};
    if (transpose) list.push_back({AttrKey::kTranspose, 1});
    return list;
  }
  ValueId load(ValueId rows, int count, bool transpose) {
    return t.b.create(Opcode::kLdMatrix, {tile, rows}, fragment(count), attrs(count, transpose));
  }
  void keep(ValueId loaded) {
    const int count = t.kernel.type(loaded).count;
    for (int e = 0; e < count; ++e) {
      const ValueId at = t.op(Opcode::kFma, {t.thread(), t.i32(count), t.i32(e)});
      t.store(out, at, t.op(Opcode::kExtract, {loaded}, Type::of(scalar), {{AttrKey::kIndex, e}}));
    }
  }
  void fill() {
    std::vector<uint8_t> values(kTileBytes);
    for (int i = 0; i < kTileBytes; ++i) values[static_cast<size_t>(i)] = content(i);
    t.fill(0, values);
  }
};

struct Shape {
  Scalar scalar;
  int count;
  bool transpose;
};
std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (int i = 1; i < kScalarCount; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    const int size = bytes_of(scalar);
    if (scalar == Scalar::kBool || size > 4) continue;
    for (const int count : {1, 2, 4}) {
      shapes.push_back({scalar, count, false});
      if (size == 2) shapes.push_back({scalar, count, true});
    }
  }
  return shapes;
}
std::string text_of(const Shape& s) {
  return absl::StrCat(info(s.scalar).name, " x", s.count, s.transpose ? " transposed" : "");
}

TEST(InterpMatrix, LoadsWhatTheFiguresSay) {
  for (const Shape& s : all_shapes()) {
    for (const Type index : {kI32Type, kI64Type}) {
      for (const bool checks : {true, false}) {
        Tile k(s.scalar);
        k.copy(k.bytes, k.tile);
        k.keep(k.load(k.rows(s.count, index), s.count, s.transpose));
        k.fill();
        SCOPED_TRACE(text_of(s));
        ASSERT_OK(k.t.run({.block = {kThreads, 1, 1}, .checks = checks}));
        const std::vector<uint8_t> got = k.t.read<uint8_t>(1);
        for (int lane = 0; lane < kThreads; ++lane) {
          for (int i = 0; i < 4 * s.count; ++i) {
            const Cell cell = cell_in_figure(lane, i % 4, s.transpose);
            ASSERT_EQ(got[static_cast<size_t>(lane * 4 * s.count + i)],
                      content(row_start(8 * (i / 4) + cell.row) + cell.byte))
                << text_of(s) << " lane " << lane << " byte " << i;
          }
        }
      }
    }
  }
}

// What each lane stores tells the lane and the byte.
TEST(InterpMatrix, StoresWhatTheFiguresSay) {
  for (const Shape& s : all_shapes()) {
    for (const bool checks : {true, false}) {
      Tile k(s.scalar);
      const Type fragment = k.fragment(s.count);
      std::vector<ValueId> elements;
      for (int e = 0; e < fragment.count; ++e) {
        const ValueId at =
            k.t.op(Opcode::kFma, {k.t.thread(), k.t.i32(fragment.count), k.t.i32(e)});
        elements.push_back(k.t.load(k.bytes, at));
      }
      // The rows that nobody stores are written too, to be read afterwards.
      k.copy(k.bytes, k.tile);
      const ValueId stored = k.t.b.create(Opcode::kPack, elements, fragment);
      k.t.b.create(Opcode::kStMatrix, {k.tile, stored, k.rows(s.count)}, Type::none(),
                   k.attrs(s.count, s.transpose));
      k.t.op(Opcode::kWarpSync, {});
      k.copy(k.tile, k.out);
      k.fill();
      SCOPED_TRACE(text_of(s));
      ASSERT_OK(k.t.run({.block = {kThreads, 1, 1}, .checks = checks}));
      std::vector<uint8_t> expected(kTileBytes);
      for (int i = 0; i < kTileBytes; ++i) expected[static_cast<size_t>(i)] = content(i);
      for (int lane = 0; lane < kThreads; ++lane) {
        for (int i = 0; i < 4 * s.count; ++i) {
          const Cell cell = cell_in_figure(lane, i % 4, s.transpose);
          expected[static_cast<size_t>(row_start(8 * (i / 4) + cell.row) + cell.byte)] =
              content(lane * 4 * s.count + i);
        }
      }
      EXPECT_EQ(k.t.read<uint8_t>(1), expected) << text_of(s);
    }
  }
}

// --- What goes wrong ---

// One load of two matrices from line 40 on, whose rows `offset` gives.
struct Wrong : Tile {
  explicit Wrong(bool written = true) : Tile(Scalar::kF16) {
    if (written) copy(bytes, tile);
    t.line(40);
  }
  ValueId lane() { return t.op(Opcode::kLaneId, {}); }
  // `right` in all lanes but this one.
  ValueId but_in(int wrong_lane, ValueId right, ValueId wrong) {
    return t.op(Opcode::kSelect, {t.op(Opcode::kEq, {lane(), t.i32(wrong_lane)}), wrong, right});
  }
  ValueId plain_rows() { return t.op(Opcode::kMul, {lane(), t.i32(8)}); }
  ValueId bounds(ValueId rows) {
    return t.op(Opcode::kBounds, {tile, rows}, Type::check(), {{AttrKey::kWidth, 8}});
  }
  std::string load_fails(std::initializer_list<ValueId> operands, Dim3 block = {kThreads, 1, 1}) {
    keep(t.b.create(Opcode::kLdMatrix, operands, fragment(2), attrs(2, false)));
    fill();
    return t.failure({.block = block});
  }
};

TEST(InterpMatrix, RowsOutsideTheExtentsAreReported) {
  Wrong w;
  const ValueId rows = w.but_in(9, w.plain_rows(), w.t.i32(512));
  EXPECT_THAT(w.load_fails({w.tile, rows, w.bounds(rows)}),
              HasSubstr("kernel.cc:40: error: reads 8 elements of tile(512), outside its extents "
                        "(512): its 8 elements start at index 512 of mode 0, which has 512 (kernel "
                        "'matrices', block (0, 0, 0), thread (9, 0, 0))"));
}

TEST(InterpMatrix, ChecksOfLanesThatGiveNoRowCountForNothing) {
  Wrong w;
  const ValueId rows = w.but_in(16, w.plain_rows(), w.t.i32(-8));
  w.keep(w.t.b.create(Opcode::kLdMatrix, {w.tile, rows, w.bounds(rows)}, w.fragment(2),
                      w.attrs(2, false)));
  w.fill();
  ASSERT_OK(w.t.run({.block = {kThreads, 1, 1}}));
}

TEST(InterpMatrix, RowsThatAreNotAlignedAreReported) {
  Wrong w;
  const ValueId rows = w.but_in(3, w.plain_rows(), w.t.i32(4));
  EXPECT_THAT(
      w.load_fails({w.tile, rows}),
      HasSubstr("kernel.cc:40: error: reads 8 elements of 'tile' at element offset 4, whose "
                "address is not a multiple of 16 as an access of 16 bytes needs (kernel "
                "'matrices', block (0, 0, 0), thread (3, 0, 0))"));
}

TEST(InterpMatrix, RowsOutsideSharedMemoryAreReported) {
  Wrong w;
  const ValueId rows = w.but_in(15, w.plain_rows(), w.t.i32(512));
  EXPECT_THAT(
      w.load_fails({w.tile, rows}),
      HasSubstr("kernel.cc:40: error: reads 8 elements of 'tile' at element offset 512, "
                "which is not in memory: 16 bytes at byte 1024 of the block's 1024 bytes of "
                "shared memory (kernel 'matrices', block (0, 0, 0), thread (15, 0, 0))"));
}

TEST(InterpMatrix, RowsThatNobodyHasWrittenAreReported) {
  Wrong w(/*written=*/false);
  EXPECT_THAT(
      w.load_fails({w.tile, w.plain_rows()}),
      HasSubstr("kernel.cc:40: error: reads 8 elements of 'tile' at element offset 0, which "
                "nobody has written (kernel 'matrices', block (0, 0, 0), thread (0, 0, 0) "
                "and 15 more of its warp)"));
}

TEST(InterpMatrix, AStoreWritesItsRowsAlone) {
  Wrong w(/*written=*/false);
  const ValueId stored = w.t.b.constant(w.fragment(1), 0x3C00);
  w.t.b.create(Opcode::kStMatrix, {w.tile, stored, w.plain_rows()}, Type::none(),
               w.attrs(1, false));
  w.t.op(Opcode::kWarpSync, {});
  EXPECT_THAT(
      w.load_fails({w.tile, w.plain_rows()}),
      HasSubstr("kernel.cc:40: error: reads 8 elements of 'tile' at element offset 64, "
                "which nobody has written (kernel 'matrices', block (0, 0, 0), thread (8, 0, "
                "0) and 7 more of its warp)"));
}

TEST(InterpMatrix, UnwrittenElementsAreNotStored) {
  Wrong w;
  const ValueId stored = w.t.op(Opcode::kUndef, {}, w.fragment(1));
  w.t.b.create(Opcode::kStMatrix, {w.tile, stored, w.plain_rows()}, Type::none(),
               w.attrs(1, false));
  w.fill();
  EXPECT_THAT(w.t.failure({.block = {kThreads, 1, 1}}),
              HasSubstr("kernel.cc:40: error: this stores a value that nobody has written"));
}

TEST(InterpMatrix, NeedsAllLanes) {
  Wrong w;
  w.t.b.begin_if(w.t.op(Opcode::kLt, {w.lane(), w.t.i32(24)}));
  w.keep(w.load(w.plain_rows(), 2, false));
  w.t.b.yield({});
  w.t.b.next_region();
  w.t.b.yield({});
  w.t.b.end_region();
  w.fill();
  for (const bool checks : {true, false}) {
    EXPECT_THAT(w.t.failure({.block = {kThreads, 1, 1}, .checks = checks}),
                HasSubstr("kernel.cc:40: error: loads and stores of matrices need all 32 threads "
                          "of their warp at once (kernel 'matrices', block (0, 0, 0))"));
  }
}

TEST(InterpMatrix, NeedsAWholeWarp) {
  Wrong w;
  w.t.kernel.block = {0, 0, 0};
  EXPECT_THAT(w.load_fails({w.tile, w.plain_rows()}, {48, 1, 1}),
              HasSubstr("kernel.cc:40: error: loads and stores of matrices need a warp of 32 "
                        "threads, and the last warp of this block has 16 (kernel 'matrices', block "
                        "(0, 0, 0))\n  fix: launch blocks of a multiple of 32 threads"));
}

}  // namespace
}  // namespace heddle::ir::interp
