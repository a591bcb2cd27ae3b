// What a kernel has the host do: print, and tell the time.
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {
namespace {

// Nanoseconds since the epoch, for every clock of the GPU.
const Instr* run_clock(const Instr* instr, Warp& warp) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  std::fill_n(warp.reg<int64_t>(instr->dst), kLanes, time);
  return instr + 1;
}

template <class T>
void append_formatted(std::string* text, const std::string& format, T value) {
  char buffer[64];
  const int size = std::snprintf(buffer, sizeof(buffer), format.c_str(), value);
  if (size < static_cast<int>(sizeof(buffer))) return absl::StrAppend(text, buffer);
  std::string longer(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(longer.data(), longer.size(), format.c_str(), value);
  longer.pop_back();
  absl::StrAppend(text, longer);
}

void append_value(const Warp& warp, const Print::Value& value, int lane, const std::string& format,
                  std::string* text) {
  switch (bytes_of(value.scalar)) {
    case 4:
      return append_formatted(text, format, warp.reg<uint32_t>(value.reg)[lane]);
    default:
      if (value.scalar == Scalar::kF64) {
        return append_formatted(text, format, warp.reg<double>(value.reg)[lane]);
      }
      return append_formatted(text, format,
                              static_cast<unsigned long long>(warp.reg<uint64_t>(value.reg)[lane]));
  }
}

const Instr* run_printf(const Instr* instr, Warp& warp) {
  const Print& print = warp.block->machine->code->prints[instr->aux];
  std::string text;
  for_each_lane(warp.mask, [&](int lane) {
    size_t used = 0;
    for (const FormatPart& part : print.parts) {
      if (part.conversion == 0) {
        absl::StrAppend(&text, part.text);
      } else {
        append_value(warp, print.values[used++], lane, part.text, &text);
      }
    }
  });
  std::fwrite(text.data(), 1, text.size(), stdout);
  return instr + 1;
}

// Values of a lane as bits.
uint64_t read_bits(const Warp& warp, const RuleCall::Value& value, int lane) {
  if (value.reg == kNone) return kAllLanes;
  uint64_t bits = 0;
  std::memcpy(&bits, warp.reg<char>(value.reg) + static_cast<size_t>(lane) * value.bytes,
              value.bytes);
  return bits;
}
void write_bits(Warp& warp, const RuleCall::Value& value, int lane, uint64_t bits) {
  bits &= value.mask;
  std::memcpy(warp.reg<char>(value.reg) + static_cast<size_t>(lane) * value.bytes, &bits,
              value.bytes);
}

// Runs what an author has written for some lanes, which must not end the process: whether it threw nothing. run(lanes) says
// in time for which ones.
template <class Run>
bool run_authors(const Instr* instr, Warp& warp, const Run& run) {
  Mask lanes = warp.mask;
  const auto report = [&](absl::string_view what) {
    warp.block->machine->reporter->add(
        warp, instr, lanes,
        absl::StrCat("the function that says what this op computes has thrown an exception", what),
        "let it give a value for all inputs");
    return false;
  };
  try {
    run(lanes);
    return true;
  } catch (const std::exception& thrown) {
    return report(absl::StrCat(", '", thrown.what(), "'"));
  } catch (...) {
    return report("");
  }
}

const Instr* run_rule(const Instr* instr, Warp& warp) {
  const RuleCall& call = warp.block->machine->code->rules[instr->aux];
  std::vector<uint64_t> inputs(call.inputs.size()), outputs(call.outputs.size());
  const bool done = run_authors(instr, warp, [&](Mask& lanes) {
    for_each_lane(warp.mask, [&](int lane) {
      lanes = Mask{1} << lane;
      for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = read_bits(warp, call.inputs[i], lane);
      std::fill(outputs.begin(), outputs.end(), uint64_t{0});
      call.rule(inputs, absl::MakeSpan(outputs));
      for (size_t i = 0; i < outputs.size(); ++i) {
        write_bits(warp, call.outputs[i], lane, outputs[i]);
      }
    });
  });
  return done ? instr + 1 : warp.suspend(WarpState::kStopped, instr);
}

const Instr* run_warp_rule(const Instr* instr, Warp& warp) {
  const RuleCall& call = warp.block->machine->code->rules[instr->aux];
  std::vector<uint64_t> inputs(call.inputs.size() * kLanes), outputs(call.outputs.size() * kLanes);
  for_each_lane(warp.mask, [&](int lane) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      inputs[i * kLanes + static_cast<size_t>(lane)] = read_bits(warp, call.inputs[i], lane);
    }
  });
  // Groups of lanes, each by its mask, whether they come together or not.
  const bool done = run_authors(instr, warp, [&](Mask& lanes) {
    for (Mask left = warp.mask; left != 0;) {
      const int first = std::countr_zero(left);
      const Mask group = instr->b == kNone ? left : left & warp.reg<Mask>(instr->b)[first];
      lanes = group;
      call.warp_rule(group, inputs, absl::MakeSpan(outputs));
      left &= ~(group | Mask{1} << first);
    }
  });
  if (!done) return warp.suspend(WarpState::kStopped, instr);
  for_each_lane(warp.mask, [&](int lane) {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      write_bits(warp, call.outputs[i], lane, outputs[i * kLanes + static_cast<size_t>(lane)]);
    }
  });
  return instr + 1;
}

const Instr* run_no_rule(const Instr* instr, Warp& warp) {
  const std::string& mnemonic = warp.block->machine->code->texts[instr->aux];
  const bool is_inline = absl::StartsWith(mnemonic, "inline_ptx");
  warp.block->machine->reporter->add(
      warp, instr, warp.mask,
      is_inline ? "this inline PTX has no rule that says what it computes"
                : absl::StrCat("'", mnemonic, "' has no meaning that says what it computes"),
      is_inline ? "give inline_ptx one, a function of the inputs, or run the kernel on a GPU"
                : "give its CustomOp one; if it is a mark for a pass, run the pass");
  return warp.suspend(WarpState::kStopped, instr);
}

}  // namespace

Handler rule_handler() { return &run_rule; }
Handler warp_rule_handler() { return &run_warp_rule; }
Handler no_rule_handler() { return &run_no_rule; }
Handler clock_handler() { return &run_clock; }
Handler printf_handler() { return &run_printf; }

}  // namespace heddle::ir::interp
