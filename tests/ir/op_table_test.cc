// Every row of ops.def: an instance made from its signature alone is accepted, printed and read
// back, and refused when an operand, a type or an attribute is wrong.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::ir {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// The line of the op under test; everything else is on kElsewhere.
constexpr int kHere = 42;
constexpr int kElsewhere = 7;

constexpr Scalar kScalarsToTry[] = {
    Scalar::kBool,   Scalar::kI8,  Scalar::kU8,   Scalar::kI16,  Scalar::kU16,  Scalar::kI32,
    Scalar::kU32,    Scalar::kI64, Scalar::kU64,  Scalar::kE4M3, Scalar::kE5M2, Scalar::kE8M0,
    Scalar::kE2M1X2, Scalar::kF16, Scalar::kBF16, Scalar::kF32,  Scalar::kF64};

// Another type of as many bits.
Scalar twin_of(Scalar scalar) {
  for (const Scalar other : kScalarsToTry) {
    const bool bools = other == Scalar::kBool || scalar == Scalar::kBool;
    if (!bools && other != scalar && info(other).bits == info(scalar).bits) return other;
  }
  return scalar;
}

// A kernel around one instance of an op, T being `scalar`; `full` gives it every optional part.
class Instance {
 public:
  Instance(Opcode opcode, Scalar scalar, bool full)
      : opcode_(opcode), row_(info(opcode)), scalar_(scalar), full_(full) {
    kernel.block = {128, 1, 1};
    x_ = kernel.add_param("x", Type::view(Scalar::kF32, Space::kGlobal, 1), {kDynamic}, {1});
    n_ = kernel.add_param("n", kI32Type);
    b_.set_loc(kernel.intern_loc("op.cc", kElsewhere));
    b_.create(Opcode::kStore, {x_, constant(kF32Type), n_});
    wrong_ = b_.create(Opcode::kBounds, {x_, n_});
    build();
    settle();
  }

  Kernel kernel{"k"};
  OpId id = OpId::kNone;

  // A value that is right for an attribute of an op.
  int64_t attr_value(Opcode opcode, AttrKey key) {
    switch (key) {
      case AttrKey::kExtents:
        return kernel.intern_ints({8});
      case AttrKey::kMessage:
        return static_cast<int64_t>(
            index_of(kernel.intern(opcode == Opcode::kPrintf      ? "%d"
                                   : opcode == Opcode::kRequire   ? "n is %"
                                   : opcode == Opcode::kInlinePtx ? "mov.b32 %0, %1;"
                                                                  : "prefetchu.L1 [%0];")));
      case AttrKey::kTensor:
        return static_cast<int64_t>(index_of(kernel.intern("tensor<ptr<f32, gmem> o 8:1> at 3")));
      case AttrKey::kFix:
      case AttrKey::kName:
        return static_cast<int64_t>(index_of(kernel.intern("what the user calls it")));
      case AttrKey::kAlign:
      case AttrKey::kLeading:
      case AttrKey::kStride:
        return 16;
      case AttrKey::kSwizzle:
        return 32;
      case AttrKey::kWidth:
        return opcode == Opcode::kBounds || opcode == Opcode::kCopyAsync ||
                       opcode == Opcode::kCopyAsyncIf
                   ? 4
                   : 8;
      case AttrKey::kBits:
      case AttrKey::kAxis:
      case AttrKey::kIndex:
        return 1;
      case AttrKey::kThreads:
        return 64;
      case AttrKey::kCount:
        return is_matrix(opcode) ? 2 : 64;
      case AttrKey::kIncrease:
      case AttrKey::kFtz:
      case AttrKey::kLikely:
      case AttrKey::kMin:
      case AttrKey::kTranspose:
        return 1;
      case AttrKey::kMax:
      case AttrKey::kDivisor:
      case AttrKey::kUnroll:
        return 4;
      case AttrKey::kPercent:
        return 50;
      case AttrKey::kData:
        return static_cast<int64_t>(index_of(kernel.intern(std::string(64, '0'))));
      case AttrKey::kVolatile:  // 1 excludes a cache hint
      case AttrKey::kDim:
      case AttrKey::kGroups:
      case AttrKey::kOp:
        return 0;
      case AttrKey::kRounding:
        return static_cast<int64_t>(scalar_ == Scalar::kE8M0 ? Rounding::kUp : Rounding::kNearest);
      case AttrKey::kCache:
      case AttrKey::kL2Evict:
      case AttrKey::kLevel:
      case AttrKey::kRule:
        return 0;
      case AttrKey::kOrder:
        if (opcode == Opcode::kAtomicLoad) return static_cast<int64_t>(MemoryOrder::kAcquire);
        if (opcode == Opcode::kAtomicStore) return static_cast<int64_t>(MemoryOrder::kRelease);
        return static_cast<int64_t>(MemoryOrder::kAcqRel);
      case AttrKey::kScope:
        return static_cast<int64_t>(MemoryScope::kBlock);
    }
    return 0;
  }

  // A value that fits a position of no other kind, and its like for positions of that kind.
  ValueId misfit(Role role) const { return role == Role::kCheck ? n_ : wrong_; }

 private:
  Type t() const { return Type::of(scalar_); }
  ValueId constant(Type type) { return b_.constant(type, 1); }
  static bool is_matrix(Opcode opcode) {
    return opcode == Opcode::kLdMatrix || opcode == Opcode::kStMatrix;
  }
  // What a lane has of two matrices.
  static Type matrices() { return Type::fragment(Scalar::kF16, 4); }
  ValueId fragment() {
    return constant(is_matrix(opcode_) ? matrices() : Type::fragment(Scalar::kF32, 8));
  }
  ValueId shared(Scalar scalar) {
    return b_.create(Opcode::kShared, absl::Span<const ValueId>(),
                     Type::view(scalar, Space::kShared, 1), attrs_of(Opcode::kShared));
  }

  // The same array of another block.
  ValueId mapped(Scalar scalar) {
    return b_.create(Opcode::kMapShared, {shared(scalar), n_},
                     Type::view(scalar, Space::kSharedCluster, 1));
  }

  std::vector<Attr> attrs_of(Opcode opcode) {
    std::vector<Attr> attrs;
    const OpInfo& row = info(opcode);
    for (int i = 0; i < row.attr_count; ++i) {
      if (!row.attrs[i].required && !full_) continue;
      if (row.attrs[i].key == AttrKey::kFtz && scalar_ != Scalar::kF32) continue;
      // L2 is global memory's, where a full bulk reduction does not go.
      if (opcode == Opcode::kBulkReduce && row.attrs[i].key == AttrKey::kL2Evict) continue;
      attrs.push_back({row.attrs[i].key, attr_value(opcode, row.attrs[i].key)});
    }
    return attrs;
  }

  ValueId operand(Role role) {
    switch (role) {
      case Role::kT:
        return constant(t());
      case Role::kBoolLikeT:
      case Role::kBool:
        return constant(kBoolType);
      case Role::kDataLikeT:
        if (opcode_ == Opcode::kConvertRounded) {
          return constant(Type::of(is_integer(scalar_) || scalar_ == Scalar::kE8M0 ? Scalar::kF32
                                   : scalar_ == Scalar::kF64                       ? Scalar::kI64
                                                                                   : Scalar::kF64));
        }
        return constant(Type::of(twin_of(scalar_)));
      case Role::kIndex:
      case Role::kI32:
        return n_;
      case Role::kElement:
        return constant(kF32Type);
      case Role::kView:
        return view();
      case Role::kSlot:
        return b_.create(Opcode::kVar, {constant(kF32Type)});
      case Role::kCheck:
        return wrong_;
      case Role::kFragment:
        return fragment();
      case Role::kPending:
        return b_.create(Opcode::kWgmmaBegin, {fragment()});
      case Role::kDescriptor:
        return b_.create(Opcode::kSmemDesc, std::vector<ValueId>{shared(Scalar::kBF16), n_},
                         Type::none(), attrs_of(Opcode::kSmemDesc));
      case Role::kAny:
        if (opcode_ == Opcode::kPrintf) return n_;
        if (opcode_ == Opcode::kE2m1Unpack) {
          return constant(Type::vector(Scalar::kE2M1X2, 2));
        }
        return takes_elements() ? constant(Type::vector(Scalar::kF32, 4)) : constant(kF32Type);
      case Role::kU32:
        return constant(kU32Type);
      case Role::kI64:
        return constant(kI64Type);
    }
    return ValueId::kNone;
  }

  // Of the memory that the op's next view lies in.
  ValueId view() {
    const int which = views_++;
    switch (opcode_) {
      case Opcode::kSmemDesc:
        return shared(Scalar::kBF16);
      case Opcode::kMapShared:
        return shared(Scalar::kF32);
      case Opcode::kLdMatrix:
      case Opcode::kStMatrix:
        return shared(Scalar::kF16);
      case Opcode::kMbarrierInit:
      case Opcode::kMbarrierArrive:
      case Opcode::kMbarrierExpectTx:
      case Opcode::kMbarrierWait:
        return shared(Scalar::kU64);
      case Opcode::kCopyAsync:
      case Opcode::kCopyAsyncIf:
        return which == 0 ? shared(Scalar::kF32) : x_;
      case Opcode::kBulkCopy:
        return which == 0   ? mapped(Scalar::kF32)
               : which == 1 ? shared(Scalar::kF32)
                            : mapped(Scalar::kU64);
      case Opcode::kBulkReduce:
        // With an mbarrier, in another block's memory.
        return which == 2   ? mapped(Scalar::kU64)
               : !full_     ? (which == 0 ? x_ : shared(Scalar::kF32))
               : which == 0 ? mapped(Scalar::kI32)
                            : shared(Scalar::kI32);
      case Opcode::kBulkLoad:
        return which == 1 ? x_ : shared(which == 0 ? Scalar::kF32 : Scalar::kU64);
      case Opcode::kBulkStore:
        return which == 0 ? x_ : shared(Scalar::kF32);
      default:
        return x_;
    }
  }

  bool takes_elements() const {
    return opcode_ == Opcode::kExtract || opcode_ == Opcode::kSlice || opcode_ == Opcode::kE2m1Pack;
  }

  // The result's type where the signature leaves it open.
  Type open_type() const {
    if (row_.data_class != DataClass::kNone) return t();
    if (opcode_ == Opcode::kPack || opcode_ == Opcode::kSlice || opcode_ == Opcode::kSplat) {
      return Type::vector(Scalar::kF32, 2);
    }
    if (opcode_ == Opcode::kE2m1Pack) return Type::vector(Scalar::kE2M1X2, 2);
    if (opcode_ == Opcode::kE2m1Unpack) return Type::vector(Scalar::kF16, 4);
    if (opcode_ == Opcode::kExtent || opcode_ == Opcode::kStride) return kI32Type;
    if (opcode_ == Opcode::kSubview || opcode_ == Opcode::kPointer) return kernel.type(x_);
    if (opcode_ == Opcode::kMapShared) return Type::view(Scalar::kF32, Space::kSharedCluster, 1);
    if (opcode_ == Opcode::kLdMatrix) return matrices();
    if (opcode_ == Opcode::kLocal) return Type::view(Scalar::kF32, Space::kLocal, 1);
    if (opcode_ == Opcode::kTable) return Type::view(Scalar::kF32, Space::kConst, 1, true);
    const bool array = opcode_ == Opcode::kShared || opcode_ == Opcode::kDynamicShared;
    return array ? Type::view(Scalar::kF32, Space::kShared, 1) : kF32Type;
  }

  std::vector<ValueId> operands() {
    std::vector<ValueId> values;
    for (int i = 0; i < row_.signature.operand_count; ++i) {
      const Position& position = row_.signature.operands[i];
      if (position.arity == Arity::kOptional && !full_) continue;
      const int copies = opcode_ == Opcode::kPack ? 2 : 1;
      for (int copy = 0; copy < copies; ++copy) values.push_back(operand(position.role));
    }
    return values;
  }

  void build() {
    const std::vector<ValueId> values = operands();
    b_.set_loc(kernel.intern_loc("op.cc", kHere));
    if (opcode_ == Opcode::kFor) {
      id = b_.begin_for(values[0], values[1], values[2], {values[3]});
      for (const Attr& attr : attrs_of(opcode_)) kernel.op(id).set_attr(attr.key, attr.value);
      b_.yield({kernel.region(b_.region()).args[1]});
    } else if (opcode_ == Opcode::kWhile) {
      id = b_.begin_while({values[0]});
      b_.yield({constant(kBoolType)});
      b_.next_region();
      b_.yield({kernel.region(b_.region()).args[0]});
    } else if (opcode_ == Opcode::kIf || opcode_ == Opcode::kYield) {
      const ValueId condition = opcode_ == Opcode::kIf ? values[0] : constant(kBoolType);
      const OpId branch = b_.begin_if(condition, {kI32Type});
      for (int i = 0; i < 2; ++i) {
        if (i == 1) b_.next_region();
        b_.yield({n_});
      }
      id = opcode_ == Opcode::kIf ? branch : kernel.region(b_.region()).last;
    } else if (opcode_ == Opcode::kInlinePtxVolatile) {
      id = b_.create_op(opcode_, values, absl::Span<const Type>(), attrs_of(opcode_));
      return;
    } else {
      id = b_.create_op(opcode_, values, open_type(), attrs_of(opcode_));
      return;
    }
    b_.end_region();
  }

  // Pending fragments must not stay so.
  void settle() {
    b_.set_loc(kernel.intern_loc("op.cc", kElsewhere));
    if (opcode_ == Opcode::kWgmma) b_.create(Opcode::kWgmmaCommit, {});
    const auto results = kernel.op(id).results;
    for (const ValueId result : results) {
      if (kernel.type(result).is_pending()) {
        b_.create(Opcode::kWgmmaWait, {result}, Type::none(), {{AttrKey::kGroups, 0}});
      }
    }
  }

  const Opcode opcode_;
  const OpInfo& row_;
  const Scalar scalar_;
  const bool full_;
  int views_ = 0;  // operands that are views, so far
  Builder b_{kernel};
  ValueId x_ = ValueId::kNone;
  ValueId n_ = ValueId::kNone;
  ValueId wrong_ = ValueId::kNone;
};

class OpTable : public ::testing::TestWithParam<int> {
 protected:
  Opcode opcode() const { return static_cast<Opcode>(GetParam()); }
  const OpInfo& row() const { return info(opcode()); }

  // The types that T may be; one of them for ops without a T.
  std::vector<Scalar> scalars() const {
    std::vector<Scalar> result;
    for (const Scalar scalar : kScalarsToTry) {
      // A bool has no twin to take its bits from.
      const bool bits = opcode() == Opcode::kBitcast && twin_of(scalar) == scalar;
      // It rounds to few types.
      const bool exact = opcode() == Opcode::kConvertRounded && scalar != Scalar::kE8M0 &&
                         (info(scalar).storage_only || scalar == Scalar::kBool);
      if (admits(row().data_class, scalar) && !bits && !exact) result.push_back(scalar);
    }
    if (result.empty()) result.push_back(Scalar::kF32);
    return result;
  }
  // One that every target has.
  Scalar scalar() const {
    return admits(row().data_class, Scalar::kF32) ? Scalar::kF32 : Scalar::kI32;
  }

  bool ends_in_checks() const {
    const Signature& s = row().signature;
    if (s.operand_count == 0) return false;
    const Position& last = s.operands[s.operand_count - 1];
    return last.role == Role::kCheck && last.arity == Arity::kMany;
  }

  // What is wrong on the line of the op under test.
  static std::string mistakes_here(const Kernel& kernel) {
    std::string text;
    for (const Diagnostic& wrong : verify(kernel)) {
      if (wrong.place.line == kHere) absl::StrAppend(&text, wrong.message, "\n");
    }
    return text;
  }
};

TEST_P(OpTable, IsAcceptedAndReadsBack) {
  for (const bool full : {false, true}) {
    for (const Scalar scalar : scalars()) {
      Instance instance(opcode(), scalar, full);
      const std::string text = print(instance.kernel, {.locs = true});
      SCOPED_TRACE(text);
      const absl::StatusOr<Kernel> again = parse(text, "op.ir");
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(print(*again, {.locs = true}), text);
      if (supports(*instance.kernel.target, row().targets, scalar)) {
        EXPECT_EQ(to_string(verify(instance.kernel)), "");
        EXPECT_EQ(to_string(verify(*again)), "");
      } else {
        EXPECT_THAT(mistakes_here(instance.kernel),
                    AnyOf(HasSubstr("no GPU has"), HasSubstr("is the first that has")));
      }
    }
  }
}

TEST_P(OpTable, NeedsATargetThatHasIt) {
  for (const Target& target : kTargets) {
    for (const Scalar scalar : scalars()) {
      Instance instance(opcode(), scalar, false);
      instance.kernel.target = &target;
      const bool has_it = supports(target, row().targets, scalar);
      EXPECT_EQ(mistakes_here(instance.kernel).empty(), has_it)
          << target.name << " " << mistakes_here(instance.kernel);
    }
  }
}

TEST_P(OpTable, RefusesTheWrongNumberOfOperands) {
  Instance fewer(opcode(), scalar(), false);
  Op& op = fewer.kernel.op(fewer.id);
  if (!op.operands.empty()) {
    // Any number of checks may be none.
    if (ends_in_checks()) op.operands.pop_back();
    op.operands.pop_back();
    EXPECT_NE(mistakes_here(fewer.kernel), "");
  }
  Instance more(opcode(), scalar(), true);
  more.kernel.op(more.id).operands.push_back(
      more.misfit(ends_in_checks() ? Role::kCheck : Role::kAny));
  EXPECT_NE(mistakes_here(more.kernel), "");
}

TEST_P(OpTable, RefusesOperandsOfTheWrongKind) {
  const Instance right(opcode(), scalar(), true);
  for (size_t i = 0; i < right.kernel.op(right.id).operands.size(); ++i) {
    Instance instance(opcode(), scalar(), true);
    const int last = row().signature.operand_count - 1;
    const Role role = row().signature.operands[std::min(static_cast<int>(i), last)].role;
    instance.kernel.op(instance.id).operands[i] = instance.misfit(role);
    // What goes through regions is compared with what comes out of them first.
    const bool regions = has(row(), kRegions) || has(row(), kTerminator);
    EXPECT_THAT(
        mistakes_here(instance.kernel),
        HasSubstr(regions ? "is check" : absl::StrCat("operand ", i + 1, " of '", row().mnemonic)));
  }
}

TEST_P(OpTable, RefusesResultsOfTheWrongNumberOrKind) {
  Instance more(opcode(), scalar(), false);
  more.kernel.add_result(more.id, kI32Type);
  more.kernel.add_result(more.id, kI32Type);
  EXPECT_NE(mistakes_here(more.kernel), "");
  Instance other(opcode(), scalar(), false);
  const ValueId result = other.kernel.op(other.id).result();
  if (!valid(result)) return;
  Type& type = other.kernel.value(result).type;
  type = type == Type::check() ? kI32Type : Type::check();
  EXPECT_NE(mistakes_here(other.kernel), "");
}

TEST_P(OpTable, NeedsItsAttributesAndNoOthers) {
  for (int i = 0; i < row().attr_count; ++i) {
    const AttrRule& rule = row().attrs[i];
    Instance instance(opcode(), scalar(), true);
    auto& attrs = instance.kernel.op(instance.id).attrs;
    const auto attr =
        std::find_if(attrs.begin(), attrs.end(), [&](const Attr& a) { return a.key == rule.key; });
    if (attr == attrs.end()) continue;  // one that does not go with the others
    attrs.erase(attr);
    const std::string message =
        absl::StrCat("'", row().mnemonic, "' lacks its attribute '", info(rule.key).name, "'");
    EXPECT_EQ(mistakes_here(instance.kernel), rule.required ? message + "\n" : "");
  }
  for (int key = 0; key < kAttrKeyCount; ++key) {
    Instance instance(opcode(), scalar(), true);
    Op& op = instance.kernel.op(instance.id);
    const auto takes = [&](const AttrRule& rule) { return rule.key == static_cast<AttrKey>(key); };
    if (std::any_of(row().attrs.begin(), row().attrs.begin() + row().attr_count, takes)) continue;
    op.set_attr(static_cast<AttrKey>(key),
                instance.attr_value(opcode(), static_cast<AttrKey>(key)));
    EXPECT_THAT(mistakes_here(instance.kernel),
                HasSubstr(absl::StrCat("'", row().mnemonic, "' has no attribute '",
                                       kAttrs[key].name, "'")));
  }
}

std::string test_name(const ::testing::TestParamInfo<int>& test) {
  return absl::StrReplaceAll(info(static_cast<Opcode>(test.param)).mnemonic, {{".", "_"}});
}

INSTANTIATE_TEST_SUITE_P(Op, OpTable, ::testing::Range(0, kOpcodeCount), test_name);

TEST(OpTableRows, AreFoundByTheirMnemonics) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(opcode_from_mnemonic(info(opcode).mnemonic), opcode);
  }
  EXPECT_EQ(opcode_from_mnemonic("frobnicate"), std::nullopt);
}

// What the rest relies on without asking.
TEST(OpTableRows, AreConsistent) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const OpInfo& row = info(static_cast<Opcode>(i));
    const Signature& s = row.signature;
    SCOPED_TRACE(std::string(row.mnemonic));
    // Only the last position may stand for a varying number.
    for (int j = 0; j + 1 < s.operand_count; ++j) EXPECT_EQ(s.operands[j].arity, Arity::kOne);
    bool has_t = s.result_count > 0 && s.results[0].role == Role::kT;
    for (int j = 0; j < s.operand_count; ++j) has_t |= s.operands[j].role == Role::kT;
    EXPECT_EQ(has_t, row.data_class != DataClass::kNone);
    EXPECT_FALSE(has(row, kPure) && has_side_effect(row));
    EXPECT_FALSE(has(row, kPure) && is_convergent(row));
    if (has(row, kForwards)) {
      ASSERT_EQ(s.operand_count, 1);
      ASSERT_EQ(s.result_count, 1);
      EXPECT_EQ(s.operands[0].role, s.results[0].role);
    }
    if (has(row, kPromise)) {
      EXPECT_TRUE(has(row, kForwards) && !has_side_effect(row));
    }
    if (has(row, kCommutative)) {
      ASSERT_GE(s.operand_count, 2);
      EXPECT_EQ(s.operands[0].role, s.operands[1].role);
    }
    const uint8_t touched = row.effects.reads | row.effects.writes;
    for (int j = 0; j < 8; ++j) {
      if ((touched >> j & 1) == 0) continue;
      ASSERT_LT(j, s.operand_count);
      const Role role = s.operands[j].role;
      EXPECT_TRUE(role == Role::kView || role == Role::kSlot || role == Role::kDescriptor);
    }
  }
}

}  // namespace
}  // namespace heddle::ir
