// Structs in memory: tensors, shared and local arrays of them, laid out as the host's own.
#include <array>
#include <cstddef>

#include "dsl/trace_kernel.h"
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

template <class S, class H>
void expect_the_hosts_layout() {
  const detail::StructUnits units = detail::struct_units<S>();
  EXPECT_EQ(static_cast<size_t>(units.unit_bytes * units.count), sizeof(H));
}

TEST(Structs, LieInMemoryAsTheHostsDo) {
  expect_the_hosts_layout<Particle, HostParticle>();
  expect_the_hosts_layout<Mixed, HostMixed>();
  expect_the_hosts_layout<Nested, HostNested>();
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

TEST(Structs, OutsideTheTensorIsReported) {
  if (on_gpu()) GTEST_SKIP() << "the interpreter's checks";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("outside(x)", [](Tensor<Particle, 1> x) { x(0) = x(3); });
  const Buffer buffer = device.upload(absl::MakeConstSpan(std::vector<HostParticle>(3))).value();
  absl::Status status = kernel.launch(stream, {.block = 1}, as_tensor<Particle>(buffer, {3}));
  if (status.ok()) status = stream.synchronize();
  EXPECT_THAT(status.ToString(), HasSubstr("x(3, 0)"));
}

}  // namespace
}  // namespace heddle
