// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// Programs that clusters of blocks do.

#rows = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 0], warp = [], block = [32]>
#turned = #tilegpu.layout<64, reg = [32], lane = [2, 4, 8, 16, 0], warp = [], block = [1]>
#whole = #tilegpu.layout<64, reg = [1, 32], lane = [2, 4, 8, 16, 0], warp = [], block = [0]>
#apart = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [], block = [32]>
#shared = #tilegpu.layout<64, block = [32], offset = [1, 2, 4, 8, 16]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.num_ctas = 2 : i32} {

// The first axis of the grid counts blocks, programs are their clusters.
// CHECK-LABEL: llvm.func @program(
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK-DAG: nvvm.read.ptx.sreg.clusterid.x
// CHECK-DAG: nvvm.read.ptx.sreg.nclusterid.x
// CHECK-DAG: nvvm.read.ptx.sreg.ctaid.y
// One thread of one block stores what all have.
// CHECK-DAG: %[[RANK:.+]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK-DAG: %[[FREE:.+]] = llvm.and %[[RANK]]
// CHECK-DAG: llvm.icmp "eq" %[[FREE]]
tile.func @program(%p: !tile.ptr<i32>) {
  %i = tile.program_id 0
  %n = tile.num_programs 0
  %j = tile.program_id 1
  %s = arith.addi %i, %n : i32
  %t = arith.addi %s, %j : i32
  tile.store %p, %t : !tile.ptr<i32>
  tile.return
}

// Where an element is depends on the block.
// CHECK-LABEL: llvm.func internal @range(
// CHECK: %[[RANK:.+]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: llvm.shl %{{.+}}, %{{.+}}
// CHECK-NOT: nvvm.cluster
// CHECK: llvm.return
tile.func private @range() -> tensor<64xi32, #rows> attributes {noinline} {
  %i = tile.range 0 to 64 : tensor<64xi32, #rows>
  tile.return %i : tensor<64xi32, #rows>
}

// Each block takes its part of what it has as a whole: no element moves.
// CHECK-LABEL: llvm.func internal @take(
// CHECK-SAME: %[[X0:.+]]: f32, %[[X1:.+]]: f32, %[[X2:.+]]: f32, %[[X3:.+]]: f32)
// CHECK: nvvm.read.ptx.sreg.cluster.ctarank
// CHECK-DAG: llvm.select %{{.+}}, %[[X2]], %[[X0]]
// CHECK-DAG: llvm.select %{{.+}}, %[[X3]], %[[X1]]
// CHECK-NOT: nvvm.cluster
// CHECK: llvm.return
tile.func private @take(%x: tensor<64xf32, #whole>) -> tensor<64xf32, #rows> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf32, #whole> -> tensor<64xf32, #rows>
  tile.return %y : tensor<64xf32, #rows>
}

// Within blocks that keep their parts nothing is different.
// CHECK-LABEL: llvm.func internal @within(
// CHECK: nvvm.shfl.sync
// CHECK-NOT: nvvm.cluster
// CHECK: llvm.return
tile.func private @within(%x: tensor<64xf32, #rows>) -> tensor<64xf32, #apart> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf32, #rows> -> tensor<64xf32, #apart>
  tile.return %y : tensor<64xf32, #apart>
}

// Each register from the block that has it; the part of a block is all that it stores. They meet
// before and after, the second time for the sake of what comes next in their memories.
// CHECK-LABEL: llvm.func internal @exchange(
// CHECK: llvm.store %{{.+}} : vector<2xi32>, !llvm.ptr<3>
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK: %[[FROM0:.+]] = nvvm.mapa %{{.+}}, %{{.+}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: llvm.load %{{.+}} : !llvm.ptr<7> -> f32
// CHECK: %[[FROM1:.+]] = nvvm.mapa %{{.+}}, %{{.+}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: llvm.load %{{.+}} : !llvm.ptr<7> -> f32
// That wait comes as late as can be.
// CHECK-NEXT: nvvm.cluster.arrive {aligned}
// CHECK: llvm.insertvalue
// CHECK: nvvm.cluster.wait {aligned}
// CHECK-NEXT: llvm.return
tile.func private @exchange(%x: tensor<64xf32, #rows>) -> tensor<64xf32, #turned> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf32, #rows> -> tensor<64xf32, #turned>
  tile.return %y : tensor<64xf32, #turned>
}

// What a block has in its own memory may be loaded meanwhile, but nothing written there.
// CHECK-LABEL: llvm.func internal @exchange_and_load(
// CHECK: llvm.load %{{.+}} : !llvm.ptr<7> -> f32
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK-NOT: nvvm.cluster.wait
// CHECK: llvm.load %{{.+}} : !llvm.ptr<3>
// CHECK: nvvm.cluster.wait {aligned}
// CHECK: llvm.store %{{.+}} : {{.*}}!llvm.ptr<3>
tile.func private @exchange_and_load(%x: tensor<64xf32, #rows>, %b: !tilegpu.memdesc<64xf32, #shared>) -> (tensor<64xf32, #turned>, tensor<64xf32, #rows>) attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf32, #rows> -> tensor<64xf32, #turned>
  %z = tilegpu.local_load %b : !tilegpu.memdesc<64xf32, #shared> -> tensor<64xf32, #rows>
  tilegpu.local_store %x, %b : tensor<64xf32, #rows>, !tilegpu.memdesc<64xf32, #shared>
  tile.return %y, %z : tensor<64xf32, #turned>, tensor<64xf32, #rows>
}

// A sum over blocks: each folds its part, and every thread then has what both have.
// CHECK-LABEL: llvm.func internal @sum(
// CHECK: llvm.fadd
// CHECK: nvvm.cluster.arrive
// CHECK: nvvm.mapa
// CHECK: nvvm.cluster.arrive
// CHECK: llvm.fadd
// CHECK: llvm.return
tile.func private @sum(%x: tensor<64xf32, #rows>) -> f32 attributes {noinline} {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32, #rows>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s : f32
}

// One thread of the program does the atomic, and all have its result, in other blocks, too.
// CHECK-LABEL: llvm.func internal @atomic(
// CHECK: nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: nvvm.cluster.arrive
// CHECK: nvvm.mapa
// CHECK: nvvm.cluster.arrive
tile.func private @atomic(%p: !tile.ptr<i32>, %v: i32) -> i32 attributes {noinline} {
  %r = tile.atomic_rmw add, relaxed, gpu, %p, %v : !tile.ptr<i32>, i32 -> i32
  tile.return %r : i32
}

// Each block adds up its part of the sum, from its own block on.
// CHECK-LABEL: llvm.func internal @parts_of_sum(
// CHECK: nvvm.cluster.wait
// CHECK: %[[RANK:.+]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: llvm.load %{{.+}} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: %[[NEXT:.+]] = llvm.add %[[RANK]], %{{.+}}
// CHECK: %[[OTHER:.+]] = llvm.and %[[NEXT]], %{{.+}}
// CHECK: nvvm.mapa %{{.+}}, %[[OTHER]]
// CHECK: llvm.fadd
// CHECK: llvm.return
tile.func private @parts_of_sum(%x: tensor<64xf32, #whole>) -> tensor<64xf32, #rows> attributes {noinline} {
  %y = tilegpu.cluster_sum %x : tensor<64xf32, #whole> -> tensor<64xf32, #rows>
  tile.return %y : tensor<64xf32, #rows>
}

// Where all blocks are to have all of it they begin with the first one, so that they have the same bits.
// CHECK-LABEL: llvm.func internal @whole_sum(
// CHECK-NOT: nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: llvm.return
tile.func private @whole_sum(%x: tensor<64xf32, #whole>) -> tensor<64xf32, #whole> attributes {noinline} {
  %y = tilegpu.cluster_sum %x : tensor<64xf32, #whole> -> tensor<64xf32, #whole>
  tile.return %y : tensor<64xf32, #whole>
}

// Sorted over blocks: in each step that is across these, they meet twice.
// CHECK-LABEL: llvm.func internal @sort(
// CHECK: nvvm.cluster.arrive
// CHECK: nvvm.mapa
// CHECK: nvvm.cluster.arrive
// CHECK: llvm.intr.smin
// CHECK: llvm.return
tile.func private @sort(%x: tensor<64xi32, #rows>) -> tensor<64xi32, #rows> attributes {noinline} {
  %y = tile.sort (%x) {axis = 0 : i32} : (tensor<64xi32, #rows>) -> tensor<64xi32, #rows> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    tile.sort_return %c : i1
  }
  tile.return %y : tensor<64xi32, #rows>
}

// All threads of the program meet, those of other blocks, too.
// CHECK-LABEL: llvm.func internal @barrier(
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
tile.func private @barrier() attributes {noinline} {
  tile.barrier
  tile.return
}
}

// -----

// Two programs' scratch is not larger for there being blocks.
#rows = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 0], warp = [], block = [32]>
#turned = #tilegpu.layout<64, reg = [32], lane = [2, 4, 8, 16, 0], warp = [], block = [1]>
// CHECK: module attributes {{.*}}tilegpu.shared_bytes = 128
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.num_ctas = 2 : i32} {
tile.func private @half(%x: tensor<64xf32, #rows>) -> tensor<64xf32, #turned> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf32, #rows> -> tensor<64xf32, #turned>
  tile.return %y : tensor<64xf32, #turned>
}
}
