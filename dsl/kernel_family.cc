#include "heddle/dsl/kernel_family.h"

#include <atomic>
#include <mutex>
#include <string>

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

}  // namespace heddle::detail
