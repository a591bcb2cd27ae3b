// Operations by name: how the heddle command, or a program with the same command line, finds them.
//
// A constant beside the function registers it; operation.h says what of it:
//
//   const Registered registered({.name = "row_sum", …});
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/runtime/operation/host_function.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// Registers an operation for as long as this object lives; made as a constant beside the function.
// A second one of the same name, such as a plug-in's, replaces the first.
class Registered {
 public:
  // Adds the operation, and removes it when destroyed.
  explicit Registered(OperationSpec spec);
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  const Operation* operation_;
};

// All registered operations, sorted by name; and the one of a name, nullptr where there is none.
// They stay while their program or plug-in is loaded.
std::vector<const Operation*> registered_operations();
const Operation* find_operation(absl::string_view name);

}  // namespace heddle::runtime

namespace heddle {
using runtime::Registered;
}  // namespace heddle
