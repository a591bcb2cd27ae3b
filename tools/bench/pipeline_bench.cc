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
  explicit Sample(int64_t ops) : kernel("sample"), builder(kernel), left_(ops) {
    const int64_t extents[] = {kDynamic}, strides[] = {1};
    array = kernel.add_param("x", Type::view(Scalar::kI32, Space::kGlobal, 1), extents, strides);
    for (int i = 0; i < kValues; ++i) {
      values.push_back(kernel.add_param("p" + std::to_string(i), kI32Type));
    }
    thread_ = builder.create(Opcode::kThreadIdx, {}, kI32Type, {{AttrKey::kAxis, 0}});
  }

  // One more op on numbers that were computed last. False: there are as many as were asked for.
  bool compute() {
    if (left_ <= 0) return false;
    constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kMul, Opcode::kXor, Opcode::kSub,
                               Opcode::kMax};
    const auto at = static_cast<size_t>(left_);
    values[at % kValues] = builder.create(kOps[at % std::size(kOps)],
                                          {values[(at + 1) % kValues], values[(at + 3) % kValues]});
    --left_;
    return true;
  }
  // x[i + c] += a number: four ops.
  bool access() {
    if (left_ <= 0) return false;
    const ValueId place =
        builder.create(Opcode::kAdd, {thread_, builder.constant_int(kI32Type, left_)});
    const ValueId old = builder.create(Opcode::kLoad, {array, place}, kI32Type);
    builder.create(Opcode::kStore, {array, builder.create(Opcode::kAdd, {old, values[0]}), place});
    left_ -= 5;
    return true;
  }
  // Loops in loops with an if in the innermost, of some ops each.
  void nest(int depth) {
    if (depth == 0) {
      builder.begin_if(builder.create(Opcode::kLt, {values[0], values[1]}));
      const std::vector<ValueId> outside = values;
      for (int i = 0; i < 16 && compute();) ++i;
      builder.create(Opcode::kStore,
                     {array, values[static_cast<size_t>(left_ + 1) % kValues], thread_});
      builder.yield({});
      builder.next_region();
      builder.yield({});
      builder.end_region();
      values = outside;
      left_ -= 3;
      return;
    }
    const ValueId init[] = {values[0]};
    const OpId loop = builder.begin_for(builder.constant_int(kI32Type, 0), values[2],
                                        builder.constant_int(kI32Type, 1), init);
    const std::vector<ValueId> outside = values;
    values[0] = kernel.region(builder.region()).args[1];
    for (int i = 0; i < 8 && compute();) ++i;
    nest(depth - 1);
    const ValueId next[] = {values[static_cast<size_t>(left_ + 1) % kValues]};
    builder.yield(next);
    builder.end_region();
    values = outside;
    values[0] = kernel.op(loop).results[0];
    left_ -= 3;
  }
  bool done() const { return left_ <= 0; }
  // Stores what was computed, and ends the kernel.
  Kernel end() {
    for (const ValueId value : values) builder.create(Opcode::kStore, {array, value, thread_});
    builder.yield({});
    return std::move(kernel);
  }

 private:
  static constexpr int kValues = 8;
  Kernel kernel;
  Builder builder;
  ValueId array = ValueId::kNone, thread_ = ValueId::kNone;
  std::vector<ValueId> values;
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
