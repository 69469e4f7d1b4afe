// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WarpgroupInstruction.h"

#include "WarpInstruction.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

const WarpgroupInstruction &WarpgroupInstruction::get() {
  static const WarpgroupInstruction instruction;
  return instruction;
}

/// The warpgroups along each dimension of a result.
static SmallVector<int32_t> spreadGroups(const DotExtents &dot, unsigned warps) {
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warpgroup);
  int64_t groups = warps / shape.warps, along = shape.countAlongRows(groups, dot.m);
  return {int32_t(along), int32_t(groups / along)};
}

std::string WarpgroupInstruction::whyNot(const DotExtents &dot, const DotMachine &machine) const {
  if (std::string why = WarpInstruction::get().whyNot(dot, machine); !why.empty())
    return why;
  if (!isOf(machine.gpu))
    return (machine.gpu.name + " has no " + getName()).str();
  if (dot.isBatched())
    return "the dot is one of batches";
  std::optional<MMAInstruction> mma = machine.gpu.findMMA(MMAKind::Warpgroup, *dot.getMMAElement());
  if (!mma)
    return "there is none for f64";
  if (dot.isFloat8() && !dot.isOfFloat8MMA())
    return "there is none for these types";
  if (machine.warps % getShape().warps != 0)
    return "num_warps is " + std::to_string(machine.warps) + ", no multiple of " +
           std::to_string(getShape().warps);
  if (dot.m < mma->m)
    return "the tile has less than " + std::to_string(mma->m) +
           " rows, in the power of two of its extent";
  if (dot.k < mma->minK)
    return "K is less than " + std::to_string(getShape().stepBytes) +
           " bytes, in the power of two of its extent";
  if (dot.n < mma->n * spreadGroups(dot, machine.warps)[1])
    return "the tile is too small for so many warps";
  return "";
}

bool WarpgroupInstruction::multipliesAsCopied(tile::DotOp dot) const {
  Type a = getElementTypeOrSelf(dot.getA().getType()),
       b = getElementTypeOrSelf(dot.getB().getType());
  if (a.isF32())
    return dot.getPrecision() == tile::InputPrecision::TF32;
  return a.isF16() || a.isBF16() || a.isInteger(8) || (isNativeFloat8(a) && isNativeFloat8(b));
}

Operation *WarpgroupInstruction::create(OpBuilder &builder, const DotExtents &dot,
                                        const DotMachine &machine, Value a, Value b,
                                        Value acc) const {
  tile::DotOp op = dot.op;
  auto newDot =
      WarpgroupDotOp::create(builder, op.getLoc(), acc.getType(), a, b, acc,
                             builder.getDenseI32ArrayAttr(spreadGroups(dot, machine.warps)));
  if (dot.getParts().count > 1)
    newDot.setPrecision(op.getPrecision());
  else
    newDot.setMaxImpreciseAcc(op.getMaxImpreciseAcc());
  return newDot;
}
