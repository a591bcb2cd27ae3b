// Runs the built heddle command, as a user would.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/tools/elements.h"
#include "heddle/tools/npy.h"

namespace heddle::tools {

struct Outcome {
  int exit_code = -1;  // -1: it did not end by itself
  std::string out;
  std::string err;
};

using Arguments = std::vector<std::string>;

// What this process finds, the programs that it runs find too, unless a test says otherwise: of two
// values of a variable the first one counts. They also run under the same options of a sanitizer.
inline std::vector<std::string> inherited_variables() {
  // They keep nothing for others.
  std::vector<std::string> variables = {"HEDDLE_CACHE=off"};
  for (const char* const name : {"ASAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* const value = std::getenv(name)) {
      variables.push_back(absl::StrCat(name, "=", value));
    }
  }
  for (const codegen::Tool tool :
       {codegen::Tool::kPtxas, codegen::Tool::kNvdisasm, codegen::Tool::kCuobjdump}) {
    const auto found = codegen::find_tool(tool);
    if (!found.ok()) continue;
    variables.push_back(absl::StrCat(codegen::tool_variable(tool), "=", found->path));
  }
  return variables;
}

// `environment` comes on top of what run_command gives.
inline Outcome run_program(const std::string& program, const Arguments& arguments,
                           const std::vector<std::string>& environment = {},
                           absl::string_view input = {}) {
  codegen::Command command;
  command.program = program;
  command.arguments = arguments;
  command.input = input;
  command.max_captured = size_t{1} << 26;
  for (const auto& variables : {environment, inherited_variables()}) {
    command.environment.insert(command.environment.end(), variables.begin(), variables.end());
  }
  StatusOr<codegen::Finished> done = codegen::run_command(command);
  if (!done.ok()) {
    ADD_FAILURE() << done.status();
    return {};
  }
  EXPECT_EQ(done->signal, 0) << program << " was killed; it printed " << done->standard_error;
  return {done->signal == 0 ? done->exit_code : -1, std::move(done->standard_output),
          std::move(done->standard_error)};
}

inline Outcome heddle_command(const Arguments& arguments,
                              const std::vector<std::string>& environment = {},
                              absl::string_view input = {}) {
  return run_program(HEDDLE_COMMAND, arguments, environment, input);
}

// One line on stderr, this exit code.
inline void expect_one_line(const Outcome& outcome, int exit_code,
                            const ::testing::Matcher<const std::string&>& message) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  ASSERT_FALSE(outcome.err.empty());
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  const std::string prefix = "heddle: ";
  ASSERT_EQ(outcome.err.substr(0, prefix.size()), prefix);
  EXPECT_THAT(outcome.err.substr(prefix.size(), outcome.err.size() - prefix.size() - 1), message);
}
inline void expect_misused(const Outcome& outcome,
                           const ::testing::Matcher<const std::string&>& message) {
  expect_one_line(outcome, 2, message);
}

inline std::string slurp(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Writes a float tensor whose elements are `value(i)`, rounded.
template <class Value>
void make_npy(const std::string& path, ir::Scalar dtype, std::vector<int64_t> extents,
              Value&& value) {
  StatusOr<HostArray> array = HostArray::allocate({dtype, std::move(extents)});
  ASSERT_TRUE(array.ok()) << array.status();
  std::vector<double> values(array->byte_count / static_cast<size_t>(ir::bytes_of(dtype)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value(i);
  from_doubles(dtype, values, array->bytes());
  ASSERT_TRUE(write_npy(path, *array).ok());
}

inline std::vector<double> read_doubles(const std::string& path) {
  const StatusOr<HostArray> array = read_npy(path);
  if (!array.ok()) {
    ADD_FAILURE() << array.status();
    return {};
  }
  return to_doubles(array->shape.dtype, array->bytes());
}

}  // namespace heddle::tools
