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
//
// A register cannot be computed with. So weights that are decoded from fewer bits are stored first,
// 16 columns by 64 bytes. A register waits for what it loads to be stored, so the next 64 bytes are
// decoded before these are multiplied. Two dots on parts of the same bytes share the loop, each
// with sums of its own in a register.

#include "FewRowsTiles.h"

#include "DotOperands.h"
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
/// The same of a vector of decoded weights.
constexpr int64_t kMinDecodedMultiplies = 8;
/// Lines along k between those that are loaded and those that are fetched (Emerald Rapids).
constexpr int64_t kLinesAhead = 4;

class FewRowsTilesEmitter : TileLoops {
public:
  explicit FewRowsTilesEmitter(ArrayRef<FewRowsDot> dots)
      : TileLoops(dots.back().dot), dots(dots), M(getRows(dot)),
        N(cast<MemRefType>(dot.getB().getType()).getDimSize(1)),
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
    b.setInsertionPoint(dots.front().dot);
    SmallVector<Value> packed;
    for (const FewRowsDot &found : dots) {
      // Memory of a may be that of another buffer once its dot is past.
      b.setInsertionPoint(found.dot);
      packed.push_back(emitRows(found, instruction.steps, offset));
    }
    bool isKept = sums != nullptr;
    if (!isKept) {
      sums = reserve({N, kWords}, accElement, offset);
      setToZero(sums);
    }
    if (isDecoded()) {
      Type element = cast<MemRefType>(dot.getB().getType()).getElementType();
      decoded = reserve({2 * int64_t(dots.size()) * kRows, getElements()}, element, offset);
    }
    Value ofOthers = dots.size() > 1 ? reserve({kRows, kWords}, accElement, offset) : Value();
    Matrix ofSums = describe(sums);
    SmallVector<Matrix> ofPacked =
        llvm::map_to_vector(packed, [&](Value v) { return describe(v); });
    forEach(0, N, kRows, [&](Value column) {
      loadTile(0, ofSums, column, index(0));
      for (size_t part = 1; part < dots.size(); ++part)
        call("llvm.x86.tilezero", {number(part)});
      Value weights = getPointer(first, stride, column);
      Value next = getNext(first, stride, column);
      if (isDecoded())
        decode(weights, stride, index(0));
      forEach(0, bytes, kLineBytes, [&](Value k) {
        fetch(weights, next, stride, k);
        if (isDecoded())
          decodeAhead(weights, stride, k);
        Value word = arith::DivUIOp::create(b, loc, k, index(kWordBytes));
        for (size_t part = 0; part < dots.size(); ++part) {
          int64_t tile = kFirstOperand + 2 * part;
          if (isDecoded())
            loadTile(tile, describe(decoded), getDecodedRow(k, part), index(0));
          else
            loadTile(tile, advance(weights, toI64(k)), stride);
          loadTile(tile + 1, ofPacked[part], word, index(0));
          call(instruction.intrinsic, {number(part), number(tile), number(tile + 1)});
        }
      });
      storeTile(0, ofSums, column, index(0));
      for (size_t part = 1; part < dots.size(); ++part) {
        storeTile(part, describe(ofOthers), index(0), index(0));
        addSums(ofOthers, sums, column);
      }
    });
    if (!isKept)
      addToResult(sums);
    needTiles();
    for (FewRowsDot found : dots)
      found.dot.erase();
    return offset - begin;
  }

private:
  /// The registers behind those of sums.
  static constexpr int64_t kFirstOperand = 2;
  static_assert(kFirstOperand == int64_t(kMaxTiledDots));

  bool isDecoded() const { return dots.front().decoded != dots.front().source; }
  /// Weights of a line.
  int64_t getElements() {
    return kLineBytes * 8 / cast<MemRefType>(dot.getB().getType()).getElementTypeBitWidth();
  }

  /// The first row of decoded weights of a line: one half of the buffer is written while the other
  /// one is read.
  Value getDecodedRow(Value k, int64_t part) {
    Value line = arith::DivUIOp::create(b, loc, k, index(kLineBytes));
    Value half = arith::AndIOp::create(b, loc, line, index(1));
    return add(times(half, dots.size() * kRows), part * kRows);
  }

  void decodeAhead(Value weights, Value stride, Value k) {
    Value ahead = add(k, kLineBytes);
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, ahead, index(bytes));
    auto ifOp = scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    decode(weights, stride, ahead);
  }

  /// Decodes a line of 16 columns for each dot.
  void decode(Value weights, Value stride, Value k) {
    int64_t count = getElements();
    Value line = advance(weights, toI64(k));
    auto type = VectorType::get(count, getElementTypeOrSelf(dots.front().source.getType()));
    for (int64_t row = 0; row < kRows; ++row) {
      DenseMap<Value, Value> known;
      Value loaded = LLVM::LoadOp::create(b, loc, type, line, /*alignment=*/1);
      for (auto [part, found] : llvm::enumerate(dots)) {
        known[found.source] = loaded;
        Value value = decodeVector(b, loc, found.decoded, count, known);
        vector::StoreOp::create(b, loc, value, decoded,
                                ValueRange{add(getDecodedRow(k, part), row), index(0)});
      }
      line = advance(line, stride);
    }
  }

  /// Adds 16 rows of sums to those of the columns from `column` on.
  void addSums(Value from, Value to, Value column) {
    auto type = VectorType::get(kWords, accElement);
    for (int64_t row = 0; row < kRows; ++row) {
      SmallVector<Value> place{add(column, row), index(0)};
      Value added = vector::LoadOp::create(b, loc, type, from, ValueRange{index(row), index(0)});
      Value old = vector::LoadOp::create(b, loc, type, to, place);
      vector::StoreOp::create(b, loc, sum(old, added), to, place);
    }
  }

  Value sum(Value old, Value added) {
    if (accElement.isInteger())
      return arith::AddIOp::create(b, loc, old, added);
    return arith::AddFOp::create(b, loc, old, added);
  }

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
    Value ahead = add(k, kLinesAhead * kLineBytes);
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

  /// The packed words of a dot's a, a row for each word.
  Value emitRows(const FewRowsDot &found, int64_t steps, int64_t &offset) {
    if (found.kept) {
      Value slot = found.kept->emit(
          b, [&](Value slot) { packRows(found.dot, found.kept->getRows(b, slot), steps); });
      return found.kept->getRows(b, slot, M);
    }
    PackedRows rows = getPackedRows(found.dot);
    int64_t begin = offset;
    Value packed = reserve({rows.elements / M, M}, rows.element, offset);
    packRows(found.dot, reserve({rows.elements}, rows.element, begin), steps);
    return packed;
  }

  /// Packs rows of a to `flat`: word by word, the rows beside each other. A vector has several rows
  /// of the packed words.
  void packRows(strips::DotOp dot, Value flat, int64_t steps) {
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
      for (auto [i, part] : llvm::enumerate(riffle(std::move(rows))))
        vector::StoreOp::create(b, loc, part, flat, add(times(word, M), i * kWords));
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
      SmallVector<Value> rows = riffle(std::move(columns));
      for (auto [row, added] : llvm::enumerate(ArrayRef(rows).take_front(M))) {
        SmallVector<Value> place{index(row), column};
        Value old = vector::LoadOp::create(b, loc, type, dot.getAcc(), place);
        vector::StoreOp::create(b, loc, sum(old, added), dot.getAcc(), place);
      }
    });
  }

  ArrayRef<FewRowsDot> dots; ///< that decode the same weights
  int64_t M, N;              ///< M: a power of two
  int64_t bytes;             ///< of k
  Type accElement;
  Value decoded; ///< null: the weights are loaded as they are
};

} // namespace

const AMXInstruction *findFewRowsTiles(const FewRowsDot &found, const HostMachine &machine) {
  strips::DotOp dot = found.dot;
  auto a = cast<MemRefType>(dot.getA().getType()), b = cast<MemRefType>(dot.getB().getType());
  Type element = a.getElementType();
  const AMXInstruction *instruction = element.isInteger(8) ? machine.int8AMX
                                      : element.isBF16()   ? machine.bf16AMX
                                                           : nullptr;
  bool isDecoded = found.decoded != found.source;
  unsigned bits = getElementTypeOrSelf(found.source.getType()).getIntOrFloatBitWidth();
  if (!instruction || !found.load || b.getElementType() != element ||
      bits != element.getIntOrFloatBitWidth())
    return nullptr;
  const DotInstruction *vectors = element.isBF16() ? machine.bf16Dot : machine.int8Dot;
  int64_t multiplies = getRows(dot) * (vectors ? 1 : 2);
  bool fits = b.getDimSize(1) % kRows == 0 &&
              a.getDimSize(1) % (kWords * instruction->steps) == 0 && getRows(dot) <= kRows &&
              llvm::isPowerOf2_64(getRows(dot));
  return fits && multiplies >= (isDecoded ? kMinDecodedMultiplies : kMinMultiplies) ? instruction
                                                                                    : nullptr;
}

PackedRows getPackedRows(strips::DotOp dot) {
  auto type = cast<MemRefType>(dot.getA().getType());
  int64_t words = type.getDimSize(1) * type.getElementTypeBitWidth() / 8 / kWordBytes;
  // The last words are followed by those of another register's width.
  return {(words + kWords) * getRows(dot), IntegerType::get(dot.getContext(), 32)};
}

Value emitTileSums(const FewRowsDot &found, scf::ForOp loop, int64_t &offset) {
  return FewRowsTilesEmitter(found).emitSums(loop, offset);
}

int64_t emitFewRowsTiles(ArrayRef<FewRowsDot> dots, const AMXInstruction &instruction, Value first,
                         Value stride, Value sums, int64_t scratchOffset) {
  return FewRowsTilesEmitter(dots).emit(instruction, first, stride, sums, scratchOffset);
}

} // namespace tessera
