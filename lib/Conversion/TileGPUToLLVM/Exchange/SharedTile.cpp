// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SharedTile.h"

#include "Fragments/BytePairs.h"

#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace tessera;

/// The widest access of a thread.
static constexpr int64_t kWidestBytes = 16;

LinearLayout tessera::getRowMajorMemory(ArrayRef<int64_t> shape) {
  LinearLayout memory(shape);
  memory.columns(HwDim::Offset) = f2::unitVectors(memory.elementBits());
  return memory;
}

int64_t tessera::getMemoryBytes(Type registerType) {
  if (isa<LLVM::LLVMPointerType>(registerType))
    return 8;
  return llvm::divideCeil(registerType.getIntOrFloatBitWidth(), 8);
}

MatrixInstructions tessera::getMatrixInstructions(Operation *op) {
  return tilegpu::getMatrixInstructions(tilegpu::getMachine(op));
}

static int64_t countRepeats(const LinearLayout &layout) {
  int64_t repeats = 1;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    repeats *= layout.oddFactor(dim);
  return repeats;
}

SharedTile::SharedTile(Value base, const LinearLayout &memory, Type element, int64_t repeatBytes,
                       MatrixInstructions matrices)
    : base(base), memory(memory), element(element), bytes(getMemoryBytes(element)),
      repeatBytes(repeatBytes ? repeatBytes : bytes << memory.columns(HwDim::Offset).size()),
      matrices(matrices) {
  std::optional<f2::Columns> inverse = memory.memoryOffsets();
  assert(inverse && "a layout of memory has one element at each offset");
  for (uint64_t offset : *inverse)
    offsets.push_back(offset * bytes);
}

SmallVector<SharedTile::Access> SharedTile::plan(ThreadBuilder &thread, const LinearLayout &layout,
                                                 uint64_t distance, Value warp) const {
  assert(layout.shape() == memory.shape() && "the layouts are of one tile");
  auto compose = [&](HwDim dim) {
    f2::Columns result;
    for (uint64_t column : layout.columns(dim))
      result.push_back(f2::apply(offsets, column));
    return result;
  };
  f2::Columns registers = compose(HwDim::Reg), lanes = compose(HwDim::Lane),
              warps = compose(HwDim::Warp), blocks = compose(HwDim::Block);
  f2::Columns others = lanes;
  llvm::append_range(others, warps);
  llvm::append_range(others, blocks);
  uint64_t threadMask = 0;
  for (uint64_t column : others)
    threadMask |= column;

  // vectorizableBits counts elements.
  unsigned byteBits = llvm::Log2_64(bytes);
  auto inElements = [&](f2::Columns columns) {
    for (uint64_t &column : columns)
      column >>= byteBits;
    return columns;
  };
  unsigned vectorBits = vectorizableBits(inElements(registers), inElements(others),
                                         llvm::Log2_64(kWidestBytes / bytes));
  uint64_t vectorMask = (uint64_t(bytes) << vectorBits) - 1;

  Value threadOffset;
  if (threadMask != 0)
    threadOffset = thread.bitXor(emitApply(thread, lanes, emitLaneId(thread)),
                                 emitApply(thread, warps, warp ? warp : emitWarpId(thread)));
  if (llvm::any_of(blocks, [](uint64_t column) { return column != 0; }))
    threadOffset = thread.bitXor(threadOffset, emitApply(thread, blocks, emitBlockRank(thread)));
  std::map<uint64_t, Value> pointers;
  auto getPointer = [&](uint64_t offset, int64_t repeat) {
    uint64_t mixed = offset & threadMask;
    Value &pointer = pointers[mixed];
    if (!pointer)
      pointer = threadOffset ? thread.advance(base, thread.bitXor(threadOffset, mixed)) : base;
    return thread.advance(pointer,
                          static_cast<int32_t>((offset & ~threadMask) + repeat * repeatBytes));
  };

  int64_t repeats = countRepeats(layout), perRepeat = int64_t(1) << registers.size();
  uint64_t shift = f2::apply(offsets, distance);
  SmallVector<Access> accesses;
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    // Registers by where their access starts.
    std::map<uint64_t, SmallVector<int64_t, 16>> groups;
    for (int64_t number = 0; number < perRepeat; ++number) {
      uint64_t offset = f2::apply(registers, number) ^ shift;
      SmallVector<int64_t, 16> &group = groups[offset & ~vectorMask];
      group.resize(size_t(1) << vectorBits);
      group[(offset & vectorMask) >> byteBits] = repeat * perRepeat + number;
    }
    for (auto &[offset, group] : groups)
      accesses.push_back({group, getPointer(offset, repeat)});
  }
  return accesses;
}

Type SharedTile::getAccessType(ThreadBuilder &thread, size_t count) const {
  unsigned width = bytes * 8, total = width * count;
  unsigned word = width >= 32 ? width : std::min(32u, total);
  Type type = thread.intType(word);
  return total == word ? type : VectorType::get(total / word, type);
}

void SharedTile::storeElement(ThreadBuilder &thread, Value pointer, Value value) const {
  thread.create<LLVM::StoreOp>(toMemory(thread, value), pointer, bytes);
}

Value SharedTile::loadElement(ThreadBuilder &thread, Value pointer) const {
  Type type = element.isInteger(1) ? thread.intType(8) : element;
  Value value = thread.create<LLVM::LoadOp>(type, pointer, bytes);
  return fromMemory(thread, value, element);
}

void SharedTile::store(ThreadBuilder &thread, const LinearLayout &layout,
                       ValueRange registers) const {
  if (std::optional<MatrixAccess> access = planMatrices(layout, matrices.forStores))
    return storeMatrices(thread, *access, registers);
  for (const Access &access : plan(thread, layout, /*distance=*/0)) {
    size_t count = access.registers.size();
    if (count == 1) {
      storeElement(thread, access.pointer, registers[access.registers.front()]);
      continue;
    }
    Type bits = thread.intType(bytes * 8);
    SmallVector<Value> elements;
    for (auto number : access.registers)
      elements.push_back(thread.bitcast(toMemory(thread, registers[number]), bits));
    Value vector = thread.bitcast(buildVector(thread, elements), getAccessType(thread, count));
    thread.create<LLVM::StoreOp>(vector, access.pointer, bytes * count);
  }
}

SmallVector<Value> SharedTile::load(ThreadBuilder &thread, const LinearLayout &layout,
                                    uint64_t distance, Value warp) const {
  // A loaded tile may be an operand of an MMA.
  if (planMatrices(layout, matrices.forLoads))
    return loadMatrices(thread, *matchMatrixAccess(layout, memory, bytes * 8, /*isOperand=*/true),
                        countRepeats(layout), distance, warp);
  SmallVector<Access> accesses = plan(thread, layout, distance, warp);
  SmallVector<Value> registers(accesses.size() * accesses.front().registers.size());
  for (const Access &access : accesses) {
    size_t count = access.registers.size();
    if (count == 1) {
      registers[access.registers.front()] = loadElement(thread, access.pointer);
      continue;
    }
    Type bits = thread.intType(bytes * 8);
    Value loaded =
        thread.create<LLVM::LoadOp>(getAccessType(thread, count), access.pointer, bytes * count);
    Value vector = thread.bitcast(loaded, VectorType::get(count, bits));
    Type inMemory = element.isInteger(1) ? bits : element;
    for (auto [position, number] : llvm::enumerate(access.registers)) {
      Value part = thread.create<LLVM::ExtractElementOp>(vector, thread.i32(position));
      registers[number] = fromMemory(thread, thread.bitcast(part, inMemory), element);
    }
  }
  return registers;
}

//===----------------------------------------------------------------------===//
// Matrix instructions
//===----------------------------------------------------------------------===//

std::optional<MatrixAccess> SharedTile::planMatrices(const LinearLayout &layout,
                                                     bool isThere) const {
  // Repeats start where rows may.
  if (!isThere || repeatBytes % kWidestBytes != 0)
    return std::nullopt;
  return planAccess(layout, memory, bytes * 8, /*hasMatrices=*/true).matrix;
}

SmallVector<Value> SharedTile::getRowAddresses(ThreadBuilder &thread, const MatrixAccess &access,
                                               int64_t repeats, uint64_t distance,
                                               Value warp) const {
  auto inBytes = [&](f2::Columns columns) {
    for (uint64_t &column : columns)
      column *= bytes;
    return columns;
  };
  f2::Columns lanes = inBytes(access.laneOffsets), warps = inBytes(access.warpOffsets);
  uint64_t threadMask = 0;
  for (const f2::Columns *columns : {&lanes, &warps})
    for (uint64_t column : *columns)
      threadMask |= column;
  Value threadOffset = thread.bitXor(emitApply(thread, lanes, emitLaneId(thread)),
                                     emitApply(thread, warps, warp ? warp : emitWarpId(thread)));
  uint64_t shift = f2::apply(offsets, distance);
  std::map<uint64_t, Value> pointers;
  SmallVector<Value> addresses;
  for (int64_t repeat = 0; repeat < repeats; ++repeat)
    for (unsigned instruction = 0; instruction < access.numInstructions(); ++instruction) {
      uint64_t offset = (access.getOffset(instruction) * bytes) ^ shift;
      uint64_t mixed = offset & threadMask;
      Value &pointer = pointers[mixed];
      if (!pointer)
        pointer = thread.advance(base, thread.bitXor(threadOffset, mixed));
      addresses.push_back(thread.advance(
          pointer, static_cast<int32_t>((offset & ~threadMask) + repeat * repeatBytes)));
    }
  return addresses;
}

void SharedTile::storeMatrices(ThreadBuilder &thread, const MatrixAccess &access,
                               ValueRange registers) const {
  unsigned instructions = access.numInstructions(), perWord = access.elementsPerWord();
  size_t perRepeat = size_t(instructions) * access.numMatrices() * perWord;
  SmallVector<Value> addresses = getRowAddresses(thread, access, registers.size() / perRepeat);
  Type bits = thread.intType(bytes * 8);
  for (auto [number, address] : llvm::enumerate(addresses)) {
    size_t repeat = number / instructions, instruction = number % instructions;
    SmallVector<Value> words;
    for (unsigned matrix = 0; matrix < access.numMatrices(); ++matrix) {
      SmallVector<Value> elements;
      for (unsigned part = 0; part < perWord; ++part) {
        Value value = registers[repeat * perRepeat + access.getRegister(instruction, matrix, part)];
        elements.push_back(thread.bitcast(toMemory(thread, value), bits));
      }
      words.push_back(thread.bitcast(buildVector(thread, elements), thread.intType(32)));
    }
    thread.getHooks().getMatrix().emitStoreMatrices(thread, address, words, access.isTransposed);
  }
}

SmallVector<Value> SharedTile::loadMatrices(ThreadBuilder &thread, const MatrixAccess &access,
                                            int64_t repeats, uint64_t distance, Value warp) const {
  unsigned instructions = access.numInstructions(), perWord = access.elementsPerWord();
  unsigned matrices = access.numMatrices();
  size_t perRepeat = size_t(instructions) * matrices * perWord;
  SmallVector<Value> registers(repeats * perRepeat);
  Type bits = thread.intType(bytes * 8), inMemory = element.isInteger(1) ? bits : element;
  for (auto [number, address] :
       llvm::enumerate(getRowAddresses(thread, access, repeats, distance, warp))) {
    size_t repeat = number / instructions, instruction = number % instructions;
    SmallVector<Value> words = thread.getHooks().getMatrix().emitLoadMatrices(
        thread, address, matrices, access.isTransposed);
    for (unsigned matrix = 0; matrix < matrices; ++matrix) {
      Value vector = thread.bitcast(words[matrix], VectorType::get(perWord, bits));
      for (unsigned index = 0; index < perWord; ++index) {
        Value value = thread.create<LLVM::ExtractElementOp>(vector, thread.i32(index));
        registers[repeat * perRepeat + access.getRegister(instruction, matrix, index)] =
            fromMemory(thread, thread.bitcast(value, inMemory), element);
      }
    }
  }
  return registers;
}

//===----------------------------------------------------------------------===//
// Single elements
//===----------------------------------------------------------------------===//

Value SharedTile::getAddress(ThreadBuilder &thread, ArrayRef<Value> coordinates) const {
  Value offset = thread.i32(0), repeat;
  for (unsigned dim = 0; dim < memory.rank(); ++dim) {
    Value coordinate = coordinates[dim];
    if (memory.oddFactor(dim) != 1) {
      Value own = thread.lshr(coordinate, memory.dimBits(dim));
      repeat = repeat ? thread.add(thread.mul(repeat, memory.oddFactor(dim)), own) : own;
    }
    f2::Columns columns(offsets.begin() + memory.dimShift(dim),
                        offsets.begin() + memory.dimShift(dim) + memory.dimBits(dim));
    if (columns.empty())
      continue;
    offset = thread.bitXor(offset, emitApply(thread, columns, coordinate));
  }
  if (repeat)
    offset = thread.add(offset, thread.mul(repeat, repeatBytes));
  return thread.advance(base, offset);
}
