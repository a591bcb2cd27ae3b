#include "fuzz/generator_rows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fuzz/inputs.h"

namespace heddle::fuzz {
namespace {

constexpr Scalar kElementTypes[] = {Scalar::kF32, Scalar::kF32, Scalar::kI32,  Scalar::kI8,
                                    Scalar::kU8,  Scalar::kF16, Scalar::kBF16, Scalar::kI16,
                                    Scalar::kF64, Scalar::kU64};
// Bytes that divide addresses; 0: no more than an element's.
constexpr int64_t kAlignments[] = {16, 16, 16, 16, 16, 8, 4, 0};
// What comes behind a row's end and before its beginning: places that start further in, and neighbours.
constexpr int64_t kMostOffset = 16;
constexpr int64_t kMostFurther = 3;
constexpr int64_t kLooseRow = 15;  // elements that a launch may make a row longer by

constexpr int64_t kMostOwnPitch = 6;  // of rows that threads have for themselves
constexpr int64_t kRowTrips = 40;     // of a loop whose trips all threads have
constexpr int64_t kDealtTrips = 450;  // of a thread, in a nest

// What combines a row's elements.
constexpr Opcode kFolds[] = {Opcode::kAdd, Opcode::kAdd, Opcode::kMul,
                             Opcode::kMin, Opcode::kMax, Opcode::kSub};

}  // namespace

void RowGenerator::declare_rows() {
  if (!chance(70)) return;
  // What makes threads show each other what they have done keeps trips where they are.
  plain_ = chance(88);
  const int64_t one[] = {1};
  const auto array = [&](absl::string_view prefix, size_t number, bool read_only) {
    Scalar scalar = one_of(kElementTypes);
    while (ir::is_float(scalar) && !floats_) scalar = one_of(kElementTypes);
    const int64_t extent[] = {chance(50) ? int64_t{kElements} : ir::kDynamic};
    const auto param = static_cast<uint16_t>(kernel_.params().size());
    const ValueId view =
        kernel_.add_param(std::string(prefix) + std::to_string(number),
                          Type::view(scalar, ir::Space::kGlobal, 1, read_only), extent, one);
    kernel_.set_fact({ir::FactKind::kNoOverlap, param}, 1);
    const int64_t alignment = one_of(kAlignments);
    kernel_.set_fact({ir::FactKind::kAlignment, param},
                     std::max<int64_t>(alignment, ir::bytes_of(scalar)));
    return view;
  };
  for (size_t i = 2 + below(2); i > 0; --i) inputs_.push_back(array("u", i, true));
  for (size_t i = 2 + below(3); i > 0; --i) free_.push_back(array("v", i, false));
}

ValueId RowGenerator::place(Opcode opcode, Type index) {
  const ir::Attr axis[] = {{AttrKey::kAxis, 0}};
  const bool has_axis = opcode != Opcode::kLaneId && opcode != Opcode::kWarpId;
  const ValueId value = b_.create(opcode, {}, has_axis ? ir::kI32Type : Type::none(),
                                  absl::MakeConstSpan(axis).first(has_axis ? 1 : 0));
  return index == ir::kI32Type ? value : b_.create(Opcode::kConvert, {value}, index);
}

// Between 0 and a mask, and the same for all threads at all times.
ValueId RowGenerator::of_launch(Type index, int64_t mask) {
  if (trips_ > 1 || chance(40)) {
    return number(index, static_cast<int64_t>(below(static_cast<size_t>(mask) + 1)));
  }
  return make(Opcode::kAnd, {agreed(index.scalar, Scope::kGrid), number(index, mask)});
}

RowGenerator::Dealt RowGenerator::dealt_to(Scope scope, Type index) {
  const auto block = place(Opcode::kBlockIdx, index);
  const auto count = static_cast<int64_t>(threads());
  const auto from = [&](ValueId lane) {
    const int64_t base = chance(65) ? 0 : static_cast<int64_t>(1 + below(20));
    return base == 0 ? lane : b_.create(Opcode::kAdd, {lane, number(index, base)});
  };
  const bool in_rows = kernel_.block.x == 32 && kernel_.block.count() > 32;
  if (scope == Scope::kWarp && count % 32 == 0) {
    const bool by_x = in_rows && chance(50);
    const ValueId warps = number(index, count / 32);
    const ValueId row = b_.create(Opcode::kFma, {block, warps, place(Opcode::kWarpId, index)});
    return {scope, from(place(by_x ? Opcode::kThreadIdx : Opcode::kLaneId, index)),
            number(index, 32), row, 2 * count / 32};
  }
  ValueId thread = block_thread_;
  if (kernel_.block.x == count) {
    thread = place(Opcode::kThreadIdx, index);
  } else if (index != ir::kI32Type) {
    thread = b_.create(Opcode::kConvert, {thread}, index);
  }
  const ValueId lanes = chance(50) && kernel_.block.x == count ? place(Opcode::kBlockDim, index)
                                                               : number(index, count);
  if (scope < Scope::kGrid) return {Scope::kBlock, from(thread), lanes, block, 2};
  const ValueId first = b_.create(Opcode::kAdd, {b_.create(Opcode::kMul, {block, lanes}), thread});
  const ValueId step = b_.create(Opcode::kMul, {place(Opcode::kGridDim, index), lanes});
  return {scope, from(first), step, ValueId::kNone, 1};
}

// Rows beside each other, at least `length` elements each.
RowGenerator::Row RowGenerator::row_of(ValueId view, const Dealt& dealt, int64_t length,
                                       Type index) {
  const ValueId offset = chance(50) ? number(index, 0) : of_launch(index, kMostOffset - 1);
  if (!valid(dealt.number)) return {view, offset};
  const ValueId least = number(index, length + (chance(50) ? 0 : 1));
  const ValueId pitch =
      chance(50) ? least : b_.create(Opcode::kAdd, {least, of_launch(index, kLooseRow - 1)});
  return {view, b_.create(Opcode::kFma, {dealt.number, pitch, offset})};
}

// Where loops along a row end: mostly near its end, or anywhere before.
ValueId RowGenerator::end(int64_t length, Scope scope, Type index) {
  const ValueId most = number(index, length - static_cast<int64_t>(below(chance(70) ? 4 : 200)));
  if (chance(45)) return most;
  ValueId asked = agreed(index.scalar, scope);
  if (chance(60)) asked = make(Opcode::kOr, {asked, number(index, chance(50) ? 256 : 96)});
  if (chance(50)) asked = make(Opcode::kAnd, {asked, number(index, 511)});
  return make(Opcode::kMin, {asked, most});
}

std::vector<RowGenerator::Row> RowGenerator::some_inputs(const Dealt& dealt, int64_t length,
                                                         Type index) {
  std::vector<Row> rows;
  for (size_t i = 1 + below(3); i > 0; --i) {
    rows.push_back(row_of(inputs_[below(inputs_.size())], dealt, length, index));
  }
  return rows;
}

ValueId RowGenerator::at(const Row& row, ValueId index, int64_t further) {
  const ValueId offset = chance(50) ? b_.create(Opcode::kAdd, {row.offset, index})
                                    : b_.create(Opcode::kAdd, {index, row.offset});
  if (further == 0) return offset;
  return b_.create(Opcode::kAdd, {offset, number(kernel_.type(index), further)});
}

void RowGenerator::load_all(const std::vector<Row>& rows, ValueId index, int64_t most_further) {
  for (const Row& row : rows) {
    const Type type = Type::of(kernel_.type(row.view).scalar);
    const auto more = static_cast<int64_t>(below(static_cast<size_t>(most_further) + 1));
    for (const int64_t further : {int64_t{0}, more}) {
      if (further != more && more != 0 && chance(20)) continue;
      ValueId value = load({.view = row.view}, type, at(row, index, further));
      // Of a type that is computed with.
      const bool computes = std::count(std::begin(kStorage), std::end(kStorage), type.scalar) == 0;
      if (!computes) value = make(Opcode::kConvert, {value}, ir::kI32Type);
      if (further == more) break;
    }
  }
}

void RowGenerator::store_trip(const Row& row, ValueId index) {
  const Array array{.view = row.view};
  const Type type = Type::of(kernel_.type(row.view).scalar);
  const ValueId offset = at(row, index, 0);
  if (chance(20)) load(array, type, offset);
  if (chance(85)) return store(array, any(type), offset);
  b_.begin_if(condition());
  const auto branch = [&](bool stores) {
    scope([&] {
      if (stores) store(array, any(type), offset);
      b_.yield({});
    });
  };
  branch(true);
  b_.next_region();
  branch(chance(50));
  b_.end_region();
}

void RowGenerator::loop_along(const Dealt& dealt, ValueId stop, const std::vector<Row>& from,
                              const std::vector<Row>& to, int64_t most_further) {
  b_.begin_for(dealt.first, stop, dealt.step, {});
  inside(Scope::kThread, [&] {
    const ValueId index = kernel_.region(b_.region()).args[0];
    // What threads do not agree on says whose trip it is.
    if (chance(80)) {
      std::erase_if(
          values_, [&](ValueId value) { return value != index && !is_agreed(value, dealt.scope); });
    }
    load_all(from, index, most_further);
    for (size_t i = below(4); i > 0; --i) arithmetic();
    for (const Row& row : to) store_trip(row, index);
    b_.yield({});
  });
  b_.end_region();
}

void RowGenerator::dealt_loop() {
  if (control_ < Scope::kBlock || free_.empty()) return;
  if (trips_ * (kElements / threads()) > kDealtTrips) return;
  static constexpr Scope kScopes[] = {Scope::kWarp, Scope::kBlock, Scope::kGrid, Scope::kGrid};
  const Type index = chance(75) ? ir::kI32Type : ir::kI64Type;
  const Dealt dealt = dealt_to(one_of(kScopes), index);
  const int64_t room = (kElements - kMostOffset - kMostFurther) / dealt.rows - kLooseRow;
  const int64_t length = room - static_cast<int64_t>(below(8));
  const ValueId stop = end(length, dealt.scope, index);
  const std::vector<Row> from = some_inputs(dealt, length, index);
  const auto rows_to = [&](size_t most) {
    std::vector<Row> to;
    for (size_t i = 1 + below(most); i > 0 && !free_.empty(); --i) {
      to.push_back(row_of(free_.back(), dealt, length, index));
      free_.pop_back();
    }
    return to;
  };
  // Threads meet between two runs of a loop, or it shows whose an element was.
  if (trips_ > 1 && chance(70)) b_.create(Opcode::kBarrier, {});
  const std::vector<Row> to = rows_to(2);
  loop_along(dealt, stop, from, to, kMostFurther);
  // Each thread reads what it has stored itself.
  if (!free_.empty() && chance(15)) loop_along(dealt, stop, to, rows_to(1), 0);
}

void RowGenerator::row_loop() {
  if (trips_ * kRowTrips > kMaxTrips) return;
  const Type index = chance(75) ? ir::kI32Type : ir::kI64Type;
  const Dealt dealt = dealt_to(Scope::kBlock, index);
  const Scope together = std::min(control_, Scope::kBlock);
  const bool is_dealt = threads() >= 32 && trips_ == 1 && chance(30);
  const int64_t length = is_dealt ? kElements / 4 : kRowTrips;
  std::vector<Row> from = some_inputs(dealt, length, index);
  if (!is_dealt && chance(40)) {
    // A row of each thread's own.
    const ValueId thread =
        index == ir::kI32Type ? thread_ : b_.create(Opcode::kConvert, {thread_}, index);
    for (Row& row : from) {
      const ValueId pitch = number(index, static_cast<int64_t>(1 + below(kMostOwnPitch)));
      row.offset = b_.create(Opcode::kFma, {thread, pitch, of_launch(index, kMostOffset - 1)});
    }
  }
  ValueId start = dealt.first, step = dealt.step;
  if (!is_dealt) {
    start = chance(40) ? number(index, static_cast<int64_t>(below(5)))
                       : make(Opcode::kAnd, {agreed(index.scalar, together), number(index, 7)});
    step = number(index, chance(75) ? 1 : static_cast<int64_t>(1 + below(3)));
  }
  const ValueId stop = make(Opcode::kMin, {end(length, together, index), number(index, length)});
  std::vector<ValueId> init = carried();
  if (init.empty()) init.push_back(any(Type::of(any_scalar())));
  const ir::OpId loop = b_.begin_for(start, stop, step, init);
  trips_ *= kRowTrips;
  inside(Scope::kThread, [&] {
    const auto args = kernel_.region(b_.region()).args;
    load_all(from, args[0], kMostFurther);
    for (size_t i = below(3); i > 0; --i) arithmetic();
    std::vector<ValueId> next = like(init);
    for (size_t i = 0; i < next.size(); ++i) {
      if (chance(80)) next[i] = make(one_of(kFolds), {args[1 + i], next[i]});
    }
    b_.yield(next);
  });
  trips_ /= kRowTrips;
  b_.end_region();
  keep_results(loop);
  witness();
}

}  // namespace heddle::fuzz
