// RUN: tessera-opt %s --split-input-file --strips-lower-programs | FileCheck %s

// CHECK-LABEL: func.func @kernel(
// CHECK-SAME:    %[[LAUNCH:.*]]: !llvm.ptr {llvm.noalias}, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %[[SCRATCH:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}) -> i32
// CHECK-SAME:    strips.scratch_bytes = 256 : i64
// CHECK:         %[[SLOTS:.*]] = llvm.load %[[LAUNCH]]
// CHECK:         %[[P:.*]] = llvm.load %[[SLOTS]]{{.*}} -> i64
// CHECK:         %[[SECOND:.*]] = llvm.getelementptr %[[SLOTS]][8]
// CHECK:         llvm.load %[[SECOND]]{{.*}} -> f32
// CHECK:         scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %{{.*}} iter_args(%[[X:.*]] = %{{.*}}) -> (i32)
// CHECK:           %[[WIDE:.*]] = arith.extsi %[[X]] : i32 to i64
// CHECK:           %[[BYTES:.*]] = arith.muli %[[WIDE]], %c4
// CHECK:           %[[AT:.*]] = arith.addi %[[P]], %[[BYTES]]
// CHECK:           llvm.inttoptr %[[AT]]
// CHECK:           llvm.store
// CHECK:           %[[NEXT:.*]] = arith.addi %[[X]], %c1
// CHECK:           arith.cmpi eq, %[[NEXT]]
tile.func @kernel(%p: !tile.ptr<f32>, %v: f32) attributes {strips.scratch_bytes = 256 : i64} {
  %x = tile.program_id 0
  %q = tile.addptr %p, %x : !tile.ptr<f32>, i32
  tile.store %q, %v : !tile.ptr<f32>
  tile.return
}

// -----

// Ids are counted as far as the program asks for them: here the second, so the first as well.

// CHECK-LABEL: func.func @second_id(
// CHECK-COUNT-2: arith.remui
// CHECK-NOT:     arith.remui
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[Y:.*]] = %{{.*}}) -> (i32, i32)
// CHECK:           llvm.store %[[Y]]
tile.func @second_id(%p: !tile.ptr<i32>) {
  %y = tile.program_id 1
  tile.store %p, %y : !tile.ptr<i32>
  tile.return
}

// -----

// CHECK-LABEL: func.func @no_id(
// CHECK-NOT:     arith.remui
// CHECK:         scf.for
// CHECK-NOT:       iter_args
// CHECK:           llvm.store
tile.func @no_id(%p: !tile.ptr<i32>) {
  %c1 = arith.constant 1 : i32
  tile.store %p, %c1 : !tile.ptr<i32>
  tile.return
}

// -----

// The arena is seen through memrefs, and vectors in it are aligned as their elements are.

// CHECK-LABEL: func.func @scratch(
// CHECK-SAME:    %[[SCRATCH:[a-z0-9]*]]: !llvm.ptr {llvm.align
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[SCRATCH]][64]
// CHECK:         %[[DESCRIPTOR:.*]] = llvm.insertvalue %[[AT]], %{{.*}}[0]
// CHECK:         %[[VIEW:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<4x8xf32>
// CHECK:         memref.load %[[VIEW]]
// CHECK:         %[[ROW:.*]] = vector.load %[[VIEW]]{{.*}} {alignment = 4 : i64}
// CHECK:         vector.store %[[ROW]], %[[VIEW]]{{.*}} {alignment = 4 : i64}
tile.func @scratch(%p: !tile.ptr<f32>) attributes {strips.scratch_bytes = 192 : i64} {
  %b = strips.scratch 64 : memref<4x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = memref.load %b[%c0, %c0] : memref<4x8xf32>
  %row = vector.load %b[%c0, %c0] : memref<4x8xf32>, vector<8xf32>
  vector.store %row, %b[%c1, %c0] : memref<4x8xf32>, vector<8xf32>
  tile.store %p, %v : !tile.ptr<f32>
  tile.return
}

// -----

// An assertion that fails writes the record of the launch, once.

// CHECK-LABEL: func.func @check(
// CHECK-SAME:    %[[LAUNCH:.*]]: !llvm.ptr {llvm.noalias}
// CHECK-SAME:    strips.sites = [{column = 0 : i64, file = "", line = 0 : i64, message = "negative"}]
// CHECK:         scf.if
// CHECK:           %[[FAILS:.*]] = arith.xori
// CHECK:           scf.if %[[FAILS]]
// CHECK:             %[[RECORD:.*]] = llvm.getelementptr %[[LAUNCH]][24]
// CHECK:             %[[FAULT:.*]] = llvm.load %[[RECORD]]
// CHECK:             llvm.cmpxchg %[[FAULT]]
tile.func @check(%n: i32) {
  %c0 = arith.constant 0 : i32
  %ok = arith.cmpi sge, %n, %c0 : i32
  tile.assert %ok, "negative" : i1 loc(unknown)
  tile.return
}

// -----

// A function knows the program that it is called in, and has the scratch memory behind
// its caller's.

// CHECK-LABEL: func.func private @twice(
// CHECK-SAME:    %[[N:.*]]: i32, %{{.*}}: !llvm.ptr, %[[X:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: !llvm.ptr) -> i32
// CHECK:         arith.addi %[[N]], %[[X]]
// CHECK-LABEL: func.func @caller(
// CHECK:         scf.for %{{.*}} iter_args(%[[ID:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK:           %[[REST:.*]] = llvm.getelementptr %{{.*}}[64]
// CHECK:           call @twice(%{{.*}}, %{{.*}}, %[[ID]], %{{.*}}, %{{.*}}, %[[REST]])
tile.func private @twice(%n: i32) -> i32 attributes {noinline} {
  %x = tile.program_id 0
  %y = arith.addi %n, %x : i32
  tile.return %y : i32
}
tile.func @caller(%p: !tile.ptr<i32>, %n: i32) attributes {strips.scratch_bytes = 64 : i64} {
  %y = tile.call @twice(%n) : (i32) -> i32
  tile.store %p, %y : !tile.ptr<i32>
  tile.return
}

// -----

// What all programs of the launch write, beside what the launcher says the caches keep.

// CHECK-LABEL: func.func @streams
// CHECK-SAME:    %[[LAUNCH:[a-z0-9]*]]: !llvm.ptr
// CHECK-DAG:     %[[KEPT_AT:.*]] = llvm.getelementptr %[[LAUNCH]][40]
// CHECK-DAG:     %[[KEPT:.*]] = llvm.load %[[KEPT_AT]]{{.*}} -> i64
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK:           %[[ROW:.*]] = arith.muli %{{.*}}, %[[X]] : i64
// CHECK:           %[[PLANE:.*]] = arith.muli %[[ROW]], %{{.*}} : i64
// CHECK:           %[[ALL:.*]] = arith.muli %[[PLANE]], %{{.*}} : i64
// CHECK:           arith.cmpi uge, %[[ALL]], %[[KEPT]] : i64
tile.func @streams(%p: !tile.ptr<i8>) {
  %bytes = arith.constant 4096 : i64
  %large = strips.exceeds_caches %bytes
  %one = arith.extui %large : i1 to i8
  tile.store %p, %one : !tile.ptr<i8>
  tile.return
}

// -----

// The program that runs next on this thread; the last one is followed by none.

// CHECK-LABEL: func.func @next_program
// CHECK-SAME:    %[[END:[a-z0-9]*]]: i64, %{{[a-z0-9]*}}: !llvm.ptr {llvm.align
// CHECK:         scf.for %[[NUMBER:.*]] = %{{.*}} to %[[END]] step %{{.*}} iter_args(%[[X:.*]] = %{{.*}}) -> (i32)
// CHECK:           %[[PLUS:.*]] = arith.addi %[[X]], %c1
// CHECK:           %[[WRAPS:.*]] = arith.cmpi eq, %[[PLUS]]
// CHECK:           %[[FOLLOWING:.*]] = arith.select %[[WRAPS]], %c0{{.*}}, %[[PLUS]]
// CHECK:           %[[COUNT:.*]] = arith.addi %[[NUMBER]], %c1
// CHECK:           %[[LAST:.*]] = arith.cmpi eq, %[[COUNT]], %[[END]]
// CHECK:           %[[NEXT:.*]] = arith.select %[[LAST]], %[[X]], %[[FOLLOWING]]
// CHECK:           llvm.store %[[NEXT]]
// CHECK:           scf.yield %[[FOLLOWING]]
tile.func @next_program(%p: !tile.ptr<i32>) {
  %next = strips.next_program_id 0
  tile.store %p, %next : !tile.ptr<i32>
  tile.return
}

// -----

// The time is what a function of ours says, each time.

// CHECK-LABEL: func.func @clock(
// CHECK:         %[[START:.*]] = {{.*}}call @__tessera_rt_clock_ns() : () -> i64
// CHECK:         %[[END:.*]] = {{.*}}call @__tessera_rt_clock_ns() : () -> i64
// CHECK:         arith.subi %[[END]], %[[START]]
tile.func @clock(%p: !tile.ptr<i64>) {
  %0 = tile.clock
  %1 = tile.clock
  %2 = arith.subi %1, %0 : i64
  tile.store %p, %2 : !tile.ptr<i64>
  tile.return
}

// -----

// Consecutive arguments are read where the launch has them. An index behind the end is the last.

// CHECK-LABEL: func.func @table(
// CHECK:         %[[SLOTS:.*]] = llvm.load
// CHECK:         scf.for
// CHECK:           %[[LAST:.*]] = arith.constant 2 : i32
// CHECK:           %[[I:.*]] = arith.minui %{{.*}}, %[[LAST]] : i32
// CHECK:           %[[WIDE:.*]] = arith.extui %[[I]] : i32 to i64
// CHECK:           %[[BYTES:.*]] = arith.muli %[[WIDE]], %c8
// CHECK:           %[[TABLE:.*]] = llvm.getelementptr %[[SLOTS]][%[[BYTES]]]
// CHECK:           %[[SLOT:.*]] = llvm.getelementptr %[[TABLE]][8]
// CHECK:           %[[P:.*]] = llvm.load %[[SLOT]]{{.*}} -> i64
// CHECK:           llvm.inttoptr %[[P]]
// CHECK:           llvm.store
// CHECK-NOT:       arith.cmpi ult
tile.func @table(%v: f32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %r: !tile.ptr<f32>) {
  %x = tile.program_id 0
  %at = tile.lookup %x, [%p, %q, %r] : i32, !tile.ptr<f32>
  tile.store %at, %v : !tile.ptr<f32>
  tile.return
}

// -----

// Other items are selected by halves.

// CHECK-LABEL: func.func @selected(
// CHECK:           %[[FIRST:.*]] = arith.cmpi ult, %[[X:.*]], %c1_i32
// CHECK:           %[[SECOND:.*]] = arith.cmpi ult, %[[X]], %c2_i32
// CHECK:           %[[BACK:.*]] = arith.select %[[SECOND]], %[[P:.*]], %[[Q:.*]] : i64
// CHECK:           arith.select %[[FIRST]], %[[Q]], %[[BACK]] : i64
tile.func @selected(%v: f32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %x = tile.program_id 0
  %at = tile.lookup %x, [%q, %p, %q] : i32, !tile.ptr<f32>
  tile.store %at, %v : !tile.ptr<f32>
  tile.return
}

// -----

// AMX's registers are configured once for all programs of a call, also if only a function that the
// kernel calls uses them.

// CHECK:       llvm.mlir.global internal constant @strips.tile_configuration("\01\00{{.*}}@\00@\00{{.*}}\10\10\10\10\10\10\10\10{{.*}}")
// CHECK-LABEL: func.func private @multiply
// CHECK-NOT:     ldtilecfg
// CHECK-LABEL: func.func @kernel(
// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"(%{{.*}}) : (!llvm.ptr) -> ()
// CHECK:         scf.for
// CHECK:           func.call @multiply
// CHECK:         }
// CHECK:         llvm.call_intrinsic "llvm.x86.tilerelease"() : () -> ()
// CHECK:         return
tile.func private @multiply() attributes {strips.tile_registers} {
  tile.return
}
tile.func @kernel() {
  tile.call @multiply() : () -> ()
  tile.return
}
