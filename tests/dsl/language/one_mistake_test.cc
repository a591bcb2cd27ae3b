// One mistake is told once, however many ops it reaches.
#include "absl/strings/str_cat.h"
#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

// A message up to its file, whose path depends on where it is built.
std::string short_paths(std::string text) {
  const std::string file = __FILE__;
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  for (size_t at; (at = text.find(folder)) != std::string::npos;) text.erase(at, folder.size());
  return text;
}

TEST(OneMistake, BlockReduceUnderADivergentCondition) {
  const int line = __LINE__ + 2;
  const auto kernel = define_kernel("reduce(y, n)", [](Tensor<float, 1> y, Int n) {
    If(thread_idx.x < n, [&] { y(0) = block_reduce(cast<float>(thread_idx.x), plus()); });
  });
  EXPECT_EQ(short_paths(mistakes(kernel)),
            absl::StrCat(
                "one_mistake_test.cc:", line,
                ": error: 'barrier' under a condition that differs between threads: all threads "
                "of the block must reach it together\n"
                "  in: barrier\n"
                "  one_mistake_test.cc:",
                line,
                ": the condition of this 'if' differs between the threads of the block\n"
                "  and 7 more like it\n"
                "  fix: move it out, or make the condition the same for the whole block; where "
                "only you know that the whole block agrees on it, wrap it in assume_uniform()\n"));
}

TEST(OneMistake, InAFunctionThatIsCalledTwice) {
  const auto kernel = define_kernel("twice(y)", [](Tensor<float, 1> y) {
    const Vec<float, 4> v(1.0f, 2.0f, 3.0f, 4.0f);
    const auto last = [&](int i) { y(i) = v[9]; };
    last(0);
    last(1);
  });
  EXPECT_EQ(trace(kernel).diagnostics.size(), 2u);
  EXPECT_EQ(ir::by_mistake(trace(kernel).diagnostics).size(), 1u) << mistakes(kernel);
}

TEST(OneMistake, AValueMadeOutsideEveryKernelHoweverOftenItIsUsed) {
  const int line = __LINE__ + 2;
  const Float two = 2.0f;
  const Float four = two + two;
  const Float eight = four * two;
  const auto kernel = local_kernel("outside(y)", [&](Tensor<float, 1> y) {
    y(0) = four;
    y(1) = eight;
    y(2) = eight;
    y(3) = four;
  });
  const auto told = [&](const char* op, int use, int made, int again) {
    return absl::StrCat(
        "one_mistake_test.cc:", line + use, ": error: ", op,
        " of kernel values outside a kernel: there was no program to record it in\n"
        "  one_mistake_test.cc:",
        line + made, ": made here\n  and 1 more like it, at one_mistake_test.cc:", line + again,
        "\n  fix: compute it with host numbers, or move it into the kernel's lambda\n");
  };
  EXPECT_EQ(short_paths(mistakes(kernel)), told("add", 3, 0, 6) + told("mul", 4, 1, 5));
}

TEST(OneMistake, AValueThatLeftItsLoopHoweverOftenItIsUsed) {
  const int line = __LINE__ + 2;
  const auto kernel = define_kernel("left(y, n)", [](Tensor<float, 1> y, Int n) {
    detail::Node left;
    For(range(n), [&](Int i) { left = (i * 2).node(); });
    y(0) = cast<float>(Int(left));
    y(1) = cast<float>(Int(left) + 1);
  });
  EXPECT_EQ(short_paths(mistakes(kernel)),
            absl::StrCat("one_mistake_test.cc:", line + 2,
                         ": error: value used outside the for body that made it: it exists only "
                         "while that body runs\n"
                         "  one_mistake_test.cc:",
                         line + 1,
                         ": made here\n"
                         "  one_mistake_test.cc:",
                         line + 1,
                         ": in the body of this one\n"
                         "  and 1 more like it, at one_mistake_test.cc:",
                         line + 3,
                         "\n  fix: return it from the body, so that the construct carries it, or "
                         "keep it in a Var declared outside\n"));
}

TEST(OneMistake, AValueOfAnotherKernelHoweverOftenItIsUsed) {
  detail::Node kept, other;
  trace(local_kernel("first(y, n)", [&](Tensor<float, 1> y, Int n) {
    kept = (n + 1).node();
    other = (n + 2).node();
    y(0) = 0.0f;
  }));
  const int line = __LINE__ + 2;
  const auto second = local_kernel("second(y)", [&](Tensor<float, 1> y) {
    y(0) = cast<float>(Int(kept));
    y(1) = cast<float>(Int(other));
    y(2) = cast<float>(Int(kept) + 1);
  });
  const auto told = [&](int use, const std::string& more) {
    return absl::StrCat("one_mistake_test.cc:", line + use,
                        ": error: value from kernel 'first' used in kernel 'second': a traced "
                        "value lives only while its own kernel is traced\n",
                        more, "  fix: pass it as a parameter, or capture a host value instead\n");
  };
  EXPECT_EQ(short_paths(mistakes(second)),
            told(0, absl::StrCat("  and 1 more like it, at one_mistake_test.cc:", line + 2, "\n")) +
                told(1, ""));
}

TEST(OneMistake, UnalignedVectorsOfOneLine) {
  const int line = __LINE__ + 3;
  const auto kernel =
      define_kernel("unaligned(x, y, n)", [](Tensor<const float, 1> x, Tensor<float, 1> y, Int n) {
        y.vec<4>(n) = x.vec<4>(n) * 2.0f;
      });
  EXPECT_EQ(short_paths(mistakes(kernel)),
            absl::StrCat("one_mistake_test.cc:", line,
                         ": error: an access to 4 elements needs an address that is a multiple of "
                         "16 bytes, and only 4 can be proved (the offset)\n"
                         "  fix: choose the width by vector_width(), index in multiples of it, or "
                         "promise the alignment in the signature or by "
                         "assume_aligned()\n"));
}

}  // namespace
}  // namespace heddle
