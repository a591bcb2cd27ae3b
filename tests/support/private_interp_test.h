// An interpreter of a test's own: what it runs is nobody else's.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle {

class PrivateInterpTest : public testing::Test {
 protected:
  Buffer zeros(int64_t count) const {
    return device_.upload(absl::MakeConstSpan(std::vector<float>(static_cast<size_t>(count))))
        .value();
  }
  const Device device_ = Device::open_private_interp(runtime::InterpBackend::default_info());
  const Stream stream_ = device_.create_stream().value();
};

}  // namespace heddle
