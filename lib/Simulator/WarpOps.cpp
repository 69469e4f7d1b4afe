// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ids of a thread, and collective instructions of lanes and warps: shuffles, votes and
// barriers.

#include "Decoder.h"
#include "Machine.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

//===----------------------------------------------------------------------===//
// Special registers
//===----------------------------------------------------------------------===//

enum Special : int64_t {
  kThreadX,
  kZero,
  kOne,
  kThreadsX,
  kBlockX,
  kBlockY,
  kBlockZ,
  kGridX,
  kGridY,
  kGridZ,
  kLaneId,
  kWarpId,
  kWarpSize,
  kGlobalTimer,
  kSM,
  kSMs,
  kGrid,        ///< the number of the launch
  kClusterRank, ///< of the block in its cluster
  kClusterSize, ///< in blocks
  kIsInCluster, ///< whether the launch has clusters
  kBlockOfX,    ///< of the block in its cluster
  kBlockOfY,
  kBlockOfZ,
  kClusterBlocksX, ///< of a cluster
  kClusterBlocksY,
  kClusterBlocksZ,
  kClusterX, ///< the number of the cluster
  kClusterY,
  kClusterZ,
  kClustersX, ///< of the grid
  kClustersY,
  kClustersZ,
};

/// A block has one of the SMs of a large GPU to run on.
constexpr uint32_t kNumSMs = 132;

uint32_t readSM(const Warp &warp) {
  const Machine &machine = warp.machine;
  const Cta &cta = warp.cta;
  uint32_t number = cta.id[0] + machine.grid[0] * (cta.id[1] + machine.grid[1] * cta.id[2]);
  return number % kNumSMs;
}

uint32_t readOfCluster(const Warp &warp, int64_t special) {
  const Machine &machine = warp.machine;
  const Cta &cta = warp.cta;
  if (special == kClusterRank)
    return cta.rank;
  if (special == kClusterSize)
    return machine.clusterSize;
  if (special == kIsInCluster)
    return machine.clusterSize > 1;
  int64_t axis = (special - kBlockOfX) % 3;
  int32_t extent = machine.cluster[axis];
  if (special < kClusterBlocksX)
    return static_cast<uint32_t>(cta.id[axis] % extent);
  if (special < kClusterX)
    return static_cast<uint32_t>(extent);
  return static_cast<uint32_t>((special < kClustersX ? cta.id[axis] : machine.grid[axis]) / extent);
}

void readSpecial(Warp &warp, const Instr &instr, Lanes lanes) {
  uint64_t *result = warp.out(instr);
  auto same = [&](uint64_t value) {
    forEachLane(lanes, [&](unsigned lane) { result[lane] = value; });
  };
  switch (static_cast<Special>(instr.immediate)) {
  case kThreadX:
    return forEachLane(lanes, [&](unsigned lane) { result[lane] = warp.threadOf(lane); });
  case kLaneId:
    return forEachLane(lanes, [&](unsigned lane) { result[lane] = lane; });
  case kWarpId:
    return same(warp.id);
  case kZero:
    return same(0);
  case kOne:
    return same(1);
  case kWarpSize:
    return same(kLanes);
  case kGlobalTimer: {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return same(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  }
  case kSM:
    return same(readSM(warp));
  case kSMs:
    return same(kNumSMs);
  case kGrid:
    return same(1);
  case kThreadsX:
    return same(warp.machine.numWarps * kLanes);
  case kBlockX:
  case kBlockY:
  case kBlockZ:
    return same(static_cast<uint32_t>(warp.cta.id[instr.immediate - kBlockX]));
  case kGridX:
  case kGridY:
  case kGridZ:
    return same(static_cast<uint32_t>(warp.machine.grid[instr.immediate - kGridX]));
  default:
    return same(readOfCluster(warp, instr.immediate));
  }
}

bool isOfBlock(int64_t special) {
  return (special >= kBlockX && special <= kGridZ) ||
         (special >= kClusterX && special <= kClustersZ);
}

bool isCount(int64_t special) {
  return (special >= kGridX && special <= kGridZ) || special >= kClustersX;
}

/// Reads the block's id or the number of blocks for user code. In a persistent kernel that is a
/// finding, since a block runs several programs.
void readSpecialOfUser(Warp &warp, const Instr &instr, Lanes lanes) {
  if (warp.machine.options.persistentPrograms)
    warp.machine.report(
        FindingKind::PersistentKernel, instr, warp, __builtin_ctz(lanes), 0,
        llvm::formatv("reads the {0} in code of the user, where a block does the work of several "
                      "programs",
                      isCount(instr.immediate) ? "number of blocks" : "number of its block"));
  readSpecial(warp, instr, lanes);
}

std::optional<int64_t> getSpecial(StringRef name) {
  return llvm::StringSwitch<std::optional<int64_t>>(name)
      .Case("%tid.x", kThreadX)
      .Cases({"%tid.y", "%tid.z"}, kZero)
      .Case("%ntid.x", kThreadsX)
      .Cases({"%ntid.y", "%ntid.z"}, kOne)
      .Case("%ctaid.x", kBlockX)
      .Case("%ctaid.y", kBlockY)
      .Case("%ctaid.z", kBlockZ)
      .Case("%nctaid.x", kGridX)
      .Case("%nctaid.y", kGridY)
      .Case("%nctaid.z", kGridZ)
      .Case("%laneid", kLaneId)
      .Case("%warpid", kWarpId)
      .Case("WARP_SZ", kWarpSize)
      .Case("%globaltimer", kGlobalTimer)
      .Case("%smid", kSM)
      .Case("%nsmid", kSMs)
      .Case("%gridid", kGrid)
      .Case("%cluster_ctarank", kClusterRank)
      .Case("%cluster_nctarank", kClusterSize)
      .Case("%is_explicit_cluster", kIsInCluster)
      .Case("%cluster_ctaid.x", kBlockOfX)
      .Case("%cluster_ctaid.y", kBlockOfY)
      .Case("%cluster_ctaid.z", kBlockOfZ)
      .Case("%cluster_nctaid.x", kClusterBlocksX)
      .Case("%cluster_nctaid.y", kClusterBlocksY)
      .Case("%cluster_nctaid.z", kClusterBlocksZ)
      .Case("%clusterid.x", kClusterX)
      .Case("%clusterid.y", kClusterY)
      .Case("%clusterid.z", kClusterZ)
      .Case("%nclusterid.x", kClustersX)
      .Case("%nclusterid.y", kClustersY)
      .Case("%nclusterid.z", kClustersZ)
      .Default(std::nullopt);
}

std::optional<int64_t> getSpecial(Operation *op) {
  using R = std::optional<int64_t>;
  return llvm::TypeSwitch<Operation *, R>(op)
      .Case([](NVVM::ThreadIdXOp) { return R(kThreadX); })
      .Case<NVVM::ThreadIdYOp, NVVM::ThreadIdZOp>([](auto) { return R(kZero); })
      .Case<NVVM::BlockDimYOp, NVVM::BlockDimZOp>([](auto) { return R(kOne); })
      .Case([](NVVM::BlockDimXOp) { return R(kThreadsX); })
      .Case([](NVVM::BlockIdXOp) { return R(kBlockX); })
      .Case([](NVVM::BlockIdYOp) { return R(kBlockY); })
      .Case([](NVVM::BlockIdZOp) { return R(kBlockZ); })
      .Case([](NVVM::GridDimXOp) { return R(kGridX); })
      .Case([](NVVM::GridDimYOp) { return R(kGridY); })
      .Case([](NVVM::GridDimZOp) { return R(kGridZ); })
      .Case([](NVVM::LaneIdOp) { return R(kLaneId); })
      .Case([](NVVM::WarpIdOp) { return R(kWarpId); })
      .Case([](NVVM::WarpSizeOp) { return R(kWarpSize); })
      .Case([](NVVM::ClusterId) { return R(kClusterRank); })
      .Case([](NVVM::ClusterDim) { return R(kClusterSize); })
      .Case([](NVVM::BlockInClusterIdXOp) { return R(kBlockOfX); })
      .Case([](NVVM::BlockInClusterIdYOp) { return R(kBlockOfY); })
      .Case([](NVVM::BlockInClusterIdZOp) { return R(kBlockOfZ); })
      .Case([](NVVM::ClusterDimBlocksXOp) { return R(kClusterBlocksX); })
      .Case([](NVVM::ClusterDimBlocksYOp) { return R(kClusterBlocksY); })
      .Case([](NVVM::ClusterDimBlocksZOp) { return R(kClusterBlocksZ); })
      .Case([](NVVM::ClusterIdXOp) { return R(kClusterX); })
      .Case([](NVVM::ClusterIdYOp) { return R(kClusterY); })
      .Case([](NVVM::ClusterIdZOp) { return R(kClusterZ); })
      .Case([](NVVM::ClusterDimXOp) { return R(kClustersX); })
      .Case([](NVVM::ClusterDimYOp) { return R(kClustersY); })
      .Case([](NVVM::ClusterDimZOp) { return R(kClustersZ); })
      .Default([](Operation *) { return R(); });
}

//===----------------------------------------------------------------------===//
// Lanes of a warp
//===----------------------------------------------------------------------===//

/// Lanes that an instruction is said to be run by must run it: all those of operand
/// `number`, which is the same in all of them.
void checkMembers(Warp &warp, const Instr &instr, Lanes lanes, const uint64_t *members,
                  const char *what) {
  auto named = static_cast<Lanes>(members[__builtin_ctz(lanes)]);
  Lanes missing = named & ~lanes;
  if (!missing)
    return;
  warp.machine.report(FindingKind::Divergence, instr, warp, __builtin_ctz(missing), 0,
                      llvm::formatv("{0} names this lane, which does not run it", what));
}

/// Operands: members, value, offset, mask and clamp. `immediate`: the kind.
void shuffle(Warp &warp, const Instr &instr, Lanes lanes) {
  checkMembers(warp, instr, lanes, warp.in(instr, 0), "a shuffle");
  const uint64_t *offset = warp.in(instr, 2), *control = warp.in(instr, 3);
  std::array<uint64_t, kLanes> values;
  std::copy_n(warp.in(instr, 1), kLanes, values.begin());
  uint64_t *result = warp.out(instr);
  uint64_t *isValid = instr.results.size() > 1 ? warp.out(instr, 1) : nullptr;
  forEachLane(lanes, [&](unsigned lane) {
    unsigned by = offset[lane] & 31, clamp = control[lane] & 31, segment = control[lane] >> 8 & 31;
    unsigned last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    int from = 0;
    bool inRange = false;
    switch (static_cast<NVVM::ShflKind>(instr.immediate)) {
    case NVVM::ShflKind::up:
      from = static_cast<int>(lane) - static_cast<int>(by);
      inRange = from >= static_cast<int>(last);
      break;
    case NVVM::ShflKind::down:
      from = static_cast<int>(lane + by);
      inRange = from <= static_cast<int>(last);
      break;
    case NVVM::ShflKind::bfly:
      from = static_cast<int>(lane ^ by);
      inRange = from <= static_cast<int>(last);
      break;
    case NVVM::ShflKind::idx:
      from = static_cast<int>(first | (by & ~segment));
      inRange = from <= static_cast<int>(last);
      break;
    }
    if (!inRange)
      from = static_cast<int>(lane);
    if (!(lanes >> from & 1))
      warp.machine.report(FindingKind::Divergence, instr, warp, static_cast<int>(lane), 0,
                          llvm::formatv("shuffles from lane {0}, which does not run it", from));
    result[lane] = values[from];
    if (isValid)
      isValid[lane] = inRange;
  });
}

enum Vote : int64_t { kAny, kAll, kUniform, kBallot };

/// Operands: members, predicate.
void vote(Warp &warp, const Instr &instr, Lanes lanes) {
  checkMembers(warp, instr, lanes, warp.in(instr, 0), "a vote");
  const uint64_t *members = warp.in(instr, 0), *predicate = warp.in(instr, 1);
  auto named = static_cast<Lanes>(members[__builtin_ctz(lanes)]) & lanes;
  Lanes holds = 0;
  forEachLane(named, [&](unsigned lane) { holds |= Lanes(predicate[lane] & 1) << lane; });
  uint64_t value = 0;
  switch (static_cast<Vote>(instr.immediate)) {
  case kAny:
    value = holds != 0;
    break;
  case kAll:
    value = holds == named;
    break;
  case kUniform:
    value = holds == 0 || holds == named;
    break;
  case kBallot:
    value = holds;
    break;
  }
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = value; });
}

/// Operands: value, members.
void reduceLanes(Warp &warp, const Instr &instr, Lanes lanes) {
  checkMembers(warp, instr, lanes, warp.in(instr, 1), "a reduction");
  const uint64_t *values = warp.in(instr, 0);
  bool isFirst = true;
  uint32_t sum = 0;
  forEachLane(lanes, [&](unsigned lane) {
    auto value = static_cast<uint32_t>(values[lane]);
    auto a = static_cast<int32_t>(sum), b = static_cast<int32_t>(value);
    if (isFirst) {
      sum = value;
      isFirst = false;
      return;
    }
    switch (static_cast<NVVM::ReduxKind>(instr.immediate)) {
    case NVVM::ReduxKind::ADD:
      sum += value;
      break;
    case NVVM::ReduxKind::AND:
      sum &= value;
      break;
    case NVVM::ReduxKind::OR:
      sum |= value;
      break;
    case NVVM::ReduxKind::XOR:
      sum ^= value;
      break;
    case NVVM::ReduxKind::MAX:
      sum = a > b ? sum : value;
      break;
    case NVVM::ReduxKind::MIN:
      sum = a < b ? sum : value;
      break;
    case NVVM::ReduxKind::UMAX:
      sum = std::max(sum, value);
      break;
    case NVVM::ReduxKind::UMIN:
      sum = std::min(sum, value);
      break;
    default:
      break;
    }
  });
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = sum; });
}

/// Orders the memory of a warp's lanes. Operand 0: members.
void syncWarp(Warp &warp, const Instr &instr, Lanes lanes) {
  checkMembers(warp, instr, lanes, warp.in(instr, 0), "a barrier of the warp");
  warp.meetLanes();
}

/// One lane of those that run it.
void elect(Warp &warp, const Instr &instr, Lanes lanes) {
  warp.checkWhole(instr, lanes, "an election");
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = (lanes & ((1u << lane) - 1)) == 0; });
}

//===----------------------------------------------------------------------===//
// Warps of a program
//===----------------------------------------------------------------------===//

/// A thread has `immediate` registers from here on, more than before if that is positive and fewer
/// if negative. A warp that wants more waits until others have given up enough.
void setRegisters(Warp &warp, const Instr &instr, Lanes lanes) {
  if (!warp.checkWhole(instr, lanes, "a change of registers"))
    return;
  bool isMore = instr.immediate > 0;
  auto wanted = static_cast<unsigned>(std::abs(instr.immediate));
  if (isMore ? wanted < warp.registers : wanted > warp.registers) {
    warp.machine.report(FindingKind::Divergence, instr, warp, 0, 0,
                        llvm::formatv("{0} the registers of a thread, {1}, to {2}",
                                      isMore ? "raises" : "lowers", warp.registers, wanted));
    return;
  }
  if (isMore && (wanted - warp.registers) * kLanes > warp.cta.freeRegisters) {
    warp.wait.isSpinning = warp.wait.repeats = true;
    warp.wait.at = &instr;
    warp.wait.reason = "registers that no warp releases";
    return;
  }
  warp.cta.freeRegisters += (warp.registers - wanted) * kLanes;
  warp.registers = wanted;
}

} // namespace

void simulator::runBarrier(Warp &warp, const Instr &instr, Lanes lanes) {
  warp.checkWhole(instr, lanes, "a barrier");
  auto lane = static_cast<unsigned>(__builtin_ctz(lanes));
  unsigned number = static_cast<unsigned>(warp.in(instr, 0)[lane]);
  unsigned threads = instr.operands.size() > 1 ? static_cast<unsigned>(warp.in(instr, 1)[lane])
                                               : warp.cta.numWarps * kLanes;
  if (threads % kLanes != 0 || number > 15)
    warp.machine.report(FindingKind::Divergence, instr, warp, static_cast<int>(lane), 0,
                        llvm::formatv("barrier {0} of {1} threads", number, threads));
  warp.wait.at = &instr;
  warp.cta.arrive(warp, number, std::max(1u, threads / kLanes), instr.immediate == 0);
}

std::optional<Register> simulator::decodeSpecialRegister(Decoder &decoder, StringRef name) {
  std::optional<int64_t> special = getSpecial(name);
  if (!special)
    return std::nullopt;
  Register result = decoder.newRegister();
  decoder.emit(isOfBlock(*special) ? readSpecialOfUser : readSpecial, result, {}).immediate =
      *special;
  return result;
}

bool simulator::decodeWarp(Decoder &decoder, Operation &op) {
  if (std::optional<int64_t> special = getSpecial(&op)) {
    // A called function that reads such a number is of a library.
    bool isOfUser = isOfBlock(*special) && !op.getParentOfType<LLVM::LLVMFuncOp>()->hasAttr(
                                               NVVM::NVVMDialect::getKernelFuncAttrName());
    decoder.emit(isOfUser ? readSpecialOfUser : readSpecial, decoder.define(op.getResult(0)), {})
        .immediate = *special;
    return true;
  }
  auto scalars = [&](ValueRange values) { return decoder.getEach(values); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::ShflOp shuffleOp) {
        decoder.emit(shuffle, decoder.define(shuffleOp.getResult()), scalars(op.getOperands()))
            .immediate = static_cast<int64_t>(shuffleOp.getKind());
        return true;
      })
      .Case([&](NVVM::VoteSyncOp voteOp) {
        int64_t kind = 0;
        switch (voteOp.getKind()) {
        case NVVM::VoteSyncKind::any:
          kind = kAny;
          break;
        case NVVM::VoteSyncKind::all:
          kind = kAll;
          break;
        case NVVM::VoteSyncKind::uni:
          kind = kUniform;
          break;
        case NVVM::VoteSyncKind::ballot:
          kind = kBallot;
          break;
        }
        decoder.emit(vote, decoder.define(voteOp.getResult()), scalars(op.getOperands()))
            .immediate = kind;
        return true;
      })
      .Case([&](NVVM::ReduxOp redux) {
        if (!redux.getVal().getType().isInteger(32))
          decoder.refuse("reductions of lanes of this type");
        decoder.emit(reduceLanes, decoder.define(redux.getResult()), scalars(op.getOperands()))
            .immediate = static_cast<int64_t>(redux.getKind());
        return true;
      })
      .Case([&](NVVM::SyncWarpOp) {
        decoder.emit(syncWarp, {}, scalars(op.getOperands()), Flow::Memory);
        return true;
      })
      .Case([&](NVVM::ElectSyncOp) {
        decoder.emit(elect, decoder.define(op.getResult(0)), {});
        return true;
      })
      .Case([&](NVVM::SetMaxRegisterOp registers) {
        bool isMore = registers.getAction() == NVVM::SetMaxRegisterAction::increase;
        auto count = static_cast<int64_t>(registers.getRegCount());
        decoder.emit(setRegisters, {}, {}, Flow::Memory).immediate = isMore ? count : -count;
        return true;
      })
      .Case([&](NVVM::Barrier0Op) {
        decoder.emit(runBarrier, {}, decoder.constant(0), Flow::Memory);
        return true;
      })
      .Case([&](NVVM::BarrierOp barrier) {
        if (op.getNumResults() != 0 || barrier.getReductionOp())
          decoder.refuse("barriers that reduce");
        Registers operands{barrier.getBarrierId() ? decoder.getScalar(barrier.getBarrierId())
                                                  : decoder.constant(0)};
        if (barrier.getNumberOfThreads())
          operands.push_back(decoder.getScalar(barrier.getNumberOfThreads()));
        decoder.emit(runBarrier, {}, operands, Flow::Memory);
        return true;
      })
      .Case([&](NVVM::BarrierArriveOp arrive) {
        Registers operands{arrive.getBarrierId() ? decoder.getScalar(arrive.getBarrierId())
                                                 : decoder.constant(0),
                           decoder.getScalar(arrive.getNumberOfThreads())};
        decoder.emit(runBarrier, {}, operands, Flow::Memory).immediate = 1;
        return true;
      })
      .Default([](Operation *) { return false; });
}
