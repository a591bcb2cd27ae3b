// Every op of the table, in all examples of its file, for every element type and shape that it admits,
// from memory and as constants, on every target: PTX that ptxas takes, or an error that names the first
// target that has it.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/op_variants.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/verify/verifier.h"
#include "support/op_files.h"

namespace heddle::codegen {
namespace {

using ir::Type;

// Variables are not for the emitter: promote-vars removes them before.
bool has_variables(const ir::Kernel& kernel) {
  bool found = false;
  kernel.walk([&](ir::OpId id) { found |= kernel.op(id).opcode == ir::Opcode::kVar; });
  return found;
}

// Whether the target has every op of the kernel, by the op table.
bool is_supported(const ir::Kernel& kernel) {
  bool all = true;
  kernel.walk([&](ir::OpId id) { all &= !lacking_type(kernel, kernel.op(id)).has_value(); });
  return all;
}

// An example, and how it is changed.
struct Variant {
  const test::OpExample* example;
  bool constants;
  Type shape;  // of what were scalars; none: as they are

  ir::Kernel build(const ir::Target& target) const {
    ir::Kernel kernel = example->parse();
    kernel.target = &target;
    if (constants) make_constant(kernel, example->find(kernel));
    if (shape != Type::none()) widen(kernel, example->find(kernel), shape);
    return kernel;
  }
  std::string where() const {
    return absl::StrCat(example->where, constants ? ", constants" : "",
                        shape == Type::none() ? "" : absl::StrCat(", ", to_string(shape)));
  }
};

const std::vector<test::OpExample>& all_examples() {
  static const std::vector<test::OpExample> all = [] {
    std::vector<test::OpExample> examples;
    for (const ir::Opcode opcode : test::all_opcodes()) {
      for (test::OpExample& example : test::op_examples(opcode)) {
        if (!has_variables(example.parse())) examples.push_back(std::move(example));
      }
    }
    return examples;
  }();
  return all;
}

std::vector<Variant> variants_for(const ir::Target& target) {
  std::vector<Variant> variants;
  for (const test::OpExample& example : all_examples()) {
    ir::Kernel kernel = example.parse();
    kernel.target = &target;
    // What a case needs beyond its ops, it says by the targets that it names.
    const std::vector<const ir::Target*>& named = example.targets;
    const bool is_named = named.empty() || std::count(named.begin(), named.end(), &target) > 0;
    if (!is_named && is_supported(kernel)) continue;
    std::vector<Type> shapes = {Type::none()};
    if (can_widen(kernel, example.find(kernel))) {
      shapes.push_back(Type::vector(ir::Scalar::kI32, 2));
      shapes.push_back(Type::fragment(ir::Scalar::kI32, 3));
    }
    for (const bool constants : {false, true}) {
      for (const Type shape : shapes) variants.push_back({&example, constants, shape});
    }
  }
  return variants;
}

class EveryOp : public testing::TestWithParam<const ir::Target*> {};

TEST_P(EveryOp, IsPrintedOrRefused) {
  const ir::Target& target = *GetParam();
  int refused = 0;
  for (const Variant& variant : variants_for(target)) {
    const ir::Kernel kernel = variant.build(target);
    const bool supported = is_supported(kernel);
    const ir::Diagnostics wrong = verify(kernel, ir::Stage::kEmittable);
    EXPECT_EQ(wrong.empty(), supported) << variant.where() << ": " << ir::to_string(wrong);
    const Status status = emit_ptx(kernel).status();
    EXPECT_EQ(status.ok(), supported) << variant.where() << ": " << status;
    if (supported || status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << variant.where();
    const std::string message(status.message());
    EXPECT_THAT(message, testing::ContainsRegex("op.ir:[0-9]+: error: "));
    EXPECT_THAT(message, testing::AnyOf(testing::HasSubstr(" is the first that has"),
                                        testing::HasSubstr("no GPU has ")));
    EXPECT_THAT(message, testing::HasSubstr("fix: "));
  }
  EXPECT_GT(refused, 0);  // no target has both Hopper's tensor cores and Blackwell's small floats
}

TEST_P(EveryOp, Assembles) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const ir::Target& target = *GetParam();
  MergedKernels merged;
  for (const Variant& variant : variants_for(target)) {
    const ir::Kernel kernel = variant.build(target);
    if (is_supported(kernel)) merged.add(kernel);
  }
  const std::vector<ir::Kernel> kernels = merged.take();
  // ptxas takes twice as long for one module of a thousand entries as for modules of 64.
  for (size_t first = 0; first < kernels.size(); first += 64) {
    PtxBatch batch;
    for (size_t i = first; i < std::min(first + 64, kernels.size()); ++i) {
      PtxOptions options;
      options.line_info = false;
      options.device_checks = true;
      const StatusOr<PtxModule> module = emit_ptx(kernels[i], options);
      ASSERT_TRUE(module.ok()) << module.status();
      batch.add(*module);
    }
    const StatusOr<Assembly> assembly = assemble_for(batch.text(), target.name, batch.entries(), 1);
    if (IsUnimplemented(assembly.status())) {
      GTEST_SKIP() << "SKIPPED: this ptxas does not know " << target.name;
    }
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    EXPECT_EQ(assembly->entries.size(), batch.entries().size());
  }
}

TEST(EmitPtx, RefusesWhatNoArchitectureHas) {
  const StatusOr<ir::Kernel> kernel = ir::parse(
      "kernel @k(%x: view<f64, global, 1> [?] strides [1], %a: f64) block(1, 1, 1) {\n"
      "%z = const 0 : i32\n%r = exp2 %a : f64\nstore %x, %r, %z\n}\n",
      "op.ir", {.text_as_source = true});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const Status status = emit_ptx(*kernel).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("op.ir:3: error: no GPU has exp2 of f64"));
}

std::vector<const ir::Target*> all_targets() {
  std::vector<const ir::Target*> targets;
  for (const ir::Target& target : ir::kTargets) targets.push_back(&target);
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryOp, testing::ValuesIn(all_targets()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace heddle::codegen
