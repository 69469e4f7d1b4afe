// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"

#include "WarpInstruction.h"
#include "WarpgroupInstruction.h"
#include "mlir/IR/Dialect.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

DotExtents::DotExtents(tile::DotOp op)
    : op(op), element(getElementTypeOrSelf(op.getA().getType())),
      other(getElementTypeOrSelf(op.getB().getType())),
      accumulator(getElementTypeOrSelf(op.getType())), shape(tile::getShape(op.getType())),
      bits(element.getIntOrFloatBitWidth()) {
  LinearLayout ofResult(shape), ofA(tile::getShape(op.getA().getType()));
  unsigned rank = shape.size();
  m = 1u << ofResult.dimBits(rank - 2);
  n = 1u << ofResult.dimBits(rank - 1);
  k = 1u << ofA.dimBits(rank - 1);
}

DotExtents DotExtents::swapped() const {
  DotExtents dot(*this);
  std::swap(dot.m, dot.n);
  std::swap(dot.element, dot.other);
  dot.isSwapped = true;
  return dot;
}

FloatParts DotExtents::getParts() const {
  return FloatParts(element.isF32() ? op.getPrecision() : tile::InputPrecision::TF32);
}

unsigned DotExtents::getOperandBits() const {
  return getParts().isBF16 ? getBits(MMAElement::BF16) : bits;
}

std::optional<MMAElement> DotExtents::getMMAElement() const {
  if (isFloat8())
    return MMAElement::F8;
  if (element.isF16())
    return MMAElement::F16;
  if (element.isBF16() || (element.isF32() && getParts().isBF16))
    return MMAElement::BF16;
  if (element.isF32())
    return MMAElement::TF32;
  if (element.isF64())
    return MMAElement::F64;
  return bits == 8 ? std::optional(MMAElement::I8) : std::nullopt;
}

SmallVector<const DotInstruction *> tessera::tilegpu::getDotInstructions(MLIRContext *context) {
  SmallVector<const DotInstruction *> all;
  for (Dialect *dialect : context->getLoadedDialects())
    if (auto *added = dialect->getRegisteredInterface<DotInstructionDialectInterface>())
      llvm::append_range(all, added->getInstructions());
  all.push_back(&WarpgroupInstruction::get());
  all.push_back(&WarpInstruction::get());
  return all;
}

const DotInstruction *tessera::tilegpu::findSharedMemoryInstruction(MLIRContext *context,
                                                                    const GPUMachine &gpu) {
  for (const DotInstruction *instruction : getDotInstructions(context))
    if (instruction->readsSharedMemory() && instruction->isOf(gpu))
      return instruction;
  return nullptr;
}
