// Layouts as programs use them: the C++ forms, mistakes and what they say, and what it all costs.
#include "heddle/dsl/layout/layout.h"

#include <chrono>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/layout/calculator.h"
#include "support/text.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

TEST(IntTuple, BracesMakeTuples) {
  EXPECT_EQ(IntTuple(4).to_string(), "4");
  EXPECT_EQ((IntTuple{4}).to_string(), "(4)");
  EXPECT_EQ((IntTuple{4, {2, 8}}).to_string(), "(4,(2,8))");
  EXPECT_EQ((IntTuple{_, {0, _}}).to_string(), "(_,(0,_))");
  EXPECT_EQ(IntTuple().to_string(), "()");
  EXPECT_EQ(E({1, 0}, 2).to_string(), "2@0@1");
  EXPECT_EQ((IntTuple{SymInt::unknown(), SymInt::unknown(8)}).to_string(), "(?,?{div=8})");
}

TEST(IntTuple, AreStaticWithoutUnknownNumbers) {
  EXPECT_TRUE(is_static(IntTuple{4, {2, _}}));
  EXPECT_FALSE(is_static(IntTuple{4, {SymInt::unknown(), 2}}));
}

TEST(SymInt, ProvesWhatHoldsForAllNumbers) {
  const SymInt x = SymInt::unknown(8), y = SymInt::unknown();
  EXPECT_EQ(ceil_div(x, 4) * 4, x);
  EXPECT_EQ(ceil_div(x * y, y), x);
  EXPECT_EQ((x - 1) * y + (y - 1) + 1, x * y);
  EXPECT_EQ(ceil_div(ceil_div(y, 4), 8), ceil_div(y, 32));
  EXPECT_EQ(mod(x * 4 + 3, 8), 3);
  EXPECT_EQ(min(x, 8), 8);
  EXPECT_EQ(min(x * y, x), x);
  EXPECT_EQ(ceil_div(4, x), 1);
  EXPECT_FALSE(x == SymInt::unknown(8));
  EXPECT_EQ(min(x, 12).divisor(), 4);
  EXPECT_TRUE(always_at_most(y, x * y));
  EXPECT_FALSE(always_at_most(x, y));
  EXPECT_TRUE((SymInt(INT64_MAX) + 1).is_overflow());
  EXPECT_TRUE((x * INT64_MAX * 2).is_overflow());
}

TEST(Layout, IsMadeAndAsked) {
  const Layout tile = make_layout({8, 4}, {4, 1});
  EXPECT_EQ(tile.to_string(), "(8,4):(4,1)");
  EXPECT_EQ(tile({2, 3}).to_string(), "11");
  EXPECT_EQ(make_layout({8, 4}, GenRowMajor{}), tile);
  EXPECT_EQ(make_layout(make_layout(3), make_layout(4, 3)).to_string(), "(3,4):(1,3)");
  EXPECT_EQ(zipped_divide(tile, {2, 2}).to_string(), "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(zipped_divide(tile, {make_layout(2, 4), 2}).to_string(),
            "((2,2),(4,2)):((16,1),(4,2))");
  EXPECT_EQ(size(tile), 32);
  EXPECT_EQ(cosize(tile), 32);
  EXPECT_EQ(leading_dim(tile), 1);
  const auto [tiler, tv] = make_layout_tv(make_layout({4, 8}, {8, 1}), make_layout({2, 2}, {2, 1}));
  EXPECT_EQ(tiler.to_string(), "(8,16)");
  EXPECT_EQ(tv.to_string(), "((8,4),(2,2)):((16,2),(8,1))");
  const Layout banked = make_composed_layout(Swizzle(3, 0, 3), 0, make_layout({8, 8}, {8, 1}));
  EXPECT_EQ(banked.to_string(), "S<3,0,3> o 0 o (8,8):(8,1)");
  EXPECT_EQ(banked({1, 3}).to_string(), "10");
  const auto [row, offset] = slice_and_offset({2, _}, banked);
  EXPECT_EQ(row.to_string(), "S<3,0,3> o 16 o (8):(1)");
  EXPECT_EQ(row(1), banked({2, 1}));
}

TEST(Layout, IndexesBeyond31Bits) {
  const Layout huge = make_layout({1 << 20, 1 << 20}, {int64_t{1} << 21, 1});
  EXPECT_EQ(cosize(huge).value(), (int64_t{1} << 41) - (int64_t{1} << 20));
  EXPECT_EQ(huge({(1 << 20) - 1, 5}).value().value(),
            ((int64_t{1} << 20) - 1) * (int64_t{1} << 21) + 5);
}

// Expression, and what is said of it.
struct Mistake {
  const char* expression;
  const char* message;
};

TEST(Layout, MistakesNameTheirOperands) {
  const Mistake mistakes[] = {
      {"composition((4,6):(1,8), 3:2)",
       "error: composition((4,6):(1,8), 3:2): a mode of 3 elements takes 2 of mode 0 of the left "
       "layout"},
      {"composition((4,6):(1,8), 2:6)",
       "the stride 6 and mode 0 of the left layout, 4 elements, do not divide one another; choose "
       "a "
       "tile whose shape and stride divide the layout's modes"},
      {"composition((?,6):(1,?), 8:1)",
       "composition((?a,6):(1,?b), 8:1): a mode of 8 elements takes ?a of mode 0 of the left "
       "layout, which do not divide it; promise "
       "that one divides the other, as ?{div=8} or assume_divisible() do"},
      {"composition((4,2):(1,8), (4,2):(1,1))",
       "the right layout's modes reach index 4 of mode 0 of the left layout, which has 4 elements"},
      {"complement((2,3):(1,1), 12)",
       "complement((2,3):(1,1), 12): it is not injective: the mode 3:1 starts before 2"},
      {"left_inverse((2,2):(2,5))", "the stride 5 is no multiple of 2"},
      {"zipped_divide((8,8):(8,1), (2,2,2))",
       "zipped_divide((8,8):(8,1), <2:1,2:1,2:1>): the tiler has 3 modes and the layout 2"},
      {"tile_to_shape((8,8):(8,1), (20,16))",
       "the block's 8 elements of mode 0 do not divide the shape's 20"},
      {"slice((3,_,0), (4,8):(8,1))", "slice((3,_,0), (4,8):(8,1)): the profiles differ"},
      {"get((4,8):(8,1), 2)", "mode 2 of (4,8); it has modes 0 to 1"},
      {"make_layout((4,8), (1))", "shape (4,8) and stride (1) differ in profile"},
      {"size((9223372036854775807,4))", "the result does not fit 64 bits"},
      {"make_layout((4611686018427387904,4,2))", "does not fit 64 bits"},
      {"recast_layout((8,4):(3,1), 16, 32)",
       "recast_layout((8,4):(3,1), 16, 32): 2 elements become one, but neither 2 nor the stride 3"},
      {"S<4,0,2>", "S<4,0,2> is no swizzle"},
      {"shape_div(6, 4)", "shape_div(6, 4): 6 and 4 do not divide one another"},
      {"((4,8):(8,1))((1,2,3))", "coordinate (1,2,3) does not fit the shape (4,8)"},
      {"composition(4:1", "expected ',' or ')' at column 16, where the expression ends"},
      {"4:1 extra", "expected the end at column 5, where 'extra' stands"},
      {"compositoin(4:1, 2:1)", "there is no function 'compositoin'"},
      {"composition(4:1)", "composition(inner, outer) is called with 1 arguments"},
      {"composition(S<3,4,3>, <4,_>)",
       "composition of S<3,4,3> with <4:1,_>; a swizzle is composed with a layout"},
      {"composition(_, 4:1)", "argument 1 of composition is _; it has to be a swizzle or a layout"},
      {"round_up((4,(6,2)), (2,4))", "round_up((6,2), 4): a tuple is rounded by a tuple"},
      {"99999999999999999999", "expected a number that fits 64 bits at column 1"},
      {"?{div=0}", "expected a positive divisor"},
      {"", "expected an expression"},
      {"((8,8):(4,5)) o (S<1,0,2> o 0 o 64:1)", "does not keep the bits together"},
      {"make_layout(S<3,0,3> o 0 o 8:1, 4:1)", "is composed, which cannot be a part of another"},
      {"raked_product(8:1, S<2,0,2> o 0 o 16:1)",
       "raked_product(8:1, S<2,0,2> o 0 o 16:1): S<2,0,2> o 0 o 16:1 is composed, which cannot "
       "be a part"},
      {"logical_product(3:1, S<2,0,2> o 0 o 16:1)",
       "logical_product(3:1, S<2,0,2> o 0 o 16:1): 16:3 does not keep the bits together that the "
       "swizzle combines"},
      {"logical_product(4:2, 3:1)",
       "logical_product(4:2, 3:1): a mode of 3 elements takes 2 of mode 0 of what the block leaves "
       "out, which do not divide it"},
      {"blocked_product(4:2, 3:1)", "blocked_product(4:2, 3:1): a mode of 3 elements takes 2"},
      {"tile_to_shape((4):(2), (12))",
       "tile_to_shape((4):(2), (12)): a mode of 3 elements takes 2"},
      {"local_tile(((4,6)):((1,8)), <3:2>, 0)",
       "local_tile(((4,6)):((1,8)), <3:2>, 0): a mode of 3 elements takes 2 of mode 0 of the "
       "layout"},
      {"local_tile((4,6):(1,4), (2,2), (0,0,0))", "the coordinate (0,0,0) does not fit (2,3)"},
      {"local_tile((4,6):(1,4), (2,2,2), (0,0,0), (1,_))",
       "dice((1,_), <2:1,2:1,2:1>): the profiles differ; give a number for each mode, or _ to "
       "leave "
       "it out"},
      {"dice((1,_), <4,_,2>)", "dice((1,_), <4:1,_,2:1>): the profiles differ"},
      {"local_tile(4:1, _, 0)", "local_tile(4:1, _, 0): _ is no tile"},
      {"make_layout_tv((2,2):(1,1), 4:1)", "make_layout_tv((2,2):(1,1), 4:1): it is not injective"},
      {"recast_layout(S<3,0,3> o 5 o 8:1, 8, 16)", "the offset 5 is no multiple of 2"},
      {"((4,3):(1@0,5))((3,2))", "has plain strides beside basis strides"},
      {"zipped_divide((8):(4611686018427387904), 2)", "a layout's number does not fit 64 bits"},
      {"flat_divide((16,16):(1,4611686018427387904), (4,4))", "does not fit 64 bits"},
      {"flat_divide(-1, (?))", "does not fit 64 bits"},
      {"blocked_product(8:4611686018427387904, 8:1)", "does not fit 64 bits"},
      {"ceil_div(((4611686018427387904,4),2), 4)",
       "the size of (4611686018427387904,4) does not fit 64 bits"},
      {"composition((2,2):(4,1), S<1,0,1> o 0 o 16:1)",
       "16:1, which is swizzled, is not sure to stay within the left layout's 4 elements"},
      {"composition((8,4):(8,1), S<1,0,1> o 0 o (8,?):(1,8))", "is not sure to stay within"},
      {"composition((8,8):(8,1), S<1,0,1> o 0 o (8,8):(8,-1))", "is not sure to stay within"},
      {"composition((8,8):(4,5), S<1,0,2>)",
       "composition((8,8):(4,5), S<1,0,2>): (8,8):(4,5) does not keep the bits together"},
      {"upcast(8:1, 2@0)", "argument 2 of upcast is 2@0; it has to be a host number"},
      {"make_composed_layout(S<1,0,1>, _, 4:1)", "argument 2 of make_composed_layout is _"},
      {"(?{div=8},0@0,1) o 16", "mode 1 of the left layout, 0 elements, do not divide one another"},
      {"complement(0:1, 8)", "a division of 8 by 0"},
      {"complement(2:-2, 8)", "it has a negative stride"},
      {"make_identity_layout(repeat(2,300))", "more than 256 modes"},
      {"recast_layout((4):(8), 24, 16)", "no mode has a stride of 1"},
      {"make_layout_image_mask((2,1000000000000):(1,0), (0,0), 1)", "is not of 1 to 16 blocks"},
      {"repeat(4, 2000000000)", "a tuple of more than 65536 numbers"},
      {"S<3,0,-9223372036854775808>", "a swizzle of more than 62 bits"},
      {"get((), 0)", "mode 0 of (); it has none"},
      {"assume((8,12), 8)", "assume: 12 is no multiple of 8; promise what holds"},
      {"assume(?, 0)", "assume: a divisor of 0"},
      {"slice_and_offset((3,_,0), (4,8):(8,1))", "the profiles differ"},
      {"composition(slice_and_offset((2,_), (4,8):(8,1)), 2:1)",
       "argument 1 of composition is ((8):(1),16); it has to be a swizzle or a layout"},
      {"make_composed_layout(slice_and_offset((2,_), (4,8):(8,1)), 0, 4:1)",
       "it has to be a swizzle or a layout"},
      {"<slice_and_offset((2,_), (4,8):(8,1)), 4>", "a tiler with ((8):(1),16)"},
      {"idx2crd(3, (0,4))", "error: "},
      {"idx2crd(3, (4,8), (0,1))", "the stride 0 of 4 elements tells no coordinate; use positive"},
      {"idx2crd(3, (4,8), (8,-1))", "the stride -1 of 8 elements tells no coordinate"},
      {"idx2crd(3, (4,8), (1@0,1@1))", "the stride 1@0 of 4 elements tells no coordinate"},
      {"idx2crd(3, (4,8), (8,(1,1)))", "shape (4,8) and stride (8,(1,1)) differ in profile"},
      {"idx2crd(3, (4,8), 1@0)", "shape (4,8) and stride 1@0 differ in profile"},
      {"idx2crd(3, (4,(8,2)), 2@1)", "shape (4,(8,2)) and stride 2@1 differ in profile"},
      {"idx2crd((1,2,3), (4,8), (8,1))", "index (1,2,3) does not fit the shape (4,8)"},
      {"idx2crd((1,(2,3)), (4,8), (8,1))", "index (2,3) does not fit the shape 8"},
      {"idx2crd((1,(2,3)), (4,8))", "index (2,3) does not fit the shape 8"},
      {"idx2crd((1,2), 8)", "index (1,2) does not fit the shape 8"},
      {"idx2crd((1,2), 8, 1)", "index (1,2) does not fit the shape 8"},
      {"cosize(16:1 o 2 o (10,(10,10),10):(10,(1,200),2000))",
       "the cosize of 16:1 o 2 o (10,(10,10),10):(10,(1,200),2000): its index goes through another "
       "layout; ask for that of inner() or outer()"},
      {"size_in_bytes(16, 16:1 o 2 o 4:1)", "its index goes through another layout"},
      {"complement(16:1 o 2 o 4:1)", "its index goes through another layout"},
      {"group_modes((2,3,5), 1, 1)",
       "group_modes((2,3,5), 1, 1): modes 1 up to 1 of 3; group at least one of the modes that "
       "there are: begin < end"},
      {"group_modes((2,3,5):(1,2,6), 3, 3)", "modes 3 up to 3 of 3"},
      {"group_modes((2,3,5):(1,2,6), 2, 4)", "modes 2 up to 4 of 3"},
      {"complement((2,3):(1@0,1), 8)", "it has plain strides beside basis strides; let all"},
      {"right_inverse((2,3):(1@0,1))", "right_inverse((2,3):(1@0,1)): it has plain strides beside"},
      {"left_inverse((2,3):(1@0,1@1@0))",
       "the stride 1@0 counts in a number, and 1@1@0 in a part of it; let a number of the "
       "coordinate be one, or a tuple"},
      {"complement((2,3):(1@0,1@2), (4,6))",
       "the stride 1@2 names a mode that the shape lacks; use basis strides of the shape's "
       "profile"},
      {"zipped_divide((8,8):(1,8), (2,2):(1@0,1@2))", "the stride 1@2 names a mode"},
      {"left_inverse((2,2):(2@1,5@1))", "the stride 5 is no multiple of 2"},
      {"complement((2,3):(1@0,1@0), (12))", "it is not injective: the mode 3:1 starts before 2"},
      {"composition(((4,2)):((1,8)), (4,2):(1@0,1@0))",
       "the right layout's modes reach index 4 of mode 0 of the left layout, which has 4 elements"},
      {"zipped_divide(((3,8)):((3,54)), <2>)",
       "zipped_divide(((3,8)):((3,54)), <2:1>): a mode of 16 elements takes 2 of mode 0 of the "
       "layout, which do not divide it; choose a tile whose shape and stride divide the layout's "
       "modes; or divide cover(layout, tiler), which has whole tiles"},
      {"cover((8,8):(8,1), (2,2,2))", "the tiler has 3 modes and the layout 2"},
      {"cover((8,8):(8,1), (2,2):(1@0,1@2))", "the stride 1@2 names a mode that the shape lacks"},
      {"cover(8:1, S<2,0,2> o 0 o 16:1)", "is composed, which cannot be a part"},
      {"recast_layout(S<3,4,3>, 8, 24)",
       "recast_layout(S<3,4,3>, 8, 24): a swizzle keeps its bits "
       "only between powers of two"},
      {"upcast(S<2,1,-3>, 4)",
       "recast_layout(S<2,1,-3>, 1, 4): S<2,1,-3> takes 4 elements that are to become one to "
       "different places; let it keep 4 elements together: a base of 2"},
      {"upcast(S<2,1,-3> o 0 o 64:1, 4)", "takes 4 elements that are to become one to different"},
      {"recast_layout(S<3,4,3>, 0, 8)", "widths are at least one bit"},
      {"ceil_div((8:-1)(?), 4)", "error: "},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string text = evaluate(mistake.expression);
    EXPECT_THAT(text, HasSubstr(mistake.message)) << mistake.expression;
    EXPECT_EQ(text.substr(0, 7), "error: ") << mistake.expression;
    EXPECT_EQ(text.find('\n'), std::string::npos) << mistake.expression;
    EXPECT_EQ(occurrences(text, " column "), 1) << text;
  }
}

TEST(Layout, AnIndexIsOfAWholeCoordinate) {
  EXPECT_THAT(make_layout({4, 8}, {8, 1})({_, 3}).error(),
              HasSubstr("coordinate (_,3) does not fit the shape (4,8); give one index, or one for "
                        "each mode; slice() takes _"));
  EXPECT_EQ(crd2idx({_, 3}, {4, 8}, {8, 1}), 3);
  const Layout through = make_composed_layout(make_layout(16), 2, make_layout({4, 2}));
  EXPECT_TRUE(cosize(through).is_overflow());
  EXPECT_THAT(coshape(through).error(), HasSubstr("goes through another layout"));
}

TEST(Layout, ASwizzleIsRecastAlone) {
  EXPECT_EQ(recast(Swizzle(3, 4, 3), 16, 8), Swizzle(3, 5, 3));
  EXPECT_EQ(upcast(Swizzle(3, 4, 3), 8), Swizzle(3, 1, 3));
  EXPECT_FALSE(recast_layout(Swizzle(3, 4, 3), 8, 24).ok());
  EXPECT_FALSE(upcast(Swizzle(2, 1, -3), 4).ok());
  EXPECT_EQ(Swizzle(3, 3, 3).span(), 512);
  EXPECT_EQ(Swizzle(2, 3, -4).span(), 512);
}

TEST(Layout, AMistakeSaysWhereItsPartStarts) {
  EXPECT_EQ(evaluate("make_layout((4,8), compositoin(4:1, 2:1))").substr(0, 40),
            "error: there is no function 'compositoin");
  EXPECT_THAT(evaluate("make_layout((4,8), compositoin(4:1, 2:1))"),
              HasSubstr("(in what starts at column 20)"));
  EXPECT_THAT(evaluate("  composition(4:1)"), HasSubstr("(in what starts at column 3)"));
  EXPECT_THAT(evaluate("4:1 o ((4,8):(8,1))((1,2,3))"), HasSubstr("(in what starts at column 1)"));
}

TEST(Layout, AMistakeSaysOnceWhereItIs) {
  // Each is in parts of parts.
  const Mistake mistakes[] = {
      {"coalesce(make_layout((4,8), (compositoin(4:1, 2:1), 1)))", "at column 30)"},
      {"(4,(shape_div(6, 4),2)):(1,4)", "at column 5)"},
      {"size(<(4,8):(8,1), (get((4,8), 2))>)", "at column 21)"},
      {"size((4,8) o (4:1 4:1))", "expected ',' or ')' at column 19, where "},
      {"make_layout((4,(8,2):1@))", "expected a mode at column 24, where "},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string text = evaluate(mistake.expression);
    EXPECT_THAT(text, HasSubstr(mistake.message)) << mistake.expression;
    EXPECT_EQ(occurrences(text, " column "), 1) << text;
  }
}

// Bytes that no expression has, those too that mark unknown numbers in messages on their way.
TEST(Layout, AMistakeQuotesWhateverStandsThere) {
  for (int byte = 1; byte < 32; ++byte) {
    const std::string text =
        std::string("blocked_product(4:1, (,") + static_cast<char>(byte) + "3))";
    const std::string told = evaluate(text);
    EXPECT_THAT(told, HasSubstr("expected an expression at column 23, where ',")) << byte;
    for (const char c : told) EXPECT_TRUE(c >= ' ' || c == '\n') << byte;
  }
}

TEST(Layout, MessagesTellUnknownNumbersApart) {
  const SymInt x = SymInt::unknown(), y = SymInt::unknown(8);
  EXPECT_THAT(shape_div({x * 3, y}, {y, x + x + x}).error(),
              HasSubstr("shape_div((?a{div=3},?b{div=8}), (?b{div=8},?a{div=3})): ?a{div=3} and "
                        "?b{div=8} do not"));
  EXPECT_THAT(composition(make_layout({x, y}, {1, x + 1}), make_layout(7, 2)).error(),
              HasSubstr("composition((?a,?b{div=8}):(1,?c), 7:2): "));
  EXPECT_THAT(composition(make_layout({4, 2}, {1, 8}), make_layout(8, x)).error(),
              HasSubstr("composition((4,2):(1,8), 8:?): the stride ? and"));
  EXPECT_EQ(make_layout({x, y}).to_string(), "(?,?{div=8}):(1,?)");
}

TEST(Layout, ASwizzleThatIsNoneIsCarriedByLayouts) {
  const Swizzle wrong(4, 0, 2);
  EXPECT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error(), HasSubstr("S<4,0,2> is no swizzle; bits and base"));
  EXPECT_EQ(wrong(5), 5);
  const Layout layout = make_composed_layout(wrong, 0, make_layout({8, 8}));
  EXPECT_FALSE(layout.ok());
  EXPECT_EQ(layout.error(), wrong.error());
  EXPECT_EQ(tile_to_shape(layout, {16, 16}).error(), wrong.error());
  EXPECT_TRUE(Swizzle(3, 4, 3).ok() && Swizzle(3, 4, 3).error().empty());
  for (const Swizzle& no :
       {Swizzle(-1, 0, 3), Swizzle(2, -1, 3), Swizzle(3, 50, 10), Swizzle(2, 0, INT32_MIN)}) {
    EXPECT_FALSE(no.ok()) << no.to_string();
  }
}

TEST(IntTuple, CoordinatesAreAdded) {
  EXPECT_EQ((IntTuple{42, 2, 7} + IntTuple{0, 5, 2}).to_string(), "(42,7,9)");
  EXPECT_EQ((E({0, 1}, 4) + E({1}, 3) + E({1}, 20) + E({0, 0}, 7)).to_string(), "((7,4),23)");
}

TEST(IntTuple, LeavesAreTransformed) {
  const IntTuple shape = {4, {SymInt::unknown(8), 6}};
  EXPECT_EQ(transform_leaf(shape, [](const IntTuple& x) { return x.value() * 2; }).to_string(),
            "(8,(?{div=16},12))");
  EXPECT_EQ(transform_leaf(7,
                           [](const IntTuple& x) {
                             return IntTuple{x, x};
                           })
                .to_string(),
            "(7,7)");
  const auto halved = [](const IntTuple& x) { return shape_div(x, 4); };
  EXPECT_THAT(transform_leaf(shape, halved).error(), HasSubstr("6 and 4 do not divide"));
}

TEST(IntTuple, LeavesAndElementsOfTwoGoTogether) {
  const IntTuple a = {8, {6, 4}}, b = {2, {3, {2, 2}}};
  const auto quotient = [](const IntTuple& x, const IntTuple& y) { return shape_div(x, y); };
  EXPECT_EQ(transform_leaf(a, b, quotient).to_string(), "(4,(2,1))");
  EXPECT_THAT(transform_leaf(a, {2, 3}, quotient).error(),
              HasSubstr("transform_leaf((8,(6,4)), (2,3)): the profiles differ"));
  EXPECT_THAT(transform_leaf(a, {3, {3, 2}}, quotient).error(), HasSubstr("8 and 3 do not divide"));

  const auto times = [](const IntTuple& x) { return product(x); };
  const auto all = [](const IntTuple& products) { return product(products); };
  EXPECT_EQ(transform_apply(a, times, all), 8 * 24);
  EXPECT_EQ(transform_apply(5, times, [](const IntTuple& x) { return rank(x); }), 1);
  const auto self = [](const IntTuple& x) { return x; };
  const auto less = [](const IntTuple& x, const IntTuple& y) { return elem_less(x, y); };
  EXPECT_EQ(transform_apply({1, {2, 3}, 4}, {2, {3, 4}, 4}, less, self).to_string(), "(1,1,0)");
  EXPECT_THAT(transform_apply({1, 2}, 3, less, self).error(),
              HasSubstr("(1,2) has 2 elements and 3 has 1; give two tuples of a rank"));
}

TEST(IntTuple, ElementsAreFiltered) {
  const auto true_modes = [](const IntTuple& x) {
    return repeat_as_tuple(x, size(x) == 1 ? 0 : 1);
  };
  EXPECT_EQ(filter_tuple({1, {2, 3}, {1, 1}, 4}, true_modes).to_string(), "((2,3),4)");
  EXPECT_EQ(filter_tuple(1, true_modes).to_string(), "()");
  EXPECT_EQ(filter_tuple({1, {2, 3}}, [](const IntTuple& x) { return x; }).to_string(), "(1,2,3)");
  const auto where_stepping = [](const IntTuple& x, const IntTuple& step) {
    return step == 0 ? IntTuple() : repeat_as_tuple(x, 1);
  };
  EXPECT_EQ(filter_tuple({4, 2, 8}, {1, 0, 4}, where_stepping).to_string(), "(4,8)");
  EXPECT_THAT(filter_tuple({4, 6}, [](const IntTuple& x) { return shape_div(x, 4); }).error(),
              HasSubstr("6 and 4 do not divide"));
}

TEST(IntTuple, ElementsAreFound) {
  const auto large = [](const IntTuple& x) { return size(x).value() > 4; };
  EXPECT_EQ(find_if({4, {2, 3}, 8}, large), 1);
  EXPECT_EQ(find_if({4, 2}, large), 2);
  EXPECT_EQ(find_if(8, large), 0);
}

// Not by the bounds of their terms alone: x y is no less than y.
TEST(IntTuple, SumsHaveBounds) {
  const SymInt x = SymInt::unknown(), y = SymInt::unknown();
  EXPECT_EQ((x * y + 3 * y + 2).least(), 6);
  EXPECT_EQ((x * y - y).least(), 0);
  EXPECT_EQ((y - x * y + 5).most(), 5);
  EXPECT_EQ((x - y).least(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ((x + y).most(), std::numeric_limits<int64_t>::max());
}

TEST(IntTuple, PromisesOfDivisorsKeepTheNumber) {
  const SymInt x = SymInt::unknown(12);
  const SymInt y = assume(x, 8).value();
  EXPECT_EQ(y.divisor(), 24);
  EXPECT_EQ(assume(x, 8).value(), y);
  EXPECT_EQ(y.least(), 24);
  EXPECT_EQ(assume(x, 4).value(), x);
  EXPECT_EQ(assume(x - 100, 8).value().divisor(), 8);
  const SymInt difference = x - SymInt::unknown();
  EXPECT_EQ(assume(difference, 8).value(), difference) << "it may be negative";
  EXPECT_EQ(get_divisibility({y, {x, 0}, _}).to_string(), "(24,(12,0),_)");
}

TEST(Layout, ASwizzledTilerMovesWholeBlocks) {
  const std::pair<const char*, const char*> products[] = {
      {"8:1", "S<2,1,2> o 0 o (8,4):(1,8)"},
      {"(2,2):(1,2)", "S<2,1,2> o 0 o (8,4):(1,8)"},
      {"8:4", "S<2,0,3> o 0 o (8,4):(4,1)"},
  };
  for (const auto& [block, by] : products) {
    const Layout b = parse_layout(block), tiler = parse_layout(by);
    const Layout product = logical_product(b, tiler);
    ASSERT_TRUE(product.ok()) << product.error();
    const Layout places = complement(b, size(b) * 32);
    for (int i = 0; i < size(b).value(); ++i) {
      for (int j = 0; j < 32; ++j) {
        EXPECT_EQ(product({i, j}), b(i) + places(tiler(j))) << product.to_string();
      }
    }
  }
}

TEST(Layout, AMistakeIsKeptByWhatIsComputedFromIt) {
  const Layout wrong = composition(make_layout({4, 6}, {1, 8}), make_layout(3, 2));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(coalesce(zipped_divide(wrong, {2})).error(), wrong.error());
  EXPECT_EQ(wrong({1}).error(), wrong.error());
}

// A GEMM's worth, about 2,000 calls.
TEST(Layout, AlgebraIsCheap) {
  const auto gemm = [] {
    int calls = 0;
    const Layout a = make_layout({4096, 4096}, {4096, 1});
    for (int i = 0; i < 100; ++i) {
      const Layout tile = local_tile(a, {128, 64}, {i % 32, _});
      const Layout atom = make_composed_layout(Swizzle(3, 4, 3), 0, make_layout({8, 64}, {64, 1}));
      const Layout shared = tile_to_shape(atom, {128, 64});
      const auto [tiler, tv] = make_layout_tv(make_layout({16, 8}, {8, 1}), make_layout({1, 8}));
      const Layout tiles = zipped_divide(a, tiler);
      const Layout part = composition(get(tiles, 0), tv);
      const Layout mine = get(part, 1);
      EXPECT_EQ(size(mine), 8);
      EXPECT_EQ(max_common_vector(mine, make_layout(8)), 8);
      EXPECT_TRUE(coalesce(shared).ok() && right_inverse(tv).ok() && tile.ok());
      calls += 20;
    }
    return calls;
  };
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(gemm(), 2000);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  std::printf("2,000 calls: %.3f ms\n", best);
}

}  // namespace
}  // namespace heddle
