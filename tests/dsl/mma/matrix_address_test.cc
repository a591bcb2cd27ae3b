// What ldmatrix and stmatrix of swizzled tiles cost in addresses: in a loop over stages at most one
// instruction each, beside what the stage costs once.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/dsl/mma/draw_mma.h"
#include "heddle/heddle.h"
#include "heddle/ir/type.h"

namespace heddle {
namespace {

using heddle::codegen::sass_opcodes;

// The instructions of the first loop that has `opcode`.
std::vector<std::string> loop_with(const std::string& listing, const std::string& opcode) {
  std::vector<std::string> opcodes;
  std::map<std::string, size_t> labels;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(listing, '\n'))) {
    if (absl::StartsWith(line, ".L") && absl::EndsWith(line, ":")) {
      labels[line.substr(0, line.size() - 1)] = opcodes.size();
    }
    for (const codegen::SassInstruction& i : sass_opcodes(line)) opcodes.push_back(i.opcode);
    const size_t name = line.find("`(");
    if (name == std::string::npos) continue;
    const auto label = labels.find(line.substr(name + 2, line.find(')', name) - name - 2));
    if (label == labels.end()) continue;
    const std::vector<std::string> body(
        opcodes.begin() + static_cast<std::ptrdiff_t>(label->second), opcodes.end());
    const bool has = std::any_of(body.begin(), body.end(), [&](const std::string& each) {
      return absl::StartsWith(each, opcode);
    });
    if (has) return body;
  }
  return {};
}

template <class Body>
std::string sass_of(const Body& body, int threads = 128) {
  const auto kernel = define_kernel("addresses(d, n)", body);
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {threads, 1, 1};
  options.stage = Stage::kCubin;
  const auto compiled = kernel.compile(Signature{tensor({kAny}), scalar()}, options);
  if (!compiled.ok()) return std::string(compiled.status().message());
  const auto listing = codegen::disassemble(compiled->cubin());
  return listing.ok() ? *listing : std::string(listing.status().message());
}

// A warp's 16 rows of each 64, four values a matrix: what m16n8k16 takes as its operand a.
Layout fragments() { return make_layout({{4, 8, 4}, {2, 2, 2}}, {{128, 1, 16}, {64, 8, 512}}); }

// Integer instructions of a loop that may be part of addresses.
int arithmetic_of(const std::vector<std::string>& loop) {
  constexpr const char* kOpcodes[] = {"LOP3", "LEA", "IMAD", "SHF", "UIADD3", "ULEA", "VIADD"};
  return static_cast<int>(std::count_if(loop.begin(), loop.end(), [&](const std::string& opcode) {
    return std::any_of(std::begin(kOpcodes), std::end(kOpcodes), [&](const char* each) {
      return absl::StartsWith(opcode, each) && opcode != "IMAD.MOV.U32";
    });
  }));
}
int count_of(const std::vector<std::string>& loop, const std::string& opcode) {
  return static_cast<int>(std::count_if(loop.begin(), loop.end(), [&](const std::string& each) {
    return absl::StartsWith(each, opcode);
  }));
}

// Of the loop and its stage, and of moves and the constants that ptxas makes.
constexpr int kLoopOverhead = 6;

// Eight ldmatrix of a tile of two panels: an exclusive or each at most, and the panel in the address.
TEST(MatrixAddresses, OfLdMatrixTakeOneInstruction) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const std::string listing = sass_of([](Tensor<uint32_t, 1> d, Int n) {
    const auto tiles = make_smem_tensor<half>(make_smem_layout<half>({64, 128, 4}));
    const TiledCopy load(make_copy_atom<half>(LdMatrix{4}), fragments(), {64, 16});
    const ThrCopy mine = load.get_slice(thread_idx.x);
    const auto parts = mine.partition_S(tiles);
    Var<uint32_t> sum(0u);
    Var<int32_t> stage(0);
    For(range(n), [&](const Int&) {
      sync_threads();
      const auto registers = make_tensor<half>(make_layout({{2, 2, 2}, 1, 8}));
      copy(load, parts.slice({_, _, _, stage}), mine.retile(registers));
      const Fragment<half> all = heddle::load(registers);
      for (int i = 0; i < all.size(); ++i) sum += cast<uint32_t>(all[i]);
      stage = select(stage == 3, 0, stage + 1);
    });
    d(thread_idx.x) = sum;
  });
  const auto loop = loop_with(listing, "LDSM");
  EXPECT_EQ(count_of(loop, "LDSM"), 8) << listing;
  EXPECT_LE(count_of(loop, "LOP3"), 4) << absl::StrJoin(loop, "\n");
  EXPECT_LE(arithmetic_of(loop), 4 + kLoopOverhead) << absl::StrJoin(loop, "\n");
}

// Likewise stmatrix, as an epilogue has it.
TEST(MatrixAddresses, OfStMatrixTakeOneInstruction) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  const std::string listing = sass_of([](Tensor<uint32_t, 1> d, Int n) {
    const auto tiles = make_smem_tensor<half>(make_smem_layout<half>({64, 256, 2}));
    const TiledCopy store(make_copy_atom<half>(StMatrix{4}), fragments(), {64, 16});
    const ThrCopy mine = store.get_slice(thread_idx.x);
    const auto parts = mine.partition_D(tiles);
    Var<int32_t> stage(0);
    For(range(n), [&](const Int& i) {
      const auto registers = make_tensor<half>(make_layout({{2, 2, 2}, 1, 16}));
      fill(registers, cast<half>(i));
      copy(store, mine.retile(registers), parts.slice({_, _, _, stage}));
      sync_threads();
      stage = 1 - stage;
    });
    d(thread_idx.x) = cast<uint32_t>(tiles(0, 0, stage));
  });
  const auto loop = loop_with(listing, "STSM");
  EXPECT_EQ(count_of(loop, "STSM"), 16) << listing;
  EXPECT_LE(arithmetic_of(loop), 4 + kLoopOverhead) << absl::StrJoin(loop, "\n");
}

// A k-block of 128 x 256 x 64 by two warpgroups, of staged tiles of either major: descriptors are sums of a
// base and constants.
TEST(MatrixAddresses, OfDescriptorsAreSums) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  for (const Major major : {Major::k, Major::mn}) {
    const std::string listing = sass_of(
        [=](Tensor<uint32_t, 1> d, Int n) {
          const TiledMma mma =
              make_tiled_mma(make_mma_atom(Wgmma<half, half, float>{256}), {2, 1, 1});
          const auto a = make_smem_tensor<half>(make_smem_layout_A(mma, {128, 64, 4}, major));
          const auto b = make_smem_tensor<half>(make_smem_layout_B(mma, {256, 64, 4}, major));
          const ThrMma mine = mma.get_slice(thread_idx.x);
          const auto first = make_accumulator<float>(mma, {128, 256});
          const auto [sums, last] =
              For(range(n), std::tuple(gemm(mine, a(_, _, 0), b(_, _, 0), first, false), Int(0)),
                  [&](const Int&, const std::tuple<AccumulatorTile<float>, Int>& so_far) {
                    const auto& [sum, stage] = so_far;
                    sync_threads();
                    const auto next = gemm(mine, a(_, _, stage), b(_, _, stage), sum);
                    wait(mma, 1);
                    return std::tuple(next, select(stage == 3, 0, stage + 1));
                  });
          const Fragment<float> all = load(settle(sums));
          Var<uint32_t> bits(0u);
          for (int i = 0; i < all.size(); ++i) bits += cast<uint32_t>(all[i]);
          d(thread_idx.x) = bits;
        },
        256);
    const auto loop = loop_with(listing, "HGMMA");
    EXPECT_EQ(count_of(loop, "HGMMA"), 4) << listing;
    EXPECT_EQ(count_of(loop, "R2UR"), 0) << absl::StrJoin(loop, "\n");
    EXPECT_LE(loop.size(), 40u) << absl::StrJoin(loop, "\n");
  }
}

// Loops of other shapes and types: ptxas does not serialize their products, which would be an error.
TEST(MatrixAddresses, LetProductsOverlap) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  struct Loop {
    const char* atom;
    int m, n, depth;  // of a stage
    const char* opcode;
  };
  constexpr Loop kLoops[] = {{"wgmma.m64n64k16.f32.f16.f16", 128, 128, 64, "HGMMA"},
                             {"wgmma.m64n128k16.f16.f16.f16", 64, 128, 64, "HGMMA"},
                             {"wgmma.m64n128k8.f32.tf32.tf32", 64, 128, 32, "HGMMA"},
                             {"wgmma.m64n128k32.i32.i8.i8", 64, 128, 128, "IGMMA"},
                             {"wgmma.m64n128k32.f32.e4m3.e4m3", 128, 128, 128, "QGMMA"}};
  for (const Loop& each : kLoops) {
    const std::string listing = sass_of([each](Tensor<uint32_t, 1> d, Int n) {
      const TiledMma mma = make_tiled_mma(parse_mma_atom(each.atom));
      const auto overlapped = [&]<class T, class C>(T, C) {
        const auto a = make_smem_tensor<T>(make_smem_layout_A(mma, {each.m, each.depth, 2}));
        const auto b = make_smem_tensor<T>(make_smem_layout_B(mma, {each.n, each.depth, 2}));
        const ThrMma mine = mma.get_slice(thread_idx.x);
        const auto none = make_accumulator<C>(mma, {each.m, each.n});
        const auto sums = For(range(n), gemm(mine, a(_, _, 0), b(_, _, 0), none, false),
                              [&](const Int& k, const AccumulatorTile<C>& sum) {
                                sync_threads();
                                const auto next = gemm(mine, a(_, _, k % 2), b(_, _, k % 2), sum);
                                wait(mma, 1);
                                return next;
                              });
        const Fragment<C> all = load(settle(sums));
        Var<uint32_t> bits(0u);
        for (int i = 0; i < all.size(); ++i) bits += cast<uint32_t>(all[i]);
        d(thread_idx.x) = bits;
      };
      switch (mma.atom().a()) {
        case ir::Scalar::kI8:
          return overlapped(int8_t{}, int32_t{});
        case ir::Scalar::kTF32:
          return overlapped(tfloat32{}, float{});
        case ir::Scalar::kE4M3:
          return overlapped(float8_e4m3{}, float{});
        default:
          return mma.atom().c() == ir::Scalar::kF16 ? overlapped(half{}, half{})
                                                    : overlapped(half{}, float{});
      }
    });
    EXPECT_EQ(count_of(loop_with(listing, each.opcode), each.opcode),
              each.m * each.n / 64 / make_tiled_mma(parse_mma_atom(each.atom)).atom().n() *
                  each.depth / parse_mma_atom(each.atom).k())
        << each.atom << "\n"
        << listing.substr(0, 2000);
  }
}

}  // namespace
}  // namespace heddle
