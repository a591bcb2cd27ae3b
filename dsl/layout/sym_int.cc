#include "heddle/dsl/layout/sym_int.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "heddle/dsl/layout/polynomial_internal.h"
#include "heddle/dsl/layout/swizzle.h"

namespace heddle {

using detail::SymbolKind;
using detail::Terms;
using detail::TermsOf;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

SymInt number_or_overflow(std::optional<Terms> terms) {
  return terms ? detail::number_of(*std::move(terms)) : SymInt::overflow();
}

SymInt operation(SymbolKind kind, const SymInt& a, const SymInt& b, int64_t least, int64_t most) {
  auto* const symbol = new detail::Symbol;
  symbol->kind = kind;
  symbol->a = a;
  symbol->b = b;
  symbol->least = least;
  symbol->most = most;
  return detail::symbol_number(symbol);
}

// The only symbol, where the number is nothing else.
const detail::Symbol* alone(const SymInt& a) {
  if (a.is_constant() || a.polynomial().terms.size() != 1) return nullptr;
  const detail::Term& term = a.polynomial().terms[0];
  const bool plain = term.numerator == 1 && term.denominator == 1 && term.symbols.size() == 1;
  return plain ? &*term.symbols[0] : nullptr;
}

}  // namespace

void SymInt::keep() const { ++polynomial_->uses; }
void SymInt::drop() {
  if (polynomial_->uses == 1 || --polynomial_->uses == 0) delete polynomial_;
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

bool SymInt::has_overflowed() const { return polynomial_->overflow; }

namespace {

int64_t divisor_of(const SymInt& number, bool ask) {
  if (number.is_constant()) {
    const int64_t value = number.value();
    return value == INT64_MIN ? int64_t{1} << 62 : std::abs(value);
  }
  int64_t common = 0;
  for (const detail::Term& term : number.polynomial().terms) {
    const int64_t divisor = detail::divisor_of(term, ask);
    // What nobody asked about may be no integer by itself.
    if (divisor == 0) return 1;
    common = std::gcd(common, divisor);
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

int64_t SymInt::least() const {
  return is_constant() ? value_ : detail::bound(polynomial_->terms, false);
}
int64_t SymInt::most() const {
  return is_constant() ? value_ : detail::bound(polynomial_->terms, true);
}

SymInt SymInt::plus(const SymInt& b) const {
  if (is_constant(0)) return b;
  if (b.is_constant(0)) return *this;
  if (is_overflow() || b.is_overflow() || (is_constant() && b.is_constant())) return overflow();
  return number_or_overflow(detail::sum(TermsOf(*this), TermsOf(b), 1));
}

SymInt SymInt::minus(const SymInt& b) const {
  if (is_overflow() || b.is_overflow() || (is_constant() && b.is_constant())) return overflow();
  return number_or_overflow(detail::sum(TermsOf(*this), TermsOf(b), -1));
}

SymInt SymInt::times(const SymInt& b) const {
  if (is_constant(1)) return b;
  if (b.is_constant(1)) return *this;
  if (is_overflow() || b.is_overflow() || (is_constant() && b.is_constant())) return overflow();
  return number_or_overflow(detail::product(TermsOf(*this), TermsOf(b)));
}

bool SymInt::same(const SymInt& b) const {
  return !is_overflow() && !b.is_overflow() && detail::compare(*this, b) == 0;
}

namespace {

bool comes_out_even(const SymInt& a, const SymInt& b, bool ask, SymInt* quotient) {
  if (a.is_overflow() || b.is_overflow() || b.is_constant(0)) return false;
  if (a.is_constant() && b.is_constant()) {
    if (b.is_constant(-1)) return (*quotient = 0 - a, true);
    if (a.value() % b.value() != 0) return false;
    *quotient = a.value() / b.value();
    return true;
  }
  if (b.is_constant(1)) return (*quotient = a, true);
  auto terms = detail::quotient(TermsOf(a), TermsOf(b), ask);
  if (!terms) return false;
  *quotient = detail::number_of(*std::move(terms));
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

bool always_less(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.value() < b.value();
  return always_at_most(a + 1, b);
}

namespace {

// a as divisor * whole + rest, where `whole` has all terms that the divisor divides.
void split(const SymInt& a, int64_t divisor, SymInt* whole, SymInt* rest) {
  Terms even, odd;
  detail::split(TermsOf(a), divisor, &even, &odd);
  *whole = detail::number_of(std::move(even));
  *rest = detail::number_of(std::move(odd));
}

// a / b as whole + over / under: what comes out even is taken out, then what divides both.
struct Division {
  SymInt whole = 0;
  SymInt over, under;
};

Division simplified(const SymInt& a, const SymInt& b) {
  Division d{.whole = 0, .over = a, .under = b};
  if (b.is_constant()) {
    split(a, b.value(), &d.whole, &d.over);
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
  const detail::Symbol* const inner = alone(d.over);
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
  const int64_t least = d.under.most() == kMost ? (d.over.least() >= 1 ? 1 : 0)
                                                : ceil_div(d.over.least(), d.under.most());
  const int64_t most = d.over.most() == kMost ? kMost : ceil_div(d.over.most(), d.under.least());
  return d.whole + operation(SymbolKind::kCeilDiv, d.over, d.under, least, most);
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
  const int64_t least = d.under.most() == kMost ? 0 : d.over.least() / d.under.most();
  const int64_t most = d.over.most() == kMost ? kMost : d.over.most() / d.under.least();
  return d.whole + operation(SymbolKind::kFloorDiv, d.over, d.under, least, most);
}

SymInt mod(const SymInt& a, const SymInt& b) {
  if (a.is_overflow() || b.is_overflow() || b.is_constant(0)) return SymInt::overflow();
  SymInt quotient;
  if (comes_out_even(a, b, false, &quotient)) return 0;
  if (a.is_constant() && b.is_constant()) return a - b * floor_div(a, b);
  if (a.least() >= 0 && always_less(a, b)) return a;
  SymInt rest = a, whole;
  if (b.is_constant()) {
    split(a, b.value(), &whole, &rest);
    if (rest.least() < 0) rest = a;
    if (rest.least() >= 0 && rest.most() < b.value()) return rest;
  }
  if (rest.least() < 0 || b.least() < 1) return SymInt::overflow();
  const int64_t most = b.most() == kMost ? kMost : b.most() - 1;
  return operation(SymbolKind::kMod, rest, b, 0, most);
}

SymInt min(const SymInt& a, const SymInt& b) {
  if (a.is_overflow() || b.is_overflow()) return SymInt::overflow();
  if (always_at_most(a, b)) return a;
  if (always_at_most(b, a)) return b;
  const bool in_order = detail::compare(a, b) <= 0;
  return operation(SymbolKind::kMin, in_order ? a : b, in_order ? b : a,
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
  for (const detail::Term& term : number.polynomial().terms) {
    const absl::Span<const detail::Term> value(&term, 1);
    if (detail::bound(value, false) < 0 || detail::bound(value, true) == kMost) return kAll;
    const auto divisor = static_cast<uint64_t>(detail::divisor_of(term, true));
    const auto most = static_cast<uint64_t>(detail::bound(value, true));
    const uint64_t below = most == 0 ? 0 : kAll >> __builtin_clzll(most);
    const uint64_t own = divisor == 0 ? 0 : below & ~((divisor & -divisor) - 1);
    if ((bits & own) != 0) return kAll;
    bits |= own;
  }
  return bits;
}

int64_t most_after(int64_t most, int64_t top) { return most > kMost - top ? kMost : most + top; }

}  // namespace

SymInt Swizzle::operator()(const SymInt& index) const {
  if (!ok() || bits_ == 0 || index.is_overflow()) return index;
  if (index.is_constant()) return (*this)(index.value());
  // A swizzle of bits is that of each of them: the host's part is swizzled by the host, and
  // neighbouring accesses share the rest.
  const int64_t constant = index.constant_part();
  const SymInt rest = index - constant;
  const uint64_t possible = possible_bits(rest);
  if (constant > 0 && (possible & static_cast<uint64_t>(constant)) == 0) {
    const SymInt moved = (*this)(rest);
    // What the rest has no bits of is added, which costs nothing in an address.
    const auto mask = static_cast<uint64_t>((*this)(constant));
    const uint64_t together = mask & (possible | static_cast<uint64_t>(target_mask()));
    const auto beside = static_cast<int64_t>(mask & ~together);
    if (together == 0) return moved + beside;
    const int64_t top = int64_t{1} << (64 - __builtin_clzll(together));
    const auto by = static_cast<int64_t>(together);
    const int64_t most = most_after(std::max(moved.most(), by), top);
    return operation(SymbolKind::kXor, moved, by, 0, most) + beside;
  }
  // It moves nothing above its source.
  const int64_t top = int64_t{1} << (base_ + std::abs(shift_) + bits_);
  if (index.least() < 0) return SymInt::overflow();
  const int64_t most = most_after(index.most(), top);
  return operation(SymbolKind::kSwizzle, index, bits_ + 64 * (base_ + 64 * (shift_ + 32)), 0, most);
}

SymInt gcd(const SymInt& a, const SymInt& b) { return std::gcd(a.divisor(), b.divisor()); }

}  // namespace heddle
