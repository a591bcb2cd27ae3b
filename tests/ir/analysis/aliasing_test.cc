#include "heddle/ir/analysis/aliasing.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

// However many arrays there are, a write is looked at once for each kind.
TEST(Aliasing, ManyArraysAreOfFewKinds) {
  std::string text = "%z = const 0 : i32\n";
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&text, "%s", i, " = shared {extents = [8]} : view<i32, shared, 1>\nstore %s", i,
                    ", %n, %z\n%v", i, " = load %s", i, ", %z : i32\nstore %y, %v", i, ", %z\n");
  }
  const Kernel kernel =
      parse_body("32, 1, 1", "%y: view<i32, global, 1> [?] strides [1], %n: i32", text);
  const Aliasing aliasing(kernel);
  EXPECT_EQ(aliasing.object_count(), 301);
  EXPECT_EQ(aliasing.kind_count(), 2);
}

}  // namespace
}  // namespace heddle::ir
