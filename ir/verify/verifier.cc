#include "heddle/ir/verify/verifier.h"

#include "absl/strings/str_cat.h"
#include "heddle/ir/verify/verifier_internal.h"

namespace heddle::ir {

Diagnostic& Verification::error(OpId op, std::string message, std::string fix) {
  return diagnostics_.emplace_back(Diagnostic{.place = place(op),
                                              .message = std::move(message),
                                              .notes = {},
                                              .fix = std::move(fix),
                                              .op = print_op(kernel_, op, names())});
}

Diagnostic& Verification::error(std::string message, std::string fix) {
  const Loc loc = kernel_.loc(kernel_.defined);
  return diagnostics_.emplace_back(Diagnostic{.place = {std::string(loc.file), loc.line},
                                              .message = std::move(message),
                                              .notes = {},
                                              .fix = std::move(fix),
                                              .op = {}});
}

std::string Verification::quoted(OpId op) const {
  return absl::StrCat("'", info(kernel_.op(op)).mnemonic, "'");
}

std::string Verification::name(ValueId value) { return names().of(value); }

SourceLine Verification::place(OpId op) const {
  const Loc loc = kernel_.loc(op);
  return {std::string(loc.file), loc.line};
}

std::string Verification::at_place(OpId op) const {
  const SourceLine p = place(op);
  return p.file.empty() ? std::string() : absl::StrCat(" at ", p.file, ":", p.line);
}

const ValueNames& Verification::names() {
  if (!names_) names_.emplace(kernel_);
  return *names_;
}

std::string one_of(absl::Span<const absl::string_view> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) absl::StrAppend(&text, i + 1 == words.size() ? " or " : ", ");
    absl::StrAppend(&text, words[i]);
  }
  return text;
}

Diagnostics verify(const Kernel& kernel, Stage stage) {
  Verification v(kernel, stage);
  verify_structure(v);
  if (!v.clean()) return v.take();
  kernel.walk([&v](OpId op) {
    if (verify_row(v, op)) verify_rules(v, op);
  });
  verify_kernel(v);
  const bool ops_are_right = v.clean();
  verify_fragments(v);
  if (v.clean()) verify_groups(v);
  if (ops_are_right) verify_arenas(v);
  if (ops_are_right) verify_convergence(v);
  return v.take();
}

}  // namespace heddle::ir
