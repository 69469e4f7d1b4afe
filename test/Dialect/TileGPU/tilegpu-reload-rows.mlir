// RUN: tessera-opt --tilegpu-reload-rows %s | FileCheck %s

#once = #tilegpu.layout<256, lane = [1, 2, 4, 8, 16], warp = [32, 64, 128]>
#once1 = #tilegpu.layout<1x256, lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 32], [0, 64], [0, 128]]>
#own1 = #tilegpu.layout<1x256, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0], [0, 0]]>
#all1 = #tilegpu.layout<1x256, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0], [0, 0]]>
!p = !tile.ptr<bf16>
!ps = tensor<256x!tile.ptr<bf16>, #once>
// CHECK-DAG: #[[OWN:.+]] = #tilegpu.layout<256, reg = [1, 8, 16, 32, 64, 128], lane = [2, 4, 0, 0, 0], warp = [0, 0, 0]>
// CHECK-DAG: #[[OWN1:.+]] = #tilegpu.layout<1x256, reg = {{\[}}[0, 1], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = {{\[}}[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]]
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// Addresses and masks are computed again, too.
// CHECK-LABEL: @bias
tile.func @bias(%p: !p, %n: i32, %first: i32) {
  tilegpu.warp_specialize default {
    // CHECK: %[[R:.+]] = tile.range 0 to 256 : tensor<256xi32, #[[OWN]]>
    %r = tile.range 0 to 256 : tensor<256xi32, #once>
    %f = tile.splat %first : i32 -> tensor<256xi32, #once>
    %i = arith.addi %f, %r : tensor<256xi32, #once>
    %ns = tile.splat %n : i32 -> tensor<256xi32, #once>
    %in = arith.cmpi slt, %i, %ns : tensor<256xi32, #once>
    %b = tile.splat %p : !p -> !ps
    %ps = tile.addptr %b, %i : !ps, tensor<256xi32, #once>
    // CHECK: %[[X:.+]] = tile.load %{{.+}}, %{{.+}} : tensor<256x!tile.ptr<bf16>, #[[OWN]]>
    %x = tile.load %ps, %in : !ps
    // CHECK-NEXT: %[[Y:.+]] = tile.expand_dims %[[X]] {axis = 0 : i32} : {{.*}} -> tensor<1x256xbf16, #[[OWN1]]>
    %y = tile.expand_dims %x {axis = 0 : i32} : tensor<256xbf16, #once> -> tensor<1x256xbf16, #once1>
    // CHECK-NOT: convert_layout
    %z = tilegpu.convert_layout %y : tensor<1x256xbf16, #once1> -> tensor<1x256xbf16, #own1>
    // CHECK-NEXT: tile.print "z" : %[[Y]]
    tile.print "z" : %z {hex = false, is_signed = array<i32: 0>} : tensor<1x256xbf16, #own1>
  } partition warps(1) {
  }
  tile.return
}

// Not over what may write, not where each thread would load all of it, and not elsewhere.
// CHECK-LABEL: @others
// CHECK-COUNT-3: tilegpu.convert_layout
tile.func @others(%p: !p) {
  %b = tile.splat %p : !p -> !ps
  %v = tile.load %b : !ps
  %w = tile.expand_dims %v {axis = 0 : i32} : tensor<256xbf16, #once> -> tensor<1x256xbf16, #once1>
  %q = tilegpu.convert_layout %w : tensor<1x256xbf16, #once1> -> tensor<1x256xbf16, #own1>
  tilegpu.warp_specialize default {
    %x = tile.load %b : !ps
    %y = tile.expand_dims %x {axis = 0 : i32} : tensor<256xbf16, #once> -> tensor<1x256xbf16, #once1>
    %a = tilegpu.convert_layout %y : tensor<1x256xbf16, #once1> -> tensor<1x256xbf16, #all1>
    tile.store %b, %x : !ps
    %z = tilegpu.convert_layout %y : tensor<1x256xbf16, #once1> -> tensor<1x256xbf16, #own1>
    tile.print "z" : %z, %q {hex = false, is_signed = array<i32: 0, 0>} : tensor<1x256xbf16, #own1>, tensor<1x256xbf16, #own1>
    tile.print "a" : %a {hex = false, is_signed = array<i32: 0>} : tensor<1x256xbf16, #all1>
  } partition warps(1) {
  }
  tile.return
}
}
