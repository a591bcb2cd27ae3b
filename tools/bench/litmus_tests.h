// Litmus tests of the memory model: small programs for two to four threads, what they may leave,
// and the program of each thread in the kernel language.
//
// A thread's program reads like PTX without the scope, which is the same for all of a test:
// `ld.acquire y` (into the thread's next register), `st.release y 1`, `st.relaxed y r+1` (one more
// than what was read last), `atom.release y 1` (adds), `fence.sc`. Weak accesses are plain ones.
// Locations are x, y, z and start as 0. Comments name what the model asks for (PTX ISA, Memory
// Consistency Model); the tests' names are those of Alglave, Maranget and Tautschnig, "Herding
// Cats".
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "heddle/dsl/dsl.h"

namespace heddle::tools {

// An outcome is a digit for each register, thread after thread, and one for the final value of each
// location in `finals`. In patterns '.' is any digit and '+' any but 0.
struct LitmusTest {
  const char* name;
  const char* orders;
  std::vector<const char*> threads;
  const char* finals;
  std::vector<const char*> forbidden;
  const char* weak;  // allowed, but of no interleaving; nullptr: none
};

inline const std::vector<LitmusTest>& litmus_tests() {
  static const auto& tests = *new std::vector<LitmusTest>{
      // Message passing.
      {"MP", "weak", {"st.weak x 1; st.weak y 1", "ld.weak y; ld.weak x"}, "", {}, "10"},
      {"MP",
       "relaxed",
       {"st.relaxed x 1; st.relaxed y 1", "ld.relaxed y; ld.relaxed x"},
       "",
       {},
       "10"},
      {"MP",
       "release, acquire",
       {"st.relaxed x 1; st.release y 1", "ld.acquire y; ld.relaxed x"},
       "",
       {"10"},
       nullptr},
      {"MP",
       "weak data, release, acquire",
       {"st.weak x 1; st.release y 1", "ld.acquire y; ld.weak x"},
       "",
       {"10"},
       nullptr},
      // The first read races with the write. The model's axioms forbid 010 none the less, but ptxas
      // (13.0, in CUDA C++ too) merges weak reads on both sides of an acquiring one, where only a
      // race can tell.
      {"MP",
       "weak data read before and after",
       {"st.weak x 1; st.release y 1", "ld.weak x; ld.acquire y; ld.weak x"},
       "",
       {},
       "010"},
      {"MP",
       "fences",
       {"st.relaxed x 1; fence.acq_rel; st.relaxed y 1",
        "ld.relaxed y; fence.acq_rel; ld.relaxed x"},
       "",
       {"10"},
       nullptr},
      {"MP",
       "weak data, fences",
       {"st.weak x 1; fence.acq_rel; st.relaxed y 1", "ld.relaxed y; fence.acq_rel; ld.weak x"},
       "",
       {"10"},
       nullptr},
      {"MP",
       "weak data, atomics",
       {"st.weak x 1; atom.release y 1", "atom.acquire y 0; ld.weak x"},
       "",
       {"10"},
       nullptr},
      // Store buffering.
      {"SB",
       "relaxed",
       {"st.relaxed x 1; ld.relaxed y", "st.relaxed y 1; ld.relaxed x"},
       "",
       {},
       "00"},
      {"SB",
       "release, acquire",
       {"st.release x 1; ld.acquire y", "st.release y 1; ld.acquire x"},
       "",
       {},
       "00"},
      {"SB",
       "sc fences",
       {"st.relaxed x 1; fence.sc; ld.relaxed y", "st.relaxed y 1; fence.sc; ld.relaxed x"},
       "",
       {"00"},
       nullptr},
      // Load buffering; with dependencies the values would come out of thin air.
      {"LB",
       "relaxed",
       {"ld.relaxed x; st.relaxed y 1", "ld.relaxed y; st.relaxed x 1"},
       "",
       {},
       "11"},
      {"LB",
       "dependencies",
       {"ld.relaxed x; st.relaxed y r+1", "ld.relaxed y; st.relaxed x r+1"},
       "",
       {"++"},
       nullptr},
      {"LB",
       "release, acquire",
       {"ld.acquire x; st.release y 1", "ld.acquire y; st.release x 1"},
       "",
       {"11"},
       nullptr},
      {"LB",
       "fences",
       {"ld.relaxed x; fence.acq_rel; st.relaxed y 1",
        "ld.relaxed y; fence.acq_rel; st.relaxed x 1"},
       "",
       {"11"},
       nullptr},
      // Independent reads of independent writes.
      {"IRIW",
       "relaxed",
       {"st.relaxed x 1", "st.relaxed y 1", "ld.relaxed x; ld.relaxed y",
        "ld.relaxed y; ld.relaxed x"},
       "",
       {},
       "1010"},
      {"IRIW",
       "acquire",
       {"st.relaxed x 1", "st.relaxed y 1", "ld.acquire x; ld.acquire y",
        "ld.acquire y; ld.acquire x"},
       "",
       {},
       "1010"},
      {"IRIW",
       "sc fences",
       {"st.relaxed x 1", "st.relaxed y 1", "ld.relaxed x; fence.sc; ld.relaxed y",
        "ld.relaxed y; fence.sc; ld.relaxed x"},
       "",
       {"1010"},
       nullptr},
      // Write to read causality, and the same over two messages.
      {"WRC",
       "relaxed",
       {"st.relaxed x 1", "ld.relaxed x; st.relaxed y 1", "ld.relaxed y; ld.relaxed x"},
       "",
       {},
       "110"},
      {"WRC",
       "release, acquire",
       {"st.relaxed x 1", "ld.relaxed x; st.release y 1", "ld.acquire y; ld.relaxed x"},
       "",
       {"110"},
       nullptr},
      {"ISA2",
       "relaxed",
       {"st.relaxed x 1; st.relaxed y 1", "ld.relaxed y; st.relaxed z 1",
        "ld.relaxed z; ld.relaxed x"},
       "",
       {},
       "110"},
      {"ISA2",
       "weak data, release, acquire",
       {"st.weak x 1; st.release y 1", "ld.acquire y; st.release z 1", "ld.acquire z; ld.weak x"},
       "",
       {"110"},
       nullptr},
      // Two writers: the locations' final values tell who came last.
      {"S",
       "relaxed",
       {"st.relaxed x 2; st.relaxed y 1", "ld.relaxed y; st.relaxed x 1"},
       "x",
       {},
       "12"},
      {"S",
       "release, acquire",
       {"st.relaxed x 2; st.release y 1", "ld.acquire y; st.relaxed x 1"},
       "x",
       {"12"},
       nullptr},
      {"R",
       "relaxed",
       {"st.relaxed x 1; st.relaxed y 1", "st.relaxed y 2; ld.relaxed x"},
       "y",
       {},
       "02"},
      {"R",
       "sc fences",
       {"st.relaxed x 1; fence.sc; st.relaxed y 1", "st.relaxed y 2; fence.sc; ld.relaxed x"},
       "y",
       {"02"},
       nullptr},
      {"2+2W",
       "relaxed",
       {"st.relaxed x 1; st.relaxed y 2", "st.relaxed y 1; st.relaxed x 2"},
       "xy",
       {},
       "11"},
      {"2+2W",
       "sc fences",
       {"st.relaxed x 1; fence.sc; st.relaxed y 2", "st.relaxed y 1; fence.sc; st.relaxed x 2"},
       "xy",
       {"11"},
       nullptr},
      // Coherence: one location has one order of writes, whatever the accesses' order.
      {"CoRR", "relaxed", {"st.relaxed x 1", "ld.relaxed x; ld.relaxed x"}, "", {"10"}, nullptr},
      {"CoWW",
       "relaxed",
       {"st.relaxed x 1; st.relaxed x 2", "ld.relaxed x; ld.relaxed x"},
       "x",
       {"10.", "20.", "21.", "..0", "..1"},
       nullptr},
      {"CoRW",
       "relaxed",
       {"ld.relaxed x; st.relaxed x 1", "st.relaxed x 2"},
       "x",
       {"1.", "22", ".0"},
       nullptr},
      {"CoWR",
       "relaxed",
       {"st.relaxed x 1; ld.relaxed x", "st.relaxed x 2"},
       "x",
       {"0.", "21", ".0"},
       nullptr},
  };
  return tests;
}

inline bool matches(absl::string_view pattern, absl::string_view outcome) {
  if (pattern.size() != outcome.size()) return false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool fits =
        pattern[i] == '.' || (pattern[i] == '+' && outcome[i] != '0') || pattern[i] == outcome[i];
    if (!fits) return false;
  }
  return true;
}
inline bool is_forbidden(const LitmusTest& test, absl::string_view outcome) {
  for (const char* pattern : test.forbidden) {
    if (matches(pattern, outcome)) return true;
  }
  return false;
}

struct LitmusStep {
  std::string kind;   // ld, st, atom, fence
  std::string order;  // weak, relaxed, acquire, release, acq_rel, sc
  int location = 0;   // 0: x, 1: y, 2: z
  std::string value;

  bool reads() const { return kind == "ld" || (kind == "atom" && order == "acquire"); }
};

inline std::vector<LitmusStep> litmus_steps(const char* thread) {
  std::vector<LitmusStep> steps;
  for (const absl::string_view text : absl::StrSplit(thread, "; ")) {
    const std::vector<std::string> words = absl::StrSplit(text, ' ');
    const std::vector<std::string> head = absl::StrSplit(words[0], '.');
    steps.push_back({head[0], head[1], words.size() > 1 ? words[1][0] - 'x' : 0,
                     words.size() > 2 ? words[2] : ""});
  }
  return steps;
}

inline int registers_of(const char* thread) {
  int count = 0;
  for (const LitmusStep& step : litmus_steps(thread)) count += step.reads();
  return count;
}
inline int registers_of(const LitmusTest& test) {
  int count = 0;
  for (const char* thread : test.threads) count += registers_of(thread);
  return count;
}
inline int locations_of(const LitmusTest& test) {
  int count = 0;
  for (const char* thread : test.threads) {
    for (const LitmusStep& step : litmus_steps(thread)) count = std::max(count, step.location + 1);
  }
  return count;
}

inline MemoryOrder order_named(const std::string& name) {
  if (name == "acquire") return MemoryOrder::acquire;
  if (name == "release") return MemoryOrder::release;
  if (name == "acq_rel") return MemoryOrder::acq_rel;
  if (name == "sc") return MemoryOrder::seq_cst;
  return MemoryOrder::relaxed;
}

// Records a thread's program. `at` says where in `memory` each location lies. Returns the
// registers.
inline std::vector<Int> record_thread(const char* thread, MemoryScope scope,
                                      const Tensor<int32_t, 1>& memory,
                                      const std::function<Int(int)>& at) {
  std::vector<Int> registers;
  for (const LitmusStep& step : litmus_steps(thread)) {
    const MemoryOrder order = order_named(step.order);
    const bool weak = step.order == "weak";
    if (step.kind == "fence") {
      memory_fence(scope, order);
      continue;
    }
    const Int place = at(step.location);
    if (step.kind == "ld") {
      registers.push_back(weak ? Int(memory(place)) : atomic_load(memory(place), order, scope));
      continue;
    }
    const Int value = step.value == "r+1" ? registers.back() + 1 : Int(step.value[0] - '0');
    if (step.kind == "atom") {
      const Int old = atomic_add(memory(place), value, order, scope);
      if (step.reads()) registers.push_back(old);
    } else if (weak) {
      memory(place) = value;
    } else {
      atomic_store(memory(place), value, order, scope);
    }
  }
  return registers;
}

}  // namespace heddle::tools
