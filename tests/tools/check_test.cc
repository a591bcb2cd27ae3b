#include "heddle/tools/command/check.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::tools {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string verdict(const std::vector<double>& actual, const runtime::Expected& expected,
                    std::vector<int64_t> extents) {
  return describe(compare(actual, expected), "y", {ir::Scalar::kF32, std::move(extents)}, actual,
                  expected);
}

TEST(CompareTest, EqualIsRight) {
  EXPECT_EQ(
      verdict({1, -0.0, kInf, -kInf, kNaN}, {{1, 0.0, kInf, -kInf, kNaN}, {0, 0, 0, 0, 0}}, {5}),
      "y: all 5 elements right, max error 0");
  EXPECT_EQ(verdict({}, {{}, {}}, {0}), "y: all 0 elements right, max error 0");
}

TEST(CompareTest, WithinTheToleranceIsRight) {
  EXPECT_EQ(verdict({1.25, 2}, {{1, 2}, {0.25, 0}}, {1, 2}),
            "y: all 2 elements right, max error 0.25 at y[0, 0]");
}

TEST(CompareTest, BeyondItIsWrong) {
  EXPECT_EQ(
      verdict({1, 2, 3, 4, 5, 6.5}, {{1, 2, 3, 4, 5.5, 6}, {0, 0, 0, 0, 0.25, 0.125}}, {2, 3}),
      "y: 2 of 6 elements wrong, max error 0.5 at y[1, 1]; the first is y[1, 1] = 5, which "
      "should be 5.5 ± 0.25");
}

TEST(CompareTest, OneSideThatIsNoNumberIsWrong) {
  for (const auto& [actual, expected] :
       {std::pair(kNaN, 1.0), {1.0, kNaN}, {kInf, 1.0}, {1.0, kInf}, {kInf, -kInf}, {kNaN, kInf}}) {
    const Comparison result = compare({actual}, {{expected}, {1e300}});
    EXPECT_EQ(result.wrong, 1u) << actual << " for " << expected;
    EXPECT_EQ(result.max_error, kInf);
  }
  // An infinite tolerance says that anything finite will do, and a tolerance that is no number that
  // nothing will.
  EXPECT_EQ(compare({7.0}, {{1.0}, {kInf}}).wrong, 0u);
  EXPECT_EQ(compare({7.0}, {{1.0}, {kNaN}}).wrong, 1u);
}

}  // namespace
}  // namespace heddle::tools
