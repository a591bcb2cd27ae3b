// What the oracle keeps of a block that runs: its threads' values, and memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "fuzz/inputs.h"
#include "fuzz/oracle_scalar.h"
#include "heddle/ir/kernel.h"

namespace heddle::fuzz::oracle {

// Threads of a block that go somewhere together, by their numbers, in order.
using Threads = std::vector<uint32_t>;

constexpr uint32_t kWarp = 32;

// Bytes with addresses of their own: which piece of memory in the upper half, which byte of it in
// the lower.
class Memory {
 public:
  // The address of a new piece, of zeros.
  uint64_t add(size_t bytes) {
    pieces_.emplace_back(bytes);
    return uint64_t{pieces_.size()} << 32;
  }
  // nullptr where a piece has no such bytes, or the address is no multiple of their number.
  uint8_t* find(uint64_t address, uint64_t bytes) {
    const uint64_t piece = address >> 32;
    const uint64_t offset = address & 0xFFFF'FFFF;
    if (piece == 0 || piece > pieces_.size() || offset % bytes != 0) return nullptr;
    std::vector<uint8_t>& content = pieces_[piece - 1];
    return offset + bytes <= content.size() ? &content[offset] : nullptr;
  }
  std::vector<uint8_t>& piece(uint64_t address) { return pieces_[(address >> 32) - 1]; }
  // Forgets all but the first so many pieces.
  void keep(size_t count) { pieces_.resize(count); }
  size_t size() const { return pieces_.size(); }

 private:
  std::vector<std::vector<uint8_t>> pieces_;
};

// A view's elements are its address and its extent; a check is one, whether it holds.
enum ViewPart : int { kAddress, kExtent };
inline constexpr uint64_t kNoExtent = uint64_t{1} << 62;  // none is known

class State {
 public:
  State(const ir::Kernel& kernel, const Inputs& inputs);

  const ir::Kernel& kernel() const { return kernel_; }
  const Inputs& inputs() const { return inputs_; }
  uint32_t threads() const { return threads_; }
  int64_t block() const { return block_; }
  Memory& memory() { return memory_; }

  // Before each block: its number, and parameters.
  void begin_block(int64_t block);
  // Behind all of them.
  std::vector<std::vector<uint8_t>> buffers();

  // How many elements a value of a type has.
  static int count_of(ir::Type type);
  int count_of(ir::ValueId value) const { return count_of(kernel_.type(value)); }
  // An element of all threads.
  uint64_t* row(ir::ValueId value, int element = 0) {
    return &bits_[(first_[index_of(value)] + static_cast<size_t>(element)) * threads_];
  }
  uint64_t& at(ir::ValueId value, uint32_t thread, int element = 0) {
    return row(value, element)[thread];
  }
  // As a number.
  int64_t number_at(ir::ValueId value, uint32_t thread) {
    return static_cast<int64_t>(integer(kernel_.type(value).scalar, at(value, thread)));
  }
  void fill(ir::ValueId value, const Threads& threads, uint64_t bits, int element = 0) {
    uint64_t* const to = row(value, element);
    for (const uint32_t t : threads) to[t] = bits;
  }
  // All values at once: any of `from` may be one of `to`.
  void copy(absl::Span<const ir::ValueId> from, absl::Span<const ir::ValueId> to,
            const Threads& threads);

  // Where the block's threads are, in x, y and z.
  int64_t coordinate(uint32_t thread, int axis) const;

  // Says what is wrong, and is false: what runs an op returns it.
  bool fail(const std::string& what) {
    if (error_.empty()) error_ = what;
    return false;
  }
  const std::string& error() const { return error_; }

 private:
  const ir::Kernel& kernel_;
  const Inputs& inputs_;
  const uint32_t threads_;
  int64_t block_ = 0;
  std::vector<size_t> first_;   // by value: its first row
  std::vector<uint64_t> bits_;  // a row of threads for each element
  std::vector<uint64_t> copied_;
  Memory memory_;  // the buffers, and then what the block has
  std::vector<uint64_t> buffers_;
  std::string error_;
};

// Runs an op that owns no region, for threads that come together; false where it fails.
using Handler = bool (*)(State& state, const ir::Op& op, const Threads& threads);

// Of one file each; nullptr for ops of the others.
Handler value_handler(ir::Opcode opcode);
Handler memory_handler(ir::Opcode opcode);
Handler warp_handler(ir::Opcode opcode);

// What an atomic, or a reduction, puts in place of an integer x, given v; nullopt where the oracle
// does not know it.
std::optional<uint64_t> reduced(int64_t atomic_op, ir::Scalar scalar, uint64_t x, uint64_t v);

}  // namespace heddle::fuzz::oracle
