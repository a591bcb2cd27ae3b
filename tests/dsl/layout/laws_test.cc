// The laws of the layout algebra on random layouts: of known numbers, and of numbers that are known
// later, by putting numbers in.
#include <initializer_list>
#include <numeric>
#include <set>
#include <utility>

#include "dsl/layout/random_layout.h"
#include "gtest/gtest.h"

namespace heddle {
namespace {

constexpr int kLayouts = HEDDLE_SANITIZED ? 1500 : 6000;
constexpr int64_t kMostIndices = 300;

int64_t at(const Layout& layout, int64_t index) { return layout(index).value().value(); }
int64_t count(const Layout& layout) { return size(layout).value(); }

std::set<int64_t> image(const Layout& layout) {
  std::set<int64_t> result;
  for (int64_t i = 0; i < count(layout); ++i) result.insert(at(layout, i));
  return result;
}

// Whether they are the same function, whatever modes of one element they have.
bool same_function(const Layout& a, const Layout& b) {
  const Layout x = coalesce(a), y = coalesce(b);
  if (x == y) return true;
  if (count(x) != count(y)) return false;
  for (int64_t i = 0; i < std::min(count(x), kMostIndices); ++i) {
    if (at(x, i) != at(y, i)) return false;
  }
  return true;
}

// --- Each law, of layouts whose numbers are known. What an operation refuses obeys them all. ---

void check_coalesce(const Layout& a, const Layout& result) {
  EXPECT_LE(depth(result), 1);
  ASSERT_EQ(count(result), count(a));
  for (int64_t i = 0; i < std::min(count(a), kMostIndices); ++i) ASSERT_EQ(at(result, i), at(a, i));
}

void check_composition(const Layout& a, const Layout& b, const Layout& result) {
  EXPECT_TRUE(is_compatible(b, result)) << result.to_string();
  for (int64_t i = 0; i < std::min(count(b), kMostIndices); ++i) {
    ASSERT_EQ(at(result, i), at(a, at(b, i))) << result.to_string() << " at " << i;
  }
}

void check_complement(const Layout& a, int64_t target, const Layout& result) {
  // Between modes whose strides are no multiples of each other something is left out, as in CuTe.
  const bool compact = count(filter(a)) == cosize(a).value();
  EXPECT_TRUE(!compact || count(result) >= target / count(filter(a)));
  if (count(a) * count(result) > kMostIndices) return;
  const std::set<int64_t> mine = image(a);
  for (int64_t i = 1; i < count(result); ++i) {
    EXPECT_LT(at(result, i - 1), at(result, i)) << "ordered";
    EXPECT_FALSE(mine.contains(at(result, i))) << "disjoint";
  }
}

void check_right_inverse(const Layout& a, const Layout& result) {
  for (int64_t i = 0; i < std::min(count(result), kMostIndices); ++i) {
    ASSERT_EQ(at(a, at(result, i)), i);
  }
}

void check_left_inverse(const Layout& a, const Layout& result) {
  for (int64_t i = 0; i < std::min(count(a), kMostIndices); ++i) {
    ASSERT_EQ(at(a, at(result, at(a, i))), at(a, i)) << result.to_string() << " at " << i;
  }
}

void check_divide(const Layout& a, const Layout& tiler, const Layout& result) {
  ASSERT_EQ(rank(result), 2);
  EXPECT_TRUE(same_function(get(result, 0), composition(a, tiler)));
  EXPECT_GE(rank(get(result, 1)), 1);
  // A tile that turns out to be one element leaves what a larger one would have left.
  EXPECT_GE(count(result), count(tiler) * count(complement(tiler, coalesce(a).shape())));
}

void check_product(const Layout& a, const Layout& tiler, const Layout& result) {
  ASSERT_EQ(rank(result), 2);
  EXPECT_TRUE(same_function(get(result, 0), a));
  EXPECT_TRUE(is_compatible(tiler, get(result, 1)));
  EXPECT_EQ(count(result), count(a) * count(tiler));
}

// One of the operations, with its law.
struct Operation {
  const char* name;
  Layout (*apply)(const Layout& a, const Layout& b);
  void (*check)(const Layout& a, const Layout& b, const Layout& result);
};

const Operation kOperations[] = {
    {"coalesce", [](const Layout& a, const Layout&) { return coalesce(a); },
     [](const Layout& a, const Layout&, const Layout& r) { check_coalesce(a, r); }},
    {"composition", [](const Layout& a, const Layout& b) { return composition(a, b); },
     &check_composition},
    {"complement", [](const Layout& a, const Layout& b) { return complement(a, size(b)); },
     [](const Layout& a, const Layout& b, const Layout& r) { check_complement(a, count(b), r); }},
    {"right_inverse", [](const Layout& a, const Layout&) { return right_inverse(a); },
     [](const Layout& a, const Layout&, const Layout& r) { check_right_inverse(a, r); }},
    {"left_inverse", [](const Layout& a, const Layout&) { return left_inverse(a); },
     [](const Layout& a, const Layout&, const Layout& r) { check_left_inverse(a, r); }},
    {"logical_divide", [](const Layout& a, const Layout& b) { return logical_divide(a, b); },
     &check_divide},
    {"logical_product", [](const Layout& a, const Layout& b) { return logical_product(a, b); },
     &check_product},
};

TEST(LayoutLaws, HoldForRandomLayouts) {
  RandomLayouts random(1);
  std::map<std::string, int> done;
  for (int n = 0; n < kLayouts; ++n) {
    const Layout a = random.layout(), b = random.layout();
    for (const Operation& operation : kOperations) {
      SCOPED_TRACE(operation.name + ("(" + a.to_string()) + ", " + b.to_string() + ")");
      const Layout result = operation.apply(a, b);
      if (!result.ok()) continue;
      ++done[operation.name];
      operation.check(a, b, result);
      if (HasFatalFailure()) return;
    }
  }
  for (const Operation& operation : kOperations) EXPECT_GT(done[operation.name], kLayouts / 2);
}

// Swizzles that reach beyond their layouts among them.
TEST(LayoutLaws, HoldForSwizzles) {
  RandomLayouts random(3);
  int inverted = 0, composed = 0;
  for (int n = 0; n < kLayouts; ++n) {
    const int bits = random.below(4), shift = bits + random.below(3);
    const Swizzle swizzle(bits, random.below(4), random.below(2) == 0 ? shift : -shift);
    const Layout plain = random.layout_of_bits();
    const Layout a = composition(swizzle, random.layout_of_bits());
    SCOPED_TRACE(plain.to_string() + ", " + a.to_string());
    const Layout right = right_inverse(a), left = left_inverse(a);
    const Layout both = composition(plain, a);
    inverted += right.ok() && left.ok();
    composed += both.ok();
    if (right.ok()) check_right_inverse(a, right);
    if (left.ok()) check_left_inverse(a, left);
    if (both.ok()) check_composition(plain, a, both);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(inverted, kLayouts / 4);
  EXPECT_GT(composed, kLayouts / 4);
}

TEST(LayoutLaws, HoldForWhateverUnknownNumbersTurnOutToBe) {
  RandomLayouts random(2);
  constexpr int kSamples = 10;
  int accepted = 0, refused = 0, coarse = 0, leaves = 0;
  for (int n = 0; n < kLayouts / 4; ++n) {
    random.forget_all();
    const Layout a = random.forget(random.layout());
    const Layout b = random.below(3) == 0 ? random.forget(random.layout()) : random.layout();
    std::vector<Substitution> samples;
    for (int i = 0; i < kSamples; ++i) samples.push_back(random.substitution());
    for (const Operation& operation : kOperations) {
      const std::string name = operation.name + ("(" + a.to_string()) + ", " + b.to_string() + ")";
      SCOPED_TRACE(name);
      const Layout result = operation.apply(a, b);
      bool always = true;
      std::vector<Layout> known;
      for (const Substitution& sample : samples) {
        known.push_back(operation.apply(substituted(a, sample), substituted(b, sample)));
        always &= known.back().ok();
      }
      if (!result.ok()) {
        refused += always;
        if (always) std::printf("refused: %s\n", result.error().c_str());
        continue;
      }
      ++accepted;
      ASSERT_TRUE(always) << result.to_string();
      for (int i = 0; i < kSamples; ++i) {
        const Substitution& sample = samples[static_cast<size_t>(i)];
        const Layout concrete = substituted(result, sample);
        SCOPED_TRACE(concrete.to_string());
        operation.check(substituted(a, sample), substituted(b, sample), concrete);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
      // What divides all samples, where they are many, is what is known to divide.
      for (const IntTuple* part : {&result.shape(), &result.stride()}) {
        for (uint32_t i = 0; i < part->node().span; ++i) {
          const detail::TupleNode& node = (&part->node())[i];
          if (!node.is_int() || node.value.is_constant()) continue;
          int64_t common = 0;
          for (const Substitution& sample : samples) {
            common = std::gcd(common, substituted(node.value, sample));
          }
          ASSERT_EQ(common % node.value.divisor(), 0) << result.to_string();
          ++leaves;
          coarse += common != node.value.divisor();
        }
      }
    }
  }
  std::printf("%d accepted, %d refused, %d of %d divisors coarse\n", accepted, refused, coarse,
              leaves);
  EXPECT_LE(refused, (accepted + refused) / 50);
  // A few samples may have a divisor in common by chance.
  EXPECT_LE(coarse, leaves / 50);
}

// --- Coordinates ------------------------------------------------------------------------------

// Coordinates below a shape, by a number each; others have none that one of these has.
class Numbered {
 public:
  explicit Numbered(const IntTuple& shape)
      : zero_(transform_leaf(shape, [](const IntTuple&) { return 0; })),
        room_(transform_leaf(shape, [](const IntTuple&) { return 1000; })) {}

  int64_t operator()(const IntTuple& coordinate) const {
    return crd2idx(coordinate + zero_, room_).value().value();
  }
  int64_t sum(const IntTuple& a, const IntTuple& b) const { return (*this)(a + b); }

 private:
  IntTuple zero_, room_;
};

TEST(LayoutLaws, HoldForInversesOfCoordinates) {
  RandomLayouts random(4);
  for (int n = 0; n < kLayouts; ++n) {
    const Layout a = random.layout_of_coordinates();
    SCOPED_TRACE(a.to_string());
    const Numbered number(coshape(a));
    const Layout right = right_inverse(a), left = left_inverse(a);
    ASSERT_TRUE(right.ok()) << right.error();
    for (int64_t i = 0; i < count(right); ++i) {
      const IntTuple at = idx2crd(i, product_like(right.shape(), coshape(a)));
      ASSERT_EQ(number(a(right(at))), number(at)) << right.to_string();
    }
    ASSERT_TRUE(left.ok()) << left.error();
    for (int64_t i = 0; i < count(a); ++i) {
      ASSERT_EQ(number(a(left(a(i)))), number(a(i))) << left.to_string();
    }
  }
}

TEST(LayoutLaws, HoldForComplementsAndDivisionsByCoordinates) {
  RandomLayouts random(5);
  int divided = 0;
  for (int n = 0; n < kLayouts / 2; ++n) {
    const Layout tile = random.layout_of_coordinates();
    // Of whole repetitions of the tile, or some more.
    const IntTuple whole = transform_leaf(
        coshape(tile), [&](const IntTuple& x) { return x.value() * (1 + random.below(3)); });
    if (count(tile) == 1) continue;
    const Layout rest = complement(tile, whole);
    SCOPED_TRACE(tile.to_string() + " in " + whole.to_string());
    ASSERT_TRUE(rest.ok()) << rest.error();
    if (count(tile) * count(rest) > 4 * kMostIndices) continue;
    const Numbered number(whole);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < count(tile); ++i) {
      for (int64_t j = 0; j < count(rest); ++j) {
        const IntTuple from = rest(idx2crd(j, rest.shape()));
        ASSERT_TRUE(seen.insert(number.sum(tile(i), from)).second) << rest.to_string();
      }
    }
    for (int64_t i = 0; i < count(make_layout(whole)); ++i) {
      ASSERT_TRUE(seen.contains(number(idx2crd(i, whole)))) << rest.to_string();
    }
    // Any strides will do, for a number of the coordinate is a mode of the layout.
    const Layout layout(
        whole, transform_leaf(whole, [&](const IntTuple&) { return 1 + random.below(50); }));
    const Layout tiles = zipped_divide(layout, tile);
    ASSERT_TRUE(tiles.ok()) << tiles.error();
    ++divided;
    ASSERT_EQ(count(tiles), count(tile) * count(rest));
    for (int64_t i = 0; i < count(tile); ++i) {
      for (int64_t j = 0; j < count(rest); ++j) {
        const IntTuple at = tile(i) + rest(idx2crd(j, rest.shape()));
        ASSERT_EQ(tiles({i, j}), crd2idx(at + idx2crd(0, whole), whole, layout.stride()))
            << tiles.to_string();
      }
    }
  }
  EXPECT_GT(divided, kLayouts / 4);
}

// --- Tiles that do not divide -----------------------------------------------------------------

// A tile whose strides are multiples of what the smaller ones span, of one mode or two.
Layout whole_tile(RandomLayouts* random) {
  const int first = random->one_of({1, 2, 3, 4}), gap = random->one_of({1, 1, 2});
  if (random->below(2) == 0) return make_layout(first, gap);
  return make_layout({first, random->one_of({2, 3})}, {gap, first * gap * (1 + random->below(2))});
}

TEST(LayoutLaws, ACoveredLayoutHasEachElementOnceAndNewOnesOutsideTheShape) {
  RandomLayouts random(6);
  int grown = 0;
  for (int n = 0; n < kLayouts / 10; ++n) {
    const IntTuple shape = repeat_as_tuple(random.shape(), 1);
    const Layout plain(shape, transform_leaf(shape, [&](const IntTuple&) {
                         return random.one_of({1, 2, 3, 10, 100});
                       }));
    const Layout identity = make_identity_layout(shape);
    const Tiler tiler{whole_tile(&random)};
    SCOPED_TRACE(plain.to_string() + ", " + tiler.to_string());
    const Layout covered = cover(plain, tiler), coordinates = cover(identity, tiler);
    ASSERT_TRUE(covered.ok()) << covered.error();
    EXPECT_EQ(covered.stride(), plain.stride());
    EXPECT_EQ(covered.shape(), coordinates.shape());
    EXPECT_EQ(cover(covered, tiler), covered) << "once is enough";
    grown += !(covered == plain);
    const Layout tiles = zipped_divide(covered, tiler), where = zipped_divide(coordinates, tiler);
    ASSERT_TRUE(tiles.ok() && where.ok()) << tiles.error() << where.error();
    ASSERT_EQ(count(tiles), count(where));
    const Layout strict = zipped_divide(identity, tiler);
    if (strict.ok()) {
      EXPECT_EQ(strict, where);
    }
    // By the definition: what the coordinates name is there, once, and nothing else is in the
    // shape.
    std::map<std::string, int> seen;
    for (int64_t i = 0; i < count(tiles); ++i) {
      const IntTuple at = where(i) + idx2crd(0, shape);
      if (!elem_less(at, shape)) continue;
      ++seen[at.to_string()];
      ASSERT_EQ(tiles(i), plain(at)) << tiles.to_string();
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), count(plain)) << where.to_string();
    for (const auto& [at, times] : seen) ASSERT_EQ(times, 1) << at;
  }
  EXPECT_GT(grown, kLayouts / 100);
}

TEST(LayoutLaws, ATileIsCoveredWhateverTheOrderOfItsModes) {
  for (int n = 0; n < 25 * 4 * 2 * 2 * 2; ++n) {
    int rest = n;
    const auto pick = [&](std::initializer_list<int> from) {
      const auto choices = static_cast<int>(from.size());
      return from.begin()[std::exchange(rest, rest / choices) % choices];
    };
    const IntTuple shape = {{pick({2, 3, 4, 5, 6}), pick({2, 3, 4, 5, 6}), 8}};
    const int stride = pick({1, 2, 3, 4}), extent = pick({2, 3});
    const Layout small = make_layout(extent, stride);
    const Layout large = make_layout(pick({2, 6}), extent * stride * pick({1, 3}));
    for (const Layout& tile : {make_layout(small, large), make_layout(large, small)}) {
      const Tiler tiler{tile};
      const Layout covered = cover(make_layout(shape), tiler);
      SCOPED_TRACE(covered.to_string() + ", " + tile.to_string());
      EXPECT_TRUE(elem_less(idx2crd(size(shape).value() - 1, shape), covered.shape()));
      EXPECT_EQ(cover(covered, tiler), covered) << "once is enough";
      const Layout tiles = zipped_divide(covered, tiler);
      EXPECT_TRUE(tiles.ok()) << tiles.error();
    }
  }
}

// --- Other widths -----------------------------------------------------------------------------

TEST(LayoutLaws, ARecastSwizzleMovesTheSameBytes) {
  RandomLayouts random(7);
  int done = 0, torn = 0;
  for (int n = 0; n < kLayouts; ++n) {
    const int bits = random.below(4), shift = bits + random.below(3);
    const Swizzle swizzle(bits, random.below(5), random.below(2) == 0 ? shift : -shift);
    const int many = random.one_of({2, 4, 8});
    const Swizzle narrow = downcast(swizzle, many);
    ASSERT_TRUE(narrow.ok());
    EXPECT_EQ(upcast(narrow, many), swizzle);
    for (int64_t i = 0; i < kMostIndices; ++i) {
      ASSERT_EQ(narrow(i), swizzle(i / many) * many + i % many) << swizzle.to_string();
    }
    const Swizzle wide = upcast(swizzle, many);
    // Whether elements that become one stay together.
    bool together = true;
    for (int64_t i = 0; i < 1024; ++i) {
      together &= swizzle(i) / many == swizzle(i / many * many) / many;
      if (wide.ok()) {
        ASSERT_EQ(wide(i / many), swizzle(i) / many) << swizzle.to_string();
      }
    }
    EXPECT_EQ(wide.ok(), together) << swizzle.to_string() << ", " << many;
    done += wide.ok();
    torn += !wide.ok();
  }
  EXPECT_GT(done, kLayouts / 2);
  EXPECT_GT(torn, kLayouts / 50);
}

}  // namespace
}  // namespace heddle
