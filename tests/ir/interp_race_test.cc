// Stores of two threads to one place, by the text that the user reads.
#include <functional>

#include "absl/strings/str_cat.h"
#include "heddle/ir/atomic.h"
#include "interp_harness.h"

namespace heddle::ir::interp {
namespace {

ValueId shared_array(KernelTest& t, absl::string_view name, Scalar scalar, int64_t extent) {
  const int64_t list = t.kernel.intern_ints(std::vector<int64_t>{extent});
  return t.op(Opcode::kShared, {}, Type::view(scalar, Space::kShared, 1),
              {{AttrKey::kExtents, list},
               {AttrKey::kName, static_cast<int64_t>(index_of(t.kernel.intern(name)))}});
}

constexpr char kFix[] =
    "  fix: let one thread write it, as in If(thread_idx.x == 0, ...), combine the values by an "
    "atomic or a reduction, or put sync_threads() between the two; where any of the values will "
    "do, say so by atomic_store()\n";

constexpr char kBoth[] =
    "has written too, with another value and nothing that orders the two: which one stays is left "
    "to chance (kernel 'k', block (0, 0, 0), ";

ValueId number_of_thread(KernelTest& t, Scalar scalar) {
  return t.op(Opcode::kConvert, {t.thread()}, Type::of(scalar));
}

TEST(InterpRace, LanesOfOneStore) {
  KernelTest t;
  const ValueId y = t.tensor("y", Scalar::kF32, {1});
  const ValueId value = number_of_thread(t, Scalar::kF32);
  t.line(7);
  t.store(y, t.i32(0), value);
  EXPECT_EQ(t.failure({}),
            absl::StrCat("kernel.cc:7: error: writes 'y' at element offset 0, which thread (0, 0, "
                         "0) ",
                         kBoth,
                         "thread (1, 0, 0) and 30 more of its warp)\n"
                         "  kernel.cc:7: thread (0, 0, 0) writes it here\n",
                         kFix));
}

TEST(InterpRace, EqualValuesAreNone) {
  KernelTest t;
  const ValueId y = t.tensor("y", Scalar::kF32, {4});
  const Type pair = Type::vector(Scalar::kF32, 2);
  t.store(y, t.i32(0), t.f32(1));
  t.store(y, t.i32(2), t.op(Opcode::kPack, {t.f32(2), t.f32(3)}, pair));
  t.store(y, t.i32(3), t.f32(3));
  ASSERT_OK(t.run({.block = {64, 1, 1}}));
}

TEST(InterpRace, WarpsOfABlockAtTwoLines) {
  // Each warp writes 32 neighbours; the second warp those of the first.
  for (const bool shared : {false, true}) {
    KernelTest t;
    const ValueId y =
        shared ? shared_array(t, "y", Scalar::kF32, 64) : t.tensor("y", Scalar::kF32, {64});
    t.line(7);
    t.store(y, t.thread(), t.f32(1));
    t.line(9);
    t.store(y, t.op(Opcode::kXor, {t.thread(), t.i32(32)}), t.f32(2));
    EXPECT_EQ(t.failure({.block = {64, 1, 1}}),
              absl::StrCat("kernel.cc:7: error: writes 'y' at element offset 32, which thread (0, "
                           "0, 0) ",
                           kBoth,
                           "thread (32, 0, 0) and 31 more of its warp)\n"
                           "  kernel.cc:9: thread (0, 0, 0) writes it here\n",
                           kFix));
  }
}

// What all threads do between a store of the first warp and one of the second to the same places.
struct Between {
  const char* what;
  bool may_order;
  std::function<void(KernelTest&, ValueId)> add;
};

void store_from_warp(KernelTest& t, int warp, ValueId y, float value) {
  const ValueId own = t.op(Opcode::kShr, {t.thread(), t.u32(5)});
  t.b.begin_if(t.op(Opcode::kEq, {own, t.i32(warp)}));
  t.store(y, t.op(Opcode::kAnd, {t.thread(), t.i32(31)}), t.f32(value));
  t.b.yield({});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
}

TEST(InterpRace, WhatOrdersTwoStores) {
  const auto ordered = [](MemoryOrder order) {
    return [order](KernelTest& t, ValueId counter) {
      t.op(Opcode::kAtomic, {counter, t.i32(1), t.i32(0)}, kI32Type,
           {{AttrKey::kOp, static_cast<int64_t>(AtomicOp::kAdd)},
            {AttrKey::kOrder, static_cast<int64_t>(order)}});
    };
  };
  const Between cases[] = {
      {"nothing", false, [](KernelTest&, ValueId) {}},
      {"a barrier", true, [](KernelTest& t, ValueId) { t.op(Opcode::kBarrier, {}); }},
      {"a named barrier", true,
       [](KernelTest& t, ValueId) {
         t.op(Opcode::kBarrierSync, {t.i32(1)}, Type::none(), {{AttrKey::kThreads, 64}});
       }},
      {"a cluster's barrier", true,
       [](KernelTest& t, ValueId) {
         t.op(Opcode::kClusterArrive, {});
         t.op(Opcode::kClusterWait, {});
       }},
      {"a fence", true, [](KernelTest& t, ValueId) { t.op(Opcode::kFence, {}); }},
      {"a relaxed atomic", false, ordered(MemoryOrder::kRelaxed)},
      {"a releasing atomic", true, ordered(MemoryOrder::kRelease)},
      {"a warp's own", false, [](KernelTest& t, ValueId) { t.op(Opcode::kWarpSync, {}); }},
  };
  for (const Between& between : cases) {
    KernelTest t;
    const ValueId y = t.tensor("y", Scalar::kF32, {64});
    const ValueId counter = t.tensor("counter", Scalar::kI32, {1});
    t.fill<int32_t>(1, {0});
    store_from_warp(t, 0, y, 1);
    between.add(t, counter);
    store_from_warp(t, 1, y, 2);
    EXPECT_EQ(t.run({.block = {64, 1, 1}}).ok(), between.may_order) << between.what;
  }
}

TEST(InterpRace, LanesOfAWarpNeedItsSynchronisation) {
  for (const bool synchronised : {false, true}) {
    KernelTest t;
    const ValueId y = shared_array(t, "y", Scalar::kF32, 32);
    t.store(y, t.thread(), t.f32(1));
    if (synchronised) t.op(Opcode::kWarpSync, {});
    t.store(y, t.op(Opcode::kXor, {t.thread(), t.i32(1)}), t.f32(2));
    EXPECT_EQ(t.run({}).ok(), synchronised);
  }
}

TEST(InterpRace, AThreadsOwnStoresAreNone) {
  KernelTest t;
  const ValueId y = t.tensor("y", Scalar::kF32, {64});
  t.b.begin_for(t.i32(0), t.i32(10), t.i32(1), {});
  t.store(y, t.thread(), t.f32(1));
  t.b.yield({});
  t.b.end_region();
  t.store(y, t.thread(), t.f32(2));
  ASSERT_OK(t.run({.block = {64, 1, 1}}));
}

TEST(InterpRace, SmallElementsShareAWordAndNoByte) {
  for (const int64_t by : {0, 1}) {
    for (const Scalar scalar : {Scalar::kU8, Scalar::kF16}) {
      KernelTest t;
      const ValueId y = t.tensor("y", scalar, {64});
      t.store(y, t.op(Opcode::kShr, {t.thread(), t.u32(by)}), number_of_thread(t, scalar));
      EXPECT_EQ(t.run({.block = {64, 1, 1}}).ok(), by == 0);
    }
  }
}

TEST(InterpRace, VectorsThatOverlap) {
  for (const bool overlap : {false, true}) {
    KernelTest t;
    const ValueId y = t.tensor("y", Scalar::kF32, {256});
    const Type quad = Type::vector(Scalar::kF32, 4);
    t.store(y, t.op(Opcode::kMul, {t.thread(), t.i32(4)}), t.op(Opcode::kSplat, {t.f32(1)}, quad));
    // The element behind each vector's first: of the same thread, or of the one two warps away.
    const ValueId other = overlap ? t.op(Opcode::kXor, {t.thread(), t.i32(32)}) : t.thread();
    t.store(y, t.op(Opcode::kAdd, {t.op(Opcode::kMul, {other, t.i32(4)}), t.i32(1)}), t.f32(2));
    EXPECT_EQ(t.run({.block = {64, 1, 1}}).ok(), !overlap);
  }
}

TEST(InterpRace, AtomicsAndVolatileStoresAreNone) {
  KernelTest t;
  const ValueId y = t.tensor("y", Scalar::kI32, {1});
  t.op(Opcode::kAtomicStore, {y, t.i32(1), t.i32(0)});
  t.op(Opcode::kStore, {y, t.i32(1), t.i32(0)}, Type::none(), {{AttrKey::kVolatile, 1}});
  ASSERT_OK(t.run({.block = {64, 1, 1}}));
}

TEST(InterpRace, BlocksAfterEachOtherDoNotMeet) {
  // Shared memory is used again by the next block; many blocks and barriers use up all epochs.
  KernelTest t;
  const ValueId s = shared_array(t, "s", Scalar::kF32, 64);
  t.b.begin_for(t.i32(0), t.i32(700), t.i32(1), {});
  t.store(s, t.thread(), t.f32(1));
  t.op(Opcode::kBarrier, {});
  t.store(s, t.op(Opcode::kXor, {t.thread(), t.i32(32)}), t.f32(2));
  t.op(Opcode::kBarrier, {});
  t.b.yield({});
  t.b.end_region();
  ASSERT_OK(t.run({.grid = {50, 1, 1}, .block = {64, 1, 1}}));
}

TEST(InterpRace, AsynchronousCopiesToOnePlace) {
  for (const bool same : {false, true}) {
    KernelTest t;
    const ValueId x = t.tensor("x", Scalar::kF32, {64});
    t.fill(0, std::vector<float>(64, 1));
    const ValueId s = shared_array(t, "s", Scalar::kF32, 64);
    const auto part = [&](ValueId view, ValueId at) {
      return t.op(Opcode::kSubview, {view, at, t.i32(1)},
                  Type::view(Scalar::kF32, t.kernel.type(view).space, 1));
    };
    t.op(Opcode::kCopyAsync, {part(s, same ? t.i32(0) : t.thread()), part(x, t.thread())},
         Type::none(), {{AttrKey::kWidth, 1}});
    EXPECT_EQ(t.run({.block = {64, 1, 1}}).ok(), !same);
  }
}

}  // namespace
}  // namespace heddle::ir::interp
