// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers for the loops of dots, for all kinds of multiply instructions.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTLOOPS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTLOOPS_H

#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Machine/HostMachine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace tessera {

/// Rows of b with the elements of each column beside each other, in the order of the rows, of
/// which there is a power of two.
inline mlir::Value interleaveRows(mlir::OpBuilder &b, mlir::Location loc,
                                  llvm::SmallVector<mlir::Value> rows) {
  for (size_t half = rows.size() / 2; half != 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      rows[i] = mlir::vector::InterleaveOp::create(b, loc, rows[i], rows[i + half]);
  return rows.front();
}

/// A base of emitters that put loops in place of a dot.
class DotLoops {
protected:
  explicit DotLoops(strips::DotOp dot) : dot(dot), b(dot), loc(dot.getLoc()) {}

  mlir::Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, loc, value); }
  mlir::Value add(mlir::Value base, mlir::Value offset) {
    if (mlir::matchPattern(base, mlir::m_Zero()))
      return offset;
    if (mlir::matchPattern(offset, mlir::m_Zero()))
      return base;
    return mlir::arith::AddIOp::create(b, loc, base, offset);
  }
  mlir::Value add(mlir::Value base, int64_t offset) {
    return offset == 0 ? base : add(base, index(offset));
  }
  mlir::Value times(mlir::Value value, int64_t factor) {
    return mlir::arith::MulIOp::create(b, loc, value, index(factor));
  }

  /// A loop, or its body alone where it has one iteration.
  void forEach(int64_t begin, int64_t end, int64_t step,
               llvm::function_ref<void(mlir::Value)> body) {
    if (begin >= end)
      return;
    if (begin + step >= end) {
      body(index(begin));
      return;
    }
    auto loop = mlir::scf::ForOp::create(b, loc, index(begin), index(end), index(step));
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// Blocks of `size` up to `end`, and a smaller one for the remainder, if there is any.
  void forEachBlock(int64_t end, int64_t size,
                    llvm::function_ref<void(mlir::Value at, int64_t size)> body) {
    int64_t whole = end / size * size;
    forEach(0, whole, size, [&](mlir::Value at) { body(at, size); });
    if (whole < end)
      body(index(whole), end - whole);
  }

  mlir::Value interleave(llvm::SmallVector<mlir::Value> rows) {
    return interleaveRows(b, loc, std::move(rows));
  }

  /// The same in vectors of the rows' length. Each round is two permutations for two vectors, whose
  /// operands are no more than two: long vectors are taken apart into many more.
  llvm::SmallVector<mlir::Value> riffle(llvm::SmallVector<mlir::Value> rows) {
    int64_t length = mlir::cast<mlir::VectorType>(rows.front().getType()).getNumElements();
    auto half = [&](mlir::Value x, mlir::Value y, int64_t begin) -> mlir::Value {
      llvm::SmallVector<int64_t> order;
      for (int64_t i = begin; i < begin + length / 2; ++i)
        order.append({i, i + length});
      return mlir::vector::ShuffleOp::create(b, loc, x, y, order);
    };
    for (size_t round = 1; round < rows.size(); round *= 2) {
      llvm::SmallVector<mlir::Value> next;
      for (size_t i = 0, count = rows.size() / 2; i < count; ++i)
        for (int64_t begin : {int64_t(0), length / 2})
          next.push_back(half(rows[i], rows[i + count], begin));
      rows = std::move(next);
    }
    return rows;
  }

  /// A buffer in the scratch arena, which begins at `offset`; that moves behind it, to a cache
  /// line.
  mlir::Value reserve(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t &offset) {
    auto type = mlir::MemRefType::get(shape, element);
    mlir::Value buffer = strips::ScratchOp::create(b, loc, type, offset);
    int64_t bytes = type.getNumElements() * (type.getElementTypeBitWidth() / 8);
    offset += llvm::alignTo(bytes, HostMachine::kLineBytes);
    return buffer;
  }

  strips::DotOp dot;
  mlir::OpBuilder b;
  mlir::Location loc;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTLOOPS_H
