// Recipes of control flow, of vectors and fragments, and of texts with values in them.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/op_recipes.h"

namespace heddle::codegen {
namespace {

using ir::AttrKey;
using ir::Builder;
using ir::Opcode;
using ir::Scalar;
using ir::Type;
using ir::ValueId;

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

void build_at_launch(OpKernel& k) {
  Builder& b = k.b();
  const ValueId extent =
      b.create(Opcode::kExtent, {k.view(Scalar::kF32)}, ir::kI32Type, {{AttrKey::kDim, 0}});
  for (const Scalar scalar : {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64}) {
    const ValueId number = b.create(Opcode::kConvert, {extent}, Type::of(scalar));
    k.keep(b.create(Opcode::kAtLaunch, {b.create(Opcode::kMul, {number, number})}));
  }
}

// What the host alone does leaves nothing in the kernel.
void build_contract(OpKernel& k) {
  Builder& b = k.b();
  const ValueId extent =
      b.create(Opcode::kExtent, {k.view(Scalar::kF32)}, ir::kI32Type, {{AttrKey::kDim, 0}});
  const ValueId positive =
      b.create(Opcode::kGt, {extent, b.constant_int(ir::kI32Type, 0)}, ir::kBoolType);
  const auto message = static_cast<int64_t>(ir::index_of(k.kernel().intern("an extent of %")));
  b.create(Opcode::kRequire, {positive, extent}, Type::none(), {{AttrKey::kMessage, message}});
  b.create(Opcode::kLaunchGrid, {extent, extent, extent});
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

void build_fragment(OpKernel& k, Scalar scalar) {
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
}

void build_e2m1(OpKernel& k) {
  if (!has(*k.kernel().target, ir::Feature::kFloat4)) return;
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
}

void build_printf(OpKernel& k) {
  const ir::StringId format = k.kernel().intern("%d %u \"%lld\" %5.2f %llu %c\n");
  std::vector<ValueId> values;
  for (const Scalar scalar :
       {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kF64, Scalar::kU64, Scalar::kI32}) {
    values.push_back(k.data(Type::of(scalar)));
  }
  k.b().create(Opcode::kPrintf, values, Type::none(),
               {{AttrKey::kMessage, static_cast<int64_t>(format)}});
}

void build_assert(OpKernel& k) {
  const ir::StringId message = k.kernel().intern("x \"must\" be small");
  k.b().create(Opcode::kAssert, {k.data(ir::kBoolType)}, Type::none(),
               {{AttrKey::kMessage, static_cast<int64_t>(message)}});
}

void build_inline_ptx(OpKernel& k) {
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
}

}  // namespace

void add_value_recipes(Recipes& all) {
  all.ops.insert({Opcode::kUndef, Opcode::kYield, Opcode::kFor, Opcode::kWhile, Opcode::kIf,
                  Opcode::kE2m1Pack, Opcode::kE2m1Unpack, Opcode::kPack, Opcode::kExtract,
                  Opcode::kSlice, Opcode::kSplat, Opcode::kAssert, Opcode::kPrintf,
                  Opcode::kAtLaunch, Opcode::kRequire, Opcode::kLaunchGrid, Opcode::kInlinePtx,
                  Opcode::kInlinePtxVolatile});
  all.by_name["contract"] = build_contract;
  for (const Scalar scalar : kAllScalars) {
    const auto of = [&](absl::string_view what) {
      return absl::StrCat(what, "_", ir::info(scalar).name);
    };
    all.by_name[of("if")] = [=](OpKernel& k) { build_if(k, scalar); };
    for (const Type type : {Type::of(scalar), Type::fragment(scalar, 3)}) {
      const absl::string_view shape = type.is_scalar() ? "" : "_fragment";
      all.by_name[of("for") + std::string(shape)] = [=](OpKernel& k) { build_for(k, type); };
      all.by_name[of("while") + std::string(shape)] = [=](OpKernel& k) { build_while(k, type); };
    }
    all.by_name[of("fragment")] = [=](OpKernel& k) { build_fragment(k, scalar); };
    all.by_name[of("parameter")] = [=](OpKernel& k) {
      const ValueId value = k.kernel().add_param("value", Type::of(scalar));
      k.keep(value);
    };
    all.by_name[of("undef")] = [=](OpKernel& k) {
      k.keep(k.b().create(Opcode::kUndef, {}, Type::of(scalar)));
    };
  }
  all.by_name["e2m1"] = build_e2m1;
  all.by_name["at_launch"] = build_at_launch;
  all.by_name["printf"] = build_printf;
  all.by_name["assert"] = build_assert;
  all.by_name["inline_ptx"] = build_inline_ptx;
}

}  // namespace heddle::codegen
