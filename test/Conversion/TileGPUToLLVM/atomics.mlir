// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

// LLVM drops orderings and scopes: each has to be there in the instruction. A release
// speaks for all threads of the program, and so does an acquire.

module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @orderings
// CHECK: "@$4 atom.relaxed.cta.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK: "@$4 atom.relaxed.gpu.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK: "@$4 atom.relaxed.sys.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK: "@$4 atom.acquire.cta.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: "@$4 atom.acquire.gpu.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: "@$4 atom.acquire.sys.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: nvvm.bar.warp.sync
// CHECK: "@$4 atom.release.cta.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK: nvvm.bar.warp.sync
// CHECK: "@$4 atom.release.gpu.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK: nvvm.bar.warp.sync
// CHECK: "@$4 atom.release.sys.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK: nvvm.bar.warp.sync
// CHECK: "@$4 atom.acq_rel.cta.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: nvvm.bar.warp.sync
// CHECK: "@$4 atom.acq_rel.gpu.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: nvvm.bar.warp.sync
// CHECK: "@$4 atom.acq_rel.sys.global.add.u32 $0, [$2], $3;", "=r,0,l,r,b"
// CHECK-NEXT: nvvm.bar.warp.sync
  tile.func @orderings(%p: !tile.ptr<i32>, %x: i32) {
    %r0 = tile.atomic_rmw add, relaxed, cta, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r1 = tile.atomic_rmw add, relaxed, gpu, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r2 = tile.atomic_rmw add, relaxed, sys, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r3 = tile.atomic_rmw add, acquire, cta, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r4 = tile.atomic_rmw add, acquire, gpu, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r5 = tile.atomic_rmw add, acquire, sys, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r6 = tile.atomic_rmw add, release, cta, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r7 = tile.atomic_rmw add, release, gpu, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r8 = tile.atomic_rmw add, release, sys, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r9 = tile.atomic_rmw add, acq_rel, cta, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r10 = tile.atomic_rmw add, acq_rel, gpu, %p, %x : !tile.ptr<i32>, i32 -> i32
    %r11 = tile.atomic_rmw add, acq_rel, sys, %p, %x : !tile.ptr<i32>, i32 -> i32
    tile.return
  }

// Compare-and-swap, load and store.

// CHECK-LABEL: llvm.func @others
// CHECK: "@$5 atom.relaxed.cta.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.relaxed.gpu.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.relaxed.sys.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.acquire.cta.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.acquire.gpu.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.acquire.sys.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.release.cta.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.release.gpu.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.release.sys.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.acq_rel.cta.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.acq_rel.gpu.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$5 atom.acq_rel.sys.global.cas.b64 $0, [$2], $3, $4;", "=l,0,l,l,l,b"
// CHECK: "@$3 ld.relaxed.cta.global.b64 $0, [$2];", "=l,0,l,b"
// CHECK: "@$3 ld.relaxed.gpu.global.b64 $0, [$2];", "=l,0,l,b"
// CHECK: "@$3 ld.relaxed.sys.global.b64 $0, [$2];", "=l,0,l,b"
// CHECK: "@$3 ld.acquire.cta.global.b64 $0, [$2];", "=l,0,l,b"
// CHECK: "@$3 ld.acquire.gpu.global.b64 $0, [$2];", "=l,0,l,b"
// CHECK: "@$3 ld.acquire.sys.global.b64 $0, [$2];", "=l,0,l,b"
// CHECK: "@$2 st.relaxed.cta.global.b64 [$0], $1;", "l,l,b"
// CHECK: "@$2 st.relaxed.gpu.global.b64 [$0], $1;", "l,l,b"
// CHECK: "@$2 st.relaxed.sys.global.b64 [$0], $1;", "l,l,b"
// CHECK: "@$2 st.release.cta.global.b64 [$0], $1;", "l,l,b"
// CHECK: "@$2 st.release.gpu.global.b64 [$0], $1;", "l,l,b"
// CHECK: "@$2 st.release.sys.global.b64 [$0], $1;", "l,l,b"
  tile.func @others(%p: !tile.ptr<i64>, %x: i64) {
    %crelaxedcta = tile.atomic_cas relaxed, cta, %p, %x, %x : !tile.ptr<i64>, i64
    %crelaxedgpu = tile.atomic_cas relaxed, gpu, %p, %x, %x : !tile.ptr<i64>, i64
    %crelaxedsys = tile.atomic_cas relaxed, sys, %p, %x, %x : !tile.ptr<i64>, i64
    %cacquirecta = tile.atomic_cas acquire, cta, %p, %x, %x : !tile.ptr<i64>, i64
    %cacquiregpu = tile.atomic_cas acquire, gpu, %p, %x, %x : !tile.ptr<i64>, i64
    %cacquiresys = tile.atomic_cas acquire, sys, %p, %x, %x : !tile.ptr<i64>, i64
    %creleasecta = tile.atomic_cas release, cta, %p, %x, %x : !tile.ptr<i64>, i64
    %creleasegpu = tile.atomic_cas release, gpu, %p, %x, %x : !tile.ptr<i64>, i64
    %creleasesys = tile.atomic_cas release, sys, %p, %x, %x : !tile.ptr<i64>, i64
    %cacq_relcta = tile.atomic_cas acq_rel, cta, %p, %x, %x : !tile.ptr<i64>, i64
    %cacq_relgpu = tile.atomic_cas acq_rel, gpu, %p, %x, %x : !tile.ptr<i64>, i64
    %cacq_relsys = tile.atomic_cas acq_rel, sys, %p, %x, %x : !tile.ptr<i64>, i64
    %lrelaxedcta = tile.atomic_load relaxed, cta, %p : !tile.ptr<i64> -> i64
    %lrelaxedgpu = tile.atomic_load relaxed, gpu, %p : !tile.ptr<i64> -> i64
    %lrelaxedsys = tile.atomic_load relaxed, sys, %p : !tile.ptr<i64> -> i64
    %lacquirecta = tile.atomic_load acquire, cta, %p : !tile.ptr<i64> -> i64
    %lacquiregpu = tile.atomic_load acquire, gpu, %p : !tile.ptr<i64> -> i64
    %lacquiresys = tile.atomic_load acquire, sys, %p : !tile.ptr<i64> -> i64
    tile.atomic_store relaxed, cta, %p, %x : !tile.ptr<i64>, i64
    tile.atomic_store relaxed, gpu, %p, %x : !tile.ptr<i64>, i64
    tile.atomic_store relaxed, sys, %p, %x : !tile.ptr<i64>, i64
    tile.atomic_store release, cta, %p, %x : !tile.ptr<i64>, i64
    tile.atomic_store release, gpu, %p, %x : !tile.ptr<i64>, i64
    tile.atomic_store release, sys, %p, %x : !tile.ptr<i64>, i64
    tile.return
  }

// Every kind and type that there is an instruction for.

// CHECK-LABEL: llvm.func @kinds
// CHECK: atom.relaxed.gpu.global.add.u32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.and.b32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.or.b32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.xor.b32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.max.s32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.min.s32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.max.u32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.min.u32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.exch.b32 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.add.u64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.and.b64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.or.b64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.xor.b64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.max.s64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.min.s64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.max.u64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.min.u64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.exch.b64 $0, [$2], $3;
// CHECK: atom.relaxed.gpu.global.add.f32 $0, [$2], $3;", "=f,0,l,f,b"
// CHECK: atom.relaxed.gpu.global.add.f64 $0, [$2], $3;", "=d,0,l,d,b"
// CHECK: atom.relaxed.gpu.global.add.noftz.f16 $0, [$2], $3;", "=h,0,l,h,b"
// CHECK: atom.relaxed.gpu.global.add.noftz.bf16 $0, [$2], $3;", "=h,0,l,h,b"
  tile.func @kinds(%p32: !tile.ptr<i32>, %x32: i32, %p64: !tile.ptr<i64>, %x64: i64, %pf32: !tile.ptr<f32>, %xf32: f32, %pf64: !tile.ptr<f64>, %xf64: f64, %pf16: !tile.ptr<f16>, %xf16: f16, %pbf16: !tile.ptr<bf16>, %xbf16: bf16) {
    %r0 = tile.atomic_rmw add, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r1 = tile.atomic_rmw and, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r2 = tile.atomic_rmw or, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r3 = tile.atomic_rmw xor, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r4 = tile.atomic_rmw max, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r5 = tile.atomic_rmw min, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r6 = tile.atomic_rmw umax, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r7 = tile.atomic_rmw umin, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r8 = tile.atomic_rmw xchg, relaxed, gpu, %p32, %x32 : !tile.ptr<i32>, i32 -> i32
    %r9 = tile.atomic_rmw add, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r10 = tile.atomic_rmw and, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r11 = tile.atomic_rmw or, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r12 = tile.atomic_rmw xor, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r13 = tile.atomic_rmw max, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r14 = tile.atomic_rmw min, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r15 = tile.atomic_rmw umax, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r16 = tile.atomic_rmw umin, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r17 = tile.atomic_rmw xchg, relaxed, gpu, %p64, %x64 : !tile.ptr<i64>, i64 -> i64
    %r18 = tile.atomic_rmw fadd, relaxed, gpu, %pf32, %xf32 : !tile.ptr<f32>, f32 -> f32
    %r19 = tile.atomic_rmw fadd, relaxed, gpu, %pf64, %xf64 : !tile.ptr<f64>, f64 -> f64
    %r20 = tile.atomic_rmw fadd, relaxed, gpu, %pf16, %xf16 : !tile.ptr<f16>, f16 -> f16
    %r21 = tile.atomic_rmw fadd, relaxed, gpu, %pbf16, %xbf16 : !tile.ptr<bf16>, bf16 -> bf16
    tile.return
  }

// The maximum of floats is a loop around a compare-and-swap, entered by who acts.

// CHECK-LABEL: llvm.func @loop
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = llvm.inline_asm {{.*}} "ld.relaxed.sys.global.b16 $0, [$1];", "=h,l"
// CHECK: scf.while (%[[OLD:.*]] = %[[FIRST]])
// CHECK: %[[MAX:.*]] = llvm.intr.maxnum
// CHECK: %[[NEW:.*]] = llvm.fptrunc %[[MAX]] : f32 to f16
// CHECK: %[[BITS:.*]] = llvm.bitcast %[[NEW]] : f16 to i16
// CHECK: %[[FOUND:.*]] = llvm.inline_asm {{.*}} "atom.acq_rel.sys.global.cas.b16 $0, [$1], $2, $3;", "=h,l,h,h" %{{.*}}, %[[OLD]], %[[BITS]]
// CHECK: %[[AGAIN:.*]] = llvm.icmp "ne" %[[FOUND]], %[[OLD]]
// CHECK: scf.condition(%[[AGAIN]]) %[[FOUND]]
  tile.func @loop(%p: !tile.ptr<f16>, %x: f16) {
    %0 = tile.atomic_rmw fmax, acq_rel, sys, %p, %x : !tile.ptr<f16>, f16 -> f16
    tile.return
  }
}

// -----

// Eight bits are half of what a compare-and-swap takes: the rest stays as it was found, and
// a change of it is a reason to try again.

module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @byte
// CHECK-SAME: %[[P:.+]]: !llvm.ptr<1>, %[[X:.+]]: i8
// CHECK: %[[SHIFT:.+]] = llvm.shl %{{.+}}, %{{.+}} : i16
// CHECK: %[[MASK:.+]] = llvm.shl %{{.+}}, %[[SHIFT]] : i16
// CHECK: %[[HALF:.+]] = llvm.inttoptr %{{.+}} : i64 to !llvm.ptr<1>
// CHECK: llvm.inline_asm {{.*}} "ld.relaxed.gpu.global.b16 $0, [$1];", "=h,l" %[[HALF]]
// CHECK: scf.while (%[[FOUND:.+]] =
// CHECK: %[[SHIFTED:.+]] = llvm.lshr %[[FOUND]], %[[SHIFT]] : i16
// CHECK: %[[OLD:.+]] = llvm.trunc %[[SHIFTED]] : i16 to i8
// CHECK: %[[NEW:.+]] = llvm.add %[[OLD]], %[[X]] : i8
// CHECK: %[[WIDE:.+]] = llvm.zext %[[NEW]] : i8 to i16
// CHECK: %[[BITS:.+]] = llvm.shl %[[WIDE]], %[[SHIFT]] : i16
// CHECK: %[[ALL:.+]] = llvm.or %[[FOUND]], %[[MASK]] : i16
// CHECK: %[[FLIPPED:.+]] = llvm.xor %[[MASK]], %[[BITS]] : i16
// CHECK: %[[PUT:.+]] = llvm.xor %[[ALL]], %[[FLIPPED]] : i16
// CHECK: llvm.inline_asm {{.*}} "atom.acq_rel.gpu.global.cas.b16 $0, [$1], $2, $3;", "=h,l,h,h" %[[HALF]], %[[FOUND]], %[[PUT]]
  tile.func @byte(%p: !tile.ptr<i8>, %x: i8) {
    %0 = tile.atomic_rmw add, acq_rel, gpu, %p, %x : !tile.ptr<i8>, i8 -> i8
    tile.return
  }

// Lanes that are off, and threads that do not represent the scalar, do nothing.
// CHECK-LABEL: llvm.func @masked_cas
// CHECK-SAME: , %[[M:[^:,]+]]: i8)
// CHECK: %[[ON:.+]] = llvm.icmp "ne" %[[M]]
// CHECK: %[[ACTS:.+]] = llvm.and %[[ON]], %{{.+}} : i1
// CHECK: atom.relaxed.gpu.global.cas.b32 {{.*}}%[[ACTS]] : (
  tile.func @masked_cas(%p: !tile.ptr<i32>, %x: i32, %y: i32, %m: i1) {
    %0 = tile.atomic_cas relaxed, gpu, %p, %x, %y, %m : !tile.ptr<i32>, i32, i1
    tile.return
  }

// CHECK-LABEL: llvm.func @byte_cas
// CHECK: scf.while
// CHECK: %[[EQUAL:.+]] = llvm.icmp "eq"
// CHECK: llvm.select %[[EQUAL]]
// CHECK: atom.acquire.cta.global.cas.b16
  tile.func @byte_cas(%p: !tile.ptr<i8>, %x: i8, %y: i8) {
    %0 = tile.atomic_cas acquire, cta, %p, %x, %y : !tile.ptr<i8>, i8
    tile.return
  }
}

// -----

// bf16 has a sum of its own from sm_90 on.

// CHECK-LABEL: llvm.func @bf16_before_sm_90
// CHECK: scf.while
// CHECK: atom.relaxed.gpu.global.cas.b16
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  tile.func @bf16_before_sm_90(%p: !tile.ptr<bf16>, %x: bf16) {
    %0 = tile.atomic_rmw fadd, relaxed, gpu, %p, %x : !tile.ptr<bf16>, bf16 -> bf16
    tile.return
  }
}

// -----

// Copies get the result from the one that acted: by a shuffle within a warp, through
// scratch memory between warps. The mask is part of the predicate.

#lanes = #tilegpu.layout<32, lane = [1, 2, 4, 8, 0], warp = [16]>
#warps = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16], warp = [0]>

// CHECK-LABEL: llvm.func @by_shuffle
// CHECK: %[[ACTS:.*]] = llvm.and %{{.*}}, %{{.*}} : i1
// CHECK: %[[OLD:.*]] = llvm.inline_asm {{.*}}atom.relaxed.gpu.global.add.u32{{.*}}, %[[ACTS]] :
// CHECK: %[[ALL:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[OLD]]
// CHECK: "@$2 st.global.b32 [$0], $1;", "l,r,b" %{{.*}}, %[[ALL]]
// CHECK-LABEL: llvm.func @by_memory
// CHECK: %[[OLD:.*]] = llvm.inline_asm {{.*}}atom.relaxed.gpu.global.add.u32
// CHECK: llvm.store %[[OLD]], %[[SLOT:.*]] {alignment = 4 : i64} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: %[[ALL:.*]] = llvm.load %[[SLOT]]
// CHECK: "@$2 st.global.b32 [$0], $1;", "l,r,b" %{{.*}}, %[[ALL]]
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  tile.func @by_shuffle(%p: !tile.ptr<i32>, %n: i32) {
    %i = tile.range 0 to 32 : tensor<32xi32, #lanes>
    %ns = tile.splat %n : i32 -> tensor<32xi32, #lanes>
    %m = arith.cmpi slt, %i, %ns : tensor<32xi32, #lanes>
    %ps = tile.splat %p : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #lanes>
    %pi = tile.addptr %ps, %i : tensor<32x!tile.ptr<i32>, #lanes>, tensor<32xi32, #lanes>
    %x = tile.atomic_rmw add, relaxed, gpu, %pi, %i, %m
       : tensor<32x!tile.ptr<i32>, #lanes>, tensor<32xi32, #lanes>, tensor<32xi1, #lanes> -> tensor<32xi32, #lanes>
    tile.store %pi, %x : tensor<32x!tile.ptr<i32>, #lanes>
    tile.return
  }
  tile.func @by_memory(%p: !tile.ptr<i32>) {
    %i = tile.range 0 to 32 : tensor<32xi32, #warps>
    %ps = tile.splat %p : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #warps>
    %pi = tile.addptr %ps, %i : tensor<32x!tile.ptr<i32>, #warps>, tensor<32xi32, #warps>
    %x = tile.atomic_rmw add, relaxed, gpu, %pi, %i {tilegpu.scratch_offset = 0 : i32}
       : tensor<32x!tile.ptr<i32>, #warps>, tensor<32xi32, #warps> -> tensor<32xi32, #warps>
    tile.store %pi, %x : tensor<32x!tile.ptr<i32>, #warps>
    tile.return
  }
}
// -----

// Sums of floats that lie side by side are one instruction, from sm_90 on. What is known to be
// masked together has one predicate; what is not is done element by element. The whole op has an
// ordering: fences stand around its instructions.

#quads = #tilegpu.layout<256, reg = [1, 2, 128], lane = [4, 8, 16, 32, 64]>
#octets = #tilegpu.layout<256, reg = [1, 2, 4], lane = [8, 16, 32, 64, 128]>

module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @vectors
// CHECK-COUNT-2: "atom.relaxed.gpu.global.add.v4.f32 {$0, $1, $2, $3}, [$4], {$5, $6, $7, $8};", "=f,=f,=f,=f,l,f,f,f,f"
// CHECK-NOT: atom
  tile.func @vectors(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %v: f32) {
    %i = tile.range 0 to 256 : tensor<256xi32, #quads>
    %s = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #quads>
    %q = tile.addptr %s, %i : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xi32, #quads>
    %x = tile.splat %v : f32 -> tensor<256xf32, #quads>
    %old = tile.atomic_rmw fadd, relaxed, gpu, %q, %x : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads> -> tensor<256xf32, #quads>
    tile.return
  }

// CHECK-LABEL: llvm.func @octets
// CHECK: "@$25 atom.relaxed.gpu.global.add.noftz.v8.bf16 {$0, {{.*}}, $7}, [$16], {$17, {{.*}}, $24};", "=h,=h,=h,=h,=h,=h,=h,=h,0,1,2,3,4,5,6,7,l,h,h,h,h,h,h,h,h,b"
// CHECK-NOT: atom
  tile.func @octets(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %v: bf16, %there: i1) {
    %i = tile.range 0 to 256 : tensor<256xi32, #octets>
    %s = tile.splat %p : !tile.ptr<bf16> -> tensor<256x!tile.ptr<bf16>, #octets>
    %q = tile.addptr %s, %i : tensor<256x!tile.ptr<bf16>, #octets>, tensor<256xi32, #octets>
    %x = tile.splat %v : bf16 -> tensor<256xbf16, #octets>
    %m = tile.splat %there : i1 -> tensor<256xi1, #octets>
    %old = tile.atomic_rmw fadd, relaxed, gpu, %q, %x, %m : tensor<256x!tile.ptr<bf16>, #octets>, tensor<256xbf16, #octets>, tensor<256xi1, #octets> -> tensor<256xbf16, #octets>
    tile.return
  }

// CHECK-LABEL: llvm.func @bounded
// CHECK-COUNT-8: atom.relaxed.gpu.global.add.f32
// CHECK-NOT: atom
  tile.func @bounded(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %v: f32, %n: i32) {
    %i = tile.range 0 to 256 : tensor<256xi32, #quads>
    %s = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #quads>
    %q = tile.addptr %s, %i : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xi32, #quads>
    %x = tile.splat %v : f32 -> tensor<256xf32, #quads>
    %b = tile.splat %n : i32 -> tensor<256xi32, #quads>
    %m = arith.cmpi slt, %i, %b : tensor<256xi32, #quads>
    %old = tile.atomic_rmw fadd, relaxed, gpu, %q, %x, %m : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads>, tensor<256xi1, #quads> -> tensor<256xf32, #quads>
    tile.return
  }

// What other devices see, and other kinds, are done element by element.
// CHECK-LABEL: llvm.func @elements
// CHECK-COUNT-8: atom.relaxed.sys.global.add.f32
// CHECK-COUNT-8: cas.b32
// CHECK-NOT: atom
  tile.func @elements(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %v: f32) {
    %i = tile.range 0 to 256 : tensor<256xi32, #quads>
    %s = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #quads>
    %q = tile.addptr %s, %i : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xi32, #quads>
    %x = tile.splat %v : f32 -> tensor<256xf32, #quads>
    %old = tile.atomic_rmw fadd, relaxed, sys, %q, %x : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads> -> tensor<256xf32, #quads>
    %most = tile.atomic_rmw fmax, relaxed, gpu, %q, %x : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads> -> tensor<256xf32, #quads>
    tile.return
  }

// Of an address that 8 bytes divide, two; of one that 4 divide, one.
// CHECK-LABEL: llvm.func @pairs
// CHECK-COUNT-4: atom.relaxed.gpu.global.add.v2.f32
// CHECK-NOT: atom
  tile.func @pairs(%p: !tile.ptr<f32> {tile.divisibility = 8 : i64}, %v: f32) {
    %i = tile.range 0 to 256 : tensor<256xi32, #quads>
    %s = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #quads>
    %q = tile.addptr %s, %i : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xi32, #quads>
    %x = tile.splat %v : f32 -> tensor<256xf32, #quads>
    %old = tile.atomic_rmw fadd, relaxed, gpu, %q, %x : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads> -> tensor<256xf32, #quads>
    tile.return
  }

// CHECK-LABEL: llvm.func @ordered
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: "fence.acq_rel.gpu;"
// CHECK-COUNT-2: atom.relaxed.gpu.global.add.v4.f32
// CHECK: "fence.acq_rel.gpu;"
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: "fence.acq_rel.sys;"
// CHECK-COUNT-8: st.relaxed.sys.global.b32
// CHECK-NOT: fence
// CHECK-COUNT-8: ld.relaxed.cta.global.b32
// CHECK: "fence.acq_rel.cta;"
// CHECK-NEXT: nvvm.bar.warp.sync
  tile.func @ordered(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %v: f32) {
    %i = tile.range 0 to 256 : tensor<256xi32, #quads>
    %s = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #quads>
    %q = tile.addptr %s, %i : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xi32, #quads>
    %x = tile.splat %v : f32 -> tensor<256xf32, #quads>
    %old = tile.atomic_rmw fadd, acq_rel, gpu, %q, %x : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads> -> tensor<256xf32, #quads>
    tile.atomic_store release, sys, %q, %x : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads>
    %now = tile.atomic_load acquire, cta, %q : tensor<256x!tile.ptr<f32>, #quads> -> tensor<256xf32, #quads>
    tile.return
  }
}

// -----

#quads = #tilegpu.layout<256, reg = [1, 2, 128], lane = [4, 8, 16, 32, 64]>

module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: llvm.func @before_sm_90
// CHECK-COUNT-8: atom.relaxed.gpu.global.add.f32
// CHECK-NOT: atom
  tile.func @before_sm_90(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %v: f32) {
    %i = tile.range 0 to 256 : tensor<256xi32, #quads>
    %s = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #quads>
    %q = tile.addptr %s, %i : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xi32, #quads>
    %x = tile.splat %v : f32 -> tensor<256xf32, #quads>
    %old = tile.atomic_rmw fadd, relaxed, gpu, %q, %x : tensor<256x!tile.ptr<f32>, #quads>, tensor<256xf32, #quads> -> tensor<256xf32, #quads>
    tile.return
  }
}
