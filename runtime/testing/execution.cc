#include "heddle/runtime/testing/execution.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/ir/interp/program.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/wording.h"

namespace heddle::filetest {
namespace {

using Kind = LaunchArgument::Kind;

constexpr int64_t kMaxInstructions = 10'000'000;

Status wrong(absl::string_view text, absl::string_view why) {
  return InvalidArgumentError(absl::StrCat("'", text, "' ", why));
}

std::optional<size_t> param_named(const ir::Kernel& kernel, absl::string_view name) {
  for (size_t i = 0; i < kernel.params().size(); ++i) {
    if (name_of_param(kernel, i) == name) return i;
  }
  return std::nullopt;
}

StatusOr<size_t> find_param(const ir::Kernel& kernel, absl::string_view name) {
  const std::optional<size_t> param = param_named(kernel, name);
  if (param) return *param;
  return wrong(name, absl::StrCat("is no parameter of kernel '", kernel.name(), "'"));
}

// "4" or "(4, 1, 1)".
StatusOr<std::vector<int64_t>> numbers_from(absl::string_view text) {
  std::vector<int64_t> numbers;
  absl::string_view inside = text;
  if (absl::ConsumePrefix(&inside, "(") && !absl::ConsumeSuffix(&inside, ")"))
    return wrong(text, "lacks its ')'");
  for (const absl::string_view part : split_outside(inside)) {
    if (!absl::SimpleAtoi(part, &numbers.emplace_back()))
      return wrong(text, "is no number, nor several such as (4, 1, 1)");
  }
  return numbers;
}

ir::Dim3 dims_of(std::vector<int64_t> numbers) {
  numbers.resize(3, 1);
  return {numbers[0], numbers[1], numbers[2]};
}

// What stands behind a word such as " strides ", taken off the end of the text.
StatusOr<std::vector<int64_t>> take_suffix(absl::string_view& text, absl::string_view word) {
  const size_t at = text.rfind(word);
  if (at == text.npos) return std::vector<int64_t>{};
  const absl::string_view numbers = absl::StripAsciiWhitespace(text.substr(at + word.size()));
  text = absl::StripAsciiWhitespace(text.substr(0, at));
  return numbers_from(numbers);
}

std::vector<int64_t> row_major(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

// What the parameter's type says of extents and strides holds for those of the launch.
Status check_layout(const ir::Param& param, const LaunchArgument& argument) {
  if (param.unbounded) return OkStatus();
  const auto check = [](absl::string_view what, const auto& declared,
                        const std::vector<int64_t>& given) {
    if (declared.size() != given.size()) {
      return wrong(absl::StrJoin(given, ", "), absl::StrCat("is ", given.size(), " ", what, " for ",
                                                            declared.size(), " modes"));
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (declared[i] == ir::kDynamic || declared[i] == given[i]) continue;
      return wrong(absl::StrJoin(given, ", "),
                   absl::StrCat("is not what the kernel declares: ", what, " ",
                                absl::StrJoin(declared, ", ")));
    }
    return OkStatus();
  };
  if (Status s = check("extents", param.extents, argument.extents); !s.ok()) return s;
  return check("strides", param.strides, argument.strides);
}

class LaunchReader {
 public:
  explicit LaunchReader(const ir::Kernel& kernel) : kernel_(kernel) {
    plan_.arguments.resize(kernel.params().size());
    given_.resize(kernel.params().size());
    plan_.grid = kernel.cluster;
    kernel.walk([&](ir::OpId id) {
      if (kernel.op(id).opcode == ir::Opcode::kLaunchGrid) plan_.grid.x = ir::kGridOfKernel;
    });
    plan_.block = kernel.block;
    plan_.options.max_instructions = kMaxInstructions;
  }

  StatusOr<Launch> read(absl::string_view settings) {
    for (const absl::string_view part : split_outside(settings == "()" ? "" : settings)) {
      if (Status s = read_part(part); !s.ok()) return s;
    }
    for (size_t i = 0; i < given_.size(); ++i) {
      if (!given_[i]) return wrong(name_of_param(kernel_, i), "is given no value");
    }
    if (plan_.block.x == 0) return wrong("block", "is not given, and the kernel leaves it open");
    return std::move(plan_);
  }

 private:
  Status read_part(absl::string_view part) {
    const size_t equals = part.find('=');
    if (equals == part.npos) return wrong(part, "is no 'name = value'");
    const absl::string_view name = absl::StripAsciiWhitespace(part.substr(0, equals));
    const absl::string_view value = absl::StripAsciiWhitespace(part.substr(equals + 1));
    if (!absl::StartsWith(name, "%")) return read_setting(name, value);
    const StatusOr<size_t> param = find_param(kernel_, name);
    if (!param.ok()) return param.status();
    if (given_[*param]) return wrong(name, "is given twice");
    given_[*param] = true;
    const Status status = read_argument(*param, value);
    return status.ok() ? status : InvalidArgumentError(absl::StrCat(name, ": ", status.message()));
  }

  Status read_setting(absl::string_view name, absl::string_view value) {
    if (name == "cooperative" && value == "true") {
      plan_.cooperative = true;
      return OkStatus();
    }
    if (name == "completion") {
      const StatusOr<ir::interp::Completion> completion = ir::interp::parse_completion(value);
      if (!completion.ok()) return completion.status();
      plan_.options.completion = *completion;
      return OkStatus();
    }
    const StatusOr<std::vector<int64_t>> numbers = numbers_from(value);
    if (!numbers.ok()) return numbers.status();
    const ir::Dim3 dims = dims_of(*numbers);
    if (name == "grid") {
      plan_.grid = dims;
    } else if (name == "block") {
      plan_.block = dims;
    } else if (name == "dynamic_shared") {
      plan_.dynamic_shared = static_cast<int>(dims.x);
    } else if (name == "max_instructions") {
      plan_.options.max_instructions = dims.x;
    } else if (name == "max_reports") {
      plan_.options.max_reports = static_cast<int>(dims.x);
    } else {
      return wrong(
          name,
          "is no parameter, which begin with %, and no setting: grid, block, dynamic_shared, "
          "cooperative = true, completion, max_instructions, max_reports");
    }
    return OkStatus();
  }

  Status read_argument(size_t param, absl::string_view value) {
    LaunchArgument& argument = plan_.arguments[param];
    const ir::Type type = kernel_.type(kernel_.params()[param].value);
    if (!type.is_view()) {
      const StatusOr<Element> element = element_from(type.scalar, value);
      if (!element.ok()) return element.status();
      argument.bits = element->bits;
      return element->kind == Element::Kind::kAny ? wrong(value, "is for results") : OkStatus();
    }
    const StatusOr<std::vector<int64_t>> strides = take_suffix(value, " strides ");
    if (!strides.ok()) return strides.status();
    const StatusOr<std::vector<int64_t>> extents = take_suffix(value, " as ");
    if (!extents.ok()) return extents.status();
    if (Status s = read_memory(type.scalar, value, argument); !s.ok()) return s;
    argument.extents = !extents->empty() ? *extents : argument.list.extents;
    argument.strides = !strides->empty() ? *strides : row_major(argument.extents);
    return check_layout(kernel_.params()[param], argument);
  }

  Status read_memory(ir::Scalar scalar, absl::string_view value, LaunchArgument& argument) {
    if (value == "null") {
      argument.kind = Kind::kNull;
      argument.list.extents.assign(1, 0);
      return OkStatus();
    }
    if (absl::StartsWith(value, "%")) {
      const StatusOr<size_t> other = find_param(kernel_, value);
      if (!other.ok()) return other.status();
      if (plan_.arguments[*other].kind != Kind::kMemory)
        return wrong(value, "is no memory that an earlier parameter was given");
      argument.kind = Kind::kAlias;
      argument.alias = *other;
      argument.list.extents = plan_.arguments[*other].extents;
      return OkStatus();
    }
    argument.kind = Kind::kMemory;
    std::string text(value);
    if (absl::ConsumePrefix(&value, "freed(")) {
      argument.kind = Kind::kFreed;
      text = absl::StrCat("unwritten(", value);
    }
    StatusOr<ElementList> list = list_from(scalar, text);
    if (!list.ok()) return list.status();
    argument.list = *std::move(list);
    for (const Element& element : argument.list.elements) {
      if (element.kind == Element::Kind::kAny) return wrong("?", "is for results");
    }
    return OkStatus();
  }

  const ir::Kernel& kernel_;
  std::vector<bool> given_;
  Launch plan_;
};

size_t bytes_of_param(const ir::Kernel& kernel, size_t param) {
  return static_cast<size_t>(ir::bytes_of(kernel.type(kernel.params()[param].value).scalar));
}

}  // namespace

std::string name_of_param(const ir::Kernel& kernel, size_t param) {
  return absl::StrCat("%", kernel.text(kernel.value(kernel.params()[param].value).name));
}

StatusOr<Launch> read_launch(const ir::Kernel& kernel, absl::string_view settings) {
  return LaunchReader(kernel).read(settings);
}

LaunchResult run_launch(const ir::Kernel& kernel, const Launch& plan) {
  LaunchResult result;
  ir::interp::Memory memory;
  std::vector<uint64_t> addresses(plan.arguments.size());
  const auto fail = [&](const Status& status) {
    result.report = std::string(status.message());
    return result;
  };
  for (size_t p = 0; p < plan.arguments.size(); ++p) {
    const LaunchArgument& argument = plan.arguments[p];
    if (argument.kind == Kind::kAlias) addresses[p] = addresses[argument.alias];
    if (argument.list.elements.empty()) continue;
    const size_t bytes = bytes_of_param(kernel, p);
    std::vector<std::byte> packed(argument.list.elements.size() * bytes);
    for (size_t i = 0; i < argument.list.elements.size(); ++i) {
      std::memcpy(&packed[i * bytes], &argument.list.elements[i].bits, bytes);
    }
    const StatusOr<uint64_t> address =
        memory.allocate(packed.size(), 256, name_of_param(kernel, p).substr(1));
    if (!address.ok()) return fail(address.status());
    addresses[p] = *address;
    Status status;
    if (argument.kind == Kind::kFreed) {
      status = memory.free(*address);
    } else if (argument.list.written) {
      status = memory.copy_from_host(*address, packed.data(), packed.size());
    }
    if (!status.ok()) return fail(status);
  }
  const ir::ParamLayout layout = ir::param_layout(kernel);
  std::vector<std::byte> block(static_cast<size_t>(layout.bytes));
  for (const ir::ParamSlot& slot : layout.slots) {
    const auto p = static_cast<size_t>(slot.param);
    const auto dim = static_cast<size_t>(slot.dim);
    const LaunchArgument& argument = plan.arguments[p];
    const uint64_t bits =
        slot.kind == ir::SlotKind::kAddress  ? addresses[p]
        : slot.kind == ir::SlotKind::kExtent ? static_cast<uint64_t>(argument.extents[dim])
        : slot.kind == ir::SlotKind::kStride ? static_cast<uint64_t>(argument.strides[dim])
                                             : argument.bits;
    std::memcpy(&block[static_cast<size_t>(slot.offset)], &bits, static_cast<size_t>(slot.bytes));
  }
  const ir::LaunchProgram host(kernel, layout);
  ir::LaunchDims dims{.grid = plan.grid, .block = plan.block};
  if (!host.run(block.data(), dims)) {
    result.report = host.refusal(block.data(), {.grid = plan.grid, .block = plan.block});
    return result;
  }
  result.grid = dims.grid;
  const StatusOr<ir::interp::Program> program = ir::interp::compile(kernel);
  if (!program.ok()) return fail(program.status());
  const ir::interp::LaunchArgs launch{.grid = dims.grid,
                                      .block = plan.block,
                                      .params = block,
                                      .dynamic_shared_bytes = plan.dynamic_shared,
                                      .cooperative = plan.cooperative};
  // A grid of the kernel's may have no blocks.
  const bool runs = plan.grid.x != ir::kGridOfKernel || dims.grid.count() != 0;
  if (runs) {
    result.report = std::string(ir::interp::run(*program, launch, memory, plan.options).message());
  }
  for (size_t p = 0; p < plan.arguments.size(); ++p) {
    const bool has_memory = plan.arguments[p].kind == Kind::kMemory;
    const size_t bytes = bytes_of_param(kernel, p);
    std::vector<uint64_t>& elements =
        result.memory.emplace_back(has_memory ? plan.arguments[p].list.elements.size() : 0);
    for (size_t i = 0; i < elements.size(); ++i) {
      const Status status = memory.copy_to_host(&elements[i], addresses[p] + i * bytes, bytes);
      if (!status.ok()) return fail(status);
    }
  }
  return result;
}

StatusOr<ExpectedResult> read_expected(const ir::Kernel& kernel, const Wanted& wanted) {
  ExpectedResult expected;
  expected.line = wanted.line;
  const size_t equals = wanted.text.find('=');
  if (equals == std::string::npos)
    return wrong(wanted.text, "is no '%name = list' or 'grid = (4, 2, 1)', and not 'success'");
  const absl::string_view text = wanted.text;
  const absl::string_view name = absl::StripAsciiWhitespace(text.substr(0, equals));
  if (name == "grid") {
    const auto numbers = numbers_from(absl::StripAsciiWhitespace(text.substr(equals + 1)));
    if (!numbers.ok()) return numbers.status();
    expected.grid = dims_of(*numbers);
    return expected;
  }
  const StatusOr<size_t> param = find_param(kernel, name);
  if (!param.ok()) return param.status();
  expected.param = *param;
  const ir::Type type = kernel.type(kernel.params()[*param].value);
  if (!type.is_view()) return wrong(wanted.text, "speaks of a scalar, which nothing changes");
  absl::string_view list_text = text.substr(equals + 1);
  const size_t within = list_text.rfind(" within ");
  if (within != list_text.npos) {
    const StatusOr<Bound> bound =
        bound_from(absl::StripAsciiWhitespace(list_text.substr(within + 8)));
    if (!bound.ok()) return bound.status();
    expected.bound = *bound;
    list_text = list_text.substr(0, within);
  }
  StatusOr<ElementList> list = list_from(type.scalar, absl::StripAsciiWhitespace(list_text));
  if (!list.ok()) return list.status();
  expected.list = *std::move(list);
  return expected;
}

std::string difference(const ir::Kernel& kernel, const ExpectedResult& expected,
                       const LaunchResult& result) {
  if (expected.grid) {
    if (*expected.grid == result.grid) return "";
    return absl::StrCat("the grid is ", ir::to_string(result.grid), " instead of ",
                        ir::to_string(*expected.grid));
  }
  const ir::Scalar scalar = kernel.type(kernel.params()[*expected.param].value).scalar;
  const std::string name = name_of_param(kernel, *expected.param);
  const std::vector<uint64_t>& memory = result.memory[*expected.param];
  if (memory.size() != expected.list.elements.size()) {
    return absl::StrCat(name, " has ", memory.size(), " elements, and ",
                        expected.list.elements.size(), " are expected");
  }
  std::string text;
  int wrong = 0;
  for (size_t i = 0; i < memory.size(); ++i) {
    const Element& element = expected.list.elements[i];
    if (matches(scalar, memory[i], element, expected.bound)) continue;
    if (++wrong > 1) continue;
    text = absl::StrCat(name, "[", i, "] is ", to_string(scalar, {Element::Kind::kBits, memory[i]}),
                        " instead of ", to_string(scalar, element));
  }
  return wrong > 1 ? absl::StrCat(text, ", and ", wrong - 1, " more differ") : text;
}

}  // namespace heddle::filetest
