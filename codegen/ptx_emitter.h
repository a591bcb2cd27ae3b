// How IR maps on PTX.
//
// registers     A class a width, untyped (registers.h): i32, u32 and f32 are %r, so that bitcasts
//               and same-width integer conversions are renames. A bool is a predicate. Vectors and
//               fragments are a register an element, or for two 16-bit elements. Constants have no
//               register: they are spelled where they are used, in the instruction's type.
// values        Each is a list of operands (registers or constants), `elements()`. Ops that only
//               rename make a new list. Values that copies would connect share registers
//               (register_plan.h); what still has to move leaves through parallel_copy.h.
// entry block   What every thread needs once (parameters, %tid, warp_id, the arena's address) is
//               printed on first use into text of its own, which stands in front of the body.
// parameters    One .param a slot of ir/launch/abi.h; the comment beside it says which.
// memory        A view is a base (a 64-bit register, or the arena of shared memory) and bytes. An
//               address is the base and the scaled terms of the offset (offsets.h), shared by all
//               accesses of a scope that differ by a constant only: ld.global.b32 %r1, [%rd4+16].
// shared        All arrays lie in one array, `heddle_shared`, placed by ir/launch/shared_layout.h.
// control flow  `for` is tested at the bottom, with a guard on top unless it is sure to run.
//               `while` is tested on top. `if` jumps over what does not apply. Labels are $L1, $L2…
//               `bra.uni` where all lanes of a warp agree.
// checks        `bounds` is not printed, nor what only it used, unless device_checks asks for it.
// places        `.loc` in front of an instruction whose op comes from another line than the last.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "heddle/codegen/offsets.h"
#include "heddle/codegen/parallel_copy.h"
#include "heddle/codegen/ptx.h"
#include "heddle/codegen/ptx_ops.h"
#include "heddle/codegen/ptx_text.h"
#include "heddle/codegen/register_plan.h"
#include "heddle/codegen/registers.h"
#include "heddle/ir/check.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/launch/shared_layout.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

// What has been computed already and holds until the region at hand ends.
class ScopedCache {
 public:
  struct Key {
    uint64_t what, where;
    bool operator==(const Key&) const = default;
    template <class H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.what, key.where);
    }
  };
  using Operands = std::array<Operand, 2>;

  const Operands* find(const Key& key) const {
    const auto it = map_.find(key);
    return it == map_.end() ? nullptr : &it->second;
  }
  void add(const Key& key, const Operands& operands) {
    map_.emplace(key, operands);
    keys_.push_back(key);
  }
  size_t mark() const { return keys_.size(); }
  void forget_since(size_t mark) {
    for (; keys_.size() > mark; keys_.pop_back()) map_.erase(keys_.back());
  }

 private:
  absl::flat_hash_map<Key, Operands> map_;
  std::vector<Key> keys_;
};

class Emitter {
 public:
  Emitter(ir::Analyses& analyses, const PtxOptions& options);
  StatusOr<PtxModule> run();

 private:
  using Kernel = ir::Kernel;
  using Op = ir::Op;
  using OpId = ir::OpId;
  using RegionId = ir::RegionId;
  using Scalar = ir::Scalar;
  using Type = ir::Type;
  using ValueId = ir::ValueId;

  // What the entry block computes at most once.
  enum class Entry : uint8_t {
    kTidX,
    kTidY,
    kTidZ,
    kCtaX,
    kCtaY,
    kCtaZ,
    kNtidX,
    kNtidY,
    kNtidZ,
    kNctaX,
    kNctaY,
    kNctaZ,
    kLinearThread,
    kLane,
    kWarp,
    kAllLanes,
    kArena,
    kArenaField,
    kLocals,
  };
  static constexpr int kEntryCount = 19;

  struct View {
    int param = -1;  // of the parameter behind it
    bool in_arena = false;
    std::optional<Operand> base;              // its start, where neither of the above alone says it
    int64_t bytes = 0;                        // from there
    absl::InlinedVector<ValueId, 4> extents;  // subviews and dynamic shared memory
  };
  struct Index {
    Operand operand;
    Scalar scalar;  // i32 or i64
  };

  // --- The module (ptx.cc) ---
  PtxModule assemble_module();
  std::string header() const;
  std::string describe(const ir::ParamSlot& slot) const;
  std::string param_name(size_t slot) const;
  // Makes the module's PTX version one that has the feature.
  void use(ir::Feature feature) { version_ = std::max(version_, info(feature).ptx_version); }
  bool target_has(ir::Feature feature) const { return has(target_, feature); }
  void emit_region(RegionId region);
  void emit_op(OpId id, const Op& op);
  bool is_supported(OpId id, const Op& op);
  // What is printed next comes from this op.
  void set_current_op(OpId id);
  void error(OpId id, std::string message, std::string fix);

  // --- Values (ptx_values.cc) ---
  Type type(ValueId value) const { return kernel_.type(value); }
  // The operands of a value; as many as layout_of says.
  Operand* elements(ValueId value) { return &pool_[first_[ir::index_of(value)]]; }
  // Gives a value its registers, which it shares with its home.
  Operand* define(ValueId value);
  // Element `i`, or the only one of a scalar; of packed elements, a 16-bit register or constant.
  Operand lane(ValueId value, int i);
  // The same as f32; 16-bit floats only. `widen` writes it into d.
  Operand wide_lane(ValueId value, int i);
  void widen(ValueId value, int i, const Operand& d);
  // A register with the operand's content: constants are moved into a fresh one.
  Operand in_register(const Operand& operand);
  Operand fresh(RegClass c) { return registers_.fresh(c); }
  // Defines a result of 16-bit elements: `half(i, d)` writes element i into the 16-bit register d;
  // `single(i)` returns it as an f32 still to be rounded.
  void define_halves(ValueId result, absl::FunctionRef<void(int, const Operand&)> half);
  void define_rounded(ValueId result, absl::FunctionRef<Operand(int)> single);
  // to = from, all at once.
  void move_values(OpId at, absl::Span<const ValueId> to, absl::Span<const ValueId> from);
  void move(const Operand& to, const Operand& from);
  void rename(const Op& op);
  struct Source {
    ValueId value;
    int lane;
  };
  // Makes `result` of these elements.
  void gather(ValueId result, absl::Span<const Source> sources);
  // Byte i of a 32-bit register in one of its own, with zeros or its sign above.
  Operand byte(const Operand& word, int i, bool sign);
  // The low bytes of up to four operands in one of 32 bits.
  Operand packed_bytes(absl::Span<const Operand> bytes);
  // Defines a result of 8-bit elements: the low byte of `byte_of(i)` is element i.
  void define_bytes(ValueId result, absl::FunctionRef<Operand(int)> byte_of);
  // Two 16-bit operands in one of 32 bits.
  Operand packed(const Operand& low, const Operand& high);
  void emit_const(const Op& op);
  void emit_pack(const Op& op);
  void emit_extract(const Op& op);
  void emit_splat(const Op& op);

  // --- The entry block (ptx_entry.cc) ---
  Operand entry(Entry what);
  Operand compute_entry(Entry what);
  Operand special(absl::string_view name);
  Operand coordinate(Entry first, int64_t axis);
  Operand extent_of_block(int64_t axis);
  Operand param_slot(ir::SlotKind kind, int param, int dim, Scalar as);
  Operand launch_slot(OpId at_launch);
  Operand load_slot(int index, Scalar as);
  Operand address_of_param(int param);
  // The eviction policy that an access asks for, if it does.
  OptionalOperand<Operand> policy_of(const Op& op);
  void load_params();
  // The op's mask of lanes; where it names none, those that the warp has.
  Operand mask(const Op& op);

  // --- Arithmetic (ptx_arith.cc, ptx_convert.cc) ---
  void emit_elementwise(const Op& op);
  void emit_regular(const Op& op);
  void emit_in_halves(const Op& op, const Instruction& instruction);
  bool comes_in_pairs(const Op& op, const Instruction& instruction);
  void emit_in_pairs(const Op& op, const Instruction& instruction);
  // Elements 2i and 2i + 1 of an f32 vector or fragment in 64 bits.
  Operand wide_pair(ValueId value, int i);
  void print(absl::string_view mnemonic, const Operand& d, absl::Span<const Spelled> operands);
  void emit_convert_rounded(const Op& op);
  void emit_neg(const Op& op);
  void emit_abs(const Op& op);
  void emit_shl(const Op& op);
  void emit_bit_count(const Op& op);
  void emit_equal(const Op& op);
  void emit_select(const Op& op);
  void emit_convert(const Op& op);
  // An element in a type that PTX converts from, without a change of its number: one that is only
  // kept is widened.
  struct Element {
    Scalar scalar;
    Operand operand;
  };
  Element computable(ValueId value, int i);
  // The same as an f32, of a type whose numbers f32 holds.
  Operand single(ValueId value, int i);
  // The same of any type, in a register, so that rounding it once more is exact.
  Operand single_or_odd(ValueId value, int i);
  void define_tf32(ValueId result, ValueId source);
  void define_float8(ValueId result, ValueId source, absl::string_view rounding);
  void emit_e2m1_pack(const Op& op);
  void emit_e2m1_unpack(const Op& op);
  void convert(Scalar from, Scalar to, const Operand& source, const Operand& d);
  void convert_to_bool(Scalar from, const Operand& source, const Operand& d);
  // An f32 that rounds to bf16 as the source does.
  Operand rounded_to_odd(Scalar from, const Operand& source);

  // --- Memory (ptx_memory.cc, ptx_views.cc) ---
  void emit_load(OpId id, const Op& op);
  void emit_store(OpId id, const Op& op);
  void emit_atomic(OpId id, const Op& op);
  void emit_atomic_access(OpId id, const Op& op);
  void emit_prefetch(OpId id, const Op& op);
  void emit_copy_async(OpId id, const Op& op);
  void emit_named_barrier(const Op& op);
  std::string mbarrier_order(const Op& op, ir::MemoryOrder strong);
  void emit_mbarrier(OpId id, const Op& op);
  void emit_mbarrier_wait(OpId id, const Op& op);
  void emit_mbarrier_fence();
  void emit_store_async(OpId id, const Op& op);
  void emit_fence_async(const Op& op);
  void emit_bulk(const Op& op);
  // Where a copy of a box begins in the tensor.
  struct Box {
    std::string dimensions;  // "2d"
    Operand map;
    absl::InlinedVector<Operand, ir::kMaxTensorMapRank> coordinates;

    Vector place() const {
      return {coordinates.data(), static_cast<int>(coordinates.size()), /*braced=*/true};
    }
  };
  Box box_at(const Op& op);
  void emit_tensor_map(OpId id, const Op& op);
  void emit_tensor_map_replace(const Op& op);
  void emit_tma_load(const Op& op);
  void emit_tma_store(const Op& op);
  void emit_tma_prefetch(const Op& op);
  void emit_bulk_prefetch(const Op& op);
  void emit_set_max_registers(const Op& op);
  void emit_fence(const Op& op);
  void load_bools(const std::string& mnemonic, Type view, Address at, Operand* d, int count,
                  const OptionalOperand<Operand>& policy);
  void store_bools(const std::string& mnemonic, Type view, Address at, ValueId value,
                   const OptionalOperand<Operand>& policy);
  void for_each_access(Type view, RegLayout layout, int bytes,
                       absl::FunctionRef<void(int, int, absl::string_view)> access);
  bool is_accessible(OpId id, const Op& op);
  // As instructions spell where a view lies; empty where none reaches it.
  static absl::string_view state_space(Type view);
  std::string cache_modifiers(const Op& op);
  int widest_access(Type view) const;
  bool may_use_read_only_path(const Op& op);
  const View& view_of(ValueId value) {
    const int index = view_index_[ir::index_of(value)];
    HEDDLE_CHECK(index >= 0, "a view has no address yet");
    return views_[static_cast<size_t>(index)];
  }
  View& add_view(ValueId value);
  void emit_shared(OpId id, const Op& op);
  void emit_dynamic_shared(const Op& op);
  void emit_local(OpId id, const Op& op);
  void emit_table(const Op& op);
  std::string table_name(size_t index) const;
  void emit_subview(OpId id, const Op& op);
  void emit_map_shared(const Op& op);
  void emit_pointer(const Op& op);
  void emit_address(OpId id, const Op& op);
  // Where a view starts.
  Address start_of(ValueId view);
  void emit_layout_query(const Op& op);
  Index extent(ValueId view, int dim);
  Index stride(ValueId view, int dim);
  Operand converted(const Index& index, Scalar to);
  Operand base_of(const View& view);
  Operand near_address(const Address& at);
  void generic_address(const Address& at, const Operand& d);
  Operand scaled(const Operand& base, ValueId index, int size);
  Operand moved_base(Operand base, const SplitOffset& offset, int size);
  Operand moved(const Operand& base, const SplitOffset::Term& term, int size);
  Operand advanced(const Operand& field, const SplitOffset::Term& term);
  // Where the op accesses the view.
  Address address(OpId id, ValueId view);
  void emit_bounds(const Op& op);
  // Where there is a check, and checks are asked for.
  void check_bounds(OpId id, ValueId view, ValueId check);
  void fail_outside(OpId id, ValueId view, const Operand& inside);

  // --- Control flow (ptx_control.cc) ---
  void emit_for(OpId id, const Op& op);
  void emit_while(OpId id, const Op& op);
  void emit_if(OpId id, const Op& op);
  bool can_if_convert(const Op& op);
  void emit_if_converted(OpId id, const Op& op, const Operand& predicate);
  void emit_branch(RegionId region);
  void emit_out_of_line(RegionId region, Label start, Label end);
  bool is_unreachable(RegionId region) const;
  RegionId cold_branch(const Op& op) const;
  struct Bound {
    bool backwards;      // the step is negative
    bool compare_next;   // i + step cannot wrap
    bool compare_limit;  // stop - step cannot wrap
    bool distance_fits;  // stop - start cannot wrap within a million trips by a constant step
  };
  Bound bound_of(const Op& op);
  bool is_empty(RegionId region);
  bool hands_nothing(RegionId region);
  void hand_over(RegionId region);
  // Ends a region: takes its way, or hands over what it yields and jumps where the IR says.
  void finish(RegionId region, Label next);
  void take(const JumpPlan::Way& way);
  void print_step(const JumpPlan::Step& step);
  Label target_of(const JumpPlan::Way& way);
  // Where a branch leads that prints nothing itself.
  std::optional<Label> shortcut(RegionId region, Label end);
  bool has_ways(OpId id, const Op& op) const;
  void emit_if_with_ways(OpId id, const Op& op);
  void define_all(absl::Span<const ValueId> values);
  Label new_label() { return {++labels_}; }
  bool is_used(Label label) const { return targets_.contains(label.number); }
  Label start_of_region(RegionId region);
  Label behind(OpId op);
  void branch(const Operand& condition, bool when, Label target, bool uniform);
  void jump(Label target);
  void put_label(Label label);
  bool warp_agrees(absl::Span<const ValueId> values);

  // --- Block, warp, tensor cores (ptx_warp.cc, ptx_tensor.cc) ---
  void emit_warp_sync(const Op& op);
  void emit_shuffle(const Op& op);
  struct Lanes {
    Operand lane, mask;
    std::optional<Operand> in_reach;  // whether `lane` counts at all
  };
  void shuffle_word(const Op& op, const Operand& source, const Lanes& from, const Operand& d);
  std::optional<bool> source_lane_in_range(const Op& op);
  void emit_vote(const Op& op);
  void emit_ballot(const Op& op);
  void emit_match(const Op& op);
  void emit_redux(const Op& op);
  void emit_elect(const Op& op);
  void emit_matrices(OpId id, const Op& op);
  void emit_assert(OpId id, const Op& op);
  void emit_printf(const Op& op);
  absl::InlinedVector<Operand, 2> emit_text(const Op& op, absl::string_view ptx, int element);
  void emit_texts(const Op& op, absl::string_view ptx);
  void emit_inline_ptx(const Op& op);
  void emit_custom(OpId id, const Op& op);
  void fail_unless(OpId id, const Operand& condition, absl::string_view message);
  std::string global_string(absl::string_view text);
  void emit_smem_desc(OpId id, const Op& op);
  Operand address_field(const Operand& address);
  Operand field_of(const Operand& address);
  void emit_wgmma_begin(const Op& op);
  bool keeps_registers(OpId id, ValueId before, ValueId after);
  void emit_wgmma(OpId id, const Op& op);
  void emit_mma(const Op& op);
  Vector braced_registers(ValueId value);
  void emit_wgmma_commit();
  void emit_wgmma_wait(OpId id, const Op& op);

  const Kernel& kernel_;
  const PtxOptions options_;
  const ir::Target& target_;
  ir::Analyses& analyses_;
  const JumpPlan jumps_;
  RegisterPlan plan_;
  const ir::ParamLayout params_;
  const ir::SharedLayout shared_;
  const ir::SharedLayout locals_;
  std::vector<ir::StringId> tables_;  // the data of each
  const bool has_dynamic_shared_;
  const bool starts_early_;  // while the grid before may still write what this one reads
  const bool shared_is_dynamic_;
  const std::string name_;

  RegisterFile registers_;
  std::vector<uint32_t> first_;  // of each value's operands in pool_
  std::vector<Operand> pool_;
  std::vector<uint8_t> defined_;  // values whose operands stand in pool_
  PredicatePrefix guard_;         // of loads and stores in a branch that is not jumped over
  ScopedCache cache_;             // addresses and unpacked halves
  std::vector<View> views_;
  std::vector<int> view_index_;

  PtxText entry_text_;
  PtxText body_;
  PtxText cold_;  // branches that hardly ever run, behind the kernel's end
  PtxText* out_ = &body_;
  std::array<std::optional<Operand>, kEntryCount> entry_values_;
  absl::flat_hash_map<int, Operand> slot_values_;
  std::vector<std::optional<Operand>> param_addresses_;
  absl::flat_hash_map<int64_t, Operand> policies_;
  std::vector<absl::string_view> files_;
  ir::LocId loc_ = ir::LocId::kNone;  // of what is printed last
  std::vector<std::string> strings_;
  bool uses_arena_ = false;
  bool uses_assert_ = false;
  int print_bytes_ = 0;        // of the longest printf's values; 0: there is none
  bool wgmma_fenced_ = false;  // since the last commit, on every path to here
  int version_;
  int labels_ = 0;
  absl::flat_hash_map<RegionId, Label> starts_;  // of regions that ways lead to
  absl::flat_hash_map<OpId, Label> behinds_;
  absl::flat_hash_set<int> targets_;  // labels that something jumps to
  bool reachable_ = true;             // whether control comes to what is printed next
  std::vector<Copy> copies_, moves_;  // scratch

  ir::Diagnostics diagnostics_;
};

}  // namespace heddle::codegen
