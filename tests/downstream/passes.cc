// A plug-in with passes of its own: one that counts, one of rules, and an analysis that they share.
#include <heddle/ir/passes/rewrite_rule.h>

#include <cstdio>
#include <map>
#include <string>

using namespace heddle;

// <page>
// How many loops stand around each op.
class Depths {
 public:
  static constexpr absl::string_view kName = "depths";
  explicit Depths(const ir::Kernel& kernel) { visit(kernel, kernel.body(), 0); }

  int of(ir::OpId op) const { return depths_[op]; }

 private:
  void visit(const ir::Kernel& kernel, ir::RegionId region, int depth) {
    for (const ir::OpId id : kernel.ops(region)) {
      const ir::Op& op = kernel.op(id);
      depths_.at(id) = depth;
      for (const ir::RegionId inner : op.regions) {
        visit(kernel, inner, depth + (ir::is_loop(op) ? 1 : 0));
      }
    }
  }

  ir::IdMap<ir::OpId, int> depths_;
};
// </page>

// <page>
// Bytes that a thread moves from and to global memory, by source line.
StatusOr<bool> count_traffic(ir::PassContext& context) {
  const ir::Kernel& kernel = context.kernel();
  const Depths& depths = context.analysis<Depths>();
  std::map<std::string, int> bytes;
  kernel.walk([&](ir::OpId id) {
    const ir::Op& op = kernel.op(id);
    if (op.opcode != ir::Opcode::kLoad && op.opcode != ir::Opcode::kStore) return;
    if (kernel.type(op.view()).space != ir::Space::kGlobal) return;
    const bool loads = op.opcode == ir::Opcode::kLoad;
    const ir::Type moved = kernel.type(loads ? op.result() : op.value());
    const ir::Loc place = kernel.loc(id);
    bytes[std::string(place.file) + ":" + std::to_string(place.line) + ": " +
          (loads ? "loads" : "stores") + (depths.of(id) > 0 ? " in a loop" : "")] +=
        ir::bytes_of(moved.scalar) * moved.count;
  });
  for (const auto& [line, count] : bytes) {
    std::fprintf(stderr, "traffic: %s %d bytes\n", line.c_str(), count);
  }
  return false;  // the kernel is as it was
}

const ir::RegisteredPass traffic({.name = "traffic",
                                  .summary = "Count the bytes that threads move",
                                  .run = count_traffic,
                                  .after = "pack-arithmetic"});
// </page>

// <page>
const ir::RegisteredPass normalise(ir::rewrite_pass(
    {.name = "normalise",
     .summary = "Divide by square roots by rsqrt, which is quick and off in the last bits",
     .after = "fold",
     .targets = {"sm_90a"}},
    {{.match = "(div a (sqrt b))",
      .when = [](const ir::RuleMatch& m) { return m.type("a").scalar == ir::Scalar::kF32; },
      .replace = "(mul a (rsqrt b))"}}));
// </page>
