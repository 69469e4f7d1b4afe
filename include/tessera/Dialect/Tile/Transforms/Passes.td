// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Target-independent passes on tile IR. Their order and its reasons are in
// lib/Pipelines/TilePipeline.cpp.

#ifndef TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileCombinePass : Pass<"tile-combine", "::tessera::tile::FuncOp"> {
  let summary = "Combine ops into one";
  let description = [{
    A sum of a dot and a tile becomes the dot's accumulator. A `select` between a masked load and a
    tile becomes the load's `other`. A stored `select` under the store's own mask becomes its first
    choice. Two pointer offsets by constants become one. `x - x / c * c` becomes a remainder, which is
    0 if x is known to be a multiple of c.

    ```mlir
    %zero = arith.constant dense<0.0> : tensor<16x16xf32>
    %d = tile.dot %a, %b, %zero : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %s = arith.addf %d, %c : tensor<16x16xf32>
    ```
    becomes
    ```mlir
    %s = tile.dot %a, %b, %c : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileReorderBroadcastsPass : Pass<"tile-reorder-broadcasts", "::tessera::tile::FuncOp"> {
  let summary = "Sink broadcasts below elementwise ops, and hoist uniform offsets to scalars";
  let description = [{
    An elementwise op whose operands are all splats is computed on scalars. If its operands are all
    broadcast from one smaller shape, it is computed on that shape. An offset that is equal for all
    pointers of a tile moves to their base, where it is one scalar addition.

    ```mlir
    %x = tile.broadcast %a : tensor<64x1xi32> -> tensor<64x32xi32>
    %y = tile.splat %s : i32 -> tensor<64x32xi32>
    %z = arith.muli %x, %y : tensor<64x32xi32>
    ```
    becomes
    ```mlir
    %y = tile.splat %s : i32 -> tensor<64x1xi32>
    %m = arith.muli %a, %y : tensor<64x1xi32>
    %z = tile.broadcast %m : tensor<64x1xi32> -> tensor<64x32xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileCountWhileLoopsPass : Pass<"tile-count-while-loops", "::tessera::tile::FuncOp"> {
  let summary = "Replace while loops that count by for loops";
  let description = [{
    The condition of such a loop compares a carried integer with a bound that the loop does not
    change, and each iteration moves the integer towards the bound by the same amount. Counters that
    go up (`<`, `<=`) and down (`>`, `>=`) are handled. Other loops are unchanged.

    A `for` ends where its variable would pass the end of its type, as a `range` does. The `while`
    would go on with a wrapped counter.

    ```mlir
    tile.func @k(%x: !tile.ptr<f32>, %n: i32) {
      %c0 = arith.constant 0 : i32
      %c4 = arith.constant 4 : i32
      %zero = arith.constant 0.0 : f32
      %r = scf.while (%i = %c0) : (i32) -> i32 {
        %goes = arith.cmpi slt, %i, %n : i32
        scf.condition(%goes) %i : i32
      } do {
      ^bb0(%i: i32):
        %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
        tile.store %p, %zero : !tile.ptr<f32>
        %next = arith.addi %i, %c4 : i32
        scf.yield %next : i32
      }
      tile.return
    }
    ```
    becomes
    ```mlir
    ...
      %r = scf.for %i = %c0 to %n step %c4 iter_args(%carried = %c0) -> (i32) : i32 {
        %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
        tile.store %p, %zero : !tile.ptr<f32>
        %next = arith.addi %i, %c4 : i32
        scf.yield %next : i32
      }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileSplitFlatLoopsPass : Pass<"tile-split-flat-loops", "::tessera::tile::FuncOp"> {
  let summary = "Split a flat loop over the K tiles of all tiles into two loops";
  let description = [{
    A flat persistent loop counts the iterations of a tile by a counter that wraps, or by a
    remainder. It opens a tile in `if counter == 0`, and stores its result in
    `if counter == period - 1`. The pass makes a loop over tiles, and one over the iterations of a
    tile in it. The first conditional is hoisted out of the inner loop, and the last one is sunk
    behind it. Later passes then plan the inner loop like that of any matmul.

    The trip count need not be a multiple of the period. The iterations that remain close no tile,
    and are dead: no other part of the loop writes to memory, and its results are not used.
    Otherwise the loop is unchanged, and a remark gives the reason.

    ```mlir
    tile.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %zero = arith.constant 0.0 : f32
      %last = arith.subi %n, %c1 : i32
      %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%c = %c0, %sum = %zero) -> (i32, f32)
          : i32 {
        %p = tile.addptr %x, %c : !tile.ptr<f32>, i32
        %v = tile.load %p : !tile.ptr<f32>
        %next = arith.addf %sum, %v : f32
        %closes = arith.cmpi eq, %c, %last : i32
        %start = scf.if %closes -> (f32) {
          tile.store %y, %next : !tile.ptr<f32>
          scf.yield %zero : f32
        } else {
          scf.yield %next : f32
        }
        %more = arith.addi %c, %c1 : i32
        %d = arith.select %closes, %c0, %more : i32
        scf.yield %d, %start : i32, f32
      }
      tile.return
    }
    ```
    becomes
    ```mlir
    %tiles = arith.select ... : i32
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %s = scf.for %c = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
        %p = tile.addptr %x, %c : !tile.ptr<f32>, i32
        %v = tile.load %p : !tile.ptr<f32>
        %next = arith.addf %sum, %v : f32
        scf.yield %next : f32
      }
      tile.store %y, %s : !tile.ptr<f32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileRewriteInductionsPass : Pass<"tile-rewrite-inductions", "::tessera::tile::FuncOp"> {
  let summary = "Rewrite loop-carried tiles that advance by equal amounts as scalar inductions";
  let description = [{
    The pass handles tiles of pointers or integers that a loop carries, and to whose elements each
    iteration adds the same amount. Such a tile is the initial tile plus a scalar. The loop carries
    the scalar instead, so that analyses see the tile without the loop. Offsets of pointers are
    summed in 64 bits, as wide as an address. The pass also rewrites `while` loops, and tiles that
    pass through conditionals on their way to the next iteration.

    A scalar that starts one step before a `for` loop's variable and advances with it becomes that
    variable minus the step.

    ```mlir
    %r = scf.for %k = %lb to %ub step %c1 iter_args(%p = %init) -> (tensor<64x!tile.ptr<f32>>) {
      %x = tile.load %p : tensor<64x!tile.ptr<f32>>
      %step = tile.splat %ld : i32 -> tensor<64xi32>
      %q = tile.addptr %p, %step : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      scf.yield %q : tensor<64x!tile.ptr<f32>>
    }
    ```
    becomes
    ```mlir
    ... = scf.for %k = %lb to %ub step %c1 iter_args(... %moved = %c0_i64) -> (... i64) {
      %by = tile.splat %moved : i64 -> tensor<64xi64>
      %p = tile.addptr %init, %by : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
      %x = tile.load %p : tensor<64x!tile.ptr<f32>>
      %wide = arith.extsi %ld : i32 to i64
      %next = arith.addi %moved, %wide : i64
      scf.yield ... %next : ... i64
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileRemoveDeadCarriesPass : Pass<"tile-remove-dead-carries", "::tessera::tile::FuncOp"> {
  let summary = "Remove loop-carried values that nothing but their loop uses";
  let description = [{
    A value is live if an op with effects needs it: itself, or through other ops, `for` loops and
    conditionals. Other loops are taken to need all that they carry. A loop yields a carried value
    that is not live unchanged, so that canonicalization removes it, and what computed it.

    ```mlir
    %r:2 = scf.for %i = %lb to %ub step %c1 iter_args(%sum = %zero, %product = %one)
        -> (f32, f32) : i32 {
      %x = tile.load %p : !tile.ptr<f32>
      %next = arith.addf %sum, %x : f32
      %other = arith.mulf %product, %x : f32
      scf.yield %next, %other : f32, f32
    }
    tile.store %q, %r#0 : !tile.ptr<f32>
    ```
    becomes
    ```mlir
    %r:2 = scf.for %i = %lb to %ub step %c1 iter_args(%sum = %zero, %product = %one)
        -> (f32, f32) : i32 {
      %x = tile.load %p : !tile.ptr<f32>
      %next = arith.addf %sum, %x : f32
      %other = arith.mulf %product, %x : f32
      scf.yield %next, %product : f32, f32
    }
    tile.store %q, %r#0 : !tile.ptr<f32>
    ```
  }];
}

def TileLoopInvariantCodeMotionPass
    : Pass<"tile-loop-invariant-code-motion", "::tessera::tile::FuncOp"> {
  let summary = "Hoist loop-invariant ops and loads out of loops";
  let description = [{
    Pure ops are hoisted. A load is hoisted out of a loop that writes no memory. It must not access
    memory if the loop has no iterations. If that may happen, the load's mask is false then. A loop
    marked `tile.disable_licm` is unchanged.

    ```mlir
    %r = scf.for %i = %lb to %ub step %c1 iter_args(%sum = %zero) -> (tensor<64xf32>) : i32 {
      %x = tile.load %p : tensor<64x!tile.ptr<f32>>
      %next = arith.addf %sum, %x : tensor<64xf32>
      scf.yield %next : tensor<64xf32>
    }
    ```
    becomes
    ```mlir
    %runs = arith.cmpi slt, %lb, %ub : i32
    %m = tile.splat %runs : i1 -> tensor<64xi1>
    %x = tile.load %p, %m : tensor<64x!tile.ptr<f32>>
    %r = scf.for %i = %lb to %ub step %c1 iter_args(%sum = %zero) -> (tensor<64xf32>) : i32 {
      %next = arith.addf %sum, %x : tensor<64xf32>
      scf.yield %next : tensor<64xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileCheckAccessesPass : Pass<"tile-check-accesses", "::tessera::tile::FuncOp"> {
  let summary = "Check accesses against the bounds of the argument that they access";
  let description = [{
    The pass inserts a `tile.check_access` before each load, store and atomic of a kernel, and masks
    the access with its result. The pointers must be computed from one argument of the kernel. If an
    offset is computed in fewer than 64 bits, its sums, products and shifts are computed again in
    64. The check takes that as `exact`, so an offset that wrapped differs from it.

    Other accesses are unchanged: through pointers that were loaded, made from integers, or selected
    among several arguments. Loop-carried pointers and integers count as exact.

    ```mlir
    %q = tile.addptr %p, %i : !tile.ptr<f32>, i32
    %x = tile.load %q : !tile.ptr<f32>
    ```
    becomes
    ```mlir
    %q = tile.addptr %p, %i : !tile.ptr<f32>, i32
    %ok = tile.check_access %q of %p {access = "load", argument = 0 : i32}
        : !tile.ptr<f32>, !tile.ptr<f32> -> i1
    %x = tile.load %q, %ok : !tile.ptr<f32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileExpandAccessChecksPass : Pass<"tile-expand-access-checks", "::tessera::tile::FuncOp"> {
  let summary = "Expand access checks into arithmetic for compiled code";
  let description = [{
    A `tile.check_access` becomes a comparison of addresses with the bounds of the argument's
    memory. If some lane is out of bounds, one such lane is reported. For a tile, an `or` reduction
    combines the lanes.

    ```mlir
    %ok = tile.check_access %p of %base {access = "load", argument = 0 : i32}
        : !tile.ptr<f32>, !tile.ptr<f32> -> i1
    ```
    becomes
    ```mlir
    %begin, %end = tile.argument_memory 0
    %address = tile.ptr_to_int %p : !tile.ptr<f32> -> i64
    %first = tile.ptr_to_int %base : !tile.ptr<f32> -> i64
    %offset = arith.subi %address, %first : i64
    %c4 = arith.constant 4 : i64
    %last = arith.subi %end, %c4 : i64
    %below = arith.cmpi slt, %address, %begin : i64
    %above = arith.cmpi sgt, %address, %last : i64
    %fails = arith.ori %below, %above : i1
    scf.if %fails {
      tile.report_access %fails, %offset {access = "load", argument = 0 : i32, bytes = 4 : i32}
    }
    %true = arith.constant true
    %ok = arith.xori %fails, %true : i1
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileEndLoopsPass : Pass<"tile-end-loops"> {
  let summary = "Rewrite loops whose variable would wrap";
  let description = [{
    An `scf.for` compares the next value of its variable with the upper bound. If that value may not
    fit the type, the variable is compared before it is advanced, with the bound minus a step. That
    happens if the step is not 1, and the bound is not known to be a step below the largest value.
    The pass runs on any kind of function, after everything but control flow is lowered.

    ```mlir
    scf.for %i = %lower to %upper step %step : i32 {
      tile.store %p, %i : !tile.ptr<i32>
    }
    ```
    becomes, with `%limit` the larger of `%upper` - 2 and the smallest value,
    ```mlir
    %last = arith.subi %upper, %step : i32
    %limit = arith.select ... %last : i32
    %any = arith.cmpi slt, %lower, %upper : i32
    scf.if %any {
      ... = scf.while (%i = %lower) : (i32) -> i32 {
        tile.store %p, %i : !tile.ptr<i32>
        %more = arith.cmpi slt, %i, %limit : i32
        scf.condition(%more) %i : i32
      } do {
      ^bb0(%j: i32):
        %next = arith.addi %j, %step overflow<nsw> : i32
        scf.yield %next : i32
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TilePairIterationsPass : Pass<"tile-pair-iterations", "::tessera::tile::FuncOp"> {
  let summary = "Do two iterations as one, with dots of twice the columns";
  let description = [{
    A loop that adds up products over the rows of each iteration, and whose loads go on from
    iteration to iteration, has half the iterations, of twice the rows, if they are few: at most half
    of `most-columns`. The kernel must have a loop whose dots have results of more than `least-bytes`,
    so that a pair needs the registers of 8 warps. The number of iterations must be even. That is a condition of a launch
    (`tile.program_bounds`), without which another variant of the kernel runs.

    ```mlir
    %r32 = tile.range 0 to 32 : tensor<32xi32>
    ...
    %y = tile.load %bp : tensor<64x32x!tile.ptr<f16>>
    %p = tile.dot %x, %y, %none : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
    ```
    becomes
    ```mlir
    %r64 = tile.range 0 to 64 : tensor<64xi32>
    ...
    %y = tile.load %bp : tensor<64x64x!tile.ptr<f16>>
    %p = tile.dot %x, %y, %none : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    ```
  }];
  let options = [
    Option<"mostColumns", "most-columns", "int64_t", /*default=*/"64",
           "columns of a dot for which tensor cores wait no longer than for more of them">,
    Option<"mostBytes", "most-bytes", "int64_t", /*default=*/"229376",
           "bytes of the results of a loop's dots, which registers hold">,
    Option<"leastBytes", "least-bytes", "int64_t", /*default=*/"81920",
           "as many bytes, of any loop, for which pairs were faster than two programs on an SM">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileUnrollLoopsPass : Pass<"tile-unroll-loops", "::tessera::tile::FuncOp"> {
  let summary = "Unroll loops by the factors that the user asked for";
  let description = [{
    `tile.loop_unroll_factor = n` on an `scf.for` unrolls it n times; a factor below 2 has no
    effect. A second loop runs the remaining iterations, unless the trip count is known to be a
    multiple of n. The pass removes the attribute.

    ```mlir
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    scf.for %i = %c0 to %c8 step %c1 : i32 {
      tile.store %p, %i : !tile.ptr<i32>
    } {tile.loop_unroll_factor = 2 : i32}
    ```
    becomes
    ```mlir
    %c2 = arith.constant 2 : i32
    scf.for %i = %c0 to %c8 step ... : i32 {
      tile.store %p, %i : !tile.ptr<i32>
      %j = arith.addi %i, %c1 overflow<nsw> : i32
      tile.store %p, %j : !tile.ptr<i32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileLowerDescriptorsPass : Pass<"tile-lower-descriptors", "::mlir::ModuleOp"> {
  let summary = "Lower block pointers and tensor descriptors to pointers and masks";
  let description = [{
    For targets without hardware for them. A block pointer becomes its base, and a shape, a stride
    and an offset per dimension. All of these are 64-bit scalars, also where a loop carries it, a
    conditional yields it, or a function takes it. A load computes its tile of pointers from them,
    with a mask for the dimensions that are checked.

    Outside the array along a checked dimension, a load reads the padding and a store writes
    nothing. This holds below 0 and above the extent.

    ```mlir
    %b = tile.make_block_ptr %p, [%n], [%s], [%i] {order = array<i32: 0>}
       : !tile.ptr<f32> -> !tile.block_ptr<tensor<64xf32>>
    %x = tile.block_load %b {boundary_check = array<i32: 0>}
       : !tile.block_ptr<tensor<64xf32>> -> tensor<64xf32>
    ```
    becomes
    ```mlir
    %inside = arith.cmpi slt, %indices, %extents : tensor<64xi64>
    %below = arith.cmpi sge, %indices, %zeros {tile.lower_bound} : tensor<64xi64>
    %mask = arith.andi %inside, %below : tensor<64xi1>
    %moved = arith.muli %from, %s : i64
    %first = tile.addptr %p, %moved : !tile.ptr<f32>, i64
    %pointers = tile.addptr %all, %steps : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
    %x = tile.load %pointers, %mask : tensor<64x!tile.ptr<f32>>
    ```

    With `aligned`, bases and strides of descriptors that were loaded from memory are assumed to be
    multiples of 16 bytes. The units that copy blocks require that. The alignment of arguments is
    known without it.
  }];
  let options = [
    Option<"aligned", "aligned", "bool", /*default=*/"false",
           "Assume that descriptors have aligned bases and strides">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect"];
}

def TileMaskWrapsPass : Pass<"tile-mask-wraps", "::tessera::tile::FuncOp"> {
  let summary = "Replace modulo indexing by masks where the extra lanes are not stored";
  let description = [{
    An index `x % extent` in an address becomes `x`, and its loads get the mask `x < extent`. The
    ranges must show that `x` is not negative. Every store that depends on such a load must mask off
    the lanes beyond the extent. Rows of a dot depend only on rows, and so do sums along another
    dimension. An address then has bounds (Analysis/BoxAccess.h), and its neighbours are contiguous.
    `x` where `x < extent`, with any other value elsewhere, is handled the same way.

    A tile that a loop carries is stored in another iteration. The operands of the mask there must
    be loop invariants.

    If all lanes of a row load one element (the scale of a block of columns), it is loaded once. The
    lanes that its mask excludes must be excluded from stores, too.

    ```mlir
    tile.func @k(%base: !tile.ptr<f32>, %out: !tile.ptr<f32>, %n: i32) {
      %x = tile.range 0 to 64 : tensor<64xi32>
      %extent = tile.splat %n : i32 -> tensor<64xi32>
      %i = tile.rem_int signed %x, %extent : tensor<64xi32>
      %bases = tile.splat %base : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %p = tile.addptr %bases, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %y = tile.load %p : tensor<64x!tile.ptr<f32>>
      %outs = tile.splat %out : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %q = tile.addptr %outs, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %stored = arith.cmpi slt, %x, %extent : tensor<64xi32>
      tile.store %q, %y, %stored : tensor<64x!tile.ptr<f32>>
      tile.return
    }
    ```
    becomes
    ```mlir
    %x = tile.range 0 to 64 : tensor<64xi32>
    %extent = tile.splat %n : i32 -> tensor<64xi32>
    %inside = arith.cmpi slt, %x, %extent : tensor<64xi32>
    %p = tile.addptr %bases, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %y = tile.load %p, %inside : tensor<64x!tile.ptr<f32>>
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileMarkMaximaPass : Pass<"tile-mark-maxima", "::tessera::tile::FuncOp"> {
  let summary = "Mark exponentials of elements minus the maximum of an earlier loop";
  let description = [{
    A loop takes the maximum of the elements that it loads. Another loop loads them again, in the same
    iterations, and computes exponentials of their differences from the maximum. The pass marks these
    if no op writes to memory up to the second loop, and none in it writes to what it loads later. The
    differences are not positive then, or NaN. A store in place is no obstacle.

    ```mlir
    %m = scf.for %i = %lb to %ub step %c64 iter_args(%a = %low) -> (tensor<64xf32>) : i32 {
      %is = tile.splat %i : i32 -> tensor<64xi32>
      %p = tile.addptr %ps, %is : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %x = tile.load %p : tensor<64x!tile.ptr<f32>>
      %b = arith.maxnumf %a, %x : tensor<64xf32>
      scf.yield %b : tensor<64xf32>
    }
    %s = scf.for %i = %lb to %ub step %c64 iter_args(%a = %zero) -> (tensor<64xf32>) : i32 {
      %is = tile.splat %i : i32 -> tensor<64xi32>
      %p = tile.addptr %ps, %is : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %x = tile.load %p : tensor<64x!tile.ptr<f32>>
      %d = arith.subf %x, %m : tensor<64xf32>
      %e = math.exp %d : tensor<64xf32>
      %b = arith.addf %a, %e : tensor<64xf32>
      scf.yield %b : tensor<64xf32>
    }
    ```
    gives the second loop
    ```mlir
      %e = math.exp %d {tessera.below_earlier_maximum} : ...
    ```
  }];
}

def TilePredicateLoadsPass : Pass<"tile-predicate-loads", "::tessera::tile::FuncOp"> {
  let summary = "Replace conditionals that load by masked loads";
  let description = [{
    A conditional in a loop becomes straight code if it has loads and pure ops alone, and few of
    them. Its condition becomes part of the loads' masks, and its results are selected. Iterations
    then overlap after unrolling. The pass skips loops that write to memory, or that have an op in
    which threads meet, since their iterations do not overlap.

    ```mlir
    %r = scf.for %i = %lb to %ub step %c1 iter_args(%sum = %zero) -> (tensor<64xf32>) : i32 {
      %some = arith.cmpi slt, %i, %n : i32
      %next = scf.if %some -> (tensor<64xf32>) {
        %x = tile.load %p : tensor<64x!tile.ptr<f32>>
        %y = arith.addf %sum, %x : tensor<64xf32>
        scf.yield %y : tensor<64xf32>
      } else {
        scf.yield %sum : tensor<64xf32>
      }
      scf.yield %next : tensor<64xf32>
    }
    ```
    becomes
    ```mlir
    %r = scf.for %i = %lb to %ub step %c1 iter_args(%sum = %zero) -> (tensor<64xf32>) : i32 {
      %some = arith.cmpi slt, %i, %n : i32
      %m = tile.splat %some : i1 -> tensor<64xi1>
      %x = tile.load %p, %m : tensor<64x!tile.ptr<f32>>
      %y = arith.addf %sum, %x : tensor<64xf32>
      %next = arith.select %some, %y, %sum : tensor<64xf32>
      scf.yield %next : tensor<64xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileLimitLaunchesPass : Pass<"tile-limit-launches", "::mlir::ModuleOp"> {
  let summary = "Choose launch limits within which indices do not wrap";
  let description = [{
    `(pid * 128 + range) % n` is contiguous if the dividend is not negative. With 2^31 programs it
    may be. A signed division, a zero-extension or the bound of a block may need a number that is
    not negative. If ranges show that only within limits of the launch, the kernel relies on these
    limits. They are attributes of the kernel and, for the launcher, of the module. Each launch
    checks them. A launch outside them runs another variant.

    ```mlir
    tile.func @k(%p: !tile.ptr<i32>, %n: i32) {
      %c128 = arith.constant 128 : i32
      %pid = tile.program_id 0
      %start = arith.muli %pid, %c128 : i32
      %starts = tile.splat %start : i32 -> tensor<128xi32>
      %range = tile.range 0 to 128 : tensor<128xi32>
      %x = arith.addi %starts, %range : tensor<128xi32>
      %ns = tile.splat %n : i32 -> tensor<128xi32>
      %i = tile.rem_int signed %x, %ns : tensor<128xi32>
      %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
      tile.store %ps, %i : tensor<128x!tile.ptr<i32>>
      tile.return
    }
    ```
    gets
    ```mlir
    tile.func @k(%p: !tile.ptr<i32>, %n: i32) attributes {tile.limited_programs = 1048576 : i64} {
      ...
    ```
    and arguments that the dividend is computed from get
    `{tile.limited = array<i64: 0, 1073741824>}`. Limits of sizes do not limit their product. If a
    loop goes over one, the kernel relies on the end of the loop instead, by `tile.program_bounds`.

    Comparisons with 0 that `tile-lower-descriptors` marked are removed if the offset is not
    negative, with or without limits.

    With `program-bounds`, a launch may also check that a divisor of an index is positive in all of
    its programs (`tile.program_bounds`). An example is the height of a group of tiles.
    Another example is a tile's number that a loop carries, which must not wrap. The loop must have
    no more iterations than the program's share of tiles.
  }];
  let options = [
    Option<"limits", "limits", "bool", /*default=*/"true", "Allow limits of launches">,
    Option<"programBounds", "program-bounds", "bool", /*default=*/"false",
           "Allow limits of the divisors that programs compute">,
  ];
}

def TileVersionWrapsPass : Pass<"tile-version-wraps", "::tessera::tile::FuncOp"> {
  let summary = "Version code by whether the indices of a program wrap";
  let description = [{
    `(start + range) % extent`, added to pointers, is contiguous except in programs at the edge. If
    runs are not known to be long, everything from the remainder on gets two versions, selected by a
    comparison of scalars. This is for CPUs, where contiguous lanes are one load, and other lanes a
    gather.

    ```mlir
    tile.func @k(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %extent: i32)
        attributes {tile.limited_programs = 1048576 : i64} {
      %c64 = arith.constant 64 : i32
      %pid = tile.program_id 0
      %start = arith.muli %pid, %c64 : i32
      %starts = tile.splat %start : i32 -> tensor<64xi32>
      %range = tile.range 0 to 64 : tensor<64xi32>
      %x = arith.addi %starts, %range : tensor<64xi32>
      %extents = tile.splat %extent : i32 -> tensor<64xi32>
      %i = tile.rem_int signed %x, %extents : tensor<64xi32>
      %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %v = tile.load %pi : tensor<64x!tile.ptr<f32>>
      %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      tile.store %qs, %v : tensor<64x!tile.ptr<f32>>
      tile.return
    }
    ```
    becomes
    ```mlir
    %x = arith.addi %starts, %range : tensor<64xi32>
    %first = tile.rem_int signed %start, %extent : i32
    %long = arith.cmpi sge, %extent, %c64 : i32
    %last = arith.subi %extent, %c64 : i32
    %fits = arith.cmpi sle, %first, %last : i32
    %straight = arith.andi %long, %fits : i1
    scf.if %straight {
      %pi = tile.addptr ... : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    } else {
      %i = tile.rem_int signed %x, ... : tensor<64xi32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileVersionAddressesPass : Pass<"tile-version-addresses", "::tessera::tile::FuncOp"> {
  let summary = "Version code by whether loaded addresses and extents are multiples of 16 bytes";
  let description = [{
    A kernel over a list of tensors loads their addresses and extents. Everything from the first
    tile on gets two versions, selected by comparisons of scalars. In one, addresses are multiples
    of 16 bytes, and so are extents, or all of the tile is within them. Code with dots, or of more
    than 200 ops, stays as it is.

    ```mlir
    %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
    ...
    %m = arith.cmpi slt, %x, %ns : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pi = tile.addptr %ps, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %v = tile.load %pi, %m : tensor<64x!tile.ptr<f32>>
    ```
    becomes
    ```mlir
    %known = tile.hint %p {divisibility = array<i64: 16>} : !tile.ptr<f32>
    ...
    %aligned = arith.cmpi eq, %low, %none : i64
    ...
    %long = arith.cmpi sge, %n, %length : i32
    ...
    %limit = tile.hint %rounded {divisibility = array<i64: 4>} : i32
    scf.if %all {
      ...
      %ks = tile.splat %limit : i32 -> tensor<64xi32>
      %k = arith.cmpi slt, %x, %ks : tensor<64xi32>
      %ps = tile.splat %known : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      ...
    } else {
      ...
      %m = arith.cmpi slt, %y, %ns : tensor<64xi32>
      %qs = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileAllowContractionPass : Pass<"tile-allow-contraction", "::tessera::tile::FuncOp"> {
  let summary = "Allow fused multiply-adds in the user's arithmetic";
  let description = [{
    The user's additions, subtractions and products get `fastmath<contract>`, so that the machine's
    fused multiply-adds may compute them. The pass runs first, since arithmetic of later passes
    (polynomials, exact sums of two parts) must be computed as written. It does not run if the same
    bits are required on every machine.

    ```mlir
    %p = arith.mulf %a, %b : tensor<64xf32>
    ```
    becomes
    ```mlir
    %p = arith.mulf %a, %b fastmath<contract> : tensor<64xf32>
    ```
  }];
}

def TileDecomposeScaledDotPass : Pass<"tile-decompose-scaled-dot", "::tessera::tile::FuncOp"> {
  let summary = "Decompose dots of scaled operands into dots of f32";
  let description = [{
    Packed elements are unpacked. Operands are converted to f32 and multiplied by their scales, each
    of which is broadcast to the elements of its group.

    ```mlir
    %d = tile.dot_scaled %a scale %s as e4m3, %b as bf16, %c
       : tensor<64x32xi8> scale tensor<64x1xi8>, tensor<32x64xbf16> -> tensor<64x64xf32>
    ```
    becomes
    ```mlir
    %a8 = tile.bitcast %a : tensor<64x32xi8> -> tensor<64x32xf8E4M3FN>
    %x = tile.fp_to_fp %a8 : tensor<64x32xf8E4M3FN> -> tensor<64x32xf32>
    %z = tile.fp_to_fp %b : tensor<32x64xbf16> -> tensor<32x64xf32>
    %scales = tile.bitcast ... -> tensor<64x1xf32>
    %factors = tile.reshape ... -> tensor<64x32xf32>
    %y = arith.mulf %x, %factors : tensor<64x32xf32>
    %d = tile.dot %y, %z, %c : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    ```

    With `for-tensor-cores`, the dots are of bf16, or of tf32 if an operand is f16. Tensor cores
    multiply these types, in which every element times its scale is exact, too.
  }];
  let options = [
    Option<"forTensorCores", "for-tensor-cores", "bool", "false", "Dots of bf16 or tf32">,
    Option<"batchesAlone", "batches-alone", "bool", "false", "Skip dots of two matrices">,
  ];
}

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_TD
