// An operation: what a kernel library offers, and what the heddle command, benchmarks and other
// languages call. It is a host function of a stream, tensors and numbers, with as many launches and
// as much scratch memory as its shapes want; and beside it what a caller needs who does not know its
// C++ types: names, shapes in terms of named dimensions, element types, and what it should compute.
//
//   Status row_sum(const Stream&, const TensorRef<const float, 2>& x,
//                        const TensorRef<float, 1>& y);
//
//   const Registered registered({.name = "row_sum",
//                                .summary = "y(r) = the sum of row r of x",
//                                .arguments = {"x: f32[rows, columns]", "y: f32[rows]"},
//                                .functions = {host_function(row_sum)},
//                                .sizes = {{"rows", 4096}, {"columns", 4096}}});
//
// An argument is "name: type[dimension, ...]". A dimension is a name, which is the same number
// everywhere, such a name with a number added ("rows + 1"), or a number. A type is an element type, or a setting by which the caller chooses one:
// "x: dtype[n]" with a function for each. Without brackets it is a number, and a setting of the same
// name has its default. A tensor of const elements is an input and any other one an output, unless
// "inout" stands before its type: "y: inout f32[n]".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/ir/type.h"
#include "heddle/runtime/argument.h"

namespace heddle::runtime {

class Stream;

// A function whose arguments are data; host_function.h makes one from a typed function.
class HostFunction {
 public:
  struct Parameter {
    ir::Scalar scalar = ir::Scalar::kNone;
    int rank = -1;  // -1: a number
    bool read_only = true;
  };
  using Body = std::function<Status(const Stream&, Arguments)>;

  HostFunction(std::vector<Parameter> parameters, Body body)
      : parameters_(std::move(parameters)), body_(std::move(body)) {}

  const std::vector<Parameter>& parameters() const { return parameters_; }

  // Enqueues what the function does. kInvalidArgument for another number of arguments, or one of
  // another rank; element types are the caller's promise. Its own errors besides.
  Status call(const Stream& stream, Arguments arguments) const;

 private:
  std::vector<Parameter> parameters_;
  Body body_;
};

// A choice that an operation offers: `--set dtype=bf16`. What an operation's functions and arguments
// tell, it need not say: the choices and the default of an element type.
struct Setting {
  std::string name = {};
  std::string help = {};
  std::string default_value = {};
  std::vector<std::string> choices = {};  // empty: any text, judged by its type
};

// The values of an operation's settings: every one that it offers, and no other.
using Settings = std::map<std::string, std::string, std::less<>>;
// Named dimensions.
using Sizes = std::map<std::string, int64_t, std::less<>>;

struct TensorShape {
  ir::Scalar dtype = ir::Scalar::kNone;
  std::vector<int64_t> extents = {};  // row-major
};
using Shapes = std::map<std::string, TensorShape>;
// "f32[1024, 1000]"
std::string describe(const TensorShape& shape);

// A host tensor, every element as a double.
struct HostValues {
  TensorShape shape = {};
  std::vector<double> values = {};
};
// What an output should be, and how far each element may be from it.
struct Expected {
  std::vector<double> values = {};
  std::vector<double> tolerance = {};
};

// What an author says of an operation.
struct OperationSpec {
  std::string name = {};
  std::string summary = {};
  std::vector<std::string> arguments = {};  // in the function's order
  std::vector<HostFunction> functions = {};
  std::vector<Setting> settings = {};
  Sizes sizes = {};  // of every named dimension, as an example
  // Outputs by name, computed in double precision from all tensors by name: what is read has its
  // values, what is only written its shape alone. Empty: nothing to check against.
  std::function<StatusOr<std::map<std::string, Expected>>(
      const Settings&, const std::map<std::string, HostValues>& tensors)>
      reference = {};
};

enum class Role : uint8_t { kInput, kOutput, kInOut, kNumber };

// An argument as its author declared it.
struct OperationArgument {
  struct Dimension {
    std::string name;    // empty: it is fixed
    int64_t number = 0;  // the dimension, or what is added to the named one
  };
  std::string name;
  std::string type;  // an element type or a setting
  Role role = Role::kInput;
  std::vector<Dimension> dimensions;

  bool is_read() const { return role == Role::kInput || role == Role::kInOut; }
  bool is_written() const { return role == Role::kOutput || role == Role::kInOut; }
};

// The same in full: declarations read, settings completed.
class Operation {
 public:
  explicit Operation(OperationSpec spec);

  const std::string& name() const { return spec_.name; }
  const OperationSpec& spec() const { return spec_; }
  const std::vector<OperationArgument>& arguments() const { return arguments_; }
  // nullptr: it has none of that name.
  const OperationArgument* find(absl::string_view argument) const;

  // kInvalidArgument: what is wrong with what its author says. Nothing else is to be asked then.
  const Status& validity() const { return validity_; }

  // Its settings with `given` filled in. kInvalidArgument names an unknown setting or value, and
  // what there is.
  StatusOr<Settings> resolve(const std::map<std::string, std::string>& given) const;
  // An argument's element type under these settings.
  ir::Scalar element_type(const OperationArgument& argument, const Settings& settings) const;

 private:
  Status read_arguments();
  Status check_function(const HostFunction& function) const;
  Status complete_settings();
  Status check_sizes() const;
  Setting& setting(absl::string_view name);

  OperationSpec spec_;
  std::vector<OperationArgument> arguments_;
  Status validity_;
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::HostFunction;
using runtime::OperationSpec;
using runtime::Settings;
using runtime::TensorShape;
}  // namespace heddle
