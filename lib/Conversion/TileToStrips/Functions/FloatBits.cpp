// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FloatBits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace tessera {

/// The type with bits in place of bf16.
static Type asBits(Type type) {
  if (type.isBF16())
    return IntegerType::get(type.getContext(), 16);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(asBits(vector.getElementType()));
  if (auto memref = dyn_cast<MemRefType>(type))
    return memref.clone(asBits(memref.getElementType()));
  return type;
}

static TypedAttr asBits(TypedAttr constant) {
  Type bits = asBits(getElementTypeOrSelf(constant.getType()));
  auto toBits = [](const APFloat &value) { return value.bitcastToAPInt(); };
  if (auto scalar = dyn_cast<FloatAttr>(constant))
    return IntegerAttr::get(bits, toBits(scalar.getValue()));
  return cast<TypedAttr>(cast<DenseFPElementsAttr>(constant).mapValues(bits, toBits));
}

void carryAsBits(Operation *root) {
  auto changes = [](Type type) { return asBits(type) != type; };
  // Their types are part of what they do.
  DenseSet<Operation *> fixed;
  SmallVector<Operation *> casts;
  root->walk([&](Operation *op) {
    if (isa<arith::BitcastOp, vector::BitCastOp>(op))
      casts.push_back(op);
    bool asksForFloats = isa<LLVM::CallIntrinsicOp, LLVM::AtomicRMWOp>(op);
    if (!asksForFloats)
      return;
    fixed.insert(op);
    OpBuilder builder(op);
    for (OpOperand &operand : op->getOpOperands())
      if (changes(operand.get().getType())) {
        Type type = operand.get().getType();
        auto cast = arith::BitcastOp::create(builder, op->getLoc(), type, operand.get());
        operand.set(cast);
        fixed.insert(cast);
      }
    builder.setInsertionPointAfter(op);
    for (Value result : op->getResults())
      if (changes(result.getType())) {
        auto cast =
            arith::BitcastOp::create(builder, op->getLoc(), asBits(result.getType()), result);
        result.replaceAllUsesExcept(cast, cast);
      }
  });
  root->walk([&](Operation *op) {
    if (fixed.contains(op))
      return;
    for (Value result : op->getResults())
      result.setType(asBits(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(asBits(argument.getType()));
    if (auto constant = dyn_cast<arith::ConstantOp>(op);
        constant && constant.getValue().getType() != constant.getType())
      constant.setValueAttr(asBits(constant.getValue()));
    if (auto func = dyn_cast<func::FuncOp>(op)) {
      auto convert = [](Type type) { return asBits(type); };
      FunctionType type = func.getFunctionType();
      func.setFunctionType(FunctionType::get(op->getContext(),
                                             llvm::map_to_vector(type.getInputs(), convert),
                                             llvm::map_to_vector(type.getResults(), convert)));
    }
  });
  for (Operation *cast : casts)
    if (cast->getOperand(0).getType() == cast->getResult(0).getType()) {
      cast->getResult(0).replaceAllUsesWith(cast->getOperand(0));
      cast->erase();
    }
}

} // namespace tessera
