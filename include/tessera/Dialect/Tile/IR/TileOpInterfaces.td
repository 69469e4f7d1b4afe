// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes ask of an op on tiles without asking which op it is.
//
// A pass that handles each op in a way of its own names the ops (a lowering, a rule of the access
// analysis). A pass that puts one question to all of them does not: the op answers, by a trait
// where the answer is yes or no (TileOpBase.td), else by an interface.
//
//   question                                        who answers
//   ----------------------------------------------  --------------------------------------------
//   Which addresses does it access, under which     AccessOpInterface
//   mask, and is it atomic?
//   Are its results made of its operands' elements, MoveOpInterface
//   unchanged, and from where in them?
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
    An op by which a program accesses global memory at addresses: one element for each
    pointer of a tile, or for the only one. What finds its elements in another way
    (descriptors, block pointers, TMA) is none.
  }];
  let methods = [
    InterfaceMethod<"The pointers, a tile or a scalar.", "::mlir::Value", "getPtr">,
    InterfaceMethod<"The lanes that take place; null for all of them.",
                    "::mlir::Value", "getMask", (ins), "", "return {};">,
    InterfaceMethod<"The mask, to be changed. Not of an op that never has one.",
                    "::mlir::MutableOperandRange", "getMaskMutable", (ins), "", [{
      llvm_unreachable("the op has no mask");
    }]>,
    InterfaceMethod<"Whether each lane's access is atomic, and may order others.",
                    "bool", "isAtomic", (ins), "", "return false;">,
  ];
}

def Tile_MoveOpInterface : OpInterface<"MoveOpInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    An op that computes nothing: each element of its results is an element of an
    operand. How its place follows from that of the result is the op's `Motion`; the
    more regular ones come first.

    | motion | the element comes from | ops |
    |---|---|---|
    | `Stays` | the same index, or a scalar | `splat`, `hint`, `tilegpu.convert_layout` |
    | `Dimensions` | the index with dimensions dropped, taken as 0 or exchanged | `expand_dims`, `broadcast`, `trans` |
    | `Renumbers` | another index, or one of two operands, as computed from the index | `reshape`, `join`, `split`, `cat` |
    | `Gathers` | where a number of the other operand says | `gather` |
  }];
  let methods = [
    InterfaceMethod<"How places follow from each other.", "::tessera::tile::Motion", "getMotion">,
    InterfaceMethod<"Whether all elements are those of one operand, and all in one result.",
                    "bool", "isOfOneTile", (ins), "", [{
      return $_op->getNumOperands() == 1 && $_op->getNumResults() == 1;
    }]>,
  ];
}

def Tile_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::tessera::tile";
  let description = [{
    How long the op takes for an element, as far as that holds on each target. What
    differs between targets (loads, dots, conversions of 8-bit floats, exchanges between
    threads) is counted by the cost models of the target. Ops of arith and math have the
    interface attached by the tile dialect. Ask `getElementCost(op)`, which knows what an
    op without the interface takes.
  }];
  let methods = [
    InterfaceMethod<"Of an element of the first result.", "::tessera::tile::ElementCost",
                    "getElementCost">,
  ];
}

#endif // TESSERA_DIALECT_TILE_TILEOPINTERFACES_TD
