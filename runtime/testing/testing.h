// Filetests inside GoogleTest: one test for each *.ir file of a folder and its subfolders.
//
//   #include <heddle/testing.h>
//   HEDDLE_FILETESTS(MyKernels, "path/to/filetests");
//
// in a program that links heddle::testing and GTest::gtest_main makes MyKernels.<name> of <name>.ir.
// runtime/testing/filetest.h says what stands in such files; HEDDLE_BLESS=1 in the environment rewrites
// their goldens.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "heddle/runtime/testing/filetest.h"

namespace heddle::filetest {

// A filetest as a test of GoogleTest.
class FiletestBody : public ::testing::Test {
 public:
  // Of a file.
  explicit FiletestBody(std::string path) : path_(std::move(path)) {}
  // Runs it; every failure is one of the test.
  void TestBody() override {
    for (const std::string& failure : run_filetest(path_, blessing())) ADD_FAILURE() << failure;
  }

 private:
  std::string path_;
};

// Registers a test for each file of a folder and its subfolders, and returns how many. A folder
// without files makes a test that fails.
inline int register_filetests(const char* suite, const std::string& folder) {
  std::vector<std::string> paths = find_filetests(folder);
  if (paths.empty()) paths.push_back(folder + "/*.ir");
  for (const std::string& path : paths) {
    ::testing::RegisterTest(suite, filetest_name(folder, path).c_str(), nullptr, nullptr,
                            path.c_str(), 1,
                            [path]() -> ::testing::Test* { return new FiletestBody(path); });
  }
  return static_cast<int>(paths.size());
}

}  // namespace heddle::filetest

// At namespace scope, once for each suite.
#define HEDDLE_FILETESTS(suite, folder)             \
  [[maybe_unused]] static const int suite##_files = \
      ::heddle::filetest::register_filetests(#suite, folder)
