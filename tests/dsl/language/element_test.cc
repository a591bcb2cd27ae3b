// Elements that are named: the value at that point of the program, whoever holds it and however
// late it is read; and places that are only written.
#include <array>
#include <memory>
#include <tuple>

#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs one thread on y, which holds 10, 20, 30, …, 80; gives back what it holds then.
template <class T = float, class Body>
std::vector<T> run(Body body, int threads = 1) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = local_kernel("elements(y)", [&](Tensor<T, 1> y) { body(y); });
  const std::vector<T> values = {10, 20, 30, 40, 50, 60, 70, 80};
  const Buffer buffer = device.upload(absl::MakeConstSpan(values)).value();
  EXPECT_THAT(kernel.launch(stream, {.block = threads}, as_tensor<T>(buffer, {8})), IsOk());
  return buffer.download<T>(stream).value();
}

MATCHER_P(StartsWith, expected, "") {
  return std::equal(expected.begin(), expected.end(), arg.begin());
}

template <class T = float>
std::vector<T> start(std::initializer_list<T> values) {
  return values;
}

TEST(Element, NamesAreValues) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                auto a = y(0);
                auto b = y(1);
                y(0) = b;
                y(1) = a;
              }),
              StartsWith(start({20, 10, 30})));
}

TEST(Element, AConstNameAndAReferenceAreValuesToo) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                const auto a = y(0);
                const auto& b = y(1);
                y(0) = 1.0f;
                y(1) = 2.0f;
                y(2) = a + b;
              }),
              StartsWith(start({1, 2, 30})));
}

TEST(Element, PairsTuplesAndStructuredBindingsHoldValues) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                auto [a, b] = std::pair(y(0), y(1));
                const auto rest = std::tuple(y(2), y(3));
                for (int i = 0; i < 4; ++i) y(i) = 0.0f;
                y(0) = b;
                y(1) = a;
                y(2) = std::get<1>(rest) - std::get<0>(rest);
              }),
              StartsWith(start({20, 10, 10, 0})));
}

TEST(Element, VectorsAndTheirPartsAreValues) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                auto v = y.vec<2>(0);
                auto [c, d] = y.vec<2>(2);
                y.vec<2>(2) = v;
                y.vec<2>(0) = Vec<float, 2>(d, c);
              }),
              StartsWith(start({40, 30, 10, 20})));
}

TEST(Element, FragmentsAreValues) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                auto v = y.elements(4, 0);
                y.elements(4, 0) = y.elements(4, 4);
                y.elements(4, 4) = v * 2.0f;
                y.elements(1, 0) = v.size();
              }),
              ElementsAre(4, 60, 70, 80, 20, 40, 60, 80));
}

// As vector_width() gives where nothing is known of an argument's alignment.
TEST(Element, FragmentsOfOneElementMeetScalarsToo) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                const Fragment<float> v = y.elements(1, 1);
                const Float three = y(2) / 10.0f;
                y.elements(1, 0) = three * v;
                y.elements(1, 1) = fma(v, three, v);
                y.elements(1, 2) = select(y(0) > 0.0f, three, v);
                y.elements(1, 3) = select(v > 0.0f, v, three);
                y.elements(1, 4) = hypot(three, v * 0.0f + 4.0f);
                y.elements(1, 5) = hypot(v * 0.0f + 4.0f, three);
              }),
              StartsWith(start({60, 80, 3, 20, 5, 5})));
}

TEST(Element, CapturesAndParametersOfTemplatesHoldValues) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                auto a = y(0);
                const auto later = [=] { return a * 2.0f; };
                const auto twice = [&](auto v) {
                  y(0) = 5.0f;
                  return v + v;
                };
                y(1) = twice(y(0));
                y(2) = later();
              }),
              StartsWith(start({5, 20, 20})));
}

TEST(Element, IsReadInFrontOfTheRegionThatUsesIt) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                auto first = y(0);
                Var<float> sum(0.0f);
                for (Int i : range(3)) {
                  sum += first;
                  y(0) = cast<float>(i);
                }
                If(y(0) == 2.0f, [&] { y(1) = first; }).Else([&] { y(1) = -1.0f; });
                y(2) = sum;
              }),
              StartsWith(start({2, 10, 30})));
}

TEST(Element, IsReadInTheTripThatNamesIt) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                for (Int i : range(1, 8)) {
                  auto left = y(i - 1);
                  auto here = y(i);
                  y(i) = left + here;
                }
              }),
              ElementsAre(10, 30, 60, 100, 150, 210, 280, 360));
}

TEST(Element, KeepsTheValueInFrontOfABarrier) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("shift(y)", [](Tensor<int, 1> y) {
    const Shared<int> s(64);
    const Int i = thread_idx.x;
    s(i) = i;
    sync_threads();
    auto left = s((i + 63) % 64);
    sync_threads();
    s(i) = 100;
    sync_threads();
    y(i) = left;
  });
  const Buffer out = device.allocate(64 * sizeof(int)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 64}, as_tensor<int>(out, {64})), IsOk());
  std::vector<int> expected(64);
  for (int i = 0; i < 64; ++i) expected[static_cast<size_t>(i)] = (i + 63) % 64;
  EXPECT_THAT(out.download<int>(stream).value(), ElementsAreArray(expected));
}

TEST(Element, IsReadBehindTheExitsInFrontOfIt) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                for (Int i : range(8)) {
                  If(i == 3, [] { Break(); });
                  auto v = y(i);
                  y(i) = 0.0f;
                  y(i) = v + 1.0f;
                }
              }),
              ElementsAre(11, 21, 31, 40, 50, 60, 70, 80));
}

TEST(Element, OfRegistersIsAValue) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                const Tensor<float> r = make_tensor<float>({2});
                r(0) = y(0);
                r(1) = y(1);
                auto a = r(0);
                auto b = r(1);
                r(0) = b;
                r(1) = a;
                y(0) = r(0);
                y(1) = r(1);
              }),
              StartsWith(start({20, 10, 30})));
}

TEST(Element, OfATensorWithALayoutIsAValue) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                const Tensor<float> t = Tensor<float>(y).with_layout(make_layout({2, 4}, {4, 1}));
                auto a = t(0, 0);
                auto b = t(1, 3);
                t(0, 0) = b;
                t(1, 3) = a;
              }),
              ElementsAre(80, 20, 30, 40, 50, 60, 70, 10));
}

TEST(Element, TakesEveryCompoundAssignment) {
  EXPECT_THAT(run<int32_t>([](Tensor<int32_t, 1> y) {
                y(0) += 1;
                y(1) -= y(0);
                y(2) *= 3;
                y(3) /= 3;
                y(4) %= 7;
                y(5) &= 0x1C;
                y(6) |= 1;
                y(7) ^= 0xFF;
                y(0) <<= 2;
                y(1) >>= 1;
              }),
              ElementsAre(44, 4, 90, 13, 1, 28, 71, 175));
}

TEST(Element, OfASmallTypeTakesThemAsInCpp) {
  EXPECT_THAT(run<uint8_t>([](Tensor<uint8_t, 1> y) {
                y(0) += 250;
                y(1) *= thread_idx.x + 20;
                y(2) >>= 2;
              }),
              StartsWith(start<uint8_t>({4, 144, 7})));
}

TEST(Element, VariablesOfASmallTypeTakeThemToo) {
  EXPECT_THAT(run<uint8_t>([](Tensor<uint8_t, 1> y) {
                Var<uint8_t> sum(y(0)), product(y(1)), difference(y(2)), shifted(y(3));
                sum += 250;
                product *= thread_idx.x + 20;
                difference -= 40;
                difference >>= 1;  // of 246, and not of -10
                shifted <<= 3;
                shifted /= 3;
                Var<uint8_t> count(uint8_t{255});
                y(0) = sum;
                y(1) = product;
                y(2) = difference;
                y(3) = shifted;
                y(4) = ++count;
                y(5) = count--;
                y(6) = count;
              }),
              StartsWith(start<uint8_t>({4, 144, 123, 21, 0, 0, 255})));
}

TEST(Element, GroupsTakeCompoundAssignmentsAndScalars) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                y.vec<4>(0) += y.vec<4>(4);
                y.vec<4>(0) *= 2.0f;
                y.elements(2, 4) -= 1.0f;
                y.vec<2>(6) = 7.0f;
              }),
              ElementsAre(120, 160, 200, 240, 49, 59, 7, 7));
}

TEST(Element, VariablesOfArraysAndVectorsHaveElements) {
  EXPECT_THAT(run([](Tensor<float, 1> y) {
                Var<std::array<Float, 3>> a({y(0), y(1), y(2)});
                auto first = a[0];
                a[0] = a[2];
                a[1] += 1.0f;
                a[2] = first;
                for (int i = 0; i < 3; ++i) y(i) = a[i];
                Var<Vec<float, 4>> v(y.vec<4>(4));
                v[1] = 0.0f;
                v += 1.0f;
                v = v * 2.0f;
                y.vec<4>(4) = v;
              }),
              ElementsAre(30, 21, 10, 40, 102, 2, 142, 162));
}

TEST(Element, VariablesCountUpAndDown) {
  EXPECT_THAT(run<int32_t>([](Tensor<int32_t, 1> y) {
                Var<int> i(0);
                y(i++) = i;
                y(++i) = i--;
                y(3) = --i;
              }),
              StartsWith(start<int32_t>({0, 1, 30, 0})));
}

// --- What is recorded ---------------------------------------------------------------------------

int loads(const ir::Kernel& kernel) { return count_ops(kernel, ir::Opcode::kLoad); }
int checks(const ir::Kernel& kernel) { return count_ops(kernel, ir::Opcode::kBounds); }

TEST(Element, WhatIsOnlyWrittenIsNotRead) {
  const auto kernel = define_kernel("writes(y)", [](Tensor<float, 1> y) {
    y(0) = 1.0f;
    y.vec<4>(4) = 2.0f;
    y.elements(2, 8) = 3.0f;
    atomic_add(y(1), 1.0f);
  });
  const ir::Kernel k = trace(kernel).kernel;
  EXPECT_EQ(loads(k), 0);
  EXPECT_EQ(checks(k), 4);
}

TEST(Element, WhatIsReadOftenIsLoadedOnce) {
  const auto kernel = define_kernel("reads(y)", [](Tensor<float, 1> y) {
    auto a = y(0);
    y(1) = a * a + a;
    y(2) = a;
  });
  const ir::Kernel k = trace(kernel).kernel;
  EXPECT_EQ(loads(k), 1);
  EXPECT_EQ(checks(k), 3);
}

TEST(Element, UpdatesReadOnce) {
  const auto kernel = define_kernel("updates(y)", [](Tensor<float, 1> y) { y(0) += 1.0f; });
  EXPECT_EQ(loads(trace(kernel).kernel), 1);
}

TEST(Element, WhatIsNamedAndNeverReadIsNotLoaded) {
  const auto kernel = define_kernel("unread(y)", [](Tensor<float, 1> y) {
    [[maybe_unused]] auto a = y(0);
    y(1) = 0.0f;
  });
  EXPECT_EQ(loads(trace(kernel).kernel), 0);
}

// Named in one kernel and read in another, which has no such point.
TEST(Element, OfAnotherKernelIsReported) {
  struct Pair {
    Float a, b;
  };
  std::unique_ptr<detail::ElementRef<float>> one;
  std::unique_ptr<detail::VecRef<float, 4>> group;
  std::unique_ptr<detail::StructRef<Pair>> both;
  const auto first = local_kernel("first(y, p)", [&](Tensor<float, 1> y, Tensor<Pair, 1> p) {
    for (int i = 0; i < 300; ++i) {
      If(thread_idx.x == i, [&] {
        y(i) = 1.0f;
        // Without a copy, which would read it.
        one.reset(new auto(y(i)));
        group.reset(new auto(y.vec<4>(4)));
        both.reset(new auto(p(i)));
      });
    }
  });
  EXPECT_EQ(mistakes(first), "");
  const auto expect_reported = [](auto body) {
    const auto second = local_kernel("second(y)", [&](Tensor<float, 1> y) { y(0) = body(); });
    EXPECT_THAT(mistakes(second), HasSubstr("value from kernel 'first' used in kernel 'second'"));
  };
  expect_reported([&] { return *one + 1.0f; });
  expect_reported([&] { return group->get()[2]; });
  expect_reported([&] { return both->get().b; });
}

TEST(Element, AnArrayInAVariableEnds) {
  for (const int index : {3, -1, 1000}) {
    const auto writes = local_kernel("writes(y)", [&](Tensor<float, 1> y) {
      Var<std::array<Float, 3>> a({y(0), y(1), y(2)});
      a[index] = y(3);
      y(0) = a[0];
    });
    const auto reads = local_kernel("reads(y)", [&](Tensor<float, 1> y) {
      Var<std::array<Float, 3>> a({y(0), y(1), y(2)});
      y(0) = a[index];
    });
    const std::string told = absl::StrCat("element ", index, " of a vector of 3");
    EXPECT_THAT(mistakes(writes), HasSubstr(told));
    EXPECT_THAT(mistakes(reads), HasSubstr(told));
  }
}

TEST(Element, AVectorInAVariableEnds) {
  for (const int index : {4, -1, 1000}) {
    const std::string told = absl::StrCat("element ", index, " of a vector of 4");
    const auto writes = local_kernel("writes(y)", [&](Tensor<float, 1> y) {
      Var<Vec<float, 4>> v(y.vec<4>(0));
      v[index] = 1.0f;
      y.vec<4>(0) = v;
    });
    const auto reads = local_kernel("reads(y)", [&](Tensor<float, 1> y) {
      Var<Fragment<float>> f(Fragment<float>(4, 1.0f));
      y(0) = f[index];
    });
    EXPECT_THAT(mistakes(writes), HasSubstr(told));
    EXPECT_THAT(mistakes(reads), HasSubstr(told));
    EXPECT_THAT(mistakes(writes), Not(HasSubstr("must be")));
    EXPECT_THAT(mistakes(reads), Not(HasSubstr("must be")));
  }
}

TEST(Element, IsReportedAtTheLineThatNamesIt) {
  const Device& device = test_device();
  if (on_gpu()) GTEST_SKIP() << "the interpreter's checks";
  const Stream stream = device.create_stream().value();
  int line = 0;
  const auto kernel = local_kernel("outside(y)", [&](Tensor<float, 1> y) {
    line = __LINE__ + 1;
    auto a = y(8);
    y(0) = 1.0f;
    y(1) = a;
  });
  const Buffer buffer = device.upload(absl::MakeConstSpan(std::vector<float>(8))).value();
  Status status = kernel.launch(stream, {.block = 1}, as_tensor<float>(buffer, {8}));
  if (status.ok()) status = stream.synchronize();
  EXPECT_THAT(status.ToString(), HasSubstr(absl::StrCat("element_test.cc:", line)));
}

}  // namespace
}  // namespace heddle
