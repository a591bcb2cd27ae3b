#include "heddle/codegen/parallel_copy.h"

#include "absl/container/flat_hash_map.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {
namespace {

uint64_t key_of(const Operand& reg) {
  return reg.payload * kRegClassCount + static_cast<uint64_t>(reg.reg_class);
}

}  // namespace

void sequence_copies(absl::Span<const Copy> copies, RegisterFile& registers,
                     std::vector<Copy>* moves) {
  // A copy may go as soon as nobody still has to read its destination. Constants read no register,
  // so they wait like everything else, but nobody waits for them.
  struct Pending {
    Copy copy;
    int blockers = 0;  // copies, this one aside, that read its destination
    bool done = false;
  };
  std::vector<Pending> pending;
  absl::flat_hash_map<uint64_t, int> writer;  // register -> the pending copy that writes it
  for (const Copy& copy : copies) {
    HEDDLE_CHECK(!copy.to.is_constant && copy.to.reg_class == copy.from.reg_class,
                 "a copy must go to a register of its source's class");
    if (copy.to == copy.from) continue;
    const bool fresh = writer.emplace(key_of(copy.to), static_cast<int>(pending.size())).second;
    HEDDLE_CHECK(fresh, "two parallel copies write one register");
    pending.push_back({.copy = copy});
  }
  const auto writer_of = [&writer](const Operand& reg) {
    if (reg.is_constant) return -1;
    const auto it = writer.find(key_of(reg));
    return it == writer.end() ? -1 : it->second;
  };
  for (const Pending& reader : pending) {
    const int blocked = writer_of(reader.copy.from);
    if (blocked >= 0) ++pending[blocked].blockers;
  }

  std::vector<int> ready;
  for (int i = static_cast<int>(pending.size()) - 1; i >= 0; --i) {
    if (pending[i].blockers == 0) ready.push_back(i);
  }
  const auto drain = [&] {
    while (!ready.empty()) {
      Pending& next = pending[ready.back()];
      ready.pop_back();
      moves->push_back(next.copy);
      next.done = true;
      const int unblocked = writer_of(next.copy.from);
      if (unblocked >= 0 && --pending[unblocked].blockers == 0) ready.push_back(unblocked);
    }
  };
  drain();
  // What is left are cycles. Saving one destination opens its cycle: its reader reads the copy.
  for (Pending& stuck : pending) {
    if (stuck.done) continue;
    const Operand saved = registers.fresh(stuck.copy.to.reg_class);
    moves->push_back({saved, stuck.copy.to});
    for (Pending& reader : pending) {
      if (!reader.done && reader.copy.from == stuck.copy.to) reader.copy.from = saved;
    }
    stuck.blockers = 0;
    ready.push_back(static_cast<int>(&stuck - pending.data()));
    drain();
  }
}

}  // namespace heddle::codegen
