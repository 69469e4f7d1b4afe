// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TypeConverter.h"

#include "Fragment.h"

using namespace mlir;
using namespace tessera;

TileGPUTypeConverter::TileGPUTypeConverter(MLIRContext *context, const LowerToLLVMOptions &options,
                                           const GPUMachine &machine, const TargetHooks &hooks)
    : LLVMTypeConverter(context, options), machine(machine), hooks(hooks) {
  addConversion([](tile::PointerType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(), kGlobalMemory);
  });
  addConversion([](tilegpu::MemDescType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext(), kSharedMemory);
  });
  // The map itself is the argument; this is where it lies.
  addConversion([](tilegpu::TensorMapType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  addConversion([this](RankedTensorType type,
                       SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
    if (!tilegpu::getLayoutAttr(type))
      return failure();
    results.append(getNumRegisters(type), convertType(type.getElementType()));
    return success();
  });
  addSourceMaterialization(
      [](OpBuilder &builder, RankedTensorType type, ValueRange inputs, Location loc) -> Value {
        return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
      });
  addTargetMaterialization([](OpBuilder &builder, TypeRange types, ValueRange inputs,
                              Location loc) -> SmallVector<Value> {
    return UnrealizedConversionCastOp::create(builder, loc, types, inputs).getResults();
  });
}

Type TileGPUTypeConverter::convertElement(Type type) const {
  return convertType(getElementTypeOrSelf(type));
}
