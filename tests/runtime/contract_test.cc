// What a kernel asks of its launches, as kernel authors write it: by the text of the refusal. What of it the IR
// alone decides is tests/filetests/launch/.
#include "heddle/heddle.h"
#include "heddle/ir/text/printer.h"
#include "heddle/runtime/kernel_cache.h"
#include "support/matchers.h"
#include "support/private_interp_test.h"

namespace heddle {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr auto kInvalid = StatusCode::kInvalidArgument;

using ContractTest = PrivateInterpTest;

// --- Relations of arguments ---

constexpr int kProductLine = __LINE__ + 3;
const auto product = define_kernel(
    "product(a, b, c)", [](Tensor<const float, 2> a, Tensor<const float, 2> b, Tensor<float, 2> c) {
      require(a.shape(1) == b.shape(0) && c.shape(0) == a.shape(0));
      If(thread_idx.x == 0, [&] { c(0, 0) = a(0, 0) * b(0, 0); });
    });

TEST_F(ContractTest, ARelationOfExtents) {
  const Buffer a = zeros(72), b = zeros(72), c = zeros(64);
  const auto launch = [&](int64_t inner, int64_t other, int64_t rows) {
    return product.launch(stream_, {.block = 32}, as_tensor<const float>(a, {8, inner}),
                          as_tensor<const float>(b, {other, 8}), as_tensor<float>(c, {rows, 8}));
  };
  EXPECT_THAT(launch(9, 9, 8), IsOk());
  EXPECT_THAT(launch(9, 8, 8), Fails(kInvalid, "kernel 'product' (",
                                     "cannot launch: it requires a.shape(1) == b.shape(0), but "
                                     "a.shape(1) is 9 and b.shape(0) is 8 (",
                                     absl::StrCat("contract_test.cc:", kProductLine,
                                                  "); fix: pass arguments for which that holds")));
  // The part of the conjunction that fails is the one that is named.
  EXPECT_THAT(launch(8, 8, 7),
              Fails(kInvalid,
                    "it requires c.shape(0) == a.shape(0), but c.shape(0) is 7 and "
                    "a.shape(0) is 8 ("));
  EXPECT_THAT(launch(9, 9, 8), IsOk()) << "a refusal leaves nothing behind";
}

TEST_F(ContractTest, NothingOfItIsInTheKernel) {
  const auto bare =
      define_kernel("product(a, b, c)",
                    [](Tensor<const float, 2> a, Tensor<const float, 2> b, Tensor<float, 2> c) {
                      If(thread_idx.x == 0, [&] { c(0, 0) = a(0, 0) * b(0, 0); });
                    });
  const Signature signature{tensor({kAny, kAny}), tensor({kAny, kAny}), tensor({kAny, kAny})};
  const CompileOptions options{.block = {32, 1, 1}, .stage = Stage::kPtx};
  const auto with = product.compile(signature, options), without = bare.compile(signature, options);
  ASSERT_THAT(with, IsOk());
  ASSERT_THAT(without, IsOk());
  const auto body = [](const std::string& ptx) {
    std::string instructions;
    for (size_t at = ptx.find('{'); at < ptx.size();) {
      const size_t end = ptx.find('\n', at);
      const std::string line = ptx.substr(at, end - at);
      if (line.find(".loc") == std::string::npos) instructions += line + "\n";
      at = end == std::string::npos ? ptx.size() : end + 1;
    }
    return instructions;
  };
  EXPECT_EQ(body(with->ptx()), body(without->ptx()));
}

TEST_F(ContractTest, ConditionsOfAllKinds) {
  const auto conditions =
      kernel_family("conditions(n, m, x)", [](int which, Int n, Int64 m, Tensor<float, 1> x) {
        If(thread_idx.x == 0, [&] { x(block_idx.x) = 1; });
        switch (which) {
          case 0:
            return require(n % 4 == 0);
          case 1:
            return require(n < 10 || m >= 5);
          case 2:
            return require(!(n == 3));
          case 3:
            return require(cast<int64_t>(n) * 2 + 1 <= m);
          case 4:
            return require(x.shape(0) == block_dim.x * grid_dim.x);
          case 5:
            return require(min(n, 7) != 7);
        }
      });
  const Buffer x = zeros(64);
  const auto launch = [&](int which, int n, int64_t m) {
    return conditions(which).launch(stream_, {.grid = 2, .block = 16}, n, m,
                                    as_tensor<float>(x, {32}));
  };
  for (int which = 0; which < 6; ++which) EXPECT_THAT(launch(which, 4, 20), IsOk()) << which;
  EXPECT_THAT(launch(0, 6, 0), Fails(kInvalid, "it requires (n % 4) == 0, but n % 4 is 2 ("));
  EXPECT_THAT(launch(1, 10, 4),
              Fails(kInvalid, "it requires (n < 10) || (m >= 5), but n is 10 and m is 4 ("));
  EXPECT_THAT(launch(2, 3, 0), Fails(kInvalid, "but n is 3 ("));
  EXPECT_THAT(
      launch(3, 10, -1),
      Fails(kInvalid, "it requires ((n * 2) + 1) <= m, but (n * 2) + 1 is 21 and m is -1 ("));
  EXPECT_THAT(launch(5, 9, 0), Fails(kInvalid, "it requires min(n, 7) != 7, but min(n, 7) is 7 ("));
  EXPECT_THAT(
      conditions(4).launch(stream_, {.grid = 3, .block = 16}, 0, 0, as_tensor<float>(x, {32})),
      Fails(kInvalid, "x.shape(0) is 32 and ", " is 48 ("));
}

TEST_F(ContractTest, WhatOnlyThreadsKnowIsAnErrorOfTheKernel) {
  const auto wrong = define_kernel("wrong(x)", [](Tensor<float, 1> x) {
    require(thread_idx.x < x.shape(0));
    x(thread_idx.x) = 1;
  });
  const Buffer x = zeros(4);
  EXPECT_THAT(wrong.launch(stream_, {.block = 4}, as_tensor<float>(x, {4})),
              Fails(kInvalid,
                    "'require' of what the host cannot know before a launch: it depends "
                    "on 'thread_idx' at ",
                    "fix: ask for relations of integer parameters, extents and strides of "
                    "parameters, block_dim, grid_dim and constants; what a thread computes is for "
                    "device_assert()"));
}

TEST_F(ContractTest, WhatNeverHoldsDoesNotCompile) {
  EXPECT_THAT(product.compile(Signature{tensor({8, 9}), tensor({8, 8}), tensor({8, 8})},
                              CompileOptions{.block = {32, 1, 1}, .stage = Stage::kIr}),
              Fails(kInvalid, "can never launch: it requires 9 == 8 ("));
  const auto never = define_kernel("never(x)", [](Tensor<float, 1> x) {
    require(Bool(false));
    x(thread_idx.x) = 1;
  });
  const Buffer x = zeros(4);
  EXPECT_THAT(never.launch(stream_, {.block = 4}, as_tensor<float>(x, {4})),
              Fails(kInvalid, "this requires what never holds"));
}

TEST_F(ContractTest, WhatAlwaysHoldsIsNothingToRefuse) {
  const auto always = define_kernel("always(x)", [](Tensor<float, 1> x) {
    require(true);
    require(Bool(sizeof(float) == 4));
    x(thread_idx.x) = 1;
  });
  const Buffer x = zeros(4);
  EXPECT_THAT(always.launch(stream_, {.block = 4}, as_tensor<float>(x, {4})), IsOk());
  EXPECT_THAT(x.download<float>(stream_).value(), Each(1.0f));
}

// A number that a condition asks for several times is told once.
TEST_F(ContractTest, EachNumberOnce) {
  const auto often = define_kernel("often(n, x)", [](Int n, Tensor<float, 1> x) {
    require(x.shape(0) % 4 == 0 || x.shape(0) > 100 || n == x.shape(0) || n == 0);
    x(0) = 1;
  });
  const Buffer x = zeros(8);
  EXPECT_THAT(often.launch(stream_, {}, 0, as_tensor<float>(x, {7})), IsOk());
  EXPECT_THAT(often.launch(stream_, {}, 3, as_tensor<float>(x, {7})),
              Fails(kInvalid, ", but x.shape(0) is 7 and n is 3 ("));
}

// n + n + …, of so many terms.
Int times(const Int& n, int terms) { return terms == 1 ? n : times(n, terms - 1) + n; }

// Nobody reads a condition of any length.
TEST_F(ContractTest, ALongConditionIsToldInPart) {
  const auto sums = kernel_family("sums(n, x)", [](int terms, Int n, Tensor<float, 1> x) {
    require(times(n, terms) < 10);
    x(0) = 1;
  });
  const Buffer x = zeros(4);
  const auto told = [&](int terms) {
    return std::string(sums(terms).launch(stream_, {}, 10, as_tensor<float>(x, {4})).message());
  };
  EXPECT_THAT(told(4), HasSubstr("it requires (((n + n) + n) + n) < 10, but ((n + n) + n) + n is "
                                 "40 ("));
  EXPECT_THAT(told(100), HasSubstr("it requires ((((((((... + ...) + n) + n) + n"));
  EXPECT_EQ(told(100).size(), told(50).size() + 1);  // 1000, and not 500
}

TEST_F(ContractTest, ShapesOfTheLaunchByTheirAxes) {
  const auto shaped = define_kernel("shaped(x)", [](Tensor<float, 1> x) {
    require(grid_dim.x <= 2 && grid_dim.y <= 3 && grid_dim.z <= 4);
    require(block_dim.x <= 5 && block_dim.y <= 6 && block_dim.z <= 7);
    device_assert(x.shape(0) > 0);
  });
  const auto compiled =
      shaped.compile(Signature{tensor({kAny})}, CompileOptions{.stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  const Buffer x = zeros(4);
  const auto launch = [&](Dim3 grid, Dim3 block) {
    return compiled->launch(stream_, {.grid = grid, .block = block}, as_tensor<float>(x, {4}));
  };
  EXPECT_THAT(launch({2, 3, 4}, {5, 6, 7}), IsOk());
  const auto told = [](const char* number, int most, int is) {
    return Fails(kInvalid, absl::StrCat("it requires ", number, " <= ", most, ", but ", number,
                                        " is ", is, " ("));
  };
  EXPECT_THAT(launch({3, 3, 4}, {5, 6, 7}), told("grid_dim.x", 2, 3));
  EXPECT_THAT(launch({2, 4, 4}, {5, 6, 7}), told("grid_dim.y", 3, 4));
  EXPECT_THAT(launch({2, 3, 5}, {5, 6, 7}), told("grid_dim.z", 4, 5));
  EXPECT_THAT(launch({2, 3, 4}, {6, 6, 7}), told("block_dim.x", 5, 6));
  EXPECT_THAT(launch({2, 3, 4}, {5, 7, 7}), told("block_dim.y", 6, 7));
  EXPECT_THAT(launch({2, 3, 4}, {5, 6, 8}), told("block_dim.z", 7, 8));
}

// --- Extents with names ---

const auto scaled_product = define_kernel("scaled(a[m, k], b[k, 8], c[m, 8], n[?], m)",
                                          [](Tensor<const float, 2> a, Tensor<const float, 2> b,
                                             Tensor<float, 2> c, Tensor<float, 1> n, Int m) {
                                            If(thread_idx.x == 0 && n.shape(0) < 100,
                                               [&] { c(0, 0) = a(0, 0) * b(0, 0) + Float(m); });
                                          });

TEST_F(ContractTest, ExtentsOfOneNameAreEqual) {
  const Buffer a = zeros(72), b = zeros(96), c = zeros(96), n = zeros(1);
  const auto launch = [&](int64_t rows, int64_t inner, int64_t other, int64_t columns, int m) {
    return scaled_product.launch(stream_, {.block = 32}, as_tensor<const float>(a, {rows, inner}),
                                 as_tensor<const float>(b, {other, columns}),
                                 as_tensor<float>(c, {8, columns}), as_tensor<float>(n, {1}), m);
  };
  EXPECT_THAT(launch(8, 9, 9, 8, 8), IsOk());
  EXPECT_THAT(launch(8, 9, 8, 8, 8),
              Fails(kInvalid, "kernel 'scaled' (",
                    "cannot launch: its extent k is 9 in a.shape(1) and 8 in b.shape(0) (",
                    "contract_test.cc:", "fix: pass arguments that agree in k"));
  EXPECT_THAT(launch(7, 9, 9, 8, 7),
              Fails(kInvalid, "its extent m is 7 in the argument m and 8 in c.shape(0)"));
  EXPECT_THAT(launch(8, 9, 9, 8, 9),
              Fails(kInvalid, "its extent m is 9 in the argument m and 8 in a.shape(0)"));
  EXPECT_THAT(launch(8, 9, 9, 9, 8),
              Fails(kInvalid, "cannot launch: b.shape(1) is 9, and the kernel is written for 8",
                    "fix: pass a tensor with that extent, or declare the kernel's as '?'"));
  EXPECT_THAT(launch(8, 9, 9, 8, 8), IsOk()) << "a refusal leaves nothing behind";
}

// What is declared is known: the trace has one extent of each name, and numbers.
TEST_F(ContractTest, ADeclaredNumberIsKnownWhileTracing) {
  int64_t known = 0;
  const auto sum =
      local_kernel("sum(x[?, 24], y[16])", [&](Tensor<const float, 2> x, Tensor<float, 1> y) {
        known = x.fixed_shape(1);
        y(thread_idx.x) = x(0, 0) + Float(x.shape(1)) + Float(y.shape(0));
      });
  const Buffer x = zeros(48), y = zeros(16);
  ASSERT_THAT(sum.launch(stream_, {.block = 16}, as_tensor<const float>(x, {2, 24}),
                         as_tensor<float>(y, {16})),
              IsOk());
  EXPECT_EQ(known, 24);
  EXPECT_THAT(y.download<float>(stream_).value(), Each(40.0f));
  EXPECT_THAT(sum.launch(stream_, {.block = 16}, as_tensor<const float>(x, {2, 23}),
                         as_tensor<float>(y, {16})),
              Fails(kInvalid, "x.shape(1) is 23, and the kernel is written for 24"));
  EXPECT_EQ(runtime::KernelCache::of(sum.source()).size(), 1) << "nothing is compiled for it";
  // Without arguments, too.
  const auto compiled = sum.compile(Signature{tensor({kAny, kAny}), tensor({kAny})},
                                    CompileOptions{.block = {16, 1, 1}, .stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->launch(stream_, {.block = 16}, as_tensor<const float>(x, {2, 24}),
                               as_tensor<float>(y, {16})),
              IsOk());
  EXPECT_THAT(compiled->launch(stream_, {.block = 16}, as_tensor<const float>(x, {2, 24}),
                               as_tensor<float>(y, {15})),
              Fails(kInvalid,
                    "has extent 15 in mode 0, and this variant was compiled for 16, which the "
                    "kernel's declaration says; fix: pass a tensor with that extent"));
  EXPECT_THAT(sum.compile(Signature{tensor({kAny, 23}), tensor({kAny})},
                          CompileOptions{.stage = Stage::kIr}),
              Fails(kInvalid, "x.shape(1) is 23, and the kernel is written for 24"));
}

TEST_F(ContractTest, ASignatureNamesExtents) {
  const auto add = define_kernel(
      "add(x, y, z)", [](Tensor<const float, 2> x, Tensor<const float, 2> y, Tensor<float, 1> z) {
        const Int i = thread_idx.x;
        If(i < x.shape(0) && i < y.shape(1) && i < z.shape(0), [&] { z(i) = x(i, 0) + y(0, i); });
      });
  const Signature tied = {tensor({sym("n"), 4}), tensor({kAny, sym("n")}), tensor({sym("n")})};
  const auto compiled = add.compile(tied, CompileOptions{.block = {32, 1, 1}, .stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  // One extent is left of three, beside those that the host compares.
  const std::string text = ir::print(compiled->ir());
  const auto tests = [](const std::string& of) {
    int count = 0;
    for (size_t at = 0; (at = of.find(" = lt ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(tests(text), 1) << text;
  EXPECT_EQ(tests(ir::print(compiled->trace())), 3);
  const Buffer x = zeros(32), y = zeros(32), z = zeros(8);
  const auto launch = [&](int64_t in_x, int64_t in_y, int64_t in_z) {
    return compiled->launch(stream_, {.block = 32}, as_tensor<const float>(x, {in_x, 4}),
                            as_tensor<const float>(y, {4, in_y}), as_tensor<float>(z, {in_z}));
  };
  EXPECT_THAT(launch(8, 8, 8), IsOk());
  EXPECT_THAT(launch(8, 7, 8), Fails(kInvalid, "kernel 'add' (",
                                     "its extent n is 8 in x.shape(0) and 7 in y.shape(1) (",
                                     "fix: pass arguments that agree in n"));
  EXPECT_THAT(launch(8, 8, 7), Fails(kInvalid, "n is 8 in x.shape(0) and 7 in z.shape(0)"));

  ArgumentSpec both = tensor({sym("n")});
  both.extents[0] = 8;
  EXPECT_THAT(add.compile(Signature{tensor({kAny, kAny}), tensor({kAny, kAny}), both}),
              Fails(kInvalid, "the extent of mode 0 of argument 2 ('z') of kernel 'add'",
                    "both a number and the name 'n'; fix: give it a number, or sym()"));
  EXPECT_THAT(
      add.compile(Signature{tensor({kAny, kAny}), tensor({kAny, sym("1x")}), tensor({kAny})}),
      Fails(kInvalid, "mode 1 of argument 1 ('y') of kernel 'add'", "the name '1x'; fix"));
  both = tensor({kAny});
  both.names = {"n", "m"};
  EXPECT_THAT(add.compile(Signature{tensor({kAny, kAny}), tensor({kAny, kAny}), both}),
              Fails(kInvalid, "the signature gives 2 names to the extents of argument 2 ('z')",
                    "which has 1 mode"));
}

TEST_F(ContractTest, DeclarationsOfExtentsThatCannotBe) {
  const auto told = [](const char* declaration) {
    const auto kernel = define_kernel(
        declaration, [](Tensor<float, 2> x, Float f, Int n) { x(0, 0) = f + Float(n); });
    return std::string(kernel
                           .compile(Signature{tensor({kAny, kAny}), scalar(), scalar()},
                                    CompileOptions{.stage = Stage::kIr})
                           .status()
                           .message());
  };
  EXPECT_EQ(told("k(x[ n , 4 ], f, n)"), "");
  EXPECT_EQ(told("k(x[?, rows], ...)"), "");
  EXPECT_THAT(told("k(x[n], f, n)"), HasSubstr("'x' has 2 modes, and 1 extent in its declaration"));
  EXPECT_THAT(told("k(x, f[n], n)"), HasSubstr("'f' has 0 modes, and 1 extent in its declaration"));
  EXPECT_THAT(told("k(x[n, f], f, n)"),
              HasSubstr("an extent is named 'f', and the parameter of that name is no integer"));
  EXPECT_THAT(told("k(x[n, x], f, n)"), HasSubstr("an extent is named 'x', and the parameter"));
  EXPECT_THAT(
      told("k(x[n, -1], f, n)"),
      HasSubstr("'-1' in the extents of 'x' is neither a name, nor a number from 0 up, nor '?'"));
  EXPECT_THAT(told("k(x[n, 2k], f, n)"), HasSubstr("'2k' in the extents of 'x'"));
  EXPECT_THAT(told("k(x[], f, n)"), HasSubstr("'' in the extents of 'x'"));
  EXPECT_THAT(told("k(x[n, 4, f, n)"), HasSubstr("the extents of 'x' do not end with ']'"));
  EXPECT_THAT(told("k(x]n, f, n)"), HasSubstr("a parameter's name is an identifier, and 'x]n'"));
}

// There is no kernel yet to tell it: the next one that this thread traces does.
TEST_F(ContractTest, OutsideAKernel) {
  const Buffer x = zeros(4);
  const auto launch_another = [&] {
    const auto another = define_kernel("another(x)", [](Tensor<float, 1> t) { t(0) = 1; });
    return another.launch(stream_, {.block = 1}, as_tensor<float>(x, {4}));
  };
  const auto expect_told = [&](int line) {
    EXPECT_THAT(
        launch_another(),
        Fails(kInvalid, absl::StrCat("contract_test.cc:", line, ": error: outside a kernel"),
              "fix: call it in the kernel's lambda"));
    EXPECT_THAT(launch_another(), IsOk());
  };
  require(true);
  expect_told(__LINE__ - 1);
  require(Int(1) < 2);
  expect_told(__LINE__ - 1);
  require_block(256);
  expect_told(__LINE__ - 1);
  launch_grid(1);
  expect_told(__LINE__ - 1);
  min_blocks_per_sm(1);
  expect_told(__LINE__ - 1);
}

TEST_F(ContractTest, ALaunchWithoutABlockGetsThatOfTheKernel) {
  const Buffer x = zeros(64);
  const auto of_64 = define_kernel("of_64(x)", [](Tensor<float, 1> y) {
    require_block(8, 8);
    y(thread_idx.y * 8 + thread_idx.x) = 2;
  });
  const auto of_any =
      define_kernel("of_any(x)", [](Tensor<float, 1> y) { y(thread_idx.x) = Float(block_dim.x); });
  for (int again = 0; again < 2; ++again) {
    ASSERT_THAT(of_64.launch(stream_, {.grid = 1}, as_tensor<float>(x, {64})), IsOk());
    EXPECT_THAT(x.download<float>(stream_).value(), testing::Each(2.0f));
    ASSERT_THAT(of_any.launch(stream_, {}, as_tensor<float>(x, {64})), IsOk());
    EXPECT_EQ(x.download<float>(stream_).value()[0], 1.0f) << "one thread";
    ASSERT_THAT(of_any.launch(stream_, {.block = 64}, as_tensor<float>(x, {64})), IsOk());
    EXPECT_THAT(x.download<float>(stream_).value(), testing::Each(64.0f));
  }
  EXPECT_THAT(of_64.launch(stream_, {.block = 64}, as_tensor<float>(x, {64})),
              Fails(kInvalid, "written for blocks of 8x8x1"));
}

TEST_F(ContractTest, TheBlocksOfAMultiprocessor) {
  const Buffer x = zeros(1);
  const auto launch = [&]([[maybe_unused]] auto ask) {
    const auto kernel = define_kernel("resident(x)", [](Tensor<float, 1> y) {
      decltype(ask)()();
      If(thread_idx.x == 0, [&] { y(0) = 1; });
    });
    return kernel.launch(stream_, {.grid = 1, .block = 64}, as_tensor<float>(x, {1}));
  };
  EXPECT_THAT(launch([] { min_blocks_per_sm(32); }), IsOk());
  EXPECT_THAT(launch([] { min_blocks_per_sm(33); }),
              Fails(kInvalid, "contract_test.cc:",
                    "min_blocks_per_sm(33): no multiprocessor holds so many blocks at once",
                    "fix: ask for 1 to 32"));
  EXPECT_THAT(launch([] { min_blocks_per_sm(0); }), Fails(kInvalid, "min_blocks_per_sm(0)"));
  const auto twice = [] {
    min_blocks_per_sm(2);
    min_blocks_per_sm(3);
  };
  EXPECT_THAT(launch(twice),
              Fails(kInvalid, "min_blocks_per_sm(3) behind min_blocks_per_sm(2)", "fix: ask once"));
}

// --- The block ---

const auto of_256 = define_kernel("of_256(x)", [](Tensor<float, 1> x) {
  require_block(256);
  If(thread_idx.x < x.shape(0), [&] { x(thread_idx.x) = 1; });
});

TEST_F(ContractTest, TheBlockThatAKernelNeeds) {
  const Buffer x = zeros(4);
  EXPECT_THAT(of_256.launch(stream_, {.block = 256}, as_tensor<float>(x, {4})), IsOk());
  EXPECT_THAT(of_256.launch(stream_, {.block = 128}, as_tensor<float>(x, {4})),
              Fails(kInvalid, "contract_test.cc:",
                    "this kernel is written for blocks of 256x1x1 threads, and compiled for "
                    "128x1x1",
                    "fix: launch with .block = 256"));
  // Compiled without a block it is for that one.
  const auto compiled =
      of_256.compile(Signature{tensor({kAny})}, CompileOptions{.stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->ptx(), HasSubstr(".reqntid 256, 1, 1"));
  EXPECT_THAT(compiled->launch(stream_, {.block = 64}, as_tensor<float>(x, {4})),
              Fails(kInvalid, "was compiled for a block of 256x1x1 and launched with 64x1x1"));
}

// A block is its three numbers: one that is right in x alone is another.
TEST_F(ContractTest, TheBlockInEachDirection) {
  const Buffer x = zeros(4);
  const auto launch = [&](const auto& kernel, Dim3 block) {
    return kernel.launch(stream_, {.block = block}, as_tensor<float>(x, {4}));
  };
  const auto compiled = of_256.compile(Signature{tensor({kAny})},
                                       CompileOptions{.block = {256, 1, 1}, .stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(launch(*compiled, 256), IsOk());
  for (const auto& [block, text] :
       {std::pair(Dim3(256, 2), "256x2x1"), std::pair(Dim3(256, 1, 2), "256x1x2")}) {
    EXPECT_THAT(launch(of_256, block),
                Fails(kInvalid, absl::StrCat("written for blocks of 256x1x1 threads, and compiled "
                                             "for ",
                                             text)));
    EXPECT_THAT(launch(*compiled, block),
                Fails(kInvalid, absl::StrCat("was compiled for a block of 256x1x1 and launched "
                                             "with ",
                                             text)));
  }
}

const auto tiled = define_kernel("tiled(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
  const auto copy_of_256 = make_tiled_copy(make_copy_atom<float>(CopyUniversal{32}),
                                           make_layout({8, 32}, {32, 1}), make_layout({1, 1}));
  const ThrCopy mine = copy_of_256.get_slice(thread_idx.x);
  copy(copy_of_256, mine.partition_S(local_tile(x, {8, 32}, {0, 0})),
       mine.partition_D(local_tile(y, {8, 32}, {0, 0})));
});

TEST_F(ContractTest, TheBlockThatATiledCopyNeeds) {
  const Buffer x = zeros(256), y = zeros(256);
  const auto launch = [&](const auto& kernel, int block) {
    return kernel.launch(stream_, {.block = block}, as_tensor<const float>(x, {8, 32}),
                         as_tensor<float>(y, {8, 32}));
  };
  EXPECT_THAT(launch(tiled, 256), IsOk());
  EXPECT_THAT(launch(tiled, 128),
              Fails(kInvalid, "contract_test.cc:", "a TiledCopy of 256 threads in a block of 128",
                    "fix: launch with .block = 256"));
  const auto compiled = tiled.compile(Signature{tensor({8, 32}), tensor({8, 32})},
                                      CompileOptions{.stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(launch(*compiled, 128),
              Fails(kInvalid, "cannot launch: a TiledCopy of 256 threads in a block of 128 (",
                    "; fix: launch with .block = 256"));
  EXPECT_THAT(launch(*compiled, 256), IsOk());
}

// A tiled copy counts the threads of the whole block.
TEST_F(ContractTest, TheThreadsOfATiledCopyInEachDirection) {
  const auto flat = define_kernel("flat(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
    const auto copy_of_256 = make_tiled_copy(make_copy_atom<float>(CopyUniversal{32}),
                                             make_layout({8, 32}, {32, 1}), make_layout({1, 1}));
    const Int rank = thread_idx.x + block_dim.x * (thread_idx.y + block_dim.y * Int(thread_idx.z));
    const ThrCopy mine = copy_of_256.get_slice(rank);
    copy(copy_of_256, mine.partition_S(local_tile(x, {8, 32}, {0, 0})),
         mine.partition_D(local_tile(y, {8, 32}, {0, 0})));
  });
  const auto compiled = flat.compile(Signature{tensor({8, 32}), tensor({8, 32})},
                                     CompileOptions{.stage = Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  const std::vector<float> ones(256, 1.0f);
  const Buffer x = device_.upload(absl::MakeConstSpan(ones)).value();
  for (const Dim3 block : {Dim3(16, 16), Dim3(8, 8, 4), Dim3(1, 4, 64)}) {
    const Buffer y = zeros(256);
    ASSERT_THAT(compiled->launch(stream_, {.block = block}, as_tensor<const float>(x, {8, 32}),
                                 as_tensor<float>(y, {8, 32})),
                IsOk());
    EXPECT_THAT(y.download<float>(stream_).value(), Each(1.0f));
  }
  const Buffer y = zeros(256);
  EXPECT_THAT(compiled->launch(stream_, {.block = {16, 8}}, as_tensor<const float>(x, {8, 32}),
                               as_tensor<float>(y, {8, 32})),
              Fails(kInvalid, "a TiledCopy of 256 threads in a block of 128 ("));
}

// Layouts work outside kernels too, and so does a thread's part of one.
TEST_F(ContractTest, ATiledCopyOutsideAKernel) {
  const auto copy_of_256 = make_tiled_copy(make_copy_atom<float>(CopyUniversal{32}),
                                           make_layout({8, 32}, {32, 1}), make_layout({1, 1}));
  const ThrCopy mine = copy_of_256.get_slice(33);
  const auto part = mine.partition_S(make_identity_tensor({8, 32}));
  EXPECT_TRUE(part.ok());
  EXPECT_EQ(size(part).value(), 1);
  const auto another = define_kernel("another(x)", [](Tensor<float, 1> x) { x(0) = 1; });
  const Buffer x = zeros(4);
  EXPECT_THAT(another.launch(stream_, {}, as_tensor<float>(x, {4})), IsOk());
}

// --- The grid ---

// Adds 1 to each element; how many one thread takes is the trace's choice.
const auto increment = define_kernel("increment(x)", [](Tensor<float, 1> x) {
  const int width = x.vector_width();
  launch_grid(ceil_div(x.shape(0), threads_per_block() * width));
  const Int first = (block_idx.x * block_dim.x + thread_idx.x) * width;
  for (int i = 0; i < width; ++i) {
    If(first + i < x.shape(0), [&] { x(first + i) = x(first + i) + 1; });
  }
});

TEST_F(ContractTest, TheGridFollowsFromTheVectorWidth) {
  // Aligned: 4 elements a thread. One element further on: 1.
  for (const int64_t offset : {0, 1}) {
    const int64_t count = 1000;
    const Buffer x = zeros(count + offset);
    TensorRef<float, 1> part = as_tensor<float>(x, {count + offset});
    part.data += offset;
    part.extents[0] = count;
    part.capacity_bytes -= 4 * offset;
    ASSERT_THAT(increment.launch(stream_, {.block = 32}, part), IsOk());
    std::vector<float> got = x.download<float>(stream_).value();
    got.erase(got.begin(), got.begin() + offset);
    EXPECT_THAT(got, Each(1.0f));
    EXPECT_THAT(increment.launch(stream_, {.grid = 1000 / 32 / 4 + 1, .block = 32}, part),
                offset == 0
                    ? testing::Matcher<Status>(IsOk())
                    : testing::Matcher<Status>(
                          Fails(kInvalid,
                                "the launch names a grid of 8x1x1 blocks, and the kernel's own is "
                                "32x1x1 (",
                                "; fix: leave .grid out of the launch")));
  }
}

TEST_F(ContractTest, AnEmptyGridOfTheKernelsRunsNothing) {
  EXPECT_THAT(increment.launch(stream_, {.block = 32}, TensorRef<float, 1>(nullptr, {0})), IsOk());
  const Buffer x = zeros(4);
  // One that the launch names is a mistake, as ever.
  EXPECT_THAT(of_256.launch(stream_, {.grid = 0, .block = 256}, as_tensor<float>(x, {4})),
              Fails(kInvalid, "grid.x is 0"));
}

// Only a grid of at least 2x4x3 has that block.
TEST_F(ContractTest, AGridOfThreeDirections) {
  const auto far = define_kernel("far(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    launch_grid(2, x.shape(0), 3);
    If(block_idx.x == 1 && block_idx.y == 3 && block_idx.z == 2, [&] { y(0) = 1; });
  });
  const Buffer x = zeros(4), y = zeros(1);
  EXPECT_THAT(far.launch(stream_, {}, as_tensor<const float>(x, {4}), as_tensor<float>(y, {1})),
              IsOk());
  EXPECT_THAT(y.download<float>(stream_).value(), Each(1.0f));
}

}  // namespace
}  // namespace heddle
