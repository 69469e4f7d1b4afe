// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeptRows.h"

#include "DotOperands.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

/// More slots would take long to be zeroed for each call.
constexpr int64_t kMaxKeptSlots = 64;
/// Programs of a call that keeps rows. A single one finds nothing.
constexpr int64_t kMinSharers = 2;

std::optional<KeptRows> KeptRows::find(strips::DotOp dot, PackedRows form,
                                       const HostMachine &machine, int64_t &offset) {
  auto func = dot->getParentOfType<tile::FuncOp>();
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  // A part of the second-level cache. Weights pass through.
  int64_t bytes = form.elements * form.element.getIntOrFloatBitWidth() / 8;
  int64_t slots = std::min(machine.l2.bytes / 4 / bytes, kMaxKeptSlots);
  if (!func || !func.isKernel() || !(loop || dot->getParentOp() == func) || slots == 0)
    return std::nullopt;
  if (!loop)
    slots = 1;
  Operation *filler = findFiller(dot.getA(), dot);
  std::optional<SmallVector<tile::StoreOp>> stores = findStores(func);
  if (!filler || !filler->isBeforeInBlock(dot) || !stores)
    return std::nullopt;
  std::optional<SmallVector<Value>> key = findKey(filler, dot.getA());
  if (!key)
    return std::nullopt;

  KeptRows rows(dot, filler, *key, slots);
  OpBuilder b(loop ? loop.getOperation() : filler);
  Location loc = dot.getLoc();
  auto reserve = [&](int64_t elements, Type element) {
    OpBuilder front = OpBuilder::atBlockBegin(&func.getBody().front());
    auto type = MemRefType::get({elements}, element);
    Value result = strips::ScratchOp::create(front, loc, type, uint64_t(offset));
    offset +=
        llvm::alignTo(elements * element.getIntOrFloatBitWidth() / 8, HostMachine::kLineBytes);
    return result;
  };
  rows.state = reserve(kSlots + slots * KeptState::getSlotWords(key->size()), b.getI64Type());
  rows.packed = reserve((slots + 1) * form.elements, form.element);
  if (form.sums != 0)
    rows.sums = reserve((slots + 1) * form.sums, b.getI32Type());
  KeptState state(b, loc, rows.state, key->size());
  state.declare();
  AccessAnalysis access;
  state.dropAtStores(*stores, access);
  state.store(kNext, arith::ConstantIntOp::create(b, loc, 0, 64));
  return rows;
}

Value KeptRows::emit(OpBuilder &b, function_ref<void(Value slot)> pack) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(filler);
  Location loc = dot.getLoc();
  KeptState state(b, loc, this->state, key.size());
  auto word = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  };
  auto isLess = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
  };
  auto either = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(b, loc, condition, x, y);
  };
  Value slot = state.load(kNext), last = word(slots);
  // Stops at the last slot, however many iterations there are.
  Value next = arith::AddIOp::create(b, loc, slot, word(1));
  state.store(kNext, arith::MinSIOp::create(b, loc, next, last));
  Value isOn = isLess(word(kMinSharers - 1), state.load(kPrograms));
  isOn = arith::AndIOp::create(b, loc, isOn, state.isUseful(word(kMinMisses)));
  slot = either(isOn, slot, last);
  isOn = isLess(slot, last);

  SmallVector<Value> words =
      llvm::map_to_vector(key, [&](Value value) { return state.toWord(value); });
  Value no = arith::ConstantIntOp::create(b, loc, 0, 1);
  auto found = scf::IfOp::create(b, loc, TypeRange(b.getI1Type()), isOn, /*withElseRegion=*/true);
  b.setInsertionPointToStart(found.thenBlock());
  Value isFilled = state.isFilled(slot, words);
  // The first iteration tells if programs have the same rows.
  Value misses = arith::AddIOp::create(b, loc, state.load(kMisses), word(1));
  misses = either(isFilled, word(0), misses);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, slot, word(0));
  state.store(kMisses, either(isFirst, misses, state.load(kMisses)));
  scf::YieldOp::create(b, loc, isFilled);
  b.setInsertionPointToStart(found.elseBlock());
  scf::YieldOp::create(b, loc, no);
  b.setInsertionPointAfter(found);

  Value place = arith::IndexCastOp::create(b, loc, b.getIndexType(), slot);
  Value yes = arith::ConstantIntOp::create(b, loc, 1, 1);
  Value isNew = arith::XOrIOp::create(b, loc, found.getResult(0), yes);
  auto fill = scf::IfOp::create(b, loc, isNew, /*withElseRegion=*/false);
  b.setInsertionPointToStart(fill.thenBlock());
  auto keep = scf::IfOp::create(b, loc, isOn, /*withElseRegion=*/false);
  filler->moveAfter(keep);
  AccessAnalysis access;
  state.noteLoads(filler, access);
  b.setInsertionPointToStart(keep.thenBlock());
  state.fill(slot, words);
  b.setInsertionPointAfter(filler);
  pack(place);
  return place;
}

/// The part of a slot in memory that has one for each, with `columns` columns if that is not 0.
static Value getPart(OpBuilder &b, Location loc, Value memory, int64_t slots, Value slot,
                     int64_t columns) {
  auto whole = cast<MemRefType>(memory.getType());
  int64_t elements = whole.getNumElements() / slots;
  Value size = arith::ConstantIndexOp::create(b, loc, elements);
  OpFoldResult start = arith::MulIOp::create(b, loc, slot, size).getResult();
  SmallVector<int64_t> shape{elements}, strides{1};
  if (columns != 0) {
    shape = {elements / columns, columns};
    strides = {columns, 1};
  }
  auto attributes = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(
        values, [&](int64_t value) -> OpFoldResult { return b.getIndexAttr(value); });
  };
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  auto type = MemRefType::get(shape, whole.getElementType(), layout);
  return memref::ReinterpretCastOp::create(b, loc, type, memory, start, attributes(shape),
                                           attributes(strides));
}

Value KeptRows::getRows(OpBuilder &b, Value slot, int64_t columns) const {
  return getPart(b, packed.getLoc(), packed, slots + 1, slot, columns);
}

Value KeptRows::getSums(OpBuilder &b, Value slot) const {
  return getPart(b, sums.getLoc(), sums, slots + 1, slot, /*columns=*/0);
}

} // namespace tessera
