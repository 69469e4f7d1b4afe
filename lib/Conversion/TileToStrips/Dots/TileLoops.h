// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers for the loops of dots in AMX's tile registers.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_TILELOOPS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_TILELOOPS_H

#include "DotLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace tessera {

/// A matrix in memory, as a pointer and the bytes between its rows.
struct Matrix {
  mlir::Value base, stride;
  int64_t elementBytes;
};

/// A base of emitters whose loops use tile registers.
class TileLoops : protected DotLoops {
protected:
  explicit TileLoops(strips::DotOp dot) : DotLoops(dot) {}

  mlir::Value toI64(mlir::Value index) {
    return mlir::arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  }
  mlir::Value number(int64_t tile) { return mlir::arith::ConstantIntOp::create(b, loc, tile, 8); }
  mlir::Value advance(mlir::Value pointer, mlir::Value bytes) {
    return mlir::LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }

  /// The pointer and the stride of a buffer, out of the descriptor that it is lowered to.
  Matrix describe(mlir::Value buffer) {
    auto type = mlir::cast<mlir::MemRefType>(buffer.getType());
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    auto pointer = mlir::LLVM::LLVMPointerType::get(b.getContext());
    mlir::Type i64 = b.getI64Type(), extents = mlir::LLVM::LLVMArrayType::get(i64, 2);
    auto descriptorType = mlir::LLVM::LLVMStructType::getLiteral(
        b.getContext(), {pointer, pointer, i64, extents, extents});
    mlir::Value descriptor =
        mlir::UnrealizedConversionCastOp::create(b, loc, descriptorType, buffer).getResult(0);
    auto extract = [&](llvm::ArrayRef<int64_t> position) -> mlir::Value {
      return mlir::LLVM::ExtractValueOp::create(b, loc, descriptor, position);
    };
    auto toBytes = [&](mlir::Value elements) -> mlir::Value {
      mlir::Value size = mlir::arith::ConstantIntOp::create(b, loc, bytes, 64);
      return mlir::arith::MulIOp::create(b, loc, elements, size);
    };
    mlir::Value base = advance(extract({1}), toBytes(extract({2})));
    return {base, toBytes(extract({4, 0})), bytes};
  }

  /// The pointer to an element of a matrix.
  mlir::Value at(const Matrix &matrix, mlir::Value row, mlir::Value column) {
    mlir::Value rows = mlir::arith::MulIOp::create(b, loc, toI64(row), matrix.stride);
    mlir::Value columns = toI64(times(column, matrix.elementBytes));
    return advance(advance(matrix.base, rows), columns);
  }

  void call(llvm::StringRef intrinsic, mlir::ValueRange operands) {
    mlir::LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(intrinsic), operands);
  }
  void loadTile(int64_t tile, mlir::Value pointer, mlir::Value stride) {
    call("llvm.x86.tileloadd64", {number(tile), pointer, stride});
  }
  void loadTile(int64_t tile, const Matrix &matrix, mlir::Value row, mlir::Value column) {
    loadTile(tile, at(matrix, row, column), matrix.stride);
  }
  void storeTile(int64_t tile, const Matrix &matrix, mlir::Value row, mlir::Value column) {
    call("llvm.x86.tilestored64", {number(tile), at(matrix, row, column), matrix.stride});
  }

  /// Marks the function of the dot as one that needs the registers configured.
  void needTiles() {
    dot->getParentOfType<mlir::FunctionOpInterface>()->setAttr(strips::kTileRegistersAttr,
                                                               b.getUnitAttr());
  }
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_TILELOOPS_H
