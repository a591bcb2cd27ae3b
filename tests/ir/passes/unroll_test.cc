#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/interp/run_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams = "%y: view<i32, global, 1> [?] strides [1], %n: i32, %s: i32";

TEST(Unroll, KnownTripsNeedNoLoop) {
  expect_passes("unroll,fold,dce", kParams,
                "%z = const 0 : i32\n%e = const 3 : i32\n%o = const 1 : i32\n"
                "for %i in %z .. %e step %o {unroll = 8} {\nstore %y, %n, %i\nyield\n}\n",
                "%a = const 0 : i32\nstore %y, %n, %a\n%b = const 1 : i32\nstore %y, %n, %b\n"
                "%c = const 2 : i32\nstore %y, %n, %c\n");
}

TEST(Unroll, StaysWhatItIs) {
  // A step that is no constant, one that counts down, an array of each trip's own, no wish.
  for (const absl::string_view text :
       {"%z = const 0 : i32\nfor %i in %z .. %n step %s {unroll = 4} {\nstore %y, %n, "
        "%i\nyield\n}\n",
        "%z = const 0 : i32\n%m = const -1 : i32\nfor %i in %n .. %z step %m {unroll = 4} {\n"
        "store %y, %n, %i\nyield\n}\n",
        "%z = const 0 : i32\n%o = const 1 : i32\nfor %i in %z .. %n step %o {unroll = 4} {\n"
        "%l = local {extents = [4]} : view<i32, local, 1>\nstore %l, %n, %z\n"
        "%v = load %l, %z : i32\nstore %y, %v, %i\nyield\n}\n",
        "%z = const 0 : i32\n%o = const 1 : i32\nfor %i in %z .. %n step %o {\n"
        "store %y, %n, %i\nyield\n}\n"}) {
    expect_passes("unroll", kParams, text, text);
  }
}

// A kernel that counts the trips of a loop, whose bounds are constants or parameters.
std::string counting(absl::string_view type, absl::string_view start, absl::string_view stop,
                     absl::string_view step, int unroll, absl::string_view constants = "") {
  return absl::StrCat(
      "kernel @trips(%y: view<i32, global, 1> [2] strides [1], %n: ", type, ", %m: ", type,
      ") block(1, 1, 1) {\n%z = const 0 : i32\n%o = const 1 : i32\n%s = const ", step, " : ", type,
      "\n", constants, "%c, %l = for %i in ", start, " .. ", stop,
      " step %s carry(%a = %z, %b = ", start, ") {unroll = ", unroll, "} : i32, ", type,
      " {\n%d = add %a, %o : i32\nyield %d, %i\n}\nstore %y, %c, %z\n%v = convert %l : i32\n",
      "store %y, %v, %o\n}\n");
}

TEST(Unroll, KnownBoundsAtTheEdgeOfTheType) {
  const auto known = [](absl::string_view type, absl::string_view start, absl::string_view stop,
                        absl::string_view step, int unroll) {
    return counting(
        type, "%f", "%e", step, unroll,
        absl::StrCat("%f = const ", start, " : ", type, "\n%e = const ", stop, " : ", type, "\n"));
  };
  constexpr absl::string_view kPasses = "unroll,fold,dce";
  const std::vector<RunArgument> none = {memory(2), number(0), number(0)};
  // Behind the last full round lies no number of the type.
  expect_run(known("i32", "2147483640", "2147483647", "2", 2), kPasses, none, {4, 2147483646});
  expect_run(known("i32", "2147483640", "2147483647", "2", 3), kPasses, none, {4, 2147483646});
  expect_run(known("i64", "9223372036854775800", "9223372036854775807", "2", 2), kPasses, none,
             {4, 0xFFFFFFFE});
  // The steps of n trips together are no number of the type.
  expect_run(known("i32", "0", "2147483647", "536870912", 2), kPasses, none, {4, 1610612736});
  expect_run(known("i32", "-2147483648", "2147483647", "268435456", 8), kPasses, none,
             {16, 0x70000000});
  // Bounds further apart than the largest number.
  expect_run(known("i64", "-9223372036854775808", "9223372036854775807", "2305843009213693952", 4),
             kPasses, none, {8, 0});
  expect_run(known("i32", "-2147483648", "2147483647", "1000000007", 2), kPasses, none,
             {5, 0xFFFFFFFF & (-2147483648LL + 4 * 1000000007LL)});
}

TEST(Unroll, BoundsOfTheLaunchAtTheEdgeOfTheType) {
  constexpr absl::string_view kPasses = "unroll,fold,dce";
  const auto trips = [&](int64_t start, int64_t stop, absl::string_view step, int unroll,
                         uint64_t count, int64_t last) {
    expect_run(counting("i32", "%n", "%m", step, unroll), kPasses,
               {memory(2), number(start), number(stop)}, {count, static_cast<uint32_t>(last)});
  };
  trips(0, -1, "268435456", 8, 0, 0);
  trips(0, 2147483647, "268435456", 8, 8, 7 * 268435456LL);
  trips(-2147483647 - 1, 2147483647, "268435456", 8, 16, 7 * 268435456LL);
  // No number behind the last round of two.
  trips(2147483636, 2147483647, "3", 2, 4, 2147483645);
  trips(2147483641, 2147483647, "3", 2, 2, 2147483644);
  trips(2147483640, 2147483647, "2", 2, 4, 2147483646);
  for (int stop = -2; stop < 12; ++stop) {
    trips(-1, stop, "3", 4, stop > -1 ? static_cast<uint64_t>(stop + 3) / 3 : 0,
          stop > -1 ? -1 + (stop + 3) / 3 * 3 - 3 : -1);
  }
}

// 2^64 trips, less one: what is left is a loop that stores.
TEST(Unroll, AllNumbersOfI64) {
  Kernel kernel = parse_body("32, 1, 1", "%y: view<i32, global, 1> [?] strides [1], %n: i32",
                             "%z = const 0 : i32\n%a = const -9223372036854775808 : i64\n"
                             "%b = const 9223372036854775807 : i64\n%c = const 1 : i64\n"
                             "for %i in %a .. %b step %c {unroll = 4} {\nstore %y, %n, %z\n"
                             "yield\n}\n");
  run_verified(kernel, "unroll,fold,dce");
  int loops = 0, stores = 0;
  kernel.walk([&](OpId id) {
    loops += kernel.op(id).opcode == Opcode::kFor ? 1 : 0;
    stores += kernel.op(id).opcode == Opcode::kStore ? 1 : 0;
  });
  EXPECT_EQ(loops, 2);
  EXPECT_EQ(stores, 4 + 1) << print(kernel);
}

// Factors of nested loops multiply: 64^4 copies of a store would not fit into any memory.
TEST(Unroll, NestedLoopsGrowUpToALimit) {
  std::string text = "%z = const 0 : i32\n%o = const 1 : i32\n", ends;
  for (int depth = 0; depth < 4; ++depth) {
    absl::StrAppend(&text, "for %i", depth, " in %z .. %n step %o {unroll = 64} {\n");
    absl::StrAppend(&ends, "yield\n}\n");
  }
  Kernel kernel = parse_body("32, 1, 1", kParams, absl::StrCat(text, "store %y, %n, %z\n", ends));
  run_verified(kernel, "unroll");
  int ops = 0, stores = 0;
  kernel.walk([&](OpId id) {
    ++ops;
    stores += kernel.op(id).opcode == Opcode::kStore ? 1 : 0;
  });
  EXPECT_GT(stores, 64 * 64);
  EXPECT_LT(ops, 150'000);
}

}  // namespace
}  // namespace heddle::ir
