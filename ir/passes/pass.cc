#include "heddle/ir/passes/pass.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/check.h"
#include "heddle/ir/passes/pipeline_text.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

bool is_word(absl::string_view name) {
  return !name.empty() && absl::c_all_of(name, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  });
}

template <class T>
const T* find_in(const std::vector<T>& all, absl::string_view name) {
  const auto one = absl::c_find_if(all, [&](const T& x) { return x.name == name; });
  return one == all.end() ? nullptr : &*one;
}

template <class T>
Status unknown(absl::string_view what, absl::string_view name, const Pass& pass,
               const std::vector<T>& all) {
  std::vector<absl::string_view> known;
  for (const T& one : all) known.push_back(one.name);
  const std::string hint = suggest(name, known);
  return NotFoundError(absl::StrCat(
      "pass '", pass.name, "' names the ", what, " '", name, "', which nobody has registered",
      hint.empty() ? absl::StrCat("; there are ", absl::StrJoin(known, ", ")) : hint));
}

Status check_options(const Pass& pass) {
  for (const PassOption& option : pass.options) {
    const auto refused = [&](auto... why) {
      return InvalidArgumentError(
          absl::StrCat("option '", option.name, "' of pass '", pass.name, "' ", why...));
    };
    if (!is_word(option.name)) {
      return refused("cannot be called so; use letters, digits, '-' and '_'");
    }
    if (option.least > option.most) {
      return refused("can have no value: its least, ", option.least, ", is more than its most, ",
                     option.most);
    }
    if (option.otherwise < option.least || option.otherwise > option.most) {
      return refused("is ", option.otherwise, " where a pipeline says nothing, which is not from ",
                     option.least, " to ", option.most);
    }
  }
  return OkStatus();
}

}  // namespace

int64_t PassContext::option(absl::string_view name) const {
  for (size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].name == name) return values_[i];
  }
  const auto names = absl::StrJoin(options_, ", ", [](std::string* out, const PassOption& one) {
    absl::StrAppend(out, one.name);
  });
  fail(InvalidArgumentError(
      absl::StrCat("it asks for its option '", name, "', which Pass::options does not declare",
                   names.empty() ? "" : absl::StrCat("; it declares ", names))));
  return 0;
}

PassRegistry::PassRegistry()
    : passes_(builtin_passes().begin(), builtin_passes().end()),
      properties_(builtin_properties().begin(), builtin_properties().end()) {}

Status PassRegistry::add(Pass pass) {
  if (!is_word(pass.name)) {
    return InvalidArgumentError(
        absl::StrCat("a pass cannot be called '", pass.name,
                     "', because pipelines are names of letters, digits, '-' and '_' with commas "
                     "between them"));
  }
  if (pass.run == nullptr) {
    return InvalidArgumentError(
        absl::StrCat("pass '", pass.name, "' has no function to run; set Pass::run"));
  }
  const bool is_level = absl::c_any_of(
      pipeline_levels(), [&](const PipelineLevel& level) { return level.name == pass.name; });
  if (pass.name == "all" || is_level || pass.name[0] == '-') {
    return InvalidArgumentError(absl::StrCat("a pass cannot be called '", pass.name,
                                             "', which has a meaning of its own in pipelines"));
  }
  if (find(pass.name) != nullptr) {
    return AlreadyExistsError(
        absl::StrCat("there is a pass '", pass.name, "' already; give yours another name"));
  }
  for (const Pass::Names* const names : {&pass.needs, &pass.gives, &pass.breaks}) {
    for (const absl::string_view name : *names) {
      if (find_property(name) == nullptr) return unknown("property", name, pass, properties_);
    }
  }
  for (const absl::string_view anchor : {pass.after, pass.before}) {
    if (anchor == pass.name) {
      return InvalidArgumentError(
          absl::StrCat("pass '", pass.name, "' names itself in after or before; name another"));
    }
    if (!anchor.empty() && find(anchor) == nullptr) return unknown("pass", anchor, pass, passes_);
  }
  if (!pass.after.empty() && !pass.before.empty()) {
    return InvalidArgumentError(
        absl::StrCat("pass '", pass.name, "' has both an after and a before; ", "set one of them"));
  }
  for (const absl::string_view target : pass.targets) {
    if (find_target(target) != nullptr) continue;
    return NotFoundError(absl::StrCat("pass '", pass.name, "' is for the target '", target,
                                      "', but Heddle knows ", target_names()));
  }
  if (Status wrong = check_options(pass); !wrong.ok()) return wrong;
  passes_.push_back(std::move(pass));
  return OkStatus();
}

Status PassRegistry::add(Property property) {
  if (find_property(property.name) != nullptr) {
    return AlreadyExistsError(
        absl::StrCat("there is a property '", property.name, "' already; give yours another name"));
  }
  if (!is_word(property.name)) {
    return InvalidArgumentError(absl::StrCat("a property cannot be called '", property.name,
                                             "'; use letters, digits, '-' and '_'"));
  }
  if (property.check == nullptr) {
    return InvalidArgumentError(absl::StrCat(
        "property '", property.name, "' has no function that checks it; set Property::check"));
  }
  properties_.push_back(std::move(property));
  return OkStatus();
}

const Pass* PassRegistry::find(absl::string_view name) const { return find_in(passes_, name); }

const Property* PassRegistry::find_property(absl::string_view name) const {
  return find_in(properties_, name);
}

// --- The program's ---

namespace {

// Passes register from constructors of several libraries, in any order and from any thread that loads one.
struct Registered {
  std::mutex mutex;
  int last = 0;
  std::map<int, std::variant<Property, Pass>> all;  // by number, in the order of registration
  // What they make together; nullptr: to be made.
  std::shared_ptr<const PassRegistry> registry;

  static Registered& instance() {
    static Registered* const one = new Registered();
    return *one;
  }
  int add(std::variant<Property, Pass> one) {
    const std::lock_guard<std::mutex> lock(mutex);
    registry = nullptr;
    all.emplace(++last, std::move(one));
    return last;
  }
};

// A pass that cannot be added as yet, and why.
struct Waiting {
  const Pass* pass;
  Status why;
};
// What is wrong with passes of which none can be added: that of one which names something that there is not; else they wait for
// each other.
Status without_place(absl::Span<const Waiting> waiting) {
  for (const Waiting& one : waiting) {
    const absl::string_view anchor = one.pass->after.empty() ? one.pass->before : one.pass->after;
    if (absl::c_none_of(waiting,
                        [&](const Waiting& other) { return other.pass->name == anchor; })) {
      return one.why;
    }
  }
  return InvalidArgumentError(
      absl::StrCat("the passes ",
                   absl::StrJoin(waiting, ", ",
                                 [](std::string* out, const Waiting& one) {
                                   absl::StrAppend(out, "'", one.pass->name, "'");
                                 }),
                   " have no place, because each is to run after or before another of them; let "
                   "one name a pass that is none of these"));
}

}  // namespace

StatusOr<std::shared_ptr<const PassRegistry>> process_passes() {
  Registered& r = Registered::instance();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (r.registry != nullptr) return r.registry;
  auto made = std::make_shared<PassRegistry>();
  // Properties first, which passes of other libraries may name; then passes as far as their anchors are there.
  for (const auto& [number, one] : r.all) {
    if (const auto* const property = std::get_if<Property>(&one)) {
      if (Status wrong = made->add(*property); !wrong.ok()) return wrong;
    }
  }
  std::vector<const Pass*> left;
  for (const auto& [number, one] : r.all) {
    if (const auto* const pass = std::get_if<Pass>(&one)) left.push_back(pass);
  }
  while (!left.empty()) {
    std::vector<Waiting> waiting;
    for (const Pass* const pass : left) {
      Status status = made->add(*pass);
      if (IsNotFound(status)) {
        waiting.push_back({pass, std::move(status)});
      } else if (!status.ok()) {
        return status;
      }
    }
    if (waiting.size() == left.size()) return without_place(waiting);
    left.clear();
    for (const Waiting& one : waiting) left.push_back(one.pass);
  }
  r.registry = std::move(made);
  return r.registry;
}

RegisteredPass::RegisteredPass(Pass pass) : number_(Registered::instance().add(std::move(pass))) {}

RegisteredPass::RegisteredPass(Property property)
    : number_(Registered::instance().add(std::move(property))) {}

RegisteredPass::~RegisteredPass() {
  Registered& r = Registered::instance();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.registry = nullptr;
  r.all.erase(number_);
}

}  // namespace heddle::ir
