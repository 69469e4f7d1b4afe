// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A register takes rows of its first operand as they lie in memory. If the weights are that
// operand, nothing of them is packed: a product has 16 columns of b as its rows, and the rows of a
// as its columns. Only a is packed, into words with neighbours along k, row by row:
//
//     for each 64 bytes of k:                    (words of a)
//       packed[word][row] = a[row][word]
//     for n in steps of 16:
//       sums = load sums[n : n + 16]
//       for each 64 bytes of k:
//         sums += load b[n : n + 16] * load packed
//       store sums
//
// With fewer than 16 rows, a register of packed words has words of the next k behind the last row.
// The sums of these columns are not used.

#include "FewRowsTiles.h"

#include "TileLoops.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
namespace {

constexpr int64_t kRows = AMXInstruction::kRows, kWords = AMXInstruction::kWords,
                  kWordBytes = AMXInstruction::kWordBytes, kLineBytes = HostMachine::kLineBytes;
/// Multiply-adds of a vector of weights, from which on registers are faster (Emerald Rapids).
constexpr int64_t kMinMultiplies = 5;
/// Lines along k between those that are loaded and those that are fetched (Emerald Rapids).
constexpr int64_t kPrefetchLines = 4;

int64_t getM(strips::DotOp dot) { return cast<MemRefType>(dot.getA().getType()).getDimSize(0); }

class FewRowsTilesEmitter : TileLoops {
public:
  explicit FewRowsTilesEmitter(strips::DotOp dot)
      : TileLoops(dot), M(getM(dot)), N(cast<MemRefType>(dot.getB().getType()).getDimSize(1)),
        accElement(cast<MemRefType>(dot.getAcc().getType()).getElementType()) {
    auto type = cast<MemRefType>(dot.getA().getType());
    bytes = type.getDimSize(1) * type.getElementTypeBitWidth() / 8;
  }

  Value emitSums(scf::ForOp loop, int64_t &offset) {
    b.setInsertionPoint(loop);
    Value sums = reserve({N, kWords}, accElement, offset);
    setToZero(sums);
    b.setInsertionPointAfter(loop);
    addToResult(sums);
    return sums;
  }

  int64_t emit(const AMXInstruction &instruction, Value first, Value stride, Value sums,
               int64_t offset) {
    int64_t begin = offset;
    // The last words are followed by those of another register's width.
    int64_t words = bytes / kWordBytes;
    packed = reserve({words + kWords, M}, b.getI32Type(), offset);
    packRows(instruction.steps);
    bool isKept = sums != nullptr;
    if (!isKept) {
      sums = reserve({N, kWords}, accElement, offset);
      setToZero(sums);
    }
    Matrix ofSums = describe(sums), ofPacked = describe(packed);
    forEach(0, N, kRows, [&](Value column) {
      loadTile(0, ofSums, column, index(0));
      Value weights = getPointer(first, stride, column);
      Value next = getNext(first, stride, column);
      forEach(0, bytes, kLineBytes, [&](Value k) {
        fetch(weights, next, stride, k);
        loadTile(1, advance(weights, toI64(k)), stride);
        Value word = arith::DivUIOp::create(b, loc, k, index(kWordBytes));
        loadTile(2, ofPacked, word, index(0));
        call(instruction.intrinsic, {number(0), number(1), number(2)});
      });
      storeTile(0, ofSums, column, index(0));
    });
    if (!isKept)
      addToResult(sums);
    needTiles();
    dot.erase();
    return offset - begin;
  }

private:
  Value getPointer(Value first, Value stride, Value column) {
    Value distance = arith::MulIOp::create(b, loc, toI64(column), stride);
    Value address = arith::AddIOp::create(b, loc, first, distance);
    return LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
  }

  /// The weights that are read behind these columns: the next columns, or behind the last ones the
  /// first ones further along k, where the next iteration of a loop continues.
  Value getNext(Value first, Value stride, Value column) {
    Value next = add(column, kRows);
    Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, next, index(N));
    next = arith::SelectOp::create(b, loc, isLast, index(0), next);
    Value further = arith::ConstantIntOp::create(b, loc, bytes, 64);
    Value none = arith::ConstantIntOp::create(b, loc, 0, 64);
    further = arith::SelectOp::create(b, loc, isLast, further, none);
    return advance(getPointer(first, stride, next), further);
  }

  void fetch(Value weights, Value next, Value stride, Value k) {
    Value ahead = add(k, kPrefetchLines * kLineBytes);
    Value isBehind = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, ahead, index(bytes));
    Value wrapped = arith::SubIOp::create(b, loc, ahead, index(bytes));
    Value offset = arith::SelectOp::create(b, loc, isBehind, wrapped, ahead);
    Value line = arith::SelectOp::create(b, loc, isBehind, next, weights);
    line = advance(line, toI64(offset));
    for (int64_t row = 0; row < kRows; ++row) {
      LLVM::Prefetch::create(b, loc, line, /*rw=*/0, /*hint=*/3, /*cache=*/1);
      line = advance(line, stride);
    }
  }

  /// Packs rows of a: word by word, the rows beside each other.
  void packRows(int64_t steps) {
    auto source = cast<MemRefType>(dot.getA().getType()).getElementType();
    auto loaded = VectorType::get(kWords * steps, source);
    auto words = VectorType::get(kWords, b.getI32Type());
    forEach(0, bytes / kWordBytes, kWords, [&](Value word) {
      SmallVector<Value> rows;
      for (int64_t row = 0; row < M; ++row) {
        Value elements = vector::LoadOp::create(b, loc, loaded, dot.getA(),
                                                ValueRange{index(row), times(word, steps)});
        rows.push_back(vector::BitCastOp::create(b, loc, words, elements));
      }
      Value all = interleave(rows);
      auto type = VectorType::get(M, b.getI32Type());
      for (int64_t i = 0; i < kWords; ++i) {
        auto order = llvm::to_vector(llvm::seq(i * M, (i + 1) * M));
        Value part = vector::ShuffleOp::create(b, loc, type, all, all, order);
        vector::StoreOp::create(b, loc, part, packed, ValueRange{add(word, i), index(0)});
      }
    });
  }

  void setToZero(Value sums) {
    auto type = VectorType::get(kWords, accElement);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    forEach(0, N, 1, [&](Value column) {
      vector::StoreOp::create(b, loc, zero, sums, ValueRange{column, index(0)});
    });
  }

  /// Adds the sums of 16 columns at a time, transposed.
  void addToResult(Value sums) {
    auto type = VectorType::get(kWords, accElement);
    forEach(0, N, kRows, [&](Value column) {
      SmallVector<Value> columns;
      for (int64_t i = 0; i < kRows; ++i)
        columns.push_back(
            vector::LoadOp::create(b, loc, type, sums, ValueRange{add(column, i), index(0)}));
      Value all = interleave(columns);
      for (int64_t row = 0; row < M; ++row) {
        auto order = llvm::to_vector(llvm::seq(row * kRows, (row + 1) * kRows));
        Value added = vector::ShuffleOp::create(b, loc, type, all, all, order);
        SmallVector<Value> place{index(row), column};
        Value old = vector::LoadOp::create(b, loc, type, dot.getAcc(), place);
        Value sum = accElement.isInteger() ? arith::AddIOp::create(b, loc, old, added).getResult()
                                           : arith::AddFOp::create(b, loc, old, added).getResult();
        vector::StoreOp::create(b, loc, sum, dot.getAcc(), place);
      }
    });
  }

  int64_t M, N;  ///< M: a power of two
  int64_t bytes; ///< of k
  Type accElement;
  Value packed;
};

} // namespace

const AMXInstruction *findFewRowsTiles(const FewRowsDot &found, const HostMachine &machine) {
  strips::DotOp dot = found.dot;
  auto a = cast<MemRefType>(dot.getA().getType()), b = cast<MemRefType>(dot.getB().getType());
  Type element = a.getElementType();
  const AMXInstruction *instruction = element.isInteger(8) ? machine.int8AMX
                                      : element.isBF16()   ? machine.bf16AMX
                                                           : nullptr;
  // Elements that are computed would be stored before a register loads them.
  if (!instruction || !found.load || found.decoded != found.source || b.getElementType() != element)
    return nullptr;
  const DotInstruction *vectors = element.isBF16() ? machine.bf16Dot : machine.int8Dot;
  int64_t multiplies = getM(dot) * (vectors ? 1 : 2);
  bool fits = b.getDimSize(1) % kRows == 0 &&
              a.getDimSize(1) % (kWords * instruction->steps) == 0 && getM(dot) <= kRows &&
              llvm::isPowerOf2_64(getM(dot));
  return fits && multiplies >= kMinMultiplies ? instruction : nullptr;
}

Value emitTileSums(strips::DotOp dot, scf::ForOp loop, int64_t &offset) {
  return FewRowsTilesEmitter(dot).emitSums(loop, offset);
}

int64_t emitFewRowsTiles(strips::DotOp dot, const AMXInstruction &instruction, Value first,
                         Value stride, Value sums, int64_t scratchOffset) {
  return FewRowsTilesEmitter(dot).emit(instruction, first, stride, sums, scratchOffset);
}

} // namespace tessera
