#include "heddle/dsl/contract.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/wording.h"

namespace heddle {
namespace detail {
namespace {

using ir::AttrKey;
using ir::Opcode;
using ir::ValueId;

constexpr char kOutside[] = "outside a kernel";
constexpr char kInside[] = "call it in the kernel's lambda";

struct Infix {
  Opcode opcode;
  const char* text;
};
constexpr Infix kInfix[] = {
    {Opcode::kAdd, "+"},  {Opcode::kSub, "-"},  {Opcode::kMul, "*"}, {Opcode::kDiv, "/"},
    {Opcode::kRem, "%"},  {Opcode::kEq, "=="},  {Opcode::kNe, "!="}, {Opcode::kLt, "<"},
    {Opcode::kLe, "<="},  {Opcode::kGt, ">"},   {Opcode::kGe, ">="}, {Opcode::kXor, "^"},
    {Opcode::kShl, "<<"}, {Opcode::kShr, ">>"},
};
constexpr Opcode kComparisons[] = {Opcode::kEq, Opcode::kNe, Opcode::kLt,
                                   Opcode::kLe, Opcode::kGt, Opcode::kGe};
// Ops that people do not write, or that stand for their operand.
constexpr Opcode kUnseen[] = {Opcode::kConvert,     Opcode::kBitcast, Opcode::kAtLaunch,
                              Opcode::kAssumeRange, Opcode::kExpect,  Opcode::kAssumeUniform};

template <size_t N>
bool is_one_of(const Opcode (&list)[N], Opcode opcode) {
  return std::find(std::begin(list), std::end(list), opcode) != std::end(list);
}

// A value that follows from arguments, as its author wrote it.
class Wording {
 public:
  explicit Wording(const ir::Kernel& kernel) : kernel_(kernel) {}

  std::string text(ValueId value, bool inner = false, int depth = 0) const {
    // Nobody reads on; and what is computed from itself again and again has no end of words.
    constexpr int kDeepest = 8;
    if (depth > kDeepest) return "...";
    const ir::Op* const op = kernel_.def(value);
    if (op == nullptr) {
      const auto param = kernel_.param_index(value);
      return param ? std::string(name_of(value)) : "a value of the loop";
    }
    const auto words = [&](absl::string_view separator, bool in = true) {
      return absl::StrJoin(op->operands, separator, [&](std::string* all, ValueId operand) {
        absl::StrAppend(all, text(operand, in, depth + 1));
      });
    };
    if (op->opcode == Opcode::kConst) return constant(value);
    if (is_one_of(kUnseen, op->opcode)) return text(op->a(), inner, depth + 1);
    if (op->opcode == Opcode::kExtent || op->opcode == Opcode::kStride) {
      return absl::StrCat(name_of(op->view()),
                          op->opcode == Opcode::kExtent ? ".shape(" : ".stride(",
                          *op->attr(AttrKey::kDim), ")");
    }
    if (const auto axis = op->attr(AttrKey::kAxis)) {
      return absl::StrCat(info(op->opcode).mnemonic, ".",
                          ir::kAxisNames[static_cast<size_t>(*axis)]);
    }
    if (op->opcode == Opcode::kNot) return absl::StrCat("!", text(op->a(), true, depth + 1));
    if (op->opcode == Opcode::kNeg) return absl::StrCat("-", text(op->a(), true, depth + 1));
    if (const char* const infix = infix_of(*op)) {
      const std::string both = words(absl::StrCat(" ", infix, " "));
      return inner ? absl::StrCat("(", both, ")") : both;
    }
    return absl::StrCat(info(op->opcode).mnemonic, "(", words(", ", /*in=*/false), ")");
  }

  // Both sides of a comparison, or what any other condition depends on: none of them constant, each
  // once.
  std::vector<ValueId> numbers(ValueId condition) const {
    std::vector<ValueId> found;
    const ir::Op* const op = kernel_.def(condition);
    if (op != nullptr && is_one_of(kComparisons, op->opcode)) {
      for (const ValueId side : op->operands) add(side, found);
    } else {
      add_leaves(condition, found);
    }
    return found;
  }

 private:
  const char* infix_of(const ir::Op& op) const {
    const bool of_bools = kernel_.type(op.result()).scalar == ir::Scalar::kBool;
    if (op.opcode == Opcode::kAnd) return of_bools ? "&&" : "&";
    if (op.opcode == Opcode::kOr) return of_bools ? "||" : "|";
    for (const Infix& row : kInfix) {
      if (row.opcode == op.opcode) return row.text;
    }
    return nullptr;
  }
  absl::string_view name_of(ValueId param) const {
    const ir::StringId name = kernel_.value(param).name;
    return ir::valid(name) ? kernel_.text(name) : "an argument";
  }
  std::string constant(ValueId value) const {
    if (kernel_.type(value).scalar == ir::Scalar::kBool) {
      return *kernel_.constant_bits(value) != 0 ? "true" : "false";
    }
    const auto number = kernel_.constant_int(value);
    return number ? absl::StrCat(*number) : "a constant";
  }
  void add(ValueId value, std::vector<ValueId>& found) const {
    const ir::Op* op = kernel_.def(value);
    while (op != nullptr && is_one_of(kUnseen, op->opcode)) {
      value = op->a();
      op = kernel_.def(value);
    }
    if (op != nullptr && op->opcode == Opcode::kConst) return;
    const std::string words = text(value);
    for (const ValueId known : found) {
      if (text(known) == words) return;
    }
    found.push_back(value);
  }
  void add_leaves(ValueId root, std::vector<ValueId>& found) const {
    absl::flat_hash_set<ValueId> met;
    std::vector<ValueId> open = {root};
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (!met.insert(value).second) continue;
      const ir::Op* const op = kernel_.def(value);
      const bool of_arguments = op == nullptr || op->opcode == Opcode::kExtent ||
                                op->opcode == Opcode::kStride || op->operands.empty();
      if (of_arguments) {
        add(value, found);
      } else {
        open.insert(open.end(), op->operands.rbegin(), op->operands.rend());
      }
    }
  }

  const ir::Kernel& kernel_;
};

void emit_with_message(Trace& trace, const Node& condition, const std::string& message,
                       const std::string& fix, absl::Span<const ValueId> numbers, SourceLoc loc) {
  std::vector<Node> operands = {condition};
  for (const ValueId value : numbers) {
    Node number = trace.node(value);
    const bool is_bool = number.type.scalar == ir::Scalar::kBool;
    if (is_bool || ir::bytes_of(number.type.scalar) != 8) {
      number = emit_as(scalar_type<int64_t>(), op::kConvert, number, loc);
    } else {
      number = emit_bitcast(number, ir::Scalar::kI64, loc);
    }
    operands.push_back(number);
  }
  const ir::Attr attrs[] = {{AttrKey::kMessage, text_attr(message.c_str())},
                            {AttrKey::kFix, text_attr(fix.c_str())}};
  record(Opcode::kRequire, operands, {}, attrs, loc);
}

// "it requires a.shape(1) == b.shape(0), but a.shape(1) is % and b.shape(0) is %"
void require_value(Trace& trace, ValueId condition, SourceLoc loc) {
  const ir::Kernel& kernel = trace.kernel();
  const ir::Op* const op = kernel.def(condition);
  // Of a conjunction, each part for itself: the message then names the one that fails.
  if (op != nullptr && op->opcode == Opcode::kAnd) {
    const ValueId parts[] = {op->a(), op->b()};
    for (const ValueId part : parts) require_value(trace, part, loc);
    return;
  }
  const Wording wording(kernel);
  const auto escaped = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"%", "%%"}});
  };
  std::vector<ValueId> numbers;
  std::string message = absl::StrCat("it requires ", escaped(wording.text(condition)));
  if (!ir::unknown_at_launch(kernel, condition)) numbers = wording.numbers(condition);
  for (size_t i = 0; i < numbers.size(); ++i) {
    absl::StrAppend(&message,
                    i == 0                    ? ", but "
                    : i + 1 == numbers.size() ? " and "
                                              : ", ",
                    escaped(wording.text(numbers[i])), " is %");
  }
  emit_with_message(trace, trace.node(condition), message, "pass arguments for which that holds",
                    numbers, loc);
}

std::string block_text(int x, int y, int z) {
  return y == 1 && z == 1 ? absl::StrCat(x) : absl::StrCat("{", x, ", ", y, ", ", z, "}");
}

}  // namespace

void emit_require(const Node& condition, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return report(loc, kOutside, kInside);
  if (!condition.is_host()) return require_value(*trace, trace->use(condition, loc), loc);
  if (condition.bits != 0) return;
  trace->report(loc, "this requires what never holds",
                "ask for a relation of the arguments; what host numbers decide is for a host if");
}

void emit_launch_grid(const Node& x, const Node& y, const Node& z, SourceLoc loc) {
  if (Trace::current() == nullptr) return report(loc, kOutside, kInside);
  record(Opcode::kLaunchGrid, {x, y, z}, {}, {}, loc);
}

void require_threads(int64_t threads, const char* what, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return;  // layouts work outside kernels too
  const std::string message = absl::StrCat(what, " of ", threads, " threads");
  const std::string fix = absl::StrCat("launch with .block = ", threads);
  if (const int known = threads_per_block(); known > 0) {
    if (known >= threads) return;
    return trace->report(loc, absl::StrCat(message, " in a block of ", known), fix);
  }
  const CallerLines lines(loc);
  const Int block = Int(block_dim.x) * block_dim.y * block_dim.z;
  const Bool is_enough = block >= static_cast<int>(threads);
  const ValueId numbers[] = {trace->use(block.node(), loc)};
  emit_with_message(*trace, is_enough.node(), absl::StrCat(message, " in a block of %"), fix,
                    numbers, loc);
}

}  // namespace detail

void require_block(int x, int y, int z, SourceLoc loc) {
  detail::Trace* const trace = detail::Trace::current();
  if (trace == nullptr) return detail::report(loc, detail::kOutside, detail::kInside);
  ir::Kernel& kernel = trace->kernel();
  const Dim3 wanted{x, y, z};
  if (kernel.has_dynamic_block()) kernel.block = wanted;
  if (kernel.block == wanted) return;
  trace->report(loc,
                absl::StrCat("this kernel is written for blocks of ", ir::to_string(wanted),
                             " threads, and compiled for ", ir::to_string(kernel.block)),
                absl::StrCat("launch with .block = ", detail::block_text(x, y, z)));
}

void min_blocks_per_sm(int count, SourceLoc loc) {
  detail::Trace* const trace = detail::Trace::current();
  if (trace == nullptr) return detail::report(loc, detail::kOutside, detail::kInside);
  int& asked = trace->kernel().min_blocks;
  if (count < 1 || count > ir::kMaxResidentBlocks) {
    return trace->report(loc,
                         absl::StrCat("min_blocks_per_sm(", count,
                                      "): no multiprocessor holds so many blocks at once"),
                         absl::StrCat("ask for 1 to ", ir::kMaxResidentBlocks));
  }
  if (asked > 0) {
    return trace->report(
        loc, absl::StrCat("min_blocks_per_sm(", count, ") behind min_blocks_per_sm(", asked, ")"),
        "ask once");
  }
  asked = count;
}

}  // namespace heddle
