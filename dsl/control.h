// Staged control flow: branches and loops that are recorded in the kernel. C++'s own if and for run
// on the host while tracing.
//
//   Float sum = For(range(thread_idx.x, n, block_dim.x), Float(0),
//                   [&](Int i, Float acc) { return acc + x(i); });      // carried, returned
//   for (Int i : range(n)) total += x(i);                               // the same, with a Var
//   Float y = If(p, [&] { return a; }, [&] { return b / c; });          // only one side runs
//   If(p, [&] { out(i) = y; }).Else([&] { out(i) = 0; });
//   Int k = While(Int(1), [&](Int k) { return k < n; }, [&](Int k) { return k * 2; });
//   Switch(op, Case(0, [&] { … }), Case({1, 2}, [&] { … }), Default([&] { … }));
//   for (Int i : range(n)) { If(x(i) == 0, [] { Break(); }); … }  // Continue, Return
//   for (Int i : range(n).unroll(4)) { If(unlikely(x(i) < 0), [&] { … }); … }
//
// Bodies run once, while tracing. They carry and return anything Traced: one thing is returned as
// itself, several as a std::tuple. A host `for` or `if` around traced code unrolls or specialises
// it.
#pragma once

#include <initializer_list>
#include <vector>

#include "heddle/dsl/var.h"

namespace heddle {
namespace detail {

// The bounds of a loop, and how many trips the author would like to see side by side; 0: says
// nothing.
struct Trips {
  Node start, stop, step;
  int unroll = 0;
};
// Opens a loop over [start, stop) and fills `args` with the index and the carried values inside.
[[gnu::cold]] void begin_for(const Trips& trips, const Node* init, int count, Node* args,
                             SourceLoc loc);
// Closes it with the values for the next trip; `results` receives what the loop leaves behind.
[[gnu::cold]] void end_for(const Node* next, int count, Node* results, SourceLoc loc);
// Closes a loop that the host left by break, return or goto, and reports it.
void abandon_for(SourceLoc loc);

[[gnu::cold]] void begin_while(const Node* init, int count, Node* args, SourceLoc loc);
void begin_while_body(Node condition, Node* args, SourceLoc loc);
[[gnu::cold]] void end_while(const Node* next, int count, Node* results, SourceLoc loc);

// begin_if opens the first branch, next_branch closes it with its results and opens the other,
// end_if closes that. Returns which If it was, for reopen_else.
[[gnu::cold]] uint32_t begin_if(Node condition, SourceLoc loc);
[[gnu::cold]] void next_branch(const Node* results, int count, SourceLoc loc);
[[gnu::cold]] void end_if(const Node* results, int count, Node* merged, SourceLoc loc);
// False, and a report, where something came between the If() and its Else().
bool begin_else(uint32_t statement, SourceLoc loc);
void end_else();

void report_too_many_leaves(SourceLoc loc);

enum class ExitKind : uint8_t { kBreak, kContinue, kReturn };
[[gnu::cold]] void emit_exit(ExitKind kind, SourceLoc loc);
void report_repeated_case(int64_t value, SourceLoc loc);

// A body may return anything that makes a T: a T itself, an element of a tensor, a host number.
template <class T, class R>
T as_carried(R&& result) {
  if constexpr (std::is_same_v<std::remove_cvref_t<R>, T>) {
    return result;
  } else {
    static_assert(std::is_convertible_v<R, T>,
                  "the body must return what the loop carries, with the same types; both branches "
                  "of an If() return the same types");
    return T(result);
  }
}

// What a construct that carries T... gives back: nothing, the one thing, or a tuple.
template <class... T>
struct Carried {
  using Tuple = std::tuple<T...>;

  static auto unwrap(const Tuple& values) {
    if constexpr (sizeof...(T) == 1) {
      return std::get<0>(values);
    } else if constexpr (sizeof...(T) > 1) {
      return values;
    }
  }
  // Calls a body with `before...` and the carried values; appends what it returns to `next`.
  template <class Body, class... Before>
  static void run(Body&& body, const Tuple& values, NodeList& next, const Before&... before) {
    std::apply(
        [&](const T&... carried) {
          using R = decltype(body(before..., carried...));
          if constexpr (sizeof...(T) == 0) {
            static_assert(std::is_void_v<R>,
                          "this body returns a value that nothing carries: give For() or While() "
                          "an initial value for it");
            body(before...);
          } else {
            static_assert(!std::is_void_v<R>, "the body must return the values for the next trip");
            append(body(before..., carried...), next);
          }
        },
        values);
  }

 private:
  template <class R>
  static void append(R&& result, NodeList& next) {
    if constexpr (sizeof...(T) == 1) {
      next.append(as_carried<std::tuple_element_t<0, Tuple>>(result));
    } else {
      std::apply([&](const auto&... r) { (next.append(as_carried<T>(r)), ...); },
                 std::forward<R>(result));
    }
  }
};

}  // namespace detail

// The half-open range start, start + step, … below stop; T is int32_t or int64_t. The number of
// trips is fixed before the loop. A negative host-constant step counts down.
template <class T>
class Range {
 public:
  Range(detail::Node start, detail::Node stop, detail::Node step, SourceLoc loc)
      : trips_{start, stop, step}, loc_(loc) {}

  // Loop unrolling: the same range, with the body repeated for `trips` trips, up to 1024. 1 keeps
  // the assembler from unrolling. The step must be a positive host number. The remaining trips get
  // a loop of their own, unless the bounds are known.
  Range unroll(int trips) const {
    Range range = *this;
    range.trips_.unroll = trips;
    return range;
  }

  const detail::Trips& trips() const { return trips_; }
  SourceLoc loc() const { return loc_; }

  // What `for (Int i : range(n))` calls: the body is traced once, between construction and ++.
  class Iterator {
   public:
    // Opens the loop.
    explicit Iterator(const Range& range) : loc_(range.loc_) {
      detail::begin_for(range.trips_, nullptr, 0, &index_, loc_);
    }
    Iterator(const Iterator&) = delete;
    // Reports a loop that was left by the host's break, return or goto.
    ~Iterator() {
      if (!closed_) detail::abandon_for(loc_);
    }
    // The index.
    Value<T> operator*() const { return Value<T>(index_); }
    // Closes the loop.
    Iterator& operator++() {
      detail::end_for(nullptr, 0, nullptr, loc_);
      closed_ = true;
      return *this;
    }
    // The end of the host's loop.
    struct End {};
    bool operator!=(End) const { return !closed_; }

   private:
    detail::Node index_;
    SourceLoc loc_;
    bool closed_ = false;
  };
  // The iterators of the host's range-based for.
  Iterator begin() const { return Iterator(*this); }
  typename Iterator::End end() const { return {}; }

 private:
  detail::Trips trips_;
  SourceLoc loc_;
};

// A loop's range: 0 up to `stop`; or `start`, start + step, … while below `stop` (above it, where
// the step is a negative host number).
inline Range<int32_t> range(detail::Arg<int32_t> stop) {
  return {detail::host_node(int32_t{0}), stop.node, detail::host_node(int32_t{1}), stop.loc};
}
inline Range<int32_t> range(detail::Arg<int32_t> start, detail::Arg<int32_t> stop,
                            detail::Arg<int32_t> step = 1) {
  return {start.node, stop.node, step.node, stop.loc};
}
// The same with 64-bit indices, where an operand is an Int64.
template <class Stop>
requires detail::ReadsAs<Stop, int64_t> Range<int64_t> range(const Stop& stop,
                                                             SourceLoc loc = SourceLoc::current()) {
  return {detail::host_node(int64_t{0}), stop.read_node(loc), detail::host_node(int64_t{1}), loc};
}
template <class Start, class Stop, class Step = int>
requires(detail::ReadsAs<Start, int64_t> || detail::ReadsAs<Stop, int64_t> ||
         detail::ReadsAs<Step, int64_t>)
    Range<int64_t> range(const Start& start, const Stop& stop, const Step& step = 1,
                         SourceLoc loc = SourceLoc::current()) {
  using Operand = detail::Arg<int64_t>;
  return {Operand(start, loc).node, Operand(stop, loc).node, Operand(step, loc).node, loc};
}

namespace detail {

template <class I, class Body, class... T>
auto for_loop(const Range<I>& range, Body&& body, const T&... init) {
  std::tuple<T...> carried(init...);
  NodeList before, next;
  before.append(carried);
  if (before.overflown()) report_too_many_leaves(range.loc());
  Node args[1 + NodeList::kMax];
  begin_for(range.trips(), before.data(), before.size(), args, range.loc());
  int leaf = 1;
  for_each_leaf(carried, [&](Node& node) { node = args[leaf++]; });
  Carried<T...>::run(body, carried, next, Value<I>(args[0]));
  end_for(next.data(), next.size(), before.data(), range.loc());
  before.write_to(carried);
  return Carried<T...>::unwrap(carried);
}

template <class Condition, class Body, class... T>
auto while_loop(SourceLoc loc, Condition&& condition, Body&& body, const T&... init) {
  std::tuple<T...> carried(init...);
  NodeList before, next;
  before.append(carried);
  if (before.overflown()) report_too_many_leaves(loc);
  Node args[NodeList::kMax];
  const auto refresh = [&] {
    int leaf = 0;
    for_each_leaf(carried, [&](Node& node) { node = args[leaf++]; });
  };
  begin_while(before.data(), before.size(), args, loc);
  refresh();
  const Bool goes_on(std::apply(condition, carried));
  begin_while_body(goes_on.node(), args, loc);
  refresh();
  Carried<T...>::run(body, carried, next);
  end_while(next.data(), next.size(), before.data(), loc);
  before.write_to(carried);
  return Carried<T...>::unwrap(carried);
}

// Calls f(last…, first…): moves the callables behind the values.
template <std::size_t kLast, class F, class Tuple, std::size_t... First, std::size_t... Last>
auto rotate_apply(F&& f, Tuple&& all, std::index_sequence<First...>, std::index_sequence<Last...>) {
  constexpr std::size_t kFirst = sizeof...(First);
  return f(
      std::get<kFirst + Last>(all)...,
      traced_t<std::tuple_element_t<First, std::remove_cvref_t<Tuple>>>(std::get<First>(all))...);
}

}  // namespace detail

// A counted loop that carries values: For(range, init…, body). body(index, carried…) returns the
// carried values for the next trip. Gives the last ones: nothing, one thing, or a std::tuple. Where
// there is no trip, these are `init`.
template <class I, class... Args>
auto For(const Range<I>& range, Args&&... args) {
  static_assert(sizeof...(Args) >= 1, "For(range, init…, body) needs a body");
  return detail::rotate_apply<1>(
      [&](auto& body, const auto&... init) { return detail::for_loop(range, body, init...); },
      std::forward_as_tuple(args...), std::make_index_sequence<sizeof...(Args) - 1>(),
      std::make_index_sequence<1>());
}

// A loop with a condition: While(init…, condition, body). condition(carried…) is a Bool that is
// asked before each trip, body(carried…) returns the carried values for the next one. Gives the
// last ones, as For() does.
template <class... Args>
auto While(Args&&... args) {
  static_assert(sizeof...(Args) >= 2, "While(init…, condition, body) needs a condition and a body");
  return detail::rotate_apply<2>(
      [&](auto& condition, auto& body, const auto&... init) {
        return detail::while_loop({}, condition, body, init...);
      },
      std::forward_as_tuple(args...), std::make_index_sequence<sizeof...(Args) - 2>(),
      std::make_index_sequence<2>());
}

// What `If(condition, then)` leaves, for `.Else(otherwise)`.
class IfStatement {
 public:
  // For If().
  IfStatement(uint32_t statement, SourceLoc loc) : statement_(statement), loc_(loc) {}
  // Runs `otherwise` in the threads for which the If's condition does not hold. It follows the If
  // at once.
  template <class Otherwise>
  void Else(Otherwise&& otherwise) const {
    const bool open = detail::begin_else(statement_, loc_);
    otherwise();
    if (open) detail::end_else();
  }

 private:
  uint32_t statement_;
  SourceLoc loc_;
};

// A branch: runs `then` in the threads for which the condition holds.
template <class Then>
requires std::is_void_v<decltype(std::declval<Then>()())> IfStatement
If(detail::Arg<bool> condition, Then&& then) {
  const uint32_t statement = detail::begin_if(condition.node, condition.loc);
  then();
  detail::next_branch(nullptr, 0, condition.loc);
  detail::end_if(nullptr, 0, nullptr, condition.loc);
  return {statement, condition.loc};
}

template <class Then>
requires(!std::is_void_v<decltype(std::declval<Then>()())>) HEDDLE_MISTAKE(
    "an If() that returns a value needs one for the other threads, too: If(p, then, otherwise)")
auto If(detail::Arg<bool> condition, Then&& then) -> decltype(then());

// Runs one of two branches, and returns its result: anything Traced, of the same type on both
// sides, or nothing on both.
template <class Then, class Otherwise>
auto If(detail::Arg<bool> condition, Then&& then, Otherwise&& otherwise) {
  using R = decltype(then());
  detail::begin_if(condition.node, condition.loc);
  if constexpr (std::is_void_v<R>) {
    static_assert(std::is_void_v<decltype(otherwise())>,
                  "both branches of an If() return the same types, or neither returns any");
    then();
    detail::next_branch(nullptr, 0, condition.loc);
    otherwise();
    detail::end_if(nullptr, 0, nullptr, condition.loc);
  } else {
    using T = detail::traced_t<R>;
    detail::NodeList left, right;
    T result(then());
    left.append(result);
    if (left.overflown()) detail::report_too_many_leaves(condition.loc);
    detail::next_branch(left.data(), left.size(), condition.loc);
    right.append(detail::as_carried<T>(otherwise()));
    detail::end_if(right.data(), right.size(), left.data(), condition.loc);
    left.write_to(result);
    return result;
  }
}

// Branch hints: the condition mostly holds (likely), or mostly does not (unlikely). The rare branch
// of an If is placed out of the way. Hints change how fast a kernel is, never what it does.
inline Bool likely(const detail::Arg<bool>& condition) {
  return Bool(detail::emit_expect(condition.node, true, condition.loc));
}
inline Bool unlikely(const detail::Arg<bool>& condition) {
  return Bool(detail::emit_expect(condition.node, false, condition.loc));
}

// Promises of the author: no thread reaches this line (unreachable), or the condition holds
// (assume). Branches that the promise excludes are not compiled. The interpreter checks the
// promise; on a GPU breaking it is undefined behaviour.
inline void unreachable(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kUnreachable, loc);
}
inline void assume(const detail::Arg<bool>& condition) {
  If({!Bool(condition.node), condition.loc}, [&] { unreachable(condition.loc); });
}

// Jumps: Break() leaves the innermost traced loop, Continue() goes on to its next trip, Return()
// ends the thread's part in the kernel. They apply to the threads that reach them. Loops and Ifs
// that are left in this way may not carry or return values; keep those in Vars. A barrier that
// follows is an error unless either all threads of the block leave or none does.
inline void Break(SourceLoc loc = SourceLoc::current()) {
  detail::emit_exit(detail::ExitKind::kBreak, loc);
}
inline void Continue(SourceLoc loc = SourceLoc::current()) {
  detail::emit_exit(detail::ExitKind::kContinue, loc);
}
inline void Return(SourceLoc loc = SourceLoc::current()) {
  detail::emit_exit(detail::ExitKind::kReturn, loc);
}

// One branch of a Switch(): for a host number, for several, or for all others.
template <class Body>
struct SwitchCase {
  // The numbers that it is for; empty for Default().
  std::vector<int64_t> values;
  // What runs.
  Body body;
  // The line of the Case().
  SourceLoc loc;
  // Whether it is Default().
  bool otherwise = false;
};
// A branch for one number, or for each of several. A number that comes twice in a Switch() is an
// error of the kernel.
template <class Body>
SwitchCase<Body> Case(int64_t value, Body body, SourceLoc loc = SourceLoc::current()) {
  return {{value}, std::move(body), loc};
}
template <class Body>
SwitchCase<Body> Case(std::initializer_list<int64_t> values, Body body,
                      SourceLoc loc = SourceLoc::current()) {
  return {values, std::move(body), loc};
}
// The branch for all other numbers; the last one of a Switch().
template <class Body>
SwitchCase<Body> Default(Body body, SourceLoc loc = SourceLoc::current()) {
  return {{}, std::move(body), loc, true};
}

namespace detail {

template <class T, class Body, class... Rest>
auto switch_on(const Value<T>& x, const SwitchCase<Body>& first, const Rest&... rest) {
  const SourceLoc loc = first.loc;
  if constexpr (sizeof...(Rest) > 0) {
    if (first.otherwise) {
      report(loc, "a Default() with branches behind it in a Switch()", "put it last");
    }
  } else {
    if constexpr (std::is_void_v<decltype(first.body())>) {
      if (first.otherwise) return first.body();
    } else {
      if (!first.otherwise) {
        report(loc, "a Switch() that returns a value has no Default()",
               "end it with Default([&] { return …; })");
      }
      return first.body();
    }
  }
  Node chosen = host_node(false);
  for (const int64_t value : first.values) {
    const Node same = emit(op::kEq, x.node(), host_constant<T>(value, loc), loc);
    chosen = chosen.is_host() ? same : emit(op::kOr, chosen, same, loc);
  }
  const Arg<bool> condition(Bool(chosen), loc);
  if constexpr (sizeof...(Rest) > 0) {
    return If(condition, first.body, [&] { return switch_on(x, rest...); });
  } else if constexpr (std::is_void_v<decltype(first.body())>) {
    If(condition, first.body);
  } else {
    __builtin_unreachable();  // g++ with -fsanitize=thread at -O0 does not see that it has returned
  }
}

template <class... Body>
void check_cases(const SwitchCase<Body>&... cases) {
  std::vector<int64_t> seen;
  const auto check = [&](const std::vector<int64_t>& values, SourceLoc loc) {
    for (const int64_t value : values) {
      for (const int64_t other : seen) {
        if (other == value) report_repeated_case(value, loc);
      }
      seen.push_back(value);
    }
  };
  (check(cases.values, cases.loc), ...);
}

}  // namespace detail

// Selects a branch by an integer: runs the Case() with its number, else the Default(), which comes
// last. Where branches return values, all return the same type, and a Default() is needed.
template <detail::Readable X, class... Body>
auto Switch(const X& x, const SwitchCase<Body>&... cases) {
  using T = typename X::value_type;
  detail::check_cases(cases...);
  using Integer = std::conditional_t<detail::is_promoted<T>, int32_t, T>;
  return detail::switch_on(Value<Integer>(x), cases...);
}

}  // namespace heddle
