// AsyncPipeline: each tile is copied and used once, in order, whoever copies; what is left out of it is
// reported, in its class and at its place.
#include "heddle/dsl/pipeline/async_pipeline.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "dsl/language/run_ints.h"
#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/interp_backend.h"
#include "ir/interp/run_text.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 32, kColumns = 16, kPart = 4;
constexpr const char* kCompletions[] = {"early", "late", "seed:1", "seed:2", "seed:3"};

// What a thread adds of a tile: elements that other threads have copied, each with another weight.
Float part_of_sum(const Tensor<float>& tile, const Int& thread) {
  Var<float> sum(0.0f);
  for (int i = 0; i < kPart; ++i) {
    sum += static_cast<float>(i + 1) *
           tile(kRows - 1 - thread / kPart, kColumns - 1 - (thread % kPart * kPart + i));
  }
  return sum;
}

// y(t) = the sum over all tiles of a row of tiles, by 128 threads that copy and add.
void sums_by_all(const Tensor<const float, 2>& x, const Tensor<float, 1>& y, int stages,
                 int tiles) {
  const TiledCopy copies =
      make_tiled_copy(make_copy_atom<float>(CopyAsync{128}),
                      make_layout({kRows, kPart}, {kPart, 1}), make_layout({1, kPart}));
  const auto sX = make_smem_tensor<float>(
      make_layout({kRows, kColumns, stages}, {kColumns, 1, kRows * kColumns}));
  const auto gX = local_tile(x, {kRows, kColumns}, {0, _});
  const AsyncPipeline pipe({.stages = stages});
  pipe.start();
  const auto load = [&](const Int& k, const PipelineState& p) {
    pipe.produce(p, [&](const AsyncStage& stage) {
      If(k < tiles, [&] { copy(stage.load(copies), gX(_, _, k), sX(_, _, p.index)); });
    });
  };
  for (int k = 0; k < pipe.lead(); ++k) load(k, pipe.producer(k));
  const auto [sum, last] = For(range(tiles), std::tuple(Float(0), pipe.consumer()),
                               [&](const Int& k, const std::tuple<Float, PipelineState>& so_far) {
                                 const auto& [s, p] = so_far;
                                 pipe.wait(p);
                                 load(k + pipe.lead(), pipe.ahead(p));
                                 const Float more =
                                     s + part_of_sum(sX(_, _, p.index), thread_idx.x);
                                 pipe.release(p);
                                 return std::tuple(more, pipe.next(p));
                               });
  y(thread_idx.x) = sum;
}

// The same where a warpgroup copies and `consumers` others add, each to a y of its own.
void sums_by_roles(const Tensor<const float, 2>& x, const Tensor<float, 1>& y, int stages,
                   int tiles, int consumers) {
  const TiledCopy copies =
      make_tiled_copy(make_copy_atom<float>(CopyAsync{128}),
                      make_layout({kRows, kPart}, {kPart, 1}), make_layout({1, kPart}));
  const auto sX = make_smem_tensor<float>(
      make_layout({kRows, kColumns, stages}, {kColumns, 1, kRows * kColumns}));
  const auto gX = local_tile(x, {kRows, kColumns}, {0, _});
  const AsyncPipeline pipe({.stages = stages, .producers = 4, .consumers = consumers});
  pipe.start();
  warp_roles(Role{1, 0,
                  [&](const Int&) {
                    For(range(tiles), pipe.producer(), [&](const Int& k, const PipelineState& p) {
                      pipe.produce(p, [&](const AsyncStage& stage) {
                        copy(stage.load(copies), gX(_, _, k), sX(_, _, p.index));
                      });
                      return pipe.next(p);
                    });
                  }},
             Role{consumers, 0, [&](const Int& thread) {
                    const auto [sum, last] =
                        For(range(tiles), std::tuple(Float(0), pipe.consumer()),
                            [&](const Int&, const std::tuple<Float, PipelineState>& so_far) {
                              const auto& [s, p] = so_far;
                              pipe.wait(p);
                              const Float more =
                                  s + part_of_sum(sX(_, _, p.index), thread % kWarpGroupSize);
                              pipe.release(p);
                              return std::tuple(more, pipe.next(p));
                            });
                    y(thread) = sum;
                  }});
}

float element(int row, int column) { return static_cast<float>((row * 5 + column * 3) % 11 - 5); }

float wanted(int thread, int rows, int columns) {
  float sum = 0;
  for (int k = 0; k < columns; k += kColumns) {
    for (int i = 0; i < kPart; ++i) {
      const int row = kRows - 1 - thread / kPart;
      const int column = k + kColumns - 1 - (thread % kPart * kPart + i);
      if (row < rows && column < columns) sum += static_cast<float>(i + 1) * element(row, column);
    }
  }
  return sum;
}

// consumers 0: by all threads.
void check_sums(int stages, int consumers, int rows, int columns) {
  SCOPED_TRACE(testing::Message() << stages << " stages, " << consumers << " consumers, "
                                  << columns);
  const int tiles = (columns + kColumns - 1) / kColumns;
  const auto kernel = local_kernel("sums", [&](Tensor<const float, 2> x, Tensor<float, 1> y) {
    if (consumers == 0) return sums_by_all(x, y, stages, tiles);
    sums_by_roles(x, y, stages, tiles, consumers);
  });
  std::vector<float> x;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) x.push_back(element(row, column));
  }
  const int results = std::max(consumers, 1) * kWarpGroupSize;
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x_memory = device.upload<float>(x).value();
  const Buffer y_memory = device.allocate(results * sizeof(float)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = kWarpGroupSize * (consumers + 1)},
                            as_tensor<const float>(x_memory, {rows, columns}),
                            as_tensor<float>(y_memory, {results})),
              IsOk());
  const std::vector<float> y = y_memory.download<float>(stream).value();
  for (int thread = 0; thread < results; ++thread) {
    EXPECT_EQ(y[static_cast<size_t>(thread)], wanted(thread % kWarpGroupSize, rows, columns))
        << thread;
  }
}

TEST(AsyncPipeline, CopiesAheadInTheThreadsThatUseTheStages) {
  for (const int stages : {2, 3, 4, 9}) {
    for (const int columns : {16, 72, 136}) check_sums(stages, 0, 30, columns);
  }
}

TEST(AsyncPipeline, CopiesInWarpsOfTheirOwn) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  for (const int stages : {2, 3, 4}) {
    check_sums(stages, 1, 32, 72);
    check_sums(stages, 2, 30, 136);
  }
}

// Where copies go behind wait(p): lead() stages further on than p, as a producer counts.
TEST(AsyncPipeline, PlacesFollowEachOther) {
  constexpr int kStages = 3, kPlaces = 10;
  const auto kernel = define_kernel("places(y)", [](Tensor<int32_t, 2> y) {
    const AsyncPipeline pipe({.stages = kStages});
    For(range(kPlaces), pipe.consumer(), [&](const Int& k, const PipelineState& p) {
      const PipelineState ahead = pipe.ahead(p);
      y(0, k) = p.index + 10 * cast<int32_t>(p.phase);
      y(1, k) = ahead.index + 10 * cast<int32_t>(ahead.phase);
      return pipe.next(p);
    });
    for (int k = 0; k < pipe.lead(); ++k) {
      const PipelineState filled = pipe.producer(k);
      y(2, k) = filled.index + 10 * cast<int32_t>(filled.phase);
    }
    For(range(kPlaces), pipe.producer(), [&](const Int& k, const PipelineState& p) {
      y(3, k) = p.index + 10 * cast<int32_t>(p.phase);
      return pipe.next(p);
    });
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer y = device.upload<int32_t>(std::vector<int32_t>(4 * kPlaces)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = 1}, as_tensor<int32_t>(y, {4, kPlaces})),
              IsOk());
  const std::vector<int32_t> got = y.download<int32_t>(stream).value();
  const auto place = [](int k, int first) {
    return k % kStages + 10 * ((k / kStages + first) % 2);
  };
  for (int k = 0; k < kPlaces; ++k) {
    const auto at = static_cast<size_t>(k);
    EXPECT_EQ(got[at], place(k, 0)) << k;
    EXPECT_EQ(got[kPlaces + at], place(k + kStages - 1, 1)) << k;
    if (k < kStages - 1) {
      EXPECT_EQ(got[2 * kPlaces + at], place(k, 1)) << k;
    }
    EXPECT_EQ(got[3 * kPlaces + at], place(k, 1)) << k;
  }
}

TEST(AsyncPipeline, SaysWhatItCannotBe) {
  const auto mistake = [](const AsyncPipelineOptions& options) {
    return mistakes(define_kernel("pipe(y)", [=](Tensor<float, 1> y) {
      const AsyncPipeline pipe(options);
      y(0) = 0;
    }));
  };
  EXPECT_THAT(mistake({.stages = 1}),
              HasSubstr("an AsyncPipeline of 1 stages, 0 producers and 1 consumers"));
  EXPECT_THAT(mistake({.stages = 10}),
              HasSubstr("take 2 to 9 stages, a number of warps that copy"));
  EXPECT_THAT(mistake({.producers = -1}), HasSubstr("-1 producers"));
  EXPECT_THAT(mistake({.producers = 4, .consumers = 0}), HasSubstr("0 consumers"));
  EXPECT_THAT(mistake({.stages = 3, .under_way = 2}),
              HasSubstr("a pipeline of 3 stages, of which products under way read 2"));
  EXPECT_THAT(mistake({.stages = 3, .under_way = -1}), HasSubstr("under_way is 0 to stages - 2"));
  EXPECT_THAT(mistake({.stages = 3, .producers = 4, .under_way = 1}),
              HasSubstr("an AsyncPipeline with producers, and products under way"));
  EXPECT_EQ(mistake({.stages = 3, .under_way = 1}), "");
  EXPECT_EQ(mistake({.stages = 9}), "");
}

// Reports name the line of the kernel, and none of the pipeline's own.
TEST(AsyncPipeline, WaitsAtTheUsersLine) {
  int produce = 0, wait = 0;
  const auto kernel = local_kernel("stuck", [&](Tensor<float, 1> y) {
    const AsyncPipeline pipe({.stages = 2, .producers = 4});
    pipe.start();
    warp_roles(Role{1, 0,
                    [&](const Int&) {
                      For(range(4), pipe.producer(), [&](const Int&, const PipelineState& p) {
                        produce = __LINE__ + 1;
                        pipe.produce(p, [](const AsyncStage&) {});
                        return pipe.next(p);
                      });
                    }},
               Role{1, 0, [&](const Int& thread) {
                      For(range(4), pipe.consumer(), [&](const Int&, const PipelineState& p) {
                        wait = __LINE__ + 1;
                        pipe.wait(p);
                        return pipe.next(p);
                      });
                      y(thread) = 1.0f;
                    }});
  });
  const Device device = Device::open_private_interp(runtime::InterpBackend::default_info());
  const Stream stream = device.create_stream().value();
  const Buffer y = device.upload<float>(std::vector<float>(128)).value();
  const Status launched =
      kernel.launch(stream, {.grid = 1, .block = 256}, as_tensor<float>(y, {128}));
  const std::string said((launched.ok() ? stream.synchronize() : launched).message());
  EXPECT_THAT(said, HasSubstr(absl::StrCat("async_pipeline_test.cc:", produce, ": ")));
  EXPECT_THAT(said, HasSubstr(absl::StrCat("async_pipeline_test.cc:", wait, ": ")));
  EXPECT_THAT(said, HasSubstr("waits here for ever"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("async_pipeline.cc:")));
}

// --- What is left out -----------------------------------------------------------------------------

// A wgmma of tiles of x with themselves: 64 x 16 elements, `tiles` of them, one behind the other.
void products(const Pointer<const half>& x, const Pointer<float>& y, bool roles) {
  constexpr int kTiles = 5, kStages = 3, kDepth = 16, kLines = 64;
  const TiledMma mma = make_tiled_mma(make_mma_atom(Wgmma<half, half, float>{64}));
  const TiledCopy copies = make_tiled_copy(make_copy_atom<half>(CopyAsync{128}),
                                           make_layout({kLines, 2}, {2, 1}), make_layout({1, 8}));
  const auto sX = make_smem_tensor<half>(make_smem_layout<half>({kLines, kDepth, kStages}));
  const auto gX =
      make_tensor(x, make_layout({kLines, kDepth, kTiles}, {kDepth, 1, kLines * kDepth}));
  const AsyncPipeline pipe({.stages = kStages, .producers = roles ? 4 : 0, .wgmma = true});
  pipe.start();
  const auto load = [&](const Int& k, const PipelineState& p, const Int& thread) {
    const ThrCopy mine = copies.get_slice(thread);
    pipe.produce(p, [&](const AsyncStage&) {
      If(k < kTiles,
         [&] { copy(copies, mine.partition_S(gX(_, _, k)), mine.partition_D(sX(_, _, p.index))); });
    });
  };
  const auto use = [&](const Int& thread) {
    const ThrMma mine = mma.get_slice(thread);
    const auto [sums, last] =
        For(range(kTiles), std::tuple(make_accumulator<float>(mma, {kLines, 64}), pipe.consumer()),
            [&](const Int& k, const std::tuple<AccumulatorTile<float>, PipelineState>& so_far) {
              const auto& [sum, p] = so_far;
              pipe.wait(p);
              if (!roles) load(k + pipe.lead(), pipe.ahead(p), thread_idx.x);
              const auto more = gemm(mine, sX(_, _, p.index), sX(_, _, p.index), sum, k != 0);
              wait(mma, 0);
              pipe.release(p);
              return std::tuple(more, pipe.next(p));
            });
    const Tensor<float> all = settle(sums);
    Var<float> total(0.0f);
    for (int i = 0; i < size(all).value(); ++i) total += all(i);
    y(thread) = total;
  };
  if (!roles) {
    for (int k = 0; k < pipe.lead(); ++k) load(k, pipe.producer(k), thread_idx.x);
    use(thread_idx.x);
    return;
  }
  warp_roles(Role{1, 0,
                  [&](const Int& thread) {
                    For(range(kTiles), pipe.producer(), [&](const Int& k, const PipelineState& p) {
                      load(k, p, thread);
                      return pipe.next(p);
                    });
                  }},
             Role{1, 0, use});
}

// The kernel as traced, in text.
std::string text_of(bool roles) {
  const auto kernel =
      define_kernel(roles ? "by_roles(x, y)" : "by_all(x, y)",
                    [=](Pointer<const half> x, Pointer<float> y) { products(x, y, roles); });
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {roles ? 256 : 128, 1, 1};
  options.stage = Stage::kIr;
  const auto compiled = kernel.compile(Signature{pointer().aligned(16), pointer()}, options);
  EXPECT_THAT(compiled.status(), IsOk());
  return compiled.ok() ? ir::print(compiled->trace()) : "";
}

// Runs a text in each completion mode: what is reported.
std::vector<std::string> reports(const std::string& text, bool passes) {
  StatusOr<ir::Kernel> kernel = ir::parse(text, "pipeline.ir", {.text_as_source = true});
  EXPECT_TRUE(kernel.ok()) << kernel.status() << text;
  if (!kernel.ok()) return {};
  if (passes) ir::run_verified(*kernel, ir::kDefaultPipeline);
  std::vector<std::string> all;
  for (const char* const completion : kCompletions) {
    std::vector<uint64_t> ones(5 * 64 * 16, 0x3C00);
    const ir::RunResult result =
        ir::run_kernel(*kernel, {{0, ones}, ir::memory(128)},
                       {.completion = ir::interp::parse_completion(completion).value(),
                        .max_instructions = 10'000'000});
    all.push_back(result.error);
    if (!result.error.empty()) continue;
    for (const uint64_t sum : result.memory.back()) {
      EXPECT_EQ(sum, 0x45200000u) << completion;  // 5 * 16 * 32
    }
  }
  return all;
}

// An op that is left out, or put in another's place, where it stands for the `nth` time.
struct Omission {
  const char* name;
  bool roles;
  const char* op;
  int nth;
  const char* instead;
  const char* right;  // something else in its place that is no mistake
  const char* report;
  const char* at;  // the op that it is said of
};

std::ostream& operator<<(std::ostream& out, const Omission& omission) {
  return out << omission.name;
}

const Omission kOmissions[] = {
    {"NoWait", false, "copy.wait", 1, "", "copy.wait {groups = 0}",
     "which a copy_async may still be writing: no copy_async_wait() for its group", "wgmma"},
    {"WaitForTooFew", false, "copy.wait", 1, "copy.wait {groups = 2}", "copy.wait {groups = 1}",
     "which a copy_async may still be writing", "wgmma"},
    {"NoCommit", false, "copy.commit", 3, "", "copy.commit\n  warp.sync",
     "which a copy_async may still be writing", "wgmma"},
    {"NoBarrier", false, "barrier", 1, "", "barrier\n  barrier",
     "which a copy_async may still be writing: the wait for it is not ordered before this",
     "wgmma"},
    {"NoFence", false, "fence.async", 1, "", "fence.async\n  fence.async",
     "writes by a copy_async in the generic proxy, with no fence_async() between the two", "wgmma"},
    {"NoProductWait", false, "wgmma.wait {groups = 0}", 1, "",
     "wgmma.wait {groups = 0}\n warp.sync", "which a wgmma may still be reading", "copy.async"},

    {"NoArrivalOfCopies", true, "copy.arrive", 1, "", "copy.commit\n  %0",
     "which lacks 128 arrivals", "mbarrier.wait"},
    {"NoFenceBehindWait", true, "fence.async", 1, "", "fence.async\n  fence.async",
     "writes by a copy_async in the generic proxy, with no fence_async() between the two", "wgmma"},
    {"NoWaitForFull", true, "mbarrier.wait", 2, "", "%0\n  %0",
     "which a copy_async may still be writing", "wgmma"},
    {"NoWaitForEmpty", true, "mbarrier.wait", 1, "", "%0\n  %0",
     "a copy_async writes byte 0 of 'shared memory', which a copy_async may still be writing",
     "copy.async"},
    {"NoRelease", true, "mbarrier.arrive", 1, "", "fence.async\n  %0", "which lacks 4 arrivals",
     "mbarrier.wait"},
    {"ReleaseBeforeProductsEnd", true, "wgmma.wait {groups = 0}", 1, "", "%0\n  warp.sync",
     "which a wgmma may still be reading", "copy.async"},
    {"NoBarrierBehindInits", true, "barrier", 1, "", "%0\n  %0",
     "whose init nothing orders before this", "mbarrier.wait"},
};

// The text with its nth line whose op begins with `op` replaced; %0 is the line itself.
std::string with(const std::string& text, const Omission& omission, const char* instead,
                 std::string* line_found) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  int left = omission.nth;
  for (std::string& line : lines) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == line.npos || line.compare(begin, std::strlen(omission.op), omission.op) != 0)
      continue;
    const char behind = line.size() > begin + std::strlen(omission.op)
                            ? line[begin + std::strlen(omission.op)]
                            : ' ';
    if (behind != ' ' || --left != 0) continue;
    *line_found = line;
    line = absl::StrReplaceAll(instead, {{"%0", line}});
    return absl::StrJoin(lines, "\n");
  }
  ADD_FAILURE() << "no " << omission.op << " in\n" << text;
  return text;
}

class AsyncPipelineOmission : public ::testing::TestWithParam<Omission> {};

TEST_P(AsyncPipelineOmission, IsReportedWhereItsTwinIsSilent) {
  const Omission& omission = GetParam();
  const std::string text = text_of(omission.roles);
  std::string line;
  const std::string right = with(text, omission, omission.right, &line);
  const std::string wrong = with(text, omission, omission.instead, &line);
  const std::vector<std::string> lines = absl::StrSplit(wrong, '\n');
  for (const bool passes : {false, true}) {
    EXPECT_THAT(reports(right, passes), ::testing::Each("")) << right;
    bool found = false;
    std::string all;
    for (const std::string& report : reports(wrong, passes)) {
      absl::StrAppend(&all, report, "\n");
      for (const absl::string_view one : absl::StrSplit(report, '\n')) {
        if (!absl::StrContains(one, omission.report)) continue;
        int number = 0;
        const size_t colon = one.find("pipeline.ir:");
        if (colon == one.npos) continue;
        const std::vector<std::string> parts = absl::StrSplit(one.substr(colon), ':');
        ASSERT_TRUE(absl::SimpleAtoi(parts[1], &number)) << one;
        found |= absl::StrContains(lines[static_cast<size_t>(number - 1)], omission.at);
      }
    }
    EXPECT_TRUE(found) << (passes ? "after passes" : "as traced") << " in place of " << line << "\n"
                       << all << wrong;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AsyncPipelineOmission, ::testing::ValuesIn(kOmissions),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace heddle
