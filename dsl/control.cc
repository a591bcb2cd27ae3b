#include "heddle/dsl/control.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/ir/check.h"

namespace heddle::detail {
namespace {

constexpr char kOutsideMessage[] =
    "staged control flow outside a kernel: there is no program to record it in";
constexpr char kOutsideFix[] = "use C++ if, for and while on host values";

void copy_nodes(Trace& trace, absl::Span<const ir::ValueId> values, Node* nodes) {
  for (size_t i = 0; i < values.size(); ++i) nodes[i] = trace.node(values[i]);
}

// The values for the end of a region; what does not have the type that is carried is reported,
// since only fragments and vectors can differ by then.
absl::InlinedVector<ir::ValueId, 4> checked(Trace& trace, absl::Span<const Node> nodes,
                                            absl::Span<const ir::Type> types, SourceLoc loc) {
  absl::InlinedVector<ir::ValueId, 4> values = trace.use(nodes, loc);
  for (size_t i = 0; i < values.size() && i < types.size(); ++i) {
    const ir::Type type = trace.kernel().type(values[i]);
    if (type == types[i]) continue;
    trace.report(loc,
                 absl::StrCat("the body gives ", to_string(type), " where ", to_string(types[i]),
                              " is carried"),
                 "give back as many elements as came in");
    values[i] = trace.create(ir::Opcode::kUndef, {}, types[i]);
  }
  return values;
}

absl::InlinedVector<ir::Type, 4> types_of(const ir::Kernel& kernel,
                                          absl::Span<const ir::ValueId> values) {
  absl::InlinedVector<ir::Type, 4> types;
  for (const ir::ValueId value : values) types.push_back(kernel.type(value));
  return types;
}

// Ends the current region with these values and goes back behind its op.
ir::OpId close_region(Trace& trace, absl::Span<const ir::ValueId> values) {
  const ir::OpId op = trace.open_op();
  trace.builder().yield(values);
  trace.builder().end_region();
  return op;
}

}  // namespace

void begin_for(const Trips& trips, const Node* init, int count, Node* args, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    args[0] = trips.start;
    for (int i = 0; i < count; ++i) args[i + 1] = init[i];
    return report(loc, kOutsideMessage, kOutsideFix);
  }
  trace->set_place(loc);
  const ir::ValueId first = trace->use(trips.start, loc);
  const ir::ValueId last = trace->use(trips.stop, loc);
  ir::ValueId by = trace->use(trips.step, loc);
  // Which way the loop counts is decided now, whatever later passes find out about the step.
  const ir::IntRange steps = trace->ints().range(by);
  if (steps.is_constant()) by = trace->builder().constant_int(trace->kernel().type(by), steps.min);
  const auto carried = trace->use(absl::MakeConstSpan(init, count), loc);
  const ir::OpId loop = trace->builder().begin_for(first, last, by, carried);
  if (trips.unroll != 0) trace->kernel().op(loop).set_attr(ir::AttrKey::kUnroll, trips.unroll);
  copy_nodes(*trace, trace->kernel().region(trace->builder().region()).args, args);
}

void end_for(const Node* next, int count, Node* results, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return;
  const ir::Op& op = trace->kernel().op(trace->open_op());
  const auto types = types_of(trace->kernel(), op.results);
  trace->set_place(loc);
  const auto values = checked(*trace, absl::MakeConstSpan(next, count), types, loc);
  const ir::OpId closed = close_region(*trace, values);
  copy_nodes(*trace, trace->kernel().op(closed).results, results);
}

void abandon_for(SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return;
  trace->report(
      loc,
      "a traced loop was left by a host break, return or goto: its body is traced once, so "
      "that would leave the loop in the middle of the kernel",
      "put the condition into the range, leave by If(p, [] { Break(); }), or use "
      "While(condition, body) on Vars");
  close_region(*trace, {});
}

void begin_while(const Node* init, int count, Node* args, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    for (int i = 0; i < count; ++i) args[i] = init[i];
    return report(loc, kOutsideMessage, kOutsideFix);
  }
  trace->set_place(loc);
  trace->builder().begin_while(trace->use(absl::MakeConstSpan(init, count), loc));
  copy_nodes(*trace, trace->kernel().region(trace->builder().region()).args, args);
}

void begin_while_body(Node condition, Node* args, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return;
  trace->set_place(loc, absl::MakeConstSpan(&condition, 1));
  const ir::ValueId value = trace->use(condition, loc);
  // While() has no place for a line: the loop takes its condition's.
  if (loc.file == nullptr) trace->kernel().op(trace->open_op()).loc = trace->builder().loc();
  trace->builder().yield(absl::MakeConstSpan(&value, 1));
  trace->builder().next_region();
  copy_nodes(*trace, trace->kernel().region(trace->builder().region()).args, args);
}

void end_while(const Node* next, int count, Node* results, SourceLoc loc) {
  end_for(next, count, results, loc);
}

uint32_t begin_if(Node condition, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    report(loc, kOutsideMessage, kOutsideFix);
    return 0;
  }
  trace->set_place(loc, absl::MakeConstSpan(&condition, 1));
  return ir::index_of(trace->builder().begin_if(trace->use(condition, loc)));
}

void next_branch(const Node* results, int count, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return;
  const ir::OpId op = trace->open_op();
  trace->set_place(loc);
  const auto values = trace->use(absl::MakeConstSpan(results, count), loc);
  for (const ir::ValueId value : values) {
    trace->kernel().add_result(op, trace->kernel().type(value));
  }
  trace->builder().yield(values);
  trace->builder().next_region();
}

void end_if(const Node* results, int count, Node* merged, SourceLoc loc) {
  end_for(results, count, merged, loc);
}

bool begin_else(uint32_t statement, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return false;
  ir::Kernel& kernel = trace->kernel();
  const ir::OpId op{statement};
  // What was recorded in between would run behind the branches instead.
  if (kernel.region(trace->builder().region()).last != op) {
    trace->report(loc, "Else() that does not follow its If() directly",
                  "write If(condition, then).Else(otherwise)");
    return false;
  }
  const ir::RegionId otherwise = kernel.op(op).regions[1];
  const ir::OpId end = kernel.terminator(otherwise);
  if (kernel.region(otherwise).first != end) {
    trace->report(loc, "a second Else() of one If()", "put both into one");
    return false;
  }
  kernel.erase(end);
  trace->builder().set_insertion_end(otherwise);
  return true;
}

void end_else() {
  Trace* const trace = Trace::current();
  if (trace == nullptr) return;
  close_region(*trace, {});
}

void report_repeated_case(int64_t value, SourceLoc loc) {
  report(loc, absl::StrCat("two Case()s for ", value, " in one Switch()").c_str(),
         "keep one of them: the first would always be taken");
}

void report_too_many_leaves(SourceLoc loc) {
  report(loc, absl::StrCat("more than ", NodeList::kMax, " values are carried at once").c_str(),
         "keep them in a Fragment or in shared memory");
}

}  // namespace heddle::detail
