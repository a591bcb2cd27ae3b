// Jobs on all cores, with a report of each that has ended: what compile_all() and warm_up() share.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/ahead/compile_all.h"

namespace heddle::runtime {

inline int threads_for(int wanted, int jobs) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::clamp(wanted > 0 ? wanted : cores, 1, std::max(1, jobs));
}

// The results of run(0) to run(count - 1); describe(i) is what the progress calls a job. What one of them or on_done throws stops all,
// and is thrown here.
template <class T>
std::vector<StatusOr<T>> run_all(int count, const CompileAllOptions& options,
                                 const std::function<StatusOr<T>(int)>& run,
                                 const std::function<std::string(int)>& describe) {
  std::vector<std::optional<StatusOr<T>>> results(count);
  const auto began = std::chrono::steady_clock::now();
  std::atomic<int> next{0};
  std::mutex reporting;
  int done = 0;
  std::exception_ptr thrown;  // by a kernel's lambda or on_done: the caller's, as of compile()
  const auto work = [&] {
    try {
      for (int i = next++; i < count; i = next++) {
        results[i] = run(i);
        if (!options.on_done) continue;
        const std::lock_guard lock(reporting);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        options.on_done({++done, count, describe(i), results[i]->status(), took.count()});
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(reporting);
      thrown = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads_for(options.threads, count); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The system has no more threads: those that there are do the work.
  }
  work();
  for (std::thread& other : others) other.join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  std::vector<StatusOr<T>> all;
  all.reserve(count);
  for (std::optional<StatusOr<T>>& result : results) all.push_back(*std::move(result));
  return all;
}

}  // namespace heddle::runtime
