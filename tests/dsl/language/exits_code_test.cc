// What Break(), Continue() and Return() cost: the instructions of a loop's trip, against those that
// nvcc 13.0 -O3 -arch=sm_90 makes of the same loop (exits_twins.cu). One more is that of an address: ptxas makes
// two shifted sums of mad.wide, and one multiply-add of mul.wide and add.s64, which take registers elsewhere.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "codegen/toolchain/tool_testing.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/heddle.h"

namespace heddle {
namespace {

using In = Tensor<const int32_t, 1>;
using Out = Tensor<int32_t, 1>;

Int thread() { return block_idx.x * block_dim.x + thread_idx.x; }

// The instructions of the longest loop; -1 and a failure where there is none.
int trip_of(const std::string& listing) {
  int count = 0, longest = -1;
  std::map<std::string, int> labels;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(listing, '\n'))) {
    if (absl::StartsWith(line, ".L") && absl::EndsWith(line, ":")) {
      labels[line.substr(0, line.size() - 1)] = count;
    }
    const int before = count;
    count += static_cast<int>(codegen::sass_opcodes(line).size());
    const size_t name = line.find("`(");
    if (name == std::string::npos) continue;
    const auto label = labels.find(line.substr(name + 2, line.find(')', name) - name - 2));
    // The branch to itself behind the kernel's end is no loop.
    if (label != labels.end() && label->second != before) {
      longest = std::max(longest, count - label->second);
    }
  }
  EXPECT_GT(longest, 0) << listing;
  return longest;
}

template <class Body>
int trip(const Body& body) {
  const auto kernel = define_kernel("trip(x, keys, y, n, m)", body);
  CompileOptions options;
  options.target = "sm_90a";
  options.stage = Stage::kCubin;
  const auto compiled = kernel.compile(
      Signature{tensor({kAny}), tensor({kAny}), tensor({kAny}), scalar(), scalar()}, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return -1;
  const auto listing = codegen::disassemble(compiled->cubin());
  EXPECT_TRUE(listing.ok()) << listing.status();
  return listing.ok() ? trip_of(*listing) : -1;
}

TEST(ExitsCode, ALinearSearchIsNearlyAsShortAsItsTwin) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  EXPECT_LE(trip([](In x, In keys, Out y, Int n, Int m) {
              const Int i = thread();
              If(i >= m, [] { Return(); });
              const Int key = keys(i);
              Var<int32_t> found(-1);
              for (const Int j : range(n).unroll(1)) {
                If(x(j) == key, [&] {
                  found = j;
                  Break();
                });
              }
              y(i) = found;
            }),
            7 + 1);
}

TEST(ExitsCode, ALoopWithContinueIsAsShortAsItsTwin) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  EXPECT_LE(trip([](In x, In, Out y, Int n, Int m) {
              const Int i = thread();
              If(i >= m, [] { Return(); });
              Var<int32_t> sum(0);
              for (const Int j : range(i, n).unroll(1)) {
                const Int v = x(j);
                If(v < 0, [] { Continue(); });
                sum += v * v;
              }
              y(i) = sum;
            }),
            8);
}

// A probe that misses.
TEST(ExitsCode, AnInsertionIntoAHashTableIsNearlyAsShortAsItsTwin) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  EXPECT_LE(trip([](In keys, Out table, Out slots, Int n, Int mask) {
              const Int i = thread();
              If(i >= n, [] { Return(); });
              const Int key = keys(i);
              Var<int32_t> slot(key * -1640531535);
              While([] { return Bool(true); },
                    [&] {
                      slot = slot & mask;
                      const Int old = atomic_cas(table(slot), Int(0), key);
                      If(old == 0 || old == key, [&] {
                        slots(i) = slot;
                        Return();
                      });
                      slot += 1;
                    });
            }),
            9 + 1);
}

TEST(ExitsCode, ASearchInAHashTableIsAsShortAsItsTwin) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  EXPECT_LE(trip([](In keys, In table, Out slots, Int n, Int mask) {
              const Int i = thread();
              If(i >= n, [] { Return(); });
              const Int key = keys(i);
              Var<int32_t> slot((key * -1640531535) & mask), found(-1);
              for (const Int probe : range(0, mask + 1).unroll(1)) {
                const Int there = table(slot);
                If(there == key, [&] {
                  found = slot;
                  Break();
                });
                If(there == 0, [] { Break(); });
                slot = (slot + 1) & mask;
                (void)probe;
              }
              slots(i) = found;
            }),
            13);
}

// The twin has 9, for it chooses the next number without a branch.
TEST(ExitsCode, CollatzIsNearlyAsShortAsItsTwin) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  EXPECT_LE(trip([](In x, In, Out y, Int n, Int most) {
              const Int i = thread();
              If(i >= n, [] { Return(); });
              Var<uint32_t> v(cast<uint32_t>(x(i)));
              Var<int32_t> steps(0);
              While([&] { return steps < most; },
                    [&] {
                      If(v == 1u, [] { Break(); });
                      If((v & 1u) == 1u, [&] { v = 3u * v + 1u; }).Else([&] { v = v >> 1u; });
                      steps += 1;
                    });
              y(i) = steps;
            }),
            10);
}

}  // namespace
}  // namespace heddle
