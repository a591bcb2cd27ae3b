#include "heddle/dsl/kernel_family.h"

#include <atomic>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

struct Variants::State {
  std::string name;
  std::atomic<Variant*> newest{nullptr};
  std::mutex adding;
};

Variants::Variants(const char* name) : state_(new State) { state_->name = name; }

Variants::~Variants() {
  for (Variant* variant = state_->newest.load(); variant != nullptr;) {
    delete std::exchange(variant, variant->next);
  }
  delete state_;
}

const char* Variants::name() const { return state_->name.c_str(); }

const Variants::Variant& Variants::find_or_make(const void* key,
                                                bool (*is_it)(const Variant&, const void*),
                                                const void* family,
                                                Variant* (*make)(const void*, const void*)) const {
  const auto find = [&]() -> const Variant* {
    const Variant* variant = state_->newest.load(std::memory_order_acquire);
    while (variant != nullptr && !is_it(*variant, key)) variant = variant->next;
    return variant;
  };
  if (const Variant* const found = find()) return *found;
  const std::lock_guard<std::mutex> lock(state_->adding);
  if (const Variant* const found = find()) return *found;
  Variant* const made = make(family, key);
  made->next = state_->newest.load();
  state_->newest.store(made, std::memory_order_release);
  return *made;
}

void report_family_value(uint64_t value, Misfit misfit, int index, SourceLoc loc) {
  report(loc,
         absl::StrCat("host value ", index, " of the family is ", given_number(value, misfit),
                      ", which does not fit its parameter")
             .c_str(),
         "make that parameter of the lambda wider, or ask for the kernel of another number");
}

}  // namespace heddle::detail
