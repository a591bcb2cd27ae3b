#include "fuzz/differential.h"

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "fuzz/claims.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::fuzz {
namespace {

using ir::Kernel;

constexpr int64_t kMaxInstructions = 2'000'000;

// The arguments as the kernel's parameter block.
std::vector<std::byte> parameter_block(const Kernel& kernel, const Inputs& inputs,
                                       absl::Span<const uint64_t> addresses) {
  const ir::ParamLayout layout = param_layout(kernel);
  std::vector<std::byte> block(static_cast<size_t>(layout.bytes));
  for (const ir::ParamSlot& slot : layout.slots) {
    const Inputs::Argument& argument = inputs.arguments[static_cast<size_t>(slot.param)];
    uint64_t bits = 0;
    switch (slot.kind) {
      case ir::SlotKind::kScalar:
        bits = argument.scalar;
        break;
      case ir::SlotKind::kAddress:
        bits = addresses[argument.buffer] + argument.start;
        break;
      case ir::SlotKind::kExtent:
        bits = kElements;
        break;
      case ir::SlotKind::kStride:
        bits = 1;
        break;
    }
    std::memcpy(&block[static_cast<size_t>(slot.offset)], &bits, static_cast<size_t>(slot.bytes));
  }
  return block;
}

}  // namespace

Outcome Differential::run(const Kernel& kernel) {
  Outcome outcome;
  const auto program = ir::interp::compile(kernel, {.checks = true});
  if (!program.ok()) {
    outcome.error = std::string(program.status().message());
    return outcome;
  }
  for (size_t i = 0; i < addresses_.size(); ++i) {
    const std::vector<uint8_t>& bytes = inputs_.buffers[i];
    (void)memory_->copy_from_host(addresses_[i], bytes.data(), bytes.size());
  }
  const std::vector<std::byte> params = parameter_block(kernel, inputs_, addresses_);
  const Status status =
      ir::interp::run(*program, {.grid = inputs_.grid, .block = inputs_.block, .params = params},
                      *memory_, {.max_instructions = kMaxInstructions});
  if (!status.ok()) {
    outcome.error = std::string(status.message());
    return outcome;
  }
  outcome.buffers = inputs_.buffers;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    std::vector<uint8_t>& bytes = outcome.buffers[i];
    const Status copied = memory_->copy_to_host(bytes.data(), addresses_[i], bytes.size());
    if (!copied.ok()) outcome.error = std::string(copied.message());
  }
  return outcome;
}

std::string Differential::compare(const Kernel& kernel) {
  ++counts_.comparisons;
  const Outcome outcome = run(kernel);
  if (!outcome.error.empty()) return absl::StrCat("the interpreter says: ", outcome.error);
  return difference(kernel, inputs_, expected_, outcome);
}

std::string Differential::check_claims(const Kernel& kernel) {
  const Kernel claiming = with_claims(kernel);
  const std::string wrong = compare(claiming);
  if (wrong.empty()) return "";
  return absl::StrCat("an analysis claims what does not hold: ", wrong, "\n", print(claiming));
}

std::string Differential::check_meaning(const Kernel& kernel) {
  ++counts_.consulted;
  Outcome meant = oracle_(kernel, inputs_);
  if (!meant.error.empty()) return absl::StrCat("the oracle says: ", meant.error);
  const std::string wrong = difference(kernel, inputs_, meant, expected_);
  if (!wrong.empty()) return absl::StrCat("by the oracle, and then the interpreter, ", wrong);
  expected_ = std::move(meant);
  return "";
}

Verdict Differential::check(const Kernel& kernel, uint64_t seed,
                            absl::Span<const std::vector<std::string>> pipelines) {
  inputs_ = inputs_for(kernel, seed);
  memory_ = std::make_unique<ir::interp::Memory>();
  addresses_.clear();
  for (const std::vector<uint8_t>& bytes : inputs_.buffers) {
    addresses_.push_back(memory_->allocate(bytes.size()).value());
  }
  failure_ = {};
  seen_ = {print(kernel)};
  const ir::Diagnostics wrong = verify(kernel);
  expected_ = wrong.empty() ? run(kernel) : Outcome{.error = to_string(wrong)};
  if (!expected_.error.empty()) {
    failure_.what = expected_.error;
    return Verdict::kDiscarded;
  }
  failure_.what = check_meaning(kernel);
  if (failure_.what.empty()) failure_.what = check_claims(kernel);
  if (!failure_.what.empty()) return Verdict::kDiffers;
  changed_it_.clear();
  Step root;
  for (const std::vector<std::string>& passes : pipelines) {
    ++counts_.pipelines;
    Step* step = &root;
    for (const std::string& name : passes) step = &step->next[name];
    step->ends = true;
  }
  Kernel current = kernel;
  ir::Analyses analyses(current);
  if (!follow(root, current, analyses)) return Verdict::kDiffers;
  for (const std::string& name : changed_it_) ++counts_.programs_changed_by[name];
  return Verdict::kSame;
}

bool Differential::follow(const Step& step, Kernel& kernel, ir::Analyses& analyses) {
  size_t left = step.next.size();
  for (const auto& [name, next] : step.next) {
    failure_.passes.push_back(name);
    bool same = false;
    if (--left == 0) {
      same = run_pass(name, kernel, analyses) && finish(next, kernel, analyses);
    } else {
      Kernel copy = kernel;
      ir::Analyses fresh(copy);
      same = run_pass(name, copy, fresh) && finish(next, copy, fresh);
    }
    if (!same) return false;
    failure_.passes.pop_back();
  }
  return true;
}

bool Differential::finish(const Step& step, Kernel& kernel, ir::Analyses& analyses) {
  // Of what a single pass leaves behind, analyses have little new to say.
  constexpr size_t kFewPasses = 2;
  if (step.ends && failure_.passes.size() > kFewPasses) {
    failure_.what = check_claims(kernel);
    if (!failure_.what.empty()) return false;
  }
  return follow(step, kernel, analyses);
}

bool Differential::run_pass(const std::string& name, Kernel& kernel, ir::Analyses& analyses) {
  ++counts_.passes;
  ir::PipelineReport report;
  const Status status = run_pipeline(
      kernel, name, {.registry = &registry_, .analyses = &analyses, .report = &report});
  if (!status.ok()) {
    failure_.what = std::string(status.message());
    return false;
  }
  const bool changed = report.passes.back().changed;
  if (changed) changed_it_.insert(report.passes.back().name);
  if (!seen_.insert(print(kernel)).second) return true;
  ++counts_.passes_changed;
  if (!changed) {
    failure_.what = "the pass says that it changed nothing, and did";
    return false;
  }
  const ir::Diagnostics broken = verify(kernel, ir::Stage::kRewritten);
  failure_.what = broken.empty() ? compare(kernel) : to_string(broken);
  if (failure_.what.empty()) failure_.what = analyses.disagreement();
  return failure_.what.empty();
}

}  // namespace heddle::fuzz
