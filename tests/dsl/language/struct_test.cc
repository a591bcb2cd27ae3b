// Structs in memory: tensors, shared and local arrays of them, laid out as the host's own.
#include <array>
#include <cstddef>

#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

struct Particle {
  Float x, y, z;
  Int cell;
};
struct HostParticle {
  float x, y, z;
  int cell;
};

struct Mixed {
  Int8 tag;
  Double weight;
  Half h;
  Bool flag;
  Float f;
};
struct HostMixed {
  int8_t tag;
  double weight;
  half h;
  bool flag;
  float f;
};

struct Nested {
  Particle p;
  std::array<Float, 2> a;
  Vec<float, 4> v;
};
struct HostNested {
  HostParticle p;
  float a[2];
  alignas(16) float v[4];
};

struct Tailed {
  Double d;
  Float f;
};
struct HostTailed {
  double d;
  float f;
};

struct WideTailed {
  Vec<float, 4> v;
  Half h;
};
struct HostWideTailed {
  alignas(16) float v[4];
  half h;
};

struct Three {
  Float x, y, z;
};

struct Six {
  Three a, b;
};

template <class S, class H>
void expect_the_hosts_layout() {
  const detail::StructUnits units = detail::struct_units<S>();
  EXPECT_EQ(static_cast<size_t>(units.unit_bytes * units.count), sizeof(H));
}

TEST(Structs, LieInMemoryAsTheHostsDo) {
  expect_the_hosts_layout<Particle, HostParticle>();
  expect_the_hosts_layout<Mixed, HostMixed>();
  expect_the_hosts_layout<Nested, HostNested>();
  // What follows the last member, up to the next struct.
  expect_the_hosts_layout<Tailed, HostTailed>();
  expect_the_hosts_layout<WideTailed, HostWideTailed>();
  EXPECT_EQ(detail::struct_units<Particle>().count, 4);
  EXPECT_EQ(detail::struct_units<Mixed>().unit_bytes, 1);
}

TEST(Structs, TensorsOfThemAreReadAndWritten) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      define_kernel("move(x, y)", [](Tensor<const Particle, 1> x, Tensor<Particle, 1> y) {
        const Int i = thread_idx.x;
        const Particle p = x(i);
        y(i) = Particle{p.y, p.x, p.z * 2.0f, p.cell + i};
      });
  std::vector<HostParticle> particles;
  for (int i = 0; i < 64; ++i) {
    const auto f = static_cast<float>(i);
    particles.push_back({f, f + 0.5f, -f, 100 * i});
  }
  const Buffer in = device.upload(absl::MakeConstSpan(particles)).value();
  const Buffer out = device.allocate(64 * sizeof(HostParticle)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 64}, as_tensor<const Particle>(in, {64}),
                            as_tensor<Particle>(out, {64})),
              IsOk());
  const auto got = out.download<HostParticle>(stream).value();
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(got[i].x, particles[i].y);
    EXPECT_EQ(got[i].y, particles[i].x);
    EXPECT_EQ(got[i].z, particles[i].z * 2);
    EXPECT_EQ(got[i].cell, 101 * static_cast<int>(i));
  }
}

TEST(Structs, MembersOfAllSizesArriveWhole) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("mixed(x)", [](Tensor<Mixed, 2> x) {
    const Mixed m = x(0, 1);
    x(1, 0) = Mixed{cast<int8_t>(m.tag + 1), m.weight * 2.0, -m.h, m.flag ^ true, m.f + 0.5f};
    x(1, 1) = x(0, 1);
  });
  std::vector<HostMixed> values(4);
  values[1] = {-7, 1e300, half(1.5), true, 2.25f};
  const Buffer buffer = device.upload(absl::MakeConstSpan(values)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<Mixed>(buffer, {2, 2})), IsOk());
  const auto got = buffer.download<HostMixed>(stream).value();
  EXPECT_EQ(got[2].tag, -6);
  EXPECT_EQ(got[2].weight, 2e300);
  EXPECT_EQ(got[2].h.to_float(), -1.5f);
  EXPECT_FALSE(got[2].flag);
  EXPECT_EQ(got[2].f, 2.75f);
  EXPECT_EQ(got[3].tag, -7);
  EXPECT_EQ(got[3].weight, 1e300);
  EXPECT_TRUE(got[3].flag);
}

TEST(Structs, PaddingAtTheEndSeparatesThem) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("tails(x)", [](Tensor<Tailed, 1> x) {
    const Int i = thread_idx.x;
    const Tailed t = x(i);
    x(i) = Tailed{t.d * 2.0, t.f + 1.0f};
  });
  const std::vector<HostTailed> values = {{1.5, 10}, {2.5, 20}, {3.5, 30}};
  const Buffer buffer = device.upload(absl::MakeConstSpan(values)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 3}, as_tensor<Tailed>(buffer, {3})), IsOk());
  const auto got = buffer.download<HostTailed>(stream).value();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].d, 2 * values[i].d);
    EXPECT_EQ(got[i].f, values[i].f + 1);
  }
}

// Only every fourth struct is the tensor's: what lies between is not touched, however the starts
// are aligned, nor is anything behind the last.
TEST(Structs, WhatLiesBetweenThemIsNotTouched) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("every_fourth(x)", [](Tensor<Three, 1> x) {
    const Int i = thread_idx.x;
    const Three t = x(i);
    x(i) = Three{-t.z, -t.y, -t.x};
  });
  constexpr size_t kFloats = (3 * 4 + 1) * 3;
  std::vector<float> expected(kFloats);
  for (size_t i = 0; i < kFloats; ++i) expected[i] = static_cast<float>(i);
  const Buffer buffer = device.upload(absl::MakeConstSpan(expected)).value();
  TensorRef<Three, 1> x(reinterpret_cast<Three*>(buffer.address()), {4}, {4});
  x.capacity_bytes = static_cast<int64_t>(buffer.size_bytes());
  ASSERT_THAT(kernel.launch(stream, {.block = 4}, x), IsOk());
  for (size_t i = 0; i < 4; ++i) {
    for (size_t part = 0; part < 3; ++part) {
      expected[12 * i + part] = -static_cast<float>(12 * i + 2 - part);
    }
  }
  EXPECT_EQ(buffer.download<float>(stream).value(), expected);
}

TEST(Structs, SharedAndLocalArraysHoldThem) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("arrays(x)", [](Tensor<Particle, 1> x) {
    const Shared<Particle> near(64);
    const Local<Nested, 2> own({2, 3});
    const Int i = thread_idx.x;
    near(i) = x(i);
    sync_threads();
    const Particle other = near[63 - i];
    own(i % 2, 1) = Nested{other, {other.x, other.y}, Vec<float, 4>(other.z)};
    const Nested back = own(i % 2, 1);
    x(i) = Particle{back.a[0], back.p.y, back.v[3], back.p.cell};
  });
  std::vector<HostParticle> particles;
  for (int i = 0; i < 64; ++i) particles.push_back({1.0f * i, 2.0f * i, 3.0f * i, i});
  const Buffer buffer = device.upload(absl::MakeConstSpan(particles)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 64}, as_tensor<Particle>(buffer, {64})), IsOk());
  const auto got = buffer.download<HostParticle>(stream).value();
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(got[i].cell, 63 - static_cast<int>(i));
    EXPECT_EQ(got[i].z, 3.0f * got[i].x);
  }
}

TEST(Structs, NamesAreValues) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("swap(x)", [](Tensor<Particle, 1> x) {
    auto a = x(0);
    auto b = x(1);
    x(0) = b;
    x(1) = a;
    Var<Particle> last(x(2));
    last = x(0);
    x(2) = last;
  });
  const std::vector<HostParticle> particles = {{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};
  const Buffer buffer = device.upload(absl::MakeConstSpan(particles)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<Particle>(buffer, {3})), IsOk());
  const auto got = buffer.download<HostParticle>(stream).value();
  EXPECT_EQ(got[0].cell, 2);
  EXPECT_EQ(got[1].cell, 1);
  EXPECT_EQ(got[2].cell, 2);
}

TEST(Structs, MoveInOneAccessWhereTheyAreAligned) {
  const auto kernel = define_kernel(
      "copy(x, y)", [](Tensor<const Particle, 1> x, Tensor<Particle, 1> y) { y(0) = x(1); });
  const ir::Kernel k = trace(kernel).kernel;
  EXPECT_EQ(count_ops(k, ir::Opcode::kLoad), 1);
  EXPECT_EQ(count_ops(k, ir::Opcode::kStore), 1);
}

TEST(Structs, MoveInAccessesThatDivideThem) {
  const auto three = define_kernel("three(x)", [](Tensor<Three, 1> x) { x(0) = x(1); });
  const auto six = define_kernel("six(x)", [](Tensor<Six, 1> x) { x(0) = x(1); });
  for (const ir::Kernel& k : {trace(three).kernel, trace(six).kernel}) {
    EXPECT_EQ(count_ops(k, ir::Opcode::kLoad), 3);
    EXPECT_EQ(count_ops(k, ir::Opcode::kStore), 3);
  }
}

// Strides count structs, and the kernel's count their parts.
TEST(Structs, AStrideThat64BitsDoNotHoldIsRefused) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("far(x)", [](Tensor<Particle, 1> x) { x(0) = x(1); });
  const Buffer buffer = device.upload(absl::MakeConstSpan(std::vector<HostParticle>(2))).value();
  constexpr int64_t kWraps = int64_t{1} << 62;
  for (const int64_t stride : {kWraps, kWraps + 1, -kWraps, 1 - kWraps}) {
    TensorRef<Particle, 1> x(reinterpret_cast<Particle*>(buffer.address()), {2}, {stride});
    x.capacity_bytes = static_cast<int64_t>(buffer.size_bytes());
    EXPECT_THAT(kernel.launch(stream, {.block = 1}, x),
                Fails(StatusCode::kInvalidArgument, "argument 0 ('x')",
                      "reaches further than 64 bits can count"))
        << stride;
  }
}

TEST(Structs, OutsideTheTensorIsReported) {
  if (on_gpu()) GTEST_SKIP() << "the interpreter's checks";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("outside(x)", [](Tensor<Particle, 1> x) { x(0) = x(3); });
  const Buffer buffer = device.upload(absl::MakeConstSpan(std::vector<HostParticle>(3))).value();
  Status status = kernel.launch(stream, {.block = 1}, as_tensor<Particle>(buffer, {3}));
  if (status.ok()) status = stream.synchronize();
  EXPECT_THAT(status.ToString(), HasSubstr("x(3, 0)"));
}

}  // namespace
}  // namespace heddle
