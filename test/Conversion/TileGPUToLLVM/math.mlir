// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

#line = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>

module attributes {tilegpu.num_warps = 1 : i32} {

// f32 has instructions for some functions; the others are in libdevice, and pure.

// CHECK-DAG: llvm.func @__nv_logf(f32) -> f32 attributes {memory_effects = #llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none{{.*}}>, no_unwind, will_return}
// CHECK-DAG: llvm.func @__nv_fmodf(f32, f32) -> f32

// CHECK-LABEL: llvm.func internal @single
// CHECK-SAME: (%[[X:.*]]: f32) -> f32
// CHECK: %[[V0:.*]] = llvm.call @__nv_expf(%[[X]]) : (f32) -> f32
// CHECK: %[[V1:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx"(%[[V0]])
// CHECK: %[[V2:.*]] = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%[[V1]])
// CHECK: %[[V3:.*]] = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%[[V2]])
// CHECK: %[[V4:.*]] = llvm.call @__nv_logf(%[[V3]])
// CHECK: %[[V5:.*]] = llvm.call @__nv_log2f(%[[V4]])
// CHECK: %[[V6:.*]] = llvm.call @__nv_sinf(%[[V5]])
// CHECK: %[[V7:.*]] = llvm.call @__nv_cosf(%[[V6]])
// CHECK: %[[V8:.*]] = llvm.call @__nv_tanhf(%[[V7]])
// CHECK: %[[SQUARE:.*]] = llvm.fmul %[[V8]], %[[V8]]
// CHECK-COUNT-6: llvm.intr.fma(%{{.*}}, %[[SQUARE]],
// CHECK: %[[NEAR:.*]] = llvm.intr.fma(%{{.*}}, %[[V8]], %[[V8]])
// CHECK: %[[FOUR:.*]] = llvm.intr.minnum
// CHECK-COUNT-6: llvm.intr.fma(%{{.*}}, %[[FOUR]],
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK: %[[FAR:.*]] = llvm.intr.copysign
// CHECK: %[[V9:.*]] = llvm.select %{{.*}}, %[[FAR]], %[[NEAR]]
// CHECK: %[[V10:.*]] = llvm.call @__nv_fmodf(%[[V9]], %[[X]])
// CHECK: %[[V11:.*]] = llvm.intr.floor(%[[V10]])
// CHECK: %[[V12:.*]] = llvm.intr.fabs(%[[V11]])
// CHECK: llvm.intr.fma(%[[V12]], %[[X]], %[[X]])
  tile.func private @single(%x: f32) -> f32 {
    %0 = math.exp %x : f32
    %1 = math.exp2 %0 : f32
    %2 = math.sqrt %1 : f32
    %3 = math.rsqrt %2 : f32
    %4 = math.log %3 : f32
    %5 = math.log2 %4 : f32
    %6 = math.sin %5 : f32
    %7 = math.cos %6 : f32
    %8 = math.tanh %7 : f32
    %9 = math.erf %8 : f32
    %10 = arith.remf %9, %x : f32
    %11 = math.floor %10 : f32
    %12 = math.absf %11 : f32
    %13 = math.fma %12, %x, %x : f32
    tile.return %13 : f32
  }

// Where all that an exp is used for is rounded to 16 bits, its last bits do not matter: through
// products, quotients and sums without cancellation.

// CHECK-LABEL: llvm.func internal @narrow
// CHECK: %[[T:.*]] = llvm.fmul %{{.*}}, %{{.*}} : f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx"(%[[T]])
// CHECK-NOT: @__nv_expf
// CHECK: llvm.return
  tile.func private @narrow(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    %e = math.exp %x : tensor<32xf32, #line>
    %s = tile.reduce(%e) {axis = 0 : i32} : (tensor<32xf32, #line>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %t = tile.splat %s : f32 -> tensor<32xf32, #line>
    %y = arith.divf %e, %t : tensor<32xf32, #line>
    %z = tile.fp_to_fp %y : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }

// gelu: of erf, 1 + erf is rounded to 16 bits. With anything less, or anything else made of it,
// its last bits may matter.

// CHECK-LABEL: llvm.func internal @gelu
// CHECK: llvm.intr.fabs
// CHECK-COUNT-5: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK-NOT: llvm.select
// CHECK: llvm.return
  tile.func private @gelu(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    %scale = arith.constant dense<0.5> : tensor<32xf32, #line>
    %e = math.erf %x : tensor<32xf32, #line>
    %h = arith.mulf %e, %scale : tensor<32xf32, #line>
    %s = arith.addf %scale, %h : tensor<32xf32, #line>
    %y = arith.mulf %x, %s : tensor<32xf32, #line>
    %z = tile.fp_to_fp %y : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }

// CHECK-LABEL: llvm.func internal @erf_less
// CHECK: llvm.select
// CHECK: llvm.return
  tile.func private @erf_less(%x: f32) -> bf16 {
    %most = arith.constant 0.75 : f32
    %e = math.erf %x : f32
    %s = arith.addf %e, %most : f32
    %z = arith.truncf %s : f32 to bf16
    tile.return %z : bf16
  }

// CHECK-LABEL: llvm.func internal @erf_alone
// CHECK: llvm.select
// CHECK: llvm.return
  tile.func private @erf_alone(%x: f32) -> (bf16, bf16) {
    %one = arith.constant 1.0 : f32
    %e = math.erf %x : f32
    %s = arith.addf %e, %one : f32
    %z = arith.truncf %s : f32 to bf16
    %w = arith.truncf %e : f32 to bf16
    tile.return %z, %w : bf16, bf16
  }

// CHECK-LABEL: llvm.func internal @erf_wide
// CHECK: llvm.select
// CHECK: llvm.return
  tile.func private @erf_wide(%x: f32) -> f32 {
    %one = arith.constant 1.0 : f32
    %e = math.erf %x : f32
    %s = arith.addf %e, %one : f32
    tile.return %s : f32
  }

// log1p of what is at most 1.

// CHECK-LABEL: llvm.func internal @softplus
// CHECK: %[[E:.*]] = llvm.call @__nv_expf
// CHECK-NOT: __nv_log1pf
// CHECK: %[[R:.*]] = nvvm.rcp.approx.ftz.f
// CHECK: %[[S:.*]] = llvm.fmul %[[E]], %[[R]]
// CHECK-COUNT-3: llvm.intr.fma
// CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %[[S]])
  tile.func private @softplus(%x: f32) -> f32 {
    %a = math.absf %x : f32
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %l = math.log1p %e : f32
    tile.return %l : f32
  }

// CHECK-LABEL: llvm.func internal @any_log1p
// CHECK: llvm.call @__nv_log1pf
  tile.func private @any_log1p(%x: f32) -> f32 {
    %e = math.exp %x : f32
    %l = math.log1p %e : f32
    tile.return %l : f32
  }

// silu: one and something positive.

// CHECK-LABEL: llvm.func internal @sigmoid
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx"
// CHECK-NOT: @__nv_expf
// CHECK: llvm.return
  tile.func private @sigmoid(%x: f32) -> f16 {
    %one = arith.constant 1.0 : f32
    %e = math.exp %x : f32
    %d = arith.addf %one, %e : f32
    %q = arith.divf %x, %d : f32
    %y = arith.truncf %q : f32 to f16
    tile.return %y : f16
  }

// A difference, a sum of anything, and a result that is kept.

// CHECK-LABEL: llvm.func internal @cancels
// CHECK-COUNT-3: llvm.call @__nv_expf
// CHECK: llvm.return
  tile.func private @cancels(%x: f32) -> (f16, f16, f32) {
    %one = arith.constant 1.0 : f32
    %e = math.exp %x : f32
    %d = arith.subf %one, %e : f32
    %y = arith.truncf %d : f32 to f16
    %f = math.exp %d : f32
    %p = arith.mulf %f, %x : f32
    %q = arith.addf %p, %one : f32
    %z = arith.truncf %q : f32 to f16
    %g = math.exp %q : f32
    tile.return %y, %z, %g : f16, f16, f32
  }

// CHECK-LABEL: llvm.func internal @double
// CHECK-SAME: (%[[X:.*]]: f64) -> f64
// CHECK: %[[V0:.*]] = llvm.call @__nv_exp(%[[X]]) : (f64) -> f64
// CHECK: %[[V1:.*]] = llvm.call @__nv_sqrt(%[[V0]])
// CHECK: %[[V2:.*]] = llvm.call @__nv_rsqrt(%[[V1]])
// CHECK: llvm.call @__nv_pow(%[[V2]], %[[X]])
  tile.func private @double(%x: f64) -> f64 {
    %0 = math.exp %x : f64
    %1 = math.sqrt %0 : f64
    %2 = math.rsqrt %1 : f64
    %3 = math.powf %2, %x : f64
    tile.return %3 : f64
  }

// CHECK-LABEL: llvm.func internal @powers
// CHECK-SAME: (%[[X:.*]]: f32, %[[D:.*]]: f64, %[[N:.*]]: i32)
// CHECK: %[[V0:.*]] = llvm.call @__nv_powf(%[[X]], %[[X]]) : (f32, f32) -> f32
// CHECK-DAG: %[[WIDE:.*]] = llvm.fpext %[[V0]] : f32 to f64
// CHECK-DAG: %[[EXPONENT:.*]] = llvm.sitofp %[[N]] : i32 to f64
// CHECK: %[[POWER:.*]] = llvm.call @__nv_pow(%[[WIDE]], %[[EXPONENT]]) : (f64, f64) -> f64
// CHECK: llvm.fptrunc %[[POWER]] : f64 to f32
// CHECK: llvm.call @__nv_pow(%[[D]], %{{.*}}) : (f64, f64) -> f64
  tile.func private @powers(%x: f32, %d: f64, %n: i32) -> (f32, f64) {
    %0 = math.powf %x, %x : f32
    %1 = math.fpowi %0, %n : f32, i32
    %2 = math.fpowi %d, %n : f64, i32
    tile.return %1, %2 : f32, f64
  }

// 16-bit floats go by f32 and are narrowed after each function.

// CHECK-LABEL: llvm.func internal @half
// CHECK-SAME: (%[[X:.*]]: bf16) -> bf16
// CHECK: %[[WIDE:.*]] = llvm.fpext %[[X]] : bf16 to f32
// CHECK: %[[Y:.*]] = llvm.call @__nv_tanhf(%[[WIDE]])
// CHECK: %[[NARROW:.*]] = llvm.fptrunc %[[Y]] : f32 to bf16
// CHECK: %[[AGAIN:.*]] = llvm.fpext %[[NARROW]] : bf16 to f32
// CHECK: %[[CEIL:.*]] = llvm.intr.ceil(%[[AGAIN]]) : (f32) -> f32
// CHECK: llvm.fptrunc %[[CEIL]] : f32 to bf16
  tile.func private @half(%x: bf16) -> bf16 {
    %0 = math.tanh %x : bf16
    %1 = math.ceil %0 : bf16
    tile.return %1 : bf16
  }
}

// -----

// Where exponentials that are below the normal range may be zero, ex2 is one instruction. That
// of libdevice has as many either way.

module attributes {tilegpu.num_warps = 1 : i32, tilegpu.flush_results} {

// CHECK-LABEL: llvm.func internal @flushed
// CHECK-SAME: (%[[X:.*]]: f32, %[[D:.*]]: f64)
// CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[X]]) : (f32) -> f32
// CHECK: %[[T:.*]] = llvm.fmul %[[X]], %{{.*}} : f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[T]])
// CHECK: llvm.call @__nv_expf(%[[POWER]])
// CHECK: llvm.call @__nv_exp2(%[[D]])
  tile.func private @flushed(%x: f32, %d: f64) -> (bf16, f32, f64) {
    %0 = math.exp2 %x : f32
    %1 = math.exp %x : f32
    %narrow = arith.truncf %1 : f32 to bf16
    %2 = math.exp %0 : f32
    %3 = math.exp2 %d : f64
    tile.return %narrow, %2, %3 : bf16, f32, f64
  }
}
