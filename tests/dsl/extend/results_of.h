// What each thread of a block computes by a function of the language, on the tests' device.
#pragma once

#include <vector>

#include "heddle/heddle.h"
#include "support/test_device.h"

namespace heddle {

template <class T, class Body>
StatusOr<std::vector<T>> results_of(int64_t threads, const Body& body) {
  const auto kernel = local_kernel("custom", [&](Tensor<T, 1> y) { y(thread_idx.x) = body(); });
  const Stream stream = test_device().create_stream().value();
  const Buffer out = test_device().upload(absl::MakeConstSpan(std::vector<T>(threads))).value();
  Status status = kernel.launch(stream, {.block = threads}, as_tensor<T>(out, {threads}));
  if (!status.ok()) return status;
  status = stream.synchronize();
  if (!status.ok()) return status;
  return out.template download<T>(stream);
}

}  // namespace heddle
