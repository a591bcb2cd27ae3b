#include "heddle/ir/interp/pending.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace heddle::ir::interp {
namespace {

// Rounds after which late work is done though nobody waits for it: a loop may watch its effect.
constexpr uint64_t kLateRounds = 4096;
// Rounds within which seeded work is done.
constexpr uint64_t kSeededRounds = 6;

}  // namespace

StatusOr<Completion> parse_completion(absl::string_view text) {
  if (text == "early") return Completion{.when = Completion::When::kEarly};
  if (text == "late") return Completion{.when = Completion::When::kLate};
  Completion seeded{.when = Completion::When::kSeeded};
  absl::string_view seed = text;
  if (absl::ConsumePrefix(&seed, "seed:") && absl::SimpleAtoi(seed, &seeded.seed)) return seeded;
  return InvalidArgumentError(
      absl::StrCat("completion '", text, "' is none of early, late and seed:N, such as seed:7"));
}

Pending::Pending(const Completion& completion, uint64_t pace)
    : completion_(completion), pace_(pace), state_(completion.seed) {}

// SplitMix64.
uint64_t Pending::random() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

Pending::Ticket Pending::add(std::function<void()> work) {
  if (completion_.when == Completion::When::kEarly) {
    work();
    return kDone;
  }
  const bool late = completion_.when == Completion::When::kLate;
  const uint64_t delay = late ? kLateRounds * pace_ : random() % (kSeededRounds * pace_);
  const uint64_t due = now_ + 1 + delay;
  jobs_.emplace(++last_, Job{.due = due, .work = std::move(work)});
  by_time_.emplace(due, last_);
  return last_;
}

void Pending::finish(Ticket ticket) {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end()) return;
  // Out of the table first: the work may finish other work.
  const std::function<void()> work = std::move(found->second.work);
  by_time_.erase({found->second.due, ticket});
  jobs_.erase(found);
  work();
}

void Pending::tick() {
  ++now_;
  while (!by_time_.empty() && by_time_.begin()->first <= now_) finish(by_time_.begin()->second);
}

bool Pending::advance() {
  if (by_time_.empty()) return false;
  finish(by_time_.begin()->second);
  return true;
}

}  // namespace heddle::ir::interp
