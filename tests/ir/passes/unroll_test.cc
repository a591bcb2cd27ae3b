// What of unroll no single text says: how many copies it makes. The rest is tests/filetests/passes/unroll.ir.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/passes/pass_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams = "%y: view<i32, global, 1> [?] strides [1], %n: i32, %s: i32";

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
