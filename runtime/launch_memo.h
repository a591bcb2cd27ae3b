// The last launches of each thread, with all that was worked out for them. What Heddle adds to the driver's call follows from the
// kernel, the shape and the arguments: measuring tensors, finding the variant, checking limits, encoding tensor maps, laying out
// the parameter block. A launch of the same kernel, on the same device, in the same shape, with the very arguments of one that is
// remembered goes to the driver at once, on whichever stream.
//
// What may change without the arguments' changing is asked each time: whether a buffer is still alive, by the caller; whether the
// device is lost and whether the stream is being recorded, by enqueue().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "heddle/ir/launch/launch_shape.h"
#include "heddle/runtime/executable.h"
#include "heddle/runtime/launch_key.h"

namespace heddle::runtime {

// A thread's launches, each in the one place that its kernel and arguments say.
class LaunchMemo {
 public:
  // A launch that is remembered; none where `launch.again` is not set.
  struct Entry {
    uint64_t kernel = 0;               // KernelCache::kernel_id()
    const Backend* backend = nullptr;  // the device
    LaunchShape shape;                 // as the caller gave it
    std::vector<uint64_t> words;       // LaunchKey::words
    PreparedLaunch launch;             // for the driver

    // Whether it is this one.
    bool is(uint64_t of_kernel, const Backend* on, const LaunchShape& in,
            const LaunchKey& with) const {
      return launch.again && kernel == of_kernel && backend == on && shape == in &&
             words.size() == with.words.size() &&
             std::memcmp(words.data(), with.words.data(), words.size() * sizeof(words[0])) == 0;
    }
  };

  // This thread's; nullptr while the thread ends. Made when it is first asked for.
  static LaunchMemo* of_thread();

  // The one place where a launch may be remembered.
  Entry& entry(uint64_t kernel, const LaunchKey& key) {
    return entries_[((kernel + 1) * kSpread ^ key.hash) >> (64 - kBits)];
  }

 private:
  static constexpr int kBits = 6;
  static constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;

  std::array<Entry, size_t{1} << kBits> entries_;
};

}  // namespace heddle::runtime
