#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/tensor/runs_internal.h"
#include "heddle/dsl/view_info_internal.h"

namespace heddle::detail {

namespace {

// The widest access below sm_100.
constexpr int kMostBytes = 16;

}  // namespace

// --- Layouts of host numbers --------------------------------------------------------------------

StaticLayout::StaticLayout(const Layout& layout) {
  for (const Mode& mode : modes_of(layout)) {
    parts_.push_back({mode.shape.value(), mode.stride.value.value()});
  }
}

int64_t StaticLayout::operator()(int64_t index) const {
  int64_t result = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const bool last = i + 1 == parts_.size();
    result += (last ? index : index % parts_[i].shape) * parts_[i].stride;
    if (!last) index /= parts_[i].shape;
  }
  return result;
}

// --- Runs -------------------------------------------------------------------------------------

namespace {

Layout numbers(int64_t size) { return make_layout(IntTuple(size)); }

bool is_multiple(const SymInt& number, int of) { return of == 1 || number.divisor() % of == 0; }

// What the slices added to the tensor's indices in memory.
SymInt start_in_memory(const AnyTensor& tensor, SourceLoc loc) {
  if (tensor.layout.is_composed()) return tensor.layout.offset().value();
  const auto strides = view_strides(*Trace::current(), tensor.node, loc);
  const int rank = static_cast<int>(strides.size());
  SymInt start = 0;
  for (int mode = 0; mode < rank; ++mode) {
    start = start + number_at(tensor.origin, mode, rank) * strides[static_cast<size_t>(mode)];
  }
  return start;
}

// Whether all runs, of `width` neighbours each, start at multiples of the width in memory.
bool is_aligned(const AnyTensor& tensor, const Layout& memory, const Layout& neighbours, int width,
                SourceLoc loc) {
  Trace& trace = *Trace::current();
  const ViewInfo info(trace, trace.use(tensor.node, loc));
  if (info.base_align() < width * ir::bytes_of(tensor.scalar)) return false;
  // A swizzle leaves the elements of its unit together; another layout none.
  if (memory.is_composed() &&
      (memory.inner() != nullptr || (int64_t{1} << memory.swizzle().base()) % width != 0)) {
    return false;
  }
  // Host numbers first: they settle most questions without asking for facts.
  const Layout tiles = zipped_divide(memory.outer(), neighbours, loc);
  if (!tiles.ok()) return false;
  const Modes rest = modes_of(get(tiles, 1));
  for (const bool constants : {true, false}) {
    for (const Mode& mode : rest) {
      const SymInt& stride = mode.stride.value;
      if (mode.shape.is_constant(1) || stride.is_constant() != constants) continue;
      if (!is_multiple(stride, width)) return false;
    }
  }
  return is_multiple(start_in_memory(tensor, loc), width);
}

// The only mode that a division's runs lie along; nothing where there are several.
std::optional<Mode> only_mode(const Layout& layout, const Layout& neighbours, SourceLoc loc) {
  const Layout tiles = zipped_divide(layout, neighbours, loc);
  if (!tiles.ok()) return std::nullopt;
  const Modes run = coalesced(get(tiles, 0));
  if (run.size() != 1) return std::nullopt;
  return run[0];
}

// The mode of the view that a run of neighbours lies along; -1 where it lies along several.
int run_mode(const AnyTensor& tensor, const Layout& memory, const Layout& neighbours,
             SourceLoc loc) {
  const auto in_memory = only_mode(memory.outer(), neighbours, loc);
  const auto in_view = only_mode(tensor.layout.outer(), neighbours, loc);
  if (!in_memory || !in_view || !in_memory->stride.value.is_constant(1) ||
      !in_view->stride.value.is_constant(1)) {
    return -1;
  }
  return in_view->stride.is_basis() ? in_view->stride.path[0] : 0;
}

// Whether a coordinate cannot leave the shape within a run.
bool stays_within(const Within& within, const Layout& neighbours, int width, SourceLoc loc) {
  const Layout tiles = zipped_divide(within.coords.layout, neighbours, loc);
  if (!tiles.ok()) return false;
  const auto run = only_mode(within.coords.layout, neighbours, loc);
  if (!run || !run->stride.value.is_constant(1)) return run && run->stride.value.is_constant(0);
  const TupleNode& along = run->stride;
  const auto at = [&](const IntTuple& t) {
    IntTuple part = t + IntTuple(0);
    for (int i = 0; i < along.path_length; ++i) {
      if (!part.is_tuple() || along.path[i] >= rank(part)) return SymInt(0);
      part = get(part, along.path[i]);
    }
    // A number counts in the first of a mode's modes, as compare() takes it.
    while (part.is_tuple() && rank(part) > 0) part = get(part, 0);
    return part.is_int() ? part.value() : SymInt(0);
  };
  for (const Mode& mode : modes_of(get(tiles, 1))) {
    const bool same = std::equal(mode.stride.path, mode.stride.path + mode.stride.path_length,
                                 along.path, along.path + along.path_length);
    if (same && !mode.shape.is_constant(1) && !is_multiple(mode.stride.value, width)) return false;
  }
  return is_multiple(at(within.coords.origin), width) && is_multiple(at(within.shape), width);
}

bool is_constant_over(const AnyTensor& flags, const Layout& neighbours, SourceLoc loc) {
  const Layout tiles = zipped_divide(flags.layout, neighbours, loc);
  if (!tiles.ok()) return false;
  for (const Mode& mode : modes_of(get(tiles, 0))) {
    if (!mode.shape.is_constant(1) && !mode.stride.value.is_constant(0)) return false;
  }
  return true;
}

}  // namespace

Runs::Runs(const AnyTensor& tensor, int64_t size, const Predicate& predicate, int exact,
           SourceLoc loc)
    : tensor_(to_string(tensor)), size_(size), tiles_(numbers(size)) {
  if (tensor.storage != Storage::kView || exact == 1) return;
  const Layout memory = memory_layout(tensor);
  if (exact != 0) {
    width_ = exact;
    const char* reason = "their number is no multiple of that";
    if (size % exact == 0) {
      const Probe probe;
      reason = try_width(tensor, memory, make_layout(IntTuple(exact)), predicate, loc);
    }
    if (reason == nullptr) return;
    fail(
        loc,
        absl::StrCat("copy: accesses of ", exact, " elements to ", to_string(tensor), ": ", reason),
        "partition it so that each thread has as many neighbours, promise divisors with "
        "assume_divisible() or in the signature (extents_divisible_by()), or leave the atom out: "
        "copy() then takes the widest access that is known legal");
    width_ = 1;
    return;
  }
  const Probe probe;
  const int64_t most = std::max<int64_t>(1, kMostBytes / ir::bytes_of(tensor.scalar));
  const SymInt run = max_common_vector(memory, memory, loc);
  const int64_t neighbours = run.is_constant() ? run.value() : run.divisor();
  const Layout order = max_common_layout(memory, memory, loc);
  for (int64_t width = most; width > 1; width /= 2) {
    if (neighbours % width != 0 || size % width != 0) continue;
    width_ = static_cast<int>(width);
    const Layout first = composition(order, make_layout(IntTuple(width)), loc);
    if (try_width(tensor, memory, first, predicate, loc) == nullptr) return;
  }
  width_ = 1;
}

const char* Runs::try_width(const AnyTensor& tensor, const Layout& memory, const Layout& neighbours,
                            const Predicate& predicate, SourceLoc loc) {
  mode_ = neighbours.ok() ? run_mode(tensor, memory, neighbours, loc) : -1;
  if (mode_ < 0) return "they are not neighbours in memory, along one mode of the view";
  if (predicate.flags != nullptr && !is_constant_over(*predicate.flags, neighbours, loc)) {
    return "the predicate is not known to be the same for all elements of an access";
  }
  if (predicate.within != nullptr && !stays_within(*predicate.within, neighbours, width_, loc)) {
    return "the shape that they are to lie within is not known to end between accesses";
  }
  if (!is_aligned(tensor, memory, neighbours, width_, loc)) {
    return "their addresses are not known to be multiples of an access's size";
  }
  const Layout tiles = zipped_divide(numbers(size_), neighbours, loc);
  if (!tiles.ok()) return "they cannot be divided so";
  tiles_ = StaticLayout(tiles);
  return nullptr;
}

int64_t static_size(const AnyTensor& tensor, const char* what, SourceLoc loc) {
  if (!tensor.layout.ok()) return 0;
  const SymInt n = size(tensor.layout.shape(), loc);
  if (n.is_constant()) return n.value();
  fail(loc,
       absl::StrCat(what, ": how many elements ", to_string(tensor),
                    " has is known only when the kernel runs"),
       "cut it into tiles of a size that is a host number, and partition these");
  return 0;
}

IntTuple coordinate_of(const AnyTensor& tensor, const SymInt& number, SourceLoc loc) {
  return idx2crd(number, tensor.layout.shape(), loc);
}

// --- Elements -----------------------------------------------------------------------------------

namespace {

// Which registers a tensor's elements are in, by their number; reports where the kernel computes which, and
// where there are no such registers.
std::optional<std::vector<int>> registers_of(const AnyTensor& tensor, int64_t size, SourceLoc loc) {
  if (!tensor.origin.is_int() || !tensor.origin.value().is_constant() ||
      !is_static(tensor.layout)) {
    fail_unnamed_registers(tensor, loc);
    return std::nullopt;
  }
  const StaticLayout index(tensor.layout);
  const int64_t first = tensor.origin.value().value(), count = tensor.node.type.count;
  std::vector<int> numbers(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    const int64_t number = first + index(i);
    if (number < 0 || number >= count) {
      fail(loc,
           absl::StrCat("element ", i, " of ", to_string(tensor), " is register ", number, " of ",
                        count),
           "cut registers into tiles that divide their extents");
      return std::nullopt;
    }
    numbers[static_cast<size_t>(i)] = static_cast<int>(number);
  }
  return numbers;
}

Node undefined_element(const AnyTensor& tensor) {
  return record(ir::Opcode::kUndef, {}, scalar_type(tensor.scalar), {}, {});
}

NodeType run_type(ir::Scalar scalar, int width) {
  return width == 1 ? scalar_type(scalar) : vector_type(scalar, width);
}

}  // namespace

std::optional<Node> condition(const Predicate& predicate, const SymInt& number, SourceLoc loc) {
  if (predicate.flags != nullptr) {
    const IntTuple coord = coordinate_of(*predicate.flags, number, loc);
    return emit_load(element_access(*predicate.flags, coord, loc), scalar_type<bool>(), loc);
  }
  if (predicate.within != nullptr) {
    const AnyTensor& coords = predicate.within->coords;
    const Node node = within_node(coordinate_at(coords, coordinate_of(coords, number, loc), loc),
                                  predicate.within->shape, loc);
    if (!node.is_host() || node.bits == 0) return node;
  }
  return std::nullopt;
}

Access access_to(const AnyTensor& tensor, const Runs& runs, int64_t run, SourceLoc loc) {
  Access access = run_access(tensor,
                             {.coord = coordinate_of(tensor, runs.number(run, 0), loc),
                              .width = runs.width(),
                              .mode = runs.mode(),
                              .tensor = &runs.tensor()},
                             loc);
  access.mode.is_aligned = true;
  return access;
}

Nodes gather_elements(const AnyTensor& tensor, const AccessPlan& plan, const Nodes* otherwise,
                      SourceLoc loc) {
  const int64_t size = static_size(tensor, "load", loc);
  Nodes values(static_cast<size_t>(size));
  const auto value = [&](int64_t i) -> Node& { return values[static_cast<size_t>(i)]; };
  const NodeType element = scalar_type(tensor.scalar);
  if (tensor.storage == Storage::kRegisters) {
    const auto registers = registers_of(tensor, size, loc);
    if (!registers) return Nodes(static_cast<size_t>(size), undefined_element(tensor));
    const Node all = read_slot(tensor.node, tensor.node.type, loc);
    for (int64_t i = 0; i < size; ++i) {
      value(i) =
          emit_part(element, ir::Opcode::kExtract, all, (*registers)[static_cast<size_t>(i)], loc);
    }
    return values;
  }
  const Runs runs(tensor, size, plan.predicate, plan.exact, loc);
  const NodeType type = run_type(tensor.scalar, runs.width());
  const Node undefined = undefined_element(tensor);
  for (int64_t r = 0; r < runs.count(); ++r) {
    // Addresses are computed in front of branches, where accesses share them.
    const auto guard = condition(plan.predicate, runs.number(r, 0), loc);
    const Access access = access_to(tensor, runs, r, loc);
    if (guard) begin_if(*guard, loc);
    Node run = emit_load(access, type, loc);
    if (guard) {
      next_branch(&run, 1, loc);
      Nodes other;
      for (int k = 0; k < runs.width(); ++k) {
        other.push_back(otherwise == nullptr
                            ? undefined
                            : (*otherwise)[static_cast<size_t>(runs.number(r, k))]);
      }
      const Node together =
          runs.width() == 1 ? other[0] : emit_pack(type, other.data(), runs.width(), loc);
      end_if(&together, 1, &run, loc);
    }
    for (int k = 0; k < runs.width(); ++k) {
      value(runs.number(r, k)) =
          runs.width() == 1 ? run : emit_part(element, ir::Opcode::kExtract, run, k, loc);
    }
  }
  return values;
}

void scatter_elements(const AnyTensor& tensor, const AccessPlan& plan, const Nodes& values,
                      SourceLoc loc) {
  const auto size = static_cast<int64_t>(values.size());
  const auto value = [&](int64_t i) -> const Node& { return values[static_cast<size_t>(i)]; };
  const NodeType element = scalar_type(tensor.scalar);
  if (tensor.storage == Storage::kRegisters) {
    const auto registers = registers_of(tensor, size, loc);
    if (!registers) return;
    const NodeType type = tensor.node.type;
    Nodes all(type.count);
    std::vector<bool> given(type.count);
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>((*registers)[static_cast<size_t>(i)]);
      const auto guard = condition(plan.predicate, i, loc);
      Node next = value(i);
      if (guard) {
        const Node before =
            given[at] ? all[at]
                      : emit_part(element, ir::Opcode::kExtract, read_slot(tensor.node, type, loc),
                                  static_cast<int>(at), loc);
        next = emit(ir::Opcode::kSelect, *guard, next, before, loc);
      }
      all[at] = next;
      given[at] = true;
    }
    if (std::find(given.begin(), given.end(), false) != given.end()) {
      const Node before = read_slot(tensor.node, type, loc);
      for (size_t i = 0; i < all.size(); ++i) {
        if (!given[i]) {
          all[i] = emit_part(element, ir::Opcode::kExtract, before, static_cast<int>(i), loc);
        }
      }
    }
    write_slot(tensor.node, emit_pack(type, all.data(), type.count, loc), loc);
    return;
  }
  const Runs runs(tensor, size, plan.predicate, plan.exact, loc);
  for (int64_t r = 0; r < runs.count(); ++r) {
    const auto guard = condition(plan.predicate, runs.number(r, 0), loc);
    const Access access = access_to(tensor, runs, r, loc);
    if (guard) begin_if(*guard, loc);
    Nodes run;
    for (int k = 0; k < runs.width(); ++k) run.push_back(value(runs.number(r, k)));
    const Node together = runs.width() == 1 ? run[0]
                                            : emit_pack(run_type(tensor.scalar, runs.width()),
                                                        run.data(), runs.width(), loc);
    emit_store(access, together, loc);
    if (guard) {
      next_branch(nullptr, 0, loc);
      end_if(nullptr, 0, nullptr, loc);
    }
  }
}

Node fragment_of(ir::Scalar scalar, absl::Span<const Node> elements, SourceLoc loc) {
  const auto count = static_cast<int>(elements.size());
  return emit_pack(fragment_type(scalar, count, loc), elements.data(), count, loc);
}

Nodes elements_of(const Node& fragment, SourceLoc loc) {
  Nodes elements;
  for (int i = 0; i < fragment.type.count; ++i) {
    elements.push_back(
        emit_part(scalar_type(fragment.type.scalar), ir::Opcode::kExtract, fragment, i, loc));
  }
  return elements;
}

Nodes converted(const Nodes& values, ir::Scalar to, SourceLoc loc) {
  if (values.empty() || values[0].type.scalar == to) return values;
  const Node all = fragment_of(values[0].type.scalar, values, loc);
  const NodeType type = fragment_type(to, all.type.count, loc);
  return elements_of(emit_as(type, ir::Opcode::kConvert, all, loc), loc);
}

}  // namespace heddle::detail
