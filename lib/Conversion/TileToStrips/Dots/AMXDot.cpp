// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CPU has eight tile registers of 16 rows of 64 bytes. An instruction multiplies a register with
// 16 rows of a by one with 16 columns of b, and adds the products to a register of 16x16 sums. Rows
// of a have their neighbours along k beside each other, so they are loaded as they are in memory.
// Rows of b are packed into words of 32 bits, each of which has neighbours along k of one column.
// If b is transposed, its columns have these words already, and blocks of 16 by 16 of them are
// transposed.
//
// Four registers hold a block of the result, two rows by two columns of registers; two hold its
// rows of a, and two its columns of b. So each loaded register is multiplied twice. A single row of
// registers has a block of one by four instead. Floats of 8 bits, which bf16 holds exactly, are
// converted when they are packed, and so is a. The registers have the same configuration for all
// dots. LowerPrograms loads it once for all programs of a thread.
//
// Words of b that were packed ahead are loaded from the user's memory. Then few rows are worth a
// register, too: a and the sums are copied to buffers of whole registers. Rows behind the last one
// may have any values there, since no other row depends on them.

#include "AMXDot.h"

#include "Grouping/CostModel.h"
#include "Nests/TransposedNest.h"
#include "TileLoops.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera {
namespace {

constexpr int64_t kTileRows = AMXInstruction::kRows, kTileWords = AMXInstruction::kWords,
                  kTileWordBytes = AMXInstruction::kWordBytes;

/// Columns of registers in a block of the result that has two rows of them.
constexpr int64_t kPanelTiles = 2;
/// Words of k between those of a stream that are loaded and those that are fetched.
constexpr int64_t kPrefetchWords = 64;

/// The words of k in a panel of b. It takes half of the first-level cache; rows of a and of the
/// result pass through.
int64_t getPanelWords(const HostMachine &machine, int64_t columns) {
  int64_t words = machine.l1.bytes / 2 / (columns * kTileWords * kTileWordBytes);
  return std::max(kTileWords, words / kTileWords * kTileWords);
}

class AMXDotEmitter : TileLoops {
public:
  AMXDotEmitter(strips::DotOp dot, const AMXInstruction &instruction, const HostMachine &machine,
                ReadyWords ready, Value columnsOfB)
      : TileLoops(dot), instruction(instruction), panels(ready.ahead), kept(ready.kept),
        columnsOfB(columnsOfB), steps(instruction.steps) {
    auto aType = cast<MemRefType>(dot.getA().getType());
    auto bType = cast<MemRefType>(dot.getB().getType());
    M = aType.getDimSize(0);
    rowTiles = llvm::divideCeil(M, kTileRows);
    words = aType.getDimSize(1) / steps;
    columnTiles = bType.getDimSize(1) / kTileWords;
    blockRows = rowTiles == 1 ? 1 : 2;
    blockColumns = std::min<int64_t>(columnTiles, rowTiles == 1 && !kept ? 4 : kPanelTiles);
    depth = std::min(words, getPanelWords(machine, blockColumns));
    // Words that are read once need not stay in the cache.
    isStreamed = panels && rowTiles <= blockRows;
    if (isStreamed || kept)
      depth = words;
  }

  int64_t emit(int64_t offset) {
    int64_t begin = offset;
    if (!panels && !kept) {
      packedB = reserve({depth, blockColumns * kTileWords}, b.getI32Type(), offset);
      ofB = describe(packedB);
    }
    bool isPadded = M % kTileRows != 0;
    if (isPadded || isConverted(dot.getA())) {
      Type element = cast<MemRefType>(dot.getA().getType()).getElementType();
      packedA = reserve({rowTiles * kTileRows, depth * steps},
                        isConverted(dot.getA()) ? b.getBF16Type() : element, offset);
    }
    Value sums = dot.getAcc();
    if (isPadded) {
      auto type = cast<MemRefType>(sums.getType());
      sums =
          reserve({rowTiles * kTileRows, columnTiles * kTileWords}, type.getElementType(), offset);
      copySums(dot.getAcc(), sums);
    }
    ofA = describe(packedA ? packedA : dot.getA());
    ofAcc = describe(sums);
    forEachBlock(words, depth, [&](Value word, int64_t count) {
      if (packedA)
        packA(word, count);
      forEachBlock(columnTiles, blockColumns, [&](Value column, int64_t columns) {
        if (packedB && columnsOfB)
          packColumns(word, column, columns, count);
        else if (packedB)
          packB(word, column, columns, count);
        if (kept)
          ofB = describe(kept->getPanel(b, loc, times(column, kTileWords), columns * kTileWords));
        forEachBlock(rowTiles, blockRows, [&](Value row, int64_t rows) {
          emitBlock(word, row, column, rows, columns, count);
        });
      });
    });
    if (isPadded)
      copySums(sums, dot.getAcc());
    needTiles();
    dot.erase();
    return offset - begin;
  }

private:
  //===-- Registers -------------------------------------------------------===//

  /// Words of b from `word` of the dot on, which is `packedWord` of what is packed.
  void loadTileOfB(int64_t tile, Value word, Value packedWord, Value column, int64_t offset) {
    if (!panels) {
      loadTile(tile, ofB, packedWord, index(offset * kTileWords));
      return;
    }
    Value address =
        panels->getAddress(b, loc, add(word, packedWord), times(add(column, offset), kTileWords));
    auto type = LLVM::LLVMPointerType::get(b.getContext());
    Value pointer = LLVM::IntToPtrOp::create(b, loc, type, address);
    loadTile(tile, pointer, panels->wordBytes);
    if (!isStreamed)
      return;
    // A panel goes on behind this dot's words, where the next iteration of a loop reads.
    Value distance = arith::ConstantIntOp::create(b, loc, kPrefetchWords, 64);
    distance = arith::MulIOp::create(b, loc, distance, panels->wordBytes);
    Value line = advance(pointer, distance);
    for (int64_t i = 0; i < kTileWords; ++i) {
      LLVM::Prefetch::create(b, loc, line, /*rw=*/0, /*hint=*/3, /*cache=*/1);
      line = advance(line, panels->wordBytes);
    }
  }

  //===-- The loops -------------------------------------------------------===//

  /// True if the instruction takes the elements of an operand as bf16.
  bool isConverted(Value operand) {
    Type element = cast<MemRefType>(operand.getType()).getElementType();
    return isa<FloatType>(element) && !element.isBF16();
  }

  /// Elements of an operand, in the type that the instruction takes.
  Value loadElements(Value operand, Value row, Value column, int64_t count) {
    auto type = cast<MemRefType>(operand.getType());
    Value loaded = vector::LoadOp::create(b, loc, VectorType::get(count, type.getElementType()),
                                          operand, ValueRange{row, column});
    if (!isConverted(operand))
      return loaded;
    // The upper half of f32: nothing is rounded.
    auto shaped = [&](Type element) { return VectorType::get(count, element); };
    Value wide = arith::ExtFOp::create(b, loc, shaped(b.getF32Type()), loaded);
    Value bits = arith::BitcastOp::create(b, loc, shaped(b.getI32Type()), wide);
    Value half = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(shaped(b.getI32Type()), b.getI32IntegerAttr(16)));
    Value upper = arith::ShRUIOp::create(b, loc, bits, half);
    Value narrow = arith::TruncIOp::create(b, loc, shaped(b.getI16Type()), upper);
    return arith::BitcastOp::create(b, loc, shaped(b.getBF16Type()), narrow);
  }

  /// Elements of b as plain bits.
  Value loadBits(Value row, Value column, int64_t count) {
    Value loaded = loadElements(dot.getB(), row, column, count);
    unsigned width = getElementTypeOrSelf(loaded.getType()).getIntOrFloatBitWidth();
    auto bits = VectorType::get(count, b.getIntegerType(width));
    return vector::BitCastOp::create(b, loc, bits, loaded);
  }

  /// All rows of a, `count` words from `word` on.
  void packA(Value word, int64_t count) {
    int64_t width = kTileWords * steps;
    forEach(0, M, 1, [&](Value row) {
      forEach(0, count * steps, width, [&](Value k) {
        Value elements = loadElements(dot.getA(), row, add(times(word, steps), k), width);
        vector::StoreOp::create(b, loc, elements, packedA, ValueRange{row, k});
      });
    });
  }

  /// Words of b from `word` on, for `columns` columns of registers.
  void packB(Value word, Value column, int64_t columns, int64_t count) {
    int64_t width = columns * kTileWords;
    Value first = times(column, kTileWords);
    forEach(0, count, 1, [&](Value at) {
      SmallVector<Value> rows;
      for (int64_t step = 0; step < steps; ++step)
        rows.push_back(loadBits(add(times(add(word, at), steps), step), first, width));
      auto type = VectorType::get(width, b.getI32Type());
      Value packed = vector::BitCastOp::create(b, loc, type, interleave(rows));
      vector::StoreOp::create(b, loc, packed, packedB, ValueRange{at, index(0)});
    });
  }

  /// The same from a buffer whose rows are columns of b, 16 words of 16 of them at a time.
  void packColumns(Value word, Value column, int64_t columns, int64_t count) {
    Type element = cast<MemRefType>(columnsOfB.getType()).getElementType();
    auto loaded = VectorType::get(kTileWords * steps, element);
    auto type = VectorType::get(kTileWords, b.getI32Type());
    Value first = times(column, kTileWords);
    forEach(0, count, kTileWords, [&](Value at) {
      Value k = times(add(word, at), steps);
      forEach(0, columns * kTileWords, kTileWords, [&](Value target) {
        SmallVector<Value> block;
        for (int64_t i = 0; i < kTileWords; ++i) {
          SmallVector<Value> place{add(add(first, target), i), k};
          Value elements = vector::LoadOp::create(b, loc, loaded, columnsOfB, place);
          block.push_back(vector::BitCastOp::create(b, loc, type, elements));
        }
        for (auto [i, words] : llvm::enumerate(transposeBlock(b, loc, block)))
          vector::StoreOp::create(b, loc, words, packedB, ValueRange{add(at, i), target});
      });
    });
  }

  /// Copies the rows of the result.
  void copySums(Value from, Value to) {
    auto type = VectorType::get(kTileWords, cast<MemRefType>(from.getType()).getElementType());
    forEach(0, M, 1, [&](Value row) {
      forEach(0, columnTiles * kTileWords, kTileWords, [&](Value column) {
        Value sums = vector::LoadOp::create(b, loc, type, from, ValueRange{row, column});
        vector::StoreOp::create(b, loc, sums, to, ValueRange{row, column});
      });
    });
  }

  /// The words of a block that fill a register, one after another.
  void forEachWord(int64_t count, llvm::function_ref<void(Value)> body) {
    if (!kept) {
      forEach(0, count, kTileWords, body);
      return;
    }
    auto loop = scf::ForOp::create(b, loc, index(0), kept->steps, index(kTileWords));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// One block of the result: registers from 0 on have the sums, then come those of a and of b.
  void emitBlock(Value word, Value row, Value column, int64_t rows, int64_t columns,
                 int64_t count) {
    int64_t firstA = rows * columns, firstB = firstA + rows;
    auto forEachSum = [&](auto body) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          body(r, c, times(add(row, r), kTileRows), times(add(column, c), kTileWords));
    };
    forEachSum([&](int64_t r, int64_t c, Value sumRow, Value sumColumn) {
      loadTile(r * columns + c, ofAcc, sumRow, sumColumn);
    });
    forEachWord(count, [&](Value k) {
      Value step = times(packedA ? k : add(word, k), steps);
      for (int64_t r = 0; r < rows; ++r)
        loadTile(firstA + r, ofA, times(add(row, r), kTileRows), step);
      // Columns of b take turns in the registers that remain.
      for (int64_t c = 0; c < columns; ++c) {
        int64_t tile = firstB + c % (AMXInstruction::kRegisters - firstB);
        loadTileOfB(tile, word, k, column, c);
        for (int64_t r = 0; r < rows; ++r)
          call(instruction.intrinsic, {number(r * columns + c), number(firstA + r), number(tile)});
      }
    });
    forEachSum([&](int64_t r, int64_t c, Value sumRow, Value sumColumn) {
      storeTile(r * columns + c, ofAcc, sumRow, sumColumn);
    });
  }

  const AMXInstruction &instruction;
  const PackedPanels *panels; ///< of b; null: it was not packed ahead
  const ColumnPanels *kept;   ///< of b; null: it is not kept
  Value columnsOfB;           ///< a buffer whose rows they are; null: rows of b are packed
  int64_t steps;              ///< elements of a word
  int64_t M;
  bool isStreamed;                      ///< words of b are read once, from memory
  int64_t rowTiles, columnTiles, words; ///< of the dot
  int64_t blockRows, blockColumns;      ///< of a block, in registers
  int64_t depth;                        ///< words of k that are packed at a time
  Value packedA, packedB;               ///< null if they are read in place
  Matrix ofA, ofB, ofAcc;
};

} // namespace

const AMXInstruction *findAMXInstruction(strips::DotOp dot, const HostMachine &machine,
                                         bool deterministic, bool isPacked) {
  auto a = cast<MemRefType>(dot.getA().getType()), b = cast<MemRefType>(dot.getB().getType());
  Type accumulator = cast<MemRefType>(dot.getAcc().getType()).getElementType();
  auto fits = [&](const AMXInstruction *instruction) {
    return instruction && (isPacked || a.getDimSize(0) % kTileRows == 0) &&
           b.getDimSize(1) % kTileWords == 0 &&
           a.getDimSize(1) % (kTileWords * instruction->steps) == 0;
  };
  if (a.getElementType().isInteger(8) && b.getElementType().isInteger(8) &&
      accumulator.isInteger(32) && fits(machine.int8AMX))
    return machine.int8AMX;
  auto isExact = [](Type type) {
    return type.isBF16() || (isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8);
  };
  if (!deterministic && isExact(a.getElementType()) && isExact(b.getElementType()) &&
      accumulator.isF32() && fits(machine.bf16AMX))
    return machine.bf16AMX;
  return nullptr;
}

int64_t getAMXDepth(const AMXInstruction &instruction, const HostMachine &machine) {
  return getPanelWords(machine, kPanelTiles) * instruction.steps;
}

PanelForm getAMXPanels(const AMXInstruction &instruction, const HostMachine &machine) {
  // Calls of four programs with tiles of 256x128 were slower by a fifth (Emerald Rapids): they had
  // one column of tiles. Calls of eight with 128x128 had two, and were faster.
  return {kPanelTiles * kTileWords, instruction.steps, getAMXDepth(instruction, machine),
          /*minPrograms=*/8};
}

int64_t emitAMXDot(strips::DotOp dot, const AMXInstruction &instruction, const HostMachine &machine,
                   ReadyWords ready, Value columnsOfB, int64_t scratchOffset) {
  return AMXDotEmitter(dot, instruction, machine, ready, columnsOfB).emit(scratchOffset);
}

} // namespace tessera
