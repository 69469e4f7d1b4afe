// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scans strip by strip.
//
// Across the scanned dimension lanes are lines of their own, and what runs is a vector.
// Along it a strip is scanned in registers first, in log2(lanes) steps that each reach
// twice as far as the one before:
//
//     x             a  b    c      d
//     step 1        a  ab   bc     cd         each lane with its neighbour
//     step 2        a  ab   abc    abcd       each lane with the one two away
//
// and then combined with the total of the previous strips. Only one combination per strip is on the
// critical path, since a strip's own total does not depend on previous strips.

#include "Combine.h"
#include "StripNest.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera {

namespace {

class ScanNest {
public:
  ScanNest(strips::GroupOp group, tile::ScanOp scan, AccessAnalysis &access)
      : scan(scan), emitter(group, access), shape(tile::getShape(scan.getOperand(0).getType())),
        axis(scan.getAxis()), loc(scan.getLoc()) {
    emitter.setLoc(loc);
  }

  /// False if strips are of no use here; nothing has been emitted then.
  bool run(const StripOptions &options);

private:
  bool chooseLanes(const StripOptions &options);
  /// The index of a strip (or of an element) that lies `position` from where the scan
  /// begins, by which loops count.
  Index getIndexAt(Value position);
  SmallVector<Value> evaluate(const Index &along);
  SmallVector<Value> combine(ArrayRef<Value> earlier, ArrayRef<Value> later);
  SmallVector<Value> scanLanes(SmallVector<Value> values);
  /// The last lane of each vector in all of its lanes.
  SmallVector<Value> repeatLast(ArrayRef<Value> values);
  void store(const Index &along, ArrayRef<Value> values);
  void emitLine();

  tile::ScanOp scan;
  StripEmitter emitter;
  ArrayRef<int64_t> shape;
  unsigned axis, laneDim = 0;
  int64_t lanes = 1;
  Location loc;
  IndexTuple index; ///< of the loops opened so far
};

bool ScanNest::chooseLanes(const StripOptions &options) {
  if (!isVectorizableRegion(scan.getCombine()))
    return false;
  unsigned bits = 16;
  for (Value operand : scan.getOperands())
    bits = std::max(bits, getElementTypeOrSelf(operand.getType()).getIntOrFloatBitWidth());
  // Buffers are row-major: strips lie along the last dimension.
  laneDim = shape.size() - 1;
  while (laneDim > 0 && shape[laneDim] == 1)
    --laneDim;
  int64_t extent = shape[laneDim];
  lanes = std::min<int64_t>(options.machine.vectorBits / bits, extent & -extent);
  // Along the scanned dimension the width decides in which order elements are combined,
  // and a strip of two takes more than two elements do.
  return laneDim == axis ? lanes > 2 && !options.deterministic : lanes > 1;
}

Index ScanNest::getIndexAt(Value position) {
  int64_t step = laneDim == axis ? lanes : 1;
  unsigned level = position ? emitter.getLevel() : 0;
  if (!scan.getReverse())
    return {position, 0, step, level};
  if (!position)
    return {{}, shape[axis] - step, step, 0};
  Value last = emitter.getIndexConstant(shape[axis] - step);
  return {arith::SubIOp::create(emitter.atEnd(), loc, last, position), 0, step, level};
}

SmallVector<Value> ScanNest::evaluate(const Index &along) {
  index[axis] = along;
  return llvm::map_to_vector(scan.getOperands(), [&](Value operand) {
    return emitter.broadcast(emitter.evaluate(operand, index), lanes);
  });
}

SmallVector<Value> ScanNest::combine(ArrayRef<Value> earlier, ArrayRef<Value> later) {
  SmallVector<Value> arguments(earlier);
  llvm::append_range(arguments, later);
  return buildRegion(emitter.atEnd(), loc, scan.getCombine(), arguments);
}

SmallVector<Value> ScanNest::scanLanes(SmallVector<Value> values) {
  bool reverse = scan.getReverse();
  TypedAttr neutral = getNeutralElement(scan.getCombine());
  for (int64_t reach = 1; reach < lanes; reach *= 2) {
    // Lanes whose partner would be before the strip have the neutral element for one, or
    // keep what they have.
    SmallVector<int64_t> order;
    SmallVector<bool> hasPartner;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t partner = reverse ? lane + reach : lane - reach;
      hasPartner.push_back(partner >= 0 && partner < lanes);
      order.push_back(hasPartner.back() ? partner : lanes + lane);
    }
    OpBuilder &b = emitter.atEnd();
    SmallVector<Value> partners;
    for (Value value : values) {
      Value fill = value;
      if (neutral)
        fill = arith::ConstantOp::create(
            b, loc, DenseElementsAttr::get(cast<VectorType>(value.getType()), Attribute(neutral)));
      partners.push_back(vector::ShuffleOp::create(b, loc, value, fill, order));
    }
    SmallVector<Value> combined = combine(partners, values);
    if (!neutral) {
      OpBuilder &b = emitter.atEnd();
      auto type = VectorType::get(lanes, b.getI1Type());
      Value mask = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, hasPartner));
      for (auto [all, value] : llvm::zip_equal(combined, values))
        all = arith::SelectOp::create(b, loc, mask, all, value);
    }
    values = std::move(combined);
  }
  return values;
}

SmallVector<Value> ScanNest::repeatLast(ArrayRef<Value> values) {
  SmallVector<int64_t> order(lanes, scan.getReverse() ? 0 : lanes - 1);
  return llvm::map_to_vector(values, [&](Value value) -> Value {
    return vector::ShuffleOp::create(emitter.atEnd(), loc, value, value, order);
  });
}

void ScanNest::store(const Index &along, ArrayRef<Value> values) {
  index[axis] = along;
  for (auto [result, value] : llvm::zip_equal(scan.getResults(), values))
    for (Operation *user : result.getUsers())
      if (auto write = dyn_cast<strips::WriteOp>(user))
        emitter.perform(emitter.prepareWrite(write, index, {value, emitter.getLevel()}));
}

/// The combination along the scanned dimension, with the loops over all others open.
void ScanNest::emitLine() {
  bool scansLanes = laneDim == axis;
  int64_t step = scansLanes ? lanes : 1;
  Index first = getIndexAt({});
  SmallVector<Value> values = evaluate(first);
  if (scansLanes)
    values = scanLanes(std::move(values));
  store(first, values);
  SmallVector<Value> running = scansLanes ? repeatLast(values) : values;
  if (step == shape[axis])
    return;

  scf::ForOp loop = emitter.beginLoop(emitter.getIndexConstant(step),
                                      emitter.getIndexConstant(shape[axis]), step, running);
  SmallVector<Value> before(loop.getRegionIterArgs());
  Index at = getIndexAt(loop.getInductionVar());
  values = evaluate(at);
  if (scansLanes) {
    values = scanLanes(std::move(values));
    running = combine(before, repeatLast(values));
    values = combine(before, values);
  } else {
    values = running = combine(before, values);
  }
  store(at, values);
  emitter.endLoop(running);
}

bool ScanNest::run(const StripOptions &options) {
  if (!chooseLanes(options))
    return false;
  index.assign(shape.size(), Index());
  unsigned opened = 0;
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    if (dim == axis || shape[dim] == 1)
      continue;
    int64_t step = dim == laneDim ? lanes : 1;
    scf::ForOp loop =
        emitter.beginLoop(emitter.getIndexConstant(0), emitter.getIndexConstant(shape[dim]), step);
    index[dim] = {loop.getInductionVar(), 0, step, emitter.getLevel()};
    ++opened;
  }
  emitLine();
  while (opened-- > 0)
    emitter.endLoop();
  return true;
}

} // namespace

bool lowerScanInStrips(strips::GroupOp group, tile::ScanOp scan, AccessAnalysis &access,
                       const StripOptions &options) {
  return ScanNest(group, scan, access).run(options);
}

} // namespace tessera
