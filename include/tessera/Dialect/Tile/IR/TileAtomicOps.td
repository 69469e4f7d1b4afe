// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_DIALECT_TILE_TILEATOMICOPS_TD
#define TESSERA_DIALECT_TILE_TILEATOMICOPS_TD

include "tessera/Dialect/Tile/IR/TileOpBase.td"

// Reads and writes its place and, unless it is relaxed, orders all other accesses: to MLIR
// it reads and writes anything.
class Tile_AtomicOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat([
          Tile_AccessOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>], traits)> {
  let extraClassDeclaration = [{
    static bool isAtomic() { return true; }
  }];
}

def Tile_AtomicLoadOp : Tile_AtomicOp<"atomic_load"> {
  let summary = "An atomic read of each address";
  let description = [{
    A lane masked off reads 0.

    Rules: (A1) the result has the shape and pointee of the pointers; (A2) the
    mask has their shape; (A3) the ordering is relaxed or acquire.

    ```mlir
    %x = tile.atomic_load acquire, gpu, %p, %m
       : tensor<64x!tile.ptr<i32>>, tensor<64xi1> -> tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_PtrLike:$ptr, Optional<Tile_BoolLike>:$mask,
    Tile_MemSemantic:$sem, Tile_MemScope:$scope);
  let results = (outs Tile_AnyLike:$result);
  let assemblyFormat = "$sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` type($ptr) (`,` type($mask)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Tile_AtomicStoreOp : Tile_AtomicOp<"atomic_store"> {
  let summary = "An atomic write of each address";
  let description = [{
    Rules: (A1) the value has the shape and pointee of the pointers; (A2) the
    mask has their shape; (A3) the ordering is relaxed or release.

    ```mlir
    tile.atomic_store release, gpu, %p, %x : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_PtrLike:$ptr, Tile_AnyLike:$value,
    Optional<Tile_BoolLike>:$mask, Tile_MemSemantic:$sem, Tile_MemScope:$scope);
  let assemblyFormat = "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr) `,` type($value) (`,` type($mask)^)?";
  let hasVerifier = 1;
}

def Tile_AtomicRMWOp : Tile_AtomicOp<"atomic_rmw"> {
  let summary = "An atomic read-modify-write of each address";
  let description = [{
    The result is what was there before. A lane masked off returns 0 and touches no memory. Lanes
    that access one address are applied in row-major order. If the result is unused, they may be
    combined first, floats in another order.

    Rules: (A1) value and result have the shape and pointee of the pointers;
    (A2) the mask has their shape; (A4) `fadd`, `fmax`, `fmin` take floats, `xchg`
    takes any number, the other kinds integers.

    ```mlir
    %old = tile.atomic_rmw add, acq_rel, gpu, %p, %v, %m
         : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, tensor<64xi1> -> tensor<64xi32>
    ```
  }];
  let arguments = (ins Tile_AtomicKind:$kind, Tile_PtrLike:$ptr,
    Tile_AnyLike:$value, Optional<Tile_BoolLike>:$mask, Tile_MemSemantic:$sem, Tile_MemScope:$scope);
  let results = (outs Tile_AnyLike:$result);
  let assemblyFormat = "$kind `,` $sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr) `,` type($value) (`,` type($mask)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Tile_AtomicCASOp : Tile_AtomicOp<"atomic_cas", [AllTypesMatch<["compare", "value", "result"]>]> {
  let summary = "An atomic compare-and-swap of each address";
  let description = [{
    Writes `value` where memory holds the bits of `compare`. The result is what
    was there before. A lane masked off returns 0 and touches no memory.

    Rules: (A1) compare, value and result have the shape and pointee of the
    pointers; (A2) the mask has their shape.

    ```mlir
    %old = tile.atomic_cas acq_rel, gpu, %p, %c, %v : !tile.ptr<i32>, i32
    ```
  }];
  let arguments = (ins Tile_PtrLike:$ptr, Tile_AnyLike:$compare,
    Tile_AnyLike:$value, Optional<Tile_BoolLike>:$mask, Tile_MemSemantic:$sem, Tile_MemScope:$scope);
  let results = (outs Tile_AnyLike:$result);
  let assemblyFormat = "$sem `,` $scope `,` $ptr `,` $compare `,` $value (`,` $mask^)? attr-dict `:` type($ptr) `,` type($value) (`,` type($mask)^)?";
  let hasVerifier = 1;
}

#endif // TESSERA_DIALECT_TILE_TILEATOMICOPS_TD
