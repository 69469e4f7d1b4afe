// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An instruction multiplies two rows of a by two columns of b, eight steps of k. It adds the four
// sums to a vector of four lanes: those of the first row, then those of the second. So a and b are
// packed into words of eight bytes, neighbours along k, of two rows or columns in turn. Rows of the
// result are taken apart into such vectors in front of the loop over k, and put together behind it.

#include "MatrixDot.h"

#include "DotLoops.h"
#include "Grouping/CostModel.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera {
namespace {

/// For a, or for b: rows or columns of an instruction, and bytes of each.
constexpr int64_t kPair = 2, kSteps = 8, kPairBytes = kPair * kSteps;
/// Columns of the result that are loaded at once: a vector.
constexpr int64_t kQuad = 4;
/// A block of the result: 16 accumulators, which with four vectors of a and four of b fit into the
/// 32 registers of an AArch64. Eight loads for sixteen instructions.
constexpr int64_t kBlockPairs = 4, kBlockColumns = 8;

class MatrixDotEmitter : DotLoops {
public:
  MatrixDotEmitter(strips::DotOp dot, const MatrixInstruction &instruction,
                   const HostMachine &machine)
      : DotLoops(dot), instruction(instruction) {
    assert(instruction.steps == kSteps);
    auto aType = cast<MemRefType>(dot.getA().getType());
    pairs = aType.getDimSize(0) / kPair;
    words = aType.getDimSize(1) / kSteps;
    N = cast<MemRefType>(dot.getB().getType()).getDimSize(1);
    panelColumns = std::min(N, kBlockColumns);
    depth = chooseDepth(machine, words, panelColumns * kSteps);
  }

  int64_t emit(int64_t offset) {
    int64_t begin = offset;
    packedA = reserve({pairs, depth * kPairBytes}, b.getI8Type(), offset);
    packedB = reserve({depth, panelColumns * kSteps}, b.getI8Type(), offset);
    forEachBlock(words, depth, [&](Value word, int64_t steps) { emitDepth(word, steps); });
    dot.erase();
    return offset - begin;
  }

private:
  Value load(Value buffer, Value row, Value column, int64_t count) {
    Type element = cast<MemRefType>(buffer.getType()).getElementType();
    return vector::LoadOp::create(b, loc, VectorType::get(count, element), buffer,
                                  ValueRange{row, column});
  }
  void store(Value value, Value buffer, Value row, Value column) {
    vector::StoreOp::create(b, loc, value, buffer, ValueRange{row, column});
  }

  /// All of the result, for `steps` words of k from `word`.
  void emitDepth(Value word, int64_t steps) {
    packA(word, steps);
    forEachBlock(N, panelColumns,
                 [&](Value column, int64_t columns) { emitPanel(word, column, columns, steps); });
  }

  /// Words of two rows in turn, of one or two steps at a time.
  void packA(Value word, int64_t steps) {
    int64_t width = steps % 2 == 0 ? 2 : 1;
    SmallVector<int64_t> inTurn;
    for (int64_t at = 0; at < width; ++at)
      for (int64_t row = 0; row < kPair; ++row)
        for (int64_t byte = 0; byte < kSteps; ++byte)
          inTurn.push_back((row * width + at) * kSteps + byte);
    forEach(0, pairs, 1, [&](Value pair) {
      forEach(0, steps, width, [&](Value at) {
        Value first = times(pair, kPair);
        Value k = times(add(word, at), kSteps);
        Value x = load(dot.getA(), first, k, width * kSteps);
        Value y = load(dot.getA(), add(first, 1), k, width * kSteps);
        Value packed = vector::ShuffleOp::create(b, loc, x, y, inTurn);
        store(packed, packedA, pair, times(at, kPairBytes));
      });
    });
  }

  /// Words of columns, one after the other: rows of eight steps, interleaved three times.
  void packB(Value word, Value column, int64_t columns, int64_t steps) {
    forEach(0, steps, 1, [&](Value at) {
      Value k = times(add(word, at), kSteps);
      SmallVector<Value> rows;
      for (int64_t i = 0; i < kSteps; ++i)
        rows.push_back(load(dot.getB(), add(k, i), column, columns));
      store(interleave(rows), packedB, at, index(0));
    });
  }

  void emitPanel(Value word, Value column, int64_t columns, int64_t steps) {
    packB(word, column, columns, steps);
    forEachBlock(pairs, kBlockPairs, [&](Value pair, int64_t numPairs) {
      emitBlock(pair, column, numPairs, columns, steps);
    });
  }

  /// The first halves of two vectors of four lanes, and the second ones: from two rows to the
  /// accumulators of two columns each, and back.
  std::pair<Value, Value> swapHalves(Value x, Value y) {
    static constexpr int64_t kFirst[] = {0, 1, 4, 5}, kSecond[] = {2, 3, 6, 7};
    return {vector::ShuffleOp::create(b, loc, x, y, kFirst),
            vector::ShuffleOp::create(b, loc, x, y, kSecond)};
  }

  /// One block of the result.
  void emitBlock(Value pair, Value column, int64_t numPairs, int64_t columns, int64_t steps) {
    Value row = times(pair, kPair);
    int64_t numColumnPairs = columns / kPair;
    SmallVector<Value> accumulators;
    for (int64_t p = 0; p < numPairs; ++p)
      for (int64_t c = 0; c < columns; c += kQuad) {
        Value x = load(dot.getAcc(), add(row, kPair * p), add(column, c), kQuad);
        Value y = load(dot.getAcc(), add(row, kPair * p + 1), add(column, c), kQuad);
        auto [left, right] = swapHalves(x, y);
        accumulators.append({left, right});
      }
    auto loop = scf::ForOp::create(
        b, loc, index(0), index(steps), index(1), accumulators,
        [&](OpBuilder &inner, Location, Value at, ValueRange carried) {
          OpBuilder::InsertionGuard guard(b);
          b.restoreInsertionPoint(inner.saveInsertionPoint());
          SmallVector<Value> ofB, next(carried);
          for (int64_t c = 0; c < numColumnPairs; ++c)
            ofB.push_back(load(packedB, at, index(c * kPairBytes), kPairBytes));
          Value k = times(at, kPairBytes);
          for (int64_t p = 0; p < numPairs; ++p) {
            Value ofA = load(packedA, add(pair, p), k, kPairBytes);
            for (int64_t c = 0; c < numColumnPairs; ++c) {
              Value &sum = next[p * numColumnPairs + c];
              sum = LLVM::CallIntrinsicOp::create(b, loc, sum.getType(),
                                                  b.getStringAttr(instruction.intrinsic),
                                                  ValueRange{sum, ofA, ofB[c]})
                        .getResult(0);
            }
          }
          scf::YieldOp::create(b, loc, next);
        });
    for (int64_t p = 0; p < numPairs; ++p)
      for (int64_t c = 0; c < columns; c += kQuad) {
        int64_t first = (p * columns + c) / kPair;
        auto [x, y] = swapHalves(loop.getResult(first), loop.getResult(first + 1));
        store(x, dot.getAcc(), add(row, kPair * p), add(column, c));
        store(y, dot.getAcc(), add(row, kPair * p + 1), add(column, c));
      }
  }

  const MatrixInstruction &instruction;
  int64_t pairs, words, N; ///< pairs of rows; K in words
  int64_t depth;           ///< words of k that are packed at a time
  int64_t panelColumns;
  Value packedA, packedB;
};

} // namespace

const MatrixInstruction *findMatrixInstruction(strips::DotOp dot, const HostMachine &machine) {
  auto a = cast<MemRefType>(dot.getA().getType()), b = cast<MemRefType>(dot.getB().getType());
  Type accumulator = cast<MemRefType>(dot.getAcc().getType()).getElementType();
  bool fits = a.getElementType().isInteger(8) && b.getElementType().isInteger(8) &&
              accumulator.isInteger(32) && a.getDimSize(0) % kPair == 0 &&
              a.getDimSize(1) % kSteps == 0 && b.getDimSize(1) % kQuad == 0;
  return fits ? machine.int8Matrix : nullptr;
}

int64_t emitMatrixDot(strips::DotOp dot, const MatrixInstruction &instruction,
                      const HostMachine &machine, int64_t scratchOffset) {
  return MatrixDotEmitter(dot, instruction, machine).emit(scratchOffset);
}

} // namespace tessera
