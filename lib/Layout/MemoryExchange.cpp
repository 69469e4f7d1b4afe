// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/MemoryExchange.h"

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/MatrixCopy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace tessera {

/// Bits that one lane moves at once at most, of a word, and of one line of all banks.
static constexpr unsigned kWidestBits = 8 * GPUMachine::kMaxAccessBytes,
                          kWordBits = 8 * GPUMachine::kBankBytes,
                          kLineBits = kWordBits * GPUMachine::kBanks;

//===----------------------------------------------------------------------===//
// Costs of accesses
//===----------------------------------------------------------------------===//

/// An access of 8 (16) bytes a lane is served in two (four) phases of 16 (8) lanes.
static unsigned countPhaseBits(unsigned vectorBits, unsigned bits) {
  return std::min(2u, Log2_32(std::max(1u, (bits << vectorBits) / kWordBits)));
}

unsigned wavefronts(ArrayRef<uint64_t> lanes, unsigned vectorBits, unsigned bits) {
  unsigned phaseBits = countPhaseBits(vectorBits, bits);
  f2::Columns elements(lanes.take_front(lanes.size() > phaseBits ? lanes.size() - phaseBits : 0));
  for (unsigned bit = 0; bit < vectorBits; ++bit)
    elements.push_back(uint64_t(1) << bit);
  f2::Columns addresses;
  for (uint64_t element : elements)
    addresses.push_back(bits >= kWordBits ? element * (bits / kWordBits)
                                          : element >> Log2_32(kWordBits / bits));
  for (unsigned word = 1; word < bits / kWordBits; word *= 2)
    addresses.push_back(word);
  f2::Columns banks;
  for (uint64_t address : addresses)
    banks.push_back(address & (GPUMachine::kBanks - 1));
  return 1u << phaseBits << (f2::rank(addresses) - f2::rank(banks));
}

unsigned vectorizableBits(ArrayRef<uint64_t> registerOffsets, ArrayRef<uint64_t> otherOffsets,
                          unsigned limit) {
  unsigned usable = 0;
  while (usable < limit) {
    uint64_t low = maskTrailingOnes<uint64_t>(usable + 1);
    if (llvm::any_of(otherOffsets, [&](uint64_t offset) { return (offset & low) != 0; }))
      break;
    f2::Columns rows;
    for (uint64_t offset : registerOffsets)
      rows.push_back(offset & low);
    if (f2::rank(rows) != usable + 1)
      break;
    ++usable;
  }
  return usable;
}

MemoryAccess planAccess(const LinearLayout &layout, const LinearLayout &memory, unsigned bits,
                        bool hasMatrices) {
  std::optional<f2::Columns> address = memory.memoryOffsets();
  assert(address && "a layout of memory has one element at each offset");
  auto compose = [&](HwDim dim) {
    f2::Columns result;
    for (uint64_t column : layout.columns(dim))
      result.push_back(f2::apply(*address, column));
    return result;
  };
  f2::Columns registers = compose(HwDim::Reg), lanes = compose(HwDim::Lane), others = lanes;
  f2::Columns blocks = compose(HwDim::Block);
  llvm::append_range(others, compose(HwDim::Warp));
  llvm::append_range(others, blocks);

  MemoryAccess access;
  unsigned limit = bits >= kWidestBits ? 0 : Log2_32(kWidestBits / bits);
  access.vectorBits = vectorizableBits(registers, others, limit);
  access.instructions = 1u << (registers.size() - access.vectorBits);
  access.wavefronts = access.instructions * wavefronts(lanes, access.vectorBits, bits);
  // The rows of matrices are found from the lane and the warp.
  if (!hasMatrices || llvm::any_of(blocks, [](uint64_t offset) { return offset != 0; }))
    return access;
  std::optional<MatrixAccess> matrix = matchMatrixAccess(layout, memory, bits);
  if (!matrix)
    return access;
  MemoryAccess byMatrices;
  byMatrices.instructions = matrix->numInstructions();
  byMatrices.wavefronts = byMatrices.instructions * wavefronts(*matrix, bits);
  byMatrices.matrix = std::move(matrix);
  return byMatrices.getCost() < access.getCost() ? byMatrices : access;
}

//===----------------------------------------------------------------------===//
// Places of elements
//===----------------------------------------------------------------------===//

LinearLayout SwizzlePlan::layout(const LinearLayout &like) const {
  LinearLayout result(like.shape());
  for (const f2::Columns *part : {&vector, &bank, &segment})
    llvm::append_range(result.columns(HwDim::Offset), *part);
  return result;
}

static f2::Columns nonZero(ArrayRef<uint64_t> columns) {
  f2::Columns result;
  for (uint64_t column : columns)
    if (column)
      result.push_back(column);
  return result;
}

static f2::Columns concat(ArrayRef<uint64_t> first, ArrayRef<uint64_t> second) {
  f2::Columns result(first);
  llvm::append_range(result, second);
  return result;
}

static f2::Columns without(ArrayRef<uint64_t> columns, ArrayRef<uint64_t> taken) {
  f2::Columns result;
  for (uint64_t column : columns)
    if (!llvm::is_contained(taken, column))
      result.push_back(column);
  return result;
}

/// Moves columns for which `isLast` is true behind the others; both parts remain in order.
static void moveBack(f2::Columns &columns, llvm::function_ref<bool(uint64_t)> isLast) {
  f2::Columns last;
  llvm::erase_if(columns, [&](uint64_t column) {
    if (isLast(column))
      last.push_back(column);
    return isLast(column);
  });
  llvm::append_range(columns, last);
}

namespace {

/// Plans exchanges between two layouts. All columns are unit vectors, so that subspaces
/// are sets of columns.
class Exchange {
public:
  Exchange(const LinearLayout &source, const LinearLayout &destination, unsigned bits)
      : source(source), destination(destination), bits(bits), total(source.elementBits()),
        units(f2::unitVectors(total)), sourceRegs(nonZero(source.columns(HwDim::Reg))),
        destinationRegs(nonZero(destination.columns(HwDim::Reg))) {
    llvm::sort(sourceRegs);
    llvm::sort(destinationRegs);
  }

  SwizzlePlan planSymmetric();
  /// One side with more at once than the other; nothing if it has no more.
  std::optional<SwizzlePlan> planWider(bool widerStores);
  /// Matrix instructions on one side, plain or transposed, and vectors or matrices on the
  /// other, as far as rows go.
  std::optional<SwizzlePlan> planMatrices(bool matrixStores, bool isTransposed);

private:
  const f2::Columns &registers(bool ofStores) const {
    return ofStores ? sourceRegs : destinationRegs;
  }
  ArrayRef<uint64_t> lanes(bool ofStores) const {
    return (ofStores ? source : destination).columns(HwDim::Lane);
  }
  unsigned limit() const { return bits >= kWidestBits ? 0 : Log2_32(kWidestBits / bits); }
  /// The lanes that are served at once when each moves 2^vectorBits elements.
  f2::Columns phaseLanes(bool ofStores, unsigned vectorBits) const {
    ArrayRef<uint64_t> all = lanes(ofStores);
    unsigned phaseBits = countPhaseBits(vectorBits, bits);
    return nonZero(all.take_front(all.size() > phaseBits ? all.size() - phaseBits : 0));
  }
  SwizzlePlan complete(f2::Columns row, ArrayRef<uint64_t> wide, ArrayRef<uint64_t> narrow,
                       ArrayRef<uint64_t> wideRegs) const;

  const LinearLayout &source, &destination;
  unsigned bits, total;
  f2::Columns units, sourceRegs, destinationRegs;
};

} // namespace

/// Bank and segment bits for a row, where the lanes and the row of a phase span `wide` on
/// one side and `narrow` on the other. All of the row belongs to the wide side, which has
/// the registers `wideRegs`.
SwizzlePlan Exchange::complete(f2::Columns row, ArrayRef<uint64_t> wide, ArrayRef<uint64_t> narrow,
                               ArrayRef<uint64_t> wideRegs) const {
  SwizzlePlan plan;
  plan.vector = std::move(row);
  unsigned vectorBits = plan.vector.size();
  unsigned lineBits = Log2_32(kLineBits / bits);
  unsigned bankBits =
      std::min(lineBits > vectorBits ? lineBits - vectorBits : 0, total - vectorBits);
  unsigned segmentBits = total - vectorBits - bankBits;

  f2::Columns outside = f2::extend(concat(wide, narrow), units);
  // Bits that are in registers on both sides can number rounds: the highest address bits.
  moveBack(outside, [&](uint64_t column) {
    return llvm::is_contained(sourceRegs, column) && llvm::is_contained(destinationRegs, column);
  });
  // Unit vectors make the cheapest addresses; mixed ones only as far as needed. A bit of the row is
  // mixed last, with a register of the wide side. The order within a vector then depends on the
  // register, whose name means nothing, and not on the lane.
  f2::Columns onlyWide = without(wide, narrow), onlyNarrow = without(narrow, wide);
  auto isOfRow = [&](uint64_t column) { return llvm::is_contained(plan.vector, column); };
  auto isWideReg = [&](uint64_t column) { return llvm::is_contained(wideRegs, column); };
  moveBack(onlyWide, isOfRow);
  moveBack(onlyNarrow, isWideReg);
  unsigned ofRow = llvm::count_if(onlyWide, isOfRow), lanesAlone = onlyWide.size() - ofRow;
  f2::Columns mixed;
  for (unsigned index = 0; index < std::min(onlyWide.size(), onlyNarrow.size()); ++index) {
    // Pairs of the row come from the end, where the registers are.
    uint64_t partner = index < lanesAlone
                           ? onlyNarrow[index]
                           : onlyNarrow[onlyNarrow.size() - 1 - (index - lanesAlone)];
    mixed.push_back(onlyWide[index] ^ partner);
  }

  if (outside.size() >= segmentBits) {
    plan.segment.append(outside.end() - segmentBits, outside.end());
  } else {
    unsigned missing = segmentBits - outside.size();
    plan.segment.append(mixed.begin(), mixed.begin() + std::min<size_t>(missing, mixed.size()));
    llvm::append_range(plan.segment, outside);
    if (plan.segment.size() < segmentBits) {
      // One side has fewer lanes than the other: the rest conflicts on neither.
      f2::Columns candidates = without(concat(onlyWide, onlyNarrow), plan.vector);
      f2::Columns more = f2::extend(concat(plan.vector, plan.segment), concat(candidates, units));
      more.truncate(std::min<size_t>(more.size(), segmentBits - plan.segment.size()));
      plan.segment.insert(plan.segment.begin(), more.begin(), more.end());
    }
  }
  plan.bank = f2::extend(concat(plan.vector, plan.segment), units);
  return plan;
}

SwizzlePlan Exchange::planSymmetric() {
  ArrayRef<uint64_t> sourceWarps = source.columns(HwDim::Warp);
  ArrayRef<uint64_t> destinationWarps = destination.columns(HwDim::Warp);
  // Elements that both sides hold in neighbouring registers, up to 128 bits.
  f2::Columns row;
  for (uint64_t column : sourceRegs)
    if (row.size() < limit() && llvm::is_contained(destinationRegs, column))
      row.push_back(column);
  // Below a bank's 32 bits, anything kept together is better than lanes in one word.
  auto fill = [&](ArrayRef<uint64_t> candidates, auto allowed) {
    for (uint64_t column : candidates)
      if ((bits << row.size()) < kWordBits && column && allowed(column) &&
          !llvm::is_contained(row, column))
        row.push_back(column);
  };
  auto always = [](uint64_t) { return true; };
  fill(sourceRegs, [&](uint64_t c) { return llvm::is_contained(destinationWarps, c); });
  fill(destinationRegs, [&](uint64_t c) { return llvm::is_contained(sourceWarps, c); });
  fill(sourceWarps, [&](uint64_t c) { return llvm::is_contained(destinationWarps, c); });
  fill(sourceWarps, always);
  fill(destinationWarps, always);
  fill(units, always);

  auto reach = [&](bool ofStores) {
    return concat(row, f2::extend(row, phaseLanes(ofStores, row.size())));
  };
  return complete(row, reach(true), reach(false), /*wideRegs=*/{});
}

std::optional<SwizzlePlan> Exchange::planWider(bool widerStores) {
  const f2::Columns &wideRegs = registers(widerStores), &narrowRegs = registers(!widerStores);
  f2::Columns row;
  for (uint64_t column : wideRegs)
    if (row.size() < limit() && llvm::is_contained(narrowRegs, column))
      row.push_back(column);
  unsigned common = row.size();
  // The narrow side's lane bits are not mixed: they go along the row.
  ArrayRef<uint64_t> narrowLanes = lanes(!widerStores);
  for (bool inLanes : {true, false})
    for (uint64_t column : wideRegs)
      if (row.size() < limit() && !llvm::is_contained(narrowRegs, column) &&
          llvm::is_contained(narrowLanes, column) == inLanes)
        row.push_back(column);
  if (row.size() == common || (bits << row.size()) < kWordBits)
    return std::nullopt;
  f2::Columns wide = concat(row, f2::extend(row, phaseLanes(widerStores, row.size())));
  // Lanes that share a word do not conflict, so all of the word is the narrow side's too.
  unsigned word = bits < kWordBits ? Log2_32(kWordBits / bits) : 0;
  ArrayRef<uint64_t> own = ArrayRef(row).take_front(std::max(common, word));
  f2::Columns narrow = concat(own, f2::extend(own, phaseLanes(!widerStores, common)));
  return complete(row, wide, narrow, wideRegs);
}

std::optional<SwizzlePlan> Exchange::planMatrices(bool matrixStores, bool isTransposed) {
  ArrayRef<uint64_t> ownLanes = lanes(matrixStores);
  const f2::Columns &ownRegs = registers(matrixStores), &otherRegs = registers(!matrixStores);
  if (bits > kWordBits || ownLanes.size() != 5 ||
      (isTransposed && bits != MatrixCopy::kTransposedBits))
    return std::nullopt;
  unsigned wordBits = Log2_32(kWordBits / bits);
  ArrayRef<uint64_t> otherLanes = lanes(!matrixStores);

  f2::Columns row, addressLanes;
  if (isTransposed) {
    row = nonZero(ownLanes.drop_front(2));
    addressLanes = nonZero(ownLanes.take_front(2));
    // The first register makes pairs of rows; which is free, and best what is a lane there.
    f2::Columns pairs = without(ownRegs, row);
    moveBack(pairs, [&](uint64_t column) { return !llvm::is_contained(otherLanes, column); });
    if (pairs.empty())
      return std::nullopt;
    addressLanes.push_back(pairs.front());
  } else {
    // The word of a lane: what the other side has in registers too, else in the lanes whose
    // words a matrix of its own has.
    for (bool isShared : {true, false})
      for (uint64_t column : ownRegs)
        if (row.size() < wordBits && llvm::is_contained(otherRegs, column) == isShared)
          row.push_back(column);
    if (row.size() < wordBits)
      return std::nullopt;
    llvm::append_range(row, nonZero(ownLanes.take_front(2)));
    addressLanes = nonZero(ownLanes.drop_front(2));
  }
  if (row.size() != limit())
    return std::nullopt;

  f2::Columns wide = concat(row, f2::extend(row, addressLanes));
  // The other side: matrices with the same rows, or vectors of the start of a row.
  f2::Columns other;
  ArrayRef<uint64_t> ends = ArrayRef(row).drop_front(wordBits);
  bool matchesPlain = otherLanes.size() == 5 && ends == otherLanes.take_front(ends.size()) &&
                      llvm::all_of(ArrayRef(row).take_front(wordBits), [&](uint64_t column) {
                        return llvm::is_contained(otherRegs, column);
                      });
  bool matchesTransposed = bits == MatrixCopy::kTransposedBits && otherLanes.size() == 5 &&
                           row == otherLanes.drop_front(2);
  if (matchesPlain) {
    other = concat(row, nonZero(otherLanes.drop_front(2)));
  } else if (matchesTransposed) {
    other = concat(row, nonZero(otherLanes.take_front(2)));
    llvm::append_range(other, without(otherRegs, other).empty()
                                  ? f2::Columns()
                                  : f2::Columns{without(otherRegs, other).front()});
  } else {
    unsigned together = 0;
    while (together < row.size() && llvm::is_contained(otherRegs, row[together]))
      ++together;
    ArrayRef<uint64_t> own = ArrayRef(row).take_front(std::max(together, wordBits));
    other = concat(own, f2::extend(own, phaseLanes(!matrixStores, together)));
  }
  return complete(row, wide, other, ownRegs);
}

SwizzlePlan planSwizzle(const LinearLayout &source, const LinearLayout &destination,
                        unsigned bits) {
  return Exchange(source, destination, bits).planSymmetric();
}

ExchangePlan planExchange(const LinearLayout &source, const LinearLayout &destination,
                          unsigned bits, MatrixInstructions matrices) {
  Exchange exchange(source, destination, bits);
  ExchangePlan best;
  // The properties of a swizzle are computed from it, not assumed from its construction.
  auto consider = [&](const std::optional<SwizzlePlan> &swizzle) {
    if (!swizzle)
      return;
    ExchangePlan plan;
    plan.memory = swizzle->layout(source);
    plan.store = planAccess(source, plan.memory, bits, matrices.forStores);
    plan.load = planAccess(destination, plan.memory, bits, matrices.forLoads);
    if (best.memory.rank() == 0 || plan.getCost() < best.getCost())
      best = std::move(plan);
  };
  consider(exchange.planSymmetric());
  // Nothing is better than the widest accesses on both sides, without conflicts.
  if (best.store.instructions && (bits << best.store.vectorBits) == kWidestBits &&
      (bits << best.load.vectorBits) == kWidestBits)
    return best;
  for (bool stores : {true, false})
    consider(exchange.planWider(stores));
  for (bool stores : {true, false})
    if (stores ? matrices.forStores : matrices.forLoads)
      for (bool isTransposed : {false, true})
        consider(exchange.planMatrices(stores, isTransposed));
  return best;
}

} // namespace tessera
