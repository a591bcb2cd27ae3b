// What users write first: each is refused at its line, with the reason and what to write instead.
// An expectation stands on the line of its mistake.
// clang-format off
#include <array>

#include "heddle/dsl/dsl.h"
using namespace heddle;

void values(Tensor<float, 1> y, Tensor<const float, 2> x, Float a, Int n, UInt u, Half h) {
  Float sum = 0.0f;
  sum = sum + y(0);  // expect-first: a value never changes: declare it as a Var<T>
  sum += y(0);       // expect-first: a value never changes: declare it as a Var<T>
  Vec<float, 4> v = x.vec<4>(0, 0);
  v = v + 1.0f;      // expect-first: a Vec is a value, which never changes: declare it as a Var<Vec<T, N>>
  v *= 2.0f;         // expect-first: a value never changes
  Fragment<float> f(4, a);
  f = f + 1.0f;      // expect-first: a Fragment is a value, which never changes
  y(0) = cast<float>(h + a);  // expect-first: types never mix by themselves: convert one side
  y(1) = n * a;               // expect-first: types never mix by themselves: convert one side
  If(u < n, [] {});           // expect-first: types never mix by themselves: convert one side
  y(2) = a + thread_idx.x;    // expect-first: types never mix by themselves: convert one side
  y(3) = cast<float>(n + 1.5f);      // expect-first: types never mix by themselves: .* or write the host number
  (void)(v[0] * cast<double>(a));     // expect-first: types never mix by themselves
  y.vec<4>(0) = v * n;               // expect-first: types never mix by themselves
  y.vec<4>(0) = v + x.vec<2>(0, 0);  // expect-first: both sides have as many elements, or one is a scalar
}

void small(Vec<int8_t, 4> bytes, Float8E4M3 e) {
  (void)(bytes + bytes);  // expect-first: are only kept: convert them first, as in cast<float>\(x\) or v.as<int>\(\)
  (void)(e + e);          // expect-first: are only kept: convert them first
}

void host_control(Tensor<float, 1> y, Int n, Float a, Bool p) {
  if (thread_idx.x < n) y(0) = 1.0f;     // expect-first: cannot steer C\+\+ itself: use If\(\), While\(\) or select\(\)
  while (p) y(1) = 1.0f;                 // expect-first: cannot steer C\+\+ itself
  for (int i = 0; i < n; ++i) y(i) = a;  // expect-first: cannot steer C\+\+ itself
  y(2) = p ? a : 0.0f;                   // expect-first: cannot steer C\+\+ itself
  If(!n, [] {});                         // expect-first: cannot steer C\+\+ itself
  (void)static_cast<float>(a);           // expect-first: there is no number yet while the kernel is traced
  y(3) = If(p, [&] { return a; });       // expect-first: an If\(\) that returns a value needs one for the other threads
}

void elements(Tensor<float, 1> y, Tensor<const float, 2> x, Int n, Float a) {
  auto r = y(0);
  r = a;                 // expect-first: an element that has a name is the value that it had there
  r += a;                // expect-first: an element that has a name is the value that it had there
  atomic_add(r, 1.0f);   // expect-first: name the place in the call, as in atomic_add\(y\(i\), 1\)
  auto w = y.vec<2>(0);
  w = x.vec<2>(0, 0);    // expect-first: an element that has a name is the value that it had there
  w *= 2.0f;             // expect-first: an element that has a name is the value that it had there
  x(0, 0) = 1.0f;        // expect-first: elements of a Tensor<const T> are only read
  x.vec<2>(0, 0) = w;    // expect-first: a Vec is a value, which never changes
  (void)w[n];            // expect-first: use a Local<T> \(an array of the thread\) or a Constant<T>
  (void)x.vec<4>(0, 0)[thread_idx.x];  // expect-first: use a Local<T> \(an array of the thread\) or a Constant<T>
  (void)x(n);            // expect-first: an element is named by one index for each mode
  (void)y(n, n);         // expect-first: an element is named by one index for each mode
  (void)x[n];            // expect-first: \[\] takes one index, and the view has several modes: x\(i, j\)
  (void)y(a);            // expect-first: an index is an integer: convert it, as in x\(cast<int>\(a\)\)
  atomic_add(&y(0), 1.0f);  // expect-first: an element has no C\+\+ address: pass the element itself
}

struct Pair {
  Float a, b;
};
void tensors(Tensor<const float> x, Tensor<float> y, IntTuple some) {
  copy(x(some, some), y);         // expect-first: an element is no tensor: .* t.slice\(\{a, b\}\)
  copy_if(within(IntTuple{0}, some), x(some), y);  // expect-first: an element is no tensor: .* t.slice
  gemm(x(some, 0), x, y);         // expect-first: an element is no tensor: .* t.slice\(\{a, b\}\)
}

void structs(Tensor<Pair, 1> y, Float a) {
  auto r = y(0);
  r = y(1);         // expect-first: an element that has a name is the value that it had there
  r = Pair{a, a};   // expect-first: an element that has a name is the value that it had there
}

void variables(Tensor<float, 1> y, Bool p, Int n) {
  Var<float> none;                           // expect-first: a Var starts from a value: Var<float> sum\(0.0f\)
  Var<float> sum(0.0f);
  auto other = sum;                          // expect-first: a Var is not copied, .* capture it by reference, \[&\]
  If(p, [=]() mutable { sum = 1.0f; });      // expect-first: a Var is not copied, .* capture it by reference, \[&\]
  Var<std::array<Float, 2>> pair({y(0), y(1)});
  auto copied = pair;                        // expect-first: a Var is not copied, .* Var<T> b\(a.get\(\)\)
  pair[n] = 1.0f;                            // expect-first: use a Local<T> \(an array of the thread\) or a Constant<T>
  Var<Vec<float, 2>> vec(y.vec<2>(0));
  (void)vec[thread_idx.x];                   // expect-first: use a Local<T> \(an array of the thread\) or a Constant<T>
  Var<Vec<float, 2>> nothing;                // expect-first: a Var starts from a value
}

void arrays(Tensor<float, 1> y) {
  Shared<float> s(y.shape(0));  // expect-first: the extents of a Shared are host numbers: dynamic_shared<T>\(n\)
  Local<float> l(y.shape(0));   // expect-first: the extents of a Local are host numbers
}

void names_of_c(Float a) {
  (void)sqrtf(a);     // expect-first: functions have no suffix for their type: sqrt\(x\), not sqrtf\(x\)
  (void)powf(a, 2.0f);  // expect-first: functions have no suffix for their type: pow
  (void)fabs(a);      // expect-first: it is abs\(x\) here
  (void)fmaxf(a, a);  // expect-first: it is max\(a, b\) here
}

void kernels(float host) {
  define_kernel("k", [](auto x) { (void)x; });                 // expect-first: parameters have their types written out
  define_kernel("k", [](Tensor<const float> x) { (void)x; });  // expect-first: a tensor parameter says how many modes it has
  define_kernel("k", [](float x) { (void)x; });                // expect-first: a kernel's parameters are Tensor<T, Rank>
  define_kernel("k", [](Float x) { return x; });               // expect-first: returns nothing: store results in tensors
  define_kernel("k", [&](Float x) { (void)(x + host); });      // expect-first: captures a reference or a pointer
}

void launches(const Kernel<Tensor<float, 2>>& k, TensorRef<double, 2> doubles, TensorRef<float, 1> row, TensorRef<const float, 2> read, float* p) {
  k.launch(0, {}, doubles);  // expect-error: TensorRef<double, .*TensorRef<float, .*
  k.launch(0, {}, row);      // expect-error: TensorRef<.*1.*>'.* to .*TensorRef<.*2.*>
  k.launch(0, {}, read);     // expect-error: TensorRef<const float, .* to .*TensorRef<float, .*
  k.launch(0, {}, p);        // expect-error: ('p' .type 'float\*'.|from 'float \*') to .*TensorRef<float, 2>
  k.launch(0, {}, 3, 4);     // expect-error: (expects|requires) 3 arguments, (but )?4 (were )?provided
}
