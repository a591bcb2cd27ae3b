#include "heddle/tools/command/reference/example.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/ptx.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/verify/verifier.h"
#include "heddle/runtime/testing/case_text.h"
#include "heddle/runtime/testing/expectations.h"

namespace heddle::tools {
namespace {

// Of the types that the example is for, the first that readers know best.
const filetest::Instance* usual_instance(const std::vector<filetest::Instance>& instances) {
  for (const char* const usual : {"$T = f32", "$T = i32"}) {
    for (const filetest::Instance& instance : instances) {
      if (absl::StrContains(instance.values, usual)) return &instance;
    }
  }
  return instances.empty() ? nullptr : &instances[0];
}

// Hopper where the example is for it, else the first that it is for.
const ir::Target& target_of(const filetest::Expectations& wanted) {
  const std::vector<const ir::Target*>& all = wanted.targets;
  const ir::Target& usual = ir::default_target();
  return all.empty() || std::count(all.begin(), all.end(), &usual) > 0 ? usual : *all[0];
}

// The line of a text on which the op stands, without its comment.
std::string line_of(absl::string_view text, absl::string_view mnemonic) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const auto equals = std::find(words.begin(), words.end(), "=");
    const size_t at = equals == words.end() || absl::StartsWith(words[0], mnemonic)
                          ? 0
                          : static_cast<size_t>(equals - words.begin()) + 1;
    if (at >= words.size() || words[at] != mnemonic) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(0, line.find("  ;"))));
  }
  return "";
}

}  // namespace

StatusOr<OpExample> example_of(ir::Opcode opcode) {
  const absl::string_view mnemonic = ir::info(opcode).mnemonic;
  const absl::Span<const OpExampleText> texts = op_example_texts();
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const OpExampleText& example) {
    return example.mnemonic == mnemonic;
  });
  if (found == texts.end()) {
    return UnimplementedError(absl::StrCat("'", mnemonic,
                                           "' has no example; fix: write tests/filetests/ops/",
                                           mnemonic, ".ir and configure again"));
  }
  const auto wrong = [&](absl::string_view why) {
    return InternalError(absl::StrCat("the example of '", mnemonic, "': ", why, "\n", found->text));
  };
  std::vector<filetest::Fault> faults;
  const std::vector<filetest::Instance> instances =
      filetest::instances_of(filetest::split_cases(found->text)[0], faults);
  const filetest::Instance* const instance = usual_instance(instances);
  if (instance == nullptr) return wrong("it has no instance");
  const filetest::Expectations wanted = filetest::read_expectations(instance->text, faults);
  if (!faults.empty()) return wrong(faults[0].text);

  StatusOr<ir::Kernel> kernel = ir::parse(instance->text, "example.ir");
  if (!kernel.ok()) return wrong(kernel.status().message());
  kernel->target = &target_of(wanted);
  OpExample example;
  example.ir = line_of(instance->text, mnemonic);
  if (!ir::verify(*kernel, ir::Stage::kPureSsa).empty() && ir::verify(*kernel).empty()) {
    example.why_none = "promote-vars has turned it into values";
    return example;
  }
  const ir::Diagnostics mistakes = ir::verify(*kernel, ir::Stage::kEmittable);
  if (!mistakes.empty()) return wrong(ir::to_string(mistakes));
  const StatusOr<codegen::PtxModule> module = codegen::emit_ptx(*kernel, {.line_info = false});
  if (!module.ok()) return wrong(module.status().message());

  std::optional<ir::OpId> shown;
  kernel->walk([&](ir::OpId id) {
    if (!shown && kernel->op(id).opcode == opcode) shown = id;
  });
  if (!shown || example.ir.empty()) return wrong("it lacks the op");
  const std::vector<std::string> lines = absl::StrSplit(module->text, '\n');
  for (size_t i = 0; i < lines.size() && i + 1 < module->line_ops.size(); ++i) {
    if (module->line_ops[i + 1] != *shown) continue;
    example.ptx.emplace_back(absl::StripAsciiWhitespace(lines[i]));
  }
  return example;
}

}  // namespace heddle::tools
