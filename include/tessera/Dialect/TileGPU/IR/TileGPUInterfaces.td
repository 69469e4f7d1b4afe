// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interfaces of ops on tiles that are spread over threads. TileOpInterfaces.td has those for any
// target.

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD

include "mlir/IR/OpBase.td"

def TileGPU_ScratchOpInterface : OpInterface<"ScratchOpInterface"> {
  let cppNamespace = "::tessera::tilegpu";
  let description = [{
    An op whose lowering needs shared memory of its own while it runs.
    tilegpu-allocate-shared-memory sets its offset (`tilegpu.scratch_offset`). If there is no room
    for everything at once, `tilegpu.scratch_rounds` is the number of slices in which the op uses
    it. The lowering of an op of another dialect attaches the interface.
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
    An op that reads or writes buffers in shared memory by the async proxy, not by the threads:
    tensor cores, TMA. Its memory effects distinguish reads from writes. Writes of threads become
    visible to it by a `tilegpu.proxy_fence`, which tilegpu-insert-proxy-fences inserts.
  }];
  let methods = [
    InterfaceMethod<"The operands that it accesses by the async proxy: by default all buffers.",
                    "::llvm::SmallVector<::mlir::Value>", "getProxyBuffers", (ins), "", [{
      ::llvm::SmallVector<::mlir::Value> buffers;
      for (::mlir::Value operand : $_op->getOperands())
        if (::llvm::isa<::tessera::tilegpu::MemDescType>(operand.getType()))
          buffers.push_back(operand);
      return buffers;
    }]>,
  ];
}

// The rule by which the layouts of an op's operands and results follow from each other. Each op on
// tiles has one *label*, a layout from which all others of the op follow. For an elementwise op, it
// is the layout of its tiles. If one side is smaller, it is that of the larger side (operand of a
// reduction, result of a broadcast). Some operands may come in any layout. Assigning layouts is
// choosing labels, such that ops and conversions between them cost least (AssignLayouts.cpp).
//
// The defaults are the rule of an op whose tiles all have one layout. Elementwise ops and constants
// have it without the interface (LayoutRules.cpp). For example the sum of each row of %a has the
// label of %a:
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
    The rule of layouts of an op. Models for ops of all dialects are in LayoutRuleModels.cpp, since
    the tile dialect has neither warps nor blocks. `rules` has their number.
  }];
  let methods = [
    InterfaceMethod<"The tile type whose layout is the label.",
      "::mlir::RankedTensorType", "getLabelType", (ins), "", [{
      return ::tessera::tilegpu::getFirstTile($_op);
    }]>,
    InterfaceMethod<"True if the op supports this label.",
      "bool", "isValidLabel",
      (ins "const ::tessera::tilegpu::LayoutRules &":$rules, "::tessera::tilegpu::LayoutAttr":$label),
      "", "return true;">,
    InterfaceMethod<"True if each block needs the whole tile, since it goes to shared memory.",
      "bool", "needsWholeTiles", (ins), "", "return false;">,
    InterfaceMethod<"True if each block needs whole operands, where these may have any layout.",
      "bool", "needsWholeOperands", (ins), "", "return false;">,
    InterfaceMethod<"Labels that the op itself proposes, best first; none if neighbours decide.",
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
