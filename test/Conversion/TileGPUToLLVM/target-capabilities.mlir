// RUN: tessera-opt %s --split-input-file --test-target-hooks=without=tensor-map --verify-diagnostics -o /dev/null
// RUN: not tessera-opt %S/async.mlir --split-input-file --test-target-hooks=without=async-copy 2>&1 | FileCheck %s --check-prefix=COPY
// RUN: not tessera-opt %S/tensor-core-ops.mlir --split-input-file --test-target-hooks=without=matrix 2>&1 | FileCheck %s --check-prefix=MATRIX
// RUN: not tessera-opt %S/tensor-core-ops.mlir --split-input-file --test-target-hooks=without=warpgroup 2>&1 | FileCheck %s --check-prefix=WARPGROUP
// RUN: not tessera-opt %S/clusters.mlir --split-input-file --test-target-hooks=without=cluster 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: tessera-opt %S/math.mlir --split-input-file --test-target-hooks=without=cluster -o /dev/null
// RUN: tessera-opt %S/async.mlir --split-input-file --test-target-hooks=without=warpgroup -o /dev/null

// Hooks without a capability serve all other ops. An op that needs it is an error, before anything
// is converted.

// COPY: error: needs asynchronous copies by threads, which the target's hooks lack
// MATRIX: error: needs matrix instructions, which the target's hooks lack
// CLUSTER: error: is for clusters of blocks, which the target's hooks lack
// WARPGROUP: error: needs instructions of warpgroups, which the target's hooks lack

#shared = #tilegpu.layout<1>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.shared_bytes = 128 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  tile.func @barrier() {
    %b = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<1xi64, #shared>
    // expected-error @below {{needs copies by tensor maps, which the target's hooks lack; a pass that makes such ops has to ask the machine (GPUMachine) for them}}
    tilegpu.mbarrier_init %b {arrivals = 1 : i32} : !tilegpu.memdesc<1xi64, #shared>
    tile.return
  }
}
