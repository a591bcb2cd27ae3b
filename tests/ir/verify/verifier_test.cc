#include "heddle/ir/verify/verifier.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "ir/text/text_samples.h"
#include "ir/verify/support.h"

namespace heddle::ir {
namespace {

using ::testing::HasSubstr;

class StructureMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(StructureMistake, IsLocatedAndExplained) {
  EXPECT_EQ(mistakes_of(with_body(GetParam().body)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Structure, StructureMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"IfYieldsTheWrongType", R"(%a = if %p : f32 {
yield %n
} else {
yield %f
})",
         "3: result 1 of 'if' is f32, but the first region of 'if' yields %n, which is i32; "
         "convert one of them, so that the types agree"},
        {"IfYieldsTooFew", R"(%a = if %p : f32 {
yield %f
} else {
yield
})",
         "5: 'if' has 1 result, but the second region of 'if' yields 0 values; give one for each "
         "result"},
        {"ForYieldsTheWrongType", R"(%a = for %i in %n .. %n step %n carry(%b = %f) : f32 {
yield %i
})",
         "3: result 1 of 'for' is f32, but the region of 'for' yields %i, which is i32; convert "
         "one of them, so that the types agree"},
        {"ForStartsFromTheWrongType", R"(%a = for %i in %n .. %n step %n carry(%b = %n) : f32 {
yield %b
})",
         "2: result 1 of 'for' is f32, but it starts from %n, which is i32; convert one of them, "
         "so that the types agree"},
        {"ForBoundsDiffer", R"(%big = convert %n : i64
for %i in %n .. %big step %n {
yield
})",
         "3: the loop's variable is i32, but its stop is i64; convert the bounds and the step to "
         "one type"},
        {"ForStepIsZero", R"(%zero = const 0 : i32
for %i in %n .. %n step %zero {
yield
})",
         "3: the loop's step is 0, so the loop would not end; use a step that is not zero"},
        {"ForOverFloats", R"(for %i in %f .. %f step %f {
yield
})",
         "2: operand 1 of 'for' is f32, but must be i32 or i64\n"
         "2: operand 2 of 'for' is f32, but must be i32 or i64\n"
         "2: operand 3 of 'for' is f32, but must be i32 or i64"},
        {"WhileConditionIsNoBool", R"(while {
yield %n
} do {
yield
})",
         "3: the first region of 'while' yields one bool: whether to go on; yield the condition "
         "alone; the body yields the carried values"},
        {"WhileConditionYieldsTwo", R"(%a = while carry(%b = %n) : i32 {
yield %p, %b
} do(%d) {
yield %d
})",
         "3: the first region of 'while' yields one bool: whether to go on; yield the condition "
         "alone; the body yields the carried values"},
        {"WhileYieldsTheWrongType", R"(%a = while carry(%b = %n) : i32 {
yield %p
} do(%d) {
yield %f
})",
         "5: result 1 of 'while' is i32, but the second region of 'while' yields %f, which is f32; "
         "convert one of them, so that the types agree"},
    }),
    mistake_name);

// --- Kernels, targets and stages ---

class VerifierKernelMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(VerifierKernelMistake, IsExplained) {
  EXPECT_EQ(mistakes_of(absl::string_view(GetParam().body)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Kernel, VerifierKernelMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"BlockTooLarge",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) block(64, 32, 1) {
store %x, %f, %n
})",
         "1: a block of 64 x 32 x 1 threads cannot be launched: it has 1 to 1024 threads, and at "
         "most 64 in z; use a smaller block and more of them"},
        {"BlockTooDeep",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) block(1, 1, 65) {
store %x, %f, %n
})",
         "1: a block of 1 x 1 x 65 threads cannot be launched: it has 1 to 1024 threads, and at "
         "most 64 in z; use a smaller block and more of them"},
        {"ClusterTooLarge",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) block(32, 1, 1) cluster(4, 5, 1) {
store %x, %f, %n
})",
         "1: a cluster of 4 x 5 x 1 blocks cannot be launched: it has 1 to 16; use a smaller "
         "cluster"},
        {"ClusterBeforeHopper",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) block(32, 1, 1) cluster(2, 1, 1) target(sm_89) {
store %x, %f, %n
})",
         "1: sm_89 has no clusters; sm_90 is the first that has; compile the kernel for sm_90, or "
         "use a cluster of one block"},
        {"NoEffect",
         R"(kernel @quiet(%n: i32) {
%a = add %n, %n : i32
barrier
})",
         "1: kernel 'quiet' has no side effects: nothing that it computes is stored; store the "
         "result into a tensor parameter"},
        {"SharedMemoryIsNoEffect",
         R"(kernel @quiet(%n: i32, %f: f32) {
%s = shared {extents = [4]} : view<f32, shared, 1>
store %s, %f, %n
})",
         "1: kernel 'quiet' has no side effects: nothing that it computes is stored; store the "
         "result into a tensor parameter"},
        {"TooMuchSharedMemory",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) target(sm_86) {
%s = shared {extents = [8192]} : view<f64, shared, 1>
%t = shared {extents = [8192]} : view<f32, shared, 1>
%u = shared {extents = [1024]} : view<f32, shared, 1>
store %x, %f, %n
})",
         "1: kernel 'k' has 102400 bytes of shared arrays, but a block on sm_86 has at most "
         "101376; use smaller tiles or fewer stages"},
        {"FarTooMuchSharedMemory",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) {
%s = shared {extents = [268435456]} : view<f32, shared, 1>
%t = shared {extents = [268435456]} : view<f32, shared, 1>
store %x, %f, %n
})",
         "1: kernel 'k' has 2147483648 bytes of shared arrays, but a block on sm_90a has at most "
         "232448; use smaller tiles or fewer stages"},
        {"ParameterOfAFragment",
         R"(kernel @k(%a: frag<f32, 4>, %x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32) {
store %x, %f, %n
})",
         "1: parameter %a is frag<f32, 4>, but a launch passes scalars and views of global memory"},
        {"ParameterInSharedMemory",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %s: view<f32, shared, 1> [?] strides [1], %n: i32, %f: f32) {
store %x, %f, %n
})",
         "1: parameter %s is view<f32, shared, 1>, but a launch passes scalars and views of global "
         "memory"},
        {"ExtentsOfAnotherRank",
         R"(kernel @k(%x: view<f32, global, 1> [?, 4] strides [1], %n: i32, %f: f32) {
store %x, %f, %n
})",
         "1: parameter %x has 1 mode, but 2 extents and 1 stride"},
        {"FactAboutAScalar",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) facts(%n align 4) {
store %x, %f, %n
})",
         "1: the fact 'align' is about mode 0 of %n, which is i32"},
        {"Bf16BeforeHopper",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) target(sm_80) {
%a = add %h, %h : bf16
store %x, %f, %n
})",
         "2: sm_80 has no 'add' for bf16; sm_90 is the first that has; compile the kernel for "
         "sm_90, or compute in f32"},
        {"NoGpuHasIt",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) {
%a = exp2 %d : f64
store %x, %f, %n
})",
         "2: no GPU has 'exp2' for f64; convert to f32 and back"},
        {"WgmmaAfterHopper",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) target(sm_100a) {
set_max_registers {count = 40}
store %x, %f, %n
})",
         "2: sm_100a has no 'set_max_registers'; sm_90a is the first that has; compile the kernel "
         "for "
         "sm_90a"},
        {"WgmmaInASmallBlock",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) block(96, 1, 1) {
%s = shared {extents = [64]} : view<f16, shared, 1>
%a = smem.desc %s, %n {leading = 16, stride = 16, swizzle = 0} : smem_desc<f16>
%z = const 0.0 : frag<f32, 4>
%q = wgmma.begin %z : pending<f32, 4>
%r = wgmma %q, %a, %a : pending<f32, 4>
wgmma.commit
%o = wgmma.wait %r {groups = 0} : frag<f32, 4>
store %x, %f, %n
})",
         "6: 'wgmma' is one operation of 128 threads, but the block has 96; use a block of a "
         "multiple of 128 threads"},
        {"WideAccessBeforeBlackwell",
         R"(kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32, %h: bf16, %d: f64) target(sm_90) {
%a = load %x, %n : vec<f32, 8>
store %x, %f, %n
})",
         "2: a memory access moves 1, 2, 4, 8 or 16 elements and at most 16 bytes on sm_90, not 8 "
         "x f32; access it in parts, or compile the kernel for sm_100, the first that moves 32 "
         "bytes"},
    }),
    mistake_name);

TEST(Verifier, ParametersFitInALaunch) {
  std::string text = "kernel @k(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32";
  for (int i = 0; i < 520; ++i) absl::StrAppend(&text, ", %p", i, ": i64");
  EXPECT_EQ(
      mistakes_of(absl::StrCat(text, ") {\nstore %x, %f, %n\n}")),
      "1: the parameters of kernel 'k' take 4184 bytes, but a launch passes at most 4096; pass a "
      "pointer to a table instead");
}

TEST(Verifier, BlocksOfAMultiprocessor) {
  const auto mistakes = [](absl::string_view launch) {
    return mistakes_of(absl::StrCat("kernel @k(%x: view<f32, global, 1> [?] strides [1], %f: f32) ",
                                    launch, " {\n%z = const 0 : i32\nstore %x, %f, %z\n}\n"));
  };
  EXPECT_EQ(mistakes("block(64, 1, 1) min_blocks(32)"), "");
  EXPECT_EQ(mistakes("block(64, 1, 1) min_blocks(33)"),
            "1: no multiprocessor holds 33 blocks at once; ask for 1 to 32");
  EXPECT_EQ(mistakes("block(1024, 1, 1) min_blocks(3)"),
            "1: no multiprocessor holds 3 blocks of 1024 threads at once: it has room for 2048; "
            "ask for fewer blocks, or launch smaller ones");
}

TEST(Verifier, WideAccessesOnBlackwell) {
  EXPECT_EQ(mistakes_of(with_body("%a = load %x, %n : vec<f32, 8>", "target(sm_100)")), "");
}

TEST(Verifier, AcceptsTheSamples) {
  for (const absl::string_view text : kSamples) EXPECT_EQ(mistakes_of(text), "");
}

// Kernels that are wrong in every way that the text can say: each is judged, none crashes.
TEST(Verifier, SurvivesMutatedText) {
  std::mt19937 random(7);
  int wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const StatusOr<Kernel> kernel =
        parse(mutated(kSamples[i % std::size(kSamples)], random), "mutant.ir");
    if (kernel.ok() && !verify(*kernel, Stage::kEmittable).empty()) ++wrong;
  }
  EXPECT_GT(wrong, 100);
}

TEST(Verifier, ReportsEverythingAtOnce) {
  EXPECT_EQ(
      mistakes_of(with_body(R"(%a = add %n, %f : i32
%t = thread_idx : i32
store %c, %f, %n)",
                            "block(2048, 1, 1)")),
      "2: operand 2 of 'add' is f32, but operand 1 is i32; they must have one type; convert one "
      "of them\n"
      "3: 'thread_idx' lacks its attribute 'axis'; add {axis = ...}\n"
      "4: this store goes through %c, which is read-only; declare the tensor without const, "
      "Tensor<T> instead of Tensor<const T>\n"
      "1: a block of 2048 x 1 x 1 threads cannot be launched: it has 1 to 1024 threads, and at "
      "most 64 in z; use a smaller block and more of them");
}

TEST(Verifier, VariablesAreGoneOnceValuesAreImmutable) {
  const std::string text = with_body("%v = var %n : var<i32>\n%a = var.load %v : i32");
  EXPECT_EQ(mistakes_of(text, Stage::kTraced), "");
  const char* const expected =
      "2: a variable is left, but from here on values are immutable; run the pass promote-vars "
      "first";
  EXPECT_EQ(mistakes_of(text, Stage::kPureSsa), expected);
  EXPECT_EQ(mistakes_of(text, Stage::kEmittable), expected);
}

TEST(Verifier, OnlyAnEmittedKernelNeedsAPtxName) {
  const std::string text =
      "kernel @\"my kernel\"(%x: view<f32, global, 1> [?] strides [1], %n: i32, %f: f32) {\n"
      "store %x, %f, %n\n}";
  EXPECT_EQ(mistakes_of(text, Stage::kPureSsa), "");
  EXPECT_EQ(mistakes_of(text, Stage::kEmittable),
            "1: kernel 'my kernel' cannot keep its name in PTX; name it with letters, digits and "
            "underscores, not starting with a digit");
}

// --- What text cannot say ---

// A kernel that stores n to x, and what its tests need of it.
struct Example {
  Kernel kernel{"k"};
  ValueId x = kernel.add_param("x", Type::view(Scalar::kI32, Space::kGlobal, 1), {kDynamic}, {1});
  ValueId n = kernel.add_param("n", kI32Type);
  ValueId p = kernel.add_param("p", kBoolType);
  Builder b{kernel};

  Example() {
    b.set_loc(kernel.intern_loc("k.cc", 1));
    b.create(Opcode::kStore, {x, n, n});
    b.set_loc(kernel.intern_loc("k.cc", 2));
  }
};

TEST(Verifier, MissingOperand) {
  Example e;
  e.kernel.append(e.kernel.body(),
                  e.kernel.new_op(Opcode::kAdd, {e.n, ValueId::kNone}, {kI32Type}, e.b.loc()));
  EXPECT_EQ(mistakes_of(e.kernel), "2: operand 2 of 'add' is missing");
}

TEST(Verifier, UseOfARemovedOp) {
  Example e;
  const OpId gone = e.b.create_op(Opcode::kAdd, {e.n, e.n});
  e.b.create(Opcode::kMul, {e.kernel.op(gone).result(), e.n});
  e.kernel.erase(gone);
  EXPECT_EQ(mistakes_of(e.kernel),
            "2: operand 1 of 'mul' was computed by an op that has been removed; remove an op only "
            "when nothing uses its results");
}

TEST(Verifier, UseBeforeItsDefinition) {
  Example e;
  const OpId late = e.b.create_op(Opcode::kAdd, {e.n, e.n});
  e.b.set_insertion_before(late);
  e.b.set_loc(e.kernel.intern_loc("k.cc", 3));
  e.b.create(Opcode::kMul, {e.n, e.kernel.op(late).result()});
  EXPECT_EQ(mistakes_of(e.kernel),
            "3: operand 2 of 'mul', %1, is used before it is defined; compute it above, in this "
            "region or one around it");
  EXPECT_EQ(verify(e.kernel)[0].notes.at(0).place.line, 2);
}

TEST(Verifier, UseOfAResultInsideItsOwnOp) {
  Example e;
  const OpId branch = e.b.begin_if(e.p, {kI32Type});
  e.b.yield({e.kernel.op(branch).result()});
  e.b.next_region();
  e.b.yield({e.n});
  EXPECT_EQ(mistakes_of(e.kernel),
            "2: operand 1 of 'yield', %0, is used before it is defined; compute it above, in this "
            "region or one around it");
}

TEST(Verifier, UseOutsideTheRegion) {
  Example e;
  e.b.begin_if(e.p);
  const ValueId inner = e.b.create(Opcode::kAdd, {e.n, e.n});
  e.b.yield({});
  e.b.next_region();
  e.b.yield({});
  e.b.end_region();
  e.b.set_loc(e.kernel.intern_loc("k.cc", 7));
  e.b.create(Opcode::kMul, {inner, e.n});
  EXPECT_EQ(mistakes_of(e.kernel),
            "7: operand 1 of 'mul', %0, exists only inside the 'if' at k.cc:2; yield it from there "
            "and use the op's result");
}

TEST(Verifier, YieldsAtTheEndOnly) {
  Example e;
  e.b.begin_if(e.p);
  e.b.yield({});
  e.b.create(Opcode::kAdd, {e.n, e.n});
  e.b.next_region();
  e.b.yield({});
  e.b.yield({});
  e.b.end_region();
  e.b.yield({});
  EXPECT_EQ(
      mistakes_of(e.kernel),
      "2: the first region of 'if' does not end in a yield; end it with a yield of the values "
      "that it hands over\n"
      "2: the kernel's body ends without a yield: it hands nothing over; remove it");
  Example f;
  f.b.begin_if(f.p);
  f.b.yield({});
  f.b.yield({});
  f.b.next_region();
  f.b.yield({});
  EXPECT_EQ(mistakes_of(f.kernel),
            "2: a yield ends its region, but other ops follow this one; move it to the end of the "
            "region");
}

TEST(Verifier, WrongNumberOfRegions) {
  Example e;
  e.kernel.add_region(e.b.create_op(Opcode::kAdd, {e.n, e.n}));
  e.kernel.append(e.kernel.body(), e.kernel.new_op(Opcode::kIf, {e.p}, {}, e.b.loc()));
  EXPECT_EQ(mistakes_of(e.kernel),
            "2: 'add' has 1 region, but owns 0\n2: 'if' has 0 regions, but owns 2");
}

TEST(Verifier, RegionsTakeWhatTheirOpGives) {
  Example e;
  const OpId loop = e.b.begin_for(e.n, e.n, e.n, {e.n});
  const RegionId body = e.b.region();
  e.b.yield({e.n});
  e.b.end_region();
  e.kernel.region(body).args.pop_back();
  EXPECT_EQ(mistakes_of(e.kernel),
            "2: 'for' has 1 result, but its region is given 0 values; give one for each result");
  e.kernel.region(body).args.clear();
  EXPECT_THAT(mistakes_of(e.kernel), HasSubstr("2: the region of 'for' lacks the loop's variable"));
  EXPECT_TRUE(e.kernel.linked(loop));

  Example f;
  const OpId branch = f.b.begin_if(f.p);
  f.b.yield({});
  f.kernel.add_region_arg(f.b.region(), kI32Type);
  f.b.next_region();
  f.b.yield({});
  EXPECT_EQ(mistakes_of(f.kernel),
            "2: the first region of 'if' takes arguments, but an 'if' gives none");
  std::swap(f.kernel.op(branch).regions[0], f.kernel.op(branch).regions[1]);
  f.kernel.region(f.kernel.op(branch).regions[0]).parent = OpId{0};
  EXPECT_THAT(mistakes_of(f.kernel),
              HasSubstr("2: the first region of 'if' belongs to another op"));
}

TEST(Verifier, OpInARegionThatIsNotItsOwn) {
  Example e;
  const OpId add = e.b.create_op(Opcode::kAdd, {e.n, e.n});
  e.kernel.op(add).parent = RegionId{7};
  EXPECT_EQ(mistakes_of(e.kernel), "2: 'add' stands in a region that it does not belong to");
}

TEST(Verifier, AttributesThatTheTextRefuses) {
  Example e;
  const Attr attrs[] = {{AttrKey::kAxis, 0}, {AttrKey::kWidth, 8}, {AttrKey::kAxis, 3}};
  e.b.create(Opcode::kThreadIdx, {}, Type::none(), attrs);
  EXPECT_EQ(mistakes_of(e.kernel),
            "2: 'thread_idx' has no attribute 'width'\n"
            "2: attribute 'axis' of 'thread_idx' is 3, but must be a number from 0 to 2\n"
            "2: 'thread_idx' has its attribute 'axis' twice");
}

TEST(Verifier, ConstantsOfTooManyBits) {
  Example e;
  e.b.constant(kBoolType, 2);
  EXPECT_EQ(mistakes_of(e.kernel), "2: the constant 0x2 has more bits than bool, which has 1");
}

TEST(Verifier, ParametersThatTheTextRefuses) {
  Example e;
  e.kernel.params()[0].extents.clear();
  EXPECT_EQ(mistakes_of(e.kernel), "0: parameter %x has 1 mode, but 0 extents and 1 stride");
  e.kernel.params()[0].extents = {-3};
  EXPECT_EQ(mistakes_of(e.kernel), "0: parameter %x has an extent of -3");
  e.kernel.params()[0].extents = {3};
  e.kernel.set_fact({FactKind::kFits32, 9, 0}, 1);
  EXPECT_EQ(mistakes_of(e.kernel), "0: the fact 'fits32' is about parameter 9, but there are 3");
  Example d;
  d.kernel.set_fact({FactKind::kExtent, 0, 0}, -2);
  EXPECT_EQ(mistakes_of(d.kernel),
            "0: the fact 'extent' of %x is -2, but must be an extent, or -1 where it is not known");
  Example f;
  f.kernel.add_region_arg(f.kernel.body(), kI32Type);
  EXPECT_EQ(mistakes_of(f.kernel), "0: kernel 'k' has 3 parameters, but its body is given 4");
}

// A divisor that is no power of two would make what follows from it wrong.
TEST(Verifier, FactsHaveValuesThatTheyCanHave) {
  const auto mistake = [](absl::string_view fact) {
    return mistakes_of(with_body("", absl::StrCat("block(64, 1, 1) facts(", fact, ")")));
  };
  EXPECT_EQ(mistake("%x align 128"), "");
  EXPECT_EQ(mistake("%x align 3"), "1: the fact 'align' of %x is 3, but must be a power of two");
  EXPECT_EQ(mistake("%x align 0"), "1: the fact 'align' of %x is 0, but must be a power of two");
  EXPECT_EQ(mistake("%x extent_div 0 0"),
            "1: the fact 'extent_div' of %x is 0, but must be a power of two");
  EXPECT_EQ(mistake("%c stride_div 1 12"),
            "1: the fact 'stride_div' of %c is 12, but must be a power of two");
  EXPECT_EQ(mistake("%x no_overlap 2"), "1: the fact 'no_overlap' of %x is 2, but must be 0 or 1");
  EXPECT_EQ(mistake("%x extent 0 -1"), "");
  EXPECT_EQ(mistake("%x extent 0 0"), "");
}

}  // namespace
}  // namespace heddle::ir
