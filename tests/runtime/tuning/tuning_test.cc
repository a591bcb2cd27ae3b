// Tuned choices: their files, and who uses them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/tuning/tunable.h"
#include "support/matchers.h"

namespace heddle::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An operation on n elements, by blocks of one, two, … elements; a model takes the largest.
struct Problem {
  int n;
  std::string to_string() const { return absl::StrCat(n, " elements"); }
};
struct Config {
  int width = 0;
  std::string to_string() const { return absl::StrCat("by ", width); }
};
std::vector<Config> candidates(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> all;
  for (int width = 1; width <= problem.n && width <= device.sm_count; width *= 2) {
    all.push_back({width});
  }
  return all;
}
Config model(const Problem& problem, const DeviceInfo& device) {
  return candidates(problem, device).back();
}

class TuningTest : public testing::Test {
 protected:
  TuningTest() {
    std::filesystem::remove_all(folder);
    setenv("HEDDLE_CACHE_DIR", folder.c_str(), 1);
    // A process reads a file once: each test has a device of its own.
    device.name = "GPU/" + name();
  }
  ~TuningTest() override {
    unsetenv("HEDDLE_CACHE_DIR");
    std::filesystem::remove_all(folder);
  }
  int width(int n) const { return scan.choose({n}, device).width; }
  std::string file() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) return entry.path().string();
    }
    return "";
  }
  Tuning tuning(const std::string& problem, const std::string& choice) const {
    return {device.name, "scan", {{problem, choice, "by 8", 1.5, 2.5, "2026-01-02"}}};
  }

  static std::string name() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  const std::string folder = testing::TempDir() + "/heddle_tuning_" + name();
  const Tunable<Problem, Config> scan{"scan", candidates, model};
  DeviceInfo device;
};

TEST_F(TuningTest, WithoutAFileTheModelChooses) {
  EXPECT_EQ(width(8), 8);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(TuningTest, AScopeSaysWhatWasAskedForAndChooses) {
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 1")), IsOk());
  TuningScope scope;
  EXPECT_EQ(width(8), 8) << "no file counts in a scope";
  EXPECT_EQ(width(8), 8);
  EXPECT_EQ(width(2), 2);
  ASSERT_EQ(scope.asked().size(), 2u);
  const TuningProblem problem = scope.asked()[0];
  EXPECT_EQ(problem.operation, "scan");
  EXPECT_EQ(problem.problem, "8 elements");
  EXPECT_THAT(problem.candidates, ElementsAre("by 1", "by 2", "by 4", "by 8"));
  EXPECT_EQ(problem.model, "by 8");
  scope.use(problem, "by 2");
  EXPECT_EQ(width(8), 2);
  EXPECT_EQ(width(2), 2);
  scope.use(problem, "by 4");
  EXPECT_EQ(width(8), 4);
  {
    TuningScope inner;
    EXPECT_EQ(width(8), 8) << "the innermost scope counts";
  }
  EXPECT_EQ(width(8), 4);
  std::thread([&] { EXPECT_EQ(width(8), 1) << "a scope is its thread's"; }).join();
}

TEST_F(TuningTest, KeptChoicesAreUsedOnDevicesOfTheNameAlone) {
  EXPECT_EQ(width(8), 8);
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 2")), IsOk());
  EXPECT_EQ(width(8), 2);
  EXPECT_EQ(width(16), 16);
  DeviceInfo other = device;
  other.name += " 2";
  EXPECT_EQ(scan.choose({8}, other).width, 8);
  // Of the same name, but smaller: what it cannot run is not chosen.
  other = device;
  other.sm_count = 1;
  EXPECT_EQ(scan.choose({8}, other).width, 1);
  EXPECT_EQ(width(8), 2);
}

TEST_F(TuningTest, TheLogSaysWhatWasChosen) {
  std::vector<std::string> lines;
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 2")), IsOk());
  set_log(LogLevel::kDebug, [&](LogLevel level, absl::string_view line) {
    lines.push_back(absl::StrCat(name_of(level), ": ", line));
  });
  EXPECT_EQ(width(8), 2);
  EXPECT_EQ(width(4), 4);
  set_log(LogLevel::kOff);
  EXPECT_THAT(lines, ElementsAre(absl::StrCat("info: scan on ", device.name,
                                              ": tuned choices for 1 problem, from ", file()),
                                 absl::StrCat("debug: scan of 8 elements on ", device.name,
                                              ": by 2, as tuned"),
                                 absl::StrCat("debug: scan of 4 elements on ", device.name,
                                              ": by 4, as the model chooses")));
}

TEST_F(TuningTest, ChoicesOfOtherProblemsStayAndTheSameAreReplaced) {
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 2")), IsOk());
  ASSERT_THAT(keep_tuning(tuning("16 elements", "by 4")), IsOk());
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 1")), IsOk());
  EXPECT_EQ(width(8), 1);
  EXPECT_EQ(width(16), 4);
  std::vector<std::string> warnings;
  const StatusOr<std::vector<Tuning>> all = read_all_tunings(&warnings);
  ASSERT_THAT(all.status(), IsOk());
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ((*all)[0].device, device.name);
  ASSERT_EQ((*all)[0].choices.size(), 2u);
  const TunedChoice& choice = (*all)[0].choices[0];
  EXPECT_EQ(choice.problem, "8 elements");
  EXPECT_EQ(choice.choice, "by 1");
  EXPECT_EQ(choice.model, "by 8");
  EXPECT_EQ(choice.us, 1.5);
  EXPECT_EQ(choice.model_us, 2.5);
  EXPECT_EQ(choice.date, "2026-01-02");
  // Nothing else is left behind.
  const auto entries =
      std::filesystem::directory_iterator(std::filesystem::path(file()).parent_path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(TuningTest, AChoiceThatIsNoCandidateAnyMoreIsTheModels) {
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 3")), IsOk());
  EXPECT_EQ(width(8), 8);
}

TEST_F(TuningTest, BadFilesAreIgnoredWithAWarning) {
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 2")), IsOk());
  std::ofstream(file()) << "{\"version\": 1, \"tunings\": [{\"device\": 3}]}";
  testing::internal::CaptureStderr();
  EXPECT_EQ(width(8), 8);
  EXPECT_EQ(width(8), 8);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("heddle: tuned choices are ignored: "));
  EXPECT_THAT(warning, HasSubstr("scan.json: this is no file of tuned choices"));
  EXPECT_EQ(warning.find("are ignored"), warning.rfind("are ignored")) << "once";
  std::vector<std::string> warnings;
  EXPECT_THAT(*read_all_tunings(&warnings), IsEmpty());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("scan.json: this is no file of tuned choices")));
  // And replaced.
  ASSERT_THAT(keep_tuning(tuning("8 elements", "by 4")), IsOk());
  EXPECT_EQ(width(8), 4);
}

TEST_F(TuningTest, SaysWhatIsWrongWithATextOrAFolder) {
  for (const char* const text : {"", "[]", "{}", "{\"version\": 1}"}) {
    EXPECT_THAT(tunings_from_json(text).status(),
                Fails(StatusCode::kInvalidArgument, "this is no file of tuned choices"));
  }
  EXPECT_THAT(tunings_from_json("{\"version\": 2, \"tunings\": []}").status(),
              Fails(StatusCode::kInvalidArgument,
                    "it has the version 2 of files of tuned choices, and this Heddle reads 1"));
  EXPECT_THAT(read_tunings("/nowhere/x.json").status(),
              Fails(StatusCode::kNotFound, "/nowhere/x.json: there is no such file"));
  setenv("HEDDLE_CACHE_DIR", "/proc/nowhere", 1);
  EXPECT_THAT(keep_tuning(tuning("8 elements", "by 2")),
              Fails(StatusCode::kFailedPrecondition, "cannot be written"));
}

TEST_F(TuningTest, TheFolderIsTheUsersCache) {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  EXPECT_EQ(*tuning_folder(), folder + "/tuned");
  unsetenv("HEDDLE_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(*tuning_folder(), "/xdg/heddle/tuned");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/of", 1);
  EXPECT_EQ(*tuning_folder(), "/home/of/.cache/heddle/tuned");
  unsetenv("HOME");
  EXPECT_THAT(tuning_folder().status(),
              Fails(StatusCode::kFailedPrecondition, "set HEDDLE_CACHE_DIR"));
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace heddle::runtime
