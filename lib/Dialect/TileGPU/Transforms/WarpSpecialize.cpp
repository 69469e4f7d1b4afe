// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warp specialisation: the program's warps multiply, and one thread of its own orders the
// copies of what they multiply.
//
// A kernel whose loops of products take their tiles from global memory in boxes
// (Analysis/BoxAccess.h) is done twice, at the same time:
//
//     default region, the program's warps          partition, one thread
//     ------------------------------------         -----------------------------------
//     for each tile of the result:                 for each tile of the result:
//       for k:                                       for k:
//         wait until slot is full                      wait until slot is empty
//         multiply                                     copy the boxes of k to slot
//         slot is empty
//       store the result
//
// The right side is the left side's loops and branches with nothing in them but coordinates,
// which it computes again from what the kernel was given. It knows nothing of the left side
// but which slots are empty, so it runs ahead as far as the rings are long: over the ends of
// loops, too, while the left side stores a result.
//
// Where threads have more to compute than tensor cores to multiply, there is no such partition:
// the program's first thread orders the copies in between (LoopFeeder.h).
//
// So its loads come before all that the left side does to memory before them: in front of the
// loop, in it, or, an iteration earlier, in a loop around it. Nobody may be able to tell
// (Analysis/MemoryOrder.h): the arrays are others, which the launch sees to, or places in one
// array that never meet. A kernel of which that cannot be known, and one with a loop of
// products that cannot be done so, stays as it is. A remark says why.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "LoopFeeder.h"
#include "LoopSlice.h"
#include "RepeatedPrograms.h"
#include "StoreByTensorMap.h"
#include "WarpRegisters.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "tessera/Analysis/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Support/SharedMemoryShare.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// Shared memory for barriers, where everything is counted.
static constexpr int64_t kBarrierBytes = 4 << 10;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUWARPSPECIALIZEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// A kernel, and what becomes of its loops.
class Specializer {
public:
  Specializer(tile::FuncOp kernel, unsigned stages, unsigned warps, int64_t limit, bool skew,
              int64_t mostPrograms)
      : kernel(kernel), stages(stages), warps(warps), limit(limit), skew(skew),
        mostPrograms(mostPrograms) {}

  /// Decides; nothing is changed. False if there is nothing to be done, or it cannot be.
  bool plan();
  /// Fails, with an error, where a kernel would need more tensor maps than it can have.
  LogicalResult rewrite();

private:
  bool planLoop(scf::ForOp loop);
  std::string planLoad(BoxLoop &planned, tile::LoadOp load);
  bool planOrder(scf::ForOp loop, ArrayRef<tile::LoadOp> loads);
  void joinChannels(BoxLoop &planned);
  bool isBoundByProducts() const;
  bool planFeeding();
  bool planSlots();
  void planPrograms(llvm::function_ref<bool(int64_t)> fits);
  int64_t getWantedRegisters(const BoxLoop &planned) const;
  int64_t getWantedRegisters() const;
  std::string whyNotAround(scf::ForOp loop);
  std::string whyNotAgain(Value value);
  bool refuse(Operation *loop, const Twine &why, Operation *place = nullptr);

  bool hasPlanned(Operation *op) const;
  SmallVector<unsigned> getChannels(Operation *op) const;
  void emitRings(OpBuilder &builder);
  WarpSpecializeOp emitRegions(OpBuilder &builder);
  void emitCopies(OpBuilder &builder, Block *block, IRMapping mapping,
                  SmallVectorImpl<ChannelPlace> &places);
  void emitCopiesOf(OpBuilder &builder, const BoxLoop &planned, IRMapping mapping,
                    SmallVectorImpl<ChannelPlace> &places);
  Value emitAgain(OpBuilder &builder, Value value, IRMapping &mapping);
  void rewriteConsumers(Block *block, SmallVectorImpl<ChannelPlace> &places);
  void endRings(Block *block);
  void rewriteFeeding();

  tile::FuncOp kernel;
  unsigned stages, warps;
  int64_t limit;
  bool skew;            ///< whether a dot may be put off
  int64_t mostPrograms; ///< that may run at once on an SM

  AccessAnalysis analysis;
  MemoryOrder order{analysis};
  /// What loads that come early take for granted.
  LaunchConditions conditions;
  std::vector<BoxLoop> loops;
  llvm::DenseMap<Operation *, unsigned> ofLoop;
  SmallVector<Channel> channels;
  unsigned slots = 0;
  /// How many are to run at once on a multiprocessor.
  int64_t programs = 1;
  /// Whether one program after the other is done.
  bool repeats = false;
  LoadMaps maps;
  /// Whether the program's first thread orders copies.
  bool feedsItself = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Which loops
//===----------------------------------------------------------------------===//

bool Specializer::refuse(Operation *loop, const Twine &why, Operation *place) {
  InFlightDiagnostic remark = loop->emitRemark("loop is not specialised: ") << why;
  if (place)
    remark.attachNote(place->getLoc()) << "here";
  return false;
}

/// Why a scalar cannot be computed again by another thread; empty if it can.
std::string Specializer::whyNotAgain(Value value) {
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Operation *, 16> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (isa<RankedTensorType>(next.getType()))
      return "depend on tiles";
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      auto around = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (around && argument != around.getInductionVar())
        return "depend on what a loop around it carries";
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!seen.insert(op).second)
      continue;
    if (op->getNumRegions() != 0)
      return "depend on branches or loops";
    if (!isMemoryEffectFree(op))
      return "depend on memory";
    llvm::append_range(work, op->getOperands());
  }
  return "";
}

/// Why the loops and branches around a loop, and its own bounds, cannot be done twice.
std::string Specializer::whyNotAround(scf::ForOp loop) {
  for (Operation *op = loop; op != kernel; op = op->getParentOp()) {
    SmallVector<Value, 3> values;
    StringRef what = "the bounds of the loop ";
    if (auto around = dyn_cast<scf::ForOp>(op)) {
      values = {around.getLowerBound(), around.getUpperBound(), around.getStep()};
      if (op != loop)
        what = "the bounds of a loop around it ";
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      values = {branch.getCondition()};
      what = "the conditions around it ";
    } else {
      return "it is inside of a loop whose trips are not counted";
    }
    for (Value value : values)
      if (std::string why = whyNotAgain(value); !why.empty())
        return what.str() + why;
  }
  return "";
}

/// Registers of a thread for what a loop carries and computes.
int64_t Specializer::getWantedRegisters(const BoxLoop &planned) const {
  constexpr int64_t kLate = 40, kOthers = 64, kBetween = 32;
  scf::ForOp loop = planned.loop;
  int64_t words = 0, between = 0;
  for (Value value : loop.getRegionIterArgs())
    words += getRegisters(value.getType(), warps);
  // One factor is held while the next is computed.
  if (WarpgroupDotOp late = planned.lateDot) {
    for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
      if (dot != late)
        words += getRegisters(dot.getType(), warps);
    return words + kLate + getRegisters(late.getA().getType(), warps);
  }
  // What is computed with before it is multiplied again.
  for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
    if (!llvm::is_contained(dot->getUsers(), loop.getBody()->getTerminator()))
      between += getRegisters(dot.getType(), warps);
  return words + (between ? kBetween + between : kOthers);
}

/// Adds a load, or says why the copy engine cannot do it.
std::string Specializer::planLoad(BoxLoop &planned, tile::LoadOp load) {
  if (load.getIsVolatile() || load.getCache() == tile::CacheModifier::CV)
    return "it is not to be cached";
  BoxLoad result;
  result.load = load;
  for (Operation *user : load->getUsers()) {
    auto buffer = dyn_cast<LocalAllocOp>(user);
    if (!buffer || user->getBlock() != planned.loop.getBody())
      return "its tile is computed with before it is multiplied";
    if (!result.buffers.empty() && result.buffers.front().getType() != buffer.getType())
      return "its tile is multiplied in two layouts";
    result.buffers.push_back(buffer);
  }
  for (LocalAllocOp buffer : result.buffers) {
    SmallVector<Value> names{buffer.getResult()};
    while (!names.empty())
      for (Operation *user : names.pop_back_val().getUsers()) {
        if (auto trans = dyn_cast<MemDescTransOp>(user))
          names.push_back(trans.getResult());
        else if (!isa<WarpgroupDotOp, LocalDeallocOp>(user))
          return "its tile is multiplied by another instruction than wgmma";
      }
  }
  result.tile = result.buffers.front().getType();
  std::string why;
  std::optional<BoxAccess> box = getBoxAccess(load, analysis, &why);
  if (!box || !box->canEmitOutside(kernel.getBody(), &why))
    return why;
  if (!canMoveByTensorMap(*box, result.tile, &why))
    return why;
  result.box = std::move(*box);
  planned.loads.push_back(std::move(result));
  return "";
}

/// Whether loads may come before everything that is done to memory before them.
bool Specializer::planOrder(scf::ForOp loop, ArrayRef<tile::LoadOp> loads) {
  WalkResult result = kernel.walk([&](Operation *op) {
    // What is in a region is seen itself.
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || op == kernel)
      return WalkResult::advance();
    for (tile::LoadOp load : loads) {
      std::optional<Operation *> across = findWayBefore(op, load);
      AccessPair why;
      if (!across || conditions.add(order.mayPass(load, op, *across), analysis, why))
        continue;
      if (why.other.isAnywhere()) {
        refuse(loop, "what comes before it orders memory", op);
        return WalkResult::interrupt();
      }
      InFlightDiagnostic remark = loop.emitRemark(
          "loop is not specialised: what it loads may have been stored by the same program");
      remark.attachNote(op->getLoc()) << "stored here";
      remark.attachNote(load.getLoc()) << "loaded here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return !result.wasInterrupted();
}

bool Specializer::planLoop(scf::ForOp loop) {
  BoxLoop planned;
  planned.loop = loop;
  planned.stages = stages;
  if (auto hint = loop->getAttrOfType<IntegerAttr>(kStagesAttr))
    planned.stages = std::clamp<int64_t>(hint.getInt(), 0, 64);
  if (planned.stages < 2)
    return refuse(loop, "it is to have one stage");
  Operation *inner = nullptr;
  loop.getBody()->walk([&](WarpgroupDotOp dot) {
    if (dot->getBlock() != loop.getBody() || dot.getIsAsync())
      inner = dot;
  });
  if (inner)
    return refuse(loop, "a product is in a branch or loop inside of it", inner);
  SmallVector<tile::LoadOp> loads;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
    if (isa<RankedTensorType>(load.getType()) && reachesProduct(load.getResult(), loop.getBody()))
      loads.push_back(load);
  if (!planOrder(loop, loads))
    return false;
  if (std::string why = whyNotAround(loop); !why.empty())
    return refuse(loop, why);
  for (tile::LoadOp load : loads) {
    if (std::string why = planLoad(planned, load); !why.empty())
      return refuse(loop, why, load);
  }
  if (planned.loads.empty())
    return refuse(loop, "it loads nothing that it multiplies");
  // Who multiplies says of each slot that it is empty, and therefore has to be there.
  ReplacedOps replaced = planned.getReplaced();
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
    if (!live.contains(dot))
      return refuse(loop, "nobody needs the product", dot);
  joinChannels(planned);
  planned.asyncDot = findAsyncProduct(loop, replaced);
  if (skew)
    planned.lateDot = findLateProduct(loop, replaced);
  // The product that is put off has its tiles to itself.
  if (WarpgroupDotOp late = planned.lateDot) {
    unsigned uses = 0;
    for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
      for (Value operand : {Value(dot.getA()), Value(dot.getB())})
        uses += planned.getChannel(operand) == planned.getChannel(late.getB());
    WarpRegisters registers(warps);
    if (uses != 1 || getWantedRegisters(planned) > registers.getMost())
      planned.lateDot = nullptr;
  }
  ofLoop[loop] = loops.size();
  loops.push_back(std::move(planned));
  return true;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

/// Tiles that one product takes come together. Loops with tiles of the same types have
/// their channels in common.
void Specializer::joinChannels(BoxLoop &planned) {
  auto ofOperand = [&](Value operand) -> std::optional<unsigned> {
    for (auto [index, load] : llvm::enumerate(planned.loads))
      if (llvm::is_contained(load.buffers, skipTrans(operand).getDefiningOp()))
        return index;
    return std::nullopt;
  };
  llvm::EquivalenceClasses<unsigned> together;
  SmallVector<unsigned> order;
  for (WarpgroupDotOp dot : planned.loop.getBody()->getOps<WarpgroupDotOp>()) {
    std::optional<unsigned> a = ofOperand(dot.getA()), b = ofOperand(dot.getB());
    for (std::optional<unsigned> load : {a, b})
      if (load && !llvm::is_contained(order, *load)) {
        together.insert(*load);
        order.push_back(*load);
      }
    if (a && b)
      together.unionSets(*a, *b);
  }
  llvm::SmallDenseSet<unsigned> done;
  for (unsigned first : order) {
    if (!done.insert(together.getLeaderValue(first)).second)
      continue;
    SmallVector<unsigned> members;
    SmallVector<MemDescType> tiles;
    for (unsigned load : order)
      if (together.isEquivalent(load, first)) {
        members.push_back(load);
        tiles.push_back(planned.loads[load].tile);
      }
    unsigned channel = 0;
    while (channel < channels.size() && (llvm::is_contained(planned.channels, channel) ||
                                         channels[channel].getTiles() != ArrayRef(tiles)))
      ++channel;
    if (channel == channels.size())
      channels.emplace_back(tiles);
    planned.channels.push_back(channel);
    for (auto [ring, load] : llvm::enumerate(members)) {
      planned.loads[load].channel = channel;
      planned.loads[load].ring = ring;
    }
  }
}

/// Registers of a thread for the loop that wants most.
int64_t Specializer::getWantedRegisters() const {
  int64_t wanted = 0;
  for (const BoxLoop &planned : loops)
    wanted = std::max(wanted, getWantedRegisters(planned));
  return wanted;
}

/// Rather several programs at once, of which one multiplies while another computes; then
/// their warps have each other to wait for, where one alone puts a product off.
void Specializer::planPrograms(llvm::function_ref<bool(int64_t)> fits) {
  auto find = [&] {
    for (programs = mostPrograms; programs > 1; --programs)
      if (fits(getSharedMemoryShare(limit, programs)) &&
          getWantedRegisters() <= WarpRegisters(warps, programs).getMost())
        break;
  };
  find();
  if (programs > 1)
    return;
  std::vector<BoxLoop> late = loops;
  for (BoxLoop &planned : loops)
    planned.lateDot = nullptr;
  find();
  if (programs > 1)
    return;
  // One group of warps computes while the others multiply.
  loops = std::move(late);
  for (BoxLoop &planned : loops)
    planned.takesTurns = planned.lateDot && warps >= 2 * WarpRegisters::kWarpsOfWarpgroup;
}

bool Specializer::planSlots() {
  int64_t perSlot = 0, others = 0;
  for (const Channel &channel : channels)
    perSlot += channel.getSlotBytes();
  ReplacedOps replaced;
  for (const BoxLoop &planned : loops)
    replaced.insert_range(planned.getReplaced());
  bool isInLoop = llvm::any_of(loops, [](const BoxLoop &planned) {
    return scf::ForOp(planned.loop)->getParentOfType<scf::ForOp>() != nullptr;
  });
  kernel.walk([&](LocalAllocOp buffer) {
    if (!replaced.contains(buffer))
      others += buffer.getType().getNumBytes();
  });
  // Rings that are filled while results are stored leave room for these.
  int64_t barriers = 0, stored = kExchangeBytes;
  for (const BoxLoop &planned : loops)
    barriers = std::max<int64_t>(barriers, (2 * planned.stages + 3) * kSlotAlignment);
  barriers *= channels.size();
  stored = std::max(stored, barriers + getRoomForResults(kernel, replaced, analysis));
  auto getFitting = [&](bool isStored) {
    return (limit - (isStored ? stored : kExchangeBytes) - others) / perSlot;
  };
  int64_t fitting = getFitting(isInLoop);
  scf::ForOp first = loops.front().loop;
  unsigned wanted = 0, least = 0;
  for (const BoxLoop &planned : loops) {
    // The operands of a product that goes on take a slot more.
    wanted = std::max(wanted, planned.stages + (planned.asyncDot ? 1 : 0));
    least = std::max(least, planned.stages);
  }
  // A product that goes on keeps tensor cores busy on its own, if the ring is long; between
  // results there is nothing to do, unless the next one's copies have begun.
  constexpr unsigned kFewest = 3;
  if (feedsItself) {
    fitting = std::min<int64_t>(getFitting(isInLoop), wanted);
    // Programs fill each other's gaps: better a slot less than that barriers take the place of
    // one of them.
    auto countPrograms = [&](int64_t bytes) {
      // Threads have no pointers to carry.
      constexpr int64_t kPointers = 8;
      int64_t threads = WarpRegisters::kLanes * warps;
      int64_t admitted = WarpRegisters::kOfSM / (threads * (getWantedRegisters() - kPointers));
      while (admitted > 1 && getSharedMemoryShare(limit, admitted) < bytes)
        --admitted;
      return admitted;
    };
    int64_t tiles = fitting * perSlot + others,
            words = (2 * fitting + 1) * kSlotAlignment * channels.size();
    if (fitting > 2 && countPrograms(tiles + words) < countPrograms(tiles)) {
      --fitting;
      first.emitRemark("loop copies for itself with ")
          << fitting << " stages, not " << least
          << ": with another one fewer programs share a multiprocessor";
      least = fitting;
    }
  } else if (llvm::all_of(loops, [](const BoxLoop &planned) { return planned.asyncDot; })) {
    repeats = !isInLoop && getFitting(/*isStored=*/true) >= std::min(wanted, kFewest) &&
              getWantedRegisters() > WarpRegisters(warps, /*programs=*/2).alone &&
              RepeatedPrograms::isPossible(kernel);
    fitting = getFitting(isInLoop || repeats);
  } else {
    planPrograms([&](int64_t bytes) {
      return (bytes - (isInLoop ? stored : kBarrierBytes) - others) / perSlot >= least;
    });
    if (programs > 1)
      fitting =
          (getSharedMemoryShare(limit, programs) - (isInLoop ? stored : kBarrierBytes) - others) /
          perSlot;
  }
  // Rather results in rounds than fewer stages than asked for.
  if ((isInLoop || repeats) && programs == 1 && fitting < least)
    fitting = std::min<int64_t>(least, (limit - kExchangeBytes - kBarrierBytes - others) / perSlot);
  slots = std::clamp<int64_t>(fitting, 0, wanted);
  if (slots < 2)
    return refuse(first,
                  "two stages of " + Twine(perSlot) + " bytes do not fit into shared memory");
  if (slots < least)
    first.emitRemark(feedsItself ? "loop copies for itself with " : "loop is specialised with ")
        << slots << " stages, not " << least << ": a stage takes " << perSlot
        << " bytes of shared memory";
  return true;
}

/// Whether tensor cores have more to do than threads, in some loop.
bool Specializer::isBoundByProducts() const {
  return llvm::any_of(loops, [](const BoxLoop &planned) {
    LoopCycles cycles = countCycles(planned.loop);
    return cycles.products >= cycles.arithmetic;
  });
}

static std::string describeBound(scf::ForOp loop) {
  LoopCycles cycles = countCycles(loop);
  return "its arithmetic takes longer than its products, " + std::to_string(cycles.arithmetic) +
         " cycles and " + std::to_string(cycles.products);
}

/// If not, tensor cores wait for threads, and those do better as several programs: what one more
/// thread takes of the registers is worth a program (attention with heads of 64). One of their
/// own orders copies then.
bool Specializer::planFeeding() {
  scf::ForOp first = loops.front().loop;
  for (BoxLoop &planned : loops) {
    if (planned.asyncDot)
      return refuse(first, describeBound(first));
    if (std::string why = LoopFeeder::whyNot(planned); !why.empty())
      return refuse(planned.loop, describeBound(first) + ", and " + why);
    planned.lateDot = nullptr;
    planned.isInStep = llvm::all_of(
        loops, [&](const BoxLoop &other) { return other.channels.size() == channels.size(); });
  }
  feedsItself = true;
  return true;
}

/// Inline assembly that may wait for all threads: which these are is another question where
/// there are others than the program's.
static bool mayHaveBarrier(tile::InlineAsmOp op) {
  StringRef text = op.getAsmText();
  return text.contains("bar.") || text.contains("barrier.");
}

bool Specializer::plan() {
  if (!kernel.isKernel() || !kernel.getBody().hasOneBlock())
    return false;
  SmallVector<scf::ForOp> candidates;
  kernel.walk([&](scf::ForOp loop) {
    if (!loop.getBody()->getOps<WarpgroupDotOp>().empty())
      candidates.push_back(loop);
  });
  if (candidates.empty())
    return false;
  Operation *barrier = nullptr;
  kernel.walk([&](tile::InlineAsmOp op) { barrier = mayHaveBarrier(op) ? op : barrier; });
  if (barrier)
    return refuse(candidates.front(), "there is inline assembly with a barrier", barrier);
  for (scf::ForOp loop : candidates)
    if (!planLoop(loop))
      return false;
  return (isBoundByProducts() || planFeeding()) && planSlots();
}

//===----------------------------------------------------------------------===//
// Who orders copies
//===----------------------------------------------------------------------===//

bool Specializer::hasPlanned(Operation *op) const {
  return llvm::any_of(ofLoop, [&](const auto &entry) { return op->isAncestor(entry.first); });
}

/// The channels that loops inside of an op use.
SmallVector<unsigned> Specializer::getChannels(Operation *op) const {
  llvm::SmallDenseSet<unsigned> used;
  for (const auto &[loop, index] : ofLoop)
    if (op->isAncestor(loop))
      used.insert_range(loops[index].channels);
  SmallVector<unsigned> result(used.begin(), used.end());
  llvm::sort(result);
  return result;
}

static SmallVector<Value> getValues(ArrayRef<unsigned> used, ArrayRef<ChannelPlace> places) {
  SmallVector<Value> result;
  for (unsigned channel : used)
    result.append({places[channel].slot, places[channel].phase});
  return result;
}

static void setValues(ArrayRef<unsigned> used, MutableArrayRef<ChannelPlace> places,
                      ValueRange from) {
  for (auto [index, channel] : llvm::enumerate(used))
    places[channel] = {from[2 * index], from[2 * index + 1]};
}

/// A scalar computed again, in a region that does not see it.
Value Specializer::emitAgain(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (mapping.contains(value))
    return mapping.lookup(value);
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() == &kernel.getBody().front())
    return value;
  for (Value operand : op->getOperands())
    mapping.map(operand, emitAgain(builder, operand, mapping));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

void Specializer::emitCopiesOf(OpBuilder &builder, const BoxLoop &planned, IRMapping mapping,
                               SmallVectorImpl<ChannelPlace> &places) {
  for (unsigned channel : planned.channels) {
    emitBoxCopies(builder, planned, channels[channel], channel, places[channel], maps, mapping);
    places[channel] =
        channels[channel].getNext(builder, scf::ForOp(planned.loop).getLoc(), places[channel]);
  }
}

/// The loops and branches of a block, with copies in them.
void Specializer::emitCopies(OpBuilder &builder, Block *block, IRMapping mapping,
                             SmallVectorImpl<ChannelPlace> &places) {
  for (Operation &op : block->without_terminator()) {
    if (!hasPlanned(&op))
      continue;
    Location loc = op.getLoc();
    SmallVector<unsigned> used = getChannels(&op);
    SmallVector<Value> before = getValues(used, places);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto copy =
          scf::ForOp::create(builder, loc, emitAgain(builder, loop.getLowerBound(), mapping),
                             emitAgain(builder, loop.getUpperBound(), mapping),
                             emitAgain(builder, loop.getStep(), mapping), before,
                             /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
      if (!copy.getBody()->empty())
        copy.getBody()->back().erase();
      OpBuilder inside = OpBuilder::atBlockEnd(copy.getBody());
      setValues(used, places, copy.getRegionIterArgs());
      IRMapping inner = mapping;
      inner.map(loop.getInductionVar(), copy.getInductionVar());
      if (auto found = ofLoop.find(loop); found != ofLoop.end())
        emitCopiesOf(inside, loops[found->second], inner, places);
      else
        emitCopies(inside, loop.getBody(), inner, places);
      scf::YieldOp::create(inside, loc, getValues(used, places));
      setValues(used, places, copy.getResults());
      continue;
    }
    auto branch = cast<scf::IfOp>(op);
    Value condition = emitAgain(builder, branch.getCondition(), mapping);
    auto copy = scf::IfOp::create(builder, loc, ValueRange(before).getTypes(), condition,
                                  /*withElseRegion=*/true);
    for (bool isThen : {true, false}) {
      Block *from = isThen ? branch.thenBlock() : branch.elseBlock();
      OpBuilder inside = OpBuilder::atBlockEnd(isThen ? copy.thenBlock() : copy.elseBlock());
      setValues(used, places, before);
      if (from)
        emitCopies(inside, from, mapping, places);
      scf::YieldOp::create(inside, loc, getValues(used, places));
    }
    setValues(used, places, copy.getResults());
  }
}

//===----------------------------------------------------------------------===//
// Who multiplies
//===----------------------------------------------------------------------===//

/// Loops wait for their tiles; what is around them carries the places.
void Specializer::rewriteConsumers(Block *block, SmallVectorImpl<ChannelPlace> &places) {
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator())) {
    if (auto found = ofLoop.find(&op); found != ofLoop.end()) {
      BoxLoop &planned = loops[found->second];
      ofLoop.erase(found);
      LoopFeeder feeder(planned, channels, maps);
      ConsumerLoop(planned, channels, places, feedsItself ? &feeder : nullptr).rewrite();
      continue;
    }
    if (!hasPlanned(&op))
      continue;
    SmallVector<unsigned> used = getChannels(&op);
    SmallVector<Value> before = getValues(used, places);
    OpBuilder builder(&op);
    auto finish = [&](Block *end) {
      auto yield = cast<scf::YieldOp>(end->getTerminator());
      yield->insertOperands(yield->getNumOperands(), getValues(used, places));
    };
    Operation *replacement = nullptr;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      SmallVector<Value> inits(loop.getInitArgs());
      llvm::append_range(inits, before);
      auto to = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), inits,
                                   /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
      to.getRegion().takeBody(loop.getRegion());
      SmallVector<Location> locs(before.size(), loop.getLoc());
      auto arguments = to.getBody()->addArguments(ValueRange(before).getTypes(), locs);
      setValues(used, places, SmallVector<Value>(arguments.begin(), arguments.end()));
      rewriteConsumers(to.getBody(), places);
      finish(to.getBody());
      replacement = to;
    } else {
      auto branch = cast<scf::IfOp>(op);
      SmallVector<Type> types(branch.getResultTypes());
      llvm::append_range(types, ValueRange(before).getTypes());
      auto to = scf::IfOp::create(builder, branch.getLoc(), types, branch.getCondition(),
                                  /*withElseRegion=*/true);
      to.getThenRegion().takeBody(branch.getThenRegion());
      if (branch.elseBlock()) {
        to.getElseRegion().takeBody(branch.getElseRegion());
      } else {
        OpBuilder inside = OpBuilder::atBlockEnd(to.elseBlock());
        scf::YieldOp::create(inside, branch.getLoc());
      }
      for (Block *inner : {to.thenBlock(), to.elseBlock()}) {
        setValues(used, places, before);
        rewriteConsumers(inner, places);
        finish(inner);
      }
      replacement = to;
    }
    replacement->setDiscardableAttrs(op.getDiscardableAttrDictionary());
    setValues(used, places, replacement->getResults().take_back(before.size()));
    op.replaceAllUsesWith(replacement->getResults().take_front(op.getNumResults()));
    op.erase();
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

WarpSpecializeOp Specializer::emitRegions(OpBuilder &builder) {
  int64_t wanted = getWantedRegisters();
  WarpRegisters registers(warps, programs);
  if (programs > 1)
    kernel->setAttr(kOccupancyAttr, builder.getI32IntegerAttr(programs));
  bool isShared = wanted > registers.alone && registers.shared > registers.alone;
  IntegerAttr own, other;
  if (isShared) {
    own = builder.getI32IntegerAttr(registers.shared);
    other = builder.getI32IntegerAttr(registers.forCopies);
  }
  int64_t extra = isShared ? WarpRegisters::kWarpsOfWarpgroup : 1;
  Location loc = kernel.getLoc();
  return WarpSpecializeOp::create(builder, loc, builder.getI32IntegerAttr(extra), own, other);
}

/// The rings end with the last loop that needs them: what comes after may have their place.
void Specializer::endRings(Block *block) {
  Operation *last = nullptr;
  for (Operation &op : *block)
    if (hasPlanned(&op))
      last = &op;
  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  for (Channel &channel : channels)
    channel.deallocate(builder, last->getLoc());
}

/// Puts what the default region does into the loop over programs.
static void repeat(const RepeatedPrograms &programs, Block *body) {
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  Location loc = body->getParentOp()->getLoc();
  scf::ForOp loop = programs.emitLoop(builder, ValueRange());
  // There is nothing more to be copied ahead.
  loop->setAttr(kStagesAttr, builder.getI32IntegerAttr(1));
  for (Operation &op : llvm::make_early_inc_range(*body))
    if (&op != loop)
      op.moveBefore(loop.getBody(), loop.getBody()->end());
  OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
  IRMapping mapping;
  programs.mapIds(inside, loop, mapping);
  programs.replaceIds(mapping);
  inside.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(inside, loc);
}

/// The kernel as it is, but for its loops.
void Specializer::rewriteFeeding() {
  scf::ForOp loop = loops.front().loop;
  loop.emitRemark("loop copies for itself: ") << describeBound(loop);
  Block *body = &kernel.getBody().front();
  Operation *first = nullptr;
  for (Operation &op : llvm::reverse(*body))
    if (hasPlanned(&op))
      first = &op;
  OpBuilder builder(first);
  Location loc = first->getLoc();
  for (Channel &channel : channels)
    channel.allocate(builder, loc, slots, warps);
  // The engine sees new barriers, and comes after all that threads did to the memory of rings.
  ProxyFenceOp::create(builder, loc);
  BarrierOp::create(builder, loc);
  SmallVector<ChannelPlace> places;
  for (const Channel &channel : channels)
    places.push_back(channel.getFirst(builder, loc));
  endRings(body);
  rewriteConsumers(body, places);
}

LogicalResult Specializer::rewrite() {
  Location loc = kernel.getLoc();
  addLaunchConditions(kernel, conditions);
  for (BoxLoop &planned : loops)
    for (BoxLoad &load : planned.loads) {
      FailureOr<BlockArgument> map = addTensorMap(kernel, load.box, load.tile);
      if (failed(map))
        return kernel.emitError("needs more tensor maps than a kernel can have");
      maps[load.load] = *map;
    }

  if (feedsItself) {
    rewriteFeeding();
    return success();
  }
  Block *body = &kernel.getBody().front();
  SmallVector<Operation *> old;
  for (Operation &op : body->without_terminator())
    old.push_back(&op);
  OpBuilder builder(body->getTerminator());
  std::optional<RepeatedPrograms> repeated;
  if (repeats) {
    repeated.emplace(kernel);
    repeated->emitBounds(builder);
  }
  for (Channel &channel : channels)
    channel.allocate(builder, loc, slots, warps);
  WarpSpecializeOp regions = emitRegions(builder);
  for (Region *region : {&regions.getDefaultRegion(), &regions.getPartition()})
    if (region->empty())
      region->emplaceBlock();
  Block *own = &regions.getDefaultRegion().front(), *other = &regions.getPartition().front();
  for (Operation *op : old)
    op->moveBefore(own, own->end());

  builder.setInsertionPointToEnd(other);
  SmallVector<ChannelPlace> places;
  for (const Channel &channel : channels)
    places.push_back(channel.getFirst(builder, loc));
  IRMapping mapping;
  if (repeated) {
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(channels.size()));
    scf::ForOp loop = repeated->emitLoop(builder, getValues(all, places));
    OpBuilder inside = OpBuilder::atBlockEnd(loop.getBody());
    setValues(all, places, loop.getRegionIterArgs());
    repeated->mapIds(inside, loop, mapping);
    emitCopies(inside, own, mapping, places);
    scf::YieldOp::create(inside, loc, getValues(all, places));
  } else {
    emitCopies(builder, own, mapping, places);
  }
  PartitionEndOp::create(builder, loc);
  // Divisions on the way to coordinates take as long as a short product.
  regions.getPartition().walk([](LoopLikeOpInterface loop) { moveLoopInvariantCode(loop); });

  if (repeated)
    repeat(*repeated, own);
  endRings(own);
  builder.setInsertionPointToStart(own);
  places.clear();
  for (const Channel &channel : channels)
    places.push_back(channel.getFirst(builder, loc));
  builder.setInsertionPointToEnd(own);
  PartitionEndOp::create(builder, loc);
  rewriteConsumers(own, places);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TileGPUWarpSpecializePass
    : tessera::tilegpu::impl::TileGPUWarpSpecializePassBase<TileGPUWarpSpecializePass> {
  using TileGPUWarpSpecializePassBase::TileGPUWarpSpecializePassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto target = module->getAttrOfType<StringAttr>(kTargetAttr);
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    if (!target || !warps) {
      module.emitError("does not say for which target and how many warps it is (")
          << kTargetAttr << ", " << kNumWarpsAttr << ")";
      return signalPassFailure();
    }
    // There is no such copy engine before.
    if (getCapability(module) < 90 || *warps >= kMostWarps)
      return;
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      Specializer specializer(kernel, numStages, *warps, getSharedMemoryLimit(target.getValue()),
                              skew, mostPrograms);
      if (!specializer.plan())
        continue;
      if (failed(specializer.rewrite()))
        return signalPassFailure();
    }
  }

  static constexpr unsigned kMostWarps = 32;
};

} // namespace
