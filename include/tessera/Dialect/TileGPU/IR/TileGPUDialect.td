// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tilegpu dialect: where the elements of tiles live on a GPU, and what moves them.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUDIALECT_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUDIALECT_TD

include "mlir/IR/OpBase.td"

def TileGPU_Dialect : Dialect {
  let name = "tilegpu";
  let cppNamespace = "::tessera::tilegpu";
  let summary = "The places of tiles on a GPU: registers, lanes, warps, shared memory";
  let description = [{
    Ops of the tile dialect, `arith` and `math` stay; their tiles get an encoding
    that says which thread holds which element. Until layouts are assigned it is
    `#tilegpu.unassigned`, from then on a `#tilegpu.layout`. The ops here are those
    that only exist because a tile is spread over threads: conversions between
    layouts, shared memory, barriers.

    Operands and results of an op have these layouts:

    - elementwise ops, loads, stores, atomics, scan, sort, histogram's source and
      mask: one layout for all tiles of the op (histogram's result: any);
    - shape ops and reduce: what TileEncodingInterface says, so that no element moves;
    - dot: the accumulator and the result have one layout, the operands any;
    - gather: index and result have one layout, the source any;
    - in a cluster, each block has the whole of tiles that go to shared memory. These are operands
      of dots, the source of gather, the source and mask of histogram, and copied tiles. If the
      buffer's layout has block columns, each block has a part.

    A module has `tilegpu.num_warps`, the warps of a program (a power of two, at most 32), and
    `tilegpu.target`, the GPU that it is for (#tilegpu.target). With `tilegpu.num_ctas`, a cluster
    of so many blocks runs a program, each block with these warps. Layouts of registers then have
    block columns. Blocks with the same part of a tile compute the same, except for effects that may
    happen only once. With `tilegpu.num_parts` instead, the program is partitioned
    (tilegpu-divide-programs), and each block of a cluster runs a part independently. Tiles are
    those of a block. Blocks interact only by TMA copies to all of them.
  }];
  let dependentDialects = ["::tessera::tile::TileDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  // Attributes by which passes pass facts on, on ops of any dialect. No other attribute has the
  // dialect's prefix (DeclaredAttrs.h).
  let discardableAttrs = (ins
    // On a module: the warps of a program (i32); the GPU that it is for.
    "::mlir::IntegerAttr":$num_warps,
    "::tessera::tilegpu::TargetAttr":$target,
    // On a module: the blocks of a cluster, which do a program together; absent for 1 (i32).
    "::mlir::IntegerAttr":$num_ctas,
    // On a module: the blocks of a cluster, each of which runs a part of a program independently;
    // absent for 1 (i32).
    "::mlir::IntegerAttr":$num_parts,
    // On a kernel: grid axes whose program ids are reversed. A mark that rows of the grid run in
    // groups, one place along axis 0 after the other.
    "::mlir::DenseI32ArrayAttr":$reversed_axes,
    "::mlir::UnitAttr":$grouped_rows,
    // On a module: the stages of loops that set none (i32).
    "::mlir::IntegerAttr":$num_stages,
    // On a module: reductions and dots are summed in the interpreter's order.
    "::mlir::UnitAttr":$deterministic,
    // On a module: exponentials of f32 below 2^-126 may be zero.
    "::mlir::UnitAttr":$flush_results,
    // On a module: a sum of dots that clusters could divide.
    "::tessera::tilegpu::DivisibleSumAttr":$divisible_sum,
    // On a module without clusters: cycles of an SM per iteration of the only loop of dots, if two
    // blocks of a cluster divide the program (i64).
    "::mlir::IntegerAttr":$divisible_program,
    // On a module: the shared memory of a program (i32).
    "::mlir::IntegerAttr":$shared_bytes,
    // On a module from the stage "tilegpu" on: the contract with the launcher.
    "::tessera::tilegpu::LaunchAttr":$launch,
    // On an argument that is a tensor map, which the launcher makes: its contents.
    "::tessera::tilegpu::TensorMapAttr":$tensor_map,
    // On a kernel: an affine map of its arguments (its symbols). If a result is negative at a
    // launch, the boxes do not exist, and another variant of the kernel runs. In the same way:
    // arrays that must not overlap (MemoryOrder.h).
    "::mlir::AffineMapAttr":$launch_conditions,
    "::mlir::ArrayAttr":$arrays_apart,
    // On a kernel: how many programs are to fit an SM at once, by the registers that its tiles need
    // (i32).
    "::mlir::IntegerAttr":$occupancy,
    // On a persistent kernel: the programs per SM that run the whole grid (i32). The extents of the
    // grid are three i32 arguments in front of the tensor maps. On its loop over programs: a mark.
    "::mlir::IntegerAttr":$persistent_programs,
    "::mlir::UnitAttr":$over_programs,
    // On a kernel: it begins before the one before it on its stream has ended, and waits for that
    // itself.
    "::mlir::UnitAttr":$waits_for_stream,
    // On a kernel: the warps of a launch where they are more than a program's (i32).
    "::mlir::IntegerAttr":$launch_warps,
    // On the declaration of a function: the file that has it.
    "::mlir::StringAttr":$library,
    // Schedule.h: of a loop, of an op in it, of a kernel.
    "::tessera::tilegpu::ScheduleAttr":$schedule,
    "::tessera::tilegpu::NodeAttr":$node,
    "::tessera::tilegpu::KernelScheduleAttr":$kernel_schedule,
    // On an access: the layouts that suit it, the best first.
    "::mlir::ArrayAttr":$candidates,
    // On an `scf.if`: it is mostly taken.
    "::mlir::UnitAttr":$is_likely,
    // On an op: the offset of its buffer, or of its scratch, in shared memory (i32, bytes). The
    // number of rounds in which it uses its scratch, if not 1 (i32).
    "::mlir::IntegerAttr":$shared_offset,
    "::mlir::IntegerAttr":$scratch_offset,
    "::mlir::IntegerAttr":$scratch_rounds,
    // On a copy: the hints of the access that it stands for (CopyHints.h).
    "::mlir::StringAttr":$cache,
    "::mlir::StringAttr":$evict,
    // On an access: how it is done (AccessPlan.h).
    "::mlir::DenseI64ArrayAttr":$access,
    "::mlir::UnitAttr":$prefix_masks,
    "::mlir::UnitAttr":$partial_masks,
    "::mlir::DenseI64ArrayAttr":$runs,
    // On a copy by TMA: the rows of its box that the array has (i64).
    "::mlir::IntegerAttr":$box_rows,
    // On a function of math: its result ends in 16 bits.
    "::mlir::UnitAttr":$narrow_result,
    // On a quotient: all of its elements have one divisor.
    "::mlir::UnitAttr":$shared_divisor,
    // On the branch that stands for `tilegpu.warp_specialize` or `tilegpu.one_thread`: the warps of its
    // default region (i32); that one thread is elected for it.
    "::mlir::IntegerAttr":$default_warps,
    "::mlir::UnitAttr":$elects,
    // On a wait for the blocks of a cluster: it may be moved down.
    "::mlir::UnitAttr":$sinks
  );
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
    void registerOps();
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUDIALECT_TD
