// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// A thread has 2x2 of the accumulator: two elements of each operand a step along k, four
// products. Four steps are loaded at once, and while they are multiplied, the next four.
#a = #tilegpu.layout<16x8, reg = [[1, 0]], lane = [[0, 1], [0, 2], [0, 4], [2, 0], [4, 0]], warp = [[8, 0]]>
#b = #tilegpu.layout<8x16, reg = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0]]>
#acc = #tilegpu.layout<16x16, reg = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]], warp = [[8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @f32(
// CHECK-COUNT-2: llvm.store {{.*}} : vector<2xi32>, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: scf.for {{.+}} iter_args({{%arg[0-9]+ = %arg[0-9]+, %arg[0-9]+ = %arg[0-9]+, %arg[0-9]+ = %arg[0-9]+, %arg[0-9]+ = %arg[0-9]+, }}%[[ROW:arg[0-9]+]] =
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.intr.fma(%[[ROW]],
// CHECK-COUNT-15: llvm.intr.fma
// CHECK: scf.yield
tile.func private @f32(%a: tensor<16x8xf32, #a>, %b: tensor<8x16xf32, #b>, %c: tensor<16x16xf32, #acc>) -> tensor<16x16xf32, #acc> attributes {noinline} {
  %d = tile.dot %a, %b, %c : tensor<16x8xf32, #a>, tensor<8x16xf32, #b> -> tensor<16x16xf32, #acc>
  tile.return %d : tensor<16x16xf32, #acc>
}

// Exact products of f16 summed in f32, rounded once.
// CHECK-LABEL: llvm.func internal @f16(
// CHECK: llvm.fpext %{{.+}} : f16 to f32
// CHECK: scf.for
// CHECK: llvm.fpext %{{.+}} : f16 to f32
// CHECK: llvm.intr.fma
// CHECK: scf.yield
// CHECK-COUNT-4: llvm.fptrunc %{{.+}} : f32 to f16
tile.func private @f16(%a: tensor<16x8xf16, #a>, %b: tensor<8x16xf16, #b>, %c: tensor<16x16xf16, #acc>) -> tensor<16x16xf16, #acc> attributes {noinline} {
  %d = tile.dot %a, %b, %c : tensor<16x8xf16, #a>, tensor<8x16xf16, #b> -> tensor<16x16xf16, #acc>
  tile.return %d : tensor<16x16xf16, #acc>
}

// CHECK-LABEL: llvm.func internal @i8(
// CHECK: scf.for
// CHECK: llvm.sext %{{.+}} : i8 to i32
// CHECK: llvm.mul
// CHECK: llvm.add
tile.func private @i8(%a: tensor<16x8xi8, #a>, %b: tensor<8x16xi8, #b>, %c: tensor<16x16xi32, #acc>) -> tensor<16x16xi32, #acc> attributes {noinline} {
  %d = tile.dot %a, %b, %c : tensor<16x8xi8, #a>, tensor<8x16xi8, #b> -> tensor<16x16xi32, #acc>
  tile.return %d : tensor<16x16xi32, #acc>
}
}

// -----

// Operands of 128 KiB each come in pieces of k: 256 KiB in eight of 32. Which piece a
// thread's registers are of depends on its lane and warp for a, and on
// the register's name for b.
#a = #tilegpu.layout<128x128, reg = [[0, 1], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [64, 0]], warp = [[0, 64]]>
#b = #tilegpu.layout<128x128, reg = [[0, 1], [0, 64], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0]]>
#acc = #tilegpu.layout<128x128, reg = [[0, 1], [0, 16], [0, 32], [0, 64], [1, 0], [16, 0], [32, 0], [64, 0]], lane = [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]], warp = [[8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK: tilegpu.shared_bytes = 32768 : i32
// CHECK-LABEL: llvm.func internal @pieces(
// CHECK: %[[OF_LANE:.+]] = llvm.icmp "eq" %[[LANE:.+]], %{{.+}} : i32
// CHECK: %[[OF_WARP:.+]] = llvm.icmp "eq" %[[BIT:.+]], %{{.+}} : i32
// CHECK: %[[LOWER:.+]] = llvm.and %[[OF_LANE]], %[[OF_WARP]] : i1
// CHECK-NOT: nvvm.barrier
// CHECK: scf.if %[[LOWER]]
// CHECK: nvvm.barrier
// CHECK: scf.for
// CHECK: nvvm.barrier
// CHECK: llvm.icmp "eq" %[[LANE]]
// CHECK: scf.if
tile.func private @pieces(%a: tensor<128x128xf64, #a>, %b: tensor<128x128xf64, #b>, %c: tensor<128x128xf64, #acc>) -> tensor<128x128xf64, #acc> attributes {noinline} {
  %d = tile.dot %a, %b, %c : tensor<128x128xf64, #a>, tensor<128x128xf64, #b> -> tensor<128x128xf64, #acc>
  tile.return %d : tensor<128x128xf64, #acc>
}
}

// -----

// Deterministic: each product and each sum is rounded, by increasing k.
#a = #tilegpu.layout<16x8, reg = [[1, 0]], lane = [[0, 1], [0, 2], [0, 4], [2, 0], [4, 0]], warp = [[8, 0]]>
#b = #tilegpu.layout<8x16, reg = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0]]>
#acc = #tilegpu.layout<16x16, reg = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]], warp = [[8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.deterministic} {
// CHECK-LABEL: llvm.func internal @deterministic(
// CHECK: scf.for
// CHECK-NOT: llvm.intr.fma
// CHECK: %[[P:.+]] = llvm.fmul
// CHECK: llvm.fadd %{{.+}}, %[[P]]
tile.func private @deterministic(%a: tensor<16x8xf32, #a>, %b: tensor<8x16xf32, #b>, %c: tensor<16x16xf32, #acc>) -> tensor<16x16xf32, #acc> attributes {noinline} {
  %d = tile.dot %a, %b, %c : tensor<16x8xf32, #a>, tensor<8x16xf32, #b> -> tensor<16x16xf32, #acc>
  tile.return %d : tensor<16x16xf32, #acc>
}
}

// -----

// Two e2m1 a byte along k for b; each scale is an exponent for 32 neighbours along k.
#a = #tilegpu.layout<8x64, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [0, 32], [1, 0], [2, 0], [4, 0]]>
#b = #tilegpu.layout<32x8, reg = [[4, 0], [8, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]>
#scales = #tilegpu.layout<8x2, lane = [[0, 1], [1, 0], [2, 0], [4, 0], [0, 0]]>
#acc = #tilegpu.layout<8x8, reg = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
module attributes {tilegpu.num_warps = 1 : i32} {
// CHECK-LABEL: llvm.func internal @scaled(
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.for
// CHECK: llvm.fpext %{{.+}} : f16 to f32
// CHECK: llvm.load %{{.+}} : !llvm.ptr<3> -> i8
// CHECK: llvm.fmul
// CHECK: scf.yield
tile.func private @scaled(%a: tensor<8x64xf16, #a>, %sa: tensor<8x2xi8, #scales>, %b: tensor<32x8xi8, #b>, %c: tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc> attributes {noinline} {
  %d = tile.dot_scaled %a scale %sa as fp16, %b as e2m1, %c : tensor<8x64xf16, #a> scale tensor<8x2xi8, #scales>, tensor<32x8xi8, #b> -> tensor<8x8xf32, #acc>
  tile.return %d : tensor<8x8xf32, #acc>
}
}
