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
//
// Settings decide which arguments there are, and their shapes. "c: f32[m, n] if beta!=0" is an argument
// under such settings alone, and the function takes a std::optional<TensorRef>. Of several of one name,
// "a: f32[k, m] if layout=nn|nt" and "a: f32[m, k]", the first whose condition holds is the argument; it
// has the place of the first. A setting of a dimension's name
// is its size where none is given. Their types may differ where there is a function for each. "layout: choice" is no tensor: the function gets an enumeration, the place
// of the setting's value among its choices.
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
    ir::Scalar scalar = ir::Scalar::kNone;  // its type, or that of its elements; kNone: a choice
    int rank = -1;                          // -1: a number or a choice
    bool read_only = true;                  // a tensor of const elements
    bool optional = false;                  // a tensor that need not be there: absent_argument()
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

// In the place of an optional tensor that is not there.
inline Argument absent_argument() { return scalar_argument(0); }

// A setting that an operation offers: `--set dtype=bf16`. The choices of an element type need not be
// given, they are those of the operation's functions. Without a default it is that of the first function
// that has the element types which are given.
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

// Settings that an operation does not take together: {"dtype=e4m3 and layout=nn|nt|tt", "8-bit elements
// are contiguous along k; fix: ..."}.
struct Refusal {
  std::string condition = {};  // as behind the "if" of an argument
  std::string why = {};        // and what to do
};

// What an author says of an operation.
struct OperationSpec {
  std::string name = {};                    // what programs find it by
  std::string summary = {};                 // a line on what it computes
  std::vector<std::string> arguments = {};  // "name: type[dimension, ...]", in the function's order
  std::vector<HostFunction> functions = {};  // one for each choice of element types
  std::vector<Setting> settings = {};        // what its caller may choose
  std::vector<Refusal> refusals = {};        // of what the caller may choose
  Sizes sizes = {};                          // of every named dimension, as an example
  // Outputs by name, computed in double precision from all tensors by name: of those that are read
  // the values are given, of those that are only written the shape alone. Empty: nothing to check
  // against.
  std::function<StatusOr<std::map<std::string, Expected>>(
      const Settings&, const std::map<std::string, HostValues>& tensors)>
      reference = {};
};

// What a call does with an argument: reads it, writes it, both; or it is a number or choice, or the
// settings leave it out.
enum class Role : uint8_t { kInput, kOutput, kInOut, kNumber, kAbsent };

// What settings are: "layout=nn|nt and beta!=0". Numbers are compared as such.
struct Condition {
  // One of them.
  struct Term {
    std::string setting;              // its name
    bool equal = true;                // whether it is one of the values, or none of them
    std::vector<std::string> values;  // as text
  };
  std::vector<Term> terms;  // all of them hold; none: always

  // Whether these settings are so. Every setting that is named must be there.
  bool holds(const Settings& settings) const;
};
// "layout=nn|nt and beta!=0"
std::string describe(const Condition& condition);

// An argument as its author declared it.
struct OperationArgument {
  // An extent as it is declared: "rows", "rows + 1" or "4".
  struct Dimension {
    std::string name;    // empty: it is fixed
    int64_t number = 0;  // the dimension, or what is added to the named one
  };
  std::string name;                   // as declared
  std::string type;                   // an element type, a setting or "choice"
  Role role = Role::kInput;           // what a call does with it
  std::vector<Dimension> dimensions;  // of a tensor
  Condition condition;                // of the settings, where it is the argument
  size_t place = 0;                   // among the function's

  // Whether a call reads it, or writes it.
  bool is_read() const { return role == Role::kInput || role == Role::kInOut; }
  bool is_written() const { return role == Role::kOutput || role == Role::kInOut; }
  bool is_tensor() const { return is_read() || is_written(); }
};
// "[rows + 1, 4]", of a tensor.
std::string describe_dimensions(const OperationArgument& argument);

// An operation: its author's specification with declarations parsed and settings completed.
class Operation {
 public:
  // Reads the specification; validity() has what is wrong with it.
  explicit Operation(OperationSpec spec);

  // Its name and its specification.
  const std::string& name() const { return spec_.name; }
  const OperationSpec& spec() const { return spec_; }
  // All arguments that were declared, and for each that may be left out one more, of Role::kAbsent.
  const std::vector<OperationArgument>& declared() const { return arguments_; }
  // The arguments under these settings, in the function's order.
  std::vector<const OperationArgument*> arguments(const Settings& settings) const;
  // The one of a name; nullptr where there is none.
  const OperationArgument* find(absl::string_view argument, const Settings& settings) const;

  // OK, or kInvalidArgument with what is wrong with the specification. The other functions may not
  // be called then.
  const Status& validity() const { return validity_; }

  // Its settings, with those that are given. kInvalidArgument names an unknown setting or value,
  // or values that do not go together, and the possible ones.
  StatusOr<Settings> resolve(const std::map<std::string, std::string>& given) const;
  // An argument's element type under these settings.
  ir::Scalar element_type(const OperationArgument& argument, const Settings& settings) const;

 private:
  Status read_arguments();
  Status add_absent_arguments();
  std::vector<std::string> fixed_types(size_t place) const;
  Status check_function(const HostFunction& function) const;
  Status check_types() const;
  Status complete_settings();
  Status read_refusals();
  Status check_condition(const Condition& condition) const;
  Status check_sizes() const;
  const Setting* find_setting(absl::string_view name) const;
  Setting& setting(absl::string_view name);
  bool has_types(const HostFunction& function, const Settings& types) const;
  Status choose_types(const std::map<std::string, std::string>& given, Settings& settings) const;

  // A refusal with its condition read.
  struct Refused {
    Condition condition;
    std::string why;
  };
  OperationSpec spec_;
  std::vector<OperationArgument> arguments_;
  size_t places_ = 0;  // of the function's arguments
  Settings types_;     // the settings that are element types, with the author's default or ""
  std::vector<Refused> refusals_;
  Status validity_;
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::HostFunction;
using runtime::OperationSpec;
using runtime::Refusal;
using runtime::Settings;
using runtime::TensorShape;
}  // namespace heddle
