// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A non-temporal store saves the read of the line that it writes, a third of the traffic of an
// addition. It also leaves the caches to loads. It is slower if the line is in a cache, or is
// loaded soon after. So it is used only for arrays that the kernel does not read, each element of
// which a program writes once. The launch must write more than the caches hold, which
// strips.exceeds_caches decides. If a launch passes one array as two arguments, the lines of the
// result have just been loaded, and its stores are as any others.
//
// Such stores are not ordered with others. So kernels in which programs may exchange results (by
// atomics, barriers and the like) have none. The launcher orders them at the end of a launch.

#include "NonTemporalStores.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

using namespace mlir;

namespace tessera {

static bool isPointer(Value value) {
  return isa<tile::PointerType>(getElementTypeOrSelf(value.getType()));
}

/// Calls `visit` on a value and all that it is computed from, around loops too. False as
/// soon as `visit` is.
static bool walkSources(Value value, function_ref<bool(Value)> visit,
                        function_ref<bool(Operation *, OpOperand &)> follows) {
  SmallVector<Value> work{value};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value source = work.pop_back_val();
    if (!seen.insert(source).second)
      continue;
    if (!visit(source))
      return false;
    if (auto argument = dyn_cast<BlockArgument>(source)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop || argument == loop.getInductionVar())
        continue;
      unsigned number = argument.getArgNumber() - 1;
      work.push_back(loop.getInitArgs()[number]);
      work.push_back(loop.getYieldedValues()[number]);
      continue;
    }
    Operation *op = source.getDefiningOp();
    unsigned number = cast<OpResult>(source).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      work.push_back(loop.getRegionIterArgs()[number]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
        work.push_back(region->front().getTerminator()->getOperand(number));
    } else {
      for (OpOperand &operand : op->getOpOperands())
        if (follows(op, operand))
          work.push_back(operand.get());
    }
  }
  return true;
}

/// Adds the kernel's arguments that pointers come from; false if they may come from
/// elsewhere.
static bool findArrays(Value pointers, DenseSet<Value> &arrays) {
  return walkSources(
      pointers,
      [&](Value value) {
        if (auto argument = dyn_cast<BlockArgument>(value)) {
          Operation *parent = argument.getOwner()->getParentOp();
          if (isa<tile::FuncOp>(parent))
            arrays.insert(value);
          return isa<tile::FuncOp, scf::ForOp>(parent);
        }
        Operation *op = value.getDefiningOp();
        return tile::movesOneTile(op) ||
               isa<tile::AddPtrOp, arith::SelectOp, scf::ForOp, scf::IfOp>(op);
      },
      [](Operation *, OpOperand &operand) { return isPointer(operand.get()); });
}

NonTemporalStores::NonTemporalStores(tile::FuncOp kernel) {
  isPossible = kernel.isKernel();
  kernel.walk([&](Operation *op) {
    // Operations of other dialects stand for parts of these, and declare less.
    if (op != kernel && isa_and_present<tile::TileDialect>(op->getDialect()))
      isPossible = isPossible && !mayMeetOtherPrograms(op);
    if (auto load = dyn_cast<tile::LoadOp>(op))
      isPossible = isPossible && findArrays(load.getPtr(), read);
  });
}

bool NonTemporalStores::mayBeNonTemporal(tile::StoreOp store) {
  DenseSet<Value> written;
  if (!isPossible || !findArrays(store.getPtr(), written) ||
      llvm::any_of(written, [&](Value array) { return read.contains(array); }))
    return false;
  // In each iteration of a loop another place.
  DenseSet<Operation *> needed;
  for (Operation *op = store->getParentOp(); !isa<tile::FuncOp>(op); op = op->getParentOp()) {
    if (isa<LoopLikeOpInterface>(op))
      needed.insert(op);
    else if (!isa<scf::IfOp, strips::GroupOp>(op))
      return false;
  }
  walkSources(
      store.getPtr(),
      [&](Value value) {
        if (auto argument = dyn_cast<BlockArgument>(value))
          needed.erase(argument.getOwner()->getParentOp());
        return true;
      },
      [](Operation *, OpOperand &) { return true; });
  return needed.empty();
}

Value NonTemporalStores::buildIsApart(OpBuilder &builder, tile::StoreOp store) {
  DenseSet<Value> written;
  findArrays(store.getPtr(), written);
  Location loc = store.getLoc();
  auto getAddress = [&](Value array) -> Value {
    return tile::PtrToIntOp::create(builder, loc, builder.getI64Type(), array);
  };
  Value result;
  auto kernel = store->getParentOfType<tile::FuncOp>();
  for (Value array : kernel.getArguments()) {
    if (!read.contains(array))
      continue;
    for (Value other : kernel.getArguments()) {
      if (!written.contains(other))
        continue;
      Value differs = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                            getAddress(array), getAddress(other));
      result = result ? Value(arith::AndIOp::create(builder, loc, result, differs)) : differs;
    }
  }
  return result;
}

Value NonTemporalStores::buildBytes(OpBuilder &builder, tile::StoreOp store) {
  Location loc = store.getLoc();
  auto pointers = store.getPtr().getType();
  auto pointer = cast<tile::PointerType>(getElementTypeOrSelf(pointers));
  int64_t elements = ShapedType::getNumElements(tile::getShape(pointers));
  Type i64 = builder.getI64Type();
  Value bytes =
      arith::ConstantIntOp::create(builder, loc, elements * pointer.getPointeeBytes(), 64);
  for (auto loop = store->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>()) {
    auto widen = [&](Value value) -> Value {
      if (value.getType().isIndex())
        return arith::IndexCastOp::create(builder, loc, i64, value);
      return value.getType() == i64 ? value : arith::ExtSIOp::create(builder, loc, i64, value);
    };
    Value lower = widen(loop.getLowerBound()), upper = widen(loop.getUpperBound());
    Value distance = arith::SubIOp::create(builder, loc, upper, lower);
    Value one = arith::ConstantIntOp::create(builder, loc, 1, 64);
    // Inside the loop its step is positive, and its end beyond its begin.
    Value step = arith::MaxSIOp::create(builder, loc, widen(loop.getStep()), one);
    Value iterations = arith::DivUIOp::create(builder, loc, distance, step);
    iterations = arith::MaxUIOp::create(builder, loc, iterations, one);
    bytes = arith::MulIOp::create(builder, loc, bytes, iterations);
  }
  return bytes;
}

} // namespace tessera
