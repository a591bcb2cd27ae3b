// SharedArena: regions take turns with the same bytes, and what uses them out of turn is reported with both
// names and lines.
#include "heddle/dsl/tensor/shared_arena.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/private_interp_test.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kThreads = 64, kTiles = 4;

// Where a kernel leaves something out, and what it does in its place.
enum class Fault {
  kNone,
  kNoTakeOver,        // the second region is used and does not begin
  kNoBarrierInFront,  // it begins while the first is read
  kNoReturn,          // the first is used again and does not begin
  kOneThreadBegins,   // with no barrier behind that
  kReadsWhatIsLost,   // the first is read when the second has begun
};

// The lines of what reports name, of the kernel that was traced last.
struct Lines {
  int first_store = 0, read = 0, begin = 0, second_store = 0, last_read = 0;
} lines;

// y = x, backwards in each tile twice: through a tile in one region and then one in the other.
auto turns(Fault fault) {
  return define_kernel("turns(x, y)", [=](Tensor<const float, 1> x, Tensor<float, 1> y) {
    const SharedArena arena;
    const SharedRegion main = arena.region("main"), epilogue = arena.region("epilogue");
    const Shared<double> ahead = main.array<double>(4);
    const Shared<float> first = main.array<float>(kThreads);
    const Shared<float> second = epilogue.array<float>(kThreads + 8);
    const Int t = thread_idx.x;
    For(range(kTiles), [&](const Int& i) {
      if (fault != Fault::kNoReturn) main.begin();
      lines.first_store = __LINE__ + 1;
      first(t) = x(i * kThreads + t);
      ahead(t % 4) = 1.0;
      sync_threads();
      lines.read = __LINE__ + 1;
      const Float mine = first(kThreads - 1 - t);
      if (fault == Fault::kNoBarrierInFront) {
        lines.begin = __LINE__ + 1;
        If(t == kThreads - 1, [&] { epilogue.begin(); });
        sync_threads();
      } else if (fault == Fault::kOneThreadBegins) {
        sync_threads();
        lines.begin = __LINE__ + 1;
        If(t == 0, [&] { epilogue.begin(); });
      } else if (fault != Fault::kNoTakeOver) {
        sync_threads();
        lines.begin = __LINE__ + 1;
        epilogue.begin();
      }
      lines.second_store = __LINE__ + 1;
      second(t) = mine;
      sync_threads();
      const auto& last = fault == Fault::kReadsWhatIsLost ? first : second;
      lines.last_read = __LINE__ + 1;
      y(i * kThreads + t) = last(kThreads - 1 - t);
      sync_threads();
    });
  });
}

// "shared_arena_test.cc:40: " of a note; and of what is reported there.
std::string at(int line) { return absl::StrCat("shared_arena_test.cc:", line, ": "); }
std::string error_at(int line) { return at(line) + "error: "; }

TEST(SharedArena, RegionsTakeTurns) {
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> numbers;
  for (int i = 0; i < kTiles * kThreads; ++i) numbers.push_back(static_cast<float>(i));
  const Buffer x = device.upload<float>(numbers).value();
  const Buffer y = device.allocate(numbers.size() * sizeof(float)).value();
  ASSERT_THAT(turns(Fault::kNone)
                  .launch(stream, {.grid = 1, .block = kThreads},
                          as_tensor<const float>(x, {kTiles * kThreads}),
                          as_tensor<float>(y, {kTiles * kThreads})),
              IsOk());
  EXPECT_EQ(y.download<float>(stream).value(), numbers);
}

class SharedArenaReports : public PrivateInterpTest {
 protected:
  // What is said of the kernel, in every completion mode.
  template <class K>
  std::string report(const K& kernel, int block, int64_t elements) {
    std::string all;
    for (const char* const completion : {"late", "early", "seed:3"}) {
      EXPECT_TRUE(device_.set_completion(completion).ok());
      const Buffer x = zeros(elements), y = zeros(elements);
      const Status launched =
          kernel.launch(stream_, {.grid = 1, .block = block}, as_tensor<const float>(x, {elements}),
                        as_tensor<float>(y, {elements}));
      const Status done = launched.ok() ? stream_.synchronize() : launched;
      absl::StrAppend(&all, done.message());
    }
    return all;
  }
  std::string of(Fault fault) { return report(turns(fault), kThreads, kTiles * kThreads); }
};

TEST_F(SharedArenaReports, UsesOutOfTurn) {
  EXPECT_EQ(of(Fault::kNone), "");
  std::string said = of(Fault::kNoTakeOver);
  EXPECT_THAT(said, HasSubstr(at(lines.second_store)));
  EXPECT_THAT(said,
              HasSubstr("'store' uses 'epilogue[0]', whose bytes belong to another region, and "
                        "which begins nowhere"));
  said = of(Fault::kNoBarrierInFront);
  EXPECT_THAT(said, HasSubstr(error_at(lines.begin) + "takes over byte "));
  EXPECT_THAT(said, HasSubstr(" of 'epilogue[0]' from 'main[1]', which thread "));
  EXPECT_THAT(said, HasSubstr("reads with nothing that orders the two"));
  EXPECT_THAT(said, HasSubstr(at(lines.read)));
  said = of(Fault::kNoReturn);
  EXPECT_THAT(said, HasSubstr(error_at(lines.first_store) +
                              "writes byte 0 of 'main[1]', whose bytes are those of 'epilogue[0]' "
                              "from its begin() on"));
  EXPECT_THAT(said, HasSubstr(at(lines.begin)));
  EXPECT_THAT(said, HasSubstr("begins 'epilogue[0]' here"));
  EXPECT_THAT(said, HasSubstr("call begin() of the region of 'main[1]' first, behind a barrier "
                              "behind the last use of 'epilogue[0]'"));
  said = of(Fault::kOneThreadBegins);
  EXPECT_THAT(said, HasSubstr(error_at(lines.second_store) + "writes byte "));
  EXPECT_THAT(said, HasSubstr("of 'epilogue[0]', which begins with nothing that orders the two"));
  EXPECT_THAT(said, HasSubstr("let this thread call begin() too"));
  EXPECT_THAT(said, HasSubstr(at(lines.begin)));
  said = of(Fault::kReadsWhatIsLost);
  EXPECT_THAT(said, HasSubstr(error_at(lines.last_read) + "reads byte "));
  EXPECT_THAT(said, HasSubstr("of 'main[1]', whose bytes are those of 'epilogue[0]'"));
}

// Tiles that the copy engine brings to one region leave through another that has the same bytes.
enum class Copies { kRight, kNoFenceBehindReads, kNoWaitForLoad, kNoWaitForStore };

auto copies(Copies fault) {
  return define_kernel("copies(x, y)", [=](Tensor<const float, 1> x, Tensor<float, 1> y) {
    const SharedArena arena;
    const SharedRegion main = arena.region("main"), epilogue = arena.region("epilogue");
    const Shared<float> in = main.array<float>(kThreads);
    const Shared<float> out = epilogue.array<float>(kThreads);
    const Mbarrier full(1);
    const Int t = thread_idx.x;
    If(t == 0, [&] {
      full.init(0, 1);
      fence_mbarrier_init();
    });
    sync_threads();
    For(range(kTiles), [&](const Int& i) {
      If(t == 0, [&] {
        main.begin();
        full.expect_tx(0, kThreads * 4);
        bulk_load(in.at(0), x.at(i * kThreads), kThreads, full, 0);
      });
      if (fault != Copies::kNoWaitForLoad) full.wait(0, cast<uint32_t>(i % 2));
      const Float mine = fault == Copies::kNoWaitForLoad ? Float(t) : in(kThreads - 1 - t);
      if (fault != Copies::kNoFenceBehindReads) fence_async();
      sync_threads();
      epilogue.begin();
      if (fault == Copies::kNoFenceBehindReads) {
        y(i * kThreads + t) = mine;
      } else {
        out(t) = mine;
        fence_async();
      }
      sync_threads();
      If(t == 0, [&] {
        if (fault != Copies::kNoFenceBehindReads) {
          bulk_store(y.at(i * kThreads), out.at(0), kThreads);
          bulk_commit();
        }
        if (fault != Copies::kNoWaitForStore) bulk_wait_read();
      });
      sync_threads();
    });
    If(t == 0, [&] { bulk_wait(); });
    y(0) = 0.0f;
  });
}

TEST_F(SharedArenaReports, CopiesThatAreNotOver) {
  const auto of = [&](Copies fault) { return report(copies(fault), kThreads, kTiles * kThreads); };
  EXPECT_EQ(of(Copies::kRight), "");
  EXPECT_THAT(
      of(Copies::kNoWaitForLoad),
      HasSubstr("takes over byte 0 of 'epilogue[0]' from 'main[0]', which a copy may still be "
                "writing: it counts for phase 0 (parity 0) of the mbarrier"));
  EXPECT_THAT(
      of(Copies::kNoWaitForStore),
      HasSubstr("takes over byte 0 of 'main[0]' from 'epilogue[0]', which a copy may still be "
                "reading: no bulk_wait_read() or bulk_wait()"));
  EXPECT_THAT(of(Copies::kNoFenceBehindReads),
              HasSubstr("reads in the generic proxy, with no fence_async() between the two"));
}

// As many bytes as the larger region has, at the alignment of its swizzle.
TEST(SharedArena, TakesTheBytesOfItsLargestRegion) {
  const auto kernel = define_kernel("bytes(y)", [](Tensor<float, 1> y) {
    const SharedArena arena, other;
    const SharedRegion main = arena.region("main"), epilogue = arena.region("epilogue");
    const auto a = main.tensor<half>(make_smem_layout<half>({64, 64}));
    const auto b = main.tensor<half>(make_smem_layout<half>({64, 64}));
    const auto d = epilogue.tensor<float>(make_smem_layout<float>({64, 32}));
    const auto small = other.region("small").array<float>(4);
    const Shared<float> own(4);
    a(0, 0) = half(1);
    b(0, 0) = half(1);
    epilogue.begin();
    d(0, 0) = 1.0f;
    small(0) = 1.0f;
    own(0) = 1.0f;
    y(0) = d(0, 0) + small(0) + own(0);
  });
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {1, 1, 1};
  options.stage = Stage::kPtx;
  const auto compiled = kernel.compile(Signature{tensor({kAny})}, options);
  ASSERT_THAT(compiled.status(), IsOk());
  EXPECT_THAT(compiled->ptx(), HasSubstr(".shared .align 1024 .b8 heddle_shared[16416]"));
  EXPECT_THAT(compiled->ptx(), HasSubstr("[heddle_shared+8192]"));
}

}  // namespace
}  // namespace heddle
