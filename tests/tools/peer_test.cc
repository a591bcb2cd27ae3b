// Peers of the benchmarks: shared libraries with the functions of tools/bench/peers/peer.h.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/device.h"
#include "heddle/tools/bench/contender.h"
#include "support/matchers.h"

namespace heddle::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string why(const Status& status) { return std::string(status.message()); }

TEST(Peer, PreparesAndLaunches) {
  StatusOr<std::unique_ptr<Contender>> peer = open_peer(HEDDLE_FAKE_PEER, "");
  ASSERT_THAT(peer, IsOk());
  EXPECT_EQ((*peer)->name(), "fake");
  EXPECT_EQ((*peer)->version(), "1.2");
  PeerProblem problem = {"gemm", "", 1, {{"f32", 2, {5, 3}, {3, 1}}}};
  StatusOr<std::unique_ptr<Prepared>> prepared = (*peer)->prepare(problem);
  ASSERT_THAT(prepared, IsOk());
  EXPECT_THAT((*prepared)->candidates(), ElementsAre("wide", "narrow"));
  EXPECT_EQ((*prepared)->workspace(), 5u);
  const Stream stream = Device::open("interp").value().create_stream().value();
  int number = 0;
  void* const pointers[] = {&number};
  EXPECT_THAT((*prepared)->launch(0, pointers, nullptr, stream), IsOk());
  EXPECT_EQ(number, 7);
  EXPECT_EQ(why((*prepared)->launch(1, pointers, nullptr, stream)), "too narrow");
  problem.operation = "softmax";
  const Status lacking = (*peer)->prepare(problem).status();
  EXPECT_TRUE(IsUnimplemented(lacking));
  EXPECT_EQ(why(lacking), "no operation softmax");
}

TEST(Peer, SaysWhyALibraryIsNone) {
  EXPECT_THAT(why(open_peer("/nowhere/peer.so", "").status()), HasSubstr("/nowhere/peer.so"));
  EXPECT_THAT(why(open_peer(HEDDLE_EMPTY_PLUGIN, "").status()),
              HasSubstr("lacks a function of peers/peer.h"));
  EXPECT_THAT(why(open_peer(HEDDLE_OLD_PEER, "").status()),
              HasSubstr("was built for version 0 of peers/peer.h, this program for 1"));
  EXPECT_THAT(why(open_peer(HEDDLE_FAKE_PEER, "fail=1").status()), HasSubstr(": no such device"));
}

}  // namespace
}  // namespace heddle::bench
