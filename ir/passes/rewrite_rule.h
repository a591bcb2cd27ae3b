// Rewrite rules in a few lines, and passes of them: what some ops compute is computed by others.
//
//   const RegisteredPass reciprocals(rewrite_pass(
//       {.name = "reciprocals", .summary = "Divide by square roots with rsqrt", .after = "fold"},
//       {{.match = "(div a (sqrt b))",
//         .when = [](const RuleMatch& m) { return m.type("a") == Type::of(Scalar::kF32); },
//         .replace = "(mul a (rsqrt b))"}}));
//
// A pattern is an op with its operands in the order of its signature: `(add a (mul b 2))`. A name stands for any
// value, and where it stands twice for the same one; a number for a constant of it. `(convert:f32 a)` wants, or makes,
// a result of that type. Only ops without attributes match, that are pure and have one result, and need no attributes. Where an op is commutative,
// its first two operands match in either order.
//
// Replacements are made of the same: their ops get types by their signatures or behind ':', and a number the type that
// the signature gives its operand: that of the op's other operands, or of what is replaced, or the
// signature's own (a shift's count is u32, a condition bool). Each op of the kernel is looked at
// once, in the order of the program, and the first rule that matches is taken; ops that rules have made are
// not looked at again. What rules promise is theirs to keep: nothing checks that both sides are equal, but an
// interpreter that runs the kernel before and after (filetests: `; execute:`).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/pass.h"

namespace heddle::ir {

// What a rule's pattern has met.
class RuleMatch {
 public:
  RuleMatch(const PassContext& context, OpId root) : context_(context), root_(root) {}

  const Kernel& kernel() const { return context_.kernel(); }
  // The op that is to be replaced.
  OpId root() const { return root_; }
  // The value that a name of the pattern stands for. One that it has not gives the root's, and the pass's run is an error.
  ValueId operator[](absl::string_view name) const;
  Type type(absl::string_view name) const { return kernel().type((*this)[name]); }
  // The range of an integer, and whether a number divides it. To answer the latter, facts about arguments may be asked
  // for, which makes them guards of the compiled code.
  IntRange range(absl::string_view name) const;
  bool divisible(absl::string_view name, int64_t by) const;
  // An analysis of the kernel as it was when it was first asked for.
  template <class A>
  A& analysis() const {
    return context_.analysis<A>();
  }

 private:
  friend class RuleMatcher;
  const PassContext& context_;
  OpId root_;
  absl::flat_hash_map<std::string, ValueId> values_;
};

struct RewriteRule {
  std::string match;
  std::function<bool(const RuleMatch&)> when{};  // whether it is done; always where there is none
  std::string replace;
};

// The pass of some rules: `pass` without Pass::run. A rule that cannot be read, or makes another type than what it
// replaces, is an error of the pipeline that runs the pass.
Pass rewrite_pass(Pass pass, std::vector<RewriteRule> rules);

}  // namespace heddle::ir
