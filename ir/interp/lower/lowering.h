// From a Kernel to linear code: the state and the helpers that the parts of compile() share.
// Internal.
//
// While code is being made, the register fields of instructions and tables hold indices of
// operands_; finish() lays out the registers and puts byte offsets in their place.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "heddle/ir/interp/code.h"
#include "heddle/ir/interp/handlers.h"
#include "heddle/ir/interp/lower/registers.h"
#include "heddle/ir/interp/lower/unwritten.h"
#include "heddle/ir/interp/program.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/launch/shared_layout.h"
#include "heddle/ir/status.h"

namespace heddle::ir::interp {

// A register, or a part of one that starts some bytes in.
struct Operand {
  uint32_t reg = kNone;
  uint32_t delta = 0;

  bool operator==(const Operand&) const = default;
  bool used() const { return reg != kNone; }
};

// An extent or stride: known, in the parameter block, or computed.
struct IndexSource {
  enum class Kind : uint8_t { kConst, kParam, kReg, kRowMajor };
  Kind kind = Kind::kConst;
  int64_t value = 0;      // kConst: the number; kParam: offset in the parameter block
  Operand reg = {};       // kReg
  bool wide = false;      // kReg: i64, otherwise i32
  std::string what = {};  // kParam: "extent 1 of 'x'"
};

// What an IR value is in linear code.
struct Bound {
  Operand reg;              // data; a view's or a descriptor's address, u64; a check's answer, bool
  Operand format;           // descriptors: see Wgmma in code.h
  uint32_t view = kNone;    // views: index in views_
  uint32_t bounds = kNone;  // checks: index in bounds_, where the coordinates are known
  uint32_t array = kNone;   // views: index in Code::shared_arrays, where it is known
};

struct ViewInfo {
  uint32_t name = 0;       // index in Code::texts
  bool unbounded = false;  // a raw pointer
  absl::InlinedVector<IndexSource, 4> extents;
  absl::InlinedVector<IndexSource, 4> strides;
};

// A `bounds` op, for the accesses that take its result.
struct PendingIndex {
  Operand reg;
  bool wide = false;
};
struct PendingBounds {
  uint32_t view_name = 0;
  uint32_t tensor = kNone;
  int width = 1;
  size_t view_modes = 0;
  size_t run_mode = 0;
  absl::InlinedVector<PendingIndex, 4> coordinates;
  absl::InlinedVector<PendingIndex, 4> extents;
};

class Lowering {
 public:
  Lowering(const Kernel& kernel, const CompileOptions& options);
  StatusOr<Program> run();

 private:
  // One element-wise copy between registers.
  struct Move {
    Operand to;
    Operand from;
    int bytes = 0;  // of an element
    uint32_t count = 1;
    bool to_poison = false;    // `to` has poison words
    bool from_poison = false;  // `from` does
    bool pending = false;      // an accumulator that a product may still write
  };

  using InitKey = std::tuple<InitKind, Scalar, uint32_t, uint64_t>;

  // --- lowering.cc ---
  void find_needed(RegionId region);
  void lower_region(RegionId region);
  void lower_op(OpId id);

  // --- values.cc ---
  void lower_elementwise(const Op& op);
  void lower_pack(const Op& op);
  void lower_e2m1(const Op& op);
  void lower_collective(const Op& op);
  void lower_printf(const Op& op);
  void lower_assume_range(const Op& op);
  void lower_inline_ptx(const Op& op);
  void lower_custom(const Op& op);
  Operand mask_of(const Op& op);
  void call_rule(const Op& op, const PtxRule& rule, const WarpRule& warp_rule);

  // --- control.cc ---
  void lower_params();
  void lower_for(const Op& op);
  void lower_while(const Op& op);
  LoopCondition describe_condition(const Op& loop);
  void lower_if(const Op& op);
  // Moves all at once, as though every source were read before any target is written. Blended moves
  // leave the lanes outside the mask alone.
  void emit_moves(std::vector<Move> moves, bool blended);
  void emit_move(const Move& move, bool blended);
  // The moves that give one bound value another's content.
  void append_moves(ValueId to_value, const Bound& to, ValueId from_value,
                    std::vector<Move>* moves);
  // A Bound of its own for a value, its registers unwritten.
  Bound fresh(ValueId value, ValueId like);

  // What watched programs have in addition (watch.h): behind an access of shared memory, whose
  // addresses are a, or a and an offset b; and for an op that has groups.
  void watch_access(ValueId view, Operand a, Operand b, uint32_t rows);
  void watch_op(const Op& op);

  // --- memory.cc ---
  void lower_view(const Op& op);
  void lower_bounds(const Op& op);
  void lower_index_query(const Op& op);
  void lower_access(const Op& op);
  void lower_copy(const Op& op);
  void lower_mbarrier(const Op& op);
  void lower_shared_begin(const Op& op);
  void lower_bulk(const Op& op);
  void lower_store_async(const Op& op);
  void lower_box(const Op& op);          // box.cc
  void lower_map_replace(const Op& op);  // box.cc
  void lower_matrices(const Op& op);
  // What messages show of a check, kept in its registers up to here.
  void attach_check(Access* access, ValueId check);
  ViewInfo param_view(int param, const ParamLayout& layout);
  IndexSource row_major_stride(const ViewInfo& view, size_t dim);
  // A register that holds it as i32 or i64.
  Operand index_operand(const IndexSource& source, bool wide);
  // A register that holds a known or launched extent, clamped to [0, 2^32 - 1], as u32.
  Operand clamped_operand(const IndexSource& extent);
  uint32_t view_name(ValueId value, absl::string_view otherwise);

  // --- wgmma.cc ---
  void lower_descriptor(const Op& op);
  void lower_wgmma_begin(const Op& op);
  void lower_wgmma(const Op& op);
  void lower_mma(const Op& op);

  // --- code.cc: instructions ---
  struct Fields {
    Operand dst = {};
    Operand a = {};
    Operand b = {};
    Operand c = {};
    uint32_t count = 1;
    uint32_t aux = 0;
  };
  // Appends an instruction; its index.
  uint32_t emit(Handler handler, const Fields& fields, Work work = {});
  uint32_t next_index() const { return static_cast<uint32_t>(code_->instrs.size()); }
  // The register of a table entry that the instruction emitted last reads.
  uint32_t table_operand(Operand operand);
  StatusOr<Program> finish();

  // --- poison.cc ---
  // Reports lanes of a value that nobody has written; nothing where that cannot be, or where an
  // optional operand is not given.
  void require_defined(ValueId value, DefinedUse use);
  // Poisons the lanes of a result in which one of the operands is poisoned.
  void emit_poison(ValueId result, absl::Span<const ValueId> operands);
  // The element size by which a value's poison words are apart; and as the poison handlers take it
  // for an operand of a result of `count` elements.
  uint32_t poison_stride(ValueId value) const;
  uint32_t poison_size(ValueId value, uint32_t count) const;

  // --- Registers ---
  Operand new_reg(Type type) { return {registers_.add(bytes_for(type.scalar, type.count))}; }
  Operand new_index_reg(bool wide) { return new_reg(wide ? kI64Type : kI32Type); }
  static uint32_t bytes_for(Scalar scalar, uint32_t count) {
    return static_cast<uint32_t>(bytes_of(scalar)) * kLanes * count;
  }
  // A register that is filled before the code runs; the same one for the same content.
  Operand initial(InitKind kind, Scalar scalar, uint32_t count, uint64_t value,
                  absl::string_view name = "");
  Operand constant_index(int64_t value, bool wide);

  // An unused one where an optional operand is not given.
  Operand reg(ValueId value) const { return bound_[value].reg; }
  void bind(ValueId value, Operand operand) { bound_.at(value).reg = operand; }
  bool poisoned(ValueId value) const { return options_.checks && unwritten_.may_be(value); }
  Type type(ValueId value) const { return kernel_.type(value); }

  // --- Places and errors ---
  uint32_t place(LocId loc);
  uint32_t text(absl::string_view text);
  void unimplemented(absl::string_view what);
  // The op whose instructions are made, for their sites.
  void enter(OpId op) { current_ = op; }

  const Kernel& kernel_;
  const CompileOptions options_;
  const bool watched_;  // Code::watched
  const UnwrittenAnalysis unwritten_;
  const SharedLayout shared_, places_;  // where arrays are kept; where they really lie
  const SharedLayout locals_;
  std::shared_ptr<Code> code_ = std::make_shared<Code>();
  RegisterPlan registers_;
  std::vector<Operand> operands_;
  std::vector<ViewInfo> views_;
  std::vector<PendingBounds> bounds_;
  IdMap<ValueId, Bound> bound_{Bound{}};
  IdMap<ValueId, bool> needed_{false};
  IdMap<LocId, uint32_t> place_of_{kNone};
  absl::flat_hash_map<std::string, uint32_t> text_ids_;
  absl::flat_hash_map<InitKey, uint32_t> initial_;
  OpId current_ = OpId::kNone;
  uint32_t control_ = kNone;  // the innermost Control around current_
  uint32_t depth_ = 0;        // of frames
  Status status_;
};

}  // namespace heddle::ir::interp
