#include "heddle/ir/text/printer.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/text/literal.h"
#include "heddle/ir/wording.h"

namespace heddle::ir {
namespace {

// Where the header breaks into one parameter a line.
constexpr size_t kColumns = 100;

std::string in_quotes(absl::string_view text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string dim3_to_string(Dim3 d) { return absl::StrCat("(", d.x, ", ", d.y, ", ", d.z, ")"); }

std::string lengths_to_string(absl::Span<const int64_t> lengths) {
  return absl::StrCat("[",
                      absl::StrJoin(lengths, ", ",
                                    [](std::string* out, int64_t length) {
                                      length == kDynamic ? absl::StrAppend(out, "?")
                                                         : absl::StrAppend(out, length);
                                    }),
                      "]");
}

class Printer {
 public:
  Printer(const Kernel& kernel, const ValueNames& names, PrintOptions options)
      : kernel_(kernel), names_(names), options_(options) {}

  std::string take() { return std::move(out_); }

  void print_kernel() {
    print_header();
    absl::StrAppend(&out_, " {\n");
    print_ops(kernel_.body(), 1);
    absl::StrAppend(&out_, "}\n");
  }

  // The op without indentation. `depth` is that of the op; negative: one line, regions left out.
  void print_op_at(OpId id, int depth) {
    const Op& op = kernel_.op(id);
    if (!op.results.empty()) absl::StrAppend(&out_, list(op.results), " = ");
    absl::StrAppend(&out_, info(op).mnemonic);
    print_literals(op);
    if (is_bound(op)) {
      print_bindings(op);
    } else if (!op.operands.empty()) {
      absl::StrAppend(&out_, " ", list(op.operands));
    }
    print_attrs(op);
    if (!op.results.empty()) {
      absl::StrAppend(&out_, " : ",
                      absl::StrJoin(op.results, ", ", [this](std::string* out, ValueId value) {
                        absl::StrAppend(out, to_string(kernel_.type(value)));
                      }));
    }
    for (size_t i = 0; i < op.regions.size(); ++i) {
      if (i > 0 && op.opcode == Opcode::kIf && is_empty_else(op)) break;
      print_region(op, i, depth);
    }
    if (options_.locs && valid(op.loc)) {
      const Loc loc = kernel_.loc(op.loc);
      absl::StrAppend(&out_, " loc(", in_quotes(loc.file), ":", loc.line, ")");
    }
  }

 private:
  template <class Values>
  std::string list(const Values& values) const {
    return absl::StrJoin(values, ", ", [this](std::string* out, ValueId value) {
      absl::StrAppend(out, names_.of(value));
    });
  }

  void print_header() {
    std::vector<std::string> params;
    for (const Param& param : kernel_.params()) params.push_back(param_to_string(param));
    const std::string name =
        is_identifier(kernel_.name()) ? kernel_.name() : in_quotes(kernel_.name());
    absl::StrAppend(&out_, "kernel @", name, "(");
    const std::string launch = absl::StrCat(
        ") block", kernel_.has_dynamic_block() ? "(?)" : dim3_to_string(kernel_.block), " cluster",
        dim3_to_string(kernel_.cluster),
        kernel_.min_blocks > 0 ? absl::StrCat(" min_blocks(", kernel_.min_blocks, ")") : "",
        " target(", kernel_.target->name, ")");
    const std::string line = absl::StrJoin(params, ", ");
    if (out_.size() + line.size() + launch.size() + 2 <= kColumns) {
      absl::StrAppend(&out_, line, launch);
    } else {
      absl::StrAppend(&out_, "\n    ", absl::StrJoin(params, ",\n    "), launch);
    }
    if (kernel_.facts().empty()) return;
    absl::StrAppend(&out_, "\n    facts(",
                    absl::StrJoin(kernel_.facts(), ", ",
                                  [this](std::string* out, const Guard& guard) {
                                    absl::StrAppend(out, print_fact(kernel_, guard, names_));
                                  }),
                    ")");
  }

  std::string param_to_string(const Param& param) const {
    const Type type = kernel_.type(param.value);
    std::string text = absl::StrCat(names_.of(param.value), ": ", to_string(type));
    if (!type.is_view()) return text;
    absl::StrAppend(&text, param.unbounded ? " unbounded " : " ", lengths_to_string(param.extents),
                    " strides ", lengths_to_string(param.strides));
    return text;
  }

  // Bit patterns stand where other ops have their operands: `const 0.5 : f32`.
  void print_literals(const Op& op) {
    for (const Attr& attr : op.attrs) {
      if (info(attr.key).kind != AttrKind::kBits) continue;
      const Scalar scalar = op.results.empty() ? Scalar::kNone : kernel_.type(op.results[0]).scalar;
      absl::StrAppend(&out_, " ", literal_to_string(scalar, static_cast<uint64_t>(attr.value)));
    }
  }

  // In the order of the op's row, then any that it should not have.
  void print_attrs(const Op& op) {
    std::vector<std::string> texts;
    const OpInfo& row = info(op);
    const auto rank = [&row](AttrKey key) {
      for (int i = 0; i < row.attr_count; ++i) {
        if (row.attrs[i].key == key) return i;
      }
      return row.attr_count + static_cast<int>(key);
    };
    absl::InlinedVector<Attr, 2> attrs = op.attrs;
    std::stable_sort(attrs.begin(), attrs.end(),
                     [&](const Attr& a, const Attr& b) { return rank(a.key) < rank(b.key); });
    for (const Attr& attr : attrs) {
      if (info(attr.key).kind == AttrKind::kBits) continue;
      texts.push_back(absl::StrCat(info(attr.key).name, " = ", attr_value(attr)));
    }
    if (!texts.empty()) absl::StrAppend(&out_, " {", absl::StrJoin(texts, ", "), "}");
  }

  std::string attr_value(const Attr& attr) const {
    const AttrInfo& row = info(attr.key);
    switch (row.kind) {
      case AttrKind::kEnum:
        if (attr.value < 0 || attr.value >= static_cast<int64_t>(row.enumerators.size())) {
          return absl::StrCat(attr.value);
        }
        return std::string(row.enumerators[static_cast<size_t>(attr.value)]);
      case AttrKind::kString:
        return in_quotes(kernel_.text(StringId{static_cast<uint32_t>(attr.value)}));
      case AttrKind::kInts:
        return absl::StrCat("[", absl::StrJoin(kernel_.ints(attr.value), ", "), "]");
      case AttrKind::kInt:
      case AttrKind::kBits:
        break;
    }
    return absl::StrCat(attr.value);
  }

  // --- Structured ops ---

  // Whether the op's arguments pair up with its operands, so that they can be printed as bindings.
  // Only then is it a `for` or `while` that the verifier would accept.
  bool is_bound(const Op& op) const {
    if (!is_loop(op)) return false;
    const bool is_for = op.opcode == Opcode::kFor;
    if (op.regions.size() != (is_for ? 1 : 2) || (is_for && !valid(op.step()))) return false;
    return absl::c_all_of(op.regions, [&](RegionId region) {
      return kernel_.region(region).args.size() == first_carried(op) + op.inits().size();
    });
  }

  // `%i in %start .. %stop step %step carry(%a = %init, ...)`
  void print_bindings(const Op& op) {
    absl::Span<const ValueId> args = kernel_.region(op.regions[0]).args;
    absl::Span<const ValueId> init = op.operands;
    if (op.opcode == Opcode::kFor) {
      absl::StrAppend(&out_, " ", names_.of(args[0]), " in ", names_.of(init[0]), " .. ",
                      names_.of(init[1]), " step ", names_.of(init[2]));
      args.remove_prefix(1);
      init.remove_prefix(3);
    }
    if (init.empty()) return;
    std::vector<std::string> pairs;
    for (size_t i = 0; i < init.size(); ++i) {
      pairs.push_back(absl::StrCat(names_.of(args[i]), " = ", names_.of(init[i])));
    }
    absl::StrAppend(&out_, " carry(", absl::StrJoin(pairs, ", "), ")");
  }

  // An else region that hands nothing over and does nothing. With places, its yield must also have
  // the place that the parser would give it.
  bool is_empty_else(const Op& op) const {
    const Region& region = kernel_.region(op.regions[1]);
    if (!region.args.empty() || !valid(region.first) || region.first != region.last) return false;
    const Op& only = kernel_.op(region.first);
    return only.opcode == Opcode::kYield && only.operands.empty() && op.results.empty() &&
           (!options_.locs || only.loc == op.loc);
  }

  void print_region(const Op& op, size_t index, int depth) {
    if (index > 0) {
      absl::StrAppend(&out_, op.opcode == Opcode::kWhile ? " do" : " else");
      const Region& region = kernel_.region(op.regions[index]);
      if (!region.args.empty()) absl::StrAppend(&out_, "(", list(region.args), ")");
    }
    if (depth < 0) {
      absl::StrAppend(&out_, " { ... }");
      return;
    }
    absl::StrAppend(&out_, " {\n");
    print_ops(op.regions[index], depth + 1);
    out_.append(2 * static_cast<size_t>(depth), ' ');
    absl::StrAppend(&out_, "}");
  }

  void print_ops(RegionId region, int depth) {
    for (const OpId id : kernel_.ops(region)) {
      out_.append(2 * static_cast<size_t>(depth), ' ');
      print_op_at(id, depth);
      absl::StrAppend(&out_, "\n");
    }
  }

  const Kernel& kernel_;
  const ValueNames& names_;
  const PrintOptions options_;
  std::string out_;
};

}  // namespace

std::string print(const Kernel& kernel, PrintOptions options) {
  const ValueNames names(kernel, options.by_id);
  Printer printer(kernel, names, options);
  printer.print_kernel();
  return printer.take();
}

std::string print_op(const Kernel& kernel, OpId op) {
  return print_op(kernel, op, ValueNames(kernel));
}

std::string print_op(const Kernel& kernel, OpId op, const ValueNames& names) {
  Printer printer(kernel, names, {});
  printer.print_op_at(op, -1);
  return printer.take();
}

std::string print_fact(const Kernel& kernel, const Guard& guard, const ValueNames& names) {
  const FactInfo& fact = info(guard.fact.kind);
  const bool known = guard.fact.param < kernel.params().size();
  return absl::StrCat(known ? names.of(kernel.params()[guard.fact.param].value) : "%?", " ",
                      fact.name, " ", fact.per_dim ? absl::StrCat(guard.fact.dim, " ") : "",
                      guard.value);
}

}  // namespace heddle::ir
