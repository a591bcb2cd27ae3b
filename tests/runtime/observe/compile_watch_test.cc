// What watches see of a compilation, and what becomes of PTX that they edit.
#include "heddle/runtime/observe/compile_watch.h"

#include <cstdlib>
#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/observe/kernel_report.h"
#include "runtime/observe/observe_testing.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;

class CompileWatchTest : public testing::Test {
 protected:
  // Notes what it sees.
  std::shared_ptr<CompileWatch> noting(const std::string& who = "") {
    auto watch = std::make_shared<CompileWatch>();
    const auto note = [this, who](const char* what) { seen_.push_back(absl::StrCat(who, what)); };
    watch->on_trace = [=](const Compilation& c) {
      note(c.traced.op_count() > 0 && c.ptx.text.empty() ? "trace" : "too late");
    };
    watch->on_ir = [=](const Compilation& c) {
      note(!c.report.passes.empty() && c.ptx.text.empty() ? "ir" : "too late");
    };
    watch->on_ptx = [=](const Compilation& c, std::string& ptx) {
      note(ptx == c.ptx.text && c.assembly.cubin.empty() ? "ptx" : "too late");
    };
    watch->on_cubin = [=](const Compilation& c) {
      note(c.assembly.cubin.empty() ? "too early" : "cubin");
    };
    watch->on_mistakes = [=](const Compilation&, const ir::Diagnostics& mistakes) {
      note(mistakes[0].message.c_str());
    };
    return watch;
  }
  StatusOr<std::shared_ptr<const Compilation>> compile(const TextSource& source,
                                                       std::shared_ptr<const CompileWatch> watch) {
    return compile_source(source, {},
                          {.block = {256, 1, 1},
                           .target = "sm_90a",
                           .watch = std::move(watch),
                           .ptxas_path = ptxas_});
  }
  std::string runs() const {
    std::ifstream file(dir_.file("runs"));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  codegen::TempDir dir_;
  const std::string ptxas_ = fake_ptxas(dir_);
  std::vector<std::string> seen_;
};

TEST_F(CompileWatchTest, SeesEachStageOnce) {
  const auto watch = noting();
  const auto compilation = compile(store_source(), watch);
  ASSERT_TRUE(compilation.ok()) << compilation.status();
  EXPECT_THAT(seen_, ElementsAre("trace", "ir", "ptx", "cubin"));
  EXPECT_FALSE((*compilation)->ptx_edited);
  // Also where it is the process's as well.
  seen_.clear();
  const auto before = watch_compilations(watch);
  EXPECT_TRUE(compile(store_source(), watch).ok());
  EXPECT_EQ(watch_compilations(before), watch);
  EXPECT_EQ(seen_.size(), 4u);
}

TEST_F(CompileWatchTest, OfTheProcessSeesLaunchesThatCompile) {
  const auto before = watch_compilations(noting("all: "));
  ASSERT_TRUE(compile(store_source(), noting("one: ")).ok());
  EXPECT_THAT(seen_, ElementsAre("one: trace", "all: trace", "one: ir", "all: ir", "one: ptx",
                                 "all: ptx", "one: cubin", "all: cubin"));
  seen_.clear();
  // The interpreter needs IR alone, and a variant that is there is not compiled again.
  const TextSource source = store_source();
  const Device interp = Device::open("interp").value();
  const int64_t extents[] = {32}, strides[] = {1};
  const Argument arguments[] = {tensor_argument(4096, extents, strides, 1, 4)};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(KernelCache::of(source)
                    .find_or_compile(source, interp.backend(), {.grid = 1, .block = 256}, arguments)
                    .ok());
  }
  EXPECT_THAT(seen_, ElementsAre("all: trace", "all: ir"));
  EXPECT_NE(watch_compilations(before), nullptr);
  ASSERT_TRUE(compile(store_source(), nullptr).ok());
  EXPECT_EQ(seen_.size(), 2u);
}

TEST_F(CompileWatchTest, SeesMistakesAsData) {
  const TextSource source(
      "kernel @gemm(%y: view<f32, global, 1> [?] strides [1]) block(256, 1, 1) target(sm_90a) {\n"
      "  %t = thread_idx {axis = x} : i32\n  %one = const 1 : i32\n  %first = lt %t, %one : bool\n"
      "  if %first {\n    barrier loc(\"gemm.cc\":12)\n    yield\n  }\n  %e = const 1.0 : f32\n  "
      "store %y, %e, %t\n}\n");
  const auto watch = noting();
  std::vector<std::string> places;
  watch->on_mistakes = [&](const Compilation& c, const ir::Diagnostics& mistakes) {
    for (const ir::Diagnostic& d : mistakes) {
      places.push_back(absl::StrCat(c.name, " ", d.place.file, ":", d.place.line, ": ", d.message));
    }
  };
  EXPECT_FALSE(compile(source, watch).ok());
  EXPECT_THAT(places, ElementsAre(testing::StartsWith("gemm gemm.cc:12: ")));
  EXPECT_TRUE(seen_.empty());
}

// The disk's cache goes by the text that is assembled.
TEST_F(CompileWatchTest, EditsPtx) {
  setenv("HEDDLE_CACHE", "", 1);
  setenv("HEDDLE_CACHE_DIR", dir_.file("cache").c_str(), 1);
  const auto edit = std::make_shared<CompileWatch>();
  edit->on_ptx = [](const Compilation&, std::string& ptx) {
    ptx = absl::StrReplaceAll(ptx, {{"\n{\n", "\n{\n// edited\n"}});
  };
  const auto plain = compile(store_source(), nullptr);
  const auto edited = compile(store_source(), edit);
  const auto again = compile(store_source(), edit);
  const auto plain_again = compile(store_source(), nullptr);
  setenv("HEDDLE_CACHE", "off", 1);
  unsetenv("HEDDLE_CACHE_DIR");
  EXPECT_EQ(runs(), "run\nrun\n");
  ASSERT_TRUE(edited.ok()) << edited.status();
  EXPECT_TRUE((*edited)->ptx_edited && !(*edited)->assembly.from_cache);
  EXPECT_TRUE((*again)->assembly.from_cache && (*plain_again)->assembly.from_cache);
  EXPECT_FALSE((*plain)->ptx_edited || absl::StrContains((*plain)->ptx.text, "// edited"));
  EXPECT_TRUE(absl::StrContains((*edited)->ptx.text, "{\n// edited\n"));
  // What ptxas says of a line behind the edit is still about the same op.
  const KernelReport before = kernel_report(**plain), after = kernel_report(**edited);
  EXPECT_EQ(after.remarks[1].ptx_line, before.remarks[1].ptx_line + 1);
  EXPECT_EQ(after.remarks[1].place.line, 12);
  EXPECT_TRUE(after.ptx_edited && !before.ptx_edited);
}

TEST_F(CompileWatchTest, LinesThatAreEditedAreNobodys) {
  const auto edit = std::make_shared<CompileWatch>();
  edit->on_ptx = [](const Compilation&, std::string& ptx) {
    ptx = absl::StrReplaceAll(ptx, {{"st.global", "/* here */ st.global"}});
  };
  const auto edited = compile(store_source(), edit);
  ASSERT_TRUE(edited.ok()) << edited.status();
  EXPECT_EQ(kernel_report(**edited).remarks[1].place.file, "");
}

TEST_F(CompileWatchTest, WhatOneThrowsIsAnError) {
  const auto watch = std::make_shared<CompileWatch>();
  watch->on_ir = [](const Compilation&) { throw std::runtime_error("no room"); };
  const Status status = compile(store_source(), watch).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "kernel 'gemm' (gemm.cc:10): the watch's on_ir has thrown an exception, 'no room'");
}

}  // namespace
}  // namespace heddle::runtime
