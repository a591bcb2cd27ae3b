#include "heddle/runtime/recall/kept_compilation.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "heddle/codegen/cache/fields.h"
#include "heddle/ir/launch/host_part.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"

namespace heddle::runtime {
namespace {

using codegen::append_field;
using codegen::Fields;
using ir::Opcode;
using ir::OpId;

// Plain numbers, one behind the other.
using Numbers = std::vector<int64_t>;

void append_numbers(std::string& bytes, const Numbers& numbers) {
  append_field(bytes,
               {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)});
}

std::optional<Numbers> read_numbers(Fields& fields) {
  const std::optional<absl::string_view> bytes = fields.next();
  if (!bytes || bytes->size() % sizeof(int64_t) != 0) return std::nullopt;
  Numbers numbers(bytes->size() / sizeof(int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes->data(), bytes->size());
  return numbers;
}

// Takes numbers from the front; past the end it gives 0 and is spoilt.
class Reader {
 public:
  explicit Reader(const Numbers& numbers) : numbers_(numbers) {}
  int64_t next() {
    if (at_ < numbers_.size()) return numbers_[at_++];
    spoilt_ = true;
    return 0;
  }
  int as_int() { return static_cast<int>(next()); }
  bool more() const { return at_ < numbers_.size() && !spoilt_; }
  bool whole() const { return at_ == numbers_.size() && !spoilt_; }

 private:
  const Numbers& numbers_;
  size_t at_ = 0;
  bool spoilt_ = false;
};

// The ops of one kind in the order of the kernel's text, which printing and parsing keep.
std::vector<OpId> ops_of(const ir::Kernel& kernel, Opcode opcode) {
  std::vector<OpId> ops;
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode == opcode) ops.push_back(id);
  });
  return ops;
}
int64_t index_in(const std::vector<OpId>& ops, OpId op) {
  return std::find(ops.begin(), ops.end(), op) - ops.begin();
}
bool holds(const std::vector<OpId>& ops, int64_t index) {
  return index >= 0 && index < static_cast<int64_t>(ops.size());
}

// A layout's three lists, and its size; ops are numbers among those of their kind in the host part.
void append_layout(std::string& bytes, const ir::ParamLayout& layout, const ir::Kernel& host) {
  Numbers slots, values, maps;
  for (const ir::ParamSlot& slot : layout.slots) {
    slots.insert(slots.end(),
                 {static_cast<int64_t>(slot.kind), slot.param, slot.dim, slot.offset, slot.bytes});
  }
  const std::vector<OpId> at_launch = ops_of(host, Opcode::kAtLaunch);
  for (const ir::LaunchSlot& slot : layout.at_launch) {
    values.insert(values.end(), {slot.offset, slot.bytes, static_cast<int64_t>(slot.ops.size())});
    for (const OpId op : slot.ops) values.push_back(index_in(at_launch, op));
  }
  const std::vector<OpId> tensor_maps = ops_of(host, Opcode::kTensorMap);
  for (const ir::MapSlot& slot : layout.tensor_maps) {
    maps.insert(maps.end(), {index_in(tensor_maps, slot.op), slot.offset});
  }
  append_numbers(bytes, slots);
  append_numbers(bytes, values);
  append_numbers(bytes, maps);
  append_numbers(bytes, {layout.bytes});
}

std::optional<ir::ParamLayout> read_layout(Fields& fields, const ir::Kernel& host) {
  const auto slots = read_numbers(fields), values = read_numbers(fields),
             maps = read_numbers(fields), bytes = read_numbers(fields);
  if (!slots || !values || !maps || !bytes || bytes->size() != 1) return std::nullopt;
  ir::ParamLayout layout;
  layout.bytes = static_cast<int>((*bytes)[0]);
  Reader slot(*slots), value(*values), map(*maps);
  while (slot.more()) {
    const auto kind = static_cast<ir::SlotKind>(slot.next());
    const int param = slot.as_int(), dim = slot.as_int(), offset = slot.as_int();
    layout.slots.push_back({kind, param, dim, offset, slot.as_int()});
  }
  const std::vector<OpId> at_launch = ops_of(host, Opcode::kAtLaunch);
  while (value.more()) {
    ir::LaunchSlot& made = layout.at_launch.emplace_back();
    made.offset = value.as_int();
    made.bytes = value.as_int();
    for (int64_t left = value.next(); left > 0 && value.more(); --left) {
      const int64_t op = value.next();
      if (!holds(at_launch, op)) return std::nullopt;
      made.ops.push_back(at_launch[static_cast<size_t>(op)]);
    }
    if (made.ops.empty()) return std::nullopt;
  }
  const std::vector<OpId> tensor_maps = ops_of(host, Opcode::kTensorMap);
  while (map.more()) {
    const int64_t op = map.next();
    if (!holds(tensor_maps, op)) return std::nullopt;
    layout.tensor_maps.push_back({tensor_maps[static_cast<size_t>(op)], map.as_int()});
  }
  if (!slot.whole() || !value.whole() || !map.whole()) return std::nullopt;
  return layout;
}

// All but the options and the source.
std::string encode(const Compilation& compilation, const ir::Kernel& host) {
  std::string bytes;
  append_field(bytes, ir::print(host, {.locs = true}));
  append_layout(bytes, compilation.layout, host);
  append_field(bytes, encode_guards(compilation.guards));
  append_field(bytes, compilation.ptx.text);
  append_field(bytes, compilation.ptx.entry);
  append_numbers(bytes, {compilation.ptx.shared_bytes, compilation.ptx.dynamic_shared_base});
  return bytes;
}

}  // namespace

std::string encode_guards(absl::Span<const ir::Guard> guards) {
  Numbers numbers;
  for (const ir::Guard& guard : guards) {
    numbers.insert(numbers.end(), {static_cast<int64_t>(guard.fact.kind), guard.fact.param,
                                   guard.fact.dim, guard.value});
  }
  std::string bytes;
  append_numbers(bytes, numbers);
  return bytes;
}

std::optional<std::vector<ir::Guard>> decode_guards(absl::string_view bytes) {
  Fields fields(bytes);
  const std::optional<Numbers> numbers = read_numbers(fields);
  if (!numbers || !fields.at_end()) return std::nullopt;
  std::vector<ir::Guard> guards;
  Reader reader(*numbers);
  while (reader.more()) {
    const auto kind = static_cast<ir::FactKind>(reader.next());
    const auto param = static_cast<uint16_t>(reader.next());
    const auto dim = static_cast<uint8_t>(reader.next());
    guards.push_back({{kind, param, dim}, reader.next()});
  }
  if (!reader.whole()) return std::nullopt;
  return guards;
}

std::string encode_compilation(const Compilation& compilation, const ir::KernelSource& source) {
  std::string bytes = encode(compilation, ir::host_part(compilation.optimized));
  const auto back = decode_compilation(bytes, source, compilation.options);
  const bool same = back != nullptr && encode(*back, ir::host_part(back->optimized)) == bytes;
  return same ? bytes : "";
}

std::shared_ptr<Compilation> decode_compilation(absl::string_view bytes,
                                                const ir::KernelSource& source,
                                                const CompileOptions& options) {
  Fields fields(bytes);
  const std::optional<absl::string_view> host = fields.next();
  if (!host) return nullptr;
  StatusOr<ir::Kernel> kernel = ir::parse(*host, "a kept compilation");
  if (!kernel.ok() || kernel->params().size() != source.params().size()) return nullptr;
  const std::optional<ir::ParamLayout> layout = read_layout(fields, *kernel);
  const auto guards = fields.next(), text = fields.next(), entry = fields.next();
  const std::optional<Numbers> shared = read_numbers(fields);
  if (!layout || !entry || !shared || shared->size() != 2 || !fields.at_end()) return nullptr;
  const std::optional<std::vector<ir::Guard>> relied_on = decode_guards(*guards);
  if (!relied_on) return nullptr;

  auto compilation = std::make_shared<Compilation>(ir::TraceResult{*std::move(kernel)});
  compilation->name = source.name();
  compilation->options = options;
  compilation->place = source.place();
  compilation->params.assign(source.params().begin(), source.params().end());
  compilation->recalled = true;
  compilation->guards = *relied_on;
  compilation->layout = *layout;
  compilation->ptx = {.text = std::string(*text),
                      .entry = std::string(*entry),
                      .line_ops = {},
                      .params = *layout,
                      .shared_bytes = static_cast<int>((*shared)[0]),
                      .dynamic_shared_base = static_cast<int>((*shared)[1])};
  compilation->prepare_launches();
  return compilation;
}

}  // namespace heddle::runtime
