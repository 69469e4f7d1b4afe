// RUN: tessera-opt %s --split-input-file --verify-diagnostics=only-expected --pass-pipeline='builtin.module(tile.func(strips-group,strips-materialize,strips-lower{machine=avx512 remarks}))' -o /dev/null

// What is said of each way that an atomic can go, and why it is not a faster one.

// Rows that the data choose.
tile.func @rows(%p: !tile.ptr<f32>, %rows: !tile.ptr<i32>, %v: f32) {
  %r = tile.range 0 to 8 : tensor<8xi32>
  %rp0 = tile.splat %rows : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>>
  %rp = tile.addptr %rp0, %r : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  %at = tile.load %rp : tensor<8x!tile.ptr<i32>>
  %at1 = tile.expand_dims %at {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %at2 = tile.broadcast %at1 : tensor<8x1xi32> -> tensor<8x64xi32>
  %c = tile.range 0 to 64 : tensor<64xi32>
  %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %c2 = tile.broadcast %c1 : tensor<1x64xi32> -> tensor<8x64xi32>
  %p0 = tile.splat %p : !tile.ptr<f32> -> tensor<8x64x!tile.ptr<f32>>
  %p1 = tile.addptr %p0, %at2 : tensor<8x64x!tile.ptr<f32>>, tensor<8x64xi32>
  %p2 = tile.addptr %p1, %c2 : tensor<8x64x!tile.ptr<f32>>, tensor<8x64xi32>
  %value = tile.splat %v : f32 -> tensor<8x64xf32>
  // expected-remark @below {{atomic: in the thread's private copy of up to the first 256 KiB, which is added to the array at the end; beyond it, 4 elements along dimension 1 at a time, by one locked instruction where they are aligned}}
  %old = tile.atomic_rmw fadd, relaxed, gpu, %p2, %value : tensor<8x64x!tile.ptr<f32>>, tensor<8x64xf32> -> tensor<8x64xf32>
  tile.return
}

// -----

// Neighbours: what other programs may see, what is no sum, what is too narrow for a copy, and
// what is in a loop.
tile.func @neighbours(%p: !tile.ptr<i32>, %h: !tile.ptr<f16>, %v: i32, %w: f16, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = tile.range 0 to 64 : tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  // expected-remark-re @below {{atomic: 16 elements along dimension 0 at a time, by loads and stores, since no other program accesses them{{$}}}}
  %old = tile.atomic_rmw add, relaxed, cta, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  // expected-remark @below {{atomic: 4 elements along dimension 0 at a time, by one locked instruction where they are aligned; only sums can be privatised}}
  %max = tile.atomic_rmw max, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %h0 = tile.splat %h : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %h1 = tile.addptr %h0, %r : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  %half = tile.splat %w : f16 -> tensor<64xf16>
  // expected-remark @below {{atomic: 8 elements along dimension 0 at a time, by one locked instruction where they are aligned; only sums of 32 and 64 bits can be privatised}}
  %halves = tile.atomic_rmw fadd, relaxed, gpu, %h1, %half : tensor<64x!tile.ptr<f16>>, tensor<64xf16> -> tensor<64xf16>
  scf.for %k = %zero to %n step %one : i32 {
    // expected-remark @below {{where they are aligned; no private copy of the array for a thread, since it is in a loop; no private sums for a program, since no constant bounds its offsets}}
    %again = tile.atomic_rmw add, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  }
  tile.return
}

// -----

// A histogram; one of more places than there are lanes; and one whose places do not fit.
tile.func private @histogram(%p: !tile.ptr<i32>, %i: !tile.ptr<i32>, %v: i32) {
  %c15 = arith.constant dense<15> : tensor<64xi32>
  %c63 = arith.constant dense<63> : tensor<64xi32>
  %c16383 = arith.constant dense<16383> : tensor<64xi32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  %i0 = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %i1 = tile.addptr %i0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %x = tile.load %i1 : tensor<64x!tile.ptr<i32>>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  %bin = arith.andi %x, %c15 : tensor<64xi32>
  %p1 = tile.addptr %p0, %bin : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: summed up in the program's private memory, then added to the array}}
  %old1 = tile.atomic_rmw add, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %few = arith.andi %x, %c63 : tensor<64xi32>
  %p2 = tile.addptr %p0, %few : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: a locked instruction for each element: no elements are known to be adjacent that the machine can swap at once; no private copy of the array for a thread, since it is not in a kernel; no private sums for a program, since there are fewer than 4 lanes for each of 64 elements}}
  %old2 = tile.atomic_rmw add, relaxed, gpu, %p2, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %many = arith.andi %x, %c16383 : tensor<64xi32>
  %p3 = tile.addptr %p0, %many : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{no private sums for a program, since 16384 elements do not fit the caches}}
  %old3 = tile.atomic_rmw add, relaxed, gpu, %p3, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  tile.return
}

// -----

tile.func @anywhere(%p: !tile.ptr<i32>, %i: !tile.ptr<i32>, %v: i32) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %i0 = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %i1 = tile.addptr %i0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %at = tile.load %i1 : tensor<64x!tile.ptr<i32>>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %at : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  // expected-remark @below {{beyond it, a locked instruction for each element: no elements are known to be adjacent that the machine can swap at once}}
  %old = tile.atomic_rmw add, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  tile.return
}

// -----

// Who reads what was there before; and who would, if it came late.
tile.func @read(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %i: !tile.ptr<i32>, %v: i32, %out: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  // expected-remark @below {{atomic: a locked instruction for each element: its old values are read}}
  %old = tile.atomic_rmw add, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %q0 = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %q1 = tile.addptr %q0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{no private copy of the array for a thread, since other accesses could observe when it adds}}
  %unread = tile.atomic_rmw add, relaxed, gpu, %q1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %o0 = tile.splat %out : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %o1 = tile.addptr %o0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %o1, %old : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

tile.func @of_each_program(%p: !tile.ptr<i32>, %v: i32) {
  %id = tile.program_id 0
  %at = tile.splat %id : i32 -> tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %at : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  // expected-remark @below {{no private copy of the array for a thread, since its addresses depend on the program}}
  %old = tile.atomic_rmw add, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  tile.return
}

// -----

// A thread has copies of four arrays. What else is added to one of them goes there, too.
tile.func @five_arrays(%a: !tile.ptr<i32>, %b: !tile.ptr<i32>, %c: !tile.ptr<i32>, %d: !tile.ptr<i32>, %e: !tile.ptr<i32>, %v: i32) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  %a0 = tile.splat %a : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %a1 = tile.addptr %a0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: in the thread's private copy of up to the first 256 KiB, which is added}}
  %a2 = tile.atomic_rmw add, relaxed, gpu, %a1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %b0 = tile.splat %b : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %b1 = tile.addptr %b0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: in the thread's private copy of up to the first 256 KiB, which is added}}
  %b2 = tile.atomic_rmw add, relaxed, gpu, %b1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %c0 = tile.splat %c : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %c1 = tile.addptr %c0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: in the thread's private copy of up to the first 256 KiB, which is added}}
  %c2 = tile.atomic_rmw add, relaxed, gpu, %c1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %d0 = tile.splat %d : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %d1 = tile.addptr %d0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: in the thread's private copy of up to the first 256 KiB, which is added}}
  %d2 = tile.atomic_rmw add, relaxed, gpu, %d1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %e0 = tile.splat %e : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %e1 = tile.addptr %e0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: 4 elements along dimension 0 at a time, by one locked instruction where they are aligned; no private copy of the array for a thread, since it has 4 of other arrays}}
  %e2 = tile.atomic_rmw add, relaxed, gpu, %e1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %aagain0 = tile.splat %a : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %aagain1 = tile.addptr %aagain0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark @below {{atomic: in the thread's private copy of up to the first 256 KiB, which is added}}
  %aagain2 = tile.atomic_rmw add, relaxed, gpu, %aagain1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  tile.return
}
