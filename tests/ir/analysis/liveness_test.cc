#include "heddle/ir/analysis/liveness.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/text/parse_text.h"

namespace heddle::ir {
namespace {

// Registers as the op that makes a value, or the first store, starts.
int at(const Kernel& kernel, absl::string_view name) {
  return Liveness(kernel).registers_at(kernel.value(value_named(kernel, name)).def);
}
int at_store(const Kernel& kernel) {
  int registers = -1;
  const Liveness liveness(kernel);
  kernel.walk([&](OpId id) {
    if (kernel.op(id).opcode == Opcode::kStore && registers < 0) {
      registers = liveness.registers_at(id);
    }
  });
  return registers;
}

constexpr absl::string_view kParams =
    "%x: view<f32, global, 1> [?] strides [1], %y: view<f64, global, 1> [?] strides [1], %n: i32";

TEST(Liveness, EndsWithTheLastUse) {
  const Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %a = load %x, %t : f32
    %b = load %y, %t : f64
    %c = add %a, %a : f32
    %d = convert %b : f32
    %e = add %c, %d : f32
    store %x, %e, %t
)");
  EXPECT_EQ(at(kernel, "a"), 0);  // coordinates of threads are there from the start
  EXPECT_EQ(at(kernel, "b"), 1);
  EXPECT_EQ(at(kernel, "c"), 3);  // a, and two of b
  EXPECT_EQ(at(kernel, "d"), 3);  // c and b
  EXPECT_EQ(at(kernel, "e"), 2);
  EXPECT_EQ(at_store(kernel), 1);
  EXPECT_EQ(Liveness(kernel).peak(), 3);
}

TEST(Liveness, LastsThroughLoopsThatUseIt) {
  const Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %f = load %x, %zero : f32
    %g = load %x, %one : f32
    %s = for %i in %zero .. %n step %one carry(%acc = %g) : f32 {
      %v = load %x, %i : f32
      %p = mul %v, %f : f32
      %q = add %acc, %p : f32
      %r = abs %q : f32
      yield %r
    }
    store %x, %s, %t
)");
  EXPECT_EQ(at(kernel, "s"), 2);  // f and g
  EXPECT_EQ(at(kernel, "v"),
            3);  // f, the index and the sum so far; stop is a parameter, step a constant
  EXPECT_EQ(at(kernel, "p"), 4);
  EXPECT_EQ(at(kernel, "r"), 3);  // f and the index are for the next trip, acc is not
  EXPECT_EQ(at_store(kernel), 1);
}

// A bound that is computed is compared with at the end of each trip; a part of a vector does not keep the rest.
TEST(Liveness, OfBoundsAndParts) {
  const Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %m = add %n, %t : i32
    %v = load %x, %zero : vec<f32, 4>
    %e = extract %v {index = 2} : f32
    for %i in %zero .. %m step %one {
      store %x, %e, %t
      yield
    }
)");
  EXPECT_EQ(at(kernel, "e"), 5);   // m and the vector
  EXPECT_EQ(at_store(kernel), 3);  // m, e and the index
}

// Names of registers that there are already, constants and conditions need none.
TEST(Liveness, CountsRegistersOnce) {
  const Kernel kernel = parse_body("32, 1, 1", kParams, R"(
    %t = thread_idx {axis = x} : i32
    %k = const 3.0 : f32
    %v = load %x, %t : f32
    %u = bitcast %v : u32
    %w = bitcast %u : f32
    %c = lt %w, %k : bool
    %z = select %c, %k, %w : f32
    store %x, %z, %t
)");
  EXPECT_EQ(at(kernel, "c"), 1);
  EXPECT_EQ(at(kernel, "z"), 1);
  EXPECT_EQ(Liveness(kernel).peak(), 1);
  EXPECT_EQ(registers_of(Type::vector(Scalar::kF16, 8)), 4);
  EXPECT_EQ(registers_of(Type::of(Scalar::kF16)), 1);
  EXPECT_EQ(registers_of(Type::fragment(Scalar::kF32, 128)), 128);
  EXPECT_EQ(registers_of(kBoolType), 0);
}

TEST(Liveness, OfTiedFragmentsIsOne) {
  const Kernel kernel = parse_kernel(R"(kernel @k(%x: view<f32, global, 1> [?] strides [1])
    block(128, 1, 1) target(sm_90a) {
    %t = thread_idx {axis = x} : i32
    %f = undef : frag<f32, 64>
    %p = wgmma.begin %f : pending<f32, 64>
    wgmma.commit
    %s = wgmma.wait %p {groups = 0} : frag<f32, 64>
    %e = extract %s {index = 0} : f32
    store %x, %e, %t
}
)");
  EXPECT_EQ(at(kernel, "p"), 64);
  EXPECT_EQ(at(kernel, "s"), 64);
  EXPECT_EQ(Liveness(kernel).peak(), 64);
}

}  // namespace
}  // namespace heddle::ir
