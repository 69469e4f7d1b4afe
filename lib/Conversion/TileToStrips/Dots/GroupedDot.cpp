// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both operands are packed into words of 32 bits: a word of a holds neighbours along k of
// one row, a word of b those of one column. A product of words then is one lane of the
// instruction, and the loops are those of f32 with a word for an element.
//
// The int8 instruction needs one unsigned operand. Adding 128 to a adds 128 times the sum of a
// column of b to each result. The block starts from minus that.

#include "GroupedDot.h"

#include "DotLoops.h"
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
                    const HostMachine &machine)
      : DotLoops(dot), instruction(instruction), isShifted(instruction.isLhsUnsigned),
        group(instruction.steps), lanes(machine.vectorBits / 32) {
    auto aType = cast<MemRefType>(dot.getA().getType());
    M = aType.getDimSize(0);
    words = aType.getDimSize(1) / this->group;
    N = cast<MemRefType>(dot.getB().getType()).getDimSize(1);
    accumulatorElement = cast<MemRefType>(dot.getAcc().getType()).getElementType();
    block = chooseBlock(machine, M, std::max<int64_t>(1, N / lanes));
    panelColumns = std::min(N, block.vectors * lanes);
    depth = chooseDepth(machine, words, panelColumns * 4);
  }

  int64_t emit(int64_t offset) {
    int64_t begin = offset;
    packedA = reserve({M, depth}, b.getI32Type(), offset);
    packedB = reserve({depth, panelColumns}, b.getI32Type(), offset);
    if (isShifted)
      corrections = reserve({1, panelColumns}, b.getI32Type(), offset);
    forEachBlock(words, depth, [&](Value word, int64_t steps) { emitDepth(word, steps); });
    dot.erase();
    return offset - begin;
  }

private:
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
        // Flipping the sign bit of a byte adds 128 to it.
        if (isShifted)
          packed = arith::XOrIOp::create(b, loc, packed, splat(type, int32_t(0x80808080)));
        vector::StoreOp::create(b, loc, packed, packedA, ValueRange{row, at});
      });
    });
  }

  void packB(Value word, Value column, int64_t columns, int64_t width, int64_t steps) {
    for (int64_t first = 0; first < columns; first += width) {
      auto type = VectorType::get(width, b.getI32Type());
      SmallVector<Value> accumulators;
      if (isShifted)
        accumulators.push_back(splat(type, 0));
      auto body = [&](Value at, ValueRange carried) -> SmallVector<Value> {
        SmallVector<Value> rows;
        for (int64_t i = 0; i < group; ++i)
          rows.push_back(
              loadBits(dot.getB(), add(times(add(word, at), group), i), add(column, first), width));
        Value packed = vector::BitCastOp::create(b, loc, type, interleave(rows));
        vector::StoreOp::create(b, loc, packed, packedB, ValueRange{at, index(first)});
        if (!isShifted)
          return {};
        return {multiply(carried[0], splat(type, 0x01010101), packed)};
      };
      auto loop = scf::ForOp::create(b, loc, index(0), index(steps), index(1), accumulators,
                                     [&](OpBuilder &inner, Location, Value at, ValueRange carried) {
                                       OpBuilder::InsertionGuard guard(b);
                                       b.restoreInsertionPoint(inner.saveInsertionPoint());
                                       scf::YieldOp::create(b, loc, body(at, carried));
                                     });
      if (isShifted) {
        Value correction = arith::MulIOp::create(b, loc, loop.getResult(0), splat(type, -128));
        vector::StoreOp::create(b, loc, correction, corrections,
                                ValueRange{index(0), index(first)});
      }
    }
  }

  void emitPanel(Value word, Value column, int64_t vectors, int64_t width, int64_t steps) {
    packB(word, column, vectors * width, width, steps);
    forEachBlock(M, block.rows, [&](Value row, int64_t rows) {
      emitBlock(row, column, rows, vectors, width, steps);
    });
  }

  /// One block of the result.
  void emitBlock(Value row, Value column, int64_t rows, int64_t vectors, int64_t width,
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
          Value correction = vector::LoadOp::create(b, loc, accumulatorType, corrections,
                                                    ValueRange{index(0), index(v * width)});
          accumulator = arith::AddIOp::create(b, loc, accumulator, correction);
        }
        accumulators.push_back(accumulator);
      }
    auto loop = scf::ForOp::create(
        b, loc, index(0), index(steps), index(1), accumulators,
        [&](OpBuilder &inner, Location, Value k, ValueRange carried) {
          OpBuilder::InsertionGuard guard(b);
          b.restoreInsertionPoint(inner.saveInsertionPoint());
          auto type = VectorType::get(width, b.getI32Type());
          SmallVector<Value> columns, next(carried);
          for (int64_t v = 0; v < vectors; ++v)
            columns.push_back(
                vector::LoadOp::create(b, loc, type, packedB, ValueRange{k, index(v * width)}));
          for (int64_t r = 0; r < rows; ++r) {
            Value scalar = memref::LoadOp::create(b, loc, packedA, ValueRange{add(row, r), k});
            Value repeated = vector::BroadcastOp::create(b, loc, type, scalar);
            for (int64_t v = 0; v < vectors; ++v)
              next[r * vectors + v] = multiply(next[r * vectors + v], repeated, columns[v]);
          }
          scf::YieldOp::create(b, loc, next);
        });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        vector::StoreOp::create(b, loc, loop.getResult(r * vectors + v), dot.getAcc(), at(r, v));
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
  bool isShifted; ///< a is moved up to where bytes are unsigned
  int64_t group, lanes;
  int64_t M, N, words; ///< words: K in words
  int64_t depth;       ///< words of k that are packed at a time
  int64_t panelColumns;
  Type accumulatorElement;
  BlockShape block;
  Value packedA, packedB, corrections;
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

int64_t emitGroupedDot(strips::DotOp dot, const DotInstruction &instruction,
                       const HostMachine &machine, int64_t scratchOffset) {
  return GroupedDotEmitter(dot, instruction, machine).emit(scratchOffset);
}

} // namespace tessera
