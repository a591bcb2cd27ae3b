// Random kernels of integers, bools, fragments, loops and branches: what their PTX does in the
// simulator, against an evaluation of the IR that shares nothing with either. It is about control
// flow, which registers values share, copies and addresses; float arithmetic needs a GPU.
#include <random>
#include <string>
#include <vector>

#include "codegen/ir_evaluator.h"
#include "codegen/ptx_simulator.h"
#include "codegen/ptx_testing.h"
#include "gtest/gtest.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/text/printer.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Builder;
using ir::Kernel;
using ir::Opcode;
using ir::OpId;
using ir::Scalar;
using ir::Type;
using ir::ValueId;

constexpr uint32_t kThread = 5;
constexpr int kElements = 64;  // of each of the two views

// --- The generator --------------------------------------------------------------------------

constexpr Scalar kIntegers[] = {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64};

class Generator {
 public:
  // `has_exits`: with bools as the language's Break() and Return() leave them, set in branches and
  // asked behind them, in conditions of loops too.
  Generator(uint32_t seed, bool has_exits)
      : random_(seed), has_exits_(has_exits), kernel_("k"), b_(kernel_) {
    kernel_.block = {32, 1, 1};
    for (const Scalar s : {Scalar::kI32, Scalar::kI64}) {
      views_.push_back(
          kernel_.add_param("v", Type::view(s, ir::Space::kGlobal, 1), {ir::kDynamic}, {1}));
    }
    see(kernel_.add_param("n", ir::kI32Type));
    see(b_.create(Opcode::kThreadIdx, {}, ir::kI32Type, {{AttrKey::kAxis, 0}}));
    statements(14);
    // Most of what is alive at the end shows. The rest died earlier, perhaps under one of its names.
    const std::vector<ValueId> alive = visible_;
    for (const ValueId value : alive) {
      if (chance(75)) show(value);
    }
  }

  Kernel& kernel() { return kernel_; }

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool chance(uint32_t percent) { return pick(100) < percent; }

  ValueId see(ValueId value) {
    visible_.push_back(value);
    return value;
  }

  Type any_type() {
    if (chance(15)) return ir::kBoolType;
    const Scalar s = kIntegers[pick(4)];
    if (chance(20)) return Type::fragment(s, 3);
    if (chance(10)) return Type::vector(s, 2);
    return Type::of(s);
  }

  ValueId constant(Type type) {
    static constexpr int64_t kValues[] = {0, 1, -1, 2, 3, 7, 31, 32, 1000, INT32_MAX, INT32_MIN};
    const int64_t value = kValues[pick(11)];
    return b_.constant_int(type, type.scalar == Scalar::kBool ? value & 1 : value);
  }

  // What an if asks. Where there are exits, mostly for a flag: often the bool that was made last, or
  // whether none of two is set.
  ValueId condition() {
    if (!has_exits_ || chance(25)) return value(ir::kBoolType);
    ValueId flag = flags_.empty() ? value(ir::kBoolType) : flags_.back();
    if (flags_.size() > 1 && chance(30)) {
      const ValueId other = flags_[pick(static_cast<uint32_t>(flags_.size()))];
      flag = b_.create(chance(50) ? Opcode::kOr : Opcode::kAnd, {flag, other});
    }
    return chance(70) ? b_.create(Opcode::kNot, {flag}) : flag;
  }

  // A value of that type: mostly one that there is.
  ValueId value(Type type) {
    std::vector<ValueId> candidates;
    for (const ValueId v : visible_) {
      if (kernel_.type(v) == type) candidates.push_back(v);
    }
    if (!candidates.empty() && !chance(15)) {
      return candidates[pick(static_cast<uint32_t>(candidates.size()))];
    }
    return constant(type);
  }

  // An index from 0 to `limit`, a power of two, minus one; sometimes with a constant added.
  ValueId offset(int limit, int aligned_to) {
    const Type type = Type::of(chance(50) ? Scalar::kI32 : Scalar::kI64);
    const int spare = 16;
    const ValueId mask = b_.constant_int(type, (limit - spare - 1) & -aligned_to);
    ValueId index = b_.create(Opcode::kAnd, {value(type), mask});
    if (type.scalar == Scalar::kI32 && chance(40)) {
      index = b_.create(Opcode::kConvert, {index}, ir::kI64Type);
    }
    if (chance(30)) {
      const Type wide = kernel_.type(index);
      const ValueId zero = b_.constant_int(wide, 0);
      index = b_.create(Opcode::kAdd, {index, b_.create(Opcode::kAnd, {value(wide), zero})});
    }
    while (chance(60)) {
      const ValueId c = b_.constant_int(kernel_.type(index), aligned_to * (chance(50) ? 1 : 2));
      index = b_.create(Opcode::kAdd, {index, c});
      if (chance(50)) break;
      index = b_.create(Opcode::kSub, {index, c});
    }
    return index;
  }

  void show(ValueId shown) {
    const Type type = kernel_.type(shown);
    if (!type.is_scalar()) {
      for (int i = 0; i < type.count; ++i) {
        show(b_.create(Opcode::kExtract, {shown}, type.element(), {{AttrKey::kIndex, i}}));
      }
      return;
    }
    // Summed up with what lies there, so that no store hides another.
    const ValueId at = b_.constant_int(ir::kI32Type, pick(kElements));
    const ValueId old = b_.create(Opcode::kLoad, {views_[1], at}, ir::kI64Type);
    ValueId wide = shown;
    if (type.scalar != Scalar::kI64) wide = b_.create(Opcode::kConvert, {shown}, ir::kI64Type);
    const ValueId three = b_.constant_int(ir::kI64Type, 3);
    b_.create(Opcode::kStore, {views_[1], b_.create(Opcode::kFma, {old, three, wide}), at});
  }

  void statements(int count) {
    for (int i = 0; i < count; ++i) statement();
  }

  void statement() {
    const uint32_t kind = pick(100);
    if (depth_ < 3 && kind < 8) return make_if();
    if (depth_ < 3 && kind < 18) return make_for();
    if (depth_ < 3 && kind < 22) return make_while();
    if (kind < 30) return make_load();
    if (kind < 38) return make_store();
    if (kind < 50) return make_rename();
    if (kind < 58) return make_promise();
    make_arithmetic();
  }

  void make_load() {
    const ValueId view = views_[pick(2)];
    const Type element = kernel_.type(view).element();
    const bool is_vector = chance(30);
    const Type type = is_vector ? Type::vector(element.scalar, 2) : element;
    see(b_.create(Opcode::kLoad, {view, offset(kElements, is_vector ? 2 : 1)}, type));
  }

  void make_store() {
    const ValueId view = views_[pick(2)];
    const Type element = kernel_.type(view).element();
    const bool is_vector = chance(30);
    const Type type = is_vector ? Type::vector(element.scalar, 2) : element;
    const ValueId stored = value(type);
    b_.create(Opcode::kStore, {view, stored, offset(kElements, is_vector ? 2 : 1)});
  }

  // The elements of a fragment or a vector in another order: its registers under other names.
  ValueId turned(ValueId whole) {
    const Type type = kernel_.type(whole);
    std::vector<ValueId> parts;
    const uint32_t by = 1 + pick(static_cast<uint32_t>(type.count) - 1u);
    const bool backwards = chance(50);
    for (uint32_t i = 0; i < type.count; ++i) {
      const uint32_t from = (backwards ? type.count - 1 - i : i + by) % type.count;
      parts.push_back(
          b_.create(Opcode::kExtract, {whole}, type.element(), {{AttrKey::kIndex, from}}));
    }
    return see(b_.create(Opcode::kPack, absl::MakeConstSpan(parts), type));
  }

  // What a region yields. Often something computed from its argument under other names, the last
  // that is computed there: where the result goes to the argument's registers, which are read until
  // then.
  ValueId next_of(ValueId argument) {
    const Type type = kernel_.type(argument);
    const bool number = type.scalar != Scalar::kBool;
    if (!number || !chance(35)) return value(type);
    const ValueId read = !type.is_scalar() && chance(70) ? turned(argument) : argument;
    const Opcode opcode = chance(50) ? Opcode::kAdd : Opcode::kSub;
    const ValueId other = !type.is_scalar() && chance(30) ? turned(value(type)) : value(type);
    return b_.create(opcode, {read, other});
  }

  void make_rename() {
    const Scalar s = kIntegers[pick(4)];
    const Type fragment = Type::fragment(s, 3);
    switch (pick(6)) {
      case 0: {
        const std::vector<ValueId> parts = {value(Type::of(s)), value(Type::vector(s, 2))};
        see(b_.create(Opcode::kPack, absl::MakeConstSpan(parts), fragment));
        return;
      }
      case 1:
        see(b_.create(Opcode::kExtract, {value(fragment)}, Type::of(s),
                      {{AttrKey::kIndex, pick(3)}}));
        return;
      case 2:
        see(b_.create(Opcode::kSlice, {value(fragment)}, Type::vector(s, 2),
                      {{AttrKey::kIndex, pick(2)}}));
        return;
      case 3:
        see(b_.create(Opcode::kSplat, {value(Type::of(s))}, fragment));
        return;
      case 4:
        turned(value(fragment));
        return;
      default:
        break;
    }
    const Scalar other = s == Scalar::kI32   ? Scalar::kU32
                         : s == Scalar::kU32 ? Scalar::kI32
                         : s == Scalar::kI64 ? Scalar::kU64
                                             : Scalar::kI64;
    see(b_.create(Opcode::kBitcast, {value(fragment)}, fragment.with_scalar(other)));
  }

  // A value, and that it is what it is anyhow.
  void make_promise() {
    const Type type = any_type();
    if (type.scalar == Scalar::kBool && chance(50)) {
      see(b_.create(Opcode::kExpect, {value(type)}, type, {{AttrKey::kLikely, pick(2)}}));
    } else if (type.scalar == Scalar::kBool || chance(50)) {
      see(b_.create(Opcode::kAssumeUniform, {value(type)}, type));
    } else {
      see(b_.create(Opcode::kAssumeRange, {value(type)}, type, {{AttrKey::kDivisor, 1}}));
    }
  }

  void make_arithmetic() {
    static constexpr Opcode kBinary[] = {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kMin,
                                         Opcode::kMax, Opcode::kAnd, Opcode::kOr,  Opcode::kXor};
    static constexpr Opcode kComparison[] = {Opcode::kEq, Opcode::kNe, Opcode::kLt,
                                             Opcode::kLe, Opcode::kGt, Opcode::kGe};
    static constexpr Opcode kBoolean[] = {Opcode::kAnd, Opcode::kOr, Opcode::kXor, Opcode::kEq,
                                          Opcode::kNe};
    const Type type = any_type();
    if (type.scalar == Scalar::kBool) {
      if (chance(20)) {
        see(b_.create(Opcode::kNot, {value(type)}));
      } else if (chance(50)) {
        see(b_.create(kBoolean[pick(5)], {value(type), value(type)}));
      } else {
        const Type compared = Type::of(kIntegers[pick(4)]);
        see(b_.create(kComparison[pick(6)], {value(compared), value(compared)}));
      }
      return;
    }
    switch (pick(8)) {
      case 0:
        see(b_.create(chance(50) ? Opcode::kShl : Opcode::kShr,
                      {value(type), value(ir::kU32Type)}));
        return;
      case 1:
        see(b_.create(chance(50)   ? Opcode::kNeg
                      : chance(50) ? Opcode::kNot
                                   : Opcode::kAbs,
                      {value(type)}));
        return;
      case 2:
        see(b_.create(Opcode::kFma, {value(type), value(type), value(type)}));
        return;
      case 3:
        see(b_.create(Opcode::kSelect, {value(ir::kBoolType), value(type), value(type)}));
        return;
      case 4: {
        const Scalar from = chance(25) ? Scalar::kBool : kIntegers[pick(4)];
        const Type source =
            type.is_scalar() ? Type::of(from) : type.with_scalar(kIntegers[pick(4)]);
        see(b_.create(Opcode::kConvert, {value(source)}, type));
        return;
      }
      default:
        see(b_.create(kBinary[pick(8)], {value(type), value(type)}));
        return;
    }
  }

  // --- Regions ---

  std::vector<Type> carried_types() {
    std::vector<Type> types;
    if (has_exits_) types.push_back(ir::kBoolType);
    for (uint32_t i = pick(4); i > 0; --i) types.push_back(any_type());
    // Several of one type are what can be swapped.
    if (!types.empty() && chance(60)) types.push_back(types[0]);
    return types;
  }
  std::vector<ValueId> values(const std::vector<Type>& types) {
    std::vector<ValueId> result;
    for (const Type type : types) result.push_back(value(type));
    if (has_exits_ && chance(70)) result[0] = b_.constant(ir::kBoolType, pick(2));
    return result;
  }

  // Fills the region at hand and ends it.
  void fill(absl::Span<const ValueId> args, const std::vector<Type>& types) {
    const size_t outer = visible_.size(), flags = flags_.size();
    for (const ValueId arg : args) see(arg);
    ++depth_;
    statements(1 + static_cast<int>(pick(6)));
    --depth_;
    b_.yield(yields(args, types));
    visible_.resize(outer);
    flags_.resize(flags);
  }
  // For arguments that are carried, the last ones of a region.
  std::vector<ValueId> yields(absl::Span<const ValueId> args, const std::vector<Type>& types) {
    std::vector<ValueId> next = values(types);
    if (args.size() < types.size()) return next;
    const auto carried = args.last(types.size());
    for (size_t i = 0; i < types.size(); ++i) {
      if (chance(50)) next[i] = next_of(carried[i]);
    }
    if (has_exits_ && !flags_.empty() && chance(60)) next[0] = flags_.back();
    return next;
  }

  void make_if() {
    const std::vector<Type> types = carried_types();
    const OpId op = b_.begin_if(condition(), types);
    fill({}, types);
    b_.next_region();
    fill({}, types);
    b_.end_region();
    see_results(op);
    // What is behind an exit.
    if (has_exits_ && depth_ < 4 && chance(60)) make_if();
  }

  void see_results(OpId op) {
    const auto results = kernel_.op(op).results;
    for (const ValueId result : results) {
      see(result);
      if (kernel_.type(result) == ir::kBoolType) flags_.push_back(result);
    }
  }

  void make_for() {
    const Type type = Type::of(chance(70) ? Scalar::kI32 : Scalar::kI64);
    const bool is_narrow = type.scalar == Scalar::kI32;
    const ValueId seven = b_.constant_int(type, 7);
    const ValueId some = b_.create(Opcode::kAnd, {value(type), seven});
    const int64_t largest = is_narrow ? INT32_MAX : INT64_MAX;
    ValueId start = some;
    ValueId stop = b_.create(Opcode::kAnd, {value(type), seven});
    int64_t step = 1 + pick(3);
    switch (pick(6)) {
      case 0:  // down
        step = -step;
        break;
      case 1:  // up to the largest number of all
        stop = b_.constant_int(type, largest);
        start = b_.create(Opcode::kSub, {stop, some});
        if (chance(30)) step = largest - 2;
        break;
      case 2:  // down to the least
        stop = b_.constant_int(type, -largest - 1);
        start = b_.create(Opcode::kAdd, {stop, some});
        step = chance(30) ? 2 - largest : -step;
        break;
      case 3:  // from end to end, or not at all
        start = constant(type);
        step = chance(50) ? largest / 2 : -(largest / 2);
        break;
      default:
        break;
    }
    const std::vector<Type> types = carried_types();
    const ValueId step_value = b_.constant_int(type, step);
    const OpId op = b_.begin_for(start, stop, step_value, values(types));
    const auto args = kernel_.region(b_.region()).args;
    fill(args, types);
    b_.end_region();
    see_results(op);
  }

  void make_while() {
    std::vector<Type> types = carried_types();
    types.push_back(ir::kI32Type);  // counts down
    std::vector<ValueId> initial = values(types);
    initial.back() =
        b_.create(Opcode::kAnd, {value(ir::kI32Type), b_.constant_int(ir::kI32Type, 3)});
    const OpId op = b_.begin_while(initial);
    const auto before = kernel_.region(b_.region()).args;
    const size_t outer = visible_.size(), flags = flags_.size();
    for (const ValueId arg : before) see(arg);
    ++depth_;
    if (!has_exits_ || chance(40)) statements(static_cast<int>(pick(3)));
    const ValueId zero = b_.constant_int(ir::kI32Type, 0);
    ValueId more = b_.create(Opcode::kGt, {before.back(), zero});
    if (has_exits_ && chance(80)) more = none_set(before[0], more);
    --depth_;
    b_.yield({more});
    visible_.resize(outer);
    flags_.resize(flags);
    b_.next_region();
    const auto inside = kernel_.region(b_.region()).args;
    for (const ValueId arg : inside) see(arg);
    if (has_exits_) flags_.push_back(inside[0]);
    ++depth_;
    statements(static_cast<int>(pick(5)));
    --depth_;
    std::vector<ValueId> next = yields(inside, types);
    next.back() = b_.create(Opcode::kSub, {inside.back(), b_.constant_int(ir::kI32Type, 1)});
    b_.yield(next);
    visible_.resize(outer);
    flags_.resize(flags);
    b_.end_region();
    see_results(op);
  }

  // `more`, unless the flag is set: either way in which conditions of loops say so.
  ValueId none_set(ValueId flag, ValueId more) {
    const ValueId none = b_.create(Opcode::kNot, {flag});
    if (chance(60)) return b_.create(Opcode::kAnd, {more, none});
    const OpId op = b_.begin_if(none, {ir::kBoolType});
    b_.yield({more});
    b_.next_region();
    b_.yield({b_.constant(ir::kBoolType, 0)});
    b_.end_region();
    return kernel_.op(op).results[0];
  }

  std::mt19937 random_;
  const bool has_exits_;
  Kernel kernel_;
  Builder b_;
  std::vector<ValueId> views_;
  std::vector<ValueId> visible_;
  std::vector<ValueId> flags_;  // of these, bools that regions hand on
  int depth_ = 0;
};

// A kernel over an i32 view, an i64 view and the number n.
void check(const Kernel& kernel, uint64_t n, uint32_t seed) {
  const ir::Diagnostics wrong = verify(kernel, ir::Stage::kEmittable);
  ASSERT_TRUE(wrong.empty()) << ir::to_string(wrong) << ir::print(kernel);

  std::vector<uint8_t> memory(kElements * (4 + 8));
  std::mt19937 random(seed);
  for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random() % 7 == 0 ? 0xFF : random() % 9);
  const uint64_t second = PtxSimulator::kBase + kElements * 4;
  const std::vector<uint64_t> params = {PtxSimulator::kBase, kElements, second, kElements, n};
  std::vector<uint8_t> expected = memory;
  evaluate(kernel, {.params = params, .base = PtxSimulator::kBase, .thread = kThread}, expected);
  const PtxModule module = ptx_of(kernel);
  PtxSimulator simulator(module.text);
  simulator.params = params;
  simulator.memory = memory;
  simulator.thread = kThread;
  ASSERT_TRUE(simulator.run(1'000'000)) << "no end\n" << ir::print(kernel) << module.text;
  ASSERT_EQ(simulator.memory, expected) << ir::print(kernel) << module.text;
}

void check_seed(uint32_t seed, bool has_exits) {
  Generator generator(seed, has_exits);
  check(generator.kernel(), seed % 3 == 0 ? 0xFFFFFFF0 : seed % 17, seed);
}

TEST(PtxSemantics, RandomKernelsDoWhatTheirIrSays) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    check_seed(seed, /*has_exits=*/false);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(PtxSemantics, JumpsOutOfNestsDoWhatTheirFlagsSay) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    check_seed(seed, /*has_exits=*/true);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

void check_text(absl::string_view body, std::initializer_list<int> numbers) {
  const Kernel kernel = kernel_from(absl::StrCat(
      "kernel @k(%v: view<i32, global, 1> [?] strides [1], %w: view<i64, global, 1> [?] strides "
      "[1], %n: i32) block(32, 1, 1) {\n%z = const 0 : i32\n%t = thread_idx {axis = x} : i32\n",
      body, "}\n"));
  for (const int n : numbers) check(kernel, static_cast<uint32_t>(n), 1);
}

// The if leaves a bool behind in its condition's register, which guards what follows in the branch.
TEST(PtxSemantics, ABranchWritesNothingOverThatGuardsIt) {
  check_text(R"(
    %u = add %t, %n : i32
    %m = mul %t, %n : i32
    %p = lt %t, %n : bool
    %q = lt %m, %u : bool
    %r, %s = if %p : bool, i32 {
      store %v, %t, %t
      yield %q, %n
    } else {
      yield %p, %m
    }
    %x = xor %r, %q : bool
    %c = select %x, %s, %n : i32
    %o = const 1 : i32
    store %v, %c, %o
)",
             {-7, 0, 1, 5, 6, 100});
}

// The loop writes its result over no value that lives on by the name that a promise gave it.
TEST(PtxSemantics, WhatIsPromisedLivesAsLongAsTheValue) {
  struct Case {
    const char *type, *value, *promise, *next;
  };
  for (const Case& c : {
           Case{"i32", "mul %t, %n", "assume_range %m {min = -100000}", "add %x, %p"},
           Case{"i32", "mul %t, %n", "assume_uniform %m", "add %x, %p"},
           Case{"bool", "lt %t, %n", "expect %m {likely = 1}", "ne %x, %p"},
       }) {
    const std::string of = absl::StrCat(" : ", c.type, "\n");
    check_text(absl::StrCat("%four = const 4 : i32\n%one = const 1 : i32\n%m = ", c.value, of,
                            "%p = ", c.promise, of,
                            "%r = for %i in %z .. %four step %one carry(%x = %m) : ", c.type,
                            " {\n%next = ", c.next, of,
                            "yield %next\n}\n%s = convert %r : i64\nstore %w, %s, %z\n"),
               {-7, 1, 5, 6, 100});
  }
}

// A carried value that starts as one of them does not take its register.
TEST(PtxSemantics, BoundsAndStepsOutliveWhatIsCarried) {
  for (const bool stop : {false, true}) {
    check_text(absl::StrCat("%one = const 1 : i32\n%three = const 3 : i32\n%ten = const 10 : i32\n",
                            "%kept = and %n, %three : i32\n%m = add %kept, ",
                            stop ? "%ten" : "%one", " : i32\n", "%r = for %i in %z .. ",
                            stop ? "%m step %one" : "%ten step %m", R"( carry(%x = %m) : i32 {
      %a = mul %x, %n : i32
      %b = xor %a, %i : i32
      %c = mul %b, %b : i32
      %d = add %c, %a : i32
      yield %d
    }
    %s = convert %r : i64
    store %w, %s, %z
)"),
               {-7, 1, 5, 6, 100});
  }
}

// n + j wraps before the constant brings it back into the view: its terms are not added in 64 bits.
TEST(PtxSemantics, OffsetsThatWrapOnTheirWayAreOneSum) {
  check_text(R"(
    %big = const 2147483647 : i32
    %five = const 5 : i32
    %four = const 4 : i32
    %o = const 1 : i32
    for %i in %z .. %four step %o {
      %j = sub %big, %i : i32
      %s = add %n, %j : i32
      %c = add %s, %five : i32
      store %v, %i, %c
      yield
    }
)",
             {2147483647});
}

}  // namespace
}  // namespace heddle::codegen
