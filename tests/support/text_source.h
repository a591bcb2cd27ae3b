// A kernel in text form as a source, which the runtime compiles as it does a traced lambda.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/check.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/text/parser.h"

namespace heddle::runtime {

class TextSource : public ir::KernelSource {
 public:
  // `asks` are facts that its author reads while tracing.
  explicit TextSource(absl::string_view text, std::vector<ir::ParamInfo> params = {},
                      std::vector<ir::Fact> asks = {})
      : text_(text), params_(std::move(params)), asks_(std::move(asks)) {}
  const std::string& name() const override { return name_; }
  ir::SourceLine place() const override { return {"gemm.cc", 10}; }
  absl::Span<const ir::ParamInfo> params() const override { return params_; }
  ir::TraceResult trace(const ir::Specialization& specialization) const override {
    StatusOr<ir::Kernel> kernel = ir::parse(text_, "text.ir");
    HEDDLE_CHECK(kernel.ok(), std::string(kernel.status().message()));
    for (const ir::Guard& fact : specialization.facts) kernel->set_fact(fact.fact, fact.value);
    for (const ir::Fact& fact : asks_) (void)kernel->fact(fact);
    return {*std::move(kernel), {}};
  }

 private:
  const std::string text_;
  const std::string name_ = "gemm";
  const std::vector<ir::ParamInfo> params_;
  const std::vector<ir::Fact> asks_;
};

}  // namespace heddle::runtime
