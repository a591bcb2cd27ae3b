// What a launch does with its arguments, laid out when a kernel is loaded, so that a launch runs down two tables: whether they are what
// the code was compiled for, and where each goes in the parameter block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/runtime/argument.h"

namespace heddle::runtime {

// Bytes that a parameter block must have behind its own: arguments are written in whole words.
inline constexpr int kPackSlack = 8;

// One kernel's two tables.
class ArgumentPlan {
 public:
  // `params` must live as long as the plan.
  ArgumentPlan(absl::Span<const ir::Guard> guards, absl::Span<const ir::ParamInfo> params,
               const ir::ParamLayout& layout);

  // Whether all facts have the very values of the guards: a trace of these arguments, which must be sound, would come out the same.
  bool fits(Arguments arguments) const;
  // Writes the arguments into a block of layout.bytes + kPackSlack bytes. Bytes between them are unspecified.
  void pack(Arguments arguments, std::byte* block) const;

 private:
  // Where a word is: so many bytes behind the first argument, or the one of mode `dim` of the array that begins where that points.
  struct Place {
    uint32_t bytes;
    uint8_t dim;
    bool indirect;
  };
  // (word & mask) == expected, or the opposite.
  struct Test {
    Place place;
    bool differs;
    uint64_t mask, expected;
  };
  struct Step {
    Place from;
    int to;
  };
  // Whether offsets fit into 32 bits.
  struct Fits32Test {
    uint16_t param;
    bool fits;
  };
  // Whether an argument shares memory with one that the kernel writes.
  struct OverlapTest {
    uint16_t param;
    bool overlaps;
  };

  static Place bits(int param);
  static Place extent(int param, int dim);
  static Place stride(int param, int dim);
  static uint64_t word(Arguments arguments, Place place);
  static Test test_of(const ir::Guard& guard);

  absl::Span<const ir::ParamInfo> params_;
  std::vector<Test> tests_;
  std::vector<Fits32Test> fits32_tests_;
  std::vector<OverlapTest> overlap_tests_;
  std::vector<Step> steps_;
};

}  // namespace heddle::runtime
