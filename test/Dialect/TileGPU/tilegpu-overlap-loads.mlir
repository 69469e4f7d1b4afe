// RUN: tessera-opt --tilegpu-overlap-loads %s | FileCheck %s

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// An iteration loads 32 bytes a thread: four iterations at once. Their loads come first, each if
// its iteration exists.
// CHECK-LABEL: tile.func private @streams
// CHECK: %[[FOUR:.+]] = arith.constant 4 : i32
// CHECK: scf.for %[[I:.+]] = %{{.+}} to %[[N:.+]] step %[[FOUR]] iter_args(%[[S:.+]] = %{{.+}})
// CHECK: %[[LEFT:.+]] = arith.subi %[[N]], %[[I]]
// CHECK: %[[X0:.+]] = tile.load %{{.+}} : tensor<2048x!tile.ptr<f16>
// CHECK: arith.addi %[[I]], %{{.+}} overflow<nsw> : i32
// CHECK: %[[C1:.+]] = arith.cmpi ugt, %[[LEFT]], %{{.+}}
// CHECK: %[[M1:.+]] = tile.splat %[[C1]]
// CHECK: %[[X1:.+]] = tile.load %{{.+}}, %[[M1]]
// CHECK: %[[C2:.+]] = arith.cmpi ugt, %[[LEFT]], %{{.+}}
// CHECK: %[[X2:.+]] = tile.load
// CHECK: %[[C3:.+]] = arith.cmpi ugt, %[[LEFT]], %{{.+}}
// CHECK: %[[X3:.+]] = tile.load
// CHECK-NEXT: %[[S0:.+]] = arith.addf %[[S]], %[[X0]]
// CHECK-NEXT: %[[S1:.+]] = scf.if %[[C1]]
// CHECK-NEXT: %[[SUM:.+]] = arith.addf %[[S0]], %[[X1]]
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[S0]]
// CHECK: %[[S2:.+]] = scf.if %[[C2]]
// CHECK: arith.addf %[[S1]], %[[X2]]
// CHECK: %[[S3:.+]] = scf.if %[[C3]]
// CHECK: arith.addf %[[S2]], %[[X3]]
// CHECK: scf.yield %[[S3]]
// CHECK: tile.return
tile.func private @streams(%p: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, %q: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %o = tile.splat %i : i32 -> tensor<2048xi32, #tilegpu.unassigned>
    %pi = tile.addptr %p, %o : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
    %x = tile.load %pi : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  }
  tile.store %q, %sum : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  tile.return
}

// A known number of iterations: 6 are two groups of three, without conditions, and 5 are one of three
// and one of two. Addresses that are carried are computed ahead, and a sum of them is left to the
// iterations.
// CHECK-LABEL: tile.func private @known
// CHECK: {tile.loop_unroll_factor = 3 : i32}
// CHECK: scf.for %{{.+}} iter_args(%{{.+}} = %{{.+}}, %[[P:.+]] = %{{.+}})
// CHECK: tile.load %[[P]] :
// CHECK: %[[P1:.+]] = tile.addptr %[[P]]
// CHECK: tile.load %[[P1]], %{{.+}} :
// CHECK: %[[P2:.+]] = tile.addptr %[[P1]]
// CHECK: tile.load %[[P2]], %{{.+}} :
// CHECK: %[[P3:.+]] = tile.addptr %[[P2]]
// CHECK-COUNT-2: scf.if %{{.+}} -> (tensor<2048xf16, #tilegpu.unassigned>)
// CHECK: scf.yield %{{.+}}, %[[P3]]
// CHECK-NOT: tile.load
// CHECK: tile.return
tile.func private @known(%p: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, %q: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %one = arith.constant dense<1> : tensor<2048xi32, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %c6 = arith.constant 6 : i32
  %a = scf.for %i = %c0 to %c6 step %c1 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %x = tile.load %p : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  }
  tile.store %p, %a : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  %b:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %zero, %at = %q) -> (tensor<2048xf16, #tilegpu.unassigned>, tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>) : i32 {
    %x = tile.load %at : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    %behind = tile.addptr %at, %one : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
    scf.yield %next, %behind : tensor<2048xf16, #tilegpu.unassigned>, tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  }
  tile.store %q, %b#0 : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  tile.return
}

// A thread has two elements of an iteration: too few to work on while others wait, so that iterations
// are merged.
// CHECK-LABEL: tile.func private @short
// CHECK-NOT: scf.if
// CHECK: {tile.loop_unroll_factor = 8 : i32}
// CHECK: tile.return
tile.func private @short(%p: tensor<256x!tile.ptr<f16>, #tilegpu.unassigned>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<256xf16, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<256xf16, #tilegpu.unassigned>) : i32 {
    %x = tile.load %p : tensor<256x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<256xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<256xf16, #tilegpu.unassigned>
  }
  tile.store %p, %a : tensor<256x!tile.ptr<f16>, #tilegpu.unassigned>
  tile.return
}

// The user's own factor stays; what writes, or loads enough in one iteration, stays as it is.
// CHECK-LABEL: tile.func private @others
// CHECK: {tile.loop_unroll_factor = 2 : i32}
// CHECK-NOT: tile.loop_unroll_factor
// CHECK: tile.return
tile.func private @others(%p: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, %q: tensor<16384x!tile.ptr<f32>, #tilegpu.unassigned>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %large = arith.constant dense<0.0> : tensor<16384xf32, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %x = tile.load %p : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  } {tile.loop_unroll_factor = 2 : i32}
  tile.store %p, %a : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    tile.store %p, %x : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%s = %large) -> (tensor<16384xf32, #tilegpu.unassigned>) : i32 {
    %x = tile.load %q : tensor<16384x!tile.ptr<f32>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<16384xf32, #tilegpu.unassigned>
    scf.yield %next : tensor<16384xf32, #tilegpu.unassigned>
  }
  tile.store %q, %b : tensor<16384x!tile.ptr<f32>, #tilegpu.unassigned>
  tile.return
}
}
