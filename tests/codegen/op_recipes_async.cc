// Recipes of copies that run beside the threads, of clusters, matrices and tensor cores.
#include <cstdint>

#include "absl/types/span.h"
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

void build_copies_async(OpKernel& k) {
  Builder& b = k.b();
  const ValueId tile = k.shared(Scalar::kF32, 1024);
  const ValueId x = k.view(Scalar::kF32);
  for (const int width : {1, 2, 4}) {
    const ValueId at = b.create(Opcode::kMul, {k.thread(), b.constant_int(ir::kI32Type, width)});
    const auto part = [&](ValueId view) {
      return b.create(Opcode::kSubview, {view, at, b.constant_int(ir::kI32Type, width)},
                      k.kernel().type(view));
    };
    const ValueId to = part(tile), from = part(x), condition = k.data(ir::kBoolType);
    const ir::Attr plain{AttrKey::kWidth, width};
    b.create(Opcode::kCopyAsync, {to, from}, Type::none(), {plain});
    b.create(Opcode::kCopyAsync, {to, from}, Type::none(), {plain, {AttrKey::kL2Evict, 0}});
    b.create(Opcode::kCopyAsyncIf, {to, from, condition}, Type::none(), {plain});
    const auto inside = [&](ValueId view) {
      return b.create(Opcode::kBounds, {view, at}, Type::check(), {plain});
    };
    b.create(Opcode::kCopyAsyncIf, {to, from, condition, inside(tile), inside(x)}, Type::none(),
             {plain, {AttrKey::kL2Evict, 1}, {AttrKey::kPercent, 30}});
    b.create(Opcode::kCopyCommit, {});
  }
  b.create(Opcode::kCopyWait, {}, Type::none(), {{AttrKey::kGroups, 1}});
  for (const Opcode opcode : {Opcode::kBarrierArrive, Opcode::kBarrierSync}) {
    for (const ValueId id : {b.constant_int(ir::kI32Type, 3), k.data(ir::kI32Type)}) {
      b.create(opcode, {id}, Type::none(), {{AttrKey::kThreads, 64}});
    }
  }
  k.keep(b.create(Opcode::kLoad, {tile, k.thread()}, ir::kF32Type));
}

void build_mbarriers(OpKernel& k) {
  if (k.kernel().target->sm < 90) return;
  Builder& b = k.b();
  const ValueId words = k.shared(Scalar::kU64, 64), tile = k.shared(Scalar::kF32, 64);
  const ValueId remote = b.create(Opcode::kMapShared, {words, k.data(ir::kI32Type)},
                                  Type::view(Scalar::kU64, Space::kSharedCluster, 1));
  const ValueId bytes = k.data(ir::kU32Type), x = k.view(Scalar::kF32);
  b.create(Opcode::kMbarrierInit, {words, k.thread(), bytes});
  b.create(Opcode::kFenceMbarrierInit, {});
  for (const ValueId barrier : {words, remote}) {
    b.create(Opcode::kMbarrierArrive, {barrier, k.thread()});
    b.create(Opcode::kMbarrierExpectTx, {barrier, k.thread(), bytes});
  }
  for (int64_t evict = 0; evict < ir::kL2EvictCount; ++evict) {
    const ir::Attr hint[] = {{AttrKey::kL2Evict, evict}, {AttrKey::kPercent, 25}};
    const auto hinted = [&](Opcode opcode, absl::Span<const ValueId> operands) {
      b.create_op(opcode, operands, absl::Span<const Type>(), hint);
    };
    hinted(Opcode::kBulkLoad, {tile, x, bytes, words});
    hinted(Opcode::kBulkStore, {x, tile, bytes});
    hinted(Opcode::kBulkPrefetch, {x, bytes});
  }
  b.create(Opcode::kBulkLoad, {tile, x, bytes, words});
  b.create(Opcode::kMbarrierWait, {words, k.thread(), bytes});
  b.create(Opcode::kBulkStore, {x, tile, bytes});
  b.create(Opcode::kBulkPrefetch, {x, bytes});
  b.create(Opcode::kBulkCommit, {});
  b.create(Opcode::kBulkWait, {}, Type::none(), {{AttrKey::kGroups, 0}});
  b.create(Opcode::kBulkWaitRead, {}, Type::none(), {{AttrKey::kGroups, 1}});
  // ptxas has an opinion on multicast where it is not the fast one.
  if (k.kernel().target->arch_specific) {
    b.create(Opcode::kBulkLoad, {tile, x, bytes, words, bytes});
    b.create(Opcode::kBulkLoad, {tile, x, bytes, words, b.constant(ir::kU32Type, 3)}, Type::none(),
             {{AttrKey::kL2Evict, 0}});
  }
  const ValueId theirs = b.create(Opcode::kMapShared, {tile, k.data(ir::kI32Type)},
                                  Type::view(Scalar::kF32, Space::kSharedCluster, 1));
  b.create(Opcode::kBulkCopy, {theirs, tile, bytes, remote});
  for (const Scalar scalar : kAllScalars) {
    const ValueId from = k.shared(scalar, 64), to = k.view(scalar);
    const ValueId other = b.create(Opcode::kMapShared, {from, k.data(ir::kI32Type)},
                                   Type::view(scalar, Space::kSharedCluster, 1));
    for (int64_t i = 0; i < ir::kAtomicOpCount; ++i) {
      const auto op = static_cast<ir::AtomicOp>(i);
      const ir::Attr kind{AttrKey::kOp, i};
      if (has_bulk_reduction(op, scalar, Space::kGlobal)) {
        b.create(Opcode::kBulkReduce, {to, from, bytes}, Type::none(), {kind});
        b.create(Opcode::kBulkReduce, {to, from, bytes}, Type::none(),
                 {kind, {AttrKey::kL2Evict, 1}});
      }
      if (has_bulk_reduction(op, scalar, Space::kSharedCluster)) {
        b.create(Opcode::kBulkReduce, {other, from, bytes, remote}, Type::none(), {kind});
      }
    }
  }
  if (k.kernel().target->name == "sm_90a") {
    b.create(Opcode::kSetMaxRegisters, {}, Type::none(),
             {{AttrKey::kCount, 40}, {AttrKey::kIncrease, 0}});
  }
}

void build_map_shared(OpKernel& k) {
  if (k.kernel().target->sm < 90) return;
  Builder& b = k.b();
  const ValueId tile = b.create(Opcode::kShared, {}, Type::view(Scalar::kI32, Space::kShared, 2),
                                {{AttrKey::kExtents, k.kernel().intern_ints({16, 16})}});
  for (const ValueId rank : {b.constant_int(ir::kI32Type, 0), k.data(ir::kI32Type)}) {
    const ValueId mapped = b.create(Opcode::kMapShared, {tile, rank},
                                    Type::view(Scalar::kI32, Space::kSharedCluster, 2));
    const ValueId value = b.create(Opcode::kLoad, {mapped, k.thread()}, ir::kI32Type);
    b.create(Opcode::kStore, {mapped, value, k.thread()});
    k.keep(
        b.create(Opcode::kAtomic, {mapped, value, k.thread()}, ir::kI32Type, {{AttrKey::kOp, 0}}));
  }
}

void build_matrices(OpKernel& k) {
  Builder& b = k.b();
  for (const Scalar scalar : kAllScalars) {
    const int size = ir::bytes_of(scalar);
    if (scalar == Scalar::kBool || size > 4) continue;
    const ValueId tile = k.shared(scalar, 2048 / size);
    const ValueId row =
        b.create(Opcode::kMul, {k.thread(), b.constant_int(ir::kI32Type, 16 / size)});
    const ValueId inside =
        b.create(Opcode::kBounds, {tile, row}, Type::check(), {{AttrKey::kWidth, 16 / size}});
    for (const int count : {1, 2, 4}) {
      const Type fragment = Type::fragment(scalar, 4 * count / size);
      for (const int64_t transpose : {0, size == 2 ? 1 : 0}) {
        const ir::Attr attrs[] = {{AttrKey::kCount, count}, {AttrKey::kTranspose, transpose}};
        for (const ValueId at : {row, b.constant_int(ir::kI32Type, 32 / size)}) {
          k.keep(b.create(Opcode::kLdMatrix, {tile, at}, fragment, attrs));
          if (k.kernel().target->sm < 90) continue;
          b.create(Opcode::kStMatrix, {tile, k.data(fragment), at}, Type::none(), attrs);
        }
        k.keep(b.create(Opcode::kLdMatrix, {tile, row, inside}, fragment, attrs));
      }
    }
  }
}

ValueId small_descriptor(OpKernel& k) {
  const Type view = Type::view(Scalar::kBF16, Space::kShared, 1);
  const ValueId tile =
      k.b().create(Opcode::kShared, {}, view,
                   {{AttrKey::kExtents, k.kernel().intern_ints({4096})}, {AttrKey::kAlign, 1024}});
  const ValueId zero = k.b().constant_int(ir::kI32Type, 0);
  return k.b().create(
      Opcode::kSmemDesc, {tile, zero}, Type::none(),
      {{AttrKey::kLeading, 16}, {AttrKey::kStride, 1024}, {AttrKey::kSwizzle, 128}});
}

void build_wgmma(OpKernel& k) {
  Builder& b = k.b();
  const ValueId start = b.create(Opcode::kUndef, {}, Type::fragment(Scalar::kF32, 4));
  const ValueId begun = b.create(Opcode::kWgmmaBegin, {start});
  const ValueId none = b.constant_int(ir::kBoolType, 0);
  const ValueId a = small_descriptor(k);
  const ValueId first = b.create(Opcode::kWgmma, {begun, a, small_descriptor(k), none});
  const ValueId flag = k.data(ir::kBoolType);
  const ValueId second = b.create(Opcode::kWgmma, {first, a, small_descriptor(k), flag});
  const ValueId third = b.create(Opcode::kWgmma, {second, a, small_descriptor(k)});
  b.create(Opcode::kWgmmaCommit, {});
  k.keep(b.create(Opcode::kWgmmaWait, {third}, Type::none(), {{AttrKey::kGroups, 0}}));
}

}  // namespace

void add_async_recipes(Recipes& all) {
  all.ops.insert({Opcode::kCopyAsync,    Opcode::kCopyAsyncIf,    Opcode::kCopyWait,
                  Opcode::kMbarrierInit, Opcode::kMbarrierArrive, Opcode::kMbarrierExpectTx,
                  Opcode::kMbarrierWait, Opcode::kBulkLoad,       Opcode::kBulkCopy,
                  Opcode::kBulkStore,    Opcode::kBulkReduce,     Opcode::kBulkPrefetch,
                  Opcode::kBulkWait,     Opcode::kBulkWaitRead,   Opcode::kSetMaxRegisters,
                  Opcode::kMapShared,    Opcode::kBarrierSync,    Opcode::kBarrierArrive,
                  Opcode::kLdMatrix,     Opcode::kStMatrix,       Opcode::kSmemDesc,
                  Opcode::kWgmmaBegin,   Opcode::kWgmma,          Opcode::kWgmmaCommit,
                  Opcode::kWgmmaWait});
  all.by_name["copy_async"] = build_copies_async;
  all.by_name["mbarrier"] = build_mbarriers;
  all.by_name["map_shared"] = build_map_shared;
  all.by_name["matrices"] = build_matrices;
  all.by_name["wgmma"] = build_wgmma;
}

}  // namespace heddle::codegen
