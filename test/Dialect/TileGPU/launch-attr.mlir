// RUN: tessera-opt %s --split-input-file | FileCheck %s

// CHECK: tilegpu.launch = #tilegpu.launch<>
module attributes {tilegpu.launch = #tilegpu.launch<>} {}

// -----

// CHECK: #[[CONDITIONS:.+]] = affine_map<()[s0, s1] -> (s1 - 1)>
// CHECK: tilegpu.launch = #tilegpu.launch<maps = [#tilegpu.tensor_map<base = 0,
// CHECK-SAME: conditions = #[[CONDITIONS]],
// CHECK-SAME: bounds = ["i32:1"]
// CHECK-SAME: apart = {{\[}}[{argument = 0 : i64}, {argument = 1 : i64}]]
// CHECK-SAME: most_programs = 64, persistent_programs = 2
// CHECK-SAME: sum = <"i32:5", lower = 0,
// CHECK-SAME: pair_cycles = 12, tables = [0, 300]>
module attributes {tilegpu.launch = #tilegpu.launch<
    maps = [#tilegpu.tensor_map<base = 0, element = f32, extents = ()[s0] -> (1, 32), strides = ()[s0] -> (s0, 1), box = [1, 32], swizzle = 0>],
    conditions = affine_map<()[s0, s1] -> (s1 - 1)>, bounds = ["i32:1"],
    apart = [[{argument = 0}, {argument = 1}]], most_programs = 64, persistent_programs = 2,
    sum = <"i32:5", lower = 0, step = 64, iteration = 256, busy = 300, meet = 1256, wait = 1437, exchange = 1024>,
    pair_cycles = 12, tables = [0, 300]>} {}
