// What asynchronous copies, bulk copies and mbarriers ask for.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/verify/support.h"

namespace heddle::ir {
namespace {

// Arrays and bytes that the copies below name; they take lines 2 to 8.
std::string with_arrays(absl::string_view body) {
  return with_body(absl::StrCat(R"(%s = shared {extents = [64]} : view<f32, shared, 1>
%i = shared {extents = [64]} : view<i32, shared, 1>
%w = shared {extents = [1]} : view<u64, shared, 1>
%t = map_shared %s, %n : view<f32, shared_cluster, 1>
%j = map_shared %i, %n : view<i32, shared_cluster, 1>
%v = map_shared %w, %n : view<u64, shared_cluster, 1>
%b = const 64 : u32
)",
                                body));
}

class AsyncMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(AsyncMistake, IsLocatedAndExplained) {
  EXPECT_EQ(mistakes_of(with_arrays(GetParam().body)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Async, AsyncMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"None", R"(bulk.load %s, %x, %b, %w
bulk.load %t, %x, %b, %v
bulk.load %s, %x, %b, %w, %b
bulk.copy %t, %s, %b, %v
bulk.store %x, %s, %b {l2_evict = first, percent = 5}
bulk.reduce %x, %s, %b {op = add, l2_evict = last}
bulk.reduce %j, %i, %b, %v {op = min}
bulk.prefetch %x, %b
copy.async_if %s, %x, %p {width = 4}
bulk.wait_read {groups = 1})",
         ""},
        {"CopyFromShared", "copy.async_if %s, %t, %p {width = 4}",
         "9: 'copy.async_if' copies from global to shared memory, not from view<f32, "
         "shared_cluster, 1> to view<f32, shared, 1>; load and store instead"},
        {"CopyOfManyBytes", "copy.async_if %s, %x, %p {width = 8}",
         "9: 'copy.async_if' copies 4, 8 or 16 bytes, not 32; choose another width, or load and "
         "store instead"},
        {"WaitForAnotherBlocks", "mbarrier.wait %v, %n, %b",
         "9: 'mbarrier.wait' reaches the block's own shared memory alone, and %v is in "
         "shared_cluster memory; take the block's own array; another block's mbarrier can be "
         "arrived at, or told of bytes"},
        {"InitOfAnotherBlocks", "mbarrier.init %v, %n, %b",
         "9: 'mbarrier.init' reaches the block's own shared memory alone, and %v is in "
         "shared_cluster memory; take the block's own array; another block's mbarrier can be "
         "arrived at, or told of bytes"},
        {"MulticastToAnotherBlocks", "bulk.load %t, %x, %b, %w, %b",
         "9: 'bulk.load' reaches the block's own shared memory alone, and %t is in shared_cluster "
         "memory; take the block's own array; another block's mbarrier can be arrived at, or told "
         "of bytes"},
        {"StoreFromAnotherBlocks", "bulk.store %x, %t, %b",
         "9: 'bulk.store' copies between global and the block's own shared memory, not between "
         "view<f32, global, 1> and view<f32, shared_cluster, 1>; load and store instead"},
        {"StoreToReadOnly", "bulk.store %c, %s, %b",
         "9: this bulk store goes through %c, which is read-only; declare the tensor without "
         "const, Tensor<T> instead of Tensor<const T>"},
        {"CopyWithinABlock", "bulk.copy %s, %s, %b, %v",
         "9: 'bulk.copy' goes to another block's shared memory, and %s is view<f32, shared, 1>; "
         "map the array and the mbarrier to the other block by map_shared"},
        {"CopyFromAnotherBlocks", "bulk.copy %t, %t, %b, %v",
         "9: 'bulk.copy' takes the block's own shared memory, and %t is view<f32, shared_cluster, "
         "1>; copy from the block that has the data"},
        {"ReduceTellsNobody", "bulk.reduce %j, %i, %b {op = add}",
         "9: a bulk reduction in shared_cluster memory tells an mbarrier, and there is none; give "
         "it one in the memory of the same block"},
        {"ReduceInGlobalTells", "bulk.reduce %x, %s, %b, %w {op = add}",
         "9: a bulk reduction in global memory tells no mbarrier; commit and wait"},
        {"ReduceOfAnotherType", "bulk.reduce %t, %s, %b, %v {op = add}",
         "9: a bulk reduction by add in shared_cluster memory takes i32, u32, i64, u64, not f32; "
         "use atomics"},
        {"ReduceByExchange", "bulk.reduce %x, %s, %b {op = exch}",
         "9: a bulk reduction by exch in global memory takes nothing, not f32; use atomics"},
        {"ReduceOfTwoTypes", "bulk.reduce %x, %i, %b {op = add}",
         "9: 'bulk.reduce' combines elements of one type, not i32 and f32; convert the tile"},
        {"HintForAnotherBlocks", "bulk.reduce %j, %i, %b, %v {op = add, l2_evict = last}",
         "9: a cache hint is for global memory, and %j is in shared_cluster memory; leave it out"},
        {"PercentOfNothing", "%a = load %x, %n {l2_evict = first, percent = 0} : f32",
         "9: attribute 'percent' of 'load' is 0, but must be a number from 1 to 100"},
        {"VolatileWithPolicy", "%a = load %x, %n {volatile = 1, l2_evict = first} : f32",
         "9: a volatile access takes no cache hint; leave out one of the two"},
        {"PolicyForShared", "%a = load %s, %n {l2_evict = first} : f32",
         "9: a cache hint is for global memory, and %s is in shared memory; leave it out"},
        {"PrefetchOfShared", "bulk.prefetch %s, %b",
         "9: a bulk prefetch is for global memory, and %s is in shared memory; leave it out"},
    }),
    mistake_name);

}  // namespace
}  // namespace heddle::ir
