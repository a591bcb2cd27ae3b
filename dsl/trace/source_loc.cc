#include "heddle/dsl/trace/source_loc.h"

#include <cstring>
#include <utility>

namespace heddle {
namespace {
thread_local CallerLines* t_innermost = nullptr;
}  // namespace

CallerLines::CallerLines(SourceLoc caller, const char* file)
    : file_(file), caller_(caller), outer_(std::exchange(t_innermost, this)) {}

CallerLines::~CallerLines() { t_innermost = outer_; }

SourceLoc CallerLines::resolve(SourceLoc loc) {
  for (const CallerLines* scope = t_innermost; scope != nullptr; scope = scope->outer_) {
    if (loc.file != nullptr && std::strcmp(loc.file, scope->file_) == 0) loc = scope->caller_;
  }
  return loc;
}

}  // namespace heddle
