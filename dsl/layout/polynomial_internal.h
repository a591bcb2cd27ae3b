// What a layout's integers are when they are no host numbers.
//
// A polynomial is a sum of terms; a term is a rational coefficient and a product of symbols. Terms
// are ordered by degree, then by their symbols, and no two have the same, so that equal polynomials
// look equal. A coefficient's denominator divides the product of what is known to divide the
// symbols: x / 4 is a polynomial where x is known to be a multiple of 4.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "heddle/dsl/layout/swizzle.h"

namespace heddle::detail {

// A kSwizzle's b is its bits + 64 * (base + 64 * shift), with 32 added to the shift.
enum class SymbolKind : uint8_t {
  kUnknown,
  kTraced,
  kCeilDiv,
  kFloorDiv,
  kMod,
  kMin,
  kSwizzle,
  kXor
};

// A number that is known later.
struct Symbol {
  // Not looked for yet: of a traced number it is asked for when a decision needs it, for the answer
  // may become a guard of the kernel.
  static constexpr int64_t kAsk = -1;

  // Of the serial number: the value is one that a kernel may read again anywhere (thread_idx.x).
  static constexpr uint64_t kRematerializable = uint64_t{1} << 63;

  SymbolKind kind = SymbolKind::kUnknown;
  mutable int64_t known_divisor = kAsk;
  int64_t least = 1;
  int64_t most = INT64_MAX;
  uint64_t serial = 0;  // kUnknown, kTraced: which one
  Node node;            // kTraced: the kernel's value
  SymInt a, b;          // the others: of what
  mutable std::atomic<int> uses{0};

  bool is_rematerializable() const { return (serial & kRematerializable) != 0; }
  // Of a traced number only where `ask`, else 1.
  int64_t divisor(bool ask) const;
};

// The swizzle of a kSwizzle symbol.
Swizzle swizzle_of(const Symbol& symbol);
// A symbol as a number.
SymInt symbol_number(const Symbol* symbol);
// What is known to divide a traced number's value.
int64_t traced_divisor(const Node& node);

// A counted reference.
class SymbolRef {
 public:
  explicit SymbolRef(const Symbol* symbol) : symbol_(symbol) { ++symbol_->uses; }
  SymbolRef(const SymbolRef& other) : SymbolRef(other.symbol_) {}
  SymbolRef(SymbolRef&& other) noexcept : symbol_(other.symbol_) { other.symbol_ = nullptr; }
  SymbolRef& operator=(SymbolRef other) noexcept {
    const Symbol* const mine = symbol_;
    symbol_ = other.symbol_;
    other.symbol_ = mine;
    return *this;
  }
  ~SymbolRef() {
    // The only owner needs no subtraction that others see.
    if (symbol_ != nullptr && (symbol_->uses == 1 || --symbol_->uses == 0)) delete symbol_;
  }
  const Symbol& operator*() const { return *symbol_; }
  const Symbol* operator->() const { return symbol_; }

 private:
  const Symbol* symbol_;
};

struct Term {
  int64_t numerator = 1;
  int64_t denominator = 1;
  absl::InlinedVector<SymbolRef, 3> symbols;  // in order
};

using Terms = absl::InlinedVector<Term, 2>;

struct Polynomial {
  Terms terms;
  bool overflow = false;
  mutable std::atomic<int> uses{0};
};

// The terms of a number that has not overflowed, where they lie.
class TermsOf {
 public:
  explicit TermsOf(const SymInt& number);
  TermsOf(const TermsOf&) = delete;
  TermsOf& operator=(const TermsOf&) = delete;
  operator absl::Span<const Term>() const { return terms_; }

 private:
  Term constant_;
  absl::Span<const Term> terms_;
};
// The number of terms in order.
SymInt number_of(Terms terms);

// a + factor * b, and a * b; nothing where a coefficient does not fit 64 bits.
std::optional<Terms> sum(absl::Span<const Term> a, absl::Span<const Term> b, int factor);
std::optional<Terms> product(absl::Span<const Term> a, absl::Span<const Term> b);
// a / b where it comes out even for all values of the symbols. Where it does not `ask`, what is
// known of a kernel's arguments decides nothing: what only makes a result shorter is not worth a
// guard.
std::optional<Terms> quotient(absl::Span<const Term> a, absl::Span<const Term> b, bool ask);
// a as divisor * whole + rest, where `whole` has all terms that the divisor divides.
void split(absl::Span<const Term> a, int64_t divisor, Terms* whole, Terms* rest);
// The greatest number that divides all values of a term; 0: it is no integer for all of them.
int64_t divisor_of(const Term& term, bool ask);
// The least or the most of its values; INT64_MIN or INT64_MAX where nothing is known.
int64_t bound(absl::Span<const Term> a, bool most);

// Less than, equal to or greater than 0, by an order that depends on nothing but their making.
int compare(const SymInt& a, const SymInt& b);
int compare(const Symbol& a, const Symbol& b);
// The same for equal numbers. Symbols inside of symbols count to this depth only: a number may name another one several
// times, which may do so again, and to visit each occurrence would take exponential time.
uint64_t hash_of(const SymInt& number, int depth = 2);

}  // namespace heddle::detail
