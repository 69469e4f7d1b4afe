// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma: a warpgroup multiplies operands in shared memory, and goes on meanwhile.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_INSTRUCTIONS_WARPGROUPINSTRUCTION_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_INSTRUCTIONS_WARPGROUPINSTRUCTION_H

#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"

namespace tessera::tilegpu {

class WarpgroupInstruction : public DotInstruction {
public:
  static const WarpgroupInstruction &get();

  llvm::StringRef getName() const override { return "wgmma"; }
  bool isOf(const GPUMachine &gpu) const override { return gpu.hasWarpgroupMMA(); }
  MMAShape getShape() const override { return MMAShape::get(MMAKind::Warpgroup); }
  int64_t getRate(const GPUMachine &gpu) const override { return gpu.warpgroupMMARate; }
  std::string whyNot(const DotExtents &dot, const DotMachine &machine) const override;
  bool readsSharedMemory() const override { return true; }
  bool multipliesAsCopied(tile::DotOp dot) const override;
  bool takesParts() const override { return true; }
  mlir::Operation *create(mlir::OpBuilder &builder, const DotExtents &dot,
                          const DotMachine &machine, mlir::Value a, mlir::Value b,
                          mlir::Value acc) const override;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_INSTRUCTIONS_WARPGROUPINSTRUCTION_H
