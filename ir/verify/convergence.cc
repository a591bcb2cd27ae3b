// Threads that must arrive at an op together do: the conditions around it are the same for all of
// them.

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/verify/verifier_internal.h"

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

struct Misplaced {
  OpId op;
  OpId cause;  // kNone: unknown
};

// What decides whether a thread runs a region of this op.
absl::string_view condition_of(Opcode opcode) {
  if (opcode == Opcode::kFor) return "the number of trips of this 'for'";
  if (opcode == Opcode::kWhile) return "the condition of this 'while'";
  return "the condition of this 'if'";
}

void report(Verification& v, const Misplaced& misplaced) {
  const Kernel& kernel = v.kernel();
  const OpInfo& row = info(kernel.op(misplaced.op));
  Diagnostic& wrong = v.error(
      misplaced.op,
      absl::StrCat(v.quoted(misplaced.op), " under a condition that differs between threads: all ",
                   threads_of(row.convergence), " must reach it together"),
      absl::StrCat("move it out, or make the condition the same for the whole ",
                   name_of(row.convergence),
                   takes_mask(row) ? ", or give it the mask of the lanes that take part" : "",
                   "; where only you know that the whole block agrees on it, wrap it in "
                   "assume_uniform()"));
  if (!valid(misplaced.cause)) return;
  wrong.mistake = absl::StrCat("condition of op ", index_of(misplaced.cause));
  wrong.notes.push_back({v.place(misplaced.cause),
                         absl::StrCat(condition_of(kernel.op(misplaced.cause).opcode),
                                      " differs between the ", threads_of(row.convergence))});
}

}  // namespace

void verify_convergence(Verification& v) {
  const Kernel& kernel = v.kernel();
  // Made when an op asks: of what stands under no condition there is nothing to know.
  const Uniformity* known = nullptr;
  std::vector<Misplaced> misplaced;
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    const OpInfo& row = info(op);
    if (!is_convergent(row) || op.parent == kernel.body() || has_mask(op)) return;
    if (known == nullptr) known = &v.analyses().get<Uniformity>();
    if (known->control(op.parent) >= row.convergence) return;
    misplaced.push_back({id, known->cause(op.parent)});
  });
  // Of those under one condition, the one that asks most of it speaks for the others.
  IdMap<OpId, size_t> order;
  for (size_t i = misplaced.size(); i-- > 0;) {
    if (valid(misplaced[i].cause)) order.at(misplaced[i].cause) = i;
  }
  const auto rank = [&](const Misplaced& one) {
    const size_t condition = valid(one.cause) ? order[one.cause] : misplaced.size();
    return std::pair(condition, -static_cast<int>(info(kernel.op(one.op)).convergence));
  };
  absl::c_stable_sort(misplaced,
                      [&](const Misplaced& a, const Misplaced& b) { return rank(a) < rank(b); });
  for (const Misplaced& one : misplaced) report(v, one);
}

}  // namespace heddle::ir
