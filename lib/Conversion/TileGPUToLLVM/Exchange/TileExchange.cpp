// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TileExchange.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Layout/LayoutConversion.h"

using namespace mlir;
using namespace tessera;

static unsigned indexOf(HwDim dim) { return static_cast<unsigned>(dim); }

Value tessera::emitHasShare(ThreadBuilder &thread, const SliceShare &share) {
  Value hasShare;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp})
    if (uint64_t mask = share.mask[indexOf(dim)]) {
      Value number = dim == HwDim::Lane ? emitLaneId(thread) : emitWarpId(thread);
      hasShare = thread.both(hasShare,
                             thread.equal(thread.bitAnd(number, mask), share.value[indexOf(dim)]));
    }
  return hasShare;
}

/// The result of `make` if the predicate (null: always) holds, and otherwise `before`; anything if
/// that is null.
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

/// How blocks of a cluster share a tile, if any do.
static std::optional<BlockExchange> shareBetweenBlocks(const LinearLayout &source,
                                                       const LinearLayout &destination) {
  if (source.columns(HwDim::Block).empty())
    return std::nullopt;
  return BlockExchange(source, destination);
}

TileExchange::TileExchange(Value scratch, const LinearLayout &whole, const LinearLayout &wanted,
                           Type element, MatrixInstructions ofGPU, unsigned rounds,
                           bool ofAllThreads)
    : blocks(shareBetweenBlocks(whole, wanted)), scratch(scratch),
      source(blocks ? blocks->getSource() : whole),
      destination(blocks ? blocks->getDestination() : wanted), element(element),
      // Matrices are loaded from the own block alone.
      matrices(isAcrossBlocks() ? MatrixInstructions() : ofGPU),
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

bool TileExchange::isAcrossBlocks(const Place &distance) const {
  if (!blocks)
    return false;
  uint64_t other = 0;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block})
    other ^= f2::apply(blocks->getBlockColumns(dim), distance[indexOf(dim)]);
  return other != 0 || blocks->isAcrossBlocks();
}

Value TileExchange::emitBlock(ThreadBuilder &thread, const BlockExchange::Group &group,
                              const Place &distance) const {
  Value block = thread.i32(group.block);
  uint64_t known = 0;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block}) {
    ArrayRef<uint64_t> columns = blocks->getBlockColumns(dim);
    known ^= f2::apply(columns, distance[indexOf(dim)]);
    if (llvm::any_of(columns, [](uint64_t column) { return column != 0; }))
      block = thread.bitXor(block, emitApply(thread, columns, emitPlace(thread, dim)));
  }
  return thread.bitXor(block, known);
}

void TileExchange::load(ThreadBuilder &thread, MutableArrayRef<Value> registers, unsigned round,
                        const Place &distance) const {
  if (!blocks)
    return loadPart(thread, registers, round, distance, tile);
  for (const BlockExchange::Group &group : blocks->getGroups()) {
    SmallVector<Value> ofPart;
    for (uint64_t number : group.registers)
      ofPart.push_back(registers[number]);
    SharedTile from = tile;
    if (isAcrossBlocks(distance))
      from = tile.at(emitRemoteAddress(thread, scratch, emitBlock(thread, group, distance)));
    loadPart(thread, ofPart, round, distance, from);
    for (auto [number, value] : llvm::zip_equal(group.registers, ofPart))
      registers[number] = value;
  }
}

void TileExchange::loadFrom(ThreadBuilder &thread, MutableArrayRef<Value> registers, unsigned round,
                            Value block) const {
  assert(blocks && !blocks->hasParts() && "blocks have parts of the tile");
  SharedTile from = block ? tile.at(emitRemoteAddress(thread, scratch, block)) : tile;
  loadPart(thread, registers, round, /*distance=*/{}, from);
}

void TileExchange::loadPart(ThreadBuilder &thread, MutableArrayRef<Value> registers, unsigned round,
                            const Place &distance, const SharedTile &from) const {
  SliceShare share = exchange.slices.getShare(destination, round);
  SmallVector<Value> before;
  for (uint64_t own : share.registers)
    before.push_back(registers[own]);
  SmallVector<Value> loaded = emitChosen(thread, emitHasShare(thread, share), before, element, [&] {
    return from.load(thread, exchange.destination, exchange.destination.apply(distance));
  });
  for (auto [own, value] : llvm::zip_equal(share.registers, loaded))
    registers[own] = value;
}

bool TileExchange::isWithinWarps() const {
  return classify(source, destination).kind <= ConversionKind::Warp &&
         !llvm::is_contained(exchange.source.columns(HwDim::Warp), uint64_t(0));
}
