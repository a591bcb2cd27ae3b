// Random nests of loops and branches with Break, Continue and Return: what the kernel stores, on whatever
// device the tests run on, against the same program in C++.
#include <array>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

constexpr int kVars = 3;
constexpr int kShown = 8;

enum class Kind { kAdd, kShow, kIf, kWhile, kFor, kBreak, kContinue, kReturn };

struct Statement {
  Kind kind;
  int a = 0, b = 0, c = 0;  // variables, constants, trips
  std::vector<Statement> body{}, otherwise{};
};
using Program = std::vector<Statement>;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Program program(int depth, bool in_loop) {
    Program list;
    for (int i = 1 + pick(depth == 0 ? 6 : 4); i > 0; --i)
      list.push_back(statement(depth, in_loop));
    return list;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  Statement statement(int depth, bool in_loop) {
    Statement s{.kind = Kind::kAdd, .a = pick(kVars), .b = pick(kVars), .c = pick(7)};
    const int kind = pick(12);
    if (kind < 3 && depth < 4) {
      s.kind = kind == 0 ? Kind::kWhile : kind == 1 ? Kind::kFor : Kind::kIf;
    } else if (kind < 6 && depth < 5) {
      s.kind = Kind::kIf;
    } else if (kind == 6) {
      s.kind = Kind::kShow;
    } else if (kind < 10 && depth > 0) {
      s.kind = !in_loop || pick(8) == 0 ? Kind::kReturn
               : pick(2) == 0           ? Kind::kBreak
                                        : Kind::kContinue;
    }
    const bool loops = s.kind == Kind::kWhile || s.kind == Kind::kFor;
    if (loops || s.kind == Kind::kIf) s.body = program(depth + 1, in_loop || loops);
    if (s.kind == Kind::kIf && pick(3) == 0) s.otherwise = program(depth + 1, in_loop);
    return s;
  }

  std::mt19937 random_;
};

// What both sides mean.
template <class V>
auto holds(const V& v, const Statement& s) {
  return ((v[static_cast<size_t>(s.a)] + v[static_cast<size_t>(s.b)] * 3) & 3) == s.c % 4;
}

// --- In C++ ---

struct Host {
  int32_t v[kVars];
  std::vector<int32_t> y;

  enum class Flow { kNext, kBreak, kContinue, kReturn };
  Flow run(const Program& program) {
    for (const Statement& s : program) {
      const Flow flow = run(s);
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }
  Flow run(const Statement& s) {
    switch (s.kind) {
      case Kind::kAdd:
        v[s.a] = (v[s.a] + v[s.b] + s.c) & 1023;
        return Flow::kNext;
      case Kind::kShow:
        y[static_cast<size_t>(s.c)] += v[s.a];
        return Flow::kNext;
      case Kind::kIf:
        return run(holds(v, s) ? s.body : s.otherwise);
      case Kind::kWhile:
      case Kind::kFor: {
        const int trips = s.kind == Kind::kFor ? (s.c + 2) / 3 : s.c / 2;
        for (int i = 0; i < trips; ++i) {
          const Flow flow = run(s.body);
          if (flow == Flow::kBreak) break;
          if (flow == Flow::kReturn) return flow;
        }
        return Flow::kNext;
      }
      case Kind::kBreak:
        return Flow::kBreak;
      case Kind::kContinue:
        return Flow::kContinue;
      case Kind::kReturn:
        break;
    }
    return Flow::kReturn;
  }
};

// --- As a kernel ---

struct Traced {
  std::array<Var<int32_t>, kVars>& v;
  const Tensor<int32_t, 1>& y;

  void run(const Program& program) const {
    for (const Statement& s : program) run(s);
  }
  void run(const Statement& s) const {
    switch (s.kind) {
      case Kind::kAdd:
        v[at(s.a)] = (v[at(s.a)] + v[at(s.b)] + s.c) & 1023;
        return;
      case Kind::kShow:
        y(s.c) += v[at(s.a)];
        return;
      case Kind::kIf: {
        const std::array<Int, kVars> now = {Int(v[0]), Int(v[1]), Int(v[2])};
        const Bool asked = holds(now, s);
        const auto then = [&] { run(s.body); };
        if (s.otherwise.empty()) {
          If(asked, then);
        } else {
          If(asked, then).Else([&] { run(s.otherwise); });
        }
        return;
      }
      case Kind::kWhile: {
        Var<int32_t> trips(0);
        return While([&] { return trips < s.c / 2; },
                     [&] {
                       trips += 1;
                       run(s.body);
                     });
      }
      case Kind::kFor: {
        // Steps of one and of three, and both ways.
        if (s.a == 0) {
          for (const Int i : range(0, s.c, 3)) run_trip(i, s);
        } else if (s.a == 1) {
          for (const Int i : range((s.c + 2) / 3)) run_trip(i, s);
        } else {
          for (const Int i : range((s.c + 2) / 3, 0, -1)) run_trip(i, s);
        }
        return;
      }
      case Kind::kBreak:
        return Break();
      case Kind::kContinue:
        return Continue();
      case Kind::kReturn:
        return Return();
    }
  }
  void run_trip(const Int&, const Statement& s) const { run(s.body); }
  static size_t at(int i) { return static_cast<size_t>(i); }
};

TEST(ExitsRandom, NestsDoWhatTheyDoInCpp) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const Program program = Generator(seed).program(0, /*in_loop=*/false);
    const auto kernel = local_kernel("nest", [&](Int n, Tensor<int32_t, 1> y) {
      std::array<Var<int32_t>, kVars> v = {Var<int32_t>(n), Var<int32_t>(n + 1),
                                           Var<int32_t>(n + 2)};
      Traced{v, y}.run(program);
      for (int i = 0; i < kVars; ++i) y(i) += v[static_cast<size_t>(i)];
    });
    Host host{{}, std::vector<int32_t>(kShown)};
    const auto n = static_cast<int32_t>(seed % 5);
    for (int i = 0; i < kVars; ++i) host.v[i] = n + i;
    if (host.run(program) == Host::Flow::kNext) {
      for (size_t i = 0; i < kVars; ++i) host.y[i] += host.v[i];
    }
    const Buffer out = device.upload(absl::MakeConstSpan(std::vector<int32_t>(kShown))).value();
    ASSERT_THAT(kernel.launch(stream, {.block = 1}, n, as_tensor<int32_t>(out, {kShown})), IsOk());
    ASSERT_EQ(out.download<int32_t>(stream).value(), host.y) << "seed " << seed;
  }
}

}  // namespace
}  // namespace heddle
