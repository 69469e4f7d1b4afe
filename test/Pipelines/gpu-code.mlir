// REQUIRES: ptxas
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "entry": "lock"}' | FileCheck %s --check-prefix=LOCK
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_80", "entry": "lock"}' | FileCheck %s --check-prefix=LOCK
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "entry": "report"}' | FileCheck %s --check-prefix=REPORT
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_80", "entry": "report"}' | FileCheck %s --check-prefix=REPORT
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "entry": "mixed"}' | FileCheck %s --check-prefixes=MIXED,MIXED90
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_80", "entry": "mixed"}' | FileCheck %s --check-prefixes=MIXED,MIXED80
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "entry": "twice"}' | FileCheck %s --check-prefix=TWICE

// What lowering writes goes through LLVM and ptxas unharmed, on both architectures.

// A lock: one thread tries, all learn what came of it, through shared memory; all are done
// before it is released. The loop stays one with barriers that all threads reach.

// LOCK: .extern .shared .align 1024 .b8 tessera_shared[];
// LOCK: .visible .entry lock(
// LOCK-DAG: @%p{{.*}} atom.acq_rel.gpu.global.cas.b32
// LOCK-DAG: st.shared.b32 {{.*}}[tessera_shared]
// LOCK-DAG: bar.sync{{.*}}{{[[:space:]]+}}ld.shared.b32 {{.*}}[tessera_shared]
// LOCK: @%p{{.*}} st.global.b32
// LOCK: bar.sync
// LOCK: @%p{{.*}} atom.release.gpu.global.exch.b32
// LOCK: ret;
tile.func @lock(%lock: !tile.ptr<i32>, %sum: !tile.ptr<f32>, %x: f32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.while : () -> () {
    %old = tile.atomic_cas acq_rel, gpu, %lock, %zero, %one : !tile.ptr<i32>, i32
    %taken = arith.cmpi ne, %old, %zero : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  %before = tile.load %sum : !tile.ptr<f32>
  %after = arith.addf %before, %x : f32
  tile.store %sum, %after : !tile.ptr<f32>
  %held = tile.atomic_rmw xchg, release, gpu, %lock, %zero : !tile.ptr<i32>, i32 -> i32
  tile.return
}

// REPORT-DAG: .extern .func __assertfail
// REPORT-DAG: .extern .func (.param .b32 func_retval0) vprintf
// REPORT: .visible .entry report(
// REPORT: call.uni (retval0), vprintf
// REPORT: __assertfail
tile.func @report(%p: !tile.ptr<i32>, %n: i32) {
  %i = tile.range 0 to 128 : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  %pi = tile.addptr %ps, %i : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
  %x = tile.load %pi : tensor<128x!tile.ptr<i32>>
  tile.print "x = " : %x {hex = false, is_signed = array<i32: 1>} : tensor<128xi32>
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %c = arith.cmpi slt, %x, %ns : tensor<128xi32>
  tile.assert %c, "too large" : tensor<128xi1>
  tile.return
}

// MIXED: fma.rn.f32
// MIXED: div.full.f32
// MIXED: .visible .entry mixed(
// MIXED: ld.global.cg.b32
// MIXED: call.uni (retval0), scale
// MIXED: div.rn.f32
// MIXED: sqrt.rn.f32
// MIXED: mov.b32 {{.*}}; // mine
// MIXED: st.global.wt.b32
// MIXED90: atom.relaxed.sys.global.add.noftz.bf16
// MIXED80: atom.relaxed.sys.global.cas.b16
// MIXED: @%p{{.*}} ld.volatile.global.b32
// MIXED: st.shared.b32 {{.*}}[tessera_shared]
// MIXED: bar.sync
// MIXED: ld.shared.b32
tile.func private @scale(%x: tensor<128xf32>, %y: tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>) attributes {noinline} {
  %p = arith.mulf %x, %y : tensor<128xf32>
  %s = arith.addf %p, %x : tensor<128xf32>
  %q = arith.divf %s, %y : tensor<128xf32>
  tile.return %s, %q : tensor<128xf32>, tensor<128xf32>
}
tile.func @mixed(%p: !tile.ptr<f32>, %b: !tile.ptr<bf16>, %v: !tile.ptr<i32>) {
  %i = tile.range 0 to 128 : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %x = tile.load %pi {cache = 2 : i32} : tensor<128x!tile.ptr<f32>>
  %y, %z = tile.call @scale(%x, %x) : (tensor<128xf32>, tensor<128xf32>) -> (tensor<128xf32>, tensor<128xf32>)
  %d = tile.precise_div %y, %z : tensor<128xf32>
  %r = tile.precise_sqrt %d : tensor<128xf32>
  %a = tile.inline_asm "mov.b32 $0, $1; // mine" constraints("=r,r") pure packed 1 %r : (tensor<128xf32>) -> tensor<128xf32>
  tile.store %pi, %a {cache = 6 : i32} : tensor<128x!tile.ptr<f32>>
  %h = tile.fp_to_fp %z : tensor<128xf32> -> tensor<128xbf16>
  %bs = tile.splat %b : !tile.ptr<bf16> -> tensor<128x!tile.ptr<bf16>>
  %bi = tile.addptr %bs, %i : tensor<128x!tile.ptr<bf16>>, tensor<128xi32>
  %o = tile.atomic_rmw fadd, relaxed, sys, %bi, %h : tensor<128x!tile.ptr<bf16>>, tensor<128xbf16> -> tensor<128xbf16>
  %s = tile.load %v {isVolatile} : !tile.ptr<i32>
  %t = arith.addi %s, %s : i32
  tile.store %v, %t : !tile.ptr<i32>
  tile.return
}

// All accesses of a thread have one base, also the first, whose offset has no constant.

// TWICE: .visible .entry twice(
// TWICE: mul.wide.s32 [[OFFSET:%rd[0-9]+]], %r{{.*}}, 4;
// TWICE: add.s64 [[BASE:%rd[0-9]+]], %rd{{.*}}, [[OFFSET]];
// TWICE: add.s64 %rd{{.*}}, [[BASE]], 2048;
// TWICE-NOT: cvt.s64
tile.func @twice(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
  %tile = arith.constant 1024 : i32
  %program = tile.program_id 0
  %start = arith.muli %program, %tile : i32
  %starts = tile.splat %start : i32 -> tensor<1024xi32>
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %offsets = arith.addi %starts, %i : tensor<1024xi32>
  %ns = tile.splat %n : i32 -> tensor<1024xi32>
  %mask = arith.cmpi slt, %offsets, %ns : tensor<1024xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %offsets : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %pi, %mask : tensor<1024x!tile.ptr<f32>>
  %y = arith.addf %x, %x : tensor<1024xf32>
  tile.store %pi, %y, %mask : tensor<1024x!tile.ptr<f32>>
  tile.return
}
