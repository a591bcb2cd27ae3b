// heddle run gemm: element types, layouts, epilogues, alpha and beta, by value and by message.
#include <cmath>
#include <cstring>

#include "absl/strings/str_join.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using ir::Scalar;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kRows = 24, kColumns = 40, kDepth = 32;

// Small numbers, of which every product and sum is exact in any type.
double a_at(int64_t m, int64_t k) { return static_cast<double>((m * 3 + k * 5) % 7 - 3); }
double b_at(int64_t n, int64_t k) { return static_cast<double>((n * 2 + k * 7) % 5 - 2); }
double c_at(int64_t m, int64_t n) { return static_cast<double>((m + n * 3) % 9 - 4); }
double bias_at(int64_t n) { return static_cast<double>(n % 6) - 2.5; }

double sum_at(int64_t m, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < kDepth; ++k) sum += a_at(m, k) * b_at(n, k);
  return sum;
}

class RunGemmTest : public ::testing::Test {
 protected:
  // heddle run gemm --device interp …
  Outcome run(const Arguments& more) {
    Arguments arguments = {"run", "gemm", "--device", "interp"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return heddle_command(arguments);
  }
  // And a and b of a type and a layout, with the result as d.npy.
  Outcome multiply(Scalar dtype, const std::string& layout, const Arguments& more) {
    write_operands(dtype, layout);
    Arguments arguments = {"--in",  in("a"), "--in",   in("b"), "--set", "layout=" + layout,
                           "--out", in("d"), "--check"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  void write_operands(Scalar dtype, const std::string& layout) {
    const bool turned_a = layout[0] == 'n', turned_b = layout[1] == 't';
    const auto file = [&](const char* name, bool turned, int64_t rows,
                          double (*at)(int64_t, int64_t)) {
      make_npy(dir_.file(name), dtype,
               turned ? std::vector<int64_t>{kDepth, rows} : std::vector<int64_t>{rows, kDepth},
               [&](size_t i) {
                 const auto place = static_cast<int64_t>(i);
                 return turned ? at(place % rows, place / rows)
                               : at(place / kDepth, place % kDepth);
               });
    };
    file("a.npy", turned_a, kRows, a_at);
    file("b.npy", turned_b, kColumns, b_at);
  }
  // A matrix of d's extents, and the bias.
  void write_addends(Scalar dtype) {
    make_npy(dir_.file("c.npy"), dtype, {kRows, kColumns}, [](size_t i) {
      return c_at(static_cast<int64_t>(i) / kColumns, static_cast<int64_t>(i) % kColumns);
    });
    make_npy(dir_.file("bias.npy"), Scalar::kF32, {kColumns},
             [](size_t i) { return bias_at(static_cast<int64_t>(i)); });
  }
  // d.npy, which has these elements up to the rounding of its type.
  template <class Wanted>
  void expect_result(const Wanted& wanted, double rounding) {
    const std::vector<double> d = read_doubles(dir_.file("d.npy"));
    ASSERT_EQ(d.size(), static_cast<size_t>(kRows * kColumns));
    for (int64_t m = 0; m < kRows; ++m) {
      for (int64_t n = 0; n < kColumns; ++n) {
        const double exact = wanted(m, n);
        ASSERT_NEAR(d[static_cast<size_t>(m * kColumns + n)], exact,
                    rounding * (1 + std::abs(exact)))
            << m << " " << n;
      }
    }
  }
  std::string in(const std::string& name) {
    return absl::StrCat(name, "=", dir_.file(name + ".npy"));
  }
  std::string in(const std::string& name, const std::string& file) {
    return absl::StrCat(name, "=", dir_.file(file));
  }

  TempDir dir_;
};

TEST_F(RunGemmTest, MultipliesEveryLayout) {
  for (const char* const layout : {"tn", "tt", "nn", "nt"}) {
    SCOPED_TRACE(layout);
    const Outcome done = multiply(Scalar::kF16, layout, {});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("\nd: all 960 elements right, max error 0\n"));
    EXPECT_THAT(done.out, HasSubstr("d              f16[24, 40] to "));
    expect_result(sum_at, 0);
  }
}

TEST_F(RunGemmTest, MultipliesEveryType) {
  struct Case {
    const char *dtype, *out, *d;
  };
  for (const Case& c : {Case{"f16", "", "f16"},
                        {"f16", "f32", "f32"},
                        {"bf16", "", "bf16"},
                        {"bf16", "f32", "f32"},
                        {"tf32", "", "f32"},
                        {"e4m3", "", "bf16"},
                        {"e4m3", "f16", "f16"},
                        {"e4m3", "f32", "f32"}}) {
    SCOPED_TRACE(absl::StrCat(c.dtype, " ", c.out));
    Arguments settings = {"--set", absl::StrCat("dtype=", c.dtype)};
    if (*c.out != '\0') settings.insert(settings.end(), {"--set", absl::StrCat("out=", c.out)});
    const Outcome done = multiply(*c.dtype == 'f' ? Scalar::kF16 : Scalar::kF32, "tn", settings);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr(absl::StrCat("\nd              ", c.d, "[24, 40] to ")));
    EXPECT_THAT(done.out, HasSubstr("\nd: all 960 elements right, max error 0\n"));
    expect_result(sum_at, 0);
  }
}

// What Heddle writes of such a type it reads.
TEST_F(RunGemmTest, TakesTheBitsOfTypesThatNumPyLacks) {
  for (const auto& [name, dtype] : {std::pair("bf16", Scalar::kBF16), {"e4m3", Scalar::kE4M3}}) {
    const Outcome done = multiply(dtype, "tn", {"--set", absl::StrCat("dtype=", name)});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, StartsWith(absl::StrCat("a              ", name, "[24, 32] from ",
                                                  dir_.file("a.npy"), "\n")));
    expect_result(sum_at, 0);
  }
}

TEST_F(RunGemmTest, ScalesAndAdds) {
  write_addends(Scalar::kF16);
  Outcome done = multiply(Scalar::kF16, "tn", {"--set", "alpha=0.5"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  expect_result([](int64_t m, int64_t n) { return 0.5 * sum_at(m, n); }, 0);
  done = multiply(Scalar::kF16, "nt", {"--in", in("c"), "--set", "alpha=2", "--set", "beta=-0.5"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\nd: all 960 elements right, max error 0\n"));
  expect_result([](int64_t m, int64_t n) { return 2 * sum_at(m, n) - 0.5 * c_at(m, n); }, 0);
}

double relu(double x) { return std::max(x, 0.0); }
double gelu(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double same(double x) { return x; }

TEST_F(RunGemmTest, PassesResultsThroughEveryEpilogue) {
  write_addends(Scalar::kF32);
  struct Function {
    const char* name;
    double (*of)(double);
  };
  constexpr double kScale = 0x1p-4;  // so that activations are curved here
  for (const Function& f : {Function{"", same}, {"relu", relu}, {"gelu", gelu}, {"silu", silu}}) {
    for (const bool bias : {false, true}) {
      for (const bool residual : {false, true}) {
        std::vector<absl::string_view> words;
        if (bias) words.push_back("bias");
        if (*f.name != '\0') words.push_back(f.name);
        if (residual) words.push_back("residual");
        // A residual behind an activation goes with a bias.
        if (words.empty() || (residual && !bias && *f.name != '\0')) continue;
        const std::string name = absl::StrJoin(words, "_");
        SCOPED_TRACE(name);
        Arguments more = {"--set", "out=f32", "--set", "epilogue=" + name, "--set", "alpha=0.0625"};
        if (bias) more.insert(more.end(), {"--in", in("bias")});
        if (residual) more.insert(more.end(), {"--in", in("residual", "c.npy")});
        const Outcome done = multiply(Scalar::kF16, "tn", more);
        EXPECT_EQ(done.exit_code, 0) << done.err;
        expect_result(
            [&](int64_t m, int64_t n) {
              return f.of(kScale * sum_at(m, n) + (bias ? bias_at(n) : 0)) +
                     (residual ? c_at(m, n) : 0);
            },
            0x1p-20);
      }
    }
  }
}

// With everything at once c is added in front of the function, and the residual behind it.
TEST_F(RunGemmTest, AddsBeforeTheEpilogue) {
  write_addends(Scalar::kBF16);
  const Outcome done =
      multiply(Scalar::kBF16, "nn",
               {"--set", "dtype=bf16", "--set", "epilogue=bias_relu_residual", "--in", in("bias"),
                "--in", in("residual", "c.npy"), "--in", in("c"), "--set", "beta=2"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  expect_result(
      [](int64_t m, int64_t n) {
        return relu(sum_at(m, n) + 2 * c_at(m, n) + bias_at(n)) + c_at(m, n);
      },
      0x1p-8);
}

TEST_F(RunGemmTest, RefusesTypesThatDoNotGoTogether) {
  write_operands(Scalar::kF16, "tn");
  const Arguments files = {"--in", in("a"), "--in", in("b")};
  const auto refused = [&](const Arguments& settings, const std::string& message) {
    Arguments arguments = files;
    for (const std::string& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    expect_misused(run(arguments), message);
  };
  refused({"dtype=f64"},
          "setting 'dtype' of kernel 'gemm' cannot be 'f64': it is one of f16, bf16, tf32, e4m3");
  refused({"dtype=tf32", "out=f16"},
          "kernel 'gemm' does not exist for dtype=tf32 with out=f16; fix: --set dtype=f16|e4m3, or "
          "out=f32");
  for (const std::string dtype : {"tf32", "e4m3"}) {
    for (const std::string layout : {"tt", "nn", "nt"}) {
      refused(
          {"dtype=" + dtype, "layout=" + layout},
          absl::StrCat("kernel 'gemm' does not exist for dtype=", dtype, " with layout=", layout,
                       ": the tensor cores read operands that are contiguous along another mode "
                       "than k for elements of 16 bits alone; fix: --set layout=tn and store a "
                       "as [m, k] and b as [n, k], or set dtype=f16 or bf16"));
    }
  }
  refused({"layout=row"},
          "setting 'layout' of kernel 'gemm' cannot be 'row': it is one of tn, tt, nn, nt");
  refused({"out=bf16"},
          "'a' is f16[24, 32], and kernel 'gemm' takes bf16; fix: --set dtype=f16, or convert it");
}

TEST_F(RunGemmTest, RefusesWhatDoesNotFit) {
  write_operands(Scalar::kF16, "tn");
  write_addends(Scalar::kF16);
  const auto refused = [&](const Arguments& more, const std::string& message) {
    Arguments arguments = {"--in", in("a"), "--in", in("b")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_misused(run(arguments), message);
  };
  refused({"--set", "layout=nt"},
          "'b' has extent 40 in mode 0, and kernel 'gemm' takes 24 there, k of 'a'; 'b' is [k, n] "
          "if layout=tt|nt, else [n, k]; 'a' is [k, m] if layout=nn|nt, else [m, k]; fix: pass "
          "tensors that agree in k");
  refused({"--in", in("c")},
          "kernel 'gemm' has a 'c' only if beta!=0; fix: --set beta=..., or leave 'c' out");
  refused({"--in", in("c"), "--set", "beta=0.0"},
          "kernel 'gemm' has a 'c' only if beta!=0; fix: --set beta=..., or leave 'c' out");
  refused({"--set", "beta=1"}, "kernel 'gemm' needs the input 'c' if beta!=0; fix: --in c=FILE");
  refused({"--set", "beta=1", "--in", in("c", "b.npy")},
          "'c' has extent 40 in mode 0, and kernel 'gemm' takes 24 there, m of 'a'; 'a' is [k, m] "
          "if layout=nn|nt, else [m, k]; fix: pass tensors that agree in m");
  refused({"--set", "beta=one"},
          "setting 'beta' of kernel 'gemm' cannot be 'one': it is a number of type f32");
  refused({"--set", "epilogue=residual", "--in", in("residual", "c.npy"), "--in", in("bias")},
          "kernel 'gemm' has a 'bias' only if epilogue=bias|bias_relu|bias_gelu|bias_silu|"
          "bias_residual|bias_relu_residual|bias_gelu_residual|bias_silu_residual; fix: --set "
          "epilogue=..., or leave 'bias' out");
  refused({"--set", "epilogue=bias_gelu"},
          "kernel 'gemm' needs the input 'bias' if epilogue=bias|bias_relu|bias_gelu|bias_silu|"
          "bias_residual|bias_relu_residual|bias_gelu_residual|bias_silu_residual; fix: --in "
          "bias=FILE");
  refused({"--set", "epilogue=bias", "--in", in("bias", "c.npy")},
          "'bias' is f16[24, 40], and kernel 'gemm' takes f32; fix: convert it");
  refused({"--out", in("c", "d.npy")}, "kernel 'gemm' has no output 'c'; it writes d");
}

// Whose lines are no multiples of 16 bytes.
TEST_F(RunGemmTest, MultipliesOddExtents) {
  const auto write = [&](const char* name, std::vector<int64_t> extents) {
    make_npy(dir_.file(name), Scalar::kF32, std::move(extents),
             [](size_t i) { return std::sin(static_cast<double>(i)); });
  };
  write("a.npy", {21, 13});
  write("b.npy", {35, 13});
  write("at.npy", {13, 21});
  write("bt.npy", {13, 35});
  for (const char* const dtype : {"bf16", "tf32", "e4m3"}) {
    const Outcome done =
        run({"--in", in("a"), "--in", in("b"), "--set", absl::StrCat("dtype=", dtype), "--check"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("\nd: all 735 elements right"));
  }
  const Outcome done = run({"--in", in("a", "at.npy"), "--in", in("b", "bt.npy"), "--set",
                            "layout=nt", "--set", "dtype=bf16", "--check"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\nd: all 735 elements right"));
}

TEST_F(RunGemmTest, RefusesProductsWithoutADepth) {
  make_npy(dir_.file("a.npy"), Scalar::kF16, {24, 0}, [](size_t) { return 0; });
  make_npy(dir_.file("b.npy"), Scalar::kF16, {40, 0}, [](size_t) { return 0; });
  expect_one_line(run({"--in", in("a"), "--in", in("b")}), 1,
                  "gemm: a is 24 x 0, b 40 x 0 and d 24 x 40; a takes m x k, b n x k and d m x n, "
                  "with k above 0");
}

}  // namespace
}  // namespace heddle::tools
