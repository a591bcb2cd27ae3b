#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/passes/passes.h"

namespace heddle::ir {
namespace {

// The first variable that is left.
Diagnostics variables_of(const Kernel& kernel) {
  OpId found = OpId::kNone;
  kernel.walk([&](OpId id) {
    if (!valid(found) && kernel.op(id).opcode == Opcode::kVar) found = id;
  });
  if (!valid(found)) return {};
  const Loc loc = kernel.loc(found);
  return {{.place = {std::string(loc.file), loc.line},
           .message = "a variable is left, but from here on values are immutable",
           .notes = {},
           .fix = "run the pass promote-vars first",
           .op = {}}};
}

}  // namespace

absl::Span<const Pass> builtin_passes() {
  // What survives a pass that moves, makes or removes ops. Ints and GuardedInts count on the conditions around an op;
  // Sums name values, which must go on existing; Uniformity is of the values that there were.
  static const Pass::Names kWhereOpsMove = {Aliasing::kName, MovableInts::kName};
  static const Pass::Names kWhereOpsAreMade = {Aliasing::kName, Ints::kName, GuardedInts::kName,
                                               MovableInts::kName};
  // A quotient that becomes a shift or a product is another number where a condition around it does not hold.
  static const Pass::Names kByConditions = {Aliasing::kName, Ints::kName, GuardedInts::kName};
  static const Pass::Names kWhereOpsGo = {Aliasing::kName, Ints::kName, GuardedInts::kName,
                                          MovableInts::kName, Uniformity::kName};
  static const auto* const passes = new std::vector<Pass>{
      {.name = "promote-vars",
       .summary = "Turn variables into SSA values that loops and ifs carry",
       .run = promote_vars,
       .gives = {kNoVariables}},
      // In front of what looks for known trips and for equal values.
      {.name = "equal-extents",
       .summary = "Take one extent for all that the launch compares",
       .run = equal_extents,
       .keeps = {Aliasing::kName}},
      {.name = "unroll",
       .summary = "Unroll short loops in full, and others where the program asks for it",
       .run = unroll,
       .needs = {kNoVariables},
       .options =
           {{.name = "factor",
             .otherwise = 1,
             .least = 1,
             .most = 64,
             .says = "trips side by side in loops that do not ask"},
            {.name = "full",
             .otherwise = 8,
             .least = 0,
             .most = 64,
             .says = "most trips, in short loops that do not ask, to stand side by side in full"}}},
      {.name = "fold", .summary = "Fold constants and simplify", .run = fold},
      {.name = "if-convert",
       .summary = "Turn ifs that only choose between values into selects",
       .run = if_convert,
       .needs = {kNoVariables},
       .keeps = kWhereOpsMove},
      // In front of what lowers divisions.
      {.name = "narrow",
       .summary = "Do arithmetic of 64 bits in 32 where that is enough",
       .run = narrow,
       .keeps = {Aliasing::kName}},
      {.name = "reduce-strength",
       .summary = "Turn divisions by computed powers of two into shifts and masks",
       .run = reduce_strength,
       .keeps = kByConditions},
      {.name = "warp-index",
       .summary = "Compute what a warp has in common from its number",
       .run = warp_index,
       .keeps = kByConditions},
      {.name = "dce", .summary = "Eliminate dead code", .run = dce, .keeps = kWhereOpsGo},
      // A variable hides what a loop changes, so before promote-vars nothing would move.
      {.name = "licm",
       .summary = "Hoist loop-invariant code",
       .run = licm,
       .needs = {kNoVariables},
       .keeps = kWhereOpsMove},
      {.name = "cse",
       .summary = "Eliminate common subexpressions",
       .run = cse,
       .keeps = kWhereOpsGo},
      // Behind licm, so that what the offsets of all trips share stands before the loop.
      {.name = "widen-loops",
       .summary = "Split loops along arrays into rounds as wide as an access",
       .run = widen_loops,
       .needs = {kNoVariables}},
      {.name = "unroll-loads",
       .summary = "Unroll loops so that loads of several trips are under way",
       .run = unroll_loads,
       .needs = {kNoVariables},
       .options = {{.name = "trips",
                    .otherwise = 4,
                    .least = 2,
                    .most = 16,
                    .says = "trips whose loads are under way together"}}},
      {.name = "vectorize",
       .summary = "Merge neighbouring accesses into accesses to vectors",
       .run = vectorize,
       .keeps = kWhereOpsAreMade,
       .options = {{.name = "bytes",
                    .otherwise = 32,
                    .least = 2,
                    .most = 32,
                    .says = "the most of an access, where the target has as many"}}},
      // Behind vectorize, which leaves one access of several.
      {.name = "share-addresses",
       .summary = "Compute offsets that differ by constants from each other",
       .run = share_addresses,
       .needs = {kNoVariables},
       .keeps = kWhereOpsAreMade},
      {.name = "lower-division",
       .summary = "Divide by constants and by what the launch knows through multiplications",
       .run = lower_division,
       .keeps = kByConditions},
      // Behind cse and share-addresses, which find equal values in front of an if.
      {.name = "sink",
       .summary = "Move what one branch alone uses into it",
       .run = sink,
       .needs = {kNoVariables},
       .keeps = kWhereOpsMove},
      // Behind vectorize, which merges neighbours of one block.
      {.name = "early-loads",
       .summary = "Move loads in front of the pins that ask for them",
       .run = early_loads,
       .needs = {kNoVariables},
       .keeps = kWhereOpsMove,
       .options = {{.name = "registers",
                    .otherwise = 16,
                    .least = 0,
                    .most = 255,
                    .says = "the most of a thread that wait for loads at a pin"}}},
      {.name = "contract",
       .summary = "Contract multiplications and additions to fma (changes roundings)",
       .run = contract,
       .keeps = kWhereOpsAreMade},
      // Behind contract, which fuses single elements.
      {.name = "pack-arithmetic",
       .summary = "Compute neighbours of a vector by one instruction",
       .run = pack_arithmetic,
       .keeps = kWhereOpsAreMade},
  };
  return *passes;
}

absl::Span<const Property> builtin_properties() {
  static const auto* const properties = new std::vector<Property>{
      {.name = kNoVariables, .says = "a kernel without variables", .check = variables_of},
  };
  return *properties;
}

}  // namespace heddle::ir
