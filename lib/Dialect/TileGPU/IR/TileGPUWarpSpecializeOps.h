// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of the partitions of a tilegpu.warp_specialize, for the parser that TableGen writes.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_IR_TILEGPUWARPSPECIALIZEOPS_H
#define TESSERA_LIB_DIALECT_TILEGPU_IR_TILEGPUWARPSPECIALIZEOPS_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// Any number of `partition warps(n) registers(r) { ... }`; all of them have registers, or none.
mlir::ParseResult parsePartitions(mlir::OpAsmParser &parser, mlir::DenseI32ArrayAttr &warps,
                                  mlir::DenseI32ArrayAttr &registers,
                                  llvm::SmallVectorImpl<std::unique_ptr<mlir::Region>> &partitions);
void printPartitions(mlir::OpAsmPrinter &printer, WarpSpecializeOp op,
                     mlir::DenseI32ArrayAttr warps, mlir::DenseI32ArrayAttr registers,
                     mlir::MutableArrayRef<mlir::Region> partitions);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_IR_TILEGPUWARPSPECIALIZEOPS_H
