#include "heddle/dsl/kernel.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/kernel_declaration_internal.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/kernel_source.h"

namespace heddle::detail {
namespace {

ir::Type param_type(const ParamDecl& decl) {
  if (decl.rank < 0) return ir::Type::of(decl.scalar);
  return ir::Type::view(decl.scalar, ir::Space::kGlobal, decl.rank, decl.read_only);
}

class LambdaSource final : public ir::KernelSource {
 public:
  LambdaSource(const char* declaration, absl::Span<const ParamDecl> params, KernelBody* body,
               SourceLoc loc)
      : body_(body), loc_(loc) {
    for (size_t i = 0; i < params.size(); ++i) {
      params_.push_back({.name = absl::StrCat("arg", i),
                         .type = param_type(params[i]),
                         .unbounded = params[i].unbounded});
    }
    KernelDeclaration declared =
        parse_kernel_declaration(declaration == nullptr ? "" : declaration);
    name_ = std::move(declared.name);
    mistake_ = std::move(declared.mistake);
    if (mistake_.empty()) mistake_ = declare_params(declared, absl::MakeSpan(params_));
    declaration_ = declaration == nullptr ? "" : declaration;
  }

  std::optional<Origin> origin() const override {
    // Two lambdas have two types, and so two tables of virtual functions.
    const void* const function = body_->function();
    const void* const type = *reinterpret_cast<const void* const*>(body_.get());
    Origin origin{function != nullptr ? function : type, declaration_};
    Appender values(origin.values);
    if (!body_->append_captures(values)) return std::nullopt;
    return origin;
  }

  // What is wrong with the definition: each trace reports it.
  void refuse(std::string mistake, std::string fix) {
    mistake_ = std::move(mistake);
    fix_ = std::move(fix);
  }

  const std::string& name() const override { return name_; }
  ir::SourceLine place() const override {
    return {loc_.file == nullptr ? std::string() : std::string(loc_.file), loc_.line};
  }
  absl::Span<const ir::ParamInfo> params() const override { return params_; }

  ir::TraceResult trace(const ir::Specialization& specialization) const override {
    ir::TraceResult result{ir::Kernel(name_), {}};
    ir::Kernel& kernel = result.kernel;
    kernel.block = specialization.block;
    kernel.cluster = specialization.cluster;
    kernel.target = specialization.target;
    if (loc_.file != nullptr) kernel.defined = kernel.intern_loc(loc_.file, loc_.line);
    std::vector<ir::ValueId> values;
    for (size_t i = 0; i < params_.size(); ++i) {
      values.push_back(add_param(kernel, params_[i], specialization, i));
    }
    for (const ir::Guard& guard : specialization.facts) kernel.set_fact(guard.fact, guard.value);
    fix_declared_extents(kernel);
    Trace trace(kernel, result.diagnostics);
    if (!mistake_.empty()) trace.report(loc_, mistake_, fix_);
    std::vector<Node> leaves;
    for (const ir::ValueId value : values) leaves.push_back(trace.node(value));
    try {
      body_->run(leaves.data());
    } catch (const Trace::Abandoned&) {
      result.abandoned = true;
      return result;
    }
    trace.exits().lower();
    return result;
  }

 private:
  static ir::ValueId add_param(ir::Kernel& kernel, const ir::ParamInfo& info,
                               const ir::Specialization& specialization, size_t index) {
    const size_t rank = info.type.is_view() ? info.type.rank : 0;
    ir::Specialization::Argument layout;
    if (index < specialization.arguments.size()) layout = specialization.arguments[index];
    layout.extents.resize(rank, ir::kDynamic);
    layout.strides.resize(rank, ir::kDynamic);
    const ir::ValueId value =
        kernel.add_param(info.name, info.type, layout.extents, layout.strides);
    kernel.params().back().unbounded = info.unbounded;
    return value;
  }

  // An extent that is declared as a number is known while tracing, but where the arguments have another: those a launch refuses
  // (runtime/named_extents.h).
  void fix_declared_extents(ir::Kernel& kernel) const {
    for (size_t i = 0; i < params_.size(); ++i) {
      for (size_t mode = 0; mode < params_[i].extents.size(); ++mode) {
        const int64_t number = params_[i].extents[mode].number;
        int64_t& extent = kernel.params()[i].extents[mode];
        if (number == ir::kDynamic || extent != ir::kDynamic) continue;
        const ir::Fact fact{ir::FactKind::kExtent, static_cast<uint16_t>(i),
                            static_cast<uint8_t>(mode)};
        const absl::Span<const ir::Guard> facts = kernel.facts();
        const bool stated = std::any_of(facts.begin(), facts.end(),
                                        [&](const ir::Guard& known) { return known.fact == fact; });
        if (!stated || kernel.fact(fact) == number) extent = number;
      }
    }
  }

  class Appender final : public ByteSink {
   public:
    explicit Appender(std::string& to) : to_(to) {}
    void add(const void* bytes, size_t count) override {
      to_.append(static_cast<const char*>(bytes), count);
    }

   private:
    std::string& to_;
  };

  std::string declaration_;  // as it was given
  std::string name_;
  std::vector<ir::ParamInfo> params_;
  std::string mistake_;  // in the definition; each trace reports it
  std::string fix_ =
      "write define_kernel(\"name(x[m, n], y)\", ...), with a name for each parameter and each "
      "member of a struct, or define_kernel(\"name\", ...)";
  std::unique_ptr<KernelBody> body_;
  SourceLoc loc_;
};

}  // namespace

ir::KernelSource* new_kernel_source(const char* name, const ParamDecl* params, int count,
                                    KernelBody* body, SourceLoc loc) {
  return new LambdaSource(name, absl::MakeConstSpan(params, count), body, loc);
}

void delete_kernel_source(ir::KernelSource* source) { delete source; }

void refuse_static(ir::KernelSource* source, const void* kernel) {
  // Variables with static storage lie in the image of the program or of a library, and nothing that
  // a scope or the heap owns does.
  Dl_info image;
  if (dladdr(kernel, &image) == 0) return;
  static_cast<LambdaSource*>(source)->refuse(
      "this kernel captures values and is static: in a function it keeps those of the first "
      "call for ever",
      "make it a kernel_family(), which takes the values as parameters, or let a scope or an "
      "object own it");
}

}  // namespace heddle::detail
