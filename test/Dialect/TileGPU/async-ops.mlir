// RUN: tessera-opt %s | tessera-opt | FileCheck %s

#rows = #tilegpu.layout<2x32, lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0]]>
// CHECK-DAG: #[[SHARED:shared.*]] = #tilegpu.layout<2x32
#swizzled = #tilegpu.layout<2x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 1]]>
!ring = !tilegpu.memdesc<2x32xf32, #swizzled, slots = 3>
!buffer = !tilegpu.memdesc<2x32xf32, #swizzled>
!pointers = tensor<2x32x!tile.ptr<f32>, #rows>
!mask = tensor<2x32xi1, #rows>

// CHECK-LABEL: tile.func private @ring
// CHECK-SAME: (%[[P:.+]]: tensor{{.*}}, %[[M:.+]]: tensor<2x32xi1, #{{.*}}>, %[[C:.+]]: i1, %[[S:.+]]: i32)
tile.func private @ring(%p: !pointers, %m: !mask, %c: i1, %slot: i32) {
  // CHECK: %[[R:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<2x32xf32, #[[SHARED]], slots = 3>
  %r = tilegpu.local_alloc : () -> !ring
  // CHECK: %[[B:.+]] = tilegpu.memdesc_index %[[R]][%[[S]]] : !tilegpu.memdesc<2x32xf32, #[[SHARED]], slots = 3>
  %b = tilegpu.memdesc_index %r[%slot] : !ring
  // CHECK: tilegpu.async_copy %[[P]], %[[B]] : tensor<2x32x!tile.ptr<f32>, #{{.*}}>, !tilegpu.memdesc<2x32xf32, #[[SHARED]]>
  tilegpu.async_copy %p, %b : !pointers, !buffer
  // CHECK: tilegpu.async_copy %[[P]], %[[B]] mask %[[M]] if %[[C]] : {{.*}}, {{.*}}, tensor<2x32xi1, #{{.*}}>
  tilegpu.async_copy %p, %b mask %m if %c : !pointers, !buffer, !mask
  // CHECK: tilegpu.async_copy %[[P]], %[[B]] if %[[C]] :
  tilegpu.async_copy %p, %b if %c : !pointers, !buffer
  // CHECK: tilegpu.async_commit
  tilegpu.async_commit
  // CHECK: tilegpu.async_wait {pending = 1 : i32}
  tilegpu.async_wait {pending = 1 : i32}
  %x = tilegpu.local_load %b : !buffer -> tensor<2x32xf32, #rows>
  // CHECK: tilegpu.local_dealloc %[[R]] : !tilegpu.memdesc<2x32xf32, #[[SHARED]], slots = 3>
  tilegpu.local_dealloc %r : !ring
  tile.return
}
