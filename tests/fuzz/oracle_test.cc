// The oracle itself: what it takes ops to mean is what a GPU made of them, and what it does not know
// is an error.
#include "fuzz/oracle.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fuzz/generator.h"
#include "fuzz/oracle_scalar.h"
#include "gtest/gtest.h"
#include "heddle/ir/text/parser.h"
#include "vectors/comparison.h"
#include "vectors/recording.h"

namespace heddle::fuzz {
namespace {

using ir::Scalar;
using vectors::Case;
using vectors::Column;

// The op on one element of each operand.
oracle::ScalarOp scalar_op(const Case& c) {
  oracle::ScalarOp op{.opcode = c.opcode, .from = c.operands[0], .to = c.result};
  for (const ir::Attr& attr : c.attrs) {
    if (attr.key == ir::AttrKey::kRounding) op.rounding = static_cast<ir::Rounding>(attr.value);
    if (attr.key == ir::AttrKey::kFtz) op.ftz = attr.value != 0;
  }
  return op;
}

// What is wrong with the oracle's results; empty where they are those that were recorded.
std::string complaint(const Case& c, const oracle::ScalarOp& op, const Column& recorded) {
  const oracle::Rule rule = find_rule(op);
  const std::vector<Column> inputs = vectors::inputs_for(c);
  if (recorded.size() != inputs[0].size()) return "the recording is of other inputs";
  for (size_t i = 0; i < recorded.size(); ++i) {
    Column tuple;
    for (const Column& column : inputs) tuple.push_back(column[i]);
    const auto result = rule(op, tuple.data());
    const std::string wrong =
        result ? vectors::complaint(c, tuple, recorded[i], *result) : "there is no result";
    if (wrong.empty()) continue;
    return absl::StrCat(vectors::describe(c, tuple), " gives ",
                        result ? vectors::describe(c.result, *result) : "nothing", "; ", wrong);
  }
  return "";
}

class Vectors : public ::testing::Test {
 protected:
  static const std::vector<Case>& cases() {
    static const auto& all = *new std::vector<Case>(vectors::all_cases());
    return all;
  }
  static vectors::Recording recording() {
    std::ifstream file(HEDDLE_TEST_DATA_DIR "/vectors/h200.vectors", std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return vectors::parse_recording(text.str(), cases()).value();
  }
};

TEST_F(Vectors, OfAnH200AreWhatTheOracleMakes) {
  const vectors::Recording recorded = recording();
  int known = 0;
  for (const Case& c : cases()) {
    const oracle::ScalarOp op = scalar_op(c);
    // It knows no types that random kernels do not have.
    const auto is_strange = [](Scalar s) { return s == Scalar::kTF32 || s == Scalar::kE8M0; };
    if (find_rule(op) == nullptr) {
      EXPECT_TRUE(is_strange(c.operands[0]) || is_strange(c.result)) << c.name;
      continue;
    }
    ++known;
    EXPECT_EQ(complaint(c, op, recorded.cases.at(c.name).results), "");
  }
  EXPECT_GT(known, 400);
}

// That comparison can fail: of no two ops, one takes the other's place unseen.
TEST_F(Vectors, TellOpsApart) {
  const vectors::Recording recorded = recording();
  const auto find = [](absl::string_view name) {
    for (const Case& c : cases()) {
      if (c.name == name) return c;
    }
    return Case();
  };
  const std::pair<absl::string_view, ir::Opcode> kMistakes[] = {
      {"add i32 i32 -> i32", ir::Opcode::kSub},
      {"shr i64 u32 -> i64", ir::Opcode::kShl},
      {"mulhi u64 u64 -> u64", ir::Opcode::kMul},
      {"min f32 f32 -> f32", ir::Opcode::kMinNan},
      {"fma bf16 bf16 bf16 -> bf16", ir::Opcode::kMul},
      {"add.rounded {rounding = up} f64 f64 -> f64", ir::Opcode::kAdd},
      {"saturate f16 -> f16", ir::Opcode::kAbs},
      {"convert.rounded {rounding = nearest} f32 -> i32", ir::Opcode::kConvert},
      {"exp2 f32 -> f32", ir::Opcode::kLog2},
  };
  for (const auto& [name, other] : kMistakes) {
    const Case c = find(name);
    ASSERT_EQ(c.name, name);
    Case mistaken = c;
    mistaken.opcode = other;
    ASSERT_NE(find_rule(scalar_op(mistaken)), nullptr) << name;
    EXPECT_NE(complaint(c, scalar_op(mistaken), recorded.cases.at(c.name).results), "") << name;
  }
}

TEST(Oracle, WantsApproximationsWithinTheirBounds) {
  constexpr double kUnit = 0x1p-23, kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using ir::Opcode;
  using oracle::keeps_bound;
  EXPECT_TRUE(keeps_bound(Opcode::kExp2, 0, 1 + 2 * kUnit));
  EXPECT_FALSE(keeps_bound(Opcode::kExp2, 0, 1 + 3 * kUnit));
  EXPECT_TRUE(keeps_bound(Opcode::kExp2, 128, kInfinity));
  EXPECT_FALSE(keeps_bound(Opcode::kExp2, 127, kInfinity));
  EXPECT_TRUE(keeps_bound(Opcode::kRcpApprox, 1, 1 + kUnit));
  EXPECT_FALSE(keeps_bound(Opcode::kRcpApprox, 1, 1 + 2 * kUnit));
  EXPECT_TRUE(keeps_bound(Opcode::kRcpApprox, -0.0, -kInfinity));
  EXPECT_FALSE(keeps_bound(Opcode::kRcpApprox, -0.0, kInfinity));
  EXPECT_FALSE(keeps_bound(Opcode::kRcpApprox, 0, 0x1p127));
  EXPECT_TRUE(keeps_bound(Opcode::kRsqrt, -1, nan));
  EXPECT_FALSE(keeps_bound(Opcode::kRsqrt, -1, 1));
  EXPECT_TRUE(keeps_bound(Opcode::kLog2, 1, 0x1p-22));
  EXPECT_FALSE(keeps_bound(Opcode::kLog2, 1, 0x1p-21));
  EXPECT_TRUE(keeps_bound(Opcode::kSinApprox, 3, std::sin(3) + 0x1p-21));
  EXPECT_FALSE(keeps_bound(Opcode::kSinApprox, 3, std::sin(3) + 0x1p-19));
  EXPECT_TRUE(keeps_bound(Opcode::kCosApprox, 100, 7));  // no bound is known there
  EXPECT_FALSE(keeps_bound(Opcode::kCosApprox, 100, nan));
  EXPECT_TRUE(keeps_bound(Opcode::kTanhApprox, 1, std::tanh(1) * (1 + 0x1p-11)));
  EXPECT_FALSE(keeps_bound(Opcode::kTanhApprox, 1, std::tanh(1) * (1 + 0x1p-9)));
  EXPECT_FALSE(keeps_bound(Opcode::kAdd, 0, 0));
}

std::string error_of(absl::string_view text) {
  const ir::Kernel kernel = ir::parse(text, "test.ir").value();
  return consult_oracle(kernel, inputs_for(kernel, 0)).error;
}

TEST(Oracle, NamesWhatItDoesNotKnow) {
  EXPECT_TRUE(absl::StrContains(error_of(R"(kernel @k() block(32, 1, 1) {
  %t = clock : i64
})"),
                                "'clock'"));
  EXPECT_TRUE(absl::StrContains(error_of(R"(kernel @k(%a: f32) block(32, 1, 1) {
  %t = convert %a : tf32
})"),
                                "'convert' f32"));
}

TEST(Oracle, SaysWhatIsWrongWithAProgram) {
  const std::pair<absl::string_view, absl::string_view> kPrograms[] = {
      {R"(kernel @k(%a: i32) block(32, 1, 1) {
  %z = const 0 : i32
  %q = div %a, %z : i32
})",
       "'div' i32 i32 has no result"},
      {R"(kernel @k(%x: view<i32, global, 1> [4] strides [1]) block(32, 1, 1) {
  %i = const 4096 : i32
  %v = load %x, %i : i32
})",
       "no memory"},
      {R"(kernel @k() block(32, 1, 1) {
  %i = thread_idx {axis = x} : i32
  %z = const 0 : i32
  %c = eq %i, %z : bool
  if %c {
    barrier
    yield
  } else {
    yield
  }
})",
       "barrier"},
      {R"(kernel @k() block(32, 1, 1) {
  %i = thread_idx {axis = x} : i32
  %u = assume_uniform %i : i32
})",
       "assume_uniform"},
      {R"(kernel @k() block(32, 1, 1) {
  %i = thread_idx {axis = x} : i32
  %r = assume_range %i {min = 0, max = 30} : i32
})",
       "assume_range"},
      {R"(kernel @k() block(32, 1, 1) {
  %i = thread_idx {axis = x} : i32
  %z = const 0 : i32
  for %k in %z .. %i step %i {
    yield
  }
})",
       "step"},
      {R"(kernel @k() block(32, 1, 1) {
  %m = const 0xffff : u32
  %i = lane_id : i32
  %s = redux %i, %m {op = add} : i32
})",
       "lanes of a mask"},
      {R"(kernel @k() block(32, 1, 1) {
  %t = const true : bool
  while {
    yield %t
  } do {
    yield
  }
})",
       "too long"},
  };
  for (const auto& [text, what] : kPrograms) {
    EXPECT_TRUE(absl::StrContains(error_of(text), what)) << error_of(text) << " of\n" << text;
  }
}

}  // namespace
}  // namespace heddle::fuzz
