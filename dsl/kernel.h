// define_kernel: a lambda becomes a kernel.
//
//   const auto scale = define_kernel("scale(x, y, a)",
//                                    [](Tensor<const float, 1> x, Tensor<float, 1> y, Float a) {
//     Int i = block_idx.x * block_dim.x + thread_idx.x;
//     If(i < x.shape(0), [&] { y(i) = a * x(i); });
//   });
//   scale.launch(stream, {.grid = blocks, .block = 256}, x, y, 2.0f);   // heddle/runtime/launch.h
//
// The lambda's parameters are the kernel's: Tensor<T, Rank>, Pointer<T>, Value<T> (Float, Int, …)
// and plain structs of values. The names in parentheses are optional, one for each parameter and
// for each member of a struct; messages and dumps use them.
// The lambda runs each time the kernel is traced; host values that it captures are baked in.
#pragma once

#include "heddle/dsl/view.h"

namespace heddle {
namespace ir {
class KernelSource;
}

// A grid or block shape, counted in blocks or threads.
struct Extent3 {
  int64_t x = 1, y = 1, z = 1;
  constexpr Extent3(int64_t x_, int64_t y_ = 1, int64_t z_ = 1) : x(x_), y(y_), z(z_) {}
};

// How a kernel is launched: `{.grid = rows, .block = 512}`.
struct LaunchShape {
  Extent3 grid = 1;          // blocks
  Extent3 block = 1;         // threads in a block, at most 1024
  Extent3 cluster = 1;       // blocks in a cluster (sm_90 and up)
  int shared_bytes = 0;      // dynamic shared memory, for dynamic_shared<T>()
  bool cooperative = false;  // all blocks are resident together, or the launch fails
  // May start before the kernel in front of it in the stream has ended, whose results it sees
  // behind grid_dependency_wait() (dsl/grid.h). Devices below sm_90 and the interpreter ignore it.
  bool programmatic = false;
};

// A tensor argument on the host's side: where it lies on the device, extents and strides in
// elements.
template <class T, int Rank>
struct TensorRef {
  T* data = nullptr;
  int64_t extents[Rank] = {};
  int64_t strides[Rank] = {};
  // Bytes of memory from `data` on that belong to it; -1: not known, and so not checked.
  int64_t capacity_bytes = -1;

  TensorRef() = default;
  // Row-major. A stride that 64 bits do not hold becomes the largest: a launch refuses that.
  TensorRef(T* data_, const int64_t (&extents_)[Rank]) : data(data_) {
    int64_t stride = 1;
    for (int i = Rank - 1; i >= 0; --i) {
      extents[i] = extents_[i];
      strides[i] = stride;
      if (__builtin_mul_overflow(stride, extents_[i], &stride)) stride = INT64_MAX;
    }
  }
  TensorRef(T* data_, const int64_t (&extents_)[Rank], const int64_t (&strides_)[Rank])
      : data(data_) {
    for (int i = 0; i < Rank; ++i) {
      extents[i] = extents_[i];
      strides[i] = strides_[i];
    }
  }
  // A tensor may be read through a const one.
  template <class U>
  requires(std::is_same_v<const U, T>) TensorRef(const TensorRef<U, Rank>& other)
      : TensorRef(other.data, other.extents, other.strides) {
    capacity_bytes = other.capacity_bytes;
  }
};

namespace detail {

// One leaf of a parameter list, as the IR sees it.
struct ParamDecl {
  ir::Scalar scalar{};
  int8_t rank = -1;  // -1: a scalar
  bool read_only = false;
  bool unbounded = false;
};

// One argument of a launch, leaf by leaf: a scalar's bits, or a tensor's address and layout.
struct ArgumentLeaf {
  uint64_t bits = 0;
  const int64_t* extents = nullptr;  // `rank` of them; nullptr for scalars and pointers
  const int64_t* strides = nullptr;
  int64_t capacity_bytes = -1;
  int8_t rank = -1;  // -1: a scalar
  int8_t element_bytes = 0;
};

// How a parameter type declares itself, is made while tracing, and is filled by a launch.
template <class P>
struct ParamTraits;

template <class T, int Rank>
struct ParamTraits<Tensor<T, Rank>> {
  using Host = TensorRef<T, Rank>;
  static constexpr int kLeaves = 1;
  static void declare(ParamDecl* out) {
    *out = {scalar_of<std::remove_const_t<T>>(), Rank, std::is_const_v<T>, false};
  }
  static Tensor<T, Rank> make(const Node* nodes) { return Tensor<T, Rank>(nodes[0]); }
  static void fill(const Host& host, ArgumentLeaf* out) {
    *out = {reinterpret_cast<uint64_t>(host.data),
            host.extents,
            host.strides,
            host.capacity_bytes,
            Rank,
            sizeof(T)};
  }
};

template <class T>
struct ParamTraits<Pointer<T>> {
  using Host = T*;
  static constexpr int kLeaves = 1;
  static void declare(ParamDecl* out) {
    *out = {scalar_of<std::remove_const_t<T>>(), 1, std::is_const_v<T>, true};
  }
  static Pointer<T> make(const Node* nodes) { return Pointer<T>(nodes[0]); }
  static void fill(Host host, ArgumentLeaf* out) {
    *out = {.bits = reinterpret_cast<uint64_t>(host), .rank = 1};
  }
};

template <class T>
struct ParamTraits<Value<T>> {
  using Host = T;
  static constexpr int kLeaves = 1;
  static void declare(ParamDecl* out) { *out = {scalar_of<T>(), -1, false, false}; }
  static Value<T> make(const Node* nodes) { return Value<T>(nodes[0]); }
  static void fill(T host, ArgumentLeaf* out) { *out = {.bits = bits_of(host)}; }
};

// A struct of values: the host passes one whose members are host numbers, `Scale{2.0f, 3}`.
template <PlainStruct S>
requires(count_members<S>() > 0) struct ParamTraits<S> {
  using Host = S;
  struct AnyValue {
    template <class T>
    operator Value<T>() const {
      return Value<T>(host_node(T{}));
    }
  };
  template <std::size_t... I>
  static S blank(std::index_sequence<I...>) {
    return S{((void)I, AnyValue{})...};
  }
  static S blank() { return blank(std::make_index_sequence<count_members<S>()>()); }

  static constexpr int kLeaves = count_members<S>();
  static void declare(ParamDecl* out) {
    const S s = blank();
    for_each_leaf(s, [&](const Node& node) { *out++ = {node.type.scalar, -1, false, false}; });
  }
  static S make(const Node* nodes) {
    S s = blank();
    for_each_leaf(s, [&](Node& node) { node = *nodes++; });
    return s;
  }
  static void fill(const S& host, ArgumentLeaf* out) {
    for_each_leaf(host, [&](const Node& node) { *out++ = {.bits = node.bits}; });
  }
};

// Anything else is refused by name.
template <class P>
struct ParamTraits {
  static_assert(
      !std::is_same_v<P, P>,
      "a kernel's parameters are Tensor<T, Rank>, Pointer<T>, Value<T> (Float, Int, ...) or "
      "plain structs of values");
};

// The lambda, erased.
class KernelBody {
 public:
  virtual ~KernelBody() = default;
  virtual void run(const Node* leaves) const = 0;
};

template <class F, class... P>
class TypedBody final : public KernelBody {
 public:
  explicit TypedBody(F f) : f_(static_cast<F&&>(f)) {}
  void run(const Node* leaves) const override {
    int next = 0;
    const auto take = [&](int count) { return leaves + (next += count) - count; };
    // Braces: the parameters take their leaves from left to right.
    const std::tuple<P...> params{ParamTraits<P>::make(take(ParamTraits<P>::kLeaves))...};
    std::apply(f_, params);
  }

 private:
  F f_;
};

// The kernel's identity, shared by nobody: owns the body and what the runtime attaches to it.
ir::KernelSource* new_kernel_source(const char* name, const ParamDecl* params, int count,
                                    KernelBody* body, SourceLoc loc);
void delete_kernel_source(ir::KernelSource* source);

}  // namespace detail

// A kernel with the parameters P. Movable; its compiled variants live as long as it does. `launch`
// and `compile` are defined in heddle/runtime/launch.h, which heddle/heddle.h includes.
template <class... P>
class Kernel {
 public:
  static constexpr int kLeaves = (0 + ... + detail::ParamTraits<P>::kLeaves);

  explicit Kernel(ir::KernelSource* source) : source_(source) {}
  Kernel(Kernel&& other) noexcept : source_(other.source_) { other.source_ = nullptr; }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { detail::delete_kernel_source(source_); }

  // Enqueues the kernel on a stream; compiles it first where no variant fits these arguments.
  // Errors: mistakes in the kernel, arguments that it cannot take, a shape out of limits, the
  // driver's.
  template <class Stream>
  auto launch(const Stream& stream, const LaunchShape& shape,
              const typename detail::ParamTraits<P>::Host&... args) const {
    return launch_kernel(stream, *this, shape, args...);
  }

  // Compiles for a signature, without data and without a GPU.
  template <class Signature, class... Options>
  auto compile(const Signature& signature, const Options&... options) const {
    return compile_kernel(*this, signature, options...);
  }

  const ir::KernelSource& source() const { return *source_; }
  // False once it was moved from.
  bool valid() const { return source_ != nullptr; }

 private:
  ir::KernelSource* source_;
};

namespace detail {

template <class C, class R, class... P>
void takes_const_call(R (C::*)(P...) const);
template <class F>
concept HasOneConstCall = requires {
  takes_const_call(&F::operator());
};

// A kernel's name: a C string, or anything with c_str(). It is copied.
struct KernelName {
  const char* text;
  KernelName(const char* name) : text(name) {}  // NOLINT: converts
  template <class String>
  KernelName(const String& name) requires requires {
    name.c_str();
  }  // NOLINT: converts
      : text(name.c_str()) {
  }
};

template <class F, class R, class C, class... P>
Kernel<std::remove_cvref_t<P>...> make_kernel(const char* name, F&& f, R (C::*)(P...) const,
                                              SourceLoc loc) {
  static_assert(std::is_void_v<R>, "a kernel's lambda returns nothing: store results in tensors");
  using Body = TypedBody<std::remove_cvref_t<F>, std::remove_cvref_t<P>...>;
  using K = Kernel<std::remove_cvref_t<P>...>;
  ParamDecl params[K::kLeaves == 0 ? 1 : K::kLeaves];
  ParamDecl* next = params;
  ((ParamTraits<std::remove_cvref_t<P>>::declare(next),
    next += ParamTraits<std::remove_cvref_t<P>>::kLeaves),
   ...);
  return K(new_kernel_source(name, params, K::kLeaves, new Body(static_cast<F&&>(f)), loc));
}

}  // namespace detail

// A kernel from a lambda (not a generic one: its parameter types are the kernel's).
template <class F>
auto define_kernel(const detail::KernelName& name, F&& f, SourceLoc loc = SourceLoc::current()) {
  using Lambda = std::remove_cvref_t<F>;
  if constexpr (detail::HasOneConstCall<Lambda>) {
    return detail::make_kernel(name.text, static_cast<F&&>(f), &Lambda::operator(), loc);
  } else {
    static_assert(detail::HasOneConstCall<Lambda>,
                  "a kernel is a lambda whose parameters have their types written out (not auto) "
                  "and which is not mutable");
  }
}

// A kernel from a function, such as an instance of a template.
template <class... P>
Kernel<std::remove_cvref_t<P>...> define_kernel(const detail::KernelName& name, void (*f)(P...),
                                                SourceLoc loc = SourceLoc::current()) {
  return define_kernel(
      name, [f](P... params) { f(params...); }, loc);
}

}  // namespace heddle
