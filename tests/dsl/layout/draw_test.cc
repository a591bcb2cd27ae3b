// Layouts as tables and pictures.
#include "heddle/dsl/layout/draw.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/layout/calculator.h"
#include "heddle/dsl/layout/layout.h"
#include "support/text.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

TEST(LayoutDrawing, IsDrawnAsCuTeDoes) {
  EXPECT_EQ(layout_table(make_layout({2, 4}, {4, 1})),
            "(2,4):(4,1)\n"
            "     0   1   2   3 \n"
            "   +---+---+---+---+\n"
            "0  | 0 | 1 | 2 | 3 |\n"
            "   +---+---+---+---+\n"
            "1  | 4 | 5 | 6 | 7 |\n"
            "   +---+---+---+---+\n");
  EXPECT_THAT(layout_table(make_layout({SymInt::unknown(), 2})), HasSubstr("not known yet"));
  EXPECT_THAT(layout_table(make_layout({1 << 20, 2})), HasSubstr("too large to draw"));
  EXPECT_THAT(layout_table(make_layout({2, 2, 2})), HasSubstr("has 3 modes"));
}

TEST(LayoutDrawing, TablesShowCoordinatesAndTiles) {
  EXPECT_EQ(layout_table(make_layout({2, {2, 2}}, {4, {2, 1}})),
            "(2,(2,2)):(4,(2,1))\n"
            "     (0,0)   (1,0)   (0,1)   (1,1) \n"
            "         0       1       2       3 \n"
            "   +-------+-------#-------+-------+\n"
            "0  |     0 |     2 #     1 |     3 |\n"
            "   +-------+-------#-------+-------+\n"
            "1  |     4 |     6 #     5 |     7 |\n"
            "   +-------+-------#-------+-------+\n");
  EXPECT_EQ(layout_table(parse_layout("((2,2),2):((1,4),2)")),
            "((2,2),2):((1,4),2)\n"
            "           0   1 \n"
            "         +---+---+\n"
            "0 (0,0)  | 0 | 2 |\n"
            "         +---+---+\n"
            "1 (1,0)  | 1 | 3 |\n"
            "         +===+===+\n"
            "2 (0,1)  | 4 | 6 |\n"
            "         +---+---+\n"
            "3 (1,1)  | 5 | 7 |\n"
            "         +---+---+\n");
}

TEST(LayoutDrawing, TablesShowBanksAndThreads) {
  EXPECT_EQ(layout_table(make_layout({2, 3}, {32, 1}), {.bank_bits = 32}),
            "(2,3):(32,1)\n"
            "         0       1       2 \n"
            "   +-------+-------+-------+\n"
            "0  |  0 b0 |  1 b1 |  2 b2 | 1×\n"
            "   +-------+-------+-------+\n"
            "1  | 32 b0 | 33 b1 | 34 b2 | 1×\n"
            "   +-------+-------+-------+\n"
            "       2×!     2×!     2×!\n"
            "b: bank; ×: turns of a warp for the first 32 of a row or column, with ! where more "
            "than needed\n");
  EXPECT_EQ(layout_table(make_layout({2, 2}, {2, 1}), {.tile = IntTuple{2, 2}}),
            "threads and values (2,2):(2,1) of a tile (2,2)\n"
            "         0       1 \n"
            "   +-------+-------+\n"
            "0  | T0 V0 | T1 V0 |\n"
            "   +-------+-------+\n"
            "1  | T0 V1 | T1 V1 |\n"
            "   +-------+-------+\n");
}

TEST(LayoutDrawing, PicturesShowIndicesBanksAndThreads) {
  const std::string plain = layout_svg(make_layout({8, 32}, {32, 1}), {.bank_bits = 32});
  EXPECT_EQ(occurrences(plain, "class='cell'"), 256);
  EXPECT_EQ(occurrences(plain, ">8×<"), 32) << "each column is in one bank";
  EXPECT_EQ(occurrences(plain, ">1×<"), 8);
  EXPECT_THAT(plain, HasSubstr("<title>coordinate (1,2), index 34, bank 2</title>"));
  const Layout banked = make_composed_layout(Swizzle(3, 2, 3), 0, make_layout({8, 32}, {32, 1}));
  EXPECT_EQ(occurrences(layout_svg(banked, {.bank_bits = 32}), ">1×<"), 40);
  EXPECT_THAT(layout_svg(banked), HasSubstr("S&lt;3,2,3&gt; o 0 o (8,32):(32,1)"));

  EXPECT_EQ(occurrences(plain, "class='bank'"), 32) << "a legend";
  EXPECT_EQ(occurrences(plain, ">b31<"), 8);
  EXPECT_EQ(occurrences(plain, "fill='#1a7f37'>1×"), 8) << "as few turns as can be";
  EXPECT_EQ(occurrences(plain, "fill='#c00000' font-weight='bold'>8×"), 32);
  const std::string pairs = layout_svg(make_layout({2, 32}, {32, 1}), {.bank_bits = 32});
  EXPECT_EQ(occurrences(pairs, "fill='#c06000' font-weight='bold'>2×"), 32);
  const std::string wide = layout_svg(make_layout(32), {.bank_bits = 64});
  EXPECT_EQ(occurrences(wide, "fill='#1a7f37'>2×"), 1) << "64 words take two turns at least";

  const auto [tile, tv] = make_layout_tv(make_layout({4, 8}, {8, 1}), make_layout({2, 2}, {2, 1}));
  const std::string threads = layout_svg(tv, {.tile = tile});
  EXPECT_EQ(occurrences(threads, ">T31<"), 4);
  EXPECT_THAT(threads, HasSubstr("coordinate (1,2), index 17, thread 1 value 2"));
  EXPECT_THAT(layout_svg(tv, {.tile = IntTuple{4, 4}}), HasSubstr("outside the tile (4,4)"));

  const std::string page = layout_html(tv, {.tile = tile});
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("mouseenter"));
  EXPECT_EQ(occurrences(page, "http"), 1)
      << "nothing but the namespace is named, and nothing loaded";
}

TEST(LayoutDrawing, PicturesShowCoordinatesAndTiles) {
  const std::string flat = layout_svg(make_layout({4, 8}));
  EXPECT_EQ(occurrences(flat, "class='tile'"), 0);
  EXPECT_EQ(occurrences(flat, ">(0,0)<"), 0);
  const std::string nested = layout_svg(make_layout({{2, 2, 2}, {4, 2}}));
  EXPECT_EQ(occurrences(nested, ">(1,0,1)<"), 1);
  EXPECT_EQ(occurrences(nested, ">(3,1)<"), 1);
  EXPECT_EQ(occurrences(nested, "class='tile'"), 4) << "three between rows, one between columns";
  EXPECT_EQ(occurrences(nested, "stroke-width='4'"), 1) << "between tiles of tiles";
  // A mode of one element is no tile.
  for (const char* layout : {"(2,(1,4))", "(2,(4,1))", "((1,2,1),3)", "((1,1),(1,1))"}) {
    EXPECT_EQ(occurrences(layout_svg(make_layout(parse_int_tuple(layout))), "class='tile'"), 0)
        << layout;
  }
  EXPECT_EQ(occurrences(layout_svg(make_layout({2, {1, 2, 1, 3}})), "class='tile'"), 2);
  EXPECT_EQ(layout_table(parse_layout("(1,(1,2)):(0,(0,1))")),
            "(1,(1,2)):(0,(0,1))\n"
            "     (0,0)   (0,1) \n"
            "         0       1 \n"
            "   +-------+-------+\n"
            "0  |     0 |     1 |\n"
            "   +-------+-------+\n");
}

TEST(LayoutDrawing, PicturesCountBanksOfNegativeIndices) {
  const std::string halves = layout_svg(make_layout(4, -1), {.bank_bits = 16});
  EXPECT_THAT(halves, HasSubstr("coordinate 1, index -1, bank 31<"));
  EXPECT_THAT(halves, HasSubstr("coordinate 3, index -3, bank 30<"));
  for (const int bits : {1, 4, 8, 16, 32, 64}) {
    const std::string svg = layout_svg(make_layout(64, -1), {.bank_bits = bits});
    for (int i = 1; i < 64; ++i) {
      // As of the same element many times all the banks later.
      const int bank = ((1 << 20) - i * bits) / 32 % 32;
      EXPECT_THAT(svg, HasSubstr(absl::StrCat("index ", -i, ", bank ", bank, "<")));
    }
  }
}

TEST(LayoutDrawing, PicturesShowNoBanksOfIndicesThatAreTooFar) {
  for (const int64_t far : {int64_t{1} << 60, -(int64_t{1} << 60), int64_t{1} << 57}) {
    for (const int bits : {1, 32, 1024}) {
      const std::string svg = layout_svg(make_layout({2, 2}, {far, 1}), {.bank_bits = bits});
      EXPECT_THAT(svg, HasSubstr("coordinate (0,1), index 1, bank "));
      EXPECT_THAT(svg, HasSubstr(absl::StrCat("coordinate (1,0), index ", far, "<")));
      EXPECT_THAT(svg, HasSubstr(absl::StrCat("coordinate (1,1), index ", far + 1, "<")));
    }
  }
}

TEST(LayoutDrawing, PicturesCountTurnsOfOneWarp) {
  const std::string row = layout_svg(make_layout(64), {.bank_bits = 32});
  EXPECT_EQ(occurrences(row, "×<"), 65);
  EXPECT_EQ(occurrences(row, ">1×<"), 65);
  const std::string column = layout_svg(make_layout({64, 1}), {.bank_bits = 32});
  EXPECT_EQ(occurrences(column, "×<"), 65);
  EXPECT_EQ(occurrences(column, ">1×<"), 65);
  // What comes behind the first 32 may conflict as it will.
  const std::string behind = layout_svg(parse_layout("(1,(32,2)):(0,(1,32))"), {.bank_bits = 32});
  EXPECT_EQ(occurrences(behind, ">1×<"), 65);
}

TEST(LayoutDrawing, WhatCannotBeDrawnSaysWhy) {
  EXPECT_EQ(layout_svg(make_layout({4, 2}), {.tile = IntTuple{0, 0}}),
            "error: the tile (0,0) has a mode of 0 elements; extents are at least 1\n");
  EXPECT_EQ(layout_svg(make_layout({4, 2}), {.tile = IntTuple{_, 2}}),
            "error: the tile (_,2) leaves a mode open; give each an extent\n");
  EXPECT_THAT(layout_svg(make_layout({4, 2}), {.tile = IntTuple{2, 2, 2}}),
              HasSubstr("the tile (2,2,2) has 3 modes; group_modes()"));
  EXPECT_THAT(layout_svg(make_layout({4, 2}), {.tile = IntTuple{1 << 10, 1 << 10}}),
              HasSubstr("the tile (1024,1024) is too large to draw: at most 16384 cells"));
  EXPECT_THAT(layout_table(make_layout({4, 0})), HasSubstr("(4,0):(1,4) has a mode of 0 elements"));
  for (const char* unknown :
       {"(4,2):(?,1)", "(4,(2,2)):(1,(?,4))", "4:?", "S<1,0,1> o 0 o (4,2):(?,1)",
        "(4,2):(?{div=8}@0,1@1)", "S<1,0,1> o ? o (4,2):(2,1)", "16:? o 1 o (4,2):(2,1)"}) {
    const Layout layout = parse_layout(unknown);
    EXPECT_EQ(layout_svg(layout),
              "error: " + layout.to_string() + " has numbers that are not known yet\n");
    EXPECT_EQ(layout_svg(layout, {.bank_bits = 32}), layout_svg(layout));
    EXPECT_EQ(layout_svg(layout, {.tile = IntTuple{4, 2}}), layout_svg(layout));
  }
  const std::pair<const char*, const char*> outside[] = {
      {"(4,2):(-1,4)", "thread 1's value 0 is at -1"},
      {"(2,4):(4,-1)", "thread 0's value 1 is at -1"},
      {"4:-2", "thread 0's value 1 is at -2"},
      {"(4,2):(1,5)", "thread 3's value 1 is at 8"},
  };
  for (const auto& [layout, where] : outside) {
    EXPECT_EQ(layout_svg(parse_layout(layout), {.tile = IntTuple{2, 4}}),
              std::string("error: ") + where + ", outside the tile (2,4)\n");
  }
}

// The pictures that the README shows.
TEST(LayoutDrawing, PicturesInTheReadmeAreUpToDate) {
  const auto file = [](const char* name) {
    std::ifstream stream(std::string(HEDDLE_TEST_DATA_DIR) + "/../dsl/layout/" + name);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_EQ(file("threads.svg"),
            layout_svg(parse_layout("make_layout_tv((4,8):(8,1), (2,2):(2,1))"),
                       {.tile = IntTuple{8, 16}}));
  EXPECT_EQ(file("banks.svg"),
            layout_svg(parse_layout("S<3,2,3> o 0 o (8,32):(32,1)"), {.bank_bits = 32}));
}

}  // namespace
}  // namespace heddle
