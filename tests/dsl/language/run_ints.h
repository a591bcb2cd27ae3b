// Runs a kernel from integers to integers on whatever device the tests run on.
#pragma once

#include <numeric>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/ir/status.h"
#include "support/test_device.h"

namespace heddle {

inline std::vector<int32_t> counting(int count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Runs body(x, y), x counting from 0, over as many elements as there are threads.
template <class Body>
StatusOr<std::vector<int32_t>> run(const char* name, LaunchShape shape, int count, Body body) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      local_kernel(name, [&](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) { body(x, y); });
  const auto values = counting(count);
  const Buffer in = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer out =
      device.upload(absl::MakeConstSpan(std::vector<int32_t>(values.size()))).value();
  Status status = kernel.launch(stream, shape, as_tensor<const int32_t>(in, {count}),
                                as_tensor<int32_t>(out, {count}));
  if (status.ok()) status = stream.synchronize();
  if (!status.ok()) return status;
  return out.download<int32_t>(stream);
}

// Whether the device has what came with sm_90.
inline bool has_clusters() { return test_device().info().cluster_launch; }

}  // namespace heddle
