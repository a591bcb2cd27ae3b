// What the op table says of an op, whichever it is: one check for all rows.

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/verify/verifier_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

// How messages call what a position takes. T depends on the row's class.
absl::string_view role_name(Role role, DataClass data_class) {
  switch (role) {
    case Role::kT:
      switch (data_class) {
        case DataClass::kNone:
          return "nothing";
        case DataClass::kNumber:
          return "a number";
        case DataClass::kInteger:
          return "an integer";
        case DataClass::kFloat:
          return "a float";
        case DataClass::kIntOrBool:
          return "an integer or a bool";
        case DataClass::kIntFloatOrBool:
          return "a number or a bool";
        case DataClass::kData:
          return "data";
      }
      return {};
    case Role::kBoolLikeT:
      return "a bool";
    case Role::kDataLikeT:
      return "data";
    case Role::kIndex:
      return "i32 or i64";
    case Role::kElement:
      return "an element of the view, or a vector of them";
    case Role::kView:
      return "a view";
    case Role::kSlot:
      return "a variable";
    case Role::kCheck:
      return "a bounds check";
    case Role::kFragment:
      return "a settled fragment";
    case Role::kPending:
      return "a pending fragment";
    case Role::kDescriptor:
      return "a shared-memory descriptor";
    case Role::kTile:
      return "a shared-memory descriptor or a pending fragment";
    case Role::kTensorMap:
      return "a tensor map";
    case Role::kAny:
      return "data";
    case Role::kI32:
      return "i32";
    case Role::kU32:
      return "u32";
    case Role::kI64:
      return "i64";
    case Role::kBool:
      return "bool";
  }
  return {};
}

// Why a value of a special type cannot go where any data can, and what to do instead.
struct Misplaced {
  absl::string_view why;
  absl::string_view fix;
};
Misplaced misplaced(Type type) {
  if (type.slot) {
    return {"is a variable, which can only be read and written",
            "read it with var.load and pass the value on"};
  }
  switch (type.kind) {
    case TypeKind::kView:
      return {"is a view, which must be known where it is used",
              "use the view itself, and carry an offset into it"};
    case TypeKind::kCheck:
      return {"is a bounds check, which only the access that it guards can take",
              "compute the check beside its load or store"};
    case TypeKind::kDescriptor:
      return {"is a shared-memory descriptor, which only wgmma can take",
              "make it with smem.desc where it is used, and carry its offset"};
    case TypeKind::kTensorMap:
      return {"is a tensor map, which must be known where it is used",
              "use the map itself, and carry coordinates"};
    case TypeKind::kNone:
    case TypeKind::kScalar:
    case TypeKind::kVector:
    case TypeKind::kFragment:
    case TypeKind::kPending:
      break;
  }
  return {"is not data", ""};
}

struct Range {
  AttrKey key;
  int64_t min;
  int64_t max;
  int64_t multiple = 1;
  bool power_of_two = false;
  std::optional<Opcode> of = std::nullopt;  // the op, where ops differ
};
constexpr Range kRanges[] = {
    {AttrKey::kAxis, 0, 2},
    {AttrKey::kDim, 0, 7},
    {AttrKey::kIndex, 0, 0xFFFF},
    {AttrKey::kAlign, 16, 1024, 1, true},
    {AttrKey::kArena, 0, 0xFFFF},
    {AttrKey::kRegion, 0, 0xFFFF},
    {AttrKey::kWidth, 1, 32, 1, true},
    {AttrKey::kGroups, 0, 7},
    {AttrKey::kNanFill, 0, 1},
    {AttrKey::kPromotion, 64, 256, 64, true},
    {AttrKey::kLeading, 0, 0x3FFF0, 16},
    {AttrKey::kStride, 0, 0x3FFF0, 16},
    {AttrKey::kSwizzle, 0, 128, 32, false, Opcode::kSmemDesc},
    {AttrKey::kSwizzle, 32, 128, 1, true, Opcode::kTensorMap},
    {AttrKey::kVolatile, 0, 1},
    {AttrKey::kCount, 24, 256, 8, false, Opcode::kSetMaxRegisters},
    {AttrKey::kCount, 1, 4, 1, true, Opcode::kLdMatrix},
    {AttrKey::kCount, 1, 4, 1, true, Opcode::kStMatrix},
    {AttrKey::kTranspose, 0, 1},
    {AttrKey::kTransposeA, 0, 1},
    {AttrKey::kTransposeB, 0, 1},
    {AttrKey::kNegateA, 0, 1},
    {AttrKey::kNegateB, 0, 1},
    {AttrKey::kIncrease, 0, 1},
    {AttrKey::kFtz, 1, 1},
    {AttrKey::kUnroll, 1, 1024},
    {AttrKey::kLikely, 0, 1},
    {AttrKey::kDivisor, 1, std::numeric_limits<int64_t>::max()},
    {AttrKey::kThreads, 32, 1024, 32},
    {AttrKey::kPercent, 1, 100},
};

class RowCheck {
 public:
  RowCheck(Verification& v, OpId id)
      : v_(v), kernel_(v.kernel()), id_(id), op_(kernel_.op(id)), row_(info(op_)) {}

  bool run() {
    if (!check_counts()) return false;
    // A pending operand in the wrong place is reported with the fragment rules, not as a type.
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      if (operand_type(i).is_pending() && !may_be_pending(op_, i)) return false;
    }
    check_operands();
    check_results();
    check_attrs();
    if (right_) check_target();
    return right_;
  }

 private:
  void error(std::string message, std::string fix = {}) {
    v_.error(id_, std::move(message), std::move(fix));
    right_ = false;
  }

  std::string role_text(Role role) const { return std::string(role_name(role, row_.data_class)); }

  // --- How many ---

  template <class Positions>
  bool check_count(const Positions& positions, int count, size_t actual, absl::string_view verb,
                   absl::string_view noun) {
    int required = 0;
    int optional = 0;
    bool many = false;
    for (int i = 0; i < count; ++i) {
      const Arity arity = positions[i].arity;
      required += arity == Arity::kOne ? 1 : 0;
      optional += arity == Arity::kOptional ? 1 : 0;
      many |= arity == Arity::kMany;
    }
    const auto n = static_cast<int>(actual);
    if (n >= required && (many || n <= required + optional)) return true;
    std::vector<std::string> roles;
    for (int i = 0; i < count; ++i) {
      const Arity arity = positions[i].arity;
      roles.push_back(absl::StrCat(role_text(positions[i].role),
                                   arity == Arity::kOptional ? ", optional" : "",
                                   arity == Arity::kMany ? ", any number" : ""));
    }
    std::string expected = counted(required, noun);
    if (many) {
      expected = absl::StrCat(required, " or more ", noun, "s");
    } else if (optional > 0) {
      expected = absl::StrCat(required, " to ", required + optional, " ", noun, "s");
    }
    if (count > 0) absl::StrAppend(&expected, " (", absl::StrJoin(roles, "; "), ")");
    error(absl::StrCat(v_.quoted(id_), " ", verb, " ", expected, ", but has ", n));
    return false;
  }

  bool check_counts() {
    const Signature& s = row_.signature;
    const bool operands =
        check_count(s.operands, s.operand_count, op_.operands.size(), "takes", "operand");
    return check_count(s.results, s.result_count, op_.results.size(), "gives", "result") &&
           operands;
  }

  // The position that an operand or result fills. Optional positions are filled from the left, and
  // only the last one may stand for many.
  template <class Positions>
  static const Position& position_of(const Positions& positions, int count, size_t index) {
    return positions[std::min(static_cast<int>(index), count - 1)];
  }

  // --- Operands ---

  Type operand_type(size_t i) const { return kernel_.type(op_.operands[i]); }

  // The type that T stands for: the first operand's in that role, else the result's.
  std::optional<Type> type_of_t() const {
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      if (role_of_operand(i) == Role::kT) return operand_type(i);
    }
    const bool result =
        row_.signature.result_count > 0 && row_.signature.results[0].role == Role::kT;
    if (result) return kernel_.type(op_.results[0]);
    return std::nullopt;
  }

  Role role_of_operand(size_t i) const {
    return position_of(row_.signature.operands, row_.signature.operand_count, i).role;
  }

  bool is_t(Type type) const { return type.is_data() && admits(row_.data_class, type.scalar); }

  void check_operands() {
    const std::optional<Type> t = type_of_t();
    std::optional<size_t> first_t;
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      const Role role = role_of_operand(i);
      const Type type = operand_type(i);
      if (role == Role::kT && first_t && is_t(type) && type != *t) {
        error(absl::StrCat("operand ", i + 1, " of ", v_.quoted(id_), " is ", to_string(type),
                           ", but operand ", *first_t + 1, " is ", to_string(*t),
                           "; they must have one type"),
              "convert one of them");
        continue;
      }
      // One report is enough for operands that share a wrong type.
      const bool repeated = role == Role::kT && first_t && type == *t;
      if (role == Role::kT && !first_t) first_t = i;
      if (!repeated && !fits(role, type, t)) report_operand(i, role, type, t);
    }
  }

  bool fits(Role role, Type type, std::optional<Type> t) const {
    switch (role) {
      case Role::kT:
        return is_t(type);
      case Role::kBoolLikeT:
        return t && type == t->with_scalar(Scalar::kBool);
      case Role::kDataLikeT:
        return type.is_data() && t && type.kind == t->kind && type.count == t->count;
      case Role::kIndex:
        return type.is_index();
      case Role::kElement: {
        const bool shape = type.is_scalar() || (type.kind == TypeKind::kVector && !type.slot);
        return shape && type.scalar == operand_type(0).scalar;
      }
      case Role::kView:
        return type.is_view() && !type.slot;
      case Role::kSlot:
        return type.slot;
      case Role::kCheck:
        return type == Type::check();
      case Role::kFragment:
        return type.kind == TypeKind::kFragment && !type.slot;
      case Role::kPending:
        return type.is_pending() && !type.slot;
      case Role::kDescriptor:
        return type.kind == TypeKind::kDescriptor && !type.slot;
      case Role::kTile:
        return (type.kind == TypeKind::kDescriptor || type.is_pending()) && !type.slot;
      case Role::kTensorMap:
        return type.kind == TypeKind::kTensorMap && !type.slot;
      case Role::kAny:
        return type.is_data() || type.is_pending();
      case Role::kI32:
        return type == kI32Type;
      case Role::kU32:
        return type == kU32Type;
      case Role::kI64:
        return type == kI64Type;
      case Role::kBool:
        return type == kBoolType;
    }
    return false;
  }

  void report_operand(size_t i, Role role, Type type, std::optional<Type> t) {
    const std::string which = absl::StrCat("operand ", i + 1, " of ", v_.quoted(id_));
    if (role == Role::kAny) {
      const Misplaced wrong = misplaced(type);
      error(absl::StrCat(which, ", ", v_.name(op_.operands[i]), ", ", wrong.why),
            std::string(wrong.fix));
      return;
    }
    if (role == Role::kDataLikeT && type.is_data() && t) {
      error(absl::StrCat(which, " is ", to_string(type), ", but its result is ", to_string(*t),
                         "; they must have the same shape"));
      return;
    }
    if (role == Role::kElement) {
      const Scalar element = operand_type(0).scalar;
      error(absl::StrCat(which, " is ", to_string(type), ", but the view's elements are ",
                         info(element).name),
            absl::StrCat("convert it to ", info(element).name));
      return;
    }
    error(absl::StrCat(which, " is ", to_string(type), ", but must be ", role_text(role)));
  }

  // --- Results ---

  // What the signature says that result i is; nullopt where it leaves that open.
  std::optional<Type> expected_result(size_t i, const Position& position) const {
    switch (position.role) {
      case Role::kT:
        return type_of_t();
      case Role::kBoolLikeT:
        return type_of_t()->with_scalar(Scalar::kBool);
      case Role::kSlot:
        return operand_type(0).as_slot();
      case Role::kCheck:
        return Type::check();
      case Role::kFragment:
        // What wgmma.wait settles; of other ops it is their own rules' to say.
        if (position.arity != Arity::kMany) break;
        return with_kind(operand_type(i), TypeKind::kFragment);
      case Role::kPending:
        return with_kind(operand_type(i), TypeKind::kPending);
      case Role::kDescriptor:
        return Type::descriptor(operand_type(0).scalar);
      case Role::kI32:
        return kI32Type;
      case Role::kU32:
        return kU32Type;
      case Role::kI64:
        return kI64Type;
      case Role::kBool:
        return kBoolType;
      case Role::kAny:
        // What comes out of regions is what their yields hand over.
        if (has(row_, kRegions)) return kernel_.type(op_.results[i]);
        break;
      case Role::kDataLikeT:
      case Role::kIndex:
      case Role::kElement:
      case Role::kView:
      case Role::kTile:
      case Role::kTensorMap:
        break;
    }
    return std::nullopt;
  }

  static Type with_kind(Type type, TypeKind kind) {
    type.kind = kind;
    return type;
  }

  void check_results() {
    const Signature& s = row_.signature;
    // wgmma.wait gives back each fragment that it takes.
    const bool one_each = s.result_count == 1 && s.results[0].role == Role::kFragment &&
                          s.results[0].arity == Arity::kMany;
    if (one_each && op_.results.size() != op_.operands.size()) {
      error(absl::StrCat(v_.quoted(id_), " settles ", counted(op_.operands.size(), "fragment"),
                         ", but has ", counted(op_.results.size(), "result")),
            "give it one result for each fragment");
      return;
    }
    for (size_t i = 0; right_ && i < op_.results.size(); ++i) {
      const Position& position = position_of(s.results, s.result_count, i);
      const Type type = kernel_.type(op_.results[i]);
      const std::optional<Type> wanted = expected_result(i, position);
      if (!(wanted ? type == *wanted && (position.role != Role::kT || is_t(type))
                   : fits(position.role, type, type_of_t()))) {
        const bool exact = wanted && *wanted != type;
        error(absl::StrCat("result ", i + 1, " of ", v_.quoted(id_), " is ", to_string(type),
                           ", but must be ",
                           exact ? to_string(*wanted) : role_text(position.role)));
      }
      check_shape(type);
    }
  }

  void check_shape(Type type) {
    const bool vector = type.kind == TypeKind::kVector;
    if (vector &&
        (type.count < 2 || type.count > kMostVectorElements || type.bytes() > kMostVectorBytes)) {
      error(absl::StrCat(to_string(type),
                         " is no vector: they have 2 to 16 elements and at most 32 "
                         "bytes"),
            "use a fragment for more");
    }
  }

  // --- Attributes ---

  void check_attrs() {
    for (int i = 0; i < row_.attr_count; ++i) {
      const AttrRule& rule = row_.attrs[i];
      if (!rule.required || op_.attr(rule.key)) continue;
      error(absl::StrCat(v_.quoted(id_), " lacks its attribute '", info(rule.key).name, "'"),
            absl::StrCat("add {", info(rule.key).name, " = ...}"));
    }
    for (size_t i = 0; i < op_.attrs.size(); ++i) {
      check_attr(op_.attrs[i]);
      for (size_t j = 0; j < i; ++j) {
        if (op_.attrs[i].key != op_.attrs[j].key) continue;
        error(absl::StrCat(v_.quoted(id_), " has its attribute '", info(op_.attrs[i].key).name,
                           "' twice"));
      }
    }
  }

  void check_attr(const Attr& attr) {
    bool known = false;
    for (int i = 0; i < row_.attr_count; ++i) known |= row_.attrs[i].key == attr.key;
    if (!known) {
      error(absl::StrCat(v_.quoted(id_), " has no attribute '", info(attr.key).name, "'"));
      return;
    }
    if (attr.key == AttrKey::kFtz && operand_type(0).scalar != Scalar::kF32) {
      error(absl::StrCat(v_.quoted(id_), " of ", to_string(operand_type(0)),
                         " cannot flush subnormals: only f32 has a choice"));
    }
    for (const Range& range : kRanges) {
      if (range.key != attr.key || range.of.value_or(op_.opcode) != op_.opcode) continue;
      const int64_t value = attr.value;
      if (value >= range.min && value <= range.max && value % range.multiple == 0 &&
          (!range.power_of_two || (value & (value - 1)) == 0)) {
        continue;
      }
      const std::string shape = range.power_of_two ? "a power of two"
                                : range.multiple > 1
                                    ? absl::StrCat("a multiple of ", range.multiple)
                                    : "a number";
      error(absl::StrCat("attribute '", info(attr.key).name, "' of ", v_.quoted(id_), " is ", value,
                         ", but must be ", shape, " from ", range.min, " to ", range.max));
    }
  }

  // --- Target ---

  void check_target() {
    const std::optional<Scalar> lacking = lacking_type(kernel_, op_);
    if (!lacking) return;
    const Scalar scalar = *lacking;
    const std::string what = scalar == Scalar::kNone
                                 ? v_.quoted(id_)
                                 : absl::StrCat(v_.quoted(id_), " for ", info(scalar).name);
    Lack lack = lack_of(*kernel_.target, row_.targets.of(scalar), cure(scalar), what);
    error(std::move(lack.message), std::move(lack.fix));
  }

  // What to do without the op for that type, or without a newer target.
  absl::string_view cure(Scalar scalar) const {
    if (first_supporting(row_.targets, scalar) == nullptr) {
      return scalar == Scalar::kE2M1X2 ? "use e2m1.pack and e2m1.unpack"
                                       : "convert to f32 and back";
    }
    return scalar == Scalar::kBF16 ? "compute in f32" : "";
  }

  Verification& v_;
  const Kernel& kernel_;
  const OpId id_;
  const Op& op_;
  const OpInfo& row_;
  bool right_ = true;
};

}  // namespace

namespace {

// The role of an operand; kAny of an op without any.
Role role_of(const Op& op, size_t operand) {
  const Signature& s = info(op).signature;
  if (s.operand_count == 0) return Role::kAny;
  return s.operands[std::min<size_t>(operand, s.operand_count - size_t{1})].role;
}

}  // namespace

bool only_reads(const Op& op, size_t operand) { return role_of(op, operand) == Role::kTile; }

bool may_be_pending(const Op& op, size_t operand) {
  const OpInfo& row = info(op);
  if (row.signature.operand_count == 0) return false;
  const Role role = role_of(op, operand);
  return role == Role::kPending || role == Role::kTile ||
         (role == Role::kAny && (has(row, kRegions) || has(row, kTerminator)));
}

bool verify_row(Verification& v, OpId op) { return RowCheck(v, op).run(); }

}  // namespace heddle::ir
