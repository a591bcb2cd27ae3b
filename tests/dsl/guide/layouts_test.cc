// The layouts and tensors of dsl/LANGUAGE.md, run on the test device.
#include <fstream>
#include <numeric>
#include <sstream>
#include <vector>

#include "dsl/from_cuda/compile.h"
#include "gtest/gtest.h"
#include "heddle/dsl/layout/draw.h"
#include "support/test_device.h"

namespace heddle {
namespace {

TEST(Guide, Layouts) {
  // <page>
  const Layout tile = make_layout({8, 4}, {4, 1});   // (8,4):(4,1)
  const Layout tiles = zipped_divide(tile, {2, 2});  // ((2,2),(4,2)):((4,1),(8,2))
  const auto [tiler, tv] = make_layout_tv(make_layout({4, 8}, {8, 1}), make_layout({2, 2}, {2, 1}));
  const std::string picture = layout_svg(tv, {.tile = tiler});
  // </page>
  EXPECT_EQ(tile.to_string(), "(8,4):(4,1)");
  EXPECT_EQ(tiles.to_string(), "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(picture.substr(0, 4), "<svg");
}

// <page>
const auto scale = define_kernel("scale(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
  const Layout threads = make_layout({8, 16}, {16, 1});  // 8 x 16 threads, row by row
  const IntTuple extents{x.shape(0), x.shape(1)};
  const auto mine = [&](const auto& tensor) {  // this thread's part of this block's tile
    return local_partition(local_tile(tensor, {32, 64}, {block_idx.y, block_idx.x}), threads,
                           thread_idx.x);
  };
  const auto there = within(mine(make_identity_tensor(extents)), extents);
  const auto values = make_fragment_like(mine(x));  // registers
  copy_if(there, mine(x), values);                  // nothing outside the matrix
  transform(
      values, [](const Float& v) { return 2.0f * v; }, values);
  copy_if(there, values, mine(y));
});
// </page>

TEST(Guide, Tensors) {
  const Stream stream = test_device().create_stream().value();
  std::vector<float> numbers(40 * 70);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const Buffer x = test_device().upload(absl::MakeConstSpan(numbers)).value();
  const Buffer y = test_device().allocate(x.size_bytes()).value();
  ASSERT_THAT(scale.launch(stream, {.grid = {2, 2}, .block = 128},
                           as_tensor<const float>(x, {40, 70}), as_tensor<float>(y, {40, 70})),
              IsOk());
  for (float& number : numbers) number *= 2;
  EXPECT_EQ(y.download<float>(stream).value(), numbers);
}

}  // namespace
}  // namespace heddle
