// What single ops ask for beyond their row of the op table.

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/format.h"
#include "heddle/ir/launch_program.h"
#include "heddle/ir/literal.h"
#include "heddle/ir/verifier_internal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

// A shared array of more bytes fits nowhere, and sums of sizes must not overflow.
constexpr int64_t kMaxArrayBytes = int64_t{1} << 30;

constexpr int64_t kMaxLocalBytes = int64_t{1} << 18;
constexpr int64_t kMaxTableBytes = int64_t{1} << 16;

constexpr int64_t kMaxWgmmaColumns = 256;

class RuleCheck {
 public:
  RuleCheck(Verification& v, OpId id) : v_(v), kernel_(v.kernel()), id_(id), op_(kernel_.op(id)) {}

  void run() {
    switch (op_.opcode) {
      case Opcode::kConst:
        return check_const();
      case Opcode::kUndef:
        return require_data_result();
      case Opcode::kVar:
        return check_var();
      case Opcode::kVarLoad:
        return require_result(operand_type(0).content(), "the variable holds");
      case Opcode::kVarStore:
        return check_var_store();
      case Opcode::kFor:
        return check_for();
      case Opcode::kBitcast:
        return check_bitcast();
      case Opcode::kE2m1Pack:
        return check_e2m1(operand_type(0), result_type(), Scalar::kF32);
      case Opcode::kE2m1Unpack:
        return check_e2m1(result_type(), operand_type(0), Scalar::kF16);
      case Opcode::kPack:
        return check_pack();
      case Opcode::kExtract:
        return check_extract();
      case Opcode::kSlice:
        return check_slice();
      case Opcode::kSplat:
        return check_splat();
      case Opcode::kExtent:
      case Opcode::kStride:
        return check_dim();
      case Opcode::kShared:
        return check_array(Space::kShared, false, kMaxArrayBytes);
      case Opcode::kLocal:
        return check_array(Space::kLocal, false, kMaxLocalBytes);
      case Opcode::kTable:
        return check_table();
      case Opcode::kDynamicShared:
        return check_view_result(Space::kShared, 1);
      case Opcode::kSubview:
        return check_subview();
      case Opcode::kBounds:
        return check_bounds();
      case Opcode::kLoad:
        check_volatile();
        check_cache(for_loads);
        return check_access(result_type());
      case Opcode::kStore:
        return check_store();
      case Opcode::kAtomic:
        return check_atomic();
      case Opcode::kAtomicCas:
        return check_compare_and_swap();
      case Opcode::kAtomicLoad:
        return check_ordered(result_type(), MemoryOrder::kAcquire);
      case Opcode::kAtomicStore:
        check_writable("atomic store");
        return check_ordered(operand_type(1), MemoryOrder::kRelease);
      case Opcode::kPrefetch:
        return require_global("prefetch");
      case Opcode::kAssumeRange:
        return check_assume_range();
      case Opcode::kAtLaunch:
        return check_at_launch();
      case Opcode::kPointer:
        return check_pointer(result_type());
      case Opcode::kAddress:
        return check_address(operand_type(0));
      case Opcode::kBarrierSync:
      case Opcode::kBarrierArrive:
        return check_barrier_number();
      case Opcode::kMapShared:
        return check_map_shared();
      case Opcode::kCopyAsync:
      case Opcode::kCopyAsyncIf:
        return check_copy_async();
      case Opcode::kMbarrierInit:
      case Opcode::kMbarrierWait:
        check_mbarrier(0);
        return check_own(0);
      case Opcode::kMbarrierArrive:
      case Opcode::kMbarrierExpectTx:
        return check_mbarrier(0);
      case Opcode::kBulkLoad:
        return check_bulk_load();
      case Opcode::kBulkCopy:
        return check_bulk_copy();
      case Opcode::kBulkStore:
        check_writable("bulk store");
        return check_bulk(operand_type(0), operand_type(1), Space::kShared);
      case Opcode::kBulkReduce:
        return check_bulk_reduce();
      case Opcode::kBulkPrefetch:
        return require_global("bulk prefetch");
      case Opcode::kFence:
        return check_fence();
      case Opcode::kLdMatrix:
        return check_matrices(result_type());
      case Opcode::kStMatrix:
        check_writable("store of matrices");
        return check_matrices(operand_type(1));
      case Opcode::kRedux:
        return check_redux();
      case Opcode::kPrintf:
        return check_printf();
      case Opcode::kInlinePtx:
      case Opcode::kInlinePtxVolatile:
        return check_inline_ptx();
      case Opcode::kSmemDesc:
        return check_descriptor();
      case Opcode::kWgmmaBegin:
        return check_accumulator(result_type());
      case Opcode::kWgmma:
        return check_wgmma();
#define HEDDLE_OP(...)
#define HEDDLE_ELEMENTWISE(name, ...) case Opcode::k##name:
#include "heddle/ir/ops.def"
#undef HEDDLE_OP
        if (op_.opcode == Opcode::kConvertRounded) check_convert_rounded();
        return;
      case Opcode::kYield:
      case Opcode::kWhile:
      case Opcode::kIf:
      case Opcode::kThreadIdx:
      case Opcode::kBlockIdx:
      case Opcode::kBlockDim:
      case Opcode::kGridDim:
      case Opcode::kLaneId:
      case Opcode::kWarpId:
      case Opcode::kBarrier:
      case Opcode::kShflIdx:
      case Opcode::kShflUp:
      case Opcode::kShflDown:
      case Opcode::kShflXor:
      case Opcode::kVoteAny:
      case Opcode::kVoteAll:
      case Opcode::kVoteUni:
      case Opcode::kBallot:
      case Opcode::kMatchAny:
      case Opcode::kMatchAll:
      case Opcode::kElect:
      case Opcode::kActiveMask:
      case Opcode::kWarpSync:
      case Opcode::kAssert:
      case Opcode::kClusterRank:
      case Opcode::kClusterArrive:
      case Opcode::kClusterWait:
      case Opcode::kBulkCommit:
      case Opcode::kBulkWait:
      case Opcode::kBulkWaitRead:
      case Opcode::kFenceMbarrierInit:
      case Opcode::kGridDependencyWait:
      case Opcode::kGridDependencyLaunch:
      case Opcode::kSetMaxRegisters:
      case Opcode::kAssumeUniform:
      case Opcode::kExpect:
      case Opcode::kUnreachable:
      case Opcode::kCopyCommit:
      case Opcode::kCopyWait:
      case Opcode::kTrap:
      case Opcode::kClock:
      case Opcode::kGlobalTimer:
      case Opcode::kNanoSleep:
      case Opcode::kWgmmaCommit:
      case Opcode::kWgmmaWait:
      case Opcode::kFenceAsync:
        return;  // the row says it all
    }
  }

 private:
  void error(std::string message, std::string fix = {}) {
    v_.error(id_, std::move(message), std::move(fix));
  }
  Type operand_type(size_t i) const { return kernel_.type(op_.operands[i]); }
  Type result_type() const { return kernel_.type(op_.result()); }
  std::string result_text() const {
    return absl::StrCat("the result of ", v_.quoted(id_), " is ", to_string(result_type()));
  }

  static bool has_elements(Type type) { return type.is_data() && type.kind != TypeKind::kScalar; }

  // --- Values ---

  void check_const() {
    const auto bits = static_cast<uint64_t>(*op_.attr(AttrKey::kBits));
    const int width = value_bits(result_type().scalar);
    if (width == 64 || bits >> width == 0) return;
    error(absl::StrCat("the constant ", literal_to_string(result_type().scalar, bits),
                       " has more bits than ", info(result_type().scalar).name, ", which has ",
                       width));
  }

  void require_data_result() {
    if (!result_type().is_data()) error(absl::StrCat(result_text(), ", but must be data"));
  }

  void require_result(Type wanted, absl::string_view because) {
    if (result_type() == wanted) return;
    error(absl::StrCat(result_text(), ", but ", because, " ", to_string(wanted)));
  }

  void check_var() {
    if (v_.stage() == Stage::kTraced) return;
    error("a variable is left, but from here on values are immutable",
          "run the pass promote-vars first");
  }

  void check_var_store() {
    const Type content = operand_type(0).content();
    if (operand_type(1) == content) return;
    error(absl::StrCat("the variable holds ", to_string(content), ", but is given ",
                       to_string(operand_type(1))),
          "convert the value");
  }

  void check_for() {
    const Op* const step = kernel_.def(op_.operands[2]);
    const bool zero =
        step != nullptr && step->opcode == Opcode::kConst && step->attr_or(AttrKey::kBits, 1) == 0;
    if (!zero) return;
    error("the loop's step is 0, so the loop would not end", "use a step that is not zero");
  }

  void check_bitcast() {
    const Scalar from = operand_type(0).scalar;
    const Scalar to = result_type().scalar;
    const bool bools = from == Scalar::kBool || to == Scalar::kBool;
    if (info(from).bits == info(to).bits && !bools) return;
    error(absl::StrCat("'bitcast' keeps the bits, but ", info(from).name, " has ", value_bits(from),
                       " and ", info(to).name, " has ", value_bits(to)),
          "use convert to keep the value instead");
  }

  // --- Vectors and fragments ---

  void check_pack() {
    int64_t count = 0;
    for (size_t i = 0; i < op_.operands.size(); ++i) {
      const Type type = operand_type(i);
      count += type.count;
      if (type.scalar == result_type().scalar) continue;
      error(absl::StrCat("operand ", i + 1, " of 'pack' has elements of ", info(type.scalar).name,
                         ", but its result has ", info(result_type().scalar).name),
            "convert them to one type");
      return;
    }
    if (!has_elements(result_type())) {
      error(absl::StrCat(result_text(), ", but must be a vector or a fragment"));
    } else if (count != result_type().count) {
      error(absl::StrCat("'pack' is given ", counted(count, "element"), ", but its result has ",
                         result_type().count));
    }
  }

  // Whether operand 0 has elements to take.
  bool takes_elements() {
    if (has_elements(operand_type(0))) return true;
    error(absl::StrCat("operand 1 of ", v_.quoted(id_), " is ", to_string(operand_type(0)),
                       ", but must be a vector or a fragment"));
    return false;
  }

  void check_elements(int64_t count) {
    const int64_t index = *op_.attr(AttrKey::kIndex);
    if (index + count <= operand_type(0).count) return;
    const std::string taken = count == 1
                                  ? absl::StrCat("element ", index)
                                  : absl::StrCat("elements ", index, " to ", index + count - 1);
    error(absl::StrCat(v_.quoted(id_), " takes ", taken, ", but ", to_string(operand_type(0)),
                       " ends at ", operand_type(0).count - 1));
  }

  void check_extract() {
    if (!takes_elements()) return;
    require_result(operand_type(0).element(), "the elements are");
    check_elements(1);
  }

  void check_slice() {
    if (!takes_elements()) return;
    if (!has_elements(result_type()) || result_type().scalar != operand_type(0).scalar) {
      error(absl::StrCat(result_text(), ", but must be a vector or a fragment of ",
                         info(operand_type(0).scalar).name));
      return;
    }
    check_elements(result_type().count);
  }

  void check_splat() {
    if (operand_type(0).is_scalar() && has_elements(result_type()) &&
        result_type().scalar == operand_type(0).scalar) {
      return;
    }
    error(absl::StrCat("'splat' makes a vector or a fragment of one element, not ",
                       to_string(result_type()), " of ", to_string(operand_type(0))));
  }

  // --- Views and memory ---

  void check_dim() {
    const int rank = operand_type(0).rank;
    const int64_t dim = *op_.attr(AttrKey::kDim);
    if (dim < rank) return;
    error(absl::StrCat(v_.quoted(id_), " asks for mode ", dim, " of ", v_.name(op_.operands[0]),
                       ", which has ", counted(rank, "mode")),
          "modes are counted from 0");
  }

  void check_view_result(Space space, int rank, bool read_only = false) {
    const Type type = result_type();
    if (type.is_view() && type == Type::view(type.scalar, space, rank, read_only)) return;
    error(absl::StrCat(result_text(), ", but must be a ", read_only ? "read-only" : "writable",
                       " view of ", counted(rank, "mode"), " in ", name_of(space), " memory"));
  }

  void check_array(Space space, bool read_only, int64_t most) {
    const absl::Span<const int64_t> extents = kernel_.ints(*op_.attr(AttrKey::kExtents));
    check_view_result(space, static_cast<int>(extents.size()), read_only);
    int64_t bytes = bytes_of(result_type().scalar);
    for (const int64_t extent : extents) {
      if (extent < 1) {
        error(absl::StrCat("a ", name_of(space),
                           " array has at least one element in each mode, not ", extent));
        return;
      }
      if (bytes > most / extent) {
        error(absl::StrCat("a ", name_of(space), " array of [", absl::StrJoin(extents, ", "),
                           "] x ", info(result_type().scalar).name, " fits in no GPU's ",
                           name_of(space), " memory"));
        return;
      }
      bytes *= extent;
    }
  }

  void check_table() {
    check_array(Space::kConst, true, kMaxTableBytes);
    int64_t bytes = bytes_of(result_type().scalar);
    for (const int64_t extent : kernel_.ints(*op_.attr(AttrKey::kExtents))) bytes *= extent;
    const StringId data{static_cast<uint32_t>(*op_.attr(AttrKey::kData))};
    const absl::string_view digits = kernel_.text(data);
    const bool is_hex = std::all_of(digits.begin(), digits.end(), [](char c) {
      return absl::ascii_isxdigit(static_cast<unsigned char>(c));
    });
    if (is_hex && static_cast<int64_t>(digits.size()) == 2 * bytes) return;
    if (bytes == 0) return;  // reported as an array without elements
    error(absl::StrCat("the data of this table is not the ", bytes,
                       " bytes of its elements in hexadecimal"),
          "write two digits for each byte");
  }

  void check_subview() {
    const Type view = operand_type(0);
    const Type type = result_type();
    if (type != Type::view(view.scalar, view.space, static_cast<int>(op_.operands.size()) - 2,
                           type.read_only)) {
      error(absl::StrCat(result_text(), ", but must be a view of ", info(view.scalar).name, " in ",
                         name_of(view.space), " memory with a mode for each extent"));
    } else if (view.read_only && !type.read_only) {
      error("a part of a read-only view is read-only too",
            absl::StrCat("make the result view<const ", info(view.scalar).name, ", ...>"));
    }
  }

  void check_bounds() {
    const int rank = operand_type(0).rank;
    const auto given = static_cast<int64_t>(op_.operands.size()) - 1;
    int64_t named = 0;
    if (const auto tensor = op_.attr(AttrKey::kTensor)) {
      const absl::string_view text = kernel_.text(StringId{static_cast<uint32_t>(*tensor)});
      named = std::count(text.begin(), text.end(), '%');
    }
    if (given != rank + 2 * named) {
      error(absl::StrCat("'bounds' is given ", counted(given, "coordinate"), ", but ",
                         v_.name(op_.operands[0]), " has ", counted(rank, "mode"),
                         named == 0
                             ? ""
                             : absl::StrCat(", and its tensor names ", counted(named, "number"),
                                            " with an extent each")));
    }
    const int64_t dim = op_.attr_or(AttrKey::kDim, 0);
    if (dim < 0 || dim >= rank) {
      error(absl::StrCat("mode ", dim, " of ", v_.name(op_.operands[0]), ", which has ",
                         counted(rank, "mode")));
    }
  }

  // What a load or a store moves at once.
  void check_access(Type type) {
    const bool power_of_two = (type.count & (type.count - 1)) == 0;
    if (power_of_two && type.bytes() <= kernel_.target->max_access_bytes) return;
    error(absl::StrCat("a memory access moves 1, 2, 4, 8 or 16 elements and at most ",
                       kernel_.target->max_access_bytes, " bytes on ", kernel_.target->name,
                       ", not ", type.count, " x ", info(type.scalar).name),
          absl::StrCat("access it in parts", first_that_moves(type.bytes())));
  }

  // Nothing where none does, or this one.
  std::string first_that_moves(int bytes) const {
    for (const Target& target : kTargets) {
      if (target.max_access_bytes < bytes) continue;
      if (kernel_.target->max_access_bytes >= bytes) break;
      return absl::StrCat(", or compile the kernel for ", target.name, ", the first that moves ",
                          bytes, " bytes");
    }
    return "";
  }

  void require_global(absl::string_view what) {
    if (operand_type(0).space == Space::kGlobal) return;
    error(absl::StrCat("a ", what, " is for global memory, and ", v_.name(op_.operands[0]),
                       " is in ", name_of(operand_type(0).space), " memory"),
          "leave it out");
  }

  void check_volatile() {
    const Space space = operand_type(0).space;
    const bool own = space == Space::kLocal || space == Space::kConst || space == Space::kParam;
    if (!own || op_.attr_or(AttrKey::kVolatile, 0) == 0) return;
    error(absl::StrCat("a volatile access to ", name_of(space),
                       " memory, where nobody else can see or change anything"),
          "leave out as_volatile()");
  }

  void check_cache(bool (*allowed)(CacheHint)) {
    const std::optional<int64_t> hint = op_.attr(AttrKey::kCache);
    if (!hint && !op_.attr(AttrKey::kL2Evict)) return;
    require_global("cache hint");
    if (hint && !allowed(static_cast<CacheHint>(*hint))) {
      error(absl::StrCat("the cache hint '", kCacheHintNames[*hint], "' is not for a ",
                         info(op_).mnemonic),
            "use one that is");
    }
    if (op_.attr_or(AttrKey::kVolatile, 0) != 0) {
      error("a volatile access takes no cache hint", "leave out one of the two");
    }
  }

  void check_store() {
    check_writable("store");
    check_volatile();
    check_cache(for_stores);
    check_access(operand_type(1));
  }
  void check_writable(absl::string_view what) {
    const Type view = operand_type(0);
    if (view.read_only || view.space == Space::kParam || view.space == Space::kConst) {
      error(absl::StrCat("this ", what, " goes through ", v_.name(op_.operands[0]),
                         ", which is read-only"),
            "declare the tensor without const, Tensor<T> instead of Tensor<const T>");
    }
  }

  void check_map_shared() {
    const Type from = operand_type(0);
    const Type to = result_type();
    if (from.space != Space::kShared) {
      error(absl::StrCat("'map_shared' maps shared memory, and ", v_.name(op_.operands[0]),
                         " is in ", name_of(from.space), " memory"),
            "map the block's own array");
    } else if (to != Type::view(from.scalar, Space::kSharedCluster, from.rank, from.read_only)) {
      error(absl::StrCat(
          result_text(), ", but must be ",
          to_string(Type::view(from.scalar, Space::kSharedCluster, from.rank, from.read_only))));
    }
  }

  void check_copy_async() {
    const Type to = operand_type(0);
    const Type from = operand_type(1);
    if (to.space != Space::kShared || from.space != Space::kGlobal || to.scalar != from.scalar) {
      error(absl::StrCat(v_.quoted(id_), " copies from global to shared memory, not from ",
                         to_string(from), " to ", to_string(to)),
            "load and store instead");
      return;
    }
    const int64_t bytes = *op_.attr(AttrKey::kWidth) * bytes_of(to.scalar);
    if (bytes == 4 || bytes == 8 || bytes == 16) return;
    error(absl::StrCat(v_.quoted(id_), " copies 4, 8 or 16 bytes, not ", bytes),
          "choose another width, or load and store instead");
  }

  void check_assume_range() {
    const IntFacts promised = promised_facts(op_);
    if (promised.min <= promised.max) return;
    error(absl::StrCat("'assume_range' from ", promised.min, " to ", promised.max,
                       " promises what no number keeps"),
          "both bounds are included, the lower one comes first");
  }

  void check_at_launch() {
    if (!result_type().is_scalar()) {
      return error(absl::StrCat(result_text(), ", but must be one number"));
    }
    const auto unknown = unknown_at_launch(kernel_, op_.operands[0]);
    if (!unknown) return;
    const OpId def = kernel_.value(*unknown).def;
    error(absl::StrCat(v_.quoted(id_), " of a value that the host cannot compute: it depends on ",
                       valid(def) ? v_.quoted(def) : v_.name(*unknown),
                       valid(def) ? v_.at_place(def) : ""),
          "make it of scalar parameters, extents and strides of parameters, and constants, by "
          "arithmetic of integers");
  }

  void check_barrier_number() {
    const auto number = kernel_.constant_int(op_.operands[0]);
    if (!number || (*number >= 1 && *number <= 15)) return;
    error(absl::StrCat("there is no named barrier ", *number),
          "a block's named barriers are 1 to 15; sync_threads() is that of all threads");
  }

  void check_pointer(Type view) {
    if (view.space == Space::kGlobal && view.rank == 1) return;
    error(absl::StrCat(result_text(), ", but must be a view of 1 mode in global memory"));
  }
  void check_address(Type view) {
    if (view.space == Space::kGlobal || is_shared(view)) return;
    error(absl::StrCat(v_.quoted(id_), " of ", name_of(view.space), " memory"),
          "global and shared memory have addresses");
  }
  // --- Mbarriers and bulk copies ---

  static bool is_shared(Type view) {
    return view.space == Space::kShared || view.space == Space::kSharedCluster;
  }
  void check_mbarrier(size_t operand) {
    const Type view = operand_type(operand);
    if (is_shared(view) && view.scalar == Scalar::kU64) return;
    error(
        absl::StrCat("an mbarrier is a u64 in shared memory, not an element of ", to_string(view)),
        "declare a shared array of u64 for it");
  }
  // Of the block's own shared memory.
  void check_own(size_t operand) {
    if (operand_type(operand).space != Space::kSharedCluster) return;
    error(
        absl::StrCat(v_.quoted(id_), " reaches the block's own shared memory alone, and ",
                     v_.name(op_.operands[operand]), " is in ",
                     name_of(operand_type(operand).space), " memory"),
        "take the block's own array; another block's mbarrier can be arrived at, or told of bytes");
  }

  // A copy between global memory and shared memory, in `own` where not of any block.
  void check_bulk(Type global, Type shared, Space own = Space::kNone) {
    const bool reaches = own == Space::kNone ? is_shared(shared) : shared.space == own;
    if (global.space == Space::kGlobal && reaches) return;
    error(absl::StrCat(v_.quoted(id_), " copies between global and ",
                       own == Space::kNone ? "" : "the block's own ", "shared memory, not between ",
                       to_string(global), " and ", to_string(shared)),
          "load and store instead");
  }
  void check_bulk_load() {
    check_mbarrier(3);
    check_bulk(operand_type(1), operand_type(0));
    if (op_.operands.size() < 5) return;
    // The mask says which blocks; the views, where in each.
    check_own(0);
    check_own(3);
  }
  void check_bulk_copy() {
    check_mbarrier(3);
    for (const size_t operand : {size_t{0}, size_t{3}}) {
      if (operand_type(operand).space == Space::kSharedCluster) continue;
      error(absl::StrCat(v_.quoted(id_), " goes to another block's shared memory, and ",
                         v_.name(op_.operands[operand]), " is ", to_string(operand_type(operand))),
            "map the array and the mbarrier to the other block by map_shared");
    }
    if (operand_type(1).space == Space::kShared) return;
    error(absl::StrCat(v_.quoted(id_), " takes the block's own shared memory, and ",
                       v_.name(op_.operands[1]), " is ", to_string(operand_type(1))),
          "copy from the block that has the data");
  }
  void check_bulk_reduce() {
    const Type to = operand_type(0);
    const auto op = enum_attr(AttrKey::kOp, AtomicOp::kAdd);
    const bool tells = op_.operands.size() > 3;
    if (to.space == Space::kGlobal) {
      check_writable("bulk reduction");
      check_bulk(to, operand_type(1), Space::kShared);
      if (tells) error("a bulk reduction in global memory tells no mbarrier", "commit and wait");
    } else if (!tells) {
      error(absl::StrCat("a bulk reduction in ", name_of(to.space),
                         " memory tells an mbarrier, and there is none"),
            "give it one in the memory of the same block");
    } else {
      check_bulk_copy();
      if (op_.attr(AttrKey::kL2Evict)) require_global("cache hint");
    }
    const Scalar from = operand_type(1).scalar;
    if (from != to.scalar) {
      error(absl::StrCat(v_.quoted(id_), " combines elements of one type, not ", info(from).name,
                         " and ", info(to.scalar).name),
            "convert the tile");
    }
    if (has_bulk_reduction(op, to.scalar, to.space)) return;
    error(absl::StrCat("a bulk reduction by ", kAtomicOpNames[static_cast<size_t>(op)], " in ",
                       name_of(to.space), " memory takes ", bulk_reduction_types(op, to.space),
                       ", not ", info(to.scalar).name),
          "use atomics");
  }

  // --- Atomics ---

  template <class Enum>
  Enum enum_attr(AttrKey key, Enum otherwise) const {
    return static_cast<Enum>(op_.attr_or(key, static_cast<int64_t>(otherwise)));
  }

  void check_atomic() {
    check_writable("atomic");
    const auto op = enum_attr(AttrKey::kOp, AtomicOp::kAdd);
    const Type element = result_type();
    const absl::string_view name = kAtomicOpNames[static_cast<size_t>(op)];
    if (!element.is_scalar()) {
      check_vector_atomic(op, element);
    } else if (!has_atomic(op, element.scalar, *kernel_.target)) {
      error(absl::StrCat("atomic ", name, " of ", to_string(element), " is not there on ",
                         kernel_.target->name, "; it takes ", atomic_types(op)),
            "convert the element, or update it with atomic.cas in a loop");
    }
    check_order();
  }

  void require_shared_or_global() {
    const Space space = operand_type(0).space;
    if (space == Space::kGlobal || is_shared(operand_type(0))) return;
    error(
        absl::StrCat("an atomic access to ", name_of(space), " memory, which no two threads share"),
        "read and write it as usual");
  }

  void check_vector_atomic(AtomicOp op, Type vector) {
    constexpr char kOneByOne[] = "update the elements one by one";
    const std::string what =
        absl::StrCat("atomic ", kAtomicOpNames[static_cast<size_t>(op)], " of ", to_string(vector));
    const VectorSum* const sum = op == AtomicOp::kAdd ? find_vector_sum(vector) : nullptr;
    if (sum == nullptr) {
      return error(absl::StrCat("no GPU has ", what,
                                "; of vectors there is add alone, of 2 or 4 f32 and of 2, 4 or 8 "
                                "f16 or bf16"),
                   kOneByOne);
    }
    if (sum->global_only && operand_type(0).space != Space::kGlobal) {
      return error(absl::StrCat(what, " is there in global memory alone, not in ",
                                name_of(operand_type(0).space)),
                   kOneByOne);
    }
    if (kernel_.target->sm >= sum->sm) return;
    const absl::string_view first = first_from(sum->sm).name;
    error(
        absl::StrCat(kernel_.target->name, " has no ", what, "; ", first, " is the first that has"),
        absl::StrCat("compile the kernel for ", first, ", or ", kOneByOne));
  }

  void check_compare_and_swap() {
    check_writable("atomic");
    const Type element = result_type();
    if (!element.is_scalar() || !has_compare_and_swap(element.scalar)) {
      error(absl::StrCat("atomic.cas takes one element of 16, 32 or 64 bits, not ",
                         to_string(element)),
            "use an integer of 32 bits");
    }
    check_order();
  }

  // An atomic load or store: one element, relaxed or `strong`.
  void check_ordered(Type element, MemoryOrder strong) {
    if (!element.is_scalar() || element.is_bool()) {
      error(absl::StrCat(v_.quoted(id_), " takes one element that is no bool, not ",
                         to_string(element)),
            "access it in parts");
    }
    const auto order = enum_attr(AttrKey::kOrder, MemoryOrder::kRelaxed);
    if (order != MemoryOrder::kRelaxed && order != strong) {
      const absl::string_view name = kMemoryOrderNames[static_cast<size_t>(strong)];
      error(absl::StrCat(v_.quoted(id_), " has no order '",
                         kMemoryOrderNames[static_cast<size_t>(order)], "'"),
            absl::StrCat("use relaxed or ", name, ", with a fence where that is too weak"));
    }
    require_shared_or_global();
    check_scope();
  }

  void check_order() {
    require_shared_or_global();
    if (enum_attr(AttrKey::kOrder, MemoryOrder::kRelaxed) == MemoryOrder::kSeqCst) {
      error(absl::StrCat(v_.quoted(id_), " has no order 'seq_cst'"),
            "use acq_rel, with a fence of order seq_cst before it");
    }
    check_scope();
  }

  void check_fence() {
    const auto order = enum_attr(AttrKey::kOrder, MemoryOrder::kAcqRel);
    if (order != MemoryOrder::kAcqRel && order != MemoryOrder::kSeqCst) {
      error(absl::StrCat("a fence has no order '", kMemoryOrderNames[static_cast<size_t>(order)],
                         "'"),
            "use acq_rel or seq_cst");
    }
    check_scope();
  }

  void check_scope() {
    const bool cluster = enum_attr(AttrKey::kScope, MemoryScope::kGpu) == MemoryScope::kCluster;
    if (cluster && kernel_.target->sm < 90) {
      error(absl::StrCat(kernel_.target->name, " has no clusters; sm_90 is the first that has"),
            "use the scope gpu");
    }
  }

  // --- Rounding, warps, text ---

  void check_convert_rounded() {
    const Scalar from = operand_type(0).scalar;
    const Scalar to = result_type().scalar;
    const auto is_wide_float = [](Scalar s) { return s == Scalar::kF32 || s == Scalar::kF64; };
    const bool to_integer = is_wide_float(from) && is_integer(to) && !info(to).storage_only;
    const bool narrows = from == Scalar::kF64 && to == Scalar::kF32;
    if (from == Scalar::kF32 && to == Scalar::kE8M0) return check_power_rounding();
    const bool from_integer = is_integer(from) && !info(from).storage_only &&
                              (to == Scalar::kF32 || (to == Scalar::kF64 && info(from).bits == 64));
    if (to_integer || narrows || from_integer) return;
    error(
        absl::StrCat("'convert.rounded' does not convert ", info(from).name, " to ", info(to).name),
        is_wide_float(from) || is_wide_float(to)
            ? "use convert: nothing is rounded, or by way of f32"
            : "convert by way of f32");
  }

  void check_power_rounding() {
    const auto rounding = enum_attr(AttrKey::kRounding, Rounding::kUp);
    if (rounding == Rounding::kUp || rounding == Rounding::kZero) return;
    error(absl::StrCat("'convert.rounded' to e8m0 has no rounding '",
                       kRoundingNames[static_cast<size_t>(rounding)], "'"),
          "use up or zero");
  }

  // Pairs of 4-bit floats: of two neighbours each.
  void check_e2m1(Type wide, Type pairs, Scalar scalar) {
    const bool shapes =
        wide.count == 2 * pairs.count && pairs.scalar == Scalar::kE2M1X2 && wide.scalar == scalar &&
        (pairs.is_scalar() ? wide.kind == TypeKind::kVector : wide.kind == pairs.kind);
    if (shapes) return;
    error(absl::StrCat(v_.quoted(id_), " is between 2n ", info(scalar).name,
                       " and n e2m1x2, both in a vector or both in a fragment, not between ",
                       to_string(wide), " and ", to_string(pairs)),
          absl::StrCat("give it vectors of ", info(scalar).name, " and half as many e2m1x2"));
  }

  void check_redux() {
    const auto op = enum_attr(AttrKey::kOp, AtomicOp::kAdd);
    if (op <= AtomicOp::kXor) return;
    error(absl::StrCat("'redux' has no op '", kAtomicOpNames[static_cast<size_t>(op)], "'"),
          "use add, min, max, and, or or xor");
  }

  void check_printf() {
    std::vector<Type> types;
    for (const ValueId operand : op_.operands) types.push_back(kernel_.type(operand));
    const StringId format{static_cast<uint32_t>(*op_.attr(AttrKey::kMessage))};
    const absl::Status wrong = check_format(kernel_.text(format), types);
    if (!wrong.ok()) error(std::string(wrong.message()), "make the format and the values agree");
  }

  void check_inline_ptx() {
    const auto values = static_cast<int64_t>(op_.results.size() + op_.operands.size());
    const StringId text{static_cast<uint32_t>(*op_.attr(AttrKey::kMessage))};
    std::vector<bool> named(static_cast<size_t>(values));
    const auto use = [&](int64_t number) {
      if (number < values) named[static_cast<size_t>(number)] = true;
      return number < values;
    };
    const absl::Status status = for_each_ptx_part(
        kernel_.text(text), [](absl::string_view) {},
        [&](int64_t number) {
          if (use(number)) return absl::OkStatus();
          return absl::InvalidArgumentError(absl::StrCat(
              "%", number, " of the inline PTX names none of its ", counted(values, "value")));
        });
    constexpr char kFix[] =
        "%0, %1, ... are the results and then the inputs; %% is a percent sign, as in %%tid.x";
    if (!status.ok()) return error(std::string(status.message()), kFix);
    for (int64_t i = 0; i < values; ++i) {
      if (named[static_cast<size_t>(i)]) continue;
      error(absl::StrCat("the inline PTX does not use %", i), kFix);
    }
    for (const ValueId value : op_.operands) require_scalar(value);
    for (const ValueId value : op_.results) require_scalar(value);
  }
  void require_scalar(ValueId value) {
    if (kernel_.type(value).is_scalar()) return;
    error(absl::StrCat("inline PTX takes scalars, and ", v_.name(value), " is ",
                       to_string(kernel_.type(value))),
          "pass elements one by one");
  }

  // --- Matrices of a warp ---

  void check_matrices(Type fragment) {
    constexpr int kBytesOfLane = 4;  // of each matrix
    const Type view = operand_type(0);
    const int size = bytes_of(view.scalar);
    if (view.space != Space::kShared) {
      error(absl::StrCat(v_.quoted(id_), " reaches the block's own shared memory alone, and ",
                         v_.name(op_.operands[0]), " is in ", name_of(view.space), " memory"),
            "copy the tile to a shared array first, or access its elements one by one");
    }
    if (view.scalar == Scalar::kBool || size > kBytesOfLane) {
      return error(
          absl::StrCat(v_.quoted(id_), " moves elements of 1, 2 or 4 bytes that are no bools, not ",
                       info(view.scalar).name),
          "access the elements one by one");
    }
    if (size != 2 && op_.attr_or(AttrKey::kTranspose, 0) != 0) {
      error(absl::StrCat(v_.quoted(id_), " transposes elements of 2 bytes, and ",
                         info(view.scalar).name, " has ", size),
            "leave 'transpose' out, and exchange elements by shuffles");
    }
    const int64_t count = *op_.attr(AttrKey::kCount);
    const Type wanted = Type::fragment(view.scalar, static_cast<int>(count) * kBytesOfLane / size);
    if (fragment != wanted) {
      error(absl::StrCat(v_.quoted(id_), " with count = ", count, " has ", to_string(wanted),
                         " in each lane, not ", to_string(fragment)),
            "a lane has 4 bytes of each matrix: make the fragment and the count agree");
    }
    if (kernel_.has_dynamic_block() || kernel_.block.count() % 32 == 0) return;
    error(absl::StrCat(v_.quoted(id_), " is one operation of 32 threads, but the block has ",
                       kernel_.block.count()),
          "use a block of a multiple of 32 threads");
  }

  // --- Tensor cores ---

  static bool is_wgmma_input(Scalar scalar) {
    return scalar == Scalar::kF16 || scalar == Scalar::kBF16;
  }

  void check_descriptor() {
    const Type view = operand_type(0);
    if (view.space == Space::kShared && is_wgmma_input(view.scalar)) return;
    error(absl::StrCat("'smem.desc' describes f16 or bf16 tiles in shared memory, not ",
                       to_string(view)),
          "copy the tile to a shared array first");
  }

  void check_accumulator(Type type) {
    const int64_t columns = int64_t{2} * type.count;
    if (type.scalar == Scalar::kF32 && columns % 8 == 0 && columns <= kMaxWgmmaColumns) return;
    error(
        absl::StrCat("wgmma accumulates m64nNk16 in f32 with N = 2 x count a multiple of 8 up to ",
                     kMaxWgmmaColumns, "; ", to_string(type), " is no such accumulator"),
        "use a fragment of 4, 8, ... 128 f32 elements");
  }

  void check_wgmma() {
    check_accumulator(result_type());
    const Scalar a = operand_type(1).scalar;
    const Scalar b = operand_type(2).scalar;
    if (a != b || !is_wgmma_input(a)) {
      error(absl::StrCat("wgmma multiplies f16 by f16 or bf16 by bf16, not ", info(a).name, " by ",
                         info(b).name),
            "bring both tiles to one of these types");
    }
    if (kernel_.has_dynamic_block() || kernel_.block.count() % 128 == 0) return;
    error(absl::StrCat("wgmma is one operation of 128 threads, but the block has ",
                       kernel_.block.count()),
          "use a block of a multiple of 128 threads");
  }

  Verification& v_;
  const Kernel& kernel_;
  const OpId id_;
  const Op& op_;
};

}  // namespace

void verify_rules(Verification& v, OpId op) { RuleCheck(v, op).run(); }

}  // namespace heddle::ir
