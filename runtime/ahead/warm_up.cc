#include "heddle/runtime/ahead/warm_up.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/ahead/fact_arguments.h"
#include "heddle/runtime/ahead/launch_recorder.h"
#include "heddle/runtime/ahead/prepared_call.h"
#include "heddle/runtime/ahead/run_all_internal.h"
#include "heddle/runtime/executable.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/runtime/recall/recall.h"
#include "heddle/runtime/specialize.h"
#include "heddle/runtime/stopwatch_internal.h"

namespace heddle::runtime {
namespace {

using Kernels = absl::Span<const ir::KernelSource* const>;

// What was done for one line.
struct Done {
  int kernels = 0;        // compiled or loaded
  int from_disk = 0;      // of them, those that lay there
  bool worked = false;    // it was not all there
  std::string skip = {};  // why it cannot be warmed, though nothing has failed
};

// Where kernels are made warm: a device, or the disk.
class Place {
 public:
  virtual ~Place() = default;
  virtual const std::string& name() const = 0;
  virtual const DeviceInfo& info() const = 0;
  virtual const ir::Target& target() const = 0;
  // Makes a variant, where it is not there. Thread-safe.
  virtual Status make(const ir::KernelSource& source, const LaunchShape& shape, Arguments arguments,
                      Done& done) = 0;

 protected:
  // Counts what was made, once: two threads may have waited for the same.
  void count(size_t identity, const Compilation& compilation, Done& done) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!counted_.insert(identity).second) return;
    ++done.kernels;
    if (compilation.assembly.from_cache) ++done.from_disk;
  }

 private:
  std::mutex mutex_;
  std::set<size_t> counted_;
};

class OnDevice final : public Place {
 public:
  OnDevice(const Device& device, const ir::Target& target) : device_(device), target_(target) {}
  const std::string& name() const override { return device_.backend()->name(); }
  const DeviceInfo& info() const override { return device_.info(); }
  const ir::Target& target() const override { return target_; }
  Status make(const ir::KernelSource& source, const LaunchShape& shape, Arguments arguments,
              Done& done) override {
    KernelCache& cache = KernelCache::of(source);
    if (cache.find(device_.backend().get(), shape, arguments) != nullptr) return OkStatus();
    const StatusOr<const Executable*> made =
        cache.find_or_compile(source, device_.backend(), shape, arguments);
    if (!made.ok()) return made.status();
    done.worked = true;
    count(reinterpret_cast<size_t>(*made), (*made)->compilation(), done);
    return OkStatus();
  }

 private:
  const Device& device_;
  const ir::Target& target_;
};

class OnDisk final : public Place {
 public:
  explicit OnDisk(const ir::Target& target)
      : name_(target.name), info_(info_of(target)), target_(target) {}
  const std::string& name() const override { return name_; }
  const DeviceInfo& info() const override { return info_; }
  const ir::Target& target() const override { return target_; }
  Status make(const ir::KernelSource& source, const LaunchShape& shape, Arguments arguments,
              Done& done) override {
    CompileOptions options{.block = shape.block_to_compile(), .cluster = shape.cluster};
    options.target = name_;
    const StatusOr<std::shared_ptr<const Compilation>> made =
        recall_or_compile(source, specialize(source, arguments, target_), options);
    if (!made.ok()) return made.status();
    if ((*made)->assembly.cubin.empty()) {
      return FailedPreconditionError(
          absl::StrCat((*made)->describe(),
                       ": the driver is chosen to assemble kernels, which leaves nothing on the "
                       "disk; fix: choose another --assembler in HEDDLE_OPTIONS"));
    }
    done.worked |= !(*made)->assembly.from_cache;
    count(std::hash<std::string>()((*made)->ptx.text), **made, done);
    return OkStatus();
  }

 private:
  const std::string name_;
  const DeviceInfo info_;
  const ir::Target& target_;
};

// A line that can be warmed.
struct Job {
  int line = 0;
  std::string name;   // for the progress
  const void* group;  // jobs of one group wait for each other
  std::function<StatusOr<Done>()> run;
};

// A reason to skip a line.
template <class... Text>
Status skip(const Text&... text) {
  return NotFoundError(absl::StrCat(text...));
}

// The kernels of a line: of those with its name, parameters and values the one of its place, or where there is none of that all, for the
// source may have got other lines.
StatusOr<std::vector<const ir::KernelSource*>> kernels_of(const KernelIdentity& wanted,
                                                          Kernels kernels) {
  std::vector<const ir::KernelSource*> fit, in_place;
  std::vector<absl::string_view> names;
  std::string other_parameters, other_values;
  for (const ir::KernelSource* const kernel : kernels) {
    names.push_back(kernel->name());
    if (kernel->name() != wanted.name) continue;
    const KernelIdentity identity = identity_of(*kernel);
    if (identity.takes != wanted.takes) {
      other_parameters = identity.takes;
    } else if (identity.values != wanted.values) {
      other_values = identity.place;
    } else {
      fit.push_back(kernel);
      if (identity.place == wanted.place) in_place.push_back(kernel);
    }
  }
  if (!fit.empty()) return in_place.empty() ? fit : in_place;
  if (!other_values.empty()) {
    return skip("kernel '", wanted.name, "' (", other_values,
                ") was made for other values, or is declared otherwise by now");
  }
  if (!other_parameters.empty()) {
    return skip("kernel '", wanted.name, "' takes (", other_parameters, ") by now, and took (",
                wanted.takes, ")");
  }
  if (kernels.empty()) {
    return skip("it is a kernel of a program's own; fix: let that program give it to warm_up()");
  }
  return skip("no kernel '", wanted.name, "' was given", ir::suggest(wanted.name, names));
}

Status add_kernel(int number, const KernelLine& line, Kernels kernels, Place& place,
                  std::vector<Job>& jobs) {
  if (line.target != place.target().name) {
    return skip("it is for ", line.target, ", and ", place.name(),
                place.name() == place.target().name
                    ? std::string(" is wanted")
                    : absl::StrCat(" takes code for ", place.target().name));
  }
  const StatusOr<std::vector<const ir::KernelSource*>> found = kernels_of(line.kernel, kernels);
  if (!found.ok()) return found.status();
  // std::function copies what it holds.
  StatusOr<FactArguments> arguments =
      FactArguments::of((*found)[0]->params(), line.facts, place.target());
  if (!arguments.ok()) return skip(arguments.status().message());
  const auto shared = std::make_shared<const FactArguments>(*std::move(arguments));
  const LaunchShape shape{.block = line.block, .cluster = line.cluster};
  const std::vector<const ir::KernelSource*> sources = *found;
  jobs.push_back({number, describe(*sources[0]), sources[0],
                  [&place, sources, shared, shape]() -> StatusOr<Done> {
                    Done done;
                    for (const ir::KernelSource* const source : sources) {
                      const Status made = place.make(*source, shape, shared->arguments(), done);
                      if (!made.ok()) return made;
                    }
                    return done;
                  }});
  return OkStatus();
}

// Runs a call dry: makes what it launches.
StatusOr<Done> warm_call(const PreparedCall& call, Place& place) {
  Done done;
  const Device dry = open_dry_run(place.info(), [&](const DryLaunch& launch) -> Status {
    if (launch.source == nullptr) return OkStatus();
    return place.make(*launch.source, launch.shape, launch.arguments, done);
  });
  const Status status = call.with_untouched_memory([&](absl::Span<const Argument> arguments) {
    const VariantsOfCall of_call;
    Status called = call.bound().function->call(dry.default_stream(), arguments);
    if (called.ok()) record_call(call.bound(), arguments);
    return called;
  });
  const bool wanted = results_were_wanted(dry);
  if (wanted) done.skip = "it reads results between its launches, and so compiles while it runs";
  if (!wanted && !status.ok()) return status;
  return done;
}

Status add_call(int number, const CallLine& line, Place& place, std::vector<Job>& jobs) {
  const Operation* const operation = find_operation(line.operation);
  if (operation == nullptr) {
    std::vector<absl::string_view> names;
    for (const Operation* known : registered_operations()) names.push_back(known->name());
    return skip("there is no operation '", line.operation, "'", ir::suggest(line.operation, names));
  }
  StatusOr<PreparedCall> call = PreparedCall::bind(*operation, line.settings, line.tensors);
  if (!call.ok()) return skip(call.status().message());
  const auto shared = std::make_shared<const PreparedCall>(*std::move(call));
  jobs.push_back({number, absl::StrCat("call of ", line.operation), operation,
                  [&place, shared] { return warm_call(*shared, place); }});
  return OkStatus();
}

// "kernel row_sum", "call softmax"
std::string what_of(const WarmListEntry& entry) {
  if (const auto* const kernel = std::get_if<KernelLine>(&entry.content)) {
    return absl::StrCat("kernel ", kernel->kernel.name);
  }
  if (const auto* const call = std::get_if<CallLine>(&entry.content)) {
    return absl::StrCat("call ", call->operation);
  }
  return std::get<std::string>(entry.content);
}

Status add(const WarmListEntry& entry, Kernels kernels, Place& place, std::vector<Job>& jobs) {
  if (const auto* const kernel = std::get_if<KernelLine>(&entry.content)) {
    return add_kernel(entry.line, *kernel, kernels, place, jobs);
  }
  if (const auto* const call = std::get_if<CallLine>(&entry.content)) {
    return add_call(entry.line, *call, place, jobs);
  }
  return skip("this version of Heddle knows lines of kernels and of calls alone");
}

// The first job of each group, then the second of each, and so on: threads that compile the same kernel wait for each other.
void take_turns(std::vector<Job>& jobs) {
  std::map<const void*, int> count;
  std::vector<std::pair<int, Job>> turns;
  for (Job& job : jobs) turns.emplace_back(count[job.group]++, std::move(job));
  std::stable_sort(turns.begin(), turns.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i] = std::move(turns[i].second);
}

StatusOr<WarmUpReport> warm(Place& place, Kernels kernels, const std::string& list,
                            const CompileAllOptions& options) {
  Stopwatch stopwatch;
  const StatusOr<std::vector<WarmListEntry>> entries = read_warm_list(list);
  if (!entries.ok()) return entries.status();
  for (const ir::KernelSource* const kernel : kernels) {
    if (kernel == nullptr) return InvalidArgumentError("a kernel that warm_up() was given is null");
  }
  WarmUpReport report;
  std::vector<Job> jobs;
  std::map<int, std::string> names;  // by the number of the line
  for (const WarmListEntry& entry : *entries) {
    ++report.lines;
    names[entry.line] = what_of(entry);
    if (const Status added = add(entry, kernels, place, jobs); !added.ok()) {
      report.skipped.push_back({entry.line, names[entry.line], std::string(added.message())});
    }
  }
  take_turns(jobs);
  const std::vector<StatusOr<Done>> results = run_all<Done>(
      static_cast<int>(jobs.size()), options, [&](int i) { return jobs[i].run(); },
      [&](int i) { return jobs[i].name; });
  for (size_t i = 0; i < jobs.size(); ++i) {
    const int line = jobs[i].line;
    if (!results[i].ok()) {
      report.failed.push_back({line, names[line], std::string(results[i].status().message())});
      continue;
    }
    const Done& done = *results[i];
    report.kernels += done.kernels;
    report.from_disk += done.from_disk;
    if (!done.skip.empty()) {
      report.skipped.push_back({line, names[line], done.skip});
    } else {
      ++(done.worked ? report.warmed : report.there);
    }
  }
  const auto by_number = [](const WarmUpReport::Line& a, const WarmUpReport::Line& b) {
    return a.number < b.number;
  };
  std::sort(report.skipped.begin(), report.skipped.end(), by_number);
  std::sort(report.failed.begin(), report.failed.end(), by_number);
  report.seconds = stopwatch.lap() * 1e-6;
  return report;
}

}  // namespace

StatusOr<WarmUpReport> warm_up(const Device& device, Kernels kernels, const std::string& list,
                               const CompileAllOptions& options) {
  if (device.backend() == nullptr) return moved_from("a Device");
  const StatusOr<const ir::Target*> target =
      target_of(Executable::launch_options_for(*device.backend()));
  if (!target.ok()) return target.status();
  OnDevice place(device, **target);
  return warm(place, kernels, list, options);
}

StatusOr<WarmUpReport> warm_up_disk(const ir::Target& target, Kernels kernels,
                                    const std::string& list, const CompileAllOptions& options) {
  if (codegen::DiskCache::of_user() == nullptr) {
    return FailedPreconditionError(
        "there is no cache on disk to fill; fix: unset HEDDLE_CACHE and HEDDLE_CACHE_MIB, and set "
        "HEDDLE_CACHE_DIR to a folder of yours");
  }
  OnDisk place(target);
  return warm(place, kernels, list, options);
}

}  // namespace heddle::runtime
