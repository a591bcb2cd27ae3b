// The parts of the verifier, each a file of its own, and what they share.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/analysis/analyses.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::ir {

class Verification {
 public:
  Verification(const Kernel& kernel, Stage stage)
      : kernel_(kernel), stage_(stage), analyses_(kernel) {}

  const Kernel& kernel() const { return kernel_; }
  Stage stage() const { return stage_; }
  bool clean() const { return diagnostics_.empty(); }
  Diagnostics take() { return std::move(diagnostics_); }

  // Reports a mistake in an op. The reference is good until the next report.
  Diagnostic& error(OpId op, std::string message, std::string fix = {});
  // Reports a mistake of the whole kernel.
  Diagnostic& error(std::string message, std::string fix = {});

  // "'load'", "%acc", a place; for messages.
  std::string quoted(OpId op) const;
  std::string name(ValueId value);
  SourceLine place(OpId op) const;
  // " at row_sum.cc:14", or nothing where the place is unknown.
  std::string at_place(OpId op) const;

  // What the parts share.
  Analyses& analyses() { return analyses_; }

 private:
  // Made when the first mistake is found.
  const ValueNames& names();

  const Kernel& kernel_;
  const Stage stage_;
  std::optional<ValueNames> names_;
  Analyses analyses_;
  Diagnostics diagnostics_;
};

// "i32, u32 or i64": how messages list alternatives.
std::string one_of(absl::Span<const absl::string_view> words);

// Regions, yields and definitions before uses. The others rely on it.
void verify_structure(Verification& v);
// What the op table says of every op; whether this one agrees with its row.
bool verify_row(Verification& v, OpId op);
// What only this op asks for (verifier_rules.h). Its row has been verified.
void verify_rules(Verification& v, OpId op);
// Parameters, launch shape, shared memory, effects.
void verify_kernel(Verification& v);
// Who owns a fragment's registers.
void verify_fragments(Verification& v);
// Waits for the tensor cores wait for the right groups. verify_fragments has been content.
void verify_groups(Verification& v);
// Arrays of arenas are used while they have their bytes, as far as can be seen. Everything else but
// convergence has been verified.
void verify_arenas(Verification& v);
// Threads that must arrive together do. Everything else has been verified.
void verify_convergence(Verification& v);

// Whether an op only reads a pending fragment as this operand: it stays whose it is.
bool only_reads(const Op& op, size_t operand);
// Whether a value is made in one of the op's regions.
bool is_inside(const Kernel& kernel, ValueId value, OpId op);
// Whether an op may take a pending fragment as this operand. verify_fragments reports those that
// may not, so the rest of the verifier leaves them alone.
bool may_be_pending(const Op& op, size_t operand);

}  // namespace heddle::ir
