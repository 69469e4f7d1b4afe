// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

#l = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32]>

module attributes {tilegpu.num_warps = 1 : i32} {

// One operation a register; flags stay.

// CHECK-LABEL: llvm.func internal @per_register
// CHECK-SAME: (%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[B0:.*]]: f32, %[[B1:.*]]: f32, %[[FLAG:.*]]: i1)
// CHECK: %[[S0:.*]] = llvm.fadd %[[A0]], %[[B0]] {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK: %[[S1:.*]] = llvm.fadd %[[A1]], %[[B1]] {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK: llvm.select %[[FLAG]], %[[S0]], %[[A0]]
// CHECK: llvm.select %[[FLAG]], %[[S1]], %[[A1]]
  tile.func private @per_register(%a: tensor<64xf32, #l>, %b: tensor<64xf32, #l>, %flag: i1) -> tensor<64xf32, #l> {
    %0 = arith.addf %a, %b fastmath<contract> : tensor<64xf32, #l>
    %1 = arith.select %flag, %0, %a : tensor<64xf32, #l>
    tile.return %1 : tensor<64xf32, #l>
  }

// f32 quotients are off by 2 ulp unless asked otherwise; f16 ones are computed in f32.

// Two halves of a word are added at once, whatever the other operand is; single ones are not.

// CHECK-LABEL: llvm.func internal @halves
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr<1>, %[[X0:[a-z0-9]+]]: f16, %[[X1:[a-z0-9]+]]: f16
// CHECK: %[[WORD:.*]] = llvm.load %{{.*}} -> vector<2xf16>
// CHECK: %[[X:.*]] = llvm.insertelement %[[X0]], %{{.*}} : vector<2xf16>
// CHECK: %[[XS:.*]] = llvm.insertelement %[[X1]], %[[X]][{{.*}}] : vector<2xf16>
// CHECK: %[[SUM:.*]] = llvm.fadd %[[WORD]], %[[XS]] {fastmathFlags = #llvm.fastmath<contract>} : vector<2xf16>
// CHECK: llvm.fmul %[[SUM]], %[[SUM]] : vector<2xf16>
// CHECK: llvm.fsub %[[X0]], %[[X0]] : f16
  tile.func private @halves(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %x: tensor<64xf16, #l>) -> (tensor<64xf16, #l>, tensor<64xf16, #l>) {
    %r = tile.range 0 to 64 : tensor<64xi32, #l>
    %s = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>, #l>
    %a = tile.addptr %s, %r : tensor<64x!tile.ptr<f16>, #l>, tensor<64xi32, #l>
    %v = tile.load %a : tensor<64x!tile.ptr<f16>, #l>
    %0 = arith.addf %v, %x fastmath<contract> : tensor<64xf16, #l>
    %1 = arith.mulf %0, %0 : tensor<64xf16, #l>
    %2 = arith.subf %x, %x : tensor<64xf16, #l>
    tile.return %1, %2 : tensor<64xf16, #l>, tensor<64xf16, #l>
  }

// A divisor of 1 or more needs no case for small ones.

// CHECK-LABEL: llvm.func internal @large_divisor
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK: %[[IS_LARGE:.*]] = llvm.fcmp "ogt"
// CHECK: %[[SCALE:.*]] = llvm.select %[[IS_LARGE]], {{.*}}, {{.*}} : i1, f32
// CHECK: %[[SCALED:.*]] = llvm.fmul %[[Y]], %[[SCALE]]
// CHECK: %[[R:.*]] = nvvm.rcp.approx.ftz.f %[[SCALED]] : f32
// CHECK: %[[L:.*]] = llvm.fmul %[[X]], %[[SCALE]]
// CHECK: llvm.fmul %[[L]], %[[R]] : f32
  tile.func private @large_divisor(%x: f32, %y: f32) -> f32 {
    %0 = arith.divf %x, %y {tessera.large_divisor} : f32
    tile.return %0 : f32
  }

// One up to the number of a tile's elements needs none for large ones. Its reciprocal is there once.

// CHECK-LABEL: llvm.func internal @moderate_divisor
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: f32)
// CHECK-NEXT: %[[R:.*]] = nvvm.rcp.approx.ftz.f %[[Y]] : f32
// CHECK-NEXT: %[[FIRST:.*]] = llvm.fmul %[[X]], %[[R]] : f32
// CHECK-NEXT: llvm.fmul %[[FIRST]], %[[R]] : f32
  tile.func private @moderate_divisor(%x: f32, %y: f32) -> f32 {
    %0 = arith.divf %x, %y {tessera.moderate_divisor} : f32
    %1 = arith.divf %0, %y {tessera.moderate_divisor} : f32
    tile.return %1 : f32
  }

// CHECK-LABEL: llvm.func internal @quotients
// CHECK-SAME: (%[[X:.*]]: f32, %[[H:.*]]: f16, %[[D:.*]]: f64)
// CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"(%[[X]], %[[X]])
// CHECK: llvm.fdiv %{{.*}}, %[[X]] : f32
// CHECK: %[[WIDE:.*]] = llvm.fpext %[[H]] : f16 to f32
// CHECK: %[[Q:.*]] = llvm.fdiv %[[WIDE]], %[[WIDE]] : f32
// CHECK: llvm.fptrunc %[[Q]] : f32 to f16
// CHECK: llvm.fdiv %[[D]], %[[D]] : f64
// CHECK: llvm.intr.sqrt(%{{.*}}) : (f32) -> f32
  tile.func private @quotients(%x: f32, %h: f16, %d: f64) -> (f32, f16, f64) {
    %0 = arith.divf %x, %x : f32
    %1 = tile.precise_div %0, %x : f32
    %2 = arith.divf %h, %h : f16
    %3 = arith.divf %d, %d : f64
    %4 = tile.precise_sqrt %1 : f32
    tile.return %4, %2, %3 : f32, f16, f64
  }

// What a shared divisor needs is built once; each dividend takes two products.

// CHECK-LABEL: llvm.func internal @shared_divisor
// CHECK-SAME: (%[[A0:.*]]: f32, %[[A1:.*]]: f32, %[[S:.*]]: f32)
// CHECK: %[[SCALE:.*]] = llvm.select
// CHECK: %[[SCALED:.*]] = llvm.fmul %[[S]], %[[SCALE:.*]] : f32
// CHECK: %[[R:.*]] = nvvm.rcp.approx.ftz.f %[[SCALED]]
// CHECK: %[[B0:.*]] = llvm.fmul %[[A0]], %[[SCALE]] : f32
// CHECK: llvm.fmul %[[B0]], %[[R]] : f32
// CHECK-NOT: nvvm.rcp
// CHECK: %[[B1:.*]] = llvm.fmul %[[A1]], %[[SCALE]] : f32
// CHECK: llvm.fmul %[[B1]], %[[R]] : f32
  tile.func private @shared_divisor(%a: tensor<64xf32, #l>, %s: f32) -> tensor<64xf32, #l> {
    %t = tile.splat %s : f32 -> tensor<64xf32, #l>
    %0 = arith.divf %a, %t : tensor<64xf32, #l>
    tile.return %0 : tensor<64xf32, #l>
  }

// LLVM would forget the upper half of an amount of 64 bits that is not cut off.

// CHECK-LABEL: llvm.func internal @wide_shift
// CHECK-SAME: (%[[X:.*]]: i64, %[[N:.*]]: i64)
// CHECK-DAG: %[[SHORT:.*]] = llvm.icmp "ule" %[[N]], %[[LAST:.*]] : i64
// CHECK-DAG: %[[CUT:.*]] = llvm.intr.umin(%[[N]], %[[LAST]])
// CHECK: %[[Y:.*]] = llvm.lshr %[[X]], %[[CUT]] : i64
// CHECK: llvm.select %[[SHORT]], %[[Y]],
  tile.func private @wide_shift(%x: i64, %n: i64) -> i64 {
    %0 = tile.shift right_logical %x, %n : i64
    tile.return %0 : i64
  }

// Division by zero and shifts by the width or more have a value.

// CHECK-LABEL: llvm.func internal @total
// CHECK-SAME: (%[[A:.*]]: i32, %[[B:.*]]: i32)
// CHECK-DAG: %[[ONES:.*]] = llvm.mlir.constant(-1 : i32)
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG: %[[LAST:.*]] = llvm.mlir.constant(31 : i32)
// CHECK: %[[IS_ZERO:.*]] = llvm.icmp "eq" %[[B]], %[[ZERO]]
// CHECK: %[[SAFE:.*]] = llvm.select %[[IS_ZERO]], %{{.*}}, %[[B]]
// CHECK: %[[Q:.*]] = llvm.udiv %[[A]], %[[SAFE]]
// CHECK: llvm.select %[[IS_ZERO]], %[[ONES]], %[[Q]]
// CHECK: %[[SHORT:.*]] = llvm.icmp "ule" %[[B]], %[[LAST]]
// CHECK: %[[SHIFTED:.*]] = llvm.shl %{{.*}}, %[[B]]
// CHECK: llvm.select %[[SHORT]], %[[SHIFTED]], %[[ZERO]]
  tile.func private @total(%a: i32, %b: i32) -> i32 {
    %0 = tile.div_int unsigned %a, %b : i32
    %1 = tile.shift left %0, %b : i32
    tile.return %1 : i32
  }

// To 32 bits the instruction saturates. To fewer, the integer is clamped.

// CHECK-LABEL: llvm.func internal @to_int
// CHECK-SAME: (%[[X:.*]]: f32)
// CHECK: llvm.call_intrinsic "llvm.nvvm.f2i.rz"(%[[X]]) : (f32) -> i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.f2ui.rz"(%[[X]]) : (f32) -> i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.f2i.rz"(%[[X]]) : (f32) -> i32
// CHECK: llvm.intr.smin(
// CHECK: llvm.intr.smax(
// CHECK: llvm.trunc %{{.*}} : i32 to i8
// CHECK: llvm.call_intrinsic "llvm.nvvm.f2ui.rz"(%[[X]]) : (f32) -> i32
// CHECK: llvm.intr.umin(
// CHECK: llvm.trunc %{{.*}} : i32 to i16
  tile.func private @to_int(%x: f32) -> (i32, i32, i8, i16) {
    %0 = tile.fp_to_int signed %x : f32 -> i32
    %1 = tile.fp_to_int unsigned %x : f32 -> i32
    %2 = tile.fp_to_int signed %x : f32 -> i8
    %3 = tile.fp_to_int unsigned %x : f32 -> i16
    tile.return %0, %1, %2, %3 : i32, i32, i8, i16
  }

// Before sm_90 an integer becomes a bf16 by way of an f64 that keeps what matters.

// CHECK-LABEL: llvm.func internal @to_bf16
// CHECK-SAME: (%[[I:.*]]: i32, %[[L:.*]]: i64)
// CHECK: %[[EXACT:.*]] = llvm.uitofp %[[I]] : i32 to f64
// CHECK: llvm.fptrunc %[[EXACT]] : f64 to bf16
// CHECK: %[[CUT:.*]] = llvm.call_intrinsic "llvm.nvvm.ll2d.rz"(%[[L]]) : (i64) -> f64
// CHECK: %[[BACK:.*]] = llvm.fptosi %[[CUT]] : f64 to i64
// CHECK: %[[LOST:.*]] = llvm.icmp "ne" %[[BACK]], %[[L]]
// CHECK: %[[STICKY:.*]] = llvm.zext %[[LOST]] : i1 to i64
// CHECK: llvm.or %{{.*}}, %[[STICKY]]
// CHECK: llvm.fptrunc %{{.*}} : f64 to bf16
  tile.func private @to_bf16(%i: i32, %l: i64) -> (bf16, bf16) {
    %0 = arith.uitofp %i : i32 to bf16
    %1 = arith.sitofp %l : i64 to bf16
    tile.return %0, %1 : bf16, bf16
  }

// An 8-bit float is its bits; arithmetic on it is in f32.

// CHECK-LABEL: llvm.func internal @float8
// CHECK-SAME: (%[[X:.*]]: i8, %[[FLAG:.*]]: i1) -> i8
// CHECK: llvm.fadd %{{.*}}, %{{.*}} : f32
// CHECK: llvm.select %[[FLAG]], %{{.*}}, %[[X]] : i1, i8
// CHECK-NOT: unrealized
  tile.func private @float8(%x: f8E4M3FN, %flag: i1) -> f8E4M3FN {
    %0 = arith.addf %x, %x : f8E4M3FN
    %1 = arith.select %flag, %0, %x : f8E4M3FN
    tile.return %1 : f8E4M3FN
  }

// A constant whose elements differ is a table that threads look into.

// CHECK-LABEL: llvm.func internal @table
// CHECK: %[[BASE:.*]] = llvm.mlir.addressof @tessera_constant : !llvm.ptr<1>
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[BASE]][%{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
// CHECK: %[[BITS:.*]] = llvm.load %[[AT]] {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK: llvm.bitcast %[[BITS]] : i16 to f16
  tile.func private @table() -> tensor<8xf16, #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>> {
    %0 = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf16, #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>>
    tile.return %0 : tensor<8xf16, #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>>
  }

// Two bf16 in a word are widened where they are.

// CHECK-LABEL: llvm.func internal @widen
// CHECK: %[[MASK:.*]] = llvm.mlir.constant(-65536 : i32) : i32
// CHECK: %[[WORD:.*]] = llvm.bitcast %{{.*}} : vector<2xbf16> to i32
// CHECK-NEXT: %[[LOW:.*]] = llvm.shl %[[WORD]], %{{.*}} : i32
// CHECK-NEXT: llvm.bitcast %[[LOW]] : i32 to f32
// CHECK-NEXT: %[[HIGH:.*]] = llvm.and %[[WORD]], %[[MASK]] : i32
// CHECK-NEXT: llvm.bitcast %[[HIGH]] : i32 to f32
  tile.func private @widen(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}) -> tensor<64xf32, #l> {
    %range = tile.range 0 to 64 : tensor<64xi32, #l>
    %start = tile.splat %p : !tile.ptr<bf16> -> tensor<64x!tile.ptr<bf16>, #l>
    %pointers = tile.addptr %start, %range : tensor<64x!tile.ptr<bf16>, #l>, tensor<64xi32, #l>
    %x = tile.load %pointers : tensor<64x!tile.ptr<bf16>, #l>
    %y = arith.extf %x : tensor<64xbf16, #l> to tensor<64xf32, #l>
    tile.return %y : tensor<64xf32, #l>
  }

// The region of map_elementwise, once a register.

// CHECK-LABEL: llvm.func internal @map
// CHECK-COUNT-2: scf.if
// CHECK-NOT: unrealized
  tile.func private @map(%a: tensor<64xi32, #l>) -> tensor<64xi32, #l> {
    %0 = "tile.map_elementwise"(%a) ({
    ^bb0(%x: i32):
      %zero = arith.constant 0 : i32
      %negative = arith.cmpi slt, %x, %zero : i32
      %y = scf.if %negative -> i32 {
        %q = tile.div_int signed %x, %x : i32
        scf.yield %q : i32
      } else {
        scf.yield %x : i32
      }
      tile.map_return %y : i32
    }) : (tensor<64xi32, #l>) -> tensor<64xi32, #l>
    tile.return %0 : tensor<64xi32, #l>
  }

// CHECK-LABEL: llvm.func internal @pointers
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr<1>, %[[N:.*]]: i32, %[[FLAG:.*]]: i1)
// CHECK: %[[WIDE:.*]] = llvm.sext %[[N]] : i32 to i64
// CHECK: %[[Q:.*]] = llvm.getelementptr %[[P]][%[[WIDE]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
// CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %[[Q]] : !llvm.ptr<1> to i64
// CHECK: %[[AGAIN:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
// CHECK: llvm.select %[[FLAG]], %[[P]], %[[AGAIN]] : i1, !llvm.ptr<1>
  tile.func private @pointers(%p: !tile.ptr<f32>, %n: i32, %flag: i1) -> !tile.ptr<f32> {
    %0 = tile.addptr %p, %n : !tile.ptr<f32>, i32
    %1 = tile.ptr_to_int %0 : !tile.ptr<f32> -> i64
    %2 = arith.addi %1, %1 : i64
    %3 = tile.int_to_ptr %2 : i64 -> !tile.ptr<f32>
    %4 = arith.select %flag, %p, %3 : !tile.ptr<f32>
    tile.return %4 : !tile.ptr<f32>
  }
}

// -----

// From sm_89 on there is an instruction for two 8-bit floats. Of a tile two registers go through it
// at a time, and what has come in pairs is stored in pairs; registers that hold one element go
// once, and one that is left goes alone.

#four = #tilegpu.layout<128, reg = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
#same = #tilegpu.layout<32, lane = [[1], [2], [4], [8], [16]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {

// CHECK-LABEL: llvm.func internal @to_float8
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%{{.*}}, %arg0) : (f32, f32) -> i16
// CHECK: %[[WIDE:.*]] = llvm.fpext %arg1 : f16 to f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff.to.e5m2x2.rn"(%{{.*}}, %[[WIDE]]) : (f32, f32) -> i16
  tile.func private @to_float8(%x: f32, %y: f16) -> (f8E4M3FN, f8E5M2) {
    %0 = tile.fp_to_fp %x : f32 -> f8E4M3FN
    %1 = tile.fp_to_fp %y : f16 -> f8E5M2
    tile.return %0, %1 : f8E4M3FN, f8E5M2
  }

// CHECK-LABEL: llvm.func internal @tile_to_float8
// CHECK-SAME: %[[X0:arg[0-9]+]]: f32, %[[X1:arg[0-9]+]]: f32, %[[X2:arg[0-9]+]]: f32, %[[X3:arg[0-9]+]]: f32
// CHECK: %[[LOW:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e5m2x2.rn"(%[[X1]], %[[X0]]) : (f32, f32) -> i16
// CHECK: %[[HIGH:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e5m2x2.rn"(%[[X3]], %[[X2]]) : (f32, f32) -> i16
// CHECK-NOT: call_intrinsic
// CHECK: %[[ONE:.*]] = llvm.insertelement %[[LOW]], %{{.*}} : vector<2xi16>
// CHECK: %[[TWO:.*]] = llvm.insertelement %[[HIGH]], %[[ONE]][%{{.*}} : i32] : vector<2xi16>
// CHECK: llvm.bitcast %[[TWO]] : vector<2xi16> to i32
  tile.func private @tile_to_float8(%x: tensor<128xf32, #four>) attributes {noinline} {
    %0 = tile.fp_to_fp %x : tensor<128xf32, #four> -> tensor<128xf8E5M2, #four>
    %1 = tilegpu.local_alloc %0 {tilegpu.shared_offset = 0 : i32} : (tensor<128xf8E5M2, #four>) -> !tilegpu.memdesc<128xf8E5M2, #tilegpu.layout<128, offset = [[1], [2], [4], [8], [16], [32], [64]]>>
    tile.return
  }

// CHECK-LABEL: llvm.func internal @one_register
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%{{[0-9]+}}, %arg0) : (f32, f32) -> i16
// CHECK-NOT: call_intrinsic
  tile.func private @one_register(%x: tensor<32xf32, #same>) -> tensor<32xf8E4M3FN, #same> attributes {noinline} {
    %0 = tile.fp_to_fp %x : tensor<32xf32, #same> -> tensor<32xf8E4M3FN, #same>
    tile.return %0 : tensor<32xf8E4M3FN, #same>
  }

// Towards zero, of 64 bits and in other formats: by integers.

// CHECK-LABEL: llvm.func internal @to_float8_otherwise
// CHECK-NOT: call_intrinsic
  tile.func private @to_float8_otherwise(%x: f32, %y: f64) -> (f8E4M3FN, f8E5M2, f8E5M2FNUZ) {
    %0 = tile.fp_to_fp %x {rounding = 1 : i32} : f32 -> f8E4M3FN
    %1 = tile.fp_to_fp %y : f64 -> f8E5M2
    %2 = tile.fp_to_fp %x : f32 -> f8E5M2FNUZ
    tile.return %0, %1, %2 : f8E4M3FN, f8E5M2, f8E5M2FNUZ
  }
}
