// RUN: tessera-opt %s --test-machine-view --verify-diagnostics

// What of a program's code may see the machine that runs it, whatever it says of its effects, and
// what may wait for other threads.

tile.func @of_our_own(%x: f32, %p: !tile.ptr<i32>) {
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  %id = tile.program_id 0 {test.view}
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  %sum = arith.addi %id, %id {test.view} : i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  %time = tile.clock {test.view}
  tile.return
}

tile.func @assembly(%x: i32, %p: i64) {
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  tile.inline_asm "add.s32 $0, $1, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  tile.inline_asm "lop3.b32 ${0}, ${1:h}, $1, $1, 0xE8;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  tile.inline_asm "{ .reg .pred p; .reg .b32 t<2>, u; setp.ne.s32 p, $1, 0; @!p bra end; mov.b64 {t0, t1}, $1; mul.lo.u32 u, t1, 3; end: selp.b32 $0, u, 1, p; }" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  tile.inline_asm "// %ctaid.x is not read\0A add.s32 $0, $1, /* bar.sync 0; */ 1" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  tile.inline_asm "ld.global.nc.L1::no_allocate.v2.b32 {$0, _}, [$1 + 4];" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  tile.inline_asm "griddepcontrol.wait; mov.u32 $0, 0;" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u32 $0, %ctaid.x;" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u32 $0, %smid;" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u32 $0, %nsmid;" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u64 $0, %gridid;" constraints("=l") pure packed 1 {test.view} : () -> i64
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u32 $0, %clusterid.x;" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u32 $0, %a_register_of_2040;" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u64 $0, %globaltimer;" constraints("=l") pure packed 1 {test.view} : () -> i64
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "@$1 add.u32 $0, $1, %tid.x;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "atom.global.add.u32 $0, [$1], 1;" constraints("=r,l") pure packed 1 %p {test.view} : (i64) -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "st.global.b32 [$1], 0; mov.b32 $0, 0;" constraints("=r,l") pure packed 1 %p {test.view} : (i64) -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "ld.global.acquire.gpu.b32 $0, [$1];" constraints("=r,l") pure packed 1 %p {test.view} : (i64) -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "ld.shared.b32 $0, [$1];" constraints("=r,l") pure packed 1 %p {test.view} : (i64) -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "shfl.sync.idx.b32 $0, $1, 0, 31, -1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "mov.u32 $0, somewhere;" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  tile.inline_asm "{ .reg .b32 p<3>; mov.u32 $0, q0; }" constraints("=r") pure packed 1 {test.view} : () -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm "bar.sync 0; mov.b32 $0, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm "barrier.cluster.arrive; mov.b32 $0, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm "getctarank.u32 $0, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm "an_instruction_of_2040 $0, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm ".pragma \22nounroll\22; mov.b32 $0, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm ".shared .b32 x; mov.b32 $0, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm "mov.b32 $0, $1; /* without an end" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm "mov.b32 $$0, $1;" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  tile.inline_asm "text" constraints("=r,r") pure packed 1 %x {test.view} : (i32) -> i32
  tile.return
}

tile.func @libraries(%x: f32) {
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  %0 = tile.extern_elementwise "__nv_asinf" %x {pure, test.view} : (f32) -> f32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  %1 = tile.extern_elementwise "soften" %x {library = "/opt/mine.bc", pure, test.view} : (f32) -> f32
  // expected-remark @below {{sees the machine, may wait for threads}}
  %2 = tile.extern_elementwise "soften" %x {library = "/opt/mine.bc", test.view} : (f32) -> f32
  // expected-remark @below {{sees the machine, may wait for threads}}
  %3 = tile.extern_elementwise "llvm.nvvm.bar.warp.sync" %x {test.view} : (f32) -> f32
  tile.return
}

// Calls are looked into, as are regions.
tile.func private @looks() -> i32 {
  %0 = tile.inline_asm "mov.u32 $0, %smid;" constraints("=r") pure packed 1 : () -> i32
  tile.return %0 : i32
}
tile.func private @calls() -> i32 {
  %0 = tile.call @looks() : () -> i32
  tile.return %0 : i32
}
tile.func private @waits(%x: i32) -> i32 {
  %0 = tile.inline_asm "bar.sync 0; mov.u32 $0, $1;" constraints("=r,r") packed 1 %x : (i32) -> i32
  tile.return %0 : i32
}
tile.func private @computes(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  tile.return %0 : i32
}
tile.func @caller(%x: i32, %c: i1) {
  // expected-remark @below {{sees the machine, does not wait for threads}}
  %0 = tile.call @calls() {test.view} : () -> i32
  // expected-remark @below {{sees the machine, may wait for threads}}
  %1 = tile.call @waits(%x) {test.view} : (i32) -> i32
  // expected-remark @below {{does not see the machine, does not wait for threads}}
  %2 = tile.call @computes(%x) {test.view} : (i32) -> i32
  // expected-remark @below {{sees the machine, does not wait for threads}}
  scf.if %c {
    %3 = tile.inline_asm "mov.u32 $0, %smid;" constraints("=r") pure packed 1 : () -> i32
    scf.yield
  } {test.view}
  tile.return
}
