// README.md's program: a host program that knows nothing of Heddle but its install tree.
// <page>
#include <heddle/heddle.h>

#include <cstdio>
#include <vector>

using namespace heddle;

// One block for each row: every thread sums a strided slice, and the block adds up the sums.
const auto row_sum =
    define_kernel("row_sum(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
      Int row = block_idx.x;
      Float sum = For(range(thread_idx.x, x.shape(1), block_dim.x), Float(0),
                      [&](Int col, Float acc) { return acc + x(row, col); });
      Float total = block_reduce(sum, plus());
      If(thread_idx.x == 0, [&] { y(row) = total; });
    });

int main(int argc, char** argv) {
  Device device = Device::open(argc > 1 ? argv[1] : "cuda:0").value();  // "interp": without a GPU
  Stream stream = device.create_stream().value();
  Buffer in = device.upload<float>({1, 2, 3, 4, 5, 6}).value();
  Buffer out = device.allocate(2 * sizeof(float)).value();
  Status status = row_sum.launch(stream, {.grid = 2, .block = 128},
                                 as_tensor<const float>(in, {2, 3}), as_tensor<float>(out, {2}));
  if (status.ok()) status = stream.synchronize();
  if (!status.ok()) {
    std::printf("%s\n", status.ToString().c_str());
    return 1;
  }
  std::vector<float> y = out.download<float>(stream).value();
  std::printf("%g %g\n", y[0], y[1]);
}
// </page>
