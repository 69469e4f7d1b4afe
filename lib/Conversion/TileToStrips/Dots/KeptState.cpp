// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeptState.h"

#include "Checks/AddressRanges.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

constexpr size_t kMaxKeyValues = 8, kMaxComparedStores = 4;

//===----------------------------------------------------------------------===//
// Tiles that may be kept
//===----------------------------------------------------------------------===//

/// True if a value is the same for all programs of a launch.
static bool isSameForAll(Value value, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 16;
  Operation *op = value.getDefiningOp();
  if (!op)
    return isa<tile::FuncOp>(value.getParentBlock()->getParentOp());
  if (depth > kMaxDepth || !isPure(op) || op->getNumRegions() != 0 ||
      isa<tile::ProgramIdOp, strips::NextProgramIdOp>(op))
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isSameForAll(operand, depth + 1); });
}

static bool isScalar(Type type) {
  return type.isIntOrIndexOrFloat() || isa<tile::PointerType>(type);
}

/// True if `noteLoads` sees a load: it stands in a group itself, not in a region between.
static bool isNoted(tile::LoadOp load) { return isa<strips::GroupOp>(load->getParentOp()); }

std::optional<SmallVector<Value>> findKey(Operation *filler, Value buffer) {
  SetVector<Value> key;
  WalkResult result = filler->walk([&](Operation *op) {
    bool isPlain = isa<strips::GroupOp, scf::IfOp>(op) || op->hasTrait<OpTrait::IsTerminator>();
    if (auto load = dyn_cast<tile::LoadOp>(op))
      isPlain = !load.getIsVolatile() && isNoted(load);
    else if (auto write = dyn_cast<strips::WriteOp>(op))
      isPlain = write.getTarget() == buffer;
    else if (!isPlain)
      isPlain = isPure(op) && op->getNumRegions() == 0 &&
                !isa<tile::ProgramIdOp, strips::NextProgramIdOp>(op);
    if (!isPlain)
      return WalkResult::interrupt();
    for (Value operand : op->getOperands()) {
      Operation *owner = operand.getParentBlock()->getParentOp();
      if (operand == buffer || filler->isAncestor(owner) || isSameForAll(operand))
        continue;
      if (!isScalar(operand.getType()))
        return WalkResult::interrupt();
      key.insert(operand);
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || filler->getNumResults() != 0 || key.size() > kMaxKeyValues)
    return std::nullopt;
  return SmallVector<Value>(key.begin(), key.end());
}

std::optional<SmallVector<tile::StoreOp>> findStores(Operation *func) {
  SmallVector<tile::StoreOp> stores;
  WalkResult result = func->walk([&](Operation *op) {
    if (op == func || isa<strips::GroupOp>(op) || op->getNumRegions() != 0)
      return WalkResult::advance();
    if (auto store = dyn_cast<tile::StoreOp>(op)) {
      stores.push_back(store);
      return WalkResult::advance();
    }
    auto load = dyn_cast<tile::LoadOp>(op);
    // Memory of buffers is no tile's.
    bool isKnown = load ? !load.getIsVolatile()
                        : isa<strips::DotOp, strips::WriteOp, memref::StoreOp, vector::StoreOp>(op);
    return isKnown || !mayWriteMemory(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  bool mayKeep = !result.wasInterrupted() && stores.size() <= kMaxComparedStores &&
                 llvm::all_of(stores, [](tile::StoreOp store) {
                   return isa<strips::GroupOp>(store->getParentOp());
                 });
  return mayKeep ? std::optional(stores) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Value KeptState::word(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 64); }
Value KeptState::plus(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value KeptState::isLess(Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value KeptState::both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
Value KeptState::fromTop(Value value) {
  return arith::SubIOp::create(b, loc, word(llvm::maxIntN(64)), value);
}

Value KeptState::load(int64_t at) {
  Value place = arith::ConstantIndexOp::create(b, loc, at);
  return memref::LoadOp::create(b, loc, memory, ValueRange{place});
}

void KeptState::store(int64_t at, Value value) {
  Value place = arith::ConstantIndexOp::create(b, loc, at);
  memref::StoreOp::create(b, loc, value, memory, ValueRange{place});
}

Value KeptState::isUseful(Value panels) {
  Value most = arith::MinSIOp::create(b, loc, panels, word(kMaxMisses));
  most = arith::MaxSIOp::create(b, loc, most, word(kMinMisses));
  return isLess(load(kMisses), most);
}

void KeptState::declare(std::optional<int64_t> words) {
  auto scratch = memory.getDefiningOp<strips::ScratchOp>();
  auto func = scratch->getParentOfType<tile::FuncOp>();
  SmallVector<int64_t> states;
  if (auto others = func->getAttrOfType<DenseI64ArrayAttr>(strips::kCallStateAttr))
    llvm::append_range(states, others.asArrayRef());
  states.push_back(scratch.getOffset());
  states.push_back(words.value_or(cast<MemRefType>(scratch.getType()).getNumElements()));
  func->setAttr(strips::kCallStateAttr, b.getDenseI64ArrayAttr(states));
  // Stores in front of the loop need it as well.
  scratch->moveBefore(&func.getBody().front().front());
}

void KeptState::dropAtStores(ArrayRef<tile::StoreOp> stores, AccessAnalysis &access) {
  OpBuilder::InsertionGuard guard(b);
  for (tile::StoreOp stored : stores) {
    auto group = cast<strips::GroupOp>(stored->getParentOp());
    StripEmitter emitter(group, access);
    AddressRange range = AddressRanges(group, access, emitter).get(stored.getPtr());
    b.setInsertionPoint(group);
    Value meets = arith::ConstantIntOp::create(b, loc, 1, 1);
    if (range.low && range.high)
      meets = both(isLess(range.low, load(kHigh)), isLess(fromTop(load(kBelow)), range.high));
    auto ifOp = scf::IfOp::create(b, loc, meets, /*withElseRegion=*/false);
    b.setInsertionPointToStart(ifOp.thenBlock());
    store(kGeneration, plus(load(kGeneration), word(1)));
    store(kBelow, word(0));
    store(kHigh, word(0));
  }
}

Value KeptState::toWord(Value value) {
  Type type = value.getType(), i64 = b.getI64Type();
  if (isa<tile::PointerType>(type))
    return tile::PtrToIntOp::create(b, loc, i64, value);
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, i64, value);
  if (isa<FloatType>(type)) {
    type = b.getIntegerType(type.getIntOrFloatBitWidth());
    value = arith::BitcastOp::create(b, loc, type, value);
  }
  if (type == i64)
    return value;
  return arith::ExtUIOp::create(b, loc, i64, value);
}

Value KeptState::getFirstWord(Value slot) {
  Value words = arith::MulIOp::create(b, loc, slot, word(getSlotWords(keyValues)));
  return plus(words, word(kSlots));
}

Value KeptState::getPlace(Value first, int64_t number) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), plus(first, word(number)));
}

Value KeptState::isFilled(Value slot, ValueRange key) {
  Value first = getFirstWord(slot);
  auto equals = [&](int64_t number, Value wanted) -> Value {
    Value found = memref::LoadOp::create(b, loc, memory, ValueRange{getPlace(first, number)});
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, found, wanted);
  };
  Value result = equals(0, plus(load(kGeneration), word(1)));
  for (auto [number, value] : llvm::enumerate(key))
    result = both(result, equals(number + 1, value));
  return result;
}

void KeptState::empty(Value slot) {
  Value place = getPlace(getFirstWord(slot), 0);
  memref::StoreOp::create(b, loc, word(0), memory, ValueRange{place});
}

void KeptState::fill(Value slot, ValueRange key) {
  Value first = getFirstWord(slot);
  auto put = [&](int64_t number, Value value) {
    memref::StoreOp::create(b, loc, value, memory, ValueRange{getPlace(first, number)});
  };
  put(0, plus(load(kGeneration), word(1)));
  for (auto [number, value] : llvm::enumerate(key))
    put(number + 1, value);
}

void KeptState::noteLoads(Operation *filler, AccessAnalysis &access) {
  filler->walk([&](strips::GroupOp group) {
    StripEmitter emitter(group, access);
    AddressRanges ranges(group, access, emitter);
    for (auto loaded : group.getBody().getOps<tile::LoadOp>()) {
      AddressRange range = ranges.get(loaded.getPtr());
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(group);
      bool isKnown = range.low && range.high;
      // No address is below 0, whatever a range says.
      Value low = isKnown ? range.low : word(0), high = isKnown ? range.high : fromTop(word(0));
      Value below = fromTop(arith::MaxSIOp::create(b, loc, low, word(0)));
      store(kBelow, arith::MaxSIOp::create(b, loc, load(kBelow), below));
      store(kHigh, arith::MaxSIOp::create(b, loc, load(kHigh), high));
    }
  });
}

} // namespace tessera
