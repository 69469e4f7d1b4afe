// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tiles to strips, in the order of the CPU pipeline (lib/Pipelines/HostPipeline.cpp):
//
//   strips-inline-calls     functions of tiles go into their callers
//   strips-reduce-atomics   lanes that meet at one place are combined first
//   strips-check-promises   are promised neighbours neighbours
//   strips-group            which operations share a loop nest
//   strips-materialize      buffers for the tiles between nests and around loops
//   strips-version-promises  groups for promises that hold, and for others
//   strips-check-aliases    runtime alias checks: stores meet no load of their nest
//   strips-lower-dot        dots in buffers become register-blocked loops
//   strips-lower            each group becomes a nest of loops over vectors
//   strips-lower-programs   kernels become functions that run a range of programs
//   strips-lower-private-copies  threads add to copies of their own first
//   strips-split-loops      rows within bounds need no conditional each
//   strips-expand-total-arith, strips-expand-math, strips-legalize-floats
//                           what the machine has no instruction for
//
// and then MLIR's own conversions to the LLVM dialect.

#ifndef TESSERA_CONVERSION_TILETOSTRIPS_PASSES_TD
#define TESSERA_CONVERSION_TILETOSTRIPS_PASSES_TD

include "mlir/Pass/PassBase.td"

def StripsInlineCalls : Pass<"strips-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Inlines every function that takes or returns tiles";
  let description = [{
    `noinline` is a wish about code size. A tile that crosses a call would have to be in
    memory on both sides, so functions of tiles are inlined all the same; those of
    scalars stay functions.

    ```mlir
    tile.func private @f(%x: f32) -> f32 attributes {noinline} {
      %y = math.exp %x : f32
      tile.return %y : f32
    }
    tile.func private @g(%x: tensor<64xf32>) -> tensor<64xf32> attributes {noinline} {
      %y = math.exp %x : tensor<64xf32>
      tile.return %y : tensor<64xf32>
    }
    tile.func @k(%p: !tile.ptr<f32>, %s: f32) {
      %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %r = tile.call @f(%s) : (f32) -> f32
      %x = tile.splat %r : f32 -> tensor<64xf32>
      %y = tile.call @g(%x) : (tensor<64xf32>) -> tensor<64xf32>
      tile.store %ps, %y : tensor<64x!tile.ptr<f32>>
      tile.return
    }
    ```
    becomes
    ```mlir
    tile.func @k(%p: !tile.ptr<f32>, %s: f32) {
      %r = tile.call @f(%s) : (f32) -> f32
      %x = tile.splat %r : f32 -> tensor<64xf32>
      %y = math.exp %x : tensor<64xf32>
      ...
    }
    ```
  }];
}

def StripsReduceAtomics : Pass<"strips-reduce-atomics", "::tessera::tile::FuncOp"> {
  let summary = "Combines lanes of atomics that meet at one place before they meet";
  let description = [{
    Where the pointers of an atomic whose old values go unread are the same along a
    dimension, or in runs along it, the values are reduced first. A
    place is left alone if all its lanes are masked off. Not done for exchanges, and
    with `deterministic` not for sums of floats, whose order it changes.

    ```mlir
    tile.func private @k(%rows: tensor<64x1x!tile.ptr<f32>>, %x: tensor<64x16xf32>) {
      %p = tile.broadcast %rows : tensor<64x1x!tile.ptr<f32>> -> tensor<64x16x!tile.ptr<f32>>
      %old = tile.atomic_rmw fadd, relaxed, gpu, %p, %x
           : tensor<64x16x!tile.ptr<f32>>, tensor<64x16xf32> -> tensor<64x16xf32>
      tile.return
    }
    ```
    becomes
    ```mlir
    %s = tile.reduce(%x) {axis = 1 : i32} : (tensor<64x16xf32>) -> tensor<64xf32> {
      ...  // addf
    }
    %places = tile.reshape %rows : tensor<64x1x!tile.ptr<f32>> -> tensor<64x!tile.ptr<f32>>
    %old = tile.atomic_rmw fadd, relaxed, gpu, %places, %s
         : tensor<64x!tile.ptr<f32>>, tensor<64xf32> -> tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::tessera::tile::TileDialect"];
  let options = [
    Option<"deterministic", "deterministic", "bool", "false",
           "Whether sums of floats keep their order">,
    Option<"remarks", "remarks", "bool", "false", "Say which atomics are combined">,
  ];
}

def StripsGroup : Pass<"strips-group", "::tessera::tile::FuncOp"> {
  let summary = "Decides which operations on tiles share a loop nest";
  let description = [{
    Puts every operation on tiles in a `strips.group`, except dots and
    control flow. A group is built around its *roots*: stores, reductions, and
    values that something outside needs as a tile (a dot, a loop, another
    group). Everything else is cloned into the groups that need it: index
    arithmetic always, since computing it again is cheaper than memory; a loaded
    or expensive value of several groups is computed once and yielded.

    Loads keep their place relative to stores: a load from before a store is done
    in the store's group or an earlier one, a load from after it in a later one.

    ```mlir
    tile.func private @k(%p: tensor<64x!tile.ptr<f32>>, %q: tensor<64x!tile.ptr<f32>>) {
      %x = tile.load %p : tensor<64x!tile.ptr<f32>>
      %m = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {  // root of group 1
      ^bb0(%a: f32, %b: f32):
        %c = arith.maximumf %a, %b : f32
        tile.reduce_return %c : f32
      }
      %t = tile.splat %m : f32 -> tensor<64xf32>
      %d = arith.subf %x, %t : tensor<64xf32>
      tile.store %q, %d : tensor<64x!tile.ptr<f32>>  // root of group 2
      tile.return
    }
    ```
    becomes
    ```mlir
    %0:2 = strips.group [64] -> f32, tensor<64xf32> {
      %x = tile.load %p : tensor<64x!tile.ptr<f32>>
      %m = tile.reduce(%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
        ...
      }
      strips.yield %m, %x : f32, tensor<64xf32>
    }
    strips.group [64] {
      %t = tile.splat ... : f32 -> tensor<64xf32>
      %d = arith.subf ... : tensor<64xf32>
      tile.store %q, %d : tensor<64x!tile.ptr<f32>>
      strips.yield
    }
    ```
  }];
  let dependentDialects = ["::tessera::strips::StripsDialect"];
}

def StripsMaterialize : Pass<"strips-materialize", "::tessera::tile::FuncOp"> {
  let summary = "Gives each tile that lives between groups a buffer";
  let description = [{
    Tiles yielded by groups, carried by loops and given by conditionals are put in
    row-major buffers of the thread's scratch arena. A tile that is carried by a
    loop, and one that a dot adds to, is updated in place unless its old
    value is used later. Buffers whose tiles are never alive together share memory.
    The arena's size is left on the function as `strips.scratch_bytes`.

    ```mlir
    tile.func @k(%p: !tile.ptr<f32>) {
      %y = strips.group [64] -> tensor<64xf32> {
        %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
        %x = tile.load %ps : tensor<64x!tile.ptr<f32>>
        strips.yield %x : tensor<64xf32>
      }
      strips.group [64] {
        %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
        tile.store %ps, %y : tensor<64x!tile.ptr<f32>>
        strips.yield
      }
      tile.return
    }
    ```
    becomes
    ```mlir
    %b = strips.scratch 0 : memref<64xf32>
    strips.group [64] {
      ...
      %x = tile.load ... : tensor<64x!tile.ptr<f32>>
      strips.write %x, %b : tensor<64xf32>, memref<64xf32>
      strips.yield
    }
    strips.group [64] {
      %y = strips.read %b : memref<64xf32> -> tensor<64xf32>
      tile.store ... %y : tensor<64x!tile.ptr<f32>>
      strips.yield
    }
    ```
  }];
  let dependentDialects = ["::tessera::strips::StripsDialect", "::mlir::scf::SCFDialect"];
}

def StripsCheckPromises : Pass<"strips-check-promises", "::tessera::tile::FuncOp"> {
  let summary = "Check promises of neighbours and of equal elements";
  let description = [{
    A `tile.hint` of which an access gains is compared with the tile: does each
    promised run count up by one, or is it equal? The hint becomes a choice between
    the tile with the hint, marked as known (`strips.checked`), and the tile itself.
    `strips-version-promises` settles the choice in each group. The check stands
    where the hint does. Runs that do not divide their dimension, hints of scalars,
    and divisibilities are not checked, and so not believed.

    ```mlir
    tile.func private @k(%p: !tile.ptr<f32>, %q: tensor<64x!tile.ptr<i32>>) {
      %i = tile.load %q : tensor<64x!tile.ptr<i32>>
      %h = tile.hint %i {contiguity = array<i64: 64>} : tensor<64xi32>
      %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
      tile.store %pi, %x : tensor<64x!tile.ptr<f32>>
      tile.return
    }
    ```
    becomes
    ```mlir
    %i = tile.load ... : tensor<64x!tile.ptr<i32>>
    %places = tile.range 0 to 64 : tensor<64xi32>
    %less = arith.subi %i, %places : tensor<64xi32>
    %least = tile.reduce(%less) ...
      arith.minsi ...
    %most = tile.reduce(%less) ...
      arith.maxsi ...
    %same = arith.cmpi eq, %least, %most : i32
    %fits = arith.cmpi sle, %least, ... : i32
    %holds = arith.andi %same, %fits : i1
    %known = tile.hint %i {constancy = array<i64: 1>, contiguity = array<i64: 64>, strips.checked} : tensor<64xi32>
    %h = arith.select %holds, %known, %i : tensor<64xi32>
    %pi = tile.addptr ..., %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tessera::strips::StripsDialect"];
}

def StripsVersionPromises : Pass<"strips-version-promises", "::tessera::tile::FuncOp"> {
  let summary = "Give groups a version for promises that hold";
  let description = [{
    A group with choices that `strips-check-promises` made, and with accesses, gets
    two versions. In the one that runs if all promises hold, the hints are facts; in
    the other one, the tiles are without hints. A group without accesses drops them.

    ```mlir
    tile.func @k(%p: !tile.ptr<f32>, %holds: i1) {
      %b = strips.scratch 0 : memref<64xi32>
      strips.group [64] {
        %i = strips.read %b : memref<64xi32> -> tensor<64xi32>
        %known = tile.hint %i {contiguity = array<i64: 64>, strips.checked} : tensor<64xi32>
        %h = arith.select %holds, %known, %i : tensor<64xi32>
        %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
        %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
        %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
        tile.store %pi, %x : tensor<64x!tile.ptr<f32>>
        strips.yield
      }
      tile.return
    }
    ```
    becomes
    ```mlir
    scf.if %holds {
      strips.group [64] {
        %i = strips.read ...
        %known = tile.hint %i {contiguity = array<i64: 64>, strips.checked} : tensor<64xi32>
        %pi = tile.addptr ..., %known : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
        ...
    } else {
      strips.group [64] {
        %j = strips.read ...
        %pj = tile.addptr ..., %j : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
        ...
    }
    ```
  }];
  let dependentDialects = ["::tessera::strips::StripsDialect", "::mlir::scf::SCFDialect"];
}

def StripsCheckAliases : Pass<"strips-check-aliases", "::tessera::tile::FuncOp"> {
  let summary = "Runtime alias checks: that the stores of a group meet no other access in it";
  let description = [{
    In a tile program all lanes of a load are done before a later store. A group
    runs strip by strip, so a store of one strip comes before the load of the next.
    Where the two may overlap, the group gets two versions: the fused one, taken if
    the address ranges are found to be disjoint or each element is stored where it
    was loaded, and one that loads everything first. A load and a store through the
    same pointers, none equal to another, need no check unless elements move. Of rows
    whose addresses depend on data, the program looks for the lowest and the highest
    before it begins.

    ```mlir
    tile.func @k(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
      strips.group [64] {
        %r = tile.range 0 to 64 : tensor<64xi32>
        %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
        %pi = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
        %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
        %qi = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
        %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
        tile.store %qi, %x : tensor<64x!tile.ptr<f32>>
        strips.yield
      }
      tile.return
    }
    ```
    becomes
    ```mlir
    %disjoint = arith.ori ... : i1
    scf.if ... {
      strips.group [64] {
        %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
        tile.store %qi, %x : tensor<64x!tile.ptr<f32>>
        ...
    } else {
      %b = strips.scratch 0 : memref<64xf32>
      strips.group [64] ... {
        %y = tile.load ... : tensor<64x!tile.ptr<f32>>
        strips.write %y, %b : tensor<64xf32>, memref<64xf32>
        ...
      strips.group [64] ... {
        %z = strips.read %b : memref<64xf32> -> tensor<64xf32>
        tile.store ... %z : tensor<64x!tile.ptr<f32>>
        ...
    }
    ```
  }];
  let dependentDialects = ["::tessera::strips::StripsDialect", "::mlir::scf::SCFDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def StripsLower : Pass<"strips-lower", "::tessera::tile::FuncOp"> {
  let summary = "Makes each group a nest of loops over vectors";
  let description = [{
    The innermost loop of a nest runs over strips: vectors, as wide as the machine's,
    of the widest element type in the group, along the dimension in which most
    accesses are contiguous. A value is computed at the outermost loop that it
    allows. Masks that bound an index become the bound of a loop without masks,
    followed by one with masks.

    ```mlir
    tile.func @k(%p: !tile.ptr<f32>, %n: i32) {
      %b = strips.scratch 0 : memref<1024xf32>
      strips.group [1024] {
        %r = tile.range 0 to 1024 : tensor<1024xi32>
        %ns = tile.splat %n : i32 -> tensor<1024xi32>
        %m = arith.cmpi slt, %r, %ns : tensor<1024xi32>
        %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
        %pi = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
        %x = tile.load %pi, %m : tensor<1024x!tile.ptr<f32>>
        strips.write %x, %b : tensor<1024xf32>, memref<1024xf32>
        strips.yield
      }
      tile.return
    }
    ```
    becomes
    ```mlir
    scf.for %i = %c0 to %full step %c32 {
      %x = llvm.load ... : !llvm.ptr -> vector<8xf32>
      ...  // four vectors
      vector.store %x, %b[%i] : memref<1024xf32>, vector<8xf32>
      ...
    }
    scf.for %j = %full to %c1024 step %c8 {
      %m = arith.cmpi slt, ... : vector<8xi32>
      %y = llvm.intr.masked.load ... %m, ...
      vector.store %y, %b[%j] : memref<1024xf32>, vector<8xf32>
    }
    ```
  }];
  let options = [
    Option<"machineName", "machine", "std::string", "\"avx2\"",
           "The machine: a row of the table, and its instructions (Machine/HostMachine.h)">,
    Option<"unroll", "unroll", "unsigned", "0",
           "The most strips in one iteration of a loop; 0: as many as suit the machine">,
    Option<"remarks", "remarks", "bool", "false", "Say what was chosen, and why">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Reduce in an order that no vector width changes">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::ub::UBDialect"];
}

def StripsLowerPrograms : Pass<"strips-lower-programs", "::mlir::ModuleOp"> {
  let summary = "Makes each kernel a function that runs a range of programs";
  let description = [{
    A kernel becomes a function of the launch record, a first and a last program and
    the scratch arena (include/tessera/Runtime/Host/KernelABI.h); it loads its
    arguments once and loops over its programs, x fastest. Pointers become i64
    addresses, `strips.scratch` views of the arena.

    ```mlir
    tile.func @k(%p: !tile.ptr<i32>) {
      %i = tile.program_id 0
      tile.store %p, %i : !tile.ptr<i32>
      tile.return
    }
    ```
    becomes
    ```mlir
    func.func @k(%launch: !llvm.ptr {llvm.noalias}, %begin: i64, %end: i64, %scratch: !llvm.ptr ...) -> i32 {
      ... = scf.for ... = %begin to %end step %c1 iter_args(%i = ...) -> (i32) : i64 {
        llvm.store %i, ... : i32, !llvm.ptr
        ...
      }
      return ... : i32
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def StripsLowerPrivateCopies : Pass<"strips-lower-private-copies", "::mlir::func::FuncOp"> {
  let summary = "Privatisation: gives threads copies of what their programs add to";
  let description = [{
    Each `strips.private_copy` gets memory behind the rest of the scratch arena. It is made
    neutral before the loop over the programs, a quarter as many elements as the programs
    have lanes, and what was added to it is added to the array behind that loop.

    ```mlir
    func.func @k(%launch: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) -> i32 {
      %c1 = arith.constant 1 : i64
      %zero = arith.constant 0 : i32
      %base = llvm.load %launch : !llvm.ptr -> i64
      scf.for %program = %begin to %end step %c1 : i64 {
        %bytes, %memory = strips.private_copy %base of f32 by 1024
        %place = llvm.inttoptr %memory : i64 to !llvm.ptr
        llvm.store %bytes, %place : i64, !llvm.ptr
      }
      return %zero : i32
    }
    ```
    becomes
    ```mlir
    ... // a quarter of (%end - %begin) * 1024 * 4 bytes, and 256 KiB at most
    scf.for ... {
      llvm.store %neutral, ... : vector<16xf32>, !llvm.ptr
    }
    scf.for %program = %begin to %end step %c1 : i64 {
      ...
    }
    scf.for ... {
      ...
      llvm.atomicrmw fadd ...
      ...
    }
    ```
  }];
  let options = [
    Option<"machineName", "machine", "std::string", "\"\"",
           "The row of the table of machines and its features; empty: the least">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def StripsLowerDot : Pass<"strips-lower-dot"> {
  let summary = "Makes each dot in buffers a nest of register-blocked loops";
  let description = [{
    The innermost loop runs over k and holds a block of the result in registers: as
    many rows and vectors of columns as the register file has room for. Rows and
    columns left over get smaller blocks. Where rows of `b` fall on the same few sets
    of the cache, and for operands of 16 or 8 bits, panels of `b` are packed (converted
    on the way) into scratch memory first, which is added to `strips.scratch_bytes`.

    Rules: (L1) static shapes; (L2) the last dimension of each buffer is contiguous.

    ```mlir
    tile.func private @k(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
      strips.dot %a, %b, %c : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
      tile.return
    }
    ```
    becomes
    ```mlir
    scf.for %n = ... {
      scf.for %m = ... {
        ... = vector.load %c[%m, %n] : memref<64x64xf32>, vector<8xf32>
        ... = scf.for %k = ... iter_args(...) -> (vector<8xf32>, ...) {
          ... = vector.load %b[%k, %n] : memref<64x64xf32>, vector<8xf32>
          ...
        }
        vector.store ... %c[%m, %n] : memref<64x64xf32>, vector<8xf32>
        ...
    ```
  }];
  let options = [
    Option<"machineName", "machine", "std::string", "\"avx2\"",
           "The machine: a row of the table, and its instructions (Machine/HostMachine.h)">,
    Option<"remarks", "remarks", "bool", "false", "Say what was chosen, and why">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Round products and sums apart, whether or not the machine can fuse them">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def StripsSplitLoops : Pass<"strips-split-loops"> {
  let summary = "Splits loops over rows where a bound ends them";
  let description = [{
    An innermost loop of constant length that carries values, and all of whose
    conditionals ask whether what counts up with it is below one bound, becomes two:
    one for the first iterations for which it is, four at a time, which does not ask, and
    one for those after it, which does: what counts up may have wrapped around.

    ```mlir
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %s = scf.for %i = %c0 to %c16 step %c1 iter_args(%t = %zero) -> (f32) {
      %row = arith.addi %first, %i : index
      %in = arith.cmpi slt, %row, %n : index
      %x = scf.if %in -> (f32) {
        %y = memref.load %m[%row] : memref<?xf32>
        scf.yield %y : f32
      } else {
        scf.yield %zero : f32
      }
      %next = arith.addf %t, %x : f32
      scf.yield %next : f32
    }
    ```
    becomes
    ```mlir
    ... = scf.for ... = %c0 to %most step %by iter_args(... = %zero) -> (f32) {
      %true = arith.constant true
      ...  // the conditions hold: four rows at a time, then one
    }
    %r = scf.for ... = %most to %end step %c1 iter_args(...) -> (f32) {
      ...
    }
    %s = scf.for ... = %end to %c16 step %c1 iter_args(%t = %r) -> (f32) {
      %in = arith.cmpi slt, ... : index
      %x = scf.if %in -> (f32) {
        ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def StripsHoistInvariants : Pass<"strips-hoist-invariants"> {
  let summary = "Hoists what is the same at each iteration of a loop, as far as it pays";
  let description = [{
    MLIR's motion of loop-invariant code, but for loops of more than `limit` operations,
    whose invariants stay. Of such a loop (over programs, around code that was unrolled)
    thousands of values would be hoisted. All of them would be spilled, one by one
    split around each of the loops inside, and loaded again where it is cheaper to
    compute them.

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      %twice = arith.muli %n, %n : index
      memref.store %twice, %m[%i] : memref<?xindex>
    }
    ```
    becomes
    ```mlir
    %twice = arith.muli %n, %n : index
    scf.for %i = %c0 to %n step %c1 {
      memref.store %twice, %m[%i] : memref<?xindex>
    }
    ```
  }];
  let options = [Option<"limit", "limit", "unsigned", "4096",
                        "operations of a loop that others are hoisted out of">];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def StripsOutlineParts : Pass<"strips-outline-parts", "::mlir::ModuleOp"> {
  let summary = "Gives functions that are too long for LLVM several functions";
  let description = [{
    LLVM turns loops round, splits live ranges and prepares blocks in time that grows
    with the square of a function's size. A function of more than `limit` operations
    (much unrolled code) is therefore divided: runs of operations of a block become
    functions of about `part-size` operations each, which take what they use and return
    what is used behind them. Views of memory are built again where they are used.
    A loop or a branch is divided if it is larger than `limit` by itself.

    ```mlir
    func.func @k(%p: !llvm.ptr) -> i32 {
      %x = llvm.load %p : !llvm.ptr -> i32
      %y = arith.addi %x, %x : i32
      %z = arith.muli %y, %x : i32
      llvm.store %z, %p : i32, !llvm.ptr
      %u = arith.xori %z, %y : i32
      return %u : i32
    }
    ```
    becomes, for a `limit` of 2 and a `part-size` of 2,
    ```mlir
    ...  // the parts
    func.func @k(%p: !llvm.ptr) -> i32 {
      %a:2 = call @k.part0(%p) : (!llvm.ptr) -> (i32, i32)
      %z = call @k.part1(%a#1, %a#0, %p) : (i32, i32, !llvm.ptr) -> i32
      %u = arith.xori %z, %a#1 : i32
      return %u : i32
    }
    ```
  }];
  let options = [
    Option<"limit", "limit", "unsigned", "4096",
           "operations of a function, a loop or a branch that is left whole">,
    Option<"partSize", "part-size", "unsigned", "256", "operations of a part">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}

def StripsExpandTotalArith : Pass<"strips-expand-total-arith"> {
  let summary = "Writes the tile dialect's arithmetic on scalars in arith and math ops";
  let description = [{
    Division, shifts and conversions that are defined for every input become guarded
    arith ops, without the guard where an operand is a constant that needs none.

    ```mlir
    %q = tile.div_int unsigned %a, %b : i32
    ```
    becomes
    ```mlir
    %z = arith.cmpi eq, %b, %c0 : i32
    %d = arith.select %z, %c1, %b : i32
    %r = arith.divui %a, %d : i32
    %q = arith.select %z, %all_ones, %r : i32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def StripsLegalizeFloats : Pass<"strips-legalize-floats"> {
  let summary = "Computes on 16-bit floats in f32, rounding after every operation";
  let description = [{
    Arithmetic and maths on f16 and bf16 is done in f32 and rounded back, each
    operation once. Conversions that the machine has no instruction for become
    integer code; AVX512-BF16 has one for vectors without denormals, which it takes
    for zero. Between operations a bf16 is an integer: LLVM would convert what is only
    carried from block to block.

    ```mlir
    %s = arith.addf %a, %b : vector<16xbf16>
    ```
    becomes
    ```mlir
    %x = arith.extui %a : vector<16xi16> to vector<16xi32>
    %y = arith.shli %x, %c16 : vector<16xi32>
    %z = arith.bitcast %y : vector<16xi32> to vector<16xf32>
    ...
    %sum = arith.addf %z, ... : vector<16xf32>
    ...  // rounded by integer operations
    %s = arith.trunci ... : vector<16xi32> to vector<16xi16>
    ```
  }];
  let options = [
    Option<"hasF16C", "has-f16c", "bool", "true",
           "The machine converts between f16 and f32 by an instruction">,
    Option<"hasBF16", "has-bf16", "bool", "false",
           "The machine rounds normal f32 to bf16 by an instruction (AVX-512)">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def StripsExpandMath : Pass<"strips-expand-math", "::mlir::ModuleOp"> {
  let summary = "Writes exp, log, sin, ... on f32 and f64 as polynomials";
  let description = [{
    Each function becomes branch-free code at the width of its operand. The trig
    functions alone branch: arguments too large for their reduction are left to the
    C library, one by one. docs/Numerics.md tells how far off each function is.

    Rules: (M1) f32 or f64; strips-legalize-floats has widened everything narrower.

    ```mlir
    %y = math.exp2 %x : vector<16xf32>
    ```
    becomes
    ```mlir
    %rounded = llvm.intr.fmuladd(... // plus a number so large that the sum is an integer
    %n = arith.subf %rounded, %large : vector<16xf32>
    %rest = arith.subf ... %n : vector<16xf32>
    ... // a polynomial of the rest
    %p = llvm.intr.fmuladd(%rest, ...
    %half = arith.mulf %p, ... : vector<16xf32>
    %y = arith.mulf %half, ... : vector<16xf32>
    ```
  }];
  let options = [
    Option<"deterministic", "deterministic", "bool", "false",
           "Round products and sums apart, whether or not the machine can fuse them">,
    Option<"hasScale", "has-scale", "bool", "false",
           "The machine multiplies by powers of two in one instruction (AVX-512)">,
    Option<"hasFMA", "has-fma", "bool", "false",
           "The machine has fused multiply-adds, by which errors of products are found">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

#endif // TESSERA_CONVERSION_TILETOSTRIPS_PASSES_TD
