#include "heddle/tools/command/tuning_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/heddle.h"
#include "heddle/tools/elements.h"
#include "heddle/tools/spin.h"

namespace heddle::tools {
namespace {

using runtime::TuningProblem;
using Clock = std::chrono::steady_clock;

constexpr int kGlance = 3, kBurst = 10, kBursts = 5;  // launches at first, then of each burst
constexpr double kNear = 1.08;                    // of the fastest time at a glance: timed again
constexpr double kMostIdleMs = 100, kSlowMs = 4;  // after which a burst is one of two launches
constexpr int64_t kRandomElements = 1 << 20;      // repeated: what matters is that they differ
// How far an element may be from what the model's choice computes, of the largest one: orders of sums differ. Neighbours in
// e4m3 are a fourteenth of the greatest apart.
constexpr double kTolerance = 0.02, kToleranceOfE4M3 = 0.08;

std::string today() {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
  return date;
}

// Random numbers for a buffer of floats, zeros for others.
Status fill(const Stream& stream, const runtime::BoundCall::Value& value, Buffer& buffer) {
  const size_t bytes = buffer.size_bytes();
  if (bytes == 0) return OkStatus();
  if (!ir::is_float(value.shape.dtype)) return buffer.fill(stream, 0);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> numbers(kRandomElements);
  for (double& number : numbers) number = uniform(random);
  std::vector<std::byte> block(kRandomElements * ir::bytes_of(value.shape.dtype));
  from_doubles(value.shape.dtype, numbers, absl::MakeSpan(block));
  for (size_t at = 0; at < bytes; at += block.size()) {
    const size_t part = std::min(block.size(), bytes - at);
    if (Status s = buffer.copy_from_host(stream, block.data(), part, at); !s.ok()) return s;
  }
  return stream.synchronize();
}

// The operands of a call, as often as fills four times the L2 cache.
class Sets {
 public:
  static StatusOr<Sets> allocate(const Device& device, const Stream& stream,
                                 const runtime::BoundCall& call) {
    Sets sets;
    int64_t count = 1;
    for (int64_t i = 0; i < count; ++i) {
      StatusOr<DeviceArguments> one = DeviceArguments::allocate(device, call);
      if (!one.ok()) return one.status();
      for (size_t v = 0; v < call.values.size(); ++v) {
        if (!call.values[v].argument->is_tensor()) continue;
        if (Status s = fill(stream, call.values[v], one->buffers()[v]); !s.ok()) return s;
      }
      const auto bytes = static_cast<int64_t>(std::max<uint64_t>(one->tensor_bytes(), 1));
      constexpr int64_t kMost = 64;
      if (device.kind() == runtime::BackendKind::kCuda) {
        count = std::clamp<int64_t>(4 * device.info().l2_bytes / bytes + 1, 2, kMost);
      }
      sets.all_.push_back(*std::move(one));
    }
    return sets;
  }
  runtime::Arguments arguments(size_t set) const { return all_[set % all_.size()].arguments(); }
  Buffer& buffer(size_t set, size_t argument) { return all_[set].buffers()[argument]; }
  size_t count() const { return all_.size(); }

 private:
  std::vector<DeviceArguments> all_;
};

// An output's elements.
struct Output {
  ir::Scalar type;
  std::vector<std::byte> bytes;
};

// What a call computes: the outputs of the first set of operands.
class Results {
 public:
  Results(const Stream& stream, const runtime::BoundCall& call, Sets& sets)
      : stream_(stream), call_(call), sets_(sets) {}

  // How far elements may be from each other, of the largest.
  double tolerance() const {
    for (const runtime::BoundCall::Value& value : call_.values) {
      const bool coarse = value.argument->is_written() && value.shape.dtype == ir::Scalar::kE4M3;
      if (coarse) return kToleranceOfE4M3;
    }
    return kTolerance;
  }
  // Those behind a launch that finds NaN or the like there. None where the call reads what it writes, so that two
  // launches differ.
  StatusOr<std::vector<Output>> of(const Launch& launch) {
    std::vector<Output> all;
    for (const runtime::BoundCall::Value& value : call_.values) {
      if (value.argument->role == runtime::Role::kInOut) return all;
    }
    for (size_t i = 0; i < call_.values.size(); ++i) {
      if (!call_.values[i].argument->is_written()) continue;
      if (Status s = sets_.buffer(0, i).fill(stream_, 0xff); !s.ok()) return s;
    }
    if (Status s = launch(0); !s.ok()) return s;
    for (size_t i = 0; i < call_.values.size(); ++i) {
      if (!call_.values[i].argument->is_written()) continue;
      std::vector<std::byte> bytes(sets_.buffer(0, i).size_bytes());
      Status s = sets_.buffer(0, i).copy_to_host(stream_, bytes.data(), bytes.size());
      if (s.ok()) s = stream_.synchronize();
      if (!s.ok()) return s;
      all.push_back({call_.values[i].shape.dtype, std::move(bytes)});
    }
    return all;
  }

 private:
  const Stream& stream_;
  const runtime::BoundCall& call_;
  Sets& sets_;
};

// How many of an output's elements are no neighbours.
int64_t differing(const Output& x, const Output& y, double tolerance) {
  if (x.bytes == y.bytes) return 0;
  const size_t some = 16384 * ir::bytes_of(x.type), all = x.bytes.size();  // what fits a cache
  const auto elements = [&](const Output& of, size_t at) {
    return to_doubles(of.type, absl::MakeConstSpan(of.bytes).subspan(at, some));
  };
  double largest = 0;
  for (size_t at = 0; at < all; at += some) {
    for (const double element : elements(x, at)) {
      if (std::isfinite(element)) largest = std::max(largest, std::abs(element));
    }
  }
  int64_t count = 0;
  for (size_t at = 0; at < all; at += some) {
    const std::vector<double> a = elements(x, at), b = elements(y, at);
    for (size_t i = 0; i < a.size(); ++i) {
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                        std::abs(a[i] - b[i]) <= tolerance * largest;
      count += same ? 0 : 1;
    }
  }
  return count;
}
int64_t differing(const std::vector<Output>& x, const std::vector<Output>& y, double tolerance) {
  int64_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) count += differing(x[i], y[i], tolerance);
  return count;
}

// The candidates of one problem.
class Search {
 public:
  Search(TuningProblem problem, const Sets& sets, Results& results, Launch launch,
         const SearchOptions& options, const Timer& timer, Clock::time_point until)
      : sets_(sets),
        results_(results),
        launch_(std::move(launch)),
        options_(options),
        timer_(timer),
        until_(until) {
    tuned_.problem = std::move(problem);
  }

  StatusOr<Tuned> run() {
    const TuningProblem& problem = tuned_.problem;
    std::vector<std::string> order = problem.candidates;
    std::stable_partition(order.begin(), order.end(),
                          [&](const std::string& name) { return name == problem.model; });
    for (const std::string& name : order) {
      if (Clock::now() > until_ && !times_.empty()) break;
      glance(name);
      ++done_;
      if (options_.on_progress) {
        options_.on_progress(problem, done_, times_.empty() ? 0 : best()->us);
      }
    }
    tuned_.measured = times_.size();
    tuned_.tried = done_;
    if (times_.empty()) {
      return Status(why_.code(),
                    absl::StrCat("no candidate of ", problem.operation, " ", problem.problem,
                                 " can be launched: ", why_.message()));
    }
    if (Status s = look_closer(); !s.ok()) return s;
    const auto model = std::find_if(times_.begin(), times_.end(),
                                    [&](const One& one) { return one.name == problem.model; });
    // Of a model's choice that cannot be launched there is no time.
    tuned_.choice = {problem.problem,
                     best()->name,
                     problem.model,
                     best()->us,
                     model == times_.end() ? 0 : model->us,
                     today()};
    runtime::TuningScope::current()->use(problem, best()->name);
    return std::move(tuned_);
  }

 private:
  using One = CandidateTime;
  static bool faster(const One& x, const One& y) { return x.us < y.us; }
  std::vector<One>::iterator best() {
    return std::min_element(times_.begin(), times_.end(), faster);
  }

  void glance(const std::string& name) {
    runtime::TuningScope::current()->use(tuned_.problem, name);
    const auto us = [&]() -> StatusOr<double> {
      // Each set once, so that nothing is prepared while it is timed.
      for (size_t i = 0; i < sets_.count(); ++i) {
        if (Status s = launch_(i); !s.ok()) return s;
      }
      return timer_(launch_, kGlance, 1);
    }();
    if (us.ok()) {
      times_.push_back({name, *us});
    } else {
      why_ = us.status();
      tuned_.failed.push_back(absl::StrCat(name, ": ", why_.message()));
    }
  }

  // Times those near the fastest again, the fastest ones first while there is time, and leaves out the ones with other results than
  // the model's choice, or, where that cannot be launched, than the fastest.
  Status look_closer() {
    const double near = kNear * best()->us;
    std::vector<One> good;
    std::optional<std::vector<Output>> expected;
    const auto is_model = [&](const One& one) { return one.name == tuned_.problem.model; };
    std::stable_sort(times_.begin(), times_.end(), faster);
    std::stable_partition(times_.begin(), times_.end(), is_model);
    for (One& one : times_) {
      const bool late = Clock::now() > until_ && !good.empty();
      if (late || (one.us > near && !is_model(one))) {
        tuned_.times.push_back(one);
        continue;
      }
      runtime::TuningScope::current()->use(tuned_.problem, one.name);
      StatusOr<std::vector<Output>> results = results_.of(launch_);
      if (!results.ok()) return results.status();
      if (!expected) expected = *results;
      if (const int64_t count = differing(*expected, *results, results_.tolerance()); count > 0) {
        tuned_.failed.push_back(absl::StrCat(one.name, ": ", ir::counted(count, "element"),
                                             " of its results differ from the model's"));
        continue;
      }
      if (Status s = time_again(one); !s.ok()) return s;
      good.push_back(one);
    }
    times_ = std::move(good);
    tuned_.times.insert(tuned_.times.end(), times_.begin(), times_.end());
    std::stable_sort(tuned_.times.begin(), tuned_.times.end(), faster);
    return OkStatus();
  }

  Status time_again(One& one) {
    const StatusOr<double> us = timer_(launch_, one.us > kSlowMs * 1e3 ? 2 : kBurst, kBursts);
    if (!us.ok()) return us.status();
    one.us = *us;
    return OkStatus();
  }

  const Sets& sets_;
  Results& results_;
  Launch launch_;
  const SearchOptions& options_;
  const Timer& timer_;
  Clock::time_point until_;
  Tuned tuned_;
  std::vector<One> times_;
  size_t done_ = 0;
  Status why_;
};

}  // namespace

Timer device_timer(const Device& device) {
  return [device](const Launch& launch, int launches, int bursts) -> StatusOr<double> {
    const Stream stream = device.default_stream();
    StatusOr<Event> start = device.create_event(), stop = device.create_event();
    if (!start.ok()) return start.status();
    if (!stop.ok()) return stop.status();
    StatusOr<Buffer> spun = device.allocate(sizeof(int64_t));
    if (!spun.ok()) return spun.status();
    std::vector<double> times;
    size_t set = 0;
    for (int burst = 0; burst < bursts; ++burst) {
      if (Status s = stream.synchronize(); !s.ok()) return s;
      if (!times.empty()) {
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(
            std::min(10 * launches * times.back() * 1e-3, kMostIdleMs)));
      }
      Status s = spin_kernel().launch(stream, {.grid = 1, .block = 1},
                                      as_tensor<int64_t>(*spun, {1}), kSpinCycles);
      if (s.ok()) s = start->record(stream);
      for (int i = 0; i < launches && s.ok(); ++i) s = launch(set++);
      if (s.ok()) s = stop->record(stream);
      if (s.ok()) s = stop->synchronize();
      if (!s.ok()) return s;
      const StatusOr<double> ms = Event::elapsed_ms(*start, *stop);
      if (!ms.ok()) return ms;
      times.push_back(*ms * 1e3 / launches);
    }
    std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  };
}

StatusOr<std::vector<Tuned>> search(const Device& device, const runtime::BoundCall& call,
                                    const SearchOptions& options, const Timer& timer) {
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(options.budget_s));
  const Stream stream = device.default_stream();
  StatusOr<Sets> sets = Sets::allocate(device, stream, call);
  if (!sets.ok()) return sets.status();
  Results results(stream, call, *sets);
  const Launch launch = [&](size_t set) {
    return call.function->call(stream, sets->arguments(set));
  };
  runtime::TuningScope scope;
  std::vector<Tuned> all;
  const auto is_tuned = [&](const TuningProblem& asked) {
    return std::any_of(all.begin(), all.end(), [&](const Tuned& tuned) {
      return tuned.problem.operation == asked.operation && tuned.problem.problem == asked.problem;
    });
  };
  // A choice may change which problems come behind it.
  while (true) {
    scope.ask_again();
    Status launched = launch(0);
    if (launched.ok()) launched = stream.synchronize();
    const auto next = std::find_if_not(scope.asked().begin(), scope.asked().end(), is_tuned);
    // Where the model's choice cannot be launched, another may be.
    if (next != scope.asked().end()) {
      StatusOr<Tuned> tuned = Search(*next, *sets, results, launch, options, timer, until).run();
      if (!tuned.ok()) return tuned.status();
      all.push_back(*std::move(tuned));
    } else if (launched.ok()) {
      return all;
    } else {
      return launched;
    }
  }
}

}  // namespace heddle::tools
