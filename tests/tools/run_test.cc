// heddle run.
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using codegen::write_file;
using ir::Scalar;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class RunTest : public ::testing::Test {
 protected:
  // heddle run KERNEL --device interp …
  Outcome run(const std::string& kernel, const Arguments& more) {
    Arguments arguments = {"run", kernel, "--device", "interp"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return heddle_command(arguments);
  }
  Outcome run_faulty(const std::string& kernel, const Arguments& more) {
    make_npy(dir_.file("v.npy"), Scalar::kF32, {40}, [](size_t i) { return 0.5 * i; });
    Arguments arguments = {"--plugin", HEDDLE_FAULTY_PLUGIN, "--in", "x=" + dir_.file("v.npy")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(kernel, arguments);
  }
  std::string in(const std::string& name, const std::string& file) {
    return absl::StrCat(name, "=", dir_.file(file));
  }

  TempDir dir_;
};

TEST_F(RunTest, SumsRowsAndChecksThem) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {37, 301}, [](size_t i) { return std::sin(i); });
  const Outcome done = run(
      "row_sum", {"--in", in("x", "x.npy"), "--out", in("y", "y.npy"), "--check", "--repeat", "3"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  for (const char* stage : {"upload", "trace", "passes", "launch", "download"}) {
    EXPECT_THAT(done.out, ::testing::ContainsRegex(absl::StrCat("\n", stage, " +[0-9.]+ us\n")));
  }
  EXPECT_THAT(done.out, HasSubstr(absl::StrCat("x              f32[37, 301] from ",
                                               dir_.file("x.npy"), "\n")));
  EXPECT_THAT(done.out,
              HasSubstr(absl::StrCat("y              f32[37] to ", dir_.file("y.npy"), "\n")));
  EXPECT_THAT(done.out, ::testing::ContainsRegex(
                            "\n3 launches: median [0-9.]+ us \\([0-9.]+ GB/s of inputs and "
                            "outputs\\), least [0-9.]+ us \\([0-9.]+ GB/s\\)\n"));
  EXPECT_THAT(done.out, HasSubstr("\ny: all 37 elements right, max error "));

  const std::vector<double> sums = read_doubles(dir_.file("y.npy"));
  ASSERT_EQ(sums.size(), 37u);
  for (size_t row = 0; row < sums.size(); ++row) {
    double sum = 0;
    for (size_t i = 301 * row; i < 301 * (row + 1); ++i) sum += std::sin(i);
    EXPECT_NEAR(sums[row], sum, 1e-4) << row;
  }
}

TEST_F(RunTest, TakesTheOtherTypes) {
  for (const auto& [name, dtype] : {std::pair("f16", Scalar::kF16), {"bf16", Scalar::kBF16}}) {
    make_npy(dir_.file("x.npy"), dtype, {5, 64}, [](size_t i) { return 0.25 * (i % 7); });
    const Outcome done = run(
        "row_sum", {"--in", in("x", "x.npy"), "--set", absl::StrCat("dtype=", name), "--check"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr(absl::StrCat(name, "[5, 64]")));
  }
}

// NumPy has no bf16.
TEST_F(RunTest, RoundsFilesToTypesThatNumPyLacks) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {1, 2},
           [](size_t i) { return i == 0 ? 1 : 0x1.01p0; });
  const Outcome done = run("row_sum", {"--in", in("x", "x.npy"), "--out", in("y", "y.npy"), "--set",
                                       "dtype=bf16", "--check"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, StartsWith(absl::StrCat("x              bf16[1, 2] from ",
                                                dir_.file("x.npy"), ", rounded from f32\n")));
  EXPECT_THAT(read_doubles(dir_.file("y.npy")), ElementsAre(2));  // the tie goes to the even one
  make_npy(dir_.file("x.npy"), Scalar::kF32, {1, 3},
           [](size_t i) { return i == 0 ? 1 : -0x1.ffp127; });
  EXPECT_THAT(run("row_sum", {"--in", in("x", "x.npy"), "--set", "dtype=bf16"}).out,
              HasSubstr(", rounded from f32, 2 elements beyond its range\n"));
}

TEST_F(RunTest, TakesEmptyMatrices) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {0, 64}, [](size_t) { return 0; });
  Outcome done = run("row_sum", {"--in", in("x", "x.npy"), "--out", in("y", "y.npy"), "--check"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(read_doubles(dir_.file("y.npy")).empty());

  make_npy(dir_.file("x.npy"), Scalar::kF32, {3, 0}, [](size_t) { return 0; });
  done = run("row_sum", {"--in", in("x", "x.npy"), "--out", in("y", "y.npy"), "--check"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(read_doubles(dir_.file("y.npy")), ElementsAre(0, 0, 0));
}

TEST_F(RunTest, WritesInPlace) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {300}, [](size_t i) { return i; });
  make_npy(dir_.file("y.npy"), Scalar::kF32, {300}, [](size_t) { return 1; });
  const Outcome done = run(
      "saxpy", {"--plugin", HEDDLE_SAXPY_PLUGIN, "--in", in("x", "x.npy"), "--in", in("y", "y.npy"),
                "--out", in("y", "y.npy"), "--set", "a=3", "--check", "--repeat", "2"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::vector<double> y = read_doubles(dir_.file("y.npy"));
  ASSERT_EQ(y.size(), 300u);
  // Of the first launch alone.
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[299], 3 * 299 + 1);
}

TEST_F(RunTest, AWrongResultIsAFailure) {
  const Outcome done = run_faulty("wrong_result", {"--check"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(done.err, "heddle: kernel 'wrong_result' computed a wrong result\n");
  EXPECT_THAT(done.out, HasSubstr("y: 38 of 40 elements wrong, max error 1 at y[2]; the first is "
                                  "y[2] = 1, which should be 2 ± 0.25\n"));
  EXPECT_EQ(run_faulty("wrong_result", {}).exit_code, 0);
}

TEST_F(RunTest, AFaultyKernelIsAFailureWithItsLine) {
  const Outcome outside = run_faulty("out_of_bounds", {});
  EXPECT_EQ(outside.exit_code, 1);
  EXPECT_THAT(outside.err, AllOf(StartsWith("heddle: "), HasSubstr("faulty.cc:")));
  const Outcome mistaken = run_faulty("mistaken", {});
  EXPECT_EQ(mistaken.exit_code, 1);
  EXPECT_THAT(mistaken.err, AllOf(StartsWith("heddle: "), HasSubstr("faulty.cc:")));
}

TEST_F(RunTest, AFaultyReferenceIsAFailure) {
  expect_one_line(run_faulty("short_reference", {"--check"}), 1,
                  "the reference of kernel 'short_reference' has 1 element for 'y', which has 40");
  expect_one_line(run_faulty("other_reference", {"--check"}), 1,
                  "the reference of kernel 'other_reference' speaks of 'z' in a way that does not "
                  "fit its outputs");
  expect_one_line(run_faulty("throwing_reference", {"--check"}), 1, "the reference threw");
}

TEST_F(RunTest, AMissingGpuIsAFailureThatSaysWhatWorks) {
  const Outcome done = heddle_command({"run", "row_sum", "--device", "cuda:0"},
                                      {"HEDDLE_CUDA_LIBRARY=/no/libcuda.so"});
  expect_one_line(done, 1,
                  AllOf(HasSubstr("the interpreter still works: --device interp"),
                        Not(HasSubstr("Device::open"))));
}

TEST_F(RunTest, AnswersMisuseWithOneLine) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {4, 4}, [](size_t i) { return i; });
  make_npy(dir_.file("v.npy"), Scalar::kF32, {4}, [](size_t i) { return i; });
  make_npy(dir_.file("d.npy"), Scalar::kF64, {4, 4}, [](size_t i) { return i; });
  StatusOr<HostArray> integers = HostArray::allocate({Scalar::kI32, {4, 4}});
  ASSERT_TRUE(integers.ok()) << integers.status();
  std::memset(integers->data.get(), 0, integers->byte_count);
  ASSERT_TRUE(write_npy(dir_.file("i.npy"), *integers).ok());
  const std::string x = in("x", "x.npy");
  const std::string whole = slurp(dir_.file("x.npy"));
  write_file(dir_.file("cut.npy"), whole.substr(0, whole.size() - 1));
  write_file(dir_.file("text.npy"), "hello");

  expect_misused(run("row_sun", {}),
                 "unknown kernel 'row_sun'; did you mean 'row_sum'? ('heddle list' shows all)");
  expect_misused(run("zzz", {}), "unknown kernel 'zzz' ('heddle list' shows all)");
  expect_misused(run("row_sum", {"--chek"}),
                 "run: unexpected argument '--chek'; did you mean '--check'? ('heddle run --help' "
                 "shows all)");
  expect_misused(run("row_sum", {"--in", "x"}), "--in wants NAME=FILE, not 'x'");
  expect_misused(run("row_sum", {"--in", "=x.npy"}), "--in wants NAME=FILE, not '=x.npy'");
  expect_misused(run("row_sum", {"--in", "x="}), "--in wants NAME=FILE, not 'x='");
  expect_misused(run("row_sum", {"--in", x, "--out", "y="}), "--out wants NAME=FILE, not 'y='");
  expect_misused(run("row_sum", {"--in", ""}), "--in: is empty; it takes NAME=FILE");
  expect_misused(run("row_sum", {"--in", x, "--in", x}), "--in gives 'x' twice");
  expect_misused(run("row_sum", {"--in", x, "--out", "y"}), "--out wants NAME=FILE, not 'y'");
  expect_misused(run("row_sum", {"--in", x, "--set", "dtype"}),
                 "--set wants NAME=VALUE, not 'dtype'");
  expect_misused(run("row_sum", {"--in", x, "--set", "dtpye=f32"}),
                 "kernel 'row_sum' has no setting 'dtpye'; it has dtype");
  expect_misused(run("row_sum", {"--in", x, "--set", "dtype=f8"}),
                 "setting 'dtype' of kernel 'row_sum' cannot be 'f8': it is one of f32, f16, bf16");
  for (const char* number : {"-1", "many", "1.5", "1000001", "99999999999999999999"}) {
    expect_misused(run("row_sum", {"--in", x, "--repeat", number}),
                   absl::StrCat("--repeat: '", number, "' is no whole number from 0 to 1000000"));
  }
  expect_misused(run("row_sum", {}), "kernel 'row_sum' needs the input 'x'; fix: --in x=FILE");
  expect_misused(run("row_sum", {"--in", in("x", "v.npy")}),
                 "'x' is f32[4], and kernel 'row_sum' takes a tensor of 2 modes, not of 1; fix: "
                 "reshape it");
  for (const char* other : {"d.npy", "i.npy"}) {
    expect_misused(run("row_sum", {"--in", in("x", other)}),
                   absl::StrCat("'x' is ", other[0] == 'd' ? "f64" : "i32",
                                "[4, 4], and kernel 'row_sum' takes f32, f16, bf16; fix: convert "
                                "it"));
  }
  expect_misused(run("row_sum", {"--in", x, "--set", "dtype=f16"}),
                 "'x' is f32[4, 4], and kernel 'row_sum' takes f16; fix: --set dtype=f32, or "
                 "convert it");
  expect_misused(run("row_sum", {"--in", in("z", "x.npy")}),
                 "kernel 'row_sum' has no parameter 'z'; it has x, y");
  expect_misused(run("row_sum", {"--in", x, "--in", in("z", "v.npy")}),
                 "kernel 'row_sum' has no parameter 'z'; it has x, y");
  expect_misused(run("row_sum", {"--in", x, "--in", in("y", "v.npy")}),
                 "'y' is an output of kernel 'row_sum', not an input");
  expect_misused(run("row_sum", {"--in", x, "--out", in("x", "o.npy")}),
                 "kernel 'row_sum' has no output 'x'; it writes y");
  expect_misused(run("row_sum", {"--in", in("x", "none.npy")}),
                 dir_.file("none.npy: cannot be opened: No such file or directory"));
  expect_misused(run("row_sum", {"--in", in("x", "cut.npy")}),
                 dir_.file("cut.npy: has 63 bytes of data, and its shape (4, 4) of f32 takes 64"));
  expect_misused(run("row_sum", {"--in", in("x", "text.npy")}),
                 dir_.file("text.npy: is no .npy file"));
  expect_misused(run("row_sum", {"--in", absl::StrCat("x=", dir_.path())}),
                 absl::StrCat(dir_.path(), ": is a folder, not a .npy file"));
  expect_misused(run("row_sum", {"--in", x, "--out", in("y", "no/y.npy")}),
                 dir_.file("no/y.npy: cannot be written: No such file or directory"));
  expect_misused(run("row_sum", {"--in", x, "--out", absl::StrCat("y=", dir_.path())}),
                 absl::StrCat(dir_.path(), ": cannot be written: Is a directory"));
  expect_misused(heddle_command({"run", "row_sum", "--device", ""}),
                 "--device: is empty; it takes interp|cuda:N");
  expect_misused(heddle_command({"run", "row_sum", "--device", "tpu"}),
                 StartsWith("'tpu' names no device"));
}

// Nothing has run, let alone been lost, when an output has nowhere to go.
TEST_F(RunTest, LooksWhereOutputsGoBeforeItRuns) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {4, 4}, [](size_t i) { return i; });
  const std::string x = in("x", "x.npy");
  EXPECT_THAT(run("row_sum", {"--in", x, "--out", in("y", "no/y.npy")}).out,
              Not(HasSubstr("launch")));
  // Looking leaves what is there as it is.
  write_file(dir_.file("y.npy"), "before");
  EXPECT_EQ(
      run("row_sum", {"--in", x, "--out", in("y", "y.npy"), "--out", in("z", "z.npy")}).exit_code,
      2);
  EXPECT_EQ(slurp(dir_.file("y.npy")), "before");
  EXPECT_EQ(run("row_sum", {"--in", x, "--out", in("y", "y.npy"), "--repeat", "010"}).exit_code, 0);
  EXPECT_NE(slurp(dir_.file("y.npy")), "before");
}

TEST_F(RunTest, SaysWhatAKernelLacks) {
  expect_misused(run_faulty("no_function", {}),
                 "kernel 'no_function' is registered wrongly: it has no function");
  expect_misused(run_faulty("out_of_bounds", {"--check"}),
                 "kernel 'out_of_bounds' has no reference to check against");
  expect_misused(run_faulty("short_declaration", {}),
                 "kernel 'short_declaration' is registered wrongly: it declares 1 argument for a "
                 "function that takes 2");
}

// Two launches, and memory between them.
TEST_F(RunTest, CallsTheVeryFunctionThatAUserCalls) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {1003}, [](size_t i) { return 3 + std::sin(i); });
  const Outcome done = run("center", {"--plugin", HEDDLE_CENTER_PLUGIN, "--in", in("x", "x.npy"),
                                      "--out", in("y", "y.npy"), "--check", "--repeat", "3"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\ny: all 1003 elements right, max error "));
  EXPECT_THAT(done.out, HasSubstr("\n3 calls: median "));
  double sum = 0;
  for (const double y : read_doubles(dir_.file("y.npy"))) sum += y;
  EXPECT_NEAR(sum, 0, 1e-3);
  make_npy(dir_.file("x.npy"), Scalar::kF32, {0}, [](size_t) { return 0; });
  EXPECT_EQ(run("center", {"--plugin", HEDDLE_CENTER_PLUGIN, "--in", in("x", "x.npy")}).exit_code,
            0);
}

// Such an operation compiles as it runs.
TEST_F(RunTest, AnOperationMayLookAtItsResults) {
  const Outcome done = run_faulty("looks", {"--out", in("y", "y.npy")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(read_doubles(dir_.file("y.npy"))[39], 19.5);
}

TEST_F(RunTest, OtherFailuresAreNotTakenForThat) {
  expect_one_line(run_faulty("gives_up", {}), 1, "the library is not licensed here");
}

TEST_F(RunTest, ShapesFitEachOther) {
  make_npy(dir_.file("x.npy"), Scalar::kF32, {300}, [](size_t i) { return i; });
  make_npy(dir_.file("y.npy"), Scalar::kF32, {299}, [](size_t) { return 1; });
  const Arguments saxpy = {"--plugin", HEDDLE_SAXPY_PLUGIN, "--in", in("x", "x.npy"),
                           "--in",     in("y", "y.npy")};
  expect_misused(run("saxpy", saxpy),
                 "'y' has extent 299 in mode 0, and kernel 'saxpy' takes 300 there, n of 'x'; fix: "
                 "pass tensors that agree in n");
  Arguments sized = saxpy;
  sized.insert(sized.end(), {"--size", "n=301"});
  expect_misused(run("saxpy", sized),
                 "'x' has extent 300 in mode 0, and kernel 'saxpy' takes 301 there, n; fix: pass a "
                 "tensor and a size that agree in n");
  sized.back() = "m=3";
  expect_misused(run("saxpy", sized), "kernel 'saxpy' has no dimension 'm'; it has n");
  sized.back() = "n=-3";
  expect_misused(run("saxpy", sized), "--size: '-3' is no size; it takes a whole number from 0 up");
  Arguments worded = saxpy;
  worded.insert(worded.end(), {"--set", "a=many"});
  worded[5] = in("y", "x.npy");
  expect_misused(run("saxpy", worded),
                 "setting 'a' of kernel 'saxpy' cannot be 'many': it is a number of type f32");
  expect_misused(run("saxpy", {"--plugin", HEDDLE_SAXPY_PLUGIN, "--in", in("a", "x.npy")}),
                 "'a' is a number of kernel 'saxpy', not an input; fix: --set a=...");
}

// Outputs without an input that tells their extents.
TEST_F(RunTest, SizesComeFromTheCommandLineToo) {
  const Outcome done = run("mandelbrot", {"--size", "height=3", "--size", "width=5", "--set",
                                          "step=0.5", "--out", in("image", "i.npy"), "--check"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\nimage: all 15 elements right, max error 0\n"));
  EXPECT_THAT(done.out, HasSubstr("i32[3, 5] to "));
}

// The programs of kernels/learn, on their own examples as far as those have no inputs.
TEST_F(RunTest, SortsInPlace) {
  StatusOr<HostArray> array = HostArray::allocate({Scalar::kU32, {2048}});
  ASSERT_TRUE(array.ok());
  for (uint32_t i = 0; i < 2048; ++i) {
    const uint32_t key = i * 1103515245u % 2048;
    std::memcpy(array->data.get() + 4 * i, &key, 4);
  }
  ASSERT_TRUE(write_npy(dir_.file("k.npy"), *array).ok());
  const Outcome done =
      run("bitonic_sort", {"--in", in("keys", "k.npy"), "--out", in("keys", "k.npy")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::vector<double> sorted = read_doubles(dir_.file("k.npy"));
  for (size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i);
}

}  // namespace
}  // namespace heddle::tools
