// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopSlice.h"

#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// The loaded tile that an op reads from the ring that it is copied to (`readFromRing`). Null of
/// another op. An address that depends on such a tile is computed from the tile itself, for the
/// ring has it only when its iteration comes.
static Value getTileInRing(Operation *op) {
  auto read = dyn_cast<LocalLoadOp>(op);
  auto buffer =
      read && !read.getFirst() ? read.getBuffer().getDefiningOp<LocalAllocOp>() : LocalAllocOp();
  auto load = buffer && buffer->getBlock() == op->getBlock() && buffer.getSource()
                  ? buffer.getSource().getDefiningOp<tile::LoadOp>()
                  : tile::LoadOp();
  return load && load.getType() == read.getType() ? load.getResult() : Value();
}

std::string LoopSlice::add(Value value) {
  SmallVector<Value> work{value};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
        continue;
      unsigned index = argument.getArgNumber() - 1;
      if (carried.insert(index))
        work.push_back(loop.getYieldedValues()[index]);
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (op->getBlock() != loop.getBody() || !ops.insert(op).second)
      continue;
    if (isDot(op))
      return "its address depends on a dot";
    if (Value tile = getTileInRing(op)) {
      work.push_back(tile);
      continue;
    }
    auto load = dyn_cast<tile::LoadOp>(op);
    if (load && mayWriteMemory(load))
      return "its address depends on a volatile load";
    if (op->getDialect() == op->getContext()->getLoadedDialect<scf::SCFDialect>())
      return "its address is computed in a branch or a loop";
    if (!load && !isMemoryEffectFree(op))
      return "its address depends on an op with effects";
    llvm::append_range(work, op->getOperands());
  }
  return "";
}

SmallVector<tile::LoadOp> LoopSlice::getLoads() const {
  SmallVector<tile::LoadOp> loads;
  for (auto load : scf::ForOp(loop).getBody()->getOps<tile::LoadOp>())
    if (ops.contains(load))
      loads.push_back(load);
  return loads;
}

/// A load that touches memory only if `condition` holds too.
static void guard(OpBuilder &builder, tile::LoadOp load, Value condition) {
  builder.setInsertionPoint(load);
  Value mask = condition;
  if (auto tile = dyn_cast<RankedTensorType>(load.getPtr().getType()))
    mask = tile::SplatOp::create(
        builder, load.getLoc(),
        RankedTensorType::get(tile.getShape(), builder.getI1Type(), tile.getEncoding()), mask);
  if (load.getMask())
    mask = arith::AndIOp::create(builder, load.getLoc(), load.getMask(), mask);
  load.getMaskMutable().assign(mask);
  builder.setInsertionPointAfter(load);
}

void LoopSlice::emit(OpBuilder &builder, IRMapping &mapping, Value condition,
                     SmallVectorImpl<Value> &ahead) const {
  scf::ForOp of = loop;
  for (auto [index, value] : llvm::zip_equal(carried, ahead))
    mapping.map(of.getRegionIterArg(index), value);
  for (Operation &op : of.getBody()->without_terminator()) {
    if (!ops.contains(&op))
      continue;
    if (Value tile = getTileInRing(&op)) {
      mapping.map(op.getResult(0), mapping.lookupOrDefault(tile));
      continue;
    }
    Operation *copy = builder.clone(op, mapping);
    if (auto load = dyn_cast<tile::LoadOp>(copy); load && condition)
      guard(builder, load, condition);
  }
  for (auto [index, value] : llvm::zip_equal(carried, ahead))
    value = mapping.lookupOrDefault(of.getYieldedValues()[index]);
}

namespace {

/// The needed ops, from effects and results backwards.
class Liveness {
public:
  Liveness(scf::ForOp loop, const llvm::SmallDenseSet<Operation *, 16> &replaced)
      : loop(loop), replaced(replaced), carried(loop.getNumRegionIterArgs()) {
    for (Operation &op : loop.getBody()->without_terminator())
      if (!replaced.contains(&op) && !isMemoryEffectFree(&op) && !isUnusedLoad(&op))
        need(&op);
    for (unsigned index = 0; index < carried.size(); ++index)
      if (!loop.getResult(index).use_empty())
        need(loop.getRegionIterArg(index));
    while (!work.empty())
      visit(work.pop_back_val());
  }

  llvm::DenseSet<Operation *> ops;

  SmallVector<unsigned> getCarried() const {
    SmallVector<unsigned> result;
    for (auto [index, isNeeded] : llvm::enumerate(carried))
      if (isNeeded)
        result.push_back(index);
    return result;
  }

private:
  /// A load is there for its result.
  static bool isUnusedLoad(Operation *op) {
    auto load = dyn_cast<tile::LoadOp>(op);
    return load && !load.getIsVolatile();
  }
  void need(Operation *op) {
    if (ops.insert(op).second)
      work.push_back(op);
  }
  void need(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
        return;
      unsigned index = argument.getArgNumber() - 1;
      if (!carried[index]) {
        carried[index] = true;
        need(loop.getYieldedValues()[index]);
      }
      return;
    }
    if (Operation *op = value.getDefiningOp(); op->getBlock() == loop.getBody())
      need(op);
  }
  void visit(Operation *op) {
    if (isa<tile::LoadOp>(op) && replaced.contains(op))
      return;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        need(operand);
    });
  }

  scf::ForOp loop;
  const llvm::SmallDenseSet<Operation *, 16> &replaced;
  SmallVector<bool> carried;
  SmallVector<Operation *> work;
};

} // namespace

llvm::DenseSet<Operation *>
tessera::tilegpu::getLiveOps(scf::ForOp loop,
                             const llvm::SmallDenseSet<Operation *, 16> &replaced) {
  return Liveness(loop, replaced).ops;
}

SmallVector<unsigned>
tessera::tilegpu::getLiveCarried(scf::ForOp loop,
                                 const llvm::SmallDenseSet<Operation *, 16> &replaced) {
  return Liveness(loop, replaced).getCarried();
}
