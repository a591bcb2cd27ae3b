// Break, Continue, Return and Switch against what C++ does, on whatever device the tests run on.
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kThreads = 64;

// Runs body(x, y), x(i) = i * 7 % 32, in a block of 64 threads; or says what is wrong with it.
template <class Body>
StatusOr<std::vector<int32_t>> run(const char* name, Body body) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      local_kernel(name, [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) { body(x, y); });
  std::vector<int32_t> values;
  for (int i = 0; i < kThreads; ++i) values.push_back(i * 7 % 32);
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out = device.upload(absl::MakeConstSpan(std::vector<int32_t>(kThreads))).value();
  const Status status =
      kernel.launch(stream, {.block = kThreads}, as_tensor<const int32_t>(in, {kThreads}),
                    as_tensor<int32_t>(out, {kThreads}));
  if (!status.ok()) return status;
  return out.download<int32_t>(stream);
}

template <class Body, class Host>
void expect_same(const char* name, Body body, Host host) {
  const auto got = run(name, body);
  ASSERT_THAT(got, IsOk()) << name;
  std::vector<int> x;
  for (int i = 0; i < kThreads; ++i) x.push_back(i * 7 % 32);
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ((*got)[static_cast<size_t>(t)], host(x, t)) << name << " thread " << t;
  }
}

using In = Tensor<const int32_t, 1>;
using Out = Tensor<int32_t, 1>;
using Host = const std::vector<int>&;

TEST(Exits, ReturnEndsTheThread) {
  expect_same(
      "guard",
      [](In x, Out y) {
        const Int i = thread_idx.x;
        If(x(i) > 20, [] { Return(); });
        y(i) = 1;
        If(x(i) < 10, [&] {
          y(i) = 2;
          Return();
        }).Else([&] { y(i) = 3; });
        y(i) += 10;
      },
      [](Host x, int t) {
        const int v = x[static_cast<size_t>(t)];
        return v > 20 ? 0 : v < 10 ? 2 : 13;
      });
}

TEST(Exits, BreakLeavesOneLoop) {
  expect_same(
      "breaks",
      [](In x, Out y) {
        const Int t = thread_idx.x;
        Var<int32_t> found(-1), rounds(0);
        for (const Int i : range(t, kThreads)) {
          for (const Int j : range(0, 10, 3)) {
            If(j > x(i), [] { Break(); });
            rounds += 1;
          }
          If(x(i) == 5, [&] {
            found = i;
            Break();
          });
          rounds += 100;
        }
        y(t) = found * 100000 + rounds;
      },
      [](Host x, int t) {
        int found = -1, rounds = 0;
        for (int i = t; i < kThreads; ++i) {
          for (int j = 0; j < 10; j += 3) {
            if (j > x[static_cast<size_t>(i)]) break;
            rounds += 1;
          }
          if (x[static_cast<size_t>(i)] == 5) {
            found = i;
            break;
          }
          rounds += 100;
        }
        return found * 100000 + rounds;
      });
}

TEST(Exits, ContinueGoesToTheNextTrip) {
  expect_same(
      "continues",
      [](In x, Out y) {
        const Int t = thread_idx.x;
        Var<int32_t> sum(0);
        For(range(kThreads - 1, t, -2), [&](Int i) {
          If((x(i) & 1) == 0, [&] {
            If(x(i) > 16, [] { Continue(); });
            sum += 1000;
          });
          sum += x(i);
        });
        y(t) = sum;
      },
      [](Host x, int t) {
        int sum = 0;
        for (int i = kThreads - 1; i > t; i -= 2) {
          const int v = x[static_cast<size_t>(i)];
          if ((v & 1) == 0) {
            if (v > 16) continue;
            sum += 1000;
          }
          sum += v;
        }
        return sum;
      });
}

// The condition reads behind the end once the body has found that it is there.
TEST(Exits, AWhileThatIsLeftDoesNotTestItsCondition) {
  expect_same(
      "while_breaks",
      [](In x, Out y) {
        Var<int32_t> i(thread_idx.x), odd(0);
        While([&] { return x(i) != 99; },
              [&] {
                i += 1;
                If(i == kThreads, [] { Break(); });
                If(x(i) % 2 == 0, [] { Continue(); });
                odd += 1;
              });
        y(thread_idx.x) = i * 100 + odd;
      },
      [](Host x, int t) {
        int i = t, odd = 0;
        while (x[static_cast<size_t>(i)] != 99) {
          i += 1;
          if (i == kThreads) break;
          if (x[static_cast<size_t>(i)] % 2 == 0) continue;
          odd += 1;
        }
        return i * 100 + odd;
      });
}

TEST(Exits, ReturnLeavesAllLoops) {
  expect_same(
      "returns",
      [](In x, Out y) {
        const Int t = thread_idx.x;
        y(t) = -1;
        for (const Int i : range(t, kThreads)) {
          Var<int32_t> j(0);
          While([&] { return j < 8; },
                [&] {
                  If(x(i) + j == 31, [&] {
                    y(t) = i * 100 + j;
                    Return();
                  });
                  j += 1;
                });
          If(i - t > 20, [&] { Break(); });
        }
        y(t) -= 1;
      },
      [](Host x, int t) {
        for (int i = t; i < kThreads; ++i) {
          for (int j = 0; j < 8; ++j) {
            if (x[static_cast<size_t>(i)] + j == 31) return i * 100 + j;
          }
          if (i - t > 20) break;
        }
        return -2;
      });
}

// Neither end of the index's range makes it wrap.
TEST(Exits, LoopsThatAreLeftDoNotWrap) {
  expect_same(
      "ends",
      [](In, Out y) {
        constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
        constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
        Var<int32_t> trips(0);
        const Int t = thread_idx.x;
        for (const Int i : range(Int(kMax) - t, kMax, 5)) {
          If(i < 0, [] { Break(); });
          trips += 1;
        }
        for (const Int64 i : range(Int64(kMin) + cast<int64_t>(t), Int64(kMin), Int64(-7))) {
          If(i > 0, [] { Break(); });
          trips += 100;
        }
        for (const Int i : range(-kMax - 1, kMax, Int(kMax))) {
          If(i == 77, [] { Break(); });
          trips += 10000;
        }
        for (const Int i : range(t, 3)) {
          If(i == 77, [] { Break(); });
          trips += 1000000;
        }
        y(t) = trips;
      },
      [](Host, int t) {
        return (t + 4) / 5 + (t + 6) / 7 * 100 + 3 * 10000 + std::max(0, 3 - t) * 1000000;
      });
}

TEST(Switch, TakesOneBranch) {
  expect_same(
      "switches",
      [](In x, Out y) {
        const Int t = thread_idx.x;
        const Int v = Switch(x(t) % 6, Case(0, [] { return Int(10); }),
                             Case({1, 4}, [&] { return t * 2; }), Default([] { return Int(-1); }));
        y(t) = v;
        Switch(x(t), Case(7, [&] { y(t) = 777; }), Case(14, [] { Return(); }));
        Switch(t, Case({0, 1, 2}, [&] { y(t) += 1; }), Default([&] { y(t) += 2; }));
      },
      [](Host x, int t) {
        const int v = x[static_cast<size_t>(t)];
        int y = v % 6 == 0 ? 10 : v % 6 == 1 || v % 6 == 4 ? t * 2 : -1;
        if (v == 7) y = 777;
        if (v == 14) return y;
        return y + (t <= 2 ? 1 : 2);
      });
}

TEST(Exits, WhatCannotBeIsReported) {
  const auto message = [](auto body) {
    return std::string(run("wrong",
                           [&](In x, Out y) {
                             body(x, y);
                             y(thread_idx.x) = 1;
                           })
                           .status()
                           .message());
  };
  EXPECT_THAT(message([](In, Out) { Break(); }), HasSubstr("Break() outside a traced loop"));
  EXPECT_THAT(message([](In x, Out y) {
                y(0) = For(range(4), Int(0), [&](Int i, Int sum) {
                  If(x(i) == 3, [] { Break(); });
                  return sum + i;
                });
              }),
              HasSubstr("Break() leaves a loop that carries values"));
  EXPECT_THAT(message([](In x, Out y) {
                y(0) = If(
                    x(0) == 3,
                    [] {
                      Return();
                      return Int(1);
                    },
                    [] { return Int(2); });
              }),
              HasSubstr("Return() leaves an If() that returns values"));
  const std::string barrier = message([](In x, Out) {
    If(x(thread_idx.x) == 3, [] { Return(); });
    sync_threads();
  });
  EXPECT_THAT(barrier, HasSubstr("exits_test.cc"));
  EXPECT_THAT(barrier, HasSubstr("barrier"));
  EXPECT_THAT(message([](In x, Out y) {
                Switch(x(0), Case(1, [&] { y(0) = 1; }), Case({2, 1}, [&] { y(0) = 2; }));
              }),
              HasSubstr("two Case()s for 1 in one Switch()"));
  EXPECT_THAT(message([](In x, Out y) { y(0) = Switch(x(0), Case(1, [] { return Int(1); })); }),
              HasSubstr("a Switch() that returns a value has no Default()"));
}

}  // namespace
}  // namespace heddle
