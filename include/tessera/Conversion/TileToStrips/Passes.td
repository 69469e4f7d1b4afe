// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From tiles to strips, in the order of the CPU pipeline (lib/Pipelines/HostPipeline.cpp):
//
//     strips-inline-calls          inline functions of tiles
//     strips-reduce-atomics        reduce lanes of an atomic that access the same address
//     strips-check-promises        check promises of contiguous and of equal elements
//     strips-group                 group operations that share a loop nest
//     strips-materialize           allocate buffers for tiles between nests and around loops
//     strips-version-promises      version groups by whether promises hold
//     strips-check-aliases         insert runtime alias checks between stores and loads of a nest
//     strips-lower-dot             lower dots in buffers to register-blocked loops
//     strips-lower                 lower groups to loop nests over vectors
//     strips-lower-programs        lower kernels to functions that run a range of programs
//     strips-lower-private-copies  privatise arrays that programs add to
//     strips-split-loops           split loops over rows at the bound of their mask
//     strips-expand-total-arith, strips-expand-math, strips-legalize-floats
//                                  expand operations that the machine has no instruction for
//
// and then MLIR's own conversions to the LLVM dialect.

#ifndef TESSERA_CONVERSION_TILETOSTRIPS_PASSES_TD
#define TESSERA_CONVERSION_TILETOSTRIPS_PASSES_TD

include "mlir/Pass/PassBase.td"

def StripsInlineCalls : Pass<"strips-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Inline every function that takes or returns tiles";
  let description = [{
    A tile that crosses a call would need memory on both sides. So functions of tiles are inlined in
    spite of `noinline`, which is a hint about code size. Functions of scalars are unchanged.

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
  let summary = "Reduce lanes of an atomic that access the same address";
  let description = [{
    The old values of the atomic must be unused. If its pointers are equal along a dimension, or in
    runs along it, the values are reduced first. An address whose lanes are all masked off is not
    accessed. The pass skips exchanges. With `deterministic`, it also skips float sums, whose order
    would change.

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
           "Preserve the order of float sums">,
    Option<"remarks", "remarks", "bool", "false", "Emit remarks for combined atomics">,
  ];
}

def StripsGroup : Pass<"strips-group", "::tessera::tile::FuncOp"> {
  let summary = "Group tile operations that share a loop nest";
  let description = [{
    Every operation on tiles becomes part of a `strips.group`, except dots and control flow. A group
    is built around its *roots*: stores, reductions, and tiles that an op outside uses (a dot, a
    loop, another group). Other operations are cloned into the groups that need them. Index
    arithmetic is always cloned, since recomputing it is cheaper than memory. A loaded or expensive
    value of several groups is computed once and yielded.

    Loads keep their order relative to stores. A load before a store is in the store's group or an
    earlier one. A load after it is in a later group.

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
  let summary = "Allocate buffers for tiles that live between groups";
  let description = [{
    Tiles that groups yield, loops carry or conditionals yield are placed in row-major buffers of
    the thread's scratch arena. A tile that a loop carries or a dot accumulates into is updated in
    place, unless its old value is used later. Buffers whose live ranges do not overlap share
    memory. `strips.scratch_bytes` on the function is the size of the arena.

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
  let summary = "Check promises of contiguous and of equal elements";
  let description = [{
    A `tile.hint` from which an access benefits is compared with the tile. Each promised run must
    increase by one, or be equal. The hint becomes a `select` between the tile with the hint, marked
    as known (`strips.checked`), and the tile itself. `strips-version-promises` resolves the
    `select` in each group. The check is at the place of the hint. Runs that do not divide their
    dimension, hints of scalars and divisibilities are not checked, and therefore not used.

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
  let summary = "Version groups by whether promises hold";
  let description = [{
    A group that has accesses, and choices from `strips-check-promises`, gets two versions. The
    version for promises that all hold uses the hints as facts. The other version has no hints. A
    group without accesses drops its hints.

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

def StripsVersionMasks : Pass<"strips-version-masks", "::tessera::tile::FuncOp"> {
  let summary = "Version groups by whether masks are true everywhere";
  let description = [{
    A group in a loop that selects by a mask of 256 elements or more gets two versions, if the mask
    is a conjunction of signed comparisons of indices. Indices are sums of scalars, ranges and
    constants, and constant multiples of these. The first version is for masks that are true
    everywhere, and selects nothing. The check compares the least and the largest indices in 64
    bits. It fails if an index may wrap around in its own type.

    ```mlir
    tile.func @k(%row: i32, %n: i32, %step: i32) {
      %c0 = arith.constant 0 : i32
      %s = strips.scratch 0 : memref<64x64xf32>
      scf.for %column = %c0 to %n step %step : i32 {
        strips.group [64, 64] {
          %x = strips.read %s : memref<64x64xf32> -> tensor<64x64xf32>
          %range = tile.range 0 to 64 : tensor<64xi32>
          %rs = tile.splat %row : i32 -> tensor<64xi32>
          %r = arith.addi %rs, %range : tensor<64xi32>
          %r2 = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
          %rows = tile.broadcast %r2 : tensor<64x1xi32> -> tensor<64x64xi32>
          %cs = tile.splat %column : i32 -> tensor<64xi32>
          %c = arith.addi %cs, %range : tensor<64xi32>
          %c2 = tile.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
          %columns = tile.broadcast %c2 : tensor<1x64xi32> -> tensor<64x64xi32>
          %mask = arith.cmpi sge, %rows, %columns : tensor<64x64xi32>
          %none = arith.constant dense<0.0> : tensor<64x64xf32>
          %y = arith.select %mask, %x, %none : tensor<64x64xi1>, tensor<64x64xf32>
          strips.write %y, %s : tensor<64x64xf32>, memref<64x64xf32>
          strips.yield
        }
      }
      tile.return
    }
    ```
    becomes
    ```mlir
    %first = arith.extsi %row : i32 to i64
    ...
    %below = arith.cmpi sge, ...
    scf.if ... {
      strips.group [64, 64] {
        %x = strips.read ...
        strips.write %x, ...
        strips.yield
      }
    } else {
      strips.group [64, 64] {
        ...
        arith.select ...
    }
    ```
  }];
  let dependentDialects = ["::tessera::strips::StripsDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"];
}

def StripsCheckAliases : Pass<"strips-check-aliases", "::tessera::tile::FuncOp"> {
  let summary = "Insert runtime alias checks between the stores and the loads of a group";
  let description = [{
    In a tile program, a load reads all of its lanes before a later store. A group runs strip by
    strip, so a store of one strip precedes the load of the next. If the two may alias, the group
    gets two versions. The fused version runs if the address ranges are disjoint, or if each element
    is stored where it was loaded. The other version loads everything first.

    A load and a store through the same pairwise different pointers need no check unless elements
    move. For rows whose addresses depend on data, the program computes the lowest and the highest
    address before it begins.

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
  let summary = "Lower groups to loop nests over vectors";
  let description = [{
    The innermost loop of a nest runs over strips. A strip is a number of vectors, as wide as the
    machine's for the widest element type of the group. It lies along the dimension in which most
    accesses are contiguous. Each value is computed in the outermost loop possible. A mask that
    bounds an index becomes the bound of a main loop without masks. A tail loop with masks follows.

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
           "Maximum of strips per iteration of a loop; 0: chosen by the machine">,
    Option<"remarks", "remarks", "bool", "false", "Emit remarks for the choices and their reasons">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Reduce in an order that no vector width changes">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::ub::UBDialect"];
}

def StripsLowerPrograms : Pass<"strips-lower-programs", "::mlir::ModuleOp"> {
  let summary = "Lower kernels to functions that run a range of programs";
  let description = [{
    A kernel becomes a function of the launch record, a first and a last program, and the scratch
    arena (include/tessera/Runtime/Host/KernelABI.h). It loads its arguments once and loops over its
    programs, x fastest. Pointers become i64 addresses, and `strips.scratch` ops become views of the
    arena.

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
  let summary = "Privatise arrays that programs add to, one copy per thread";
  let description = [{
    Each `strips.private_copy` gets memory behind the rest of the scratch arena. Its size is one
    element per four lanes of the thread's programs. It is cleared before the loop over the
    programs. Behind that loop, it is added to the array. If a program adds behind the first
    256 KiB, the copy grows to up to 4 MiB before the next one.

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
    ... // a quarter of (%end - %begin) * 1024 * 4 bytes, and 256 KiB at first
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
           "The machine: a row of the table, and its features; empty: the baseline">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def StripsLowerDot : Pass<"strips-lower-dot"> {
  let summary = "Lower dots in buffers to register-blocked loops";
  let description = [{
    The innermost loop runs over k and keeps a block of the result in registers. It has as many rows
    and vectors of columns as the register file holds. Remaining rows and columns get smaller
    blocks. Panels of `b` are packed into scratch memory if its rows map to the same few cache sets.
    Operands of 16 or 8 bits are packed, too, and converted on the way. The scratch is added to
    `strips.scratch_bytes`. If `a` has at most 16 rows, and `b` is a transposed load or buffer of 16
    or 8 bits, `b` is read in place: its columns lie along k, and so do the lanes of the sums. In a
    loop, such sums keep their lanes until it ends. Dots in tile registers that add to the same sums
    in each iteration of a loop collect the operands of several iterations first. So do dots of f32
    and f64, whose packed operands are kept for the next programs of the thread, unless a store may
    overlap what they were loaded from (Dots/KeptOperands.h).

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
    Option<"remarks", "remarks", "bool", "false", "Emit remarks for the choices and their reasons">,
    Option<"deterministic", "deterministic", "bool", "false",
           "Round products and sums apart, whether or not the machine can fuse them">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def StripsSplitLoops : Pass<"strips-split-loops"> {
  let summary = "Split loops over rows at the bound of their mask";
  let description = [{
    The pass handles innermost loops of constant length that carry values. All of their conditionals
    must compare an induction with the same bound. The first loop runs the iterations below the
    bound, four at a time, without the conditional. The second runs the others with it, since the
    induction may have wrapped.

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
  let summary = "Hoist loop invariants out of loops of limited size";
  let description = [{
    This is MLIR's loop-invariant code motion, except that a loop of more than `limit` operations
    keeps its invariants. Such a loop (over programs, around unrolled code) has thousands of them.
    Hoisted, all would be spilled, split around each inner loop and reloaded, which costs more than
    computing them.

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
                        "Maximum of operations of a loop that invariants are hoisted out of">];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def StripsOutlineParts : Pass<"strips-outline-parts", "::mlir::ModuleOp"> {
  let summary = "Outline parts of functions that are too long for LLVM";
  let description = [{
    Some of LLVM's passes take time quadratic in the size of a function: loop rotation, live-range
    splitting, block preparation. So a function of more than `limit` operations (unrolled code) is
    divided. Runs of operations of a block become functions of about `part-size` operations each.
    They take the values that they use, and return those that are used behind them. Views of memory
    are built again where they are used. A loop or a branch is divided if it exceeds `limit` itself.

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
           "Maximum of operations of a function, a loop or a branch that is not divided">,
    Option<"partSize", "part-size", "unsigned", "256", "Operations per part">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}

def StripsExpandTotalArith : Pass<"strips-expand-total-arith"> {
  let summary = "Expand the tile dialect's scalar arithmetic into arith and math ops";
  let description = [{
    Divisions, shifts and conversions that are defined for every input become guarded arith ops. If
    an operand is a constant that needs no guard, none is emitted.

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
  let summary = "Legalise 16-bit floats by computing in f32";
  let description = [{
    Arithmetic and maths on f16 and bf16 is computed in f32, and each operation is rounded back.
    Conversions without a machine instruction become integer code. AVX512-BF16 converts vectors
    without denormals, which it flushes to zero. Between operations a bf16 is an integer, since LLVM
    would convert values that blocks only carry.

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
  let summary = "Expand exp, log, sin, ... on f32 and f64 into polynomials";
  let description = [{
    Each function becomes branch-free code at the width of its operand. Only the trigonometric
    functions branch. They call the C library, lane by lane, for arguments too large for their
    reduction. docs/Numerics.md lists the error of each function.

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
           "Round products and sums separately, also if the machine can fuse them">,
    Option<"hasScale", "has-scale", "bool", "false",
           "The machine multiplies by powers of two in one instruction (AVX-512)">,
    Option<"hasTables", "has-tables", "bool", "false",
           "The machine looks up lanes in tables of 32 numbers in one instruction (AVX-512)">,
    Option<"hasFMA", "has-fma", "bool", "false",
           "The machine has fused multiply-adds, which compute the errors of products">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

#endif // TESSERA_CONVERSION_TILETOSTRIPS_PASSES_TD
