// The conversion reaches the hardware through the target hooks alone: with those of a GPU whose
// instructions are calls (test/lib/Conversion), nothing of another vendor is left in what all
// other tests of it are about. The pass says so where there is.
// RUN: tessera-opt %S/async.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/atomics.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/elementwise.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/function.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/math.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/mbarrier.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/memory.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/parts.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/program.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/report.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/tensor-core-ops.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/tensor-map.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/warp-specialize.mlir --split-input-file --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/convert-layout.mlir --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/gather.mlir --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/matmul-ops.mlir --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/reduction-ops.mlir --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/scan.mlir --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/shape-ops.mlir --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --test-target-hooks -o /dev/null
// RUN: tessera-opt %S/sort.mlir --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --test-target-hooks -o /dev/null
// RUN: tessera-opt %s --test-target-hooks | FileCheck %s

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @kernel
// CHECK-SAME: gpu.kernel = [128 : i32, 0 : i32]
// CHECK: llvm.call @"gpu.program_id
// CHECK: llvm.call @"gpu.barrier
// CHECK: llvm.call @"gpu.thread_id
// CHECK: llvm.call @"gpu.store
tile.func @kernel(%p: !tile.ptr<i32>) {
  %id = tile.program_id 0
  tile.barrier
  tile.store %p, %id {cache = 2 : i32} : !tile.ptr<i32>
  tile.return
}
}
