// Traces a kernel for a test and gives back its text or its mistakes.
#pragma once

#include <string>

#include "gtest/gtest.h"
#include "heddle/dsl/dsl.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/text/printer.h"
#include "heddle/runtime/compile.h"

namespace heddle {

// A launch of 4 warps on row-major tensors with small extents, and every fact that such a launch
// has but for `without`.
inline ir::Specialization usual_specialization(const ir::KernelSource& source) {
  ir::Specialization specialization;
  specialization.block = {128, 1, 1};
  for (size_t i = 0; i < source.params().size(); ++i) {
    const ir::ParamInfo& param = source.params()[i];
    if (!param.type.is_view()) continue;
    const auto state = [&](ir::FactKind kind, int dim, int64_t value) {
      specialization.facts.push_back(
          {{kind, static_cast<uint16_t>(i), static_cast<uint8_t>(dim)}, value});
    };
    state(ir::FactKind::kAlignment, 0, 16);
    state(ir::FactKind::kFits32, 0, 1);
    for (int dim = 0; dim < param.type.rank; ++dim) {
      state(ir::FactKind::kExtentFits32, dim, 1);
      state(ir::FactKind::kStrideDivisor, dim, dim + 1 == param.type.rank ? 1 : 16);
      state(ir::FactKind::kUnitStride, dim, dim + 1 == param.type.rank);
    }
  }
  return specialization;
}

template <class... P>
ir::TraceResult trace(const Kernel<P...>& kernel) {
  return runtime::trace_source(kernel.source(), usual_specialization(kernel.source()));
}

// The text of a kernel that must be without mistakes.
template <class... P>
std::string traced_text(const Kernel<P...>& kernel) {
  const ir::TraceResult result = trace(kernel);
  EXPECT_TRUE(result.diagnostics.empty()) << ir::to_string(result.diagnostics);
  return ir::print(result.kernel);
}

// Its mistakes, as a user would read them.
template <class... P>
std::string mistakes(const Kernel<P...>& kernel) {
  return ir::to_string(trace(kernel).diagnostics);
}

// How many ops of a kind a kernel has.
inline int count_ops(const ir::Kernel& kernel, ir::Opcode opcode) {
  int count = 0;
  kernel.walk([&](ir::OpId id) { count += kernel.op(id).opcode == opcode; });
  return count;
}

}  // namespace heddle
