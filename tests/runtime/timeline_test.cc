// Ranges in kernels: what is recorded, what becomes of it, and what a kernel pays.
#include "heddle/runtime/timeline.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/cuda/timeline.h"
#include "heddle/ir/launch/timeline_events.h"
#include "heddle/runtime/launch.h"
#include "nlohmann/json.hpp"
#include "support/test_device.h"

namespace heddle::runtime {
namespace {

using Layout = ir::TimelineLayout;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TimelineTest : public testing::Test {
 protected:
  // What a kernel of one parameter records.
  template <class Kernel>
  TimelineRecording record(const Kernel& kernel, const LaunchShape& shape,
                           const TimelineSize& size) {
    TimelineBuffer buffer = TimelineBuffer::allocate(stream_, size).value();
    const Status status = kernel.launch(stream_, shape, buffer.events());
    EXPECT_TRUE(status.ok()) << status;
    // These kernels end before a GPU's timer advances.
    return buffer.read(stream_, {.clock_ghz = on_gpu() ? 2.0 : 0.0}).value();
  }

  const Stream stream_ = test_device().create_stream().value();
};

// "outer", "  inner 3": names by depth, with arguments.
std::vector<std::string> outline(const TimelineRecording& recording, int64_t warp) {
  std::vector<std::string> lines;
  for (const TimelineSpan& span : recording.spans) {
    if (span.warp != warp) continue;
    std::string line = std::string(2 * static_cast<size_t>(span.depth), ' ') + span.name;
    if (span.argument) line += " " + std::to_string(*span.argument);
    if (span.mark) line += " !";
    if (!span.has_end) line += " ...";
    lines.push_back(line);
  }
  return lines;
}

TEST_F(TimelineTest, RecordsRangesOfEachWarp) {
  const auto kernel = define_kernel("nests(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    const TimelineRange outer = timeline.range("outer");
    for (Int i : range(2)) {
      const TimelineRange inner = timeline.range("inner", 10 * block_idx.y + i - 1);
      If(warp_id() == 1, [&] { timeline.mark("second warp", warp_id()); });
    }
  });
  const TimelineRecording recording =
      record(kernel, {.grid = {1, 2}, .block = 40}, {.warps = 4, .events = 16});
  EXPECT_THAT(recording.problems, IsEmpty());
  ASSERT_EQ(recording.warps.size(), 4u);
  EXPECT_EQ(recording.warps[2].describe(), "block (0, 1, 0) warp 0");
  EXPECT_EQ(recording.warps[3].describe(), "block (0, 1, 0) warp 1");
  EXPECT_THAT(outline(recording, 0), ElementsAre("outer", "  inner -1", "  inner 0"));
  EXPECT_THAT(outline(recording, 3), ElementsAre("outer", "  inner 9", "    second warp 1 !",
                                                 "  inner 10", "    second warp 1 !"));
  for (size_t i = 0; i < recording.spans.size(); ++i) {
    const TimelineSpan& span = recording.spans[i];
    const TimelineWarp& warp = recording.warps[static_cast<size_t>(span.warp)];
    EXPECT_LE(warp.begin_ns, span.begin_ns);
    EXPECT_LE(span.end_ns, warp.end_ns.value());
    if (span.depth == 0) continue;
    const TimelineSpan& before = recording.spans[i - 1];
    if (before.depth < span.depth) {
      EXPECT_LE(before.begin_ns, span.begin_ns);
      EXPECT_LE(span.end_ns, before.end_ns);
    } else if (before.depth == span.depth) {
      EXPECT_LE(before.end_ns, span.begin_ns);
    }
  }
}

TEST_F(TimelineTest, CountsWhatFindsNoRoom) {
  const auto kernel = define_kernel("overflows(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    for (Int i : range(4)) const TimelineRange trip = timeline.range("trip", i);
  });
  const TimelineRecording recording =
      record(kernel, {.grid = 3, .block = 64}, {.warps = 4, .events = 3});
  EXPECT_EQ(recording.dropped_events, 4 * 5);
  EXPECT_EQ(recording.warps_without_row, 2);
  EXPECT_EQ(recording.warps[3].dropped_events, 5);
  EXPECT_THAT(outline(recording, 3), ElementsAre("trip 0", "trip 1 ..."));
  EXPECT_THAT(recording.problems, ElementsAre("2 warps had no row: the timeline has 4",
                                              "20 events were dropped: a warp has room for 3"));
}

TEST_F(TimelineTest, CountsWarpsThroughBlocksAndGrid) {
  const auto kernel = define_kernel("counts(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    timeline.mark("here", lane_id());
  });
  const TimelineRecording recording =
      record(kernel, {.grid = {2, 1, 2}, .block = {4, 4, 4}}, {.warps = 8, .events = 1});
  EXPECT_EQ(recording.warps_without_row, 0);
  ASSERT_EQ(recording.warps.size(), 8u);
  EXPECT_EQ(recording.warps[5].describe(), "block (0, 0, 1) warp 1");
  EXPECT_EQ(recording.warps[6].describe(), "block (1, 0, 1) warp 0");
  EXPECT_THAT(outline(recording, 5), ElementsAre("here 0 !"));
}

TEST_F(TimelineTest, FindsRangesThatDoNotNest) {
  const auto kernel = define_kernel("crosses(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    timeline.begin("a");
    timeline.begin("b", 7);
    timeline.end("a");
    timeline.end("b");
    timeline.begin("c");
  });
  const TimelineRecording recording = record(kernel, {.grid = 1, .block = 32}, {.warps = 1});
  EXPECT_THAT(outline(recording, 0), ElementsAre("a", "  b 7 ...", "c ..."));
  EXPECT_THAT(
      recording.problems,
      ElementsAre("block (0, 0, 0) warp 0: range 'a' ends inside of range 'b', which is cut "
                  "there",
                  "block (0, 0, 0) warp 0: range 'b' ends without a beginning",
                  "block (0, 0, 0) warp 0: range 'c' has no end; it is shown up to the "
                  "warp's"));
  EXPECT_EQ(recording.spans[2].end_ns, recording.warps[0].end_ns);
}

// The end of a range, and of the timeline, is behind what leaves them.
TEST_F(TimelineTest, ShowsRangesThatAreLeft) {
  const auto kernel = define_kernel("leaves(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    const TimelineRange whole = timeline.range("whole");
    If(block_idx.x == 1, [] { Return(); });
  });
  const TimelineRecording recording = record(kernel, {.grid = 2, .block = 32}, {.warps = 2});
  EXPECT_THAT(outline(recording, 0), ElementsAre("whole"));
  EXPECT_THAT(outline(recording, 1), ElementsAre("whole ..."));
  EXPECT_FALSE(recording.warps[1].end_ns.has_value());
  EXPECT_THAT(recording.problems, ElementsAre(HasSubstr("block (1, 0, 0) warp 0: range 'whole'")));
}

// How many events a warp that ends early has dropped is not known: one or more.
TEST_F(TimelineTest, SeesDroppedEventsOfWarpsThatEndEarly) {
  const auto kernel = define_kernel("ends_early(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    timeline.mark("a");
    timeline.mark("b");
    timeline.mark("c");
    If(block_idx.x == 1, [] { Return(); });
  });
  for (const int64_t room : {2, 3}) {
    const TimelineRecording recording =
        record(kernel, {.grid = 2, .block = 32}, {.warps = 2, .events = room});
    EXPECT_EQ(recording.warps[0].dropped_events, 3 - room);
    EXPECT_EQ(recording.warps[1].dropped_events, 3 - room);
    EXPECT_EQ(recording.spans.size(), static_cast<size_t>(2 * room));
  }
}

TEST_F(TimelineTest, ListsALimitedNumberOfProblems) {
  const auto kernel = define_kernel("forgets(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    For(range(30), [&](Int) { timeline.end("nothing"); });
  });
  const TimelineRecording recording = record(kernel, {.grid = 1, .block = 32}, {.warps = 1});
  ASSERT_EQ(recording.problems.size(), 21u);
  EXPECT_EQ(recording.problems.back(), "and 10 more like these");
}

TEST_F(TimelineTest, SecondLaunchNeedsAClearedBuffer) {
  const auto kernel = define_kernel("clears(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    timeline.mark("m");
  });
  TimelineBuffer buffer = TimelineBuffer::allocate(stream_, {.warps = 4, .events = 2}).value();
  ASSERT_TRUE(kernel.launch(stream_, {.grid = 4, .block = 32}, buffer.events()).ok());
  ASSERT_TRUE(buffer.clear(stream_).ok());
  EXPECT_THAT(buffer.read(stream_).value().warps, IsEmpty());
  ASSERT_TRUE(kernel.launch(stream_, {.grid = 1, .block = 32}, buffer.events()).ok());
  EXPECT_EQ(buffer.read(stream_).value().warps.size(), 1u);
}

TEST_F(TimelineTest, WritesChromesFormat) {
  const auto kernel = define_kernel("escapes(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    const TimelineRange odd = timeline.range("a \"b\"\\\n\x01 \xff", 3);
    timeline.mark("µs");
  });
  TimelineRecording recording = record(kernel, {.grid = 1, .block = 32}, {.warps = 1});
  recording.spans[0].begin_ns = 12;
  recording.spans[0].end_ns = 1234567;
  const std::string path = testing::TempDir() + "timeline_test.json";
  ASSERT_TRUE(recording.write_chrome_trace(path).ok());
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  const nlohmann::json trace = nlohmann::json::parse(text.str());
  const nlohmann::json& events = trace["traceEvents"];
  const int processor = recording.warps[0].multiprocessor;
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0],
            (nlohmann::json{{"name", "process_name"},
                            {"ph", "M"},
                            {"pid", processor},
                            {"tid", 0},
                            {"args", {{"name", absl::StrCat("multiprocessor ", processor)}}}}));
  EXPECT_EQ(events[2]["args"]["name"], "block (0, 0, 0) warp 0");
  EXPECT_EQ(events[4], (nlohmann::json{{"name", "a \"b\"\\\n\x01 \uFFFD"},
                                       {"ph", "X"},
                                       {"pid", processor},
                                       {"tid", 0},
                                       {"ts", 0.012},
                                       {"dur", 1234.555},
                                       {"args", {{"argument", 3}}}}));
  EXPECT_EQ(events[5]["name"], "µs");
  EXPECT_EQ(events[5]["ph"], "i");
  EXPECT_EQ(events[5].count("dur"), 0u);
  EXPECT_THAT(trace["otherData"]["problems"], IsEmpty());

  EXPECT_TRUE(nlohmann::json::accept(TimelineRecording().to_chrome_trace()));
  EXPECT_THAT(std::string(recording.write_chrome_trace("/no/such/folder/t.json").message()),
              HasSubstr("'/no/such/folder/t.json': No such file or directory"));
}

// Two multiprocessors whose clocks run at 2 GHz and are far apart, and a timer with steps of 1000.
TEST_F(TimelineTest, LinesUpMultiprocessors) {
  constexpr int64_t kRowWords = Layout::words_of_row(2);
  constexpr int64_t kNow = 1'700'000'000'000'000'000;
  const auto step = [](int64_t time) { return kNow + time / 1000 * 1000; };
  std::vector<int64_t> words(4 * kRowWords);
  // Begins and ends at these times, with a range from 100 after the begin to 50 before the end.
  const auto fill = [&](int row, int processor, int64_t clock_at_0, int64_t begin, int64_t end) {
    int64_t* w = &words[static_cast<size_t>(row * kRowWords)];
    const auto clock = [&](int64_t time) { return clock_at_0 + 2 * time; };
    const std::vector<int64_t> values = {step(begin),
                                         clock(begin),
                                         step(end),
                                         clock(end),
                                         processor + 1,
                                         row - 1,
                                         2,
                                         0,
                                         clock(begin + 100),
                                         Layout::kBegin | 8,
                                         clock(end - 50),
                                         Layout::kEnd | 8};
    std::copy(values.begin(), values.end(), w);
  };
  fill(1, 7, 5'000'000, 0, 250'700);
  fill(2, 7, 5'000'000, 4'000, 300'900);
  fill(3, 9, 90'000'000'000, 3'000, 301'600);
  const TimelineRecording recording = decode_timeline(words, 4).value();
  EXPECT_THAT(recording.problems, IsEmpty());
  EXPECT_NEAR(recording.clock_ghz, 2.0, 0.01);
  ASSERT_EQ(recording.spans.size(), 3u);
  EXPECT_EQ(recording.spans[0].name, "range 00000008");
  EXPECT_EQ(recording.warps[2].multiprocessor, 9);
  EXPECT_NEAR(static_cast<double>(recording.spans[1].begin_ns), 4'100, 15);
  EXPECT_NEAR(static_cast<double>(recording.spans[2].begin_ns), 3'100, 200);
  EXPECT_NEAR(static_cast<double>(recording.spans[2].end_ns), 301'550, 1'000);

  EXPECT_EQ(decode_timeline(words, 4, {.clock_ghz = 1}).value().spans[0].end_ns, 501'300);
}

TEST_F(TimelineTest, SaysThatTheRateIsUnknown) {
  std::vector<int64_t> words(2 * Layout::words_of_row(1));
  const int64_t row[] = {1000, 5, 1000, 25, 1, 0, 0, 0};
  std::copy(std::begin(row), std::end(row), words.begin() + Layout::words_of_row(1));
  const TimelineRecording recording = decode_timeline(words, 2).value();
  EXPECT_THAT(recording.problems, ElementsAre(HasSubstr("the clock's rate is unknown")));
  EXPECT_EQ(recording.warps[0].end_ns, 20);
  EXPECT_THAT(decode_timeline(words, 2, {.clock_ghz = 2}).value().problems, IsEmpty());
}

TEST_F(TimelineTest, RefusesWhatIsNoTimeline) {
  const std::vector<int64_t> words(50);
  for (const int64_t rows : {0, 1, 2, 3, 4, 5}) {
    EXPECT_EQ(decode_timeline(words, rows).ok(), rows == 1 || rows == 2) << rows;
  }
  EXPECT_EQ(decode_timeline(words, 3).status().message(),
            "these are no timeline's words: 50 in 3 rows of at least 12");
  for (const TimelineSize& size : {TimelineSize{.warps = 0}, TimelineSize{.warps = 1, .events = 0},
                                   TimelineSize{.warps = INT64_MAX, .events = 1},
                                   TimelineSize{.warps = 1, .events = (1 << 28) + 1}}) {
    const Status status = TimelineBuffer::allocate(stream_, size).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  }
}

TEST_F(TimelineTest, RefusesNamesOfOneNumber) {
  const auto kernel = define_kernel("collides(events)", [](TimelineEvents events) {
    const Timeline timeline(events);
    timeline.mark("range 26781");
    timeline.mark("range 133813");
  });
  TimelineBuffer buffer = TimelineBuffer::allocate(stream_, {.warps = 1}).value();
  EXPECT_THAT(
      std::string(kernel.launch(stream_, {.grid = 1, .block = 32}, buffer.events()).message()),
      HasSubstr("the timeline's names 'range 133813' and 'range 26781' have the same number"));
}

void doubled(Tensor<float, 1> x, const Timeline& timeline) {
  const TimelineRange whole = timeline.range("double", block_idx.x);
  timeline.begin("read");
  const Float value = x(thread_idx.x);
  timeline.end("read");
  timeline.mark("half way");
  x(thread_idx.x) = 2.0f * value;
}

// Nothing of a timeline that is off is left; of one that is on, an event is one store of 16 bytes.
TEST_F(TimelineTest, OffLeavesTheKernelAsItIs) {
  // Without the lines of this file.
  const auto ptx = [](const auto& kernel, const Signature& signature) {
    const auto compiled =
        kernel.compile(signature, CompileOptions{.block = {64, 1, 1}, .target = "sm_90a"}).value();
    std::string text;
    for (const absl::string_view line : absl::StrSplit(compiled.ptx(), '\n')) {
      if (!absl::StrContains(line, ".loc ")) absl::StrAppend(&text, line, "\n");
    }
    return text;
  };
  const auto plain = define_kernel("doubled(x)", [](Tensor<float, 1> x) {
    const Float value = x(thread_idx.x);
    x(thread_idx.x) = 2.0f * value;
  });
  const auto off = define_kernel("doubled(x)", [](Tensor<float, 1> x) { doubled(x, Timeline()); });
  const auto on = define_kernel(
      "doubled(x, events)",
      [](Tensor<float, 1> x, TimelineEvents events) { doubled(x, Timeline(events)); });
  EXPECT_EQ(ptx(off, Signature{tensor({kAny})}), ptx(plain, Signature{tensor({kAny})}));
  const std::string recorded = ptx(on, Signature{tensor({kAny}), tensor({kAny, kAny}).aligned(16)});
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (size_t at = recorded.find(what); at != std::string::npos;
         at = recorded.find(what, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("%clock64"), 5 + 2);  // events; at the beginning and the end
  EXPECT_EQ(count("st.global.v2.b64"), 5 + 2);
  EXPECT_EQ(count("%globaltimer"), 2);
  EXPECT_EQ(count("ld.global"), 1);
}

}  // namespace
}  // namespace heddle::runtime
