#include "vectors/inputs.h"

#include <algorithm>
#include <random>

#include "heddle/ir/analysis/fold_scalar.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/text/literal.h"

namespace heddle::vectors {
namespace {

using ir::Scalar;

// Vectors of a case that has more than all can have.
constexpr size_t kVectors = 1024;
// Up to so many bits of operands, every value is taken.
constexpr int kExhaustiveBits = 16;

uint64_t mask(int bits) { return ~uint64_t{0} >> (64 - bits); }
uint64_t bit(int position) { return uint64_t{1} << position; }

// The fields of a float type, found from its numbers: 1.0 has nothing but the exponent's bias.
struct Format {
  explicit Format(Scalar scalar)
      : bits(ir::info(scalar).bits),
        one(ir::float_bits(scalar, 1)),
        fraction(ir::float_bits(scalar, 2) - one),
        bias(static_cast<int>(one / fraction)) {}

  int bits;
  uint64_t one;
  uint64_t fraction;  // the lowest bit of the exponent
  int bias;

  uint64_t sign() const { return bit(bits - 1); }
  uint64_t exponents() const { return sign() / fraction; }  // how many there are
};

class Generator {
 public:
  explicit Generator(const Case& c) : case_(c), random_(seed_of(c.name)) {}

  std::vector<Column> run() {
    columns_.resize(case_.operands.size());
    int bits = 0;
    for (const Scalar scalar : case_.operands) bits += ir::value_bits(scalar);
    if (bits <= kExhaustiveBits) {
      add_all(bits);
    } else {
      add_edges();
      while (columns_[0].size() < kVectors) add(random_tuple());
    }
    return std::move(columns_);
  }

 private:
  static uint64_t seed_of(const std::string& name) {
    return checksum({Column(name.begin(), name.end())});
  }

  uint64_t below(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }

  void add(const Column& tuple) {
    if (!is_specified(case_.opcode, working_type(case_), tuple)) return;
    for (size_t i = 0; i < tuple.size(); ++i) columns_[i].push_back(tuple[i]);
  }

  void add_all(int bits) {
    Column tuple(case_.operands.size());
    for (uint64_t all = 0; all < bit(bits); ++all) {
      uint64_t rest = all;
      for (size_t i = 0; i < tuple.size(); ++i) {
        const int width = ir::value_bits(case_.operands[i]);
        tuple[i] = rest & mask(width);
        rest >>= width;
      }
      add(tuple);
    }
  }

  // Every combination of edges, as far as there is room: the rest is drawn.
  void add_edges() {
    std::vector<Column> edges;
    size_t combinations = 1;
    for (const Scalar scalar : case_.operands) {
      edges.push_back(case_.operands.size() == 1 ? all_edges(scalar) : main_edges(scalar));
      combinations *= edges.back().size();
    }
    constexpr size_t kRoom = kVectors / 8 * 5;
    Column tuple(case_.operands.size());
    for (size_t n = 0; n < std::min(combinations, kRoom); ++n) {
      size_t rest = combinations <= kRoom ? n : below(combinations);
      for (size_t i = 0; i < tuple.size(); ++i) {
        tuple[i] = edges[i][rest % edges[i].size()];
        rest /= edges[i].size();
      }
      add(tuple);
    }
  }

  // --- Edges ---

  static Column main_edges(Scalar scalar) {
    if (scalar == Scalar::kBool) return {0, 1};
    const uint64_t all = mask(ir::info(scalar).bits);
    Column edges;
    if (is_float(scalar)) {
      const Format f(scalar);
      const uint64_t infinity = all / 2 + 1 - f.fraction;
      for (const uint64_t positive :
           {uint64_t{0}, uint64_t{1}, f.fraction - 1, f.fraction, f.one - f.fraction, f.one,
            f.one + 1, f.one + f.fraction + f.fraction / 2, infinity - 1, infinity,
            infinity + f.fraction / 2 + 1, infinity + 1}) {
        edges.push_back(positive);
        edges.push_back(positive | f.sign());
      }
      return edges;
    }
    const auto width = static_cast<uint64_t>(ir::info(scalar).bits);
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{7}, width - 1, width,
          width + 1, bit(static_cast<int>(width) / 2), all / 3, all / 2, all / 2 - 1}) {
      edges.push_back(value);
      edges.push_back(all - value);  // -1, -2, … and the smallest
    }
    return edges;
  }

  // Those, powers of two and their neighbours; for floats also in steps of a half.
  static Column all_edges(Scalar scalar) {
    Column edges = main_edges(scalar);
    const uint64_t all = mask(ir::info(scalar).bits);
    const auto with_neighbours = [&](uint64_t value) {
      for (const uint64_t near : {value - 1, value, value + 1}) edges.push_back(near & all);
    };
    if (!is_float(scalar)) {
      for (int k = 1; k < ir::info(scalar).bits; ++k) {
        with_neighbours(bit(k));
        with_neighbours(~bit(k) + 1);
      }
      return edges;
    }
    const Format f(scalar);
    for (int k = 0; k <= 64; ++k) {
      const uint64_t power = f.one + static_cast<uint64_t>(k) * f.fraction;
      for (const uint64_t number : {power, power | f.sign()}) with_neighbours(number);
    }
    for (double x = -4.5; x <= 4.5; x += 0.5) with_neighbours(ir::float_bits(scalar, x));
    // Where 8- and 16-bit floats overflow, or become subnormal, or zero.
    for (const double x : {464.0, 448.0, 61440.0, 57344.0, 65520.0, 0x1.FFp127, 0x1p-6, 0x1p-10,
                           0x1p-14, 0x1p-17, 0x1p-25, 0x1p-126, 0x1p-134}) {
      with_neighbours(ir::float_bits(scalar, x));
      with_neighbours(ir::float_bits(scalar, -x));
    }
    return edges;
  }

  // --- Random numbers ---

  // `bits` of them: some random ones, then a tail that lies at a tie, beside one, or anywhere.
  uint64_t random_digits(int bits) {
    if (bits == 0) return 0;
    const int tail = static_cast<int>(below(static_cast<uint64_t>(bits) + 1));
    const uint64_t head = random_() << tail;
    if (tail == 0) return head & mask(bits);
    const uint64_t tie = bit(tail - 1);
    const uint64_t tails[] = {0, tie, tie - 1, tie + 1, 2 * tie - 1, random_()};
    return (head | (tails[below(std::size(tails))] & mask(tail))) & mask(bits);
  }

  uint64_t random_float(Scalar scalar) {
    const Format f(scalar);
    const auto spread = static_cast<int>(f.exponents());
    const int reach[] = {std::min(spread, 24), std::min(spread, 80), std::min(spread, 320), spread};
    const int width = reach[below(std::size(reach))];
    const int drawn = f.bias + static_cast<int>(below(static_cast<uint64_t>(width))) - width / 2;
    const auto exponent = static_cast<uint64_t>(std::clamp(drawn, 0, spread - 1));
    int digits = 0;
    while (bit(digits) != f.fraction) ++digits;
    const uint64_t number = exponent * f.fraction + random_digits(digits);
    return one_in(2) ? number | f.sign() : number;
  }

  uint64_t random_bits(Scalar scalar) {
    if (scalar == Scalar::kBool) return below(2);
    if (is_float(scalar)) return random_float(scalar);
    const int width = ir::info(scalar).bits;
    const int length = static_cast<int>(below(static_cast<uint64_t>(width)));
    const uint64_t magnitude = bit(length) | random_digits(length);
    return (one_in(2) ? magnitude : ~magnitude + 1) & mask(width);
  }

  // Something like the operand before, or, as the third one, like minus the product of the others.
  uint64_t related(Scalar scalar, const Column& before) {
    const int width = ir::info(scalar).bits;
    if (before.size() == 2 && is_float(scalar)) {
      const double product = float_value(scalar, before[0]) * float_value(scalar, before[1]);
      // Which NaN it would be is the compiler's choice.
      if (product == product) return (ir::float_bits(scalar, -product) + below(2)) & mask(width);
    }
    const uint64_t last = before.back();
    const uint64_t negative = is_float(scalar) ? last ^ bit(width - 1) : ~last + 1;
    const uint64_t near = one_in(2) ? last : negative;
    return (near + below(5) - 2) & mask(width);
  }

  Column random_tuple() {
    Column tuple;
    for (size_t i = 0; i < case_.operands.size(); ++i) {
      const Scalar scalar = case_.operands[i];
      const bool like_last = i > 0 && case_.operands[i - 1] == scalar && one_in(4);
      tuple.push_back(like_last ? related(scalar, tuple) : random_bits(scalar));
    }
    return tuple;
  }

  const Case& case_;
  std::mt19937_64 random_;
  std::vector<Column> columns_;
};

}  // namespace

std::vector<Column> inputs_for(const Case& c) { return Generator(c).run(); }

uint64_t checksum(const std::vector<Column>& columns) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const Column& column : columns) {
    for (const uint64_t value : column) {
      for (int shift = 0; shift < 64; shift += 8) {
        hash = (hash ^ (value >> shift & 0xFF)) * 0x100000001B3;
      }
    }
  }
  return hash;
}

}  // namespace heddle::vectors
