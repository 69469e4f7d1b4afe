// RUN: split-file %s %t
// RUN: tessera-simulate %t/bytes.mlir --seeds 20 --arg i32:64 --arg i32:32 | FileCheck %s --check-prefix=BYTES
// RUN: sed -e '/.. read$/d' %t/bytes.mlir | not tessera-simulate --seeds 20 --arg i32:64 --arg i32:32 | FileCheck %s --check-prefix=SOURCE
// RUN: sed -e '/.. all$/d' %t/bytes.mlir | not tessera-simulate --seeds 20 --arg i32:64 --arg i32:32 | FileCheck %s --check-prefix=TARGET
// RUN: sed -e '/.. last$/d' %t/bytes.mlir | not tessera-simulate --seeds 20 --arg i32:64 --arg i32:32 | FileCheck %s --check-prefix=END
// RUN: sed -e '/.. group$/d' %t/bytes.mlir | not tessera-simulate --seeds 20 --arg i32:64 --arg i32:32 | FileCheck %s --check-prefix=GROUP
// RUN: sed -e '/.. fence$/d' %t/bytes.mlir | not tessera-simulate --seeds 20 --arg i32:64 --arg i32:32 | FileCheck %s --check-prefix=FENCE
// RUN: tessera-simulate %t/sum.mlir --grid 4 --seeds 20 --arg f32:32 --arg f32:128 --arg i32=32 | FileCheck %s --check-prefix=SUM
// RUN: sed -e '/.. read$/d' %t/sum.mlir | not tessera-simulate --grid 4 --seeds 20 --arg f32:32 --arg f32:128 --arg i32=32 | FileCheck %s --check-prefix=SUM-SOURCE
// RUN: sed -e 's/ld.relaxed.gpu.global/ld.global/' %t/sum.mlir > %t/plain.mlir
// RUN: tessera-simulate %t/plain.mlir --seeds 20 --arg f32:32 --arg f32:128 --arg i32=32 | FileCheck %s --check-prefix=SUM-PLAIN
// RUN: sed -e '/.. all$/s/group 0/group 0 {read}/' %t/plain.mlir | not tessera-simulate --seeds 20 --arg f32:32 --arg f32:128 --arg i32=32 | FileCheck %s --check-prefix=SUM-TARGET
// RUN: sed -e 's/box\[%c0, %c0\]/box[%c1, %c0]/' %t/sum.mlir | not tessera-simulate --grid 4 --seeds 20 --arg f32:32 --arg f32:128 --arg i32=32 | FileCheck %s --check-prefix=ROW
// RUN: sed -e 's/cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32/cp.async.bulk.global.shared::cta.bulk_group/' %t/sum.mlir | not tessera-simulate --grid 4 --seeds 20 --arg f32:32 --arg f32:128 --arg i32=32 | FileCheck %s --check-prefix=NO-SUM

// Copies from shared memory to global, which a thread waits for in groups: until they have read
// what they copy, and until they have written it.

//--- bytes.mlir
// The same 128 bytes are the source of two copies, one after the other.
// BYTES: arg 0 i32:64 = 0, 1, 2, 3
// BYTES: arg 1 i32:32 = 31, 30, 29
// BYTES: 0 of 20 seeds found something

// Both places are named: where the source is written, and where the copy was begun.
// SOURCE: {{:[0-9]+:5: race}}: kernel 'bytes', {{.*}} writes 4 bytes at {{[0-9]+}} of shared memory, unordered with what was read by a copy that has not been waited for, begun at {{.*}}{{:[0-9]+:5 }}
// SOURCE: 20 of 20 seeds found something
// TARGET: race: kernel 'bytes', {{.*}} reads element {{[0-9]+}} of 'arg 0', which a copy that was begun at {{.*}}:{{[0-9]+}}:5 may still write: no thread has waited for its end
// TARGET: 20 of 20 seeds found something
// END: race: kernel 'bytes', {{.*}} copies from shared memory, and does not wait for that before it ends
// END: 20 of 20 seeds found something
// GROUP: race: kernel 'bytes', {{.*}} writes 4 bytes at {{[0-9]+}} of shared memory, unordered with what was read by a copy that has not been waited for, begun at
// GROUP: 20 of 20 seeds found something
// FENCE: unordered proxy: kernel 'bytes', {{.*}} reads 16 bytes at {{[0-9]+}} of shared memory asynchronously, written by warp 0 lane {{[0-9]+}} at {{.*}} without a fence between
// FENCE: 20 of 20 seeds found something
module attributes {tilegpu.shared_bytes = 1024 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @bytes(%out: !llvm.ptr<1>, %mirrored: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %u = llvm.sub %c31, %t : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %second = llvm.getelementptr %out[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    llvm.store %t, %mine : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>} // fence
    nvvm.barrier0
    llvm.cond_br %isFirst, ^copy, ^wait
  ^copy:
    nvvm.cp.async.bulk.global.shared.cta %out, %shared, %c128 : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group // group
    nvvm.cp.async.bulk.wait_group 0 {read} // read
    llvm.br ^wait
  ^wait:
    nvvm.barrier0
    llvm.store %u, %mine : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier0
    llvm.cond_br %isFirst, ^again, ^look
  ^again:
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r" %second, %shared, %c128 : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.commit_group;", "" : () -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.wait_group 1;", "" : () -> () // all
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.wait_group.read 0;", "" : () -> () // last
    llvm.br ^look
  ^look:
    nvvm.barrier0
    // What the first copy has written; the second one may still write.
    %from = llvm.getelementptr %out[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %from : !llvm.ptr<1> -> i32
    %to = llvm.getelementptr %mirrored[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- sum.mlir
// Every program adds the same row, by a copy that sums; then each adds it once more by a tensor map.
// SUM: arg 0 f32:32 = 8, 8, 8, 8
// SUM: 0 of 20 seeds found something
// SUM-SOURCE: race: kernel 'sum', {{.*}} writes 4 bytes at {{[0-9]+}} of shared memory, unordered with what was read by a copy that has not been waited for, begun at
// SUM-SOURCE: 20 of 20 seeds found something

// To have been read is not to have been written.
// SUM-PLAIN: arg 0 f32:32 = 2, 2, 2, 2
// SUM-PLAIN: 0 of 20 seeds found something
// SUM-TARGET: race: kernel 'sum', {{.*}} reads element {{[0-9]+}} of 'arg 0', which a copy that was begun at {{.*}} may still write: no thread has waited for its end
// SUM-TARGET: 20 of 20 seeds found something

// Copies that do not sum write over each other.
// NO-SUM: race: kernel 'sum', {{.*}} begins a copy that writes element {{[0-9]+}} of 'arg 0', which
// NO-SUM: 20 of 20 seeds found something
// ROW: misaligned: kernel 'sum', {{.*}} copies a box that begins at element 1 of a row, which is at no multiple of 16 bytes
// ROW: 20 of 20 seeds found something
module attributes {tilegpu.shared_bytes = 1024 : i32, tilegpu.target = #tilegpu.target<"sm_90a">,
    tile.arguments = [{type = "ptr<f32>"}, {type = "ptr<f32>"}, {type = "i32"}],
    tilegpu.launch = #tilegpu.launch<maps = [#tilegpu.tensor_map<base = 0, element = f32, extents = ()[s0, s1, s2] -> (1, 32), strides = ()[s0, s1, s2] -> (s2, 1), box = [1, 32], swizzle = 0>]>} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
  llvm.func @sum(%out: !llvm.ptr<1>, %seen: !llvm.ptr<1>, %stride: i32, %map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %program = nvvm.read.ptx.sreg.ctaid.x : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    llvm.store %one, %mine : f32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier0
    llvm.cond_br %isFirst, ^copy, ^wait
  ^copy:
    llvm.inline_asm has_side_effects asm_dialect = att "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;", "l,r,r" %out, %shared, %c128 : (!llvm.ptr<1>, !llvm.ptr<3>, i32) -> ()
    nvvm.cp.async.bulk.tensor.reduce %map, %shared, box[%c0, %c0] {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 {read} // read
    llvm.br ^wait
  ^wait:
    nvvm.barrier0
    llvm.store %zero, %mine : f32, !llvm.ptr<3>
    llvm.cond_br %isFirst, ^written, ^look
  ^written:
    nvvm.cp.async.bulk.wait_group 0 // all
    llvm.br ^look
  ^look:
    nvvm.barrier0
    %from = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.inline_asm has_side_effects asm_dialect = att "ld.relaxed.gpu.global.f32 $0, [$1];", "=f,l" %from : (!llvm.ptr<1>) -> f32
    %base = llvm.mul %program, %c32 : i32
    %i = llvm.add %base, %t : i32
    %to = llvm.getelementptr %seen[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %x, %to : f32, !llvm.ptr<1>
    llvm.return
  }
}
