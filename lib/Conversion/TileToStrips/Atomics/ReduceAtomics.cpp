// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-reduce-atomics: lanes that are known to meet at one place are combined first.
//
// A locked instruction takes some twenty cycles, and more where two threads want one line. If the
// pointers are equal in runs along a dimension, and the old values are unused, the values of a run
// are reduced in registers to one for memory:
//
//     atomic add (out + rows)[:, None], x        16 lanes a row, 16 atomics
//     atomic add out + rows, sum(x, axis = 1)    one
//
// The pointers of the smaller tile are those of each run's first element: what they are
// computed from is computed for those elements alone. Floats are added in another order by
// that, which atomics leave open, but `deterministic` does not.

#include "Nests/StripAtomics.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSREDUCEATOMICS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

/// Runs of `length` elements along `dim`, which are all of it or a power of two that leaves one.
struct Runs {
  unsigned dim = 0;
  int64_t length = 1;
};

/// A tile's elements at the beginning of each run, computed from such elements of the operands. A
/// dimension that is one run is dropped. Dimensions follow the source maps. Ops are named where a
/// smaller one is built.
class Sampler {
public:
  Sampler(OpBuilder &builder, AccessAnalysis &access, Runs runs, bool dropsDim)
      : builder(builder), access(access), length(runs.length), dropsDim(dropsDim) {}

  /// True if that is possible; nothing is made.
  bool canSample(Value value, unsigned dim);
  Value sample(Value value, unsigned dim);

private:
  RankedTensorType getSampledType(RankedTensorType type, unsigned dim) const;
  Value build(Value value, unsigned dim);
  Value divide(Value value, unsigned dim, int64_t divisor, tile::Signedness signedness);

  OpBuilder &builder;
  AccessAnalysis &access;
  int64_t length;
  bool dropsDim;
  DenseMap<std::pair<Value, unsigned>, bool> known;
  DenseMap<std::pair<Value, unsigned>, Value> sampled;
};

RankedTensorType Sampler::getSampledType(RankedTensorType type, unsigned dim) const {
  SmallVector<int64_t> shape(type.getShape());
  if (dropsDim && shape.size() > 1)
    shape.erase(shape.begin() + dim);
  else
    shape[dim] = dropsDim || shape[dim] == 1 ? 1 : shape[dim] / length;
  return RankedTensorType::get(shape, type.getElementType());
}

bool Sampler::canSample(Value value, unsigned dim) {
  auto [entry, isNew] = known.try_emplace({value, dim}, false);
  if (!isNew)
    return entry->second;
  Operation *op = value.getDefiningOp();
  bool can = false;
  if (typeOf(value).getDimSize(dim) == 1) {
    can = true;
  } else if (!op) {
    can = false;
  } else if (isa<tile::SplatOp, tile::RangeOp>(op)) {
    can = true;
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    can = isa<SplatElementsAttr>(constant.getValue());
    // Not an index map: ops that `build` can build.
  } else if (isa<tile::BroadcastOp, tile::ExpandDimsOp>(op)) {
    std::optional<unsigned> from = tile::getSourceDim(tile::getSourceMap(op->getOpOperand(0)), dim);
    can = !from || canSample(op->getOperand(0), *from);
  } else if (op->hasTrait<OpTrait::Elementwise>() && isPure(op) && op->getNumResults() == 1) {
    can = llvm::all_of(op->getOperands(),
                       [&](Value operand) { return !typeOf(operand) || canSample(operand, dim); });
  }
  return known[{value, dim}] = can;
}

Value Sampler::sample(Value value, unsigned dim) {
  if (Value before = sampled.lookup({value, dim}))
    return before;
  Value result = build(value, dim);
  sampled[{value, dim}] = result;
  return result;
}

/// The quotients of elements that are multiples of the divisor, a power of two, without a
/// division: the places of runs are neighbours then. Null if they are not seen to be.
Value Sampler::divide(Value value, unsigned dim, int64_t divisor, tile::Signedness signedness) {
  Location loc = value.getLoc();
  Operation *op = value.getDefiningOp();
  RankedTensorType type = getSampledType(typeOf(value), dim);
  if (auto splat = dyn_cast_or_null<tile::SplatOp>(op)) {
    Value whole = splat.getSource();
    if (access.getForm(whole).divisibility % divisor != 0)
      return {};
    Value by =
        arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(whole.getType(), divisor));
    whole = tile::DivIntOp::create(builder, loc, whole.getType(), signedness, whole, by);
    return tile::SplatOp::create(builder, loc, type, whole);
  }
  if (auto range = dyn_cast_or_null<tile::RangeOp>(op)) {
    // Longer runs are not worth a product.
    int64_t start = static_cast<int32_t>(range.getStart());
    if (dropsDim || length != divisor || start % divisor != 0)
      return {};
    start /= divisor;
    return tile::RangeOp::create(builder, loc, type, start, start + type.getDimSize(0));
  }
  // Not an index map: the same op of the quotients.
  if (auto expanded = dyn_cast_or_null<tile::ExpandDimsOp>(op)) {
    std::optional<unsigned> from = tile::getSourceDim(tile::getSourceMap(op->getOpOperand(0)), dim);
    Value source;
    if (from && !dropsDim)
      source = divide(expanded.getSource(), *from, divisor, signedness);
    return source ? tile::ExpandDimsOp::create(builder, loc, source, expanded.getAxis()) : Value();
  }
  if (auto sum = dyn_cast_or_null<arith::AddIOp>(op))
    if (Value left = divide(sum.getLhs(), dim, divisor, signedness))
      if (Value right = divide(sum.getRhs(), dim, divisor, signedness))
        return arith::AddIOp::create(builder, loc, left, right);
  return {};
}

Value Sampler::build(Value value, unsigned dim) {
  Location loc = value.getLoc();
  RankedTensorType full = typeOf(value), type = getSampledType(full, dim);
  Operation *op = value.getDefiningOp();
  if (type == full)
    return value;
  if (auto splat = dyn_cast_or_null<tile::SplatOp>(op))
    return tile::SplatOp::create(builder, loc, type, splat.getSource());
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    if (auto all = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(builder, loc, all.resizeSplat(type));
  if (auto range = dyn_cast_or_null<tile::RangeOp>(op)) {
    auto integers = [&](int64_t integer) -> Value {
      return arith::ConstantOp::create(
          builder, loc, DenseElementsAttr::get(type, builder.getI32IntegerAttr(integer)));
    };
    if (dropsDim)
      return integers(range.getStart());
    Value runs = tile::RangeOp::create(builder, loc, type, 0, type.getDimSize(0));
    runs = arith::MulIOp::create(builder, loc, runs, integers(length));
    return arith::AddIOp::create(builder, loc, runs, integers(range.getStart()));
  }
  // Not an index map: the same ops of fewer elements, with their own parameters.
  if (auto broadcast = dyn_cast_or_null<tile::BroadcastOp>(op)) {
    Value source = sample(broadcast.getSource(), dim);
    if (source.getType() == type)
      return source;
    return tile::BroadcastOp::create(builder, loc, type, source);
  }
  if (auto expanded = dyn_cast_or_null<tile::ExpandDimsOp>(op)) {
    unsigned axis = expanded.getAxis();
    std::optional<unsigned> from = tile::getSourceDim(tile::getSourceMap(op->getOpOperand(0)), dim);
    if (!from)
      return expanded.getSource();
    Value source = sample(expanded.getSource(), *from);
    if (source.getType() == type)
      return source; // of one element
    return tile::ExpandDimsOp::create(builder, loc, source, axis - (dropsDim && axis > dim));
  }
  if (!op || !op->hasTrait<OpTrait::Elementwise>() || !isPure(op))
    return tile::ReshapeOp::create(builder, loc, type, value);
  if (auto quotient = dyn_cast<tile::DivIntOp>(op)) {
    std::optional<int64_t> divisor = access.getForm(quotient.getRhs()).getConstant();
    if (divisor && *divisor > 0 && llvm::isPowerOf2_64(*divisor))
      if (Value whole = divide(quotient.getLhs(), dim, *divisor, quotient.getSignedness()))
        return whole;
  }
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (typeOf(operand) && !mapping.contains(operand))
      mapping.map(operand, sample(operand, dim));
  Operation *copy = builder.clone(*op, mapping);
  copy->getResult(0).setType(type);
  return copy->getResult(0);
}

class AtomicReducer {
public:
  explicit AtomicReducer(tile::AtomicRMWOp atomic)
      : atomic(atomic), builder(atomic), loc(atomic.getLoc()) {}

  /// The atomic of a tile that is smaller by one dimension or by the length of runs; null if
  /// there is none.
  tile::AtomicRMWOp run();

private:
  std::optional<Runs> findRuns(AccessAnalysis &access);
  Value constant(RankedTensorType type, TypedAttr value) {
    return arith::ConstantOp::create(builder, loc, SplatElementsAttr::get(type, value));
  }
  Value reduce(Value value, Runs runs, tile::BuildCombination combine);

  tile::AtomicRMWOp atomic;
  OpBuilder builder;
  Location loc;
};

std::optional<Runs> AtomicReducer::findRuns(AccessAnalysis &access) {
  ArrayRef<int64_t> shape = typeOf(atomic.getPtr()).getShape();
  std::optional<Runs> parts;
  for (unsigned dim = shape.size(); dim-- > 0;) {
    int64_t length = access.getRun(atomic.getPtr(), dim).repeated;
    if (shape[dim] == 1 || length <= 1)
      continue;
    if (length >= shape[dim])
      return Runs{dim, shape[dim]};
    if (!parts && llvm::isPowerOf2_64(shape[dim]) && llvm::isPowerOf2_64(length))
      parts = Runs{dim, length};
  }
  return parts;
}

/// Each run of a tile as one element.
Value AtomicReducer::reduce(Value value, Runs runs, tile::BuildCombination combine) {
  RankedTensorType type = typeOf(value);
  Type element = type.getElementType();
  unsigned axis = runs.dim;
  if (type.getDimSize(axis) > runs.length) {
    SmallVector<int64_t> shape(type.getShape());
    shape[axis] /= runs.length;
    shape.insert(shape.begin() + ++axis, runs.length);
    value = tile::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, element), value);
  }
  Value sum = tile::buildReduction(builder, loc, value, axis, combine);
  if (!typeOf(sum))
    sum = tile::SplatOp::create(builder, loc, RankedTensorType::get({1}, element), sum);
  return sum;
}

tile::AtomicRMWOp AtomicReducer::run() {
  AccessAnalysis access;
  std::optional<Runs> runs = findRuns(access);
  if (!runs)
    return {};
  bool isOneRun = runs->length == typeOf(atomic.getPtr()).getDimSize(runs->dim);
  Sampler sampler(builder, access, *runs, isOneRun);
  if (!sampler.canSample(atomic.getPtr(), runs->dim))
    return {};
  Value value = atomic.getValue(), mask = atomic.getMask();
  RankedTensorType type = typeOf(value);
  Type element = type.getElementType();
  tile::AtomicKind kind = atomic.getKind();
  Value anyOf;
  if (mask && access.getMaskWithin(mask, runs->dim, runs->length) == MaskWithin::Whole &&
      sampler.canSample(mask, runs->dim)) {
    anyOf = sampler.sample(mask, runs->dim);
  } else if (mask) {
    Value neutral = constant(type, getNeutralElement(kind, element));
    value = arith::SelectOp::create(builder, loc, mask, value, neutral);
    anyOf = reduce(mask, *runs, [](OpBuilder &b, Location loc, Value left, Value right) -> Value {
      return arith::OrIOp::create(b, loc, left, right);
    });
  }
  // Sums of what is narrow are rounded once.
  bool isNarrow = kind == tile::AtomicKind::FAdd && type.getElementTypeBitWidth() < 32;
  if (isNarrow)
    value = tile::FpToFpOp::create(builder, loc, type.clone(builder.getF32Type()), value,
                                   tile::RoundingMode::NearestEven);
  value = reduce(value, *runs, [kind](OpBuilder &b, Location loc, Value left, Value right) {
    return buildAtomicCombination(b, loc, kind, left, right);
  });
  if (isNarrow)
    value = tile::FpToFpOp::create(builder, loc, typeOf(value).clone(element), value,
                                   tile::RoundingMode::NearestEven);
  Value pointers = sampler.sample(atomic.getPtr(), runs->dim);
  auto reduced = tile::AtomicRMWOp::create(builder, loc, value.getType(), kind, pointers, value,
                                           anyOf, atomic.getSem(), atomic.getScope());
  atomic.erase();
  return reduced;
}

struct StripsReduceAtomics : impl::StripsReduceAtomicsBase<StripsReduceAtomics> {
  using StripsReduceAtomicsBase::StripsReduceAtomicsBase;

  void runOnOperation() override {
    SmallVector<tile::AtomicRMWOp> atomics;
    getOperation().walk([&](tile::AtomicRMWOp atomic) {
      bool keepsOrder = deterministic && atomic.getKind() == tile::AtomicKind::FAdd;
      if (typeOf(atomic.getPtr()) && atomic.getResult().use_empty() && !keepsOrder &&
          atomic.getKind() != tile::AtomicKind::Exchange)
        atomics.push_back(atomic);
    });
    for (tile::AtomicRMWOp atomic : atomics) {
      int64_t lanes = typeOf(atomic.getPtr()).getNumElements(), each = 1;
      Location loc = atomic.getLoc();
      while (tile::AtomicRMWOp reduced = AtomicReducer(atomic).run()) {
        atomic = reduced;
        each = lanes / typeOf(atomic.getPtr()).getNumElements();
      }
      if (remarks && each != 1)
        emitRemark(loc, RemarkKind::Atomic)
            << "atomic: each " << named("combined", each)
            << " lanes with the same address are reduced in registers first";
    }
  }
};

} // namespace
} // namespace tessera
