// Broken pipelines: each mistake is reported in its class and at its line under some completion, before
// and after all passes, and a correct variation of the same place is silent under all.
#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "ir/interp/async_kernels.h"
#include "ir/interp/run_text.h"

namespace heddle::ir {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCompletions[] = {"early", "late", "seed:1", "seed:2", "seed:3"};
// The one line of a text that begins with `what`, blanks aside, or its `nth`; counted from 1.
int line_of(absl::string_view text, absl::string_view what, int nth = 1) {
  int line = 0;
  for (const absl::string_view one : absl::StrSplit(text, '\n')) {
    ++line;
    if (absl::StrContains(one, what) && --nth == 0) return line;
  }
  ADD_FAILURE() << "no line has " << what << " in\n" << text;
  return 0;
}

// The text with what is there once replaced.
std::string replaced(absl::string_view text, absl::string_view from, absl::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << "no " << from << " in\n" << text;
  EXPECT_EQ(text.find(from, at + 1), text.npos) << "several " << from;
  return absl::StrCat(text.substr(0, at), to, text.substr(at + from.size()));
}

struct Base {
  const char* text;
  std::vector<RunArgument> arguments;
  std::vector<uint64_t> expected;  // of the last argument
};

std::vector<RunArgument> numbers(std::vector<uint64_t> x, size_t results) {
  return {{0, std::move(x)}, memory(results)};
}

// f16 and f32 of small integers.
uint64_t half_of(int value) {
  constexpr uint64_t kHalves[] = {0, 0x3C00, 0x4000, 0x4200};
  return kHalves[value];
}
uint64_t float_of(int value) {
  const auto number = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}
int a_of(int row, int k) { return (row * 3 + k) % 4; }
int b_of(int column, int k) { return (column + 2 * k) % 3; }

Base pipeline() {
  Base base{kPipeline, {}, {}};
  std::vector<uint64_t> a, b(512);
  for (int row = 0; row < 256; ++row) {
    for (int k = 0; k < 64; ++k) a.push_back(half_of(a_of(row, k)));
  }
  for (int k = 0; k < 64; ++k) {
    // Core matrices of 8 rows of 8 halves, one behind the other.
    for (int c = 0; c < 8; ++c)
      b[static_cast<size_t>(k / 8 * 64 + c * 8 + k % 8)] = half_of(b_of(c, k));
  }
  for (int row = 0; row < 256; ++row) {
    for (int c = 0; c < 8; ++c) {
      int sum = 0;
      for (int k = 0; k < 64; ++k) sum += a_of(row, k) * b_of(c, k);
      base.expected.push_back(float_of(sum));
    }
  }
  base.arguments = {{0, a}, {0, b}, memory(2048)};
  return base;
}

std::vector<uint64_t> counting(size_t count) {
  std::vector<uint64_t> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = 5 * i + 1;
  return result;
}

Base exchange() {
  Base base{kExchange, numbers(counting(64), 64), {}};
  // The other block gets a block's numbers backwards, and sends them back.
  for (size_t i = 0; i < 64; ++i) base.expected.push_back(5 * (i / 32 * 32 + 31 - i % 32) + 1);
  return base;
}
Base copies() {
  Base base{kCopies, numbers(counting(512), 512), {}};
  for (size_t i = 0; i < 512; ++i) base.expected.push_back(5 * (i / 64 * 64 + 63 - i % 64) + 1);
  return base;
}
Base refill() {
  Base base{kRefill, numbers(counting(128), 128), {}};
  for (size_t i = 0; i < 128; ++i) {
    base.expected.push_back(2 * (5 * (i / 64 * 64 + 63 - i % 64) + 1));
  }
  return base;
}

Kernel prepared(absl::string_view text, bool passes) {
  StatusOr<Kernel> kernel = parse(text, "async.ir", {.text_as_source = true});
  EXPECT_TRUE(kernel.ok()) << kernel.status() << text;
  if (!kernel.ok()) return Kernel("unreadable");
  if (passes) run_verified(*kernel, kDefaultPipeline);
  return *std::move(kernel);
}

RunResult run(const Kernel& kernel, const Base& base, const char* completion) {
  return run_kernel(
      kernel, base.arguments,
      {.completion = interp::parse_completion(completion).value(), .max_instructions = 10'000'000});
}

void expect_silent(absl::string_view text, const Base& base) {
  for (const bool passes : {false, true}) {
    const Kernel kernel = prepared(text, passes);
    for (const char* const completion : kCompletions) {
      const RunResult result = run(kernel, base, completion);
      EXPECT_EQ(result.error, "") << completion << (passes ? " after passes\n" : "\n") << text;
      EXPECT_EQ(result.memory.back(), base.expected) << completion;
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Two replacements at one place: a mistake, and something that is none.
struct Mutation {
  const char* name;
  Base (*base)();
  const char* from;
  const char* wrong;
  const char* right;
  const char* report;  // what is said of the mistake
  const char* at;      // the line that it is said of, in the wrong text
};

std::ostream& operator<<(std::ostream& out, const Mutation& mutation) {
  return out << mutation.name;
}

class AsyncMutation : public ::testing::TestWithParam<Mutation> {};

TEST_P(AsyncMutation, IsReportedWhereItsTwinIsSilent) {
  const Mutation& mutation = GetParam();
  const Base base = mutation.base();
  expect_silent(replaced(base.text, mutation.from, mutation.right), base);
  const std::string wrong = replaced(base.text, mutation.from, mutation.wrong);
  const std::string place = absl::StrCat(":", line_of(wrong, mutation.at), ": ");
  for (const bool passes : {false, true}) {
    const Kernel kernel = prepared(wrong, passes);
    std::string all;
    bool found = false;
    for (const char* const completion : kCompletions) {
      const std::string error = run(kernel, base, completion).error;
      absl::StrAppend(&all, completion, ": ", error, "\n");
      // Of a deadlock, who waits for what is said in notes.
      for (const absl::string_view line : absl::StrSplit(error, '\n')) {
        found |= absl::StrContains(line, mutation.report) && absl::StrContains(line, place);
      }
    }
    EXPECT_TRUE(found) << (passes ? "after passes\n" : "as written\n") << "expected at" << place
                       << mutation.report << "\n"
                       << all;
  }
}

#include "ir/interp/async_mutations.def"

INSTANTIATE_TEST_SUITE_P(All, AsyncMutation, ::testing::ValuesIn(kMutations),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Async, KernelsAreSilent) {
  for (const Base& base : {pipeline(), exchange(), copies(), refill()}) {
    expect_silent(base.text, base);
  }
}

}  // namespace
}  // namespace heddle::ir
