// Common mistakes of CUDA programmers: each of these functions refuses one at its line, and the
// message says what to write. None of them can be called.
#pragma once

#include "heddle/dsl/together.h"

namespace heddle {
namespace detail {

// Integers and floats of the kernel that an operator would have to convert to each other.
template <class A, class B>
concept MixedValues = !std::is_void_v<Together<A>> && !std::is_void_v<Together<B>> &&
                      !std::is_same_v<typename ShapeElement<Together<A>>::type,
                                      typename ShapeElement<Together<B>>::type>;
// A host number that T does not take: 1.5f beside an Int, true beside a number.
template <class A, class H>
concept MixedHostNumber = !std::is_void_v<Together<A>> && std::is_arithmetic_v<H> &&
                          !HostConstant<H, typename ShapeElement<Together<A>>::type>;
template <class A, class B>
concept Mixed = MixedValues<A, B> || MixedHostNumber<A, B> || MixedHostNumber<B, A>;

// What is only kept: small floats, and small integers in vectors.
template <class A>
concept OnlyKept =
    !std::is_void_v<Together<A>> && (is_stored_float<typename ShapeElement<Together<A>>::type> ||
                                     is_pair<typename ShapeElement<Together<A>>::type> ||
                                     is_promoted<typename ShapeElement<Together<A>>::type>);

// Vectors or fragments of one element type and other numbers of elements.
template <class A, class B>
concept OtherShapes = is_group<Together<A>> && is_group<Together<B>> && !Mixed<A, B> &&
                      !std::is_same_v<Together<A>, Together<B>>;

template <class A>
inline constexpr bool is_float_operand = is_floating<typename ShapeElement<Together<A>>::type>;
// What C++ would make of both: the one that is a float.
template <class A, class B>
using Mixture =
    std::conditional_t<is_float_operand<B> && !is_float_operand<A>, Together<B, A>, Together<A, B>>;
template <class A, class B>
using MixedBools = typename Shape<Mixture<A, B>>::template With<bool>;

#define HEDDLE_REFUSED(op, Result)                                                                \
  template <class A, class B>                                                                     \
  requires Mixed<A, B> HEDDLE_MISTAKE(                                                            \
      "types never mix by themselves: convert one side, as in cast<float>(x), or write the host " \
      "number in the other side's type")                                                          \
  Result<A, B> operator op(const A&, const B&);                                                   \
  template <class A, class B>                                                                     \
  requires OtherShapes<A, B> HEDDLE_MISTAKE(                                                      \
      "both sides have as many elements, or one is a scalar; Fragment<T>(v) of a Vec goes with "  \
      "fragments")                                                                                \
  Result<A, B> operator op(const A&, const B&);                                                   \
  template <class A, class B>                                                                     \
  requires(!Mixed<A, B> && !OtherShapes<A, B> && (OnlyKept<A> || OnlyKept<B>)) HEDDLE_MISTAKE(    \
      "elements of 8 bits, and of 16 in vectors of integers, are only kept: convert them first, " \
      "as in cast<float>(x) or v.as<int>()")                                                      \
  Result<A, B> operator op(const A&, const B&);
HEDDLE_REFUSED(+, Mixture)
HEDDLE_REFUSED(-, Mixture)
HEDDLE_REFUSED(*, Mixture)
HEDDLE_REFUSED(/, Mixture)
HEDDLE_REFUSED(%, Mixture)
HEDDLE_REFUSED(&, Mixture)
HEDDLE_REFUSED(|, Mixture)
HEDDLE_REFUSED(^, Mixture)
HEDDLE_REFUSED(<, MixedBools)
HEDDLE_REFUSED(<=, MixedBools)
HEDDLE_REFUSED(>, MixedBools)
HEDDLE_REFUSED(>=, MixedBools)
HEDDLE_REFUSED(==, MixedBools)
HEDDLE_REFUSED(!=, MixedBools)
#undef HEDDLE_REFUSED

}  // namespace detail

// C's names of functions of float.
#define HEDDLE_C_NAME(name)                                                                      \
  template <class X, class... More>                                                              \
  requires(!std::is_void_v<detail::Together<X, More...>>)                                        \
      HEDDLE_MISTAKE("functions have no suffix for their type: " #name "(x), not " #name "f(x)") \
  detail::Together<X, More...> name##f(const X&, const More&...);
HEDDLE_C_NAME(sqrt)
HEDDLE_C_NAME(rsqrt)
HEDDLE_C_NAME(exp)
HEDDLE_C_NAME(exp2)
HEDDLE_C_NAME(log)
HEDDLE_C_NAME(log2)
HEDDLE_C_NAME(log10)
HEDDLE_C_NAME(sin)
HEDDLE_C_NAME(cos)
HEDDLE_C_NAME(tan)
HEDDLE_C_NAME(tanh)
HEDDLE_C_NAME(pow)
HEDDLE_C_NAME(floor)
HEDDLE_C_NAME(ceil)
HEDDLE_C_NAME(trunc)
HEDDLE_C_NAME(rint)
HEDDLE_C_NAME(round)
HEDDLE_C_NAME(fma)
HEDDLE_C_NAME(fmod)
HEDDLE_C_NAME(erf)
#undef HEDDLE_C_NAME
#define HEDDLE_C_NAME(c_name, name)                         \
  template <class X, class... More>                         \
  requires(!std::is_void_v<detail::Together<X, More...>>)   \
      HEDDLE_MISTAKE("it is " name " here, for every type") \
  detail::Together<X, More...> c_name(const X&, const More&...);
HEDDLE_C_NAME(fabs, "abs(x)")
HEDDLE_C_NAME(fabsf, "abs(x)")
HEDDLE_C_NAME(fmax, "max(a, b)")
HEDDLE_C_NAME(fmaxf, "max(a, b)")
HEDDLE_C_NAME(fmin, "min(a, b)")
HEDDLE_C_NAME(fminf, "min(a, b)")
#undef HEDDLE_C_NAME

}  // namespace heddle
