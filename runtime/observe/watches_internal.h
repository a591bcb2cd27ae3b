// The watches that see one compilation (compile_watch.h).
#pragma once

#include <functional>
#include <memory>

#include "heddle/ir/diagnostic.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/observe/compile_watch.h"

namespace heddle::runtime {

// The watches of one compilation, for compile_source(): each function calls theirs. Errors: that one has thrown.
class Watches {
 public:
  // Those of its options and of the process, as it is now.
  explicit Watches(const CompileOptions& options);

  // Whether there are any.
  bool any() const { return watches_[0] != nullptr || watches_[1] != nullptr; }

  // Of each stage.
  Status see_trace(const Compilation& compilation) const;
  Status see_mistakes(const Compilation& compilation, const ir::Diagnostics& mistakes) const;
  Status see_ir(const Compilation& compilation) const;
  // Replaces the text of compilation.ptx by what they make of it.
  Status edit_ptx(Compilation& compilation) const;
  Status see_cubin(const Compilation& compilation) const;

 private:
  // Calls `call` with each watch; `what` is the function's name.
  Status each(const Compilation& compilation, const char* what,
              const std::function<void(const CompileWatch&)>& call) const;

  std::shared_ptr<const CompileWatch> watches_[2];
};

}  // namespace heddle::runtime
