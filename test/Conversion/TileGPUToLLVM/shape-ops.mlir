// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// Nothing moves, nothing is computed: registers have other names.
#rows = #tilegpu.layout<4x64, reg = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[2, 0]]>
#turned = #tilegpu.layout<64x4, reg = [[0, 1], [1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], warp = [[0, 2]]>
#flat = #tilegpu.layout<256, reg = [1, 64], lane = [2, 4, 8, 16, 32], warp = [128]>
#column = #tilegpu.layout<4, reg = [1], lane = [0, 0, 0, 0, 0], warp = [2]>
#column1 = #tilegpu.layout<4x1, reg = [[1, 0]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[2, 0]]>
#joined = #tilegpu.layout<4x64x2, reg = [[0, 0, 1], [0, 1, 0], [1, 0, 0]], lane = [[0, 2, 0], [0, 4, 0], [0, 8, 0], [0, 16, 0], [0, 32, 0]], warp = [[2, 0, 0]]>
#longer = #tilegpu.layout<8x64, reg = [[0, 1], [1, 0], [4, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[2, 0]]>
#pair = #tilegpu.layout<2, lane = [0, 1, 0, 0, 0], warp = [0]>
module attributes {tilegpu.num_warps = 2 : i32} {

// Registers are columns, then rows; in the transpose rows, then columns.
// CHECK-LABEL: llvm.func internal @trans(
// CHECK-SAME: %[[X0:.+]]: f32, %[[X1:.+]]: f32, %[[X2:.+]]: f32, %[[X3:.+]]: f32)
// CHECK: %[[S0:.+]] = llvm.insertvalue %[[X0]], %{{.+}}[0]
// CHECK: %[[S1:.+]] = llvm.insertvalue %[[X2]], %[[S0]][1]
// CHECK: %[[S2:.+]] = llvm.insertvalue %[[X1]], %[[S1]][2]
// CHECK: llvm.insertvalue %[[X3]], %[[S2]][3]
tile.func private @trans(%x: tensor<4x64xf32, #rows>) -> tensor<64x4xf32, #turned> attributes {noinline} {
  %y = tile.trans %x {order = array<i32: 1, 0>} : tensor<4x64xf32, #rows> -> tensor<64x4xf32, #turned>
  tile.return %y : tensor<64x4xf32, #turned>
}

// CHECK-LABEL: llvm.func internal @reshape(
// CHECK-SAME: %[[X0:.+]]: f32, %[[X1:.+]]: f32, %[[X2:.+]]: f32, %[[X3:.+]]: f32)
// CHECK: %[[S0:.+]] = llvm.insertvalue %[[X0]], %{{.+}}[0]
// CHECK: %[[S1:.+]] = llvm.insertvalue %[[X1]], %[[S0]][1]
// CHECK: %[[S2:.+]] = llvm.insertvalue %[[X2]], %[[S1]][2]
// CHECK: llvm.insertvalue %[[X3]], %[[S2]][3]
tile.func private @reshape(%x: tensor<4x64xf32, #rows>) -> tensor<256xf32, #flat> attributes {noinline} {
  %y = tile.reshape %x : tensor<4x64xf32, #rows> -> tensor<256xf32, #flat>
  tile.return %y : tensor<256xf32, #flat>
}

// CHECK-LABEL: llvm.func internal @broadcast(
// CHECK-SAME: %[[X0:.+]]: f32, %[[X1:.+]]: f32)
// CHECK: %[[S0:.+]] = llvm.insertvalue %[[X0]], %{{.+}}[0]
// CHECK: %[[S1:.+]] = llvm.insertvalue %[[X0]], %[[S0]][1]
// CHECK: %[[S2:.+]] = llvm.insertvalue %[[X1]], %[[S1]][2]
// CHECK: llvm.insertvalue %[[X1]], %[[S2]][3]
tile.func private @broadcast(%x: tensor<4xf32, #column>) -> tensor<4x64xf32, #rows> attributes {noinline} {
  %c = tile.expand_dims %x {axis = 1 : i32} : tensor<4xf32, #column> -> tensor<4x1xf32, #column1>
  %y = tile.broadcast %c : tensor<4x1xf32, #column1> -> tensor<4x64xf32, #rows>
  tile.return %y : tensor<4x64xf32, #rows>
}

// CHECK-LABEL: llvm.func internal @join_and_split(
// CHECK-SAME: %[[X0:[^:]+]]: f32, %{{[^:]+}}: f32, %{{[^:]+}}: f32, %{{[^:]+}}: f32, %[[Y0:[^:]+]]: f32,
// CHECK: %[[S0:.+]] = llvm.insertvalue %[[Y0]], %{{.+}}[0]
// CHECK: llvm.insertvalue %[[X0]], %{{.+}}[4]
tile.func private @join_and_split(%x: tensor<4x64xf32, #rows>, %y: tensor<4x64xf32, #rows>) -> (tensor<4x64xf32, #rows>, tensor<4x64xf32, #rows>) attributes {noinline} {
  %j = tile.join %x, %y : tensor<4x64xf32, #rows> -> tensor<4x64x2xf32, #joined>
  %a, %b = tile.split %j : tensor<4x64x2xf32, #joined> -> tensor<4x64xf32, #rows>
  tile.return %b, %a : tensor<4x64xf32, #rows>, tensor<4x64xf32, #rows>
}

// CHECK-LABEL: llvm.func internal @cat(
// CHECK-SAME: %[[X0:[^:]+]]: f32, %{{[^:]+}}: f32, %{{[^:]+}}: f32, %[[X3:[^:]+]]: f32, %[[Y0:[^:]+]]: f32,
// CHECK: %[[S0:.+]] = llvm.insertvalue %[[X0]], %{{.+}}[0]
// CHECK: %[[S3:.+]] = llvm.insertvalue %[[X3]], %{{.+}}[3]
// CHECK: llvm.insertvalue %[[Y0]], %[[S3]][4]
tile.func private @cat(%x: tensor<4x64xf32, #rows>, %y: tensor<4x64xf32, #rows>) -> tensor<8x64xf32, #longer> attributes {noinline} {
  %c = tile.cat %x, %y {axis = 0 : i32} : tensor<4x64xf32, #rows> -> tensor<8x64xf32, #longer>
  tile.return %c : tensor<8x64xf32, #longer>
}

// Scalars are everywhere: the lane chooses.
// CHECK-LABEL: llvm.func internal @join_scalars(
// CHECK-SAME: %[[X:.+]]: f32, %[[Y:.+]]: f32) -> f32
// CHECK: %[[FIRST:.+]] = llvm.icmp "eq"
// CHECK: llvm.select %[[FIRST]], %[[X]], %[[Y]]
tile.func private @join_scalars(%x: f32, %y: f32) -> tensor<2xf32, #pair> attributes {noinline} {
  %j = tile.join %x, %y : f32 -> tensor<2xf32, #pair>
  tile.return %j : tensor<2xf32, #pair>
}
}
