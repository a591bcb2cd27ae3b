// The kernel that this thread is tracing: what the proxies' out-of-line half works on. Not for
// users, and not included by any public header.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/dsl/exits_internal.h"
#include "heddle/dsl/layout/polynomial_internal.h"
#include "heddle/dsl/layout/sym_int.h"
#include "heddle/dsl/math/divmod.h"
#include "heddle/dsl/trace/node.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/builder.h"
#include "heddle/ir/diagnostic.h"

namespace heddle::detail {

class Trace {
 public:
  // The trace that is running on this thread; nullptr outside one.
  static Trace* current();

  // Runs as this thread's trace until destroyed; traces nest (a kernel's body may compile another).
  Trace(ir::Kernel& kernel, ir::Diagnostics& diagnostics);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  ir::Kernel& kernel() { return builder_.kernel(); }
  ir::Builder& builder() { return builder_; }
  // Which trace it is: its nodes carry the number.
  uint64_t serial() const { return serial_; }

  // The IR value behind a node, at the current place: makes a constant of a host number. A value
  // that is out of reach there is reported and replaced by an undefined one.
  ir::ValueId use(const Node& node, SourceLoc loc);
  absl::InlinedVector<ir::ValueId, 4> use(absl::Span<const Node> nodes, SourceLoc loc);
  // The node that stands for an IR value.
  Node node(ir::ValueId value) const;

  // Records an op with at most one result and returns that, or what the region has of it already (value
  // numbering): lambdas name the same index arithmetic at every access.
  ir::ValueId create(ir::Opcode opcode, absl::Span<const ir::ValueId> operands,
                     ir::Type type = ir::Type::none(), absl::Span<const ir::Attr> attrs = {});
  // By the bits of an element.
  ir::ValueId constant(ir::Type type, uint64_t bits);
  // Records an op with results of these types, which `outputs` receives, at that place.
  void record(ir::Opcode opcode, absl::Span<const Node> inputs, absl::Span<const NodeType> types,
              absl::Span<const ir::Attr> attrs, Node* outputs, SourceLoc loc);

  // Sets the place of the ops that follow. An unknown one is where an operand was computed last, or the last place.
  void set_place(SourceLoc loc, absl::Span<const Node> operands = {});

  // `mistake`: see ir::Diagnostic.
  void report(SourceLoc loc, std::string message, std::string fix, std::vector<ir::Note> notes = {},
              std::string mistake = {});
  ir::SourceLine place(SourceLoc loc) const;
  ir::SourceLine place(ir::ValueId value) const;

  Point here() const;
  // Until it is destroyed, what is recorded goes to an earlier point of this trace.
  class At {
   public:
    At(Trace& trace, const Point& point);
    ~At();
    At(const At&) = delete;
    At& operator=(const At&) = delete;

   private:
    Trace& trace_;
    ir::RegionId region_;
    ir::LocId loc_;
    bool elsewhere_;  // than at the end of what is recorded
  };

  // Whether the op being recorded runs more than once: a traced loop is open around it.
  bool in_loop() const;
  // The innermost open op, which owns the current region.
  ir::OpId open_op() const { return builder_.kernel().region(builder_.region()).parent; }

  // Ends the trace with a report where the host's stack runs low, by an exception that leaves the
  // kernel's body: nothing else gets out of a recursion that has no end.
  struct Abandoned {};
  void check_stack(SourceLoc loc);

  // Break, Continue and Return.
  Exits& exits() { return exits_; }

  // Open Probe: what fails is an answer, and not reported.
  int probing = 0;

  // Open FlushSubnormals: arithmetic of f32 is recorded with `ftz`.
  int flushing = 0;

  // What is known of the integers recorded so far.
  ir::IntAnalysis& ints();

  // Extents and strides of views, as numbers of layouts: each is asked for once. `make` records it.
  template <class Make>
  SymInt view_number(uint64_t key, Make make) {
    for (const auto& [known, number] : view_numbers_) {
      if (known == key) return number;
    }
    view_numbers_.emplace_back(key, make());
    return view_numbers_.back().second;
  }

  // Numbers of layouts that were computed last: accesses to one tensor compute the same ones again.
  enum class Width : uint8_t { kNarrow, kExact, kWide };
  struct Computed {
    SymInt number;
    Width width = Width::kNarrow;
    Node node;
  };
  const Node* find_computed(const SymInt& number, Width width) const;
  void remember_computed(const SymInt& number, Width width, const Node& node);
  // Likewise what numbers of layouts are divided by.
  const Divider* find_divider(const SymInt& number) const;
  const Divider* remember_divider(const SymInt& number, Divider divider);

  // A host integer that its type does not hold.
  void report_misfit(const Node& node, SourceLoc loc);

 private:
  bool reachable(ir::ValueId value) const;
  // Where it was computed last; kNone for arguments of regions.
  ir::LocId loc_of(ir::ValueId value) const;
  ir::ValueId undefined(const NodeType& type);
  void report_outside(const Node& node, SourceLoc loc);

  mutable ir::Builder builder_;
  ir::Diagnostics& diagnostics_;
  std::optional<ir::IntAnalysis> ints_;
  bool abandoned_ = false;
  SourceLoc last_place_;
  ir::LocId last_loc_ = ir::LocId::kNone;  // of that place
  ir::IdMap<ir::ValueId, ir::LocId> again_{
      ir::LocId::kNone};                 // where a value was computed again last
  int elsewhere_ = 0;                    // open At that record before something
  std::array<ir::OpId, 1024> numbered_;  // by hash: the op recorded last
  Exits exits_{*this};
  uint64_t serial_;
  Trace* outer_;
  std::array<Computed, 64> computed_{};  // by the number's hash
  std::vector<std::pair<uint64_t, SymInt>> view_numbers_;
  std::vector<std::pair<SymInt, Divider>> dividers_;
};

// While it lives, mistakes of layouts in this thread's trace are answers to a question of ours.
class Probe {
 public:
  Probe() : trace_(Trace::current()) {
    if (trace_ != nullptr) ++trace_->probing;
  }
  ~Probe() {
    if (trace_ != nullptr) --trace_->probing;
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

 private:
  Trace* trace_;
};

// Records an op; its result, if it has one. `type` counts where the operands don't say it.
Node record(ir::Opcode opcode, absl::Span<const Node> operands, NodeType type,
            absl::Span<const ir::Attr> attrs, SourceLoc loc);
// A text as an attribute's value, in the kernel that is being traced.
int64_t text_attr(const char* text);

// The value of an op outside any kernel, which has no program to be recorded in: the kernel that
// uses it reports that, with the place. `what` is the op's name, and lives as long as the program.
Node made_outside(NodeType type, absl::string_view what, SourceLoc loc);

// A host integer as it was given.
std::string given_number(uint64_t bits, Misfit misfit);
ir::Type to_type(NodeType type);
NodeType to_node_type(ir::Type type);

}  // namespace heddle::detail
