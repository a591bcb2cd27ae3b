// Warp specialisation of dsl/LANGUAGE.md, as values_test.cc has its values.
#include "dsl/from_cuda/compile.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

TEST(Guide, WarpSpecialisation) {
  const auto kernel = define_kernel("roles(a, y)", [](Tensor<const half, 2> a, Tensor<float, 1> y) {
    // <page>
    const auto tiles = make_smem_tensor<half>(make_smem_layout<half>({64, 64, 3}));
    const TmaAtom load = make_tma_atom(TmaLoad{}, a, tiles(_, _, 0));
    const TmaPipeline pipe({.stages = 3, .bytes = load.bytes(), .consumers = 1});
    pipe.start();
    const PersistentTiles walk(ceil_div(a.shape(0), 64), 1, 1, {.band = 4});
    // </page>
    const Int blocks = ceil_div(a.shape(1), 64);
    const auto produce = [&](const Int&) {
      If(warp_id() == 0, [&] {
        // <page>
        For(walk, pipe.producer(),
            [&](const Tile& tile, const PipelineState& at) {
              // </page>
              const auto rows = local_tile(a, {64, 64}, {tile.row, _});
              return For(range(blocks), at, [&](const Int& k, const PipelineState& p) {
                // <page>
                pipe.produce(p, [&](const FullStage& full) {
                  copy(full.load(load), rows(_, _, k), tiles(_, _, p.index));
                });
                // </page>
                return pipe.next(p);
              });
              // <page>
            })
            // </page>
            ;
      });
    };
    const auto consume = [&](const Int& thread) {
      For(walk, pipe.consumer(), [&](const Tile&, const PipelineState& at) {
        return For(range(blocks), at, [&](const Int&, const PipelineState& p) {
          // <page>
          pipe.wait(p);
          // </page>
          y(thread) += cast<float>(tiles(thread / 2, 0, p.index));
          fence_async();
          named_barrier_sync(1, kWarpGroupSize);
          // <page>
          pipe.release(p);
          return pipe.next(p);
          // </page>
        });
      });
    };
    // <page>
    warp_roles(Role{1, 40, produce}, Role{1, 232, consume});
    // </page>
  });
  expect_compiles(kernel, {tensor({kAny, kAny}), tensor({kAny})});
}

// Tiles of results whose heights the device knows.
TEST(Guide, GroupedTiles) {
  const auto kernel =
      define_kernel("groups(heights, y)", [](Tensor<const int32_t, 1> heights, Tensor<float, 1> y) {
        // <page>
        const GroupedTiles walk(heights.shape(0), 4,
                                [&](const Int& group) { return (heights(group) + 63) / 64; });
        // </page>
        For(walk, [&](const Tile& tile) { y(tile.row) = cast<float>(tile.batch); });
      });
  expect_compiles(kernel, {tensor({kAny}), tensor({kAny})});
}

// Tiles whose depths blocks share.
TEST(Guide, StreamKTiles) {
  const auto kernel =
      define_kernel("shares(a, y)", [](Tensor<const float, 2> a, Tensor<float, 2> y) {
        // <page>
        const StreamKTiles walk(ceil_div(a.shape(0), 64), 1, 1, ceil_div(a.shape(1), 64));
        For(walk, [&](const TileShare& share) {
          // </page>
          y(share.row, share.first) = a(share.row, share.behind - 1);
          // <page>
        });
        // </page>
      });
  expect_compiles(kernel, {tensor({kAny, kAny}), tensor({kAny, kAny})});
}

TEST(Guide, CopiesByWarps) {
  const auto kernel =
      define_kernel("copies(a, y)", [](Tensor<const half, 2> a, Tensor<float, 1> y) {
        const SharedArena arena;
        // <page>
        const SharedRegion main = arena.region("main"), epilogue = arena.region("epilogue");
        // </page>
        const auto tiles = main.tensor<half>(make_smem_layout<half>({64, 64, 3}));
        // <page>
        const auto result = epilogue.tensor<float>(make_smem_layout<float>({64, 64}));
        const AsyncPipeline copied({.stages = 3, .producers = 4, .wgmma = true});
        // </page>
        const TiledCopy by_row = make_tiled_copy(make_copy_atom<half>(CopyAsync{128}),
                                                 make_layout({16, 8}, {8, 1}), make_layout({1, 8}));
        const auto rows = local_tile(a, {64, 64}, {block_idx.x, _});
        copied.start();
        const auto produce = [&](const Int&) {
          For(range(3), copied.producer(), [&](const Int& k, const PipelineState& p) {
            // <page>
            copied.produce(p, [&](const AsyncStage& stage) {
              copy(stage.load(by_row), rows(_, _, k), tiles(_, _, p.index));
            });
            // </page>
            return copied.next(p);
          });
        };
        const auto consume = [&](const Int& thread) {
          For(range(3), copied.consumer(), [&](const Int&, const PipelineState& p) {
            copied.wait(p);
            copied.release(p);
            return copied.next(p);
          });
          named_barrier_sync(1, kWarpGroupSize);
          // <page>
          epilogue.begin();
          // </page>
          result(thread / 2, thread % 2) = 1.0f;
          y(thread) = result(thread / 2, thread % 2);
        };
        warp_roles(Role{1, 40, produce}, Role{1, 232, consume});
      });
  expect_compiles(kernel,
                  {tensor({kAny, kAny}).aligned(16).strides_divisible_by(8).extents_divisible_by(8),
                   tensor({kAny})});
}

}  // namespace
}  // namespace heddle
