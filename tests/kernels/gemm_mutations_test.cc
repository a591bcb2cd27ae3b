// Mistakes in gemm's own kernels, which the interpreter reports: each row of gemm_mutations.def changes one
// operation of the trace. Its twin, another change that is no mistake, is silent. Both hold before the passes,
// but for those that code generation needs, and after all of them.
#include <cstdlib>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/kernels/gemm/gemm_stream_k.h"

namespace heddle {
namespace {

using kernels::GemmConfig;

// Two tiles for each cluster, of three blocks along k, through two stages.
struct Base {
  GemmConfig config;
  int64_t m, n, k;
  int clusters = 1;
};
// Clusters that share tiles of b, and clusters that share the depth of a tile, of their blocks and with others.
constexpr Base kShared{
    {.m = 128, .n = 64, .stages = 2, .cluster_rows = 2, .store_columns = 32}, 256, 128, 168};
constexpr Base kSplit{{.m = 64,
                       .n = 64,
                       .stages = 2,
                       .groups = 1,
                       .cluster_rows = 1,
                       .split = 2,
                       .store_columns = 32},
                      64,
                      128,
                      6 * 64};

// The first cluster has three blocks along k of the only tile, and the second one two.
constexpr Base kStreamK{{.m = 64,
                         .n = 64,
                         .stages = 2,
                         .groups = 1,
                         .cluster_rows = 1,
                         .stream_k = true,
                         .store_columns = 32},
                        64,
                        64,
                        9 * 64,
                        2};
// Warpgroups that take tiles in turns.
constexpr Base kPingPong{
    {.m = 64, .n = 64, .stages = 2, .cluster_rows = 1, .ping_pong = true, .store_columns = 32},
    128,
    128,
    168};

constexpr unsigned kAll = ~0u;

// Of a block: enough for these, and few for a wait that never ends.
constexpr int64_t kMostInstructions = 10'000'000;

// A line of the source, of an operation in a trace.
constexpr const char kPlace[] = "loc\\(\"([^\"]*)\":(\\d+)\\)";

// The kernel's parameter of a tensor that a launch passes.
template <class Ref>
struct ParameterOfRef;
template <class T, int Rank>
struct ParameterOfRef<TensorRef<T, Rank>> {
  using Type = Tensor<T, Rank>;
};
template <class Ref>
using ParameterOf = typename ParameterOfRef<Ref>::Type;

// What replaces lines of the trace: a regular expression finds them, `which` has a bit for each that counts,
// and `$1` and so on stand for its groups.
struct Mutation {
  const char* name;
  const Base* base;
  const char* pattern;
  unsigned which;
  const char* wrong;
  const char* twin;
  const char* report;  // what is said of the mistake
  const char*
      where;  // and of which line: that of the operations of the trace that this regular expression finds
};
std::ostream& operator<<(std::ostream& out, const Mutation& mutation) {
  return out << mutation.name;
}

// A kernel whose trace is changed.
class Mutated : public ir::KernelSource {
 public:
  // `places` gets the lines of the source that the mistake may be reported of.
  Mutated(const ir::KernelSource& source, const Mutation& mutation, const char* format,
          std::set<std::string>* places)
      : source_(source), mutation_(mutation), format_(format), places_(*places) {}
  const std::string& name() const override { return source_.name(); }
  ir::SourceLine place() const override { return source_.place(); }
  absl::Span<const ir::ParamInfo> params() const override { return source_.params(); }
  ir::TraceResult trace(const ir::Specialization& specialization) const override {
    ir::TraceResult traced = source_.trace(specialization);
    const std::regex pattern(mutation_.pattern), where(mutation_.where), place(kPlace);
    std::vector<std::string> lines = absl::StrSplit(ir::print(traced.kernel, {.locs = true}), '\n');
    unsigned bit = 1, changed = 0;
    for (std::string& line : lines) {
      std::smatch found;
      if (std::regex_search(line, where) && std::regex_search(line, found, place)) {
        places_.insert(absl::StrCat(found[1].str(), ":", found[2].str(), ":"));
      }
      if (!std::regex_search(line, pattern)) continue;
      const bool counts = mutation_.which == kAll || (mutation_.which & bit) != 0;
      bit *= 2;
      if (!counts) continue;
      ++changed;
      line = std::regex_replace(line, pattern, format_);
    }
    EXPECT_GT(changed, 0) << "no line has " << mutation_.pattern;
    StatusOr<ir::Kernel> kernel = ir::parse(absl::StrJoin(lines, "\n"), "gemm.ir");
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    if (!kernel.ok()) return traced;
    // It depends on the same facts.
    for (const ir::Guard& guard : traced.kernel.facts_read()) kernel->fact(guard.fact);
    traced.kernel = *std::move(kernel);
    return traced;
  }

 private:
  const ir::KernelSource& source_;
  const Mutation& mutation_;
  const char* const format_;
  std::set<std::string>& places_;
};

// Runs a changed kernel at every time that its asynchronous work may be done: what is reported.
template <class Kernel, class... More>
std::string reports_of(const Kernel& kernel, const Device& device, const Mutation& mutation,
                       const char* format, bool until_reported, std::set<std::string>* places,
                       const More&... more) {
  const Base& base = *mutation.base;
  const Stream stream = device.create_stream().value();
  runtime::DeviceInfo few = device.info();
  few.sm_count = base.config.cluster() * base.clusters;
  const Mutated mutated(kernel.source(), mutation, format, places);
  const auto ones = [&](int64_t count) {
    return device.upload<half>(std::vector<half>(static_cast<size_t>(count), half(1.0f))).value();
  };
  const Buffer a = ones(base.m * base.k), b = ones(base.n * base.k), d = ones(base.m * base.n);
  const auto as = kernels::detail::in_batches(as_tensor<const half>(a, {base.m, base.k}));
  const auto bs = kernels::detail::in_batches(as_tensor<const half>(b, {base.n, base.k}));
  const auto ds = kernels::detail::in_batches(as_tensor<half>(d, {base.m, base.n}));
  LaunchShape shape =
      kernels::gemm_shape(base.config, {.m = base.m, .n = base.n, .k = base.k}, few);
  // Clusters that wait for each other run at the same time.
  shape.cooperative = base.clusters > 1;
  std::string all;
  for (const char* const when : {"early", "late", "seed:1", "seed:2", "seed:3"}) {
    EXPECT_TRUE(device.set_completion(when).ok());
    using Operand = Tensor<const half, 3>;
    const runtime::PackedArguments<Operand, Operand, Tensor<half, 3>, ParameterOf<More>...>
    arguments(stream, as, bs, ds, more...);
    const Status status = runtime::launch(stream, mutated, shape, arguments);
    if (status.ok()) continue;
    absl::StrAppend(&all, when, ": ", status.message(), "\n");
    if (until_reported && absl::StrContains(all, mutation.report)) break;
  }
  return all;
}
std::string reports(const Mutation& mutation, const char* format, const char* passes,
                    bool until_reported, std::set<std::string>* places) {
  setenv("HEDDLE_PASSES", passes, /*overwrite=*/1);
  const absl::Cleanup unset = [] { unsetenv("HEDDLE_PASSES"); };
  const Device device = Device::open_private_interp(Device::open("interp").value().info());
  device.set_max_instructions(kMostInstructions);
  const GemmConfig& config = mutation.base->config;
  using kernels::BatchTiles, kernels::PlainLoop, kernels::PlainSums, kernels::StreamTiles;
  if (!config.stream_k) {
    return reports_of(kernels::hopper_gemm<BatchTiles, PlainLoop, half, half, PlainSums>(config),
                      device, mutation, format, until_reported, places);
  }
  const Stream stream = device.create_stream().value();
  const kernels::GemmWorkspace workspace = kernels::gemm_workspace(stream).value();
  return reports_of(kernels::hopper_gemm<StreamTiles, PlainLoop, half, half, PlainSums>(config),
                    device, mutation, format, until_reported, places,
                    kernels::detail::sums_of(workspace), kernels::detail::flags_of(workspace));
}

class GemmMutation : public ::testing::TestWithParam<Mutation> {};

TEST_P(GemmMutation, IsReportedWhereItsTwinIsSilent) {
  const Mutation& mutation = GetParam();
  for (const char* const passes : {"O0", "O3"}) {
    SCOPED_TRACE(passes);
    std::set<std::string> places;
    EXPECT_EQ(reports(mutation, mutation.twin, passes, false, &places), "") << mutation.twin;
    const std::string all = reports(mutation, mutation.wrong, passes, true, &places);
    const auto is_report = [&](absl::string_view line) {
      const auto named = [&](const std::string& place) { return absl::StrContains(line, place); };
      return absl::StrContains(line, mutation.report) && absl::c_any_of(places, named);
    };
    EXPECT_TRUE(absl::c_any_of(absl::StrSplit(all, '\n'), is_report))
        << mutation.report << " at " << absl::StrJoin(places, " or ") << "\n"
        << all;
  }
}

#include "kernels/gemm_mutations.def"

INSTANTIATE_TEST_SUITE_P(All, GemmMutation, ::testing::ValuesIn(kMutations),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace heddle
