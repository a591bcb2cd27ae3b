// Stores of two threads to one place, by the text that the user reads.
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/atomic.h"
#include "ir/interp/harness.h"

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

void store_from_warp(KernelTest& t, int warp, ValueId y, float value) {
  const ValueId own = t.op(Opcode::kShr, {t.thread(), t.u32(5)});
  t.b.begin_if(t.op(Opcode::kEq, {own, t.i32(warp)}));
  t.store(y, t.op(Opcode::kAnd, {t.thread(), t.i32(31)}), t.f32(value));
  t.b.yield({});
  t.b.next_region();
  t.b.yield({});
  t.b.end_region();
}

// A kernel of that many threads, with memory that two stores need to be ordered by.
struct Scene {
  explicit Scene(int count)
      : threads(count),
        y(t.tensor("y", Scalar::kF32, {64})),
        counter(t.tensor("counter", Scalar::kI32, {1})),
        mbarrier(shared_array(t, "mbarrier", Scalar::kU64, 1)) {
    t.fill<int32_t>(1, {0});
    t.b.begin_if(t.op(Opcode::kEq, {t.thread(), t.i32(0)}));
    t.op(Opcode::kMbarrierInit, {mbarrier, t.i32(0), t.u32(threads)});
    t.b.yield({});
    t.b.next_region();
    t.b.yield({});
    t.b.end_region();
    t.op(Opcode::kBarrier, {});
  }
  KernelTest t;
  const int threads;
  const ValueId y, counter, mbarrier;
};

// What all threads do between a store of some and one of others to the same places.
struct Between {
  const char* what;
  bool orders_warps, orders_lanes;
  std::function<void(Scene&)> add;
};

void expect_ordered(Scene& s, bool ordered, const char* what) {
  const Status status = s.t.run({.block = {s.threads, 1, 1}});
  EXPECT_EQ(status.ok(), ordered) << what << "\n" << status.message();
  EXPECT_EQ(absl::StrContains(status.message(), kBoth), !ordered) << what;
}

TEST(InterpRace, WhatOrdersTwoStores) {
  const auto ordered = [](Opcode opcode, MemoryOrder order) {
    return [opcode, order](Scene& s) {
      const ValueId at = s.t.i32(0), one = s.t.i32(1);
      const Attr attr{AttrKey::kOrder, static_cast<int64_t>(order)};
      if (opcode == Opcode::kAtomicLoad) s.t.op(opcode, {s.counter, at}, kI32Type, {attr});
      if (opcode == Opcode::kAtomicStore) {
        s.t.op(opcode, {s.counter, one, at}, Type::none(), {attr});
      }
      if (opcode == Opcode::kAtomicCas) {
        s.t.op(opcode, {s.counter, one, one, at}, kI32Type, {attr});
      }
      if (opcode == Opcode::kAtomic) {
        s.t.op(opcode, {s.counter, one, at}, kI32Type,
               {{AttrKey::kOp, static_cast<int64_t>(AtomicOp::kAdd)}, attr});
      }
    };
  };
  const Between cases[] = {
      {"nothing", false, false, [](Scene&) {}},
      {"a barrier", true, true, [](Scene& s) { s.t.op(Opcode::kBarrier, {}); }},
      {"a named barrier", true, true,
       [](Scene& s) {
         s.t.op(Opcode::kBarrierSync, {s.t.i32(1)}, Type::none(), {{AttrKey::kThreads, s.threads}});
       }},
      {"a cluster's barrier", true, true,
       [](Scene& s) {
         s.t.op(Opcode::kClusterArrive, {});
         s.t.op(Opcode::kClusterWait, {});
       }},
      {"a relaxed arrival at a cluster's barrier", false, false,
       [](Scene& s) {
         s.t.op(Opcode::kClusterArrive, {}, Type::none(),
                {{AttrKey::kOrder, static_cast<int64_t>(MemoryOrder::kRelaxed)}});
         s.t.op(Opcode::kClusterWait, {});
       }},
      {"an mbarrier's phase", true, true,
       [](Scene& s) {
         s.t.op(Opcode::kMbarrierArrive, {s.mbarrier, s.t.i32(0)});
         s.t.op(Opcode::kMbarrierWait, {s.mbarrier, s.t.i32(0), s.t.u32(0)});
       }},
      {"a relaxed wait for an mbarrier's phase", false, false,
       [](Scene& s) {
         s.t.op(Opcode::kMbarrierArrive, {s.mbarrier, s.t.i32(0)});
         s.t.op(Opcode::kMbarrierWait, {s.mbarrier, s.t.i32(0), s.t.u32(0)}, Type::none(),
                {{AttrKey::kOrder, static_cast<int64_t>(MemoryOrder::kRelaxed)}});
       }},
      {"a test of an mbarrier", true, true,
       [](Scene& s) {
         s.t.op(Opcode::kMbarrierArrive, {s.mbarrier, s.t.i32(0)});
         s.t.op(Opcode::kMbarrierTest, {s.mbarrier, s.t.i32(0), s.t.u32(0)}, kBoolType);
       }},
      {"an arrival alone", false, false,
       [](Scene& s) {
         s.t.op(Opcode::kMbarrierArrive, {s.mbarrier, s.t.i32(0)});
       }},
      {"a fence", true, true, [](Scene& s) { s.t.op(Opcode::kFence, {}); }},
      {"a relaxed atomic", false, false, ordered(Opcode::kAtomic, MemoryOrder::kRelaxed)},
      {"a releasing atomic", true, true, ordered(Opcode::kAtomic, MemoryOrder::kRelease)},
      {"a relaxed load", false, false, ordered(Opcode::kAtomicLoad, MemoryOrder::kRelaxed)},
      {"an acquiring load", true, true, ordered(Opcode::kAtomicLoad, MemoryOrder::kAcquire)},
      {"a releasing store", true, true, ordered(Opcode::kAtomicStore, MemoryOrder::kRelease)},
      {"a swap of both", true, true, ordered(Opcode::kAtomicCas, MemoryOrder::kAcqRel)},
      // Nobody knows what it does.
      {"PTX with effects", true, true,
       [](Scene& s) {
         const auto nothing = [](absl::Span<const uint64_t>, absl::Span<uint64_t>) {};
         s.t.op(Opcode::kInlinePtxVolatile, {}, Type::none(),
                {{AttrKey::kRule, s.t.kernel.add_rule(nothing)}});
       }},
      {"a warp's own", false, true, [](Scene& s) { s.t.op(Opcode::kWarpSync, {}); }},
  };
  for (const Between& between : cases) {
    Scene warps(64);
    store_from_warp(warps.t, 0, warps.y, 1);
    between.add(warps);
    store_from_warp(warps.t, 1, warps.y, 2);
    expect_ordered(warps, between.orders_warps, between.what);

    Scene lanes(32);
    const ValueId i = lanes.t.thread();
    lanes.t.store(lanes.y, i, lanes.t.f32(1));
    between.add(lanes);
    lanes.t.store(lanes.y, lanes.t.op(Opcode::kXor, {i, lanes.t.i32(1)}), lanes.t.f32(2));
    expect_ordered(lanes, between.orders_lanes, between.what);
  }
}

// Phases are numbered by a few bits: one whose number comes again meets nothing of its first use.
TEST(InterpRace, AnyNumberOfBarriersOrdersTwoStores) {
  for (const Opcode opcode : {Opcode::kBarrier, Opcode::kWarpSync}) {
    const int other = opcode == Opcode::kBarrier ? 32 : 1;
    for (const Scalar scalar : {Scalar::kU32, Scalar::kU8}) {
      for (int bits = 1; bits <= 16; ++bits) {
        for (const int times : {(1 << bits) - 1, 1 << bits}) {
          KernelTest t;
          const ValueId y = t.tensor("y", scalar, {64});
          t.store(y, t.thread(), number_of_thread(t, scalar));
          t.b.begin_for(t.i32(0), t.i32(times), t.i32(1), {});
          t.op(opcode, {});
          t.b.yield({});
          t.b.end_region();
          t.store(y, t.op(Opcode::kXor, {t.thread(), t.i32(other)}), number_of_thread(t, scalar));
          const Status status = t.run({.block = {64, 1, 1}});
          EXPECT_TRUE(status.ok()) << times << " times " << info(opcode).mnemonic << "\n"
                                   << status.message();
        }
      }
    }
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
  t.op(Opcode::kAtomicStore, {y, t.thread(), t.i32(0)});
  t.op(Opcode::kStore, {y, t.thread(), t.i32(0)}, Type::none(), {{AttrKey::kVolatile, 1}});
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

// Neither those that follow each other without any barrier, nor those that run at the same time.
TEST(InterpRace, OtherBlocksAreNoneOfItsBusiness) {
  for (const bool shared : {false, true}) {
    for (const int cluster : {1, 2}) {
      for (const bool cooperative : {false, true}) {
        KernelTest t;
        t.kernel.cluster = {cluster, 1, 1};
        const ValueId y =
            shared ? shared_array(t, "y", Scalar::kI32, 64) : t.tensor("y", Scalar::kI32, {64});
        const ValueId block = t.axis(Opcode::kBlockIdx, 0);
        t.store(y, t.op(Opcode::kXor, {t.thread(), block}), block);
        ASSERT_OK(t.run({.grid = {4, 1, 1}, .block = {64, 1, 1}, .cooperative = cooperative}));
      }
    }
  }
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
