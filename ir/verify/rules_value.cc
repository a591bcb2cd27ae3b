// Rules of values: constants, variables, loops, conversions, vectors and fragments, promises.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/text/literal.h"
#include "heddle/ir/verify/rules_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

bool has_elements(Type type) { return type.is_data() && type.kind != TypeKind::kScalar; }

void require_result(RuleContext& c, Type wanted, absl::string_view because) {
  if (c.result_type() == wanted) return;
  c.error(absl::StrCat(c.result_text(), ", but ", because, " ", to_string(wanted)));
}

void check_power_rounding(RuleContext& c) {
  const auto rounding = c.enum_attr(AttrKey::kRounding, Rounding::kUp);
  if (rounding == Rounding::kUp || rounding == Rounding::kZero) return;
  c.error(absl::StrCat("'convert.rounded' to e8m0 has no rounding '",
                       kRoundingNames[static_cast<size_t>(rounding)], "'"),
          "use up or zero");
}

// Pairs of 4-bit floats: of two neighbours each.
void check_e2m1(RuleContext& c, Type wide, Type pairs, Scalar scalar) {
  const bool shapes =
      wide.count == 2 * pairs.count && pairs.scalar == Scalar::kE2M1X2 && wide.scalar == scalar &&
      (pairs.is_scalar() ? wide.kind == TypeKind::kVector : wide.kind == pairs.kind);
  if (shapes) return;
  c.error(absl::StrCat(c.quoted(), " is between 2n ", info(scalar).name,
                       " and n e2m1x2, both in a vector or both in a fragment, not between ",
                       to_string(wide), " and ", to_string(pairs)),
          absl::StrCat("give it vectors of ", info(scalar).name, " and half as many e2m1x2"));
}

// Whether operand 0 has elements to take.
bool takes_elements(RuleContext& c) {
  if (has_elements(c.type(c.op().a()))) return true;
  c.error(absl::StrCat("operand 1 of ", c.quoted(), " is ", to_string(c.type(c.op().a())),
                       ", but must be a vector or a fragment"));
  return false;
}

void check_elements(RuleContext& c, int64_t count) {
  const int64_t index = *c.attr(AttrKey::kIndex);
  if (index + count <= c.type(c.op().a()).count) return;
  const std::string taken = count == 1
                                ? absl::StrCat("element ", index)
                                : absl::StrCat("elements ", index, " to ", index + count - 1);
  c.error(absl::StrCat(c.quoted(), " takes ", taken, ", but ", to_string(c.type(c.op().a())),
                       " ends at ", c.type(c.op().a()).count - 1));
}

}  // namespace

// --- Constants, variables and loops ---

void check_const(RuleContext& c) {
  const auto bits = static_cast<uint64_t>(*c.attr(AttrKey::kBits));
  const int width = value_bits(c.result_type().scalar);
  if (width == 64 || bits >> width == 0) return;
  c.error(absl::StrCat("the constant ", literal_to_string(c.result_type().scalar, bits),
                       " has more bits than ", info(c.result_type().scalar).name, ", which has ",
                       width));
}

void check_undef(RuleContext& c) {
  if (!c.result_type().is_data()) c.error(absl::StrCat(c.result_text(), ", but must be data"));
}

void check_var(RuleContext& c) {
  if (c.stage() < Stage::kPureSsa) return;
  c.error("a variable is left, but from here on values are immutable",
          "run the pass promote-vars first");
}

void check_var_load(RuleContext& c) {
  require_result(c, c.type(c.op().slot()).content(), "the variable holds");
}

void check_var_store(RuleContext& c) {
  const Type content = c.type(c.op().slot()).content();
  if (c.type(c.op().value()) == content) return;
  c.error(absl::StrCat("the variable holds ", to_string(content), ", but is given ",
                       to_string(c.type(c.op().value()))),
          "convert the value");
}

void check_for(RuleContext& c) {
  const Op* const step = c.kernel().def(c.op().step());
  const bool zero =
      step != nullptr && step->opcode == Opcode::kConst && step->attr_or(AttrKey::kBits, 1) == 0;
  if (!zero) return;
  c.error("the loop's step is 0, so the loop would not end", "use a step that is not zero");
}

// --- Conversions ---

void check_convert_rounded(RuleContext& c) {
  const Scalar from = c.type(c.op().a()).scalar;
  const Scalar to = c.result_type().scalar;
  const auto is_wide_float = [](Scalar s) { return s == Scalar::kF32 || s == Scalar::kF64; };
  const bool to_integer = is_wide_float(from) && is_integer(to) && !info(to).storage_only;
  const bool narrows = from == Scalar::kF64 && to == Scalar::kF32;
  if (from == Scalar::kF32 && to == Scalar::kE8M0) return check_power_rounding(c);
  const bool from_integer = is_integer(from) && !info(from).storage_only &&
                            (to == Scalar::kF32 || (to == Scalar::kF64 && info(from).bits == 64));
  if (to_integer || narrows || from_integer) return;
  c.error(
      absl::StrCat("'convert.rounded' does not convert ", info(from).name, " to ", info(to).name),
      is_wide_float(from) || is_wide_float(to) ? "use convert: nothing is rounded, or by way of f32"
                                               : "convert by way of f32");
}

void check_e2m1_pack(RuleContext& c) {
  check_e2m1(c, c.type(c.op().a()), c.result_type(), Scalar::kF32);
}

void check_e2m1_unpack(RuleContext& c) {
  check_e2m1(c, c.result_type(), c.type(c.op().a()), Scalar::kF16);
}

void check_bitcast(RuleContext& c) {
  const Scalar from = c.type(c.op().a()).scalar;
  const Scalar to = c.result_type().scalar;
  const bool bools = from == Scalar::kBool || to == Scalar::kBool;
  if (info(from).bits == info(to).bits && !bools) return;
  c.error(absl::StrCat("'bitcast' keeps the bits, but ", info(from).name, " has ", value_bits(from),
                       " and ", info(to).name, " has ", value_bits(to)),
          "use convert to keep the value instead");
}

// --- Vectors and fragments ---

void check_pack(RuleContext& c) {
  int64_t count = 0;
  const auto elements = c.op().elements();
  for (size_t i = 0; i < elements.size(); ++i) {
    const Type type = c.type(elements[i]);
    count += type.count;
    if (type.scalar == c.result_type().scalar) continue;
    c.error(absl::StrCat("operand ", i + 1, " of 'pack' has elements of ", info(type.scalar).name,
                         ", but its result has ", info(c.result_type().scalar).name),
            "convert them to one type");
    return;
  }
  if (!has_elements(c.result_type())) {
    c.error(absl::StrCat(c.result_text(), ", but must be a vector or a fragment"));
  } else if (count != c.result_type().count) {
    c.error(absl::StrCat("'pack' is given ", counted(count, "element"), ", but its result has ",
                         c.result_type().count));
  }
}

void check_extract(RuleContext& c) {
  if (!takes_elements(c)) return;
  require_result(c, c.type(c.op().a()).element(), "the elements are");
  check_elements(c, 1);
}

void check_slice(RuleContext& c) {
  if (!takes_elements(c)) return;
  if (!has_elements(c.result_type()) || c.result_type().scalar != c.type(c.op().a()).scalar) {
    c.error(absl::StrCat(c.result_text(), ", but must be a vector or a fragment of ",
                         info(c.type(c.op().a()).scalar).name));
    return;
  }
  check_elements(c, c.result_type().count);
}

void check_splat(RuleContext& c) {
  if (c.type(c.op().a()).is_scalar() && has_elements(c.result_type()) &&
      c.result_type().scalar == c.type(c.op().a()).scalar) {
    return;
  }
  c.error(absl::StrCat("'splat' makes a vector or a fragment of one element, not ",
                       to_string(c.result_type()), " of ", to_string(c.type(c.op().a()))));
}

// --- Promises ---

void check_assume_range(RuleContext& c) {
  const IntFacts promised = promised_facts(c.op());
  if (promised.min <= promised.max) return;
  c.error(absl::StrCat("'assume_range' from ", promised.min, " to ", promised.max,
                       " promises what no number keeps"),
          "both bounds are included, the lower one comes first");
}

// --- Values of the launch ---

namespace {

// What a value comes from.
std::string described(RuleContext& c, ValueId value) {
  const Value& v = c.kernel().value(value);
  if (valid(v.def)) return c.quoted(v.def) + c.at_place(v.def);
  const OpId owner = c.kernel().region(v.region).parent;
  if (valid(owner)) return absl::StrCat("a number of ", c.quoted(owner), c.at_place(owner));
  return absl::StrCat(c.name(value), ", which is ", to_string(v.type));
}

}  // namespace

void check_at_launch(RuleContext& c) {
  if (!c.result_type().is_scalar()) {
    return c.error(absl::StrCat(c.result_text(), ", but must be one number"));
  }
  const auto unknown = unknown_at_launch(c.kernel(), c.op().a());
  if (!unknown) return;
  c.error(absl::StrCat(c.quoted(), " of a value that the host cannot compute: it depends on ",
                       described(c, *unknown)),
          "make it of scalar parameters, extents and strides of parameters, and constants, by "
          "arithmetic of integers");
}

void check_require(RuleContext& c) {
  for (const ValueId operand : c.op().operands) {
    const auto unknown = unknown_at_launch(c.kernel(), operand);
    if (!unknown) continue;
    return c.error(
        absl::StrCat(c.quoted(), " of what the host cannot know before a launch: it depends on ",
                     described(c, *unknown)),
        "ask for relations of integer parameters, extents and strides of parameters, block_dim, "
        "grid_dim and constants; what a thread computes is for device_assert()");
  }
  const absl::string_view message = c.text_attr(AttrKey::kMessage);
  size_t numbers = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    if (message[i] != '%') continue;
    const bool is_percent = i + 1 < message.size() && message[i + 1] == '%';
    i += is_percent ? 1 : 0;
    numbers += is_percent ? 0 : 1;
  }
  if (numbers == c.op().numbers().size()) return;
  c.error(absl::StrCat(c.quoted(), " has ", c.op().numbers().size(), " numbers for a message with ",
                       numbers, " places"),
          "give the message a '%' for each number, and \"%%\" for a percent sign");
}

void check_launch_grid(RuleContext& c) {
  for (const ValueId operand : c.op().operands) {
    const auto unknown = unknown_at_launch(c.kernel(), operand, /*knows_grid=*/false);
    if (!unknown) continue;
    return c.error(
        absl::StrCat(c.quoted(), " of what the host cannot know before a launch: it depends on ",
                     described(c, *unknown)),
        "make it of integer parameters, extents and strides of parameters, block_dim and "
        "constants, by arithmetic of integers");
  }
  if (c.op().parent != c.kernel().body()) {
    return c.error(absl::StrCat(c.quoted(), " under a condition or in a loop"),
                   "a launch has one grid: say it in the kernel's body");
  }
  int count = 0;
  for (const OpId id : c.kernel().ops(c.kernel().body())) {
    count += c.kernel().op(id).opcode == Opcode::kLaunchGrid ? 1 : 0;
  }
  if (count > 1) c.error(absl::StrCat(c.quoted(), " is there ", count, " times"), "say it once");
}

}  // namespace heddle::ir
