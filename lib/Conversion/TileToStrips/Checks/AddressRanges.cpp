// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AddressRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
namespace {

/// Rows with fewer elements are not worth a look at where each begins.
constexpr int64_t kMinRowElements = 8;

} // namespace

std::optional<ScalarMultiple> getStride(const AccessForm &form, unsigned dim) {
  return form.isAffineAlong(dim) ? form.strides[dim].getMultiple() : std::nullopt;
}

int64_t multiplyReach(int64_t a, int64_t b) {
  std::optional<int64_t> product = llvm::checkedMul(a, b);
  if (!product)
    return (a < 0) == (b < 0) ? kFurthest : -kFurthest;
  return std::clamp(*product, -kFurthest, kFurthest);
}

Value AddressRanges::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

Value AddressRanges::buildReach(ScalarMultiple stride, int64_t factor) {
  int64_t scale = multiplyReach(stride.scale, factor);
  if (stride.isConstant())
    return constant(scale);
  if (std::abs(scale) == kFurthest)
    return {};
  Value symbol = stride.symbol;
  unsigned bits = symbol.getType().getIntOrFloatBitWidth();
  if (bits != 64)
    symbol = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), symbol);
  // More than half of kFurthest remains of what is cut off.
  int64_t most = kFurthest / std::max<int64_t>(std::abs(scale), 1);
  if (bits > llvm::Log2_64(most)) {
    symbol = arith::MinSIOp::create(builder, loc, symbol, constant(most));
    symbol = arith::MaxSIOp::create(builder, loc, symbol, constant(-most));
  }
  return arith::MulIOp::create(builder, loc, symbol, constant(scale));
}

/// True if computing a value of the group once more changes nothing.
bool AddressRanges::isRepeatable(Value value) {
  SmallVector<Value> work{value};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != &group.getBody().front() || !seen.insert(op).second)
      continue;
    if (mayWriteMemory(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

/// The lowest and the highest address that rows begin at, where these depend on data.
AddressRange AddressRanges::findOuterRows(Value pointers, const AccessForm &form) {
  constexpr int64_t kMaxLanes = 8;
  ArrayRef<int64_t> shape = tile::getShape(pointers.getType());
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (shape[dim] != 1 && !getStride(form, dim))
      dims.push_back(dim);
  unsigned laneDim = dims.back();
  int64_t lanes = std::min(kMaxLanes, shape[laneDim] & -shape[laneDim]);
  Type type = StripEmitter::typed(builder.getI64Type(), lanes);

  OpBuilder &b = emitter.atStart();
  auto splat = [&](uint64_t value) -> Value {
    APInt bits(64, value);
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, bits));
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, bits));
  };
  SmallVector<Value, 2> bounds{splat(llvm::maxIntN(64)), splat(llvm::minIntN(64))};
  IndexTuple index(shape.size());
  SmallVector<scf::ForOp> loops;
  for (unsigned dim : dims) {
    int64_t step = dim == laneDim ? lanes : 1;
    Value begin = emitter.getIndexConstant(0), end = emitter.getIndexConstant(shape[dim]);
    loops.push_back(emitter.beginLoop(begin, end, step, bounds));
    index[dim] = {loops.back().getInductionVar(), 0, step, emitter.getLevel()};
    bounds.assign(loops.back().getRegionIterArgs().begin(), loops.back().getRegionIterArgs().end());
  }
  Value rows = emitter.broadcast(emitter.evaluate(pointers, index), lanes);
  OpBuilder &inner = emitter.atEnd();
  bounds[0] = arith::MinSIOp::create(inner, loc, bounds[0], rows);
  bounds[1] = arith::MaxSIOp::create(inner, loc, bounds[1], rows);
  for (scf::ForOp loop : llvm::reverse(loops)) {
    emitter.endLoop(bounds);
    bounds.assign(loop.result_begin(), loop.result_end());
  }
  builder.setInsertionPoint(group);
  if (lanes > 1) {
    bounds[0] = vector::ReductionOp::create(builder, loc, vector::CombiningKind::MINSI, bounds[0]);
    bounds[1] = vector::ReductionOp::create(builder, loc, vector::CombiningKind::MAXSI, bounds[1]);
  }
  return {bounds[0], bounds[1]};
}

const AddressRange &AddressRanges::get(Value pointers) {
  auto [it, isNew] = ranges.try_emplace(pointers);
  AddressRange &range = it->second;
  if (!isNew)
    return range;
  const AccessForm &form = access.getForm(pointers);
  ArrayRef<int64_t> shape = tile::getShape(pointers.getType());
  int64_t numRows = 1;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (!getStride(form, dim))
      numRows *= shape[dim];
  int64_t bytes =
      cast<tile::PointerType>(getElementTypeOrSelf(pointers.getType())).getPointeeBytes();
  Value low, high;
  if (numRows == 1) {
    low = high = emitter.evaluate(pointers, IndexTuple(shape.size())).value;
  } else {
    if (numRows * kMinRowElements > ShapedType::getNumElements(shape) || !isRepeatable(pointers))
      return range;
    AddressRange rows = findOuterRows(pointers, form);
    low = rows.low;
    high = rows.high;
  }
  builder.setInsertionPoint(group);
  int64_t below = 0, above = bytes;
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    std::optional<ScalarMultiple> stride = getStride(form, dim);
    if (shape[dim] == 1 || !stride)
      continue;
    int64_t steps = (shape[dim] - 1) * bytes;
    if (stride->isConstant()) {
      (stride->scale < 0 ? below : above) += multiplyReach(stride->scale, steps);
      continue;
    }
    Value reach = buildReach(*stride, steps), zero = constant(0);
    if (!reach)
      return range;
    Value down = arith::MinSIOp::create(builder, loc, reach, zero);
    Value up = arith::MaxSIOp::create(builder, loc, reach, zero);
    low = arith::AddIOp::create(builder, loc, low, down);
    high = arith::AddIOp::create(builder, loc, high, up);
  }
  if (below)
    low = arith::AddIOp::create(builder, loc, low, constant(below));
  high = arith::AddIOp::create(builder, loc, high, constant(above));
  range = {low, high};
  return range;
}

} // namespace tessera
