// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages of a kernel to the user: assert and print, by functions of the driver. Printed lines
// look as those of a CPU kernel do (lib/Runtime/Host/Print.cpp).

#include "Fragments/ProgramId.h"
#include "Patterns.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;

namespace {

/// A pointer (generic) to a text in constant data.
Value emitText(ThreadBuilder &thread, Operation *op, StringRef text) {
  std::string bytes = text.str();
  bytes.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(thread.intType(8), bytes.size());
  Value address = emitConstantData(thread, op, "tessera_text", type,
                                   thread.getBuilder().getStringAttr(bytes), /*alignment=*/1);
  return thread.create<LLVM::AddrSpaceCastOp>(thread.pointerType(0), address);
}

//===----------------------------------------------------------------------===//
// Assert
//===----------------------------------------------------------------------===//

struct AssertPattern : TilePattern<tile::AssertOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::AssertOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value holds;
    for (Value condition : adaptor.getCondition())
      holds = thread.both(holds, condition);
    Value fails = thread.bitXor(holds, 1);

    std::string file = "unknown";
    unsigned line = 0;
    op.getLoc()->walk([&](Location loc) {
      auto position = dyn_cast<FileLineColLoc>(loc);
      if (!position)
        return WalkResult::advance();
      file = position.getFilename().str();
      line = position.getLine();
      return WalkResult::interrupt();
    });
    emitGuarded(thread, fails, [&] {
      auto kernel = op->getParentOfType<FunctionOpInterface>();
      Value message = emitText(thread, op, op.getMessage()), name = emitText(thread, op, file);
      getHooks().emitAssertFailure(thread, op, message, name, line,
                                   emitText(thread, op, kernel.getName()));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Print
//===----------------------------------------------------------------------===//

struct PrintPattern : TilePattern<tile::PrintOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::PrintOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    // The first tile says which elements there are; scalars are printed beside them.
    Type shape;
    for (Type type : op.getArgs().getTypes())
      if (!shape && isa<RankedTensorType>(type))
        shape = type;
    Type like = shape ? shape : Type(rewriter.getI32Type());
    for (Type type : op.getArgs().getTypes())
      if (shape && isa<RankedTensorType>(type) &&
          tile::getEncoding(type) != tile::getEncoding(shape))
        return op.emitOpError("has tiles of several layouts");

    Value text = emitText(thread, op, getFormat(op, shape));
    Value buffer;
    emitGuarded(thread, emitRepresentativePredicate(thread, like, op), [&] {
      SmallVector<SmallVector<Value>> indices(1);
      if (shape)
        indices = emitCoordinates(thread, tilegpu::getLayout(shape));
      for (int64_t i = 0; i < getNumRegisters(like); ++i) {
        SmallVector<Value> values;
        for (unsigned axis : {0, 1, 2})
          values.push_back(emitProgramId(thread, op, axis));
        llvm::append_range(values, indices[i]);
        for (auto [number, registers] : llvm::enumerate(adaptor.getArgs())) {
          Type original = op.getArgs()[number].getType();
          Value value = registers[isa<RankedTensorType>(original) ? i : 0];
          values.push_back(promote(thread, op, number, value));
        }
        emitPrint(thread, op, text, buffer, values);
      }
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static std::string escape(StringRef text) {
    std::string result;
    for (char c : text)
      result += c == '%' ? "%%" : std::string(1, c);
    return result;
  }

  /// The format of a line.
  static std::string getFormat(tile::PrintOp op, Type shape) {
    std::string format = "pid (%d, %d, %d)";
    if (!op.getArgs().empty()) {
      SmallVector<std::string> indices;
      if (shape)
        for (int64_t extent : tile::getShape(shape))
          indices.push_back("%" + std::to_string(std::to_string(extent - 1).size()) + "d");
      format += " idx (" + llvm::join(indices, ", ") + ")";
    }
    format += escape(op.getPrefix());
    for (auto [number, type] : llvm::enumerate(op.getArgs().getTypes())) {
      format += number == 0 ? "" : ", ";
      Type element = getElementTypeOrSelf(type);
      if (isa<tile::PointerType>(element))
        format += "%p";
      else if (isa<FloatType>(element))
        format += op.getHex() ? "%a" : "%f";
      else if (op.getHex())
        format += "0x%0" + std::to_string((element.getIntOrFloatBitWidth() + 3) / 4) + "llx";
      else
        format += op.getIsSigned()[number] ? "%lld" : "%llu";
    }
    return format + "\n";
  }

  /// An argument of a variadic function: 64 bits, a double.
  Value promote(ThreadBuilder &thread, tile::PrintOp op, size_t number, Value value) const {
    Type element = getElementTypeOrSelf(op.getArgs()[number].getType());
    if (isa<LLVM::LLVMPointerType>(value.getType()))
      return thread.bitcast(value, thread.intType(64));
    if (auto type = dyn_cast<FloatType>(element)) {
      Type f64 = thread.getBuilder().getF64Type();
      if (type.isF64())
        return value;
      if (type.getWidth() > 8)
        return thread.create<LLVM::FPExtOp>(f64, value);
      // The conversion takes it from here.
      Value narrow =
          thread.create<UnrealizedConversionCastOp>(TypeRange(element), value).getResult(0);
      Value f32 = thread.create<tile::FpToFpOp>(thread.getBuilder().getF32Type(), narrow,
                                                tile::RoundingMode::NearestEven);
      return thread.create<LLVM::FPExtOp>(f64, f32);
    }
    return thread.extendOrTruncate(value, 64, op.getIsSigned()[number] && !op.getHex());
  }

  /// `buffer` is where the values lie for the call, made by the first one of an op.
  static void emitPrint(ThreadBuilder &thread, tile::PrintOp op, Value text, Value &buffer,
                        ArrayRef<Value> values) {
    OpBuilder &builder = thread.getBuilder();
    SmallVector<Type> types(ValueRange(values).getTypes());
    Type frame = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
    if (!buffer) {
      // A stack frame has room for what is in the first block alone.
      OpBuilder::InsertionGuard guard(builder);
      auto function = op->getParentOfType<FunctionOpInterface>();
      builder.setInsertionPointToStart(&function.getFunctionBody().front());
      buffer = thread.create<LLVM::AllocaOp>(thread.pointerType(0), frame, thread.i32(1),
                                             /*alignment=*/8);
    }
    for (auto [i, value] : llvm::enumerate(values)) {
      Value slot = thread.create<LLVM::GEPOp>(buffer.getType(), frame, buffer,
                                              ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
      thread.create<LLVM::StoreOp>(value, slot);
    }
    thread.getHooks().emitPrint(thread, op, text, buffer);
  }
};

} // namespace

void tessera::populateReportPatterns(const TileGPUTypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<AssertPattern, PrintPattern>(converter);
}
