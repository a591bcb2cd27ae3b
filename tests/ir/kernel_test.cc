// Places and lists of numbers, which a kernel keeps once each.
#include "heddle/ir/kernel.h"

#include <ctime>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

// Interns many things; `intern` gives a thing's number. That takes some hundredths of a second, and
// many seconds where each is compared with all before it.
void intern_many(absl::FunctionRef<int64_t(Kernel&, int)> intern) {
  constexpr int kCount = 200'000;
  Kernel kernel("k");
  int right = 0;
  const std::clock_t start = std::clock();
  for (int i = 0; i < kCount; ++i) right += intern(kernel, i) == i;
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2) << "seconds";
  EXPECT_EQ(right, kCount) << "each has a number of its own";
  EXPECT_EQ(intern(kernel, 1), 1) << "and keeps it";
}

TEST(Kernel, FindsAPlaceAmongMany) {
  intern_many([](Kernel& kernel, int i) {
    return static_cast<int64_t>(index_of(kernel.intern_loc("a.cc", i)));
  });
}

TEST(Kernel, FindsAListAmongMany) {
  intern_many([](Kernel& kernel, int i) { return kernel.intern_ints({i, i + 1}); });
}

}  // namespace
}  // namespace heddle::ir
