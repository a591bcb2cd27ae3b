#include "fuzz/shapes.h"

#include <algorithm>
#include <bit>
#include <map>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/analyses.h"
#include "heddle/ir/analysis/int_range.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/check.h"
#include "heddle/ir/launch/launch_program.h"
#include "heddle/ir/passes/dealt_loops.h"
#include "heddle/ir/passes/pipeline.h"

namespace heddle::fuzz {
namespace {

using ir::Kernel;
using ir::Op;
using ir::Opcode;
using ir::OpId;

// What stands for a shape, and the divisors of which it is.
struct DivisionShape {
  absl::string_view name;
  bool (*is)(int64_t divisor, int64_t least, bool is_signed);
};
constexpr DivisionShape kDivisions[] = {
    {"a constant", [](int64_t, int64_t, bool) { return true; }},
    {"a negative constant", [](int64_t d, int64_t, bool is_signed) { return is_signed && d < 0; }},
    {"a power of two",
     [](int64_t d, int64_t least, bool is_signed) {
       const bool negative = is_signed && d < 0 && d != least;
       return std::has_single_bit(static_cast<uint64_t>(negative ? -d : d));
     }},
};
constexpr int kBits[] = {32, 64};
constexpr absl::string_view kByLeast = "division by the least number";
constexpr absl::string_view kByLaunch = "division by what the launch knows";
std::string division_shape(int bits, absl::string_view by) {
  return absl::StrCat("division of ", bits, " bits by ", by);
}

constexpr absl::string_view kOwn = "loop of the same trips for all that is split";
std::string dealt_shape(ir::Scope scope) {
  return absl::StrCat("loop dealt out to a ", ir::name_of(scope), " that is split");
}
constexpr int kBytes[] = {1, 2, 4, 8};
std::string bytes_shape(int bytes) {
  return absl::StrCat("loop dealt out that stores elements of ", bytes, " bytes and is split");
}
constexpr absl::string_view kDealt = "loop dealt out that is split";
constexpr absl::string_view kSeveral = "loop dealt out of several arrays that is split";
constexpr absl::string_view kLeftAlone = "loop dealt out that is left alone";
constexpr absl::string_view kLeftEarly = "loop that an exit leaves";
constexpr absl::string_view kSkipped = "rest of a region that an exit skips";

void add_divisions(const Kernel& kernel, const Op& op, std::set<std::string>& shapes) {
  const ir::Type type = kernel.type(op.result());
  if (!type.is_scalar() || !ir::is_integer(type.scalar)) return;
  const auto divisor = kernel.constant_int(op.b());
  if (!divisor) {
    if (!ir::unknown_at_launch(kernel, op.b())) shapes.emplace(kByLaunch);
    return;
  }
  const int bits = ir::info(type.scalar).bits;
  const int64_t least = ir::type_range(type.scalar).min;
  if (ir::is_signed(type.scalar) && *divisor == least) shapes.emplace(kByLeast);
  for (const DivisionShape& shape : kDivisions) {
    if (shape.is(*divisor, least, ir::is_signed(type.scalar))) {
      shapes.insert(division_shape(bits, shape.name));
    }
  }
}

// Of a dealt loop that was split: what it stored, and of how many arrays.
void add_accesses(const Kernel& kernel, OpId loop, std::set<std::string>& shapes) {
  std::set<ir::ValueId> views;
  kernel.walk(kernel.op(loop).regions[0], [&](OpId inner) {
    const Op& op = kernel.op(inner);
    if (op.opcode != Opcode::kLoad && op.opcode != Opcode::kStore) return;
    views.insert(op.view());
    if (op.opcode == Opcode::kStore) {
      shapes.insert(bytes_shape(ir::bytes_of(kernel.type(op.view()).scalar)));
    }
  });
  if (views.size() > 1) shapes.emplace(kSeveral);
}

// Whether a condition asks a variable of the program.
bool asks_flag(const Kernel& kernel, ir::ValueId condition) {
  const Op* const op = kernel.def(condition);
  if (op == nullptr) return false;
  if (op->opcode == Opcode::kVarLoad) return true;
  const bool combines =
      op->opcode == Opcode::kNot || op->opcode == Opcode::kOr || op->opcode == Opcode::kAnd;
  return combines && std::any_of(op->operands.begin(), op->operands.end(),
                                 [&](ir::ValueId asked) { return asks_flag(kernel, asked); });
}

void add_exits(const Kernel& kernel, std::set<std::string>& shapes) {
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    if (op.opcode == Opcode::kIf && asks_flag(kernel, op.condition())) shapes.emplace(kSkipped);
    if (op.opcode != Opcode::kWhile) return;
    const OpId yield = kernel.terminator(op.regions[0]);
    if (asks_flag(kernel, kernel.op(yield).values()[0])) shapes.emplace(kLeftEarly);
  });
}

void run(Kernel& kernel, absl::string_view passes, std::string stop_after) {
  const Status status = run_pipeline(kernel, passes, {.stop_after = std::move(stop_after)});
  HEDDLE_CHECK(status.ok(), std::string(status.message()));
}

}  // namespace

std::vector<std::string> known_shapes() {
  std::vector<std::string> all;
  for (const int bits : kBits) {
    for (const DivisionShape& shape : kDivisions) all.push_back(division_shape(bits, shape.name));
  }
  for (const absl::string_view shape : {kByLaunch, kByLeast}) all.emplace_back(shape);
  for (const ir::Scope scope : {ir::Scope::kWarp, ir::Scope::kBlock, ir::Scope::kGrid}) {
    all.push_back(dealt_shape(scope));
  }
  for (const int bytes : kBytes) all.push_back(bytes_shape(bytes));
  for (const absl::string_view shape : {kDealt, kSeveral, kLeftAlone, kOwn, kLeftEarly, kSkipped}) {
    all.emplace_back(shape);
  }
  return all;
}

std::set<std::string> shapes_of(const Kernel& kernel) {
  std::set<std::string> shapes;
  add_exits(kernel, shapes);
  // As they are written, and with uses: of what nothing uses, no mistake shows.
  Kernel live = kernel;
  run(live, "promote-vars,dce", "");
  live.walk([&](OpId id) {
    const Op& op = live.op(id);
    if (op.opcode == Opcode::kDiv || op.opcode == Opcode::kRem) add_divisions(live, op, shapes);
  });
  Kernel ready = kernel;
  run(ready, ir::kDefaultPipeline, "cse");
  std::map<OpId, std::optional<ir::Dealing>> loops;
  {
    ir::Analyses analyses(ready);
    ir::DealtLoops dealt(ready, analyses.get<ir::Aliasing>(), analyses.get<ir::Uniformity>(),
                         analyses.get<ir::Sums>());
    ready.walk([&](OpId id) {
      const Op& op = ready.op(id);
      if (op.opcode == Opcode::kFor) loops[id] = dealt.of(id);
    });
  }
  Kernel split = ready;
  run(split, "widen-loops", "");
  std::set<OpId> left;
  split.walk([&](OpId id) { left.insert(id); });
  for (const auto& [id, dealing] : loops) {
    const bool is_split = left.count(id) == 0;
    if (!dealing) {
      if (is_split) shapes.emplace(kOwn);
    } else if (is_split) {
      shapes.emplace(kDealt);
      shapes.insert(dealt_shape(dealing->scope));
      add_accesses(ready, id, shapes);
    } else {
      shapes.emplace(kLeftAlone);
    }
  }
  return shapes;
}

}  // namespace heddle::fuzz
