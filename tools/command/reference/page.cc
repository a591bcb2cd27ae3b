#include "heddle/tools/command/reference/page.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "heddle/dsl/math/math.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/mma_atom.h"
#include "heddle/tools/command/reference/example.h"
#include "heddle/tools/command/reference/op_comments.h"
#include "heddle/tools/command/reference/spelling.h"

namespace heddle::tools {
namespace {

using ir::Scalar;

constexpr char kIntroduction[] = R"(# Reference

Every operation of Heddle's IR, in the order of `ir/ops.def`, and the mathematical functions. Traced kernels consist
of these operations. `heddle reference --out dsl/REFERENCE.md` writes this page: change the tables, not the page.
[The language](LANGUAGE.md) says what one writes for what.

A signature has the operands, each with its name, and the results. `?` is an optional operand, `*` any number of them,
`!` an operand whose register the result takes over. The letters are types:

| Letter | Type |
|---|---|
| `T` | data of the types listed: a scalar, or elementwise a vector or fragment |
| `B`, `U` | a bool, and any data, shaped like `T` |
| `I` | i32 or i64 |
| `V`, `E`, `C` | a view, an element of it or a vector of them, the result of a bounds check |
| `S` | a variable |
| `F`, `Q`, `D` | a fragment, one that the tensor cores still write or read, a matrix descriptor |
| `P` | `D`, or `Q` that is only read |
| `M` | a tensor map |
| `X` | any value |

The PTX is that of sm_90a, before ptxas. An op without an instruction of its own is a constant of the instruction that
uses it, or stands for registers that other ops or the kernel's entry (coordinates, extents) write.
)";

struct Phrase {
  ir::Trait trait;
  absl::string_view text;  // empty: of no interest to users
};
constexpr Phrase kTraits[] = {
#define HEDDLE_TRAIT(enumerator, text) {ir::enumerator, text},
#include "heddle/ir/traits.def"
};

// Markdown's own signs, out of code.
std::string escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"*", "\\*"}, {"<", "\\<"}, {"|", "\\|"}, {"_", "\\_"}});
}

template <class Positions>
void append_positions(const Positions& positions, int count, bool named,
                      std::vector<std::string>& words) {
  constexpr const char* kArities[] = {"", "?", "*"};
  for (int i = 0; i < count; ++i) {
    const ir::Position position = positions[static_cast<size_t>(i)];
    words.push_back(absl::StrCat(named ? name_of(position.name) : "", named ? ":" : "",
                                 name_of(position.role), position.tied ? "!" : "",
                                 kArities[static_cast<size_t>(position.arity)]));
  }
}

std::string signature_of(const ir::OpInfo& row) {
  std::vector<std::string> words;
  append_positions(row.signature.operands, row.signature.operand_count, /*named=*/true, words);
  words.push_back("->");
  append_positions(row.signature.results, row.signature.result_count, /*named=*/false, words);
  return absl::StrJoin(words, " ");
}

// "sm_80 and up", "sm_90a".
std::string targets_with(const ir::Targets& targets, Scalar scalar) {
  std::vector<absl::string_view> names;
  bool gap = false, upward = true;
  for (const ir::Target& target : ir::kTargets) {
    const bool has = supports(target, targets, scalar);
    if (has) names.push_back(target.name);
    if (has && gap) upward = false;
    gap = !names.empty() && !has;
  }
  upward = upward && !gap;
  return upward ? absl::StrCat(names.front(), " and up") : absl::StrJoin(names, ", ");
}

// Each set of targets, with the types that have it.
std::string types_and_targets(const ir::OpInfo& row) {
  if (row.data_class == ir::DataClass::kNone) return targets_with(row.targets, Scalar::kI32);
  using Names = std::vector<absl::string_view>;
  std::vector<std::pair<std::string, Names>> groups;
  for (int i = 1; i < ir::kScalarCount; ++i) {
    const auto scalar = static_cast<Scalar>(i);
    if (!admits(row.data_class, scalar) || !first_supporting(row.targets, scalar)) continue;
    const std::string targets = targets_with(row.targets, scalar);
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == targets; });
    auto& group = known == groups.end() ? groups.emplace_back(targets, Names()) : *known;
    group.second.push_back(ir::info(scalar).name);
  }
  return absl::StrJoin(groups, "; ", [](std::string* out, const auto& group) {
    absl::StrAppend(out, "T = ", absl::StrJoin(group.second, " "), ": ", group.first);
  });
}

// The vectors that an atomic adds to at once.
std::string vector_sums() {
  std::vector<std::string> words;
  for (int i = 1; i < ir::kScalarCount; ++i) {
    for (const int count : {2, 4, 8}) {
      const ir::Type vector = ir::Type::vector(static_cast<Scalar>(i), count);
      const ir::VectorSum* const sum = ir::find_vector_sum(vector);
      if (sum == nullptr) continue;
      words.push_back(
          absl::StrCat(to_string(vector), sum->global_only ? " in global memory" : "",
                       sum->feature == ir::Feature::kBase
                           ? ""
                           : absl::StrCat(" (from ", first_with(sum->feature)->name, " on)")));
    }
  }
  return absl::StrJoin(words, ", ");
}

// Of which elements of memory the atomics are, which the columns of the table do not say.
std::string element_types(ir::Opcode opcode) {
  std::vector<std::string> words;
  const auto append = [&](absl::string_view what, auto&& has) {
    std::vector<std::string> types;
    for (int i = 1; i < ir::kScalarCount; ++i) {
      const auto scalar = static_cast<Scalar>(i);
      const auto first = std::find_if(ir::kTargets.begin(), ir::kTargets.end(),
                                      [&](const auto& target) { return has(scalar, target); });
      if (first == ir::kTargets.end()) continue;
      types.push_back(absl::StrCat(
          ir::info(scalar).name,
          first == ir::kTargets.begin() ? "" : absl::StrCat(" (from ", first->name, " on)")));
    }
    words.push_back(absl::StrCat(what, absl::StrJoin(types, " ")));
  };
  if (opcode == ir::Opcode::kAtomicCas) {
    append("", [](Scalar scalar, const auto&) { return ir::has_compare_and_swap(scalar); });
  }
  for (int i = 0; opcode == ir::Opcode::kAtomic && i < ir::kAtomicOpCount; ++i) {
    append(absl::StrCat("`", ir::kAtomicOpNames[i], "` "), [&](Scalar scalar, const auto& target) {
      return ir::has_atomic(static_cast<ir::AtomicOp>(i), scalar, target);
    });
  }
  if (opcode == ir::Opcode::kAtomic) words.push_back(absl::StrCat("`add` ", vector_sums()));
  return absl::StrJoin(words, "; ");
}

// The products of matrices that the op runs, a line each.
std::string atoms_of(ir::Opcode opcode) {
  std::string lines;
  for (const ir::MmaAtom& atom : ir::mma_atoms()) {
    const ir::MmaKindInfo& kind = info(atom.kind);
    if (kind.op != opcode || kind.scope == ir::Scope::kThread) continue;
    const ir::Target* const first = first_with(atom.feature);
    const bool late = supports(*first, ir::info(opcode).targets, Scalar::kNone) &&
                      first != ir::first_supporting(ir::info(opcode).targets, Scalar::kNone);
    absl::StrAppend(&lines, "\n  - ", to_string(atom),
                    late ? absl::StrCat(" (from ", first->name, " on)") : "",
                    atom.majors == ir::MmaMajors::kEitherMajor ? ", of either major" : "");
  }
  return lines.empty() ? "" : absl::StrCat("one of", lines);
}

std::string attributes_of(const ir::OpInfo& row) {
  std::vector<std::string> words;
  for (int i = 0; i < row.attr_count; ++i) {
    const ir::AttrRule rule = row.attrs[static_cast<size_t>(i)];
    const ir::AttrInfo& attr = ir::info(rule.key);
    constexpr const char* kKinds[] = {"an integer", "", "a text", "integers", "bits"};
    words.push_back(
        absl::StrCat("`", attr.name, "`", rule.required ? "" : " (optional)", ": ",
                     attr.kind == ir::AttrKind::kEnum
                         ? absl::StrCat("`", absl::StrJoin(attr.enumerators, "` `"), "`")
                         : kKinds[static_cast<size_t>(attr.kind)]));
  }
  return absl::StrJoin(words, "; ");
}

// "operand 1", "operands 2 and 3".
std::string operand_list(const ir::OpInfo& row, uint8_t mask) {
  std::vector<std::string> names;
  for (int i = 0; i < row.signature.operand_count; ++i) {
    const ir::OperandName name = row.signature.operands[static_cast<size_t>(i)].name;
    if ((mask >> i & 1) != 0) names.push_back(absl::StrCat("`", name_of(name), "`"));
  }
  return absl::StrJoin(names, " and ");
}

std::string behaviour_of(const ir::OpInfo& row) {
  std::vector<std::string> words;
  for (const Phrase& phrase : kTraits) {
    if (has(row, phrase.trait) && !phrase.text.empty()) words.emplace_back(phrase.text);
  }
  const ir::Effects& effects = row.effects;
  const char* const when = effects.async ? ", complete after a wait" : "";
  if (effects.reads != 0) {
    words.push_back(absl::StrCat("reads the memory of ", operand_list(row, effects.reads), when));
  }
  if (effects.writes != 0) {
    words.push_back(absl::StrCat("writes the memory of ", operand_list(row, effects.writes), when));
  }
  if (effects.orders) words.push_back("orders the accesses before it against those after it");
  if (effects.unnamed) words.push_back("may write any memory");
  if (is_convergent(row)) {
    words.push_back(absl::StrCat("convergent: the threads of a ", name_of(row.convergence),
                                 " that take part arrive together"));
  }
  return absl::StrJoin(words, "; ");
}

void append_item(absl::string_view name, absl::string_view text, std::string& page) {
  if (!text.empty()) absl::StrAppend(&page, "- ", name, ": ", text, "\n");
}

// What programs and plug-ins have added.
void append_ops_from_outside(std::string& page) {
  bool first = true;
  for (const ir::Opcode opcode : ir::all_opcodes()) {
    const ir::CustomOp* const op = ir::custom_op(opcode);
    if (op == nullptr) continue;
    if (std::exchange(first, false)) absl::StrAppend(&page, "\n## Operations from outside\n");
    absl::StrAppend(&page, "\n### `", op->row.mnemonic, "`\n\n");
    if (!op->summary.empty()) absl::StrAppend(&page, escaped(op->summary), "\n\n");
    append_item("Signature", absl::StrCat("`", signature_of(op->row), "`"), page);
    append_item("Behaviour", behaviour_of(op->row), page);
    for (const ir::PtxForm& form : op->ptx) {
      std::vector<absl::string_view> targets;
      for (const ir::Target& target : ir::kTargets) {
        if (has(target, form.needs)) targets.push_back(target.name);
      }
      append_item(absl::StrCat("PTX", form.type == Scalar::kNone ? "" : " where T = ",
                               form.type == Scalar::kNone ? "" : ir::info(form.type).name,
                               targets.size() == ir::kTargets.size()
                                   ? ""
                                   : absl::StrCat(" on ", absl::StrJoin(targets, ", "))),
                  absl::StrCat("`", form.text, "`"), page);
    }
    const bool has_meaning = op->meaning || op->warp_meaning;
    if (op->ptx.empty()) append_item("PTX", has_meaning ? "-" : "- (a mark for a pass)", page);
    if (!has_meaning) append_item("Interpreter", "-", page);
  }
}

Status append_op(const OpComment& op, std::string& page) {
  const std::optional<ir::Opcode> opcode = ir::opcode_from_mnemonic(op.mnemonic);
  if (!opcode) {
    return InternalError(absl::StrCat("ops.def has no row '", op.mnemonic, "'"));
  }
  const ir::OpInfo& row = ir::info(*opcode);
  absl::StrAppend(&page, "\n### `", op.mnemonic, "`\n\n");
  if (!op.meaning.empty()) absl::StrAppend(&page, escaped(op.meaning), "\n\n");
  const auto item = [&](absl::string_view name, absl::string_view text) {
    append_item(name, text, page);
  };
  const Spelling spelling = spelling_of(*opcode);
  if (!spelling.text.empty()) {
    item("C++", absl::StrCat("`", spelling.text, "`"));
  } else if (!spelling.why_none.empty()) {
    item("C++", absl::StrCat("- (", spelling.why_none, ")"));
  } else {
    return InternalError(absl::StrCat("spellings.def has no row for '", op.mnemonic, "'"));
  }
  item("Signature",
       absl::StrCat("`", signature_of(row), "`", op.elementwise ? ", element by element" : ""));
  item("Targets", types_and_targets(row));
  item("Elements", element_types(*opcode));
  item("Atoms", atoms_of(*opcode));
  item("Attributes", attributes_of(row));
  item("Behaviour", behaviour_of(row));
  const StatusOr<OpExample> example = example_of(*opcode);
  if (!example.ok()) return example.status();
  if (!example->why_none.empty()) {
    item("PTX", absl::StrCat("- (", example->why_none, ")"));
    return OkStatus();
  }
  absl::StrAppend(&page, "\n```\n", example->ir, "\n");
  for (const std::string& line : example->ptx) absl::StrAppend(&page, "    ", line, "\n");
  if (example->ptx.empty()) absl::StrAppend(&page, "    // no instruction of its own\n");
  absl::StrAppend(&page, "```\n");
  return OkStatus();
}

std::string bound(double ulps) { return ulps == detail::kNoFunction ? "-" : absl::StrCat(ulps); }

void append_math(std::string& page) {
  absl::StrAppend(&page, R"(
## Mathematical functions

Of values, vectors and fragments (`heddle/dsl/math/math.h`). The bounds are in units in the last place of the exact
value, and hold for every argument; 0 is exact or correctly rounded. f16 and bf16 are computed as f32 and rounded once
more. There is no function yet where the bound is -.

| Function | Meaning | f32 | f64 |
|---|---|---|---|
)");
  const auto row = [&](absl::string_view name, absl::string_view arguments, double f32, double f64,
                       absl::string_view meaning) {
    absl::StrAppend(&page, "| `", name, arguments, "` | ", escaped(meaning), " | ", bound(f32),
                    " | ", bound(f64), " |\n");
  };
#define HEDDLE_MATH_1(name, f32, f64, meaning) row(#name, "(x)", f32, f64, meaning);
#define HEDDLE_MATH_2(name, f32, f64, meaning) row(#name, "(x, y)", f32, f64, meaning);
#define HEDDLE_MATH_3(name, f32, f64, meaning) row(#name, "(x, y, z)", f32, f64, meaning);
#define HEDDLE_MATH_4(name, f32, f64, meaning) row(#name, "(x, y, z, w)", f32, f64, meaning);
#include "heddle/dsl/math/math.def"
}

}  // namespace

StatusOr<std::string> reference_page() {
  std::string page = kIntroduction;
  for (const OpSection& section : parse_op_comments(ops_def())) {
    absl::StrAppend(&page, "\n## ", section.title, "\n");
    for (const OpComment& op : section.ops) {
      if (Status s = append_op(op, page); !s.ok()) return s;
    }
  }
  append_ops_from_outside(page);
  append_math(page);
  return page;
}

}  // namespace heddle::tools
