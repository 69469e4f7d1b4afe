// RUN: tessera-opt %s | tessera-opt | FileCheck %s

#m = #tilegpu.layout<8x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK: #tilegpu.channel<0, slots = 4, copy = cp_async>
// CHECK-SAME: #tilegpu.channel<7, slots = 1, copy = tma>
// CHECK-SAME: #tilegpu.channel<1, slots = 2, copy = threads>
tile.func @k1() attributes {test.channels = [#tilegpu.channel<0, slots = 4, copy = cp_async>, #tilegpu.channel<7, copy = tma, slots = 1>, #tilegpu.channel<1, slots = 2, copy = threads>]} {
  tile.return
}

// CHECK: #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>, <1, slots = 2, copy = tma>], ping_pong>
// CHECK-SAME: #tilegpu.schedule<channels = [], ping_pong, cycles = 4294967297>
// CHECK-SAME: #tilegpu.schedule<channels = []>
tile.func @k2() attributes {test.schedules = [
    #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>, <1, slots = 2, copy = tma>], ping_pong>,
    #tilegpu.schedule<cycles = 4294967297, ping_pong>,
    #tilegpu.schedule<>]} {
  tile.return
}

// CHECK: #tilegpu.node<copy, stage = -3, channel = 0>
// CHECK-SAME: #tilegpu.node<copy, wait = 2, channel = 1, warps = producer>
// CHECK-SAME: #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<8x8xf16, #{{.+}}>>
// CHECK-SAME: #tilegpu.node<copy, channel = 0, warps = producer, multicast>
// CHECK-SAME: #tilegpu.node<mma, stage = 1, order = 1, wait = 2, in_flight = 1>
// CHECK-SAME: #tilegpu.node<copy, channel = 3, warps = producer[2]>
// CHECK-SAME: #tilegpu.node<copy, channel = 3, warps = producer>
// CHECK-SAME: #tilegpu.node<vector>
// CHECK-SAME: #tilegpu.node<store, order = 3>
// CHECK-SAME: #tilegpu.node<mma, order = 1, slices = 4>
// CHECK-SAME: #tilegpu.node<mma, slices = 8, ahead = 1>
tile.func @k3() attributes {test.nodes = [
    #tilegpu.node<copy, channel = 0, stage = -3>,
    #tilegpu.node<copy, wait = 2, channel = 1, warps = producer>,
    #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<8x8xf16, #m>>,
    #tilegpu.node<copy, multicast, channel = 0, warps = producer>,
    #tilegpu.node<mma, stage = 1, order = 1, wait = 2, in_flight = 1>,
    #tilegpu.node<copy, channel = 3, warps = producer[2]>,
    #tilegpu.node<copy, channel = 3, warps = producer[0]>,
    #tilegpu.node<vector>,
    #tilegpu.node<store, order = 3>,
    #tilegpu.node<mma, slices = 4, ahead = 0, order = 1>,
    #tilegpu.node<mma, slices = 8, ahead = 1>]} {
  tile.return
}

// CHECK: #tilegpu.kernel_schedule<producer_warps = 4, registers = [240, 40], occupancy = 2, persistent>
// CHECK-SAME: #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = reversed, group = 8>
// CHECK-SAME: #tilegpu.kernel_schedule<producer_warps = 1, persistent>
// CHECK-SAME: #tilegpu.kernel_schedule<producer_warps = 1, persistent, group = 4, channels = [<2, slots = 1, copy = tma>, <3, slots = 2, copy = tma>]>
// CHECK-SAME: #tilegpu.kernel_schedule<producer_warps = 4, persistent, order = balanced>
// CHECK-SAME: #tilegpu.kernel_schedule<producer_warps = 0>
tile.func @k4() attributes {test.kernels = [
    #tilegpu.kernel_schedule<producer_warps = 4, registers = [240, 40], occupancy = 2, persistent>,
    #tilegpu.kernel_schedule<group = 8, producer_warps = 1, persistent, order = reversed>,
    #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = grid>,
    #tilegpu.kernel_schedule<producer_warps = 1, persistent, channels = [<2, slots = 1, copy = tma>, <3, slots = 2, copy = tma>], group = 4>,
    #tilegpu.kernel_schedule<producer_warps = 4, persistent, order = balanced>,
    #tilegpu.kernel_schedule<>]} {
  tile.return
}
}
