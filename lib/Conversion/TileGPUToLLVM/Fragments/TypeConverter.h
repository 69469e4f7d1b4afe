// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_TYPECONVERTER_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_TYPECONVERTER_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

namespace tessera {

/// The types of tilegpu IR in the code of a thread. A tile becomes as many values as it has
/// registers, and a pointer one to global memory. A tile in shared memory becomes a pointer to
/// that, and an 8-bit float its bits. The rest is as in LLVM.
class TileGPUTypeConverter : public mlir::LLVMTypeConverter {
public:
  explicit TileGPUTypeConverter(mlir::MLIRContext *context, const mlir::LowerToLLVMOptions &options,
                                const GPUMachine &machine, const TargetHooks &hooks);

  /// The GPU that the module is for, and its instructions.
  const GPUMachine &getMachine() const { return machine; }
  const TargetHooks &getHooks() const { return hooks; }

  /// The type of a scalar, or of each register of a tile.
  mlir::Type convertElement(mlir::Type type) const;

private:
  const GPUMachine &machine;
  const TargetHooks &hooks;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_TYPECONVERTER_H
