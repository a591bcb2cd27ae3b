// Break, Continue and Return where a loop's end is decided: in conditions, and with steps that are
// not host numbers.
#include <cstdlib>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// What body(zero) leaves in y(0), in one thread; `zero` is 0, but known only at run time.
template <class Body>
StatusOr<int32_t> run(const char* name, Body body) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      local_kernel(name, [&](Int zero, Tensor<int32_t, 1> y) { y(0) = body(zero); });
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<int32_t>{-1})).value();
  const Status status =
      kernel.launch(stream, {.block = 1}, int32_t{0}, as_tensor<int32_t>(out, {1}));
  if (!status.ok()) return status;
  return out.download<int32_t>(stream).value()[0];
}

TEST(ExitsEdges, BreakInTheConditionOfAWhile) {
  const auto got = run("break_in_condition", [](Int zero) {
    Var<int32_t> v(zero);
    While(
        [&]() -> Bool {
          If(v == 3, [] { Break(); });
          return v < 6;
        },
        [&] { v += 1; });
    return Int(v);
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, 3);
}

// One loop with and without an exit that nobody takes.
TEST(ExitsEdges, AnExitDoesNotChangeTheDirectionOfALoop) {
  for (const bool exits : {false, true}) {
    const auto got = run("computed_step", [&](Int zero) {
      const Int three(3);
      Var<int32_t> trips(0);
      for (const Int i : range(9, -1, -three)) {
        trips += 1;
        if (exits) If(i == 1000 + zero, [] { Break(); });
      }
      return Int(trips);
    });
    ASSERT_THAT(got, IsOk());
    EXPECT_EQ(*got, 4) << (exits ? "with a Break()" : "without");
  }
}

// ops.def: the interpreter reports a step of zero or less that is no constant.
TEST(ExitsEdges, StepsOfTheWrongSignAreReported) {
  if (on_gpu()) GTEST_SKIP() << "a GPU does not report it";
  for (const bool exits : {false, true}) {
    for (const int start : {0, 10}) {
      const auto got = run("wrong_step", [&](Int zero) {
        Var<int32_t> trips(0);
        for (const Int i : range(start, 10 - start, zero - 1)) {
          trips += 1;
          if (exits) If(i > 100, [] { Break(); });
        }
        return Int(trips);
      });
      EXPECT_THAT(std::string(got.status().message()), HasSubstr("step"))
          << (exits ? "with a Break(), from " : "from ") << start;
    }
  }
}

// By steps of one a loop ends at its bound, which may be the greatest or the least number of all.
TEST(ExitsEdges, LoopsWithExitsGoUpToTheEndsOfInt) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  for (const int32_t step : {1, -1, 2, -3}) {
    const auto got = run("ends_of_int", [&](Int zero) {
      const int32_t stop = step > 0 ? kMost : -kMost - 1;
      const int32_t start = step > 0 ? kMost - 5 : -kMost + 4;
      Var<int32_t> trips(0);
      for (const Int i : range(start + zero, stop, step)) {
        trips += 1;
        If(i == 1000 + zero, [] { Break(); });
      }
      return Int(trips);
    });
    ASSERT_THAT(got, IsOk());
    EXPECT_EQ(*got, (5 + std::abs(step) - 1) / std::abs(step)) << step;
  }
}

// A Break() that comes first in a trip is asked for together with the loop's condition, where there is
// nothing else to do.
TEST(ExitsEdges, ABreakThatComesFirst) {
  const auto got = run("first", [](Int zero) {
    Var<int32_t> v(zero), sum(zero);
    While([&] { return v < 10; },
          [&] {
            const Int twice = v * 2;
            If(twice == 8, [] { Break(); });
            If(v == 1, [&] {
              v += 1;
              Continue();
            });
            sum += twice;
            v += 1;
          });
    return Int(v) * 100 + sum;
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, 410);  // 0 + 4 + 6
}

TEST(ExitsEdges, WhatABreakThatComesFirstDoesBeforeIsDone) {
  const auto got = run("first_counts", [](Int zero) {
    Var<int32_t> v(zero), left(zero);
    While([&] { return v < 10; },
          [&] {
            If(v == 4, [&] {
              left += 7;
              Break();
            });
            v += 1;
          });
    return Int(v) * 100 + left;
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, 407);
}

// It leaves the inner loop alone; Return() leaves both.
TEST(ExitsEdges, AnExitThatComesFirstLeavesItsOwnLoop) {
  for (const bool returns : {false, true}) {
    const auto got = run("first_of_two", [&](Int zero) {
      Var<int32_t> trips(zero);
      for (const Int i : range(3 + zero)) {
        Var<int32_t> v(zero);
        While([&] { return v < 10; },
              [&] {
                If(v + i == 5, [&] { returns ? Return() : Break(); });
                v += 1;
                trips += 1;
              });
      }
      return Int(trips);
    });
    ASSERT_THAT(got, IsOk());
    EXPECT_EQ(*got, returns ? -1 : 5 + 4 + 3);
  }
}

}  // namespace
}  // namespace heddle
