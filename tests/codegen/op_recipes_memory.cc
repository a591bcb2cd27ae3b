// Recipes of views, accesses to memory, and atomics.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/op_recipes.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/cache_hint.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Builder;
using ir::Opcode;
using ir::Scalar;
using ir::Space;
using ir::Type;
using ir::ValueId;

// The widest vectors, in both memories, and as volatile accesses.
void build_accesses(OpKernel& k, Scalar scalar, Space space, int is_volatile) {
  Builder& b = k.b();
  const int most = std::min(16, k.kernel().target->max_access_bytes / bytes_of(scalar));
  const ValueId view = space == Space::kGlobal ? k.view(scalar) : k.shared(scalar, 256);
  for (int count = 2; count <= most; count *= 2) {
    const ValueId value = b.create(Opcode::kLoad, {view, k.thread()}, Type::vector(scalar, count),
                                   {{AttrKey::kVolatile, is_volatile}});
    b.create(Opcode::kStore, {view, value, b.constant_int(ir::kI32Type, 64)}, Type::none(),
             {{AttrKey::kVolatile, is_volatile}});
  }
  k.keep(b.create(Opcode::kLoad, {view, k.thread()}, Type::of(scalar)));
}

void build_cache(OpKernel& k) {
  Builder& b = k.b();
  const ValueId view = k.view(Scalar::kF32);
  for (int64_t i = 0; i < ir::kCacheHintCount; ++i) {
    const auto hint = static_cast<ir::CacheHint>(i);
    const ir::Attr attr{AttrKey::kCache, i};
    ValueId value = k.data(Type::vector(Scalar::kF32, 4));
    if (for_loads(hint)) {
      value = b.create(Opcode::kLoad, {view, k.thread()}, k.kernel().type(value), {attr});
    }
    if (for_stores(hint)) {
      b.create(Opcode::kStore, {view, value, k.thread()}, Type::none(), {attr});
    } else {
      k.keep(value);
    }
    const ir::Attr evict{AttrKey::kL2Evict, i % ir::kL2EvictCount};
    if (for_loads(hint)) {
      k.keep(b.create(Opcode::kLoad, {view, k.thread()}, ir::kF32Type, {attr, evict}));
    }
    if (for_stores(hint))
      b.create(Opcode::kStore, {view, value, k.thread()}, Type::none(), {evict});
  }
  const ValueId flags = k.view(Scalar::kBool);
  for (const int count : {1, 2, 8}) {
    const Type type = count == 1 ? ir::kBoolType : Type::vector(Scalar::kBool, count);
    const ir::Attr evict{AttrKey::kL2Evict, 1};
    const ValueId value = b.create(Opcode::kLoad, {flags, k.thread()}, type, {evict});
    b.create(Opcode::kStore, {flags, value, k.thread()}, Type::none(), {evict});
  }
  for (const int64_t level : {0, 1}) {
    b.create(Opcode::kPrefetch, {view, k.thread()}, Type::none(), {{AttrKey::kLevel, level}});
  }
}

void build_subview(OpKernel& k, ValueId view) {
  Builder& b = k.b();
  const Type type = k.kernel().type(view);
  const ValueId tid = k.thread();
  const ValueId four = b.constant_int(ir::kI64Type, 4);
  const ValueId part =
      b.create(Opcode::kSubview, {view, tid, tid, four}, Type::view(type.scalar, type.space, 2));
  for (const int dim : {0, 1}) {
    for (const Opcode opcode : {Opcode::kExtent, Opcode::kStride}) {
      k.keep(b.create(opcode, {part}, ir::kI64Type, {{AttrKey::kDim, dim}}));
      k.keep(b.create(opcode, {part}, ir::kI32Type, {{AttrKey::kDim, dim}}));
    }
  }
  const ValueId check = b.create(Opcode::kBounds, {part, tid, four});
  const ValueId value = b.create(Opcode::kLoad, {part, four, check}, Type::of(type.scalar));
  b.create(Opcode::kStore, {part, value, tid, check});
}

void build_local_and_table(OpKernel& k, Scalar scalar) {
  Builder& b = k.b();
  const ir::Attr extents{AttrKey::kExtents, k.kernel().intern_ints({32})};
  const ValueId local =
      b.create(Opcode::kLocal, {}, Type::view(scalar, Space::kLocal, 1), {extents});
  const std::string digits(static_cast<size_t>(64 * bytes_of(scalar)), '1');
  const ValueId table =
      b.create(Opcode::kTable, {}, Type::view(scalar, Space::kConst, 1, true),
               {extents, {AttrKey::kData, static_cast<int64_t>(k.kernel().intern(digits))}});
  b.create(Opcode::kStore,
           {local, b.create(Opcode::kLoad, {table, k.thread()}, Type::of(scalar)), k.thread()});
  k.keep(b.create(Opcode::kLoad, {local, k.thread()}, Type::of(scalar)));
}

void build_pointers(OpKernel& k) {
  Builder& b = k.b();
  const ValueId tile = k.shared(Scalar::kF32, 16);
  for (const ValueId view : {k.view(Scalar::kF32), tile}) {
    for (const ValueId offset : {b.constant_int(ir::kI32Type, 3), k.thread()}) {
      const ValueId address = b.create(Opcode::kAddress, {view, offset});
      k.keep(address);
      const ValueId there =
          b.create(Opcode::kPointer, {address}, Type::view(Scalar::kF32, Space::kGlobal, 1));
      k.keep(b.create(Opcode::kLoad, {there, k.thread()}, ir::kF32Type));
    }
  }
}

// Every atomic that the target has, in both memories, with every order and scope.
void build_atomics(OpKernel& k, Scalar scalar, Space space) {
  Builder& b = k.b();
  const ir::Target& target = *k.kernel().target;
  const ValueId view = space == Space::kGlobal ? k.view(scalar) : k.shared(scalar, 256);
  const Type type = Type::of(scalar);
  for (int64_t scope = 0; scope < 4; ++scope) {
    if (scope == static_cast<int64_t>(ir::MemoryScope::kCluster) && target.sm < 90) continue;
    for (int64_t order = 0; order < 4; ++order) {
      const ir::Attr order_attr{AttrKey::kOrder, order}, scope_attr{AttrKey::kScope, scope};
      for (int64_t op = 0; op < ir::kAtomicOpCount; ++op) {
        if (!has_atomic(static_cast<ir::AtomicOp>(op), scalar, target)) continue;
        k.keep(b.create(Opcode::kAtomic, {view, k.data(type), k.thread()}, type,
                        {{AttrKey::kOp, op}, order_attr, scope_attr}));
      }
      for (const int count : {2, 4, 8}) {
        const Type vector = Type::vector(scalar, count);
        const ir::VectorSum* const sum = find_vector_sum(vector);
        if (sum == nullptr || !has(target, sum->feature)) continue;
        if (sum->global_only && space != Space::kGlobal) continue;
        k.keep(b.create(Opcode::kAtomic, {view, k.data(vector), k.thread()}, vector,
                        {{AttrKey::kOp, 0}, order_attr, scope_attr}));
      }
      if (has_compare_and_swap(scalar)) {
        k.keep(b.create(Opcode::kAtomicCas, {view, k.data(type), k.data(type), k.thread()}, type,
                        {order_attr, scope_attr}));
      }
    }
    for (const bool strong : {false, true}) {
      if (scalar == Scalar::kBool) continue;
      const auto order_attr = [&](ir::MemoryOrder order) {
        return ir::Attr{AttrKey::kOrder,
                        static_cast<int64_t>(strong ? order : ir::MemoryOrder::kRelaxed)};
      };
      const ir::Attr scope_attr{AttrKey::kScope, scope};
      const ValueId value = b.create(Opcode::kAtomicLoad, {view, k.thread()}, type,
                                     {order_attr(ir::MemoryOrder::kAcquire), scope_attr});
      b.create(Opcode::kAtomicStore, {view, value, k.thread()}, Type::none(),
               {order_attr(ir::MemoryOrder::kRelease), scope_attr});
    }
    for (const ir::MemoryOrder order : {ir::MemoryOrder::kAcqRel, ir::MemoryOrder::kSeqCst}) {
      b.create(Opcode::kFence, {}, Type::none(),
               {{AttrKey::kOrder, static_cast<int64_t>(order)}, {AttrKey::kScope, scope}});
    }
  }
}

}  // namespace

void add_memory_recipes(Recipes& all) {
  all.ops.insert({Opcode::kExtent, Opcode::kStride, Opcode::kShared, Opcode::kLocal, Opcode::kTable,
                  Opcode::kDynamicShared, Opcode::kPointer, Opcode::kAddress, Opcode::kSubview,
                  Opcode::kBounds, Opcode::kLoad, Opcode::kStore, Opcode::kAtomic,
                  Opcode::kAtomicCas, Opcode::kAtomicLoad, Opcode::kAtomicStore,
                  Opcode::kPrefetch});
  for (const Scalar scalar : kAllScalars) {
    const auto of = [&](absl::string_view what) {
      return absl::StrCat(what, "_", ir::info(scalar).name);
    };
    for (const Space space : {Space::kGlobal, Space::kShared}) {
      for (const int is_volatile : {0, 1}) {
        all.by_name[of(absl::StrCat("access_", name_of(space), is_volatile))] = [=](OpKernel& k) {
          build_accesses(k, scalar, space, is_volatile);
        };
      }
    }
    all.by_name[of("atomic_global")] = [=](OpKernel& k) {
      build_atomics(k, scalar, Space::kGlobal);
    };
    all.by_name[of("atomic_shared")] = [=](OpKernel& k) {
      build_atomics(k, scalar, Space::kShared);
    };
    all.by_name[of("local_and_table")] = [=](OpKernel& k) { build_local_and_table(k, scalar); };
    all.by_name[of("subview_global")] = [=](OpKernel& k) { build_subview(k, k.view(scalar)); };
    all.by_name[of("subview_shared")] = [=](OpKernel& k) {
      build_subview(k, k.shared(scalar, 64));
    };
    all.by_name[of("dynamic_shared")] = [=](OpKernel& k) {
      const ValueId count = k.b().constant_int(ir::kI32Type, 64);
      build_subview(
          k, k.b().create(Opcode::kDynamicShared, {count}, Type::view(scalar, Space::kShared, 1)));
    };
  }
  all.by_name["cache"] = build_cache;
  all.by_name["pointer"] = build_pointers;
}

}  // namespace heddle::codegen
