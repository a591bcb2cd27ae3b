// An operation: what a kernel library offers, and what the heddle command, benchmarks and other
// languages call. It is a host function of a stream, tensors and numbers, with any number of
// launches and any scratch memory. Beside it stands what callers need that do not know its C++
// types: names, shapes in terms of named dimensions, element types, and what it should compute.
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
  // A parameter after the stream.
  struct Parameter {
    ir::Scalar scalar = ir::Scalar::kNone;  // its type, or that of its elements
    int rank = -1;                          // -1: a number
    bool read_only = true;                  // a tensor of const elements
  };
  // The function with its arguments as data.
  using Body = std::function<Status(const Stream&, Arguments)>;

  // host_function() makes one of a C++ function.
  HostFunction(std::vector<Parameter> parameters, Body body)
      : parameters_(std::move(parameters)), body_(std::move(body)) {}

  const std::vector<Parameter>& parameters() const { return parameters_; }

  // Calls the function. kInvalidArgument for a wrong number of arguments, or an argument of another
  // rank; element types are not checked. Else what the function returns.
  Status call(const Stream& stream, Arguments arguments) const;

 private:
  std::vector<Parameter> parameters_;
  Body body_;
};

// A setting that an operation offers: `--set dtype=bf16`. The choices and the default of an element
// type need not be given; they follow from the operation's functions and arguments.
struct Setting {
  std::string name = {};                  // as in `--set name=value`
  std::string help = {};                  // a line for `heddle list`
  std::string default_value = {};         // where it is not given
  std::vector<std::string> choices = {};  // empty: any text of its type
};

// The values of an operation's settings: every one that it offers, and no other.
using Settings = std::map<std::string, std::string, std::less<>>;
// Named dimensions and their sizes.
using Sizes = std::map<std::string, int64_t, std::less<>>;

// The element type and the extents of a tensor.
struct TensorShape {
  ir::Scalar dtype = ir::Scalar::kNone;  // the element type
  std::vector<int64_t> extents = {};     // in elements, row-major
};
// Shapes by argument.
using Shapes = std::map<std::string, TensorShape>;
// "f32[1024, 1000]"
std::string describe(const TensorShape& shape);

// A host tensor, every element as a double.
struct HostValues {
  TensorShape shape = {};           // its type and extents
  std::vector<double> values = {};  // row-major
};
// What an output should be, and how far each element may be from it.
struct Expected {
  std::vector<double> values = {};     // row-major
  std::vector<double> tolerance = {};  // of each element, absolute
};

// What an author says of an operation.
struct OperationSpec {
  std::string name = {};                    // what programs find it by
  std::string summary = {};                 // a line on what it computes
  std::vector<std::string> arguments = {};  // "name: type[dimension, ...]", in the function's order
  std::vector<HostFunction> functions = {};  // one for each choice of element types
  std::vector<Setting> settings = {};        // what its caller may choose
  Sizes sizes = {};                          // of every named dimension, as an example
  // Outputs by name, computed in double precision from all tensors by name: of those that are read
  // the values are given, of those that are only written the shape alone. Empty: nothing to check
  // against.
  std::function<StatusOr<std::map<std::string, Expected>>(
      const Settings&, const std::map<std::string, HostValues>& tensors)>
      reference = {};
};

// What a call does with an argument: reads it, writes it, both; or it is a number.
enum class Role : uint8_t { kInput, kOutput, kInOut, kNumber };

// An argument as its author declared it.
struct OperationArgument {
  // An extent as it is declared: "rows", "rows + 1" or "4".
  struct Dimension {
    std::string name;    // empty: it is fixed
    int64_t number = 0;  // the dimension, or what is added to the named one
  };
  std::string name;                   // as declared
  std::string type;                   // an element type or a setting
  Role role = Role::kInput;           // what a call does with it
  std::vector<Dimension> dimensions;  // of a tensor

  // Whether a call reads it, or writes it.
  bool is_read() const { return role == Role::kInput || role == Role::kInOut; }
  bool is_written() const { return role == Role::kOutput || role == Role::kInOut; }
};

// An operation: its author's specification with declarations parsed and settings completed.
class Operation {
 public:
  // Reads the specification; validity() has what is wrong with it.
  explicit Operation(OperationSpec spec);

  // Its name, its specification, and its arguments in the function's order.
  const std::string& name() const { return spec_.name; }
  const OperationSpec& spec() const { return spec_; }
  const std::vector<OperationArgument>& arguments() const { return arguments_; }
  // The argument of a name; nullptr where there is none.
  const OperationArgument* find(absl::string_view argument) const;

  // OK, or kInvalidArgument with what is wrong with the specification. The other functions may not
  // be called then.
  const Status& validity() const { return validity_; }

  // Its settings, with those that are given. kInvalidArgument names an unknown setting or value,
  // and the possible ones.
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
