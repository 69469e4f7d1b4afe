// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ZeroRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

/// A row of zeros is written for each tile: fewer rows than this are not worth it.
constexpr int64_t kMinRows = 4;
/// It shares the first-level cache with what is computed.
constexpr int64_t kMaxRowBytes = 2048;
constexpr int64_t kMaxZeroStores = 64;

static int64_t getRowBytes(tile::LoadOp load, ArrayRef<int64_t> shape, unsigned laneDim) {
  auto pointer = cast<tile::PointerType>(getElementTypeOrSelf(load.getPtr().getType()));
  return shape[laneDim] * pointer.getPointeeBytes();
}

/// True if the data have a say in `mask`.
static bool dependsOnData(Value mask) {
  SmallVector<Value> work{mask};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || !seen.insert(def).second)
      continue;
    if (isa<tile::LoadOp, strips::ReadOp>(def))
      return true;
    llvm::append_range(work, def->getOperands());
  }
  return false;
}

bool readsZeroRows(tile::LoadOp load, ArrayRef<int64_t> shape, unsigned laneDim,
                   AccessAnalysis &access) {
  if (shape.size() < 2 || load.getIsVolatile() || !load.getMask() ||
      tile::getShape(load.getPtr().getType()) != shape)
    return false;
  if (ShapedType::getNumElements(shape) / shape[laneDim] < kMinRows ||
      getRowBytes(load, shape, laneDim) > kMaxRowBytes)
    return false;
  Value other = load.getOther();
  if (other)
    if (auto splat = other.getDefiningOp<tile::SplatOp>())
      other = splat->getOperand(0);
  // Not -0.0.
  if (other && !matchPattern(other, m_PosZeroFloat()) && !matchPattern(other, m_Zero()))
    return false;
  return access.getForm(load.getMask()).isUniformAlong(laneDim) && dependsOnData(load.getMask());
}

void prepareZeroRow(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                    const LaneChoice &choice, int64_t &scratchEnd) {
  if (!choice.laneDim || choice.transposedDim || choice.lanes == 1)
    return;
  int64_t bytes = 0, stripBytes = 0;
  for (auto load : group.getBody().getOps<tile::LoadOp>())
    if (readsZeroRows(load, group.getShape(), *choice.laneDim, access)) {
      bytes = std::max(bytes, getRowBytes(load, group.getShape(), *choice.laneDim));
      stripBytes = bytes / (group.getShape()[*choice.laneDim] / choice.lanes);
    }
  if (bytes == 0 || bytes % 4 != 0 || stripBytes % 4 != 0 || bytes / stripBytes > kMaxZeroStores)
    return;
  Location loc = group.getLoc();
  OpBuilder &b = emitter.atStart();
  int64_t lanes = stripBytes / 4;
  auto row = MemRefType::get({bytes / 4}, b.getI32Type());
  Value buffer = strips::ScratchOp::create(b, loc, row, uint64_t(scratchEnd));
  scratchEnd += llvm::alignTo(bytes, 64);
  auto strip = VectorType::get(lanes, b.getI32Type());
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(strip));
  for (int64_t at = 0; at < bytes / 4; at += lanes) {
    Value position = arith::ConstantIndexOp::create(b, loc, at);
    vector::StoreOp::create(b, loc, zeros, buffer, position);
  }
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, buffer);
  emitter.setZeroRow(arith::IndexCastOp::create(b, loc, b.getI64Type(), address));
}

} // namespace tessera
