#include "heddle/ir/text/printer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/text/parser.h"
#include "ir/text/text_samples.h"

namespace heddle::ir {
namespace {

using ::testing::HasSubstr;

TEST(Printer, NamesByHintThenByOrder) {
  Kernel kernel("k");
  const ValueId n = kernel.add_param("n", kI32Type);
  Builder b(kernel);
  const auto named = [&](const char* hint) {
    const ValueId value = b.create(Opcode::kAdd, {n, n});
    if (*hint != '\0') kernel.value(value).name = kernel.intern(hint);
    return value;
  };
  for (const char* hint : {"", "acc", "n", "acc", "", "p.q", "7", "acc.1", "ü"}) named(hint);
  EXPECT_EQ(print(kernel), R"(kernel @k(%n: i32) block(?) cluster(1, 1, 1) target(sm_90a) {
  %0 = add %n, %n : i32
  %acc = add %n, %n : i32
  %n.1 = add %n, %n : i32
  %acc.1 = add %n, %n : i32
  %1 = add %n, %n : i32
  %p_q = add %n, %n : i32
  %_7 = add %n, %n : i32
  %acc_1 = add %n, %n : i32
  %__ = add %n, %n : i32
}
)");
}

TEST(Printer, ErasedOpsLeaveNoTrace) {
  Kernel kernel("k");
  const ValueId n = kernel.add_param("n", kI32Type);
  Builder b(kernel);
  const OpId gone = b.create_op(Opcode::kAdd, {n, n});
  const ValueId kept = b.create(Opcode::kMul, {n, n});
  kernel.erase(gone);
  EXPECT_EQ(ValueNames(kernel).of(kept), "%0");
  EXPECT_EQ(ValueNames(kernel).of(kernel.op(gone).result()), "%?1");
  EXPECT_EQ(ValueNames(kernel).of(ValueId::kNone), "%?");
}

TEST(Printer, AnOpOnOneLine) {
  const Kernel kernel = parse(kRowSumText, "row_sum.ir").value();
  std::vector<std::string> lines;
  for (const OpId id : kernel.ops(kernel.body())) lines.push_back(print_op(kernel, id));
  EXPECT_THAT(lines, ::testing::IsSupersetOf({
                         "%tid = thread_idx {axis = x} : i32",
                         "%zero = const 0.0 : f32",
                         "%sum = for %i in %tid .. %n step %step carry(%acc = %zero) : f32 { ... }",
                         "if %first { ... }",
                         "%chosen = if %first : f32 { ... } else { ... }",
                         "store %y, %chosen, %row",
                     }));
}

// Diagnostics print kernels that are wrong.
TEST(Printer, PrintsMalformedOps) {
  Kernel kernel("k");
  Builder b(kernel);
  const auto line = [&](OpId op) { return print_op(kernel, op); };
  EXPECT_EQ(line(b.create_op(Opcode::kFor, {})), "for");
  EXPECT_EQ(line(b.create_op(Opcode::kWhile, {})), "while");
  EXPECT_EQ(line(kernel.new_op(Opcode::kIf, {ValueId::kNone}, {}, LocId::kNone)), "if %?");
  EXPECT_EQ(line(b.create_op(Opcode::kYield, {ValueId{77}})), "yield %?77");
  const Attr attrs[] = {{AttrKey::kWidth, 3}, {AttrKey::kAxis, 9}};
  EXPECT_EQ(line(b.create_op(Opcode::kThreadIdx, {}, Type::none(), attrs)),
            "%0 = thread_idx {axis = 9, width = 3} : i32");
  const OpId constant = b.create_op(Opcode::kConst, {}, Type::check());
  EXPECT_EQ(line(constant), "%1 = const : check");
  kernel.op(constant).set_attr(AttrKey::kBits, 17);
  EXPECT_EQ(line(constant), "%1 = const 0x11 : check");
}

TEST(Printer, PlacesAreOptIn) {
  Kernel kernel("k");
  Builder b(kernel);
  b.set_loc(kernel.intern_loc("row_sum.cc", 14));
  b.create_op(Opcode::kBarrier, {});
  EXPECT_THAT(print(kernel), HasSubstr("  barrier\n"));
  EXPECT_THAT(print(kernel, {.locs = true}), HasSubstr("  barrier loc(\"row_sum.cc\":14)\n"));
}

TEST(Printer, TheSameKernelGivesTheSameText) {
  const Kernel kernel = parse(kMixedText, "mixed.ir").value();
  const Kernel copy = kernel;
  EXPECT_EQ(print(kernel), print(copy));
}

}  // namespace
}  // namespace heddle::ir
