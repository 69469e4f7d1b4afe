// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{a ring has 1 to 64 slots, not 0}}
module attributes {test.a = #tilegpu.channel<0, copy = tma>} {}

// -----

// expected-error @below {{unknown word 'tmb'}}
module attributes {test.a = #tilegpu.channel<0, slots = 2, copy = tmb>} {}

// -----

// expected-error @below {{nothing is called 'depth' here}}
module attributes {test.a = #tilegpu.channel<0, depth = 2>} {}

// -----

// expected-error @below {{slots is given twice}}
module attributes {test.a = #tilegpu.channel<0, slots = 2, slots = 3>} {}

// -----

// expected-error @below {{two channels have number 1}}
module attributes {test.a = #tilegpu.schedule<channels = [<1, slots = 2, copy = tma>, <1, slots = 2, copy = tma>]>} {}

// -----

// expected-error @below {{a copy has a channel}}
module attributes {test.a = #tilegpu.node<copy, stage = -1>} {}

// -----

// expected-error @below {{only a copy has a channel}}
module attributes {test.a = #tilegpu.node<mma, channel = 0>} {}

// -----

// expected-error @below {{only a copy has a tile, which is a buffer's type}}
module attributes {test.a = #tilegpu.node<copy, channel = 0, tile = i32>} {}

// -----

// expected-error @below {{the producer runs copies alone}}
module attributes {test.a = #tilegpu.node<mma, warps = producer>} {}

// -----

// expected-error @below {{an MMA with a wait is in flight for one more iteration at most, and nothing else is}}
module attributes {test.a = #tilegpu.node<mma, in_flight = 1>} {}

// -----

// expected-error @below {{an MMA with a wait is in flight for one more iteration at most, and nothing else is}}
module attributes {test.a = #tilegpu.node<mma, wait = 1, in_flight = 2>} {}

// -----

// expected-error @below {{only an MMA or a copy is waited for}}
module attributes {test.a = #tilegpu.node<vector, wait = 1>} {}

// -----

// expected-error @below {{orders are counted from 0}}
module attributes {test.a = #tilegpu.node<vector, order = -1>} {}

// -----

// expected-error @below {{without producer warps nothing is persistent, and no warps exchange registers}}
module attributes {test.a = #tilegpu.kernel_schedule<persistent>} {}

// -----

// expected-error @below {{registers are given for both kinds of warps or for neither}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 4, registers = [0, 40]>} {}

// -----

// expected-error @below {{an SM has room for one program at least}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, occupancy = 0>} {}

// -----

// expected-error @below {{a producer's copies alone are multicast}}
module attributes {test.a = #tilegpu.node<copy, stage = -1, channel = 0, multicast>} {}

// -----

// expected-error @below {{only an MMA of stage 0 that nobody waits for elsewhere has slices}}
module attributes {test.a = #tilegpu.node<vector, slices = 2>} {}

// -----

// expected-error @below {{only an MMA of stage 0 that nobody waits for elsewhere has slices}}
module attributes {test.a = #tilegpu.node<mma, wait = 1, slices = 2>} {}

// -----

// expected-error @below {{only an MMA of stage 0 that nobody waits for elsewhere has slices}}
module attributes {test.a = #tilegpu.node<mma, stage = 1, slices = 2>} {}

// -----

// expected-error @below {{there are 3 slices, which is no power of two}}
module attributes {test.a = #tilegpu.node<mma, slices = 3>} {}

// -----

// expected-error @below {{of an MMA with slices one comes ahead at most, and of nothing else}}
module attributes {test.a = #tilegpu.node<mma, ahead = 1>} {}

// -----

// expected-error @below {{of an MMA with slices one comes ahead at most, and of nothing else}}
module attributes {test.a = #tilegpu.node<mma, slices = 4, ahead = 2>} {}

// -----

// expected-error @below {{programs of a kernel that is not persistent come in the grid's order}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, order = reversed>} {}

// -----

// expected-error @below {{programs of a kernel that is not persistent come in the grid's order}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, group = 8>} {}

// -----

// expected-error @below {{a group has 1 to 1024 programs along axis 0, not 0}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, group = 0>} {}

// -----

// expected-error @below {{a group has 1 to 1024 programs along axis 0, not 2048}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, group = 2048>} {}

// -----

// expected-error @below {{a balanced order of programs has groups of its own}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = balanced, group = 8>} {}

// -----

// expected-error @below {{unknown word 'random'}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = random>} {}

// -----

// expected-error @below {{the channels of a kernel are filled by producer warps, by TMA}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 0, channels = [<1, slots = 1, copy = tma>]>} {}

// -----

// expected-error @below {{the channels of a kernel are filled by producer warps, by TMA}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = cp_async>]>} {}

// -----

// expected-error @below {{two channels have number 1}}
module attributes {test.a = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>, <1, slots = 1, copy = tma>]>} {}
