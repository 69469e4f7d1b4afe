// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running folds along an axis, one bit of the position after the other from the lowest. An element
// whose bit is set is combined with the last element whose bit is not, all else equal. That one is
// the fold of all before it.
//
//     position   0    1    2    3
//     bit 0      a    ab   c    cd
//     bit 1      a    ab   abc  abcd      2 and 3 take position 1's
//
// The place of that last element is a linear function of one's own place: registers are known when
// compiling, lanes are a shuffle. Bits in warps come after all bits in lanes (in nearly every
// layout). By then a warp's run has one total, and the totals of all warps go through shared memory
// into registers. If the order differs, the whole tile does. For a scan from the end, bits that are
// set and not set change roles.

#include "Exchange/ConvertLayout.h"
#include "Exchange/ScratchMemory.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

namespace {

class Scan {
public:
  Scan(ThreadBuilder &thread, const CombineRegion &combine, bool isReverse, AxisFragment fragment)
      : thread(thread), combine(combine), isReverse(isReverse), x(std::move(fragment)),
        axis(x.axis), bits(x.layout.dimBits(axis)) {}

  /// Everything that registers and lanes have of the bits below `limit`.
  void scanWithinWarps(unsigned limit);
  /// The bits from `first` on, whose totals go through memory at `scratch`.
  void scanAcrossWarps(unsigned first, const AxisExchange &exchange, TypeRange types,
                       Value scratch);
  /// Whole runs of 2^k after one another.
  void scanRepeats();

  AxisFragment &get() { return x; }

private:
  /// Mask of the bits of a part of the place that are bits of the axis in [from, to).
  uint64_t getPlaceMask(const LinearLayout &layout, HwDim dim, unsigned from, unsigned to) const;
  bool isSet(uint64_t number, uint64_t mask) const { return ((number & mask) != 0) != isReverse; }
  /// `number` with these bits as the last element of a run has them, or the first.
  uint64_t setBits(uint64_t number, uint64_t mask) const {
    return isReverse ? number & ~mask : number | mask;
  }
  uint64_t clearBits(uint64_t number, uint64_t mask) const {
    return isReverse ? number | mask : number & ~mask;
  }
  /// True if the bit of this thread's lane, warp or block number is set.
  Value emitIsSet(Value number, uint64_t mask);
  Group shuffle(const Group &group, Value lane);
  Group select(Value condition, const Group &a, const Group &b);
  void set(AxisFragment &fragment, int64_t number, const Group &group) const {
    for (auto [registers, value] : llvm::zip_equal(fragment.operands, group))
      registers[number] = value;
  }
  /// The lane of the last element of a run, as far as lanes are along the axis.
  Value emitLastLane(uint64_t mask);
  /// The total at `along` of the totals' axis, for the other coordinates of register
  /// `number`; bits in `open` are those of the thread's warp.
  Group chooseTotal(int64_t number, int64_t along, ArrayRef<std::pair<unsigned, Value>> open);

  ThreadBuilder &thread;
  const CombineRegion &combine;
  bool isReverse;
  AxisFragment x;
  unsigned axis, bits;
  /// The fold of each run that a warp has, from all warps; empty where none is needed.
  std::optional<AxisFragment> totals;
};

} // namespace

uint64_t Scan::getPlaceMask(const LinearLayout &layout, HwDim dim, unsigned from,
                            unsigned to) const {
  uint64_t mask = 0;
  for (auto [index, column] : llvm::enumerate(layout.columns(dim)))
    if (std::optional<unsigned> bit = getAxisBit(layout, axis, column))
      if (*bit >= from && *bit < to)
        mask |= uint64_t(1) << index;
  return mask;
}

Value Scan::emitIsSet(Value number, uint64_t mask) {
  return thread.compare(isReverse ? LLVM::ICmpPredicate::eq : LLVM::ICmpPredicate::ne,
                        thread.bitAnd(number, mask), 0);
}

Group Scan::shuffle(const Group &group, Value lane) {
  Group moved;
  for (Value value : group)
    moved.push_back(emitShuffle(thread, value, lane));
  return moved;
}

Group Scan::select(Value condition, const Group &a, const Group &b) {
  Group chosen;
  for (auto [x, y] : llvm::zip_equal(a, b))
    chosen.push_back(thread.select(condition, x, y));
  return chosen;
}

Value Scan::emitLastLane(uint64_t mask) {
  Value lane = emitLaneId(thread);
  if (isReverse)
    return thread.bitAnd(lane, ~mask);
  return thread.bitOr(lane, mask);
}

void Scan::scanWithinWarps(unsigned limit) {
  for (unsigned bit = 0; bit < limit; ++bit) {
    uint64_t ofRegister = getPlaceMask(x.layout, HwDim::Reg, bit, bit + 1);
    uint64_t ofLane = getPlaceMask(x.layout, HwDim::Lane, bit, bit + 1);
    uint64_t lowerRegisters = getPlaceMask(x.layout, HwDim::Reg, 0, bit);
    uint64_t lowerLanes = getPlaceMask(x.layout, HwDim::Lane, 0, bit);
    if (!ofRegister && !ofLane)
      continue;
    Value lane, isSetHere;
    if (ofLane || lowerLanes) {
      lane = emitLastLane(lowerLanes);
      if (ofLane) {
        lane = isReverse ? thread.bitOr(lane, ofLane) : thread.bitAnd(lane, ~ofLane);
        isSetHere = emitIsSet(emitLaneId(thread), ofLane);
      }
    }
    // Several registers take from one.
    llvm::DenseMap<int64_t, Group> sources;
    AxisFragment before = x;
    for (int64_t number = 0, e = x.operands.front().size(); number < e; ++number) {
      if (ofRegister && !isSet(number, ofRegister))
        continue;
      int64_t from = clearBits(setBits(number, lowerRegisters), ofRegister);
      Group &source = sources[from];
      if (source.empty())
        source = lane ? shuffle(before.get(from), lane) : before.get(from);
      Group own = before.get(number), combined = combine(source, own);
      set(x, number, isSetHere ? select(isSetHere, combined, own) : combined);
    }
  }
}

Group Scan::chooseTotal(int64_t number, int64_t along, ArrayRef<std::pair<unsigned, Value>> open) {
  if (!open.empty()) {
    auto [bit, isOne] = open.front();
    return select(isOne, chooseTotal(number, along | int64_t(1) << bit, open.drop_front()),
                  chooseTotal(number, along & ~(int64_t(1) << bit), open.drop_front()));
  }
  SmallVector<int64_t> coordinates = getRegisterCoordinates(x.layout, number);
  coordinates[axis] = along;
  return totals->get(*findRegister(totals->layout, coordinates));
}

void Scan::scanAcrossWarps(unsigned first, const AxisExchange &exchange, TypeRange types,
                           Value scratch) {
  // The total of each run is its last element: in the registers whose bits below `first`
  // are set, in the lane whose are.
  uint64_t lowerRegisters = getPlaceMask(x.layout, HwDim::Reg, 0, first);
  uint64_t lanes = getPlaceMask(x.layout, HwDim::Lane, 0, bits);
  AxisFragment runs{exchange.source, axis, {}};
  runs.operands.resize(x.operands.size());
  for (int64_t number = 0, e = x.operands.front().size(); number < e; ++number) {
    if (number & lowerRegisters)
      continue;
    Group total = x.get(setBits(number, lowerRegisters));
    if (lanes)
      total = shuffle(total, emitLastLane(lanes));
    for (auto [registers, value] : llvm::zip_equal(runs.operands, total))
      registers.push_back(value);
  }
  runs.exchange(thread, exchange, types, scratch);
  totals = std::move(runs);

  for (unsigned bit = first; bit < bits; ++bit) {
    uint64_t ofRegister = getPlaceMask(x.layout, HwDim::Reg, bit, bit + 1);
    Value isSetHere;
    for (HwDim dim : {HwDim::Warp, HwDim::Block})
      if (uint64_t mask = getPlaceMask(x.layout, dim, bit, bit + 1))
        isSetHere = emitIsSet(emitPlace(thread, dim), mask);
    // Along the totals' axis, of the element to take from: this bit is not set, those below
    // are, those above are one's own.
    int64_t lower = (int64_t(1) << (bit - first)) - 1, own = int64_t(1) << (bit - first);
    SmallVector<std::pair<unsigned, Value>> open;
    for (unsigned above = bit + 1; above < bits; ++above)
      for (HwDim dim : {HwDim::Warp, HwDim::Block})
        if (uint64_t mask = getPlaceMask(x.layout, dim, above, above + 1))
          open.push_back(
              {above - first, thread.compare(LLVM::ICmpPredicate::ne,
                                             thread.bitAnd(emitPlace(thread, dim), mask), 0)});
    for (int64_t number = 0, e = x.operands.front().size(); number < e; ++number) {
      if (ofRegister && !isSet(number, ofRegister))
        continue;
      // The repeat, and bits of registers.
      int64_t along = getRegisterCoordinates(x.layout, number)[axis] >> first;
      along = clearBits(setBits(along, lower), own);
      Group before = x.get(number), combined = combine(chooseTotal(number, along, open), before);
      set(x, number, isSetHere ? select(isSetHere, combined, before) : combined);
    }
    uint64_t ofTotal = getPlaceMask(totals->layout, HwDim::Reg, bit - first, bit - first + 1);
    uint64_t lowerTotals = getPlaceMask(totals->layout, HwDim::Reg, 0, bit - first);
    for (int64_t number = 0, e = totals->operands.front().size(); number < e; ++number)
      if (isSet(number, ofTotal)) {
        int64_t from = clearBits(setBits(number, lowerTotals), ofTotal);
        set(*totals, number, combine(totals->get(from), totals->get(number)));
      }
  }
}

void Scan::scanRepeats() {
  int64_t repeats = x.layout.oddFactor(axis);
  if (repeats == 1)
    return;
  // The place of a run's total: in the totals, or in its last register and lane.
  uint64_t registers = getPlaceMask(x.layout, HwDim::Reg, 0, bits);
  uint64_t lanes = getPlaceMask(x.layout, HwDim::Lane, 0, bits);
  const AxisFragment &from = totals ? *totals : x;
  uint64_t lastRegister = totals ? getPlaceMask(totals->layout, HwDim::Reg, 0, bits) : registers;
  AxisFragment before = from;
  unsigned shift = from.layout.dimBits(axis);
  llvm::DenseMap<int64_t, Group> running;
  for (int64_t step = 0; step < repeats; ++step) {
    int64_t repeat = isReverse ? repeats - 1 - step : step;
    llvm::DenseMap<int64_t, Group> next;
    for (int64_t number = 0, e = x.operands.front().size(); number < e; ++number) {
      SmallVector<int64_t> coordinates = getRegisterCoordinates(x.layout, number);
      if (coordinates[axis] >> bits != repeat)
        continue;
      // The first register of the first run identifies a line.
      coordinates[axis] = 0;
      int64_t line = *findRegister(x.layout, coordinates);
      if (auto found = running.find(line); found != running.end())
        set(x, number, combine(found->second, x.get(number)));
      if (next.contains(line))
        continue;
      coordinates[axis] = repeat << shift;
      int64_t last = setBits(*findRegister(from.layout, coordinates), lastRegister);
      Group total = before.get(last);
      if (!totals && lanes)
        total = shuffle(total, emitLastLane(lanes));
      auto found = running.find(line);
      next[line] = found == running.end() ? total : combine(found->second, total);
    }
    running = std::move(next);
  }
}

namespace {

struct ScanPattern : TilePattern<tile::ScanOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ScanOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    CombineRegion combine(op.getCombine(), getConverter(), rewriter, op.getLoc());
    const LinearLayout &layout = tilegpu::getLayout(op.getOperandTypes().front());
    AxisFragment fragment{layout, static_cast<unsigned>(op.getAxis()), {}};
    for (ValueRange registers : adaptor.getOperands())
      fragment.operands.push_back(SmallVector<Value>(registers));

    ScanPlan plan = getScanPlan(op);
    Value scratch;
    if (plan.exchange) {
      FailureOr<Value> pointer = emitScratch(thread, op);
      if (failed(pointer))
        return failure();
      scratch = *pointer;
    }
    if (plan.isWhole)
      fragment.exchange(thread, *plan.exchange, op.getOperandTypes(), scratch);
    Scan scan(thread, combine, op.getReverse(), std::move(fragment));
    scan.scanWithinWarps(plan.firstWarpBit);
    if (plan.exchange && !plan.isWhole)
      scan.scanAcrossWarps(plan.firstWarpBit, *plan.exchange, op.getOperandTypes(), scratch);
    scan.scanRepeats();

    SmallVector<SmallVector<Value>> results = std::move(scan.get().operands);
    if (plan.isWhole)
      for (SmallVector<Value> &registers : results)
        registers = emitConversion(thread, registers, plan.exchange->destination, layout);
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateScanPatterns(const TileGPUTypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<ScanPattern>(converter);
}
