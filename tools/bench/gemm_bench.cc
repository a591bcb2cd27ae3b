// gemm beside cuBLAS and CUTLASS on a GPU, in one process. Writes JSON.
//
//   gemm_bench --json results/gemm.json [--only REGEX] [--rounds N] [--no-sustained] [--budget SECONDS]
//   gemm_bench --list
//
// For each product of gemm/shapes.def: every contender's result is compared, by a GPU kernel, with one that is right in double
// precision where samples are taken; one that differs is reported and not timed. Each contender's fastest candidate
// is chosen by timing. Then, in each round, the contenders take turns in a random order: eight launches after the
// GPU has been idle for a while. Inputs are random in [-1, 1]; as many sets of a, b and d as fill four times the L2
// cache take turns. A figure is the median of the rounds. Products of the group "sustained" also run for four
// seconds, with clocks, power and energy. The floor is 2 M N K operations over the tensor cores' rate.
#include <algorithm>
#include <filesystem>
#include <random>
#include <regex>
#include <string_view>

#include "CLI/CLI.hpp"
#include "heddle/tools/bench/gemm/heddle_gemm.h"
#include "heddle/tools/bench/gemm/measure.h"

namespace heddle::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Product {
  const char *dtype, *layout, *variant;
  int64_t m, n, k;
  const char* groups;

  std::string name() const {
    const std::string kind = *variant == 0 ? "" : std::string(variant) + " ";
    return std::string(dtype) + " " + layout + " " + kind + std::to_string(m) + "x" +
           std::to_string(n) + "x" + std::to_string(k);
  }
  double operations() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

struct Aim {
  const char *group, *what, *statistic, *against;
  double aim;
};

#define HEDDLE_GEMM(...) {__VA_ARGS__},
#define HEDDLE_GEMM_AIM(...)
constexpr Product kProducts[] = {
#include "heddle/tools/bench/gemm/shapes.def"
};
#define HEDDLE_GEMM(...)
#define HEDDLE_GEMM_AIM(...) {__VA_ARGS__},
constexpr Aim kAims[] = {
#include "heddle/tools/bench/gemm/shapes.def"
};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) found.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

struct Options {
  std::string device = "cuda:0", json, only, cublaslt;
  std::vector<std::string> peers;
  int rounds = 5;
  unsigned seed = 1, nvml = 0;
  double budget = 540;
  bool list = false, sustained = true, tune = false;
};

// One matrix of a product: its elements, and their strides.
PeerTensor matrix(const char* dtype, int64_t rows, int64_t columns, bool columns_contiguous) {
  PeerTensor made{dtype, 2, {rows, columns}, {}};
  made.stride[0] = columns_contiguous ? columns : 1;
  made.stride[1] = columns_contiguous ? 1 : rows;
  return made;
}

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

  // Measures whatever the options ask for; calls after() behind each product.
  template <class After>
  void run(After&& after) {
    const std::regex only(options_.only);
    for (const Product& product : kProducts) {
      if (!std::regex_search(product.name(), only)) continue;
      Json figure = {{"shape", product.name()},  {"dtype", product.dtype},
                     {"layout", product.layout}, {"variant", product.variant},
                     {"m", product.m},           {"n", product.n},
                     {"k", product.k},           {"groups", words(product.groups)}};
      if (seconds() > options_.budget) {
        figure["skipped"] = "the budget of seconds was spent";
      } else {
        measure(product, figure);
      }
      figures_.push_back(std::move(figure));
      after();
    }
  }

  const Json& figures() const { return figures_; }
  Json contenders() const {
    Json all;
    for (const auto& contender : contenders_) all[contender->name()] = contender->version();
    return all;
  }
  bool logs_power() const { return nvml_ != nullptr; }

 private:
  // One product's memory: sets of a, b and d in one allocation, and the right result.
  struct Memory {
    Buffer sets, expected, workspace;
    std::vector<std::vector<void*>> pointers;
    int64_t bytes_d = 0, count_d = 0;
  };

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  Memory allocate(const Product& product, const Dtype& dtype) {
    const auto aligned = [](int64_t bytes) { return (bytes + 1023) / 1024 * 1024; };
    const int64_t a = aligned(product.m * product.k * dtype.bytes),
                  b = aligned(product.n * product.k * dtype.bytes);
    Memory memory;
    memory.count_d = product.m * product.n;
    memory.bytes_d = memory.count_d * dtype_of(dtype.result)->bytes;
    const int64_t set = a + b + aligned(memory.bytes_d);
    const int64_t sets =
        options_.rounds == 0 ? 1 : std::max<int64_t>(2, 4 * device_.info().l2_bytes / set + 1);
    memory.sets = take(device_.allocate(static_cast<size_t>(sets * set)));
    memory.expected = take(device_.allocate(static_cast<size_t>(memory.bytes_d)));
    for (int64_t i = 0; i < sets; ++i) {
      const DeviceAddress at = memory.sets.address() + static_cast<uint64_t>(i * set);
      check(fill_random(stream_, dtype, at, product.m * product.k, seed(0, i)));
      check(fill_random(stream_, dtype, at + static_cast<uint64_t>(a), product.n * product.k,
                        seed(1, i)));
      const auto pointer = [](DeviceAddress address) { return reinterpret_cast<void*>(address); };
      memory.pointers.push_back({pointer(at), pointer(at + static_cast<uint64_t>(a)),
                                 pointer(at + static_cast<uint64_t>(a + b))});
    }
    return memory;
  }
  static uint32_t seed(int operand, int64_t set) {
    return static_cast<uint32_t>(operand + 1) * 0x9e3779b9u +
           static_cast<uint32_t>(set) * 0x85ebca6bu;
  }

  // How many of 256 samples of the first set's d are wrong, beside double precision.
  int wrong_samples(const Product& product, const Dtype& dtype, const PeerProblem& problem,
                    const Memory& memory) {
    int wrong = 0;
    const PeerTensor &a = problem.tensor[0], &b = problem.tensor[1];
    for (int sample = 0; sample < 256; ++sample) {
      // The corners, and places at random.
      const auto place = [&](int bit, int64_t extent) -> int64_t {
        if (sample < 4) return (sample >> bit & 1) * (extent - 1);
        return static_cast<int64_t>(random_() % static_cast<uint64_t>(extent));
      };
      const int64_t row = place(0, product.m), column = place(1, product.n);
      double sum = 0;
      for (int64_t k = 0; k < product.k; ++k) {
        sum += filled(dtype, row * a.stride[0] + k * a.stride[1], seed(0, 0)) *
               filled(dtype, column * b.stride[0] + k * b.stride[1], seed(1, 0));
      }
      unsigned char element[8] = {};
      const int bytes = dtype_of(dtype.result)->bytes;
      const auto at = reinterpret_cast<DeviceAddress>(memory.pointers[0][2]) +
                      static_cast<uint64_t>((row * product.n + column) * bytes);
      check(stream_.copy_to_host(element, at, static_cast<size_t>(bytes)));
      check(stream_.synchronize());
      const double off = std::abs(number_at(dtype.result, element) - sum);
      wrong += !(off <=
                 dtype.relative * std::abs(sum) + dtype.absolute * static_cast<double>(product.k));
    }
    return wrong;
  }

  // Runs a candidate on every set, so that nothing is prepared while it is timed, and checks the first set's result.
  // "" or what is wrong.
  std::string fault(const Product& product, const Dtype& dtype, const PeerProblem& problem,
                    const Runner& runner, Memory& memory, bool& have_expected) {
    const auto d = reinterpret_cast<DeviceAddress>(memory.pointers[0][2]);
    for (size_t i = runner.pointers.size(); i-- > 0;) {
      if (i == 0) check(stream_.fill8(d, 0xff, static_cast<size_t>(memory.bytes_d)));  // NaN
      if (const Status status = runner.launch(stream_, i); !status.ok())
        return std::string(status.message());
    }
    check(stream_.synchronize());
    if (have_expected) {
      const int32_t wrong =
          count_wrong(device_, stream_, dtype.result, memory.expected.address(), d, memory.count_d,
                      2 * dtype.relative, 2 * dtype.absolute * static_cast<double>(product.k));
      return wrong == 0 ? ""
                        : std::to_string(wrong) + " elements of d differ from the others' result";
    }
    if (const int wrong = wrong_samples(product, dtype, problem, memory); wrong > 0) {
      return std::to_string(wrong) + " of 256 samples of d are wrong";
    }
    check(
        stream_.copy_on_device(memory.expected.address(), d, static_cast<size_t>(memory.bytes_d)));
    check(stream_.synchronize());
    have_expected = true;
    return "";
  }

  // The fastest right candidate; what became of each goes to `figure`. False where none is right.
  bool choose(const Product& product, const Dtype& dtype, const PeerProblem& problem,
              Runner& runner, Memory& memory, bool& have_expected, Json& figure) {
    const std::vector<std::string> names = runner.prepared->candidates();
    double best = 0;
    int chosen = -1;
    Json faults = Json::object(), times = Json::object();
    for (int i = 0; i < static_cast<int>(names.size()); ++i) {
      runner.candidate = i;
      // The first launch compiles, loads or prepares whatever it needs.
      const double before = seconds();
      if (i == 0 && runner.launch(stream_, 0).ok()) {
        figure["first_launch_ms"] = (seconds() - before) * 1e3;
      }
      const std::string why = fault(product, dtype, problem, runner, memory, have_expected);
      if (!why.empty()) {
        faults[names[static_cast<size_t>(i)]] = why;
        continue;
      }
      double ms = 0;
      if (names.size() > 1 && options_.rounds > 0) {
        // What ran before must not slow the GPU down.
        ms = timer_.burst_ms(runner, 2);
        const int launches = ms > 4 ? 2 : kBurst;
        const std::chrono::duration<double, std::milli> idle(std::min(10 * launches * ms, 250.0));
        for (int repeat = 0; repeat < 2; ++repeat) {
          std::this_thread::sleep_for(idle);
          ms = std::min(ms, timer_.burst_ms(runner, launches));
        }
      }
      times[names[static_cast<size_t>(i)]] = ms * 1e3;
      if (chosen >= 0 && ms >= best) continue;
      best = ms;
      chosen = i;
    }
    figure["candidates"] = names.size();
    if (options_.tune && names.size() > 1) figure["candidates_us"] = times;
    if (!faults.empty()) figure["faults"] = faults;
    if (chosen < 0) return false;
    runner.candidate = chosen;
    figure["choice"] = names[static_cast<size_t>(chosen)];
    return true;
  }

  void measure(const Product& product, Json& figure) {
    const Dtype& dtype = *dtype_of(product.dtype);
    const PeerProblem problem = {
        "gemm",
        product.variant,
        3,
        {matrix(product.dtype, product.m, product.k, product.layout[0] == 't'),
         matrix(product.dtype, product.n, product.k, product.layout[1] == 'n'),
         matrix(dtype.result, product.m, product.n, true)}};
    Memory memory = allocate(product, dtype);
    bool have_expected = false;
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
      Json& result = results[contender->name()];
      std::fprintf(stderr, "%6.1f s  %s: %s\r", seconds(), product.name().c_str(),
                   contender->name().c_str());
      StatusOr<std::unique_ptr<Prepared>> prepared = contender->prepare(problem);
      if (!prepared.ok()) {
        result["skipped"] = std::string(prepared.status().message());
        continue;
      }
      Runner runner{*std::move(prepared), 0, memory.pointers, nullptr};
      workspaces.push_back(take(device_.allocate(runner.prepared->workspace())));
      runner.workspace = reinterpret_cast<void*>(workspaces.back().address());
      if (!choose(product, dtype, problem, runner, memory, have_expected, result)) continue;
      entries.push_back({contender->name(), std::move(runner), {}, {}});
    }
    for (int round = 0; round < options_.rounds; ++round) {
      std::shuffle(entries.begin(), entries.end(), random_);
      for (Entry& entry : entries) {
        entry.us.push_back(timer_.idle_burst_us(entry.runner));
        if (nvml_ != nullptr) results[entry.name]["sm_mhz"].push_back(nvml_->state().sm_mhz);
      }
    }
    const std::vector<std::string> groups = words(product.groups);
    if (options_.sustained && options_.rounds > 0 &&
        std::find(groups.begin(), groups.end(), "sustained") != groups.end()) {
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
};

Json aims() {
  Json all = Json::array();
  for (const Aim& aim : kAims) {
    int products = 0;
    for (const Product& product : kProducts) {
      const std::vector<std::string> groups = words(product.groups);
      products += std::find(groups.begin(), groups.end(), aim.group) != groups.end();
    }
    all.push_back({{"group", aim.group},
                   {"products", products},
                   {"case", aim.what},
                   {"statistic", aim.statistic},
                   {"against", aim.against},
                   {"aim", aim.aim}});
  }
  return all;
}

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
  CLI::App app("gemm beside cuBLAS and CUTLASS on a GPU, in one process.");
  app.add_flag("--list", options.list, "Print the products, and what is to be reached");
  app.add_option("--device", options.device, "cuda:0, or, for --rounds 0, interp");
  app.add_option("--only", options.only, "Products whose name a regular expression finds");
  app.add_option("--rounds", options.rounds, "Bursts of each contender; 0: check the results alone")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--tune", options.tune, "Time all configurations of Heddle's kernel");
  app.add_flag("!--no-sustained", options.sustained, "No runs of four seconds");
  app.add_option("--budget", options.budget, "Start no product after so many seconds");
  app.add_option("--json", options.json,
                 "Write to this file, after each product, instead of printing at the end");
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
  bench.add(std::make_unique<HeddleGemm>(device, options.tune));
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
  // What a peer's build says of itself: how long it took.
  Json builds = Json::object();
  for (const std::string& peer : options.peers) {
    std::ifstream file(std::filesystem::path(peer).replace_extension(".json"));
    if (file)
      builds[std::filesystem::path(peer).stem().string()] = Json::parse(file, nullptr, false);
  }
  const auto page = [&] {
    return Json{{"gpu", device.info().name},
                {"driver", driver_version()},
                {"date", today()},
                {"command", "gemm_bench"},
                {"benchmark", "gemm_bench"},
                {"burst", kBurst},
                {"idle_ms", kIdle.count()},
                {"rounds", options.rounds},
                {"contenders", bench.contenders()},
                {"builds", builds},
                {"aims", aims()},
                {"figures", bench.figures()}};
  };
  bench.run([&] {
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
