// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Fragment.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Analysis/SharedMemory/Replication.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Registers, at compile time
//===----------------------------------------------------------------------===//

int64_t tessera::getNumRegisters(Type type) {
  tilegpu::LayoutAttr layout = tilegpu::getLayoutAttr(type);
  return layout ? layout.getNumRegisters() : 1;
}

SmallVector<int64_t> tessera::getRegisterCoordinates(const LinearLayout &layout, int64_t number) {
  unsigned bits = layout.columns(HwDim::Reg).size();
  SmallVector<int64_t> coordinates = layout.coordinates(
      f2::apply(layout.columns(HwDim::Reg), number & ((int64_t(1) << bits) - 1)));
  int64_t repeat = number >> bits;
  for (unsigned dim = layout.rank(); dim-- > 0;) {
    coordinates[dim] += (repeat % layout.oddFactor(dim)) << layout.dimBits(dim);
    repeat /= layout.oddFactor(dim);
  }
  return coordinates;
}

std::optional<int64_t> tessera::findRegister(const LinearLayout &layout,
                                             ArrayRef<int64_t> coordinates) {
  int64_t repeat = 0;
  SmallVector<int64_t> inner(coordinates);
  for (unsigned dim = 0; dim < layout.rank(); ++dim) {
    repeat = repeat * layout.oddFactor(dim) + (coordinates[dim] >> layout.dimBits(dim));
    inner[dim] &= (int64_t(1) << layout.dimBits(dim)) - 1;
  }
  uint64_t element = layout.element(inner);
  int64_t number = 0;
  for (auto [bit, column] : llvm::enumerate(layout.columns(HwDim::Reg)))
    if (element & column) {
      element &= ~column;
      number |= int64_t(1) << bit;
    }
  if (element != 0)
    return std::nullopt;
  return repeat << layout.columns(HwDim::Reg).size() | number;
}

//===----------------------------------------------------------------------===//
// Threads, at run time
//===----------------------------------------------------------------------===//

Value tessera::emitThreadId(ThreadBuilder &thread) {
  return thread.getHooks().emitThreadId(thread);
}

Value tessera::emitLaneId(ThreadBuilder &thread) {
  return thread.bitAnd(emitThreadId(thread), (1u << tilegpu::kLaneBits) - 1);
}

Value tessera::emitWarpId(ThreadBuilder &thread) {
  return thread.lshr(emitThreadId(thread), tilegpu::kLaneBits);
}

Value tessera::emitBlockRank(ThreadBuilder &thread) {
  return thread.getHooks().getCluster().emitBlockOfCluster(thread);
}

Value tessera::emitPlace(ThreadBuilder &thread, HwDim dim) {
  switch (dim) {
  case HwDim::Lane:
    return emitLaneId(thread);
  case HwDim::Warp:
    return emitWarpId(thread);
  default:
    assert(dim == HwDim::Block && "a thread has no number of this kind");
    return emitBlockRank(thread);
  }
}

/// True if each column has one bit at most, as far as runs of shifts are concerned.
static bool isSubPermutation(ArrayRef<uint64_t> columns) {
  return llvm::all_of(columns, [](uint64_t column) { return llvm::popcount(column) <= 1; });
}

Value tessera::emitApply(ThreadBuilder &thread, ArrayRef<uint64_t> columns, Value value) {
  Value result;
  auto accumulate = [&](Value part) { result = result ? thread.bitXor(result, part) : part; };
  if (isSubPermutation(columns)) {
    // Neighbouring bits that stay neighbours move together.
    for (unsigned first = 0; first < columns.size();) {
      if (columns[first] == 0) {
        ++first;
        continue;
      }
      unsigned last = first + 1;
      while (last < columns.size() && columns[last] == columns[last - 1] << 1)
        ++last;
      uint64_t mask = ((uint64_t(1) << (last - first)) - 1) << first;
      unsigned to = llvm::countr_zero(columns[first]);
      Value part = thread.bitAnd(value, mask);
      accumulate(to >= first ? thread.shl(part, to - first) : thread.lshr(part, first - to));
      first = last;
    }
  } else {
    for (auto [bit, column] : llvm::enumerate(columns)) {
      if (column == 0)
        continue;
      Value set = thread.bitAnd(thread.lshr(value, bit), 1);
      accumulate(thread.mul(set, column));
    }
  }
  return result ? result : thread.constant(value.getType(), 0);
}

SmallVector<Value> tessera::emitThreadCoordinates(ThreadBuilder &thread,
                                                  const LinearLayout &layout) {
  Value lane = emitLaneId(thread), warp = emitWarpId(thread);
  SmallVector<Value> coordinates;
  for (unsigned dim = 0; dim < layout.rank(); ++dim) {
    // The columns of each part, as far as this dimension is concerned.
    auto project = [&](HwDim part) {
      f2::Columns columns;
      for (uint64_t column : layout.columns(part))
        columns.push_back((column & layout.dimMask(dim)) >> layout.dimShift(dim));
      return columns;
    };
    f2::Columns lanes = project(HwDim::Lane), warps = project(HwDim::Warp);
    auto isZero = [](const f2::Columns &columns) {
      return llvm::all_of(columns, [](uint64_t column) { return column == 0; });
    };
    if (isZero(warps))
      coordinates.push_back(emitApply(thread, lanes, lane));
    else if (isZero(lanes))
      coordinates.push_back(emitApply(thread, warps, warp));
    else
      coordinates.push_back(
          thread.bitOr(emitApply(thread, lanes, lane), emitApply(thread, warps, warp)));
    f2::Columns blocks = project(HwDim::Block);
    if (!isZero(blocks))
      coordinates.back() =
          thread.bitOr(coordinates.back(), emitApply(thread, blocks, emitBlockRank(thread)));
  }
  return coordinates;
}

SmallVector<SmallVector<Value>> tessera::emitCoordinates(ThreadBuilder &thread,
                                                         const LinearLayout &layout) {
  SmallVector<Value> own = emitThreadCoordinates(thread, layout);
  int64_t count = int64_t(1) << layout.columns(HwDim::Reg).size();
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    count *= layout.oddFactor(dim);
  SmallVector<SmallVector<Value>> result(count);
  for (int64_t number = 0; number < count; ++number)
    for (auto [dim, offset] : llvm::enumerate(getRegisterCoordinates(layout, number)))
      result[number].push_back(thread.add(own[dim], offset));
  return result;
}

Value tessera::emitRepresentativePredicate(ThreadBuilder &thread, Type type, Operation *op) {
  Value predicate = emitBlockRepresentativePredicate(thread, type, op);
  if (uint64_t blocks = Replication::of(type, op).blocks) {
    Value isFirst = thread.equal(thread.bitAnd(emitBlockRank(thread), blocks), 0);
    predicate = thread.both(predicate, isFirst);
  }
  return predicate;
}

Value tessera::emitBlockRepresentativePredicate(ThreadBuilder &thread, Type type, Operation *op) {
  if (!tilegpu::getLayoutAttr(type))
    return thread.equal(emitThreadId(thread), 0);
  uint64_t mask = Replication::of(type, op).getMask();
  if (mask == 0)
    return {};
  return thread.equal(thread.bitAnd(emitThreadId(thread), mask), 0);
}

//===----------------------------------------------------------------------===//
// Globals
//===----------------------------------------------------------------------===//

static std::string findFreeName(ModuleOp module, StringRef name) {
  std::string free = name.str();
  for (unsigned i = 0; module.lookupSymbol(free); ++i)
    free = (name + "_" + Twine(i)).str();
  return free;
}

Value tessera::emitConstantData(ThreadBuilder &thread, Operation *op, StringRef name, Type type,
                                Attribute value, unsigned alignment) {
  auto module = op->getParentOfType<ModuleOp>();
  std::string free = findFreeName(module, name);
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  // Its location is the module's: one of inlined code says which function it stands in, and a
  // global stands in none.
  auto global = LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true,
                                       LLVM::Linkage::Internal, free, value, alignment,
                                       /*addressSpace=*/kGlobalMemory);
  return thread.create<LLVM::AddressOfOp>(global);
}

Value tessera::emitZeroedMemory(ThreadBuilder &thread, Operation *op, StringRef name, int64_t bytes,
                                unsigned alignment) {
  auto module = op->getParentOfType<ModuleOp>();
  std::string free = findFreeName(module, name);
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), bytes);
  auto global = LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/false,
                                       LLVM::Linkage::Internal, free, /*value=*/Attribute(),
                                       alignment, /*addressSpace=*/kGlobalMemory);
  OpBuilder inside = OpBuilder::atBlockEnd(&global.getInitializerRegion().emplaceBlock());
  Value zero = LLVM::ZeroOp::create(inside, global.getLoc(), type);
  LLVM::ReturnOp::create(inside, global.getLoc(), zero);
  return thread.create<LLVM::AddressOfOp>(global);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

Value tessera::emitSharedAddress(ThreadBuilder &thread, int64_t offset) {
  Value base =
      thread.create<LLVM::AddressOfOp>(thread.pointerType(kSharedMemory), kSharedMemorySymbol);
  return thread.advance(base, static_cast<int32_t>(offset));
}

FailureOr<Value> tessera::emitScratch(ThreadBuilder &thread, Operation *op) {
  auto offset = op->getAttrOfType<IntegerAttr>(tilegpu::kScratchOffsetAttr);
  if (!offset)
    return op->emitOpError("needs scratch memory, but has no ") << tilegpu::kScratchOffsetAttr;
  return emitSharedAddress(thread, offset.getInt());
}

void tessera::emitGuarded(ThreadBuilder &thread, Value predicate, function_ref<void()> body) {
  if (!predicate)
    return body();
  auto guarded = thread.create<scf::IfOp>(predicate, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(thread.getBuilder());
  thread.getBuilder().setInsertionPointToStart(guarded.thenBlock());
  body();
}

void tessera::emitBarrier(ThreadBuilder &thread) { thread.getHooks().emitBarrier(thread); }

void tessera::emitClusterBarrier(ThreadBuilder &thread) {
  thread.getHooks().getCluster().emitClusterArrive(thread);
  thread.getHooks().getCluster().emitClusterWait(thread);
}

void tessera::emitProgramBarrier(ThreadBuilder &thread, Operation *op) {
  if (tilegpu::getNumBlocks(op) > 1)
    emitClusterBarrier(thread);
  else
    emitBarrier(thread);
}

Value tessera::emitRemoteAddress(ThreadBuilder &thread, Value pointer, Value block) {
  return thread.getHooks().getCluster().emitRemoteAddress(
      thread, thread.pointerType(kClusterMemory), pointer, block);
}

/// Applies a 32-bit shuffle to a value of any width.
static Value shuffle(ThreadBuilder &thread, Value value, function_ref<Value(Value)> move) {
  Type type = value.getType();
  unsigned width =
      isa<LLVM::LLVMPointerType>(type) ? 64 : static_cast<unsigned>(type.getIntOrFloatBitWidth());
  Value bits = thread.bitcast(value, thread.intType(width));
  if (width <= 32) {
    Value moved = move(thread.extendOrTruncate(bits, 32));
    return thread.bitcast(thread.extendOrTruncate(moved, width), type);
  }
  Value low = move(thread.extendOrTruncate(bits, 32));
  Value high = move(thread.extendOrTruncate(thread.lshr(bits, 32), 32));
  Value joined = thread.bitOr(thread.shl(thread.extendOrTruncate(high, 64), 32),
                              thread.extendOrTruncate(low, 64));
  return thread.bitcast(joined, type);
}

Value tessera::emitShuffle(ThreadBuilder &thread, Value value, Value lane) {
  return shuffle(thread, value,
                 [&](Value word) { return thread.getHooks().emitShuffle(thread, word, lane); });
}

Value tessera::emitShuffleXor(ThreadBuilder &thread, Value value, unsigned mask) {
  return shuffle(thread, value,
                 [&](Value word) { return thread.getHooks().emitShuffleXor(thread, word, mask); });
}

Value tessera::toMemory(ThreadBuilder &thread, Value value) {
  return value.getType().isInteger(1) ? thread.extendOrTruncate(value, 8) : value;
}

Value tessera::fromMemory(ThreadBuilder &thread, Value value, Type type) {
  return type.isInteger(1) ? thread.compare(LLVM::ICmpPredicate::ne, value, 0) : value;
}
