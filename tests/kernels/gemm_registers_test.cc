// The kernels of products in registers: what ptxas makes of the largest tiles. It reports wgmmas that it
// serialises and registers that it spills, which are errors of the kernel.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/kernels/gemm/gemm_stream_k.h"
#include "heddle/kernels/gemm/grouped.h"
#include "heddle/kernels/gemm/named_epilogue.h"
#include "heddle/kernels/gemm/scaled.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/specialize.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using codegen::disassemble;
using codegen::sass_opcodes;
using codegen::SassInstruction;
using kernels::BatchTiles;
using kernels::GemmConfig;
using kernels::GroupTiles;
using kernels::PlainLoop;
using kernels::PlainSums;
using kernels::RowsInOneMatrix;
using kernels::ScaledLoop;
using kernels::StreamTiles;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ArgumentSpec matrix() {
  constexpr int64_t kExtent = 4096;
  return tensor({kExtent, kExtent, 8}).strides({kExtent, 1, kExtent * kExtent}).aligned(16);
}

template <class Kernel>
auto compiled(const Kernel& kernel, const GemmConfig& config, const Signature& signature) {
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {(1 + config.groups) * 128, 1, 1};
  options.cluster = {config.cluster(), 1, 1};
  return kernel.compile(signature, options);
}
template <class Kernel>
Status assembled(const Kernel& kernel, const GemmConfig& config, const Signature& signature) {
  return compiled(kernel, config, signature).status();
}

using Opcodes = std::vector<std::string>;

// CUTLASS 4.7 has 48 instructions for 4 products. Loops of groups take up to 2 more.
constexpr double kMostForProduct = 12, kMostForProductOfGroups = 12.5;

bool is_product(const std::string& opcode) {
  return absl::StartsWith(opcode, "HGMMA") || absl::StartsWith(opcode, "QGMMA");
}

bool is_copy(const std::string& opcode) { return absl::StartsWith(opcode, "UTMALDG"); }

// The innermost loops with such instructions.
std::vector<Opcodes> loops_with(bool (*is_one)(const std::string&), const std::string& cubin) {
  const StatusOr<std::string> listing = disassemble(cubin);
  if (!listing.ok()) return {};
  Opcodes opcodes;
  std::map<std::string, size_t> labels;
  std::vector<std::pair<size_t, size_t>> loops;
  const std::vector<std::string> lines = absl::StrSplit(*listing, '\n');
  for (const std::string& line : lines) {
    if (absl::StartsWith(line, ".L") && absl::EndsWith(line, ":")) {
      labels[line.substr(0, line.size() - 1)] = opcodes.size();
    }
    for (const SassInstruction& i : sass_opcodes(line)) opcodes.push_back(i.opcode);
    const size_t name = line.find("`(");
    if (name == std::string::npos) continue;
    const auto label = labels.find(line.substr(name + 2, line.find(')', name) - name - 2));
    if (label != labels.end()) loops.emplace_back(label->second, opcodes.size());
  }
  std::set<std::pair<size_t, size_t>> shortest_ones;
  for (size_t i = 0; i < opcodes.size(); ++i) {
    if (!is_one(opcodes[i])) continue;
    std::pair<size_t, size_t> shortest(0, opcodes.size());
    for (const auto& [from, to] : loops) {
      if (from <= i && i < to && to - from < shortest.second - shortest.first) {
        shortest = {from, to};
      }
    }
    shortest_ones.insert(shortest);
  }
  std::vector<Opcodes> found;
  for (const std::pair<size_t, size_t>& loop : shortest_ones) {
    const bool is_outer =
        std::any_of(shortest_ones.begin(), shortest_ones.end(), [&](const auto& other) {
          return other != loop && loop.first <= other.first && other.second <= loop.second;
        });
    if (is_outer) continue;
    found.emplace_back(opcodes.begin() + static_cast<ptrdiff_t>(loop.first),
                       opcodes.begin() + static_cast<ptrdiff_t>(loop.second));
  }
  return found;
}
// Loops over k neither wait for the whole GPU nor clear L1. Those that multiply move no descriptors to uniform
// registers; those that do no more than multiply have few instructions for a product.
void expect_lean_loops(const std::string& cubin, double most = kMostForProduct) {
  const std::vector<Opcodes> loops = loops_with(is_product, cubin),
                             copies = loops_with(is_copy, cubin);
  EXPECT_THAT(loops, Not(IsEmpty()));
  EXPECT_THAT(copies, Not(IsEmpty()));
  for (const std::vector<Opcodes>* all : {&loops, &copies}) {
    EXPECT_THAT(
        *all,
        Each(Not(Contains(AnyOf(StartsWith("MEMBAR"), StartsWith("CCTL"), HasSubstr("ERRBAR"))))));
  }
  for (const Opcodes& loop : loops) {
    EXPECT_THAT(loop, Not(Contains(StartsWith("R2UR"))));
    const bool adds_up = std::any_of(loop.begin(), loop.end(), [](const std::string& opcode) {
      return absl::StartsWith(opcode, "FFMA") || absl::StartsWith(opcode, "FMUL");
    });
    if (adds_up) continue;
    const auto products = std::count_if(loop.begin(), loop.end(), is_product);
    EXPECT_LE(static_cast<double>(loop.size()), most * static_cast<double>(products));
  }
}

template <class Kernel>
void expect_lean(const Kernel& kernel, const GemmConfig& config, const Signature& signature) {
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const auto made = compiled(kernel, config, signature);
  ASSERT_THAT(made.status(), IsOk());
  expect_lean_loops(made->cubin());
}

TEST(GemmRegisters, AreEnoughForTheLargestTiles) {
  for (const auto& [m, n, stages] : {std::tuple(128, 256, 4), {256, 128, 3}, {128, 192, 4}}) {
    const GemmConfig config{.m = m, .n = n, .stages = stages};
    EXPECT_THAT(
        assembled(kernels::hopper_gemm<BatchTiles, PlainLoop, half, half, PlainSums>(config),
                  config, {matrix(), matrix(), matrix()}),
        IsOk())
        << config.to_string();
  }
}

// An epilogue that takes all there is: alpha, beta, bias, a curved function and a residual.
template <class D>
struct Everything {
  Fragment<float> operator()(const kernels::GemmPart& part, const Fragment<float>& sums,
                             Float alpha, Float beta, Tensor<const D, 3> c,
                             Tensor<const float, 1> bias, Tensor<const D, 3> residual) const {
    // In statements of their own: C++ leaves the order of loads in an expression to the compiler.
    const Fragment<float> by_column = part.by_column(bias), before = part.of(c);
    const Fragment<float> x = sums * alpha + before * beta + by_column;
    const Fragment<float> more = part.of(residual);
    return x * 0.5f * (erf(x * 0.707106781f) + 1.0f) + more;
  }
};
template <class Tiles, class Loop, class T, class D>
void expect_everything_fits(const GemmConfig& config, const Signature& more = {}) {
  using Matrix = Tensor<const D, 3>;
  using Vector = Tensor<const float, 1>;
  const auto& kernel =
      kernels::hopper_gemm<Tiles, Loop, T, D, Everything<D>, Float, Float, Matrix, Vector, Matrix>(
          config);
  Signature signature = {matrix(), matrix(), matrix()};
  signature.insert(signature.end(), more.begin(), more.end());
  for (const ArgumentSpec& own :
       {scalar(), scalar(), matrix(), tensor({4096}).aligned(16), matrix()}) {
    signature.push_back(own);
  }
  EXPECT_THAT(assembled(kernel, config, signature), IsOk()) << config.to_string();
}

TEST(GemmRegisters, AreEnoughForEpilogues) {
  for (const int result_bytes : {2, 4}) {
    const kernels::GemmProblem problem{
        .m = 4096, .n = 4096, .k = 4096, .result_bytes = result_bytes, .fused = true};
    for (const GemmConfig& config :
         kernels::gemm_configs(problem, Device::open("interp").value().info())) {
      if (config.band != 8 || config.keeps_band || config.cluster() > 1 || config.groups == 1) {
        continue;
      }
      if (config.stream_k) {
        // The largest tile takes the most.
        if (config.n != (result_bytes == 2 ? 256 : 128)) continue;
        const Signature workspace = {tensor({132, 32768}).aligned(16), tensor({1056})};
        if (result_bytes == 2)
          expect_everything_fits<StreamTiles, PlainLoop, bfloat16, bfloat16>(config, workspace);
        if (result_bytes == 4)
          expect_everything_fits<StreamTiles, PlainLoop, bfloat16, float>(config, workspace);
        continue;
      }
      if (result_bytes == 2)
        expect_everything_fits<BatchTiles, PlainLoop, bfloat16, bfloat16>(config);
      if (result_bytes == 4) expect_everything_fits<BatchTiles, PlainLoop, bfloat16, float>(config);
    }
  }
}

TEST(GemmRegisters, AreEnoughForEpiloguesOfGroupsAndFactors) {
  const ArgumentSpec counts = tensor({8}), factors = tensor({kAny, 32, 8});
  expect_everything_fits<GroupTiles<RowsInOneMatrix>, PlainLoop, bfloat16, bfloat16>({.n = 128},
                                                                                     {counts});
  const GemmConfig scaled{.m = 128, .n = 128, .k = 128, .stages = 4};
  expect_everything_fits<GroupTiles<RowsInOneMatrix>, ScaledLoop, float8_e4m3, bfloat16>(
      scaled, {counts, factors, factors});
  expect_everything_fits<BatchTiles, ScaledLoop, float8_e4m3, float>(
      {.m = 128, .n = 128, .k = 128, .stages = 3, .store_columns = 32}, {factors, factors});
}

TEST(GemmRegisters, AreEnoughForGroups) {
  const GemmConfig config;
  EXPECT_THAT(assembled(kernels::hopper_gemm<GroupTiles<RowsInOneMatrix>, PlainLoop, bfloat16,
                                             bfloat16, PlainSums>(config),
                        config, {matrix(), matrix(), matrix(), tensor({8})}),
              IsOk());
}

TEST(GemmRegisters, AreEnoughForTwoSums) {
  const ArgumentSpec factors = tensor({kAny, 32, 8});
  for (const int n : {128, 64}) {
    const GemmConfig config{.m = 128, .n = n, .k = 128, .stages = 6};
    EXPECT_THAT(assembled(kernels::hopper_gemm<GroupTiles<RowsInOneMatrix>, ScaledLoop, float8_e4m3,
                                               bfloat16, PlainSums>(config),
                          config, {matrix(), matrix(), matrix(), tensor({8}), factors, factors}),
                IsOk());
  }
}

TEST(GemmRegisters, AreEnoughForSharedDepths) {
  const GemmConfig config{
      .m = 128, .n = 128, .stages = 4, .cluster_rows = 1, .split = 4, .store_columns = 32};
  EXPECT_THAT(assembled(kernels::hopper_gemm<BatchTiles, PlainLoop, half, half, PlainSums>(config),
                        config, {matrix(), matrix(), matrix()}),
              IsOk());
}

TEST(GemmRegisters, AreEnoughForStreamK) {
  for (const auto& [m, n, stages] : {std::tuple(128, 256, 4), {256, 128, 3}}) {
    const GemmConfig config{.m = m, .n = n, .stages = stages, .stream_k = true};
    const auto& kernel =
        kernels::hopper_gemm<StreamTiles, PlainLoop, half, half, PlainSums>(config);
    const Signature signature = {matrix(), matrix(), matrix(), tensor({132, 32768}).aligned(16),
                                 tensor({1056})};
    EXPECT_THAT(assembled(kernel, config, signature), IsOk()) << config.to_string();
    if (n == 128) expect_lean(kernel, config, signature);
  }
}

TEST(GemmRegisters, AreEnoughForPingPong) {
  for (const auto& [m, n, stages] : {std::tuple(128, 128, 5), {64, 256, 4}, {128, 192, 5}}) {
    const GemmConfig config{.m = m,
                            .n = n,
                            .stages = stages,
                            .ping_pong = true,
                            .store_columns = 32,
                            .store_buffers = 1};
    const auto& kernel = kernels::hopper_gemm<BatchTiles, PlainLoop, half, half, PlainSums>(config);
    const Signature signature = {matrix(), matrix(), matrix()};
    EXPECT_THAT(assembled(kernel, config, signature), IsOk()) << config.to_string();
    if (n == 128) expect_lean(kernel, config, signature);
  }
}

// What launches compile: with the facts of their arguments, and the configurations that the model chooses.
template <class Check>
void for_each_launched(const Check& check) {
  const Device device = Device::open("interp").value();
  const ir::Target* const target = ir::find_target("sm_90a");
  const Device dry = open_dry_run(device.info(), [&](const DryLaunch& launch) -> Status {
    const ir::Specialization facts = runtime::specialize(*launch.source, launch.arguments, *target);
    CompileOptions options;
    options.target = "sm_90a";
    options.block = launch.shape.block;
    options.cluster = launch.shape.cluster;
    const auto made = runtime::compile_source(*launch.source, facts, options);
    if (made.ok()) check(*made);
    return made.status();
  });
  const Stream stream = dry.default_stream();
  // Addresses far from each other, which nobody reads.
  const auto at = [](uint64_t number) { return reinterpret_cast<void*>(number << 40); };
  constexpr int64_t kRows = 8192, kColumns = 4096, kDepth = 7168, kGroups = 32;
  const auto matrix_of = [&](auto* type, uint64_t number, int64_t rows, int64_t columns) {
    return TensorRef<std::remove_pointer_t<decltype(type)>, 2>(
        static_cast<decltype(type)>(at(number)), {rows, columns}, {columns, 1});
  };
  const auto matrices_of = [&](auto* type, uint64_t number, int64_t rows, int64_t columns) {
    return TensorRef<std::remove_pointer_t<decltype(type)>, 3>(
        static_cast<decltype(type)>(at(number)), {kGroups, rows, columns},
        {rows * columns, columns, 1});
  };
  const bfloat16* const halves = nullptr;
  const float8_e4m3* const bytes = nullptr;
  const float* const floats = nullptr;
  bfloat16* const results = nullptr;
  const auto a = matrix_of(halves, 1, kRows, kDepth), b = matrix_of(halves, 2, kColumns, kDepth);
  const auto d = matrix_of(results, 3, kRows, kColumns);
  const TensorRef<const int32_t, 1> counts(static_cast<const int32_t*>(at(4)), {kGroups}, {1});
  const TensorRef<const float, 1> bias(static_cast<const float*>(at(5)), {kColumns}, {1});
  const auto residual = kernels::detail::in_batches(matrix_of(halves, 6, kRows, kColumns));
  const auto every_b = matrices_of(halves, 2, kColumns, kDepth);
  EXPECT_THAT(kernels::gemm_with(stream, PlainSums(), a, b, d), IsOk());
  EXPECT_THAT(kernels::gemm_grouped_with(stream, PlainSums(), a, every_b, d, counts), IsOk());
  EXPECT_THAT(kernels::gemm_masked_with(stream, PlainSums(), matrices_of(halves, 1, 512, kDepth),
                                        every_b, matrices_of(results, 3, 512, kColumns), counts),
              IsOk());
  EXPECT_THAT(kernels::gemm_scaled_with(stream, PlainSums(), matrix_of(bytes, 1, kRows, kDepth),
                                        matrix_of(bytes, 2, kColumns, kDepth), d,
                                        matrix_of(floats, 5, kRows, kDepth / 128),
                                        matrix_of(floats, 6, kColumns / 128, kDepth / 128)),
              IsOk());
  for (size_t row = 0; row < kernels::named_epilogues().size(); ++row) {
    if (std::string(kernels::named_epilogues()[row].name) != "bias_gelu_residual") continue;
    const kernels::ChosenEpilogue<bfloat16> epilogue{static_cast<int>(row), true, true};
    EXPECT_THAT(kernels::gemm_with(stream, epilogue, a, b, d, 2.0f, 3.0f, residual, bias, residual),
                IsOk());
  }
}

TEST(GemmRegisters, AreEnoughForWhatIsLaunched) {
  for_each_launched([](const auto&) {});
}

TEST(GemmRegisters, LoopsOfWhatIsLaunchedAreLean) {
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  int count = 0;
  for_each_launched([&](const auto& made) {
    const bool of_groups = ++count == 2 || count == 3;
    expect_lean_loops(made->assembly.cubin, of_groups ? kMostForProductOfGroups : kMostForProduct);
  });
  EXPECT_EQ(count, 5);
}

}  // namespace
}  // namespace heddle
