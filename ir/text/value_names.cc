#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/text/printer.h"

namespace heddle::ir {
namespace {

// A hint as the text can have it. A dot belongs to the number that the printer appends.
std::string clean(absl::string_view hint) {
  std::string name;
  for (const char c : hint) {
    name += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  if (!name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) {
    name.insert(name.begin(), '_');
  }
  return name;
}

// Gives names in the order in which the text has the values.
class Namer {
 public:
  Namer(const Kernel& kernel, bool by_id, std::vector<std::string>& names)
      : kernel_(kernel), by_id_(by_id), names_(names) {}

  void name_region(RegionId region) {
    for (const ValueId arg : kernel_.region(region).args) name_value(arg, {});
    for (const OpId id : kernel_.ops(region)) {
      const Op& op = kernel_.op(id);
      const std::optional<int64_t> called = op.attr(AttrKey::kName);
      const absl::string_view hint =
          called ? kernel_.text(StringId{static_cast<uint32_t>(*called)}) : absl::string_view();
      for (const ValueId result : op.results) name_value(result, hint);
      for (const RegionId inner : op.regions) name_region(inner);
    }
  }

 private:
  void name_value(ValueId id, absl::string_view otherwise) {
    const Value& value = kernel_.value(id);
    std::string base = clean(valid(value.name) ? kernel_.text(value.name) : otherwise);
    if (by_id_) {
      names_[index_of(id)] = base.empty() ? absl::StrCat("%v", index_of(id))
                                          : absl::StrCat("%", base, ".", index_of(id));
      return;
    }
    if (base.empty()) {
      names_[index_of(id)] = absl::StrCat("%", unnamed_++);
      return;
    }
    const int before = taken_[base]++;
    names_[index_of(id)] =
        before == 0 ? absl::StrCat("%", base) : absl::StrCat("%", base, ".", before);
  }

  const Kernel& kernel_;
  bool by_id_;
  std::vector<std::string>& names_;
  absl::flat_hash_map<std::string, int> taken_;
  int unnamed_ = 0;
};

}  // namespace

ValueNames::ValueNames(const Kernel& kernel, bool by_id) : names_(kernel.value_count()) {
  Namer(kernel, by_id, names_).name_region(kernel.body());
}

std::string ValueNames::of(ValueId id) const {
  if (!valid(id)) return "%?";
  const bool known = index_of(id) < names_.size() && !names_[index_of(id)].empty();
  return known ? names_[index_of(id)] : absl::StrCat("%?", index_of(id));
}

}  // namespace heddle::ir
