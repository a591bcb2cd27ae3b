#include "gtest/gtest.h"
#include "pass_text.h"

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

}  // namespace
}  // namespace heddle::ir
