// Shared memory that serves for one thing after the other: regions of an arena all start at the same
// byte, and one of them is in use at a time.
//
//   SharedArena arena;
//   const SharedRegion main = arena.region("main"), epilogue = arena.region("epilogue");
//   const auto sA = main.tensor<half>(make_smem_layout<half>({128, 64, 4}));
//   const auto sB = main.tensor<half>(make_smem_layout<half>({128, 64, 4}));
//   const auto sD = epilogue.tensor<float>(make_smem_layout<float>({128, 128}));
//   …                                             // sA and sB: the first region is in use from the start
//   sync_threads();                               // nobody reads them any more
//   epilogue.begin();                             // the same threads: from here on sD
//   …
//   fence_async();                                // where copies or wgmma come next
//   sync_threads();
//   main.begin();                                 // for the next tile
//
// An arena takes as many bytes as its largest region. In a region arrays lie one behind the other in the
// order of their declaration, each aligned as make_smem_tensor() aligns it: to what its swizzle covers, 256,
// 512 or 1024 bytes, to 128 where the copy engine fills it, else to 16. Only bytes that an array shares with
// the one in use are taken: of a region that is longer than the next one, the rest stays in use.
//
// begin() costs nothing on a GPU. On the interpreter, bytes that are taken over are unwritten, and it is a
// mistake to use them through another array until that begins again, to take them over while anything may
// still use them, or to use them with nothing that orders the use behind begin().
#pragma once

#include <memory>
#include <string>

#include "heddle/dsl/tensor/tensor.h"

namespace heddle {
namespace detail {

// What the arrays of an arena have in common; and those of a region.
struct ArenaState {
  int64_t number = -1;  // in the kernel, from the first array on
  int64_t regions = 0;
};
struct RegionState {
  std::shared_ptr<ArenaState> arena;
  int64_t number = 0;
  std::string name;
  std::vector<Node> arrays = {};
};
// Makes an array of shared memory one of the region's.
void add_to_region(RegionState& region, const Node& array, SourceLoc loc);
void begin_region(const RegionState& region, SourceLoc loc);

}  // namespace detail

// Arrays of shared memory that are in use at the same time. A handle: copies are the same region.
class SharedRegion {
 public:
  // For SharedArena::region().
  explicit SharedRegion(detail::RegionState state)
      : state_(std::make_shared<detail::RegionState>(static_cast<detail::RegionState&&>(state))) {}

  // A tensor with a layout of host numbers, as make_smem_tensor() makes it, in this region.
  template <class T>
  Tensor<T> tensor(const Layout& layout, SourceLoc loc = SourceLoc::current()) const {
    const Tensor<T> result = make_smem_tensor<T>(layout, loc);
    if (result.ok()) detail::add_to_region(*state_, result.any().node, loc);
    return result;
  }
  // An array of `count` elements, as Shared<T> is one.
  template <class T>
  Shared<T> array(int64_t count, SourceLoc loc = SourceLoc::current()) const {
    const Shared<T> result(count, loc);
    detail::add_to_region(*state_, result.view_node(), loc);
    return result;
  }
  // Takes the bytes of the region's arrays so far from other regions, and leaves what is in use already
  // as it is. Threads that use the arrays call it, or one does and a barrier is behind it; what others did
  // with the bytes is over, and a barrier, or an arrival and a wait, before it.
  void begin(SourceLoc loc = SourceLoc::current()) const { detail::begin_region(*state_, loc); }

 private:
  std::shared_ptr<detail::RegionState> state_;
};

// Bytes of a block's shared memory that regions share.
class SharedArena {
 public:
  // A further region. What messages call its arrays: "main[0]", "main[1]", in the order of declaration.
  SharedRegion region(std::string name) const {
    return SharedRegion({.arena = state_, .number = state_->regions++, .name = std::move(name)});
  }

 private:
  std::shared_ptr<detail::ArenaState> state_ = std::make_shared<detail::ArenaState>();
};

}  // namespace heddle
