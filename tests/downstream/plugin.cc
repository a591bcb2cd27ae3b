// A plug-in for the installed heddle command.
#include <heddle/heddle.h>
#include <heddle/runtime/operation/registry.h>

using namespace heddle;

constexpr int kTile = 256;

// Each block has a tile brought by one thread.
const auto halved = define_kernel("halved(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
  const Shared<float> tile(kTile);
  const Mbarrier full(1);
  If(thread_idx.x == 0, [&] {
    full.init(0, 1);
    fence_mbarrier_init();
    full.expect_tx(0, kTile * sizeof(float));
    bulk_load(tile.at(0), x.at(block_idx.x * kTile), kTile, full, 0);
  });
  sync_threads();
  full.wait(0, 0u);
  y(block_idx.x * kTile + thread_idx.x) = tile(thread_idx.x) * 0.5f;
});

// <page>
const Registered registered(
    {.name = "halved",
     .summary = "y = x / 2",
     .arguments = {"x: f32[n]", "y: f32[n]"},
     .functions = {host_function([](const Stream& stream, const TensorRef<const float, 1>& x,
                                    const TensorRef<float, 1>& y) {
       return halved.launch(stream, {.grid = x.extents[0] / kTile, .block = kTile}, x, y);
     })},
     .sizes = {{"n", 1 << 16}}});
// </page>
