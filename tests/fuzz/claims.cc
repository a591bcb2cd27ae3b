#include "fuzz/claims.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/int_facts.h"
#include "heddle/ir/analysis/uniformity.h"
#include "heddle/ir/builder.h"

namespace heddle::fuzz {
namespace {

using ir::AttrKey;
using ir::IntFacts;
using ir::Kernel;
using ir::Opcode;
using ir::ValueId;

struct Claim {
  ValueId value;
  IntFacts facts;
  bool uniform;
};

bool says_anything(const Claim& claim) { return claim.uniform || claim.facts != IntFacts(); }

// What is known of every value, asked before the kernel changes.
std::vector<Claim> claims_of(const Kernel& kernel) {
  ir::IntAnalysis ints(kernel);
  const ir::Uniformity uniformity(kernel);
  std::vector<Claim> claims;
  const auto add = [&](ValueId value) {
    const ir::Type type = kernel.type(value);
    const bool number = ir::is_integer(type.scalar) && !ir::info(type.scalar).storage_only;
    if (!type.is_data() || !number || kernel.constant_bits(value)) return;
    Claim claim{value, ints.of(value), false};
    // Which NaN a float is has no meaning: the interpreter's lanes may have others.
    const ir::Op* const def = kernel.def(value);
    const bool is_bits_of_float = def != nullptr && def->opcode == Opcode::kBitcast &&
                                  ir::is_float(kernel.type(def->a()).scalar);
    claim.uniform =
        type.is_scalar() && !is_bits_of_float && uniformity.of(value) >= ir::Scope::kWarp;
    // assume_range takes 0 for no divisor: that every value is 0, its bounds say as well.
    if (claim.facts.divisor == 0) claim.facts = {0, 0, 1};
    if (says_anything(claim)) claims.push_back(claim);
  };
  kernel.walk([&](ir::OpId id) {
    const ir::Op& op = kernel.op(id);
    for (const ValueId result : op.results) add(result);
    for (const ir::RegionId region : op.regions) {
      for (const ValueId arg : kernel.region(region).args) add(arg);
    }
  });
  return claims;
}

}  // namespace

Kernel with_claims(const Kernel& kernel) {
  Kernel claiming = kernel;
  ir::Builder b(claiming);
  for (const Claim& claim : claims_of(kernel)) {
    const ir::Value& value = claiming.value(claim.value);
    const ir::OpId next =
        valid(value.def) ? claiming.op(value.def).next : claiming.region(value.region).first;
    if (valid(next)) {
      b.set_insertion_before(next);
    } else {
      b.set_insertion_end(claiming.op(value.def).parent);
    }
    if (claim.uniform) b.create(Opcode::kAssumeUniform, {claim.value});
    if (claim.facts == IntFacts()) continue;
    const ir::StringId name = claiming.intern(absl::StrCat("value ", index_of(claim.value)));
    b.create(Opcode::kAssumeRange, {claim.value}, ir::Type::none(),
             {{AttrKey::kMin, claim.facts.min},
              {AttrKey::kMax, claim.facts.max},
              {AttrKey::kDivisor, claim.facts.divisor},
              {AttrKey::kName, static_cast<int64_t>(name)}});
  }
  return claiming;
}

}  // namespace heddle::fuzz
