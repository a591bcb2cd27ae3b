#include "fuzz/inputs.h"

#include <algorithm>
#include <map>
#include <random>

#include "heddle/ir/text/literal.h"

namespace heddle::fuzz {
namespace {

using ir::Scalar;

uint64_t mask_of(Scalar scalar) { return ~uint64_t{0} >> (64 - ir::value_bits(scalar)); }

int fraction_digits(Scalar scalar) {
  switch (scalar) {
    case Scalar::kF64:
      return 52;
    case Scalar::kF32:
      return 23;
    case Scalar::kBF16:
      return 7;
    case Scalar::kE4M3:
      return 3;
    case Scalar::kE5M2:
      return 2;
    default:
      return 10;
  }
}

constexpr size_t kMostAlignment = 16;  // of what memory a view may want

size_t alignment_of(const ir::Kernel& kernel, size_t param) {
  for (const ir::Guard& guard : kernel.facts()) {
    if (guard.fact.kind != ir::FactKind::kAlignment || guard.fact.param != param) continue;
    return static_cast<size_t>(guard.value);
  }
  return kMostAlignment;
}

// Where facts say that views of a buffer are aligned to less, some buffers' begin at a place that is aligned to no more.
void move_starts(const ir::Kernel& kernel, Inputs& inputs, std::mt19937_64& random) {
  std::vector<size_t> alignments(inputs.buffers.size(), 1);
  const auto for_views = [&](auto visit) {
    for (size_t p = 0; p < kernel.params().size(); ++p) {
      if (kernel.type(kernel.params()[p].value).is_view()) visit(p, inputs.arguments[p]);
    }
  };
  for_views([&](size_t p, const Inputs::Argument& argument) {
    size_t& alignment = alignments[argument.buffer];
    alignment = std::max(alignment, alignment_of(kernel, p));
  });
  std::vector<size_t> starts;
  for (const size_t alignment : alignments) {
    const size_t places = kMostAlignment / alignment;
    starts.push_back(random() % 4 == 0 ? 0 : random() % places * alignment);
  }
  for_views([&](size_t, Inputs::Argument& argument) { argument.start = starts[argument.buffer]; });
}

}  // namespace

uint64_t edge_bits(Scalar scalar, uint64_t random) {
  const int width = ir::value_bits(scalar);
  const uint64_t mask = mask_of(scalar);
  const auto pick = [&](uint64_t n) {
    const uint64_t part = random % n;
    random /= n;
    return part;
  };
  if (scalar == Scalar::kBool) return pick(2);
  if (ir::is_float(scalar)) {
    // Powers of two around one, zeros, infinities and subnormals, with few digits and either sign.
    const int fraction = fraction_digits(scalar);
    const uint64_t exponents = (uint64_t{1} << (width - 1 - fraction)) - 1;
    const uint64_t sign = pick(2) << (width - 1);
    const uint64_t digits = pick(4) << (fraction - 2);
    const uint64_t kinds[] = {0, 1, exponents - 1, exponents, exponents / 2};
    const uint64_t kind = pick(16);
    const uint64_t exponent = kind < 5 ? kinds[kind] : exponents / 2 - 3 + pick(8);
    return sign | exponent << fraction | digits;
  }
  static constexpr uint64_t kSmall[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64, 100, 255};
  uint64_t value = 0;
  switch (pick(4)) {
    case 0:
    case 1:
      value = kSmall[pick(std::size(kSmall))];
      break;
    case 2:  // around the signed edges
      value = (uint64_t{1} << (width - 1)) + pick(17) - 8;
      break;
    default:  // around a power of two
      value = (uint64_t{1} << pick(static_cast<uint64_t>(width))) + pick(5) - 2;
  }
  return (pick(2) != 0 ? value : 0 - value) & mask;
}

ir::Dim3 grid_for(uint64_t seed) { return {seed % 3 == 0 ? 2 : 1, 1, 1}; }

Inputs inputs_for(const ir::Kernel& kernel, uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x5EED'0001);
  Inputs inputs;
  inputs.grid = grid_for(seed);
  inputs.block = kernel.has_dynamic_block() ? ir::Dim3{64, 1, 1} : kernel.block;
  const bool share = random() % 2 == 0;
  std::map<Scalar, size_t> shared_buffers;
  for (size_t p = 0; p < kernel.params().size(); ++p) {
    const ir::Type type = kernel.type(kernel.params()[p].value);
    const uint64_t edge = edge_bits(type.scalar, random());
    const uint64_t any = random() & mask_of(type.scalar);
    Inputs::Argument argument;
    argument.scalar = random() % 4 != 0 ? edge : any;
    if (type.is_view()) {
      bool apart = !share;
      for (const ir::Guard& guard : kernel.facts()) {
        apart |= guard.fact.kind == ir::FactKind::kNoOverlap && guard.fact.param == p;
      }
      const auto [it, fresh] = shared_buffers.emplace(type.scalar, inputs.buffers.size());
      argument.buffer = apart ? inputs.buffers.size() : it->second;
      if (apart || fresh) {
        std::vector<uint8_t> bytes;
        const auto size = static_cast<size_t>(kElements * ir::bytes_of(type.scalar));
        while (bytes.size() < size + kMostAlignment) {
          const uint64_t word = random() % 2 == 0 ? edge_bits(type.scalar, random()) : random();
          for (int b = 0; b < ir::bytes_of(type.scalar); ++b) {
            bytes.push_back(static_cast<uint8_t>(word >> (8 * b)));
          }
        }
        inputs.buffers.push_back(std::move(bytes));
        // A view that stands apart is not the one that others share.
        if (apart && fresh) shared_buffers.erase(it);
      }
    }
    inputs.arguments.push_back(argument);
  }
  move_starts(kernel, inputs, random);
  return inputs;
}

}  // namespace heddle::fuzz
