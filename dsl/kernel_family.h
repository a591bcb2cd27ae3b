// kernel_family: one kernel for each set of host values that it is asked for.
//
//   const auto scale = kernel_family("scale(x)", [](float factor, Tensor<float, 1> x) {
//     Int i = block_idx.x * block_dim.x + thread_idx.x;
//     If(i < x.shape(0), [&] { x(i) *= factor; });
//   });
//   scale(2.0f).launch(stream, {.grid = blocks, .block = 256}, x);
//   scale(3.0f).launch(stream, {.grid = blocks, .block = 256}, x);     // another kernel
//
// The lambda captures nothing. Its parameters in front that are plain host types (numbers,
// enumerations, strings) are the host's: each set of them is a kernel of its own, in which they are
// constants, made when it is first asked for and kept. The others are the kernel's, as
// define_kernel() takes them; a host struct is written Host<Config>.
#pragma once

#include <tuple>
#include <utility>

#include "heddle/dsl/kernel.h"

namespace heddle {
namespace detail {

// How many of the parameters, in front, are the host's.
template <class... P>
constexpr std::size_t count_host_parameters() {
  constexpr bool of_kernel[] = {is_kernel_parameter<P>..., true};
  std::size_t count = 0;
  while (!of_kernel[count]) ++count;
  return count;
}

// What a family has made so far. Thread-safe; found without a lock.
class Variants {
 public:
  struct Variant {
    virtual ~Variant() = default;
    Variant* next = nullptr;
  };

  // The family's name is copied.
  explicit Variants(const char* name);
  Variants(const Variants&) = delete;
  Variants& operator=(const Variants&) = delete;
  ~Variants();

  const char* name() const;
  // The variant of which is_it(variant, key) holds; made by make(family, key) where there is none.
  const Variant& find_or_make(const void* key, bool (*is_it)(const Variant&, const void* key),
                              const void* family,
                              Variant* (*make)(const void* family, const void* key)) const;

 private:
  struct State;
  State* const state_;
};

// A host value of a family, as what tells its kernels apart.
template <class H>
class OtherValue {
 public:
  template <class U>
  requires std::is_convertible_v<const U&, H> OtherValue(const U& from)  // NOLINT: converts
      : value_(from) {}
  const H& value() const { return value_; }
  bool operator==(const OtherValue& other) const { return value_ == other.value_; }

 private:
  H value_;
};
// Numbers differ where their bits do: 0.0f and -0.0f have a kernel each, and a NaN has one.
template <class H>
using FamilyValue = std::conditional_t<std::is_arithmetic_v<H>, HostNumber<H>, OtherValue<H>>;

// Reports, in the kernel that is being traced, a number that its parameter does not hold.
void report_family_value(uint64_t value, Misfit misfit, int index, SourceLoc loc);
template <class Value>
void check_family_value(const Value& value, int index, SourceLoc loc) {
  if constexpr (requires { value.misfit; }) {
    if (value.misfit != Misfit::kFits) report_family_value(value.bits, value.misfit, index, loc);
  }
}

// What a kernel of a family runs: the family's lambda on the host's values and the kernel's parameters.
template <class F, class Host, class Params>
class FamilyCall;
template <class F, class... H, class... P>
class FamilyCall<F, std::tuple<H...>, std::tuple<P...>> {
 public:
  using Values = std::tuple<FamilyValue<H>...>;
  FamilyCall(const F& f, const Values& values, SourceLoc loc) : f_(f), values_(values), loc_(loc) {}

  void operator()(P... params) const {
    std::apply(
        [&](const FamilyValue<H>&... host) {
          int index = 0;
          (check_family_value(host, index++, loc_), ...);
          f_(host.value()..., params...);
        },
        values_);
  }
  // The place is the lambda's, which captures nothing.
  bool append_to(ByteSink& sink) const {
    return std::apply(
        [&](const FamilyValue<H>&... host) { return (append_value(host.value(), sink) && ...); },
        values_);
  }

 private:
  F f_;
  Values values_;
  SourceLoc loc_;
};

template <class F, class Host, class Params>
class Family;

// A kernel family: a kernel for each set of host values, made when it is first asked for, and kept.
// Thread-safe.
template <class F, class... H, class... P>
class Family<F, std::tuple<H...>, std::tuple<P...>> {
 public:
  // The name is copied.
  Family(const char* name, F f, SourceLoc loc)
      : variants_(name), f_(static_cast<F&&>(f)), loc_(loc) {}

  // Its kernels' name and parameters, as they were given.
  const char* name() const { return variants_.name(); }

  // The kernel for these values; it lives as long as the family.
  const Kernel<P...>& operator()(const FamilyValue<H>&... values) const {
    const Key key(values...);
    return static_cast<const Member&>(variants_.find_or_make(&key, &is, this, &make)).kernel;
  }

 private:
  using Key = std::tuple<FamilyValue<H>...>;
  struct Member : Variants::Variant {
    Key key;
    Kernel<P...> kernel;
    Member(const Key& k, Kernel<P...>&& made) : key(k), kernel(static_cast<Kernel<P...>&&>(made)) {}
  };

  static bool is(const Variants::Variant& variant, const void* key) {
    return static_cast<const Member&>(variant).key == *static_cast<const Key*>(key);
  }
  static Variants::Variant* make(const void* family, const void* key) {
    const Family& self = *static_cast<const Family*>(family);
    const Key& values = *static_cast<const Key*>(key);
    using Call = FamilyCall<F, std::tuple<H...>, std::tuple<P...>>;
    return new Member(values, make_kernel(self.variants_.name(), Call(self.f_, values, self.loc_),
                                          &Call::operator(), Captures::kNothing, self.loc_));
  }

  const Variants variants_;
  const F f_;
  const SourceLoc loc_;
};

template <class F, class R, class C, class... P>
auto make_family(const char* name, F&& f, R (C::*)(P...) const, SourceLoc loc) {
  static_assert(std::is_void_v<R>, "a kernel's lambda returns nothing: store results in tensors");
  constexpr std::size_t kHost = count_host_parameters<std::remove_cvref_t<P>...>();
  static_assert(kHost > 0,
                "a family's lambda has the host's values in front: a kernel without any is "
                "define_kernel()'s");
  using All = std::tuple<std::remove_cvref_t<P>...>;
  return
      []<std::size_t... I, std::size_t... J>(const char* family, F&& lambda, SourceLoc where,
                                             std::index_sequence<I...>, std::index_sequence<J...>) {
    return Family<std::remove_cvref_t<F>, std::tuple<std::tuple_element_t<I, All>...>,
                  std::tuple<std::tuple_element_t<kHost + J, All>...>>(
        family, static_cast<F&&>(lambda), where);
  }
  (name, static_cast<F&&>(f), loc, std::make_index_sequence<kHost>(),
   std::make_index_sequence<sizeof...(P) - kHost>());
}

}  // namespace detail

// A host struct as a value of a family: Host<Config> in front of the lambda's parameters, where Config
// alone, a plain struct, would be a parameter of the kernel. Config has ==.
template <class T>
struct Host : T {
  // From the struct.
  Host(const T& value) : T(value) {}  // NOLINT: it is one
  bool append_to(detail::ByteSink& sink) const {
    return detail::append_value(static_cast<const T&>(*this), sink);
  }
  friend bool operator==(const Host& a, const Host& b) {
    return static_cast<const T&>(a) == static_cast<const T&>(b);
  }
};

// Defines a kernel family by a lambda that captures nothing. Best a constant at namespace scope, or
// a static one in a function.
template <class F>
auto kernel_family(const detail::KernelName& name, F&& f, SourceLoc loc = SourceLoc::current()) {
  using Lambda = std::remove_cvref_t<F>;
  static_assert(std::is_empty_v<Lambda>,
                "a family's lambda captures nothing: its values are parameters in front");
  static_assert(detail::HasOneConstCall<Lambda>,
                "a kernel is a lambda whose parameters have their types written out (not auto) "
                "and which is not mutable");
  return detail::make_family(name.text, static_cast<F&&>(f), &Lambda::operator(), loc);
}

}  // namespace heddle
