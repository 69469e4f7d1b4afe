// RUN: tessera-opt --split-input-file --convert-tile-to-tilegpu --tilegpu-coalesce %s | FileCheck %s

// Neighbours, 16 bytes aligned: four elements a thread, then threads side by side. The
// narrower accesses are there for what else may count.
// CHECK: #[[WIDE:.+]] = #tilegpu.layout<1024, reg = [1, 2, 512], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
// CHECK: #[[HALF:.+]] = #tilegpu.layout<1024, reg = [1, 256, 512], lane = [2, 4, 8, 16, 32], warp = [64, 128]>
// CHECK: #[[ONE:.+]] = #tilegpu.layout<1024, reg = [128, 256, 512], lane = [1, 2, 4, 8, 16], warp = [32, 64]>
// CHECK-LABEL: tile.func @aligned
tile.func @aligned(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %q = tile.addptr %s, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  // CHECK: tile.load %{{.+}} {tilegpu.candidates = [#[[WIDE]], #{{.+}}, #[[HALF]], #[[ONE]]]}
  %x = tile.load %q : tensor<1024x!tile.ptr<f32>>
  tile.store %q, %x : tensor<1024x!tile.ptr<f32>>
  tile.return
}

// -----

// What limits a vector: the alignment, and what the mask is constant on. A bound may lie
// within a vector.
// CHECK-DAG: #[[TWO:.+]] = #tilegpu.layout<512, reg = [1, 256], lane = [2, 4, 8, 16, 32], warp = [64, 128]>
// CHECK-DAG: #[[ONE:.+]] = #tilegpu.layout<512, reg = [128, 256], lane = [1, 2, 4, 8, 16], warp = [32, 64]>
// CHECK-LABEL: tile.func @limits
tile.func @limits(%p: !tile.ptr<f32> {tile.divisibility = 8 : i64}, %n: i32) {
  %i = tile.range 0 to 512 : tensor<512xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %q = tile.addptr %s, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  // CHECK: tile.load %{{.+}} {tilegpu.candidates = [#[[TWO]]{{.*}}]}
  %x = tile.load %q : tensor<512x!tile.ptr<f32>>
  %b = tile.splat %n : i32 -> tensor<512xi32>
  %m = arith.cmpi slt, %i, %b : tensor<512xi32>
  // CHECK: tile.store %{{.+}}, %{{.+}}, %{{.+}} {tilegpu.candidates = [#[[TWO]]{{.*}}]}
  tile.store %q, %x, %m : tensor<512x!tile.ptr<f32>>
  %o = arith.cmpi ne, %i, %b : tensor<512xi32>
  // CHECK: tile.store %{{.+}}, %{{.+}}, %{{.+}} {tilegpu.candidates = [#[[ONE]]{{.*}}]}
  tile.store %q, %x, %o : tensor<512x!tile.ptr<f32>>
  tile.return
}

// -----

// A tile in columns: neighbours are along dimension 0. Rows of unknown length come after
// what is known.
// CHECK-DAG: #[[COLUMNS:.+]] = #tilegpu.layout<64x16, reg = {{\[}}[0, 8], [1, 0], [2, 0]], lane = {{\[}}[4, 0], [8, 0], [16, 0], [32, 0], [0, 1]], warp = {{\[}}[0, 2], [0, 4]]>
// CHECK-LABEL: tile.func @columns
tile.func @columns(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %ld: i32 {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %j = tile.range 0 to 16 : tensor<16xi32>
  %r = tile.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tile.expand_dims %j {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %lds = tile.splat %ld : i32 -> tensor<1x16xi32>
  %cl = arith.muli %c, %lds : tensor<1x16xi32>
  %rb = tile.broadcast %r : tensor<64x1xi32> -> tensor<64x16xi32>
  %cb = tile.broadcast %cl : tensor<1x16xi32> -> tensor<64x16xi32>
  %o = arith.addi %rb, %cb : tensor<64x16xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  %q = tile.addptr %s, %o : tensor<64x16x!tile.ptr<f32>>, tensor<64x16xi32>
  // CHECK: tile.load %{{.+}} {tilegpu.candidates = [#[[COLUMNS]]{{.*}}]}
  %x = tile.load %q : tensor<64x16x!tile.ptr<f32>>
  tile.return
}

// -----

// A small tile is held in copies; an odd factor of an extent is no bit of a place.
// CHECK-DAG: #[[SMALL:.+]] = #tilegpu.layout<16, lane = [1, 2, 4, 8, 0], warp = [0, 0]>
// CHECK-DAG: #[[ODD:.+]] = #tilegpu.layout<768, reg = [1], lane = [2, 4, 8, 16, 32], warp = [64, 128]>
// CHECK-LABEL: tile.func @extents
tile.func @extents(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 16 : tensor<16xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %q = tile.addptr %s, %i : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  // CHECK: tile.load %{{.+}} {tilegpu.candidates = [#[[SMALL]]]}
  %x = tile.load %q : tensor<16x!tile.ptr<f32>>
  %j = tile.range 0 to 768 : tensor<768xi32>
  %t = tile.splat %p : !tile.ptr<f32> -> tensor<768x!tile.ptr<f32>>
  %r = tile.addptr %t, %j : tensor<768x!tile.ptr<f32>>, tensor<768xi32>
  // CHECK: tile.load %{{.+}} {tilegpu.candidates = [#[[ODD]]{{.*}}]}
  %y = tile.load %r : tensor<768x!tile.ptr<f32>>
  tile.return
}

// -----

// An atomic is done element by element, but for sums of floats.
// CHECK-DAG: #[[ONE:.+]] = #tilegpu.layout<512, reg = [128, 256], lane = [1, 2, 4, 8, 16], warp = [32, 64]>
// CHECK-DAG: #[[VECTORS:.+]] = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
// CHECK-LABEL: tile.func @atomic
tile.func @atomic(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %v: f32) {
  %i = tile.range 0 to 512 : tensor<512xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %q = tile.addptr %s, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %x = tile.splat %v : f32 -> tensor<512xf32>
  // CHECK: tile.atomic_rmw fmax, relaxed, gpu, %{{.+}}, %{{.+}} {tilegpu.candidates = [#[[ONE]]{{.*}}]}
  %most = tile.atomic_rmw fmax, relaxed, gpu, %q, %x : tensor<512x!tile.ptr<f32>>, tensor<512xf32> -> tensor<512xf32>
  // CHECK: tile.atomic_rmw fadd, relaxed, gpu, %{{.+}}, %{{.+}} {tilegpu.candidates = [#[[VECTORS]]{{.*}}]}
  %old = tile.atomic_rmw fadd, relaxed, gpu, %q, %x : tensor<512x!tile.ptr<f32>>, tensor<512xf32> -> tensor<512xf32>
  tile.return
}

// -----

// What is known of pointers is known of them in another layout.
#rows = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
#spread = #tilegpu.layout<512, reg = [128, 256], lane = [1, 2, 4, 8, 16], warp = [32, 64]>
// CHECK-LABEL: tile.func @converted
tile.func @converted(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 512 : tensor<512xi32, #spread>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #spread>
  %q = tile.addptr %s, %i : tensor<512x!tile.ptr<f32>, #spread>, tensor<512xi32, #spread>
  %r = tilegpu.convert_layout %q : tensor<512x!tile.ptr<f32>, #spread> -> tensor<512x!tile.ptr<f32>, #rows>
  // CHECK: tile.load %{{.+}} {tilegpu.candidates = [#[[ROWS:.+]], {{.+}}]} : tensor<512x!tile.ptr<f32>, #[[ROWS]]>
  %x = tile.load %r : tensor<512x!tile.ptr<f32>, #rows>
  tile.return
}

// -----

// A lane reads a contiguous run of a row from shared memory, from all of it to a 32nd.
#shared = #tilegpu.layout<64, offset = [1, 2, 4, 8, 16, 32]>
#lanes = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32], warp = [0, 0]>
// CHECK-DAG: #[[WHOLE:.+]] = #tilegpu.layout<64, reg = [1, 2, 4, 8, 16, 32], lane = [0, 0, 0, 0, 0], warp = [0, 0]>
// CHECK-DAG: #[[HALF:.+]] = #tilegpu.layout<64, reg = [1, 2, 4, 8, 16], lane = [0, 0, 0, 0, 32], warp = [0, 0]>
// CHECK-LABEL: tile.func @runs
tile.func @runs(%v: f16) {
  %x = tile.splat %v : f16 -> tensor<64xf16, #lanes>
  %b = tilegpu.local_alloc %x : (tensor<64xf16, #lanes>) -> !tilegpu.memdesc<64xf16, #shared>
  // CHECK: tilegpu.local_load %{{.+}} {tilegpu.candidates = [#[[WHOLE]], #[[HALF]], {{.+}}]}
  %y = tilegpu.local_load %b : !tilegpu.memdesc<64xf16, #shared> -> tensor<64xf16, #lanes>
  tile.print "y = " : %y {hex = false, is_signed = array<i32: 1>} : tensor<64xf16, #lanes>
  tile.return
}

// -----

// An index that is divided has no stride, but each of its bits moves the address by a constant.
// Every eighth element is 32 bytes further, and its neighbours are 8 KB apart.
// CHECK: #[[DIVIDED:.+]] = #tilegpu.layout<1024, reg = [1, 2, 4], lane = [8, 16, 32, 64, 128], warp = [256, 512]>
// CHECK-LABEL: tile.func @divided
tile.func @divided(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %page: i32) {
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %c8 = arith.constant dense<8> : tensor<1024xi32>
  %c16 = arith.constant dense<16> : tensor<1024xi32>
  %c4096 = arith.constant dense<4096> : tensor<1024xi32>
  %eighth = tile.div_int signed %i, %c8 : tensor<1024xi32>
  %rest = tile.rem_int signed %i, %c8 : tensor<1024xi32>
  %near = arith.muli %eighth, %c16 : tensor<1024xi32>
  %far = arith.muli %rest, %c4096 : tensor<1024xi32>
  %place = tile.splat %page : i32 -> tensor<1024xi32>
  %both = arith.addi %far, %near : tensor<1024xi32>
  %o = arith.addi %both, %place : tensor<1024xi32>
  %s = tile.splat %p : !tile.ptr<f16> -> tensor<1024x!tile.ptr<f16>>
  %q = tile.addptr %s, %o : tensor<1024x!tile.ptr<f16>>, tensor<1024xi32>
  // CHECK: tile.load %{{.+}} {tilegpu.candidates = [#[[DIVIDED]]{{.*}}]}
  %x = tile.load %q : tensor<1024x!tile.ptr<f16>>
  tile.return
}
