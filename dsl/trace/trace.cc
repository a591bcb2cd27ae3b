#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/trace/stack_guard_internal.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/check.h"
#include "heddle/ir/op_key.h"

namespace heddle::detail {
namespace {

thread_local Trace* t_current = nullptr;
thread_local ir::Diagnostics t_stray;

// The kernels that this thread traced last, by serial number: so that a value which leaves its
// kernel can be told whose it was.
struct TraceName {
  uint64_t serial = 0;
  std::string name;
};
constexpr int kRemembered = 16;
thread_local TraceName t_names[kRemembered];

// What this thread made outside kernels last, by number: such a node has the serial number 0.
struct OutsideValue {
  uint32_t number = 0;
  absl::string_view what;
  SourceLoc loc;
};
thread_local OutsideValue t_outside[kRemembered];
thread_local uint32_t t_outside_count = 0;

// From 1 on.
uint64_t next_serial() {
  static std::atomic<uint64_t> serial{0};
  return ++serial;
}

std::string kernel_of(uint64_t serial) {
  const TraceName& entry = t_names[serial % kRemembered];
  return entry.serial == serial ? absl::StrCat("kernel '", entry.name, "'")
                                : std::string("another kernel");
}

// However often such a value is used where it cannot be, it is one mistake.
std::string mistake_of(const Node& node) {
  return absl::StrCat("value ", node.id, " of trace ", node.bits, " out of reach");
}

ir::SourceLine to_place(SourceLoc loc) {
  loc = CallerLines::resolve(loc);
  return {loc.file == nullptr ? std::string() : std::string(loc.file), loc.line};
}

}  // namespace

Trace* Trace::current() { return t_current; }

Trace::Trace(ir::Kernel& kernel, ir::Diagnostics& diagnostics)
    : builder_(kernel),
      diagnostics_(diagnostics),
      serial_(next_serial()),
      outer_(std::exchange(t_current, this)) {
  numbered_.fill(ir::OpId::kNone);
  t_names[serial_ % kRemembered] = {serial_, kernel.name()};
  diagnostics_ = std::exchange(t_stray, {});
}

Trace::~Trace() { t_current = outer_; }

ir::ValueId Trace::use(const Node& node, SourceLoc loc) {
  if (node.is_host()) {
    if (node.misfit() == Misfit::kFits) {
      return constant(to_type(node.type), node.bits);
    }
    report_misfit(node, loc);
    return undefined(node.type);
  }
  if (node.bits == 0) {
    report_outside(node, loc);
    return undefined(node.type);
  }
  if (node.bits != serial_) {
    report(loc,
           absl::StrCat("value from ", kernel_of(node.bits), " used in kernel '", kernel().name(),
                        "': a traced value lives only while its own kernel is traced"),
           "pass it as a parameter, or capture a host value instead", {}, mistake_of(node));
    return undefined(node.type);
  }
  const ir::ValueId value{node.id};
  if (reachable(value)) return value;
  const ir::Value& info = kernel().value(value);
  const ir::RegionId home = ir::valid(info.def) ? kernel().op(info.def).parent : info.region;
  const ir::Op& owner = kernel().op(kernel().region(home).parent);
  report(loc,
         absl::StrCat("value used outside the ", ir::info(owner).mnemonic,
                      " body that made it: it exists only while that body runs"),
         "return it from the body, so that the construct carries it, or keep it in a Var declared "
         "outside",
         {{place(value), "made here"},
          {{std::string(kernel().loc(owner.loc).file), kernel().loc(owner.loc).line},
           "in the body of this one"}},
         mistake_of(node));
  return undefined(node.type);
}

void Trace::report_misfit(const Node& node, SourceLoc loc) {
  report(loc,
         absl::StrCat(given_number(node.bits, node.misfit()), " does not fit an ",
                      ir::info(node.type.scalar).name),
         "use a wider type, or cast it on the host to say which number is meant");
}

void Trace::report_outside(const Node& node, SourceLoc loc) {
  const OutsideValue& made = t_outside[node.id % kRemembered];
  const bool known = made.number == node.id;
  report(loc,
         absl::StrCat(known ? made.what : "a value",
                      " of kernel values outside a kernel: there was no program to record it in"),
         "compute it with host numbers, or move it into the kernel's lambda",
         known ? std::vector<ir::Note>{{to_place(made.loc), "made here"}} : std::vector<ir::Note>{},
         mistake_of(node));
}

absl::InlinedVector<ir::ValueId, 4> Trace::use(absl::Span<const Node> nodes, SourceLoc loc) {
  absl::InlinedVector<ir::ValueId, 4> values;
  for (const Node& node : nodes) values.push_back(use(node, loc));
  return values;
}

ir::ValueId Trace::create(ir::Opcode opcode, absl::Span<const ir::ValueId> operands, ir::Type type,
                          absl::Span<const ir::Attr> attrs) {
  const auto results = ir::infer_results(kernel(), opcode, operands, type);
  const auto append = [&] { return builder_.create_op(opcode, operands, results, attrs); };
  // Fragments stay apart: each may be an accumulator, whose registers an op takes over.
  const bool is_numbered = has(ir::info(opcode), ir::kPure) && results.size() == 1 &&
                           results[0].kind != ir::TypeKind::kFragment && elsewhere_ == 0;
  if (!is_numbered) return kernel().op(append()).result();
  const ir::OpKey key{opcode, results[0], operands, attrs};
  ir::OpId& op = numbered_[hash_of(key) % numbered_.size()];
  const bool repeats = ir::valid(op) && kernel().op(op).parent == builder_.region() &&
                       ir::key_of(kernel(), kernel().op(op)) == key;
  if (!repeats) op = append();
  const ir::ValueId result = kernel().op(op).result();
  if (repeats) again_.at(result) = builder_.loc();
  return result;
}

ir::ValueId Trace::constant(ir::Type type, uint64_t bits) {
  return create(ir::Opcode::kConst, {}, type, {{ir::AttrKey::kBits, static_cast<int64_t>(bits)}});
}

void Trace::record(ir::Opcode opcode, absl::Span<const Node> inputs,
                   absl::Span<const NodeType> types, absl::Span<const ir::Attr> attrs,
                   Node* outputs, SourceLoc loc) {
  set_place(loc, inputs);
  absl::InlinedVector<ir::Type, 2> results;
  for (const NodeType& type : types) results.push_back(to_type(type));
  const ir::OpId op = builder_.create_op(opcode, use(inputs, loc), results, attrs);
  for (size_t i = 0; i < results.size(); ++i) outputs[i] = node(kernel().op(op).results[i]);
}

Node Trace::node(ir::ValueId value) const {
  return {.type = to_node_type(builder_.kernel().type(value).content()),
          .id = ir::index_of(value),
          .bits = serial_};
}

void Trace::set_place(SourceLoc loc, absl::Span<const Node> operands) {
  loc = CallerLines::resolve(loc);
  if (loc.file != nullptr) {
    if (loc.file != last_place_.file || loc.line != last_place_.line) {
      last_place_ = loc;
      last_loc_ = kernel().intern_loc(loc.file, loc.line);
    }
    return builder_.set_loc(last_loc_);
  }
  for (const Node& node : operands) {
    if (node.is_host() || node.bits != serial_) continue;
    const ir::LocId place = loc_of(ir::ValueId{node.id});
    if (ir::valid(place)) builder_.set_loc(place);
  }
}

ir::LocId Trace::loc_of(ir::ValueId value) const {
  if (ir::valid(again_[value])) return again_[value];
  const ir::Op* const def = builder_.kernel().def(value);
  return def == nullptr ? ir::LocId::kNone : def->loc;
}

Point Trace::here() const {
  const ir::RegionId region = builder_.region();
  return {.trace = serial_,
          .region = ir::index_of(region),
          .behind = ir::index_of(builder_.kernel().region(region).last)};
}

Trace::At::At(Trace& trace, const Point& point)
    : trace_(trace), region_(trace.builder_.region()), loc_(trace.builder_.loc()) {
  ir::Builder& builder = trace.builder_;
  const ir::Kernel& kernel = builder.kernel();
  const ir::RegionId region{point.region};
  const ir::OpId behind{point.behind};
  elsewhere_ = region != region_ || behind != kernel.region(region).last;
  if (!elsewhere_) return;
  ++trace_.elsewhere_;
  const ir::OpId next = ir::valid(behind) ? kernel.op(behind).next : kernel.region(region).first;
  if (ir::valid(next)) {
    builder.set_insertion_before(next);
  } else {
    builder.set_insertion_end(region);
  }
}

Trace::At::~At() {
  if (!elsewhere_) return;
  --trace_.elsewhere_;
  trace_.builder_.set_insertion_end(region_);
  trace_.builder_.set_loc(loc_);
}

void Trace::check_stack(SourceLoc loc) {
  if (abandoned_ || !stack_is_low()) return;
  report(loc,
         "functions call each other here until the stack runs out: a function that calls itself "
         "under a traced condition never ends, for both branches of an If are traced",
         "recurse on host numbers, or write a loop: While(…), with an array for what a recursion "
         "remembers");
  abandoned_ = true;
  throw Abandoned();
}

void Trace::report(SourceLoc loc, std::string message, std::string fix, std::vector<ir::Note> notes,
                   std::string mistake) {
  if (abandoned_) return;
  diagnostics_.push_back({.place = place(loc),
                          .message = std::move(message),
                          .notes = std::move(notes),
                          .fix = std::move(fix),
                          .op = "",
                          .mistake = std::move(mistake)});
}

ir::SourceLine Trace::place(SourceLoc loc) const {
  if (loc.file != nullptr) return to_place(loc);
  const ir::Loc last = builder_.kernel().loc(builder_.loc());
  return {std::string(last.file), last.line};
}

ir::SourceLine Trace::place(ir::ValueId value) const {
  const ir::Kernel& kernel = builder_.kernel();
  const ir::Value& info = kernel.value(value);
  ir::LocId place = loc_of(value);
  if (!ir::valid(info.def)) {
    const ir::OpId owner = kernel.region(info.region).parent;
    if (!ir::valid(owner)) return {};
    place = kernel.op(owner).loc;
  }
  const ir::Loc loc = kernel.loc(place);
  return {std::string(loc.file), loc.line};
}

bool Trace::in_loop() const {
  const ir::Kernel& kernel = builder_.kernel();
  ir::RegionId region = builder_.region();
  while (region != kernel.body()) {
    const ir::Op& owner = kernel.op(kernel.region(region).parent);
    if (is_loop(owner)) return true;
    region = owner.parent;
  }
  return false;
}

ir::IntAnalysis& Trace::ints() {
  if (!ints_) ints_.emplace(kernel());
  return *ints_;
}

bool Trace::reachable(ir::ValueId value) const {
  const ir::Kernel& kernel = builder_.kernel();
  const ir::Value& info = kernel.value(value);
  const ir::RegionId home = ir::valid(info.def) ? kernel.op(info.def).parent : info.region;
  ir::RegionId region = builder_.region();
  while (region != home) {
    if (region == kernel.body()) return false;
    region = kernel.op(kernel.region(region).parent).parent;
  }
  return true;
}

const Node* Trace::find_computed(const SymInt& number, Width width) const {
  const Computed& one = computed_[hash_of(number) % computed_.size()];
  const bool is_same = one.width == width && !one.number.is_constant() && one.number == number;
  return is_same && reachable(ir::ValueId{one.node.id}) ? &one.node : nullptr;
}

void Trace::remember_computed(const SymInt& number, Width width, const Node& node) {
  if (node.is_host()) return;
  computed_[hash_of(number) % computed_.size()] = {number, width, node};
}

const Divider* Trace::find_divider(const SymInt& number) const {
  for (const auto& [known, divider] : dividers_) {
    const Node& last = divider.at_launch ? divider.shift : divider.divisor;
    if (known == number && (last.is_host() || reachable(ir::ValueId{last.id}))) return &divider;
  }
  return nullptr;
}

const Divider* Trace::remember_divider(const SymInt& number, Divider divider) {
  return &dividers_.emplace_back(number, std::move(divider)).second;
}

ir::ValueId Trace::undefined(const NodeType& type) {
  return builder_.create(ir::Opcode::kUndef, {}, to_type(type));
}

Node made_outside(NodeType type, absl::string_view what, SourceLoc loc) {
  const uint32_t number = t_outside_count++ % Node::kHostUnsigned;
  t_outside[number % kRemembered] = {number, what, loc};
  return {.type = type, .id = number, .bits = 0};
}

ir::Type to_type(NodeType type) {
  return {.kind = type.kind, .scalar = type.scalar, .count = type.count};
}

NodeType to_node_type(ir::Type type) {
  return {.scalar = type.scalar, .kind = type.kind, .count = type.count};
}

std::string given_number(uint64_t bits, Misfit misfit) {
  return misfit == Misfit::kUnsigned ? absl::StrCat(bits)
                                     : absl::StrCat(static_cast<int64_t>(bits));
}

void report(SourceLoc loc, const char* message, const char* fix) {
  if (Trace* const trace = Trace::current()) {
    trace->report(loc, message, fix);
  } else {
    t_stray.push_back(
        {.place = to_place(loc), .message = message, .notes = {}, .fix = fix, .op = ""});
  }
}

}  // namespace heddle::detail
