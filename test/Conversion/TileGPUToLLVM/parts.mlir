// RUN: tessera-opt --split-input-file --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// Parts of buffers, and dots of what is in registers already: no store, no barrier.
#a = #tilegpu.layout<16x2, reg = [[0, 1], [4, 0], [8, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]]>
#b = #tilegpu.layout<2x16, reg = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 0], [0, 0]]>
#acc = #tilegpu.layout<16x16, reg = [[0, 1], [4, 0], [8, 0]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]]>
#rows = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<8x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: llvm.func internal @known(
// CHECK-NOT: llvm.store
// CHECK-NOT: barrier
// CHECK: %[[FROM:.+]] = llvm.getelementptr %{{.+}}[24] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
// CHECK: llvm.load %[[FROM]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK-COUNT-3: llvm.load {{.+}} -> vector<2xi32>
// CHECK: llvm.getelementptr %{{.+}}[384]
// CHECK-COUNT-2: llvm.load {{.+}} -> vector<2xi32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-16: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: llvm.return
tile.func private @known(%x: !tilegpu.memdesc<16x8xf32, #rows>, %y: !tilegpu.memdesc<8x16xf32, #columns>, %c: tensor<16x16xf32, #acc>) -> tensor<16x16xf32, #acc> attributes {noinline} {
  %k = arith.constant 6 : i32
  %a = tilegpu.local_load %x from %k along 1 : !tilegpu.memdesc<16x8xf32, #rows> -> tensor<16x2xf32, #a>
  %b = tilegpu.local_load %y from %k along 0 : !tilegpu.memdesc<8x16xf32, #columns> -> tensor<2x16xf32, #b>
  %d = tile.dot %a, %b, %c {precision = 1 : i32} : tensor<16x2xf32, #a>, tensor<2x16xf32, #b> -> tensor<16x16xf32, #acc>
  tile.return %d : tensor<16x16xf32, #acc>
}

// CHECK-LABEL: llvm.func internal @computed(
// CHECK-SAME: %{{.+}}: !llvm.ptr<3>, %[[K:.+]]: i32)
// CHECK: llvm.lshr %[[K]], %{{.+}} : i32
// CHECK-COUNT-4: llvm.load {{.+}} -> vector<2xi32>
tile.func private @computed(%x: !tilegpu.memdesc<16x8xf32, #rows>, %k: i32) -> tensor<16x2xf32, #a> attributes {noinline} {
  %a = tilegpu.local_load %x from %k along 1 : !tilegpu.memdesc<16x8xf32, #rows> -> tensor<16x2xf32, #a>
  tile.return %a : tensor<16x2xf32, #a>
}
}

// -----

// What ldmatrix reads may be a part, too.
#left = #tilegpu.layout<16x16, reg = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#swizzled = #tilegpu.layout<16x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: llvm.func internal @matrix(
// CHECK: %[[OFFSET:.+]] = llvm.mlir.constant(96 : i32) : i32
// CHECK: llvm.xor %{{.+}}, %[[OFFSET]] : i32
// CHECK: nvvm.ldmatrix {{.+}}num = 4 : i32
tile.func private @matrix(%x: !tilegpu.memdesc<16x64xf16, #swizzled>) -> tensor<16x16xf16, #left> attributes {noinline} {
  %k = arith.constant 48 : i32
  %a = tilegpu.local_load %x from %k along 1 : !tilegpu.memdesc<16x64xf16, #swizzled> -> tensor<16x16xf16, #left>
  tile.return %a : tensor<16x16xf16, #left>
}
}
