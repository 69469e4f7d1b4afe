// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TensorMapMemory.h"

#include "Fragments/Fragment.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;

/// More than the programs that any GPU runs at once, if they have rings in shared memory.
static constexpr uint32_t kPlaces = 512;
static constexpr int32_t kMapWordBytes = 4;
static constexpr AtomicOrder kTakes = {tile::MemSemantic::Acquire, tile::MemScope::GPU},
                             kGives = {tile::MemSemantic::Release, tile::MemScope::GPU};

/// The number of a free place, which this program now owns.
static Value emitSearch(ThreadBuilder &thread, Value table, Value first) {
  const TargetHooks &hooks = thread.getHooks();
  auto loop = scf::WhileOp::create(
      thread.getBuilder(), thread.getLoc(), TypeRange(first.getType()), ValueRange(first),
      [&](OpBuilder &, Location loc, ValueRange arguments) {
        Value word = thread.advance(table, thread.mul(arguments[0], kMapWordBytes));
        Value old = hooks
                        .emitAtomic(thread, tile::AtomicKind::Exchange, kTakes, word, thread.i32(1),
                                    /*predicate=*/Value())
                        .front();
        Value isTaken = thread.compare(LLVM::ICmpPredicate::ne, old, 0);
        scf::ConditionOp::create(thread.getBuilder(), loc, isTaken, arguments);
      },
      [&](OpBuilder &, Location loc, ValueRange arguments) {
        Value next = thread.bitAnd(thread.add(arguments[0], 1), kPlaces - 1);
        scf::YieldOp::create(thread.getBuilder(), loc, next);
      });
  return loop.getResult(0);
}

/// Somewhere in the table, elsewhere than programs that run at the same time, mostly.
static Value emitFirst(ThreadBuilder &thread) {
  static constexpr uint64_t kSteps[] = {1, 37, 101};
  Value sum;
  for (auto [axis, step] : llvm::enumerate(kSteps)) {
    Value id = thread.getHooks().emitProgramId(thread, axis, /*ofClusters=*/false);
    Value moved = thread.mul(id, step);
    sum = sum ? thread.add(sum, moved) : moved;
  }
  return thread.bitAnd(sum, kPlaces - 1);
}

static void claim(tile::FuncOp kernel, ArrayRef<tilegpu::MakeTensorMapOp> maps,
                  const TargetHooks &hooks) {
  Block &body = kernel.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  ThreadBuilder thread(builder, kernel.getLoc(), hooks);
  int64_t bytesOfProgram = static_cast<int64_t>(maps.size()) * tilegpu::kTensorMapBytes;
  int64_t bytes = kPlaces * (kMapWordBytes + bytesOfProgram);
  Value table = emitZeroedMemory(thread, kernel, "tensor_maps", bytes, tilegpu::kTensorMapBytes);
  // One thread searches and broadcasts to its warp, in which all maps are made and used.
  Value isFirst = thread.equal(emitThreadId(thread), 0);
  auto branch = scf::IfOp::create(
      builder, kernel.getLoc(), isFirst,
      [&](OpBuilder &, Location loc) {
        scf::YieldOp::create(builder, loc, emitSearch(thread, table, emitFirst(thread)));
      },
      [&](OpBuilder &, Location loc) { scf::YieldOp::create(builder, loc, Value(thread.i32(0))); });
  Value place = emitShuffle(thread, branch.getResult(0), thread.i32(0));
  Value address = thread.bitcast(table, thread.intType(64));
  Value own = thread.mul(thread.extendOrTruncate(place, 64), bytesOfProgram);
  own = thread.add(thread.add(address, own), kPlaces * kMapWordBytes);
  for (auto [number, map] : llvm::enumerate(maps))
    tilegpu::MakeTensorMapOp(map).getMemoryMutable().assign(
        thread.add(own, number * tilegpu::kTensorMapBytes));
  builder.setInsertionPoint(body.getTerminator());
  emitGuarded(thread, isFirst, [&] {
    Value word = thread.advance(table, thread.mul(place, kMapWordBytes));
    hooks.emitAtomicStore(thread, kGives, word, /*width=*/32, thread.i32(0), /*predicate=*/Value());
  });
}

void tessera::claimTensorMapMemory(ModuleOp module, const TargetHooks &hooks) {
  for (auto kernel : module.getOps<tile::FuncOp>()) {
    SmallVector<tilegpu::MakeTensorMapOp> maps;
    kernel.walk([&](tilegpu::MakeTensorMapOp map) { maps.push_back(map); });
    if (!maps.empty())
      claim(kernel, maps, hooks);
  }
}
