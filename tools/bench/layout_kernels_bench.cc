// The programs of kernels/learn that are written on layouts, beside the same kernels written index
// by index (learn/layout_twins.h): times in turn, and how many machine instructions both have where
// a disassembler is at hand. Prints JSON.
#include "absl/strings/str_cat.h"
#include "bench/twins.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/kernels/learn/13_layout_row_sum.h"
#include "heddle/kernels/learn/14_tv_add.h"
#include "heddle/kernels/learn/15_swizzled_transpose.h"
#include "heddle/kernels/learn/16_permute.h"
#include "heddle/tools/bench/learn/layout_twins.h"

namespace heddle::bench {
namespace {

// Instructions of a kernel but for what pads its end; 0 where nothing tells.
template <class K>
int instructions(const K& kernel, const Signature& signature, const LaunchShape& shape) {
  const auto compiled = kernel.compile(
      signature,
      CompileOptions{.block = {static_cast<int>(shape.block.x), 1, 1}, .target = "sm_90a"});
  check(compiled.status());
  const auto text = codegen::disassemble(compiled->cubin());
  if (!text.ok()) return 0;
  int count = 0;
  for (const codegen::SassInstruction& i : codegen::sass_opcodes(*text)) count += i.opcode != "NOP";
  return count;
}

class Bench {
 public:
  explicit Bench(const Device& device) : device_(device), stream_(take(device.create_stream())) {}

  // Runs f(output, is it the one on layouts) of both.
  template <class A, class B, class Run>
  nlohmann::ordered_json compare(const std::string& name, const std::string& size, int64_t outputs,
                                 const A& layouts, const B& by_hand, const Signature& signature,
                                 const LaunchShape& shape, double bytes, Run run) {
    Side sides[2];
    for (const bool ours : {true, false}) {
      Side& side = sides[ours ? 0 : 1];
      side.outputs.push_back(take(device_.allocate(4 * outputs)));
      side.reset = [this, out = &side.outputs[0]] { check(out->fill(stream_, 0)); };
      side.run = [&run, out = &side.outputs[0], ours] { run(*out, ours); };
    }
    auto figures = measure(device_, stream_, name, size, sides[0], sides[1], 1e-6, "by_hand");
    figures["bytes"] = bytes;
    figures["instructions"] = instructions(layouts, signature, shape);
    figures["instructions_by_hand"] = instructions(by_hand, signature, shape);
    std::fprintf(stderr, "%s\n", figures.dump().c_str());
    return figures;
  }

  nlohmann::ordered_json all() {
    const ArgumentSpec matrix = tensor({kAny, kAny}).aligned(16);
    const ArgumentSpec rows_of_4 = tensor({kAny, kAny}).aligned(16).strides_divisible_by(4);
    const ArgumentSpec vector = tensor({kAny}).aligned(16);
    nlohmann::ordered_json figures = nlohmann::ordered_json::array();
    for (const int columns : {8192, 8191}) {
      const int rows = 8192;
      const std::string size = absl::StrCat(rows, " × ", columns);
      const Buffer x = random_floats(device_, stream_, int64_t{rows} * columns, -1, 1);
      const auto in = as_tensor<const float>(x, {rows, columns});
      const double n = double{rows} * columns;
      const LaunchShape sums = learn::layout_row_sum_shape(rows);
      figures.push_back(compare("layout_row_sum", size, rows, learn::layout_row_sum,
                                learn::row_sum_twin,
                                {columns % 4 == 0 ? rows_of_4 : matrix, vector}, sums, 4 * n,
                                [&](Buffer& out, bool ours) {
                                  const auto y = as_tensor<float>(out, {rows});
                                  check(ours ? learn::layout_row_sum.launch(stream_, sums, in, y)
                                             : learn::row_sum_twin.launch(stream_, sums, in, y));
                                }));
      const LaunchShape adds = learn::tv_add_shape(rows, columns);
      figures.push_back(compare("tv_add", size, int64_t{rows} * columns, learn::tv_add,
                                learn::add_twin, {matrix, matrix, matrix}, adds, 12 * n,
                                [&](Buffer& out, bool ours) {
                                  const auto z = as_tensor<float>(out, {rows, columns});
                                  check(ours ? learn::tv_add.launch(stream_, adds, in, in, z)
                                             : learn::add_twin.launch(stream_, adds, in, in, z));
                                }));
      const LaunchShape turns = learn::swizzled_transpose_shape(rows, columns);
      figures.push_back(compare(
          "swizzled_transpose", size, int64_t{rows} * columns, learn::swizzled_transpose,
          learn::transpose_twin, {matrix, matrix}, turns, 8 * n, [&](Buffer& out, bool ours) {
            const auto y = as_tensor<float>(out, {columns, rows});
            check(ours ? learn::swizzled_transpose.launch(stream_, turns, in, y)
                       : learn::transpose_twin.launch(stream_, turns, in, y));
          }));
    }
    figures.push_back(swap_heads());
    return figures;
  }

 private:
  nlohmann::ordered_json swap_heads() {
    constexpr int64_t kBatch = 8, kLength = 2048, kHeads = 33, kWidth = 120;
    constexpr int64_t kElements = kBatch * kLength * kHeads * kWidth;
    const Buffer x = random_floats(device_, stream_, kElements, -1, 1);
    const auto in = as_tensor<const float>(x, {kBatch, kLength, kHeads, kWidth});
    const ArgumentSpec four_modes = tensor({kAny, kAny, kAny, kAny}).aligned(16);
    const LaunchShape shape = learn::swap_heads_shape(kElements);
    return compare("swap_heads", "8 × 2048 × 33 × 120", kElements, learn::swap_heads,
                   learn::swap_twin, {four_modes, four_modes}, shape, 8.0 * kElements,
                   [&](Buffer& out, bool ours) {
                     const auto y = as_tensor<float>(out, {kBatch, kHeads, kLength, kWidth});
                     check(ours ? learn::swap_heads.launch(stream_, shape, in, y)
                                : learn::swap_twin.launch(stream_, shape, in, y));
                   });
  }

  const Device& device_;
  Stream stream_;
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  using namespace heddle;
  using namespace heddle::bench;
  const Device device = take(Device::open("cuda:0"));
  print_figures("layout_kernels_bench", argc, argv, device, Bench(device).all());
}
