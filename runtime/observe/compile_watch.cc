#include "heddle/runtime/observe/compile_watch.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "heddle/runtime/observe/watches_internal.h"

namespace heddle::runtime {
namespace {

// That of the process.
struct Process {
  std::mutex mutex;
  std::shared_ptr<const CompileWatch> watch;
};
Process& process() {
  static Process& instance = *new Process;
  return instance;
}

// The ops of an edited text's lines: those at the beginning and at the end that stayed as they were keep theirs.
std::vector<ir::OpId> line_ops_of(absl::string_view edited, absl::string_view text,
                                  const std::vector<ir::OpId>& ops) {
  const std::vector<absl::string_view> after = absl::StrSplit(edited, '\n');
  const std::vector<absl::string_view> before = absl::StrSplit(text, '\n');
  const size_t shorter = std::min(before.size(), after.size());
  size_t head = 0;
  while (head < shorter && before[head] == after[head]) ++head;
  size_t tail = 0;
  while (tail < shorter - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  // Lines are numbered from 1.
  std::vector<ir::OpId> result(after.size() + 1, ir::OpId::kNone);
  for (size_t line = 0; line < after.size(); ++line) {
    const size_t was = line < head ? line : line + before.size() - after.size();
    const bool same = line < head || line >= after.size() - tail;
    if (same && was + 1 < ops.size()) result[line + 1] = ops[was + 1];
  }
  return result;
}

}  // namespace

std::shared_ptr<const CompileWatch> watch_compilations(std::shared_ptr<const CompileWatch> watch) {
  Process& p = process();
  const std::lock_guard<std::mutex> lock(p.mutex);
  return std::exchange(p.watch, std::move(watch));
}

Watches::Watches(const CompileOptions& options) : watches_{options.watch, nullptr} {
  Process& p = process();
  const std::lock_guard<std::mutex> lock(p.mutex);
  if (p.watch != options.watch) watches_[1] = p.watch;
}

Status Watches::each(const Compilation& compilation, const char* what,
                     const std::function<void(const CompileWatch&)>& call) const {
  const auto error = [&](const auto&... text) {
    return InternalError(absl::StrCat(compilation.describe(), ": the watch's ", what,
                                      " has thrown an exception", text...));
  };
  for (const auto& watch : watches_) {
    if (watch == nullptr) continue;
    try {
      call(*watch);
    } catch (const std::exception& thrown) {
      return error(", '", thrown.what(), "'");
    } catch (...) {
      return error("");
    }
  }
  return OkStatus();
}

Status Watches::see_trace(const Compilation& compilation) const {
  return each(compilation, "on_trace", [&](const CompileWatch& watch) {
    if (watch.on_trace) watch.on_trace(compilation);
  });
}

Status Watches::see_mistakes(const Compilation& compilation,
                             const ir::Diagnostics& mistakes) const {
  return each(compilation, "on_mistakes", [&](const CompileWatch& watch) {
    if (watch.on_mistakes) watch.on_mistakes(compilation, mistakes);
  });
}

Status Watches::see_ir(const Compilation& compilation) const {
  return each(compilation, "on_ir", [&](const CompileWatch& watch) {
    if (watch.on_ir) watch.on_ir(compilation);
  });
}

Status Watches::edit_ptx(Compilation& compilation) const {
  codegen::PtxModule& ptx = compilation.ptx;
  return each(compilation, "on_ptx", [&](const CompileWatch& watch) {
    if (!watch.on_ptx) return;
    std::string text = ptx.text;
    watch.on_ptx(compilation, text);
    if (text == ptx.text) return;
    ptx.line_ops = line_ops_of(text, ptx.text, ptx.line_ops);
    ptx.text = std::move(text);
    compilation.ptx_edited = true;
  });
}

Status Watches::see_cubin(const Compilation& compilation) const {
  return each(compilation, "on_cubin", [&](const CompileWatch& watch) {
    if (watch.on_cubin) watch.on_cubin(compilation);
  });
}

}  // namespace heddle::runtime
