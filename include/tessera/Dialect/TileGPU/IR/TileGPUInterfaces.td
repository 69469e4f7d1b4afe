// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What allocation asks of an op.

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

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUINTERFACES_TD
