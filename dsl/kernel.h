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
//
// The lambda runs each time the kernel is traced, so its captures must still exist then; they
// become constants of the kernel. define_kernel() therefore takes lambdas that capture nothing, or
// values. Captured references and pointers do not compile, except beside objects with copy
// constructors of their own, where they cannot be detected: write [=]. For kernels that stay in the
// scope that defines them, local_kernel() allows any capture. For a kernel that is made for several
// values, such as by a function that is called with each of them, take kernel_family()
// (dsl/kernel_family.h): a static kernel would keep the first values, and so is refused where it
// captures any.
#pragma once

#include "heddle/dsl/view.h"
#include "heddle/ir/launch/launch_shape.h"

namespace heddle {
namespace ir {
class KernelSource;
}

namespace detail {
struct MemoryTag;  // runtime/memory_tag.h
}

// A tensor argument, as the host passes it: an address on the device, extents and strides.
// as_tensor() makes one of a Buffer. A tensor of structs (dsl/struct_view.h) has one mode more, for
// the scalars of a struct; its strides count these.
template <class T, int Rank>
struct TensorRef {
  // Whether T is a struct, and how many modes the arrays below have.
  static constexpr bool kOfStructs = detail::StructElement<std::remove_const_t<T>>;
  static constexpr int kModes = Rank + kOfStructs;

  T* data = nullptr;             // the address on the device
  int64_t extents[kModes] = {};  // in elements
  int64_t strides[kModes] = {};  // in elements
  // Bytes of memory from `data` on that belong to it; -1: not known, and so not checked.
  int64_t capacity_bytes = -1;
  // The allocation that it lies in, where a launch is to make sure that it is alive and the
  // device's: as_tensor() says it.
  const detail::MemoryTag* memory = nullptr;
  uint64_t allocation = 0;

  TensorRef() = default;
  // Row-major. A stride that 64 bits do not hold becomes the largest: a launch refuses that.
  TensorRef(T* data_, const int64_t (&extents_)[Rank]) : data(data_) {
    int64_t stride = 1;
    for (int i = Rank - 1; i >= 0; --i) {
      extents[i] = extents_[i];
      strides[i] = stride;
      if (__builtin_mul_overflow(stride, extents_[i], &stride)) stride = INT64_MAX;
    }
    if constexpr (kOfStructs) add_parts();
  }
  TensorRef(T* data_, const int64_t (&extents_)[Rank], const int64_t (&strides_)[Rank])
      : data(data_) {
    for (int i = 0; i < Rank; ++i) {
      extents[i] = extents_[i];
      strides[i] = strides_[i];
    }
    if constexpr (kOfStructs) add_parts();
  }
  // A tensor may be read through a const one.
  template <class U>
  requires(std::is_same_v<const U, T>) TensorRef(const TensorRef<U, Rank>& other)
      : data(other.data),
        capacity_bytes(other.capacity_bytes),
        memory(other.memory),
        allocation(other.allocation) {
    for (int i = 0; i < kModes; ++i) {
      extents[i] = other.extents[i];
      strides[i] = other.strides[i];
    }
  }

 private:
  void add_parts() {
    const int64_t parts = detail::struct_units<std::remove_const_t<T>>().count;
    for (int i = 0; i < Rank; ++i) {
      if (__builtin_mul_overflow(strides[i], parts, &strides[i])) strides[i] = INT64_MAX;
    }
    extents[Rank] = parts;
    strides[Rank] = 1;
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
  Misfit misfit = Misfit::kFits;  // of a scalar
  const MemoryTag* memory = nullptr;
  uint64_t allocation = 0;
};

// A host number for a scalar parameter, of whatever type it comes.
template <class T>
struct HostNumber {
  uint64_t bits;  // the number as given, where it does not fit
  Misfit misfit = Misfit::kFits;

  HostNumber(T value) : bits(bits_of(value)) {}  // NOLINT: converts
  template <class U>
  requires(std::is_arithmetic_v<U>&& std::is_arithmetic_v<T> && !std::is_same_v<U, T> &&
           !(std::is_floating_point_v<U> && std::is_integral_v<T>))
      HostNumber(U value)  // NOLINT: converts
      : bits(bits_of(static_cast<T>(value))) {
    if constexpr (std::is_integral_v<U> && std::is_integral_v<T>) {
      if (fits<T>(value)) return;
      bits = static_cast<uint64_t>(value);
      misfit = std::is_unsigned_v<U> ? Misfit::kUnsigned : Misfit::kSigned;
    }
  }
  template <class U>
  requires(std::is_floating_point_v<U>&& std::is_integral_v<T>) HEDDLE_MISTAKE(
      "a floating-point number for an integer parameter of the kernel: round it yourself, as in "
      "static_cast<int>(x), or make the parameter a Float")
  HostNumber(U value);  // NOLINT: converts
  template <class U>
  requires(!(std::is_arithmetic_v<U> && std::is_arithmetic_v<T>)&&std::is_convertible_v<U, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, T>)
      HostNumber(const U& value)  // NOLINT: converts
      : HostNumber(static_cast<T>(value)) {}

  // The number, where it fits.
  T value() const {
    T number;
    __builtin_memcpy(&number, &bits, sizeof(T));
    return number;
  }
  bool operator==(const HostNumber& other) const = default;
};

// How a parameter type declares itself, is made while tracing, and is filled by a launch; and how many leaves and words (of bits,
// extents, strides and a capacity) its arguments have.
template <class P>
struct ParamTraits;

template <class T, int Rank>
struct ParamTraits<Tensor<T, Rank>> {
  using Host = TensorRef<T, Rank>;
  using Element = std::remove_const_t<T>;
  static constexpr int kLeaves = 1;
  static constexpr int kWords = 2 + 2 * Host::kModes;
  static void declare(ParamDecl* out) {
    ir::Scalar scalar;
    if constexpr (StructElement<Element>) {
      scalar = struct_units<Element>().scalar;
    } else {
      scalar = scalar_of<Element>();
    }
    *out = {scalar, Host::kModes, std::is_const_v<T>, false};
  }
  static Tensor<T, Rank> make(const Node* nodes) { return Tensor<T, Rank>(nodes[0]); }
  static void fill(const Host& host, ArgumentLeaf* out) {
    int8_t element_bytes;
    if constexpr (StructElement<Element>) {
      element_bytes = static_cast<int8_t>(struct_units<Element>().unit_bytes);
    } else {
      element_bytes = sizeof(T);
    }
    *out = {reinterpret_cast<uint64_t>(host.data),
            host.extents,
            host.strides,
            host.capacity_bytes,
            Host::kModes,
            element_bytes,
            Misfit::kFits,
            host.memory,
            host.allocation};
  }
};

template <class T>
struct ParamTraits<Pointer<T>> {
  using Host = T*;
  static constexpr int kLeaves = 1;
  static constexpr int kWords = 1;
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
  using Host = HostNumber<T>;
  static constexpr int kLeaves = 1;
  static constexpr int kWords = 1;
  static void declare(ParamDecl* out) { *out = {scalar_of<T>(), -1, false, false}; }
  static Value<T> make(const Node* nodes) { return Value<T>(nodes[0]); }
  static void fill(const Host& host, ArgumentLeaf* out) {
    *out = {.bits = host.bits, .misfit = host.misfit};
  }
};

// A struct of values: the host passes one whose members are host numbers, `Scale{2.0f, 3}`.
template <PlainStruct S>
requires(count_members<S>() > 0) struct ParamTraits<S> {
  using Host = S;
  static constexpr int kLeaves = count_members<S>();
  static constexpr int kWords = kLeaves;
  static void declare(ParamDecl* out) {
    const S s = detail::blank<S>();
    for_each_leaf(s, [&](const Node& node) { *out++ = {node.type.scalar, -1, false, false}; });
  }
  static S make(const Node* nodes) {
    S s = detail::blank<S>();
    for_each_leaf(s, [&](Node& node) { node = *nodes++; });
    return s;
  }
  static void fill(const S& host, ArgumentLeaf* out) {
    for_each_leaf(host,
                  [&](const Node& node) { *out++ = {.bits = node.bits, .misfit = node.misfit()}; });
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

// Takes bytes, one behind the other.
class ByteSink {
 public:
  virtual void add(const void* bytes, size_t count) = 0;

 protected:
  ~ByteSink() = default;
};

template <class F>
struct BytesOf {
  unsigned char bytes[sizeof(F)];
};
// Whether no reference or pointer is in it: constants of such types are not made of bytes.
template <class F>
concept IsPlainValue = std::is_trivially_copyable_v<F> && requires {
  typename std::bool_constant<(static_cast<void>(__builtin_bit_cast(F, BytesOf<F>{})), true)>;
};

// A std::basic_string, which this header does not include: a class whose three parameters are those of one.
template <class T>
struct IsString : std::false_type {};
template <template <class, class, class> class String, class C, class Traits, class Allocator>
requires(std::is_same_v<typename String<C, Traits, Allocator>::traits_type, Traits>&& requires(
    const String<C, Traits, Allocator>& s) {
  s.c_str() + s.size();
}) struct IsString<String<C, Traits, Allocator>> : std::true_type {
};

// Gives the bytes that tell a value from others of its type, the same in any process. False where that is not known.
template <class T>
bool append_value(const T& value, ByteSink& sink) {
  if constexpr (std::is_empty_v<T>) {
    return true;
  } else if constexpr (requires { value.append_to(sink); }) {
    return value.append_to(sink);
  } else if constexpr (IsString<T>::value) {
    const size_t bytes = value.size() * sizeof(typename T::value_type);
    sink.add(&bytes, sizeof(bytes));
    sink.add(value.data(), bytes);
    return true;
  } else if constexpr ((std::is_arithmetic_v<T> && !std::is_same_v<T, long double>) ||
                       std::is_enum_v<T>) {
    sink.add(&value, sizeof(value));
    return true;
  } else if constexpr (IsPlainValue<T>) {
    T copy = value;
#ifndef __clang__
    // clang has no such thing before version 20: bytes between members may be anything there, and then the value is taken for another one.
    __builtin_clear_padding(&copy);
#endif
    sink.add(&copy, sizeof(copy));
    return true;
  } else {
    return false;
  }
}

// The lambda, erased.
class KernelBody {
 public:
  virtual ~KernelBody() = default;
  virtual void run(const Node* leaves) const = 0;
  // What it captures, as append_value() gives it.
  virtual bool append_captures(ByteSink& sink) const = 0;
  // The function that it calls, where it is one; nullptr: its type says which code it is.
  virtual const void* function() const { return nullptr; }
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
  bool append_captures(ByteSink& sink) const override { return append_value(f_, sink); }
  const void* function() const override {
    if constexpr (requires { f_.function(); }) return f_.function();
    return nullptr;
  }

 private:
  F f_;
};

// A function as a lambda.
template <class... P>
class FunctionCall {
 public:
  explicit FunctionCall(void (*f)(P...)) : f_(f) {}
  void operator()(P... params) const { f_(params...); }
  const void* function() const { return reinterpret_cast<const void*>(f_); }
  // The function alone tells it from others.
  bool append_to(ByteSink&) const { return true; }

 private:
  void (*f_)(P...);
};

// The kernel's identity. It has one owner, and owns the body and what the runtime attaches to it.
ir::KernelSource* new_kernel_source(const char* name, const ParamDecl* params, int count,
                                    KernelBody* body, SourceLoc loc);
void delete_kernel_source(ir::KernelSource* source);
// Makes every trace report it where `kernel`, an object whose lambda captures values, is static.
void refuse_static(ir::KernelSource* source, const void* kernel);

// What a lambda captures.
enum class Captures : uint8_t { kNothing, kValues };

// Whether no reference or pointer is in it. What copies itself in its own way (a vector, a Layout) is not looked into.
template <class F>
concept HoldsValues = !std::is_trivially_copyable_v<F> || IsPlainValue<F>;

}  // namespace detail

// A kernel with the parameters P. Movable; its compiled variants live as long as it does. `launch`
// and `compile` are defined in heddle/runtime/launch.h, which heddle/heddle.h includes.
template <class... P>
class Kernel {
 public:
  // Arguments of a launch: one for each parameter, or for each member of a struct.
  static constexpr int kLeaves = (0 + ... + detail::ParamTraits<P>::kLeaves);

  // For define_kernel().
  explicit Kernel(ir::KernelSource* source, detail::Captures captures = {}) : source_(source) {
    if (captures == detail::Captures::kValues) detail::refuse_static(source, this);
  }
  Kernel(Kernel&& other) noexcept : source_(other.source_) { other.source_ = nullptr; }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { detail::delete_kernel_source(source_); }

  // Enqueues the kernel on a stream; compiles it first where no variant fits these arguments.
  // Errors: mistakes in the kernel, arguments that it cannot take or that break what it requires
  // (dsl/contract.h), memory of another device, a shape out of limits, the driver's.
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

// What a parameter of a kernel may be.
template <class P>
inline constexpr bool is_kernel_parameter = StructElement<P>;
template <class T, int Rank>
inline constexpr bool is_kernel_parameter<Tensor<T, Rank>> = Rank >= 1;
template <class T>
inline constexpr bool is_kernel_parameter<Pointer<T>> = true;
template <class T>
inline constexpr bool is_kernel_parameter<Value<T>> = true;
template <class P>
inline constexpr bool is_unranked = false;
template <class T>
inline constexpr bool is_unranked<Tensor<T, -1>> = true;

// What a kernel is not made of.
enum class KernelMistake : uint8_t { kNone, kNoClass, kGeneric, kReturns, kUnranked, kParameter };
template <class R, class C, class... P>
constexpr KernelMistake mistake_of_call(R (C::*)(P...) const) {
  if constexpr (!std::is_void_v<R>) return KernelMistake::kReturns;
  if constexpr ((is_unranked<std::remove_cvref_t<P>> || ...)) return KernelMistake::kUnranked;
  if constexpr (!(is_kernel_parameter<std::remove_cvref_t<P>> && ...)) {
    return KernelMistake::kParameter;
  }
  return KernelMistake::kNone;
}
template <class F>
constexpr KernelMistake mistake_of() {
  using Lambda = std::remove_cvref_t<F>;
  if constexpr (!std::is_class_v<Lambda>) {
    return KernelMistake::kNoClass;
  } else if constexpr (!HasOneConstCall<Lambda>) {
    return KernelMistake::kGeneric;
  } else {
    return mistake_of_call(&Lambda::operator());
  }
}
struct NoKernel {};

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
                                              Captures captures, SourceLoc loc) {
  using Body = TypedBody<std::remove_cvref_t<F>, std::remove_cvref_t<P>...>;
  using K = Kernel<std::remove_cvref_t<P>...>;
  ParamDecl params[K::kLeaves == 0 ? 1 : K::kLeaves];
  ParamDecl* next = params;
  ((ParamTraits<std::remove_cvref_t<P>>::declare(next),
    next += ParamTraits<std::remove_cvref_t<P>>::kLeaves),
   ...);
  return K(new_kernel_source(name, params, K::kLeaves, new Body(static_cast<F&&>(f)), loc),
           captures);
}

}  // namespace detail

// Defines a kernel by a lambda that captures nothing, or values. Its parameter types, written out,
// are the kernel's.
template <class F>
requires(detail::mistake_of<F>() == detail::KernelMistake::kNone &&
         detail::HoldsValues<F>) auto define_kernel(const detail::KernelName& name, F&& f,
                                                    SourceLoc loc = SourceLoc::current()) {
  using Lambda = std::remove_cvref_t<F>;
  return detail::make_kernel(
      name.text, static_cast<F&&>(f), &Lambda::operator(),
      std::is_empty_v<Lambda> ? detail::Captures::kNothing : detail::Captures::kValues, loc);
}

// Defines a kernel by a function, such as an instance of a template.
template <class... P>
Kernel<std::remove_cvref_t<P>...> define_kernel(const detail::KernelName& name, void (*f)(P...),
                                                SourceLoc loc = SourceLoc::current()) {
  using Call = detail::FunctionCall<P...>;
  return detail::make_kernel(name.text, Call(f), &Call::operator(), detail::Captures::kNothing,
                             loc);
}

// A kernel that its scope keeps: it can be neither moved nor copied.
template <class K>
class LocalKernel : public K {
 public:
  // For local_kernel().
  template <class Make>
  explicit LocalKernel(const Make& make) : K(make()) {
    detail::refuse_static(const_cast<ir::KernelSource*>(&K::source()), this);
  }
  LocalKernel(const LocalKernel&) = delete;
  LocalKernel& operator=(const LocalKernel&) = delete;
};

// Defines a kernel by a lambda that captures in any way, for kernels that are launched where they
// are defined. What the lambda refers to has to outlive the kernel.
//
//   const auto fill = local_kernel("fill(y)", [&](Tensor<float, 1> y) { body(y); });
template <class F>
requires(detail::mistake_of<F>() ==
         detail::KernelMistake::kNone) auto local_kernel(const detail::KernelName& name, F&& f,
                                                         SourceLoc loc = SourceLoc::current()) {
  using Lambda = std::remove_cvref_t<F>;
  const auto make = [&] {
    return detail::make_kernel(name.text, static_cast<F&&>(f), &Lambda::operator(),
                               detail::Captures::kNothing, loc);
  };
  return LocalKernel<decltype(make())>(make);
}

// What is no kernel.
template <class F>
requires(detail::mistake_of<F>() == detail::KernelMistake::kNone && !detail::HoldsValues<F>)
    HEDDLE_MISTAKE(
        "the kernel's lambda captures a reference or a pointer, which may be gone when the kernel "
        "is "
        "compiled: capture values ([=]), or define a kernel that stays in this scope by "
        "local_kernel()")
detail::NoKernel define_kernel(const detail::KernelName&, F&&);

#define HEDDLE_REFUSED(mistake, text)                                                      \
  template <class F>                                                                       \
  requires(detail::mistake_of<F>() == detail::KernelMistake::mistake) HEDDLE_MISTAKE(text) \
  detail::NoKernel define_kernel(const detail::KernelName&, F&&);                          \
  template <class F>                                                                       \
  requires(detail::mistake_of<F>() == detail::KernelMistake::mistake) HEDDLE_MISTAKE(text) \
  detail::NoKernel local_kernel(const detail::KernelName&, F&&);
HEDDLE_REFUSED(kGeneric,
               "a kernel is a lambda whose parameters have their types written out (not auto) and "
               "which is not mutable")
HEDDLE_REFUSED(kReturns, "a kernel's lambda returns nothing: store results in tensors")
HEDDLE_REFUSED(kUnranked,
               "a tensor parameter says how many modes it has: Tensor<const float, 1>; inside, "
               "Tensor<const float>(x) has any layout")
HEDDLE_REFUSED(kParameter,
               "a kernel's parameters are Tensor<T, Rank>, Pointer<T>, Value<T> (Float, Int, ...) "
               "or plain structs of values")
#undef HEDDLE_REFUSED

}  // namespace heddle
