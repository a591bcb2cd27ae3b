// Every mistake of this folder's other files, made well.
// expect-ok
#include <array>

#include "heddle/dsl/dsl.h"
using namespace heddle;

void values(Tensor<float, 1> y, Tensor<const float, 2> x, Float a, Int n, UInt u, Half h) {
  Var<float> sum(0.0f);
  sum = sum + y(0);
  sum += y(0);
  Var<Vec<float, 4>> v(x.vec<4>(0, 0));
  v = v + 1.0f;
  v *= 2.0f;
  Var<Fragment<float>> f(Fragment<float>(4, a));
  f = f + 1.0f;
  y(0) = cast<float>(h) + a;
  y(1) = cast<float>(n) * a;
  If(u < cast<uint32_t>(n), [] {});
  y(2) = a + cast<float>(thread_idx.x);
  y(3) = cast<float>(n) + 1.5f;
  y(4) = v[0] * 2;
  y.vec<4>(0) = v * cast<float>(n);
  y.vec<2>(0) += x.vec<2>(0, 0);
}

void small(Vec<int8_t, 4> bytes, Float8E4M3 e) {
  (void)(bytes.as<int>() + bytes.as<int>());
  (void)(cast<float>(e) + 1);
}

void host_control(Tensor<float, 1> y, Int n, Float a, Bool p) {
  If(thread_idx.x < n, [&] { y(0) = 1.0f; });
  While([&] { return p; }, [&] { y(1) = 1.0f; });
  for (Int i : range(n)) y(i) = a;
  y(2) = select(p, a, 0.0f);
  If(n == 0, [] {});
  y(3) = If(
      p, [&] { return a; }, [&] { return a * 2; });
}

void elements(Tensor<float, 1> y, Tensor<const float, 2> x, Int n, Float a) {
  auto r = y(0);
  y(0) = a;
  y(0) += r;
  atomic_add(y(1), 1.0f);
  auto w = y.vec<2>(0);
  y.vec<2>(0) = x.vec<2>(0, 0);
  y.vec<2>(0) *= w;
  const Local<float> local(4);
  local[n] = w[1];
  (void)x(n, 0);
  (void)y[n];
  (void)y(cast<int>(a));
}

void tensors(Tensor<const float> x, Tensor<float> y, IntTuple some) {
  copy(x.slice({some, some}), y);
  copy_if(within(make_identity_tensor(some), some), x(some, _), y);
  gemm(x.slice({some, 0}), x, y);
}

void variables(Tensor<float, 1> y, Bool p) {
  Var<float> sum(0.0f), other(sum.get());
  If(p, [&] { sum = 1.0f; });
  other = sum;
  ++other;
  Var<std::array<Float, 2>> pair({y(0), y(1)});
  pair[0] = pair[1];
}

void arrays(Int n) {
  const Shared<float> s(64);
  const Shared<float> d = dynamic_shared<float>(n);
  s(0) = 1.0f;
  d(0) = 1.0f;
}

// Numbers of layouts have operators of their own, beside every integer of the kernel.
void layout_numbers(Int n, Int64 wide) {
  (void)(SymInt(n) + wide);
  (void)(SymInt(n) * n);
  (void)floor_div(SymInt(n), n);
}

void names_of_c(Float a) {
  (void)sqrt(a);
  (void)pow(a, 2.0f);
  (void)abs(a);
  (void)max(a, a);
}
