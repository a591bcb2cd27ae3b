#include "heddle/ir/interp/report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/interp/interpreter.h"

namespace heddle::ir::interp {
namespace {

std::string dim3_text(Dim3 dim) { return absl::StrCat("(", dim.x, ", ", dim.y, ", ", dim.z, ")"); }

}  // namespace

std::string thread_name(const Warp& warp, int lane) {
  return thread_name(*warp.block, warp.index * kLanes + lane);
}

std::string thread_name(const Block& block, int thread) {
  const Dim3 shape = block.machine->args->block;
  return absl::StrCat("thread (", thread % shape.x, ", ", thread / shape.x % shape.y, ", ",
                      thread / (shape.x * shape.y), ")");
}

std::string coordinates_text(absl::Span<const int64_t> coordinates) {
  return absl::StrCat("(", absl::StrJoin(coordinates, ", "), ")");
}

SourceLine Reporter::place(uint32_t index) const {
  if (index == kNone) return {};
  const CodeLine& line = code_.places[index];
  return {code_.files[line.file], line.line};
}

SourceLine Reporter::place_of(const Instr* instr) const { return place(site_of(instr).place); }

bool Reporter::known(const Instr* instr) const {
  return ops_.contains(index_of(site_of(instr).op));
}

void Reporter::push(const Instr* instr, std::string message, std::string fix,
                    std::vector<Note> notes) {
  if (!ops_.insert(index_of(site_of(instr).op)).second) return;
  Diagnostic diagnostic;
  diagnostic.place = place_of(instr);
  diagnostic.message = std::move(message);
  diagnostic.notes = std::move(notes);
  diagnostic.fix = std::move(fix);
  found_.push_back(std::move(diagnostic));
}

bool Reporter::add(const Warp& warp, const Instr* instr, Mask bad, std::string what,
                   std::string fix, std::vector<Note> notes) {
  const int lanes = std::popcount(bad);
  push(instr,
       absl::StrCat(what, " (kernel '", code_.name, "', block ", dim3_text(warp.block->index), ", ",
                    thread_name(warp, std::countr_zero(bad)),
                    lanes > 1 ? absl::StrCat(" and ", lanes - 1, " more of its warp") : "", ")"),
       std::move(fix), std::move(notes));
  return static_cast<int>(found_.size()) >= limit_;
}

void Reporter::add_fatal(const Block& block, const Instr* instr, std::string what, std::string fix,
                         std::vector<Note> notes) {
  push(instr,
       absl::StrCat(what, " (kernel '", code_.name, "', block ", dim3_text(block.index), ")"),
       std::move(fix), std::move(notes));
}

void Reporter::exhausted(const Warp& warp, const Instr* instr, std::string what, std::string fix,
                         std::vector<Note> notes) {
  exhausted_ = true;
  add_fatal(*warp.block, instr, std::move(what), std::move(fix), std::move(notes));
}

Status Reporter::status() const {
  if (found_.empty()) return OkStatus();
  return Status(exhausted_ ? StatusCode::kResourceExhausted : StatusCode::kFailedPrecondition,
                to_string(found_));
}

Note where_lane_is(const Warp& warp, const Instr* instr, int lane) {
  const Code& code = *warp.block->machine->code;
  const Reporter& reporter = *warp.block->machine->reporter;
  for (uint32_t i = reporter.site_of(instr).control; i != kNone; i = code.controls[i].parent) {
    const Control& control = code.controls[i];
    if ((warp.frames[control.frame].entry >> lane & 1u) == 0) continue;
    absl::string_view why;
    switch (control.kind) {
      case ControlKind::kThen:
        why = "does not take the then branch of this if";
        break;
      case ControlKind::kElse:
        why = "does not take the else branch of this if";
        break;
      case ControlKind::kFor:
        why = "has left this for loop";
        break;
      case ControlKind::kWhile:
        why = "has left this while loop";
        break;
    }
    return {reporter.place(control.place), absl::StrCat(thread_name(warp, lane), " ", why)};
  }
  return {{}, absl::StrCat("lane ", lane, " is no thread of the block")};
}

}  // namespace heddle::ir::interp
