// The linear code that a kernel becomes, and the tables beside it. Internal to the interpreter:
// programs use program.h and interpreter.h.
//
// A *register* holds one value of all 32 lanes of a warp, element by element: lane l of element e
// is at index e * 32 + l. An instruction names registers by their byte offset in the warp's arena.
//
// Pure instructions compute all 32 lanes, whichever are active: in SSA form nothing reads a lane
// that did not compute the value, and a full lane loop is what compilers vectorise. Only
// instructions that write a register for the second time (a loop's next carried value, a variable,
// the second branch's result) look at the mask.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/launch/tensor_map.h"
#include "heddle/ir/mma_atom.h"
#include "heddle/ir/text/format.h"
#include "heddle/ir/type.h"

namespace heddle::ir::interp {

inline constexpr int kLanes = 32;
// Bit l stands for lane l.
using Mask = uint32_t;
inline constexpr Mask kAllLanes = ~Mask{0};

inline constexpr uint32_t kNone = ~uint32_t{0};

struct Instr;
struct Warp;
// Runs one instruction; gives the next one, or nullptr when the warp cannot go on now.
using Handler = const Instr* (*)(const Instr* instr, Warp& warp);

struct Instr {
  Handler run = nullptr;
  uint32_t dst = kNone;  // dst, a, b, c: registers
  uint32_t a = kNone;
  uint32_t b = kNone;
  uint32_t c = kNone;
  uint32_t count = 1;  // elements of a lane; control flow: the index of its Frame
  uint32_t aux = 0;    // a jump's target, a table's index or a number: see each handler
};

// Where an instruction comes from: for messages and counters, never on the way of a running warp.
struct Site {
  OpId op = OpId::kNone;
  uint32_t place = kNone;    // index in Code::places
  uint32_t control = kNone;  // the innermost control op around it: index in Code::controls
};

// What one lane of an instruction counts for.
struct Work {
  uint32_t ops = 0;    // arithmetic results
  uint32_t bytes = 0;  // read or written by an access
  bool load = false;
  bool store = false;
};

enum class ControlKind : uint8_t { kThen, kElse, kFor, kWhile };
struct Control {
  ControlKind kind;
  uint32_t frame;
  uint32_t place;
  uint32_t parent;  // index in Code::controls, or kNone
};

struct CodeLine {
  uint32_t file = 0;  // index in Code::files
  int line = 0;
};

// An index-like register and its width.
struct IndexReg {
  uint32_t reg = kNone;
  bool wide = false;  // i64, otherwise i32
};

// The coordinates that a `bounds` op tested, for the message of the access that takes its result.
struct BoundsCheck {
  uint32_t view_name = 0;   // index in Code::texts
  uint32_t tensor = kNone;  // likewise, of a tensor
  // The view's (none where nothing is known of it), then the tensor's.
  absl::InlinedVector<IndexReg, 4> coordinates;
  absl::InlinedVector<IndexReg, 4> extents;
  size_t view_modes = 0;
  size_t run_mode = 0;  // which spans `width` elements
  int width = 1;
};

// An array in a block's shared memory. Where that is watched, arrays of arenas lie apart, and `place` is
// where they really do.
struct SharedArray {
  uint32_t name = 0;  // index in Code::texts
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t place = 0;
  uint32_t region = kNone;  // of an arena; kNone: it is in none, or that is not watched
};

// What an atomic puts in place of an old value, both as bits.
using AtomicStep = uint64_t (*)(uint64_t old, uint64_t value);

// One load, store or copy.
struct Access {
  Space space = Space::kGlobal;
  Scalar scalar = Scalar::kF32;
  bool store = false;
  bool ordinary = false;    // neither atomic nor volatile
  bool exclusive = false;   // no other thread may store there unless something orders the two
  uint32_t bytes = 0;       // of all elements of a lane
  uint32_t view_name = 0;   // index in Code::texts
  uint32_t ok = kNone;      // register of the check: a bool for each lane
  uint32_t bounds = kNone;  // index in Code::bounds
  bool atomic = false;
  AtomicStep step = nullptr;  // atomic; nullptr for a compare-and-swap
  uint32_t compare = kNone;   // compare-and-swap: register of the value to compare with
  uint32_t ranks = kNone;     // bulk load to several blocks: register of their mask
  // Bulk copies: where it goes, where it comes from, and the mbarrier, in Code::shared_arrays.
  uint32_t to_array = kNone;
  uint32_t from_array = kNone;
  uint32_t mbarrier_array = kNone;
  IndexReg offset;
};

// One printf: the format's parts, and where the values lie.
struct Print {
  struct Value {
    uint32_t reg = kNone;
    Scalar scalar = Scalar::kI32;
  };
  std::vector<FormatPart> parts;
  std::vector<Value> values;
};

// One element of an inline_ptx with a rule, or of an op from outside.
struct RuleCall {
  struct Value {
    uint32_t reg = kNone;  // kNone: a mask that is not given, of all lanes
    uint32_t bytes = 0;
    uint64_t mask = 0;  // of its bits
  };
  PtxRule rule;
  WarpRule warp_rule;  // instead of it
  std::vector<Value> inputs, outputs;
};

// What a while loop waits for, for the message where it does not end.
struct LoopCondition {
  struct Read {
    uint32_t place = kNone;  // index in Code::places
    uint32_t view_name = 0;  // index in Code::texts
  };
  std::vector<Read> reads;  // of memory, inside the loop
  bool changes = false;     // the loop computes something that it depends on
};

struct Loop {
  uint32_t exit = 0;           // index of the instruction behind it
  uint32_t body = 0;           // index of its first instruction
  uint32_t trips = kNone;      // register: each lane's number of trips, u64
  uint32_t length = 0;         // instructions of one trip, for the instruction limit
  int direction = 1;           // -1: a negative constant step
  uint32_t condition = kNone;  // while: index in Code::conditions
};

// Where the elements of a fragment are in its matrix, column by column: at the sum of what the thread's number and the
// element's say.
struct FragmentPlaces {
  FragmentPlaces() = default;
  explicit FragmentPlaces(const MmaFragment& fragment);

  int rows = 0, columns = 0;
  std::vector<int> of_thread, of_value;
};

// One wgmma. A descriptor is an address register and a format register, which packs the byte
// offsets and the swizzle: leading, stride << 24, swizzle << 48.
struct Wgmma {
  MmaTypes types;
  FragmentPlaces a;  // where a is in registers
  FragmentPlaces accumulator;
  uint32_t a_format = kNone;  // register; kNone: a is in registers
  uint32_t b_format = kNone;  // register
  bool transpose_a = false, transpose_b = false;
  bool negates = false;   // the product
  bool poisoned = false;  // the accumulator has poison words
};

// One mma.
struct Mma {
  MmaTypes types;
  FragmentPlaces a, b, accumulator;
};

// One copy of a box. Registers: the tensor's address, its extents and strides in elements (i64), the
// coordinates (i32), dimension 0 first; the mask of a multicast's blocks.
struct BoxCopy {
  enum class Kind : uint8_t { kLoad, kStore, kReduce, kPrefetch };
  Kind kind = Kind::kLoad;
  BoxShape shape;
  AtomicStep step = nullptr;
  uint32_t view_name = 0;                                 // index in Code::texts
  uint32_t access = 0;                                    // index in Code::accesses
  uint32_t shared_array = kNone, mbarrier_array = kNone;  // in Code::shared_arrays
  uint32_t address = kNone;
  uint32_t ranks = kNone;
  std::array<uint32_t, kMaxTensorMapRank> extents{}, strides{}, coordinates{};
  std::array<uint32_t, kMaxTensorMapRank> offsets{};  // im2col: image_rank() of them
};

// A tensor map that the kernel makes: registers of the tensor's place, by dimension, and what messages call it.
struct MapReplacement {
  Scalar scalar{};
  int rank = 0;
  uint32_t view_name = 0;         // index in Code::texts
  uint32_t access = 0;            // index in Code::accesses, of where the map lies
  uint32_t shared_array = kNone;  // in Code::shared_arrays
  uint32_t address = kNone;
  std::array<uint32_t, kMaxTensorMapRank> extents{}, strides{};  // strides[0]: none
};

// A register that is filled once for each warp, before the code runs.
enum class InitKind : uint8_t {
  kConst,        // value
  kUndef,        // zero, poisoned
  kThreadIdx,    // value: axis
  kBlockIdx,     // value: axis; again for each block
  kClusterRank,  // again for each block
  kBlockDim,     // value: axis
  kGridDim,      // value: axis
  kLaneId,
  kWarpId,
  kParam,          // value: offset in the parameter block, read as `scalar`
  kParamClamped,   // the same, read as i64 and clamped to [0, 2^32 - 1], as u32
  kParamNarrowed,  // the same, read as i64, as i32: the launch checks that it fits
  kShared,         // value: offset in the block's shared memory, as an address
  kLocal,          // value: offset in each lane's local memory, as an address
  kTable,          // value: index in Code::tables, as an address
  kDynamicShared,  // where dynamic shared memory starts, as an address
};
struct Init {
  InitKind kind;
  Scalar scalar;
  uint32_t count = 1;
  uint32_t reg = kNone;
  uint64_t value = 0;
  uint32_t name = kNone;  // kParamNarrowed: index in Code::texts, of what must fit
};

struct Code {
  std::string name;
  Dim3 block{0, 0, 0};  // {0, 0, 0}: any
  Dim3 cluster{1, 1, 1};
  bool checked = true;
  bool watched = false;  // what it does asynchronously is checked (watch.h)

  std::vector<Instr> instrs;
  std::vector<Site> sites;  // of each instruction
  std::vector<Work> work;   // of each instruction

  std::vector<Init> inits;
  std::vector<Access> accesses;
  std::vector<SharedArray> shared_arrays;
  std::vector<BoundsCheck> bounds;
  std::vector<Loop> loops;
  std::vector<LoopCondition> conditions;
  std::vector<Print> prints;
  std::vector<RuleCall> rules;
  struct Promise {
    IntFacts facts;
    std::string name;  // of the value; empty: nobody gave it one
  };
  std::vector<Promise> promises;
  std::vector<Wgmma> wgmmas;
  std::vector<Mma> mmas;
  std::vector<BoxCopy> boxes;
  std::vector<MapReplacement> map_replacements;
  std::vector<Control> controls;
  std::vector<CodeLine> places;
  std::vector<std::string> files;
  std::vector<std::string> texts;

  uint32_t register_bytes = 0;  // of a warp, poison words included
  uint32_t poison_offset = 0;   // where these start
  uint32_t frame_count = 0;     // the deepest nesting of control flow
  int param_bytes = 0;
  int static_shared_bytes = 0;
  int local_bytes = 0;  // of a lane
  std::vector<std::string> tables;
  int dynamic_shared_offset = 0;
};

// A lane's bits of a register that may hold values which nobody has written: one word for each
// element, set where it is unwritten. A register at byte offset r has them at r / 8 behind
// Code::poison_offset; element e of size s is 4 * s * e bytes further on.
constexpr uint32_t poison_of(uint32_t reg) { return reg / 8; }

}  // namespace heddle::ir::interp
