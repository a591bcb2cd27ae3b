// What expressions of layouts are worth, by value: the worked examples of CuTe's documents.
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "heddle/dsl/layout/calculator.h"

namespace heddle {
namespace {

TEST(LayoutExamples, AreWhatTheDocumentsSay) {
  std::ifstream file(std::string(HEDDLE_TEST_DATA_DIR) + "/dsl/layout_examples.txt");
  int checked = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.rfind(" = ");
    ASSERT_NE(equals, std::string::npos) << line;
    EXPECT_EQ(evaluate(line.substr(0, equals)), line.substr(equals + 3)) << line;
    ++checked;
  }
  EXPECT_GT(checked, 150);
}

}  // namespace
}  // namespace heddle
