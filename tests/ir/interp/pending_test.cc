// When asynchronous work is done.
#include "heddle/ir/interp/pending.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace heddle::ir::interp {
namespace {

constexpr uint64_t kPace = 4;

Pending pending(const char* when) { return {parse_completion(when).value(), kPace}; }

TEST(Pending, EarlyWorkIsDoneAtOnce) {
  Pending early = pending("early");
  bool done = false;
  const Pending::Ticket ticket = early.add([&] { done = true; });
  EXPECT_TRUE(done);
  EXPECT_EQ(ticket, Pending::kDone);
  EXPECT_FALSE(early.advance());
  early.finish(ticket);
}

TEST(Pending, LateWorkIsDoneWhenSomebodyWaits) {
  Pending late = pending("late");
  std::string order;
  const Pending::Ticket a = late.add([&] { order += "a"; });
  late.add([&] { order += "b"; });
  const Pending::Ticket c = late.add([&] {
    late.finish(a);  // what it needs comes first
    order += "c";
  });
  for (int i = 0; i < 1000; ++i) late.tick();
  EXPECT_EQ(order, "");
  late.finish(c);
  late.finish(c);
  EXPECT_EQ(order, "ac");
  EXPECT_TRUE(late.advance());
  EXPECT_EQ(order, "acb");
  EXPECT_FALSE(late.advance());
}

TEST(Pending, LateWorkIsDoneInTheEnd) {
  Pending late = pending("late");
  bool done = false;
  late.add([&] { done = true; });
  for (int i = 0; i < 1'000'000 && !done; ++i) late.tick();
  EXPECT_TRUE(done);
}

// The ticks at which ten pieces of work are done.
std::vector<int> times(const char* when) {
  Pending seeded = pending(when);
  std::vector<int> result(10, -1);
  int now = 0;
  for (int& time : result) seeded.add([&] { time = now; });
  for (; now < 100; ++now) seeded.tick();
  return result;
}

TEST(Pending, SeededWorkIsDoneAtTimesOfItsSeed) {
  const std::vector<int> one = times("seed:1");
  EXPECT_EQ(one, times("seed:1"));
  EXPECT_NE(one, times("seed:2"));
  for (const int time : one) EXPECT_GE(time, 0);
  EXPECT_GT(std::set<int>(one.begin(), one.end()).size(), 3u);
}

}  // namespace
}  // namespace heddle::ir::interp
