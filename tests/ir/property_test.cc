// Random kernels: every pass keeps what they compute, and the analyses speak true of every value
// that every thread sees.
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "ir/analysis/thread_oracle.h"
#include "ir/interp/oracle.h"
#include "ir/random_kernel.h"

namespace heddle::ir {
namespace {

constexpr int kKernels = 150;

// Where the memory after two runs differs, in words; what the first leaves unspecified the second
// may make of it what it likes.
std::string difference(const Kernel& kernel, const ThreadOracle& before,
                       const ThreadOracle& after) {
  for (size_t p = 0; p < kernel.params().size(); ++p) {
    const Scalar scalar = kernel.type(kernel.params()[p].value).scalar;
    for (size_t i = 0; i < before.memory(p).size(); ++i) {
      const OracleValue& a = before.memory(p)[i];
      const OracleValue& b = after.memory(p)[i];
      if (a.poison || (!b.poison && a.elements == b.elements)) continue;
      const bool nans = is_float(scalar) && !b.poison && interp::is_nan(scalar, a.elements[0]) &&
                        interp::is_nan(scalar, b.elements[0]);
      if (nans) continue;
      return absl::StrCat("param ", p, "[", i, "]: ", interp::text_of(scalar, a.elements[0]),
                          " became ",
                          b.poison ? "unspecified" : interp::text_of(scalar, b.elements[0]));
    }
  }
  return "";
}

void expect_same(uint64_t seed, const RandomOptions& options, absl::string_view passes,
                 int* tested) {
  const Kernel original = random_kernel(seed, options);
  ASSERT_EQ(to_string(verify(original)), "") << "seed " << seed;
  const auto arguments = random_arguments(original, seed);
  ThreadOracle before(original, arguments);
  if (!before.run()) return;
  ++*tested;
  Kernel kernel = original;
  std::string trail = print(original);
  for (const absl::string_view pass : absl::StrSplit(passes, ',')) {
    const Status status = run_pipeline(kernel, pass, {.verify_each = true});
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message() << trail;
    const std::string text = print(kernel);
    ThreadOracle after(kernel, arguments);
    ASSERT_TRUE(after.run()) << "seed " << seed << " after " << pass << "\n" << trail << text;
    ASSERT_EQ(difference(original, before, after), "")
        << "seed " << seed << " after " << pass << "\n"
        << trail << "\n; after " << pass << "\n"
        << text;
    trail = text;
  }
}

TEST(Property, PassesKeepWhatIsComputed) {
  int tested = 0;
  for (uint64_t seed = 0; seed < kKernels; ++seed) {
    expect_same(seed, {}, "promote-vars,fold,dce,licm,cse,fold,dce", &tested);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tested, kKernels / 2);
}

TEST(Property, PassesInOtherOrders) {
  int tested = 0;
  for (uint64_t seed = 10'000; seed < 10'000 + kKernels; ++seed) {
    expect_same(seed, {}, "fold,dce,cse,promote-vars,cse,licm,fold,cse,dce", &tested);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tested, kKernels / 2);
}

// Contraction changes nothing for integers.
TEST(Property, TheDefaultPipelineOnIntegers) {
  int tested = 0;
  for (uint64_t seed = 20'000; seed < 20'000 + kKernels; ++seed) {
    expect_same(seed, {.floats = false, .statements = 50}, kDefaultPipeline, &tested);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tested, kKernels / 2);
}

// --- The analyses ---

// One value of one trip, as the threads see it.
using Instance = std::pair<ValueId, uint64_t>;
using Seen = std::vector<std::pair<int, uint64_t>>;  // thread, bits

bool same_within(const Seen& seen, int group) {
  std::map<int, uint64_t> first;
  for (const auto& [thread, bits] : seen) {
    const auto [it, inserted] = first.emplace(thread / group, bits);
    if (!inserted && it->second != bits) return false;
  }
  return true;
}

int threads_of(Scope scope) {
  return scope == Scope::kThread      ? 1
         : scope == Scope::kWarp      ? 32
         : scope == Scope::kWarpGroup ? 128
                                      : 1 << 20;
}

void expect_true_facts(uint64_t seed, const Kernel& kernel, int* tested) {
  IntAnalysis ints(kernel);
  const Uniformity uniformity(kernel);
  std::map<Instance, Seen> seen;
  std::map<std::pair<RegionId, uint64_t>, std::map<int, int>> runs;  // by thread: how often
  std::string wrong;
  const auto on_value = [&](const OracleThread& thread, ValueId value, uint64_t trip,
                            const OracleValue& v) {
    if (v.poison) return;
    const Type type = kernel.type(value);
    if (is_integer(type.scalar) || type.scalar == Scalar::kBool) {
      const IntFacts facts = ints.of(value);
      for (const uint64_t bits : v.elements) {
        const auto number = type.scalar == Scalar::kI32 ? int64_t{static_cast<int32_t>(bits)}
                                                        : static_cast<int64_t>(bits);
        const bool divides = facts.divisor == 0 ? number == 0 : number % facts.divisor == 0;
        if (number < facts.min || number > facts.max || !divides) {
          absl::StrAppend(&wrong, "%", index_of(value), " is ", number, ", not in {", facts.min,
                          ", ", facts.max, ", ", facts.divisor, "}\n");
        }
      }
    }
    if (uniformity.of(value) >= Scope::kWarp && !v.elements.empty()) {
      uint64_t hash = 0;
      for (const uint64_t bits : v.elements) {
        const bool nan = is_float(type.scalar) && interp::is_nan(type.scalar, bits);
        hash = hash * 31 + (nan ? 1 : bits);
      }
      seen[{value, trip}].push_back({thread.linear, hash});
    }
  };
  const auto on_region = [&](const OracleThread& thread, RegionId region, uint64_t trip) {
    ++runs[{region, trip}][thread.linear];
  };
  ThreadOracle oracle(kernel, random_arguments(kernel, seed));
  oracle.watch(on_value, on_region);
  if (!oracle.run()) return;
  ++*tested;
  for (const auto& [instance, list] : seen) {
    const Scope level = uniformity.of(instance.first);
    if (!same_within(list, threads_of(level))) {
      absl::StrAppend(&wrong, "%", index_of(instance.first), " differs within a ", name_of(level),
                      "\n");
    }
  }
  for (const auto& run : runs) {
    const auto& instance = run.first;
    const auto& by_thread = run.second;
    const Scope level = uniformity.control(instance.first);
    if (level == Scope::kThread) continue;
    const int group = threads_of(level);
    const auto total = static_cast<int>(kernel.block.count());
    for (int thread = 0; thread < total; ++thread) {
      const int leader = thread / group * group;
      const auto count = [&](int t) { return by_thread.count(t) != 0 ? by_thread.at(t) : 0; };
      if (count(thread) != count(leader)) {
        absl::StrAppend(&wrong, "region ", index_of(instance.first), " divides a ", name_of(level),
                        "\n");
        break;
      }
    }
  }
  ASSERT_EQ(wrong, "") << "seed " << seed << "\n" << print(kernel);
}

TEST(Property, FactsAndUniformityHold) {
  int tested = 0;
  for (uint64_t seed = 30'000; seed < 30'000 + kKernels; ++seed) {
    Kernel kernel = random_kernel(seed, {});
    expect_true_facts(seed, kernel, &tested);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(run_pipeline(kernel, kExactPipeline).ok());
    expect_true_facts(seed, kernel, &tested);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tested, kKernels);
}

}  // namespace
}  // namespace heddle::ir
