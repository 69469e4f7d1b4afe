// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions, calls and returns. A function of tiles takes and gives their registers one
// by one; several results come as a struct.

#include "Fragments/ProgramId.h"
#include "Patterns.h"
#include "Plans/ArgumentTables.h"
#include "Plans/WarpSpecialize.h"

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The return type of an LLVM function for results of these types (after conversion).
Type packResultTypes(MLIRContext *context, ArrayRef<Type> types) {
  if (types.empty())
    return LLVM::LLVMVoidType::get(context);
  return types.size() == 1 ? types.front() : LLVM::LLVMStructType::getLiteral(context, types);
}

SmallVector<Value> flatten(ArrayRef<ValueRange> ranges) {
  SmallVector<Value> values;
  for (ValueRange range : ranges)
    llvm::append_range(values, range);
  return values;
}

/// True if the shared memory of an SM has room for one program alone.
bool isAlone(ModuleOp module) {
  auto bytes = module->getAttrOfType<IntegerAttr>(kSharedBytesAttr);
  return bytes && module->hasAttr(tilegpu::kTargetAttr) &&
         bytes.getInt() > tilegpu::getMachine(module).getSharedBytes(2);
}

/// The order of programs, which ops in the function ask for (ProgramId.h).
void carryOrder(tile::FuncOp from, LLVM::LLVMFuncOp to) {
  if (Attribute axes = from->getAttr(tilegpu::kReversedAxesAttr))
    to->setAttr(tilegpu::kReversedAxesAttr, axes);
  if (!from->hasAttr(tilegpu::kGroupedRowsAttr))
    return;
  for (StringRef name : {tilegpu::kGroupedRowsAttr, tilegpu::kOccupancyAttr})
    if (Attribute attribute = from->getAttr(name))
      to->setAttr(name, attribute);
  auto find = [](Operation *op) {
    return tilegpu::isDot(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  if (!from->walk(find).wasInterrupted())
    to->setAttr(kShortProgramsAttr, UnitAttr::get(to.getContext()));
}

struct FuncPattern : TilePattern<tile::FuncOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::FuncOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const TileGPUTypeConverter &converter = getConverter();
    TypeConverter::SignatureConversion signature(op.getArgumentTypes().size());
    SmallVector<Type> results;
    if (failed(converter.convertSignatureArgs(op.getArgumentTypes(), signature)) ||
        failed(converter.convertTypes(op.getResultTypes(), results)))
      return rewriter.notifyMatchFailure(op, "has a type that no register holds");

    auto type = LLVM::LLVMFunctionType::get(packResultTypes(getContext(), results),
                                            signature.getConvertedTypes());
    bool isKernel = op.isKernel();
    bool isAloneThere = op->hasAttr(kLaunchWarpsAttr) || isAlone(op->getParentOfType<ModuleOp>());
    auto function = LLVM::LLVMFuncOp::create(rewriter, op.getLoc(), op.getSymName(), type,
                                             isKernel || op.isExternal() ? LLVM::Linkage::External
                                                                         : LLVM::Linkage::Internal);
    if (isKernel) {
      auto launched = op->getAttrOfType<IntegerAttr>(kLaunchWarpsAttr);
      unsigned warps = launched ? launched.getInt() : *tilegpu::getNumWarps(op);
      // Without a limit, ptxas may use a few registers too many for another program, or so few that
      // it spills a thread's part of a row. Registers can change owners only where it is known how
      // many there are.
      auto programs = op->getAttrOfType<IntegerAttr>(tilegpu::kOccupancyAttr);
      getHooks().makeKernel(function, GPUMachine::kWarpSize * warps, tilegpu::getClusterSize(op),
                            programs       ? programs.getInt()
                            : isAloneThere ? 1
                                           : 0);
    } else if (op.getNoinline()) {
      function.setNoInline(true);
    }
    carryOrder(op, function);
    carryAlignment(op, function);
    passObjects(op, function);
    bool isEarly = isKernel && isAloneThere && getMachine().hasDependentLaunch;
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(), function.getBody().end());
    if (!function.getBody().empty()) {
      if (failed(rewriter.convertRegionTypes(&function.getBody(), converter, &signature)))
        return failure();
      if (isEarly)
        beginEarly(rewriter, function, /*waits=*/!op->hasAttr(kLaunchWarpsAttr));
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Launches may begin while the kernel before them in the stream still runs. So all that a
  /// program does comes after a wait for that one. The next may begin, and wait, at once.
  /// The wait takes longer than many a program: 32,768 of them, each with a row of 2 KB for a
  /// softmax, took a fifth more with it. So only large programs have it.
  void beginEarly(ConversionPatternRewriter &rewriter, LLVM::LLVMFuncOp function,
                  bool waits) const {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(&function.getBody().front());
    function->setAttr(kWaitsForStreamAttr, rewriter.getUnitAttr());
    ThreadBuilder thread = getThread(rewriter, function.getLoc());
    getHooks().emitLaunchDependents(thread);
    if (waits)
      getHooks().emitWaitForStream(thread);
  }

  void passObjects(tile::FuncOp op, LLVM::LLVMFuncOp function) const {
    if (op.getNumArguments() != function.getNumArguments())
      return;
    Type map = LLVM::LLVMArrayType::get(IntegerType::get(getContext(), 8), 128);
    for (auto [i, argument] : llvm::enumerate(op.getArgumentTypes())) {
      if (isa<tilegpu::TensorMapType>(argument))
        getHooks().passByValue(function, i, map, 64);
      else if (auto table = op.getArgAttrOfType<TypeAttr>(i, kArgumentTableAttr))
        getHooks().passByValue(function, i, table.getValue(), 8);
    }
  }

  /// The caller's promises about pointers, if arguments and parameters correspond.
  static void carryAlignment(tile::FuncOp op, LLVM::LLVMFuncOp function) {
    if (op.getNumArguments() != function.getNumArguments())
      return;
    for (unsigned i = 0; i < op.getNumArguments(); ++i) {
      auto divisibility = op.getArgAttrOfType<IntegerAttr>(i, tile::kDivisibilityAttr);
      if (divisibility && isa<tile::PointerType>(op.getArgumentTypes()[i]) &&
          llvm::isPowerOf2_64(divisibility.getInt()))
        function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), divisibility);
    }
  }
};

struct ReturnPattern : TilePattern<tile::ReturnOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ReturnOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> values = flatten(adaptor.getOperands());
    if (values.size() > 1) {
      ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
      SmallVector<Type> types(ValueRange(values).getTypes());
      Value packed = thread.create<LLVM::UndefOp>(packResultTypes(getContext(), types));
      for (auto [i, value] : llvm::enumerate(values))
        packed = thread.create<LLVM::InsertValueOp>(packed, value, i);
      values = {packed};
    }
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, values);
    return success();
  }
};

struct CallPattern : TilePattern<tile::CallOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::CallOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<SmallVector<Type>> resultTypes(op.getNumResults());
    SmallVector<Type> flatTypes;
    for (auto [type, converted] : llvm::zip_equal(op.getResultTypes(), resultTypes)) {
      if (failed(getConverter().convertType(type, converted)))
        return failure();
      llvm::append_range(flatTypes, converted);
    }
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type packedType = packResultTypes(getContext(), flatTypes);
    auto call = thread.create<LLVM::CallOp>(flatTypes.empty() ? TypeRange() : TypeRange(packedType),
                                            op.getCallee(), flatten(adaptor.getOperands()));
    SmallVector<SmallVector<Value>> results(op.getNumResults());
    int64_t position = 0;
    for (auto [types, values] : llvm::zip_equal(resultTypes, results))
      for (size_t i = 0; i < types.size(); ++i, ++position)
        values.push_back(flatTypes.size() == 1
                             ? call.getResult()
                             : thread.create<LLVM::ExtractValueOp>(call.getResult(), position));
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateFunctionPatterns(const TileGPUTypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<FuncPattern, ReturnPattern, CallPattern>(converter);
}
