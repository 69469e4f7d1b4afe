// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync: a warp multiplies operands in its registers.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_INSTRUCTIONS_WARPINSTRUCTION_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_INSTRUCTIONS_WARPINSTRUCTION_H

#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"

namespace tessera::tilegpu {

class WarpInstruction : public DotInstruction {
public:
  static const WarpInstruction &get();

  llvm::StringRef getName() const override { return "mma.sync"; }
  bool isOf(const GPUMachine &) const override { return true; }
  MMAShape getShape() const override { return MMAShape::get(MMAKind::Warp); }
  int64_t getRate(const GPUMachine &gpu) const override { return gpu.warpMMARate; }
  std::string whyNot(const DotExtents &dot, const DotMachine &machine) const override;
  bool readsSharedMemory() const override { return false; }
  bool multipliesAsCopied(tile::DotOp) const override { return false; }
  mlir::Type getWiderType(const DotExtents &dot, const DotMachine &machine) const override;
  mlir::Operation *create(mlir::OpBuilder &builder, const DotExtents &dot,
                          const DotMachine &machine, mlir::Value a, mlir::Value b,
                          mlir::Value acc) const override;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_INSTRUCTIONS_WARPINSTRUCTION_H
