// RUN: tessera-opt --test-replication --verify-diagnostics %s -o /dev/null

#each = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#sums = #tilegpu.layout<8, reg = [1, 2], lane = [4, 0, 0, 0, 0], warp = [0, 0]>
#whole = #tilegpu.layout<128, lane = [1, 2, 4, 8, 16], warp = [32, 64]>
#registers = #tilegpu.layout<64, reg = [32], lane = [1, 2, 4, 8, 16], warp = [0, 0]>

module attributes {tilegpu.num_warps = 4 : i32} {

// What a callee holds is as much copied as what its caller holds.
tile.func private @callee(%x: tensor<32x8xf32, #each>) -> tensor<8xf32, #sums> attributes {noinline} {
  // Bits 1 to 4 of the lane and both of the warp.
  // expected-remark @below {{64 copies, of threads that differ in 7E of 7F}}
  %s = tile.reduce (%x) {axis = 0 : i32, test.report} : (tensor<32x8xf32, #each>) -> tensor<8xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s : tensor<8xf32, #sums>
}

tile.func @kernel(%p: !tile.ptr<f32>, %one: f32) {
  // The second bit of the warp alone.
  // expected-remark @below {{2 copies, of threads that differ in 40 of 7F}}
  %x = tile.splat %one {test.report} : f32 -> tensor<32x8xf32, #each>
  // expected-remark @below {{64 copies, of threads that differ in 7E of 7F}}
  %s = tile.call @callee(%x) {test.report} : (tensor<32x8xf32, #each>) -> tensor<8xf32, #sums>
  // expected-remark @below {{1 copies}}
  %w = tile.range 0 to 128 {test.report} : tensor<128xi32, #whole>
  // Each warp holds all, two elements a thread.
  // expected-remark @below {{4 copies, of threads that differ in 60 of 7F}}
  %r = tile.range 0 to 64 {test.report} : tensor<64xi32, #registers>
  // All have a scalar.
  // expected-remark @below {{128 copies, of threads that differ in 7F of 7F}}
  %v = tile.load %p {test.report} : !tile.ptr<f32>
  tile.return
}
}
