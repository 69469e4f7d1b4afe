// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LayoutCosts.h"

#include "LayoutRules.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Layout/BlockExchange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static unsigned countColumns(const LinearLayout &layout, HwDim dim, uint64_t mask) {
  return llvm::count_if(layout.columns(dim), [&](uint64_t column) { return column & mask; });
}

double LayoutCosts::convert(int64_t bytes, LayoutAttr from, LayoutAttr to) const {
  double words = std::max<int64_t>(1, bytes / 4);
  double written = to.getNumRegisters();
  Conversion conversion = classify(from.getLayout(), to.getLayout());
  if (conversion.kind == ConversionKind::Rename)
    return 0;
  if (conversion.kind == ConversionKind::Select)
    return warps * written * words;
  if (!needsMemory(conversion, bytes))
    return warps * written * words * costs.shuffle * countShuffles(conversion);
  double wait = conversion.kind == ConversionKind::Warp ? costs.meetLanes : costs.meetWarps,
         remote = 1;
  LinearLayout source = from.getLayout(), destination = to.getLayout();
  if (from.getNumBlocks() > 1) {
    BlockExchange blocks(source, destination);
    if (blocks.isAcrossBlocks()) {
      // Blocks meet again before the memory is used for something else.
      wait = 2 * costs.meetBlocks;
      remote = costs.remote * blocks.getGroups().size();
    }
    source = blocks.getSource();
    destination = blocks.getDestination();
  }
  // As few rounds as can be, should nothing else be there.
  int64_t total = bytes;
  for (int64_t extent : source.shape())
    total *= extent;
  SmallVector<unsigned> possible = getPossibleRounds(source, destination);
  const unsigned *fitting =
      llvm::lower_bound(possible, llvm::divideCeil(total, machine.sharedBytes));
  unsigned rounds = fitting == possible.end() ? possible.back() : *fitting;
  RoundedExchange exchange = planRounds(source, destination, bytes * 8, matrices, rounds);
  return warps * exchange.cost * remote + wait * rounds;
}

double LayoutCosts::ofConversion(Type element, LayoutAttr from, LayoutAttr to) {
  if (from == to)
    return 0;
  int64_t bytes = getElementBytes(element);
  auto [slot, inserted] = conversions.try_emplace({from, to, bytes}, 0);
  if (inserted)
    slot->second = convert(bytes, from, to);
  return slot->second;
}

/// Many registers leave room for fewer programs, so that less of each one's latency is hidden.
double LayoutCosts::ofKeeping(Value tile, LayoutAttr layout) const {
  // Not of a GPU: tiles with so few decide little.
  constexpr double kFreeRegisters = 32;
  const LinearLayout &places = layout.getLayout();
  // Elements that the op repeats are kept once.
  uint64_t kept = ~uint64_t(0);
  if (Operation *op = tile.getDefiningOp(); op && tile::movesOneTile(op)) {
    AffineMap map = tile::getSourceMap(op->getOpOperand(0));
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      if (!map.isFunctionOfDim(dim))
        kept &= ~places.dimMask(dim);
  }
  double registers = layout.getNumRegisters();
  for (uint64_t column : places.columns(HwDim::Reg))
    if (column != 0 && (column & kept) == 0)
      registers /= 2;
  registers *= std::max(1.0, double(getElementBytes(getElementTypeOrSelf(tile.getType()))) / 4);
  return warps * std::max(0.0, registers - kFreeRegisters);
}

double LayoutCosts::ofAccess(Operation *op, LayoutAttr label) {
  auto slot = patterns.find(op);
  if (slot == patterns.end())
    slot = patterns.try_emplace(op, getAccessPattern(op, analysis)).first;
  const AccessPattern &pattern = slot->second;
  double registers = label.getNumRegisters();
  // An access looks up each line that it touches, and moves sectors.
  unsigned sectors = pattern.countBlocks(label.getLayout(), GPUMachine::kSectorBytes);
  unsigned lines = pattern.countBlocks(label.getLayout(), GPUMachine::kLineBytes);
  double issue = costs.access, sector = costs.sector, line = costs.line;
  // The cache executes each atomic separately.
  if (!isa<tile::LoadOp, tile::StoreOp, AsyncCopyOp>(op)) {
    issue = costs.globalAtomic;
    sector = costs.atomicSector;
  }
  unsigned merged = pattern.vectorBits(label.getLayout());
  // Registers with one address take one load.
  if (auto load = dyn_cast<tile::LoadOp>(op); load && !load.getIsVolatile() && merged == 0)
    merged = pattern.repeatBits(label.getLayout());
  double accesses = registers / (1u << merged);
  return warps * accesses * (issue + sector * sectors + line * lines);
}

double LayoutCosts::ofReduction(LayoutAttr label, unsigned axis) {
  const LinearLayout &layout = label.getLayout();
  uint64_t mask = layout.dimMask(axis);
  double registers = label.getNumRegisters();
  double left = registers / (layout.oddFactor(axis) << countColumns(layout, HwDim::Reg, mask));
  double cost = warps * registers;
  cost += warps * left * countColumns(layout, HwDim::Lane, mask) * (costs.exchange + 1);
  if (countColumns(layout, HwDim::Warp, mask))
    cost += warps * left * 2 * costs.exchange + 2 * costs.barrier;
  if (countColumns(layout, HwDim::Block, mask))
    cost += warps * left * 2 * costs.exchange * costs.remote + 2 * costs.meetBlocks;
  return cost;
}

/// The parts of the hardware that have the bits of a dimension, from the lowest bit on. Bits of
/// no register, lane, warp or block are in none.
static SmallVector<std::optional<HwDim>> findAxisBits(const LinearLayout &layout, unsigned axis) {
  SmallVector<std::optional<HwDim>> found(layout.dimBits(axis));
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp, HwDim::Block})
    for (uint64_t column : layout.columns(dim))
      if (uint64_t bits = column & layout.dimMask(axis))
        found[llvm::countr_zero(bits) - layout.dimShift(axis)] = dim;
  return found;
}

static bool isAcrossWarps(std::optional<HwDim> dim) {
  return dim == HwDim::Warp || dim == HwDim::Block;
}

/// As Ops/ScanOp.cpp does it: a thread folds runs of neighbours, lanes the totals of runs, and each
/// element is combined with what is before its run. All threads read the totals of all warps.
double LayoutCosts::ofScan(LayoutAttr label, unsigned axis) {
  const LinearLayout &layout = label.getLayout();
  SmallVector<std::optional<HwDim>> bits = findAxisBits(layout, axis);
  auto *inLanes = llvm::find_if_not(bits, [](auto dim) { return dim == HwDim::Reg; });
  auto *above = std::find_if_not(inLanes, bits.end(), [](auto dim) { return dim == HwDim::Lane; });
  auto *first = std::find_if(above, bits.end(), isAcrossWarps);
  if (llvm::is_contained(llvm::make_range(above, bits.end()), HwDim::Lane))
    return ofScanByBits(label, axis);

  double registers = label.getNumRegisters();
  double runs = registers / double(uint64_t(1) << (inLanes - bits.begin()));
  bool hasLanes = inLanes != above, hasRuns = inLanes != bits.begin();
  // Folds of threads, then folds and choices of lanes.
  double cost = registers + (registers - runs);
  cost += (above - inLanes) * runs * (costs.exchange + 2);
  if (inLanes == bits.end())
    return warps * cost;
  // Each element is combined with what is before its run. The first run of a line also chooses.
  double lines = runs, ofWarps = runs / double(uint64_t(1) << (first - above));
  for (std::optional<HwDim> dim : llvm::make_range(above, bits.end()))
    if (dim == HwDim::Reg)
      lines /= 2;
  if (hasRuns)
    cost += registers - runs + lines * (registers / runs - 1);
  if (hasRuns && hasLanes)
    cost += runs * costs.exchange;
  if (above == bits.end())
    return warps * cost;
  // Totals of runs, and their folds within a warp.
  cost += runs + 2 * (runs - ofWarps);
  if (hasLanes)
    cost += runs * costs.exchange + runs;
  if (first == bits.end())
    return warps * cost;
  // An access reads 4 totals for each of 8 lines.
  constexpr double kTotalsPerAccess = 4, kLinesPerAccess = 8;
  unsigned linesOfLanes =
      1u << (countColumns(layout, HwDim::Lane, ~uint64_t(0)) - (above - inLanes));
  double perAccess = kTotalsPerAccess / std::max(1.0, linesOfLanes / kLinesPerAccess);
  double totals = ofWarps, wait = 2 * costs.barrier, remote = 1;
  unsigned open = 0;
  for (std::optional<HwDim> dim : llvm::make_range(first, bits.end())) {
    if (!isAcrossWarps(dim))
      continue;
    totals *= 2;
    ++open;
    if (dim == HwDim::Block) {
      remote = costs.remote;
      wait = 2 * costs.meetBlocks;
    }
  }
  cost += (ofWarps + totals / perAccess) * costs.exchange * remote;
  // Each warp chooses the total before its own.
  cost += totals + ofWarps * ((1u << open) - 1) + lines;
  return warps * cost + wait;
}

/// Bit after bit of the axis. Elements take the last element of the half before theirs: registers
/// that follow each other take the same one, which lanes shuffle once. Runs of warps have totals,
/// all of which each thread reads.
double LayoutCosts::ofScanByBits(LayoutAttr label, unsigned axis) {
  const LinearLayout &layout = label.getLayout();
  double registers = label.getNumRegisters(), runs = registers, cost = registers;
  SmallVector<std::optional<HwDim>> bits = findAxisBits(layout, axis);
  auto *first = llvm::find_if(bits, isAcrossWarps);
  bool hasLanes = false;
  for (std::optional<HwDim> dim : llvm::make_range(bits.begin(), first)) {
    if (dim == HwDim::Lane) {
      // Each element is added to, and is chosen.
      cost += runs * costs.exchange + 2 * registers;
      hasLanes = true;
    } else if (dim == HwDim::Reg) {
      cost += registers / 2;
      runs /= 2;
      if (hasLanes)
        cost += runs * costs.exchange;
    }
  }
  if (first == bits.end())
    return warps * cost;
  if (llvm::is_contained(llvm::make_range(first, bits.end()), HwDim::Lane)) {
    // The whole tile moves to threads that have all of a row, and back.
    cost += 4 * registers * costs.exchange;
    return warps * cost + 4 * costs.barrier;
  }
  constexpr double kTotalsPerAccess = 4;
  double totals = runs, wait = 2 * costs.barrier, remote = 1;
  unsigned open = 0;
  for (std::optional<HwDim> dim : llvm::make_range(first, bits.end())) {
    if (dim == HwDim::Block) {
      remote = costs.remote;
      wait = 2 * costs.meetBlocks;
    }
    if (isAcrossWarps(dim)) {
      totals *= 2;
      ++open;
    }
  }
  if (hasLanes)
    cost += runs * costs.exchange;
  cost += (runs + totals / kTotalsPerAccess) * costs.exchange * remote;
  for (std::optional<HwDim> dim : llvm::make_range(first, bits.end())) {
    cost += totals / 2;
    if (!isAcrossWarps(dim)) {
      cost += registers / 2;
      continue;
    }
    // Further warps have a total each, of which one is chosen.
    --open;
    cost += 2 * registers + runs * ((1u << open) - 1);
  }
  return warps * cost + wait;
}

/// Each thread loads and adds as much as it has: its part of what all blocks have.
double LayoutCosts::ofClusterSum(Operation *op, LayoutAttr label) {
  double words = std::max<int64_t>(1, getElementBytes(getElementTypeOrSelf(op->getResult(0))) / 4);
  double loads = label.getNumRegisters() * words;
  return warps * loads * (costs.exchange * costs.remote + 1) + 2 * costs.meetBlocks;
}

/// Each bit of the axis is compared and exchanged once for each bit from it upwards.
double LayoutCosts::ofSort(LayoutAttr label, unsigned axis) {
  const LinearLayout &layout = label.getLayout();
  double registers = label.getNumRegisters(), cost = 0;
  unsigned shift = layout.dimShift(axis), bits = layout.dimBits(axis);
  for (unsigned bit = 0; bit < bits; ++bit) {
    uint64_t column = uint64_t(1) << (shift + bit);
    double step = 2 * warps * registers;
    if (llvm::is_contained(layout.columns(HwDim::Lane), column))
      step += warps * registers * costs.exchange;
    if (llvm::is_contained(layout.columns(HwDim::Warp), column))
      step += 2 * warps * registers * costs.exchange + 2 * costs.barrier;
    if (llvm::is_contained(layout.columns(HwDim::Block), column))
      step += 2 * warps * registers * costs.exchange * costs.remote + 2 * costs.meetBlocks;
    cost += step * (bits - bit);
  }
  return cost;
}

/// By multiply-add, with operands read from shared memory: a block of rows and columns in
/// registers uses each element of an operand several times.
double LayoutCosts::ofDot(Operation *op, LayoutAttr label) {
  const LinearLayout &layout = label.getLayout();
  unsigned m = layout.rank() - 2, n = layout.rank() - 1;
  double rows = uint64_t(layout.oddFactor(m))
                << countColumns(layout, HwDim::Reg, layout.dimMask(m));
  double columns = uint64_t(layout.oddFactor(n))
                   << countColumns(layout, HwDim::Reg, layout.dimMask(n));
  double registers = label.getNumRegisters();
  double inner = tile::getShape(op->getOperand(0).getType()).back();
  double readsA = registers / columns, readsB = registers / rows;
  if (isa<tile::DotOp>(op) && layout.rank() == 2) {
    readsA = ofDotReads(op->getOperand(0), layout.project(n), /*k=*/n).value_or(readsA);
    readsB = ofDotReads(op->getOperand(1), layout.project(m), /*k=*/m).value_or(readsB);
  }
  return warps * inner * (registers + (readsA + readsB) * costs.exchange);
}

/// The cost of reading an operand of a dot for one step along k from shared memory, as
/// tilegpu-prefetch does; nothing if it is not there.
std::optional<double> LayoutCosts::ofDotReads(Value operand, const LinearLayout &slice,
                                              unsigned k) {
  auto load = operand.getDefiningOp<LocalLoadOp>();
  if (!load || !operand.hasOneUse())
    return std::nullopt;
  MemDescType buffer = load.getBuffer().getType();
  const LinearLayout &memory = buffer.getLayout().getLayout();
  // As many steps at once as words of 16 bytes have.
  unsigned steps = std::min(2u, memory.dimBits(k));
  LinearLayout part(memory.shape());
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp, HwDim::Block})
    for (uint64_t column : slice.columns(dim)) {
      SmallVector<int64_t> place = slice.coordinates(column);
      place.insert(place.begin() + k, 0);
      part.columns(dim).push_back(part.element(place));
    }
  for (unsigned bit = 0; bit < steps; ++bit)
    part.columns(HwDim::Reg).push_back(uint64_t(1) << (part.dimShift(k) + bit));
  MemoryAccess access =
      planAccess(part, memory, getElementBytes(buffer.getElementType()) * 8, /*hasMatrices=*/false);
  return memory.oddFactor(1 - k) * access.getCost() / (1u << steps);
}

/// Between registers and shared memory.
double LayoutCosts::ofMove(MemDescType buffer, LayoutAttr label, bool hasMatrices) {
  MemoryAccess access = planAccess(label.getLayout(), buffer.getLayout().getLayout(),
                                   getElementBytes(buffer.getElementType()) * 8, hasMatrices);
  double repeats = double(label.getNumRegisters()) /
                   double(uint64_t(1) << label.getLayout().columns(HwDim::Reg).size());
  return warps * repeats * access.getCost();
}

double LayoutCosts::ofOp(Operation *op, LayoutAttr label) {
  tile::ElementCost cost = tile::getElementCost(op);
  if (cost == tile::ElementCost::None ||
      isa<tile::CallOp, tile::ReturnOp, tile::PrintOp, tile::AssertOp>(op))
    return 0;
  if (getAccessedPointers(op))
    return ofAccess(op, label);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return reduce.getNumOperands() * ofReduction(label, reduce.getAxis());
  if (auto scan = dyn_cast<tile::ScanOp>(op))
    return scan.getNumOperands() * ofScan(label, scan.getAxis());
  if (auto sort = dyn_cast<tile::SortOp>(op))
    return sort.getNumOperands() * ofSort(label, sort.getAxis());
  if (isa<ClusterSumOp>(op))
    return ofClusterSum(op, label);
  if (isa<tile::DotOp, tile::DotScaledOp>(op))
    return ofDot(op, label);
  // There is one layout for them.
  if (isa<DotOpInterface, GroupWaitOpInterface>(op))
    return 0;
  if (auto alloc = dyn_cast<LocalAllocOp>(op))
    return ofMove(alloc.getType(), label, matrices.forStores);
  if (auto store = dyn_cast<LocalStoreOp>(op))
    return ofMove(store.getBuffer().getType(), label, matrices.forStores);
  if (auto load = dyn_cast<LocalLoadOp>(op))
    return ofMove(load.getBuffer().getType(), label, matrices.forLoads);
  double registers = label.getNumRegisters();
  if (isa<tile::HistogramOp>(op))
    return warps * registers * costs.atomic;
  if (isa<tile::GatherOp, RenumberOp>(op))
    return warps * registers * 2 * costs.exchange + 2 * costs.barrier;
  return warps * registers * (cost == tile::ElementCost::Function ? costs.function : 1);
}
