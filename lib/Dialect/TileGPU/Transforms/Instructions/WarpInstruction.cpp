// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WarpInstruction.h"

#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

const WarpInstruction &WarpInstruction::get() {
  static const WarpInstruction instruction;
  return instruction;
}

//===----------------------------------------------------------------------===//
// Which dots
//===----------------------------------------------------------------------===//

/// True if 8-bit floats are multiplied as f16: where there is no instruction for them, or one that
/// sums more of them in less than f32 than may be.
static bool isWidened(const DotExtents &dot, const GPUMachine &gpu) {
  std::optional<MMAInstruction> mma = gpu.findMMA(MMAKind::Warp, MMAElement::F8);
  return dot.isFloat8() && !(mma && dot.isOfFloat8MMA() && dot.accumulator.isF32() &&
                             dot.k >= mma->minK && dot.op.getMaxImpreciseAcc() == 0);
}

Type WarpInstruction::getWiderType(const DotExtents &dot, const DotMachine &machine) const {
  return isWidened(dot, machine.gpu) ? Float16Type::get(dot.op.getContext()) : Type();
}

std::string WarpInstruction::whyNot(const DotExtents &dot, const DotMachine &machine) const {
  if (dot.element.isF32() && dot.op.getPrecision() == tile::InputPrecision::IEEE)
    return "f32 operands are to keep their precision (input_precision)";
  std::optional<MMAElement> element =
      isWidened(dot, machine.gpu) ? MMAElement::F16 : dot.getMMAElement();
  if (!element)
    return "there is none for these types";
  std::optional<MMAInstruction> mma = machine.gpu.findMMA(MMAKind::Warp, *element);
  if (!mma)
    return "the target has no such instruction";
  // A warp has so many rows of the result, whatever the elements.
  int64_t rows = getShape().rows;
  if (dot.m < rows || dot.n < mma->n || dot.k < mma->minK)
    return "the tile is smaller than the instruction's " + std::to_string(rows) + "x" +
           std::to_string(mma->n) + "x" + std::to_string(mma->minK) +
           ", in the powers of two of its extents";
  return "";
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// True if a tile is computed from the result of a dot, in this iteration.
static bool comesFromDot(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Operation *, 16> seen;
  constexpr size_t kMaxVisitedOps = 256;
  while (!work.empty() && seen.size() < kMaxVisitedOps) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isDot(op))
      return true;
    if (op->getNumRegions() == 0 || isa<tile::ReduceOp>(op))
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
  }
  return false;
}

/// True if the result of this dot becomes the first operand of another one.
static bool becomesOperand(tile::DotOp op) {
  SmallVector<Value> work{op.getResult()};
  llvm::SmallDenseSet<Operation *, 16> seen;
  constexpr size_t kMaxVisitedOps = 256;
  while (!work.empty() && seen.size() < kMaxVisitedOps) {
    Value value = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      bool isOfDot = isa<DotOpInterface>(user);
      if (isOfDot && use.getOperandNumber() == 0)
        return true;
      if (isOfDot || !seen.insert(user).second)
        continue;
      for (Value result : user->getResults())
        if (isa<RankedTensorType>(result.getType()))
          work.push_back(result);
    }
  }
  return false;
}

/// Warps over the result such that each reads as little of the operands as possible; along M alone
/// where rows go from dot to dot in registers.
static SmallVector<int32_t> spreadWarps(const DotExtents &dot, unsigned warps) {
  SmallVector<int32_t> spread;
  if (dot.isBatched()) {
    unsigned batch = 1u << LinearLayout(dot.shape).dimBits(0);
    spread.push_back(std::min(batch, warps));
    warps /= spread.front();
  }
  bool isChained = becomesOperand(dot.op) || comesFromDot(dot.op.getA());
  constexpr MMAShape shape = MMAShape::get(MMAKind::Warp);
  // More than rows and columns are.
  constexpr unsigned kCostOfCopies = 1024, kCostOfOtherRows = 512;
  unsigned best = 1, least = ~0u;
  for (unsigned along = 1; along <= warps; along *= 2) {
    unsigned rows = std::max<unsigned>(shape.rows, dot.m / along);
    unsigned columns = std::max<unsigned>(shape.columns, dot.n / (warps / along));
    unsigned cost = rows + columns;
    // Copies: warps beyond the tile's extent.
    if (dot.m < shape.rows * along || dot.n < shape.columns * (warps / along))
      cost += kCostOfCopies;
    if (isChained && along != warps)
      cost += kCostOfOtherRows;
    if (cost <= least) {
      least = cost;
      best = along;
    }
  }
  spread.push_back(best);
  spread.push_back(warps / best);
  return spread;
}

Operation *WarpInstruction::create(OpBuilder &builder, const DotExtents &dot,
                                   const DotMachine &machine, Value a, Value b, Value acc) const {
  tile::DotOp op = dot.op;
  auto warps = builder.getDenseI32ArrayAttr(spreadWarps(dot, machine.warps));
  return MmaDotOp::create(builder, op.getLoc(), a, b, acc, warps,
                          dot.element.isF32() ? op.getPrecision() : tile::InputPrecision::TF32);
}
