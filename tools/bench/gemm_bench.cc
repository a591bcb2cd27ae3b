// Products of kernels/gemm beside cuBLAS and CUTLASS on a GPU, in one process. Writes JSON.
//
//   gemm_bench --json results/gemm.json [--resume] [--only REGEX] [--rounds N] [--no-sustained] [--budget SECONDS]
//   gemm_bench --list
//
// For each product of gemm/shapes.def: every contender's result is compared, by a GPU kernel, with one that is right in double
// precision where samples are taken; one that differs is reported and not timed. Each contender's fastest candidate
// is chosen by timing. Then, in each round, the contenders take turns in a random order: eight launches after the
// GPU has been idle for a while. Inputs are random in [-1, 1]; as many sets of operands as fill four times the L2
// cache take turns. A figure is the median of the rounds. Products of the group "sustained" also run for four
// seconds, with clocks, power and energy. The floor is 2 M N K operations over the tensor cores' rate.
//
// The file is written before and after each product. One during which the program ended says so; --resume goes on
// behind it. Files of tuned choices do not count here.
#include <algorithm>
#include <filesystem>
#include <random>
#include <regex>

#include "CLI/CLI.hpp"
#include "heddle/tools/bench/gemm/heddle_gemm.h"
#include "heddle/tools/bench/gemm/measure.h"

namespace heddle::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string device = "cuda:0", json, only, cublaslt;
  std::vector<std::string> peers;
  int rounds = 5;
  unsigned seed = 1, nvml = 0;
  double budget = 540;
  int64_t shrink = 1;
  bool list = false, sustained = true, tune = false, resume = false;
};

class Bench {
 public:
  Bench(const Device& device, Options options)
      : options_(std::move(options)),
        device_(device),
        stream_(take(device.create_stream())),
        timer_(device_, stream_),
        nvml_(Nvml::open(options_.nvml)),
        random_(options_.seed) {}

  void add(std::unique_ptr<Contender> contender) {
    std::fprintf(stderr, "%s %s\n", contender->name().c_str(), contender->version().c_str());
    contenders_.push_back(std::move(contender));
  }

  // Measures whatever the options ask for; calls save() before and behind each product. `before` are figures of
  // an earlier run, which stay.
  template <class Save>
  void run(const Json& before, Save&& save) {
    save_ = save;
    const std::regex only(options_.only);
    std::vector<std::pair<Product, size_t>> wanted;  // and the places of their figures
    for (const Product& row : kProducts) {
      const Product product = row.shrunk(options_.shrink);
      const bool is_asked_for = std::regex_search(product.name(), only);
      const auto known = std::find_if(before.begin(), before.end(), [&](const Json& figure) {
        return figure.value("shape", "") == product.name();
      });
      if (known != before.end() && (!is_asked_for || !known->contains("left_out"))) {
        figures_.push_back(*known);
      } else if (is_asked_for) {
        wanted.emplace_back(product, figures_.size());
        figures_.push_back(start(product));
      }
    }
    for (const auto& [product, place] : wanted) {
      Json& figure = figures_[place];
      if (seconds() > options_.budget) {
        figure["left_out"] = "the budget of seconds was spent";
        continue;
      }
      figure.erase("left_out");
      figure["skipped"] = "the program ended while this was measured";
      save();
      measure(product, figure);
      figure.erase("skipped");
      save();
    }
    save();
  }

  const Json& figures() const { return figures_; }
  Json contenders() const {
    Json all;
    for (const auto& contender : contenders_) all[contender->name()] = contender->version();
    return all;
  }
  bool logs_power() const { return nvml_ != nullptr; }

 private:
  // One product's memory: sets of operands in one allocation, and the right results, of the product with what its
  // variant adds and alone.
  struct Memory {
    Buffer sets, workspace;
    std::map<bool, Buffer> expected;  // by is_plain()
    std::vector<std::vector<void*>> pointers;
    int64_t bytes_d = 0;
  };

  // A product without figures yet.
  static Json start(const Product& product) {
    Json figure = {{"shape", product.name()},
                   {"dtype", product.dtype},
                   {"layout", product.layout},
                   {"variant", product.variant},
                   {"count", product.count},
                   {"m", product.m},
                   {"n", product.n},
                   {"k", product.k},
                   {"groups", words(product.groups)},
                   {"left_out", "the program did not come so far"}};
    if (product.has_groups()) figure["rows"] = product.rows();
    return figure;
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  static DeviceAddress address(void* pointer) { return reinterpret_cast<DeviceAddress>(pointer); }

  // The device cannot go on: what is known is saved, and the program ends.
  void end_if(const Status& status, const Runner& runner, Json& figure) {
    if (status.ok()) return;
    const auto candidate = static_cast<size_t>(runner.candidate);
    figure["skipped"] = current_ + " (" + runner.prepared->candidates()[candidate] +
                        ") ended the program: " + std::string(status.message());
    save_();
    check(status);
  }

  Memory allocate(const Operands& operands) {
    const auto aligned = [](int64_t bytes) { return (bytes + 1023) / 1024 * 1024; };
    Memory memory;
    memory.bytes_d = bytes_of(operands.tensor(kD));
    int64_t set = 0;
    for (int i = 0; i < operands.count(); ++i) set += aligned(bytes_of(operands.tensor(i)));
    int64_t sets = std::max<int64_t>(2, 4 * device_.info().l2_bytes / set + 1);
    if (options_.rounds == 0) sets = 1;
    if (is_interp()) sets = 2;
    memory.sets = take(device_.allocate(static_cast<size_t>(sets * set)));
    const std::vector<int32_t> counts = operands.counts();
    DeviceAddress at = memory.sets.address();
    for (int64_t s = 0; s < sets; ++s) {
      std::vector<void*>& of_set = memory.pointers.emplace_back();
      for (int i = 0; i < operands.count(); ++i) {
        const PeerTensor& tensor = operands.tensor(i);
        if (std::string_view(tensor.dtype) == "i32") {
          check(stream_.copy_to_device(at, counts.data(), counts.size() * sizeof(int32_t)));
        } else if (i != kD) {
          check(fill_random(stream_, *dtype_of(tensor.dtype), at, elements_of(tensor), seed(i, s)));
        }
        of_set.push_back(reinterpret_cast<void*>(at));
        at += static_cast<uint64_t>(aligned(bytes_of(tensor)));
      }
    }
    check(stream_.synchronize());
    return memory;
  }
  static uint32_t seed(int operand, int64_t set) {
    return static_cast<uint32_t>(operand + 1) * 0x9e3779b9u +
           static_cast<uint32_t>(set) * 0x85ebca6bu;
  }
  bool is_interp() const { return device_.kind() == runtime::BackendKind::kInterp; }

  // How many of 256 samples of the first set's d are wrong, beside double precision.
  int wrong_samples(const Product& product, const Operands& operands, const Memory& memory,
                    bool plain) {
    const Dtype &dtype = *dtype_of(product.dtype), &result = *dtype_of(dtype.result);
    int wrong = 0;
    for (int sample = 0; sample < 256; ++sample) {
      // The corners, and places at random.
      const auto place = [&](int bit, int64_t extent) -> int64_t {
        if (sample < 4) return (sample >> bit & 1) * (extent - 1);
        return static_cast<int64_t>(random_() % static_cast<uint64_t>(extent));
      };
      const Operands::Element right =
          operands.element(place(0, operands.all_rows()), place(1, product.n), plain,
                           [](int operand) { return seed(operand, 0); });
      unsigned char element[8] = {};
      check(stream_.copy_to_host(
          element,
          address(memory.pointers[0][kD]) + static_cast<uint64_t>(right.place * result.bytes),
          static_cast<size_t>(result.bytes)));
      check(stream_.synchronize());
      const double off = std::abs(number_at(dtype.result, element) - right.value);
      wrong += !(off <= dtype.relative * std::abs(right.value) + tolerance(product, dtype));
    }
    return wrong;
  }
  // Of an element of d, besides its rounding. GELU is at most 1.13 times as steep as its argument.
  static double tolerance(const Product& product, const Dtype& dtype) {
    return (product.is("bias_gelu_residual") ? 1.13 : 1) * dtype.absolute *
           static_cast<double>(product.k);
  }

  // Runs a candidate on every set, so that nothing is prepared while it is timed, and checks the first set's result.
  // "" or what is wrong.
  std::string fault(const Product& product, const Operands& operands, const Runner& runner,
                    bool plain, Memory& memory, Json& figure) {
    const Dtype& dtype = *dtype_of(product.dtype);
    const DeviceAddress d = address(memory.pointers[0][kD]);
    // NaN; zeros where rows of no group stay as they are, and are compared.
    const uint8_t before = product.is("masked") ? 0 : 0xff;
    for (size_t i = runner.pointers.size(); i-- > 0;) {
      if (i == 0) check(stream_.fill8(d, before, static_cast<size_t>(memory.bytes_d)));
      if (const Status status = runner.launch(stream_, i); !status.ok())
        return std::string(status.message());
    }
    end_if(stream_.synchronize(), runner, figure);
    const auto known = memory.expected.find(plain);
    if (known != memory.expected.end()) {
      const int32_t wrong = count_wrong(device_, stream_, dtype.result, known->second.address(), d,
                                        elements_of(operands.tensor(kD)), 2 * dtype.relative,
                                        2 * tolerance(product, dtype));
      return wrong == 0 ? ""
                        : std::to_string(wrong) + " elements of d differ from the others' result";
    }
    if (const int wrong = wrong_samples(product, operands, memory, plain); wrong > 0) {
      return std::to_string(wrong) + " of 256 samples of d are wrong";
    }
    Buffer& expected = memory.expected[plain];
    expected = take(device_.allocate(static_cast<size_t>(memory.bytes_d)));
    check(stream_.copy_on_device(expected.address(), d, static_cast<size_t>(memory.bytes_d)));
    check(stream_.synchronize());
    return "";
  }

  // The fastest right candidate; what became of each goes to `result`. False where none is right.
  bool choose(const Product& product, const Operands& operands, Runner& runner, bool plain,
              Memory& memory, Json& result, Json& figure) {
    const std::vector<std::string> names = runner.prepared->candidates();
    Json faults = Json::object();
    struct Right {
      int candidate;
      double ms;
    };
    std::vector<Right> right;
    for (int i = 0; i < static_cast<int>(names.size()); ++i) {
      runner.candidate = i;
      const std::string why = fault(product, operands, runner, plain, memory, figure);
      if (!why.empty()) {
        faults[names[static_cast<size_t>(i)]] = why;
      } else {
        right.push_back(
            {i, names.size() > 1 && options_.rounds > 0 ? timer_.burst_ms(runner, 2) : 0});
      }
    }
    // Those that are near the fastest at a glance are timed again, after the GPU has been idle.
    const auto by_time = [](const Right& x, const Right& y) { return x.ms < y.ms; };
    std::sort(right.begin(), right.end(), by_time);
    const double near = right.empty() ? 0 : kNear * right.front().ms;
    for (size_t i = 0; i < right.size() && right[i].ms > 0 && right[i].ms <= near; ++i) {
      runner.candidate = right[i].candidate;
      double& ms = right[i].ms;
      const int launches = ms > 4 ? 2 : kBurst;
      const std::chrono::duration<double, std::milli> idle(std::min(10 * launches * ms, 250.0));
      for (int repeat = 0; repeat < 2; ++repeat) {
        std::this_thread::sleep_for(idle);
        ms = std::min(ms, timer_.burst_ms(runner, launches));
      }
    }
    result["candidates"] = names.size();
    if (!faults.empty()) result["faults"] = faults;
    if (right.empty()) return false;
    if (options_.tune && right.size() > 1) {
      Json& times = result["candidates_us"];
      for (const Right& one : right)
        times[names[static_cast<size_t>(one.candidate)]] = one.ms * 1e3;
    }
    runner.candidate = std::min_element(right.begin(), right.end(), by_time)->candidate;
    result["choice"] = names[static_cast<size_t>(runner.candidate)];
    return true;
  }

  void measure(const Product& product, Json& figure) {
    const Operands operands(product);
    Memory memory = allocate(operands);
    struct Entry {
      std::string name;
      Runner runner;
      std::vector<double> us;
      std::vector<Json> sustained;
    };
    std::vector<Entry> entries;
    std::vector<Buffer> workspaces;
    Json results;
    for (const auto& contender : contenders_) {
      current_ = contender->name();
      std::fprintf(stderr, "%6.1f s  %s: %s\r", seconds(), product.name().c_str(),
                   contender->name().c_str());
      StatusOr<std::unique_ptr<Prepared>> prepared = contender->prepare(operands.problem());
      if (!prepared.ok() && contender->is_plain()) continue;  // it is no peer
      Json& result = results[contender->name()];
      if (!prepared.ok()) {
        result["skipped"] = std::string(prepared.status().message());
        continue;
      }
      Runner runner{*std::move(prepared), 0, memory.pointers, nullptr};
      workspaces.push_back(take(device_.allocate(runner.prepared->workspace())));
      runner.workspace = reinterpret_cast<void*>(workspaces.back().address());
      for (const auto& [what, number] : runner.prepared->notes()) result[what] = number;
      if (!choose(product, operands, runner, contender->is_plain(), memory, result, figure))
        continue;
      entries.push_back({contender->name(), std::move(runner), {}, {}});
    }
    for (int round = 0; round < options_.rounds; ++round) {
      std::shuffle(entries.begin(), entries.end(), random_);
      for (Entry& entry : entries) {
        entry.us.push_back(timer_.idle_burst_us(entry.runner, is_interp() ? kNoIdle : kIdle));
        if (nvml_ != nullptr) results[entry.name]["sm_mhz"].push_back(nvml_->state().sm_mhz);
      }
    }
    if (options_.sustained && options_.rounds > 0 && is_in_group(product, "sustained")) {
      for (int round = 0; round < 2; ++round) {
        std::shuffle(entries.begin(), entries.end(), random_);
        for (Entry& entry : entries) {
          entry.sustained.push_back(
              timer_.sustained(entry.runner, nvml_.get(), product.operations()));
        }
      }
    }
    check(stream_.synchronize());
    std::string line = product.name();
    for (const Entry& entry : entries) {
      Json& result = results[entry.name];
      if (entry.us.empty()) continue;
      result["us"] = median(entry.us);
      result["tflop_per_s"] = product.operations() / median(entry.us) * 1e-6;
      result["rounds_us"] = entry.us;
      if (!entry.sustained.empty()) result["sustained"] = entry.sustained;
    }
    for (const auto& [name, result] : results.items()) {
      char text[64];
      std::snprintf(text, sizeof(text), result.contains("choice") ? ": right" : ": -");
      if (result.contains("us"))
        std::snprintf(text, sizeof(text), ": %.1f us", result["us"].get<double>());
      line += "  " + name + text;
      if (result.contains("faults") && !options_.tune)
        line += " (faults: " + result["faults"].dump() + ")";
    }
    std::fprintf(stderr, "%6.1f s  %s\n", seconds(), line.c_str());
    figure["contenders"] = std::move(results);
  }

  Options options_;
  Device device_;
  Stream stream_;
  Timer timer_;
  std::unique_ptr<Nvml> nvml_;
  std::mt19937_64 random_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Contender>> contenders_;
  Json figures_ = Json::array();
  std::function<void()> save_;
  std::string current_;  // the contender that is being prepared
};

// The peers beside the program, in the folder `peers`.
std::vector<std::string> default_peers() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(
           fs::read_symlink("/proc/self/exe", ignored).parent_path() / "peers", ignored)) {
    if (entry.path().extension() == ".so") found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Products beside cuBLAS and CUTLASS on a GPU, in one process.");
  app.add_flag("--list", options.list, "Print the products, and what is to be reached");
  app.add_option("--device", options.device, "cuda:0, or, with --shrink, interp");
  app.add_option("--shrink", options.shrink, "Divide m, n and k, to try the benchmark itself")
      ->check(CLI::Range(1, 1024));
  app.add_option("--only", options.only, "Products whose name a regular expression finds");
  app.add_option("--rounds", options.rounds, "Bursts of each contender; 0: check the results alone")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--tune", options.tune, "Time all configurations of Heddle's kernel");
  app.add_flag("!--no-sustained", options.sustained, "No runs of four seconds");
  app.add_option("--budget", options.budget, "Start no product after so many seconds");
  app.add_option("--json", options.json,
                 "Write to this file, after each product, instead of printing at the end");
  app.add_flag("--resume", options.resume, "Keep what the file has, and measure the rest");
  app.add_option("--peer", options.peers, "Peers; by default peers/*.so beside this program");
  app.add_option("--cublaslt", options.cublaslt, "cuBLAS's library, libcublasLt.so.13");
  app.add_option("--seed", options.seed, "Of the order");
  app.add_option("--nvml", options.nvml, "The GPU's number as NVML counts");
  CLI11_PARSE(app, argc, argv);
  if (options.list) {
    for (const Product& product : kProducts)
      std::printf("%-32s %s\n", product.name().c_str(), product.groups);
    for (const Aim& aim : kAims) {
      std::printf("%-12s %.2f  %s, %s against %s\n", aim.group, aim.aim, aim.what, aim.statistic,
                  aim.against);
    }
    return 0;
  }
  const Device device = take(Device::open(options.device));
  if (options.peers.empty()) options.peers = default_peers();
  const std::string peer_options = options.cublaslt.empty() ? "" : "library=" + options.cublaslt;
  Bench bench(device, options);
  const runtime::TuningScope scope;  // the default choices, or those that --tune times
  bench.add(std::make_unique<HeddleGemm>(device, options.tune, /*plain=*/false));
  bench.add(std::make_unique<HeddleGemm>(device, false, /*plain=*/true));
  for (const std::string& peer : options.peers) {
    StatusOr<std::unique_ptr<Contender>> opened = open_peer(peer, peer_options);
    if (opened.ok()) {
      bench.add(*std::move(opened));
    } else {
      std::fprintf(stderr, "gemm_bench: left out: %s\n",
                   std::string(opened.status().message()).c_str());
    }
  }
  if (!bench.logs_power())
    std::fprintf(stderr, "gemm_bench: no NVML: clocks and power are not logged\n");
  Json before = Json::array(), others = Json::object();  // of an earlier run
  if (std::ifstream file(options.json); options.resume && file) {
    const Json earlier = Json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (earlier.is_object()) {
      before = earlier.value("figures", before);
      others = earlier.value("contenders", others);
    }
  }
  others.update(bench.contenders());
  const auto page = [&] {
    return Json{{"gpu", device.info().name}, {"driver", driver_version()},
                {"date", today()},           {"command", "gemm_bench"},
                {"benchmark", "gemm_bench"}, {"burst", kBurst},
                {"idle_ms", kIdle.count()},  {"rounds", options.rounds},
                {"contenders", others},      {"aims", aims()},
                {"figures", bench.figures()}};
  };
  bench.run(before, [&] {
    if (options.json.empty()) return;
    std::ofstream(options.json + ".new") << page().dump(2) << "\n";
    std::filesystem::rename(options.json + ".new", options.json);
  });
  if (options.json.empty()) std::printf("%s\n", page().dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) { return heddle::bench::run(argc, argv); }
