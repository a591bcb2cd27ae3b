#include "heddle/ir/launch/launch_program.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <tuple>

#include "absl/container/fixed_array.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/fold_scalar.h"
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/check.h"
#include "heddle/ir/launch/tensor_map.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

bool is_query(Opcode opcode) { return opcode == Opcode::kExtent || opcode == Opcode::kStride; }

bool is_shape(Opcode opcode) { return opcode == Opcode::kBlockDim || opcode == Opcode::kGridDim; }

bool is_number(Type type) {
  return type.is_scalar() && (is_integer(type.scalar) || type.scalar == Scalar::kBool);
}

bool is_computed_by_host(const Op& op) {
  return op.opcode == Opcode::kConst || can_fold_scalar(op.opcode);
}

// Walks the values that one is computed from, each once and behind its operands: leave(value).
// enter(value) says whether to look at its operands. Without recursion, for chains are long.
class OperandWalk {
 public:
  explicit OperandWalk(const Kernel& kernel) : kernel_(kernel) {}

  void run(ValueId root, absl::FunctionRef<bool(ValueId)> enter,
           absl::FunctionRef<void(ValueId)> leave) {
    push(root, enter);
    while (!open_.empty()) {
      Open& top = open_.back();
      if (top.next < top.operands.size()) {
        push(top.operands[top.next++], enter);
        continue;
      }
      const ValueId value = top.value;
      open_.pop_back();
      leave(value);
    }
  }

 private:
  struct Open {
    ValueId value;
    absl::Span<const ValueId> operands;
    size_t next = 0;
  };

  void push(ValueId value, absl::FunctionRef<bool(ValueId)> enter) {
    if (!met_.insert(value).second) return;
    const Op* const op = kernel_.def(value);
    const bool descends = enter(value) && op != nullptr;
    open_.push_back(
        {value, descends ? absl::MakeConstSpan(op->operands) : absl::Span<const ValueId>()});
  }

  const Kernel& kernel_;
  absl::flat_hash_set<ValueId> met_;
  std::vector<Open> open_;
};

// Whether the host has the value without computing anything.
bool is_given(const Kernel& kernel, ValueId value) {
  const Op* const op = kernel.def(value);
  return op == nullptr || op->opcode == Opcode::kConst || is_query(op->opcode) ||
         is_shape(op->opcode);
}

ir::SourceLine place_of(const Kernel& kernel, OpId id) {
  const Loc loc = kernel.loc(id);
  return {std::string(loc.file), loc.line};
}

}  // namespace

std::optional<ValueId> unknown_at_launch(const Kernel& kernel, ValueId value, bool knows_grid) {
  std::optional<ValueId> unknown;
  const auto is_known = [&](ValueId v) {
    if (!is_number(kernel.type(v))) return false;
    const Op* const op = kernel.def(v);
    if (op == nullptr) return kernel.param_index(v).has_value();
    if (is_shape(op->opcode)) return knows_grid || op->opcode == Opcode::kBlockDim;
    if (!is_query(op->opcode)) return is_computed_by_host(*op);
    if (!valid(op->view())) return false;  // the op's row says so
    const auto param = kernel.param_index(op->view());
    return param.has_value() && !kernel.params()[*param].unbounded;
  };
  const auto enter = [&](ValueId v) {
    if (unknown) return false;
    if (!is_known(v)) unknown = v;
    // Another value of the launch answers for itself, but for what it may not know here.
    const Op* const op = kernel.def(v);
    return !unknown && !is_given(kernel, v) && (op->opcode != Opcode::kAtLaunch || !knows_grid);
  };
  OperandWalk(kernel).run(value, enter, [](ValueId) {});
  return unknown;
}

namespace {

// Numbers values so that those computed in the same way from the same arguments have the same.
class Numbering {
 public:
  explicit Numbering(const Kernel& kernel) : kernel_(kernel), walk_(kernel) {}

  int of(ValueId value) {
    walk_.run(
        value, [](ValueId) { return true; }, [&](ValueId v) { number_[v] = number(v); });
    return number_.at(value);
  }

 private:
  int number(ValueId value) {
    const Op* const op = kernel_.def(value);
    if (op != nullptr && has(info(*op), kForwards)) return number_.at(op->a());
    // What it is, of which type, and of what. Parameters are the only values that no op defines.
    Key key{op == nullptr ? -1 : static_cast<int64_t>(op->opcode),
            static_cast<int64_t>(kernel_.type(value).scalar)};
    if (op == nullptr) {
      key.push_back(*kernel_.param_index(value));
    } else {
      for (const Attr& attr : op->attrs) {
        key.insert(key.end(), {static_cast<int64_t>(attr.key), attr.value});
      }
      for (const ValueId operand : op->operands) key.push_back(number_.at(operand));
    }
    return known_.try_emplace(key, static_cast<int>(known_.size())).first->second;
  }

  using Key = absl::InlinedVector<int64_t, 6>;
  const Kernel& kernel_;
  OperandWalk walk_;
  absl::flat_hash_map<ValueId, int> number_;
  absl::flat_hash_map<Key, int> known_;
};

}  // namespace

ParamLayout launch_layout(const Kernel& kernel, absl::FunctionRef<bool(OpId)> is_needed) {
  ParamLayout layout = param_layout(kernel);
  Numbering numbering(kernel);
  absl::flat_hash_map<int, size_t> slots;
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    if (op.opcode != Opcode::kAtLaunch || !is_needed(id)) return;
    const auto [slot, is_new] =
        slots.try_emplace(numbering.of(op.result()), layout.at_launch.size());
    if (is_new) {
      const int bytes = bytes_of(kernel.type(op.result()).scalar);
      layout.at_launch.push_back({.ops = {}, .offset = layout.append(bytes), .bytes = bytes});
    }
    layout.at_launch[slot->second].ops.push_back(id);
  });
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode != Opcode::kTensorMap || !is_needed(id)) return;
    layout.tensor_maps.push_back({id, layout.append(kTensorMapBytes, kTensorMapAlign)});
  });
  return layout;
}

// Collects the steps that values need, each after its operands.
class LaunchProgram::Translation {
 public:
  Translation(const Kernel& kernel, const ParamLayout& layout, LaunchProgram* program)
      : kernel_(kernel), layout_(layout), program_(*program), walk_(kernel) {}

  void collect(ValueId root) {
    walk_.run(
        root, [&](ValueId v) { return !is_given(kernel_, v); },
        [&](ValueId v) {
          if (is_given(kernel_, v)) {
            give(v);
          } else {
            order_.push_back(v);
          }
        });
  }

  void translate() {
    next_ = static_cast<uint32_t>(program_.initial_.size());
    for (const ValueId value : order_) {
      const Op& op = *kernel_.def(value);
      if (has(info(op), kForwards)) {
        index_[value] = index(op.a());
        continue;
      }
      Step step{.opcode = op.opcode,
                .operand = kernel_.type(op.operands[typed_operand(op.opcode)]).scalar,
                .result = kernel_.type(value).scalar};
      HEDDLE_CHECK(op.operands.size() <= step.operands.size(), "an op of too many numbers");
      for (const ValueId operand : op.operands) step.operands[step.count++] = index(operand);
      program_.steps_.push_back(step);
      index_[value] = next_++;
    }
  }

  uint32_t index(ValueId value) const {
    // The grid is what the kernel says it is: a launch with another one is refused.
    const Op* const op = kernel_.def(value);
    const bool is_own_grid = op != nullptr && op->opcode == Opcode::kGridDim && valid(grid_);
    if (!is_own_grid) return index_.at(value);
    return index_.at(kernel_.op(grid_).operands[static_cast<size_t>(*op->attr(AttrKey::kAxis))]);
  }

  // Its extents come before all others, which may be computed from them.
  void collect_grid(OpId id) {
    grid_ = id;
    for (const ValueId extent : kernel_.op(id).operands) collect(extent);
  }

 private:
  // A constant, or an argument's number.
  void give(ValueId value) {
    const Op* const op = kernel_.def(value);
    if (op == nullptr) return read(value, SlotKind::kScalar, value, 0);
    if (op->opcode == Opcode::kConst) return set(value, *kernel_.constant_bits(value));
    if (is_shape(op->opcode)) {
      if (op->opcode == Opcode::kGridDim && valid(grid_)) return;
      set(value, 0);
      const int first = op->opcode == Opcode::kGridDim ? 0 : 3;
      program_.extents_.push_back(
          {index_[value], static_cast<uint8_t>(first + *op->attr(AttrKey::kAxis))});
      return;
    }
    if (const auto fixed = fixed_layout(kernel_, *op)) {
      return set(value, *fold_scalar(Opcode::kConvert, Scalar::kI64, kernel_.type(value).scalar,
                                     {static_cast<uint64_t>(*fixed)}));
    }
    read(value, op->opcode == Opcode::kExtent ? SlotKind::kExtent : SlotKind::kStride, op->view(),
         static_cast<int>(*op->attr(AttrKey::kDim)));
  }
  void set(ValueId value, uint64_t bits) {
    index_[value] = static_cast<uint32_t>(program_.initial_.size());
    program_.initial_.push_back(bits);
  }
  void read(ValueId value, SlotKind kind, ValueId param, int dim) {
    const ParamSlot* const slot = layout_.find(kind, *kernel_.param_index(param), dim);
    HEDDLE_CHECK(slot != nullptr, "the parameter block lacks a value that the launch needs");
    set(value, 0);
    program_.inputs_.push_back({index_[value], slot->offset, kernel_.type(value).scalar});
  }

  const Kernel& kernel_;
  const ParamLayout& layout_;
  LaunchProgram& program_;
  OperandWalk walk_;
  absl::flat_hash_map<ValueId, uint32_t> index_;
  std::vector<ValueId> order_;
  OpId grid_ = OpId::kNone;
  uint32_t next_ = 0;
};

// The registers of the last run. Who finds it taken computes for himself.
struct LaunchProgram::Memory {
  std::atomic<bool> taken{false};
  bool filled = false;
  std::vector<uint64_t> registers;
};

LaunchProgram::LaunchProgram(const Kernel& kernel, const ParamLayout& layout) {
  Translation translation(kernel, layout, this);
  std::vector<OpId> required;
  OpId grid = OpId::kNone;
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode == Opcode::kRequire) required.push_back(id);
    if (kernel.op(id).opcode == Opcode::kLaunchGrid) grid = id;
  });
  if (valid(grid)) translation.collect_grid(grid);
  for (const LaunchSlot& slot : layout.at_launch) {
    translation.collect(kernel.op(slot.ops[0]).result());
  }
  for (const OpId id : required) {
    for (const ValueId operand : kernel.op(id).operands) translation.collect(operand);
  }
  translation.translate();
  const auto number = [&](ValueId value) {
    return Number{translation.index(value), kernel.type(value).scalar};
  };
  for (const LaunchSlot& slot : layout.at_launch) {
    const ValueId value = kernel.op(slot.ops[0]).result();
    outputs_.push_back({translation.index(value), slot.offset, kernel.type(value).scalar});
  }
  for (const OpId id : required) {
    const Op& op = kernel.op(id);
    const auto text = [&](AttrKey key) {
      const auto string = op.attr(key);
      return string ? std::string(kernel.text(StringId{static_cast<uint32_t>(*string)})) : "";
    };
    Requirement& requirement = requirements_.emplace_back();
    requirement.condition = translation.index(op.condition());
    requirement.message = text(AttrKey::kMessage);
    requirement.fix = text(AttrKey::kFix);
    requirement.place = place_of(kernel, id);
    for (const ValueId shown : op.numbers()) requirement.numbers.push_back(number(shown));
  }
  if (valid(grid)) {
    const Op& op = kernel.op(grid);
    grid_ = Grid{{number(op.x()), number(op.y()), number(op.z())}, place_of(kernel, grid)};
  }
  is_empty_ = outputs_.empty() && requirements_.empty() && !grid_;
  memory_ = std::make_shared<Memory>();
}

bool LaunchProgram::run(std::byte* block, LaunchDims& dims) const {
  if (is_empty_) {
    if (dims.grid.x == kGridOfKernel) dims.grid = {1, 1, 1};
    return true;
  }
  absl::FixedArray<uint64_t, 64> registers(initial_.size() + steps_.size());
  read(block, dims, registers.data());
  if (memory_->taken.exchange(true, std::memory_order_acquire)) {
    compute(registers.data());
    return finish(registers.data(), block, dims);
  }
  const auto inputs_end = registers.begin() + static_cast<ptrdiff_t>(initial_.size());
  if (!memory_->filled || !std::equal(registers.begin(), inputs_end, memory_->registers.begin())) {
    compute(registers.data());
    memory_->registers.assign(registers.begin(), registers.end());
    memory_->filled = true;
  }
  const bool may_launch = finish(memory_->registers.data(), block, dims);
  memory_->taken.store(false, std::memory_order_release);
  return may_launch;
}

void LaunchProgram::read(const std::byte* block, const LaunchDims& dims,
                         uint64_t* registers) const {
  std::copy(initial_.begin(), initial_.end(), registers);
  // Little-endian, as every host of CUDA is.
  for (const BlockSlot& input : inputs_) {
    std::memcpy(&registers[input.index], block + input.offset,
                static_cast<size_t>(bytes_of(input.scalar)));
  }
  for (const Extent& extent : extents_) {
    const Dim3& of = extent.which < 3 ? dims.grid : dims.block;
    // A grid that is not named and not the kernel's is one block.
    const int64_t given =
        dims.grid.x == kGridOfKernel && extent.which < 3 ? 1 : of[extent.which % 3u];
    registers[extent.index] = static_cast<uint32_t>(given);
  }
}

void LaunchProgram::compute(uint64_t* registers) const {
  uint64_t* next = registers + initial_.size();
  for (const Step& step : steps_) {
    uint64_t operands[std::tuple_size_v<decltype(step.operands)>];
    for (size_t i = 0; i < std::size(operands); ++i) operands[i] = registers[step.operands[i]];
    const absl::Span<const uint64_t> bits(operands, step.count);
    *next++ = fold_scalar(step.opcode, step.operand, step.result, bits).value_or(0);
  }
}

// Whether the launch may happen, with these registers.
bool LaunchProgram::finish(const uint64_t* registers, std::byte* block, LaunchDims& dims) const {
  bool may_launch = true;
  for (const Requirement& requirement : requirements_) {
    may_launch &= registers[requirement.condition] != 0;
  }
  if (grid_) {
    const Dim3 grid = grid_of(registers);
    may_launch &= dims.grid.x == kGridOfKernel || dims.grid == grid;
    if (may_launch) dims.grid = grid;
  } else if (dims.grid.x == kGridOfKernel && may_launch) {
    dims.grid = {1, 1, 1};
  }
  for (const BlockSlot& output : outputs_) {
    std::memcpy(block + output.offset, &registers[output.index],
                static_cast<size_t>(bytes_of(output.scalar)));
  }
  return may_launch;
}

namespace {

// The number that bits are, of an integer type.
int64_t number_of(uint64_t bits, Scalar scalar) {
  return scalar == Scalar::kI64 ? static_cast<int64_t>(bits) : static_cast<int32_t>(bits);
}

std::string at(const SourceLine& place) {
  return place.file.empty() ? "" : absl::StrCat(" (", place.file, ":", place.line, ")");
}

}  // namespace

Dim3 LaunchProgram::grid_of(const uint64_t* registers) const {
  Dim3 grid;
  for (size_t axis = 0; axis < 3; ++axis) {
    const Number& extent = grid_->extents[axis];
    grid[axis] = number_of(registers[extent.index], extent.scalar);
  }
  return grid;
}

std::string LaunchProgram::describe(const Requirement& requirement,
                                    const uint64_t* registers) const {
  std::string text;
  size_t next = 0;
  for (size_t i = 0; i < requirement.message.size(); ++i) {
    const char c = requirement.message[i];
    const bool is_percent =
        c == '%' && i + 1 < requirement.message.size() && requirement.message[i + 1] == '%';
    if (c != '%' || is_percent) {
      text.push_back(c);
      i += is_percent ? 1 : 0;
    } else if (next < requirement.numbers.size()) {
      const Number& number = requirement.numbers[next++];
      absl::StrAppend(&text, number_of(registers[number.index], number.scalar));
    }
  }
  absl::StrAppend(&text, at(requirement.place));
  if (!requirement.fix.empty()) absl::StrAppend(&text, "; fix: ", requirement.fix);
  return text;
}

std::string LaunchProgram::refusal(const std::byte* block, const LaunchDims& dims) const {
  absl::FixedArray<uint64_t, 64> registers(initial_.size() + steps_.size());
  read(block, dims, registers.data());
  compute(registers.data());
  for (const Requirement& requirement : requirements_) {
    if (registers[requirement.condition] == 0) return describe(requirement, registers.data());
  }
  return absl::StrCat("the launch names a grid of ", to_string(dims.grid),
                      " blocks, and the kernel's own is ", to_string(grid_of(registers.data())),
                      at(grid_->place), "; fix: leave .grid out of the launch");
}

std::optional<std::string> LaunchProgram::refuses_all() const {
  const auto depends_on_launch = [&](uint32_t index) {
    if (index >= initial_.size()) return true;
    const auto is_it = [&](const auto& input) { return input.index == index; };
    return std::any_of(inputs_.begin(), inputs_.end(), is_it) ||
           std::any_of(extents_.begin(), extents_.end(), is_it);
  };
  for (const Requirement& requirement : requirements_) {
    if (depends_on_launch(requirement.condition) || initial_[requirement.condition] != 0) continue;
    absl::FixedArray<uint64_t, 64> registers(initial_.size() + steps_.size());
    std::copy(initial_.begin(), initial_.end(), registers.begin());
    compute(registers.data());
    return describe(requirement, registers.data());
  }
  return std::nullopt;
}

}  // namespace heddle::ir
