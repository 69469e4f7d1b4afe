// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileExchange.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Layout/LayoutConversion.h"

using namespace mlir;
using namespace tessera;

static unsigned at(HwDim dim) { return static_cast<unsigned>(dim); }

Value tessera::emitHasShare(ThreadBuilder &thread, const SliceShare &share) {
  Value hasShare;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp})
    if (uint64_t mask = share.mask[at(dim)]) {
      Value number = dim == HwDim::Lane ? emitLaneId(thread) : emitWarpId(thread);
      hasShare =
          thread.both(hasShare, thread.equal(thread.bitAnd(number, mask), share.value[at(dim)]));
    }
  return hasShare;
}

/// What `make` makes, where the predicate (null: always) holds, else what was there `before`;
/// anything, where that is null.
static SmallVector<Value> emitChosen(ThreadBuilder &thread, Value predicate, ArrayRef<Value> before,
                                     Type type, function_ref<SmallVector<Value>()> make) {
  if (!predicate)
    return make();
  SmallVector<Type> types(before.size(), type);
  auto branch = thread.create<scf::IfOp>(types, predicate, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(thread.getBuilder());
  thread.getBuilder().setInsertionPointToStart(branch.thenBlock());
  thread.create<scf::YieldOp>(make());
  thread.getBuilder().setInsertionPointToStart(branch.elseBlock());
  SmallVector<Value> kept;
  for (Value value : before)
    kept.push_back(value ? value : thread.create<LLVM::PoisonOp>(type));
  thread.create<scf::YieldOp>(kept);
  return llvm::to_vector_of<Value>(branch.getResults());
}

TileExchange::TileExchange(Value scratch, const LinearLayout &source,
                           const LinearLayout &destination, Type element,
                           MatrixInstructions matrices, unsigned rounds, bool ofAllThreads)
    : source(source), destination(destination), element(element),
      exchange(planRounds(source, destination, getMemoryBytes(element) * 8, matrices, rounds,
                          ofAllThreads)),
      tile(scratch, exchange.plan.memory, element, /*repeatBytes=*/0, matrices) {}

void TileExchange::store(ThreadBuilder &thread, ValueRange registers, unsigned round) const {
  SliceShare share = exchange.slices.getShare(source, round);
  SmallVector<Value> stored;
  for (uint64_t own : share.registers)
    stored.push_back(registers[own]);
  emitGuarded(thread, emitHasShare(thread, share),
              [&] { tile.store(thread, exchange.source, stored); });
}

void TileExchange::load(ThreadBuilder &thread, MutableArrayRef<Value> registers, unsigned round,
                        const Place &distance) const {
  SliceShare share = exchange.slices.getShare(destination, round);
  SmallVector<Value> before;
  for (uint64_t own : share.registers)
    before.push_back(registers[own]);
  SmallVector<Value> loaded = emitChosen(thread, emitHasShare(thread, share), before, element, [&] {
    return tile.load(thread, exchange.destination, exchange.destination.apply(distance));
  });
  for (auto [own, value] : llvm::zip_equal(share.registers, loaded))
    registers[own] = value;
}

bool TileExchange::isWithinWarps() const {
  return classify(source, destination).kind <= ConversionKind::Warp &&
         !llvm::is_contained(exchange.source.columns(HwDim::Warp), uint64_t(0));
}
