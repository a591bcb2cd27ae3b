#include "heddle/ir/analysis/int_facts.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {

void PrintTo(const IntFacts& f, std::ostream* out) {
  *out << "{" << f.min << ", " << f.max << ", " << f.divisor << "}";
}

namespace {

constexpr int64_t kI32Min = std::numeric_limits<int32_t>::min();
constexpr int64_t kI32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();
constexpr IntFacts kAnyI32{kI32Min, kI32Max, 1};

constexpr absl::string_view kParams =
    "%a: i32, %b: i32, %u: u32, %w: u64, %l: i64, %p: bool,"
    "%x: view<f32, global, 2> [?, 48] strides [?, 1], %q: view<f32, global, 1> unbounded [?] "
    "strides [1]";

// Facts of %r after these ops.
IntFacts facts(absl::string_view body, absl::string_view block = "256, 2, 1") {
  const Kernel kernel = parse_body(block, kParams, body);
  return IntAnalysis(kernel).of(value_named(kernel, "r"));
}

TEST(IntFacts, Constants) {
  EXPECT_EQ(facts("%r = const 12 : i32\n"), (IntFacts{12, 12, 12}));
  EXPECT_EQ(facts("%r = const -12 : i32\n"), (IntFacts{-12, -12, 12}));
  EXPECT_EQ(facts("%r = const 0 : i32\n"), (IntFacts{0, 0, 0}));
  EXPECT_EQ(facts("%r = const 4294967295 : u32\n"), (IntFacts{4294967295, 4294967295, 4294967295}));
  // Beyond i64 a u64 is known by its twin, and by the powers of two that divide both.
  EXPECT_EQ(facts("%r = const 18446744073709551604 : u64\n"), (IntFacts{-12, -12, 4}));
  EXPECT_EQ(facts("%r = const -9223372036854775808 : i64\n"),
            (IntFacts{kI64Min, kI64Min, int64_t{1} << 62}));
  EXPECT_EQ(facts("%r = const true : bool\n"), (IntFacts{1, 1, 1}));
  EXPECT_EQ(facts("%r = const 1.0 : f32\n"), IntFacts());
}

TEST(IntFacts, Coordinates) {
  EXPECT_EQ(facts("%r = thread_idx {axis = x} : i32\n"), (IntFacts{0, 255, 1}));
  EXPECT_EQ(facts("%r = thread_idx {axis = z} : i32\n"), (IntFacts{0, 0, 0}));
  EXPECT_EQ(facts("%r = thread_idx {axis = z} : i32\n", "?"), (IntFacts{0, 63, 1}));
  EXPECT_EQ(facts("%r = block_dim {axis = x} : i32\n"), (IntFacts{256, 256, 256}));
  EXPECT_EQ(facts("%r = block_dim {axis = x} : i32\n", "?"), (IntFacts{1, 1024, 1}));
  EXPECT_EQ(facts("%r = block_idx {axis = x} : i32\n"), (IntFacts{0, kI32Max - 1, 1}));
  EXPECT_EQ(facts("%r = block_idx {axis = y} : i32\n"), (IntFacts{0, 65534, 1}));
  EXPECT_EQ(facts("%r = grid_dim {axis = y} : i32\n"), (IntFacts{1, 65535, 1}));
  EXPECT_EQ(facts("%r = lane_id : i32\n"), (IntFacts{0, 31, 1}));
  EXPECT_EQ(facts("%r = lane_id : i32\n", "16, 1, 1"), (IntFacts{0, 15, 1}));
  EXPECT_EQ(facts("%r = warp_id : i32\n"), (IntFacts{0, 15, 1}));
  EXPECT_EQ(facts("%r = warp_id : i32\n", "33, 1, 1"), (IntFacts{0, 1, 1}));
}

constexpr absl::string_view kTid = "%t = thread_idx {axis = x} : i32\n";

IntFacts of_tid(absl::string_view more) { return facts(absl::StrCat(kTid, more)); }

TEST(IntFacts, Arithmetic) {
  EXPECT_EQ(of_tid("%c = const 6 : i32\n %r = mul %t, %c : i32\n"), (IntFacts{0, 1530, 6}));
  EXPECT_EQ(of_tid("%c = const 6 : i32\n%m = mul %t, %c : i32\n%d = const 9 : i32\n"
                   "%r = sub %d, %m : i32\n"),
            (IntFacts{-1521, 9, 3}));
  EXPECT_EQ(of_tid("%c = const 4 : i32\n%r = fma %t, %c, %c : i32\n"), (IntFacts{4, 1024, 4}));
  EXPECT_EQ(of_tid("%r = neg %t : i32\n"), (IntFacts{-255, 0, 1}));
  EXPECT_EQ(of_tid("%n = neg %t : i32\n%r = abs %n : i32\n"), (IntFacts{0, 255, 1}));
  EXPECT_EQ(facts("%r = abs %a : i32\n"), kAnyI32);  // abs(INT_MIN) is INT_MIN
  EXPECT_EQ(of_tid("%c = const 12 : i32\n%m = mul %t, %c : i32\n%d = const 4 : i32\n"
                   "%r = div %m, %d : i32\n"),
            (IntFacts{0, 765, 3}));
  EXPECT_EQ(of_tid("%r = div %t, %a : i32\n").min, -255);
  EXPECT_EQ(of_tid("%r = div %t, %a : i32\n").max, 255);
  EXPECT_EQ(of_tid("%c = const 10 : i32\n%r = rem %t, %c : i32\n"), (IntFacts{0, 9, 1}));
  EXPECT_EQ(facts("%c = const 10 : i32\n%r = rem %a, %c : i32\n"), (IntFacts{-9, 9, 1}));
  EXPECT_EQ(facts("%c = const -10 : i32\n%r = rem %a, %c : i32\n"), (IntFacts{-9, 9, 1}));
  EXPECT_EQ(of_tid("%c = const 1000 : i32\n%r = rem %t, %c : i32\n"), (IntFacts{0, 255, 1}));
  EXPECT_EQ(of_tid("%c = const 100 : i32\n%r = min %t, %c : i32\n"), (IntFacts{0, 100, 1}));
  EXPECT_EQ(of_tid("%c = const 100 : i32\n%r = max %t, %c : i32\n"), (IntFacts{100, 255, 1}));
}

TEST(IntFacts, WrappingLosesBoundsButNotPowersOfTwo) {
  EXPECT_EQ(facts("%c = const 12 : i32\n%r = mul %a, %c : i32\n"), (IntFacts{kI32Min, kI32Max, 4}));
  EXPECT_EQ(facts("%r = add %a, %b : i32\n"), kAnyI32);
  EXPECT_EQ(facts("%c = const 1 : i32\n%r = sub %u, %u : u32\n").min, 0);
  EXPECT_EQ(facts("%i = block_idx {axis = x} : i32\n%c = const 256 : i32\n%r = mul %i, %c : i32\n"),
            (IntFacts{kI32Min, kI32Max, 256}));
  EXPECT_EQ(facts("%n = const 5 : u32\n%r = shl %a, %n : i32\n"), (IntFacts{kI32Min, kI32Max, 32}));
  EXPECT_EQ(facts("%r = neg %a : i32\n"), kAnyI32);
  // 64 bits are enough for the product of 32-bit numbers.
  EXPECT_EQ(facts("%i = convert %a : i64\n%c = const 12 : i64\n%r = mul %i, %c : i64\n"),
            (IntFacts{kI32Min * 12, kI32Max * 12, 12}));
}

TEST(IntFacts, Bits) {
  EXPECT_EQ(of_tid("%n = const 2 : u32\n%r = shl %t, %n : i32\n"), (IntFacts{0, 1020, 4}));
  EXPECT_EQ(of_tid("%n = const 5 : u32\n%r = shr %t, %n : i32\n"), (IntFacts{0, 7, 1}));
  EXPECT_EQ(facts("%n = const 31 : u32\n%r = shr %a, %n : i32\n"), (IntFacts{-1, 0, 1}));
  EXPECT_EQ(facts("%n = const 99 : u32\n%r = shr %a, %n : i32\n"), (IntFacts{-1, 0, 1}));
  EXPECT_EQ(facts("%n = const 99 : u32\n%r = shr %u, %n : u32\n"), (IntFacts{0, 0, 0}));
  EXPECT_EQ(facts("%n = const 63 : u32\n%r = shr %w, %n : u64\n"), (IntFacts{0, 1, 1}));
  EXPECT_EQ(of_tid("%r = shl %t, %u : i32\n"), kAnyI32);
  EXPECT_EQ(facts("%c = const 24 : i32\n%r = and %a, %c : i32\n"), (IntFacts{0, 24, 8}));
  EXPECT_EQ(facts("%c = const -16 : i32\n%r = and %a, %c : i32\n"),
            (IntFacts{kI32Min, kI32Max, 16}));
  EXPECT_EQ(of_tid("%c = const 512 : i32\n%r = or %t, %c : i32\n"), (IntFacts{512, 1023, 1}));
  EXPECT_EQ(of_tid("%c = const 16 : i32\n%m = mul %t, %c : i32\n%d = const 24 : i32\n"
                   "%r = xor %m, %d : i32\n"),
            (IntFacts{0, 4095, 8}));
  // Bits know nothing of divisors but their power of two: 6 | 12 is 14, 6 ^ 12 is 10.
  constexpr absl::string_view kTwo =
      "%c = const 6 : i32\n%m = mul %t, %c : i32\n%k = const 12 : i32\n%n = mul %b, %k : i32\n";
  EXPECT_EQ(of_tid(absl::StrCat(kTwo, "%r = or %m, %m : i32\n")).divisor, 2);
  EXPECT_EQ(of_tid(absl::StrCat(kTwo, "%r = or %m, %n : i32\n")).divisor, 2);
  EXPECT_EQ(of_tid(absl::StrCat(kTwo, "%r = xor %n, %n : i32\n")).divisor, 4);
  EXPECT_EQ(of_tid(absl::StrCat(kTwo, "%r = and %m, %n : i32\n")).divisor, 4);
  EXPECT_EQ(of_tid("%r = not %t : i32\n"), (IntFacts{-256, -1, 1}));
  EXPECT_EQ(facts("%c = const 7 : u32\n%v = and %u, %c : u32\n%r = not %v : u32\n"),
            (IntFacts{0xFFFFFFF8, 0xFFFFFFFF, 1}));
}

TEST(IntFacts, ComparisonsAndChoices) {
  EXPECT_EQ(of_tid("%c = const 256 : i32\n%r = lt %t, %c : bool\n"), (IntFacts{1, 1, 1}));
  EXPECT_EQ(of_tid("%c = const 255 : i32\n%r = lt %t, %c : bool\n"), (IntFacts{0, 1, 1}));
  EXPECT_EQ(of_tid("%c = const -1 : i32\n%r = eq %t, %c : bool\n"), (IntFacts{0, 0, 0}));
  EXPECT_EQ(of_tid("%c = const 0 : i32\n%r = ge %t, %c : bool\n"), (IntFacts{1, 1, 1}));
  // 2^63 as a u64 is larger than 1, although its twin is not.
  EXPECT_EQ(facts("%c = const 9223372036854775808 : u64\n%d = const 1 : u64\n"
                  "%r = gt %c, %d : bool\n"),
            (IntFacts{1, 1, 1}));
  EXPECT_EQ(of_tid("%c = const 12 : i32\n%d = const 8 : i32\n%r = select %p, %c, %d : i32\n"),
            (IntFacts{8, 12, 4}));
  EXPECT_EQ(facts("%f = const 1.0 : f32\n%g = const 2.0 : f32\n%r = lt %f, %g : bool\n"),
            (IntFacts{0, 1, 1}));
}

TEST(IntFacts, Conversions) {
  EXPECT_EQ(of_tid("%c = const 12 : i32\n%m = mul %t, %c : i32\n%r = convert %m : u64\n"),
            (IntFacts{0, 3060, 12}));
  EXPECT_EQ(facts("%c = const 12 : i64\n%d = const 1000000000 : i64\n%e = min %l, %d : i64\n"
                  "%f = max %e, %c : i64\n%m = mul %f, %c : i64\n%r = convert %m : i32\n"),
            (IntFacts{kI32Min, kI32Max, 4}));
  EXPECT_EQ(facts("%r = convert %a : u32\n"), (IntFacts{0, 0xFFFFFFFF, 1}));
  EXPECT_EQ(facts("%r = convert %u : i64\n"), (IntFacts{0, 0xFFFFFFFF, 1}));
  EXPECT_EQ(facts("%r = convert %a : u64\n"), (IntFacts{kI32Min, kI32Max, 1}));
  EXPECT_EQ(facts("%r = convert %p : i32\n"), (IntFacts{0, 1, 1}));
  EXPECT_EQ(facts("%f = const 1.0 : f32\n%r = convert %f : i32\n"), kAnyI32);
}

TEST(IntFacts, VectorsHoldForEveryElement) {
  EXPECT_EQ(of_tid("%c = const 4 : i32\n%m = mul %t, %c : i32\n%d = const -8 : i32\n"
                   "%v = pack %m, %d : vec<i32, 2>\n%r = extract %v {index = 0} : i32\n"),
            (IntFacts{-8, 1020, 4}));
  EXPECT_EQ(of_tid("%c = const 3 : vec<i32, 4>\n%v = splat %t : vec<i32, 4>\n"
                   "%r = mul %v, %c : vec<i32, 4>\n"),
            (IntFacts{0, 765, 3}));
}

TEST(IntFacts, InductionVariables) {
  EXPECT_EQ(of_tid("%c = const 1000 : i32\n%d = const 256 : i32\n"
                   "for %r in %t .. %c step %d {\nyield\n}\n"
                   // The body's name is what the test asks for.
                   ),
            (IntFacts{0, 999, 1}));
  EXPECT_EQ(
      facts("%z = const 0 : i32\n%d = const 8 : i32\nfor %r in %z .. %a step %d {\nyield\n}\n"),
      (IntFacts{0, kI32Max - 1, 8}));
  EXPECT_EQ(facts("%z = const 64 : i32\n%e = const 0 : i32\n%d = const -16 : i32\n"
                  "for %r in %z .. %e step %d {\nyield\n}\n"),
            (IntFacts{1, 64, 16}));
}

TEST(IntFacts, CarriedValuesReachAFixpoint) {
  constexpr absl::string_view loop =
      "%z = const 0 : i32\n%k = const 64 : i32\n%n = const 100 : i32\n%o = const 1 : i32\n"
      "%e = for %i in %z .. %n step %o carry(%r = %z) : i32 {\n"
      "  %m = const 255 : i32\n"
      "  %s = add %r, %k : i32\n"
      "  %t = and %s, %m : i32\n"
      "  yield %t\n}\n";
  EXPECT_EQ(facts(loop), (IntFacts{0, 255, 64}));
  // Grows without a bound that this analysis sees, but by multiples of 64.
  EXPECT_EQ(facts("%z = const 0 : i32\n%k = const 64 : i32\n%n = const 100 : i32\n"
                  "%o = const 1 : i32\n"
                  "%r = for %i in %z .. %n step %o carry(%c = %z) : i32 {\n"
                  "  %s = add %c, %k : i32\n  yield %s\n}\n"),
            (IntFacts{kI32Min, kI32Max, 64}));
  // Two carried values that trade places, an inner loop that uses the outer one's.
  EXPECT_EQ(facts("%z = const 8 : i32\n%k = const 12 : i32\n%n = const 100 : i32\n"
                  "%o = const 1 : i32\n"
                  "%e, %f = for %i in %z .. %n step %o carry(%c = %z, %d = %k) : i32, i32 {\n"
                  "  %g = for %j in %z .. %n step %o carry(%r = %c) : i32 {\n"
                  "    %h = max %r, %d : i32\n    yield %h\n  }\n"
                  "  yield %d, %c\n}\n"),
            (IntFacts{8, 12, 4}));
  EXPECT_EQ(facts("%z = const 8 : i32\n%k = const 4 : i32\n"
                  "%e = while carry(%c = %z) : i32 {\n  %g = lt %c, %a : bool\n  yield %g\n} "
                  "do(%r) {\n  %h = min %r, %k : i32\n  yield %h\n}\n"),
            (IntFacts{4, 8, 4}));
}

TEST(IntFacts, IfJoinsItsBranches) {
  EXPECT_EQ(facts("%z = const 8 : i32\n%k = const 12 : i32\n"
                  "%r = if %p : i32 {\n  yield %z\n} else {\n  yield %k\n}\n"),
            (IntFacts{8, 12, 4}));
}

// Of %r, which stands where %p is true, or else where it is false.
IntFacts inside(absl::string_view condition, absl::string_view body, bool holds = true) {
  const absl::string_view other = "yield\n";
  return facts(absl::StrCat(condition, "if %c {\n", holds ? body : "", other, "} else {\n",
                            holds ? "" : body, other, "}\n"));
}
// `value` of type `scalar` where it compares so with a constant; + 0 has the range of its operand.
IntRange where(absl::string_view comparison, absl::string_view value, absl::string_view scalar,
               int64_t constant, bool holds) {
  const IntFacts f =
      inside(absl::StrCat("%k = const ", constant, " : ", scalar, "\n%z = const 0 : ", scalar,
                          "\n%c = ", comparison, " ", value, ", %k : bool\n"),
             absl::StrCat("%r = add ", value, ", %z : ", scalar, "\n"), holds);
  return {f.min, f.max};
}

TEST(IntFacts, ConditionsHoldInTheirBranch) {
  constexpr IntRange kAll{kI32Min, kI32Max};
  EXPECT_EQ(where("lt", "%a", "i32", 8, true), (IntRange{kI32Min, 7}));
  EXPECT_EQ(where("lt", "%a", "i32", 8, false), (IntRange{8, kI32Max}));
  EXPECT_EQ(where("le", "%a", "i32", 8, true), (IntRange{kI32Min, 8}));
  EXPECT_EQ(where("le", "%a", "i32", 8, false), (IntRange{9, kI32Max}));
  EXPECT_EQ(where("gt", "%a", "i32", 8, true), (IntRange{9, kI32Max}));
  EXPECT_EQ(where("gt", "%a", "i32", 8, false), (IntRange{kI32Min, 8}));
  EXPECT_EQ(where("ge", "%a", "i32", 8, true), (IntRange{8, kI32Max}));
  EXPECT_EQ(where("ge", "%a", "i32", 8, false), (IntRange{kI32Min, 7}));
  EXPECT_EQ(where("eq", "%a", "i32", 8, true), (IntRange{8, 8}));
  EXPECT_EQ(where("eq", "%a", "i32", 8, false), kAll);
  EXPECT_EQ(where("ne", "%a", "i32", 8, false), (IntRange{8, 8}));
  EXPECT_EQ(where("ne", "%a", "i32", kI32Max, true), (IntRange{kI32Min, kI32Max - 1}));
  EXPECT_EQ(where("ne", "%u", "u32", 0, true), (IntRange{1, 4294967295}));
  // What cannot be, and what is so anyway.
  EXPECT_EQ(where("lt", "%a", "i32", kI32Min, true), kAll);
  EXPECT_EQ(where("gt", "%a", "i32", kI32Max, true), kAll);
  EXPECT_EQ(where("lt", "%u", "u32", 0, true), (IntRange{0, 4294967295}));
  EXPECT_EQ(where("ge", "%l", "i64", 5, true), (IntRange{5, kI64Max}));
}

// The numbers of u64 beyond 2^63 - 1 count as negative.
TEST(IntFacts, ConditionsOfU64AreInItsOwnOrder) {
  EXPECT_EQ(where("lt", "%w", "u64", 8, true), (IntRange{0, 7}));
  EXPECT_EQ(where("lt", "%w", "u64", 8, false), (IntRange{kI64Min, kI64Max}));
  EXPECT_EQ(where("gt", "%w", "u64", 8, true), (IntRange{kI64Min, kI64Max}));
  EXPECT_EQ(where("eq", "%w", "u64", 8, true), (IntRange{8, 8}));
}

TEST(IntFacts, ConditionsHoldForSumsWithConstants) {
  const std::string c = absl::StrCat(kTid,
                                     "%k = const 128 : i32\n%n = const 100 : i32\n"
                                     "%early = sub %t, %n : i32\n%c = ge %t, %k : bool\n");
  EXPECT_EQ(inside(c, "%r = sub %t, %k : i32\n").min, 0);
  EXPECT_EQ(inside(c, "%r = sub %t, %k : i32\n").max, 127);
  EXPECT_EQ(inside(c, "%z = const 0 : i32\n%r = add %early, %z : i32\n").min, 28);
  EXPECT_EQ(inside(c, "%r = sub %t, %k : i32\n", false).max, -1);
  // The other way round, by the sum; one that wraps around the type is two ranges.
  const std::string d =
      "%k = const 100 : u32\n%o = const 10 : u32\n%s = sub %u, %o : u32\n"
      "%z = const 0 : u32\n%c = $ %s, %k : bool\n";
  const auto of_u = [&](absl::string_view comparison) {
    return inside(absl::StrReplaceAll(d, {{"$", comparison}}), "%r = add %u, %z : u32\n");
  };
  EXPECT_EQ(of_u("lt"), (IntFacts{10, 109, 1}));
  EXPECT_EQ(of_u("ge"), (IntFacts{0, 4294967295, 1}));
}

TEST(IntFacts, ConditionsAreJoined) {
  const std::string c =
      "%k = const 3 : i32\n%n = const 9 : i32\n%z = const 0 : i32\n"
      "%f = ge %a, %k : bool\n%g = gt %n, %a : bool\n";
  const absl::string_view r = "%r = add %a, %z : i32\n";
  EXPECT_EQ(inside(c + "%c = and %f, %g : bool\n", r), (IntFacts{3, 8, 1}));
  EXPECT_EQ(inside(c + "%c = and %f, %g : bool\n", r, false), kAnyI32);
  EXPECT_EQ(inside(c + "%c = or %f, %g : bool\n", r), kAnyI32);
  EXPECT_EQ(inside(c + "%d = not %f : bool\n%e = not %g : bool\n%c = or %d, %e : bool\n", r, false),
            (IntFacts{3, 8, 1}));
  EXPECT_EQ(inside(c + "%c = expect %f {likely = 1} : bool\n", r).min, 3);
  // One inside the other, and around a loop.
  EXPECT_EQ(
      inside(c + "%c = and %f, %f : bool\n",
             "if %g {\nfor %i in %z .. %b step %k {\n%r = add %a, %z : i32\nyield\n}\nyield\n}\n"),
      (IntFacts{3, 8, 1}));
}

TEST(IntFacts, ConditionsDoNotHoldElsewhere) {
  const std::string c = "%k = const 3 : i32\n%z = const 0 : i32\n%c = ge %a, %k : bool\n";
  EXPECT_EQ(facts(c + "if %c {\nyield\n}\n%r = add %a, %z : i32\n"), kAnyI32);
  EXPECT_EQ(facts(c + "while {\n%d = ge %a, %k : bool\nyield %d\n} do {\n"
                      "%r = add %a, %z : i32\nyield\n}\n"),
            kAnyI32);
  // Where a value may be illegal outside of its branch, who moves it out asks without conditions.
  const Kernel kernel =
      parse_body("256, 2, 1", kParams, c + "if %c {\n%r = add %a, %z : i32\nyield\n}\n");
  IntAnalysis anywhere(kernel, FactUse::kAsk, BranchUse::kIgnore);
  EXPECT_EQ(anywhere.of(value_named(kernel, "r")), kAnyI32);
}

TEST(IntFacts, ChoicesHoldWhereTheyAreTaken) {
  EXPECT_EQ(facts("%k = const 3 : i32\n%c = lt %a, %k : bool\n%r = select %c, %k, %a : i32\n").min,
            3);
  EXPECT_EQ(facts("%k = const 3 : i32\n%c = lt %a, %k : bool\n%r = select %c, %a, %k : i32\n").max,
            3);
}

// A counter of stages: 0, 1, 2, 3, 0, …
TEST(IntFacts, CountersThatStartAgainAreBounded) {
  const auto counter = [](absl::string_view comparison, absl::string_view start) {
    return facts(absl::StrCat(
        "%z = const 0 : i32\n%o = const 1 : i32\n%n = const 4 : i32\n%s = const ", start,
        " : i32\n",
        "%e = for %i in %z .. %a step %o carry(%r = %s) : i32 {\n"
        "%up = add %r, %o : i32\n%again = ",
        comparison, " %up, %n : bool\n%next = select %again, %z, %up : i32\nyield %next\n}\n"));
  };
  EXPECT_EQ(counter("eq", "0"), (IntFacts{0, 3, 1}));
  EXPECT_EQ(counter("ge", "2"), (IntFacts{0, 3, 1}));
  EXPECT_EQ(counter("eq", "4"), kAnyI32);  // passes 4 by
}

TEST(IntFacts, Trips) {
  const auto trips = [](absl::string_view head) {
    const Kernel kernel = parse_body("256, 1, 1", kParams,
                                     absl::StrCat(kTid, head,
                                                  "for %i in %s .. %e step %d {\n"
                                                  "yield\n}\n"));
    OpId loop = OpId::kNone;
    kernel.walk([&](OpId id) {
      if (kernel.op(id).opcode == Opcode::kFor) loop = id;
    });
    const IntAnalysis::Trips t = IntAnalysis(kernel).trips(loop);
    return std::string(t.none ? "none" : t.exactly_one ? "one" : t.at_least_one ? "some" : "any");
  };
  EXPECT_EQ(trips("%s = const 0 : i32\n%e = const 4 : i32\n%d = const 1 : i32\n"), "some");
  EXPECT_EQ(trips("%s = const 0 : i32\n%e = const 4 : i32\n%d = const 4 : i32\n"), "one");
  EXPECT_EQ(trips("%s = const 4 : i32\n%e = const 4 : i32\n%d = const 4 : i32\n"), "none");
  EXPECT_EQ(trips("%s = const 4 : i32\n%e = const 0 : i32\n%d = const -1 : i32\n"), "some");
  EXPECT_EQ(trips("%s = const 4 : i32\n%e = const 0 : i32\n%d = const -4 : i32\n"), "one");
  EXPECT_EQ(trips("%s = const 0 : i32\n%e = const 4 : i32\n%d = const -1 : i32\n"), "none");
  EXPECT_EQ(trips("%s = const 0 : i32\n%e = const 4 : i32\n%d = const 0 : i32\n"), "any");
  EXPECT_EQ(trips("%z = const 0 : i32\n%s = add %t, %z : i32\n%e = const 256 : i32\n"
                  "%d = const 256 : i32\n"),
            "one");
  EXPECT_EQ(trips("%z = const 0 : i32\n%s = add %t, %z : i32\n%e = const 255 : i32\n"
                  "%d = const 256 : i32\n"),
            "any");
  EXPECT_EQ(trips("%s = const 0 : i32\n%e = add %a, %b : i32\n%d = const 1 : i32\n"), "any");
  EXPECT_EQ(trips("%s = const 2147483647 : i32\n%e = const -2147483648 : i32\n%d = const -1 : "
                  "i32\n"),
            "some");
}

TEST(IntFacts, LayoutsOfArguments) {
  EXPECT_EQ(facts("%r = extent %x {dim = 1} : i32\n"), (IntFacts{48, 48, 48}));
  EXPECT_EQ(facts("%r = extent %x {dim = 0} : i32\n"), (IntFacts{0, kI32Max, 1}));
  EXPECT_EQ(facts("%r = extent %x {dim = 0} : i64\n"), (IntFacts{0, kI64Max, 1}));
  EXPECT_EQ(facts("%r = stride %x {dim = 1} : i32\n"), (IntFacts{1, 1, 1}));
  EXPECT_EQ(facts("%s = shared {extents = [4, 6]} : view<f32, shared, 2>\n"
                  "%r = stride %s {dim = 0} : i32\n"),
            (IntFacts{6, 6, 6}));
  EXPECT_EQ(facts("%s = shared {extents = [64]} : view<f32, shared, 1>\n%o = const 0 : i32\n"
                  "%n = const 24 : i32\n%v = subview %s, %o, %n : view<f32, shared, 1>\n"
                  "%r = extent %v {dim = 0} : i32\n"),
            (IntFacts{24, 24, 24}));
}

TEST(IntFacts, FactsAreReadOnlyForDivisors) {
  Kernel kernel = parse_body("256, 1, 1", kParams,
                             "%n = extent %x {dim = 0} : i64\n%c = const 2 : i64\n"
                             "%r = mul %n, %c : i64\n%z = const 0 : i64\n%k = max %r, %z : i64\n");
  const Fact divisor{FactKind::kExtentDivisor, 6, 0};
  kernel.set_fact(divisor, 16);
  kernel.set_fact({FactKind::kExtentFits32, 6, 0}, 1);
  const ValueId r = value_named(kernel, "r");
  {
    IntAnalysis ints(kernel);
    EXPECT_EQ(ints.range(r).min, kI64Min);  // may wrap
    EXPECT_TRUE(kernel.facts_read().empty());
    IntAnalysis deaf(kernel, FactUse::kIgnore);
    EXPECT_EQ(deaf.divisor(r), 2);
    EXPECT_TRUE(kernel.facts_read().empty());
    EXPECT_TRUE(ints.divisible(value_named(kernel, "c"), 2));
    EXPECT_TRUE(kernel.facts_read().empty());
    EXPECT_EQ(ints.divisor(r), 32);
    ASSERT_EQ(kernel.facts_read().size(), 1u);
    EXPECT_EQ(kernel.facts_read()[0], (Guard{divisor, 16}));
  }
  // What somebody has read is free to use.
  EXPECT_EQ(kernel.fact({FactKind::kExtentFits32, 6, 0}), 1);
  EXPECT_EQ(IntAnalysis(kernel).range(r), (IntRange{0, 2 * kI32Max}));
}

TEST(IntFacts, WorksWhileTheKernelIsBuilt) {
  Kernel kernel("half_done");
  Builder b(kernel);
  const ValueId zero = b.constant_int(kI32Type, 0);
  const ValueId eight = b.constant_int(kI32Type, 8);
  const ValueId n = b.constant_int(kI32Type, 64);
  b.begin_for(zero, n, eight, {zero});
  const auto& args = kernel.region(b.region()).args;
  const ValueId sum = b.create(Opcode::kAdd, {args[0], eight});
  IntAnalysis ints(kernel);
  EXPECT_EQ(ints.of(args[0]), (IntFacts{0, 63, 8}));
  EXPECT_EQ(ints.of(sum), (IntFacts{8, 71, 8}));
  EXPECT_EQ(ints.of(args[1]), kAnyI32);
  // Values that are added later are answered too.
  const ValueId later = b.create(Opcode::kMul, {sum, eight});
  EXPECT_EQ(ints.of(later), (IntFacts{64, 568, 64}));
}

TEST(IntFacts, LongChainsNeedNoDeepStack) {
  Kernel kernel("chain");
  Builder b(kernel);
  const ValueId one = b.constant_int(kI64Type, 1);
  ValueId v = one;
  for (int i = 0; i < 300'000; ++i) v = b.create(Opcode::kAdd, {v, one});
  EXPECT_EQ(IntAnalysis(kernel).of(v), (IntFacts{300'001, 300'001, 300'001}));
}

TEST(IntFacts, DivisibilityIsThatOfTheNumberNotOfItsTwin) {
  const Kernel kernel = parse_body("32, 1, 1", kParams,
                                   "%r = const 18446744073709551610 : u64\n"
                                   "%s = const -6 : i64\n%t = const 9223372036854775808 : u64\n");
  IntAnalysis ints(kernel);
  const auto divisible = [&](absl::string_view name, int64_t by) {
    return ints.divisible(value_named(kernel, name), by);
  };
  EXPECT_FALSE(divisible("r", 6));
  EXPECT_TRUE(divisible("r", 10));
  EXPECT_TRUE(divisible("s", 6));
  EXPECT_FALSE(divisible("s", 10));
  EXPECT_TRUE(divisible("t", int64_t{1} << 62));
}

TEST(IntFacts, PromisesAreNoFurtherThanTheirOperand) {
  // What is known of the operand is known of what forwards it.
  EXPECT_EQ(facts("%t = thread_idx {axis = x} : i32\n%c = const 4 : i32\n%m = mul %t, %c : i32\n"
                  "%r = assume_uniform %m : i32\n"),
            (IntFacts{0, 1020, 4}));
  EXPECT_EQ(facts("%t = thread_idx {axis = x} : i32\n%c = const 4 : i32\n%m = mul %t, %c : i32\n"
                  "%r = assume_range %m {min = 8, divisor = 6} : i32\n"),
            (IntFacts{8, 1020, 12}));
}

TEST(IntFacts, LoopsUpToTheEdgesOfTheType) {
  EXPECT_EQ(facts("%m = const 9223372036854775807 : i64\n%s = const -1 : i64\n"
                  "for %r in %l .. %m step %s {\nyield\n}\n"),
            (IntFacts{kI64Max, kI64Max, 1}));
  EXPECT_EQ(facts("%m = const -9223372036854775808 : i64\n%s = const 1 : i64\n"
                  "for %r in %l .. %m step %s {\nyield\n}\n"),
            (IntFacts{kI64Min, kI64Min, 1}));
}

// A nest in which every level carries a value: %r is the innermost one's.
std::string nest(int depth) {
  std::string text = "%one = const 1 : i32\n%zero = const 0 : i32\n%k = const 1000 : i32\n";
  std::string ends;
  for (int d = 0; d < depth; ++d) {
    const std::string last = d + 1 == depth ? "r" : absl::StrCat("c", d);
    absl::StrAppend(&text, "%v", d, " = for %i", d, " in %zero .. %a step %one carry(%", last,
                    " = %zero) : i32 {\n");
    ends = absl::StrCat("%s", d, " = add %v", d + 1, ", %", last, " : i32\n%m", d, " = min %s", d,
                        ", %k : i32\nyield %m", d, "\n}\n", ends);
  }
  return absl::StrCat(text, "%v", depth, " = add %r, %one : i32\n", ends);
}

TEST(IntFacts, NestsOfLoopsAreSolvedOnceALevel) {
  // A solution of each level for each attempt at the level around it would be 2^50.
  for (const int depth : {1, 2, 3, 50}) EXPECT_EQ(facts(nest(depth)).max, 1000) << depth;
}

}  // namespace
}  // namespace heddle::ir
