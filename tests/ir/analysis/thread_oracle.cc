#include "ir/analysis/thread_oracle.h"

#include <bit>

#include "gtest/gtest.h"
#include "ir/interp/oracle.h"
#include "ir/interp/wide_integer.h"

namespace heddle::ir {
namespace {

using interp::Exact;

constexpr int64_t kFuel = 20'000;  // ops that a thread may run

int width(Scalar scalar) { return scalar == Scalar::kBool ? 1 : info(scalar).bits; }

Wide integer(Scalar scalar, uint64_t bits) {
  if (scalar == Scalar::kI32) return static_cast<int32_t>(bits);
  if (scalar == Scalar::kI64) return static_cast<int64_t>(bits);
  return bits;
}

uint64_t bits_of(Scalar scalar, Wide value) {
  const auto low = static_cast<uint64_t>(value);
  return width(scalar) == 64 ? low : low & ((uint64_t{1} << width(scalar)) - 1);
}

uint64_t bits_of_exact(Scalar scalar, Exact value) {
  if (interp::is_nan(value)) {
    return scalar == Scalar::kF16    ? 0x7E00
           : scalar == Scalar::kBF16 ? 0x7FC0
           : scalar == Scalar::kF32  ? 0x7FC00000
                                     : 0x7FF8000000000000;
  }
  const uint64_t sign = uint64_t{1} << (width(scalar) - 1);
  const Exact rounded = interp::round_to(scalar, value);
  // A value of the type, so that bringing it there rounds nothing.
  if (scalar == Scalar::kF64) return std::bit_cast<uint64_t>(static_cast<double>(rounded));
  if (scalar == Scalar::kF32) return std::bit_cast<uint32_t>(static_cast<float>(rounded));
  // The compiler has no such type: encodings are in the order of their values.
  const bool negative = interp::is_value(scalar, sign, rounded) || rounded < 0;
  const Exact magnitude = negative ? -rounded : rounded;
  uint64_t low = 0;
  uint64_t high = sign;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    const Exact v = interp::value_of(scalar, middle);
    (!interp::is_nan(v) && v <= magnitude ? low : high) = middle;
  }
  return negative ? low | sign : low;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15 + 0x7F4A7C15;
}

bool holds_view(const Kernel& kernel, ValueId value) { return kernel.type(value).is_view(); }

}  // namespace

ThreadOracle::ThreadOracle(const Kernel& kernel, std::vector<Argument> arguments)
    : kernel_(kernel), arguments_(std::move(arguments)) {
  for (const Argument& argument : arguments_) {
    auto& memory = memory_.emplace_back();
    for (const uint64_t bits : argument.memory) memory.push_back({{bits}, false});
  }
}

void ThreadOracle::watch(OnValue on_value, OnRegion on_region) {
  on_value_ = std::move(on_value);
  on_region_ = std::move(on_region);
}

bool ThreadOracle::run() {
  const Dim3 block = kernel_.block;
  shared_.assign(kernel_.value_count(), {});
  for (int t = 0; t < block.count(); ++t) {
    thread_ = {static_cast<int>(t % block.x), static_cast<int>(t / block.x % block.y),
               static_cast<int>(t / block.x / block.y), t};
    values_.assign(kernel_.value_count(), {});
    views_.assign(kernel_.value_count(), {});
    fuel_ = kFuel;
    for (size_t i = 0; i < kernel_.params().size(); ++i) {
      const ValueId param = kernel_.params()[i].value;
      if (holds_view(kernel_, param)) {
        views_[index_of(param)] = {&memory_[i], 0};
      } else {
        define(param, {{arguments_[i].scalar}, false}, 0);
      }
    }
    if (!run_region(kernel_.body(), 0)) return false;
  }
  return true;
}

void ThreadOracle::define(ValueId value, OracleValue result, uint64_t trip) {
  if (on_value_) on_value_(thread_, value, trip, result);
  values_[index_of(value)] = std::move(result);
}

absl::Span<const ValueId> ThreadOracle::yields(RegionId region) const {
  return kernel_.op(kernel_.terminator(region)).operands;
}

std::vector<OracleValue> ThreadOracle::take(absl::Span<const ValueId> values) const {
  std::vector<OracleValue> taken;
  for (const ValueId value : values) taken.push_back(values_[index_of(value)]);
  return taken;
}

bool ThreadOracle::run_region(RegionId region, uint64_t trip) {
  if (on_region_) on_region_(thread_, region, trip);
  for (const OpId id : kernel_.ops(region)) {
    if (--fuel_ < 0 || !run_op(id, trip)) return false;
  }
  return true;
}

bool ThreadOracle::run_op(OpId id, uint64_t trip) {
  const Op& op = kernel_.op(id);
  switch (op.opcode) {
    case Opcode::kYield:
    case Opcode::kBarrier:
    case Opcode::kBounds:
      return true;
    case Opcode::kFor:
      return run_for(op, id, trip);
    case Opcode::kWhile:
      return run_while(op, id, trip);
    case Opcode::kIf:
      return run_if(op, trip);
    case Opcode::kVar:
      values_[index_of(op.result())] = values_[index_of(op.init())];
      return true;
    case Opcode::kVarLoad:
      define(op.result(), values_[index_of(op.slot())], trip);
      return true;
    case Opcode::kVarStore:
      values_[index_of(op.slot())] = values_[index_of(op.value())];
      return true;
    case Opcode::kShared: {
      auto& memory = shared_[index_of(op.result())];
      size_t count = 1;
      for (const int64_t extent : kernel_.ints(*op.attr(AttrKey::kExtents))) {
        count *= static_cast<size_t>(extent);
      }
      if (memory.empty()) memory.assign(count, {{0}, true});
      views_[index_of(op.result())] = {&memory, 0};
      return true;
    }
    case Opcode::kLoad:
      return run_load(op, trip);
    case Opcode::kStore:
      return run_store(op);
    default:
      return compute(op, trip);
  }
}

bool ThreadOracle::run_for(const Op& op, OpId id, uint64_t trip) {
  const auto bounds = take({op.start(), op.stop(), op.step()});
  if (bounds[0].poison || bounds[1].poison || bounds[2].poison) return false;
  const Scalar scalar = kernel_.type(op.start()).scalar;
  const Wide start = integer(scalar, bounds[0].elements[0]);
  const Wide stop = integer(scalar, bounds[1].elements[0]);
  const Wide step = integer(scalar, bounds[2].elements[0]);
  if (step == 0 || (step < 0 && !kernel_.constant_bits(op.step()))) return false;
  auto carried = take(op.inits());
  const RegionId body = op.regions[0];
  uint64_t count = 0;
  for (Wide i = start; step > 0 ? i < stop : i > stop; i += step) {
    const uint64_t inner = mix(mix(trip, index_of(id)), ++count);
    const auto& args = kernel_.region(body).args;
    define(args[0], {{bits_of(scalar, i)}, false}, inner);
    for (size_t k = 0; k < carried.size(); ++k) define(args[1 + k], carried[k], inner);
    if (!run_region(body, inner)) return false;
    carried = take(yields(body));
  }
  for (size_t k = 0; k < carried.size(); ++k) define(op.results[k], carried[k], trip);
  return true;
}

bool ThreadOracle::run_while(const Op& op, OpId id, uint64_t trip) {
  auto carried = take(op.inits());
  for (uint64_t count = 0;;) {
    const uint64_t inner = mix(mix(trip, index_of(id)), ++count);
    for (int r = 0; r < 2; ++r) {
      const RegionId region = op.regions[static_cast<size_t>(r)];
      const auto& args = kernel_.region(region).args;
      for (size_t k = 0; k < carried.size(); ++k) define(args[k], carried[k], inner);
      if (!run_region(region, inner)) return false;
      const auto out = take(yields(region));
      if (r == 1) {
        carried = out;
        continue;
      }
      if (out[0].poison) return false;
      if (out[0].elements[0] != 0) continue;
      for (size_t k = 0; k < carried.size(); ++k) define(op.results[k], carried[k], trip);
      return true;
    }
  }
}

bool ThreadOracle::run_if(const Op& op, uint64_t trip) {
  const OracleValue& condition = values_[index_of(op.condition())];
  if (condition.poison) return false;
  const RegionId region = op.regions[condition.elements[0] != 0 ? 0 : 1];
  if (!run_region(region, trip)) return false;
  const auto results = take(yields(region));
  for (size_t k = 0; k < results.size(); ++k) define(op.results[k], results[k], trip);
  return true;
}

bool ThreadOracle::address(const Op& op, int count, View& view, int64_t& at) {
  const OracleValue& offset = values_[index_of(op.offset())];
  if (offset.poison) return false;
  const Scalar scalar = kernel_.type(op.offset()).scalar;
  view = views_[index_of(op.view())];
  const Wide first = view.offset + integer(scalar, offset.elements[0]);
  if (first < 0 || first + count > static_cast<Wide>(view.memory->size())) return false;
  at = static_cast<int64_t>(first);
  return true;
}

bool ThreadOracle::run_load(const Op& op, uint64_t trip) {
  View view;
  int64_t at = 0;
  const int count = kernel_.type(op.result()).count;
  if (!address(op, count, view, at)) return false;
  OracleValue result;
  for (int i = 0; i < count; ++i) {
    const OracleValue& element = (*view.memory)[static_cast<size_t>(at + i)];
    result.elements.push_back(element.elements[0]);
    result.poison |= element.poison;
  }
  define(op.result(), result, trip);
  return true;
}

bool ThreadOracle::run_store(const Op& op) {
  View view;
  int64_t at = 0;
  const OracleValue& value = values_[index_of(op.value())];
  if (!address(op, static_cast<int>(value.elements.size()), view, at)) return false;
  for (size_t i = 0; i < value.elements.size(); ++i) {
    (*view.memory)[static_cast<size_t>(at) + i] = {{value.elements[i]}, value.poison};
  }
  return true;
}

bool ThreadOracle::compute(const Op& op, uint64_t trip) {
  const Type type = kernel_.type(op.result());
  OracleValue result;
  const auto axis = op.attr_or(AttrKey::kAxis, 0);
  const auto pick = [&](int x, int y, int z) {
    result.elements = {static_cast<uint64_t>(axis == 0 ? x : axis == 1 ? y : z)};
  };
  std::vector<OracleValue> operands = take(op.operands);
  for (const OracleValue& operand : operands) result.poison |= operand.poison;
  switch (op.opcode) {
    case Opcode::kConst:
      result.elements.assign(type.count, static_cast<uint64_t>(*op.attr(AttrKey::kBits)));
      break;
    case Opcode::kUndef:
      result.elements.assign(type.count, 0);
      result.poison = true;
      break;
    case Opcode::kThreadIdx:
      pick(thread_.x, thread_.y, thread_.z);
      break;
    case Opcode::kBlockIdx:
      pick(0, 0, 0);
      break;
    case Opcode::kBlockDim:
      pick(kernel_.block.x, kernel_.block.y, kernel_.block.z);
      break;
    case Opcode::kGridDim:
      pick(1, 1, 1);
      break;
    case Opcode::kLaneId:
      result.elements = {static_cast<uint64_t>(thread_.linear % 32)};
      break;
    case Opcode::kWarpId:
      result.elements = {static_cast<uint64_t>(thread_.linear / 32)};
      break;
    case Opcode::kExtent: {
      const int param = kernel_.param_index(op.view()).value();
      const Param& view = kernel_.params()[static_cast<size_t>(param)];
      result.elements = {
          static_cast<uint64_t>(view.extents[static_cast<size_t>(op.attr_or(AttrKey::kDim, 0))])};
      break;
    }
    case Opcode::kPack:
      for (const OracleValue& operand : operands) {
        result.elements.insert(result.elements.end(), operand.elements.begin(),
                               operand.elements.end());
      }
      break;
    case Opcode::kExtract:
    case Opcode::kSlice: {
      const auto first = static_cast<size_t>(*op.attr(AttrKey::kIndex));
      for (size_t i = 0; i < type.count; ++i) {
        result.elements.push_back(operands[0].elements[first + i]);
      }
      break;
    }
    case Opcode::kSplat:
      result.elements.assign(type.count, operands[0].elements[0]);
      break;
    default: {
      if (op.opcode == Opcode::kSelect) {  // what is not chosen does not matter
        const OracleValue& chosen = operands[operands[0].elements[0] != 0 ? 1 : 2];
        result = {chosen.elements, operands[0].poison || chosen.poison};
        break;
      }
      const Scalar from = kernel_.type(op.a()).scalar;
      for (size_t i = 0; i < type.count; ++i) {
        absl::InlinedVector<uint64_t, 4> bits;
        for (const OracleValue& operand : operands) {
          bits.push_back(operand.elements[operand.elements.size() == 1 ? 0 : i]);
        }
        result.elements.push_back(element(op, from, type.scalar, bits, result.poison));
      }
    }
  }
  define(op.result(), result, trip);
  return true;
}

uint64_t ThreadOracle::element(const Op& op, Scalar from, Scalar to,
                               absl::Span<const uint64_t> bits, bool& poison) {
  const auto at = [&](size_t i) { return bits[i < bits.size() ? i : 0]; };
  const bool floats = is_float(from);
  const Wide a = integer(from, at(0));
  const Wide b = integer(from, at(1));
  const Wide c = integer(from, at(2));
  const Exact x = floats ? interp::value_of(from, at(0)) : 0;
  const Exact y = floats ? interp::value_of(from, at(1)) : 0;
  const Exact z = floats ? interp::value_of(from, at(2)) : 0;
  const bool x_nan = floats && interp::is_nan(x);
  const bool y_nan = floats && interp::is_nan(y);
  const uint64_t sign = uint64_t{1} << (width(from) - 1);
  // Sums that cancel to zero are negative only where both parts are.
  const auto real = [&](Exact value) { return bits_of_exact(to, value); };
  const auto number = [&](Wide value) { return bits_of(to, value); };
  const auto compare = [&](bool less, bool equal, bool when_nan) -> uint64_t {
    if (x_nan || y_nan) return when_nan ? 1 : 0;
    const bool is_less = floats ? x < y : a < b;
    const bool is_equal = floats ? x == y : a == b;
    return (less && is_less) || (equal && is_equal) ? 1 : 0;
  };
  const auto extremum = [&](bool smaller) -> uint64_t {
    if (!floats) return number((a < b) == smaller ? a : b);
    if (x_nan) return at(1);
    if (y_nan) return at(0);
    if (x == y) return ((at(0) & sign) != 0) == smaller ? at(0) : at(1);
    return (x < y) == smaller ? at(0) : at(1);
  };
  switch (op.opcode) {
    case Opcode::kAdd:
      return floats ? real(x + y) : number(a + b);
    case Opcode::kSub:
      return floats ? real(x - y) : number(a - b);
    case Opcode::kMul:
      return floats ? real(x * y) : number(multiply_add(a, b, 0));
    case Opcode::kFma:
      return floats ? real(x * y + z) : number(multiply_add(a, b, c));
    case Opcode::kMulHi:
      return number(multiply_add(a, b, 0) >> width(from));
    case Opcode::kDiv:
      if (floats) return real(x / y);
      [[fallthrough]];
    case Opcode::kRem:
      if (b == 0 || (is_signed(from) && b == -1 && a == -(Wide{1} << (width(from) - 1)))) {
        poison = true;
        return 0;
      }
      return number(op.opcode == Opcode::kDiv ? a / b : a % b);
    case Opcode::kMin:
      return extremum(true);
    case Opcode::kMax:
      return extremum(false);
    case Opcode::kNeg:
      return floats ? at(0) ^ sign : number(-a);
    case Opcode::kAbs:
      return floats ? at(0) & ~sign : number(a < 0 ? -a : a);
    case Opcode::kRcp:
      return real(1 / x);
    case Opcode::kAnd:
      return at(0) & at(1);
    case Opcode::kOr:
      return at(0) | at(1);
    case Opcode::kXor:
      return at(0) ^ at(1);
    case Opcode::kNot:
      return bits_of(to, ~static_cast<Wide>(at(0)));
    case Opcode::kShl:
      return at(1) >= static_cast<uint64_t>(width(from)) ? 0 : number(a << at(1));
    case Opcode::kShr:
      return at(1) >= static_cast<uint64_t>(width(from)) ? number(a < 0 ? -1 : 0)
                                                         : number(a >> at(1));
    case Opcode::kEq:
      return compare(false, true, false);
    case Opcode::kNe:
      return 1 - compare(false, true, false);
    case Opcode::kLt:
      return compare(true, false, false);
    case Opcode::kLe:
      return compare(true, true, false);
    case Opcode::kGt:
      return x_nan || y_nan ? 0 : 1 - compare(true, true, false);
    case Opcode::kGe:
      return x_nan || y_nan ? 0 : 1 - compare(true, false, false);
    case Opcode::kConvert:
      if (to == Scalar::kBool) return floats ? (x_nan || x != 0 ? 1 : 0) : (at(0) != 0 ? 1 : 0);
      if (is_float(to)) return real(floats ? x : static_cast<Exact>(a));
      if (!floats) return number(a);
      if (x_nan) return width(from) == 64 || width(to) == 64 ? uint64_t{1} << (width(to) - 1) : 0;
      {
        const Wide most =
            is_signed(to) ? (Wide{1} << (width(to) - 1)) - 1 : (Wide{1} << width(to)) - 1;
        const Wide least = is_signed(to) ? -(Wide{1} << (width(to) - 1)) : 0;
        if (x >= static_cast<Exact>(most)) return number(most);
        if (x <= static_cast<Exact>(least)) return number(least);
        return number(static_cast<Wide>(x));
      }
    case Opcode::kBitcast:
      poison |= x_nan;  // which NaN it is has no meaning
      return at(0);
    case Opcode::kAtLaunch:
      return at(0);
    case Opcode::kClz: {
      uint64_t zeros = 0;
      while (zeros < static_cast<uint64_t>(width(from)) &&
             (at(0) >> (static_cast<uint64_t>(width(from)) - 1 - zeros) & 1) == 0) {
        ++zeros;
      }
      return zeros;
    }
    default:
      ADD_FAILURE() << "the oracle has no account of " << info(op).mnemonic;
      poison = true;
      return 0;
  }
}

}  // namespace heddle::ir
