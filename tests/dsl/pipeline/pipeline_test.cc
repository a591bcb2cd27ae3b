// Pipelines, roles and tile schedulers: every tile is loaded, used once and in order, in clusters of
// any shape.
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dsl/language/run_ints.h"
#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/interp_backend.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kTile = 32, kColumns = 64, kTiles = 7, kStages = 3;

// Each block sums all tiles of its cluster row's part of x and of its column's part of y, which blocks of
// a row, or column, share. Warpgroups release the stages, or their warps.
void check_cluster(int rows, int columns, bool by_warps = false) {
  SCOPED_TRACE(testing::Message() << rows << " x " << columns << (by_warps ? " by warps" : ""));
  const auto kernel = local_kernel("sums", [&](Tensor<const half, 2> x, Tensor<const half, 2> y,
                                               Tensor<float, 2> out) {
    const ClusterGrid cluster{rows, columns};
    const auto sX = make_smem_tensor<half>(make_smem_layout<half>({kTile, kColumns, kStages}));
    const auto sY = make_smem_tensor<half>(make_smem_layout<half>({kTile, kColumns, kStages}));
    const TmaAtom load_x = make_tma_atom(TmaLoad{columns}, x, sX(_, _, 0));
    const TmaAtom load_y = make_tma_atom(TmaLoad{rows}, y, sY(_, _, 0));
    const TmaPipeline pipe({.stages = kStages,
                            .bytes = load_x.bytes() + load_y.bytes(),
                            .consumers = 2,
                            .cluster = cluster,
                            .by_warps = by_warps});
    const Int row = cluster.row(), column = cluster.column();
    pipe.start();
    warp_roles(
        Role{1, 0,
             [&](const Int&) {
               If(warp_id() == 0, [&] {
                 For(range(kTiles), pipe.producer(), [&](const Int& i, const PipelineState& p) {
                   pipe.produce(p, [&](const FullStage& full) {
                     copy(full.load_for_row(load_x),
                          local_tile(x, {kTile, kColumns}, {row * kTiles + i, 0}),
                          sX(_, _, p.index));
                     copy(full.load_for_column(load_y),
                          local_tile(y, {kTile, kColumns}, {column * kTiles + i, 0}),
                          sY(_, _, p.index));
                   });
                   return pipe.next(p);
                 });
               });
             }},
        Role{2, 0, [&](const Int& thread) {
               const auto [sum, p] = For(
                   range(kTiles), std::tuple(Float(0), pipe.consumer()),
                   [&](const Int&, const std::tuple<Float, PipelineState>& so_far) {
                     const auto& [s, at] = so_far;
                     pipe.wait(at);
                     Var<float> more(s);
                     for (int i = 0; i < 8; ++i) {
                       const Int element = thread + 256 * i;
                       more += cast<float>(sX(element / kColumns, element % kColumns, at.index)) +
                               cast<float>(sY(element / kColumns, element % kColumns, at.index));
                     }
                     if (!by_warps) {
                       fence_async();
                       named_barrier_sync(thread / kWarpGroupSize + 1, kWarpGroupSize);
                     }
                     pipe.release(at);
                     return std::tuple(Float(more), pipe.next(at));
                   });
               atomic_add(out(cluster_rank(), 0), sum);
             }});
    if (cluster.size() > 1) sync_cluster();
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const auto matrix = [](int parts, float scale) {
    std::vector<half> values;
    for (int i = 0; i < parts * kTiles * kTile * kColumns; ++i) {
      values.emplace_back(scale * static_cast<float>(i / (kTile * kColumns)));
    }
    return values;
  };
  const Buffer x = device.upload<half>(matrix(rows, 1)).value();
  const Buffer y = device.upload<half>(matrix(columns, 0.25f)).value();
  const int blocks = rows * columns;
  const Buffer out = device.upload<float>(std::vector<float>(static_cast<size_t>(blocks))).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = blocks, .block = 384, .cluster = blocks},
                            as_tensor<const half>(x, {rows * kTiles * kTile, kColumns}),
                            as_tensor<const half>(y, {columns * kTiles * kTile, kColumns}),
                            as_tensor<float>(out, {blocks, 1})),
              IsOk());
  const std::vector<float> got = out.download<float>(stream).value();
  for (int rank = 0; rank < blocks; ++rank) {
    float wanted = 0;
    for (int i = 0; i < kTiles; ++i) {
      wanted += static_cast<float>(rank % rows * kTiles + i) +
                0.25f * static_cast<float>(rank / rows * kTiles + i);
    }
    EXPECT_EQ(got[static_cast<size_t>(rank)], wanted * kTile * kColumns) << rank;
  }
}

TEST(TmaPipeline, SharesTilesInClustersOfAnyShape) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  check_cluster(1, 1);
  check_cluster(2, 1);
  check_cluster(1, 2);
  check_cluster(2, 2);
  check_cluster(1, 1, true);
  check_cluster(2, 1, true);
  check_cluster(2, 2, true);
}

// Reports name the line of the kernel, and none of the pipeline's own.
TEST(TmaPipeline, WaitsAtTheUsersLine) {
  int produce = 0, wait = 0;
  const auto kernel = local_kernel("stuck", [&](Tensor<float, 1> y) {
    const TmaPipeline pipe({.stages = 2, .bytes = 16, .consumers = 1});
    pipe.start();
    warp_roles(Role{1, 0,
                    [&](const Int&) {
                      If(warp_id() == 0, [&] {
                        For(range(4), pipe.producer(), [&](const Int&, const PipelineState& p) {
                          produce = __LINE__ + 1;
                          pipe.produce(p, [](const FullStage&) {});
                          return pipe.next(p);
                        });
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
  EXPECT_THAT(said, HasSubstr(absl::StrCat("pipeline_test.cc:", produce, ": ")));
  EXPECT_THAT(said, HasSubstr(absl::StrCat("pipeline_test.cc:", wait, ": ")));
  EXPECT_THAT(said, HasSubstr("waits here for ever"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("tma_pipeline.")));
}

TEST(WarpRoles, AreWrongAtTheirOwnLines) {
  int line = 0;
  const auto kernel = local_kernel("roles(y)", [&](Tensor<int32_t, 1> y) {
    line = __LINE__ + 1;
    const auto first = Role{1, 500, [&](const Int& thread) { y(thread) = 1; }};
    warp_roles(first, Role{1, 0, [&](const Int& thread) { y(128 + thread) = 2; }});
  });
  const StatusOr<CompiledKernel> compiled = kernel.compile(
      Signature{tensor({kAny})},
      CompileOptions{.block = {256, 1, 1}, .target = "sm_90a", .stage = Stage::kPtx});
  EXPECT_THAT(std::string(compiled.status().message()),
              HasSubstr(absl::StrCat("pipeline_test.cc:", line, ": ")));
}

// Each tile is one block's; bands are walked column by column.
TEST(PersistentTiles, GivesEachTileToOneBlock) {
  constexpr int kRows = 7, kWide = 5, kBatches = 2, kBlocks = 4;
  const auto kernel = define_kernel("tiles(y)", [](Tensor<int32_t, 2> y) {
    const PersistentTiles tiles(cast<int32_t>(y.shape(1)), kWide, kBatches, {.band = 3});
    For(tiles, Int(0), [&](const Tile& tile, const Int& turn) {
      const Int at = tile.batch * kWide + tile.column;
      y(at, tile.row) = 1 + turn * kBlocks + block_idx.x;
      return turn + 1;
    });
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer y = device.upload<int32_t>(std::vector<int32_t>(kRows * kWide * kBatches)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = kBlocks, .block = 32},
                            as_tensor<int32_t>(y, {kWide * kBatches, kRows})),
              IsOk());
  const std::vector<int32_t> got = y.download<int32_t>(stream).value();
  int number = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int band = 0; band < kRows; band += 3) {
      for (int column = 0; column < kWide; ++column) {
        for (int row = band; row < std::min(band + 3, kRows); ++row) {
          EXPECT_EQ(got[static_cast<size_t>((batch * kWide + column) * kRows + row)], ++number)
              << batch << " " << row << " " << column;
        }
      }
    }
  }
}

// Heights that the device knows alone, of more results than a warp has lanes; some are empty.
TEST(GroupedTiles, GivesEachTileToOneBlock) {
  constexpr int kGroups = 70, kWide = 3, kMost = 6, kBlocks = 4, kBand = 2;
  const auto kernel = define_kernel(
      "tiles(heights, y, count)",
      [](Tensor<const int32_t, 1> heights, Tensor<int32_t, 2> y, Tensor<int32_t, 1> count) {
        const GroupedTiles tiles(heights.shape(0), kWide,
                                 [&](const Int& group) { return heights(group); }, {.band = kBand});
        count(0) = tiles.count();
        For(tiles, Int(0), [&](const Tile& tile, const Int& turn) {
          y(tile.batch * kWide + tile.column, tile.row) = 1 + turn * kBlocks + block_idx.x;
          return turn + 1;
        });
      });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  for (const int modulus : {1, 2, kMost + 1}) {
    std::vector<int32_t> heights;
    int number = 0, found = 0;
    for (int group = 0; group < kGroups; ++group) heights.push_back(group * 5 % modulus);
    const Buffer heights_memory = device.upload<int32_t>(heights).value();
    const Buffer count = device.allocate(sizeof(int32_t)).value();
    const Buffer y = device.upload<int32_t>(std::vector<int32_t>(kMost * kWide * kGroups)).value();
    ASSERT_THAT(kernel.launch(stream, {.grid = kBlocks, .block = 32},
                              as_tensor<const int32_t>(heights_memory, {kGroups}),
                              as_tensor<int32_t>(y, {kWide * kGroups, kMost}),
                              as_tensor<int32_t>(count, {1})),
                IsOk());
    const std::vector<int32_t> got = y.download<int32_t>(stream).value();
    for (const int32_t tile : got) found += tile != 0 ? 1 : 0;
    for (int group = 0; group < kGroups; ++group) {
      const int height = heights[static_cast<size_t>(group)];
      for (int band = 0; band < height; band += kBand) {
        for (int column = 0; column < kWide; ++column) {
          for (int row = band; row < std::min(band + kBand, height); ++row) {
            EXPECT_EQ(got[static_cast<size_t>((group * kWide + column) * kMost + row)], ++number)
                << group << " " << row << " " << column;
          }
        }
      }
    }
    EXPECT_EQ(found, number);
    EXPECT_EQ(count.download<int32_t>(stream).value()[0], number);
  }
}

TEST(WarpRoles, NeedsThreadsForAllOfThem) {
  const auto kernel = define_kernel("roles(y)", [](Tensor<int32_t, 1> y) {
    warp_roles(Role{1, 0, [&](const Int& thread) { y(thread) = 1; }},
               Role{1, 0, [&](const Int& thread) { y(128 + thread) = 2; }});
  });
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {128, 1, 1};
  options.stage = Stage::kPtx;
  const StatusOr<CompiledKernel> compiled = kernel.compile(Signature{tensor({kAny})}, options);
  EXPECT_THAT(std::string(compiled.status().message()), HasSubstr("warp_roles()"));
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer y = device.allocate(256 * sizeof(int32_t)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = 256}, as_tensor<int32_t>(y, {256})),
              IsOk());
  const std::vector<int32_t> got = y.download<int32_t>(stream).value();
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(got[i], i < 128 ? 1 : 2) << i;
}

}  // namespace
}  // namespace heddle
