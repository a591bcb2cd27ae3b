// What tensors with layouts record: accesses as wide as can be, facts only where they decide, and
// mistakes with the operands that made them.
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"
#include "heddle/dsl/tensor/draw_atom.h"
#include "heddle/heddle.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using ir::Opcode;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

bool read_fact(const ir::Kernel& kernel, ir::FactKind kind, int param) {
  for (const ir::Guard& guard : kernel.facts_read()) {
    if (guard.fact.kind == kind && guard.fact.param == param) return true;
  }
  return false;
}

// Elements of each load of a kernel, in order.
std::vector<int> load_widths(const ir::Kernel& kernel) {
  std::vector<int> widths;
  kernel.walk([&](ir::OpId id) {
    const ir::Op& op = kernel.op(id);
    if (op.opcode == Opcode::kLoad) widths.push_back(kernel.type(op.result()).count);
  });
  return widths;
}

TEST(TensorTest, PrintsAsCuTeDoes) {
  std::string text[4];
  const auto kernel = local_kernel("print(x, y)", [&](Tensor<const float, 2> x, Tensor<half, 1> y) {
    text[0] = Tensor<const float>(x).to_string();
    text[1] = local_tile(x, {8, 32}, {block_idx.x, 0}).to_string();
    text[2] = make_smem_tensor<half>(
                  make_composed_layout(Swizzle(3, 3, 3), 0, make_layout({8, 64}, {64, 1})))
                  .to_string();
    text[3] = make_tensor<int8_t>(make_layout({4, {2, 2}}, {1, {8, 4}})).to_string();
    y(0) = half(0.0f);
  });
  EXPECT_EQ(mistakes(kernel), "");
  EXPECT_EQ(text[0], "tensor<ptr<f32, gmem> o (?,?):(?,1)>");
  EXPECT_EQ(text[1], "tensor<ptr<f32, gmem> o (8,32):(?,1)>");
  EXPECT_EQ(text[2], "tensor<ptr<f16, smem> o S<3,3,3> o 0 o (8,64):(64,1)>");
  EXPECT_EQ(text[3], "tensor<ptr<i8, rmem> o (4,(2,2)):(1,(8,4))>");
}

using Matrix = Tensor<const float>;

// Elements of each load of a copy of from(x, n), 8 elements, to registers; of those within
// where(n) alone, if that is given.
template <class From, class... Where>
std::vector<int> copy_widths(From from, Where... where) {
  const auto kernel =
      local_kernel("copy(x, y, n)", [=](Tensor<const float, 2> x, Tensor<float, 1> y, Int n) {
        const auto registers = make_tensor<float>(8);
        if constexpr (sizeof...(Where) == 0) {
          copy(from(Matrix(x), n), registers);
        } else {
          copy_if(where(n)..., from(Matrix(x), n), registers);
        }
        y(0) = registers(0);
      });
  const ir::TraceResult result = trace(kernel);
  EXPECT_TRUE(result.diagnostics.empty()) << ir::to_string(result.diagnostics);
  return load_widths(result.kernel);
}

TEST(TensorTest, CopiesAreAsWideAsLayoutAndAlignmentAllow) {
  const std::vector<int> four(2, 4), two(4, 2), one(8, 1);
  // Eight neighbours, each thread its own; rows are multiples of 16 apart.
  EXPECT_EQ(copy_widths([](const Matrix& x, const Int&) {
              return zipped_divide(x(block_idx.x, _), 8)(_, thread_idx.x);
            }),
            four);
  // A start that is even and no more.
  EXPECT_EQ(copy_widths([](const Matrix& x, const Int& n) {
              return domain_offset(2 * SymInt(n), zipped_divide(x(block_idx.x, _), 8)(_, 0));
            }),
            two);
  // A start that may be anything.
  EXPECT_EQ(copy_widths([](const Matrix& x, const Int& n) {
              return domain_offset(n, zipped_divide(x(block_idx.x, _), 8)(_, 0));
            }),
            one);
  // Neighbours in the second mode.
  EXPECT_EQ(copy_widths([](const Matrix& x, const Int&) {
              return local_tile(x, {2, 4}, {block_idx.x, thread_idx.x});
            }),
            four);
  // None are neighbours.
  EXPECT_EQ(copy_widths([](const Matrix& x, const Int&) {
              return local_tile(x, {8, 1}, {block_idx.x, thread_idx.x});
            }),
            one);
  // Neighbours that go on in the view's next row.
  EXPECT_EQ(copy_widths([](const Matrix&, const Int&) {
              return Tensor<float>(Shared<float, 2>({4, 2}));
            }),
            two);
  // Memory that starts at a multiple of 8 bytes.
  EXPECT_EQ(copy_widths([](const Matrix&, const Int& n) {
              return make_tensor(pointer<float>(cast<uint64_t>(n) * 8), make_layout(8));
            }),
            two);
  // Two runs of four, as far apart as the kernel computes.
  const auto apart = [](int factor) {
    return copy_widths([=](const Matrix&, const Int& n) {
      return make_tensor(Shared<float>(64), make_layout({4, 2}, {1, factor * SymInt(n)}));
    });
  };
  EXPECT_EQ(apart(4), four);
  EXPECT_EQ(apart(2), two);

  const auto shared = [](const Layout& layout) {
    return copy_widths([=](const Matrix&, const Int&) { return make_smem_tensor<float>(layout); });
  };
  EXPECT_EQ(shared(make_layout({4, 2}, {1, 6})), two);
  // Swizzles leave fours together, or pairs.
  EXPECT_EQ(shared(make_composed_layout(Swizzle(3, 2, 3), 0, make_layout(8))), four);
  EXPECT_EQ(shared(make_composed_layout(Swizzle(3, 1, 3), 0, make_layout(8))), two);
  EXPECT_EQ(shared(make_composed_layout(Swizzle(3, 2, 3), 2, make_layout(8))), two) << "from 2 on";
}

TEST(TensorTest, CopiesAreAsWideAsTheShapeThatTheyStayWithinAllows) {
  const std::vector<int> four(2, 4), two(4, 2), one(8, 1);
  const auto widths = [](auto where) {
    return copy_widths(
        [](const Matrix&, const Int&) { return make_smem_tensor<float>(make_layout(8)); }, where);
  };
  const auto within_shape = [&](const IntTuple& coords, const IntTuple& shape) {
    return widths([=](const Int&) { return within(make_identity_tensor(coords), shape); });
  };
  // A run stays in the first mode, whose end counts alone.
  EXPECT_EQ(within_shape({4, 2}, {4, 1}), four);
  EXPECT_EQ(within_shape({4, 2}, {2, 1}), two);
  EXPECT_EQ(within_shape({4, 2}, {3, 2}), one);
  EXPECT_EQ(within_shape({2, 4}, {2, 4}), two) << "four go on in the second mode";
  EXPECT_EQ(within_shape(8, {3}), one) << "a tuple of one number is that number";
  EXPECT_EQ(within_shape(8, {4}), four);

  const auto numbers = [&](const Layout& layout, int end) {
    return widths(
        [=](const Int&) { return within(composition(make_identity_tensor(64), layout), end); });
  };
  EXPECT_EQ(numbers(make_layout(8), 4), four);
  EXPECT_EQ(numbers(make_layout(8, 2), 12), one) << "every other number";
  EXPECT_EQ(numbers(make_layout(8, 0), 3), four) << "always the same number";
  EXPECT_EQ(numbers(make_layout({4, 2}, {1, 6}), 8), two) << "6 to 9 are a run";

  const auto from = [&](int factor) {
    return widths([=](const Int& n) {
      return within(domain_offset(factor * SymInt(n), make_identity_tensor(8)), 8);
    });
  };
  EXPECT_EQ(from(4), four);
  EXPECT_EQ(from(2), two);
}

TEST(TensorTest, FactsAreReadWhereTheyDecide) {
  const auto scalar =
      define_kernel("scalar(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
        y(0) = local_tile(x, {8, 8}, {block_idx.x, 0})(thread_idx.x / 32, 3);
      });
  EXPECT_FALSE(read_fact(trace(scalar).kernel, ir::FactKind::kAlignment, 0));
  EXPECT_FALSE(read_fact(trace(scalar).kernel, ir::FactKind::kStrideDivisor, 0));
  EXPECT_FALSE(read_fact(trace(scalar).kernel, ir::FactKind::kExtentDivisor, 0));
  const auto wide = define_kernel("wide(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
    const auto r = make_tensor<float>({2, 4});
    copy(local_tile(x, {2, 4}, {block_idx.x, thread_idx.x}), r);
    y(0) = r(0);
  });
  EXPECT_TRUE(read_fact(trace(wide).kernel, ir::FactKind::kAlignment, 0));
  EXPECT_TRUE(read_fact(trace(wide).kernel, ir::FactKind::kStrideDivisor, 0));
}

TEST(TensorTest, OffsetsAre64BitWhereTheyMayNotFit) {
  const auto kernel = define_kernel("wide(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
    y(0) = local_tile(x, {8, 8}, {block_idx.x, 0})(thread_idx.x / 32, 3);
  });
  ir::Specialization specialization = usual_specialization(kernel.source());
  for (ir::Guard& guard : specialization.facts) {
    if (guard.fact.kind == ir::FactKind::kFits32) guard.value = 0;
  }
  EXPECT_THAT(ir::print(kernel.source().trace(specialization).kernel),
              HasSubstr("stride %x {dim = 0} : i64"));
  EXPECT_THAT(traced_text(kernel), HasSubstr("stride %x {dim = 0} : i32"));
}

// The picture that the README shows.
TEST(TensorTest, PictureInTheReadmeIsUpToDate) {
  std::ifstream stream(std::string(HEDDLE_TEST_DATA_DIR) + "/../dsl/tensor/ldmatrix.svg");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
            copy_atom_svg(parse_copy_atom("ldmatrix.x2", 16)));
}

// A line between one matrix and the next, in both panels.
TEST(TensorTest, PicturesSetMatricesApart) {
  const auto lines = [](const char* atom) {
    const std::string svg = copy_atom_svg(parse_copy_atom(atom, 16));
    const std::vector<std::string> parts = absl::StrSplit(svg, "class='tile'");
    return static_cast<int>(parts.size()) - 1;
  };
  EXPECT_EQ(lines("ldmatrix.x4"), 6);
  EXPECT_EQ(lines("stmatrix.x2.trans"), 2);
  EXPECT_EQ(lines("ldmatrix.x1"), 0);
  EXPECT_EQ(lines("universal.128"), 0);
}

// --- Mistakes ---------------------------------------------------------------------------------

template <class Body>
std::string mistake(Body body) {
  const auto kernel =
      local_kernel("wrong(x, y, n)", [body](Tensor<const float, 2> x, Tensor<float, 1> y, Int n) {
        body(Tensor<const float>(x), Tensor<float>(y), n);
      });
  return mistakes(kernel);
}
using In = Tensor<const float>;
using Out = Tensor<float>;

TEST(TensorMistakes, ACoordinateOutsideTheShape) {
  EXPECT_THAT(mistake([](const In& x, const Out& y, const Int&) {
                y(0) = local_tile(x, {8, 8}, {0, 0})(3, 8);
              }),
              AllOf(HasSubstr("tensor_test.cc:"),
                    HasSubstr("coordinate (3,8) is not in the shape (8,8) of tensor<ptr<f32, gmem> "
                              "o (8,8):(?,1)>"),
                    HasSubstr("each number counts from 0 and is less than the extent")));
}

TEST(TensorMistakes, ACoordinateOfAnotherRank) {
  EXPECT_THAT(mistake([](const In& x, const Out& y, const Int&) { y(0) = x(1, 2, 3); }),
              HasSubstr("coordinate (1,2,3) is not in the shape (?,?)"));
}

TEST(TensorMistakes, ASliceOutOfRange) {
  EXPECT_THAT(mistake([](const In& x, const Out& y, const Int&) {
                y(0) = local_tile(x, {8, 8}, {0, 0})(_, _, 1)(0, 0);
              }),
              HasSubstr("slice("));
}

TEST(TensorMistakes, RegistersByATracedIndex) {
  EXPECT_THAT(mistake([](const In&, const Out& y, const Int& n) {
                const auto r = make_tensor<float>({4, 4});
                fill(r, 0.0f);
                y(0) = r(n, 0);
              }),
              AllOf(HasSubstr("the registers of tensor<ptr<f32, rmem> o (4,4):(1,4)> are named by "
                              "an index that the kernel computes"),
                    HasSubstr("unroll with a host loop")));
}

// A parameter's neighbours lie along whichever mode has a stride of 1.
TEST(TensorTest, CopiesAreWideAlongTheModeThatIsContiguous) {
  const auto loads = [](const std::vector<int64_t>& strides, const IntTuple& tile) {
    const auto kernel = local_kernel("copy", [&](Tensor<const half, 3> x, Tensor<half, 1> y) {
      const auto registers = make_tensor<half>(8);
      copy(local_tile(x, tile, {thread_idx.x, 0, 0}), registers);
      copy(registers, local_tile(y, {8}, {thread_idx.x}));
    });
    CompileOptions options;
    options.block = {8, 1, 1};
    options.stage = Stage::kPtx;
    const auto compiled = kernel.compile(
        Signature{tensor({64, 64, 64}).strides(strides).aligned(16), tensor({64})}, options);
    EXPECT_THAT(compiled, IsOk());
    return std::vector<std::string>(absl::StrSplit(compiled->ptx(), "ld.global")).size() - 1;
  };
  EXPECT_EQ(loads({4096, 64, 1}, {1, 1, 8}), 1u);
  EXPECT_EQ(loads({64, 1, 4096}, {1, 8, 1}), 1u);
  EXPECT_EQ(loads({1, 64, 4096}, {8, 1, 1}), 1u);
  EXPECT_EQ(loads({4096, 64, 2}, {1, 1, 8}), 8u);
  EXPECT_EQ(loads({64, 1, 4096}, {8, 1, 1}), 8u);
}

// A tile at the edge of registers has fewer of them than the others.
TEST(TensorMistakes, ATileBeyondTheRegisters) {
  const auto edge = [](const Tensor<float>& r) { return local_tile(r, {4}, {1}); };
  EXPECT_THAT(
      mistake([&](const In&, const Out&, const Int&) {
        const auto r = make_tensor<float>({6});
        store(edge(r), Fragment<float>(4, Float(0)));
      }),
      AllOf(HasSubstr("element 2 of tensor<ptr<f32, rmem> o ((4)):((1))> is register 6 of 6"),
            HasSubstr("cut registers into tiles that divide their extents")));
  EXPECT_THAT(mistake([&](const In&, const Out& y, const Int&) {
                const auto r = make_tensor<float>({6});
                fill(r, 0.0f);
                y(0) = load(edge(r))[0];
              }),
              HasSubstr("is register 6 of 6"));
}

TEST(TensorMistakes, ATracedSliceOfRegisters) {
  EXPECT_THAT(mistake([](const In& x, const Out& y, const Int& n) {
                const auto r = make_tensor<float>({4, 4});
                fill(r, 0.0f);
                copy(local_tile(x, {1, 4}, {0, 0})(0, _), r(_, n));
                y(0) = r(0);
              }),
              HasSubstr("are named by an index that the kernel computes"));
}

TEST(TensorMistakes, AReductionOfTracedExtent) {
  EXPECT_THAT(mistake([](const In& x, const Out&, const Int&) { reduce(x, 0, plus()); }),
              HasSubstr("reduce: how many elements tensor<ptr<f32, gmem> o (?,?):(?,1)> has"));
}

TEST(TensorMistakes, APredicateForMatrices) {
  EXPECT_THAT(mistake([](const In&, const Out&, const Int&) {
                const auto tile = make_smem_tensor<half>(make_layout({16, 16}, {16, 1}));
                const TiledCopy tiled(make_copy_atom<half>(LdMatrix{4}),
                                      make_layout({{4, 8}, {2, 2, 2}}, {{32, 1}, {16, 8, 128}}),
                                      {16, 16});
                const auto mine = tiled.get_slice(thread_idx.x);
                const auto r = make_tensor<half>(make_layout({{2, 2, 2}, 1, 1}));
                copy_if(tiled, within(mine.partition_S(make_identity_tensor({16, 16})), {8, 8}),
                        mine.partition_S(tile), mine.retile(r));
              }),
              HasSubstr("copy_if: a warp moves matrices together"));
}

TEST(TensorMistakes, AWidthThatDoesNotGoIsNoMistake) {
  const std::string text = mistake([](const In&, const Out& y, const Int&) {
    const Shared<float> memory(64);
    fill(make_tensor(memory, make_layout(64)), 1.0f);
    y(0) = load(make_tensor(memory, make_layout({5, 3, 2}, {1, 16, 5})))[0];
  });
  EXPECT_EQ(text, "");
}

TEST(TensorTest, SharedMemoryIsAsLargeAsItsLayoutReaches) {
  const auto kernel = define_kernel("reach(y)", [](Tensor<float, 1> y) {
    const auto a =
        make_smem_tensor<float>(make_composed_layout(Swizzle(1, 2, 1), 40, make_layout({4, 4})));
    const auto b = make_smem_tensor<float>(
        make_composed_layout(make_layout({4, 4}, {64, 1}), 0, make_layout({4, 4})));
    y(0) = a(0) + b(0);
  });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, HasSubstr("extents = [64]"));
  EXPECT_THAT(text, HasSubstr("extents = [196]"));
}

// The ops that a kernel has of a kind, as text.
std::vector<std::string> ops_of(const std::string& text, const std::string& name) {
  std::vector<std::string> result;
  for (const auto line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, " = " + name + " ")) result.emplace_back(line);
  }
  return result;
}

TEST(TensorTest, SwizzledSharedMemoryIsAlignedToWhatTheSwizzleCovers) {
  const auto kernel = define_kernel("align(y)", [](Tensor<float, 1> y) {
    const Layout rows = make_layout({8, 64}, {64, 1});
    const auto sw128 = make_smem_tensor<half>(make_composed_layout(Swizzle(3, 3, 3), 0, rows));
    const auto sw64 = make_smem_tensor<half>(make_composed_layout(Swizzle(2, 3, 3), 0, rows));
    const auto backwards = make_smem_tensor<float>(
        make_composed_layout(Swizzle(2, 2, -3), 0, make_layout({4, 32}, {32, 1})));
    const auto large =
        make_smem_tensor<float>(make_composed_layout(Swizzle(5, 0, 5), 0, make_layout({32, 32})));
    const auto small =
        make_smem_tensor<float>(make_composed_layout(Swizzle(1, 0, 1), 0, make_layout({2, 2})));
    const auto behind = make_smem_tensor<half>(make_composed_layout(
        make_composed_layout(Swizzle(3, 3, 3), 0, make_layout(512)), 0, make_layout({8, 64})));
    const auto plain = make_smem_tensor<half>(rows);
    const Shared<half> array(512);
    const auto given = make_tensor(array, make_composed_layout(Swizzle(3, 3, 3), 0, rows));
    y(0) = backwards(0) + large(0) + small(0) +
           cast<float>(sw128(0) + sw64(0) + behind(0) + plain(0) + given(0));
  });
  const std::vector<std::string> arrays = ops_of(traced_text(kernel), "shared");
  const char* aligned[] = {
      "align = 1024", "align = 512", "align = 512", "align = 1024", "", "align = 1024", "",
      "align = 1024"};
  ASSERT_EQ(arrays.size(), std::size(aligned));
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_THAT(arrays[i], HasSubstr(aligned[i]));
    EXPECT_EQ(absl::StrContains(arrays[i], "align"), aligned[i][0] != 0) << arrays[i];
  }
}

TEST(TensorTest, SwizzlesAlignSharedArraysAlone) {
  const auto kernel =
      define_kernel("others(y, p, n)", [](Tensor<float, 1> y, Pointer<float> p, Int n) {
        const Layout swizzled = make_composed_layout(Swizzle(3, 2, 3), 0, make_layout(256));
        const Local<float> local(256);
        const Shared<float> dynamic = dynamic_shared<float>(256);
        y(0) = make_tensor(local, swizzled)(1) + make_tensor(dynamic, swizzled)(1) +
               make_tensor(p, swizzled)(1) +
               make_tensor(pointer<float>(cast<uint64_t>(n) * 4), swizzled)(1);
      });
  EXPECT_THAT(traced_text(kernel), Not(HasSubstr("align = ")));
}

TEST(TensorTest, TheLargestSwizzleOverAnArrayAlignsIt) {
  const auto aligned = [](std::vector<Swizzle> swizzles) {
    const auto kernel = local_kernel("over(y)", [swizzles](Tensor<half, 1> y) {
      const Shared<half> array(512);
      for (const Swizzle& swizzle : swizzles) {
        y(0) = make_tensor(array, make_composed_layout(swizzle, 0, make_layout(512)))(1);
      }
    });
    const std::vector<std::string> arrays = ops_of(traced_text(kernel), "shared");
    return arrays.size() == 1 ? arrays[0] : std::string();
  };
  const Swizzle large(3, 3, 3), middle(2, 3, 3), small(1, 0, 1), none(0, 3, 3);
  for (const auto& swizzles :
       {std::vector{large, middle}, std::vector{middle, large}, std::vector{large, small},
        std::vector{small, large}, std::vector{middle, large, small, none}}) {
    EXPECT_THAT(aligned(swizzles), HasSubstr("align = 1024"));
  }
  EXPECT_THAT(aligned({small, middle, none}), HasSubstr("align = 512"));
}

TEST(TensorMistakes, ASliceOfAHostNumberOutOfRange) {
  EXPECT_THAT(mistake([](const In& x, const Out& y, const Int&) {
                y(0) = local_tile(x, {8, 8}, {0, 0})(8, _)(0);
              }),
              HasSubstr("the slice (8,_) of tensor<ptr<f32, gmem> o (8,8):(?,1)> fixes what is not "
                        "in its shape"));
}

TEST(TensorMistakes, RegistersOfATracedShape) {
  EXPECT_THAT(mistake([](const In&, const Out&, const Int& n) {
                make_tensor<float>({4, n});
              }),
              AllOf(HasSubstr("make_tensor: registers of layout (4,?):(1,4)"),
                    HasSubstr("laid out by host numbers")));
}

TEST(TensorMistakes, SizesThatDiffer) {
  EXPECT_THAT(mistake([](const In& x, const Out&, const Int&) {
                copy(local_tile(x, {8, 8}, {0, 0}), make_tensor<float>(32));
              }),
              AllOf(HasSubstr("copy: tensor<ptr<f32, gmem> o (8,8):(?,1)> has 64 elements and "
                              "tensor<ptr<f32, rmem> o 32:1> 32"),
                    HasSubstr("partition them by the same layout")));
}

TEST(TensorMistakes, AnArrayThatIsTooSmall) {
  EXPECT_THAT(mistake([](const In&, const Out&, const Int&) {
                make_tensor(Shared<float>(100), make_layout({16, 8}));
              }),
              AllOf(HasSubstr("(16,8):(1,16) reaches over 128 elements, and the array has 100"),
                    HasSubstr("cosize(layout)")));
}

TEST(TensorMistakes, AnAtomThatIsTooWide) {
  EXPECT_THAT(mistake([](const In& x, const Out&, const Int&) {
                const auto tiled = make_tiled_copy(make_copy_atom<float>(CopyUniversal{128}),
                                                   make_layout({16, 8}), make_layout({4, 1}));
                const auto from = tiled.get_slice(thread_idx.x).partition_S(x);
                copy(tiled, from(_, 0, 0), make_tensor<float>(4));
              }),
              AllOf(HasSubstr("accesses of 4 elements to tensor<ptr<f32, gmem>"),
                    HasSubstr("they are not neighbours in memory"),
                    HasSubstr("the widest access that is known legal")));
}

TEST(TensorMistakes, AnAtomForElementsThatALayoutSpreads) {
  EXPECT_THAT(mistake([](const In&, const Out&, const Int&) {
                const Layout spread = make_layout({4, 4}, {64, 1});
                copy(make_copy_atom<float>(CopyUniversal{128}),
                     make_smem_tensor<float>(make_composed_layout(spread, 0, make_layout(16))),
                     make_tensor<float>(16));
              }),
              HasSubstr("their addresses are not known to be multiples of an access's size"));
}

TEST(TensorMistakes, AnAtomForAnotherElement) {
  EXPECT_THAT(
      mistake([](const In&, const Out&, const Int&) { make_copy_atom<double>(LdMatrix{4}); }),
      HasSubstr("LdMatrix of f64"));
  EXPECT_THAT(
      mistake([](const In&, const Out&, const Int&) { make_copy_atom<float>(CopyUniversal{16}); }),
      HasSubstr("CopyUniversal of 16 bits for elements of f32"));
  EXPECT_THAT(mistake([](const In&, const Out&, const Int&) { make_copy_atom<half>(LdMatrix{3}); }),
              HasSubstr("LdMatrix of 3 matrices"));
}

TEST(TensorMistakes, CopiesThatNoInstructionMakes) {
  EXPECT_THAT(mistake([](const In& x, const Out&, const Int&) {
                const auto tiled = make_tiled_copy(make_copy_atom<float>(CopyAsync{128}),
                                                   make_layout({16, 8}), make_layout({1, 4}));
                const auto from = tiled.get_slice(thread_idx.x).partition_S(x);
                copy(tiled, from(_, 0, 0), make_tensor<float>(4));
              }),
              AllOf(HasSubstr("CopyAsync from tensor<ptr<f32, gmem>"),
                    HasSubstr("from global to shared memory")));
}

TEST(TensorMistakes, ShapesThatDoNotBroadcast) {
  EXPECT_THAT(mistake([](const In& x, const Out&, const Int&) {
                const auto r = make_tensor<float>({8, 4});
                transform(r, plus(), local_tile(x, {8, 4}, {0, 0}), local_tile(x, {4, 4}, {0, 0}));
              }),
              HasSubstr("a tensor of shape (4,4) where one of shape (8,4) is wanted"));
}

TEST(TensorMistakes, PredicatesOfWhatIsNoPartOfAView) {
  EXPECT_THAT(mistake([](const In&, const Out& y, const Int&) {
                const auto registers = make_tensor<float>(4);
                fill(registers, 0.0f);
                copy_if(within(registers), registers, y);
              }),
              AllOf(HasSubstr("within("), HasSubstr("which is no part of a view"),
                    HasSubstr("within(coordinates, shape)")));
}

TEST(TensorMistakes, ProductsOfOtherShapes) {
  EXPECT_THAT(mistake([](const In& x, const Out&, const Int&) {
                const auto r = make_tensor<float>({8, 4});
                gemm(local_tile(x, {8, 4}, {0, 0}), local_tile(x, {8, 4}, {0, 0}), r);
              }),
              AllOf(HasSubstr("gemm: "), HasSubstr("the shapes are (m,k), (n,k) and (m,n)")));
}

TEST(TensorMistakes, OutsideAKernel) {
  const auto t = make_tensor<float>(4);
  EXPECT_FALSE(t.ok());
  const auto kernel = local_kernel("uses(y)", [&](Tensor<float, 1> y) { y(0) = t(0); });
  EXPECT_THAT(mistakes(kernel), HasSubstr("a tensor of a kernel is made or used outside it"));
}

TEST(TensorMistakes, SharedMemoryOutsideAKernel) {
  const Layout layouts[] = {
      make_layout(4), make_composed_layout(Swizzle(3, 2, 3), 0, make_layout({8, 32}, {32, 1}))};
  for (const Layout& layout : layouts) {
    const Tensor<float> tensor = make_smem_tensor<float>(layout);
    EXPECT_FALSE(tensor.ok());
    const auto uses = local_kernel("uses(y)", [&](Tensor<float, 1> y) { y(0) = tensor(0); });
    EXPECT_THAT(mistakes(uses), HasSubstr(" outside "));
    make_smem_tensor<float>(layout);
    // The next kernel says so.
    const auto kernel = local_kernel("next(y)", [](Tensor<float, 1> y) { y(0) = 0.0f; });
    EXPECT_THAT(mistakes(kernel),
                AllOf(HasSubstr("tensor_test.cc:"), HasSubstr(" outside "), HasSubstr("fix: ")))
        << layout.to_string();
  }
}

TEST(TensorMistakes, MemoryOfAnotherKernel) {
  std::optional<Tensor<float>> kept;
  const auto first = local_kernel("first(y)", [&](Tensor<float, 1> y) {
    kept.emplace(make_smem_tensor<float>(make_layout(4)));
    y(0) = 0.0f;
  });
  EXPECT_EQ(mistakes(first), "");
  const auto second = local_kernel("second(y)", [&](Tensor<float, 1> y) {
    y(0) = (*kept)(1);
    copy(*kept, make_tensor<float>(4));
  });
  const std::string told = mistakes(second);
  EXPECT_THAT(told, HasSubstr("value from kernel 'first' used in kernel 'second'"));
  EXPECT_THAT(told, Not(HasSubstr("bounds"))) << "nothing else";
}

TEST(TensorMistakes, UnknownNumbersAreNoNumbersOfAKernel) {
  EXPECT_THAT(mistake([](const In&, const Out& y, const Int&) {
                y(0) = cast<float>(Int(SymInt::unknown(4) + 1));
              }),
              HasSubstr("an unknown number, ?, is used in a kernel"));
}

}  // namespace
}  // namespace heddle
