#include "fuzz/oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "fuzz/oracle_state.h"

namespace heddle::fuzz {
namespace {

using ir::AttrKey;
using ir::Kernel;
using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;
using oracle::Handler;
using oracle::Int128;
using oracle::Rule;
using oracle::ScalarOp;
using oracle::State;
using oracle::Threads;

// Ops of threads after which a program is endless.
constexpr int64_t kMaxSteps = 100'000'000;

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, const Inputs& inputs)
      : kernel_(kernel), state_(kernel, inputs), inputs_(inputs), known_(kernel.op_count()) {}

  Outcome run() {
    Threads all;
    for (uint32_t t = 0; t < state_.threads(); ++t) all.push_back(t);
    if (inputs_.grid.y != 1 || inputs_.grid.z != 1) return {"the oracle knows grids of x alone"};
    for (int64_t block = 0; block < inputs_.grid.x && state_.error().empty(); ++block) {
      state_.begin_block(block);
      run(kernel_.body(), all);
    }
    if (!state_.error().empty()) return {state_.error()};
    return {.buffers = state_.buffers()};
  }

 private:
  // How an op is run, found when it is first reached.
  struct Known {
    Handler handler = nullptr;
    Rule rule = nullptr;
    ScalarOp scalar;
  };

  // All ops of a region but the one that ends it; false where one fails.
  bool run(RegionId region, const Threads& threads) {
    if (threads.empty() || !state_.error().empty()) return state_.error().empty();
    for (OpId id = kernel_.region(region).first; valid(id); id = kernel_.op(id).next) {
      steps_ += static_cast<int64_t>(threads.size());
      if (steps_ > kMaxSteps) return state_.fail("the program runs for too long");
      if (!run(id, threads)) return false;
    }
    return true;
  }

  bool run(OpId id, const Threads& threads) {
    const Op& op = kernel_.op(id);
    switch (op.opcode) {
      case Opcode::kYield:
        return true;
      case Opcode::kIf:
        return branch(op, threads);
      case Opcode::kFor:
        return count(op, threads);
      case Opcode::kWhile:
        return repeat(op, threads);
      default:
        break;
    }
    Known& known = known_[index_of(id)];
    if (known.handler == nullptr && known.rule == nullptr && !find(op, known)) return false;
    return known.handler != nullptr ? known.handler(state_, op, threads)
                                    : elementwise(op, known, threads);
  }

  bool find(const Op& op, Known& known) {
    using namespace oracle;  // NOLINT: the three tables of handlers
    for (const auto handler_of : {value_handler, memory_handler, warp_handler}) {
      known.handler = handler_of(op.opcode);
      if (known.handler != nullptr) return true;
    }
    if (!op.operands.empty() && op.results.size() == 1) {
      known.scalar = {.opcode = op.opcode,
                      .from = kernel_.type(op.operands.front()).scalar,
                      .to = kernel_.type(op.result()).scalar,
                      .rounding = static_cast<ir::Rounding>(op.attr_or(AttrKey::kRounding, 0)),
                      .ftz = op.attr_or(AttrKey::kFtz, 0) != 0};
      known.rule = find_rule(known.scalar);
    }
    return known.rule != nullptr ||
           state_.fail(absl::StrCat("the oracle does not know ", name(op)));
  }

  std::string name(const Op& op) const {
    std::string text = absl::StrCat("'", ir::info(op.opcode).mnemonic, "'");
    for (const ValueId operand : op.operands) {
      absl::StrAppend(&text, " ", ir::to_string(kernel_.type(operand)));
    }
    return text;
  }

  // An operand of one element counts for all elements of the result.
  bool elementwise(const Op& op, const Known& known, const Threads& threads) {
    constexpr size_t kMost = 3;
    const size_t operands = std::min(op.operands.size(), kMost);
    for (int e = 0; e < state_.count_of(op.result()); ++e) {
      const uint64_t* from[kMost] = {};
      for (size_t i = 0; i < operands; ++i) {
        from[i] = state_.row(op.operands[i], state_.count_of(op.operands[i]) == 1 ? 0 : e);
      }
      uint64_t* const to = state_.row(op.result(), e);
      for (const uint32_t t : threads) {
        uint64_t bits[kMost] = {};
        for (size_t i = 0; i < operands; ++i) bits[i] = from[i][t];
        const std::optional<uint64_t> result = known.rule(known.scalar, bits);
        if (!result) return state_.fail(absl::StrCat(name(op), " has no result that is specified"));
        to[t] = *result;
      }
    }
    return true;
  }

  absl::Span<const ValueId> yielded(RegionId region) const {
    return kernel_.op(kernel_.terminator(region)).operands;
  }
  absl::Span<const ValueId> args(RegionId region) const { return kernel_.region(region).args; }

  bool branch(const Op& op, const Threads& threads) {
    Threads sides[2];
    for (const uint32_t t : threads) sides[state_.at(op.condition(), t) != 0 ? 0 : 1].push_back(t);
    for (const size_t side : {0, 1}) {
      if (!run(op.regions[side], sides[side])) return false;
      state_.copy(yielded(op.regions[side]), op.results, sides[side]);
    }
    return true;
  }

  // Trips that a thread makes; negative where ops.def leaves that open.
  int64_t trips(const Op& op, uint32_t thread) {
    const Int128 start = state_.number_at(op.start(), thread);
    const Int128 stop = state_.number_at(op.stop(), thread);
    const Int128 step = state_.number_at(op.step(), thread);
    const bool down = step < 0 && kernel_.constant_bits(op.step()).has_value();
    if (step == 0 || (step < 0 && !down)) return -1;
    const Int128 way = down ? start - stop : stop - start;
    const Int128 size = down ? -step : step;
    return way <= 0 ? 0 : static_cast<int64_t>((way + size - 1) / size);
  }

  bool count(const Op& op, const Threads& threads) {
    const RegionId body = op.regions.front();
    const ValueId index = args(body).front();
    const auto carried = args(body).subspan(1);
    const ir::Scalar scalar = kernel_.type(index).scalar;
    std::vector<int64_t> trips_of(state_.threads());
    for (const uint32_t t : threads) {
      trips_of[t] = trips(op, t);
      if (trips_of[t] < 0) return state_.fail("a loop's step is not positive");
    }
    state_.copy(op.inits(), carried, threads);
    Threads inside = threads;
    for (int64_t trip = 0;; ++trip) {
      std::erase_if(inside, [&](uint32_t t) { return trip >= trips_of[t]; });
      if (inside.empty()) break;
      for (const uint32_t t : inside) {
        const Int128 start = state_.number_at(op.start(), t);
        state_.at(index, t) =
            oracle::wrap(scalar, start + Int128{trip} * state_.number_at(op.step(), t));
      }
      if (!run(body, inside)) return false;
      state_.copy(yielded(body), carried, inside);
    }
    state_.copy(carried, op.results, threads);
    return true;
  }

  bool repeat(const Op& op, const Threads& threads) {
    const RegionId condition = op.regions.front();
    const RegionId body = op.regions.back();
    state_.copy(op.inits(), args(condition), threads);
    Threads inside = threads;
    while (true) {
      if (!run(condition, inside)) return false;
      const ValueId more = yielded(condition).front();
      std::erase_if(inside, [&](uint32_t t) { return state_.at(more, t) == 0; });
      if (inside.empty()) break;
      state_.copy(args(condition), args(body), inside);
      if (!run(body, inside)) return false;
      state_.copy(yielded(body), args(condition), inside);
    }
    state_.copy(args(condition), op.results, threads);
    return true;
  }

  const Kernel& kernel_;
  State state_;
  const Inputs& inputs_;
  std::vector<Known> known_;  // by op
  int64_t steps_ = 0;
};

}  // namespace

Outcome consult_oracle(const Kernel& kernel, const Inputs& inputs) {
  return Evaluator(kernel, inputs).run();
}

}  // namespace heddle::fuzz
