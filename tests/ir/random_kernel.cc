#include "ir/random_kernel.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "heddle/ir/builder.h"

namespace heddle::ir {
namespace {

constexpr int kMemory = 256;  // elements behind each view
constexpr int kPerThread = 4;

constexpr Scalar kIntegerTypes[] = {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64};
constexpr Scalar kFloatTypes[] = {Scalar::kF32, Scalar::kF64, Scalar::kF16, Scalar::kBF16};
constexpr int64_t kInteresting[] = {0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 255, 256};
constexpr Dim3 kBlocks[] = {{64, 1, 1}, {32, 2, 1}, {16, 4, 1}, {8, 4, 2}, {32, 1, 1}, {48, 1, 1}};

class Generator {
 public:
  Generator(uint64_t seed, const RandomOptions& options)
      : options_(options), random_(seed), kernel_("random"), b_(kernel_) {}

  Kernel generate() {
    kernel_.block = kBlocks[below(std::size(kBlocks))];
    const int64_t size = kMemory;
    const int64_t one = 1;
    const auto view = [&](absl::string_view name, Scalar scalar, bool read_only) {
      return kernel_.add_param(name, Type::view(scalar, Space::kGlobal, 1, read_only), {size},
                               {one});
    };
    out_ = view("out", Scalar::kI32, false);
    in_ = view("in", Scalar::kI32, true);
    float_out_ = view("float_out", Scalar::kF32, false);
    const int64_t extents[] = {kMemory};
    scratch_ = b_.create(Opcode::kShared, {}, Type::view(Scalar::kI32, Space::kShared, 1),
                         {{AttrKey::kExtents, kernel_.intern_ints(extents)}});
    for (const Scalar scalar : kIntegerTypes) add_scalar_param(scalar);
    add_scalar_param(Scalar::kI32);
    add_scalar_param(Scalar::kBool);
    if (options_.floats) {
      for (const Scalar scalar : kFloatTypes) add_scalar_param(scalar);
    }
    thread_ = linear_thread();
    values_.push_back(thread_);
    for (int i = 0; i < options_.statements; ++i) statement(0);
    // Whatever there is at the end counts.
    for (int i = 0; i < kPerThread; ++i) store_result(any_of(Scalar::kI32), i);
    if (options_.floats) {
      const ValueId at = own_slot(0);
      b_.create(Opcode::kStore, {float_out_, any_of(Scalar::kF32), at});
    }
    return std::move(kernel_);
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }

  void add_scalar_param(Scalar scalar) {
    values_.push_back(kernel_.add_param(absl::StrCat("p", values_.size()), Type::of(scalar)));
  }

  ValueId axis(Opcode opcode, int which) {
    return b_.create(opcode, {}, kI32Type, {{AttrKey::kAxis, which}});
  }

  ValueId linear_thread() {
    const ValueId x = axis(Opcode::kThreadIdx, 0);
    const ValueId y = axis(Opcode::kThreadIdx, 1);
    const ValueId z = axis(Opcode::kThreadIdx, 2);
    const ValueId row = b_.create(Opcode::kFma, {z, b_.constant_int(kI32Type, kernel_.block.y), y});
    const ValueId pitch = b_.constant_int(kI32Type, kernel_.block.x);
    return b_.create(Opcode::kAdd, {b_.create(Opcode::kMul, {row, pitch}), x});
  }

  Scalar any_scalar() {
    if (options_.floats && chance(30)) return kFloatTypes[below(std::size(kFloatTypes))];
    return kIntegerTypes[below(std::size(kIntegerTypes))];
  }

  uint64_t constant_bits(Scalar scalar) {
    const int bits = info(scalar).bits;
    const uint64_t mask = ~uint64_t{0} >> (64 - bits);
    if (scalar == Scalar::kBool) return below(2);
    if (is_integer(scalar)) {
      const auto value = static_cast<uint64_t>(kInteresting[below(std::size(kInteresting))]);
      return (chance(90) ? value : random_()) & mask;
    }
    // Powers of two, zeros, infinities and NaNs: sign, a few exponents, few digits.
    const int fraction = scalar == Scalar::kF16    ? 10
                         : scalar == Scalar::kBF16 ? 7
                         : scalar == Scalar::kF32  ? 23
                                                   : 52;
    const uint64_t one = ((uint64_t{1} << (bits - 2 - fraction)) - 1) << fraction;
    const uint64_t sign = chance(50) ? uint64_t{1} << (bits - 1) : 0;
    if (chance(20)) return sign;
    if (chance(10)) return random_() & mask;
    return sign | (one + ((below(5) - 2) << fraction) + (below(4) << (fraction - 2)));
  }

  ValueId constant(Scalar scalar) { return b_.constant(Type::of(scalar), constant_bits(scalar)); }

  // A value of a scalar type from what is in scope, from a constant or by conversion.
  ValueId any_of(Scalar scalar) {
    if (chance(15)) return constant(scalar);
    for (int attempt = 0; attempt < 6; ++attempt) {
      const ValueId value = values_[below(values_.size())];
      if (kernel_.type(value) == Type::of(scalar)) return value;
    }
    const ValueId value = values_[below(values_.size())];
    if (!kernel_.type(value).is_scalar()) return constant(scalar);
    if (kernel_.type(value) == Type::of(scalar)) return value;
    return keep(b_.create(Opcode::kConvert, {value}, Type::of(scalar)));
  }
  ValueId keep(ValueId value) {
    values_.push_back(value);
    return value;
  }

  // An element that belongs to this thread alone.
  ValueId own_slot(int index) {
    const ValueId per = b_.constant_int(kI32Type, kPerThread);
    const ValueId first = b_.create(Opcode::kMul, {thread_, per});
    return b_.create(Opcode::kAdd, {first, b_.constant_int(kI32Type, index)});
  }
  void store_result(ValueId value, int index) {
    b_.create(Opcode::kStore, {out_, value, own_slot(index)});
  }
  int any_index() { return static_cast<int>(below(kPerThread)); }

  void statement(int depth) {
    const size_t kind = below(100);
    if (depth < 3 && kind < 6) return for_loop(depth);
    if (depth < 3 && kind < 9) return while_loop(depth);
    if (depth < 3 && kind < 17) return if_else(depth);
    if (kind < 23) return declare_variable();
    if (kind < 31) return use_variable();
    if (kind < 41) return memory(depth);
    if (kind < 45) return vector();
    if (kind < 50) return coordinate();
    arithmetic();
  }

  void coordinate() {
    static constexpr Opcode kOps[] = {Opcode::kThreadIdx, Opcode::kBlockDim, Opcode::kBlockIdx};
    const size_t which = below(5);
    if (which == 3) {
      keep(b_.create(Opcode::kLaneId, {}));
    } else if (which == 4) {
      keep(b_.create(Opcode::kWarpId, {}));
    } else {
      keep(axis(kOps[which], static_cast<int>(below(3))));
    }
  }

  void arithmetic() {
    static constexpr Opcode kBinary[] = {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kMin,
                                         Opcode::kMax, Opcode::kDiv, Opcode::kRem};
    static constexpr Opcode kBits[] = {Opcode::kAnd, Opcode::kOr, Opcode::kXor};
    static constexpr Opcode kCompare[] = {Opcode::kEq, Opcode::kNe, Opcode::kLt,
                                          Opcode::kLe, Opcode::kGt, Opcode::kGe};
    const Scalar scalar = any_scalar();
    const bool integer = is_integer(scalar);
    const ValueId a = any_of(scalar);
    switch (below(9)) {
      case 0:
      case 1: {
        const Opcode opcode = kBinary[below(integer ? 7 : 6)];
        keep(b_.create(opcode, {a, any_of(scalar)}));
        return;
      }
      case 2:
        if (integer) {
          keep(b_.create(kBits[below(3)], {a, any_of(scalar)}));
        } else {
          keep(b_.create(Opcode::kNeg, {a}));
        }
        return;
      case 3:
        if (integer) {
          const ValueId count = b_.constant_int(kU32Type, static_cast<int64_t>(below(70)));
          keep(b_.create(chance(50) ? Opcode::kShl : Opcode::kShr, {a, count}));
        } else {
          keep(b_.create(Opcode::kAbs, {a}));
        }
        return;
      case 4:
        keep(b_.create(kCompare[below(6)], {a, any_of(scalar)}));
        return;
      case 5:
        keep(b_.create(Opcode::kSelect, {any_of(Scalar::kBool), a, any_of(scalar)}));
        return;
      case 6:
        keep(b_.create(Opcode::kConvert, {a}, Type::of(any_scalar())));
        return;
      case 7: {
        const ValueId p = any_of(Scalar::kBool);
        keep(chance(50) ? b_.create(Opcode::kNot, {p})
                        : b_.create(kBits[below(3)], {p, any_of(Scalar::kBool)}));
        return;
      }
      default:
        // f64's exact sum would need more digits than the oracle has.
        if (scalar == Scalar::kF64) return;
        keep(b_.create(Opcode::kFma, {a, any_of(scalar), any_of(scalar)}));
    }
  }

  void vector() {
    const Scalar scalar = any_scalar();
    const ValueId v =
        chance(50) ? b_.create(Opcode::kSplat, {any_of(scalar)}, Type::vector(scalar, 4))
                   : b_.create(Opcode::kPack,
                               {any_of(scalar), any_of(scalar), any_of(scalar), any_of(scalar)},
                               Type::vector(scalar, 4));
    const ValueId w =
        b_.create(Opcode::kAdd, {v, b_.constant(Type::vector(scalar, 4), constant_bits(scalar))});
    const ValueId low = b_.create(Opcode::kSlice, {chance(50) ? v : w}, Type::vector(scalar, 2),
                                  {{AttrKey::kIndex, static_cast<int64_t>(below(3))}});
    keep(b_.create(Opcode::kExtract, {low}, Type::of(scalar),
                   {{AttrKey::kIndex, static_cast<int64_t>(below(2))}}));
  }

  void memory(int depth) {
    switch (below(7)) {
      case 0:
      case 1: {
        const ValueId mask = b_.constant_int(kI32Type, kMemory - 1);
        const ValueId at = b_.create(Opcode::kAnd, {any_of(Scalar::kI32), mask});
        keep(b_.create(Opcode::kLoad, {in_, at}, kI32Type));
        return;
      }
      case 2:
        keep(b_.create(Opcode::kLoad, {out_, own_slot(any_index())}, kI32Type));
        return;
      case 3:
        return store_result(any_of(Scalar::kI32), any_index());
      case 4: {
        const ValueId value = any_of(Scalar::kI32);
        b_.create(Opcode::kStore, {scratch_, value, own_slot(any_index())});
        return;
      }
      case 5:
        keep(b_.create(Opcode::kLoad, {scratch_, own_slot(any_index())}, kI32Type));
        return;
      default:
        // Deeper, its condition might differ between threads.
        if (depth == 0) b_.create(Opcode::kBarrier, {});
        keep(b_.create(Opcode::kExtent, {in_}, kI32Type, {{AttrKey::kDim, 0}}));
    }
  }

  void declare_variable() { slots_.push_back(b_.create(Opcode::kVar, {any_of(any_scalar())})); }
  void use_variable() {
    if (slots_.empty()) return;
    const ValueId slot = slots_[below(slots_.size())];
    if (chance(50)) {
      keep(b_.create(Opcode::kVarLoad, {slot}));
    } else {
      b_.create(Opcode::kVarStore, {slot, any_of(kernel_.type(slot).scalar)});
    }
  }

  // What is made inside a region ends with it.
  template <class Body>
  void scope(Body body) {
    const size_t values = values_.size();
    const size_t slots = slots_.size();
    body();
    values_.resize(values);
    slots_.resize(slots);
  }
  void statements(int depth) {
    for (size_t i = 1 + below(6); i > 0; --i) statement(depth + 1);
  }
  std::vector<ValueId> some_values() {
    std::vector<ValueId> list;
    for (size_t i = below(3); i > 0; --i) list.push_back(any_of(any_scalar()));
    return list;
  }
  std::vector<ValueId> of_same_types(const std::vector<ValueId>& like) {
    std::vector<ValueId> list;
    for (const ValueId value : like) list.push_back(any_of(kernel_.type(value).scalar));
    return list;
  }

  void for_loop(int depth) {
    const bool wide = chance(30);
    const Scalar scalar = wide ? Scalar::kI64 : Scalar::kI32;
    const Type type = Type::of(scalar);
    // At most seven trips of a start, a stop and a step that may be known or not.
    const ValueId seven = b_.constant_int(type, 7);
    const auto small = [&] {
      return chance(40) ? b_.constant_int(type, static_cast<int64_t>(below(5)))
                        : b_.create(Opcode::kAnd, {any_of(scalar), seven});
    };
    ValueId start = small();
    ValueId stop = small();
    const int64_t steps[] = {1, 2, 3, 8};
    ValueId step = b_.constant_int(type, steps[below(4)]);
    if (chance(20)) {
      std::swap(start, stop);
      step = b_.constant_int(type, -1 - static_cast<int64_t>(below(2)));
    }
    const std::vector<ValueId> init = some_values();
    const OpId loop = b_.begin_for(start, stop, step, init);
    if (chance(40)) {
      kernel_.op(loop).set_attr(AttrKey::kUnroll, 1 + static_cast<int64_t>(below(4)));
    }
    scope([&] {
      const auto args = kernel_.region(b_.region()).args;
      for (const ValueId arg : args) values_.push_back(arg);
      statements(depth);
      std::vector<ValueId> next = of_same_types(init);
      for (size_t i = 0; i < next.size(); ++i) {
        if (chance(20)) next[i] = chance(50) ? args[1 + i] : init[i];
      }
      b_.yield(next);
    });
    b_.end_region();
    const auto results = kernel_.op(loop).results;
    for (const ValueId result : results) values_.push_back(result);
  }

  void while_loop(int depth) {
    std::vector<ValueId> init = some_values();
    init.push_back(b_.constant_int(kI32Type, 0));
    const OpId loop = b_.begin_while(init);
    scope([&] {
      const auto args = kernel_.region(b_.region()).args;
      for (const ValueId arg : args) values_.push_back(arg);
      statements(depth);
      const ValueId most = b_.constant_int(kI32Type, static_cast<int64_t>(below(5)));
      const ValueId more = b_.create(Opcode::kLt, {args.back(), most});
      const ValueId goes_on = b_.create(Opcode::kAnd, {more, any_of(Scalar::kBool)});
      b_.yield(std::vector<ValueId>{chance(50) ? more : goes_on});
    });
    b_.next_region();
    scope([&] {
      const auto args = kernel_.region(b_.region()).args;
      for (const ValueId arg : args) values_.push_back(arg);
      statements(depth);
      std::vector<ValueId> next = of_same_types(init);
      next.back() = b_.create(Opcode::kAdd, {args.back(), b_.constant_int(kI32Type, 1)});
      b_.yield(next);
    });
    b_.end_region();
    const auto results = kernel_.op(loop).results;
    for (const ValueId result : results) values_.push_back(result);
  }

  void if_else(int depth) {
    const ValueId condition = chance(15) ? constant(Scalar::kBool) : any_of(Scalar::kBool);
    const std::vector<ValueId> like = some_values();
    std::vector<Type> types;
    for (const ValueId value : like) types.push_back(kernel_.type(value));
    const OpId choice = b_.begin_if(condition, types);
    for (int region = 0; region < 2; ++region) {
      scope([&] {
        if (region == 0 || chance(70)) statements(depth);
        std::vector<ValueId> results = of_same_types(like);
        for (size_t i = 0; i < results.size(); ++i) {
          if (chance(30)) results[i] = like[i];
        }
        b_.yield(results);
      });
      if (region == 0) b_.next_region();
    }
    b_.end_region();
    const auto results = kernel_.op(choice).results;
    for (const ValueId result : results) values_.push_back(result);
  }

  RandomOptions options_;
  std::mt19937_64 random_;
  Kernel kernel_;
  Builder b_;
  ValueId out_, in_, float_out_, scratch_, thread_;
  std::vector<ValueId> values_;  // in scope
  std::vector<ValueId> slots_;   // in scope
};

}  // namespace

Kernel random_kernel(uint64_t seed, const RandomOptions& options) {
  return Generator(seed, options).generate();
}

std::vector<ThreadOracle::Argument> random_arguments(const Kernel& kernel, uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x5555);
  std::vector<ThreadOracle::Argument> arguments;
  for (const Param& param : kernel.params()) {
    const Type type = kernel.type(param.value);
    ThreadOracle::Argument argument;
    if (type.is_view()) {
      for (int i = 0; i < kMemory; ++i) {
        argument.memory.push_back(type.scalar == Scalar::kF32 ? 0 : random() & 0xFFFFFFFF);
      }
    } else {
      const int bits = type.scalar == Scalar::kBool ? 1 : info(type.scalar).bits;
      const auto small = static_cast<uint64_t>(kInteresting[random() % std::size(kInteresting)]);
      const bool edge = is_integer(type.scalar) && random() % 2 == 0;
      argument.scalar = (edge ? small : random()) & ~uint64_t{0} >> (64 - bits);
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

}  // namespace heddle::ir
