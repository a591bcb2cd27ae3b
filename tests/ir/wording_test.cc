#include "heddle/ir/wording.h"

#include <string>

#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

TEST(Wording, SuggestsTheNearestName) {
  EXPECT_EQ(suggest("lod", {"store", "load", "lt"}), "; did you mean 'load'?");
  EXPECT_EQ(suggest("flod", {"licm", "fold"}), "; did you mean 'fold'?");
  EXPECT_EQ(suggest("thread_ix", {"thread_idx", "block_idx"}), "; did you mean 'thread_idx'?");
  EXPECT_EQ(nearest("add", {"add"}), "add");
}

TEST(Wording, SuggestsNothingFarFetched) {
  EXPECT_EQ(suggest("frobnicate", {"store", "load"}), "");
  EXPECT_EQ(suggest("b", {"x", "n"}), "");
  EXPECT_EQ(suggest("lt", {}), "");
  EXPECT_EQ(suggest(std::string(1000, 'a'), {"a"}), "");
}

TEST(Wording, Counts) {
  EXPECT_EQ(counted(0, "operand"), "0 operands");
  EXPECT_EQ(counted(1, "operand"), "1 operand");
  EXPECT_EQ(counted(2, "type"), "2 types");
}

}  // namespace
}  // namespace heddle::ir
