#include "heddle/runtime/operation/bound_call.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/operation/declaration_internal.h"

namespace heddle::runtime {
namespace {

using Dimension = OperationArgument::Dimension;

template <class T>
std::optional<uint64_t> bits_of(T number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(number));
  return bits;
}

template <class Int>
std::optional<uint64_t> integer_bits(absl::string_view text) {
  Int number;
  return absl::SimpleAtoi(text, &number) ? bits_of(number) : std::nullopt;
}

// The bits of a number as its type has them; nothing where the text is none, or the type does not
// hold it.
std::optional<uint64_t> number_bits(ir::Scalar type, absl::string_view text) {
  float single;
  double wide;
  switch (type) {
    case ir::Scalar::kF32:
      return absl::SimpleAtof(text, &single) ? bits_of(single) : std::nullopt;
    case ir::Scalar::kF64:
      return absl::SimpleAtod(text, &wide) ? bits_of(wide) : std::nullopt;
    case ir::Scalar::kI32:
      return integer_bits<int32_t>(text);
    case ir::Scalar::kU32:
      return integer_bits<uint32_t>(text);
    case ir::Scalar::kI64:
      return integer_bits<int64_t>(text);
    case ir::Scalar::kU64:
      return integer_bits<uint64_t>(text);
    default:
      return std::nullopt;
  }
}

// A named dimension to which an argument adds more than 64 bits count.
Status too_large(const Operation& operation, const OperationArgument& argument,
                 const Dimension& dimension, int64_t named) {
  return InvalidArgumentError(absl::StrCat(
      "dimension '", dimension.name, "' of kernel '", operation.name(), "' is too large: ", named,
      ", and '", argument.name, "' has ", dimension.number, " more than that"));
}

// Every named dimension with who says so.
class Dimensions {
 public:
  explicit Dimensions(const Operation& operation) : operation_(operation) {}

  Status give(const Sizes& sizes) {
    for (const auto& [name, size] : sizes) {
      if (operation_.spec().sizes.count(name) == 0) {
        return InvalidArgumentError(absl::StrCat(
            "kernel '", operation_.name(), "' has no dimension '", name, "'; it has ",
            operation_.spec().sizes.empty()
                ? "none"
                : absl::StrJoin(operation_.spec().sizes, ", ",
                                [](std::string* out, const auto& s) { out->append(s.first); })));
      }
      known_[name] = {size, ""};
    }
    return OkStatus();
  }

  Status read(const OperationArgument& argument, const TensorShape& shape) {
    for (size_t mode = 0; mode < shape.extents.size(); ++mode) {
      const Dimension& dimension = argument.dimensions[mode];
      const int64_t extent = shape.extents[mode];
      const auto differs = [&](int64_t wanted, absl::string_view why, absl::string_view by,
                               absl::string_view fix) {
        return InvalidArgumentError(absl::StrCat(
            "'", argument.name, "' has extent ", extent, " in mode ", mode, ", and kernel '",
            operation_.name(), "' takes ", wanted, " there", why, shapes_of(argument.name),
            by == argument.name ? "" : shapes_of(by), "; fix: pass ", fix));
      };
      constexpr absl::string_view kThatExtent = "a tensor with that extent";
      if (dimension.name.empty()) {
        if (extent != dimension.number) return differs(dimension.number, "", "", kThatExtent);
        continue;
      }
      if (extent < 0) {
        return InvalidArgumentError(absl::StrCat(
            "'", argument.name, "' of kernel '", operation_.name(), "' cannot have extent ", extent,
            " in mode ", mode, "; fix: pass 0 where there are no elements"));
      }
      const Known given{extent - dimension.number, argument.name};
      const Known& known = known_.try_emplace(dimension.name, given).first->second;
      if (known.size == given.size && known.size >= 0) continue;
      int64_t wanted;
      if (__builtin_add_overflow(std::max<int64_t>(known.size, 0), dimension.number, &wanted)) {
        return too_large(operation_, argument, dimension, known.size);
      }
      if (known.size < 0) return differs(wanted, " at least", known.by, kThatExtent);
      return differs(wanted, by(dimension, known), known.by,
                     absl::StrCat(known.by.empty() ? "a tensor and a size" : "tensors",
                                  " that agree in ", dimension.name));
    }
    return OkStatus();
  }

  // What nobody said is as in the example.
  Sizes all() const {
    Sizes sizes = operation_.spec().sizes;
    for (const auto& [name, known] : known_) sizes[name] = known.size;
    return sizes;
  }

 private:
  struct Known {
    int64_t size;
    std::string by;  // an argument; empty: the caller
  };

  // ", rows + 1 of 'x'"
  static std::string by(const Dimension& dimension, const Known& known) {
    return absl::StrCat(", ", dimension.name,
                        dimension.number == 0 ? "" : absl::StrCat(" + ", dimension.number),
                        known.by.empty() ? "" : absl::StrCat(" of '", known.by, "'"));
  }

  // "; 'a' is [k, m] if layout=nn|nt, else [m, k]", of an argument whose shape settings decide.
  std::string shapes_of(absl::string_view name) const {
    std::vector<std::string> shapes;
    for (const OperationArgument& argument : operation_.declared()) {
      if (argument.name != name || argument.role == Role::kAbsent) continue;
      const std::string when = describe(argument.condition);
      shapes.push_back(
          absl::StrCat(describe_dimensions(argument), when.empty() ? "" : " if ", when));
    }
    return shapes.size() > 1 ? absl::StrCat("; '", name, "' is ", absl::StrJoin(shapes, ", else "))
                             : "";
  }

  const Operation& operation_;
  std::map<std::string, Known> known_;
};

// The names of arguments, each once.
std::string argument_names(const Operation& operation) {
  std::vector<absl::string_view> names;
  for (const OperationArgument& argument : operation.declared()) {
    if (!absl::c_linear_search(names, argument.name)) names.push_back(argument.name);
  }
  return absl::StrJoin(names, ", ");
}

// An argument that the settings leave out.
Status absent(const Operation& operation, const std::string& name) {
  std::vector<std::string> conditions, fixes;
  for (const OperationArgument& argument : operation.declared()) {
    if (argument.name != name || argument.role == Role::kAbsent) continue;
    conditions.push_back(absl::StrCat("if ", describe(argument.condition)));
    for (const Condition::Term& term : argument.condition.terms) {
      const std::string fix = absl::StrCat("set ", term.setting, "=..., or ");
      if (!absl::c_linear_search(fixes, fix)) fixes.push_back(fix);
    }
  }
  return InvalidArgumentError(absl::StrCat(
      "kernel '", operation.name(), "' has a '", name, "' only ", absl::StrJoin(conditions, " or "),
      "; fix: ", absl::StrJoin(fixes, ""), "leave '", name, "' out"));
}

// An input whose element type is not that of the argument.
Status wrong_type(const Operation& operation, const OperationArgument& argument,
                  const TensorShape& shape, ir::Scalar taken) {
  const absl::string_view given = ir::info(shape.dtype).name;
  std::string takes = absl::StrCat(ir::info(taken).name, "; fix: convert it");
  for (const Setting& setting : operation.spec().settings) {
    if (setting.name != argument.type) continue;
    takes = absl::c_linear_search(setting.choices, given)
                ? absl::StrCat(ir::info(taken).name, "; fix: set ", setting.name, "=", given,
                               ", or convert it")
                : absl::StrCat(absl::StrJoin(setting.choices, ", "), "; fix: convert it");
  }
  return InvalidArgumentError(absl::StrCat("'", argument.name, "' is ", describe(shape),
                                           ", and kernel '", operation.name(), "' takes ", takes));
}

// One input: that there is such an argument, its element type and modes.
Status check_input(const Operation& operation, const Settings& settings, const std::string& name,
                   const TensorShape& shape) {
  const OperationArgument* const argument = operation.find(name, settings);
  if (argument == nullptr) {
    return InvalidArgumentError(absl::StrCat("kernel '", operation.name(), "' has no parameter '",
                                             name, "'; it has ", argument_names(operation)));
  }
  if (argument->role == Role::kAbsent) return absent(operation, name);
  if (argument->role == Role::kNumber) {
    return InvalidArgumentError(absl::StrCat("'", name, "' is a number of kernel '",
                                             operation.name(), "', not an input; fix: set ", name,
                                             "=..."));
  }
  const ir::Scalar taken = operation.element_type(*argument, settings);
  if (shape.dtype != taken) return wrong_type(operation, *argument, shape, taken);
  const size_t modes = argument->dimensions.size();
  if (shape.extents.size() == modes) return OkStatus();
  return InvalidArgumentError(absl::StrCat("'", name, "' is ", describe(shape), ", and kernel '",
                                           operation.name(), "' takes a tensor of ",
                                           ir::counted(static_cast<int64_t>(modes), "mode"),
                                           ", not of ", shape.extents.size(), "; fix: reshape it"));
}

const HostFunction* find_function(const Operation& operation, const Settings& settings,
                                  absl::Span<const OperationArgument* const> arguments) {
  for (const HostFunction& function : operation.spec().functions) {
    bool fits = true;
    for (size_t i = 0; i < arguments.size(); ++i) {
      fits &= arguments[i]->role == Role::kAbsent ||
              function.parameters()[i].scalar == operation.element_type(*arguments[i], settings);
    }
    if (fits) return &function;
  }
  return nullptr;
}

// The bits of a number or a choice.
StatusOr<uint64_t> setting_bits(const Operation& operation, const OperationArgument& argument,
                                const std::string& text) {
  if (argument.type == kChoiceWord) {
    const auto known = absl::c_find_if(operation.spec().settings,
                                       [&](const Setting& s) { return s.name == argument.name; });
    return static_cast<uint64_t>(absl::c_find(known->choices, text) - known->choices.begin());
  }
  const std::optional<uint64_t> bits = number_bits(*ir::scalar_from_name(argument.type), text);
  if (bits) return *bits;
  return InvalidArgumentError(absl::StrCat("setting '", argument.name, "' of kernel '",
                                           operation.name(), "' cannot be '", text,
                                           "': it is a number of type ", argument.type));
}

// The sizes that are given, and of the other dimensions those that have a setting's name.
StatusOr<Sizes> sizes_with_settings(const Operation& operation, const Settings& settings,
                                    Sizes sizes) {
  for (const auto& [name, text] : settings) {
    if (operation.spec().sizes.count(name) == 0) continue;
    int64_t size;
    if (!absl::SimpleAtoi(text, &size) || size < 0) {
      return InvalidArgumentError(absl::StrCat("setting '", name, "' of kernel '", operation.name(),
                                               "' cannot be '", text, "': it is a dimension"));
    }
    sizes.try_emplace(name, size);
  }
  return sizes;
}

}  // namespace

StatusOr<BoundCall> bind(const Operation& operation, const Settings& given, const Shapes& inputs,
                         const Sizes& sizes) {
  if (!operation.validity().ok()) return operation.validity();
  const StatusOr<Settings> resolved = operation.resolve({given.begin(), given.end()});
  if (!resolved.ok()) return resolved.status();
  const Settings& settings = *resolved;
  for (const auto& [name, size] : sizes) {
    if (size >= 0) continue;
    return InvalidArgumentError(
        absl::StrCat("dimension '", name, "' of kernel '", operation.name(), "' cannot be ", size));
  }
  BoundCall call;
  call.operation = &operation;
  call.settings = settings;
  const std::vector<const OperationArgument*> arguments = operation.arguments(settings);
  call.function = find_function(operation, settings, arguments);
  if (call.function == nullptr) {
    return InvalidArgumentError(
        absl::StrCat("kernel '", operation.name(), "' does not exist for ",
                     absl::StrJoin(settings, ", ", absl::PairFormatter("="))));
  }
  for (const auto& [name, shape] : inputs) {
    if (Status s = check_input(operation, settings, name, shape); !s.ok()) return s;
  }
  const StatusOr<Sizes> known = sizes_with_settings(operation, settings, sizes);
  if (!known.ok()) return known.status();
  Dimensions dimensions(operation);
  if (Status s = dimensions.give(*known); !s.ok()) return s;
  for (const OperationArgument* const argument : arguments) {
    const auto input = inputs.find(argument->name);
    if (input == inputs.end()) continue;
    if (Status s = dimensions.read(*argument, input->second); !s.ok()) return s;
  }
  call.sizes = dimensions.all();
  for (const OperationArgument* const argument : arguments) {
    BoundCall::Value& value = call.values.emplace_back();
    value.argument = argument;
    if (argument->role == Role::kNumber) {
      const StatusOr<uint64_t> bits =
          setting_bits(operation, *argument, settings.find(argument->name)->second);
      if (!bits.ok()) return bits.status();
      value.bits = *bits;
    }
    if (!argument->is_tensor()) continue;
    value.shape.dtype = operation.element_type(*argument, settings);
    for (const Dimension& dimension : argument->dimensions) {
      const int64_t named = dimension.name.empty() ? 0 : call.sizes.find(dimension.name)->second;
      int64_t& extent = value.shape.extents.emplace_back();
      if (!__builtin_add_overflow(named, dimension.number, &extent)) continue;
      return too_large(operation, *argument, dimension, named);
    }
  }
  return call;
}

}  // namespace heddle::runtime
