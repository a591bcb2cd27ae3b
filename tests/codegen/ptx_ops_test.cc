// Every op of the table, for every element type and shape that it admits, on every target: PTX that
// ptxas takes, or an error that names the first target that has it.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/verifier.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Builder;
using ir::Kernel;
using ir::Opcode;
using ir::Role;
using ir::Scalar;
using ir::Space;
using ir::Type;
using ir::ValueId;

constexpr Scalar kAllScalars[] = {
    Scalar::kBool,   Scalar::kI8,  Scalar::kU8,   Scalar::kI16,  Scalar::kU16,  Scalar::kI32,
    Scalar::kU32,    Scalar::kI64, Scalar::kU64,  Scalar::kE4M3, Scalar::kE5M2, Scalar::kE8M0,
    Scalar::kE2M1X2, Scalar::kF16, Scalar::kBF16, Scalar::kF32,  Scalar::kF64};

// A kernel around some ops: operands come from memory, or are constants; results go to memory.
class OpKernel {
 public:
  OpKernel(const std::string& name, const ir::Target& target, bool constants)
      : kernel_(name), b_(kernel_), constants_(constants) {
    kernel_.block = {128, 1, 1};
    kernel_.target = &target;
    b_.set_loc(kernel_.intern_loc("op.cc", 7));
  }

  Kernel& kernel() { return kernel_; }
  Builder& b() { return b_; }

  ValueId view(Scalar scalar) {
    ValueId& view = views_.try_emplace(scalar, ValueId::kNone).first->second;
    if (!valid(view)) {
      view = kernel_.add_param("p", Type::view(scalar, Space::kGlobal, 1), {ir::kDynamic}, {1});
    }
    return view;
  }
  ValueId thread() {
    return b_.create(Opcode::kThreadIdx, {}, ir::kI32Type, {{AttrKey::kAxis, 0}});
  }

  // A value of any data type.
  ValueId data(Type type) {
    if (constants_) return b_.constant(type, one_and_a_bit(type.scalar));
    const ValueId from = view(type.scalar);
    if (type.is_scalar() || type.kind == ir::TypeKind::kVector) {
      return b_.create(Opcode::kLoad, {from, thread()}, type);
    }
    std::vector<ValueId> elements;
    for (int i = 0; i < type.count; ++i) {
      elements.push_back(b_.create(Opcode::kLoad, {from, thread()}, type.element()));
    }
    return b_.create(Opcode::kPack, absl::MakeConstSpan(elements), type);
  }

  // Makes the result visible: everything in it is stored.
  void keep(ValueId value) {
    const Type type = kernel_.type(value);
    if (type.kind == ir::TypeKind::kFragment) {
      for (int i = 0; i < type.count; ++i) {
        keep(b_.create(Opcode::kExtract, {value}, type.element(), {{AttrKey::kIndex, i}}));
      }
    } else {
      b_.create(Opcode::kStore, {view(type.scalar), value, thread()});
    }
  }

  ValueId small_descriptor() {
    const Type view = Type::view(Scalar::kBF16, Space::kShared, 1);
    const ValueId tile =
        b_.create(Opcode::kShared, {}, view,
                  {{AttrKey::kExtents, kernel_.intern_ints({4096})}, {AttrKey::kAlign, 1024}});
    const ValueId zero = b_.constant_int(ir::kI32Type, 0);
    return b_.create(Opcode::kSmemDesc, {tile, zero}, Type::none(),
                     {{AttrKey::kLeading, 16}, {AttrKey::kStride, 1024}, {AttrKey::kSwizzle, 128}});
  }

 private:
  // A number that is not special in any type, as bits.
  static uint64_t one_and_a_bit(Scalar scalar) {
    if (is_float(scalar)) return ir::float_bits(scalar, 1.5);
    return scalar == Scalar::kBool ? 1 : 3;
  }

  Kernel kernel_;
  Builder b_;
  bool constants_;
  std::map<Scalar, ValueId> views_;
};

// How to build the ops that the signature alone does not tell how to use.
using Recipe = std::function<void(OpKernel&)>;

void build_if(OpKernel& k, Scalar scalar) {
  Builder& b = k.b();
  const ValueId condition = k.data(ir::kBoolType);
  const ValueId value = k.data(Type::of(scalar));
  const ValueId other = k.data(Type::of(scalar));
  const ir::OpId op = b.begin_if(condition, {Type::of(scalar)});
  b.yield({value});
  b.next_region();
  b.yield({other});
  b.end_region();
  k.keep(k.kernel().op(op).result());
}

void build_for(OpKernel& k, Type type) {
  Builder& b = k.b();
  const ValueId n = k.data(ir::kI32Type);
  const ValueId first = k.data(type);
  const ValueId second = k.data(type);
  const ir::OpId op = b.begin_for(k.thread(), n, b.constant_int(ir::kI32Type, 3), {first, second});
  const auto args = k.kernel().region(b.region()).args;
  b.yield({args[2], args[1]});
  b.end_region();
  for (const ValueId result : k.kernel().op(op).results) k.keep(result);
}

void build_while(OpKernel& k, Type type) {
  Builder& b = k.b();
  const ir::OpId op = b.begin_while({k.data(ir::kBoolType), k.data(type)});
  b.yield({k.kernel().region(b.region()).args[0]});
  b.next_region();
  const auto args = k.kernel().region(b.region()).args;
  b.yield({b.create(Opcode::kNot, {args[0]}), args[1]});
  b.end_region();
  for (const ValueId result : k.kernel().op(op).results) k.keep(result);
}

void build_wgmma(OpKernel& k) {
  Builder& b = k.b();
  const ValueId start = b.create(Opcode::kUndef, {}, Type::fragment(Scalar::kF32, 4));
  const ValueId begun = b.create(Opcode::kWgmmaBegin, {start});
  const ValueId none = b.constant_int(ir::kBoolType, 0);
  const ValueId a = k.small_descriptor();
  const ValueId first = b.create(Opcode::kWgmma, {begun, a, k.small_descriptor(), none});
  const ValueId flag = k.data(ir::kBoolType);
  const ValueId second = b.create(Opcode::kWgmma, {first, a, k.small_descriptor(), flag});
  const ValueId third = b.create(Opcode::kWgmma, {second, a, k.small_descriptor()});
  b.create(Opcode::kWgmmaCommit, {});
  k.keep(b.create(Opcode::kWgmmaWait, {third}, Type::none(), {{AttrKey::kGroups, 0}}));
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

// Ops with recipes, by what distinguishes them.
// Every atomic that the target has, in both memories, with every order and scope.
void build_atomics(OpKernel& k, Scalar scalar, Space space) {
  Builder& b = k.b();
  const ir::Target& target = *k.kernel().target;
  const ValueId view = space == Space::kGlobal
                           ? k.view(scalar)
                           : b.create(Opcode::kShared, {}, Type::view(scalar, space, 1),
                                      {{AttrKey::kExtents, k.kernel().intern_ints({256})}});
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
        if (sum == nullptr || target.sm < sum->sm) continue;
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

std::map<std::string, Recipe> recipes() {
  std::map<std::string, Recipe> all;
  for (const Scalar scalar : kAllScalars) {
    const auto of = [&](absl::string_view what) {
      return absl::StrCat(what, "_", ir::info(scalar).name);
    };
    all[of("if")] = [=](OpKernel& k) { build_if(k, scalar); };
    for (const Type type : {Type::of(scalar), Type::fragment(scalar, 3)}) {
      const absl::string_view shape = type.is_scalar() ? "" : "_fragment";
      all[of("for") + std::string(shape)] = [=](OpKernel& k) { build_for(k, type); };
      all[of("while") + std::string(shape)] = [=](OpKernel& k) { build_while(k, type); };
    }
    all[of("fragment")] = [=](OpKernel& k) {
      const ValueId whole = k.data(Type::fragment(scalar, 5));
      const auto slice = [&](int first, int count) {
        return k.b().create(Opcode::kSlice, {whole}, Type::fragment(scalar, count),
                            {{AttrKey::kIndex, first}});
      };
      const ValueId splat =
          k.b().create(Opcode::kSplat, {k.data(Type::of(scalar))}, Type::fragment(scalar, 3));
      k.keep(slice(1, 3));
      k.keep(k.b().create(Opcode::kPack, {slice(3, 2), splat, slice(0, 5), slice(1, 1)},
                          Type::fragment(scalar, 11)));
    };
    // The widest vectors, in both memories, and as volatile accesses.
    for (const Space space : {Space::kGlobal, Space::kShared}) {
      for (const int is_volatile : {0, 1}) {
        all[absl::StrCat("access_", name_of(space), is_volatile, "_", ir::info(scalar).name)] =
            [=](OpKernel& k) {
              Builder& b = k.b();
              const int most = std::min(16, k.kernel().target->max_access_bytes / bytes_of(scalar));
              const ValueId view =
                  space == Space::kGlobal
                      ? k.view(scalar)
                      : b.create(Opcode::kShared, {}, Type::view(scalar, space, 1),
                                 {{AttrKey::kExtents, k.kernel().intern_ints({256})}});
              for (int count = 2; count <= most; count *= 2) {
                const ValueId value =
                    b.create(Opcode::kLoad, {view, k.thread()}, Type::vector(scalar, count),
                             {{AttrKey::kVolatile, is_volatile}});
                b.create(Opcode::kStore, {view, value, b.constant_int(ir::kI32Type, 64)},
                         Type::none(), {{AttrKey::kVolatile, is_volatile}});
              }
              k.keep(b.create(Opcode::kLoad, {view, k.thread()}, Type::of(scalar)));
            };
      }
    }
    all[of("atomic_global")] = [=](OpKernel& k) { build_atomics(k, scalar, Space::kGlobal); };
    all[of("atomic_shared")] = [=](OpKernel& k) { build_atomics(k, scalar, Space::kShared); };
    all[of("local_and_table")] = [=](OpKernel& k) {
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
    };
    all[of("subview_global")] = [=](OpKernel& k) { build_subview(k, k.view(scalar)); };
    all[of("subview_shared")] = [=](OpKernel& k) {
      build_subview(k, k.b().create(Opcode::kShared, {}, Type::view(scalar, Space::kShared, 1),
                                    {{AttrKey::kExtents, k.kernel().intern_ints({64})}}));
    };
    all[of("dynamic_shared")] = [=](OpKernel& k) {
      const ValueId count = k.b().constant_int(ir::kI32Type, 64);
      build_subview(
          k, k.b().create(Opcode::kDynamicShared, {count}, Type::view(scalar, Space::kShared, 1)));
    };
    all[of("parameter")] = [=](OpKernel& k) {
      const ValueId value = k.kernel().add_param("value", Type::of(scalar));
      k.keep(value);
    };
    all[of("undef")] = [=](OpKernel& k) {
      k.keep(k.b().create(Opcode::kUndef, {}, Type::of(scalar)));
    };
  }
  all["cache"] = [](OpKernel& k) {
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
  };
  all["inline_ptx"] = [](OpKernel& k) {
    const ir::Type types[] = {ir::kU32Type, ir::kBoolType, Type::of(Scalar::kF16)};
    const auto text = [&](absl::string_view ptx) {
      return ir::Attr{AttrKey::kMessage, static_cast<int64_t>(k.kernel().intern(ptx))};
    };
    const ValueId values[] = {k.data(ir::kU32Type), k.data(ir::kBoolType),
                              k.data(Type::of(Scalar::kF16))};
    const ir::OpId op = k.b().create_op(
        Opcode::kInlinePtxVolatile, values, types,
        {text(".reg .b32 %%t;\nmov.b32 %%t, %%laneid;\nadd.u32 %0, %3, %%t;\nnot.pred %1, %4;\n"
              "neg.f16 %2, %5;")});
    for (const ValueId result : k.kernel().op(op).results) k.keep(result);
    k.keep(k.b().create(Opcode::kInlinePtx, {values[0]}, ir::kU32Type, {text("popc.b32 %0, %1;")}));
  };
  all["copy_async"] = [](OpKernel& k) {
    Builder& b = k.b();
    const ValueId tile = b.create(Opcode::kShared, {}, Type::view(Scalar::kF32, Space::kShared, 1),
                                  {{AttrKey::kExtents, k.kernel().intern_ints({1024})}});
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
  };
  all["mbarrier"] = [](OpKernel& k) {
    if (k.kernel().target->sm < 90) return;
    Builder& b = k.b();
    const auto shared = [&](Scalar scalar) {
      return b.create(Opcode::kShared, {}, Type::view(scalar, Space::kShared, 1),
                      {{AttrKey::kExtents, k.kernel().intern_ints({64})}});
    };
    const ValueId words = shared(Scalar::kU64), tile = shared(Scalar::kF32);
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
      b.create(Opcode::kBulkLoad, {tile, x, bytes, words, b.constant(ir::kU32Type, 3)},
               Type::none(), {{AttrKey::kL2Evict, 0}});
    }
    const ValueId theirs = b.create(Opcode::kMapShared, {tile, k.data(ir::kI32Type)},
                                    Type::view(Scalar::kF32, Space::kSharedCluster, 1));
    b.create(Opcode::kBulkCopy, {theirs, tile, bytes, remote});
    for (const Scalar scalar : kAllScalars) {
      const ValueId from = shared(scalar), to = k.view(scalar);
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
  };
  all["map_shared"] = [](OpKernel& k) {
    if (k.kernel().target->sm < 90) return;
    Builder& b = k.b();
    const ValueId tile = b.create(Opcode::kShared, {}, Type::view(Scalar::kI32, Space::kShared, 2),
                                  {{AttrKey::kExtents, k.kernel().intern_ints({16, 16})}});
    for (const ValueId rank : {b.constant_int(ir::kI32Type, 0), k.data(ir::kI32Type)}) {
      const ValueId mapped = b.create(Opcode::kMapShared, {tile, rank},
                                      Type::view(Scalar::kI32, Space::kSharedCluster, 2));
      const ValueId value = b.create(Opcode::kLoad, {mapped, k.thread()}, ir::kI32Type);
      b.create(Opcode::kStore, {mapped, value, k.thread()});
      k.keep(b.create(Opcode::kAtomic, {mapped, value, k.thread()}, ir::kI32Type,
                      {{AttrKey::kOp, 0}}));
    }
  };
  all["e2m1"] = [](OpKernel& k) {
    if (!supports(*k.kernel().target, ir::Targets::kFloat4, Scalar::kF32)) return;
    for (const ir::TypeKind kind : {ir::TypeKind::kVector, ir::TypeKind::kFragment}) {
      for (const int pairs : {1, 2, 4, 7}) {
        if (kind == ir::TypeKind::kVector && pairs == 7) continue;
        const Type wide{
            .kind = kind, .scalar = Scalar::kF32, .count = static_cast<uint16_t>(2 * pairs)};
        Type narrow = wide.with_scalar(Scalar::kE2M1X2);
        narrow.count = static_cast<uint16_t>(pairs);
        if (kind == ir::TypeKind::kVector && pairs == 1) narrow = narrow.element();
        const ValueId packed = k.b().create(Opcode::kE2m1Pack, {k.data(wide)}, narrow);
        k.keep(packed);
        k.keep(k.b().create(Opcode::kE2m1Unpack, {packed}, wide.with_scalar(Scalar::kF16)));
      }
    }
  };
  all["printf"] = [](OpKernel& k) {
    const ir::StringId format = k.kernel().intern("%d %u \"%lld\" %5.2f %llu %c\n");
    std::vector<ValueId> values;
    for (const Scalar scalar :
         {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kF64, Scalar::kU64, Scalar::kI32}) {
      values.push_back(k.data(Type::of(scalar)));
    }
    k.b().create(Opcode::kPrintf, values, Type::none(),
                 {{AttrKey::kMessage, static_cast<int64_t>(format)}});
  };
  all["wgmma"] = build_wgmma;
  all["pointer"] = [](OpKernel& k) {
    Builder& b = k.b();
    const ValueId tile = b.create(Opcode::kShared, {}, Type::view(Scalar::kF32, Space::kShared, 1),
                                  {{AttrKey::kExtents, k.kernel().intern_ints({16})}});
    for (const ValueId view : {k.view(Scalar::kF32), tile}) {
      for (const ValueId offset : {b.constant_int(ir::kI32Type, 3), k.thread()}) {
        const ValueId address = b.create(Opcode::kAddress, {view, offset});
        k.keep(address);
        const ValueId there =
            b.create(Opcode::kPointer, {address}, Type::view(Scalar::kF32, Space::kGlobal, 1));
        k.keep(b.create(Opcode::kLoad, {there, k.thread()}, ir::kF32Type));
      }
    }
  };
  all["matrices"] = [](OpKernel& k) {
    Builder& b = k.b();
    for (const Scalar scalar : kAllScalars) {
      const int size = ir::bytes_of(scalar);
      if (scalar == Scalar::kBool || size > 4) continue;
      const ValueId tile = b.create(Opcode::kShared, {}, Type::view(scalar, Space::kShared, 1),
                                    {{AttrKey::kExtents, k.kernel().intern_ints({2048 / size})}});
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
  };
  all["at_launch"] = [](OpKernel& k) {
    Builder& b = k.b();
    const ValueId extent =
        b.create(Opcode::kExtent, {k.view(Scalar::kF32)}, ir::kI32Type, {{AttrKey::kDim, 0}});
    for (const Scalar scalar : {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64}) {
      const Type type = Type::of(scalar);
      const ValueId number = b.create(Opcode::kConvert, {extent}, type);
      k.keep(b.create(Opcode::kAtLaunch, {b.create(Opcode::kMul, {number, number})}));
    }
  };
  all["assert"] = [](OpKernel& k) {
    const ir::StringId message = k.kernel().intern("x \"must\" be small");
    k.b().create(Opcode::kAssert, {k.data(ir::kBoolType)}, Type::none(),
                 {{AttrKey::kMessage, static_cast<int64_t>(message)}});
  };
  return all;
}

// Which ops the recipes build.
bool has_recipe(Opcode opcode) {
  switch (opcode) {
    case Opcode::kUndef:
    case Opcode::kYield:
    case Opcode::kFor:
    case Opcode::kWhile:
    case Opcode::kIf:
    case Opcode::kPack:
    case Opcode::kExtract:
    case Opcode::kSlice:
    case Opcode::kSplat:
    case Opcode::kExtent:
    case Opcode::kStride:
    case Opcode::kAtLaunch:
    case Opcode::kShared:
    case Opcode::kDynamicShared:
    case Opcode::kSubview:
    case Opcode::kBounds:
    case Opcode::kLoad:
    case Opcode::kStore:
    case Opcode::kAtomic:
    case Opcode::kAtomicCas:
    case Opcode::kAtomicLoad:
    case Opcode::kAtomicStore:
    case Opcode::kPrefetch:
    case Opcode::kPrintf:
    case Opcode::kInlinePtx:
    case Opcode::kInlinePtxVolatile:
    case Opcode::kPointer:
    case Opcode::kAddress:
    case Opcode::kMapShared:
    case Opcode::kMbarrierInit:
    case Opcode::kMbarrierArrive:
    case Opcode::kMbarrierExpectTx:
    case Opcode::kMbarrierWait:
    case Opcode::kBulkLoad:
    case Opcode::kBulkCopy:
    case Opcode::kBulkStore:
    case Opcode::kBulkReduce:
    case Opcode::kBulkPrefetch:
    case Opcode::kBulkWait:
    case Opcode::kBulkWaitRead:
    case Opcode::kSetMaxRegisters:
    case Opcode::kLocal:
    case Opcode::kTable:
    case Opcode::kCopyAsync:
    case Opcode::kCopyAsyncIf:
    case Opcode::kCopyWait:
    case Opcode::kBarrierSync:
    case Opcode::kBarrierArrive:
    case Opcode::kAssert:
    case Opcode::kSmemDesc:
    case Opcode::kWgmmaBegin:
    case Opcode::kWgmma:
    case Opcode::kWgmmaCommit:
    case Opcode::kWgmmaWait:
    case Opcode::kE2m1Pack:
    case Opcode::kE2m1Unpack:
    case Opcode::kLdMatrix:
    case Opcode::kStMatrix:
      return true;
    default:
      return false;
  }
}

// Not for the emitter: promote-vars removes them before.
bool is_gone(Opcode opcode) {
  return opcode == Opcode::kVar || opcode == Opcode::kVarLoad || opcode == Opcode::kVarStore;
}

// In how many ways its attribute is tried.
int variants_of(const ir::OpInfo& row) {
  if (row.attr_count == 0) return 1;
  switch (row.attrs[0].key) {
    case AttrKey::kAxis:
      return 3;
    case AttrKey::kWidth:
      return 2;
    case AttrKey::kRounding:
      return ir::kRoundingCount;
    case AttrKey::kOp:
      return 6;  // those of redux
    default:
      return 1;
  }
}

bool is_exact_conversion(Scalar from, Scalar to) {
  if (to == Scalar::kE8M0) return from != Scalar::kF32;
  if (ir::info(to).storage_only) return true;
  if (is_float(from)) return !(is_integer(to) || (from == Scalar::kF64 && to == Scalar::kF32));
  return !(to == Scalar::kF32 || (to == Scalar::kF64 && ir::info(from).bits == 64));
}

// One op whose T is `type`, operands made by their roles; `from` is the source of conversions.
void build_by_signature(OpKernel& k, Opcode opcode, Type type, Scalar from, int axis) {
  const ir::OpInfo& row = ir::info(opcode);
  std::vector<ValueId> operands;
  for (int i = 0; i < row.signature.operand_count; ++i) {
    switch (row.signature.operands[i].role) {
      case Role::kT:
        operands.push_back(k.data(type));
        break;
      case Role::kDataLikeT:
        operands.push_back(k.data(type.with_scalar(from)));
        break;
      case Role::kBool:
        operands.push_back(k.data(ir::kBoolType));
        break;
      case Role::kI32:
        operands.push_back(k.data(ir::kI32Type));
        break;
      case Role::kU32:
        operands.push_back(k.data(ir::kU32Type));
        break;
      default:
        FAIL() << row.mnemonic << " needs a recipe";
    }
  }
  std::vector<ir::Attr> attrs;
  for (int i = 0; i < row.attr_count; ++i) {
    const AttrKey key = row.attrs[i].key;
    if (key == AttrKey::kAxis) attrs.push_back({key, axis});
    if (key == AttrKey::kBits) attrs.push_back({key, 1});
    if (key == AttrKey::kWidth) attrs.push_back({key, axis == 0 ? 32 : 8});
    if (key == AttrKey::kRounding || key == AttrKey::kOp) attrs.push_back({key, axis});
    if (key == AttrKey::kLikely) attrs.push_back({key, 1});
  }
  const auto build = [&] {
    const ir::OpId op = k.b().create_op(opcode, operands, type, attrs);
    for (const ValueId result : k.kernel().op(op).results) k.keep(result);
  };
  build();
  const auto is_ftz = [](const ir::AttrRule& rule) { return rule.key == AttrKey::kFtz; };
  if (std::any_of(row.attrs.begin(), row.attrs.end(), is_ftz) && type.scalar == Scalar::kF32) {
    attrs.push_back({AttrKey::kFtz, 1});
    build();
  }
}

struct Case {
  std::string name;
  std::string group;  // cases of a group share a kernel: each kernel costs ptxas milliseconds
  Recipe build;
  bool supported;
};

std::vector<Case> cases_for(const ir::Target& target) {
  std::vector<Case> cases;
  for (const auto& [name, recipe] : recipes()) {
    const std::string group = name.substr(0, name.find('_'));
    cases.push_back({name, group, recipe, name != "wgmma" || target.name == "sm_90a"});
  }
  for (int i = 0; i < ir::kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    if (is_gone(opcode) || has_recipe(opcode)) continue;
    const ir::OpInfo& row = ir::info(opcode);
    std::string mnemonic(row.mnemonic);
    std::replace(mnemonic.begin(), mnemonic.end(), '.', '_');
    const bool converts =
        row.signature.operand_count == 1 && row.signature.operands[0].role == Role::kDataLikeT;
    for (const Scalar scalar : kAllScalars) {
      const bool has_type = row.data_class != ir::DataClass::kNone;
      if (has_type ? !admits(row.data_class, scalar) : scalar != Scalar::kI32) continue;
      for (const Scalar from : kAllScalars) {
        if (!converts && from != Scalar::kI32) continue;
        const bool bools = from == Scalar::kBool || scalar == Scalar::kBool;
        const bool same_bits = ir::info(from).bits == ir::info(scalar).bits;
        if (opcode == Opcode::kBitcast && (bools || !same_bits)) continue;
        const bool is_word = !ir::info(from).storage_only && ir::info(from).bits >= 32;
        if (opcode == Opcode::kConvertRounded && (!is_word || is_exact_conversion(from, scalar))) {
          continue;
        }
        for (const Type type :
             {Type::of(scalar), Type::vector(scalar, 2), Type::fragment(scalar, 3)}) {
          if (!has_type && !type.is_scalar()) continue;
          for (int axis = 0; axis < variants_of(row); ++axis) {
            // A magnitude goes up or toward zero, and to nearest as well as down it does not.
            if (opcode == Opcode::kConvertRounded && scalar == Scalar::kE8M0 && axis % 2 == 0) {
              continue;
            }
            cases.push_back({absl::StrCat(mnemonic, "_", ir::info(scalar).name, "_",
                                          converts ? ir::info(from).name : "", "_",
                                          static_cast<int>(type.kind), "_", axis),
                             absl::StrCat(ir::info(scalar).name, "_", static_cast<int>(type.kind)),
                             [=](OpKernel& k) { build_by_signature(k, opcode, type, from, axis); },
                             supports(target, row.targets, scalar) &&
                                 (!converts || supports(target, row.targets, from))});
          }
        }
      }
    }
  }
  return cases;
}

class EveryOp : public testing::TestWithParam<const ir::Target*> {};

TEST_P(EveryOp, IsPrintedOrRefused) {
  const ir::Target& target = *GetParam();
  int refused = 0;
  for (const Case& c : cases_for(target)) {
    OpKernel k("k", target, false);
    c.build(k);
    k.keep(k.thread());  // a kernel has an effect
    const absl::Status status = emit_ptx(k.kernel()).status();
    const ir::Diagnostics wrong = verify(k.kernel(), ir::Stage::kEmittable);
    EXPECT_EQ(wrong.empty(), c.supported) << c.name << ": " << ir::to_string(wrong);
    EXPECT_EQ(status.ok(), c.supported) << c.name << ": " << status;
    if (c.supported || status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.name;
    const std::string message(status.message());
    EXPECT_THAT(message, testing::HasSubstr("op.cc:7: error: "));
    EXPECT_THAT(message, testing::AnyOf(testing::HasSubstr(" needs sm_"),
                                        testing::HasSubstr("no architecture has ")));
    EXPECT_THAT(message, testing::HasSubstr("fix: "));
  }
  EXPECT_GT(refused, 0);  // exp2 of f64 at least
}

TEST_P(EveryOp, Assembles) {
  HEDDLE_NEEDS_TOOL(kPtxas);
  const ir::Target& target = *GetParam();
  PtxBatch batch;
  for (const bool constants : {false, true}) {
    std::map<std::string, OpKernel> kernels;
    for (const Case& c : cases_for(target)) {
      if (!c.supported) continue;
      const std::string name = absl::StrCat("k", constants ? "_constant_" : "_", c.group);
      OpKernel& k = kernels.try_emplace(c.group, name, target, constants).first->second;
      k.b().set_loc(k.kernel().intern_loc(c.name, 1));
      c.build(k);
    }
    for (auto& [group, k] : kernels) {
      k.keep(k.thread());
      PtxOptions options;
      options.line_info = false;
      options.device_checks = true;
      const absl::StatusOr<PtxModule> module = emit_ptx(k.kernel(), options);
      ASSERT_TRUE(module.ok()) << group << ": " << module.status();
      batch.add(*module);
    }
  }
  const absl::StatusOr<Assembly> assembly =
      assemble_for(batch.text(), target.name, batch.entries(), 1);
  if (absl::IsUnimplemented(assembly.status())) {
    GTEST_SKIP() << "SKIPPED: this ptxas does not know " << target.name;
  }
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_EQ(assembly->entries.size(), batch.entries().size());
}

std::vector<const ir::Target*> all_targets() {
  std::vector<const ir::Target*> targets;
  for (const ir::Target& target : ir::kTargets) targets.push_back(&target);
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryOp, testing::ValuesIn(all_targets()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace heddle::codegen
