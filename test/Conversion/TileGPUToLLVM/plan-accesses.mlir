// RUN: tessera-opt %s --tilegpu-plan-accesses | FileCheck %s

// Four neighbours in a thread, at a multiple of 16 bytes: one access moves them.

#quads = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
#pairs = #tilegpu.layout<512, reg = [1, 256], lane = [2, 4, 8, 16, 32], warp = [64, 128]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: @aligned
  tile.func @aligned(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32>) {
    %i = tile.range 0 to 512 : tensor<512xi32, #quads>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #quads>
    %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>, #quads>, tensor<512xi32, #quads>
    // CHECK: tile.load %{{.+}} {tilegpu.access = array<i64: 0, 4>}
    %x = tile.load %pi : tensor<512x!tile.ptr<f32>, #quads>
    // Nothing is known of where this one begins.
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #quads>
    %qi = tile.addptr %qs, %i : tensor<512x!tile.ptr<f32>, #quads>, tensor<512xi32, #quads>
    // CHECK: tile.store %{{[^{]+}} : tensor
    tile.store %qi, %x : tensor<512x!tile.ptr<f32>, #quads>
    tile.return
  }

  // A thread has two neighbours of the four: two travel together.
  // CHECK-LABEL: @fewer_registers
  tile.func @fewer_registers(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 512 : tensor<512xi32, #pairs>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #pairs>
    %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>, #pairs>, tensor<512xi32, #pairs>
    // CHECK: tile.load %{{.+}} {tilegpu.access = array<i64: 0, 2>}
    %x = tile.load %pi : tensor<512x!tile.ptr<f32>, #pairs>
    tile.store %pi, %x : tensor<512x!tile.ptr<f32>, #pairs>
    tile.return
  }

  // A bound may lie within an access, unless it is known to be a multiple of it. Then the
  // comparison is the same for four neighbours at a time.
  // CHECK-LABEL: @masked
  tile.func @masked(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32,
                    %m: i32 {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 512 : tensor<512xi32, #quads>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #quads>
    %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>, #quads>, tensor<512xi32, #quads>
    %ns = tile.splat %n : i32 -> tensor<512xi32, #quads>
    %ms = tile.splat %m : i32 -> tensor<512xi32, #quads>
    // CHECK: arith.cmpi slt, %{{[^{]+}} : tensor
    %any = arith.cmpi slt, %i, %ns : tensor<512xi32, #quads>
    // CHECK: arith.cmpi slt, %{{.+}} {tilegpu.runs = array<i64: 4>}
    %whole = arith.cmpi slt, %i, %ms : tensor<512xi32, #quads>
    // CHECK: tile.load %{{.+}} {tilegpu.access = array<i64: 0, 4>, tilegpu.prefix_masks}
    %x = tile.load %pi, %any : tensor<512x!tile.ptr<f32>, #quads>
    // CHECK: tile.store %{{.+}} {tilegpu.access = array<i64: 0, 4>} :
    tile.store %pi, %x, %whole : tensor<512x!tile.ptr<f32>, #quads>
    tile.return
  }

  // A promise makes an access 16 bytes wide, and no comparison is left out for it.
  // CHECK-LABEL: @promised
  tile.func private @promised(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32,
                              %i: tensor<512xi32, #quads>) {
    %h = tile.hint %i {contiguity = array<i64: 512>, divisibility = array<i64: 512>} : tensor<512xi32, #quads>
    %e = tile.hint %i {constancy = array<i64: 512>} : tensor<512xi32, #quads>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #quads>
    %pi = tile.addptr %ps, %h : tensor<512x!tile.ptr<f32>, #quads>, tensor<512xi32, #quads>
    %ns = tile.splat %n : i32 -> tensor<512xi32, #quads>
    // CHECK: arith.cmpi slt, %{{[^{]+}} : tensor
    %in = arith.cmpi slt, %e, %ns : tensor<512xi32, #quads>
    // CHECK: tile.load %{{.+}} {tilegpu.access = array<i64: 0, 4>} :
    %x = tile.load %pi, %in : tensor<512x!tile.ptr<f32>, #quads>
    // CHECK: tile.store %{{.+}} {tilegpu.access = array<i64: 0, 4>} :
    tile.store %pi, %x : tensor<512x!tile.ptr<f32>, #quads>
    tile.return
  }

  // Neighbours have one channel, whose weight is loaded once. A volatile load is one of each.
  // CHECK-LABEL: @weight_of_a_channel
  tile.func @weight_of_a_channel(%p: !tile.ptr<f32>, %n: i32 {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 512 : tensor<512xi32, #quads>
    %ns = tile.splat %n : i32 -> tensor<512xi32, #quads>
    // CHECK: tile.div_int {{.+}} {tilegpu.runs = array<i64: 4>}
    %channel = tile.div_int signed %i, %ns : tensor<512xi32, #quads>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #quads>
    %pi = tile.addptr %ps, %channel : tensor<512x!tile.ptr<f32>, #quads>, tensor<512xi32, #quads>
    // CHECK: tile.load %{{.+}} {tilegpu.runs = array<i64: 4>}
    %x = tile.load %pi : tensor<512x!tile.ptr<f32>, #quads>
    // CHECK: tile.load %{{.+}} {isVolatile} :
    %y = tile.load %pi {isVolatile} : tensor<512x!tile.ptr<f32>, #quads>
    tile.store %pi, %x : tensor<512x!tile.ptr<f32>, #quads>
    tile.return
  }
}
