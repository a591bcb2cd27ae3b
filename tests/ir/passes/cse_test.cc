#include "gtest/gtest.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/passes/passes.h"
#include "ir/passes/pass_text.h"

namespace heddle::ir {
namespace {

constexpr absl::string_view kParams =
    "%x: view<const i32, global, 1> [?] strides [1], %y: view<i32, global, 1> [?] strides [1], "
    "%n: i32, %m: i32, %p: bool";
constexpr absl::string_view kConstants = "%z = const 0 : i32\n%o = const 1 : i32\n";

void expect_cse(absl::string_view before, absl::string_view after) {
  expect_passes("cse", kParams, absl::StrCat(kConstants, before), absl::StrCat(kConstants, after));
}
void expect_unmerged(absl::string_view text) { expect_cse(text, text); }

// Whether cse makes one of two loads of %x[n] with this in between; `facts` is how many were read.
bool merges(absl::string_view between, bool no_overlap = false, size_t* facts = nullptr,
            absl::string_view prelude = "") {
  Kernel kernel = parse_body(
      "256, 1, 1", kParams,
      absl::StrCat(kConstants, prelude, "%a = load %x, %n : i32\n", between,
                   "%b = load %x, %n : i32\n%c = add %a, %b : i32\n", "store %y, %c, %z\n"));
  if (no_overlap) kernel.set_fact({FactKind::kNoOverlap, 0, 0}, 1);
  cse(kernel);
  if (facts != nullptr) *facts = kernel.facts_read().size();
  const Op* const sum = kernel.def(value_named(kernel, "c"));
  return sum->operands[0] == sum->operands[1];
}

TEST(Cse, PureOps) {
  expect_cse(R"(
    %a = mul %n, %m : i32
    %b = mul %m, %n : i32
    %c = sub %a, %n : i32
    %d = sub %b, %n : i32
    %e = sub %n, %b : i32
    %f = const 0 : i32
    %g = thread_idx {axis = x} : i32
    %h = thread_idx {axis = y} : i32
    %i = thread_idx {axis = x} : i32
    store %y, %c, %z
    store %y, %d, %f
    store %y, %e, %g
    store %y, %e, %h
    store %y, %e, %i
)",
             R"(
    %a = mul %n, %m : i32
    %c = sub %a, %n : i32
    %e = sub %n, %a : i32
    %g = thread_idx {axis = x} : i32
    %h = thread_idx {axis = y} : i32
    store %y, %c, %z
    store %y, %c, %z
    store %y, %e, %g
    store %y, %e, %h
    store %y, %e, %g
)");
}

TEST(Cse, TypesAndAttributesCount) {
  expect_unmerged(R"(
    %a = convert %n : i64
    %b = convert %n : u64
    %c = convert %a : i32
    %d = convert %b : i32
    %v = splat %n : vec<i32, 2>
    %w = splat %n : vec<i32, 4>
    %e = extract %v {index = 0} : i32
    %f = extract %v {index = 1} : i32
    store %y, %c, %z
    store %y, %d, %z
    store %y, %v, %z
    store %y, %w, %z
    store %y, %e, %z
    store %y, %f, %z
)");
}

TEST(Cse, RegionsSeeWhatIsAroundThemNotEachOther) {
  expect_cse(R"(
    %a = mul %n, %m : i32
    if %p {
      %b = mul %n, %m : i32
      %c = add %b, %o : i32
      store %y, %c, %z
      yield
    } else {
      %d = add %a, %o : i32
      store %y, %d, %o
      yield
    }
    %e = add %a, %o : i32
    store %y, %e, %m
)",
             R"(
    %a = mul %n, %m : i32
    if %p {
      %c = add %a, %o : i32
      store %y, %c, %z
      yield
    } else {
      %d = add %a, %o : i32
      store %y, %d, %o
      yield
    }
    %e = add %a, %o : i32
    store %y, %e, %m
)");
}

TEST(Cse, ConvergentAndFreshOpsStay) {
  expect_unmerged(R"(
    %a = shfl.idx %n, %z : i32
    %b = shfl.idx %n, %z : i32
    %v = vote.any %p : bool
    %w = vote.any %p : bool
    %s = shared {extents = [4]} : view<i32, shared, 1>
    %t = shared {extents = [4]} : view<i32, shared, 1>
    %c = select %v, %a, %b : i32
    %d = select %w, %a, %c : i32
    store %s, %c, %z
    store %t, %d, %z
    store %y, %n, %z
)");
}

TEST(Cse, Loads) {
  EXPECT_TRUE(merges(""));
  EXPECT_TRUE(merges("%s = shared {extents = [4]} : view<i32, shared, 1>\nstore %s, %a, %z\n"));
  EXPECT_FALSE(merges("store %y, %a, %o\n"));  // %y may be %x
  EXPECT_FALSE(merges("barrier\n"));
  EXPECT_FALSE(merges("warp.sync\n"));
  EXPECT_FALSE(merges("%v = load %x, %z {volatile = 1} : i32\n"));
  EXPECT_TRUE(merges("%v = load %x, %z : i32\n"));
}

TEST(Cse, LoadsAcrossAsynchronousCopies) {
  const auto merges_across = [](const char* copy) {
    return merges(absl::StrCat("%s = shared {extents = [4]} : view<i32, shared, 1>\n",
                               "%bytes = const 16 : u32\n", copy, "\n"));
  };
  EXPECT_TRUE(merges_across("copy.async_if %s, %x, %p {width = 4}"));
  EXPECT_TRUE(merges_across("bulk.prefetch %x, %bytes"));
  EXPECT_FALSE(merges_across("bulk.store %y, %s, %bytes"));  // %y may be %x
  EXPECT_FALSE(merges_across("bulk.reduce %y, %s, %bytes {op = add}"));
  EXPECT_FALSE(merges_across("bulk.wait {groups = 0}"));
  EXPECT_FALSE(merges_across("bulk.wait_read {groups = 0}"));
}

TEST(Cse, TheOverlapFactIsReadOnlyWhereItDecides) {
  size_t facts = 0;
  EXPECT_TRUE(merges("store %y, %a, %o\n", true, &facts));
  EXPECT_EQ(facts, 1u);
  EXPECT_FALSE(merges("store %y, %a, %o\n", false, &facts));
  EXPECT_EQ(facts, 1u);  // what was read is a guard, whatever it said
  EXPECT_TRUE(merges("barrier\n", true, &facts));
  EXPECT_EQ(facts, 1u);
  EXPECT_TRUE(merges("", true, &facts));
  EXPECT_EQ(facts, 0u);
  // Another grid's writes are not this kernel's.
  EXPECT_FALSE(merges("fence.async\n", true, &facts));
  EXPECT_EQ(facts, 0u);
  // Nor is what other blocks have seen of them.
  EXPECT_FALSE(merges("cluster.arrive\ncluster.wait\n", true, &facts));
  EXPECT_EQ(facts, 0u);
}

TEST(Cse, LoadsAndRegions) {
  // A store in one branch is enough.
  EXPECT_FALSE(merges("if %p {\nstore %y, %a, %o\nyield\n}\n"));
  EXPECT_TRUE(merges("if %p {\n%v = load %x, %z : i32\nyield\n}\n"));
  EXPECT_FALSE(merges("for %i in %z .. %n step %o {\nstore %y, %a, %i\nyield\n}\n"));
  // In a loop, the store at the end of a trip comes before the load of the next one.
  expect_unmerged(R"(
    %a = load %y, %n : i32
    for %i in %z .. %n step %o {
      %b = load %y, %n : i32
      %c = add %a, %b : i32
      store %y, %c, %i
      yield
    }
)");
  // A while's condition and body come round as well.
  expect_unmerged(R"(
    %a = load %y, %n : i32
    while {
      %b = load %y, %n : i32
      %go = lt %b, %a : bool
      yield %go
    } do {
      store %y, %o, %n
      yield
    }
)");
  expect_unmerged(R"(
    %a = load %y, %n : i32
    while {
      yield %p
    } do {
      %b = load %y, %n : i32
      %c = add %a, %b : i32
      store %y, %c, %n
      yield
    }
)");
  expect_cse(R"(
    %s = shared {extents = [4]} : view<i32, shared, 1>
    %a = load %x, %n : i32
    for %i in %z .. %n step %o {
      %b = load %x, %n : i32
      %c = add %a, %b : i32
      store %s, %c, %z
      yield
    }
    store %y, %a, %z
)",
             R"(
    %s = shared {extents = [4]} : view<i32, shared, 1>
    %a = load %x, %n : i32
    for %i in %z .. %n step %o {
      %c = add %a, %a : i32
      store %s, %c, %z
      yield
    }
    store %y, %a, %z
)");
}

TEST(Cse, SharedArraysAreApartDynamicOnesAreNot) {
  const auto loads = [](absl::string_view views) {
    Kernel kernel = parse_body(
        "256, 1, 1", kParams,
        absl::StrCat(kConstants, views, "%a = load %s, %o : i32\nstore %t, %n, %z\n",
                     "%b = load %s, %o : i32\n%c = add %a, %b : i32\nstore %y, %c, %z\n"));
    cse(kernel);
    const Op* const sum = kernel.def(value_named(kernel, "c"));
    return sum->operands[0] == sum->operands[1];
  };
  constexpr absl::string_view kArray = "%s = shared {extents = [8]} : view<i32, shared, 1>\n";
  EXPECT_TRUE(loads(absl::StrCat(kArray, "%t = shared {extents = [8]} : view<i32, shared, 1>\n")));
  EXPECT_FALSE(loads(absl::StrCat(kArray, "%t = subview %s, %o, %o : view<i32, shared, 1>\n")));
  EXPECT_TRUE(loads(absl::StrCat(kArray, "%t = shared.dynamic %n : view<i32, shared, 1>\n")));
  EXPECT_FALSE(
      loads("%s = shared.dynamic %n : view<i32, shared, 1>\n"
            "%t = shared.dynamic %m : view<i32, shared, 1>\n"));
  EXPECT_FALSE(
      loads("%s = shared.dynamic %n : view<i32, shared, 1>\n"
            "%d = shared.dynamic %n : view<i32, shared, 1>\n"
            "%t = subview %d, %o, %o : view<i32, shared, 1>\n"));
}

TEST(Cse, ChecksBelongToTheirAccess) {
  expect_unmerged(R"(
    %c = bounds %x, %n : check
    %a = load %x, %n, %c : i32
    %b = load %x, %n : i32
    %d = add %a, %b : i32
    store %y, %d, %z
)");
  expect_cse(R"(
    %c = bounds %x, %n : check
    %a = load %x, %n, %c : i32
    %e = bounds %x, %n : check
    %b = load %x, %n, %e : i32
    %d = add %a, %b : i32
    store %y, %d, %z
)",
             R"(
    %c = bounds %x, %n : check
    %a = load %x, %n, %c : i32
    %d = add %a, %a : i32
    store %y, %d, %z
)");
}

TEST(Cse, FragmentsThatAnOpTakesOverStayTheirOwn) {
  expect_unmerged(R"(
    %a = const 0.0 : frag<f32, 64>
    %b = const 0.0 : frag<f32, 64>
    %c = wgmma.begin %a : pending<f32, 64>
    %d = wgmma.begin %b : pending<f32, 64>
    %e, %f = wgmma.wait %c, %d {groups = 0} : frag<f32, 64>, frag<f32, 64>
    %g = add %e, %f : frag<f32, 64>
    %h = extract %g {index = 0} : f32
    %i = convert %h : i32
    store %y, %i, %z
)");
}

TEST(Cse, WhatInlinePtxDoesNobodyKnows) {
  EXPECT_FALSE(merges("inline_ptx.volatile {message = \"griddepcontrol.wait;\"}\n", true));
  EXPECT_TRUE(merges("%u = inline_ptx %n {message = \"mov.b32 %0, %1;\"} : i32\n", true));
}

// One warp writes between two reads of the other, which hand over by barriers of their own. `write`
// is how; `read` what the other one reads.
bool merges_over_hand_over(absl::string_view write, absl::string_view read = "%x") {
  const std::string load = absl::StrCat(" = load ", read, ", %l : i32\n");
  Kernel kernel = parse_body(
      "64, 1, 1", absl::StrCat(kParams, ", %far: i64"),
      absl::StrCat(kConstants,
                   "%two = const 2 : i32\n%w = warp_id : i32\n%l = lane_id : i32\n"
                   "%producer = eq %w, %z : bool\nif %producer {\n"
                   "barrier.sync %o {threads = 64}\n",
                   write, "barrier.arrive %two {threads = 64}\nyield\n} else {\n%a", load,
                   "barrier.arrive %o {threads = 64}\nbarrier.sync %two {threads = 64}\n%b", load,
                   "%c = sub %a, %b : i32\nstore %y, %c, %l\nyield\n}\n"));
  kernel.set_fact({FactKind::kNoOverlap, 0, 0}, 1);
  kernel.set_fact({FactKind::kNoOverlap, 1, 0}, 1);
  cse(kernel);
  const Op* const difference = kernel.def(value_named(kernel, "c"));
  return difference->operands[0] == difference->operands[1];
}

TEST(Cse, OtherThreadsHandOverWhatTheyWroteOrSaw) {
  EXPECT_TRUE(merges_over_hand_over("store %y, %n, %l\n")) << "no_overlap says that x is apart";
  EXPECT_FALSE(
      merges_over_hand_over("%p2 = pointer %far : view<i32, global, 1>\n"
                            "store %p2, %n, %z\n"));
  EXPECT_FALSE(merges_over_hand_over(
      "inline_ptx.volatile %far, %n {message = \"st.global.b32 [%0], %1;\"}\n"));
  // Another grid wrote it; the producer has waited for that.
  EXPECT_FALSE(
      merges_over_hand_over("%s = atomic.load %y, %z {order = acquire, scope = system} : i32\n"));
  EXPECT_FALSE(merges_over_hand_over("fence {scope = gpu}\n"));
  EXPECT_FALSE(merges_over_hand_over("%s = load %y, %z {volatile = 1} : i32\n"));
  EXPECT_FALSE(merges_over_hand_over("grid_dependency.wait\n"));
  // These order accesses within the block, or nothing.
  EXPECT_TRUE(merges_over_hand_over("fence {scope = block}\n"));
  EXPECT_TRUE(merges_over_hand_over("%s = atomic.load %y, %z {scope = system} : i32\n"));
  EXPECT_TRUE(merges_over_hand_over("atomic.store %y, %n, %z {order = release}\n"));
}

TEST(Cse, AtomicsShowWhatOthersWroteWhereTheyAcquire) {
  for (const char* const atomic :
       {"atomic %y, %n, %z {op = add, ", "atomic.cas %y, %n, %m, %z {"}) {
    const auto merges_over = [&](absl::string_view attrs) {
      return merges_over_hand_over(absl::StrCat("%s = ", atomic, attrs, "} : i32\n"));
    };
    EXPECT_TRUE(merges_over("order = relaxed")) << atomic;
    EXPECT_TRUE(merges_over("order = release")) << atomic;
    EXPECT_FALSE(merges_over("order = acquire")) << atomic;
    EXPECT_FALSE(merges_over("order = acq_rel")) << atomic;
    EXPECT_FALSE(merges_over("order = acq_rel, scope = system")) << atomic;
    EXPECT_TRUE(merges_over("order = acq_rel, scope = cluster")) << atomic;
  }
}

// The fact speaks of other arguments that the kernel writes, not of this one.
TEST(Cse, OwnStoresShowBehindABarrier) {
  EXPECT_FALSE(merges_over_hand_over("store %y, %n, %l\n", "%y"));
}

TEST(Cse, AnArrayIsReadAndWrittenThroughTheClusterToo) {
  const auto loads = [](absl::string_view view, absl::string_view store) {
    const std::string load = absl::StrCat(" = load ", view, ", %o : i32\n");
    Kernel kernel = parse_body(
        "256, 1, 1", kParams,
        absl::StrCat(kConstants, "%s = shared {extents = [8]} : view<i32, shared, 1>\n",
                     "%far = map_shared %s, %z : view<i32, shared_cluster, 1>\n", "%a", load, store,
                     "%b", load, "%c = add %a, %b : i32\nstore %y, %c, %z\n"));
    cse(kernel);
    const Op* const sum = kernel.def(value_named(kernel, "c"));
    return sum->operands[0] == sum->operands[1];
  };
  for (const absl::string_view view : {"%s", "%far"}) {
    EXPECT_FALSE(loads(view, "store %s, %n, %o\n")) << view;
    EXPECT_FALSE(loads(view, "store %far, %n, %o\n")) << view;
    EXPECT_TRUE(loads(view, "store %y, %n, %o\n")) << view;
  }
}

// Whatever happens behind it, accesses through the second pointer become the first one's.
TEST(Cse, PointersOfWhichTheFirstIsNotUsed) {
  for (const char* const between : {"store %y, %n, %z\n", "store %two, %n, %z\n"}) {
    Kernel kernel =
        parse_body("256, 1, 1", kParams,
                   absl::StrCat(kConstants, "%where = const 4096 : i64\n",
                                "%one = pointer %where : view<i32, global, 1>\n",
                                "%two = pointer %where : view<i32, global, 1>\n",
                                "%a = load %two, %z : i32\n", between, "%b = load %two, %z : i32\n",
                                "%c = add %a, %b : i32\nstore %y, %c, %z\n"));
    cse(kernel);
    const Op* const sum = kernel.def(value_named(kernel, "c"));
    EXPECT_NE(sum->operands[0], sum->operands[1]) << between;
    EXPECT_EQ(kernel.def(sum->operands[0])->operands[0], value_named(kernel, "one"));
  }
}

TEST(Cse, EqualPromisesAreOne) {
  expect_cse(R"(
    %a = assume_range %n {min = 0, max = 31} : i32
    %b = assume_range %n {min = 0, max = 31} : i32
    %c = assume_range %n {min = 0, max = 15} : i32
    %d = assume_uniform %n : i32
    if %p {
      %e = assume_uniform %n : i32
      %f = add %b, %m : i32
      store %y, %e, %f
      yield
    }
    %h = add %a, %b : i32
    store %y, %h, %c
    store %y, %d, %z
)",
             R"(
    %a = assume_range %n {min = 0, max = 31} : i32
    %c = assume_range %n {min = 0, max = 15} : i32
    %d = assume_uniform %n : i32
    if %p {
      %f = add %a, %m : i32
      store %y, %d, %f
      yield
    }
    %h = add %a, %a : i32
    store %y, %h, %c
    store %y, %d, %z
)");
  // A promise in a branch says nothing of the others.
  expect_unmerged(R"(
    if %p {
      %a = assume_range %n {min = 0, max = 31} : i32
      store %y, %a, %z
      yield
    } else {
      %b = assume_range %n {min = 0, max = 31} : i32
      store %y, %b, %o
      yield
    }
)");
}

// However many arrays there are, a write is looked at once for each kind.
TEST(Cse, ManyArraysAreOfFewKinds) {
  std::string text(kConstants);
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&text, "%s", i, " = shared {extents = [8]} : view<i32, shared, 1>\nstore %s", i,
                    ", %n, %z\n%v", i, " = load %s", i, ", %z : i32\nstore %y, %v", i, ", %z\n");
  }
  const Kernel kernel = parse_body("32, 1, 1", kParams, text);
  const Aliasing aliasing(kernel);
  EXPECT_EQ(aliasing.object_count(), 301);
  EXPECT_EQ(aliasing.kind_count(), 2);
}

}  // namespace
}  // namespace heddle::ir
