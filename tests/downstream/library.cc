// Calls the kernel library from an install tree.
#include <heddle/heddle.h>
#include <heddle/kernels/row_sum.h>

#include <cstdio>
#include <vector>

using namespace heddle;

int main() {
  Device device = Device::open("interp").value();
  Stream stream = device.create_stream().value();
  Buffer in = device.upload<float>({1, 2, 3, 4, 5, 6}).value();
  Buffer out = device.allocate(2 * sizeof(float)).value();
  const Status status =
      kernels::row_sum(stream, as_tensor<const float>(in, {2, 3}), as_tensor<float>(out, {2}));
  if (!status.ok()) return 1;
  const std::vector<float> y = out.download<float>(stream).value();
  std::printf("%g %g\n", y[0], y[1]);
}
