// Appends ops to a kernel at an insertion point.
//
//   Builder b(kernel);
//   ValueId i = b.create(Opcode::kThreadIdx, {}, kI32Type, {{AttrKey::kAxis, 0}});
//   ValueId n = b.constant_int(kI32Type, 32);
//   OpId loop = b.begin_for(i, stop, n, {zero});        // now inserting into its body
//   b.yield({b.create(Opcode::kAdd, {kernel.region(b.region()).args[1], x})});
//   b.end_region();                                     // back behind the loop
//
// It builds what it is told: the verifier judges.
#pragma once

#include <initializer_list>
#include <vector>

#include "heddle/ir/kernel.h"

namespace heddle::ir {

class Builder {
 public:
  // Inserts at the end of the kernel's body.
  explicit Builder(Kernel& kernel) : kernel_(kernel), region_(kernel.body()) {}

  Kernel& kernel() { return kernel_; }
  RegionId region() const { return region_; }
  LocId loc() const { return loc_; }
  void set_loc(LocId loc) { loc_ = loc; }
  // Inserts at the end of a region from here on, or before an op.
  void set_insertion_end(RegionId region) {
    region_ = region;
    before_ = OpId::kNone;
  }
  void set_insertion_before(OpId op) {
    region_ = kernel_.op(op).parent;
    before_ = op;
  }

  // A new op; its result types come from its signature, or are `type` where the signature leaves
  // them open (convert, load, const, …).
  OpId create_op(Opcode opcode, absl::Span<const ValueId> operands, Type type = Type::none(),
                 absl::Span<const Attr> attrs = {});
  // The same with results of these types, where there may be any number.
  OpId create_op(Opcode opcode, absl::Span<const ValueId> operands, absl::Span<const Type> results,
                 absl::Span<const Attr> attrs);
  // The same, for ops with one result, which it returns (kNone for ops without).
  ValueId create(Opcode opcode, absl::Span<const ValueId> operands, Type type = Type::none(),
                 absl::Span<const Attr> attrs = {});
  ValueId create(Opcode opcode, std::initializer_list<ValueId> operands, Type type = Type::none(),
                 std::initializer_list<Attr> attrs = {}) {
    return create(opcode, absl::Span<const ValueId>(operands.begin(), operands.size()), type,
                  absl::Span<const Attr>(attrs.begin(), attrs.size()));
  }

  // A constant of any data type by its element's bits; of an integer or bool type by value.
  ValueId constant(Type type, uint64_t bits);
  ValueId constant_int(Type type, int64_t value);

  // Structured ops. begin_* makes the op with results for the carried values, its first region with
  // its arguments, and inserts there; next_region moves to the second one; end_region goes back to
  // behind the op. Each region must have been given its yield.
  OpId begin_for(ValueId start, ValueId stop, ValueId step, absl::Span<const ValueId> init);
  OpId begin_while(absl::Span<const ValueId> init);
  OpId begin_if(ValueId condition, absl::Span<const Type> results = {});
  void next_region();
  void yield(absl::Span<const ValueId> values);
  void end_region();

 private:
  OpId insert(OpId op);

  Kernel& kernel_;
  RegionId region_;
  OpId before_ = OpId::kNone;
  LocId loc_ = LocId::kNone;
};

// The result types of an op by its signature; `type` fills what the signature leaves open.
absl::InlinedVector<Type, 2> infer_results(const Kernel& kernel, Opcode opcode,
                                           absl::Span<const ValueId> operands, Type type);

}  // namespace heddle::ir
