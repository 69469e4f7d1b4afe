// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeptOperands.h"

#include "DotLoops.h"
#include "DotOperands.h"
#include "KeptState.h"
#include "MemoryTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Machine/HostMachine.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace tessera {
namespace {

/// The bytes of all panels of an operand: a matrix of 2,048 rows and columns of f32, and some for
/// rows that are padded. Programs that visit all columns for each group of rows find none of them
/// if one is too many. Only panels that are filled take memory.
constexpr int64_t kKeptBytes = 20 << 20;
/// The most scratch of a function that still keeps operands of one more dot.
constexpr int64_t kMaxScratchBytes = 64 << 20;
/// If neither operand was found for so many programs in a row, a call keeps nothing any more.
/// Neighbours in a grid share a row or a column of tiles.
constexpr int64_t kMaxCommonMisses = 4;
/// A smaller tile is packed faster than it is found.
constexpr int64_t kMinTileElements = 2048;

/// One operand of a dot, and where it is kept.
struct KeptOperand {
  Value buffer;
  Operation *filler;      ///< in the loop's body: writes the buffer, and has no other effect
  SmallVector<Value> key; ///< values that tell which tile it writes
  bool isKept = false;

  // In the scratch arena.
  Value memory, state;
  Value typed;        ///< the memory as elements of the operand
  int64_t blocks = 0; ///< that are kept; one more is not
  int64_t blockElements = 0;
  int64_t rowElements = 0; ///< between rows of a; 0: panels of columns

  // In the code.
  Value perPanel, panels; ///< blocks of a panel, number of panels; i64
  Value slots;            ///< of a panel: one for each iteration of its blocks; i64
  Value isOn;             ///< i1 of the loop
  Value base;             ///< the first block of the panel, or a negative number; i64
};

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

class Keeper {
public:
  Keeper(LoopDot found, const HostMachine &machine, PanelForm form)
      : dot(found.dot), loop(found.loop), machine(machine), form(form), b(found.loop),
        loc(found.dot.getLoc()) {}

  std::optional<KeptDot> keep(int64_t offset);

private:
  Value word(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 64); }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value toIndex(Value value) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), value); }
  Value isLess(Value a, Value other) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, a, other);
  }
  Value isEqual(Value a, Value other) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a, other);
  }
  Value both(Value a, Value other) { return arith::AndIOp::create(b, loc, a, other); }
  Value either(Value condition, Value a, Value other) {
    return arith::SelectOp::create(b, loc, condition, a, other);
  }
  Value plus(Value a, Value other) { return arith::AddIOp::create(b, loc, a, other); }
  Value times(Value a, int64_t factor) { return arith::MulIOp::create(b, loc, a, word(factor)); }
  Value times(Value a, Value other) { return arith::MulIOp::create(b, loc, a, other); }
  Value over(Value a, Value other) { return arith::DivSIOp::create(b, loc, a, other); }

  KeptState stateOf(const KeptOperand &operand) {
    return KeptState(b, loc, operand.state, operand.key.size());
  }
  Value load(const KeptOperand &operand, int64_t at) { return stateOf(operand).load(at); }
  void store(const KeptOperand &operand, int64_t at, Value value) {
    stateOf(operand).store(at, value);
  }
  /// The word of the call's first panel. Those of the panels that came after each block follow.
  int64_t followerWord(const KeptOperand &operand) const {
    return kSlots + operand.blocks * count * KeptState::getSlotWords(operand.key.size());
  }

  void reserve(KeptOperand &operand, int64_t &offset);
  Value buildTrips();
  void beginLoop(KeptOperand &operand);
  Value isUseful(const KeptOperand &operand);
  LoopDot addPlainLoop();
  Value findPanel(KeptOperand &operand, ValueRange key);
  Value isInPanel(const KeptOperand &operand, Value iteration);
  Value getBlock(const KeptOperand &operand, Value iteration);
  void noteFollower(const KeptOperand &operand, Value base);
  Value getNextBlock(const KeptOperand &operand, Value block);
  Value getPart(const KeptOperand &operand, Value block, Value part, int64_t count);
  void emitFill(KeptOperand &operand, Value iteration, Value part);
  void emptyNewSlots(const KeptOperand &operand, Value base);
  void packColumns(const KeptOperand &operand, Value block, Value part,
                   function_ref<Value(Value row, Value column, Type type)> load);
  void shiftRows(Value rows);
  /// Rows of a panel that an iteration fills.
  int64_t getUnit() const { return K / std::max<int64_t>(1, form.steps); }
  bool fits(Type a, Type ofB, Type sum) const;

  strips::DotOp dot;
  scf::ForOp loop;
  const HostMachine &machine;
  PanelForm form;
  IRRewriter b;
  Location loc;
  AccessAnalysis access;
  std::array<KeptOperand, 2> operands; ///< a and b
  int64_t M = 0, N = 0, K = 0, count = 1;
  Value trips; ///< i64
};

/// Memory for an operand's blocks and state.
void Keeper::reserve(KeptOperand &operand, int64_t &offset) {
  bool isA = &operand == &operands[0];
  Type element = cast<MemRefType>(operand.buffer.getType()).getElementType();
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  int64_t lineElements = HostMachine::kLineBytes / elementBytes;
  // A line more, so that rows do not meet in the cache.
  operand.rowElements = isA ? llvm::alignTo(count * K, lineElements) + lineElements : 0;
  bool hasWords = !isA && form.steps != 0;
  Type kept = hasWords ? b.getI32Type() : element;
  int64_t keptBytes = kept.getIntOrFloatBitWidth() / 8;
  operand.blockElements =
      isA ? M * operand.rowElements
          : llvm::alignTo(count * getUnit() * N, HostMachine::kLineBytes / keptBytes);
  operand.blocks = operand.isKept ? kKeptBytes / (operand.blockElements * keptBytes) : 0;
  auto take = [&](ArrayRef<int64_t> shape, Type type) -> Value {
    auto memory = MemRefType::get(shape, type);
    Value result = strips::ScratchOp::create(b, loc, memory, uint64_t(offset));
    offset += llvm::alignTo(memory.getNumElements() * type.getIntOrFloatBitWidth() / 8,
                            HostMachine::kLineBytes);
    return result;
  };
  int64_t blocks = operand.blocks + 1;
  // Groups write parts of matrices that are as wide as the memory.
  if (isA)
    operand.memory = take({blocks * M, operand.rowElements}, element);
  else
    operand.memory = take(blocks * operand.blockElements, kept);
  operand.typed = operand.memory;
  if (hasWords) {
    auto type = MemRefType::get({blocks * operand.blockElements * form.steps}, element);
    auto scratch = operand.memory.getDefiningOp<strips::ScratchOp>();
    operand.typed = strips::ScratchOp::create(b, loc, type, scratch.getOffset());
  }
  if (operand.isKept)
    operand.state = take(followerWord(operand) + 1 + operand.blocks, b.getI64Type());
}

/// The number of iterations, from which the length of a panel follows. It may be wrong: a loop with
/// an unsigned or a far bound has more. Those behind the panel's last block keep nothing.
Value Keeper::buildTrips() {
  auto wide = [&](Value value) -> Value {
    if (value.getType().isInteger(64))
      return value;
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
  };
  Value lower = wide(loop.getLowerBound()), upper = wide(loop.getUpperBound());
  Value step = wide(loop.getStep());
  Value distance = arith::SubIOp::create(b, loc, upper, lower);
  Value rounded = arith::SubIOp::create(b, loc, plus(distance, step), word(1));
  // A loop without a step has no iterations that end.
  step = arith::MaxSIOp::create(b, loc, step, word(1));
  Value result = over(rounded, step);
  return arith::MaxSIOp::create(b, loc, result, word(1));
}

/// In front of the loop: how many panels of its length there are, and if they are worth a look.
void Keeper::beginLoop(KeptOperand &operand) {
  operand.base = word(-1);
  if (!operand.isKept)
    return;
  operand.perPanel = over(plus(trips, word(count - 1)), word(count));
  operand.panels = over(word(operand.blocks), operand.perPanel);
  operand.slots = times(operand.perPanel, count);
  operand.isOn = both(isLess(word(0), operand.panels), isUseful(operand));
}

/// True unless the last panels that were looked for have not been found.
Value Keeper::isUseful(const KeptOperand &operand) {
  Value result = stateOf(operand).isUseful(operand.panels);
  const auto &[ofA, ofB] = operands;
  if (!ofA.isKept || !ofB.isKept)
    return result;
  Value common = arith::MinSIOp::create(b, loc, load(ofA, kMisses), load(ofB, kMisses));
  return both(result, isLess(common, word(kMaxCommonMisses)));
}

/// A copy of the loop for calls that keep nothing.
LoopDot Keeper::addPlainLoop() {
  Value keeps;
  for (const KeptOperand &operand : operands) {
    if (!operand.isKept)
      continue;
    Value isWorthwhile =
        both(isLess(word(form.minPrograms - 1), load(operand, kPrograms)), operand.isOn);
    keeps = keeps ? arith::OrIOp::create(b, loc, keeps, isWorthwhile).getResult() : isWorthwhile;
  }
  auto versions = scf::IfOp::create(b, loc, loop.getResultTypes(), keeps, /*withElseRegion=*/true);
  loop->replaceAllUsesWith(versions.getResults());
  bool hasResults = loop->getNumResults() != 0;
  OpBuilder plain = versions.getElseBodyBuilder();
  auto copy = cast<scf::ForOp>(plain.clone(*loop));
  OpBuilder kept = versions.getThenBodyBuilder();
  loop->moveBefore(versions.thenBlock(), kept.getInsertionPoint());
  if (hasResults) {
    scf::YieldOp::create(plain, loc, copy.getResults());
    scf::YieldOp::create(kept, loc, loop.getResults());
  }
  b.setInsertionPoint(loop);
  LoopDot result{{}, copy};
  copy->walk([&](strips::DotOp found) { result.dot = found; });
  // Each version has buffers of its own, if only by name: so its uses are all that there are.
  for (KeptOperand &operand : operands) {
    auto scratch = operand.buffer.getDefiningOp<strips::ScratchOp>();
    Value own = OpBuilder(scratch).clone(*scratch)->getResult(0);
    operand.buffer.replaceUsesWithIf(
        own, [&](OpOperand &use) { return loop->isAncestor(use.getOwner()); });
    operand.buffer = own;
  }
  return result;
}

/// The first block of the panel that begins with this key, or of the one to be filled next.
Value Keeper::findPanel(KeptOperand &operand, ValueRange key) {
  OpBuilder::InsertionGuard guard(b);
  // Behind the highest panel of the call all slots are empty.
  Value top = load(operand, kTop), perPanel = times(operand.perPanel, count);
  Value used = over(plus(top, plus(perPanel, word(-1))), perPanel);
  used = arith::MinSIOp::create(b, loc, used, operand.panels);
  auto search = scf::ForOp::create(b, loc, word(0), used, word(1), word(-1));
  b.setInsertionPointToStart(search.getBody());
  Value base = times(search.getInductionVar(), operand.perPanel);
  Value matches = stateOf(operand).isFilled(times(base, count), key);
  scf::YieldOp::create(b, loc, either(matches, base, search.getRegionIterArgs()[0]));
  b.setInsertionPointAfter(search);
  Value found = search.getResult(0);
  auto choice = scf::IfOp::create(b, loc, TypeRange(b.getI64Type()), isLess(found, word(0)),
                                  /*withElseRegion=*/true);
  b.setInsertionPointToStart(choice.thenBlock());
  Value victim = load(operand, kVictim);
  victim = either(isLess(victim, operand.panels), victim, word(0));
  store(operand, kVictim, plus(victim, word(1)));
  store(operand, kMisses, plus(load(operand, kMisses), word(1)));
  scf::YieldOp::create(b, loc, times(victim, operand.perPanel));
  b.setInsertionPointToStart(choice.elseBlock());
  store(operand, kMisses, word(0));
  scf::YieldOp::create(b, loc, found);
  b.setInsertionPointAfter(choice);
  emptyNewSlots(operand, choice.getResult(0));
  return choice.getResult(0);
}

/// Empties slots of a panel that no panel of the call has had, and forgets what followed them.
void Keeper::emptyNewSlots(const KeptOperand &operand, Value base) {
  OpBuilder::InsertionGuard guard(b);
  Value top = load(operand, kTop), end = times(plus(base, operand.perPanel), count);
  auto slots = scf::ForOp::create(b, loc, top, end, word(1));
  store(operand, kTop, arith::MaxSIOp::create(b, loc, top, end));
  b.setInsertionPointToStart(slots.getBody());
  Value slot = slots.getInductionVar();
  stateOf(operand).empty(slot);
  for (int64_t next : {0, 1}) {
    Value at = plus(over(slot, word(count)), word(followerWord(operand) + next));
    memref::StoreOp::create(b, loc, word(0), operand.state, ValueRange{toIndex(at)});
  }
}

/// True if an iteration has a slot in the loop's panel. All iterations of a block have, or none:
/// a dot reads the whole block where its last iteration is.
Value Keeper::isInPanel(const KeptOperand &operand, Value iteration) {
  return both(isLess(word(-1), operand.base), isLess(iteration, operand.slots));
}

/// The block of an iteration, an index.
Value Keeper::getBlock(const KeptOperand &operand, Value iteration) {
  Value last = word(operand.blocks);
  if (operand.isKept) {
    Value kept = plus(operand.base, over(iteration, word(count)));
    last = either(isInPanel(operand, iteration), kept, last);
  }
  return toIndex(last);
}

/// Stores that the panel at `base` came after the last one.
void Keeper::noteFollower(const KeptOperand &operand, Value base) {
  Value last = load(operand, kLast), next = plus(base, word(1));
  store(operand, kLast, next);
  Value at = plus(last, word(followerWord(operand)));
  memref::StoreOp::create(b, loc, next, operand.state, ValueRange{toIndex(at)});
}

/// The address of the block that the next dot most likely reads. That is the next block of the
/// panel. Behind the last one it is the first block of the panel that came after this one before.
Value Keeper::getNextBlock(const KeptOperand &operand, Value block) {
  Value next = arith::IndexCastOp::create(b, loc, b.getI64Type(), block);
  if (operand.isKept) {
    // Without a panel the base is -1, and this is the word of the call's first panel.
    Value at = plus(operand.base, word(followerWord(operand) + 1));
    Value follower = memref::LoadOp::create(b, loc, operand.state, ValueRange{toIndex(at)});
    follower = either(isEqual(follower, word(0)), plus(operand.base, word(1)), follower);
    Value inPanel = plus(next, word(1));
    Value leaves = both(isLastIteration(b, loc, loop), isLess(word(-1), operand.base));
    next = either(leaves, plus(follower, word(-1)), inPanel);
    next = arith::MinSIOp::create(b, loc, next, word(operand.blocks));
  }
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, operand.memory);
  int64_t bytes = cast<MemRefType>(operand.memory.getType()).getElementTypeBitWidth() / 8;
  return plus(arith::IndexCastOp::create(b, loc, b.getI64Type(), start),
              times(next, operand.blockElements * bytes));
}

/// The part of `count` iterations of a block, as a matrix. For b, only its type is right.
Value Keeper::getPart(const KeptOperand &operand, Value block, Value part, int64_t parts) {
  bool isA = operand.rowElements != 0;
  int64_t rows = isA ? M : parts * K, width = isA ? parts * K : N;
  int64_t stride = isA ? operand.rowElements : N;
  Value start = arith::MulIOp::create(b, loc, block, index(operand.blockElements));
  start = plus(start, arith::MulIOp::create(b, loc, part, index(isA ? K : K * N)));
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {stride, 1});
  auto type = MemRefType::get({rows, width},
                              cast<MemRefType>(operand.typed.getType()).getElementType(), layout);
  auto attributes = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(
        values, [&](int64_t value) -> OpFoldResult { return b.getIndexAttr(value); });
  };
  return memref::ReinterpretCastOp::create(b, loc, type, operand.typed, OpFoldResult(start),
                                           attributes({rows, width}), attributes({stride, 1}));
}

/// In front of the filler, and around it: fills the slot of an iteration, unless it has the tile.
void Keeper::emitFill(KeptOperand &operand, Value iteration, Value part) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(operand.filler);
  AccessAnalysis fresh;
  std::optional<MemoryTile> tile;
  if (operand.rowElements == 0)
    tile = findMemoryTile(operand.buffer, dot, fresh);
  Value isNew;
  SmallVector<Value> key;
  Value isInside, slot;
  if (operand.isKept) {
    key = llvm::map_to_vector(operand.key,
                              [&](Value value) { return stateOf(operand).toWord(value); });
    // The first iteration finds the panel.
    Value isFirst = both(operand.isOn, isEqual(iteration, word(0)));
    auto first = scf::IfOp::create(b, loc, TypeRange(b.getI64Type()), isFirst,
                                   /*withElseRegion=*/true);
    b.setInsertionPointToStart(first.thenBlock());
    Value found = findPanel(operand, key);
    noteFollower(operand, found);
    scf::YieldOp::create(b, loc, found);
    b.setInsertionPointToStart(first.elseBlock());
    scf::YieldOp::create(b, loc, operand.base);
    b.setInsertionPointAfter(first);
    operand.base = first.getResult(0);
    isInside = isInPanel(operand, iteration);
    slot = plus(times(operand.base, count), iteration);
    auto compared = scf::IfOp::create(b, loc, TypeRange(b.getI1Type()), isInside,
                                      /*withElseRegion=*/true);
    b.setInsertionPointToStart(compared.thenBlock());
    Value isTrue = arith::ConstantIntOp::create(b, loc, 1, 1);
    Value isOther = arith::XOrIOp::create(b, loc, stateOf(operand).isFilled(slot, key), isTrue);
    scf::YieldOp::create(b, loc, isOther);
    b.setInsertionPointToStart(compared.elseBlock());
    scf::YieldOp::create(b, loc, ValueRange{arith::ConstantIntOp::create(b, loc, 1, 1)});
    b.setInsertionPointAfter(compared);
    isNew = compared.getResult(0);
  }
  Value block = getBlock(operand, iteration);
  if (isNew) {
    auto fill = scf::IfOp::create(b, loc, isNew, /*withElseRegion=*/false);
    b.setInsertionPointToStart(fill.thenBlock());
    auto note = scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false);
    operand.filler->moveAfter(note);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(note.thenBlock());
      stateOf(operand).fill(slot, key);
    }
    stateOf(operand).noteLoads(operand.filler, access);
  }
  b.setInsertionPoint(operand.filler);
  if (operand.rowElements != 0) {
    Value target = getPart(operand, block, part, 1);
    operand.buffer.replaceUsesWithIf(
        target, [&](OpOperand &use) { return operand.filler->isAncestor(use.getOwner()); });
    b.setInsertionPointAfter(operand.filler);
    if (form.shiftsA)
      shiftRows(target);
    return;
  }
  auto fromBuffer = [&](Value row, Value column, Type type) -> Value {
    return vector::LoadOp::create(b, loc, cast<VectorType>(type), operand.buffer,
                                  ValueRange{row, column});
  };
  if (!tile) {
    b.setInsertionPointAfter(operand.filler);
    packColumns(operand, block, part, fromBuffer);
    return;
  }
  // From where it lies, unless the mask leaves out some of it.
  TilePlace place = tile->locate(b);
  int64_t bytes = cast<MemRefType>(operand.buffer.getType()).getElementTypeBitWidth() / 8;
  auto fromMemory = [&](Value row, Value column, Type type) -> Value {
    auto toWord = [&](Value index) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
    };
    Value address = plus(place.address, times(toWord(row), place.stride));
    address = plus(address, times(toWord(column), bytes));
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value from = LLVM::IntToPtrOp::create(b, loc, pointer, address);
    return LLVM::LoadOp::create(b, loc, type, from, bytes);
  };
  if (!place.isWhole) {
    b.setInsertionPoint(operand.filler);
    packColumns(operand, block, part, fromMemory);
    b.eraseOp(operand.filler);
    return;
  }
  b.setInsertionPoint(operand.filler);
  auto versions = scf::IfOp::create(b, loc, place.isWhole, /*withElseRegion=*/true);
  b.setInsertionPointToStart(versions.thenBlock());
  packColumns(operand, block, part, fromMemory);
  operand.filler->moveBefore(versions.elseBlock()->getTerminator());
  b.setInsertionPointAfter(operand.filler);
  packColumns(operand, block, part, fromBuffer);
}

/// Copies a tile of b to its place in the panels of a block, as elements or words. `load` loads
/// neighbours of a row.
void Keeper::packColumns(const KeptOperand &operand, Value block, Value part,
                         function_ref<Value(Value row, Value column, Type type)> load) {
  OpBuilder::InsertionGuard guard(b);
  Value first = arith::MulIOp::create(b, loc, block, index(operand.blockElements));
  int64_t unit = getUnit();
  Value firstRow = arith::MulIOp::create(b, loc, part, index(unit));
  ColumnPanels panels{operand.memory, first, index(unit), count * unit, unit, {}, {}};
  Type kept = cast<MemRefType>(operand.memory.getType()).getElementType();
  Type element = cast<MemRefType>(operand.buffer.getType()).getElementType();
  int64_t lanes = HostMachine::kLineBytes / (kept.getIntOrFloatBitWidth() / 8);
  auto loadWords = [&](Value word, Value column, int64_t width) -> Value {
    SmallVector<Value> rows;
    auto bits = VectorType::get(width, b.getIntegerType(element.getIntOrFloatBitWidth()));
    Value row = arith::MulIOp::create(b, loc, word, index(form.steps));
    for (int64_t step = 0; step < form.steps; ++step) {
      Value loaded = load(plus(row, index(step)), column, VectorType::get(width, element));
      rows.push_back(vector::BitCastOp::create(b, loc, bits, loaded));
    }
    auto words = VectorType::get(width, kept);
    return vector::BitCastOp::create(b, loc, words, interleaveRows(b, loc, std::move(rows)));
  };
  // Rows of memory are read from end to end.
  auto rows = scf::ForOp::create(b, loc, index(0), index(unit), index(1));
  b.setInsertionPointToStart(rows.getBody());
  Value row = rows.getInductionVar(), target = plus(firstRow, row);
  auto copyPanel = [&](Value column, int64_t width) {
    Value panel = panels.getPanel(b, loc, column, width);
    for (int64_t at = 0; at < width; at += lanes) {
      Value from = plus(column, index(at));
      int64_t length = std::min(lanes, width - at);
      Value loaded = form.steps == 0 ? load(row, from, VectorType::get(length, element))
                                     : loadWords(row, from, length);
      vector::StoreOp::create(b, loc, loaded, panel, ValueRange{target, index(at)});
    }
  };
  int64_t whole = N / form.columns * form.columns;
  if (whole != 0) {
    auto all = scf::ForOp::create(b, loc, index(0), index(whole), index(form.columns));
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(all.getBody());
    copyPanel(all.getInductionVar(), form.columns);
  }
  if (whole != N)
    copyPanel(index(whole), N - whole);
}

/// Flips the sign bit of each byte, which adds 128 to it.
void Keeper::shiftRows(Value rows) {
  OpBuilder::InsertionGuard guard(b);
  int64_t lanes = std::gcd(K, HostMachine::kLineBytes);
  auto type = VectorType::get(lanes, b.getI8Type());
  auto forEach = [&](int64_t end, int64_t step) {
    auto each = scf::ForOp::create(b, loc, index(0), index(end), index(step));
    b.setInsertionPointToStart(each.getBody());
    return each.getInductionVar();
  };
  Value signs = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getI8IntegerAttr(int8_t(-128))));
  SmallVector<Value> at{forEach(M, 1)};
  at.push_back(forEach(K, lanes));
  Value bytes = vector::LoadOp::create(b, loc, type, rows, at);
  Value shifted = arith::XOrIOp::create(b, loc, bytes, signs);
  vector::StoreOp::create(b, loc, shifted, rows, at);
}

/// True if the form is for operands and sums of these types.
bool Keeper::fits(Type a, Type ofB, Type sum) const {
  if (a != ofB)
    return false;
  // Floats of 8 bits would have to be converted to words.
  if (form.steps != 0)
    return a.getIntOrFloatBitWidth() * form.steps == 32;
  int64_t lanes = machine.vectorBits / a.getIntOrFloatBitWidth();
  return (a.isF32() || a.isF64()) && a == sum && N % lanes == 0;
}

std::optional<KeptDot> Keeper::keep(int64_t offset) {
  auto func = loop->getParentOfType<tile::FuncOp>();
  auto aType = cast<MemRefType>(dot.getA().getType()),
       bType = cast<MemRefType>(dot.getB().getType());
  Type element = aType.getElementType();
  M = aType.getDimSize(0);
  K = aType.getDimSize(1);
  N = bType.getDimSize(1);
  Type sum = cast<MemRefType>(dot.getAcc().getType()).getElementType();
  if (!func || !func.isKernel() || !fits(element, bType.getElementType(), sum) ||
      M * K < kMinTileElements || K * N < kMinTileElements || offset > kMaxScratchBytes)
    return std::nullopt;
  auto stores = findStores(func);
  if (!stores)
    return std::nullopt;
  splitFillers(dot);
  operands[0].buffer = dot.getA();
  operands[1].buffer = dot.getB();
  for (KeptOperand &operand : operands) {
    operand.filler = findFiller(operand.buffer, dot);
    if (!operand.filler)
      return std::nullopt;
    std::optional<SmallVector<Value>> key = findKey(operand.filler, operand.buffer);
    operand.isKept = key.has_value();
    if (key)
      operand.key = *key;
  }
  int64_t numDots = 0;
  loop->walk([&](strips::DotOp) { ++numDots; });
  if (numDots != 1 || operands[0].filler == operands[1].filler ||
      !(operands[0].isKept || operands[1].isKept))
    return std::nullopt;

  int64_t begin = offset;
  // A block of each operand fits into the second-level cache.
  int64_t bytes = (M + N) * K * element.getIntOrFloatBitWidth() / 8;
  count = std::min(form.depth / K, machine.l2.bytes / bytes);
  count = llvm::bit_floor(uint64_t(std::max<int64_t>(1, count)));
  for (KeptOperand &operand : operands) {
    reserve(operand, offset);
    operand.isKept &= operand.blocks > 0;
    if (operand.isKept) {
      stateOf(operand).dropAtStores(*stores, access);
      stateOf(operand).declare(kSlots);
    }
  }
  b.setInsertionPoint(loop);
  trips = buildTrips();
  for (KeptOperand &operand : operands)
    beginLoop(operand);
  LoopDot plain = addPlainLoop();

  auto yieldNext = [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
    // The dot's place decides these below.
    return SmallVector<Value>(added.begin(), added.end());
  };
  SmallVector<Value> inits{word(0), operands[0].base, operands[1].base};
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, inits, /*replaceInitOperandUsesInLoop=*/false, yieldNext));
  auto carried = loop.getRegionIterArgs().take_back(3);
  Value iteration = carried[0];
  b.setInsertionPointToStart(loop.getBody());
  Value part = toIndex(arith::RemSIOp::create(b, loc, iteration, word(count)));
  for (auto [number, operand] : llvm::enumerate(operands)) {
    operand.base = carried[number + 1];
    // The loop has other arguments now.
    if (operand.isKept)
      operand.key = *findKey(operand.filler, operand.buffer);
    emitFill(operand, iteration, part);
  }

  b.setInsertionPoint(dot);
  Value next = plus(iteration, word(1)), steps = index(getUnit()), zero = index(0);
  scf::IfOp whenFull;
  if (count > 1) {
    Value isFull = isEqual(toIndex(word(count - 1)), part);
    whenFull = scf::IfOp::create(
        b, loc, arith::OrIOp::create(b, loc, isFull, isLastIteration(b, loc, loop)),
        /*withElseRegion=*/false);
    b.setInsertionPointToStart(whenFull.thenBlock());
    steps = arith::MulIOp::create(b, loc, plus(part, index(1)), index(getUnit()));
  }
  Value blockA = getBlock(operands[0], iteration), blockB = getBlock(operands[1], iteration);
  Value first = arith::MulIOp::create(b, loc, blockB, index(operands[1].blockElements));
  Value nextA = getNextBlock(operands[0], blockA), nextB = getNextBlock(operands[1], blockB);
  int64_t unit = getUnit();
  KeptDot result{
      {}, plain, {operands[1].memory, first, steps, count * unit, unit, nextA, nextB}, 0};
  Value a = getPart(operands[0], blockA, zero, count);
  Value ofB = getPart(operands[1], blockB, zero, count);
  result.dot = cast<strips::DotOp>(b.clone(*dot));
  result.dot.getAMutable().assign(a);
  result.dot.getBMutable().assign(ofB);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  unsigned last = yield->getNumOperands();
  yield->setOperand(last - 3, next);
  yield->setOperand(last - 2, operands[0].base);
  yield->setOperand(last - 1, operands[1].base);
  b.eraseOp(dot);
  result.scratchBytes = offset - begin;
  return result;
}

} // namespace

Value ColumnPanels::getPanel(OpBuilder &b, Location loc, Value column, int64_t width) const {
  Value size = arith::ConstantIndexOp::create(b, loc, rows);
  Value start = arith::MulIOp::create(b, loc, column, size);
  start = arith::AddIOp::create(b, loc, first, start);
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {width, 1});
  auto type =
      MemRefType::get({rows, width}, cast<MemRefType>(memory.getType()).getElementType(), layout);
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(rows), b.getIndexAttr(width)};
  SmallVector<OpFoldResult> strides{b.getIndexAttr(width), b.getIndexAttr(1)};
  return memref::ReinterpretCastOp::create(b, loc, type, memory, OpFoldResult(start), sizes,
                                           strides);
}

PanelForm getElementPanels(int64_t columns) {
  // Sums of a dot are loaded and stored once a block. Calls of few programs find too little, and
  // come with many threads, whose cores may share caches.
  return {columns, /*steps=*/0, /*depth=*/256, /*minPrograms=*/9};
}

std::optional<KeptDot> keepOperands(LoopDot found, const HostMachine &machine, PanelForm form,
                                    int64_t scratchOffset) {
  return Keeper(found, machine, form).keep(scratchOffset);
}

} // namespace tessera
