// RUN: tessera-opt --tile-lower-descriptors=aligned=true --canonicalize --cse --convert-tile-to-tilegpu="num-warps=4 target=sm_90a" --tilegpu-accelerate-matmul --tilegpu-warp-specialize=num-stages=3 --tilegpu-expand-schedule --tilegpu-store-by-tensor-map --canonicalize --split-input-file %s 2>%t.txt | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARKS --input-file=%t.txt

// Arrays that a kernel finds in memory, in a loop that is not counted: the kernel makes tensor
// maps where it finds them, and tells the producer.

// What is stored may be what is copied, for nobody knows where it ends: the producer hears of each
// tile, when it is there.

// REMARKS: remark: loop is not specialised: it may store to the tiles that it loads, or orders memory
// REMARKS: remark: loop copies without a producer warp: the kernel loads addresses of its arrays, and its bounds or conditions depend on values that are no integers
// REMARKS-NOT: loop copies

// CHECK-LABEL: tile.func @found
// CHECK: %[[WORDS:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<4xi64
// CHECK: %[[FULL:.+]] = tilegpu.local_alloc
// CHECK-NEXT: tilegpu.mbarrier_init %[[FULL]] {arrivals = 4 : i32}
// CHECK: %[[EMPTY:.+]] = tilegpu.local_alloc
// CHECK-NEXT: tilegpu.mbarrier_init %[[EMPTY]] {arrivals = 1 : i32}
// CHECK: tilegpu.warp_specialize default
// CHECK: scf.for
// CHECK: %[[M:.+]] = tile.load %{{.*}} : !tile.ptr<i32>
// CHECK: %[[Y:.+]] = tilegpu.make_tensor_map %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] {map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1, s2, s3] -> (s1, s3), strides = ()[s0, s1, s2, s3] -> (s2, 1), box = [64, 64], swizzle = 128>} : !tile.ptr<f16>, i32, i32, i32
// CHECK: %[[X:.+]] = tilegpu.make_tensor_map
// CHECK-NOT: tilegpu.make_tensor_map
// CHECK: tilegpu.mbarrier_wait %[[EMPTY]]
// CHECK-NEXT: tilegpu.local_store_scalar %[[M]], %[[WORDS]][0] : i32
// CHECK-NEXT: tilegpu.local_store_scalar %[[Y]], %[[WORDS]][1] : !tilegpu.tensor_map
// CHECK-NEXT: tilegpu.local_store_scalar %[[X]], %[[WORDS]][2] : !tilegpu.tensor_map
// CHECK-NEXT: tilegpu.mbarrier_arrive %[[FULL]]
// CHECK: scf.while
// CHECK: } do {
// CHECK: tilegpu.mbarrier_wait %[[EMPTY]]
// CHECK-NEXT: tilegpu.proxy_fence {of_memory}
// CHECK-NEXT: tilegpu.mbarrier_arrive %[[FULL]]
// CHECK: tilegpu.warpgroup_dot {{.*}}is_async
// CHECK: tile.store
// CHECK: } partition
// CHECK: scf.for
// CHECK-NEXT: tilegpu.mbarrier_wait %[[FULL]], %[[PHASE:.+]] :
// CHECK-NEXT: %[[HEARD:.+]] = tilegpu.local_load_scalar %[[WORDS]][0] : {{.*}} -> i32
// CHECK-NEXT: %[[HEARDY:.+]] = tilegpu.local_load_scalar %[[WORDS]][1] {map = {{.*}} -> !tilegpu.tensor_map
// CHECK-NEXT: %[[HEARDX:.+]] = tilegpu.local_load_scalar %[[WORDS]][2] {map = {{.*}} -> !tilegpu.tensor_map
// CHECK-NEXT: tilegpu.mbarrier_arrive %[[EMPTY]]
// CHECK: scf.while (%[[T:[a-z0-9]+]] = %{{.*}},
// CHECK-NEXT: arith.cmpi slt, %[[T]], %[[HEARD]]
// CHECK: } do {
// CHECK: tilegpu.mbarrier_wait %[[FULL]]
// CHECK-NEXT: tilegpu.mbarrier_arrive %[[EMPTY]]
// CHECK: scf.for
// CHECK: tilegpu.tma_load %[[HEARDX]]
// CHECK: tilegpu.tma_load %[[HEARDY]]
tile.func @found(%where: !tile.ptr<i64>, %sizes: !tile.ptr<i32>, %c: !tile.ptr<f32>, %n: i32, %groups: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c1_i64 = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %range = tile.range 0 to 64 : tensor<64xi32>
  %column = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %width = tile.splat %c64 : i32 -> tensor<64x1xi32>
  scf.for %g = %c0 to %groups step %c1 : i32 {
    %at = tile.addptr %where, %g : !tile.ptr<i64>, i32
    %number = tile.load %at : !tile.ptr<i64>
    %a = tile.int_to_ptr %number : i64 -> !tile.ptr<f16>
    %at_size = tile.addptr %sizes, %g : !tile.ptr<i32>, i32
    %m = tile.load %at_size : !tile.ptr<i32>
    %at_ld = tile.addptr %at_size, %c1 : !tile.ptr<i32>, i32
    %ld = tile.load %at_ld : !tile.ptr<i32>
    %ld_i64 = arith.extsi %ld : i32 to i64
    %x = tile.make_descriptor %a, [%m, %n], [%ld_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x64xf16>>
    %y = tile.make_descriptor %a, [%n, %m], [%ld_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x64xf16>>
    %last = scf.while (%t = %pid) : (i32) -> i32 {
      %more = arith.cmpi slt, %t, %m : i32
      scf.condition(%more) %t : i32
    } do {
    ^bb0(%t: i32):
      %first = arith.muli %t, %c64 : i32
      %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
        %l = tile.descriptor_load %x, [%first, %k] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
        %r = tile.descriptor_load %y, [%k, %c0] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
        %next = tile.dot %l, %r, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
        scf.yield %next : tensor<64x64xf32>
      }
      %to = tile.splat %c : !tile.ptr<f32> -> tensor<64x1x!tile.ptr<f32>>
      %moved = arith.muli %row, %width : tensor<64x1xi32>
      %rows = tile.addptr %to, %moved : tensor<64x1x!tile.ptr<f32>>, tensor<64x1xi32>
      %all = tile.broadcast %rows : tensor<64x1x!tile.ptr<f32>> -> tensor<64x64x!tile.ptr<f32>>
      %columns = tile.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
      %ptrs = tile.addptr %all, %columns : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
      tile.store %ptrs, %sum : tensor<64x64x!tile.ptr<f32>>
      %next = arith.addi %t, %c1 : i32
      scf.yield %next : i32
    }
  }
  tile.return
}

// -----

// What the loop stores may be what later iterations load.

// CHECK-LABEL: tile.func @stored
// CHECK-NOT: make_tensor_map
// CHECK: tile.return
tile.func @stored(%where: !tile.ptr<i64>, %c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c64_i64 = arith.constant 64 : i64
  %c1_i64 = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %number = tile.load %where : !tile.ptr<i64>
  %a = tile.int_to_ptr %number : i64 -> !tile.ptr<f16>
  %x = tile.make_descriptor %a, [%n, %n], [%c64_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x64xf16>>
  %z = tile.make_descriptor %c, [%n, %n], [%c64_i64, %c1_i64] : !tile.ptr<f32> -> !tile.descriptor<tensor<64x64xf32>>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %l = tile.descriptor_load %x, [%c0, %k] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
    %r = tile.descriptor_load %x, [%k, %c0] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
    %next = tile.dot %l, %r, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    tile.descriptor_store %z, [%k, %c0], %next : !tile.descriptor<tensor<64x64xf32>>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.return
}

// -----

// Where an array of results is known in front of the loop over its tiles, places are compared once
// there, and the producer hears of a tile only if they may be the same. Results go by TMA, too, and
// are there before that is told, and when the loop ends.

// CHECK-LABEL: tile.func @results
// CHECK: %[[A:.+]] = tilegpu.make_tensor_map
// CHECK: %[[B:.+]] = tilegpu.make_tensor_map
// CHECK-COUNT-3: tile.ptr_to_int
// CHECK: tilegpu.local_store_scalar %[[A]]
// CHECK: tilegpu.local_store_scalar %[[B]]
// CHECK: tilegpu.local_store_scalar %[[MAY:[0-9]+]], %{{.*}}[2] : i1
// CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32}
// CHECK-NEXT: tilegpu.proxy_fence {of_memory}
// CHECK-NEXT: tilegpu.mbarrier_arrive
// CHECK: %[[C:.+]] = tilegpu.make_tensor_map
// CHECK: scf.while
// CHECK: scf.if %[[MAY]]
// CHECK: tilegpu.mbarrier_wait
// CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32}
// CHECK-NEXT: tilegpu.proxy_fence {of_memory}
// CHECK-NEXT: tilegpu.mbarrier_arrive
// CHECK: tilegpu.tma_store_wait {pending = 0 : i32}
// CHECK: tilegpu.local_store
// CHECK-NEXT: scf.if
// CHECK-NEXT: tilegpu.tma_store %{{.*}}, %[[C]]
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32}
// CHECK-NEXT: tilegpu.barrier
// CHECK: } partition
// CHECK: %[[HEARD:.+]] = tilegpu.local_load_scalar {{.*}} -> i1
// CHECK: scf.while
// CHECK: scf.if %[[HEARD]]
// CHECK-NEXT: tilegpu.mbarrier_wait
tile.func @results(%where: !tile.ptr<i64>, %n: i32 {tile.divisibility = 4 : i64}, %tiles: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %c64_i64 = arith.constant 64 : i64
  %c1_i64 = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %na = tile.load %where : !tile.ptr<i64>
  %at_b = tile.addptr %where, %c1 : !tile.ptr<i64>, i32
  %nb = tile.load %at_b : !tile.ptr<i64>
  %at_c = tile.addptr %where, %c2 : !tile.ptr<i64>, i32
  %nc = tile.load %at_c : !tile.ptr<i64>
  %a = tile.int_to_ptr %na : i64 -> !tile.ptr<f16>
  %b = tile.int_to_ptr %nb : i64 -> !tile.ptr<f16>
  %c = tile.int_to_ptr %nc : i64 -> !tile.ptr<f32>
  %x = tile.make_descriptor %a, [%n, %n], [%c64_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x64xf16>>
  %y = tile.make_descriptor %b, [%n, %n], [%c64_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x64xf16>>
  %z = tile.make_descriptor %c, [%n, %n], [%c64_i64, %c1_i64] : !tile.ptr<f32> -> !tile.descriptor<tensor<64x64xf32>>
  %last = scf.while (%t = %pid) : (i32) -> i32 {
    %more = arith.cmpi slt, %t, %tiles : i32
    scf.condition(%more) %t : i32
  } do {
  ^bb0(%t: i32):
    %first = arith.muli %t, %c64 : i32
    %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %l = tile.descriptor_load %x, [%first, %k] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
      %r = tile.descriptor_load %y, [%k, %c0] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
      %next = tile.dot %l, %r, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    tile.descriptor_store %z, [%first, %c0], %sum : !tile.descriptor<tensor<64x64xf32>>, tensor<64x64xf32>
    %next = arith.addi %t, %c1 : i32
    scf.yield %next : i32
  }
  tile.return
}

// -----

// A condition on a float is nothing that a producer can be told of.

// CHECK-LABEL: tile.func @floats
// CHECK-NOT: tilegpu.warp_specialize
// CHECK: tilegpu.one_thread
tile.func @floats(%where: !tile.ptr<i64>, %scales: !tile.ptr<f32>, %c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c64_i64 = arith.constant 64 : i64
  %c1_i64 = arith.constant 1 : i64
  %half = arith.constant 0.5 : f32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %number = tile.load %where : !tile.ptr<i64>
  %a = tile.int_to_ptr %number : i64 -> !tile.ptr<f16>
  %scale = tile.load %scales : !tile.ptr<f32>
  %is_scaled = arith.cmpf ogt, %scale, %half : f32
  %x = tile.make_descriptor %a, [%n, %n], [%c64_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x64xf16>>
  %z = tile.make_descriptor %c, [%n, %n], [%c64_i64, %c1_i64] : !tile.ptr<f32> -> !tile.descriptor<tensor<64x64xf32>>
  scf.if %is_scaled {
    %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %l = tile.descriptor_load %x, [%c0, %k] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
      %r = tile.descriptor_load %x, [%k, %c0] : !tile.descriptor<tensor<64x64xf16>> -> tensor<64x64xf16>
      %next = tile.dot %l, %r, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    tile.descriptor_store %z, [%c0, %c0], %sum : !tile.descriptor<tensor<64x64xf32>>, tensor<64x64xf32>
  }
  tile.return
}
