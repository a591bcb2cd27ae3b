// What the README shows, in a host program that knows nothing of Heddle but its install tree.
#include <heddle/heddle.h>
#include <heddle/kernels/row_sum.h>

#include <cstdio>
#include <vector>

using namespace heddle;

const auto row_sum =
    define_kernel("row_sum(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
      Int row = block_idx.x;
      Float sum = For(range(thread_idx.x, x.shape(1), block_dim.x), Float(0),
                      [&](Int col, Float acc) { return acc + x(row, col); });
      Float total = block_reduce(sum, plus());
      If(thread_idx.x == 0, [&] { y(row) = total; });
    });

int main() {
  Device device = Device::open("interp").value();
  Stream stream = device.create_stream().value();
  Buffer in = device.upload<float>({1, 2, 3, 4, 5, 6}).value();
  Buffer out = device.allocate(2 * sizeof(float)).value();
  const auto x = as_tensor<const float>(in, {2, 3});
  const auto y = as_tensor<float>(out, {2});

  for (int from_library = 0; from_library < 2; ++from_library) {
    const Status status = from_library != 0
                              ? kernels::row_sum(stream, x, y)
                              : row_sum.launch(stream, {.grid = 2, .block = 128}, x, y);
    const std::vector<float> sums = out.download<float>(stream).value();
    std::printf("%s: %g %g\n", status.ok() ? "ok" : status.ToString().c_str(), sums[0], sums[1]);
    if (!status.ok() || sums[0] != 6 || sums[1] != 15) return 1;
  }
  return 0;
}
