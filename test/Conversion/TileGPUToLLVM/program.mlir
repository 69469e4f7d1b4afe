// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline --cse | FileCheck %s

// A program is a block of 32 threads a warp; a flag comes as a byte.

// CHECK: llvm.mlir.global external @tessera_shared() {addr_space = 3 : i32, alignment = 1024 : i64
// CHECK-LABEL: llvm.func @ids
// CHECK-SAME: (%{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[BYTE:.*]]: i8)
// CHECK-SAME: attributes {nvvm.kernel, nvvm.minctasm = 3 : i32, nvvm.reqntid = array<i32: 128, 1, 1>}
// CHECK-DAG: %[[FLAG:.*]] = llvm.icmp "ne" %[[BYTE]], %{{.*}} : i8
// CHECK-DAG: %[[PID:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK-DAG: %[[GRID:.*]] = nvvm.read.ptx.sreg.nctaid.z : i32
// CHECK: %[[SUM:.*]] = llvm.add %[[PID]], %[[GRID]] : i32
// CHECK: llvm.icmp "sgt" %[[SUM]]
// CHECK: llvm.intr.assume
// CHECK: scf.if %[[FLAG]] {
// CHECK: nvvm.barrier0
module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @ids(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %flag: i1) attributes {tilegpu.occupancy = 3 : i32} {
    %0 = tile.program_id 0
    %1 = tile.num_programs 2
    %2 = arith.addi %0, %1 : i32
    %3 = arith.cmpi sgt, %2, %0 : i32
    tile.assume %3
    scf.if %flag {
      tile.barrier
    }
    tile.return
  }
}

// -----

// A tile goes through calls and loops a register at a time.

#l = #tilegpu.layout<256, reg = [1], lane = [2, 4, 8, 16, 32], warp = [64, 128]>

// CHECK-LABEL: llvm.func internal @twice
// CHECK-SAME: (%[[A:.*]]: i32, %[[B:.*]]: i32) -> !llvm.struct<(i32, i32)> attributes {no_inline}
// CHECK-DAG: llvm.add %[[A]], %[[A]]
// CHECK-DAG: llvm.add %[[B]], %[[B]]
// CHECK: llvm.insertvalue
// CHECK: llvm.return %{{.*}} : !llvm.struct<(i32, i32)>

// CHECK-LABEL: llvm.func @loop
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK: %[[FIRST:.*]] = llvm.add %{{.*}}, %{{.*}} : i32
// CHECK: %[[SECOND:.*]] = llvm.add %[[FIRST]], %{{.*}} : i32
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %[[FIRST]], %[[Y:.*]] = %[[SECOND]]) -> (i32, i32)
// CHECK: %[[CALL:.*]] = llvm.call @twice(%[[X]], %[[Y]])
// CHECK: %[[R0:.*]] = llvm.extractvalue %[[CALL]][0]
// CHECK: %[[R1:.*]] = llvm.extractvalue %[[CALL]][1]
// CHECK: scf.yield %[[R0]], %[[R1]] : i32, i32
module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func private @twice(%x: tensor<256xi32, #l>) -> tensor<256xi32, #l> attributes {noinline} {
    %0 = arith.addi %x, %x : tensor<256xi32, #l>
    tile.return %0 : tensor<256xi32, #l>
  }
  tile.func @loop(%n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = tile.range 5 to 261 : tensor<256xi32, #l>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %0) -> tensor<256xi32, #l> : i32 {
      %1 = tile.call @twice(%a) : (tensor<256xi32, #l>) -> tensor<256xi32, #l>
      scf.yield %1 : tensor<256xi32, #l>
    }
    tile.return
  }
}

// -----

// The time: that of one thread is the program's.

// CHECK-LABEL: llvm.func @clock
// CHECK: %[[TIME:.*]] = llvm.inline_asm has_side_effects {{.*}} "mov.u64 $0, %globaltimer;", "=l" : () -> i64
// CHECK: llvm.store %[[TIME]]
// CHECK: nvvm.barrier0
// CHECK: %[[OF_ONE:.*]] = llvm.load
// CHECK: %[[AGAIN:.*]] = llvm.inline_asm has_side_effects {{.*}} "mov.u64 $0, %globaltimer;", "=l" : () -> i64
module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @clock(%p: !tile.ptr<i64>) {
    %0 = tile.clock {tilegpu.scratch_offset = 0 : i32}
    %1 = tile.clock {tilegpu.scratch_offset = 8 : i32}
    %2 = arith.subi %1, %0 : i64
    tile.store %p, %2 : !tile.ptr<i64>
    tile.return
  }
}

// -----

// Along an axis that is reversed, the last block does the first program; what is printed says so, too.

// CHECK-LABEL: llvm.func @reversed
// CHECK-DAG: %[[MINUS:.*]] = llvm.mlir.constant(-1 : i32)
// CHECK-DAG: %[[X:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK-DAG: %[[Y:.*]] = nvvm.read.ptx.sreg.ctaid.y
// CHECK-DAG: %[[PROGRAMS:.*]] = nvvm.read.ptx.sreg.nctaid.y
// CHECK: %[[LAST:.*]] = llvm.add %[[PROGRAMS]], %[[MINUS]]
// CHECK: %[[J:.*]] = llvm.sub %[[LAST]], %[[Y]]
// CHECK: llvm.icmp "sgt" %[[X]], %[[J]]
module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @reversed(%p: !tile.ptr<f32>) attributes {tilegpu.reversed_axes = array<i32: 1>} {
    %i = tile.program_id 0
    %j = tile.program_id 1
    %later = arith.cmpi sgt, %i, %j : i32
    tile.assume %later
    tile.return
  }
}

// -----

// In groups of a power of two of rows with up to 2^8 programs, where 132 SMs have 264 at once. No
// number is divided.

// CHECK-LABEL: llvm.func @grouped
// CHECK-NOT: llvm.udiv
// CHECK-NOT: llvm.urem
// CHECK-DAG: %[[SLOTS:.*]] = llvm.mlir.constant(8 : i32)
// CHECK-DAG: %[[WIDTH:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK-DAG: %[[HEIGHT:.*]] = nvvm.read.ptx.sreg.nctaid.y
// CHECK-DAG: %[[ROW:.*]] = nvvm.read.ptx.sreg.ctaid.y
// CHECK-DAG: "llvm.intr.ctlz"(%[[WIDTH]])
// CHECK: %[[FREE:.*]] = llvm.sub %[[SLOTS]], %{{.*}}
// CHECK: %[[MOST:.*]] = llvm.intr.smax(%[[FREE]], %{{.*}})
// CHECK: %[[FROM_LAST:.*]] = llvm.sub %{{.*}}, %[[ROW]]
// CHECK: %[[DIFFERENT:.*]] = llvm.xor %[[FROM_LAST]], %[[HEIGHT]]
// CHECK: "llvm.intr.ctlz"(%[[DIFFERENT]])
// CHECK: %[[BITS:.*]] = llvm.intr.smin(%[[MOST]], %{{.*}})
// CHECK: %[[IN_ROW:.*]] = llvm.lshr %[[IN_GROUP:.*]], %[[BITS]]
// CHECK: llvm.and %[[IN_GROUP]], %{{.*}}
// CHECK: llvm.sub %{{.*}}, %[[IN_ROW]]
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  tile.func @grouped(%p: !tile.ptr<i32>) attributes {tilegpu.occupancy = 2 : i32, tilegpu.grouped_rows, tilegpu.reversed_axes = array<i32: 0>} {
    %i = tile.program_id 0
    %j = tile.program_id 1
    %k = tile.program_id 2
    %a = arith.addi %i, %j : i32
    %b = arith.addi %a, %k : i32
    tile.store %p, %b : !tile.ptr<i32>
    tile.return
  }
}

// -----

// A program with a dot takes long. Its groups have the fewest rows, of a power of two, that fill the
// GPU: 2^9 programs or half of them. Rows are counted across axis 2, so a quotient finds their
// numbers.

#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #tilegpu.layout<16x16, reg = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #tilegpu.layout<16x8, reg = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
// CHECK-LABEL: llvm.func @grouped_dots
// CHECK-NOT: llvm.udiv
// CHECK-DAG: %[[WIDTH:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK-DAG: %[[HEIGHT:.*]] = nvvm.read.ptx.sreg.nctaid.y
// CHECK: %[[BEFORE:.*]] = llvm.mul %{{.*}}, %[[HEIGHT]]
// CHECK: %[[ROW:.*]] = llvm.add %{{.*}}, %[[BEFORE]]
// CHECK: %[[ROWS:.*]] = llvm.mul %[[HEIGHT]], %{{.*}}
// CHECK: "llvm.intr.ctlz"(%[[WIDTH]])
// CHECK: %[[ALL:.*]] = llvm.mlir.constant(9 : i32)
// CHECK: %[[FREE:.*]] = llvm.sub %[[ALL]], %{{.*}}
// CHECK: %[[MOST:.*]] = llvm.intr.smax(%[[FREE]], %{{.*}})
// CHECK: %[[OF_GROUP:.*]] = llvm.shl %[[WIDTH]], %[[MOST]]
// CHECK: %[[OF_HALF:.*]] = llvm.lshr %[[OF_GROUP]], %{{.*}}
// CHECK: %[[AT_ONCE:.*]] = llvm.mlir.constant(264 : i32)
// CHECK: %[[TOO_FEW:.*]] = llvm.icmp "ult" %[[OF_HALF]], %[[AT_ONCE]]
// CHECK: %[[FEWEST:.*]] = llvm.select %[[TOO_FEW]], %[[MOST]], %{{.*}}
// CHECK: %[[DIFFERENT:.*]] = llvm.xor %{{.*}}, %[[ROWS]]
// CHECK: "llvm.intr.ctlz"(%[[DIFFERENT]])
// CHECK: %[[BITS:.*]] = llvm.intr.smin(%[[FEWEST]], %{{.*}})
// CHECK: %[[IN_ROW:.*]] = llvm.lshr %{{.*}}, %[[BITS]]
// CHECK: %[[SLICE:.*]] = llvm.udiv %{{.*}}, %[[HEIGHT]]
// CHECK: llvm.add %[[IN_ROW]], %{{.*}}
// CHECK-NOT: llvm.udiv
// CHECK: llvm.return
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  tile.func @grouped_dots(%p: !tile.ptr<i32>, %out: !tile.ptr<f32>) attributes {tilegpu.occupancy = 2 : i32, tilegpu.grouped_rows} {
    %i = tile.program_id 0
    %j = tile.program_id 1
    %k = tile.program_id 2
    %m = arith.addi %i, %j : i32
    %n = arith.addi %m, %k : i32
    tile.store %p, %n : !tile.ptr<i32>
    %a = arith.constant dense<1.0> : tensor<16x16xf16, #a>
    %b = arith.constant dense<1.0> : tensor<16x8xf16, #b>
    %acc = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>} : tensor<16x16xf16, #a>, tensor<16x8xf16, #b> -> tensor<16x8xf32, #acc>
    %at = tile.splat %out : !tile.ptr<f32> -> tensor<16x8x!tile.ptr<f32>, #acc>
    tile.store %at, %d : tensor<16x8x!tile.ptr<f32>, #acc>
    tile.return
  }
}

// -----

// Five arguments are a table of the parameters, which the launch passes behind all others; its
// number is in the module's launch.

// CHECK: module attributes {
// CHECK-SAME: tilegpu.launch = #tilegpu.launch<tables = [1, 5]>
// CHECK-LABEL: llvm.func @table
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<5 x i64>, nvvm.grid_constant}
// CHECK: %[[I:.*]] = llvm.intr.umin(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// CHECK: %[[WIDE:.*]] = llvm.zext %[[I]] : i32 to i64
// CHECK: %[[SLOT:.*]] = llvm.getelementptr inbounds %[[TABLE]][%[[WIDE]]] : (!llvm.ptr, i64) -> !llvm.ptr, i64
// CHECK: %[[ADDRESS:.*]] = llvm.load %[[SLOT]] invariant {alignment = 8 : i64} : !llvm.ptr -> i64
// CHECK: llvm.inttoptr %[[ADDRESS]] : i64 to !llvm.ptr<1>
// CHECK-NOT: llvm.select
module attributes {tilegpu.launch = #tilegpu.launch<>, tilegpu.num_warps = 1 : i32} {
  tile.func @table(%v: f32, %a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %c: !tile.ptr<f32>, %d: !tile.ptr<f32>, %e: !tile.ptr<f32>) {
    %x = tile.program_id 0
    %at = tile.lookup %x, [%a, %b, %c, %d, %e] : i32, !tile.ptr<f32>
    tile.store %at, %v : !tile.ptr<f32>
    tile.return
  }
}

// -----

// Without a contract with the launcher, there is no table.

// CHECK-LABEL: llvm.func @alone
// CHECK-SAME: (%{{[a-z0-9]+}}: f32, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>, %{{[a-z0-9]+}}: !llvm.ptr<1>)
// CHECK-COUNT-4: llvm.select
module attributes {tilegpu.num_warps = 1 : i32} {
  tile.func @alone(%v: f32, %a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %c: !tile.ptr<f32>, %d: !tile.ptr<f32>, %e: !tile.ptr<f32>) {
    %x = tile.program_id 0
    %at = tile.lookup %x, [%a, %b, %c, %d, %e] : i32, !tile.ptr<f32>
    tile.store %at, %v : !tile.ptr<f32>
    tile.return
  }
}

// -----

// Fewer, and others than arguments in their order, are selected by halves.

// CHECK-LABEL: llvm.func @selected
// CHECK-SAME: (%{{.*}}: f32, %[[A:.*]]: !llvm.ptr<1>, %[[B:.*]]: !llvm.ptr<1>)
// CHECK-DAG: %[[FIRST:.*]] = llvm.icmp "ult" %[[X:.*]], %{{.*}} : i32
// CHECK-DAG: %[[SECOND:.*]] = llvm.icmp "ult" %[[X]], %{{.*}} : i32
// CHECK: %[[BACK:.*]] = llvm.select %[[SECOND]], %[[A]], %[[B]]
// CHECK: llvm.select %[[FIRST]], %[[B]], %[[BACK]]
module attributes {tilegpu.launch = #tilegpu.launch<>, tilegpu.num_warps = 1 : i32} {
  tile.func @selected(%v: f32, %a: !tile.ptr<f32>, %b: !tile.ptr<f32>) {
    %x = tile.program_id 0
    %at = tile.lookup %x, [%b, %a, %b] : i32, !tile.ptr<f32>
    tile.store %at, %v : !tile.ptr<f32>
    tile.return
  }
}
