#include "heddle/dsl/kernel.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/wording.h"

namespace heddle::detail {
namespace {

// "row_sum(x, y)" -> the name and the parameters' names.
struct Declaration {
  std::string name;
  std::vector<std::string> params;
  bool names_all = true;  // "(x, ...)" leaves those behind x without
  std::string mistake;
};

// What PTX, files and messages can carry.
bool is_identifier(absl::string_view name) {
  const auto is_letter = [](char c) { return absl::ascii_isalpha(c) || c == '_'; };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || absl::ascii_isdigit(c);
  });
}

std::string find_mistake(const Declaration& declaration, absl::string_view text) {
  if (text.find('(') != absl::string_view::npos && !absl::EndsWith(text, ")")) {
    return absl::StrCat("the parameters' names in '", text, "' do not end with ')'");
  }
  if (!is_identifier(declaration.name)) {
    return absl::StrCat("a kernel's name is an identifier, and '", declaration.name, "' is none");
  }
  for (auto param = declaration.params.begin(); param != declaration.params.end(); ++param) {
    if (!is_identifier(*param)) {
      return absl::StrCat("a parameter's name is an identifier, and '", *param, "' is none");
    }
    if (std::find(declaration.params.begin(), param, *param) != param) {
      return absl::StrCat("two parameters are named '", *param, "'");
    }
  }
  return "";
}

Declaration parse_declaration(absl::string_view text) {
  Declaration declaration;
  const size_t open = text.find('(');
  declaration.name = std::string(absl::StripAsciiWhitespace(text.substr(0, open)));
  if (open != absl::string_view::npos && absl::EndsWith(text, ")")) {
    const absl::string_view inside = text.substr(open + 1, text.size() - open - 2);
    if (!absl::StripAsciiWhitespace(inside).empty()) {
      for (const absl::string_view param : absl::StrSplit(inside, ',')) {
        declaration.params.emplace_back(absl::StripAsciiWhitespace(param));
      }
      if (declaration.params.back() == "...") {
        declaration.names_all = false;
        declaration.params.pop_back();
      }
    }
  }
  declaration.mistake = find_mistake(declaration, text);
  return declaration;
}

ir::Type param_type(const ParamDecl& decl) {
  if (decl.rank < 0) return ir::Type::of(decl.scalar);
  return ir::Type::view(decl.scalar, ir::Space::kGlobal, decl.rank, decl.read_only);
}

class LambdaSource final : public ir::KernelSource {
 public:
  LambdaSource(const char* declaration, absl::Span<const ParamDecl> params, KernelBody* body,
               SourceLoc loc)
      : body_(body), loc_(loc) {
    Declaration parsed = parse_declaration(declaration == nullptr ? "" : declaration);
    name_ = std::move(parsed.name);
    mistake_ = std::move(parsed.mistake);
    const bool fits = parsed.names_all
                          ? parsed.params.empty() || parsed.params.size() == params.size()
                          : parsed.params.size() <= params.size();
    if (mistake_.empty() && !fits) {
      mistake_ = absl::StrCat(
          ir::counted(static_cast<int64_t>(parsed.params.size()), "parameter name"),
          " for a lambda that takes ", params.size(), " (each member of a struct is one)");
    }
    for (size_t i = 0; i < params.size(); ++i) {
      const bool has_name = fits && i < parsed.params.size();
      params_.push_back({.name = has_name ? parsed.params[i] : absl::StrCat("arg", i),
                         .type = param_type(params[i]),
                         .unbounded = params[i].unbounded});
    }
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

  std::string name_;
  std::vector<ir::ParamInfo> params_;
  std::string mistake_;  // in the definition; each trace reports it
  std::string fix_ =
      "write define_kernel(\"name(x, y)\", ...), with a name for each parameter and each member of "
      "a struct, or define_kernel(\"name\", ...)";
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
