#include "fuzz/oracle_state.h"

namespace heddle::fuzz::oracle {

using ir::Kernel;
using ir::Type;
using ir::TypeKind;
using ir::ValueId;

State::State(const Kernel& kernel, const Inputs& inputs)
    : kernel_(kernel),
      inputs_(inputs),
      threads_(static_cast<uint32_t>(inputs.block.x * inputs.block.y * inputs.block.z)) {
  size_t rows = 0;
  for (size_t i = 0; i < kernel.value_count(); ++i) {
    first_.push_back(rows);
    rows += static_cast<size_t>(count_of(kernel.type(static_cast<ValueId>(i))));
  }
  bits_.resize(rows * threads_);
  for (const std::vector<uint8_t>& bytes : inputs.buffers) {
    buffers_.push_back(memory_.add(bytes.size()));
    memory_.piece(buffers_.back()) = bytes;
  }
}

int State::count_of(Type type) {
  if (type.kind == TypeKind::kView) return 2;
  return type.kind == TypeKind::kCheck ? 1 : type.count;
}

void State::begin_block(int64_t block) {
  block_ = block;
  memory_.keep(buffers_.size());
  Threads all;
  for (uint32_t t = 0; t < threads_; ++t) all.push_back(t);
  for (size_t p = 0; p < kernel_.params().size(); ++p) {
    const ir::Param& param = kernel_.params()[p];
    const Inputs::Argument& argument = inputs_.arguments[p];
    if (!kernel_.type(param.value).is_view()) {
      fill(param.value, all, argument.scalar);
      continue;
    }
    if (param.extents.size() != 1) {
      fail("the oracle knows parameters of one dimension alone");
      return;
    }
    const bool dynamic = param.extents[0] == ir::kDynamic;
    fill(param.value, all, buffers_[argument.buffer] + argument.start, ViewPart::kAddress);
    fill(param.value, all, static_cast<uint64_t>(dynamic ? kElements : param.extents[0]),
         ViewPart::kExtent);
  }
}

std::vector<std::vector<uint8_t>> State::buffers() {
  std::vector<std::vector<uint8_t>> content;
  for (const uint64_t buffer : buffers_) content.push_back(memory_.piece(buffer));
  return content;
}

void State::copy(absl::Span<const ValueId> from, absl::Span<const ValueId> to,
                 const Threads& threads) {
  copied_.clear();
  for (const ValueId value : from) {
    for (int e = 0; e < count_of(value); ++e) {
      const uint64_t* const row_of_value = row(value, e);
      for (const uint32_t t : threads) copied_.push_back(row_of_value[t]);
    }
  }
  size_t next = 0;
  for (const ValueId value : to) {
    for (int e = 0; e < count_of(value); ++e) {
      uint64_t* const row_of_value = row(value, e);
      for (const uint32_t t : threads) row_of_value[t] = copied_[next++];
    }
  }
}

int64_t State::coordinate(uint32_t thread, int axis) const {
  const ir::Dim3& size = inputs_.block;
  const auto t = static_cast<int64_t>(thread);
  if (axis == 0) return t % size.x;
  return axis == 1 ? t / size.x % size.y : t / (int64_t{size.x} * size.y);
}

}  // namespace heddle::fuzz::oracle
