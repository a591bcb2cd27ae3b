// Runs of ptxas that are kept on disk: what is taken from there, and what is not.
#include "heddle/codegen/toolchain/remembered_run.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/ptxas.h"

namespace heddle::codegen {
namespace {

constexpr char kPtx[] = "first line\n\tsecond line;\n";

// An assembler that writes a line for each of its runs.
class RememberedRuns : public testing::Test {
 protected:
  RememberedRuns() {
    options_.arch = "sm_90a";
    options_.entries = {"k"};
    options_.ptxas_path = temp_.file("ptxas");
    write_file(temp_.file("good.cubin"), make_cubin(90, {"k"}));
    install();
    cache_ = *DiskCache::open(temp_.file("kernels"));
    options_.cache = cache_.get();
  }

  void install(absl::string_view version = "13.0.88", absl::string_view more = "") {
    write_fake_ptxas(
        options_.ptxas_path,
        absl::StrCat("echo run >> ", temp_.file("runs"),
                     "\necho \"ptxas info    : Compiling entry function 'k' for 'sm_90a'\" >&2\n"
                     "echo 'ptxas info    : Used 40 registers, used 1 barriers' >&2\n"
                     "echo 'ptxas warning : beware' >&2\n",
                     more, "cat ", temp_.file("good.cubin"), " > \"$out\""),
        version);
  }
  int runs() const {
    std::ifstream file(temp_.file("runs"));
    std::string line;
    int count = 0;
    while (std::getline(file, line)) ++count;
    return count;
  }
  Assembly run(absl::string_view ptx = kPtx) {
    StatusOr<Assembly> assembly = assemble(ptx, options_, &said_);
    EXPECT_TRUE(assembly.ok()) << assembly.status();
    return assembly.ok() ? *std::move(assembly) : Assembly();
  }

  TempDir temp_;
  std::shared_ptr<DiskCache> cache_;
  AssembleOptions options_;
  std::vector<Diagnostic> said_;
};

TEST_F(RememberedRuns, GiveWhatTheRunGave) {
  const Assembly made = run();
  const std::vector<Diagnostic> said = said_;
  const Assembly known = run();
  EXPECT_EQ(runs(), 1);
  EXPECT_FALSE(made.from_cache);
  EXPECT_TRUE(known.from_cache);
  EXPECT_EQ(known.cubin, made.cubin);
  EXPECT_EQ(known.entries, made.entries);
  EXPECT_EQ(known.entries.at(0).registers, 40);
  EXPECT_EQ(known.diagnostics, made.diagnostics);
  EXPECT_EQ(said_, said);
  EXPECT_EQ(known.ptxas_version, made.ptxas_version);
  EXPECT_EQ(known.wall_time.count(), 0);
  const StatusOr<std::vector<DiskCache::Entry>> entries = cache_->entries();
  EXPECT_TRUE(std::any_of(entries->begin(), entries->end(), [](const DiskCache::Entry& entry) {
    return entry.label == "k, sm_90a, ptxas 13.0.88";
  }));
}

TEST_F(RememberedRuns, AreToldApartByAllThatTheyAreGiven) {
  const std::vector<std::pair<const char*, std::function<void()>>> changes = {
      {"nothing", [] {}},
      {"opt_level", [&] { options_.opt_level = 1; }},
      {"line_info", [&] { options_.line_info = false; }},
      {"max_registers", [&] { options_.max_registers = 64; }},
      {"extra_flags", [&] { options_.extra_flags = {"--fmad=false"}; }},
      {"arch", [&] { options_.arch = "sm_90"; }},
      {"another version", [&] { install("13.0.100"); }},
      {"another file of the same version", [&] { install("13.0.100", "# longer\n"); }}};
  int expected = 0;
  for (const auto& [what, change] : changes) {
    change();
    run();
    EXPECT_EQ(runs(), ++expected) << what;
    run();
    EXPECT_EQ(runs(), expected) << what << ", a second time";
  }
  for (const char* ptx : {"first line\n\tsecond line;", "first line\n\tsecond line;\n\n", ""}) {
    run(ptx);
    EXPECT_EQ(runs(), ++expected) << ptx;
  }
}

// The same file elsewhere gives the same.
TEST_F(RememberedRuns, DoNotDependOnWhereThePtxasLies) {
  run();
  const std::string other = temp_.file("other_ptxas");
  std::filesystem::copy_file(options_.ptxas_path, other);
  std::filesystem::last_write_time(other, std::filesystem::last_write_time(options_.ptxas_path));
  options_.ptxas_path = other;
  EXPECT_TRUE(run().from_cache);
  EXPECT_EQ(runs(), 1);
}

TEST_F(RememberedRuns, AreMadeAnewWhereThatIsAsked) {
  run();
  options_.renew = true;
  EXPECT_FALSE(run().from_cache);
  EXPECT_EQ(runs(), 2);
  options_.renew = false;
  EXPECT_TRUE(run().from_cache);
  options_.cache = nullptr;
  EXPECT_FALSE(run().from_cache);
  EXPECT_EQ(runs(), 3);
}

TEST_F(RememberedRuns, FailuresAreNotKept) {
  install("13.0.88", "echo 'ptxas fatal   : no' >&2; exit 255\n");
  EXPECT_FALSE(assemble(kPtx, options_).ok());
  EXPECT_FALSE(assemble(kPtx, options_).ok());
  EXPECT_EQ(runs(), 2);
  EXPECT_EQ(cache_->counts().stored, 0);
}

// What is kept is checked as what comes from ptxas is; what does not do is replaced.
TEST_F(RememberedRuns, WhatDoesNotFitIsMadeAgain) {
  run();
  write_file(temp_.file("good.cubin"), make_cubin(90, {"k", "other"}));
  options_.entries = {"k", "other"};
  EXPECT_FALSE(run().from_cache);
  EXPECT_EQ(runs(), 2);
  EXPECT_TRUE(run().from_cache);
}

TEST_F(RememberedRuns, AToolIsAskedForItsVersionOnce) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const std::string tool = temp_.file("copy/ptxas");
  std::filesystem::create_directory(temp_.file("copy"));
  std::filesystem::copy_file(std::filesystem::canonical(find_tool(Tool::kPtxas)->path), tool);
  const auto version = [&] {
    return *read_tool_version(Tool::kPtxas, tool, std::chrono::seconds(10), cache_.get());
  };
  const ToolVersion first = version();
  EXPECT_EQ(cache_->counts().stored, 1);
  EXPECT_EQ(version(), first);
  EXPECT_EQ(cache_->counts().stored, 1);
  EXPECT_EQ(cache_->counts().hits, 1);
  std::filesystem::last_write_time(tool,
                                   std::filesystem::last_write_time(tool) - std::chrono::hours(1));
  EXPECT_EQ(version(), first);
  EXPECT_EQ(cache_->counts().stored, 2) << "it may be another file";
}

// A script stays as it is when what it starts is replaced.
TEST_F(RememberedRuns, AScriptIsAskedEachTime) {
  const std::string script = temp_.file("wrapper");
  write_script(script, absl::StrCat("exec ", options_.ptxas_path, " \"$@\""));
  const auto version = [&] {
    return read_tool_version(Tool::kPtxas, script, std::chrono::seconds(10), cache_.get())
        ->to_string();
  };
  EXPECT_EQ(version(), "13.0.88");
  install("13.1.99");
  EXPECT_EQ(version(), "13.1.99");
  EXPECT_EQ(cache_->counts().stored, 0);
}

}  // namespace
}  // namespace heddle::codegen
