// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running folds along an axis. In nearly every layout, the lowest bits of the position are in
// registers, those above in lanes, and then come warps and further registers. So a thread has runs
// of neighbours:
//
//     thread                  0               1
//     registers               a    b          c    d
//     folds of a run          a    ab         c    cd
//     last of run and lanes   a    ab         c    abcd
//     with what is before     a    ab         abc  abcd
//
// A thread folds its runs one element after another. The lanes fold the totals of their runs, bit
// by bit. The totals of all warps go through shared memory into registers of each thread. At the
// end, each element but a run's last is combined once with the fold of all that is before its run.
//
// In other layouts, the scan takes one bit of the position after the other from the lowest. An
// element whose bit is set is combined with the last element whose bit is not, all else equal. That
// one is the fold of all before it.
//
//     position   0    1    2    3
//     bit 0      a    ab   c    cd
//     bit 1      a    ab   abc  abcd      2 and 3 take position 1's
//
// The place of that last element is a linear function of one's own place: registers are known when
// compiling, lanes are a shuffle. Bits in warps come after all bits in lanes. If the order differs,
// the whole tile moves through shared memory first. For a scan from the end, bits that are set and
// not set change roles.

#include "Exchange/ConvertLayout.h"
#include "Exchange/ScratchMemory.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Where bits of the axis end, from the lowest on: those of a thread's runs, those in lanes, and
/// those in registers below the first one in warps.
struct RunBits {
  unsigned registers, lanes, warps;
};

class Scan {
public:
  Scan(ThreadBuilder &thread, const CombineRegion &combine, bool isReverse, AxisFragment fragment)
      : thread(thread), combine(combine), isReverse(isReverse), x(std::move(fragment)),
        axis(x.axis), bits(x.layout.dimBits(axis)) {}

  /// The bits of runs, if all bits in lanes follow those of a thread's runs. `first` is the lowest
  /// bit in warps. None if the scan has to take one bit after the other.
  std::optional<RunBits> getRunBits(unsigned first) const;
  /// All bits. Totals go through memory at `scratch` if there is an exchange.
  void scanRuns(RunBits runs, const std::optional<AxisExchange> &exchange, TypeRange types,
                Value scratch);
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
  /// The register at a step along the bits [from, to) of the axis, in the scan's direction. The
  /// other coordinates are those of register `number`.
  int64_t getRegister(const LinearLayout &layout, int64_t number, unsigned from, unsigned to,
                      int64_t step) const;
  /// True if register `number` is at step 0 along these bits.
  bool isFirst(const LinearLayout &layout, int64_t number, unsigned from, unsigned to) const {
    return getRegister(layout, number, from, to, 0) == number;
  }
  /// Folds what registers of these bits have, one after another.
  void foldInOrder(AxisFragment &fragment, unsigned from, unsigned to);
  /// The running fold of one value of each lane, along the bits [from, to).
  Group scanLanes(Group total, unsigned from, unsigned to);
  /// The fold of all runs before that of register `number`, which is at this step of the bits from
  /// `first` on. Bits in warps are not in `step`.
  Group choosePrefix(int64_t number, int64_t step, ArrayRef<std::pair<unsigned, Value>> open);
  /// Combines all elements of the run of register `number` with what is before it: `prefix`, if
  /// `isThere`, and the runs of the lanes before. None if there is no such prefix.
  void combineRun(int64_t number, RunBits runs, const Group &prefix, Value isThere);
  Group shuffle(const Group &group, Value lane);
  Group select(Value condition, const Group &a, const Group &b);
  void set(AxisFragment &fragment, int64_t number, const Group &group) const {
    for (auto [registers, value] : llvm::zip_equal(fragment.operands, group))
      registers[number] = value;
  }
  /// The lane of the last element of a run, as far as lanes are along the axis.
  Value emitLastLane(uint64_t mask);
  /// The lane before this one along the axis. The bits of `mask` have the order of the axis.
  Value emitLaneBefore(uint64_t mask);
  /// The totals of runs of bits below `first`, from all warps. `ofRun` has a thread's own, by a
  /// register of the run whose bits below `first` are 0.
  void exchangeTotals(unsigned first, llvm::function_ref<Group(int64_t)> ofRun,
                      const AxisExchange &exchange, TypeRange types, Value scratch);
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

Value Scan::emitLaneBefore(uint64_t mask) {
  Value lane = emitLaneId(thread);
  Value counted = isReverse ? thread.bitXor(lane, mask) : lane;
  uint64_t lowest = mask & -mask;
  Value before = thread.bitAnd(thread.sub(thread.bitAnd(counted, mask), thread.i32(lowest)), mask);
  if (isReverse)
    before = thread.bitXor(before, mask);
  return thread.bitOr(thread.bitAnd(lane, ~mask), before);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

std::optional<RunBits> Scan::getRunBits(unsigned first) const {
  auto isIn = [&](HwDim dim, unsigned bit) {
    return getPlaceMask(x.layout, dim, bit, bit + 1) != 0;
  };
  RunBits runs{0, 0, first};
  while (runs.registers < first && isIn(HwDim::Reg, runs.registers))
    ++runs.registers;
  uint64_t last = 0;
  for (runs.lanes = runs.registers; runs.lanes < first && isIn(HwDim::Lane, runs.lanes);
       ++runs.lanes) {
    uint64_t lane = getPlaceMask(x.layout, HwDim::Lane, runs.lanes, runs.lanes + 1);
    if (lane < last)
      return std::nullopt;
    last = lane;
  }
  for (unsigned bit = runs.lanes; bit < bits; ++bit)
    if (isIn(HwDim::Lane, bit) || (bit < first && !isIn(HwDim::Reg, bit)))
      return std::nullopt;
  return runs;
}

int64_t Scan::getRegister(const LinearLayout &layout, int64_t number, unsigned from, unsigned to,
                          int64_t step) const {
  int64_t along = isReverse ? ~step : step;
  for (unsigned bit = from; bit < to; ++bit) {
    uint64_t mask = getPlaceMask(layout, HwDim::Reg, bit, bit + 1);
    number = (along >> (bit - from)) & 1 ? number | mask : number & ~mask;
  }
  return number;
}

void Scan::foldInOrder(AxisFragment &fragment, unsigned from, unsigned to) {
  for (int64_t number = 0, e = fragment.operands.front().size(); number < e; ++number) {
    if (!isFirst(fragment.layout, number, from, to))
      continue;
    Group running = fragment.get(number);
    for (int64_t step = 1; step < int64_t(1) << (to - from); ++step) {
      int64_t next = getRegister(fragment.layout, number, from, to, step);
      running = combine(running, fragment.get(next));
      set(fragment, next, running);
    }
  }
}

Group Scan::scanLanes(Group total, unsigned from, unsigned to) {
  for (unsigned bit = from; bit < to; ++bit) {
    uint64_t own = getPlaceMask(x.layout, HwDim::Lane, bit, bit + 1);
    Value lane = emitLastLane(getPlaceMask(x.layout, HwDim::Lane, from, bit));
    lane = isReverse ? thread.bitOr(lane, own) : thread.bitAnd(lane, ~own);
    Group combined = combine(shuffle(total, lane), total);
    total = select(emitIsSet(emitLaneId(thread), own), combined, total);
  }
  return total;
}

Group Scan::choosePrefix(int64_t number, int64_t step, ArrayRef<std::pair<unsigned, Value>> open) {
  if (!open.empty()) {
    auto [bit, isSet] = open.front();
    return select(isSet, choosePrefix(number, step | int64_t(1) << bit, open.drop_front()),
                  choosePrefix(number, step, open.drop_front()));
  }
  // Nothing is before step 0: any value does.
  step = std::max<int64_t>(step, 1) - 1;
  unsigned shift = x.layout.dimBits(axis) - totals->layout.dimBits(axis);
  SmallVector<int64_t> coordinates = getRegisterCoordinates(x.layout, number);
  int64_t repeat = coordinates[axis] >> bits;
  coordinates[axis] = repeat << (bits - shift);
  int64_t start = *findRegister(totals->layout, coordinates);
  return totals->get(getRegister(totals->layout, start, 0, bits - shift, step));
}

void Scan::scanRuns(RunBits runs, const std::optional<AxisExchange> &exchange, TypeRange types,
                    Value scratch) {
  unsigned inRun = runs.registers, inLanes = runs.lanes, inWarp = runs.warps;
  int64_t count = x.operands.front().size(), lastOfRun = (int64_t(1) << inRun) - 1;
  uint64_t lanes = getPlaceMask(x.layout, HwDim::Lane, inRun, inLanes);
  auto getLast = [&](int64_t number) { return getRegister(x.layout, number, 0, inRun, lastOfRun); };
  foldInOrder(x, 0, inRun);
  for (int64_t number = 0; number < count; ++number)
    if (int64_t last = getLast(number); last == number)
      set(x, last, scanLanes(x.get(last), inRun, inLanes));

  // The fold of the runs before one in its warp, by its first register. None if it is the first.
  llvm::DenseMap<int64_t, Group> before, ofWarps;
  uint64_t lowerRegisters = getPlaceMask(x.layout, HwDim::Reg, 0, inWarp);
  int64_t repeats = int64_t(1) << (inWarp - inLanes);
  for (int64_t start = 0; start < count; ++start) {
    if (!isFirst(x.layout, start, 0, inWarp))
      continue;
    Group running;
    for (int64_t step = 0; step < repeats; ++step) {
      int64_t number = getRegister(x.layout, start, inLanes, inWarp, step);
      Group total = x.get(getLast(number));
      // A run of one element is combined twice in any case. Now is better: its fold is not kept.
      if (step != 0 && lastOfRun == 0)
        set(x, number, combine(running, total));
      else if (step != 0)
        before[number] = running;
      if (!exchange && step + 1 == repeats)
        break;
      if (lanes)
        total = shuffle(total, emitLastLane(lanes));
      running = step == 0 ? total : combine(running, total);
    }
    ofWarps[start & ~lowerRegisters] = running;
  }
  if (exchange) {
    exchangeTotals(
        inWarp, [&](int64_t number) { return ofWarps.at(number); }, *exchange, types, scratch);
    foldInOrder(*totals, 0, bits - inWarp);
  }

  // Bits in warps and blocks, which `step` below lacks.
  SmallVector<std::pair<unsigned, Value>> open;
  Value isLaterWarp;
  for (unsigned bit = inWarp; bit < bits; ++bit)
    for (HwDim dim : {HwDim::Warp, HwDim::Block})
      if (uint64_t mask = getPlaceMask(x.layout, dim, bit, bit + 1)) {
        Value isSet = emitIsSet(emitPlace(thread, dim), mask);
        open.push_back({bit - inWarp, isSet});
        isLaterWarp = isLaterWarp ? thread.bitOr(isLaterWarp, isSet) : isSet;
      }
  for (int64_t start = 0; start < count; ++start) {
    if (!isFirst(x.layout, start, 0, bits))
      continue;
    for (int64_t step = 0; step < int64_t(1) << (bits - inWarp); ++step) {
      if (llvm::any_of(open, [&](auto bit) { return (step >> bit.first) & 1; }))
        continue;
      int64_t first = getRegister(x.layout, start, inWarp, bits, step);
      // Null if there is always something before the first run.
      Value isLater = step == 0 ? isLaterWarp : Value();
      Group ofOthers;
      if (totals)
        ofOthers = choosePrefix(first, step, open);
      for (int64_t repeat = 0; repeat < repeats; ++repeat) {
        int64_t number = getRegister(x.layout, first, inLanes, inWarp, repeat);
        Group prefix = before.lookup(number);
        if (ofOthers.empty()) {
          combineRun(number, runs, prefix, /*isThere=*/Value());
        } else if (prefix.empty()) {
          combineRun(number, runs, ofOthers, isLater);
        } else {
          Group all = combine(ofOthers, prefix);
          combineRun(number, runs, isLater ? select(isLater, all, prefix) : all, Value());
        }
      }
    }
  }
}

void Scan::combineRun(int64_t number, RunBits runs, const Group &prefix, Value isThere) {
  int64_t length = int64_t(1) << runs.registers;
  auto combineWith = [&](const Group &left, int64_t step, Value condition) {
    int64_t at = getRegister(x.layout, number, 0, runs.registers, step);
    Group element = x.get(at), combined = combine(left, element);
    set(x, at, condition ? select(condition, combined, element) : combined);
    return x.get(at);
  };
  uint64_t lanes = getPlaceMask(x.layout, HwDim::Lane, runs.registers, runs.lanes);
  Group last = x.get(getRegister(x.layout, number, 0, runs.registers, length - 1));
  if (!prefix.empty())
    last = combineWith(prefix, length - 1, isThere);
  Group before = prefix;
  if (lanes && length > 1) {
    Value isLaterLane = thread.compare(
        LLVM::ICmpPredicate::ne, thread.bitAnd(emitLaneId(thread), lanes), isReverse ? lanes : 0);
    before = shuffle(last, emitLaneBefore(lanes));
    if (prefix.empty())
      isThere = isLaterLane;
    else {
      before = select(isLaterLane, before, prefix);
      if (isThere)
        isThere = thread.bitOr(isThere, isLaterLane);
    }
  }
  if (!before.empty())
    for (int64_t step = 0; step + 1 < length; ++step)
      combineWith(before, step, isThere);
}

//===----------------------------------------------------------------------===//
// Bit by bit
//===----------------------------------------------------------------------===//

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

void Scan::exchangeTotals(unsigned first, llvm::function_ref<Group(int64_t)> ofRun,
                          const AxisExchange &exchange, TypeRange types, Value scratch) {
  uint64_t lowerRegisters = getPlaceMask(x.layout, HwDim::Reg, 0, first);
  AxisFragment runs{exchange.source, axis, {}};
  runs.operands.resize(x.operands.size());
  for (int64_t number = 0, e = x.operands.front().size(); number < e; ++number)
    if ((number & lowerRegisters) == 0)
      for (auto [registers, value] : llvm::zip_equal(runs.operands, ofRun(number)))
        registers.push_back(value);
  runs.exchange(thread, exchange, types, scratch);
  totals = std::move(runs);
}

void Scan::scanAcrossWarps(unsigned first, const AxisExchange &exchange, TypeRange types,
                           Value scratch) {
  // The total of each run is its last element: in the registers whose bits below `first`
  // are set, in the lane whose are.
  uint64_t lowerRegisters = getPlaceMask(x.layout, HwDim::Reg, 0, first);
  uint64_t lanes = getPlaceMask(x.layout, HwDim::Lane, 0, bits);
  auto getTotal = [&](int64_t number) {
    Group total = x.get(setBits(number, lowerRegisters));
    return lanes ? shuffle(total, emitLastLane(lanes)) : total;
  };
  exchangeTotals(first, getTotal, exchange, types, scratch);
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
    std::optional<AxisExchange> ofTotals = plan.isWhole ? std::nullopt : plan.exchange;
    // With `deterministic`, bit by bit: the order of sums then depends on no layout.
    std::optional<RunBits> runs;
    if (!isDeterministic(op))
      runs = scan.getRunBits(plan.firstWarpBit);
    if (runs) {
      scan.scanRuns(*runs, ofTotals, op.getOperandTypes(), scratch);
    } else {
      scan.scanWithinWarps(plan.firstWarpBit);
      if (ofTotals)
        scan.scanAcrossWarps(plan.firstWarpBit, *ofTotals, op.getOperandTypes(), scratch);
    }
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
