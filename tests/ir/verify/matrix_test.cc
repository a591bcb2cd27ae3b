// What loads and stores of matrices ask for.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/verify/support.h"

namespace heddle::ir {
namespace {

// Arrays and fragments that the ops below name; they take lines 2 to 10.
std::string with_tiles(absl::string_view body, absl::string_view header = "block(128, 1, 1)") {
  return with_body(absl::StrCat(R"(%s = shared {extents = [64]} : view<f16, shared, 1>
%b = shared {extents = [64]} : view<u8, shared, 1>
%w = shared {extents = [64]} : view<f32, shared, 1>
%d = shared {extents = [64]} : view<f64, shared, 1>
%q = shared {extents = [64]} : view<bool, shared, 1>
%t = map_shared %s, %n : view<f16, shared_cluster, 1>
%f2 = const 1.0 : frag<f16, 2>
%f8 = const 1.0 : frag<f16, 8>
%g4 = const 1 : frag<u8, 4>
)",
                                body),
                   header);
}

class MatrixMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(MatrixMistake, IsLocatedAndExplained) {
  EXPECT_EQ(mistakes_of(with_tiles(GetParam().body)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, MatrixMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"None", R"(%1 = ldmatrix %s, %n {count = 1} : frag<f16, 2>
%2 = ldmatrix %s, %n {count = 2, transpose = 1} : frag<f16, 4>
%4 = ldmatrix %s, %n {count = 4, transpose = 0} : frag<f16, 8>
%k = bounds %b, %n {width = 16} : check
%16 = ldmatrix %b, %n, %k {count = 4} : frag<u8, 16>
%5 = ldmatrix %w, %n {count = 4} : frag<f32, 4>
stmatrix %s, %f2, %n {count = 1, transpose = 1}
stmatrix %s, %f8, %n {count = 4}
stmatrix %b, %g4, %n, %k {count = 1})",
         ""},
        {"ThreeMatrices", "%m = ldmatrix %s, %n {count = 3} : frag<f16, 6>",
         "11: attribute 'count' of 'ldmatrix' is 3, but must be a power of two from 1 to 4"},
        {"EightMatrices", "stmatrix %s, %f8, %n {count = 8}",
         "11: attribute 'count' of 'stmatrix' is 8, but must be a power of two from 1 to 4"},
        {"AnotherFragment", "%m = ldmatrix %s, %n {count = 4} : frag<f16, 4>",
         "11: 'ldmatrix' with count = 4 has frag<f16, 8> in each lane, not frag<f16, 4>; a lane "
         "has 4 bytes of each matrix: make the fragment and the count agree"},
        {"AnotherElement", "stmatrix %b, %f2, %n {count = 1}",
         "11: 'stmatrix' with count = 1 has frag<u8, 4> in each lane, not frag<f16, 2>; a lane "
         "has 4 bytes of each matrix: make the fragment and the count agree"},
        {"NoFragment", "%m = ldmatrix %s, %n {count = 4} : vec<f16, 8>",
         "11: result 1 of 'ldmatrix' is vec<f16, 8>, but must be a settled fragment"},
        {"FromGlobalMemory", "%m = ldmatrix %x, %n {count = 4} : frag<f32, 4>",
         "11: 'ldmatrix' reaches the block's own shared memory alone, and %x is in global memory; "
         "copy the tile to a shared array first, or access its elements one by one"},
        {"ToAnotherBlock", "stmatrix %t, %f2, %n {count = 1}",
         "11: 'stmatrix' reaches the block's own shared memory alone, and %t is in shared_cluster "
         "memory; copy the tile to a shared array first, or access its elements one by one"},
        {"OfWideElements", "%m = ldmatrix %d, %n {count = 2} : frag<f64, 1>",
         "11: 'ldmatrix' moves elements of 1, 2 or 4 bytes that are no bools, not f64; access the "
         "elements one by one"},
        {"OfBools", "%m = ldmatrix %q, %n {count = 1} : frag<bool, 4>",
         "11: 'ldmatrix' moves elements of 1, 2 or 4 bytes that are no bools, not bool; access "
         "the elements one by one"},
        {"TransposedBytes", "stmatrix %b, %g4, %n {count = 1, transpose = 1}",
         "11: 'stmatrix' transposes elements of 2 bytes, and u8 has 1; leave 'transpose' out, and "
         "exchange elements by shuffles"},
        {"TransposedTwice", "%m = ldmatrix %s, %n {count = 1, transpose = 2} : frag<f16, 2>",
         "11: attribute 'transpose' of 'ldmatrix' is 2, but must be a number from 0 to 1"},
        {"ToReadOnlyMemory", R"(%r = subview %s, %n, %n : view<const f16, shared, 1>
stmatrix %r, %f2, %n {count = 1})",
         "12: this store of matrices goes through %r, which is read-only; declare the tensor "
         "without const, Tensor<T> instead of Tensor<const T>"},
        {"InADivergentIf", R"(%l = lane_id : i32
%o = lt %l, %n : bool
if %o {
stmatrix %s, %f2, %n {count = 1}
yield
})",
         "14: 'stmatrix' under a condition that differs between threads: all threads of a warp "
         "must reach it together; move it out, or make the condition the same for the whole warp; "
         "where only you know that the whole block agrees on it, wrap it in assume_uniform()"},
    }),
    mistake_name);

TEST(Matrix, NeedsWholeWarps) {
  constexpr char kLoad[] = "%m = ldmatrix %s, %n {count = 1} : frag<f16, 2>";
  EXPECT_EQ(mistakes_of(with_tiles(kLoad, "block(40, 1, 1)")),
            "11: 'ldmatrix' is one operation of 32 threads, but the block has 40; use a block of a "
            "multiple of 32 threads");
  EXPECT_EQ(mistakes_of(with_tiles(kLoad, "block(8, 4, 1)")), "");
  EXPECT_EQ(mistakes_of(with_tiles(kLoad, "block(?)")), "");
}

TEST(Matrix, StoresCameWithSm90) {
  const auto on = [](absl::string_view target, absl::string_view body) {
    return mistakes_of(
        absl::StrCat("kernel @k(%y: view<f16, global, 1> [?] strides [1], %n: i32) "
                     "block(32, 1, 1) target(",
                     target, R"() {
%s = shared {extents = [64]} : view<f16, shared, 1>
%m = ldmatrix %s, %n {count = 1} : frag<f16, 2>
%e = extract %m {index = 0} : f16
store %y, %e, %n
)",
                     body, "}\n"));
  };
  EXPECT_EQ(on("sm_80", ""), "");
  EXPECT_EQ(on("sm_89", "stmatrix %s, %m, %n {count = 1}\n"),
            "6: sm_89 has no 'stmatrix' for f16; sm_90 is the first that has; compile the kernel "
            "for sm_90");
  EXPECT_EQ(on("sm_120", "stmatrix %s, %m, %n {count = 1}\n"), "");
}

}  // namespace
}  // namespace heddle::ir
