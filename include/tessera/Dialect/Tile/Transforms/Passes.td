// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on tile IR. None of them knows a target. Their order, and why, is
// lib/Pipelines/TilePipeline.cpp.

#ifndef TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_TD
#define TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileCombinePass : Pass<"tile-combine", "::tessera::tile::FuncOp"> {
  let summary = "Makes one op of several that belong together";
  let description = [{
    A sum of a dot and a tile becomes the dot's accumulator; a `select`
    between a masked load and a tile becomes the load's `other`; a stored `select`
    under the store's own mask is its first choice; pointers moved twice by
    constants are moved once.

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
  let summary = "Computes before repeating, and on scalars where all elements are equal";
  let description = [{
    An elementwise op whose operands are all splats is done on scalars; one whose
    operands are all repeated from one smaller shape is done on that shape. An
    offset that is equal for all pointers of a tile moves to the base they are made
    of, where it is one scalar addition.

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

def TileRewriteInductionsPass : Pass<"tile-rewrite-inductions", "::tessera::tile::FuncOp"> {
  let summary = "Carries a scalar where a loop moves a whole tile by equal amounts";
  let description = [{
    A tile of pointers or integers that a loop carries, and to which each iteration adds
    the same amount for all elements, is the initial tile plus a scalar. The loop
    then carries that scalar, and what the tile looks like can be seen without the
    loop. The sum of the amounts of pointers is kept in 64 bits, as an address is.
    `while` loops, and conditionals on the way to the next iteration, are seen through.

    A scalar that begins one step before a `for` loop's variable and moves as it does is
    that variable less the step.

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

def TileLoopInvariantCodeMotionPass
    : Pass<"tile-loop-invariant-code-motion", "::tessera::tile::FuncOp"> {
  let summary = "Moves what does not change out of loops, loads among it";
  let description = [{
    Beside pure ops, a load moves out of a loop that writes no memory. It must not
    touch memory where the loop makes no iteration: if that may be, the loads's mask
    becomes false then. A loop marked `tile.disable_licm` is left alone.

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
  let summary = "Checks each access against the memory behind the argument it is made through";
  let description = [{
    Puts a `tile.check_access` before each load, store and atomic of a kernel whose
    pointers can be followed to one of the kernel's arguments, and masks the access
    with its result. Where the offset is computed in fewer than 64 bits, the same
    sums, products and shifts are computed again in 64, and the check is told of them
    (`exact`): an offset that wrapped shows as one that differs.

    Other accesses stay as they are: through pointers found in memory or made of
    integers, or chosen among several arguments. A pointer or an integer that a loop
    carries counts as exact.

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
  let summary = "Checks of accesses in arithmetic, for compiled code";
  let description = [{
    A `tile.check_access` compares addresses with the ends of the argument's memory,
    and reports one lane that is outside, if there is any. Of a tile, all lanes are
    combined by `or` for that.

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
  let summary = "Ends loops whose variable would leave its type";
  let description = [{
    An iteration of an `scf.for` compares the next value of its variable with the upper
    bound. Where that value may not fit the type (a step other than 1, and a bound
    that is not known to be a step below the largest value), the variable is
    compared before it is moved instead, with a limit of the bound less a step.
    Any kind of function: it runs when nothing but control flow is left.

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

def TileUnrollLoopsPass : Pass<"tile-unroll-loops", "::tessera::tile::FuncOp"> {
  let summary = "Repeats the bodies of loops as often as the user asked for";
  let description = [{
    `tile.loop_unroll_factor = n` on an `scf.for` asks for n bodies an iteration; less than
    2 asks for nothing. What is left over runs in a second loop, unless the trip count is known to divide. The
    attribute is gone afterwards.

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
      %j = arith.addi %i, %c1 : i32
      tile.store %p, %j : !tile.ptr<i32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileLowerDescriptorsPass : Pass<"tile-lower-descriptors", "::mlir::ModuleOp"> {
  let summary = "Writes block pointers and tensor descriptors as pointers and masks";
  let description = [{
    For targets without hardware for them. A block pointer becomes its base, and a
    shape, a stride and an offset a dimension, all scalars of 64 bits, also where
    loops carry it, conditionals give it, or functions take it. A load makes its
    tile of pointers from them, with a mask for the dimensions that are checked.

    An access outside the array along a checked dimension reads the padding and
    writes nothing, below 0 as above the extent.

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

    With `aligned`, the base and the strides of a descriptor are taken for multiples of 16 bytes
    where they come from memory, so that nothing can be known of them: the units that move blocks
    ask for that. Of arguments it is known whether they are.
  }];
  let options = [
    Option<"aligned", "aligned", "bool", /*default=*/"false",
           "Whether descriptors are of aligned arrays">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect"];
}

def TileMaskWrapsPass : Pass<"tile-mask-wraps", "::tessera::tile::FuncOp"> {
  let summary = "Masks loads at indices that wrap, where what is loaded there is not stored";
  let description = [{
    An index `x % extent` in addresses becomes `x`, where ranges show that it is not
    negative, and the loads there get the mask `x < extent`, if on every way from these loads what lies beyond the extent is left
    out when it is stored. Rows of a dot depend on rows alone, and so do sums along
    another dimension. A box then has bounds (Analysis/BoxAccess.h), and neighbours are
    neighbours for certain. So does `x` where `x < extent`, and anything else elsewhere.

    A tile that a loop carries is stored in another iteration: what the mask there
    compares has to be the same in all of them.

    A row of which all lanes load one element, such as the scale of a block of columns, is
    loaded once, if what its mask leaves out is left out of stores, too.

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

def TileLimitLaunchesPass : Pass<"tile-limit-launches", "::mlir::ModuleOp"> {
  let summary = "Chooses limits of launches by which indices are known not to wrap";
  let description = [{
    `(pid * 128 + range) % n` is a run of neighbours if the dividend is not negative, and
    it may be: there may be 2^31 programs. So where a signed division, a zero-extension or
    a bound of a block needs a number that is not negative, and ranges show that by limits
    of the launch alone, the kernel relies on these. They are attributes of the kernel and,
    for the launcher, of the module. They are checked at each launch, and a launch outside
    them runs another variant.

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
    `{tile.limited = array<i64: 0, 1073741824>}`.

    Comparisons with 0 that `tile-lower-descriptors` has marked go where the offset is not
    negative, by limits or without.

    With `program-bounds` a launch may be asked, too, that a number by which an index is
    divided is positive in all of its programs (`tile.program_bounds`): the height of a group
    of tiles.
  }];
  let options = [
    Option<"limits", "limits", "bool", /*default=*/"true", "Whether launches have limits">,
    Option<"programBounds", "program-bounds", "bool", /*default=*/"false",
           "Whether limits are of numbers, too, that programs divide by">,
  ];
}

def TileVersionWrapsPass : Pass<"tile-version-wraps", "::tessera::tile::FuncOp"> {
  let summary = "Has programs whose indices do not wrap run code that cannot wrap";
  let description = [{
    `(start + range) % extent`, added to pointers, is a run of neighbours unless the
    program is one at the edge. Where runs are not known to be long, everything from the
    remainder on gets two versions, chosen by scalars. For CPUs, where neighbours are one
    load and all others a gather.

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

def TileAllowContractionPass : Pass<"tile-allow-contraction", "::tessera::tile::FuncOp"> {
  let summary = "Lets a product and the sum it is part of be rounded once";
  let description = [{
    Marks the additions, subtractions and products of the user's program with
    `fastmath<contract>`, so that the machine's fused multiply-add may be used for
    them. First of all passes, since arithmetic that later passes write (polynomials,
    exact sums of two parts) must be done as written. Left out where the same bits are
    wanted on every machine.

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
  let summary = "Makes dots of scaled operands dots of f32";
  let description = [{
    Packed elements are taken apart, operands converted to f32 and multiplied with
    their scales, each of which is repeated for the elements of its group.

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

    `for-tensor-cores` makes them dots of what tensor cores take, in which every
    element times its scale is exact, too: bf16; with an operand of f16, tf32.
  }];
  let options = [
    Option<"forTensorCores", "for-tensor-cores", "bool", "false", "Dots of bf16 or tf32">,
    Option<"batchesAlone", "batches-alone", "bool", "false", "Leave dots of two matrices">,
  ];
}

#endif // TESSERA_DIALECT_TILE_TRANSFORMS_PASSES_TD
