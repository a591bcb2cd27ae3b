#include <algorithm>
#include <limits>
#include <numeric>

#include "heddle/dsl/layout/polynomial_internal.h"

namespace heddle::detail {
namespace {

__extension__ typedef __int128 Wide;
using Symbols = absl::InlinedVector<SymbolRef, 3>;
using TermSpan = absl::Span<const Term>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

bool fits(Wide value) { return value >= kLeast && value <= kMost; }
Wide wide_gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// --- Terms ----------------------------------------------------------------------------------

int compare(const Symbols& a, const Symbols& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (const int order = detail::compare(*a[i], *b[i]); order != 0) return order;
  }
  return 0;
}

Symbols product(const Symbols& a, const Symbols& b) {
  Symbols all(a);
  all.insert(all.end(), b.begin(), b.end());
  std::stable_sort(all.begin(), all.end(), [](const SymbolRef& x, const SymbolRef& y) {
    return detail::compare(*x, *y) < 0;
  });
  return all;
}

// The symbols of a without those of b; nothing where b has one that a lacks.
std::optional<Symbols> quotient(const Symbols& a, const Symbols& b) {
  Symbols left;
  size_t next = 0;
  for (const SymbolRef& symbol : a) {
    if (next < b.size() && detail::compare(*symbol, *b[next]) == 0) {
      ++next;
    } else {
      left.push_back(symbol);
    }
  }
  if (next < b.size()) return std::nullopt;
  return left;
}

// A coefficient in lowest terms, or false where it does not fit.
bool set_coefficient(Wide numerator, Wide denominator, Term* term) {
  if (denominator != 1) {
    const Wide common = wide_gcd(numerator, denominator);
    numerator /= common;
    denominator /= common;
  }
  if (!fits(numerator) || !fits(denominator)) return false;
  term->numerator = static_cast<int64_t>(numerator);
  term->denominator = static_cast<int64_t>(denominator);
  return true;
}

// Whether the term is an integer for all of its symbols' values. Asks for no divisor in vain.
bool is_integer(const Term& term, bool ask) {
  return term.denominator == 1 || divisor_of(term, ask) != 0;
}

// a * b, where a is in order: multiplying by symbols may change it.
std::optional<Terms> scaled(TermSpan a, const Term& by) {
  Terms result;
  for (const Term& term : a) {
    Term& next = result.emplace_back();
    if (!set_coefficient(Wide{term.numerator} * by.numerator,
                         Wide{term.denominator} * by.denominator, &next)) {
      return std::nullopt;
    }
    next.symbols = by.symbols.empty() ? term.symbols : product(term.symbols, by.symbols);
  }
  if (!by.symbols.empty()) {
    std::sort(result.begin(), result.end(),
              [](const Term& x, const Term& y) { return compare(x.symbols, y.symbols) < 0; });
  }
  return result;
}

// --- Bounds ---------------------------------------------------------------------------------

// Of a term's values: the least, or the most.
Wide bound(const Term& term, bool most) {
  const bool takes_most = most == (term.numerator > 0);
  Wide value = term.numerator;
  for (const SymbolRef& symbol : term.symbols) {
    const int64_t extreme = takes_most ? symbol->most : symbol->least;
    if (extreme == kMost) return value > 0 ? Wide{kMost} : Wide{kLeast};
    value *= extreme;
    if (!fits(value)) return value > 0 ? Wide{kMost} : Wide{kLeast};
  }
  const Wide down = value / term.denominator - (value % term.denominator < 0 ? 1 : 0);
  return most && down * term.denominator != value ? down + 1 : down;
}

// Whether each term is an integer that grows with its symbols: then the terms' bounds are the sum's.
bool all_grow(TermSpan terms) {
  return std::all_of(terms.begin(), terms.end(), [](const Term& term) {
    if (term.symbols.empty()) return term.denominator == 1;
    return term.numerator > 0 && term.denominator == 1 &&
           std::all_of(term.symbols.begin(), term.symbols.end(),
                       [](const SymbolRef& symbol) { return symbol->least >= 0; });
  });
}

// The polynomial in how much more than its least each symbol is. Where that has no negative
// coefficient but the constant one, the constant is the least value; where it has no positive one,
// the most. This sees that x * y >= y, which no bounds of the terms show.
std::optional<int64_t> bound_of_excess(TermSpan terms, bool most) {
  // The expansion of n symbols has 2^n terms.
  constexpr size_t kMostSymbols = 6;
  constexpr size_t kMostTerms = 16;
  if (terms.size() > kMostTerms) return std::nullopt;
  Terms total;
  for (const Term& term : terms) {
    if (term.symbols.size() > kMostSymbols) return std::nullopt;
    Terms part{Term{term.numerator, term.denominator, {}}};
    for (const SymbolRef& symbol : term.symbols) {
      const auto times = scaled(part, Term{1, 1, {symbol}});
      const auto shifted = scaled(part, Term{symbol->least, 1, {}});
      auto next = times && shifted ? sum(*times, *shifted, 1) : std::nullopt;
      if (!next) return std::nullopt;
      // A least of 0 leaves terms of coefficient 0.
      next->erase(std::remove_if(next->begin(), next->end(),
                                 [](const Term& t) { return t.numerator == 0; }),
                  next->end());
      part = *std::move(next);
    }
    auto next = sum(total, part, 1);
    if (!next) return std::nullopt;
    total = *std::move(next);
  }
  int64_t constant = 0;
  for (const Term& term : total) {
    if (term.symbols.empty()) {
      if (term.denominator != 1) return std::nullopt;
      constant = term.numerator;
    } else if ((term.numerator > 0) == most) {
      return std::nullopt;
    }
  }
  return constant;
}

}  // namespace

// --- Symbols --------------------------------------------------------------------------------

Swizzle swizzle_of(const Symbol& symbol) {
  const int64_t code = symbol.b.value();
  return Swizzle(static_cast<int>(code % 64), static_cast<int>(code / 64 % 64),
                 static_cast<int>(code / 4096) - 32);
}

int64_t Symbol::divisor(bool ask) const {
  if (known_divisor != kAsk) return known_divisor;
  const auto of = [ask](const SymInt& n) { return ask ? n.divisor() : n.divisor_if_known(); };
  int64_t found = 1;
  switch (kind) {
    case SymbolKind::kUnknown:
    case SymbolKind::kCeilDiv:
    case SymbolKind::kFloorDiv:
      break;
    case SymbolKind::kTraced:
      if (ask) found = traced_divisor(node);
      break;
    case SymbolKind::kMod:
    case SymbolKind::kMin:
      found = std::gcd(of(a), of(b));
      break;
    case SymbolKind::kSwizzle:  // the bits below its base stay as they are
      found = std::gcd(of(a), int64_t{1} << swizzle_of(*this).base());
      break;
    case SymbolKind::kXor:
      found = std::gcd(of(a), of(b) & -of(b));
      break;
  }
  if (ask) known_divisor = found;
  return found;
}

int compare(const Symbol& a, const Symbol& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.node.bits != b.node.bits) return a.node.bits < b.node.bits ? -1 : 1;  // of which kernel
  if (a.serial != b.serial) return a.serial < b.serial ? -1 : 1;
  if (const int order = compare(a.a, b.a); order != 0) return order;
  return compare(a.b, b.b);
}

int compare(const SymInt& a, const SymInt& b) {
  if (a.is_constant() != b.is_constant()) return a.is_constant() ? -1 : 1;
  if (a.is_constant()) return a.value() < b.value() ? -1 : a.value() > b.value() ? 1 : 0;
  if (&a.polynomial() == &b.polynomial()) return 0;
  const Terms& x = a.polynomial().terms;
  const Terms& y = b.polynomial().terms;
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (const int order = compare(x[i].symbols, y[i].symbols); order != 0) return order;
    if (x[i].numerator != y[i].numerator) return x[i].numerator < y[i].numerator ? -1 : 1;
    if (x[i].denominator != y[i].denominator) return x[i].denominator < y[i].denominator ? -1 : 1;
  }
  return 0;
}

uint64_t hash_of(const SymInt& number, int depth) {
  if (number.is_constant()) return static_cast<uint64_t>(number.value());
  uint64_t hash = 0;
  const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15; };
  for (const Term& term : number.polynomial().terms) {
    mix(static_cast<uint64_t>(term.numerator));
    for (const SymbolRef& symbol : term.symbols) {
      mix(symbol->serial + static_cast<uint64_t>(symbol->kind));
      if (depth == 0) continue;
      mix(hash_of(symbol->a, depth - 1));
      mix(hash_of(symbol->b, depth - 1));
    }
  }
  return hash >> 32;
}

SymInt symbol_number(const Symbol* symbol) {
  Terms terms(1);
  terms[0].symbols.push_back(SymbolRef(symbol));
  return number_of(std::move(terms));
}

// --- Numbers --------------------------------------------------------------------------------

TermsOf::TermsOf(const SymInt& number) {
  if (!number.is_constant()) {
    terms_ = number.polynomial().terms;
  } else if (number.value() != 0) {
    constant_.numerator = number.value();
    terms_ = {&constant_, 1};
  }
}

SymInt number_of(Terms terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].symbols.empty() && terms[0].denominator == 1) {
    return terms[0].numerator;
  }
  auto* const polynomial = new Polynomial;
  polynomial->terms = std::move(terms);
  return SymInt::of(polynomial);
}

// --- Arithmetic -----------------------------------------------------------------------------

std::optional<Terms> sum(TermSpan a, TermSpan b, int factor) {
  Terms result;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const int order = i == a.size() ? 1 : j == b.size() ? -1 : compare(a[i].symbols, b[j].symbols);
    if (order < 0) {
      result.push_back(a[i++]);
      continue;
    }
    Term term = b[j++];
    const Wide scaled = Wide{term.numerator} * factor;
    if (order > 0) {
      if (!set_coefficient(scaled, term.denominator, &term)) return std::nullopt;
    } else {
      const Term& other = a[i++];
      const Wide numerator = Wide{other.numerator} * term.denominator + scaled * other.denominator;
      if (numerator == 0) continue;
      if (!set_coefficient(numerator, Wide{other.denominator} * term.denominator, &term)) {
        return std::nullopt;
      }
    }
    result.push_back(std::move(term));
  }
  return result;
}

std::optional<Terms> product(TermSpan a, TermSpan b) {
  Terms all;
  for (const Term& term : b) {
    auto part = scaled(a, term);
    auto total = part && !all.empty() ? sum(all, *part, 1) : std::move(part);
    if (!total) return std::nullopt;
    all = *std::move(total);
  }
  return all;
}

// Long division by the leading term; what is left gets smaller each time.
std::optional<Terms> quotient(TermSpan a, TermSpan b, bool ask) {
  Terms left(a.begin(), a.end()), found;
  while (!left.empty()) {
    auto symbols = quotient(left[0].symbols, b[0].symbols);
    if (!symbols) return std::nullopt;
    Term term{.symbols = *std::move(symbols)};
    const int sign = b[0].numerator < 0 ? -1 : 1;
    if (!set_coefficient(Wide{left[0].numerator} * b[0].denominator * sign,
                         Wide{left[0].denominator} * b[0].numerator * sign, &term) ||
        !is_integer(term, ask)) {
      return std::nullopt;
    }
    const auto product = scaled(b, term);
    auto rest = product ? sum(left, *product, -1) : std::nullopt;
    if (!rest) return std::nullopt;
    left = *std::move(rest);
    found.push_back(std::move(term));
  }
  return found;
}

void split(TermSpan a, int64_t divisor, Terms* whole, Terms* rest) {
  for (const Term& term : a) {
    Term part = term;
    const int64_t own = divisor_of(term, false);
    if (own != 0 && own % divisor == 0 &&
        set_coefficient(term.numerator, Wide{term.denominator} * divisor, &part)) {
      whole->push_back(std::move(part));
    } else {
      rest->push_back(term);
    }
  }
  // A constant gives what it can.
  if (rest->empty() || !rest->back().symbols.empty() || rest->back().denominator != 1) return;
  const int64_t constant = rest->back().numerator;
  const int64_t left = (constant % divisor + divisor) % divisor;
  const int64_t times = (constant - left) / divisor;
  rest->pop_back();
  if (left != 0) rest->push_back({left, 1, {}});
  if (times != 0) whole->push_back({times, 1, {}});
}

int64_t divisor_of(const Term& term, bool ask) {
  Wide multiple = term.numerator < 0 ? -Wide{term.numerator} : Wide{term.numerator};
  Wide denominator = term.denominator;
  for (const SymbolRef& symbol : term.symbols) {
    multiple *= symbol->divisor(ask);
    if (denominator != 1) {
      const Wide common = wide_gcd(multiple, denominator);
      multiple /= common;
      denominator /= common;
    }
    if (!fits(multiple)) return denominator == 1 ? 1 : 0;
  }
  return denominator == 1 ? static_cast<int64_t>(multiple) : 0;
}

int64_t bound(TermSpan a, bool most) {
  if (a.size() > 1 && !all_grow(a)) {
    if (const auto exact = bound_of_excess(a, most)) return *exact;
  }
  Wide total = 0;
  for (const Term& term : a) {
    const Wide part = bound(term, most);
    if (part >= kMost || part <= kLeast) return most ? kMost : kLeast;
    total += part;
  }
  return total > kMost ? kMost : total < kLeast ? kLeast : static_cast<int64_t>(total);
}

}  // namespace heddle::detail
