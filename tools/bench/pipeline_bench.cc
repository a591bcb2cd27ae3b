// What the default pipeline takes for each op of a kernel, by how many there are (aim: 1 us): of a straight line of
// arithmetic, of nested loops and ifs, and of accesses to one array.
//
//   pipeline_bench --benchmark_filter=Accesses
#include <algorithm>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/passes/pipeline.h"

namespace heddle::ir {
namespace {

// A kernel with an array, and numbers that nobody knows to compute with.
class Sample {
 public:
  explicit Sample(int64_t ops) : kernel_("sample"), builder_(kernel_), left_(ops) {
    const int64_t extents[] = {kDynamic}, strides[] = {1};
    array_ = kernel_.add_param("x", Type::view(Scalar::kI32, Space::kGlobal, 1), extents, strides);
    for (int i = 0; i < kValues; ++i) {
      values_.push_back(kernel_.add_param("p" + std::to_string(i), kI32Type));
    }
    thread_ = builder_.create(Opcode::kThreadIdx, {}, kI32Type, {{AttrKey::kAxis, 0}});
  }

  // One more op on numbers that were computed last. False: there are as many as were asked for.
  bool compute() {
    if (left_ <= 0) return false;
    constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kMul, Opcode::kXor, Opcode::kSub,
                               Opcode::kMax};
    const auto at = static_cast<size_t>(left_);
    values_[at % kValues] = builder_.create(
        kOps[at % std::size(kOps)], {values_[(at + 1) % kValues], values_[(at + 3) % kValues]});
    --left_;
    return true;
  }
  // x[i + c] += a number: five ops, with the constant.
  bool access() {
    if (left_ <= 0) return false;
    const ValueId place =
        builder_.create(Opcode::kAdd, {thread_, builder_.constant_int(kI32Type, left_)});
    const ValueId old = builder_.create(Opcode::kLoad, {array_, place}, kI32Type);
    builder_.create(Opcode::kStore,
                    {array_, builder_.create(Opcode::kAdd, {old, values_[0]}), place});
    left_ -= 5;
    return true;
  }
  // Loops in loops with an if in the innermost, of some ops each.
  void nest(int depth) {
    if (depth == 0) {
      builder_.begin_if(builder_.create(Opcode::kLt, {values_[0], values_[1]}));
      const std::vector<ValueId> outside = values_;
      for (int i = 0; i < 16 && compute();) ++i;
      builder_.create(Opcode::kStore,
                      {array_, values_[static_cast<size_t>(left_ + 1) % kValues], thread_});
      builder_.yield({});
      builder_.next_region();
      builder_.yield({});
      builder_.end_region();
      values_ = outside;
      left_ -= 3;
      return;
    }
    const ValueId init[] = {values_[0]};
    const OpId loop = builder_.begin_for(builder_.constant_int(kI32Type, 0), values_[2],
                                         builder_.constant_int(kI32Type, 1), init);
    const std::vector<ValueId> outside = values_;
    values_[0] = kernel_.region(builder_.region()).args[1];
    for (int i = 0; i < 8 && compute();) ++i;
    nest(depth - 1);
    const ValueId next[] = {values_[static_cast<size_t>(left_ + 1) % kValues]};
    builder_.yield(next);
    builder_.end_region();
    values_ = outside;
    values_[0] = kernel_.op(loop).results[0];
    left_ -= 3;
  }
  bool done() const { return left_ <= 0; }
  // Stores what was computed, and ends the kernel_.
  Kernel end() {
    for (const ValueId value : values_) builder_.create(Opcode::kStore, {array_, value, thread_});
    builder_.yield({});
    return std::move(kernel_);
  }

 private:
  static constexpr int kValues = 8;
  Kernel kernel_;
  Builder builder_;
  ValueId array_ = ValueId::kNone, thread_ = ValueId::kNone;
  std::vector<ValueId> values_;
  int64_t left_;
};

Kernel straight_line(int64_t ops) {
  Sample sample(ops);
  while (sample.compute()) {
  }
  return sample.end();
}
Kernel nested(int64_t ops) {
  Sample sample(ops);
  while (!sample.done()) sample.nest(4);
  return sample.end();
}
Kernel accesses(int64_t ops) {
  Sample sample(ops);
  while (sample.access()) {
  }
  return sample.end();
}

void run(benchmark::State& state, Kernel (*make)(int64_t)) {
  const Kernel kernel = make(state.range(0));
  int64_t ops = 0;
  kernel.walk([&](OpId) { ++ops; });
  for (auto _ : state) {
    state.PauseTiming();
    Kernel copy = kernel;
    state.ResumeTiming();
    if (Status s = run_pipeline(copy, kDefaultPipeline, {}); !s.ok()) {
      return state.SkipWithError(std::string(s.message()).c_str());
    }
  }
  state.counters["ops"] = static_cast<double>(ops);
}
void BM_StraightLine(benchmark::State& state) { run(state, straight_line); }
void BM_Nested(benchmark::State& state) { run(state, nested); }
void BM_Accesses(benchmark::State& state) { run(state, accesses); }
BENCHMARK(BM_StraightLine)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Nested)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Accesses)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::ir

BENCHMARK_MAIN();
