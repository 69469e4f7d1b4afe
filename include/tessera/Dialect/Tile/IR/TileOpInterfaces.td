// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties of ops on tiles, which passes read without naming the op.
//
// A pass that handles each op differently names the ops (a lowering, a rule of the access
// analysis). A pass that needs one property of every op does not. The op has a trait for a yes or
// no (TileOpBase.td), and otherwise an interface.
//
//   question                                        who answers
//   ----------------------------------------------  --------------------------------------------
//   Which addresses does it access, under which     AccessOpInterface
//   mask, and is it atomic?
//   Which elements of its operands is an element   IndexMapOpInterface; getSourceMap(operand) in
//   of its result made of?                          SourceMaps.h, which covers elementwise ops, too
//   Are its results made of its operands' elements, MoveOpInterface
//   unchanged?
//   How long does an element of its result take?    CostOpInterface; of arith and math, too
//   Which layouts may its tiles have?               tilegpu's LayoutRuleOpInterface
//   What does it do to memory, and to events?       MemoryEffectOpInterface
//   Is it done element by element?                  OpTrait::Elementwise
//   Do a program's threads meet in it?              Tile_Collective
//   Does it take registers beside those of tiles?   Tile_FewRegisters says no
//
// An op without one of these interfaces or traits is what each of them says: it accesses nothing,
// moves nothing, takes an instruction.

#ifndef TESSERA_DIALECT_TILE_TILEOPINTERFACES_TD
#define TESSERA_DIALECT_TILE_TILEOPINTERFACES_TD

include "mlir/IR/OpBase.td"

def Tile_AccessOpInterface : OpInterface<"AccessOpInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    An op by which a program accesses global memory at addresses: one element for each pointer of a
    tile, or for the only one. Ops that find their elements otherwise (descriptors, block pointers,
    TMA) do not have it.
  }];
  let methods = [
    InterfaceMethod<"The pointers, a tile or a scalar.", "::mlir::Value", "getPtr">,
    InterfaceMethod<"The lanes that take place; null for all of them.",
                    "::mlir::Value", "getMask", (ins), "", "return {};">,
    InterfaceMethod<"The mask, to be changed. Not of an op that never has one.",
                    "::mlir::MutableOperandRange", "getMaskMutable", (ins), "", [{
      llvm_unreachable("the op has no mask");
    }]>,
    InterfaceMethod<"True if each lane's access is atomic, and may order others.",
                    "bool", "isAtomic", (ins), "", "return false;">,
  ];
}

def Tile_IndexMapOpInterface : OpInterface<"IndexMapOpInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    An op for which the index of an element of a result gives the elements of each operand that it is
    made of. Its source map goes from the index in the result to the index in the operand. A symbol
    in it stands for all indices of that dimension of the operand: along it, elements meet. The map
    to a scalar has no results.

    | op | source maps |
    |---|---|
    | `splat` to rank 2 | `(d0, d1) -> ()` |
    | `trans {order = [1, 0]}` | `(d0, d1) -> (d1, d0)` |
    | `expand_dims {axis = 1}` | `(d0, d1) -> (d0)` |
    | `broadcast` of 64x1 | `(d0, d1) -> (d0, 0)` |
    | `reshape` of 4x8x16 to 32x16 | `(d0, d1) -> (d0 floordiv 8, d0 mod 8, d1)` |
    | `join` of rank 1 | `(d0, d1) -> (d0)` for both operands |
    | `split` to rank 1 | `(d0) -> (d0, 0)` for the first result, `(d0) -> (d0, 1)` for the other one |
    | `cat` of 64 | `(d0) -> (d0 mod 64)` for both operands |
    | `gather {axis = 0}` | `(d0, d1)[s0] -> (s0, d1)`; the same index in the operand of indices |
    | `dot` | `(d0, d1)[s0] -> (d0, s0)`, `(d0, d1)[s0] -> (s0, d1)`; the same index in the accumulator |
    | `reduce {axis = 0}` of rank 2 | `(d0)[s0] -> (s0, d0)` |
    | `scan {axis = 0}`, `sort {axis = 0}` of rank 2 | `(d0, d1)[s0] -> (s0, d1)` |
  }];
  let methods = [
    InterfaceMethod<"From the index in a result to that in an operand.", "::mlir::AffineMap",
                    "getSourceMap", (ins "unsigned":$operand, "unsigned":$result), "", [{
      return ::tessera::tile::getSameIndex($_op->getOperand(operand).getType(),
                                           $_op->getResult(result).getType());
    }]>,
  ];
}

def Tile_MoveOpInterface : OpInterface<"MoveOpInterface", [Tile_IndexMapOpInterface]> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    An op that only moves elements: each element of its results is one element of one operand. The
    op's `Motion` is the kind of its source maps, the more regular ones first.

    | motion | the element comes from | ops |
    |---|---|---|
    | `Stays` | the same index, or a scalar | `splat`, `hint`, `tilegpu.convert_layout` |
    | `Dimensions` | the index with dimensions dropped, taken as 0 or exchanged | `expand_dims`, `broadcast`, `trans` |
    | `Renumbers` | another index, or one of two operands, as computed from the index | `reshape`, `join`, `split`, `cat` |
    | `Gathers` | where a number of the other operand says | `gather` |
  }];
  let methods = [
    InterfaceMethod<"The kind of the source maps.", "::tessera::tile::Motion", "getMotion">,
    InterfaceMethod<"The number of the operand that an element comes from, by its index.",
                    "::mlir::AffineExpr", "getSourceOperand", (ins), "", [{
      return ::mlir::getAffineConstantExpr(0, $_op->getContext());
    }]>,
    InterfaceMethod<"True if all elements come from one operand and go to one result.",
                    "bool", "isOfOneTile", (ins), "", [{
      return $_op->getNumOperands() == 1 && $_op->getNumResults() == 1;
    }]>,
  ];
}

def Tile_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    The cost of the op per element, as far as it holds on every target. The cost models of a target
    add what differs between targets (loads, dots, conversions of 8-bit floats, exchanges between
    threads). Ops of arith and math have the interface attached by the tile dialect. Call
    `getElementCost(op)`, which also covers ops without the interface.
  }];
  let methods = [
    InterfaceMethod<"The cost of an element of the first result.", "::tessera::tile::ElementCost",
                    "getElementCost">,
  ];
}

#endif // TESSERA_DIALECT_TILE_TILEOPINTERFACES_TD
