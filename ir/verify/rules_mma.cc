// Rules of products of matrices: that mma_atoms.def has an atom for their types and shapes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/analysis/int_facts.h"
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
  IntAnalysis ints(kernel, FactUse::kIgnore);
  int64_t bytes = 0;
  for (const Op* op = &c.op(); op == nullptr || op->opcode != Opcode::kShared;
       op = kernel.def(op->view())) {
    if (op == nullptr || (op != &c.op() && op->opcode != Opcode::kSubview)) return;
    const auto remainder = remainder_of(kernel, ints, op->offset(), kUnit / size);
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

// Of a warp's product: how many elements of each operand a lane has.
struct Counts {
  int a = 0, b = 0, accumulator = 0;
  bool operator==(const Counts&) const = default;
};
constexpr int kWarpWidth = 8;  // n
Counts counts_of(const MmaAtom& atom, const MmaTypes& types) {
  const auto of = [&](MmaOperand operand, Scalar scalar) {
    return fragment_of(atom, operand, scalar, kWarpWidth).values();
  };
  return {of(MmaOperand::kA, types.a), of(MmaOperand::kB, types.b),
          of(MmaOperand::kAccumulator, types.accumulator)};
}

// The k that the fragments' counts choose; nullopt where they fit no shape.
std::optional<int> depth_of(const MmaTypes& types, const Counts& counts) {
  for (const MmaAtom& atom : mma_atoms()) {
    if (find_mma_atom(types, kWarpWidth, atom.k) != &atom) continue;
    if (counts_of(atom, types) == counts) return atom.k;
  }
  return std::nullopt;
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
  const MmaTypes types = {MmaKind::kMma, a.scalar, b.scalar, d.scalar};
  if (c.result_type() != d) {
    c.error(absl::StrCat(c.result_text(), ", but its accumulator is ", to_string(d)));
  }
  if (require_types(c, types) == nullptr) return;
  require_threads(c, info(types.kind).threads());
  const std::optional<int> k = depth_of(types, {a.count, b.count, d.count});
  if (k) {
    const MmaAtom& atom = *find_mma_atom(types, kWarpWidth, *k);
    return c.require(atom.feature, "convert the operands to f16",
                     mma_name(atom, types, kWarpWidth));
  }
  std::vector<std::string> choices;
  for (const MmaAtom& atom : mma_atoms()) {
    if (find_mma_atom(types, kWarpWidth, atom.k) != &atom) continue;
    const Counts counts = counts_of(atom, types);
    choices.push_back(absl::StrCat(counts.a, ", ", counts.b, " and ", counts.accumulator, " for m",
                                   atom.m, "n", kWarpWidth, "k", atom.k));
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
  const Op& op = c.op();
  const Type d = c.result_type();
  const MmaTypes types = {MmaKind::kWgmma, c.type(op.a()).scalar, c.type(op.b()).scalar, d.scalar};
  require_threads(c, info(types.kind).threads());
  const MmaAtom* const atom = require_types(c, types);
  if (atom == nullptr) return;
  if (!contains(atom->n, 2 * d.count)) {
    c.error(absl::StrCat("an accumulator of ", to_string(d), " has ", 2 * d.count,
                         " columns, and wgmma has ", mma_shapes_text(types)),
            "use an accumulator with half as many elements as one of these widths");
  }
  c.require(atom->feature, "", mma_name(*atom, types, 2 * d.count));
  check_forms(c, *atom, types);
}

}  // namespace heddle::ir
