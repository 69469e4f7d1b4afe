// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block pointers and tensor descriptors become the scalars they are made of; each
// access through one becomes a load or store of pointers.
//
// One value becomes several wherever it goes (loops, conditionals, calls), by MLIR's
// dialect conversion. Offsets are kept in 64 bits. The scalar part of an address is
// summed first, so that the tile of pointers is `splat + stride * range` a dimension.

#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"
#include "tessera/Support/EmitRemark.h"

#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILELOWERDESCRIPTORSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

namespace {

/// An array and a place in it: what a block pointer or a descriptor is.
struct View {
  RankedTensorType block;
  Value base;
  SmallVector<Value> shape, strides, offsets;
  /// True if what lies outside reads as NaN (an i1); descriptors alone have it.
  Value padsWithNaN;

  /// The parts of a converted value, in the order of `addParts`.
  static View ofBlockPointer(BlockPointerType type, ValueRange parts) {
    View view;
    view.block = type.getBlockType();
    size_t rank = view.block.getRank();
    view.base = parts[0];
    llvm::append_range(view.shape, parts.slice(1, rank));
    llvm::append_range(view.strides, parts.slice(1 + rank, rank));
    llvm::append_range(view.offsets, parts.slice(1 + 2 * rank, rank));
    return view;
  }
  static View ofDescriptor(DescriptorType type, ValueRange parts) {
    View view;
    view.block = type.getBlockType();
    size_t rank = view.block.getRank();
    view.base = parts[0];
    llvm::append_range(view.shape, parts.slice(1, rank));
    llvm::append_range(view.strides, parts.slice(1 + rank, rank));
    view.padsWithNaN = parts[1 + 2 * rank];
    return view;
  }
};

/// Makes the tiles of an access.
struct AccessBuilder {
  OpBuilder &builder;
  Location loc;

  Type i64() { return builder.getI64Type(); }
  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  /// A scalar or tile of integers in 64 bits.
  Value widen(Value value) {
    if (getElementTypeOrSelf(value.getType()).isInteger(64))
      return value;
    return arith::ExtSIOp::create(builder, loc, withElementType(value.getType(), i64()), value);
  }
  Value splat(Value scalar, Type like) {
    return SplatOp::create(builder, loc,
                           cast<RankedTensorType>(withElementType(like, scalar.getType())), scalar);
  }
  /// 0, 1, ... in 64 bits.
  Value range(int64_t length) {
    auto type = RankedTensorType::get({length}, builder.getI32Type());
    return widen(RangeOp::create(builder, loc, type, 0, length));
  }
  /// A tile of rank 1 as dimension `dim` of `shape`, repeated along the others.
  Value along(Value tile, unsigned dim, ArrayRef<int64_t> shape) {
    for (unsigned axis = 0; axis < shape.size(); ++axis)
      if (axis != dim)
        tile = ExpandDimsOp::create(builder, loc, tile, axis);
    return repeat(tile, shape);
  }
  Value repeat(Value tile, ArrayRef<int64_t> shape) {
    auto type = cast<RankedTensorType>(tile.getType());
    if (type.getShape() == shape)
      return tile;
    return BroadcastOp::create(builder, loc, type.clone(shape), tile);
  }
  Value compare(arith::CmpIPredicate predicate, Value tile, Value scalar) {
    return arith::CmpIOp::create(builder, loc, predicate, tile, splat(scalar, tile.getType()));
  }

  /// The pointers of a block.
  Value pointers(const View &view) {
    Value first = view.base;
    for (auto [offset, stride] : llvm::zip_equal(view.offsets, view.strides)) {
      Value moved = arith::MulIOp::create(builder, loc, offset, stride);
      first = AddPtrOp::create(builder, loc, first, moved);
    }
    return pointersFrom(first, view, /*firstDim=*/0);
  }
  /// From the pointer to the first element on, along the dimensions from `firstDim`.
  Value pointersFrom(Value first, const View &view, unsigned firstDim) {
    ArrayRef<int64_t> block = view.block.getShape();
    SmallVector<int64_t> shape(block.size(), 1);
    Value tile;
    if (auto type = dyn_cast<RankedTensorType>(first.getType())) {
      llvm::copy(type.getShape(), shape.begin());
      tile = first;
    } else {
      tile = SplatOp::create(builder, loc, RankedTensorType::get(shape, first.getType()), first);
    }
    for (unsigned dim = firstDim; dim < block.size(); ++dim) {
      if (block[dim] == 1)
        continue;
      Value index = range(block[dim]);
      Value moved =
          arith::MulIOp::create(builder, loc, index, splat(view.strides[dim], index.getType()));
      shape[dim] = block[dim];
      tile = AddPtrOp::create(builder, loc, repeat(tile, shape), along(moved, dim, shape));
    }
    return tile;
  }

  Value both(Value mask, Value other) {
    return mask ? Value(arith::AndIOp::create(builder, loc, mask, other)) : other;
  }
  /// Which indices along a dimension lie in the array, `mask` given.
  Value inside(Value mask, Value index, unsigned dim, Value extent, ArrayRef<int64_t> shape) {
    Value below = compare(arith::CmpIPredicate::slt, index, extent);
    Value above = compare(arith::CmpIPredicate::sge, index, constant(0));
    above.getDefiningOp()->setAttr(kLowerBoundAttr, builder.getUnitAttr());
    mask = both(mask, along(below, dim, shape));
    return both(mask, along(above, dim, shape));
  }
  /// Which elements of a block lie in the array, looking at some dimensions.
  template <typename Dims> Value mask(const View &view, const Dims &dims) {
    Value mask;
    for (unsigned dim : dims) {
      Value index = range(view.block.getDimSize(dim));
      index = arith::AddIOp::create(builder, loc, index, splat(view.offsets[dim], index.getType()));
      mask = inside(mask, index, dim, view.shape[dim], view.block.getShape());
    }
    return mask;
  }

  Value nan(RankedTensorType type) {
    auto element = cast<FloatType>(type.getElementType());
    return arith::ConstantOp::create(builder, loc,
                                     cast<TypedAttr>(DenseElementsAttr::get(
                                         type, APFloat::getNaN(element.getFloatSemantics()))));
  }
  /// The padding that a descriptor reads outside its array; none for zero.
  Value padding(const View &view, RankedTensorType type) {
    if (!isa<FloatType>(type.getElementType()) || matchPattern(view.padsWithNaN, m_Zero()))
      return {};
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
    return arith::SelectOp::create(builder, loc, view.padsWithNaN, nan(type), zero);
  }
  /// A block that lost leading dimensions of extent 1, or gets them back.
  Value reshape(Value tile, RankedTensorType type) {
    if (tile.getType() == type)
      return tile;
    return ReshapeOp::create(builder, loc, type, tile);
  }
};

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Appends a scalar a part of a view.
void addParts(RankedTensorType block, bool hasOffsets, SmallVectorImpl<Type> &types) {
  MLIRContext *context = block.getContext();
  types.push_back(PointerType::get(context, block.getElementType()));
  types.append(block.getRank() * (hasOffsets ? 3 : 2), IntegerType::get(context, 64));
  if (!hasOffsets)
    types.push_back(IntegerType::get(context, 1));
}

template <typename Op> struct ViewPattern : public OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  using Adaptor = typename OpConversionPattern<Op>::OneToNOpAdaptor;

  /// The only parts of a scalar operand.
  static SmallVector<Value> scalars(ArrayRef<ValueRange> ranges) {
    return llvm::to_vector(
        llvm::map_range(ranges, [](ValueRange range) -> Value { return range.front(); }));
  }
};

struct MakeBlockPtrPattern : public ViewPattern<MakeBlockPtrOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(MakeBlockPtrOp op, Adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    SmallVector<Value> parts = {op.getBase()};
    llvm::append_range(parts, op.getShape());
    llvm::append_range(parts, op.getStrides());
    for (Value offset : op.getOffsets())
      parts.push_back(access.widen(offset));
    rewriter.replaceOpWithMultiple(op, ArrayRef<ValueRange>{parts});
    return success();
  }
};

struct AdvancePattern : public ViewPattern<AdvanceOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(AdvanceOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    SmallVector<Value> parts(adaptor.getSource());
    size_t first = parts.size() - op.getOffsets().size();
    for (auto [index, offset] : llvm::enumerate(op.getOffsets()))
      parts[first + index] =
          arith::AddIOp::create(rewriter, op.getLoc(), parts[first + index], access.widen(offset));
    rewriter.replaceOpWithMultiple(op, ArrayRef<ValueRange>{parts});
    return success();
  }
};

struct BlockLoadPattern : public ViewPattern<BlockLoadOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(BlockLoadOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    View view = View::ofBlockPointer(op.getSource().getType(), adaptor.getSource());
    Value mask = access.mask(view, op.getBoundaryCheck()), other;
    if (mask && op.getPadding() == Padding::NaN)
      other = access.nan(view.block);
    rewriter.replaceOpWithNewOp<LoadOp>(op, view.block, access.pointers(view), mask, other,
                                        op.getCache(), op.getEvict(), /*isVolatile=*/false);
    return success();
  }
};

struct BlockStorePattern : public ViewPattern<BlockStoreOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(BlockStoreOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    View view = View::ofBlockPointer(op.getTarget().getType(), adaptor.getTarget());
    Value mask = access.mask(view, op.getBoundaryCheck());
    rewriter.replaceOpWithNewOp<StoreOp>(op, access.pointers(view), adaptor.getValue().front(),
                                         mask, op.getCache(), op.getEvict());
    return success();
  }
};

/// True if a scalar is read from memory, if in another form.
bool isLoaded(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && op->hasTrait<OpTrait::Elementwise>() && op->getNumOperands() == 1)
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<LoadOp>(op);
}

struct MakeDescriptorPattern : public ViewPattern<MakeDescriptorOp> {
  MakeDescriptorPattern(const TypeConverter &converter, MLIRContext *context, bool aligned)
      : ViewPattern(converter, context), aligned(aligned) {}

  LogicalResult matchAndRewrite(MakeDescriptorOp op, Adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    // Not of a GPU: descriptors of the language begin at multiples of this.
    constexpr int64_t kAlignment = 16;
    int64_t bytes = op.getBase().getType().getPointeeBytes();
    auto align = [&](Value part, int64_t divisibility) -> Value {
      if (!aligned || divisibility <= 1 || !isLoaded(part))
        return part;
      return HintOp::create(rewriter, op.getLoc(), part,
                            rewriter.getDenseI64ArrayAttr(divisibility),
                            /*contiguity=*/nullptr, /*constancy=*/nullptr);
    };
    SmallVector<Value> parts = {align(op.getBase(), kAlignment)};
    for (Value extent : op.getShape())
      parts.push_back(access.widen(extent));
    for (Value stride : op.getStrides())
      parts.push_back(align(stride, kAlignment / bytes));
    parts.push_back(arith::ConstantOp::create(
        rewriter, op.getLoc(), rewriter.getBoolAttr(op.getPadding() == Padding::NaN)));
    rewriter.replaceOpWithMultiple(op, ArrayRef<ValueRange>{parts});
    return success();
  }

private:
  bool aligned;
};

struct DescriptorExtentPattern : public ViewPattern<DescriptorExtentOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(DescriptorExtentOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    View view = View::ofDescriptor(op.getSource().getType(), adaptor.getSource());
    rewriter.replaceOpWithNewOp<arith::TruncIOp>(op, op.getType(), view.shape[op.getDim()]);
    return success();
  }
};

struct DescriptorStridePattern : public ViewPattern<DescriptorStrideOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(DescriptorStrideOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    View view = View::ofDescriptor(op.getSource().getType(), adaptor.getSource());
    rewriter.replaceOp(op, view.strides[op.getDim()]);
    return success();
  }
};

/// The view of a descriptor at coordinates.
View viewAt(AccessBuilder &access, DescriptorType type, ValueRange parts, ValueRange offsets) {
  View view = View::ofDescriptor(type, parts);
  for (Value offset : offsets)
    view.offsets.push_back(access.widen(offset));
  return view;
}

struct DescriptorLoadPattern : public ViewPattern<DescriptorLoadOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(DescriptorLoadOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    View view = viewAt(access, op.getSource().getType(), adaptor.getSource(), op.getOffsets());
    Value mask = access.mask(view, llvm::seq<unsigned>(0, view.block.getRank()));
    Value loaded = LoadOp::create(rewriter, op.getLoc(), view.block, access.pointers(view), mask,
                                  access.padding(view, view.block), op.getCache(), op.getEvict(),
                                  /*isVolatile=*/false);
    rewriter.replaceOp(op, access.reshape(loaded, cast<RankedTensorType>(op.getType())));
    return success();
  }
};

struct DescriptorStorePattern : public ViewPattern<DescriptorStoreOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(DescriptorStoreOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    View view = viewAt(access, op.getTarget().getType(), adaptor.getTarget(), op.getOffsets());
    Value mask = access.mask(view, llvm::seq<unsigned>(0, view.block.getRank()));
    rewriter.replaceOpWithNewOp<StoreOp>(op, access.pointers(view),
                                         access.reshape(op.getValue(), view.block), mask,
                                         CacheModifier::None, EvictionPolicy::Normal);
    return success();
  }
};

struct DescriptorReducePattern : public ViewPattern<DescriptorReduceOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(DescriptorReduceOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    View view = viewAt(access, op.getTarget().getType(), adaptor.getTarget(), op.getOffsets());
    Value mask = access.mask(view, llvm::seq<unsigned>(0, view.block.getRank()));
    AtomicRMWOp::create(rewriter, op.getLoc(), view.block, op.getKind(), access.pointers(view),
                        access.reshape(op.getValue(), view.block), mask, MemSemantic::Relaxed,
                        MemScope::GPU);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Rows chosen by index: the pointers and the mask of an access.
struct Rows {
  Value pointers, mask;
  RankedTensorType type;
};

Rows accessRows(AccessBuilder &access, View view, Value rows, Value column) {
  int64_t count = getShape(rows.getType())[0], columns = view.block.getDimSize(1);
  Type element = view.block.getElementType();
  SmallVector<int64_t> shape = {count, columns};
  rows = access.widen(rows);
  Value first = AddPtrOp::create(
      access.builder, access.loc, view.base,
      arith::MulIOp::create(access.builder, access.loc, access.widen(column), view.strides[1]));
  Value moved = arith::MulIOp::create(access.builder, access.loc, rows,
                                      access.splat(view.strides[0], rows.getType()));
  Value starts =
      AddPtrOp::create(access.builder, access.loc, access.splat(first, rows.getType()), moved);
  starts = ExpandDimsOp::create(access.builder, access.loc, starts, 1);
  view.block = RankedTensorType::get(shape, element);
  Value index = access.range(columns);
  index = arith::AddIOp::create(access.builder, access.loc, index,
                                access.splat(access.widen(column), index.getType()));
  Value mask = access.inside({}, rows, 0, view.shape[0], shape);
  mask = access.inside(mask, index, 1, view.shape[1], shape);
  return {access.repeat(access.pointersFrom(starts, view, /*firstDim=*/1), shape), mask,
          view.block};
}

struct DescriptorGatherPattern : public ViewPattern<DescriptorGatherOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(DescriptorGatherOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    View view = View::ofDescriptor(op.getSource().getType(), adaptor.getSource());
    Rows rows = accessRows(access, view, op.getRows(), op.getColumn());
    rewriter.replaceOpWithNewOp<LoadOp>(op, rows.type, rows.pointers, rows.mask,
                                        access.padding(view, rows.type), CacheModifier::None,
                                        EvictionPolicy::Normal, /*isVolatile=*/false);
    return success();
  }
};

struct DescriptorScatterPattern : public ViewPattern<DescriptorScatterOp> {
  using ViewPattern::ViewPattern;
  LogicalResult matchAndRewrite(DescriptorScatterOp op, Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    AccessBuilder access{rewriter, op.getLoc()};
    View view = View::ofDescriptor(op.getTarget().getType(), adaptor.getTarget());
    Rows rows = accessRows(access, view, op.getRows(), op.getColumn());
    rewriter.replaceOpWithNewOp<StoreOp>(op, rows.pointers, op.getValue(), rows.mask,
                                         CacheModifier::None, EvictionPolicy::Normal);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Ops that hand views on
//===----------------------------------------------------------------------===//

SmallVector<Value> flatten(ArrayRef<ValueRange> ranges) {
  SmallVector<Value> values;
  for (ValueRange range : ranges)
    llvm::append_range(values, range);
  return values;
}

struct CallPattern : public OpConversionPattern<CallOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(CallOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    SmallVector<Type> types;
    SmallVector<size_t> counts;
    for (Type type : op.getResultTypes()) {
      size_t before = types.size();
      if (failed(getTypeConverter()->convertType(type, types)))
        return rewriter.notifyMatchFailure(op, "a result type cannot be converted");
      counts.push_back(types.size() - before);
    }
    auto call = CallOp::create(rewriter, op.getLoc(), types, op.getCallee(),
                               flatten(adaptor.getOperands()), /*arg_attrs=*/nullptr,
                               /*res_attrs=*/nullptr);
    SmallVector<ValueRange> results;
    size_t first = 0;
    for (size_t count : counts) {
      results.push_back(call.getResults().slice(first, count));
      first += count;
    }
    rewriter.replaceOpWithMultiple(op, results);
    return success();
  }
};

struct ReturnPattern : public OpConversionPattern<ReturnOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReturnOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    rewriter.replaceOpWithNewOp<ReturnOp>(op, flatten(adaptor.getOperands()));
    return success();
  }
};

/// A choice between views is a choice between their parts.
struct SelectPattern : public OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const final {
    SmallVector<Value> parts;
    for (auto [whenTrue, whenFalse] :
         llvm::zip_equal(adaptor.getTrueValue(), adaptor.getFalseValue()))
      parts.push_back(arith::SelectOp::create(rewriter, op.getLoc(), adaptor.getCondition().front(),
                                              whenTrue, whenFalse));
    rewriter.replaceOpWithMultiple(op, ArrayRef<ValueRange>{parts});
    return success();
  }
};

struct PoisonPattern : public OpConversionPattern<ub::PoisonOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ub::PoisonOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const final {
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return rewriter.notifyMatchFailure(op, "the type cannot be converted");
    SmallVector<Value> parts;
    for (Type type : types)
      parts.push_back(ub::PoisonOp::create(rewriter, op.getLoc(), type));
    rewriter.replaceOpWithMultiple(op, ArrayRef<ValueRange>{parts});
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct LowerDescriptorsPass
    : public tessera::tile::impl::TileLowerDescriptorsPassBase<LowerDescriptorsPass> {
  using TileLowerDescriptorsPassBase::TileLowerDescriptorsPassBase;

  void runOnOperation() final {
    if (failed(checkKernels()) || failed(convert()))
      return signalPassFailure();
  }

  /// A descriptor that the launch makes has no parts that a kernel could read.
  LogicalResult checkKernels() {
    for (FuncOp func : getOperation().getOps<FuncOp>())
      if (func.isKernel())
        for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
          if (isa<DescriptorType>(type))
            return emitUserError(func, "E030")
                   << "argument #" << index << " of kernel '" << func.getName() << "' is a " << type
                   << "; descriptors made outside the kernel are not supported on the CPU, nor on "
                      "GPUs before sm_90";
    return success();
  }

  LogicalResult convert() {
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion(
        [](BlockPointerType type, SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          addParts(type.getBlockType(), /*hasOffsets=*/true, types);
          return success();
        });
    converter.addConversion(
        [](DescriptorType type, SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
          addParts(type.getBlockType(), /*hasOffsets=*/false, types);
          return success();
        });

    RewritePatternSet patterns(context);
    patterns.add<MakeBlockPtrPattern, AdvancePattern, BlockLoadPattern, BlockStorePattern,
                 DescriptorExtentPattern, DescriptorStridePattern, DescriptorLoadPattern,
                 DescriptorStorePattern, DescriptorReducePattern, DescriptorGatherPattern,
                 DescriptorScatterPattern>(converter, context);
    patterns.add<MakeDescriptorPattern>(converter, context, aligned);
    patterns.add<CallPattern, ReturnPattern, SelectPattern, PoisonPattern>(converter, context);
    populateFunctionOpInterfaceTypeConversionPattern<FuncOp>(patterns, converter);

    ConversionTarget target(*context);
    target.markUnknownOpDynamicallyLegal([&](Operation *op) { return converter.isLegal(op); });
    target.addDynamicallyLegalOp<FuncOp>(
        [&](FuncOp func) { return converter.isSignatureLegal(func.getFunctionType()); });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }
};

} // namespace
