// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The patterns of convert-tilegpu-to-llvm, a family of ops each. A pattern on tiles
// takes the 1:N adaptor (see Fragment.h); a pattern on scalars is an ordinary one.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PATTERNS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PATTERNS_H

#include "Fragments/Fragment.h"
#include "Fragments/TypeConverter.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Transforms/DialectConversion.h"

namespace tessera {

/// A pattern for one op, with the type converter as what it is.
template <typename SourceOp> class TilePattern : public mlir::OpConversionPattern<SourceOp> {
public:
  using OneToNOpAdaptor = typename mlir::OpConversionPattern<SourceOp>::OneToNOpAdaptor;

  TilePattern(const TileGPUTypeConverter &converter, mlir::PatternBenefit benefit = 2)
      : mlir::OpConversionPattern<SourceOp>(converter, &converter.getContext(), benefit) {}

  const TileGPUTypeConverter &getConverter() const {
    return *this->template getTypeConverter<TileGPUTypeConverter>();
  }
  const TargetHooks &getHooks() const { return getConverter().getHooks(); }
  const GPUMachine &getMachine() const { return getConverter().getMachine(); }
  /// Builds code with the instructions of the module's GPU.
  ThreadBuilder getThread(mlir::OpBuilder &builder, mlir::Location loc) const {
    return ThreadBuilder(builder, loc, getHooks());
  }
};

/// The declaration of a function that is linked in later (libdevice, vprintf).
mlir::LLVM::LLVMFuncOp declareDeviceFunction(mlir::OpBuilder &builder, mlir::Operation *op,
                                             llvm::StringRef name, mlir::Type resultType,
                                             mlir::TypeRange operandTypes, bool isPure);

/// Functions, calls, program ids, assume, barriers: FunctionOps.cpp, ProgramOps.cpp.
void populateFunctionPatterns(const TileGPUTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateProgramPatterns(const TileGPUTypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
/// Assert and print: ReportOps.cpp.
void populateReportPatterns(const TileGPUTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
/// The rank of a block in its cluster, and sums over blocks: ClusterOps.cpp.
void populateClusterPatterns(const TileGPUTypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
/// Constants, range, splat: CreationOps.cpp.
void populateCreationPatterns(const TileGPUTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
/// Elementwise ops on tiles become such on scalars; those of the tile dialect and the
/// float arithmetic of arith go on from there: ElementwiseOps.cpp.
void populateElementwisePatterns(const TileGPUTypeConverter &converter,
                                 mlir::RewritePatternSet &patterns);
/// Comparisons of places with a number: PlaceComparisons.cpp.
void populatePlaceComparisonPatterns(const TileGPUTypeConverter &converter,
                                     mlir::RewritePatternSet &patterns);
/// The functions of math: MathOps.cpp.
void populateMathPatterns(const TileGPUTypeConverter &converter, mlir::RewritePatternSet &patterns);
/// Inline asm and functions of device libraries: InlineAsmOps.cpp.
void populateInlineAsmPatterns(const TileGPUTypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
/// Pointers, loads and stores: MemoryOps.cpp.
void populateMemoryPatterns(const TileGPUTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
/// Asynchronous copies and rings: AsyncOps.cpp.
void populateAsyncPatterns(const TileGPUTypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
/// Barriers in shared memory: MBarrierOps.cpp.
void populateMBarrierPatterns(const TileGPUTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
/// Scalars that one thread sends to another: LocalScalarOps.cpp.
void populateLocalScalarPatterns(const TileGPUTypeConverter &converter,
                                 mlir::RewritePatternSet &patterns);
/// Copies by tensor maps: TensorMapOps.cpp.
void populateTensorMapPatterns(const TileGPUTypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
/// Atomics: AtomicOps.cpp.
void populateAtomicPatterns(const TileGPUTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

/// convert_layout and tiles in shared memory.
void populateLayoutPatterns(const TileGPUTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
/// Reduce, and with it scan (ScanOp.cpp), gather and histogram (GatherOps.cpp), and sort
/// (SortOp.cpp).
void populateReductionPatterns(const TileGPUTypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
void populateScanPatterns(const TileGPUTypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateGatherPatterns(const TileGPUTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateSortPatterns(const TileGPUTypeConverter &converter, mlir::RewritePatternSet &patterns);
/// Broadcast, expand_dims, trans, reshape, join, split, cat.
void populateShapePatterns(const TileGPUTypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
/// Dot, and with it dot_scaled (DotScaledOp.cpp).
void populateMatmulPatterns(const TileGPUTypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
/// Dots on tensor cores.
void populateTensorCorePatterns(const TileGPUTypeConverter &converter,
                                mlir::RewritePatternSet &patterns);
void populateDotScaledPatterns(const TileGPUTypeConverter &converter,
                               mlir::RewritePatternSet &patterns);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PATTERNS_H
