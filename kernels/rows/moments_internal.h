// How many elements there are, their mean, and how far they are from it: what variances are computed from, without the
// cancellation of sums of squares. Internal to the kernels.
#pragma once

#include "heddle/kernels/rows/row_part.h"

namespace heddle::kernels {

// Of some elements: how many, their mean, and the sum of the squares of what they differ from it.
struct Moments {
  Float count, mean, squares;
};
struct MergeMoments {
  Moments operator()(const Moments& a, const Moments& b) const {
    const Float count = a.count + b.count;
    const Float part = b.count * fast::rcp(max(count, 1.0f)), apart = b.mean - a.mean;
    // Nothing counts before what may be infinite.
    return {count, a.mean + apart * part, a.squares + b.squares + apart * part * a.count * apart};
  }
  template <class Group>
  Moments together(const Moments& mine, const Group& group) const {
    const Float count = group(mine.count, plus());
    const Float mean = group(mine.mean * (mine.count * fast::rcp(max(count, 1.0f))), plus());
    const Float apart = mine.mean - mean;
    return {count, mean, group(mine.squares + apart * mine.count * apart, plus())};
  }
};
template <class T>
Moments moments(const RowPart<T>& part) {
  const Float count = part.count();
  // Elements outside the row are zero.
  const Float mean =
      part.template fold<float>([](const Fragment<T>& v) { return wide(v); }, plus()) *
      fast::rcp(max(count, 1.0f));
  const auto square = [&](const Fragment<T>& v) { return (wide(v) - mean) * (wide(v) - mean); };
  return {count, mean, part.template fold_row<float>(square, plus(), Float(0))};
}

}  // namespace heddle::kernels
