// Small kernels with asynchronous work, in text, for tests that break them: each is correct.
#pragma once

namespace heddle::ir {

// A product of clusters of two blocks: out = a b^T with a 256 x 64, b 8 x 64 in tiles of 16 columns.
// Warp 0 of each block loads its rows of a by boxes, and half of each tile of b for both blocks, through
// two stages; warps 4 to 7 multiply, one product behind, and store through shared memory.
inline constexpr char kPipeline[] = R"(
kernel @pipeline(%a: view<f16, global, 2> [256, 64] strides [64, 1],
    %b: view<f16, global, 1> [512] strides [1],
    %out: view<f32, global, 1> [2048] strides [1]) block(256, 1, 1) cluster(2, 1, 1) target(sm_90a) {
  %c0 = const 0 : i32
  %c1 = const 1 : i32
  %c2 = const 2 : i32
  %c4 = const 4 : i32
  %c8 = const 8 : i32
  %c16 = const 16 : i32
  %c32 = const 32 : i32
  %c64 = const 64 : i32
  %c128 = const 128 : i32
  %c512 = const 512 : i32
  %c1024 = const 1024 : i32
  %u0 = const 0 : u32
  %u1 = const 1 : u32
  %arrivals = const 2 : u32
  %both = const 3 : u32
  %half = const 128 : u32
  %stage_bytes = const 2304 : u32
  %out_bytes = const 2048 : u32
  %map = tensor_map %a {modes = [1, 0], box = [8, 64]} : tensor_map<f16, 2>
  %sa = shared {extents = [2048], align = 1024} : view<f16, shared, 1>
  %sb = shared {extents = [256], align = 1024} : view<f16, shared, 1>
  %so = shared {extents = [512], align = 1024} : view<f32, shared, 1>
  %full = shared {extents = [2]} : view<u64, shared, 1>
  %empty = shared {extents = [2]} : view<u64, shared, 1>
  %rank = cluster_rank : i32
  %t = thread_idx {axis = x} : i32
  %first = eq %t, %c0 : bool
  if %first {
    mbarrier.init %full, %c0, %u1
    mbarrier.init %full, %c1, %u1
    mbarrier.init %empty, %c0, %arrivals
    mbarrier.init %empty, %c1, %arrivals
    fence.mbarrier_init
    yield
  }
  cluster.arrive  ; begin
  cluster.wait  ; begin
  %w = warp_id : i32
  %loads = eq %w, %c0 : bool
  if %loads {
    %p_s1, %p_p1 = for %p_tile in %c0 .. %c2 step %c1 carry(%p_s0 = %c0, %p_p0 = %u1) : i32, u32 {
      %p_pair = mul %p_tile, %c2 : i32
      %p_block = add %p_pair, %rank : i32
      %row = mul %p_block, %c64 : i32
      %p_s3, %p_p3 = for %p_k in %c0 .. %c4 step %c1 carry(%p_s = %p_s0, %p_p = %p_p0) : i32, u32 {
        mbarrier.wait %empty, %p_s, %p_p {scope = block}  ; acquire
        %leads = elect : bool
        if %leads {
          mbarrier.expect_tx %full, %p_s, %stage_bytes
          %bar = subview %full, %p_s, %c1 : view<u64, shared, 1>
          %k0 = mul %p_k, %c16 : i32
          %k1 = add %k0, %c8 : i32
          %p_a0 = mul %p_s, %c1024 : i32
          %p_a1 = add %p_a0, %c512 : i32
          %to0 = subview %sa, %p_a0, %c512 : view<f16, shared, 1>
          %to1 = subview %sa, %p_a1, %c512 : view<f16, shared, 1>
          tma.load %to0, %map, %bar, %k0, %row
          tma.load %to1, %map, %bar, %k1, %row  ; second
          %mine = mul %rank, %c64 : i32
          %step = mul %p_k, %c128 : i32
          %from = add %step, %mine : i32
          %p_b0 = mul %p_s, %c128 : i32
          %p_b1 = add %p_b0, %mine : i32
          %src = subview %b, %from, %c64 : view<f16, global, 1>
          %dst = subview %sb, %p_b1, %c64 : view<f16, shared, 1>
          bulk.load %dst, %src, %half, %bar, %both
          yield
        }
        %p_ns = xor %p_s, %c1 : i32
        %p_wraps = eq %p_s, %c1 : bool
        %p_flipped = xor %p_p, %u1 : u32
        %p_np = select %p_wraps, %p_flipped, %p_p : u32  ; producer
        yield %p_ns, %p_np
      }
      yield %p_s3, %p_p3
    }
    yield
  }
  %multiplies = ge %w, %c4 : bool
  if %multiplies {
    %ct = sub %t, %c128 : i32
    %leads2 = eq %ct, %c0 : bool
    %releases = lt %ct, %c2 : bool
    %lane = rem %ct, %c32 : i32
    %quarter = div %ct, %c32 : i32
    %qrow = mul %quarter, %c16 : i32
    %lrow = div %lane, %c4 : i32
    %orow = add %qrow, %lrow : i32
    %lcol = rem %lane, %c4 : i32
    %ocol = mul %lcol, %c2 : i32
    %o8 = mul %orow, %c8 : i32
    %at0 = add %o8, %ocol : i32
    %at1 = add %at0, %c1 : i32
    %at2 = add %at0, %c64 : i32
    %at3 = add %at1, %c64 : i32
    %never = ne %c0, %c0 : bool
    %s1, %p1 = for %tile in %c0 .. %c2 step %c1 carry(%s0 = %c0, %p0 = %u0) : i32, u32 {
      %none = undef : frag<f32, 4>
      %begun = wgmma.begin %none : pending<f32, 4>
      mbarrier.wait %full, %s0, %p0 {scope = block}  ; first
      %a0 = mul %s0, %c1024 : i32
      %b0 = mul %s0, %c128 : i32
      %da = smem.desc %sa, %a0 {leading = 1024, stride = 128, swizzle = 0} : smem_desc<f16>
      %db = smem.desc %sb, %b0 {leading = 128, stride = 128, swizzle = 0} : smem_desc<f16>
      %acc0 = wgmma %begun, %da, %db, %never : pending<f32, 4>  ; first
      wgmma.commit
      %s2 = xor %s0, %c1 : i32
      %wraps2 = eq %s0, %c1 : bool
      %flipped2 = xor %p0, %u1 : u32
      %p2 = select %wraps2, %flipped2, %p0 : u32
      %acc1, %s3, %p3, %last = for %k in %c1 .. %c4 step %c1 carry(%acc = %acc0, %s = %s2, %p = %p2, %before = %s0) : pending<f32, 4>, i32, u32, i32 {
        mbarrier.wait %full, %s, %p {scope = block}  ; next
        %a1 = mul %s, %c1024 : i32
        %b1 = mul %s, %c128 : i32
        %da1 = smem.desc %sa, %a1 {leading = 1024, stride = 128, swizzle = 0} : smem_desc<f16>
        %db1 = smem.desc %sb, %b1 {leading = 128, stride = 128, swizzle = 0} : smem_desc<f16>
        %acc2 = wgmma %acc, %da1, %db1 : pending<f32, 4>  ; next
        wgmma.commit
        wgmma.wait {groups = 1}
        if %releases {
          %theirs = map_shared %empty, %ct : view<u64, shared_cluster, 1>
          mbarrier.arrive %theirs, %before {scope = block}  ; next
          yield
        }
        %ns = xor %s, %c1 : i32
        %wraps = eq %s, %c1 : bool
        %flipped = xor %p, %u1 : u32
        %np = select %wraps, %flipped, %p : u32  ; consumer
        yield %acc2, %ns, %np, %s
      }
      %sum = wgmma.wait %acc1 {groups = 0} : frag<f32, 4>
      if %releases {
        %theirs2 = map_shared %empty, %ct : view<u64, shared_cluster, 1>
        mbarrier.arrive %theirs2, %last {scope = block}  ; last
        yield
      }
      if %leads2 {
        bulk.wait_read {groups = 0}
        yield
      }
      barrier.sync %c1 {threads = 128}  ; before
      %v0 = extract %sum {index = 0} : f32
      %v1 = extract %sum {index = 1} : f32
      %v2 = extract %sum {index = 2} : f32
      %v3 = extract %sum {index = 3} : f32
      store %so, %v0, %at0
      store %so, %v1, %at1
      store %so, %v2, %at2
      store %so, %v3, %at3
      fence.async
      barrier.sync %c1 {threads = 128}  ; behind
      if %leads2 {
        %pair = mul %tile, %c2 : i32
        %block = add %pair, %rank : i32
        %o = mul %block, %c512 : i32
        %odst = subview %out, %o, %c512 : view<f32, global, 1>
        bulk.store %odst, %so, %out_bytes
        bulk.commit
        yield
      }
      yield %s3, %p3
    }
    if %leads2 {
      bulk.wait {groups = 0}
      yield
    }
    yield
  }
  cluster.arrive  ; end
  cluster.wait  ; end
}
)";

// Two blocks exchange numbers: by stores to each other's memory, then by a bulk copy.
inline constexpr char kExchange[] = R"(
kernel @exchange(%x: view<i32, global, 1> [64] strides [1],
    %y: view<i32, global, 1> [64] strides [1]) block(32, 1, 1) cluster(2, 1, 1) target(sm_90a) {
  %c0 = const 0 : i32
  %c1 = const 1 : i32
  %c31 = const 31 : i32
  %c32 = const 32 : i32
  %u0 = const 0 : u32
  %u1 = const 1 : u32
  %lanes = const 32 : u32
  %bytes = const 128 : u32
  %announced = const 128 : u32
  %mail = shared {extents = [32], align = 128} : view<i32, shared, 1>
  %src = shared {extents = [32], align = 128} : view<i32, shared, 1>
  %dst = shared {extents = [32], align = 128} : view<i32, shared, 1>
  %bar = shared {extents = [2]} : view<u64, shared, 1>
  %t = thread_idx {axis = x} : i32
  %rank = cluster_rank : i32
  %other = xor %rank, %c1 : i32
  %first = eq %t, %c0 : bool
  if %first {
    mbarrier.init %bar, %c0, %lanes
    mbarrier.init %bar, %c1, %u1
    fence.mbarrier_init
    yield
  }
  cluster.arrive  ; begin
  cluster.wait  ; begin
  %base = mul %rank, %c32 : i32
  %i = add %base, %t : i32
  %v = load %x, %i : i32
  %theirs = map_shared %mail, %other : view<i32, shared_cluster, 1>
  %their_bar = map_shared %bar, %other : view<u64, shared_cluster, 1>
  store %theirs, %v, %t
  mbarrier.arrive %their_bar, %c0 {scope = cluster}
  mbarrier.wait %bar, %c0, %u0 {scope = cluster}
  %r = sub %c31, %t : i32
  %got = load %mail, %r : i32
  store %src, %got, %t
  fence.async
  warp.sync
  if %first {
    mbarrier.expect_tx %bar, %c1, %announced
    %to = map_shared %dst, %other : view<i32, shared_cluster, 1>
    %one = subview %their_bar, %c1, %c1 : view<u64, shared_cluster, 1>
    bulk.copy %to, %src, %bytes, %one
    yield
  }
  mbarrier.wait %bar, %c1, %u0
  %z = load %dst, %t : i32
  store %y, %z, %i
  cluster.arrive  ; end
  cluster.wait  ; end
}
)";

// Each tile of 64 numbers is copied while the one before it is read, through two stages.
inline constexpr char kCopies[] = R"(
kernel @copies(%x: view<i32, global, 1> [512] strides [1],
    %y: view<i32, global, 1> [512] strides [1]) block(64, 1, 1) target(sm_90a) {
  %c0 = const 0 : i32
  %c1 = const 1 : i32
  %c7 = const 7 : i32
  %c8 = const 8 : i32
  %c63 = const 63 : i32
  %c64 = const 64 : i32
  %s = shared {extents = [128], align = 16} : view<i32, shared, 1>
  %t = thread_idx {axis = x} : i32
  %to0 = subview %s, %t, %c1 : view<i32, shared, 1>
  %from0 = subview %x, %t, %c1 : view<i32, global, 1>
  copy.async %to0, %from0 {width = 1}  ; first
  copy.commit  ; first
  for %i in %c0 .. %c8 step %c1 {
    %more = lt %i, %c7 : bool
    if %more {
      %j = add %i, %c1 : i32
      %stage = and %j, %c1 : i32
      %part = mul %stage, %c64 : i32
      %place = add %part, %t : i32
      %whole = mul %j, %c64 : i32
      %source = add %whole, %t : i32
      %to = subview %s, %place, %c1 : view<i32, shared, 1>
      %from = subview %x, %source, %c1 : view<i32, global, 1>
      copy.async %to, %from {width = 1}  ; next
      yield
    }
    copy.commit  ; next
    copy.wait {groups = 1}
    barrier  ; landed
    %now = and %i, %c1 : i32
    %part1 = mul %now, %c64 : i32
    %back = sub %c63, %t : i32
    %at = add %part1, %back : i32
    %v = load %s, %at : i32
    %whole1 = mul %i, %c64 : i32
    %o = add %whole1, %t : i32
    store %y, %v, %o
    barrier  ; read
    yield
  }
}
)";

// A tile that a bulk copy fills is read by loads and filled again; copies of all threads tell a barrier.
inline constexpr char kRefill[] = R"(
kernel @refill(%x: view<i32, global, 1> [128] strides [1],
    %y: view<i32, global, 1> [128] strides [1]) block(64, 1, 1) target(sm_90a) {
  %c0 = const 0 : i32
  %c1 = const 1 : i32
  %c2 = const 2 : i32
  %c63 = const 63 : i32
  %c64 = const 64 : i32
  %u0 = const 0 : u32
  %u1 = const 1 : u32
  %threads = const 64 : u32
  %bytes = const 256 : u32
  %s = shared {extents = [64], align = 128} : view<i32, shared, 1>
  %m = shared {extents = [64], align = 128} : view<i32, shared, 1>
  %full = shared {extents = [2]} : view<u64, shared, 1>
  %t = thread_idx {axis = x} : i32
  %first = eq %t, %c0 : bool
  %back = sub %c63, %t : i32
  if %first {
    mbarrier.init %full, %c0, %u1
    mbarrier.init %full, %c1, %threads
    fence.mbarrier_init
    yield
  }
  barrier  ; begin
  for %i in %c0 .. %c2 step %c1 {
    %base = mul %i, %c64 : i32
    %src = subview %x, %base, %c64 : view<i32, global, 1>
    if %first {
      mbarrier.expect_tx %full, %c0, %bytes
      bulk.load %s, %src, %bytes, %full
      yield
    }
    %own = subview %src, %t, %c1 : view<i32, global, 1>
    %to = subview %m, %t, %c1 : view<i32, shared, 1>
    copy.async %to, %own {width = 1}
    copy.arrive %full, %c1
    %parity = convert %i : u32
    mbarrier.wait %full, %c0, %parity  ; tile
    mbarrier.wait %full, %c1, %parity  ; small
    %v = load %s, %back : i32
    %u = load %m, %back : i32
    %sum = add %v, %u : i32
    %o = add %base, %t : i32
    store %y, %sum, %o
    fence.async
    barrier  ; read
    yield
  }
}
)";

}  // namespace heddle::ir
