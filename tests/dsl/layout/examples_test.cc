// What expressions of layouts are worth, by value.
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "heddle/dsl/layout/calculator.h"

namespace heddle {
namespace {

// Of lines "expression = result".
void check_lines(const char* name, int at_least) {
  std::ifstream file(std::string(HEDDLE_TEST_DATA_DIR) + "/dsl/layout/" + name);
  int checked = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.rfind(" = ");
    ASSERT_NE(equals, std::string::npos) << line;
    EXPECT_EQ(evaluate(line.substr(0, equals)), line.substr(equals + 3)) << line;
    ++checked;
  }
  EXPECT_GE(checked, at_least);
}

TEST(LayoutExamples, AreWhatCuTesDocumentsSay) { check_lines("examples.txt", 150); }

TEST(LayoutExamples, AreWhatCuTesHeadersGive) { check_lines("cases.txt", 70); }

// record.py says how they are made, and what is left out.
TEST(LayoutExamples, AreWhatCuTesCodeGives) { check_lines("recorded.txt", 1400); }

}  // namespace
}  // namespace heddle
