// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{a ring has 1 to 64 slots, not 0}}
module attributes {test.a = #tilegpu.channel<0, copy = tma>} {}

// -----

// expected-error @below {{unknown word 'tmb'}}
module attributes {test.a = #tilegpu.channel<0, slots = 2, copy = tmb>} {}

// -----

// expected-error @below {{no entry is called 'depth' here}}
module attributes {test.a = #tilegpu.channel<0, depth = 2>} {}

// -----

// expected-error @below {{slots is given twice}}
module attributes {test.a = #tilegpu.channel<0, slots = 2, slots = 3>} {}

// -----

// expected-error @below {{two channels have number 1}}
module attributes {test.a = #tilegpu.schedule<channels = [<1, slots = 2, copy = tma>, <1, slots = 2, copy = tma>]>} {}

// -----

// expected-error @below {{a copy needs a channel}}
module attributes {test.a = #tilegpu.node<copy, stage = -1>} {}

// -----

// expected-error @below {{only a copy has a channel}}
module attributes {test.a = #tilegpu.node<mma, channel = 0>} {}

// -----

// expected-error @below {{only a copy has a tile, whose type is a buffer's}}
module attributes {test.a = #tilegpu.node<copy, channel = 0, tile = i32>} {}

// -----

// expected-error @below {{a producer runs copies only}}
module attributes {test.a = #tilegpu.node<mma, warps = producer>} {}

// -----

// expected-error @below {{only an MMA with a wait is in flight past its iteration, and at most one iteration longer}}
module attributes {test.a = #tilegpu.node<mma, in_flight = 1>} {}

// -----

// expected-error @below {{only an MMA with a wait is in flight past its iteration, and at most one iteration longer}}
module attributes {test.a = #tilegpu.node<mma, wait = 1, in_flight = 2>} {}

// -----

// expected-error @below {{only an MMA or a copy is waited for}}
module attributes {test.a = #tilegpu.node<vector, wait = 1>} {}

// -----

// expected-error @below {{an order is at least 0}}
module attributes {test.a = #tilegpu.node<vector, order = -1>} {}

// -----

// expected-error @below {{only a kernel with producer warps is persistent, or exchanges registers between warps}}
module attributes {test.a = #tilegpu.kernel_schedule<persistent>} {}

// -----

// expected-error @below {{registers are given for the program and each producer or for none}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 4, registers = [0, 40]>} {}

// -----

// expected-error @below {{an SM runs at least one program}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, occupancy = 0>} {}

// -----

// expected-error @below {{only copies of a producer are multicast}}
module attributes {test.a = #tilegpu.node<copy, stage = -1, channel = 0, multicast>} {}

// -----

// expected-error @below {{only an MMA of stage 0 without a wait has slices}}
module attributes {test.a = #tilegpu.node<vector, slices = 2>} {}

// -----

// expected-error @below {{only an MMA of stage 0 without a wait has slices}}
module attributes {test.a = #tilegpu.node<mma, wait = 1, slices = 2>} {}

// -----

// expected-error @below {{only an MMA of stage 0 without a wait has slices}}
module attributes {test.a = #tilegpu.node<mma, stage = 1, slices = 2>} {}

// -----

// expected-error @below {{there are 3 slices, which is not a power of two}}
module attributes {test.a = #tilegpu.node<mma, slices = 3>} {}

// -----

// expected-error @below {{only an MMA with slices has a slice ahead, and at most one}}
module attributes {test.a = #tilegpu.node<mma, ahead = 1>} {}

// -----

// expected-error @below {{only an MMA with slices has a slice ahead, and at most one}}
module attributes {test.a = #tilegpu.node<mma, slices = 4, ahead = 2>} {}

// -----

// expected-error @below {{a kernel that is not persistent has the grid's order of programs}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, order = reversed>} {}

// -----

// expected-error @below {{a kernel that is not persistent has the grid's order of programs}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, group = 8>} {}

// -----

// expected-error @below {{a group has 1 to 1024 programs along axis 0, not 0}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, group = 0>} {}

// -----

// expected-error @below {{a group has 1 to 1024 programs along axis 0, not 2048}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, group = 2048>} {}

// -----

// expected-error @below {{a balanced order of programs has no given group}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = balanced, group = 8>} {}

// -----

// expected-error @below {{unknown word 'random'}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = random>} {}

// -----

// expected-error @below {{only producer warps fill the channels of a kernel, by TMA}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 0, channels = [<1, slots = 1, copy = tma>]>} {}

// -----

// expected-error @below {{only producer warps fill the channels of a kernel, by TMA}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = cp_async>]>} {}

// -----

// expected-error @below {{two channels have number 1}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>, <1, slots = 1, copy = tma>]>} {}

// -----

// expected-error @below {{registers are given for the program and each producer or for none}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = [4, 4], registers = [208, 24]>} {}

// -----

// expected-error @below {{each producer has at least one warp}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = [4, 0]>} {}

// -----

// expected-error @below {{expected 'producer'}}
module attributes {test.a = #tilegpu.node<copy, channel = 0, warps = program>} {}

// -----

// expected-error @below {{the number of a channel is above 65535: 4294967295}}
module attributes {test.a = #tilegpu.schedule<channels = [<-1, slots = 3, copy = cp_async>]>} {}
