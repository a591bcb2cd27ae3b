#include "heddle/ir/mma_atom.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/check.h"

namespace heddle::ir {
namespace {

// The words of mma_atoms.def.
constexpr ScalarSet kF16(Scalar::kF16);
constexpr ScalarSet kBF16(Scalar::kBF16);
constexpr ScalarSet kTF32(Scalar::kTF32);
constexpr ScalarSet kF32(Scalar::kF32);
constexpr ScalarSet kF64(Scalar::kF64);
constexpr ScalarSet kI8(Scalar::kI8);
constexpr ScalarSet kU8(Scalar::kU8);
constexpr ScalarSet kFloat8s(Scalar::kE4M3, Scalar::kE5M2);
constexpr ScalarSet kBytes(Scalar::kI8, Scalar::kU8);

constexpr MmaKindInfo kKinds[] = {
#define HEDDLE_MMA_KIND(enumerator, op, scope, completion, tiles, ptx) \
  {Opcode::op, Scope::scope, MmaCompletion::completion, MmaTiles::tiles, ptx},
#include "heddle/ir/mma_atoms.def"
};

constexpr MmaAtom kAtoms[] = {
#define HEDDLE_MMA_ATOM(kind, a, b, accumulator, m, n, k, majors, feature)            \
  {MmaKind::kind,   a, b, Scalar::accumulator, m, MmaWidths::n, k, MmaMajors::majors, \
   Feature::feature},
#include "heddle/ir/mma_atoms.def"
};

constexpr int kLanesOfRow = 4;   // lanes that share a row of a fragment
constexpr int kRowsOfWarp = 8;   // rows that a warp's registers of one number hold
constexpr int kWarpColumns = 8;  // n of all products of a warp
constexpr int kWarpRows = 16;    // of a, in a warp
constexpr int kRegisterBits = 32;

bool has_types(const MmaAtom& atom, const MmaTypes& types) {
  return atom.kind == types.kind && atom.a.contains(types.a) && atom.b.contains(types.b) &&
         atom.accumulator == types.accumulator;
}

std::string name_of_set(ScalarSet set) {
  std::vector<absl::string_view> names;
  for (int i = 0; i < kScalarCount; ++i) {
    if (set.contains(static_cast<Scalar>(i))) names.push_back(info(static_cast<Scalar>(i)).name);
  }
  return absl::StrJoin(names, " or ");
}

// "f16 x f16 + f32".
std::string types_of(const MmaAtom& atom) {
  return absl::StrCat(name_of_set(atom.a), " x ", name_of_set(atom.b), " + ",
                      info(atom.accumulator).name);
}

bool has_one_width(const MmaAtom& atom) {
  return atom.n == MmaWidths::kOne || atom.n == MmaWidths::kEight;
}
// "m16n8k16", or "m64nNk16".
std::string shape_of(const MmaAtom& atom) {
  return absl::StrCat("m", atom.m, "n", has_one_width(atom) ? words_of(atom.n) : "N", "k", atom.k);
}

int size_of(const std::array<MmaMode, 3>& modes) {
  return modes[0].extent * modes[1].extent * modes[2].extent;
}
int offset_of(const std::array<MmaMode, 3>& modes, int number) {
  int offset = 0;
  for (const MmaMode& mode : modes) {
    offset += number % mode.extent * mode.stride;
    number /= mode.extent;
  }
  return offset;
}

}  // namespace

const MmaKindInfo& info(MmaKind kind) { return kKinds[static_cast<size_t>(kind)]; }

bool contains(MmaWidths widths, int n) {
  const auto multiple = [n](int of, int from) { return n >= from && n <= 256 && n % of == 0; };
  switch (widths) {
    case MmaWidths::kOne:
      return n == 1;
    case MmaWidths::kEight:
      return n == 8;
    case MmaWidths::kEighths:
      return multiple(8, 8);
    case MmaWidths::kIntegerWidths:
      return multiple(16, 16) || n == 8 || n == 24;
  }
  return false;
}

absl::string_view words_of(MmaWidths widths) {
  switch (widths) {
    case MmaWidths::kOne:
      return "1";
    case MmaWidths::kEight:
      return "8";
    case MmaWidths::kEighths:
      return "a multiple of 8 up to 256";
    case MmaWidths::kIntegerWidths:
      return "8, 24, or a multiple of 16 up to 256";
  }
  return {};
}

absl::Span<const MmaAtom> mma_atoms() { return kAtoms; }

const MmaAtom* find_mma_atom(const MmaTypes& types, int n, int k) {
  for (const MmaAtom& atom : kAtoms) {
    if (has_types(atom, types) && atom.k == k && contains(atom.n, n)) return &atom;
  }
  return nullptr;
}

const MmaAtom* find_mma_atom(const MmaTypes& types) {
  for (const MmaAtom& atom : kAtoms) {
    if (has_types(atom, types)) return &atom;
  }
  return nullptr;
}

MmaProduct product_of(const Kernel& kernel, const Op& op) {
  const Type a = kernel.type(op.a()), b = kernel.type(op.b()), d = kernel.type(op.accumulator());
  if (op.opcode == Opcode::kWgmma) {
    MmaProduct product = {{MmaKind::kWgmma, a.scalar, b.scalar, d.scalar}, 2 * d.count, nullptr};
    const MmaAtom* const atom = find_mma_atom(product.types);
    if (atom != nullptr && contains(atom->n, product.n)) product.atom = atom;
    return product;
  }
  MmaProduct product = {{MmaKind::kMma, a.scalar, b.scalar, d.scalar}, kWarpColumns, nullptr};
  for (const MmaAtom& atom : kAtoms) {
    const auto values = [&](MmaOperand operand, Scalar scalar) {
      return fragment_of(atom, operand, scalar, kWarpColumns).values();
    };
    if (has_types(atom, product.types) && product.atom == nullptr &&
        values(MmaOperand::kA, a.scalar) == a.count &&
        values(MmaOperand::kB, b.scalar) == b.count &&
        values(MmaOperand::kAccumulator, d.scalar) == d.count) {
      product.atom = &atom;
    }
  }
  return product;
}

bool is_mma_input(MmaKind kind, Scalar scalar) {
  for (const MmaAtom& atom : kAtoms) {
    if (atom.kind == kind && (atom.a.contains(scalar) || atom.b.contains(scalar))) return true;
  }
  return false;
}

bool is_mma_accumulator(MmaKind kind, Scalar scalar) {
  for (const MmaAtom& atom : kAtoms) {
    if (atom.kind == kind && atom.accumulator == scalar) return true;
  }
  return false;
}

std::string mma_types_text(MmaKind kind) {
  std::vector<std::string> texts;
  for (const MmaAtom& atom : kAtoms) {
    if (atom.kind != kind) continue;
    const std::string text = types_of(atom);
    bool known = false;
    for (const std::string& other : texts) known |= other == text;
    if (!known) texts.push_back(text);
  }
  return absl::StrJoin(texts, ", ");
}

std::string mma_shapes_text(const MmaTypes& types) {
  std::vector<std::string> shapes;
  for (const MmaAtom& atom : kAtoms) {
    if (!has_types(atom, types)) continue;
    const std::string text = absl::StrCat(shape_of(atom), has_one_width(atom) ? "" : " with N ",
                                          has_one_width(atom) ? "" : words_of(atom.n));
    bool known = false;
    for (const std::string& other : shapes) known |= other == text;
    if (!known) shapes.push_back(text);
  }
  return absl::StrJoin(shapes, ", ");
}

std::string to_string(const MmaAtom& atom) {
  return absl::StrCat(shape_of(atom), " ", types_of(atom), has_one_width(atom) ? "" : ", N ",
                      has_one_width(atom) ? "" : words_of(atom.n));
}

std::string mma_name(const MmaAtom& atom, const MmaTypes& types, int n) {
  return absl::StrCat(info(info(atom.kind).op).mnemonic, " m", atom.m, "n", n, "k", atom.k, " ",
                      info(types.a).name, " x ", info(types.b).name, " + ",
                      info(types.accumulator).name);
}

int MmaFragment::threads() const { return size_of(thread); }
int MmaFragment::values() const { return size_of(value); }

MmaElement MmaFragment::at(int thread_number, int value_number) const {
  const int offset = offset_of(thread, thread_number) + offset_of(value, value_number);
  return {offset % rows, offset / rows};
}

// All fragments of warps are one family. Lane l has row l / 4. Of an operand, a register holds neighbours along k, and
// lane l % 4 the register of that number of a group of four; of an accumulator it has two neighbours along n. The next
// registers are those of eight rows further down, where a warp has 16 of them, and then those of the next groups.
MmaFragment fragment_of(const MmaAtom& atom, MmaOperand operand, Scalar scalar, int n) {
  const MmaKindInfo& kind = info(atom.kind);
  const bool accumulates = operand == MmaOperand::kAccumulator;
  MmaFragment d;
  d.rows = operand == MmaOperand::kB ? n : atom.m;
  d.columns = accumulates ? n : atom.k;
  if (kind.scope == Scope::kThread) return d;
  HEDDLE_CHECK(operand != MmaOperand::kB || kind.tiles == MmaTiles::kRegisters,
               "b is a tile in shared memory");
  const int together = accumulates ? 2 : kRegisterBits / info(scalar).bits;
  const int group = kLanesOfRow * together;
  const bool both_halves = operand != MmaOperand::kB;
  d.thread = {{{kLanesOfRow, together * d.rows},
               {kRowsOfWarp, 1},
               {kind.threads() / (kLanesOfRow * kRowsOfWarp), kWarpRows}}};
  d.value = {{{together, d.rows},
              {both_halves ? 2 : 1, kRowsOfWarp},
              {d.columns / group, group * d.rows}}};
  return d;
}

}  // namespace heddle::ir
