#include "heddle/dsl/layout/sym_int.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "heddle/dsl/internal/polynomial.h"
#include "heddle/dsl/layout/swizzle.h"

namespace heddle {
namespace detail {
namespace {

__extension__ typedef __int128 Wide;
using Terms = absl::InlinedVector<Term, 2>;
using Symbols = absl::InlinedVector<SymbolRef, 3>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

bool fits(Wide value) { return value >= kLeast && value <= kMost; }
int64_t clamped(Wide value) {
  return value > kMost ? kMost : value < kLeast ? kLeast : static_cast<int64_t>(value);
}
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
  const Wide common = wide_gcd(numerator, denominator);
  if (common > 1) {
    numerator /= common;
    denominator /= common;
  }
  if (!fits(numerator) || !fits(denominator)) return false;
  term->numerator = static_cast<int64_t>(numerator);
  term->denominator = static_cast<int64_t>(denominator);
  return true;
}

// What divides every value of the term; 0: it is no integer for all of them.
int64_t divisor_of(const Term& term, bool ask = true) {
  Wide multiple = term.numerator < 0 ? -Wide{term.numerator} : Wide{term.numerator};
  Wide denominator = term.denominator;
  for (const SymbolRef& symbol : term.symbols) {
    multiple *= symbol->divisor(ask);
    const Wide common = wide_gcd(multiple, denominator);
    multiple /= common;
    denominator /= common;
    if (!fits(multiple)) return denominator == 1 ? 1 : 0;
  }
  return denominator == 1 ? static_cast<int64_t>(multiple) : 0;
}

// Whether the term is an integer for all of its symbols' values. Asks for no divisor in vain.
bool is_integer(const Term& term, bool ask) {
  return term.denominator == 1 || divisor_of(term, ask) != 0;
}

// --- Sums -----------------------------------------------------------------------------------

Terms terms_of(const SymInt& a) {
  if (!a.is_constant()) return a.polynomial().terms;
  Terms terms;
  if (a.value() != 0) terms.push_back({a.value(), 1, {}});
  return terms;
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

// a + factor * b, both in order.
std::optional<Terms> sum(const Terms& a, const Terms& b, int factor) {
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

std::optional<Terms> scaled(const Terms& terms, const Term& by) {
  Terms result;
  for (const Term& term : terms) {
    Term next{.symbols = product(term.symbols, by.symbols)};
    if (!set_coefficient(Wide{term.numerator} * by.numerator,
                         Wide{term.denominator} * by.denominator, &next)) {
      return std::nullopt;
    }
    result.push_back(std::move(next));
  }
  std::sort(result.begin(), result.end(),
            [](const Term& x, const Term& y) { return compare(x.symbols, y.symbols) < 0; });
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

// The polynomial in how much more than its least each symbol is. Where that has no negative
// coefficient but the constant one, the constant is the least value; where it has no positive one,
// the most. This sees that x * y >= y, which no bounds of the terms show.
std::optional<int64_t> bound_of_excess(const Terms& terms, bool most) {
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

int64_t bound(const SymInt& a, bool most) {
  const Terms& all = a.polynomial().terms;
  if (all.size() > 1) {
    if (const auto exact = bound_of_excess(all, most)) return *exact;
  }
  Wide total = 0;
  for (const Term& term : a.polynomial().terms) {
    const Wide part = bound(term, most);
    if (part >= kMost || part <= kLeast) return most ? kMost : kLeast;
    total += part;
  }
  return clamped(total);
}

// --- Symbols --------------------------------------------------------------------------------

SymInt operation(SymbolKind kind, const SymInt& a, const SymInt& b, int64_t least, int64_t most) {
  auto* const symbol = new Symbol;
  symbol->kind = kind;
  symbol->a = a;
  symbol->b = b;
  symbol->least = least;
  symbol->most = most;
  return symbol_number(symbol);
}

// The only symbol, where the number is nothing else.
const Symbol* alone(const SymInt& a) {
  if (a.is_constant() || a.polynomial().terms.size() != 1) return nullptr;
  const Term& term = a.polynomial().terms[0];
  const bool plain = term.numerator == 1 && term.denominator == 1 && term.symbols.size() == 1;
  return plain ? &*term.symbols[0] : nullptr;
}

// a as divisor * whole + rest, where `whole` has all terms that the divisor divides.
void split(const SymInt& a, int64_t divisor, SymInt* whole, SymInt* rest) {
  Terms even, odd;
  for (const Term& term : terms_of(a)) {
    Term part = term;
    if (divisor_of(term, false) % divisor == 0 &&
        set_coefficient(term.numerator, Wide{term.denominator} * divisor, &part)) {
      even.push_back(std::move(part));
    } else {
      odd.push_back(term);
    }
  }
  // A constant gives what it can.
  if (!odd.empty() && odd.back().symbols.empty() && odd.back().denominator == 1) {
    const int64_t constant = odd.back().numerator;
    const int64_t left = (constant % divisor + divisor) % divisor;
    const int64_t times = (constant - left) / divisor;
    odd.pop_back();
    if (left != 0) odd.push_back({left, 1, {}});
    if (times != 0) even.push_back({times, 1, {}});
  }
  *whole = number_of(std::move(even));
  *rest = number_of(std::move(odd));
}

}  // namespace

SymInt symbol_number(const Symbol* symbol) {
  Terms terms;
  terms.push_back({});
  terms[0].symbols.push_back(SymbolRef(symbol));
  return number_of(std::move(terms));
}

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

}  // namespace detail

using detail::SymbolKind;
using detail::Terms;
using detail::Wide;

void SymInt::keep() const { ++polynomial_->uses; }
void SymInt::drop() {
  if (--polynomial_->uses == 0) delete polynomial_;
}

SymInt SymInt::of(const detail::Polynomial* polynomial) {
  SymInt result;
  result.polynomial_ = polynomial;
  result.keep();
  return result;
}

SymInt SymInt::unknown(int64_t divisor) {
  static std::atomic<uint64_t> made{0};
  auto* const symbol = new detail::Symbol;
  symbol->serial = ++made;
  symbol->known_divisor = symbol->least = divisor;
  return detail::symbol_number(symbol);
}

SymInt SymInt::overflow() {
  auto* const polynomial = new detail::Polynomial;
  polynomial->overflow = true;
  return of(polynomial);
}

bool SymInt::is_overflow() const { return !is_constant() && polynomial_->overflow; }

namespace {

int64_t divisor_of(const SymInt& number, bool ask) {
  if (number.is_constant()) {
    const int64_t value = number.value();
    return value == INT64_MIN ? int64_t{1} << 62 : std::abs(value);
  }
  int64_t common = 0;
  for (const detail::Term& term : number.polynomial().terms) {
    common = std::gcd(common, detail::divisor_of(term, ask));
  }
  return common;
}

}  // namespace

int64_t SymInt::divisor() const { return divisor_of(*this, true); }
int64_t SymInt::divisor_if_known() const { return divisor_of(*this, false); }

int64_t SymInt::constant_part() const {
  if (is_constant()) return value_;
  if (polynomial_->terms.empty()) return 0;
  const detail::Term& last = polynomial_->terms.back();
  return last.symbols.empty() && last.denominator == 1 ? last.numerator : 0;
}

int64_t SymInt::least() const { return is_constant() ? value_ : detail::bound(*this, false); }
int64_t SymInt::most() const { return is_constant() ? value_ : detail::bound(*this, true); }

SymInt operator+(const SymInt& a, const SymInt& b) {
  int64_t sum;
  if (a.is_constant() && b.is_constant()) {
    return __builtin_add_overflow(a.value(), b.value(), &sum) ? SymInt::overflow() : SymInt(sum);
  }
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  if (a.is_overflow() || b.is_overflow()) return SymInt::overflow();
  auto terms = detail::sum(detail::terms_of(a), detail::terms_of(b), 1);
  return terms ? detail::number_of(*std::move(terms)) : SymInt::overflow();
}

SymInt operator-(const SymInt& a, const SymInt& b) {
  int64_t difference;
  if (a.is_constant() && b.is_constant()) {
    return __builtin_sub_overflow(a.value(), b.value(), &difference) ? SymInt::overflow()
                                                                     : SymInt(difference);
  }
  if (a.is_overflow() || b.is_overflow()) return SymInt::overflow();
  auto terms = detail::sum(detail::terms_of(a), detail::terms_of(b), -1);
  return terms ? detail::number_of(*std::move(terms)) : SymInt::overflow();
}

SymInt operator*(const SymInt& a, const SymInt& b) {
  int64_t product;
  if (a.is_constant() && b.is_constant()) {
    return __builtin_mul_overflow(a.value(), b.value(), &product) ? SymInt::overflow()
                                                                  : SymInt(product);
  }
  if (a.is_constant(1)) return b;
  if (b.is_constant(1)) return a;
  if (a.is_overflow() || b.is_overflow()) return SymInt::overflow();
  Terms all;
  const Terms other = detail::terms_of(a);
  for (const detail::Term& term : detail::terms_of(b)) {
    auto part = detail::scaled(other, term);
    auto total = part && !all.empty() ? detail::sum(all, *part, 1) : std::move(part);
    if (!total) return SymInt::overflow();
    all = *std::move(total);
  }
  return detail::number_of(std::move(all));
}

bool operator==(const SymInt& a, const SymInt& b) {
  return !a.is_overflow() && !b.is_overflow() && detail::compare(a, b) == 0;
}

namespace {

// Where it does not `ask`, what is known of a kernel's arguments decides nothing: what only makes a
// result shorter is not worth a guard.
bool comes_out_even(const SymInt& a, const SymInt& b, bool ask, SymInt* quotient) {
  if (a.is_overflow() || b.is_overflow() || b.is_constant(0)) return false;
  if (a.is_constant() && b.is_constant()) {
    if (b.is_constant(-1)) return (*quotient = 0 - a, true);
    if (a.value() % b.value() != 0) return false;
    *quotient = a.value() / b.value();
    return true;
  }
  if (b.is_constant(1)) return (*quotient = a, true);
  // Long division by the leading term; what is left gets smaller each time.
  Terms left = detail::terms_of(a), found;
  const Terms by = detail::terms_of(b);
  while (!left.empty()) {
    auto symbols = detail::quotient(left[0].symbols, by[0].symbols);
    if (!symbols) return false;
    detail::Term term{.symbols = *std::move(symbols)};
    const int sign = by[0].numerator < 0 ? -1 : 1;
    if (!detail::set_coefficient(Wide{left[0].numerator} * by[0].denominator * sign,
                                 Wide{left[0].denominator} * by[0].numerator * sign, &term) ||
        !detail::is_integer(term, ask)) {
      return false;
    }
    const auto product = detail::scaled(by, term);
    auto rest = product ? detail::sum(left, *product, -1) : std::nullopt;
    if (!rest) return false;
    left = *std::move(rest);
    found.push_back(std::move(term));
  }
  *quotient = detail::number_of(std::move(found));
  return true;
}

}  // namespace

bool divides(const SymInt& b, const SymInt& a, SymInt* quotient) {
  SymInt ignored;
  return comes_out_even(a, b, true, quotient == nullptr ? &ignored : quotient);
}

bool always_at_most(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.value() <= b.value();
  if (a.is_overflow() || b.is_overflow()) return false;
  if (a.most() <= b.least()) return true;
  SymInt quotient;
  if (a.least() >= 0 && comes_out_even(b, a, false, &quotient) && quotient.least() >= 1)
    return true;
  return (b - a).least() >= 0;
}

bool always_less(const SymInt& a, const SymInt& b) { return always_at_most(a + 1, b); }

namespace {

// a / b as whole + over / under: what comes out even is taken out, then what divides both.
struct Division {
  SymInt whole = 0;
  SymInt over, under;
};

Division simplified(const SymInt& a, const SymInt& b) {
  Division d{.whole = 0, .over = a, .under = b};
  if (b.is_constant()) {
    detail::split(a, b.value(), &d.whole, &d.over);
    // Rounding needs a rest that is not negative.
    if (d.over.least() < 0) d = {.whole = 0, .over = a, .under = b};
  }
  const int64_t common = std::gcd(d.over.divisor_if_known(), d.under.divisor_if_known());
  if (common > 1) {
    comes_out_even(SymInt(d.over), common, false, &d.over);
    comes_out_even(SymInt(d.under), common, false, &d.under);
  }
  return d;
}

// Rounding a quotient twice in the same direction is rounding it once: the inner one's operands.
const detail::Symbol* rounded_before(const Division& d, SymbolKind kind) {
  const detail::Symbol* const inner = detail::alone(d.over);
  return inner != nullptr && inner->kind == kind ? inner : nullptr;
}

bool has_no_quotient(const SymInt& a, const SymInt& b) {
  return a.is_overflow() || b.is_overflow() || b.is_constant(0);
}

}  // namespace

SymInt ceil_div(const SymInt& a, const SymInt& b) {
  if (has_no_quotient(a, b)) return SymInt::overflow();
  SymInt quotient;
  if (comes_out_even(a, b, false, &quotient)) return quotient;
  if (a.is_constant() && b.is_constant()) {
    return a.value() / b.value() + ((a.value() < 0) == (b.value() < 0) ? 1 : 0);
  }
  const Division d = simplified(a, b);
  if (d.over.least() >= 1 && always_at_most(d.over, d.under)) return d.whole + 1;
  if (const auto* inner = rounded_before(d, SymbolKind::kCeilDiv)) {
    return d.whole + ceil_div(inner->a, inner->b * d.under);
  }
  if (d.over.least() < 0 || d.under.least() < 1) return SymInt::overflow();
  const int64_t least = d.under.most() == detail::kMost ? (d.over.least() >= 1 ? 1 : 0)
                                                        : ceil_div(d.over.least(), d.under.most());
  const int64_t most =
      d.over.most() == detail::kMost ? detail::kMost : ceil_div(d.over.most(), d.under.least());
  return d.whole + detail::operation(SymbolKind::kCeilDiv, d.over, d.under, least, most);
}

SymInt floor_div(const SymInt& a, const SymInt& b) {
  if (has_no_quotient(a, b)) return SymInt::overflow();
  SymInt quotient;
  if (comes_out_even(a, b, false, &quotient)) return quotient;
  if (a.is_constant() && b.is_constant()) {
    return a.value() / b.value() - ((a.value() < 0) != (b.value() < 0) ? 1 : 0);
  }
  const Division d = simplified(a, b);
  if (d.over.least() >= 0 && always_less(d.over, d.under)) return d.whole;
  if (const auto* inner = rounded_before(d, SymbolKind::kFloorDiv)) {
    return d.whole + floor_div(inner->a, inner->b * d.under);
  }
  if (d.over.least() < 0 || d.under.least() < 1) return SymInt::overflow();
  const int64_t least = d.under.most() == detail::kMost ? 0 : d.over.least() / d.under.most();
  const int64_t most =
      d.over.most() == detail::kMost ? detail::kMost : d.over.most() / d.under.least();
  return d.whole + detail::operation(SymbolKind::kFloorDiv, d.over, d.under, least, most);
}

SymInt mod(const SymInt& a, const SymInt& b) {
  if (a.is_overflow() || b.is_overflow() || b.is_constant(0)) return SymInt::overflow();
  SymInt quotient;
  if (comes_out_even(a, b, false, &quotient)) return 0;
  if (a.is_constant() && b.is_constant()) return a - b * floor_div(a, b);
  if (a.least() >= 0 && always_less(a, b)) return a;
  SymInt rest = a, whole;
  if (b.is_constant()) {
    detail::split(a, b.value(), &whole, &rest);
    if (rest.least() < 0) rest = a;
    if (rest.least() >= 0 && rest.most() < b.value()) return rest;
  }
  if (rest.least() < 0 || b.least() < 1) return SymInt::overflow();
  const int64_t most = b.most() == detail::kMost ? detail::kMost : b.most() - 1;
  return detail::operation(SymbolKind::kMod, rest, b, 0, most);
}

SymInt min(const SymInt& a, const SymInt& b) {
  if (a.is_overflow() || b.is_overflow()) return SymInt::overflow();
  if (always_at_most(a, b)) return a;
  if (always_at_most(b, a)) return b;
  const bool in_order = detail::compare(a, b) <= 0;
  return detail::operation(SymbolKind::kMin, in_order ? a : b, in_order ? b : a,
                           std::min(a.least(), b.least()), std::min(a.most(), b.most()));
}

SymInt max(const SymInt& a, const SymInt& b) { return a + b - min(a, b); }

int signum(const SymInt& a) {
  if (!a.is_constant()) return a.least() >= 0 || a.most() > 0 ? 1 : -1;
  return a.value() > 0 ? 1 : a.value() < 0 ? -1 : 0;
}

SymInt abs(const SymInt& a) { return signum(a) < 0 ? -a : a; }

namespace {

// The bits that some value of a number that is not negative may have, where no sum of its terms
// carries; all bits where one may.
uint64_t possible_bits(const SymInt& number) {
  constexpr uint64_t kAll = ~uint64_t{0};
  uint64_t bits = 0;
  for (const detail::Term& term : detail::terms_of(number)) {
    const SymInt value = detail::number_of(Terms{term});
    if (value.least() < 0 || value.most() == detail::kMost) return kAll;
    const auto divisor = static_cast<uint64_t>(value.divisor());
    const auto most = static_cast<uint64_t>(value.most());
    const uint64_t below = most == 0 ? 0 : kAll >> __builtin_clzll(most);
    const uint64_t own = divisor == 0 ? 0 : below & ~((divisor & -divisor) - 1);
    if ((bits & own) != 0) return kAll;
    bits |= own;
  }
  return bits;
}

}  // namespace

SymInt Swizzle::operator()(const SymInt& index) const {
  if (!ok() || bits_ == 0 || index.is_overflow()) return index;
  if (index.is_constant()) return (*this)(index.value());
  // A swizzle of bits is that of each of them: the host's part is swizzled by the host, and
  // neighbouring accesses share the rest.
  const int64_t constant = index.constant_part();
  const SymInt rest = index - constant;
  if (constant > 0 && (possible_bits(rest) & static_cast<uint64_t>(constant)) == 0) {
    const SymInt moved = (*this)(rest);
    const int64_t mask = (*this)(constant);
    const int64_t top = int64_t{1} << (64 - __builtin_clzll(static_cast<uint64_t>(mask)));
    const int64_t most = detail::clamped(Wide{std::max(moved.most(), mask)} + top);
    return detail::operation(SymbolKind::kXor, moved, mask, 0, most);
  }
  // It moves nothing above its source.
  const int64_t top = int64_t{1} << (base_ + std::abs(shift_) + bits_);
  if (index.least() < 0) return SymInt::overflow();
  const int64_t most = detail::clamped(Wide{index.most()} + top);
  return detail::operation(SymbolKind::kSwizzle, index, bits_ + 64 * (base_ + 64 * (shift_ + 32)),
                           0, most);
}

SymInt gcd(const SymInt& a, const SymInt& b) { return std::gcd(a.divisor(), b.divisor()); }

}  // namespace heddle
