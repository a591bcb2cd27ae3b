#include "heddle/runtime/named_extents.h"

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/builder.h"
#include "heddle/runtime/specialize.h"

namespace heddle::runtime {
namespace {

constexpr char kOtherExtent[] = "pass a tensor with that extent, or declare the kernel's as '?'";

// Adds `require` ops in front of a kernel's first op.
class Requirements {
 public:
  Requirements(ir::Kernel& kernel, absl::Span<const ir::ParamInfo> params)
      : kernel_(kernel), params_(params), builder_(kernel) {
    const ir::OpId first = kernel.region(kernel.body()).first;
    if (ir::valid(first)) builder_.set_insertion_before(first);
    builder_.set_loc(kernel.defined);
  }

  // A number that the launch knows, and what its author calls it.
  struct Number {
    ir::ValueId value;
    std::string text;
  };
  Number extent(int param, int mode) {
    return {builder_.create(ir::Opcode::kExtent, {kernel_.params()[param].value}, ir::kI64Type,
                            {{ir::AttrKey::kDim, mode}}),
            absl::StrCat(params_[param].name, ".shape(", mode, ")")};
  }
  Number argument(int param) {
    ir::ValueId value = kernel_.params()[param].value;
    if (kernel_.type(value) != ir::kI64Type) {
      value = builder_.create(ir::Opcode::kConvert, {value}, ir::kI64Type);
    }
    return {value, absl::StrCat("the argument ", params_[param].name)};
  }

  void fixed(const Number& number, int64_t expected) {
    require(number.value, builder_.constant_int(ir::kI64Type, expected),
            absl::StrCat(number.text, " is %, and the kernel is written for %"), kOtherExtent);
  }
  void same(const std::string& name, const Number& a, const Number& b) {
    require(a.value, b.value,
            absl::StrCat("its extent ", name, " is % in ", a.text, " and % in ", b.text),
            absl::StrCat("pass arguments that agree in ", name));
  }

 private:
  void require(ir::ValueId a, ir::ValueId b, const std::string& message, const std::string& fix) {
    const auto text = [this](const std::string& words) {
      return static_cast<int64_t>(ir::index_of(kernel_.intern(words)));
    };
    const ir::ValueId equal = builder_.create(ir::Opcode::kEq, {a, b});
    const ir::ValueId operands[] = {equal, a, b};
    const ir::Attr attrs[] = {{ir::AttrKey::kMessage, text(message)},
                              {ir::AttrKey::kFix, text(fix)}};
    builder_.create_op(ir::Opcode::kRequire, operands, ir::Type::none(), attrs);
  }

  ir::Kernel& kernel_;
  absl::Span<const ir::ParamInfo> params_;
  ir::Builder builder_;
};

// What each name stands for: where it is met first.
class Names {
 public:
  explicit Names(Requirements& requirements) : requirements_(requirements) {}

  void define(const std::string& name, const Requirements::Number& number) {
    known_.emplace(name, number);
  }
  void use(const std::string& name, int param, int mode) {
    if (name.empty()) return;
    const Requirements::Number here = requirements_.extent(param, mode);
    const auto [known, is_new] = known_.emplace(name, here);
    if (!is_new) requirements_.same(name, known->second, here);
  }

 private:
  Requirements& requirements_;
  absl::flat_hash_map<std::string, Requirements::Number> known_;
};

bool is_integer(const ir::ParamInfo& info) {
  return !info.type.is_view() && ir::is_integer(info.type.scalar);
}

void require_declared(Requirements& requirements, absl::Span<const ir::ParamInfo> params) {
  Names names(requirements);
  bool any = false;
  for (const ir::ParamInfo& info : params) any |= !info.extents.empty();
  if (!any) return;
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    // An extent with a parameter's name is that number.
    if (is_integer(params[i])) names.define(params[i].name, requirements.argument(i));
  }
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    for (int mode = 0; mode < static_cast<int>(params[i].extents.size()); ++mode) {
      const ir::DeclaredExtent& said = params[i].extents[mode];
      names.use(said.name, i, mode);
      if (said.number != ir::kDynamic) {
        requirements.fixed(requirements.extent(i, mode), said.number);
      }
    }
  }
}

}  // namespace

void require_named_extents(ir::Kernel& kernel, absl::Span<const ir::ParamInfo> params,
                           absl::Span<const ir::Specialization::Argument> arguments) {
  Requirements requirements(kernel, params);
  require_declared(requirements, params);
  // What a signature calls by a name need not be what the kernel's author calls so.
  Names names(requirements);
  for (int i = 0; i < static_cast<int>(arguments.size()); ++i) {
    for (int mode = 0; mode < static_cast<int>(arguments[i].names.size()); ++mode) {
      names.use(arguments[i].names[mode], i, mode);
    }
  }
}

Status check_declared_numbers(const ir::KernelSource& source, Arguments arguments) {
  const absl::Span<const ir::ParamInfo> params = source.params();
  for (size_t i = 0; i < params.size(); ++i) {
    for (size_t mode = 0; mode < params[i].extents.size(); ++mode) {
      const int64_t wanted = params[i].extents[mode].number;
      const int64_t given = arguments[i].extents[mode];
      if (wanted == ir::kDynamic || wanted == given) continue;
      const ir::SourceLine place = source.place();
      return InvalidArgumentError(
          absl::StrCat(describe(source), " cannot launch: ", params[i].name, ".shape(", mode,
                       ") is ", given, ", and the kernel is written for ", wanted, " (", place.file,
                       ":", place.line, "); fix: ", kOtherExtent));
    }
  }
  return OkStatus();
}

}  // namespace heddle::runtime
