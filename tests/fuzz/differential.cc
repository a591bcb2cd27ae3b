#include "fuzz/differential.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "fuzz/claims.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/literal.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::fuzz {
namespace {

using ir::Kernel;
using ir::Opcode;
using ir::Scalar;
using ir::Type;

constexpr int64_t kMaxInstructions = 2'000'000;

bool is_nan(Scalar scalar, uint64_t bits) {
  const int width = ir::info(scalar).bits;
  const int fraction = scalar == Scalar::kF64    ? 52
                       : scalar == Scalar::kF32  ? 23
                       : scalar == Scalar::kBF16 ? 7
                                                 : 10;
  const uint64_t infinity = ((uint64_t{1} << (width - 1 - fraction)) - 1) << fraction;
  return (bits & ~(uint64_t{1} << (width - 1))) > infinity;
}

uint64_t element(const std::vector<uint8_t>& bytes, size_t index, Scalar scalar) {
  uint64_t bits = 0;
  const auto size = static_cast<size_t>(ir::bytes_of(scalar));
  std::memcpy(&bits, &bytes[index * size], size);
  return bits;
}

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
        bits = addresses[argument.buffer];
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

bool rounds_products(const Kernel& kernel) {
  bool found = false;
  kernel.walk([&](ir::OpId id) {
    const ir::Op& op = kernel.op(id);
    found |= op.opcode == Opcode::kMul && ir::is_float(kernel.type(op.result()).scalar);
  });
  return found;
}

}  // namespace

Differential::Outcome Differential::run(const Kernel& kernel) {
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

std::string Differential::difference(const Kernel& kernel, const Outcome& before,
                                     const Outcome& after) const {
  if (!after.error.empty()) return absl::StrCat("the interpreter says: ", after.error);
  for (size_t p = 0; p < kernel.params().size(); ++p) {
    const ir::Value& value = kernel.value(kernel.params()[p].value);
    if (!value.type.is_view()) continue;
    const Scalar scalar = value.type.scalar;
    const std::vector<uint8_t>& a = before.buffers[inputs_.arguments[p].buffer];
    const std::vector<uint8_t>& b = after.buffers[inputs_.arguments[p].buffer];
    if (a == b) continue;
    for (size_t i = 0; i < a.size() / static_cast<size_t>(ir::bytes_of(scalar)); ++i) {
      const uint64_t was = element(a, i, scalar);
      const uint64_t is = element(b, i, scalar);
      if (was == is) continue;
      if (ir::is_float(scalar) && is_nan(scalar, was) && is_nan(scalar, is)) continue;
      return absl::StrCat("%", kernel.text(value.name), "[", i, "] was ",
                          ir::literal_to_string(scalar, was), " and became ",
                          ir::literal_to_string(scalar, is));
    }
  }
  return "";
}

std::string Differential::compare(const Kernel& kernel) {
  ++counts_.comparisons;
  return difference(kernel, expected_, run(kernel));
}

std::string Differential::check_claims(const Kernel& kernel) {
  const Kernel claiming = with_claims(kernel);
  const std::string wrong = compare(claiming);
  if (wrong.empty()) return "";
  return absl::StrCat("an analysis claims what does not hold: ", wrong, "\n", print(claiming));
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
  failure_.what = check_claims(kernel);
  if (!failure_.what.empty()) return Verdict::kDiffers;
  for (const std::vector<std::string>& passes : pipelines) {
    ++counts_.pipelines;
    failure_.passes.clear();
    Kernel current = kernel;
    ir::Analyses analyses(current);  // which passes hand on, as in one pipeline
    for (const std::string& name : passes) {
      failure_.passes.push_back(name);
      ++counts_.passes;
      ir::PipelineReport report;
      const Status status = run_pipeline(
          current, name, {.registry = &registry_, .analyses = &analyses, .report = &report});
      if (!status.ok()) {
        failure_.what = std::string(status.message());
        return Verdict::kDiffers;
      }
      const bool changed = report.passes.back().changed;
      if (&passes == pipelines.data() && changed) ++counts_.programs_changed_by[name];
      std::string text = print(current);
      if (!seen_.insert(text).second) continue;
      ++counts_.passes_changed;
      if (!changed) {
        failure_.what = "the pass says that it changed nothing, and did";
        return Verdict::kDiffers;
      }
      const ir::Diagnostics broken = verify(current, ir::Stage::kRewritten);
      failure_.what = broken.empty() ? compare(current) : to_string(broken);
      if (failure_.what.empty()) failure_.what = analyses.disagreement();
      if (!failure_.what.empty()) return Verdict::kDiffers;
    }
    failure_.what = check_claims(current);
    if (!failure_.what.empty()) return Verdict::kDiffers;
  }
  failure_ = {};
  return Verdict::kSame;
}

// As the pass is, or with all of its options set.
std::string with_random_options(const ir::Pass& pass, std::mt19937_64& random) {
  if (pass.options.empty() || random() % 2 == 0) return std::string(pass.name);
  const auto append = [&](std::string* out, const ir::PassOption& option) {
    const auto choices =
        static_cast<uint64_t>(std::min(option.most - option.least + 1, int64_t{8}));
    absl::StrAppend(out, option.name, "=", option.least + static_cast<int64_t>(random() % choices));
  };
  return absl::StrCat(pass.name, "{", absl::StrJoin(pass.options, ",", append), "}");
}

std::vector<std::vector<std::string>> pipelines_for(const Kernel& kernel,
                                                    const ir::PassRegistry& registry,
                                                    std::mt19937_64& random, int count) {
  const bool exact = rounds_products(kernel);
  const absl::string_view first = exact ? ir::kExactPipeline : ir::kDefaultPipeline;
  std::vector<std::vector<std::string>> pipelines = {absl::StrSplit(first, ',')};
  for (int i = 1; i < count; ++i) {
    std::vector<std::string> passes;
    std::set<absl::string_view> properties;
    for (const ir::Property& property : registry.properties()) {
      if (property.check(kernel).empty()) properties.insert(property.name);
    }
    const auto holds = [&](absl::string_view name) { return properties.count(name) > 0; };
    for (uint64_t length = 2 + random() % 8; passes.size() < length;) {
      const ir::Pass& pass = registry.passes()[random() % registry.passes().size()];
      if (!absl::c_all_of(pass.needs, holds) || (exact && pass.name == "contract")) continue;
      for (const absl::string_view name : pass.breaks) properties.erase(name);
      properties.insert(pass.gives.begin(), pass.gives.end());
      passes.push_back(with_random_options(pass, random));
    }
    pipelines.push_back(std::move(passes));
  }
  return pipelines;
}

}  // namespace heddle::fuzz
