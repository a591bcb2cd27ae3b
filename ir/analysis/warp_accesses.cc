#include "heddle/ir/analysis/warp_accesses.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "heddle/ir/analysis/fold_scalar.h"
#include "heddle/ir/analysis/views.h"

namespace heddle::ir {
namespace {

constexpr int kLanes = 32;
constexpr int kMostDepth = 200;
// In the place of numbers that only the launch knows.
constexpr int64_t kStandIn = 4096;

template <class Function>
std::array<int64_t, kLanes> each_lane(Function function) {
  std::array<int64_t, kLanes> lanes{};
  for (int lane = 0; lane < kLanes; ++lane) lanes[static_cast<size_t>(lane)] = function(lane);
  return lanes;
}

int64_t extended(Scalar scalar, uint64_t bits) {
  const int unused = 64 - std::max<int>(info(scalar).bits, 1);
  if (is_signed(scalar)) return static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int64_t>(bits << unused >> unused);
}

int64_t coordinate(const Dim3& block, int64_t axis, int lane) {
  if (block.x == 0) return axis == 0 ? lane : 0;  // dynamic: rows of a warp at least
  if (axis == 0) return lane % block.x;
  if (axis == 1) return lane / block.x % block.y;
  return lane / (block.x * block.y);
}

int sectors(const std::array<int64_t, kLanes>& addresses, int bytes) {
  std::set<int64_t> touched;
  for (const int64_t address : addresses) {
    for (int64_t at = address; at < address + bytes; ++at) touched.insert(at >> 5);
  }
  return static_cast<int>(touched.size());
}

int fewest_sectors(const std::array<int64_t, kLanes>& addresses, int bytes) {
  std::set<int64_t> touched;
  for (const int64_t address : addresses) {
    for (int64_t at = address; at < address + bytes; ++at) touched.insert(at);
  }
  return static_cast<int>((touched.size() + 31) / 32);
}

// 128 bytes of lanes at a time: in each such part, the bank with the most words decides.
WarpAccess rounds(const std::array<int64_t, kLanes>& addresses, int bytes, int lanes) {
  WarpAccess access;
  const int together = std::min(lanes, std::max(1, 128 / bytes));
  for (int first = 0; first < lanes; first += together) {
    std::map<int64_t, std::set<int64_t>> words_of_bank;
    std::set<int64_t> words;
    for (int lane = first; lane < first + together; ++lane) {
      const int64_t address = addresses[static_cast<size_t>(lane)];
      for (int64_t word = address >> 2; word <= (address + bytes - 1) >> 2; ++word) {
        words_of_bank[word & 31].insert(word);
        words.insert(word);
      }
    }
    size_t most = 0;
    for (const auto& [bank, held] : words_of_bank) most = std::max(most, held.size());
    access.transactions += static_cast<int>(most);
    access.fewest += static_cast<int>((words.size() + 31) / 32);
  }
  return access;
}

}  // namespace

bool is_lane_access(const Op& op) {
  const Signature& signature = info(op).signature;
  const bool loads = signature.result_count > 0 && (signature.results[0].role == Role::kElement ||
                                                    signature.results[0].role == Role::kFragment);
  const auto has_operand = [&](OperandName name) { return operand_index(op.opcode, name) >= 0; };
  return (loads || has_operand(OperandName::kValue)) && has_operand(OperandName::kView) &&
         has_operand(OperandName::kOffset);
}

std::optional<WarpAccesses::Lanes> WarpAccesses::lanes(ValueId value, int depth) {
  if (memo_[value] >= 0) return results_[static_cast<size_t>(memo_[value])];
  if (depth > kMostDepth) return std::nullopt;
  const std::optional<Lanes> result = compute(value, depth + 1);
  memo_.at(value) = static_cast<int>(results_.size());
  results_.push_back(result);
  return result;
}

std::optional<WarpAccesses::Lanes> WarpAccesses::compute(ValueId value, int depth) {
  const Type type = kernel_.type(value);
  const auto all = [](int64_t number) { return each_lane([=](int) { return number; }); };
  const auto shared = [&]() -> std::optional<Lanes> {
    if (uniformity_.of(value) < Scope::kWarp) return std::nullopt;
    return all(kStandIn);
  };
  if (!type.is_scalar() || !(is_integer(type.scalar) || type.scalar == Scalar::kBool)) {
    return std::nullopt;
  }
  const Op* const op = kernel_.def(value);
  if (op == nullptr) {
    // A loop's argument: as its first trip has it.
    const Value& v = kernel_.value(value);
    const OpId owner = kernel_.region(v.region).parent;
    if (!valid(owner)) return all(kStandIn);  // a parameter
    const Op& loop = kernel_.op(owner);
    if (loop.opcode == Opcode::kFor && v.index == 0) return lanes(loop.start(), depth);
    if (is_loop(loop)) return lanes(loop.inits()[v.index - first_carried(loop)], depth);
    return shared();
  }
  switch (op->opcode) {
    case Opcode::kConst:
      return all(*kernel_.constant_int(value));
    case Opcode::kThreadIdx:
      return each_lane(
          [&](int lane) { return coordinate(kernel_.block, *op->attr(AttrKey::kAxis), lane); });
    case Opcode::kLaneId:
      return each_lane([](int lane) { return lane; });
    case Opcode::kWarpId:
    case Opcode::kBlockIdx:
    case Opcode::kClusterRank:
      return all(0);
    case Opcode::kExtent:
    case Opcode::kStride:
      return all(fixed_layout(kernel_, *op).value_or(kStandIn));
    default:
      break;
  }
  if (has(info(*op), kForwards)) return lanes(op->a(), depth);
  if (!can_fold_scalar(op->opcode)) return shared();
  std::vector<Lanes> operands;
  for (const ValueId operand : op->operands) {
    const std::optional<Lanes> known = lanes(operand, depth);
    if (!known) return shared();
    operands.push_back(*known);
  }
  const Scalar from = kernel_.type(op->operands[typed_operand(op->opcode)]).scalar;
  bool folds = true;
  const Lanes result = each_lane([&](int lane) -> int64_t {
    std::vector<uint64_t> bits;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int unused = 64 - std::max<int>(info(kernel_.type(op->operands[i]).scalar).bits, 1);
      bits.push_back(static_cast<uint64_t>(operands[i][static_cast<size_t>(lane)]) << unused >>
                     unused);
    }
    const auto folded = fold_scalar(op->opcode, from, type.scalar, bits);
    folds = folds && folded.has_value();
    return extended(type.scalar, folded.value_or(0));
  });
  return folds ? std::optional(result) : shared();
}

std::optional<WarpAccesses::Lanes> WarpAccesses::bytes_into_root(ValueId view, int depth) {
  const Op* const op = kernel_.def(view);
  if (op == nullptr || depth > kMostDepth || !has(info(*op), kSameMemory) ||
      operand_index(op->opcode, OperandName::kView) < 0) {
    return Lanes{};
  }
  std::optional<Lanes> outer = bytes_into_root(op->view(), depth + 1);
  if (op->opcode != Opcode::kSubview) return outer;
  const std::optional<Lanes> offset = lanes(op->offset(), depth);
  if (!outer || !offset) return std::nullopt;
  const int bytes = bytes_of(kernel_.type(op->view()).scalar);
  return each_lane([&](int lane) {
    const auto l = static_cast<size_t>(lane);
    return (*outer)[l] + (*offset)[l] * bytes;
  });
}

std::optional<WarpAccess> WarpAccesses::of(const Op& op) {
  if (!is_lane_access(op)) return std::nullopt;
  const bool matrices = op.opcode == Opcode::kLdMatrix || op.opcode == Opcode::kStMatrix;
  const Space space = kernel_.type(op.view()).space;
  const bool is_shared = space == Space::kShared;
  if (!is_shared && space != Space::kGlobal) return std::nullopt;
  const auto offsets = lanes(op.offset());
  const auto begins = bytes_into_root(op.view(), 0);
  if (!offsets || !begins) return std::nullopt;
  const Type element = kernel_.type(op.view());
  const bool loads = !op.results.empty();
  const Type moved = loads ? kernel_.type(op.result()) : kernel_.type(op.value());
  // A lane names one row of a matrix.
  const int bytes = matrices ? 16 : moved.bytes();
  const int named = matrices ? 8 * static_cast<int>(*op.attr(AttrKey::kCount)) : kLanes;
  const Lanes addresses = each_lane([&](int lane) {
    const auto l = static_cast<size_t>(lane);
    return (*begins)[l] + (*offsets)[l] * bytes_of(element.scalar);
  });
  if (bytes == 0) return std::nullopt;
  WarpAccess access;
  if (is_shared) {
    access = rounds(addresses, bytes, named);
  } else {
    access.transactions = sectors(addresses, bytes);
    access.fewest = fewest_sectors(addresses, bytes);
  }
  access.space = space;
  access.lane_bytes = bytes;
  return access;
}

}  // namespace heddle::ir
