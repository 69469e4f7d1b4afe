// RUN: tessera-opt --tilegpu-stream-rows %s | FileCheck %s

#row = #tilegpu.layout<8192, reg = [1, 2, 1024, 2048, 4096], lane = [4, 8, 16, 32, 64], warp = [128, 256, 512]>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// The program's own row passes through the cache; weights stay there for the next program.
// CHECK-LABEL: tile.func @row
// CHECK: %[[X:.+]] = tile.load %{{.+}} {evict = 1 : i32} : tensor
// CHECK-NEXT: %[[W:.+]] = tile.load %{{[0-9]+}} : tensor
// CHECK-NEXT: arith.mulf %[[X]], %[[W]]
// CHECK-NEXT: tile.store %{{.+}} {evict = 1 : i32} : tensor
tile.func @row(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %start = arith.muli %pid, %n : i32
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xr = tile.addptr %x, %start : !tile.ptr<f32>, i32
  %xs = tile.splat %xr : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %own = tile.addptr %xs, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %same = tile.addptr %ws, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %or = tile.addptr %o, %start : !tile.ptr<f32>, i32
  %os = tile.splat %or : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %out = tile.addptr %os, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %xv = tile.load %own : tensor<8192x!tile.ptr<f32>, #row>
  %wv = tile.load %same : tensor<8192x!tile.ptr<f32>, #row>
  %y = arith.mulf %xv, %wv : tensor<8192xf32, #row>
  tile.store %out, %y : tensor<8192x!tile.ptr<f32>, #row>
  tile.return
}

// With another program on the SM there is no room for what is the same.
// CHECK-LABEL: tile.func @two_programs
// CHECK-NOT: evict
// CHECK: tile.return
tile.func @two_programs(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tilegpu.occupancy = 2 : i32} {
  %pid = tile.program_id 0
  %start = arith.muli %pid, %n : i32
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xr = tile.addptr %x, %start : !tile.ptr<f32>, i32
  %xs = tile.splat %xr : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %own = tile.addptr %xs, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %same = tile.addptr %ws, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %or = tile.addptr %o, %start : !tile.ptr<f32>, i32
  %os = tile.splat %or : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %out = tile.addptr %os, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %xv = tile.load %own : tensor<8192x!tile.ptr<f32>, #row>
  %wv = tile.load %same : tensor<8192x!tile.ptr<f32>, #row>
  %y = arith.mulf %xv, %wv : tensor<8192xf32, #row>
  tile.store %out, %y : tensor<8192x!tile.ptr<f32>, #row>
  tile.return
}

// Nothing is the same for all programs.
// CHECK-LABEL: tile.func @no_weights
// CHECK-NOT: evict
// CHECK: tile.return
tile.func @no_weights(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %start = arith.muli %pid, %n : i32
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xr = tile.addptr %x, %start : !tile.ptr<f32>, i32
  %xs = tile.splat %xr : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %own = tile.addptr %xs, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %ws = tile.splat %xr : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %same = tile.addptr %ws, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %or = tile.addptr %o, %start : !tile.ptr<f32>, i32
  %os = tile.splat %or : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %out = tile.addptr %os, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %xv = tile.load %own : tensor<8192x!tile.ptr<f32>, #row>
  %wv = tile.load %same : tensor<8192x!tile.ptr<f32>, #row>
  %y = arith.mulf %xv, %wv : tensor<8192xf32, #row>
  tile.store %out, %y : tensor<8192x!tile.ptr<f32>, #row>
  tile.return
}

// What is loaded again shall be there; and what somebody says of a load holds.
// CHECK-LABEL: tile.func @loaded_again
// CHECK-NOT: evict
// CHECK: tile.return
tile.func @loaded_again(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %start = arith.muli %pid, %n : i32
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xr = tile.addptr %x, %start : !tile.ptr<f32>, i32
  %xs = tile.splat %xr : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %own = tile.addptr %xs, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %same = tile.addptr %ws, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %or = tile.addptr %o, %start : !tile.ptr<f32>, i32
  %os = tile.splat %or : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %out = tile.addptr %os, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %xv = tile.load %own : tensor<8192x!tile.ptr<f32>, #row>
  %wv = tile.load %same : tensor<8192x!tile.ptr<f32>, #row>
  %xa = tile.load %own : tensor<8192x!tile.ptr<f32>, #row>
  %y = arith.mulf %xv, %xa : tensor<8192xf32, #row>
  tile.store %out, %y : tensor<8192x!tile.ptr<f32>, #row>
  tile.return
}

// CHECK-LABEL: tile.func @hinted
// CHECK: tile.load %{{.+}} {evict = 2 : i32} : tensor
// CHECK-NOT: evict
// CHECK: tile.return
tile.func @hinted(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %start = arith.muli %pid, %n : i32
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xr = tile.addptr %x, %start : !tile.ptr<f32>, i32
  %xs = tile.splat %xr : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %own = tile.addptr %xs, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %same = tile.addptr %ws, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %or = tile.addptr %o, %start : !tile.ptr<f32>, i32
  %os = tile.splat %or : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #row>
  %out = tile.addptr %os, %i : tensor<8192x!tile.ptr<f32>, #row>, tensor<8192xi32, #row>
  %xv = tile.load %own {evict = 2 : i32} : tensor<8192x!tile.ptr<f32>, #row>
  %wv = tile.load %same : tensor<8192x!tile.ptr<f32>, #row>
  %y = arith.mulf %xv, %wv : tensor<8192xf32, #row>
  tile.store %out, %y : tensor<8192x!tile.ptr<f32>, #row>
  tile.return
}
}
