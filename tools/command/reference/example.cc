#include "heddle/tools/command/reference/example.h"

#include <array>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/ptx.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::tools {
namespace {

using ir::AttrKey;
using ir::Opcode;
using ir::Role;
using ir::Scalar;

struct Written {
  const char* body = nullptr;
  const char* why_none = nullptr;
};

const std::array<Written, ir::kOpcodeCount>& written_examples() {
  static const std::array<Written, ir::kOpcodeCount> examples = [] {
    std::array<Written, ir::kOpcodeCount> all;
#define HEDDLE_EXAMPLE(op, text) all[static_cast<size_t>(Opcode::k##op)].body = text;
#define HEDDLE_NO_EXAMPLE(op, why) all[static_cast<size_t>(Opcode::k##op)].why_none = why;
#include "heddle/tools/command/reference/examples.def"
    return all;
  }();
  return examples;
}

struct KernelText {
  std::string params;
  std::string body;
};

constexpr char kUsualParams[] =
    "%a: f32, %b: f32, %u: u32, %v: u32, %i: i32, %j: i32, %l: i64, %p: bool, "
    "%x: view<f32, global, 1> [?] strides [1], %y: view<i32, global, 1> [?] strides [1], "
    "%z: view<f32, global, 2> [?, ?] strides [?, 1]";

// The first of the types that readers know best.
Scalar usual_type(const ir::OpInfo& row) {
  for (const Scalar scalar : {Scalar::kF32, Scalar::kI32}) {
    if (admits(row.data_class, scalar) && supports(ir::default_target(), row.targets, scalar)) {
      return scalar;
    }
  }
  return Scalar::kU32;
}

// nullopt: the signature does not tell.
std::optional<absl::string_view> type_of(Role role, Scalar t) {
  switch (role) {
    case Role::kT:
      return ir::info(t).name;
    case Role::kBoolLikeT:
    case Role::kBool:
      return "bool";
    case Role::kDataLikeT:
    case Role::kI32:
      return "i32";
    case Role::kU32:
      return "u32";
    case Role::kI64:
      return "i64";
    default:
      return std::nullopt;
  }
}

std::optional<std::string> usual_attrs(const ir::OpInfo& row) {
  std::vector<std::string> words;
  for (int i = 0; i < row.attr_count; ++i) {
    const ir::AttrInfo& attr = ir::info(row.attrs[static_cast<size_t>(i)].key);
    if (!row.attrs[static_cast<size_t>(i)].required) continue;
    if (attr.kind != ir::AttrKind::kEnum) return std::nullopt;
    words.push_back(absl::StrCat(attr.name, " = ", attr.enumerators.back()));
    // Not every op that takes an operation takes the last one.
    if (row.attrs[static_cast<size_t>(i)].key == AttrKey::kOp) words.back() = "op = add";
  }
  return words.empty() ? "" : absl::StrCat(" {", absl::StrJoin(words, ", "), "}");
}

std::optional<KernelText> by_signature(const ir::OpInfo& row) {
  const Scalar t = usual_type(row);
  const std::optional<std::string> attrs = usual_attrs(row);
  if (!attrs) return std::nullopt;
  std::vector<std::string> params, operands;
  for (int i = 0; i < row.signature.operand_count; ++i) {
    const ir::Position position = row.signature.operands[static_cast<size_t>(i)];
    if (position.arity != ir::Arity::kOne) continue;
    const std::optional<absl::string_view> type = type_of(position.role, t);
    if (!type) return std::nullopt;
    operands.push_back(absl::StrCat("%", std::string(1, static_cast<char>('a' + i))));
    params.push_back(absl::StrCat(operands.back(), ": ", *type));
  }
  std::string line = absl::StrCat(row.mnemonic, operands.empty() ? "" : " ",
                                  absl::StrJoin(operands, ", "), *attrs);
  params.push_back("%i: i32");
  if (row.signature.result_count == 0) return KernelText{absl::StrJoin(params, ", "), line + "\n"};
  const std::optional<absl::string_view> type = type_of(row.signature.results[0].role, t);
  if (!type) return std::nullopt;
  params.push_back(absl::StrCat("%out: view<", *type, ", global, 1> [?] strides [1]"));
  return KernelText{absl::StrJoin(params, ", "),
                    absl::StrCat("%r = ", line, " : ", *type, "\nstore %out, %r, %i\n")};
}

// The line of a body on which the op stands.
std::string line_of(const std::string& body, absl::string_view mnemonic) {
  const std::vector<std::string> lines = absl::StrSplit(body, '\n');
  for (const std::string& line : lines) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const size_t at = words.size() > 2 && words[1] == "=" ? 2 : 0;
    if (words.size() > at && words[at] == mnemonic) {
      return std::string(absl::StripAsciiWhitespace(line));
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<OpExample> example_of(Opcode opcode) {
  const ir::OpInfo& row = ir::info(opcode);
  const Written& written = written_examples()[static_cast<size_t>(opcode)];
  if (written.why_none != nullptr) return OpExample{"", {}, written.why_none};
  const std::optional<KernelText> text =
      written.body != nullptr ? KernelText{kUsualParams, written.body} : by_signature(row);
  if (!text) {
    return absl::UnimplementedError(
        absl::StrCat("'", row.mnemonic, "' has no example; fix: give it a line in examples.def"));
  }
  // Hopper where it has the op, else the first that does.
  const ir::Target& usual = ir::default_target();
  const Scalar t = usual_type(row);
  const ir::Target& target =
      supports(usual, row.targets, t) ? usual : *first_supporting(row.targets, t);
  // A kernel has an effect.
  const std::string kernel_text =
      absl::StrCat("kernel @k(", text->params, ", %end: view<i32, global, 1> [?] strides [1]) ",
                   "block(128, 1, 1) cluster(2, 1, 1) target(", target.name, ") {\n", text->body,
                   "store %end, %i, %i\n}\n");
  const auto wrong = [&](absl::string_view why) {
    return absl::InternalError(
        absl::StrCat("the example of '", row.mnemonic, "': ", why, "\n", kernel_text));
  };
  const absl::StatusOr<ir::Kernel> kernel = ir::parse(kernel_text, "example.ir");
  if (!kernel.ok()) return wrong(kernel.status().message());
  const ir::Diagnostics faults = ir::verify(*kernel, ir::Stage::kEmittable);
  if (!faults.empty()) return wrong(ir::to_string(faults));
  codegen::PtxOptions options;
  options.line_info = false;
  const absl::StatusOr<codegen::PtxModule> module = codegen::emit_ptx(*kernel, options);
  if (!module.ok()) return wrong(module.status().message());

  std::optional<ir::OpId> shown;
  kernel->walk([&](ir::OpId id) {
    if (!shown && kernel->op(id).opcode == opcode) shown = id;
  });
  OpExample example;
  example.ir = line_of(text->body, row.mnemonic);
  if (!shown || example.ir.empty()) return wrong("it lacks the op");
  const std::vector<std::string> lines = absl::StrSplit(module->text, '\n');
  for (size_t i = 0; i < lines.size() && i + 1 < module->line_ops.size(); ++i) {
    if (module->line_ops[i + 1] != *shown) continue;
    example.ptx.emplace_back(absl::StripAsciiWhitespace(lines[i]));
  }
  return example;
}

}  // namespace heddle::tools
