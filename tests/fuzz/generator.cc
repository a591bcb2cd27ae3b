#include "fuzz/generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fuzz/generator_exits.h"
#include "fuzz/inputs.h"

namespace heddle::fuzz {
namespace {

using ir::Kernel;
using ir::OpId;

constexpr int kMaxDepth = 4;
constexpr int64_t kMaxUnrolled = 64;

class Generator final : public ExitGenerator {
 public:
  explicit Generator(uint64_t seed) : ExitGenerator(seed) { floats_ = chance(55); }

  Kernel generate() {
    declare_rows();
    declare();
    const size_t statements = 3 + below(16);
    program(statements, /*returns=*/chance(20));
    show();
    return std::move(kernel_);
  }

 private:
  void statement() override {
    const size_t kind = below(100);
    const bool nests = depth_ < kMaxDepth;
    if (may_leave() && chance(12)) return leave();
    if (nests && chance(4)) return exit_loop();
    if (has_rows() && nests && chance(13)) return chance(60) ? dealt_loop() : row_loop();
    if (nests && kind < 8) return for_loop();
    if (nests && kind < 11) return while_loop();
    if (nests && kind < 19) return if_else();
    if (nests && kind < 21) return walk_loop();
    if (nests && kind < 23) return choice();
    if (kind < 25) return declare_variable();
    if (kind < 32) return use_variable();
    if (kind < 48) return memory();
    if (kind < 51 && control_ >= Scope::kBlock) return exchange();
    if (kind < 55 && may_run_collectives()) return collective();
    arithmetic();
    witness();
  }

  void few_statements(size_t most) { statements(1 + below(most)); }

  void declare_variable() { slots_.push_back(b_.create(Opcode::kVar, {any(any_type())})); }

  void use_variable() {
    if (slots_.empty()) return;
    const ValueId slot = slots_[below(slots_.size())];
    if (chance(50)) {
      keep(b_.create(Opcode::kVarLoad, {slot}));
    } else {
      b_.create(Opcode::kVarStore, {slot, any(kernel_.type(slot).content())});
    }
  }

  // --- For ---

  struct Bounds {
    ValueId start, stop, step;
    int64_t trips;  // at most
  };

  // Bounds are agreed on where the threads of the block or the warp shall stay together.
  Bounds bounds(Scalar scalar, Scope level) {
    const Type type = Type::of(scalar);
    const bool narrow = scalar == Scalar::kI32;
    const int64_t largest =
        narrow ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
    const int64_t least = -largest - 1;
    const auto value = [&] { return level > Scope::kThread ? agreed(scalar, level) : any(type); };
    const auto small = [&](int64_t mask) {
      if (chance(35))
        return number(type, static_cast<int64_t>(below(static_cast<size_t>(mask) + 1)));
      return make(Opcode::kAnd, {value(), number(type, mask)});
    };
    const auto step = [&](int64_t least_step) {
      if (chance(70)) return number(type, least_step + static_cast<int64_t>(below(4)));
      return make(Opcode::kAdd, {small(3), number(type, least_step)});
    };
    switch (below(9)) {
      case 0:  // up to the greatest number of all, by small steps or great ones
        return {make(Opcode::kSub, {number(type, largest), small(15)}),
                chance(60) ? number(type, largest)
                           : make(Opcode::kSub, {number(type, largest), small(7)}),
                chance(70) ? step(1) : number(type, largest - static_cast<int64_t>(below(3))), 16};
      case 1:  // down to the least
        return {
            make(Opcode::kAdd, {number(type, least), small(15)}),
            chance(60) ? number(type, least) : make(Opcode::kAdd, {number(type, least), small(7)}),
            number(type, -1 - static_cast<int64_t>(below(4))), 16};
      case 2:  // anywhere, by steps so great that there are few
        return {value(), value(), number(type, (largest / 8 + 1) * (chance(50) ? 1 : 2)), 16};
      case 3:
        return {value(), value(), number(type, -(largest / 8 + 1) - static_cast<int64_t>(below(9))),
                16};
      case 4:  // from known bounds at the edges
        return {number(type, largest - static_cast<int64_t>(below(12))), number(type, largest),
                number(type, 1 + static_cast<int64_t>(below(6))), 12};
      case 5:
        return {number(type, least + static_cast<int64_t>(below(9))),
                number(type, least + static_cast<int64_t>(below(16))), step(1), 16};
      case 6:  // down
        return {small(7), small(7), number(type, -1 - static_cast<int64_t>(below(3))), 7};
      default:
        return {small(7), small(7), step(1), 7};
    }
  }

  void for_loop() {
    const Scalar scalar = chance(65) ? Scalar::kI32 : Scalar::kI64;
    const Scope level = chance(60) ? std::min(control_, Scope::kBlock) : Scope::kThread;
    const Bounds range = bounds(scalar, level);
    if (trips_ * range.trips > kMaxTrips) return;
    const std::vector<ValueId> init = carried();
    const OpId loop = b_.begin_for(range.start, range.stop, range.step, init);
    int64_t unroll = 1;
    if (chance(50)) {
      unroll = static_cast<int64_t>(1 + below(chance(80) ? 4 : 16));
      if (unrolled_ * unroll > kMaxUnrolled) unroll = 1;
      kernel_.op(loop).set_attr(AttrKey::kUnroll, unroll);
    }
    trips_ *= range.trips;
    unrolled_ *= unroll;
    Scope together = Scope::kGrid;
    for (const ValueId bound : {range.start, range.stop, range.step}) {
      together = std::min(together, level_[bound]);
    }
    inside(together, [&] {
      const auto args = kernel_.region(b_.region()).args;
      level_.at(args[0]) = together;
      without_exits([&] { few_statements(7); });
      std::vector<ValueId> next = like(init);
      for (size_t i = 0; i < next.size(); ++i) {
        if (chance(15)) next[i] = chance(50) ? args[1 + i] : init[i];
      }
      b_.yield(next);
    });
    trips_ /= range.trips;
    unrolled_ /= unroll;
    b_.end_region();
    keep_results(loop);
  }

  // A loop along the elements of an array, in steps of one.
  void walk_loop() {
    const int64_t limit = chance(50) ? kSlotsPerThread : kLongWalk;
    if (trips_ * limit > kMaxTrips || control_ < Scope::kBlock) return;
    const auto bound = [&](int64_t most) {
      if (chance(40)) return number(ir::kI32Type, static_cast<int64_t>(below(2)) * most);
      const ValueId few = make(
          Opcode::kAnd, {agreed(Scalar::kI32, Scope::kBlock), number(ir::kI32Type, limit - 1)});
      return most == 0 && chance(50) ? make(Opcode::kMin, {few, number(ir::kI32Type, 2)}) : few;
    };
    const ValueId start = bound(0);
    const ValueId stop = bound(limit);
    const std::vector<ValueId> init = carried();
    const OpId loop = b_.begin_for(start, stop, number(ir::kI32Type, 1), init);
    trips_ *= limit;
    inside(Scope::kBlock, [&] {
      const ValueId index = kernel_.region(b_.region()).args[0];
      level_.at(index) = Scope::kBlock;
      walk(index, limit);
      for (size_t i = below(4); i > 0; --i) arithmetic();
      b_.yield(like(init));
    });
    trips_ /= limit;
    b_.end_region();
    keep_results(loop);
  }

  // --- While ---

  void while_loop() {
    constexpr int64_t kTrips = 4;
    if (trips_ * kTrips > kMaxTrips) return;
    std::vector<ValueId> init = carried();
    init.push_back(number(ir::kI32Type, 0));
    const OpId loop = b_.begin_while(init);
    trips_ *= kTrips;
    inside(Scope::kThread, [&] {
      const ValueId count = kernel_.region(b_.region()).args.back();
      if (chance(60)) without_exits([&] { few_statements(4); });
      const ValueId most = number(ir::kI32Type, static_cast<int64_t>(below(kTrips)));
      const ValueId more = b_.create(Opcode::kLt, {count, most});
      b_.yield({chance(40) ? more : b_.create(Opcode::kAnd, {more, condition()})});
    });
    b_.next_region();
    inside(Scope::kThread, [&] {
      const ValueId count = kernel_.region(b_.region()).args.back();
      without_exits([&] { few_statements(6); });
      std::vector<ValueId> next = like(init);
      next.back() = b_.create(Opcode::kAdd, {count, number(ir::kI32Type, 1)});
      b_.yield(next);
    });
    trips_ /= kTrips;
    b_.end_region();
    keep_results(loop);
  }

  // --- If ---

  void if_else() {
    ValueId asked =
        chance(40) ? agreed(Scalar::kBool, std::min(control_, Scope::kBlock)) : condition();
    if (chance(15)) asked = make(Opcode::kNot, {asked});
    const Scope together = level_[asked];
    // The lanes that go into the first branch may exchange what they have.
    ValueId lanes = ValueId::kNone;
    if (together < Scope::kWarp && control_ >= Scope::kWarp && chance(30)) {
      lanes = b_.create(Opcode::kBallot, {asked});
    }
    const std::vector<ValueId> shapes = carried();
    std::vector<Type> types;
    for (const ValueId value : shapes) types.push_back(kernel_.type(value));
    const OpId choice = b_.begin_if(asked, types);
    for (const int region : {0, 1}) {
      inside(together, [&] {
        if (region == 0 && valid(lanes)) {
          lanes_ = lanes;
          collective();
        }
        if (region == 0 && !plain_ && chance(4)) impossible();
        if (region == 0 || chance(70)) few_statements(6);
        std::vector<ValueId> results = like(shapes);
        for (size_t i = 0; i < results.size(); ++i) {
          if (chance(20)) results[i] = shapes[i];
        }
        b_.yield(results);
      });
      if (region == 0) b_.next_region();
    }
    b_.end_region();
    keep_results(choice);
  }

  // One that only chooses between values: little is computed in its branches.
  void choice() {
    const std::vector<ValueId> shapes = carried();
    std::vector<Type> types;
    for (const ValueId value : shapes) types.push_back(kernel_.type(value));
    const ValueId asked = chance(70) ? condition() : any(ir::kBoolType);
    const OpId choice = b_.begin_if(asked, types);
    for (const int region : {0, 1}) {
      inside(level_[asked], [&] {
        for (size_t i = below(3); i > 0; --i) cheap();
        b_.yield(chance(30) ? shapes : like(shapes));
      });
      if (region == 0) b_.next_region();
    }
    b_.end_region();
    keep_results(choice);
    witness();
  }

  // A branch that nobody takes, and an assertion that holds.
  void impossible() {
    const ValueId few = masked(Scalar::kI32, 7);
    const ValueId never = b_.create(Opcode::kGt, {few, number(ir::kI32Type, 7)});
    b_.begin_if(never);
    inside(Scope::kThread, [&] {
      b_.create(Opcode::kUnreachable, {});
      b_.yield({});
    });
    b_.next_region();
    b_.yield({});
    b_.end_region();
    b_.create(Opcode::kAssert, {b_.create(Opcode::kNot, {never})}, Type::none(),
              {{AttrKey::kMessage, static_cast<int64_t>(kernel_.intern("few"))}});
  }

  int64_t unrolled_ = 1;
};

}  // namespace

Kernel random_program(uint64_t seed) { return Generator(seed).generate(); }

}  // namespace heddle::fuzz
