// Rules of accesses to memory: loads, stores and prefetches.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/ir/cache_hint.h"
#include "heddle/ir/verify/rules_internal.h"

namespace heddle::ir {
namespace {

// Nothing where none does, or this one.
std::string first_that_moves(RuleContext& c, int bytes) {
  for (const Target& target : kTargets) {
    if (target.max_access_bytes < bytes) continue;
    if (c.target().max_access_bytes >= bytes) break;
    return absl::StrCat(", or compile the kernel for ", target.name, ", the first that moves ",
                        bytes, " bytes");
  }
  return "";
}

// What a load or a store moves at once.
void check_access(RuleContext& c, Type type) {
  const bool power_of_two = (type.count & (type.count - 1)) == 0;
  if (power_of_two && type.bytes() <= c.target().max_access_bytes) return;
  c.error(absl::StrCat("a memory access moves 1, 2, 4, 8 or 16 elements and at most ",
                       c.target().max_access_bytes, " bytes on ", c.target().name, ", not ",
                       type.count, " x ", info(type.scalar).name),
          absl::StrCat("access it in parts", first_that_moves(c, type.bytes())));
}

void check_volatile(RuleContext& c) {
  const Space space = c.type(c.op().view()).space;
  const bool own = space == Space::kLocal || space == Space::kConst || space == Space::kParam;
  if (!own || c.attr_or(AttrKey::kVolatile, 0) == 0) return;
  c.error(absl::StrCat("a volatile access to ", name_of(space),
                       " memory, where nobody else can see or change anything"),
          "leave out as_volatile()");
}

void check_cache(RuleContext& c, bool (*allowed)(CacheHint)) {
  const std::optional<int64_t> hint = c.attr(AttrKey::kCache);
  if (!hint && !c.attr(AttrKey::kL2Evict)) return;
  require_global(c, c.op().view(), "cache hint");
  if (hint && !allowed(static_cast<CacheHint>(*hint))) {
    c.error(absl::StrCat("the cache hint '", kCacheHintNames[*hint], "' is not for a ",
                         info(c.op()).mnemonic),
            "use one that is");
  }
  if (c.attr_or(AttrKey::kVolatile, 0) != 0) {
    c.error("a volatile access takes no cache hint", "leave out one of the two");
  }
}

}  // namespace

void check_load(RuleContext& c) {
  check_volatile(c);
  check_cache(c, for_loads);
  check_access(c, c.result_type());
}

void check_store(RuleContext& c) {
  require_writable(c, c.op().view(), "store");
  check_volatile(c);
  check_cache(c, for_stores);
  check_access(c, c.type(c.op().value()));
}

void check_prefetch(RuleContext& c) { require_global(c, c.op().view(), "prefetch"); }

}  // namespace heddle::ir
