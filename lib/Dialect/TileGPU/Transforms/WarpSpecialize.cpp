// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules for kernels whose dots take their tiles from global memory in boxes
// (Analysis/BoxAccess.h), which TMA copies: by a producer warp of the kernel's own, so that the
// program's warps multiply alone; or, where threads have more to compute than tensor cores to
// multiply, by the program's first thread in between. tilegpu-expand-schedule writes the kernel
// (KernelExpander.h).
//
// Loads come before all that the program does to memory before them: in front of the loop, in
// it, or, an iteration earlier, in a loop around it. Nobody may be able to tell
// (Analysis/MemoryOrder.h): the arrays are others, which the launch sees to, or places in one
// array that never meet. A loop of which that cannot be known stays as it is, and so does one
// whose tiles are no boxes; a remark says why. The kernel's other loops have their schedules all
// the same.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Channels.h"
#include "DotOrder.h"
#include "EarlyLoads.h"
#include "LoadsAhead.h"
#include "LoopDots.h"
#include "LoopSchedule.h"
#include "LoopSlice.h"
#include "Multicast.h"
#include "PersistentKernel.h"
#include "ProgramCopies.h"
#include "StoreByTensorMap.h"
#include "WarpRegisters.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "tessera/Analysis/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Layout/MatrixDescriptor.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// Shared memory for barriers, where everything is counted.
static constexpr int64_t kBarrierBytes = 4 << 10;
/// Registers beside what a loop wants, where something is carried that it could do without.
static constexpr int64_t kBesideWanted = 24;
/// Slots of a ring whose tiles are left an iteration later.
static constexpr unsigned kFewestOfLate = 3;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUWARPSPECIALIZEPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// A load that TMA does.
struct BoxLoad {
  tile::LoadOp load;
  MemDescType tile;
  /// Buffers that the loaded tile was stored to; none where threads read it.
  SmallVector<LocalAllocOp, 1> buffers;
  /// The channel it comes by.
  unsigned channel = 0;
  /// Whether all blocks of the cluster get the same tile.
  bool isMulticast = false;

  bool isRow() const { return tile::getShape(tile::LoadOp(load).getType()).size() == 1; }
};

/// What is proposed for a loop of dots.
struct BoxLoop {
  scf::ForOp loop;
  SmallVector<BoxLoad, 2> loads;
  /// The channels in the order in which the loop needs them.
  SmallVector<unsigned, 2> channels;
  unsigned stages = 0;
  WarpgroupDotOp asyncDot, lateDot;
  /// Of a loop with more dots than these are for.
  std::optional<DotOrder> order;
  /// Loads that threads do an iteration ahead.
  SmallVector<tile::LoadOp> loadsAhead;
  /// Whether warpgroups begin dots alternately (ping-pong).
  bool isPingPong = false;
  /// Whether it loads from arrays that the kernel finds: its copies begin where the program comes
  /// to it, and threads begin them.
  bool isInPlace = false;

  ReplacedOps getReplaced() const;
  bool hasLateDot() const { return order && order->hasLate(); }
  /// The channel by which an operand of a dot comes; none if by no one.
  std::optional<unsigned> getChannel(Value operand) const;
  /// The dot that is under way while copies are begun; null if there is a single one.
  WarpgroupDotOp getLastDot() const;
  /// The first op that needs the dot that is put off, or takes the place of its operand.
  Operation *findNeedOfLateDot() const;
};

/// A kernel, and what becomes of its loops.
class Specializer {
public:
  Specializer(tile::FuncOp kernel, const GPUMachine &machine, unsigned stages, unsigned warps,
              bool skew, int64_t mostPrograms)
      : kernel(kernel), machine(machine), stages(stages), warps(warps), skew(skew),
        mostPrograms(mostPrograms) {}

  /// Decides; nothing is changed. False if there is nothing to be done, or it cannot be.
  bool plan();
  /// Puts the schedules on the kernel and its loops.
  void propose();

private:
  bool planLoop(scf::ForOp loop);
  std::string planLoad(BoxLoop &planned, tile::LoadOp load);
  bool planInPlace(const BoxLoop &planned);
  bool planOrder(scf::ForOp loop, ArrayRef<tile::LoadOp> loads);
  void joinChannels(BoxLoop &planned);
  bool isBoundByDots() const;
  void planFedPrograms();
  bool hasLoopsInPlace() const;
  void putNothingOff();
  bool hasOrder() const {
    return llvm::any_of(loops, [](const BoxLoop &planned) { return planned.order.has_value(); });
  }
  bool hasLateDot() const {
    return llvm::any_of(loops, [](const BoxLoop &planned) { return planned.hasLateDot(); });
  }
  int64_t getOtherBytes(const ReplacedOps &replaced) const;
  int64_t getBytesOfSlots() const;
  bool planOwnCopies();
  bool planSlots();
  void planPrograms(llvm::function_ref<bool(int64_t)> fits);
  bool planProgramCopies();
  void planProgramSlots(int64_t others);
  ReplacedOps getReplaced() const;
  int64_t getWantedRegisters(const BoxLoop &planned) const;
  int64_t getWantedRegisters() const;
  bool refuse(Operation *loop, const Twine &why, Operation *place = nullptr);

  KernelScheduleAttr getKernelSchedule() const;
  void propose(BoxLoop &planned);
  void proposeCopies(const BoxLoop &planned);

  tile::FuncOp kernel;
  const GPUMachine &machine;
  unsigned stages, warps;
  bool skew;            ///< whether a dot may be put off
  int64_t mostPrograms; ///< that may run at once on an SM

  AccessAnalysis analysis;
  MemoryOrder order{analysis};
  /// What loads that come early take for granted.
  LaunchConditions conditions;
  std::vector<BoxLoop> loops;
  /// Loops with dots that stay as they are.
  SmallVector<scf::ForOp, 1> unplanned;
  SmallVector<Channel> channels;
  unsigned slots = 0;
  /// How many are to run at once on an SM.
  int64_t programs = 1;
  /// Whether the kernel is persistent: a block does one program after the other.
  bool isPersistent = false;
  /// Tiles that the producer of a persistent kernel copies once a program.
  SmallVector<ScheduledCopy, 1> programCopies;
  /// Slots of their rings: with a single one the next program's tile is copied once this one's is
  /// left, and all that the producer copies behind it as well.
  unsigned programSlots = 1;
  /// Whether the program's first thread orders copies, and why.
  bool copiesForItself = false;
  std::string whyItCopies;
  /// How many programs share an SM because it does.
  int64_t sharedPrograms = 1;
};

} // namespace

//===----------------------------------------------------------------------===//
// Which loops
//===----------------------------------------------------------------------===//

bool Specializer::refuse(Operation *loop, const Twine &why, Operation *place) {
  RemarkInFlight remark = emitRemark(loop, RemarkKind::LoopNotSpecialized)
                          << "loop is not specialised: " << named("reason", why.str());
  if (place)
    remark.attachNote(place->getLoc()) << "here";
  return false;
}

/// Registers of a thread for what a loop carries and computes.
int64_t Specializer::getWantedRegisters(const BoxLoop &planned) const {
  constexpr int64_t kLate = 40, kOthers = 64, kBetween = 32;
  scf::ForOp loop = planned.loop;
  int64_t words = 0, between = 0;
  for (Value value : loop.getRegionIterArgs())
    words += getRegisters(value.getType(), warps);
  if (planned.order)
    return planned.order->getRegisters(warps);
  // One operand is held while the next is computed.
  if (WarpgroupDotOp late = planned.lateDot) {
    for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
      if (dot != late)
        words += getRegisters(dot.getType(), warps);
    return words + kLate + getRegisters(late.getA().getType(), warps);
  }
  // What is computed with before it is multiplied again, as far as it is there at once.
  SmallVector<WarpgroupDotOp> inner;
  for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>()) {
    llvm::erase_if(inner, [&](WarpgroupDotOp earlier) {
      return llvm::all_of(earlier->getUsers(), [&](Operation *user) {
        Operation *around = loop.getBody()->findAncestorOpInBlock(*user);
        return around && around->isBeforeInBlock(dot);
      });
    });
    if (!llvm::is_contained(dot->getUsers(), loop.getBody()->getTerminator()))
      inner.push_back(dot);
    int64_t together = 0;
    for (WarpgroupDotOp held : inner)
      together += getRegisters(held.getType(), warps);
    between = std::max(between, together);
  }
  return words + (between ? kBetween + between : kOthers);
}

/// A row of numbers in shared memory, one after the other.
static MemDescType getRowType(RankedTensorType type) {
  LinearLayout memory(type.getShape());
  for (unsigned bit = 0; bit < memory.elementBits(); ++bit)
    memory.columns(HwDim::Offset).push_back(uint64_t(1) << bit);
  MLIRContext *context = type.getContext();
  return MemDescType::get(context, type.getShape(), type.getElementType(),
                          LayoutAttr::get(context, memory));
}

/// Rows as TMA writes them, for a tile that threads read into registers.
static MemDescType getFragmentType(tile::LoadOp load, AccessAnalysis &analysis) {
  auto type = cast<RankedTensorType>(load.getType());
  unsigned fast = getAccessPattern(load, analysis).getFastDim(type.getShape());
  int64_t bits = 8 * getElementBytes(type.getElementType());
  LayoutAttr memory =
      LayoutAttr::get(load.getContext(), operandMemory(type.getShape(), fast, bits));
  return MemDescType::get(load.getContext(), type.getShape(), type.getElementType(), memory);
}

/// Adds a load, or says why TMA cannot do it.
std::string Specializer::planLoad(BoxLoop &planned, tile::LoadOp load) {
  if (load.getIsVolatile() || load.getCache() == tile::CacheModifier::CV)
    return "it is not to be cached";
  BoxLoad result;
  result.load = load;
  auto type = cast<RankedTensorType>(load.getType());
  bool isRead = type.getRank() <= 2 && llvm::none_of(load->getUsers(), [](Operation *user) {
                  return isa<LocalAllocOp>(user) || user->hasTrait<OpTrait::IsTerminator>();
                });
  for (Operation *user : load->getUsers()) {
    if (isRead)
      break;
    auto buffer = dyn_cast<LocalAllocOp>(user);
    if (!buffer || user->getBlock() != planned.loop.getBody())
      return "its tile is multiplied as it is, and computed with";
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
  result.tile = !isRead               ? result.buffers.front().getType()
                : type.getRank() == 1 ? getRowType(type)
                                      : getFragmentType(load, analysis);
  std::string why;
  std::optional<BoxAccess> box = getBoxToCopy(kernel, load, result.tile, analysis, why);
  if (!box)
    return why;
  planned.isInPlace |= box->isFoundByKernel();
  unsigned parts = getNumParts(kernel);
  result.isMulticast = parts > 1 && !dependsOnBlock(load.getPtr()) &&
                       !(load.getMask() && dependsOnBlock(load.getMask())) &&
                       getRowsOfShares(result.tile, parts);
  planned.loads.push_back(std::move(result));
  return "";
}

/// Whether loads may come before everything that is done to memory before them.
bool Specializer::planOrder(scf::ForOp loop, ArrayRef<tile::LoadOp> loads) {
  std::optional<EarlyLoadObstacle> obstacle =
      findObstacle(kernel, loads, order, analysis, conditions);
  if (!obstacle)
    return true;
  if (!obstacle->load)
    return refuse(loop, "what comes before it orders memory", obstacle->op);
  RemarkInFlight remark =
      emitRemark(loop, RemarkKind::LoopNotSpecialized)
      << "loop is not specialised: "
      << named("reason", StringRef("what it loads may have been stored by the same program"));
  remark.attachNote(obstacle->op->getLoc()) << "stored here";
  remark.attachNote(obstacle->load.getLoc()) << "loaded here";
  return false;
}

/// Why the iterations of a loop cannot be told apart; empty if they can.
static std::string whyNotCopied(scf::ForOp loop) {
  if (getSmallStep(loop))
    return "";
  APInt step;
  bool isConstant = matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isStrictlyPositive();
  return isConstant ? "its step is not a small constant" : "its step is not a constant";
}

/// Whether loads of later iterations may come early, those of the first one being where they are.
bool Specializer::planInPlace(const BoxLoop &planned) {
  if (getClusterSize(kernel) > 1)
    return refuse(planned.loop, "blocks of a cluster find its arrays in memory");
  if (std::string why = whyNotCopied(planned.loop); !why.empty())
    return refuse(planned.loop, "it loads from arrays that are found in memory, and " + why);
  if (Operation *obstacle = findObstacleInLoop(planned.loop, order))
    return refuse(planned.loop, "it may store what it loads, or orders memory", obstacle);
  return true;
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
    return refuse(loop, "a dot is in a branch or loop inside of it", inner);
  // Blocks that exchange tiles in a loop would wait for those who load for it.
  for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
    if (getNumBlocks(kernel) > 1 && !dot.getOfBlock())
      return refuse(loop, "blocks of a cluster have parts of what it multiplies", dot);
  if (getNumParts(kernel) > 1 && isUneven(loop))
    return refuse(loop, "blocks of a cluster do it differently often");
  SmallVector<tile::LoadOp> loads;
  for (tile::LoadOp load : loop.getBody()->getOps<tile::LoadOp>())
    if (isa<RankedTensorType>(load.getType()) && reachesDot(load.getResult(), loop.getBody()))
      loads.push_back(load);
  std::string whyNotLoaded;
  tile::LoadOp notLoaded;
  for (tile::LoadOp load : loads)
    if (whyNotLoaded.empty())
      if (whyNotLoaded = planLoad(planned, load); !whyNotLoaded.empty())
        notLoaded = load;
  if (planned.isInPlace) {
    if (!planInPlace(planned))
      return false;
  } else {
    if (!planOrder(loop, loads))
      return false;
    if (std::string why = whyNotAround(kernel, loop); !why.empty())
      return refuse(loop, why);
  }
  if (notLoaded)
    return refuse(loop, whyNotLoaded, notLoaded);
  if (llvm::all_of(planned.loads, [](const BoxLoad &box) { return box.isRow(); }))
    return refuse(loop, "it loads nothing that it multiplies");
  // Who multiplies says of each slot that it is empty, and therefore has to be there.
  ReplacedOps replaced = planned.getReplaced();
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
    if (!live.contains(dot))
      return refuse(loop, "nobody needs the dot", dot);
  joinChannels(planned);
  planned.asyncDot = findAsyncDot(loop, replaced);
  if (skew)
    planned.lateDot = findLateDot(loop, replaced);
  planned.order = DotOrder::plan(loop, replaced, /*isLate=*/skew);
  if (planned.order && planned.order->hasLate() &&
      getWantedRegisters(planned) > WarpRegisters(warps).getMost())
    planned.order = DotOrder::plan(loop, replaced, /*isLate=*/false);
  // The dot that is put off has its tiles to itself.
  if (WarpgroupDotOp late = planned.lateDot) {
    unsigned uses = 0;
    for (WarpgroupDotOp dot : loop.getBody()->getOps<WarpgroupDotOp>())
      for (Value operand : {Value(dot.getA()), Value(dot.getB())})
        uses += planned.getChannel(operand) == planned.getChannel(late.getB());
    WarpRegisters registers(warps);
    if (uses != 1 || getWantedRegisters(planned) > registers.getMost())
      planned.lateDot = nullptr;
  }
  // Numbers that are carried take registers, and what computes where the next ones are.
  if (getWantedRegisters(planned) + kBesideWanted <= WarpRegisters(warps).getMost())
    planned.loadsAhead = findLoadsAhead(loop, replaced, this->order);
  loops.push_back(std::move(planned));
  return true;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

/// Tiles that one dot takes come together. Loops with tiles of the same types have
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
  // Rows of numbers are few bytes, and come with a tile; tiles that threads read come with what
  // they are multiplied with.
  for (unsigned load = 0; load < planned.loads.size(); ++load)
    if (!llvm::is_contained(order, load)) {
      together.insert(load);
      order.push_back(load);
      together.unionSets(order.front(), load);
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
    for (unsigned load : members)
      planned.loads[load].channel = channel;
  }
}

/// Registers of a thread for the loop that wants most.
int64_t Specializer::getWantedRegisters() const {
  int64_t wanted = 0;
  for (const BoxLoop &planned : loops)
    wanted = std::max(wanted, getWantedRegisters(planned));
  for (scf::ForOp loop : unplanned) {
    BoxLoop other;
    other.loop = loop;
    wanted = std::max(wanted, getWantedRegisters(other));
  }
  return wanted;
}

/// Rather several programs at once, of which one multiplies while another computes; then
/// their warps have each other to wait for, where one alone puts a dot off.
void Specializer::planPrograms(llvm::function_ref<bool(int64_t)> fits) {
  auto find = [&] {
    for (programs = mostPrograms; programs > 1; --programs)
      if (fits(machine.getSharedBytes(programs)) &&
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
    planned.isPingPong = planned.lateDot && warps >= 2 * GPUMachine::kWarpsOfWarpgroup;
}

/// Finds what the producer could copy once a program. False if loops multiply other tiles that
/// threads have before them.
bool Specializer::planProgramCopies() {
  bool isComplete = true;
  for (BoxLoop &planned : loops)
    for (WarpgroupDotOp dot : planned.loop.getBody()->getOps<WarpgroupDotOp>())
      isComplete &= isa<MemDescType>(dot.getA().getType()) ||
                    !planned.loop.isDefinedOutsideOfLoop(dot.getA());
  ReplacedOps inLoops = getReplaced();
  SmallVector<tile::LoadOp> loads;
  kernel.walk([&](LocalAllocOp buffer) {
    if (!buffer.getSource() || inLoops.contains(buffer))
      return;
    auto load = buffer.getSource().getDefiningOp<tile::LoadOp>();
    isComplete &= load != nullptr;
    if (load && !llvm::is_contained(loads, load))
      loads.push_back(load);
  });
  for (tile::LoadOp load : loads) {
    std::string why;
    std::optional<ScheduledCopy> copy = getProgramCopy(kernel, load, why);
    std::optional<BoxAccess> box;
    if (copy)
      box = getBoxToCopy(kernel, load, copy->tile, analysis, why);
    if (!box || box->isFoundByKernel() || findObstacle(kernel, load, order, analysis, conditions)) {
      isComplete = false;
      continue;
    }
    copy->channel = channels.size() + programCopies.size();
    programCopies.push_back(std::move(*copy));
  }
  return isComplete;
}

/// What copies take the place of.
ReplacedOps Specializer::getReplaced() const {
  ReplacedOps replaced;
  for (const BoxLoop &planned : loops)
    replaced.insert_range(planned.getReplaced());
  for (const ScheduledCopy &copy : programCopies) {
    replaced.insert(copy.load);
    replaced.insert_range(copy.buffers);
  }
  return replaced;
}

/// A second slot for what is copied once a program, where there is room for it: `others` has the
/// first.
void Specializer::planProgramSlots(int64_t others) {
  int64_t bytes = 0;
  for (const ScheduledCopy &copy : programCopies)
    bytes += MemDescType(copy.tile).getRing(1).getSlotBytes();
  bytes += slots * getBytesOfSlots() + channels.size() * Channel::getBarrierBytes(slots) +
           programCopies.size() * Channel::getBarrierBytes(/*slots=*/2) + others +
           getRoomForResults(kernel, getReplaced(), analysis);
  programSlots = bytes <= machine.sharedBytes ? 2 : 1;
}

/// Shared memory that rings cannot have. A kernel with loops of many dots after one another keeps
/// a few large tiles for each of them, which are not there at once.
int64_t Specializer::getOtherBytes(const ReplacedOps &replaced) const {
  Block &body = tile::FuncOp(kernel).getBody().front();
  llvm::DenseMap<Operation *, size_t> places;
  for (Operation &op : body)
    places.try_emplace(&op, places.size());
  auto getPlace = [&](Operation *op) { return places.lookup(body.findAncestorOpInBlock(*op)); };
  std::vector<int64_t> live(places.size(), 0);
  int64_t sum = 0;
  tile::FuncOp(kernel).walk([&](LocalAllocOp buffer) {
    if (replaced.contains(buffer))
      return;
    size_t first = getPlace(buffer), last = first;
    SmallVector<Operation *> work{buffer};
    while (!work.empty())
      for (Operation *user : work.pop_back_val()->getUsers()) {
        last = std::max(last, getPlace(user));
        if (isa<MemDescTransOp, MemDescIndexOp>(user))
          work.push_back(user);
      }
    sum += buffer.getType().getNumBytes();
    for (size_t place = first; place <= last; ++place)
      live[place] += buffer.getType().getNumBytes();
  });
  return hasOrder() ? *llvm::max_element(live) : sum;
}

int64_t Specializer::getBytesOfSlots() const {
  int64_t bytes = 0;
  for (const Channel &channel : channels)
    bytes += channel.getSlotBytes();
  return bytes;
}

bool Specializer::planSlots() {
  int64_t perSlot = getBytesOfSlots();
  bool isInLoop = llvm::any_of(loops, [](const BoxLoop &planned) {
    return scf::ForOp(planned.loop)->getParentOfType<scf::ForOp>() != nullptr;
  });
  int64_t others = getOtherBytes(getReplaced());
  // Rings that are filled while results are stored leave room for these.
  int64_t barriers = 0;
  for (const BoxLoop &planned : loops)
    barriers = std::max(barriers, Channel::getBarrierBytes(planned.stages + 1));
  barriers *= channels.size();
  auto getStored = [&] {
    return std::max(kExchangeBytes, barriers + getRoomForResults(kernel, getReplaced(), analysis));
  };
  int64_t stored = getStored();
  auto getFitting = [&](bool isStored) {
    return (machine.sharedBytes - (isStored ? stored : kExchangeBytes) - others) / perSlot;
  };
  int64_t fitting = getFitting(isInLoop);
  scf::ForOp first = loops.front().loop;
  unsigned wanted = 0, least = 0;
  for (const BoxLoop &planned : loops) {
    // The operands of a dot that goes on take a slot more.
    wanted = std::max(wanted, planned.stages + (planned.asyncDot || planned.hasLateDot() ? 1 : 0));
    least = std::max(least, planned.stages);
    // Nothing is copied ahead of such a loop: it has to be fast to have a ring full.
    if (planned.isInPlace)
      least = wanted;
  }
  // Rather two programs on an SM than a long ring: one copies while the other computes.
  unsigned few = least;
  if (hasOrder())
    few = std::min(few, hasLateDot() ? kFewestOfLate : 2u);
  // A dot that goes on keeps tensor cores busy on its own, if the ring is long; between
  // results there is nothing to do, unless the next one's copies have begun.
  constexpr unsigned kFewest = 3;
  // Where a program has an SM for itself, the next one's tiles are copied while it stores. Where
  // threads compute with what is multiplied, that is worth something if they have none to load.
  auto planPersistence = [&](bool isWithoutLoads) {
    isPersistent = unplanned.empty() && !isInLoop &&
                   getWantedRegisters() > WarpRegisters(warps, /*programs=*/2).alone &&
                   PersistentKernel::isPossible(kernel) &&
                   PersistentKernel::isOfOneLength(kernel) &&
                   (planProgramCopies() || !isWithoutLoads);
    int64_t alone = stored;
    if (!programCopies.empty())
      stored = getStored() + programCopies.size() * Channel::getBarrierBytes(/*slots=*/1);
    isPersistent &= getFitting(/*isStored=*/true) >= std::min(wanted, kFewest);
    if (!isPersistent) {
      programCopies.clear();
      stored = alone;
    }
    fitting = getFitting(isInLoop || isPersistent);
  };
  if (copiesForItself) {
    fitting = std::min<int64_t>(getFitting(isInLoop), wanted);
    if (sharedPrograms > 1) {
      int64_t most = (machine.getSharedBytes(sharedPrograms) - barriers - others) / perSlot;
      if (most >= 2)
        least = fitting = std::min(fitting, most);
    }
    // Programs fill each other's gaps: better a slot less than that barriers take the place of
    // one of them.
    auto countPrograms = [&](int64_t bytes) {
      // Threads have no pointers to carry.
      constexpr int64_t kPointers = 8;
      int64_t threads = GPUMachine::kWarpSize * warps;
      int64_t admitted = GPUMachine::kRegisters / (threads * (getWantedRegisters() - kPointers));
      while (admitted > 1 && machine.getSharedBytes(admitted) < bytes)
        --admitted;
      return admitted;
    };
    int64_t tiles = fitting * perSlot + others,
            words = Channel::getBarrierBytes(fitting) * channels.size();
    if (fitting > 2 && countPrograms(tiles + words) < countPrograms(tiles)) {
      --fitting;
      emitRemark(first, RemarkKind::FewerStages)
          << "loop copies for itself with " << named("stages", fitting) << " stages, not "
          << named("wanted", least) << ": with another one fewer programs share an SM";
      least = fitting;
    }
  } else if (llvm::all_of(loops, [](const BoxLoop &planned) { return planned.asyncDot; })) {
    planPersistence(/*isWithoutLoads=*/false);
  } else {
    planPrograms([&](int64_t bytes) {
      return (bytes - (isInLoop ? stored : kBarrierBytes) - others) / perSlot >= few;
    });
    if (programs > 1) {
      fitting = (machine.getSharedBytes(programs) - (isInLoop ? stored : kBarrierBytes) - others) /
                perSlot;
      least = std::min<int64_t>(least, fitting);
    } else if (llvm::all_of(loops,
                            [](const BoxLoop &planned) {
                              return !planned.order && computesWithDots(planned.loop);
                            }) &&
               getWantedRegisters() + kBesideWanted <=
                   WarpRegisters(warps, /*programs=*/1).getMost()) {
      planPersistence(/*isWithoutLoads=*/false);
    } else if (llvm::all_of(loops, [](const BoxLoop &planned) { return planned.lateDot; })) {
      planPersistence(/*isWithoutLoads=*/true);
    }
  }
  // Rather results in rounds than fewer stages than asked for.
  if ((isInLoop || isPersistent) && programs == 1 && fitting < least)
    fitting = std::min<int64_t>(
        least, (machine.sharedBytes - kExchangeBytes - kBarrierBytes - others) / perSlot);
  slots = std::clamp<int64_t>(fitting, 0, wanted);
  // The tiles of dots that begin an iteration later stay there as long: with two slots nothing
  // would be copied meanwhile.
  if (slots < kFewestOfLate)
    putNothingOff();
  if (!programCopies.empty())
    planProgramSlots(others);
  if (slots < 2)
    return refuse(first,
                  "two stages of " + Twine(perSlot) + " bytes do not fit into shared memory");
  if (slots < least)
    emitRemark(first, RemarkKind::FewerStages)
        << (copiesForItself ? "loop copies for itself with " : "loop is specialised with ")
        << named("stages", slots) << " stages, not " << named("wanted", least) << ": a stage takes "
        << named("stage_bytes", perSlot) << " bytes of shared memory";
  return true;
}

/// Whether tensor cores have more to do than threads, in some loop.
bool Specializer::isBoundByDots() const {
  return llvm::any_of(loops, [this](const BoxLoop &planned) {
    LoopCycles cycles = countCycles(planned.loop, machine);
    return cycles.dots >= cycles.arithmetic;
  });
}

static std::string describeBound(scf::ForOp loop, const GPUMachine &machine) {
  LoopCycles cycles = countCycles(loop, machine);
  return "its arithmetic takes longer than its dots, " + std::to_string(cycles.arithmetic) +
         " cycles and " + std::to_string(cycles.dots);
}

void Specializer::putNothingOff() {
  for (BoxLoop &planned : loops)
    if (planned.hasLateDot())
      planned.order = DotOrder::plan(planned.loop, planned.getReplaced(), /*isLate=*/false);
}

/// Programs beside each other overlap better than a loop's dots and its arithmetic do. Where more
/// of them share an SM without warps for copies, that is worth more than those.
void Specializer::planFedPrograms() {
  if (!llvm::all_of(loops, [](const BoxLoop &planned) {
        return planned.order && whyNotCopied(planned.loop).empty();
      }))
    return;
  constexpr int64_t kMostAlone = 3;
  ReplacedOps replaced;
  for (const BoxLoop &planned : loops)
    replaced.insert_range(planned.getReplaced());
  int64_t bytes = getOtherBytes(replaced) + 2 * getBytesOfSlots() + kBarrierBytes;
  auto count = [&](int64_t most, llvm::function_ref<int64_t(int64_t)> getMost) {
    int64_t wanted = std::min(getWantedRegisters(), GPUMachine::kMaxAllocatedRegisters);
    int64_t found = 1;
    while (found < most && getMost(found + 1) >= wanted &&
           machine.getSharedBytes(found + 1) >= bytes)
      ++found;
    return found;
  };
  // Warps that exchange registers leave none to loops of which it is not known what they need.
  int64_t beside = count(mostPrograms, [&](int64_t several) {
    WarpRegisters registers(warps, several);
    return unplanned.empty() ? registers.getMost() : registers.alone;
  });
  bool isLate = hasLateDot();
  std::vector<BoxLoop> late = loops;
  putNothingOff();
  int64_t threads = GPUMachine::kWarpSize * warps;
  int64_t alone = count(
      kMostAlone, [&](int64_t several) { return GPUMachine::getRegisters(several * threads); });
  // As many do better on their own, too, if the warps that are beside them put no dot off.
  if (alone > beside || (alone > 1 && alone == beside && !isLate))
    sharedPrograms = alone;
  else
    loops = std::move(late);
}

bool Specializer::hasLoopsInPlace() const {
  return llvm::any_of(loops, [](const BoxLoop &planned) { return planned.isInPlace; });
}

/// If not, tensor cores wait for threads, and those do better as several programs: what one more
/// thread takes of the registers is worth a program (attention with heads of 64). One of their
/// own orders copies then. It also does where a producer would have to be told which arrays there
/// are, and may come to them no earlier than the program.
bool Specializer::planOwnCopies() {
  scf::ForOp first = loops.front().loop;
  whyItCopies = hasLoopsInPlace()    ? "the kernel finds its arrays in memory"
                : sharedPrograms > 1 ? "more programs share an SM without warps for copies"
                                     : describeBound(first, machine);
  for (BoxLoop &planned : loops) {
    if (planned.asyncDot && !hasLoopsInPlace())
      return refuse(first, whyItCopies);
    if (std::string why = whyNotCopied(planned.loop); !why.empty())
      return refuse(planned.loop, whyItCopies + ", and " + why);
    planned.lateDot = nullptr;
  }
  // Slots are to be left where an iteration ends.
  putNothingOff();
  copiesForItself = true;
  return true;
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
      unplanned.push_back(loop);
  if (loops.empty())
    return false;
  if (isBoundByDots())
    planFedPrograms();
  // Rings of other loops, which copy by cp.async, are counted nowhere.
  if (sharedPrograms > 1 && !unplanned.empty())
    return refuse(loops.front().loop,
                  "more programs share an SM without warps for copies, and another loop is not "
                  "specialised",
                  unplanned.front());
  if ((!isBoundByDots() || sharedPrograms > 1 || hasLoopsInPlace()) && !planOwnCopies())
    return false;
  if (!planSlots())
    return false;
  // What loops that stay as they are need is only guessed at: they are to have what they need
  // without that warps exchange registers.
  if (!copiesForItself && !unplanned.empty() &&
      getWantedRegisters() > WarpRegisters(warps, programs).alone)
    return refuse(loops.front().loop,
                  "beside a producer warp another loop would have too few registers",
                  unplanned.front());
  return true;
}

//===----------------------------------------------------------------------===//
// The schedules
//===----------------------------------------------------------------------===//

ReplacedOps BoxLoop::getReplaced() const {
  ReplacedOps replaced;
  for (const BoxLoad &planned : loads) {
    replaced.insert(planned.load);
    replaced.insert(planned.buffers.begin(), planned.buffers.end());
  }
  return replaced;
}

std::optional<unsigned> BoxLoop::getChannel(Value operand) const {
  Operation *buffer = skipTrans(operand).getDefiningOp();
  for (const BoxLoad &planned : loads)
    if (llvm::is_contained(planned.buffers, buffer))
      return planned.channel;
  return std::nullopt;
}

WarpgroupDotOp BoxLoop::getLastDot() const {
  SmallVector<WarpgroupDotOp> dots =
      llvm::to_vector(scf::ForOp(loop).getBody()->getOps<WarpgroupDotOp>());
  return dots.size() > 1 ? dots.back() : WarpgroupDotOp();
}

Operation *BoxLoop::findNeedOfLateDot() const {
  scf::ForOp of = loop;
  WarpgroupDotOp late = lateDot;
  ReplacedOps replaced = getReplaced();
  llvm::DenseSet<Operation *> live = getLiveOps(loop, replaced);
  auto yield = cast<scf::YieldOp>(of.getBody()->getTerminator());
  unsigned index = llvm::find(yield.getOperands(), late.getResult()) - yield.operand_begin();
  for (Operation &op : of.getBody()->without_terminator()) {
    if (replaced.contains(&op) || !live.contains(&op) || &op == late)
      continue;
    auto isIn = [&](Operation *user) { return op.isAncestor(user); };
    if (&op == late.getA().getDefiningOp() ||
        llvm::any_of(of.getRegionIterArg(index).getUsers(), isIn))
      return &op;
  }
  return nullptr;
}

/// The copies: of a producer, or of the loop's own, behind the begin of its last dot. By then all
/// warps are done with the dots before it, mostly, and the thread does not have to wait for them.
void Specializer::proposeCopies(const BoxLoop &planned) {
  MLIRContext *context = kernel.getContext();
  WarpgroupDotOp last = planned.getLastDot(), late = planned.lateDot;
  for (const BoxLoad &box : planned.loads) {
    bool isLate = late && planned.getChannel(late.getB()) == box.channel;
    NodeAttr node = NodeAttr::getCopy(context, /*stage=*/0, /*order=*/0, box.channel, Type(),
                                      WarpRole::Producer, isLate ? std::optional(2) : std::nullopt,
                                      box.isMulticast);
    if (copiesForItself && planned.order) {
      // All slots are left where an iteration ends.
      node =
          NodeAttr::getCopy(context, 1 - static_cast<int>(slots), /*order=*/1, box.channel, Type());
    } else if (copiesForItself) {
      // What the last dot reads is left only when it is done.
      WarpgroupDotOp late = last ? last : planned.asyncDot;
      bool isLeftLate = late && (planned.getChannel(late.getA()) == box.channel ||
                                 planned.getChannel(late.getB()) == box.channel);
      node = NodeAttr::getCopy(context, -static_cast<int>(slots - (isLeftLate ? 1 : 0)),
                               /*order=*/1, box.channel, Type());
    }
    box.load->setAttr(kNodeAttr, node);
  }
}

void Specializer::propose(BoxLoop &planned) {
  MLIRContext *context = kernel.getContext();
  for (BoxLoad &box : planned.loads)
    if (box.buffers.empty())
      box.buffers.push_back(
          readFromRing(box.load, box.tile, planned.order ? &*planned.order : nullptr));
  proposeCopies(planned);
  auto setDot = [&](WarpgroupDotOp dot, int stage, int wait, unsigned inFlight = 0) {
    dot->setAttr(kNodeAttr, NodeAttr::getMMA(context, stage, /*order=*/0, wait, inFlight));
  };
  if (planned.order) {
    planned.order->propose();
  } else if (WarpgroupDotOp last = planned.getLastDot(); copiesForItself && last) {
    setDot(last, /*stage=*/0, /*wait=*/2);
    setOrder(last->getNextNode(), 2);
  } else if (planned.asyncDot) {
    setDot(planned.asyncDot, /*stage=*/0, /*wait=*/1, /*inFlight=*/1);
    setOrder(planned.asyncDot->getNextNode(), 1);
  } else if (planned.lateDot) {
    // The early one and the one that is put off begin together.
    for (WarpgroupDotOp dot : scf::ForOp(planned.loop).getBody()->getOps<WarpgroupDotOp>())
      if (dot != planned.lateDot)
        setDot(dot, /*stage=*/0, /*wait=*/1);
    setDot(planned.lateDot, /*stage=*/1, /*wait=*/2);
    if (Operation *op = planned.findNeedOfLateDot())
      setOrder(op, 2);
    for (WarpgroupDotOp dot : scf::ForOp(planned.loop).getBody()->getOps<WarpgroupDotOp>())
      if (dot != planned.lateDot)
        setOrder(dot->getNextNode(), 1);
  }
  for (tile::LoadOp load : planned.loadsAhead)
    loadAhead(load);
  SmallVector<ChannelAttr> attrs;
  for (unsigned channel : planned.channels)
    attrs.push_back(ChannelAttr::get(context, channel, slots, CopyKind::TMA));
  scf::ForOp(planned.loop)
      ->setAttr(kScheduleAttr, ScheduleAttr::get(context, attrs, planned.isPingPong));
}

KernelScheduleAttr Specializer::getKernelSchedule() const {
  int64_t wanted = getWantedRegisters();
  WarpRegisters registers(warps, programs);
  bool isShared = wanted > registers.alone && registers.shared > registers.alone;
  SmallVector<ChannelAttr> ofPrograms;
  for (const ScheduledCopy &copy : programCopies)
    ofPrograms.push_back(ChannelAttr::get(tile::FuncOp(kernel)->getContext(), copy.channel,
                                          programSlots, CopyKind::TMA));
  return KernelScheduleAttr::get(
      tile::FuncOp(kernel)->getContext(), isShared ? GPUMachine::kWarpsOfWarpgroup : 1,
      isShared ? registers.shared : 0, isShared ? registers.forCopies : 0, programs, isPersistent,
      ProgramOrder::Grid, /*group=*/0, ofPrograms);
}

void Specializer::propose() {
  if (copiesForItself) {
    scf::ForOp loop = loops.front().loop;
    emitRemark(loop, RemarkKind::LoopCopiesForItself)
        << "loop copies for itself: " << named("reason", whyItCopies);
  } else {
    kernel->setAttr(kKernelScheduleAttr, getKernelSchedule());
  }
  for (const ScheduledCopy &copy : programCopies)
    tile::LoadOp(copy.load)->setAttr(kNodeAttr, NodeAttr::getCopy(kernel.getContext(), /*stage=*/0,
                                                                  /*order=*/0, copy.channel, Type(),
                                                                  WarpRole::Producer));
  for (BoxLoop &planned : loops)
    propose(planned);
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
    auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
    std::optional<unsigned> warps = tilegpu::getNumWarps(module);
    if (!target || !warps) {
      module.emitError("does not say for which target and how many warps it is (")
          << kTargetAttr << ", " << kNumWarpsAttr << ")";
      return signalPassFailure();
    }
    // There is no TMA before.
    if (!target.getMachine()->hasTMA || *warps >= GPUMachine::kMaxWarps)
      return;
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      // What somebody has written there stays.
      if (kernel->hasAttr(kKernelScheduleAttr))
        continue;
      Specializer specializer(kernel, *target.getMachine(), numStages, *warps, skew, mostPrograms);
      if (!specializer.plan())
        continue;
      specializer.propose();
    }
  }
};

} // namespace
