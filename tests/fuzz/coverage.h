// Which ops random kernels have, of which element types, and which they never had.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

class Coverage {
 public:
  // Counts a kernel's ops, and what there is in it for passes.
  void add(const ir::Kernel& kernel);

  int64_t ops() const { return ops_; }
  // By mnemonic, and by element type: that of T in the op's row, or of the result. A conversion's is
  // of both: "f32 -> i8".
  const std::map<std::string, std::map<std::string, int64_t>>& made() const { return made_; }
  // How many kernels had each of known_shapes().
  const std::map<std::string, int64_t>& programs_with() const { return programs_with_; }
  // Ops of the table that no kernel had.
  std::vector<std::string> never_made() const;
  // Types for which kernels may have an elementwise op that they had, but for which none had it:
  // "mulhi i64", by the kernels' target.
  std::vector<std::string> never_made_of_type() const;

 private:
  int64_t ops_ = 0;
  std::map<std::string, int64_t> programs_with_;
  std::map<std::string, std::map<std::string, int64_t>> made_;
};

}  // namespace heddle::fuzz
