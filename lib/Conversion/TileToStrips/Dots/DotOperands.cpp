// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DotOperands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Conversion/TileArith/TotalArith.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;

namespace tessera {

strips::WriteOp findWriteOfB(strips::DotOp dot) {
  if (!dot.getB().getDefiningOp<strips::ScratchOp>())
    return {};
  DenseMap<Operation *, strips::WriteOp> writers;
  unsigned dots = 0;
  for (OpOperand &use : dot.getB().getUses()) {
    if (auto write = dyn_cast<strips::WriteOp>(use.getOwner()))
      writers[write->getParentOp()] = write;
    else if (auto other = dyn_cast<strips::DotOp>(use.getOwner());
             other && other.getA() != dot.getB() && other.getAcc() != dot.getB())
      ++dots;
    else
      return {};
  }
  if (dots != writers.size())
    return {};
  for (Operation *op = dot->getPrevNode(); op; op = op->getPrevNode()) {
    if (strips::WriteOp write = writers.lookup(op))
      return write;
    bool reads =
        op->walk([&](strips::DotOp other) {
            return other.getB() == dot.getB() ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted();
    if (reads)
      return {};
  }
  return {};
}

/// Erases what a group loads and computes in vain, and the group if nothing else remains.
static void eraseUnused(strips::GroupOp group) {
  Block &body = group.getBody().front();
  auto ops = llvm::to_vector(llvm::make_pointer_range(body.without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty() && (isa<tile::LoadOp>(op) || isPure(op)))
      op->erase();
  if (body.without_terminator().empty() && group->getNumResults() == 0)
    group.erase();
}

Value writeUntransposed(strips::DotOp dot) {
  auto scratch = dot.getB().getDefiningOp<strips::ScratchOp>();
  strips::WriteOp write = findWriteOfB(dot);
  // Not an index map: the rows of the buffer are the columns of b.
  auto trans = write ? write.getValue().getDefiningOp<tile::TransOp>() : tile::TransOp();
  if (!trans || trans.getOrder() != ArrayRef<int32_t>{1, 0} || !trans->hasOneUse() ||
      std::distance(scratch->use_begin(), scratch->use_end()) != 2)
    return {};
  auto group = dyn_cast<strips::GroupOp>(trans->getParentOp());
  auto type = cast<MemRefType>(scratch.getType());
  if (!group || group != write->getParentOp() || !type.getLayout().isIdentity() ||
      group.getShape() != type.getShape())
    return {};
  size_t writes = llvm::range_size(group.getBody().getOps<strips::WriteOp>());
  bool reads = !group.getBody().getOps<strips::ReadOp>().empty();
  if (reads || !writesOnlyFor(group, writes))
    return {};
  SmallVector<int64_t> shape = llvm::to_vector(llvm::reverse(type.getShape()));
  OpBuilder b(scratch);
  Value buffer = strips::ScratchOp::create(
      b, scratch.getLoc(), MemRefType::get(shape, type.getElementType()), scratch.getOffset());
  // A group of its own: the other tiles have another shape.
  b.setInsertionPoint(group);
  IRMapping map;
  auto own = cast<strips::GroupOp>(b.clone(*group, map));
  own.setShape(shape);
  b.setInsertionPoint(own.getBody().front().getTerminator());
  strips::WriteOp::create(b, write.getLoc(), map.lookupOrDefault(trans.getSource()), buffer);
  for (Operation &op : llvm::make_early_inc_range(own.getBody().front()))
    if (auto other = dyn_cast<strips::WriteOp>(op); other && other.getTarget() != buffer)
      other.erase();
  write.erase();
  eraseUnused(own);
  eraseUnused(group);
  return buffer;
}

bool isUnwrittenBetween(Operation *first, Operation *last, bool readsBuffer) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode()) {
    WalkResult result = op->walk([&](Operation *inner) {
      // Buffers are not the user's memory.
      bool isHarmless = isa<strips::ReadOp, tile::LoadOp>(inner) ||
                        (!readsBuffer && isa<strips::WriteOp, strips::DotOp>(inner)) ||
                        inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                        isMemoryEffectFree(inner);
      return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return false;
  }
  return true;
}

bool writesOnlyFor(strips::GroupOp group, size_t dots) {
  size_t writes = 0;
  bool onlyWrites = group->getNumResults() == 0;
  for (Operation &op : group.getBody().front().without_terminator()) {
    writes += isa<strips::WriteOp>(op);
    onlyWrites &= isa<strips::WriteOp, strips::ReadOp, tile::LoadOp>(op) ||
                  (isPure(&op) && isa<RankedTensorType>(op.getResult(0).getType()));
  }
  return onlyWrites && writes == dots;
}

Operation *findFiller(Value buffer, strips::DotOp dot) {
  Operation *filler = nullptr;
  for (Operation *user : buffer.getUsers()) {
    if (user == dot)
      continue;
    Operation *within = dot->getBlock()->findAncestorOpInBlock(*user);
    if (!within || (filler && filler != within))
      return nullptr;
    filler = within;
  }
  return filler;
}

void splitFillers(strips::DotOp dot) {
  Operation *filler = findFiller(dot.getA(), dot);
  auto group = dyn_cast_or_null<strips::GroupOp>(filler);
  if (!group || filler != findFiller(dot.getB(), dot) || !writesOnlyFor(group, 2))
    return;
  auto keepWritesOf = [](strips::GroupOp group, Value buffer) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(group.getBody().front()))) {
      auto write = dyn_cast<strips::WriteOp>(op);
      bool isNeedless = write ? write.getTarget() != buffer
                              : op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>();
      if (isNeedless)
        op.erase();
    }
  };
  auto copy = cast<strips::GroupOp>(OpBuilder(group).clone(*group));
  keepWritesOf(copy, dot.getA());
  keepWritesOf(group, dot.getB());
}

void eraseUnread(Value buffer) {
  SmallVector<Operation *> users(buffer.getUsers());
  if (users.size() != 1 || !isa<strips::WriteOp>(users[0]))
    return;
  auto group = users[0]->getParentOfType<strips::GroupOp>();
  bool isNeedless = group->getNumResults() == 0;
  for (Operation &op : group.getBody().front().without_terminator())
    isNeedless &= &op == users[0] || isa<tile::LoadOp>(op) || isPure(&op);
  if (isNeedless)
    group.erase();
}

tile::LoadOp findLoadOf(Value tile) {
  auto read = tile.getDefiningOp<strips::ReadOp>();
  if (!read)
    return tile.getDefiningOp<tile::LoadOp>();
  strips::WriteOp write;
  for (Operation *user : read.getSource().getUsers()) {
    if (isa<strips::ReadOp>(user))
      continue;
    if (write || !isa<strips::WriteOp>(user))
      return {};
    write = cast<strips::WriteOp>(user);
  }
  return write ? write.getValue().getDefiningOp<tile::LoadOp>() : tile::LoadOp();
}

bool isTileInMemory(Operation *op) { return isa<tile::LoadOp, strips::ReadOp>(op); }

bool isDecoded(Value value, function_ref<bool(Operation *)> isSource, Value &source,
               unsigned depth) {
  constexpr unsigned kMaxDepth = 12;
  Operation *op = value.getDefiningOp();
  if (!op || depth > kMaxDepth)
    return false;
  if (isSource(op)) {
    if (source && source != value)
      return false;
    source = value;
    return true;
  }
  if (auto splat = dyn_cast<tile::SplatOp>(op))
    return !isa<tile::PointerType>(splat.getSource().getType());
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  bool isElementwise = op->hasTrait<OpTrait::Elementwise>() && isPure(op) &&
                       op->getNumRegions() == 0 && !isa<tile::AddPtrOp, tile::IntToPtrOp>(op);
  return isElementwise && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isDecoded(operand, isSource, source, depth + 1);
         });
}

Value decodeVector(OpBuilder &b, Location loc, Value value, int64_t count,
                   DenseMap<Value, Value> &known) {
  if (Value kept = known.lookup(value))
    return kept;
  Operation *op = value.getDefiningOp();
  auto type = VectorType::get(count, getElementTypeOrSelf(value.getType()));
  Value result;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto element = cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
    result = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, element));
  } else if (auto scalar = dyn_cast<tile::SplatOp>(op)) {
    result = vector::BroadcastOp::create(b, loc, type, scalar.getSource());
  } else {
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) {
      return decodeVector(b, loc, operand, count, known);
    });
    if (isa<tile::BitcastOp>(op)) {
      result = operands[0].getType() == type
                   ? operands[0]
                   : arith::BitcastOp::create(b, loc, type, operands[0]).getResult();
    } else if (Value total = buildTotalArith(b, op, operands)) {
      result = total;
    } else {
      OperationState state(loc, op->getName());
      state.addOperands(operands);
      state.addTypes(type);
      state.addAttributes(op->getAttrs());
      result = b.create(state)->getResult(0);
    }
  }
  return known[value] = result;
}

} // namespace tessera
