// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both operands are packed into words of 32 bits: a word of a holds neighbours along k of
// one row, a word of b those of one column. A product of words then is one lane of the
// instruction, and the loops are those of f32 with a word for an element.
//
// The int8 instruction needs one unsigned operand. Adding 128 to a adds 128 times the sum of a
// column of b to each result. The block starts from minus that.
//
// Words of b that were packed ahead are read from the user's memory. Few rows read them once, so
// 128 is added to b in registers then, and the sums are those of rows of a.
//
// Operands that a thread keeps have both forms already: 128 was added to a, and b is in words.

#include "GroupedDot.h"

#include "DotLoops.h"
#include "DotOperands.h"
#include "Grouping/CostModel.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera {
namespace {

class GroupedDotEmitter : DotLoops {
public:
  GroupedDotEmitter(strips::DotOp dot, const DotInstruction &instruction,
                    const HostMachine &machine, ReadyWords ready)
      : DotLoops(dot), instruction(instruction), panels(ready.ahead), kept(ready.kept),
        isShifted(instruction.isLhsUnsigned), group(instruction.steps),
        lanes(machine.vectorBits / 32) {
    auto aType = cast<MemRefType>(dot.getA().getType());
    M = aType.getDimSize(0);
    words = aType.getDimSize(1) / this->group;
    N = cast<MemRefType>(dot.getB().getType()).getDimSize(1);
    accumulatorElement = cast<MemRefType>(dot.getAcc().getType()).getElementType();
    block = chooseBlock(machine, M, std::max<int64_t>(1, N / lanes));
    if (panels)
      chooseFewRows(machine);
    panelColumns = std::min(N, block.vectors * lanes);
    depth = chooseDepth(machine, words, panelColumns * 4);
    // Words that are read once need not stay in the cache.
    if ((panels && M <= block.rows) || hasOpenEnd())
      depth = words;
    shiftsB = isShifted && panels && M <= block.rows && words % lanes == 0;
  }

  int64_t emit(int64_t offset) {
    int64_t begin = offset;
    if (!kept)
      packedA = reserve({M, depth}, b.getI32Type(), offset);
    if (!panels && !kept)
      packedB = reserve({depth, panelColumns}, b.getI32Type(), offset);
    if (isShifted)
      corrections = reserve({1, shiftsB ? M : panelColumns}, b.getI32Type(), offset);
    forEachBlock(words, depth, [&](Value word, int64_t steps) { emitDepth(word, steps); });
    dot.erase();
    return offset - begin;
  }

private:
  /// True if the last iterations of a loop fill a part of what is kept.
  bool hasOpenEnd() const { return kept && kept->rows != kept->unit; }

  /// A block of all rows, if they are few, so that words of b are read from memory once.
  void chooseFewRows(const HostMachine &machine) {
    for (int64_t vectors : {4, 2, 1}) {
      BlockShape all{M, vectors};
      if (M <= kMaxPackedRows && N % (vectors * lanes) == 0 &&
          getRegisters(all) <= machine.vectorRegisters) {
        block = all;
        return;
      }
    }
  }

  Value splat(VectorType type, int64_t value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getIntegerAttr(type.getElementType(), value)));
  }

  /// Vectors of words from `begin` to `end`: as wide as the machine's, then narrower.
  void forEachStrip(int64_t begin, int64_t end, int64_t narrowest,
                    function_ref<void(Value, int64_t)> body) {
    int64_t whole = begin + (end - begin) / lanes * lanes;
    forEach(begin, whole, lanes, [&](Value at) { body(at, lanes); });
    for (int64_t width = lanes / 2; width >= narrowest; width /= 2)
      if ((end - whole) & width) {
        body(index(whole), width);
        whole += width;
      }
  }

  /// Elements of a buffer as plain bits.
  Value loadBits(Value buffer, Value row, Value column, int64_t count) {
    auto type = cast<MemRefType>(buffer.getType());
    Value loaded = vector::LoadOp::create(b, loc, VectorType::get(count, type.getElementType()),
                                          buffer, ValueRange{row, column});
    unsigned bits = type.getElementTypeBitWidth();
    return vector::BitCastOp::create(b, loc, VectorType::get(count, b.getIntegerType(bits)),
                                     loaded);
  }

  /// All of the result, for `steps` words of k from `word`.
  void emitDepth(Value word, int64_t steps) {
    if (!kept)
      packA(word, steps);
    int64_t whole = N / lanes * lanes;
    forEachBlock(whole, block.vectors * lanes, [&](Value column, int64_t columns) {
      emitPanel(word, column, columns / lanes, lanes, steps);
    });
    forEachStrip(whole, N, instruction.forms.back().bits / 32,
                 [&](Value column, int64_t width) { emitPanel(word, column, 1, width, steps); });
  }

  void packA(Value word, int64_t steps) {
    forEach(0, M, 1, [&](Value row) {
      forEachStrip(0, steps, 1, [&](Value at, int64_t width) {
        auto type = VectorType::get(width, b.getI32Type());
        Value bits = loadBits(dot.getA(), row, times(add(word, at), group), width * group);
        Value packed = vector::BitCastOp::create(b, loc, type, bits);
        if (isShifted && !shiftsB)
          packed = shift(packed);
        vector::StoreOp::create(b, loc, packed, packedA, ValueRange{row, at});
      });
      if (shiftsB)
        sumRow(row, steps);
    });
  }

  /// Adds 128 to each byte of words: flips its sign bit.
  Value shift(Value packed) {
    auto type = cast<VectorType>(packed.getType());
    return arith::XOrIOp::create(b, loc, packed, splat(type, int32_t(0x80808080)));
  }

  /// The correction of a row, where b is shifted.
  void sumRow(Value row, int64_t steps) {
    auto type = VectorType::get(lanes, b.getI32Type());
    auto loop = forEachWord(steps, lanes, {splat(type, 0)}, [&](Value at, ValueRange carried) {
      Value ofA = vector::LoadOp::create(b, loc, type, packedA, ValueRange{row, at});
      return SmallVector<Value>{multiply(carried[0], splat(type, 0x01010101), ofA)};
    });
    Value sum = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, loop.getResult(0));
    Value factor = arith::ConstantIntOp::create(b, loc, -128, 32);
    Value correction = arith::MulIOp::create(b, loc, sum, factor);
    memref::StoreOp::create(b, loc, correction, corrections, ValueRange{index(0), row});
  }

  /// The words of a vector of columns, in memory that is packed here or was packed before.
  class Column {
  public:
    Column(GroupedDotEmitter &emitter, Value word, Value column, int64_t first, int64_t width)
        : emitter(emitter), word(word), first(first), width(width) {
      if (emitter.panels)
        address =
            emitter.panels->getAddress(emitter.b, emitter.loc, word, emitter.add(column, first));
    }
    Value load(Value at) const {
      OpBuilder &b = emitter.b;
      Location loc = emitter.loc;
      auto type = VectorType::get(width, b.getI32Type());
      if (!address) {
        Value row = emitter.kept ? emitter.add(word, at) : at;
        Value panel = emitter.kept ? emitter.keptPanel : emitter.packedB;
        return vector::LoadOp::create(b, loc, type, panel, ValueRange{row, emitter.index(first)});
      }
      Value distance = arith::IndexCastOp::create(b, loc, b.getI64Type(), at);
      distance = arith::MulIOp::create(b, loc, distance, emitter.panels->wordBytes);
      Value sum = arith::AddIOp::create(b, loc, address, distance);
      auto pointer = LLVM::LLVMPointerType::get(b.getContext());
      sum = LLVM::IntToPtrOp::create(b, loc, pointer, sum);
      const PackedPanels &panels = *emitter.panels;
      int64_t count = width * emitter.group, bytes = panels.columnBytes / emitter.group;
      Type element = getElementTypeOrSelf(panels.source.getType());
      auto loaded = VectorType::get(count, element);
      Value words = LLVM::LoadOp::create(b, loc, loaded, sum, bytes);
      if (panels.isDecoded()) {
        DenseMap<Value, Value> known{{panels.source, words}};
        words = decodeVector(b, loc, panels.decoded, count, known);
      }
      return vector::BitCastOp::create(b, loc, type, words);
    }

  private:
    GroupedDotEmitter &emitter;
    Value word;
    int64_t first, width;
    Value address; ///< null: in packedB or keptPanel
  };

  /// A loop over `steps` words, `stride` at a time, that carries values.
  scf::ForOp forEachWord(int64_t steps, int64_t stride, ValueRange initial,
                         function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    Value end = hasOpenEnd() ? kept->steps : index(steps);
    return scf::ForOp::create(b, loc, index(0), end, index(stride), initial,
                              [&](OpBuilder &inner, Location, Value at, ValueRange carried) {
                                OpBuilder::InsertionGuard guard(b);
                                b.restoreInsertionPoint(inner.saveInsertionPoint());
                                scf::YieldOp::create(b, loc, body(at, carried));
                              });
  }

  /// Packs words of b, if that was not done ahead, and sums up the elements of its columns where a
  /// is shifted.
  void packB(Value word, Value column, int64_t columns, int64_t width, int64_t steps) {
    if ((panels || kept) && (!isShifted || shiftsB))
      return;
    for (int64_t first = 0; first < columns; first += width) {
      auto type = VectorType::get(width, b.getI32Type());
      SmallVector<Value> sums;
      if (isShifted)
        sums.push_back(splat(type, 0));
      Column source(*this, word, column, first, width);
      auto pack = [&](Value at) -> Value {
        SmallVector<Value> rows;
        for (int64_t i = 0; i < group; ++i)
          rows.push_back(
              loadBits(dot.getB(), add(times(add(word, at), group), i), add(column, first), width));
        Value packed = vector::BitCastOp::create(b, loc, type, interleave(rows));
        vector::StoreOp::create(b, loc, packed, packedB, ValueRange{at, index(first)});
        return packed;
      };
      auto loop = forEachWord(steps, 1, sums, [&](Value at, ValueRange carried) {
        Value packed = panels || kept ? source.load(at) : pack(at);
        SmallVector<Value> next;
        if (isShifted)
          next.push_back(multiply(carried[0], splat(type, 0x01010101), packed));
        return next;
      });
      if (isShifted) {
        Value correction = arith::MulIOp::create(b, loc, loop.getResult(0), splat(type, -128));
        vector::StoreOp::create(b, loc, correction, corrections,
                                ValueRange{index(0), index(first)});
      }
    }
  }

  void emitPanel(Value word, Value column, int64_t vectors, int64_t width, int64_t steps) {
    if (kept)
      keptPanel = kept->getPanel(b, loc, column, vectors * width);
    packB(word, column, vectors * width, width, steps);
    forEachBlock(M, block.rows, [&](Value row, int64_t rows) {
      emitBlock(word, row, column, rows, vectors, width, steps);
    });
  }

  /// One block of the result.
  void emitBlock(Value word, Value row, Value column, int64_t rows, int64_t vectors, int64_t width,
                 int64_t steps) {
    auto accumulatorType = VectorType::get(width, accumulatorElement);
    auto at = [&](int64_t r, int64_t v) {
      return SmallVector<Value>{add(row, r), add(column, v * width)};
    };
    SmallVector<Value> accumulators;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v) {
        Value accumulator = vector::LoadOp::create(b, loc, accumulatorType, dot.getAcc(), at(r, v));
        if (isShifted) {
          Value correction = getCorrection(add(row, r), v * width, accumulatorType);
          accumulator = arith::AddIOp::create(b, loc, accumulator, correction);
        }
        accumulators.push_back(accumulator);
      }
    SmallVector<Column> columns;
    for (int64_t v = 0; v < vectors; ++v)
      columns.emplace_back(*this, word, column, v * width, width);
    auto loop = forEachWord(steps, 1, accumulators, [&](Value k, ValueRange carried) {
      SmallVector<Value> ofB, next(carried);
      for (const Column &vector : columns)
        ofB.push_back(shiftsB ? shift(vector.load(k)) : vector.load(k));
      auto type = VectorType::get(width, b.getI32Type());
      for (int64_t r = 0; r < rows; ++r) {
        Value repeated =
            vector::BroadcastOp::create(b, loc, type, loadWordOfA(word, add(row, r), k));
        for (int64_t v = 0; v < vectors; ++v)
          next[r * vectors + v] = shiftsB ? multiply(next[r * vectors + v], ofB[v], repeated)
                                          : multiply(next[r * vectors + v], repeated, ofB[v]);
      }
      return next;
    });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        vector::StoreOp::create(b, loc, loop.getResult(r * vectors + v), dot.getAcc(), at(r, v));
  }

  /// A word of a row of a, an i32.
  Value loadWordOfA(Value word, Value row, Value k) {
    if (!kept)
      return memref::LoadOp::create(b, loc, packedA, ValueRange{row, k});
    Value bits = loadBits(dot.getA(), row, times(add(word, k), group), group);
    Value single = vector::BitCastOp::create(b, loc, VectorType::get(1, b.getI32Type()), bits);
    return vector::ExtractOp::create(b, loc, single, 0);
  }

  /// The corrections of a row's sums, in columns from `first` of a panel on.
  Value getCorrection(Value row, int64_t first, VectorType type) {
    if (!shiftsB)
      return vector::LoadOp::create(b, loc, type, corrections, ValueRange{index(0), index(first)});
    Value correction = memref::LoadOp::create(b, loc, corrections, ValueRange{index(0), row});
    return vector::BroadcastOp::create(b, loc, type, correction);
  }

  /// accumulator + the products of the words' elements.
  Value multiply(Value accumulator, Value x, Value y) {
    auto type = cast<VectorType>(x.getType());
    int64_t width = type.getNumElements();
    Type narrow = accumulatorElement.isInteger() ? Type(b.getI8Type()) : Type(b.getBF16Type());
    auto elements = VectorType::get(width * group, narrow);
    llvm::StringRef name = instruction.getIntrinsic(width * 32);
    SmallVector<Value> operands = {accumulator, vector::BitCastOp::create(b, loc, elements, x),
                                   vector::BitCastOp::create(b, loc, elements, y)};
    return LLVM::CallIntrinsicOp::create(b, loc, accumulator.getType(), b.getStringAttr(name),
                                         operands)
        .getResult(0);
  }

  const DotInstruction &instruction;
  const PackedPanels *panels; ///< of b; null: it was not packed ahead
  const ColumnPanels *kept;   ///< of b; null: it is not kept
  bool isShifted;             ///< an operand is moved up to where bytes are unsigned
  bool shiftsB = false;       ///< that is b, in registers
  int64_t group, lanes;
  int64_t M, N, words; ///< words: K in words
  int64_t depth;       ///< words of k that are packed at a time
  int64_t panelColumns;
  Type accumulatorElement;
  BlockShape block;
  Value packedA, packedB, corrections;
  Value keptPanel; ///< that is multiplied
};

} // namespace

const DotInstruction *findDotInstruction(strips::DotOp dot, const HostMachine &machine,
                                         bool deterministic) {
  auto a = cast<MemRefType>(dot.getA().getType()), b = cast<MemRefType>(dot.getB().getType());
  Type accumulator = cast<MemRefType>(dot.getAcc().getType()).getElementType();
  auto fits = [&](const DotInstruction *instruction) {
    return instruction && a.getDimSize(1) % instruction->steps == 0 &&
           b.getDimSize(1) % (instruction->forms.back().bits / 32) == 0 &&
           !instruction->getIntrinsic(machine.vectorBits).empty();
  };
  if (a.getElementType().isInteger(8) && accumulator.isInteger(32) && fits(machine.int8Dot))
    return machine.int8Dot;
  if (!deterministic && a.getElementType().isBF16() && b.getElementType().isBF16() &&
      accumulator.isF32() && fits(machine.bf16Dot))
    return machine.bf16Dot;
  return nullptr;
}

std::optional<PanelForm> getGroupedPanels(strips::DotOp dot, const DotInstruction &instruction,
                                          const HostMachine &machine) {
  int64_t lanes = machine.vectorBits / 32;
  int64_t M = cast<MemRefType>(dot.getA().getType()).getDimSize(0);
  int64_t N = cast<MemRefType>(dot.getB().getType()).getDimSize(1);
  if (N % lanes != 0)
    return std::nullopt;
  int64_t columns = std::min(N, chooseBlock(machine, M, N / lanes).vectors * lanes);
  int64_t most = std::numeric_limits<int32_t>::max();
  int64_t depth = chooseDepth(machine, most, columns * 4) * instruction.steps;
  return PanelForm{columns, instruction.steps, depth, /*minPrograms=*/8, instruction.isLhsUnsigned};
}

int64_t emitGroupedDot(strips::DotOp dot, const DotInstruction &instruction,
                       const HostMachine &machine, ReadyWords ready, int64_t scratchOffset) {
  return GroupedDotEmitter(dot, instruction, machine, ready).emit(scratchOffset);
}

} // namespace tessera
