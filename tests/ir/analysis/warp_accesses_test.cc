#include "heddle/ir/analysis/warp_accesses.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

// "4 of 4": transactions of the kernel's first store, and the fewest; "?" where they are not known.
std::string of_store(absl::string_view ops, absl::string_view view = "%x",
                     absl::string_view type = "f32", absl::string_view block = "256, 1, 1",
                     absl::string_view behind = "") {
  const Kernel kernel = parse_body(
      block,
      "%x: view<f32, global, 1> [?] strides [1], %g: view<f32, global, 2> [?, 100] strides [?, 1], "
      "%n: i32",
      absl::StrCat(
          "    %t = thread_idx {axis = x} : i32\n    %ty = thread_idx {axis = y} : i32\n"
          "    %s = shared {extents = [4096]} : view<f32, shared, 1>\n    %v = const 1.0 : ",
          type, "\n", ops, "    store ", view, ", %v, %i\n", behind));
  std::optional<WarpAccess> found;
  WarpAccesses accesses(kernel);
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode == Opcode::kStore) found = accesses.of(kernel.op(id));
  });
  if (!found) return "?";
  return absl::StrCat(found->transactions, " of ", found->fewest);
}
// Lane i at i times a number.
std::string strided(int64_t stride, absl::string_view view, absl::string_view type = "f32") {
  return of_store(absl::StrCat("    %k = const ", stride, " : i32\n    %i = mul %t, %k : i32\n"),
                  view, type);
}

TEST(WarpAccesses, CountsSectors) {
  EXPECT_EQ(strided(1, "%x"), "4 of 4");
  EXPECT_EQ(strided(2, "%x"), "8 of 4");
  EXPECT_EQ(strided(8, "%x"), "32 of 4");
  EXPECT_EQ(strided(100, "%x"), "32 of 4");
  EXPECT_EQ(strided(0, "%x"), "1 of 1");
  EXPECT_EQ(strided(4, "%x", "vec<f32, 4>"), "16 of 16");
  EXPECT_EQ(strided(8, "%x", "vec<f32, 4>"), "32 of 16");
  // One element past a sector's start.
  EXPECT_EQ(of_store("    %one = const 1 : i32\n    %i = add %t, %one : i32\n"), "5 of 4");
}

TEST(WarpAccesses, CountsBankConflicts) {
  EXPECT_EQ(strided(1, "%s"), "1 of 1");
  EXPECT_EQ(strided(2, "%s"), "2 of 1");
  EXPECT_EQ(strided(3, "%s"), "1 of 1");
  EXPECT_EQ(strided(32, "%s"), "32 of 1");
  EXPECT_EQ(strided(33, "%s"), "1 of 1");
  EXPECT_EQ(strided(0, "%s"), "1 of 1");
  EXPECT_EQ(strided(4, "%s", "vec<f32, 4>"), "4 of 4");
  EXPECT_EQ(strided(32, "%s", "vec<f32, 4>"), "32 of 4");
  // A swizzle: the column xor the row, of rows of 32.
  EXPECT_EQ(of_store(R"(
    %five = const 5 : i32
    %row = shl %t, %five : i32
    %i = xor %row, %t : i32
)",
                     "%s"),
            "1 of 1");
}

TEST(WarpAccesses, SeesThroughLoopsBlocksAndFacts) {
  EXPECT_EQ(of_store("    %i = assume_range %t {min = 0, max = 255} : i32\n"), "4 of 4");
  // Rows of 8 lanes, whose pitch the launch knows.
  EXPECT_EQ(of_store(R"(
    %p = mul %ty, %n : i32
    %i = add %p, %t : i32
)",
                     "%x", "f32", "8, 32, 1"),
            "4 of 4");
  EXPECT_EQ(of_store(R"(
    %base = subview %x, %t : view<f32, global, 1>
    %i = mul %t, %n : i32
)",
                     "%x"),
            "32 of 4");
  const Kernel kernel =
      parse_body("32, 1, 1", "%x: view<f32, global, 1> [?] strides [1], %n: i32", R"(
    %t = thread_idx {axis = x} : i32
    %k = const 32 : i32
    %z = const 0.0 : f32
    for %i in %t .. %n step %k {
      store %x, %z, %i
      yield
    }
)");
  WarpAccesses accesses(kernel);
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode != Opcode::kStore) return;
    const std::optional<WarpAccess> access = accesses.of(kernel.op(id));
    ASSERT_TRUE(access.has_value());
    EXPECT_EQ(*access, (WarpAccess{Space::kGlobal, 4, 4, 4}));
  });
}

TEST(WarpAccesses, LeaveOutLanesThatAreNotThere) {
  const auto guarded = [](absl::string_view condition) {
    return of_store(absl::StrCat("    %k = const 2 : i32\n    %four = const 4 : i32\n", condition,
                                 "    %i = mul %t, %k : i32\n    if %c {\n"),
                    "%x", "f32", "32, 1, 1", "      yield\n    }\n");
  };
  EXPECT_EQ(guarded("    %c = lt %t, %four : bool\n"), "1 of 1");
  EXPECT_EQ(guarded("    %c = lt %t, %n : bool\n"), "8 of 4");  // n is large
  EXPECT_EQ(guarded("    %c = eq %n, %four : bool\n"), "8 of 4");
  EXPECT_EQ(guarded("    %f = load %x, %t : f32\n    %z = const 0.0 : f32\n"
                    "    %c = lt %f, %z : bool\n"),
            "?");
  EXPECT_EQ(of_store("    %k = const 4 : i32\n    %i = mul %t, %k : i32\n", "%s", "vec<f32, 4>",
                     "16, 1, 1"),
            "2 of 2");
}

TEST(WarpAccesses, DoNotGuess) {
  // An index from memory: one for all lanes is as good as any, one each is not known.
  EXPECT_EQ(of_store(R"(
    %j = load %x, %t : f32
    %i = convert %j : i32
)"),
            "?");
  EXPECT_EQ(of_store(R"(
    %zero = const 0 : i32
    %j = load %x, %zero : f32
    %i = convert %j : i32
)"),
            "1 of 1");
  const Kernel kernel = parse_body("32, 1, 1", "%x: view<f32, global, 1> [?] strides [1]", "");
  Op barrier;
  barrier.opcode = Opcode::kBarrier;
  EXPECT_FALSE(WarpAccesses(kernel).of(barrier).has_value());
}

}  // namespace
}  // namespace heddle::ir
