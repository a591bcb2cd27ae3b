#include "heddle/ir/analysis/warp_accesses.h"

#include <algorithm>
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

int64_t coordinate(const Dim3& block, int64_t axis, int lane) {
  if (block.x == 0) return axis == 0 ? lane : 0;  // dynamic: rows of a warp at least
  if (axis == 0) return lane % block.x;
  if (axis == 1) return lane / block.x % block.y;
  return lane / (block.x * block.y);
}

// What lanes touch, in units of that many bytes.
std::set<int64_t> touched(const std::array<int64_t, kLanes>& addresses, uint32_t lanes, int bytes,
                          int unit) {
  std::set<int64_t> units;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    const int64_t address = addresses[static_cast<size_t>(lane)];
    for (int64_t at = address; at < address + bytes; ++at) {
      units.insert((at - ((at % unit) + unit) % unit) / unit);
    }
  }
  return units;
}
int rounded_up(size_t n, int unit) { return (static_cast<int>(n) + unit - 1) / unit; }

// 128 bytes of lanes at a time: in each such part, the bank with the most words decides.
WarpAccess rounds(const std::array<int64_t, kLanes>& addresses, uint32_t lanes, int bytes) {
  constexpr int kBanks = 32, kWord = 4;
  WarpAccess access;
  const int together = std::min(kLanes, std::max(1, kBanks * kWord / bytes));
  for (int first = 0; first < kLanes; first += together) {
    const uint32_t part = together == kLanes ? ~0u : ((1u << together) - 1) << first;
    const std::set<int64_t> words = touched(addresses, lanes & part, bytes, kWord);
    std::array<int, kBanks> held{};
    for (const int64_t word : words) ++held[static_cast<size_t>(word & (kBanks - 1))];
    access.transactions += *std::max_element(held.begin(), held.end());
    access.fewest += rounded_up(words.size(), kBanks);
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
      bits.push_back(static_cast<uint64_t>(operands[i][static_cast<size_t>(lane)]) &
                     bits_mask(kernel_.type(op->operands[i]).scalar));
    }
    const auto folded = fold_scalar(op->opcode, from, type.scalar, bits);
    folds = folds && folded.has_value();
    return number_of(type.scalar, folded.value_or(0));
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

std::optional<uint32_t> WarpAccesses::lanes_of(RegionId region) {
  const OpId owner = kernel_.region(region).parent;
  if (!valid(owner)) {
    const int64_t threads = kernel_.block.count();
    return threads == 0 || threads >= kLanes ? ~0u : (1u << threads) - 1;
  }
  const Op& op = kernel_.op(owner);
  const std::optional<uint32_t> outside = lanes_of(op.parent);
  if (!outside || op.opcode == Opcode::kWhile) return outside;
  // Of numbers that all lanes share, none may be known well enough to decide.
  const auto narrowed = [&](uint32_t inside) {
    return inside == 0 ? outside : std::optional(inside);
  };
  uint32_t inside = 0;
  if (op.opcode == Opcode::kIf) {
    const auto holds = lanes(op.condition());
    if (!holds) return std::nullopt;
    const bool wanted = region == op.regions[0];
    for (int lane = 0; lane < kLanes; ++lane) {
      inside |= static_cast<uint32_t>(((*holds)[static_cast<size_t>(lane)] != 0) == wanted) << lane;
    }
    return narrowed(*outside & inside);
  }
  const auto start = lanes(op.start()), stop = lanes(op.stop());
  if (!start || !stop) return std::nullopt;
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto l = static_cast<size_t>(lane);
    inside |= static_cast<uint32_t>((*start)[l] < (*stop)[l]) << lane;
  }
  return narrowed(*outside & inside);
}

std::optional<WarpAccess> WarpAccesses::of(const Op& op) {
  if (!is_lane_access(op)) return std::nullopt;
  const Space space = kernel_.type(op.view()).space;
  const bool is_shared = space == Space::kShared;
  if (!is_shared && space != Space::kGlobal) return std::nullopt;
  const auto offsets = lanes(op.offset());
  const auto begins = bytes_into_root(op.view(), 0);
  std::optional<uint32_t> there = lanes_of(op.parent);
  if (!offsets || !begins || !there) return std::nullopt;
  const Type element = kernel_.type(op.view());
  const Type moved = kernel_.type(op.results.empty() ? op.value() : op.result());
  // A lane names one row of a matrix.
  const bool matrices = op.opcode == Opcode::kLdMatrix || op.opcode == Opcode::kStMatrix;
  const int bytes = matrices ? 16 : moved.bytes();
  if (bytes == 0) return std::nullopt;
  if (matrices && *op.attr(AttrKey::kCount) < 4)
    *there &= (1u << 8 * *op.attr(AttrKey::kCount)) - 1;
  const Lanes addresses = each_lane([&](int lane) {
    const auto l = static_cast<size_t>(lane);
    return (*begins)[l] + (*offsets)[l] * bytes_of(element.scalar);
  });
  WarpAccess access;
  if (is_shared) {
    access = rounds(addresses, *there, bytes);
  } else {
    access.transactions = static_cast<int>(touched(addresses, *there, bytes, 32).size());
    access.fewest = rounded_up(touched(addresses, *there, bytes, 1).size(), 32);
  }
  access.space = space;
  access.lane_bytes = bytes;
  return access;
}

}  // namespace heddle::ir
