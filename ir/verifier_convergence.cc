// Threads that must arrive at an op together do: the conditions around it are the same for all of
// them.

#include <optional>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/verifier_internal.h"

namespace heddle::ir {
namespace {

// By Scope.
constexpr absl::string_view kThreadsOf[] = {
    "threads",
    "threads of a warp",
    "128 threads of a warp group",
    "threads of the block",
    "threads of the cluster",
    "threads of the grid",
};
static_assert(std::size(kThreadsOf) == kScopeCount);

absl::string_view threads_of(Scope scope) { return kThreadsOf[static_cast<size_t>(scope)]; }

// A warp op whose last operand, the mask of the lanes that take part, is given.
bool takes_mask(const OpInfo& row) {
  const Signature& signature = row.signature;
  return row.convergence == Scope::kWarp && signature.operand_count > 0 &&
         signature.operands[signature.operand_count - 1].role == Role::kU32 &&
         signature.operands[signature.operand_count - 1].arity == Arity::kOptional;
}
bool has_mask(const Op& op) {
  return takes_mask(info(op)) && op.operands.size() == info(op).signature.operand_count;
}

// What decides whether a thread runs a region of this op.
absl::string_view condition_of(Opcode opcode) {
  if (opcode == Opcode::kFor) return "the number of trips of this 'for'";
  if (opcode == Opcode::kWhile) return "the condition of this 'while'";
  return "the condition of this 'if'";
}

}  // namespace

void verify_convergence(Verification& v) {
  const Kernel& kernel = v.kernel();
  // Made when an op asks: of what stands under no condition there is nothing to know.
  std::optional<Uniformity> known;
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    const OpInfo& row = info(op);
    if (!is_convergent(row) || op.parent == kernel.body() || has_mask(op)) return;
    if (!known) known.emplace(kernel);
    const Uniformity& uniformity = *known;
    if (uniformity.control(op.parent) >= row.convergence) return;
    const std::string scope(name_of(row.convergence));
    Diagnostic& wrong = v.error(
        id,
        absl::StrCat(v.quoted(id), " under a condition that differs between threads: all ",
                     threads_of(row.convergence), " must reach it together"),
        absl::StrCat("move it out, or make the condition the same for the whole ", scope,
                     takes_mask(row) ? ", or give it the mask of the lanes that take part" : ""));
    const OpId cause = uniformity.cause(op.parent);
    if (valid(cause)) {
      wrong.notes.push_back(
          {v.place(cause), absl::StrCat(condition_of(kernel.op(cause).opcode),
                                        " differs between the ", threads_of(row.convergence))});
    }
  });
}

}  // namespace heddle::ir
