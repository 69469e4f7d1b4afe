// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK: #[[SHARED:.+]] = #tilegpu.layout<2x32, offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 1]]>
#rows = #tilegpu.layout<2x32, lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0]]>
#swizzled = #tilegpu.layout<2x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 1]]>

// CHECK-LABEL: tile.func private @buffers
// CHECK-SAME: (%[[X:.+]]: tensor<2x32xf32, #[[ROWS:.+]]>)
tile.func private @buffers(%x: tensor<2x32xf32, #rows>) {
  // CHECK: %[[A:.+]] = tilegpu.local_alloc %[[X]] : (tensor<2x32xf32, #[[ROWS]]>) -> !tilegpu.memdesc<2x32xf32, #[[SHARED]]>
  %a = tilegpu.local_alloc %x : (tensor<2x32xf32, #rows>) -> !tilegpu.memdesc<2x32xf32, #swizzled>
  // CHECK: %[[B:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<2x32xf32, #[[SHARED]]>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<2x32xf32, #swizzled>
  // CHECK: tilegpu.barrier
  tilegpu.barrier
  // CHECK: %[[Y:.+]] = tilegpu.local_load %[[A]] : !tilegpu.memdesc<2x32xf32, #[[SHARED]]> -> tensor<2x32xf32, #[[ROWS]]>
  %y = tilegpu.local_load %a : !tilegpu.memdesc<2x32xf32, #swizzled> -> tensor<2x32xf32, #rows>
  // CHECK: tilegpu.local_store %[[Y]], %[[B]] : tensor<2x32xf32, #[[ROWS]]>, !tilegpu.memdesc<2x32xf32, #[[SHARED]]>
  tilegpu.local_store %y, %b : tensor<2x32xf32, #rows>, !tilegpu.memdesc<2x32xf32, #swizzled>
  // CHECK: tilegpu.local_dealloc %[[A]] : !tilegpu.memdesc<2x32xf32, #[[SHARED]]>
  tilegpu.local_dealloc %a : !tilegpu.memdesc<2x32xf32, #swizzled>
  tile.return
}
