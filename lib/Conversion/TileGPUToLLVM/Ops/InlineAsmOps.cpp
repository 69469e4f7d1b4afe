// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The user's foreign code: inline PTX, and functions of device libraries.

#include "Exchange/Delivery.h"
#include "Patterns.h"

#include "tessera/Analysis/SharedMemory/Replication.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The registers of a result, as one block of a cluster has them if others may have other values
/// (ScratchModels.cpp).
LogicalResult deliverInCluster(ThreadBuilder &thread, Operation *op, Type type,
                               SmallVectorImpl<Value> &registers) {
  bool isDelivered = op->hasAttr(tilegpu::kScratchOffsetAttr);
  return !isDelivered || Replication::of(type, op).blocks == 0
             ? success()
             : deliver(thread, op, type, registers);
}

/// `packed` registers of a thread go to one run of the text. Elements of less than 32
/// bits go in registers of 32 bits as far as there are enough of them.
struct InlineAsmPattern : TilePattern<tile::InlineAsmOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::InlineAsmOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    int64_t count = getNumRegisters(op->getResult(0).getType());
    int64_t packed = isa<RankedTensorType>(op->getResult(0).getType()) ? op.getPacked() : 1;
    SmallVector<Type> elements, wordTypes;
    SmallVector<int64_t> wordsOf;
    for (Type type : op.getResultTypes()) {
      elements.push_back(getConverter().convertElement(type));
      int64_t each = getElementsPerWord(elements.back(), packed);
      wordsOf.push_back(llvm::divideCeil(packed, each));
      wordTypes.append(wordsOf.back(), getWordType(thread, elements.back(), each));
    }
    SmallVector<Type> callType;
    if (wordTypes.size() == 1)
      callType = wordTypes;
    else
      callType = {LLVM::LLVMStructType::getLiteral(getContext(), wordTypes)};

    SmallVector<SmallVector<Value>> results(op.getNumResults());
    for (int64_t first = 0; first < count; first += packed) {
      SmallVector<Value> operands;
      for (auto [original, registers] : llvm::zip_equal(op.getArgs(), adaptor.getArgs())) {
        SmallVector<Value> group;
        bool isTile = isa<RankedTensorType>(original.getType());
        // A thread that holds too few elements runs the text on the last one again.
        for (int64_t i = 0; i < packed; ++i)
          group.push_back(registers[isTile ? std::min(first + i, count - 1) : 0]);
        llvm::append_range(operands, pack(thread, group));
      }
      auto call = thread.create<LLVM::InlineAsmOp>(
          TypeRange(callType), operands, op.getAsmText(), op.getConstraints(),
          /*has_side_effects=*/!op.getPure(), /*is_align_stack=*/false, LLVM::TailCallKind::None,
          LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
      int64_t position = 0;
      for (auto [i, element] : llvm::enumerate(elements)) {
        SmallVector<Value> words;
        for (int64_t j = 0; j < wordsOf[i]; ++j, ++position)
          words.push_back(wordTypes.size() == 1
                              ? call.getRes()
                              : thread.create<LLVM::ExtractValueOp>(call.getRes(), position));
        SmallVector<Value> values = unpack(thread, words, element, packed);
        values.resize(std::min<int64_t>(packed, count - first));
        llvm::append_range(results[i], values);
      }
    }
    for (auto [type, registers] : llvm::zip_equal(op.getResultTypes(), results))
      if (failed(deliverInCluster(thread, op, type, registers)))
        return failure();
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

private:
  static unsigned getWidth(Type type) {
    return isa<LLVM::LLVMPointerType>(type) ? 64 : type.getIntOrFloatBitWidth();
  }
  static int64_t getElementsPerWord(Type element, int64_t packed) {
    return std::min<int64_t>(packed, std::max(1u, 32 / getWidth(element)));
  }
  static Type getWordType(ThreadBuilder &thread, Type element, int64_t each) {
    return each == 1 ? element : thread.intType(getWidth(element) * each);
  }

  static SmallVector<Value> pack(ThreadBuilder &thread, ArrayRef<Value> values) {
    Type element = values.front().getType();
    unsigned width = getWidth(element);
    size_t each = getElementsPerWord(element, values.size());
    if (each == 1)
      return SmallVector<Value>(values);
    SmallVector<Value> words;
    Type word = getWordType(thread, element, each);
    for (size_t i = 0; i < values.size(); i += each) {
      Value bits = thread.constant(word, 0);
      for (size_t j = 0; j < each && i + j < values.size(); ++j) {
        Value part = thread.bitcast(values[i + j], thread.intType(width));
        part = thread.extendOrTruncate(part, width * each);
        bits = thread.bitOr(bits, thread.shl(part, width * j));
      }
      words.push_back(bits);
    }
    return words;
  }

  static SmallVector<Value> unpack(ThreadBuilder &thread, ArrayRef<Value> words, Type element,
                                   int64_t count) {
    unsigned width = getWidth(element);
    int64_t each = getElementsPerWord(element, count);
    if (each == 1)
      return SmallVector<Value>(words);
    SmallVector<Value> values;
    for (int64_t i = 0; i < count; ++i) {
      Value bits = thread.lshr(words[i / each], width * (i % each));
      values.push_back(thread.bitcast(thread.extendOrTruncate(bits, width), element));
    }
    return values;
  }
};

/// A function of a library, of scalars (tiles are taken apart before).
struct ExternPattern : TilePattern<tile::ExternElementwiseOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ExternElementwiseOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type element = getConverter().convertElement(op.getType());
    // Pointers of other languages are to whatever memory.
    auto anywhere = LLVM::LLVMPointerType::get(rewriter.getContext());
    auto isPointer = [](Type type) { return isa<LLVM::LLVMPointerType>(type); };
    Type result = isPointer(element) ? Type(anywhere) : element;
    SmallVector<Value> operands;
    for (Value operand : adaptor.getArgs())
      operands.push_back(
          isPointer(operand.getType())
              ? LLVM::AddrSpaceCastOp::create(rewriter, op.getLoc(), anywhere, operand)
              : operand);
    SmallVector<Type> types(ValueRange(operands).getTypes());
    LLVM::LLVMFuncOp function =
        declareDeviceFunction(rewriter, op, op.getSymbol(), result, types, op.getPure());
    auto type = LLVM::LLVMFunctionType::get(result, types);
    if (function.getFunctionType() != type)
      return emitUserError(op, "E071")
             << "'" << op->getName() << "' calls the external function " << op.getSymbol() << " as "
             << type << ", which is a " << function.getFunctionType() << " elsewhere";
    if (!function.isExternal())
      return emitUserError(op, "E071") << "'" << op->getName() << "' takes " << op.getSymbol()
                                       << " for the external function of a library, but the kernel "
                                          "has a function of that name";
    StringAttr library = op.getLibraryAttr();
    auto known = function->getAttrOfType<StringAttr>(kLibraryAttr);
    if (known && library != known)
      return emitUserError(op, "E071") << "'" << op->getName() << "' takes the external function "
                                       << op.getSymbol() << " from another library than " << known;
    if (library) {
      function->setAttr(kLibraryAttr, library);
      function->setLoc(op.getLoc());
    }
    SmallVector<Value> results = {
        LLVM::CallOp::create(rewriter, op.getLoc(), function, operands).getResult()};
    if (isPointer(element))
      results.front() =
          LLVM::AddrSpaceCastOp::create(rewriter, op.getLoc(), element, results.front());
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    if (failed(deliverInCluster(thread, op, op.getType(), results)))
      return failure();
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void tessera::populateInlineAsmPatterns(const TileGPUTypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<InlineAsmPattern, ExternPattern>(converter);
}
