// Rules of products of matrices: that mma_atoms.def has an atom for their types and shapes.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/mma_atom.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

// The remainder that elements leave when `unit` divides them, where it is known.
std::optional<int64_t> remainder_of(const Kernel& kernel, IntAnalysis& ints, ValueId elements,
                                    int64_t unit) {
  int64_t sum = 0;
  while (!ints.divisible(elements, unit)) {
    if (const auto constant = kernel.constant_int(elements)) return (sum + *constant % unit) % unit;
    const Op* const op = kernel.def(elements);
    if (op == nullptr || op->opcode != Opcode::kAdd) return std::nullopt;
    const auto constant = kernel.constant_int(op->b());
    sum += constant.value_or(0) % unit;
    if (!constant && !ints.divisible(op->b(), unit)) return std::nullopt;
    elements = op->a();
  }
  return sum % unit;
}

// Descriptors count 16 bytes from the start of an array, which is aligned to as many.
void check_start_of_tile(RuleContext& c) {
  constexpr int64_t kUnit = 16;
  const Kernel& kernel = c.kernel();
  const int64_t size = bytes_of(c.type(c.op().view()).scalar);
  int64_t bytes = 0;
  for (const Op* op = &c.op(); op == nullptr || op->opcode != Opcode::kShared;
       op = kernel.def(op->view())) {
    if (op == nullptr || (op != &c.op() && op->opcode != Opcode::kSubview)) return;
    const auto remainder = remainder_of(kernel, c.ints(), op->offset(), kUnit / size);
    if (!remainder) return;
    bytes += *remainder * size;
  }
  bytes = (bytes % kUnit + kUnit) % kUnit;
  if (bytes == 0) return;
  c.error(absl::StrCat("this tile starts ", bytes, " bytes behind a multiple of ", kUnit,
                       " bytes, and descriptors count in ", kUnit, " bytes"),
          absl::StrCat("start it at a multiple of ", kUnit / size, " elements"));
}

// "f16 by f16 into f32".
std::string text_of(const MmaTypes& types) {
  return absl::StrCat(info(types.a).name, " by ", info(types.b).name, " into ",
                      info(types.accumulator).name);
}

// The first row for the types; an error where there is none.
const MmaAtom* require_types(RuleContext& c, const MmaTypes& types) {
  const MmaAtom* const atom = find_mma_atom(types);
  if (atom == nullptr) {
    c.error(
        absl::StrCat(c.quoted(), " does not multiply ", text_of(types)),
        absl::StrCat("bring the operands to the types of an atom: ", mma_types_text(types.kind)));
  }
  return atom;
}

void require_threads(RuleContext& c, int threads) {
  if (c.kernel().has_dynamic_block() || c.kernel().block.count() % threads == 0) return;
  c.error(absl::StrCat(c.quoted(), " is one operation of ", threads, " threads, but the block has ",
                       c.kernel().block.count()),
          absl::StrCat("use a block of a multiple of ", threads, " threads"));
}

// What a warp-group's product takes as a or b beside its types.
void check_forms(RuleContext& c, const MmaAtom& atom, const MmaTypes& types) {
  const Type a = c.type(c.op().a());
  const bool in_registers = a.is_pending();
  if (in_registers) {
    const int count = fragment_of(atom, MmaOperand::kA, types.a, 0).values();
    if (a.count != count) {
      c.error(absl::StrCat("operand a of this wgmma is ", to_string(a), ", but a thread has ",
                           count, " elements of ", atom.m, " x ", atom.k),
              absl::StrCat("begin a fragment of ", count, " elements"));
    }
    if (c.attr_or(AttrKey::kTransposeA, 0) != 0) {
      c.error("this wgmma transposes a, which is in registers",
              "leave 'transpose_a' out, and put the elements where the fragment has them");
    }
    if (c.attr_or(AttrKey::kNegateA, 0) != 0) {
      c.error("this wgmma negates a, which is in registers",
              "leave 'negate_a' out, and negate the fragment or b");
    }
  }
  for (const auto& [attr, scalar] :
       {std::pair{AttrKey::kTransposeA, types.a}, std::pair{AttrKey::kTransposeB, types.b}}) {
    if (c.attr_or(attr, 0) == 0 || atom.majors == MmaMajors::kEitherMajor) continue;
    c.error(absl::StrCat("this wgmma transposes a tile of ", info(scalar).name,
                         ", and only tiles of 16-bit elements can be"),
            "store the tile with its rows contiguous along k");
  }
  for (const AttrKey attr : {AttrKey::kNegateA, AttrKey::kNegateB}) {
    if (c.attr_or(attr, 0) == 0 || !is_integer(types.accumulator)) continue;
    c.error(absl::StrCat("this wgmma of integers has no '", info(attr).name, "'"),
            "subtract what it returns");
  }
}

// Elements of an accumulator of that width, or of a fragment in the place of a.
bool is_wgmma_fragment(Type type) {
  for (const MmaAtom& atom : mma_atoms()) {
    if (atom.kind != MmaKind::kWgmma) continue;
    if (atom.accumulator == type.scalar && contains(atom.n, 2 * type.count)) return true;
    if (atom.a.contains(type.scalar) &&
        fragment_of(atom, MmaOperand::kA, type.scalar, 0).values() == type.count) {
      return true;
    }
  }
  return false;
}

}  // namespace

void check_mma(RuleContext& c) {
  const Op& op = c.op();
  const Type a = c.type(op.a()), b = c.type(op.b()), d = c.type(op.accumulator());
  if (c.result_type() != d) {
    c.error(absl::StrCat(c.result_text(), ", but its accumulator is ", to_string(d)));
  }
  const MmaProduct product = product_of(c.kernel(), op);
  const MmaTypes& types = product.types;
  if (require_types(c, types) == nullptr) return;
  require_threads(c, info(types.kind).threads());
  if (product.atom != nullptr) {
    return c.require(product.atom->feature, "convert the operands to f16",
                     mma_name(*product.atom, types, product.n));
  }
  std::vector<std::string> choices;
  for (const MmaAtom& atom : mma_atoms()) {
    if (find_mma_atom(types, product.n, atom.k) != &atom) continue;
    const auto values = [&](MmaOperand operand, Scalar scalar) {
      return fragment_of(atom, operand, scalar, product.n).values();
    };
    choices.push_back(absl::StrCat(values(MmaOperand::kA, types.a), ", ",
                                   values(MmaOperand::kB, types.b), " and ",
                                   values(MmaOperand::kAccumulator, types.accumulator), " for m",
                                   atom.m, "n", product.n, "k", atom.k));
  }
  c.error(absl::StrCat("there is no mma of ", text_of(types), " whose lanes have ", a.count, ", ",
                       b.count, " and ", d.count, " elements of a, b and the accumulator"),
          absl::StrCat("give each lane ", absl::StrJoin(choices, ", or ")));
}

void check_smem_desc(RuleContext& c) {
  const Type view = c.type(c.op().view());
  if (view.space == Space::kShared && is_mma_input(MmaKind::kWgmma, view.scalar)) {
    return check_start_of_tile(c);
  }
  c.error(absl::StrCat(
              "'smem.desc' describes tiles in shared memory, of types that wgmma multiplies, not ",
              to_string(view)),
          "copy the tile to a shared array first, of f16, bf16, tf32, e4m3, e5m2, i8 or u8");
}

void check_wgmma_begin(RuleContext& c) {
  const Type type = c.result_type();
  if (is_wgmma_fragment(type)) return;
  c.error(absl::StrCat("no wgmma takes ", to_string(type)),
          "use an accumulator of f32, f16 or i32 with half as many elements as its product has "
          "columns, or as operand a 16 bytes of elements");
}

void check_wgmma(RuleContext& c) {
  const MmaProduct product = product_of(c.kernel(), c.op());
  const MmaTypes& types = product.types;
  require_threads(c, info(types.kind).threads());
  const MmaAtom* const atom = require_types(c, types);
  if (atom == nullptr) return;
  if (product.atom == nullptr) {
    c.error(absl::StrCat("an accumulator of ", to_string(c.result_type()), " has ", product.n,
                         " columns, and wgmma has ", mma_shapes_text(types)),
            "use an accumulator with half as many elements as one of these widths");
  }
  c.require(atom->feature, "", mma_name(*atom, types, product.n));
  check_forms(c, *atom, types);
}

}  // namespace heddle::ir
