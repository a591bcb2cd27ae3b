#include "heddle/ir/launch/host_part.h"

#include <vector>

namespace heddle::ir {
namespace {

constexpr Opcode kOfHost[] = {Opcode::kAtLaunch, Opcode::kRequire, Opcode::kLaunchGrid,
                              Opcode::kTensorMap};

class HostPart {
 public:
  explicit HostPart(const Kernel& kernel) : part_(kernel) {}

  Kernel take() && {
    part_.walk([&](OpId id) {
      for (const Opcode opcode : kOfHost) {
        if (part_.op(id).opcode == opcode) need(id);
      }
    });
    // What was stated of the arguments says nothing to the host.
    const std::vector<Guard> facts(part_.facts().begin(), part_.facts().end());
    for (const Guard& fact : facts) part_.set_fact(fact.fact, info(fact.fact.kind).unknown);
    std::vector<OpId> needed;
    part_.walk([&](OpId id) {
      if (needed_[id] != 0) needed.push_back(id);
    });
    for (const OpId id : needed) part_.unlink(id);
    // Backwards: what is erased is not used any more.
    std::vector<OpId> rest;
    for (const OpId id : part_.ops(part_.body())) rest.push_back(id);
    for (auto id = rest.rbegin(); id != rest.rend(); ++id) part_.erase(*id);
    for (const OpId id : needed) part_.append(part_.body(), id);
    return std::move(part_);
  }

 private:
  void need(OpId root) {
    std::vector<OpId> open = {root};
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      if (needed_[id] != 0) continue;
      needed_.at(id) = 1;
      for (const ValueId operand : part_.op(id).operands) {
        const OpId def = part_.value(operand).def;
        if (valid(def)) open.push_back(def);
      }
    }
  }

  Kernel part_;
  IdMap<OpId, uint8_t> needed_{0};
};

}  // namespace

Kernel host_part(const Kernel& kernel) { return HostPart(kernel).take(); }

}  // namespace heddle::ir
