// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes ask of an op where tiles are spread over threads; for what they ask on any target see
// TileOpInterfaces.td.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD

include "mlir/IR/OpBase.td"

def TileGPU_ScratchOpInterface : OpInterface<"ScratchOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    An op whose lowering needs shared memory of its own while it runs. Where it lies
    is `tilegpu.scratch_offset` on the op, set by tilegpu-allocate-shared-memory; and
    `tilegpu.scratch_rounds`, where it is to go through it in slices, one after another,
    because there is no room for everything at once.
    Ops of other dialects get the interface attached by whoever lowers them.
  }];
  let methods = [
    InterfaceMethod<"Bytes of shared memory needed in as many rounds as the op has, 0 for none.",
                    "int64_t", "getScratchBytes">,
    InterfaceMethod<"The next larger number of rounds, in which it needs less; 0 for none.",
                    "unsigned", "getMoreRounds", (ins), "", "return 0;">,
  ];
}

def TileGPU_AsyncProxyOpInterface : OpInterface<"AsyncProxyOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    An op that reads or writes buffers in shared memory by the async proxy, not by the
    threads: tensor cores, TMA. Which of the two it does is said by its memory
    effects. What threads wrote there has to be made known to it by a
    `tilegpu.proxy_fence`; tilegpu-insert-proxy-fences sees to it.
  }];
  let methods = [
    InterfaceMethod<"The operands that it comes to that way: by default all buffers.",
                    "::llvm::SmallVector<::mlir::Value>", "getProxyBuffers", (ins), "", [{
      ::llvm::SmallVector<::mlir::Value> buffers;
      for (::mlir::Value operand : $_op->getOperands())
        if (::llvm::isa<::tessera::tilegpu::MemDescType>(operand.getType()))
          buffers.push_back(operand);
      return buffers;
    }]>,
  ];
}

// How the layouts of an op's operands and results hang together. Each op on tiles has one *label*, a
// layout from which all others of the op follow: that of its tiles for an elementwise op, that of
// the larger side where one side is smaller (operand of a reduction, result of a broadcast). Some
// operands may come in any layout. Assigning layouts is choosing labels, such that ops and
// conversions between them cost least (AssignLayouts.cpp).
//
// The defaults are the rule of an op all of whose tiles have one layout; that of an elementwise op
// and of a constant is the same without the interface (LayoutRules.cpp). For example the sum of
// each row of %a has the label of %a:
//
//   %s = tile.reduce %a {axis = 1}     getLabelType      tensor<64x32xf32>
//                                      getResultLayout   the label without dimension 1
//                                      getOperandLayout  the label
//                                      fromResult        a label that leaves this layout: its
//                                                        threads, with rows in registers
//                                      fromOperand       the layout is the label
def TileGPU_LayoutRuleOpInterface : OpInterface<"LayoutRuleOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    The rule of layouts of an op. Models for ops of all dialects are in
    LayoutRuleModels.cpp, since a rule is about warps and blocks, of which the tile dialect
    knows nothing; `rules` knows how many there are.
  }];
  let methods = [
    InterfaceMethod<"The tile type whose layout is the label.",
      "::mlir::RankedTensorType", "getLabelType", (ins), "", [{
      return ::tessera::tilegpu::getFirstTile($_op);
    }]>,
    InterfaceMethod<"Whether the op can be done with this label.",
      "bool", "isValidLabel",
      (ins "const ::tessera::tilegpu::LayoutRules &":$rules, "::tessera::tilegpu::LayoutAttr":$label),
      "", "return true;">,
    InterfaceMethod<"Whether each block has to have all of the tile, since it goes to shared memory.",
      "bool", "needsWholeTiles", (ins), "", "return false;">,
    InterfaceMethod<"Whether operands that may have any layout have to be whole in each block.",
      "bool", "needsWholeOperands", (ins), "", "return false;">,
    InterfaceMethod<"Labels that the op itself asks for, best first; none if it goes by its neighbours.",
      "::llvm::SmallVector<::tessera::tilegpu::LayoutAttr>", "proposeLabels",
      (ins "const ::tessera::tilegpu::LayoutRules &":$rules), "", "return {};">,
    InterfaceMethod<"The layout of a result.",
      "::tessera::tilegpu::LayoutAttr", "getResultLayout",
      (ins "const ::tessera::tilegpu::LayoutRules &":$rules, "unsigned":$result,
           "::tessera::tilegpu::LayoutAttr":$label), "", "return label;">,
    InterfaceMethod<"The layout in which an operand is needed; null if any will do.",
      "::tessera::tilegpu::LayoutAttr", "getOperandLayout",
      (ins "const ::tessera::tilegpu::LayoutRules &":$rules, "unsigned":$operand,
           "::tessera::tilegpu::LayoutAttr":$label), "", "return label;">,
    InterfaceMethod<"A label with which the result has this layout; null if there is none, or the layout does not decide it.",
      "::tessera::tilegpu::LayoutAttr", "fromResult",
      (ins "const ::tessera::tilegpu::LayoutRules &":$rules, "unsigned":$result,
           "::tessera::tilegpu::LayoutAttr":$layout), "", "return layout;">,
    InterfaceMethod<"A label with which the operand has this layout; null if there is none, or the layout does not decide it.",
      "::tessera::tilegpu::LayoutAttr", "fromOperand",
      (ins "const ::tessera::tilegpu::LayoutRules &":$rules, "unsigned":$operand,
           "::tessera::tilegpu::LayoutAttr":$layout), "", "return layout;">,
  ];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD
