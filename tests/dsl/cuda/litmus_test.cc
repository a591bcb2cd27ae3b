// The memory model from the language to the machine: litmus tests become the PTX that they stand
// for, access by access, and no outcome that the model forbids is seen. The program litmus
// (tools/bench) runs them as often as it takes to mean something.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/tools/bench/litmus_run.h"
#include "heddle/tools/bench/litmus_tests.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using tools::LitmusStep;
using tools::LitmusTest;

constexpr std::pair<MemoryScope, const char*> kScopes[] = {
    {MemoryScope::block, "cta"}, {MemoryScope::cluster, "cluster"}, {MemoryScope::gpu, "gpu"}};

// Elements between locations, and where the registers' values go.
constexpr int kApart = 64, kResults = 4096;

// The threads' programs alone, a block each, all at fixed places of one tensor: then the PTX says
// which place an access is to.
std::string ptx_of_threads(const std::vector<const char*>& threads, MemoryScope scope) {
  const auto kernel = local_kernel("threads", [&](Tensor<int32_t, 1> memory) {
    int results = kResults;
    for (size_t i = 0; i < threads.size(); ++i) {
      If(block_idx.x == static_cast<int>(i), [&] {
        for (const Int& value : tools::record_thread(threads[i], scope, memory,
                                                     [](int l) { return Int(l * kApart); })) {
          memory(results++) = value;
        }
      });
    }
  });
  const auto compiled =
      kernel.compile(Signature{tensor({2 * kResults})},
                     CompileOptions{.block = {32, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  return compiled.ok() ? compiled->ptx() : std::string(compiled.status().message());
}

std::string ptx_of_harness(const LitmusTest& test, MemoryScope scope) {
  const tools::LitmusRunner runner(test, scope);
  const auto kernel = runner.play_kernel();
  CompileOptions options{.target = "sm_90a", .stage = Stage::kPtx};
  options.block = {static_cast<int32_t>(runner.block_threads()), 1, 1};
  if (scope == MemoryScope::cluster) {
    options.cluster = {static_cast<int32_t>(test.threads.size()), 1, 1};
  }
  const auto compiled =
      kernel.compile(Signature{tensor({kAny}), tensor({kAny}), tensor({kAny}), scalar(), scalar(),
                               scalar(), scalar(), scalar(), scalar(), scalar()},
                     options);
  return compiled.ok() ? compiled->ptx() : std::string(compiled.status().message());
}

// "st.global.b32 [%rd1+256], 1;" gives "st y 1"; with `places` off, "st".
std::string normal_access(absl::string_view line, bool places) {
  const std::pair<absl::string_view, absl::string_view> words =
      absl::StrSplit(absl::StripSuffix(line, ";"), absl::MaxSplits(' ', 1));
  std::string text(words.first.substr(0, words.first.find(".global")));
  if (!places || absl::StartsWith(text, "fence")) return text;
  const size_t open = words.second.find('['), close = words.second.find(']');
  const std::pair<absl::string_view, absl::string_view> address =
      absl::StrSplit(words.second.substr(open + 1, close - open - 1), absl::MaxSplits('+', 1));
  const int element = std::atoi(std::string(address.second).c_str()) / 4;
  if (element >= kResults) return absl::StrCat(text, " result");
  absl::StrAppend(&text, " ", std::string(1, static_cast<char>('x' + element / kApart)));
  // What a store writes, where it is a number.
  const absl::string_view value = words.second.substr(words.second.rfind(' ') + 1);
  if (absl::StartsWith(text, "st") && value[0] != '%') absl::StrAppend(&text, " ", value);
  return text;
}

// The accesses to global memory and the fences, in the order of the text.
std::vector<std::string> accesses(const std::string& ptx, bool places) {
  std::vector<std::string> found;
  for (absl::string_view line : absl::StrSplit(ptx, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    const bool access = absl::StrContains(line, ".global.") && !absl::StartsWith(line, "cvta.");
    if (access || absl::StartsWith(line, "fence.")) {
      found.push_back(normal_access(line, places));
    }
  }
  return found;
}

// What the threads' programs stand for in PTX.
std::vector<std::string> meant(const std::vector<const char*>& threads, const char* scope,
                               bool places) {
  std::vector<std::string> list;
  for (const char* thread : threads) {
    for (const LitmusStep& step : tools::litmus_steps(thread)) {
      std::string text = step.kind;
      if (step.order != "weak") absl::StrAppend(&text, ".", step.order, ".", scope);
      if (places && step.kind != "fence") {
        absl::StrAppend(&text, " ", std::string(1, static_cast<char>('x' + step.location)));
        if (step.kind == "st" && step.value != "r+1") absl::StrAppend(&text, " ", step.value);
      }
      list.push_back(text);
    }
    list.insert(list.end(), static_cast<size_t>(tools::registers_of(thread)),
                places ? "st result" : "st");
  }
  return list;
}

TEST(LitmusTest, EachAccessBecomesItsInstructionInItsPlace) {
  for (const LitmusTest& test : tools::litmus_tests()) {
    for (const auto& scope : kScopes) {
      SCOPED_TRACE(absl::StrCat(test.name, " ", test.orders, " ", scope.second));
      const std::string ptx = ptx_of_threads(test.threads, scope.first);
      EXPECT_EQ(accesses(ptx, true), meant(test.threads, scope.second, true)) << ptx;
    }
  }
}

// The same in the kernel that runs them, with addresses from parameters, in a loop.
TEST(LitmusTest, EachAccessKeepsItsPlaceInTheRunningKernel) {
  for (const LitmusTest& test : tools::litmus_tests()) {
    for (const auto& scope : kScopes) {
      SCOPED_TRACE(absl::StrCat(test.name, " ", test.orders, " ", scope.second));
      const std::string ptx = ptx_of_harness(test, scope.first);
      const std::vector<std::string> found = accesses(ptx, false);
      std::vector<std::string> expected;
      if (scope.first == MemoryScope::gpu) expected = {"atom.relaxed.gpu", "ld.relaxed.gpu"};
      for (const std::string& access : meant(test.threads, scope.second, false)) {
        expected.push_back(access);
      }
      EXPECT_EQ(found, expected) << ptx;
    }
  }
}

// Written out, so that the two above are not compared with a mistake of their own.
TEST(LitmusTest, TheTextOfSome) {
  EXPECT_THAT(accesses(ptx_of_threads({"st.weak x 1; st.release y 1", "ld.acquire y; ld.weak x"},
                                      MemoryScope::gpu),
                       true),
              ElementsAre("st x 1", "st.release.gpu y 1", "ld.acquire.gpu y", "ld x", "st result",
                          "st result"));
  EXPECT_THAT(
      accesses(ptx_of_threads({"st.relaxed x 1; fence.sc; ld.relaxed y"}, MemoryScope::block),
               true),
      ElementsAre("st.relaxed.cta x 1", "fence.sc.cta", "ld.relaxed.cta y", "st result"));
}

// What tempts an optimiser: the same value stored again, a store that a later one hides, a value
// that was read or stored before.
TEST(LitmusTest, NothingIsMergedAcrossAnOrder) {
  const auto texts = [](const char* thread) {
    return accesses(ptx_of_threads({thread}, MemoryScope::gpu), true);
  };
  for (const char* thread :
       {"st.weak x 1; st.release y 1; st.weak x 1", "st.weak x 1; st.release y 1; st.weak x 2",
        "ld.weak x; ld.acquire y; ld.weak x; fence.acq_rel; ld.weak x",
        "st.weak x 1; ld.acquire y; ld.weak x", "ld.relaxed x; ld.relaxed x",
        "st.relaxed x 1; st.relaxed x 1; ld.relaxed x",
        "st.weak x 1; fence.sc; fence.acq_rel; fence.sc; st.weak x 2",
        "ld.weak x; atom.acquire y 0; ld.weak x; atom.release y 1; st.weak x 1"}) {
    EXPECT_EQ(texts(thread), meant({thread}, "gpu", true)) << thread;
  }
}

TEST(LitmusTest, NoForbiddenOutcomeIsSeen) {
  const tools::LitmusShape shape = on_gpu() ? tools::LitmusShape{264, 8} : tools::LitmusShape{4, 2};
  for (const LitmusTest& test : tools::litmus_tests()) {
    for (const auto& scope : kScopes) {
      SCOPED_TRACE(absl::StrCat(test.name, " ", test.orders, " ", scope.second));
      const auto counts = tools::LitmusRunner(test, scope.first)
                              .run(test_device(), shape, on_gpu() ? 1 << 20 : 1000);
      ASSERT_THAT(counts, IsOk());
      int64_t total = 0;
      for (const auto& outcome : counts->outcomes) {
        EXPECT_FALSE(tools::is_forbidden(test, outcome.first)) << outcome.first;
        total += outcome.second;
      }
      EXPECT_EQ(total, counts->runs);
      EXPECT_GE(counts->runs, 1000);
    }
  }
}

// A test whose outcome is certain: registers and final values are counted where they belong.
TEST(LitmusTest, OutcomesAreCountedAsTheyAre) {
  const LitmusTest test = {
      "alone", "",        {"st.relaxed x 2; ld.relaxed x", "ld.weak z; st.weak y 1; st.weak z 3"},
      "xyz",   {"20213"}, nullptr};
  for (const auto& scope : kScopes) {
    const auto counts = tools::LitmusRunner(test, scope.first).run(test_device(), {4, 2}, 3000);
    ASSERT_THAT(counts, IsOk());
    EXPECT_THAT(counts->outcomes, ElementsAre(testing::Pair("20213", counts->runs)));
    EXPECT_TRUE(tools::is_forbidden(test, counts->outcomes.begin()->first));
  }
}

TEST(LitmusTest, Patterns) {
  EXPECT_TRUE(tools::matches("1.", "10"));
  EXPECT_TRUE(tools::matches("++", "12"));
  EXPECT_FALSE(tools::matches("++", "10"));
  EXPECT_FALSE(tools::matches("1.", "01"));
  EXPECT_FALSE(tools::matches("1", "10"));
}

}  // namespace
}  // namespace heddle
