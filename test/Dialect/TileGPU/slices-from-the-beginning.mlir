// RUN: tessera-opt --tilegpu-expand-schedule --tilegpu-coalesce --tilegpu-assign-layouts --canonicalize --cse --tilegpu-prefetch --tilegpu-expand-schedule %s | FileCheck %s

// Slices that are said by hand with the rest of a schedule, before tiles have layouts: one, where
// tilegpu-prefetch would take two.
#u = #tilegpu.unassigned
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @from_the_beginning(
// CHECK: scf.for {{.+}} iter_args(%[[ACC:.+]] = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %[[A:.+]] = %{{.+}}, %[[B:.+]] = %{{.+}})
// CHECK: tilegpu.async_wait
// CHECK: tilegpu.local_load {{.+}} along 1 : {{.+}} -> tensor<16x32xf16
// CHECK: tilegpu.local_load {{.+}} along 0 : {{.+}} -> tensor<32x8xf16
// CHECK: tilegpu.mma_dot %[[A]], %[[B]], %[[ACC]] {warps = array<i32: 1, 1>}
// CHECK-NOT: tilegpu.mma_dot
tile.func private @from_the_beginning(%p: tensor<16x32x!tile.ptr<f16>, #u>, %q: tensor<32x8x!tile.ptr<f16>, #u>, %n: i32, %zero: tensor<16x8xf32, #u>) -> tensor<16x8xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<16x8xf32, #u>) : i32 {
    %a = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<16x32xf16, #rows>>} : tensor<16x32x!tile.ptr<f16>, #u>
    %b = tile.load %q {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<32x8xf16, #columns>>} : tensor<32x8x!tile.ptr<f16>, #u>
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 1, ahead = 1>} : tensor<16x32xf16, #u>, tensor<32x8xf16, #u> -> tensor<16x8xf32, #u>
    scf.yield %d : tensor<16x8xf32, #u>
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>]>}
  tile.return %r : tensor<16x8xf32, #u>
}
}
