// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers in shared memory that count arrivals and bytes (mbarrier). Blocks of a cluster
// come to each other's.
//
// An arrival orders accesses for its own block, unless it has the scope of the cluster. That is
// PTX's default for both arrivals and waits. Between blocks, an arrival for its own block still
// shows that earlier reads are complete. Every ring of slots that copies refill relies on that. It
// does not make writes visible.

#include "InlinePTX.h"
#include "Machine.h"
#include "MemoryOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

void Cta::completePhase(MBarrier &barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.released = barrier.times;
  barrier.times = Times();
  barrier.releasedByOthers = std::move(barrier.timesOfOthers);
  barrier.timesOfOthers = nullptr;
  cluster.idleRuns = 0;
}

namespace {

/// The kinds of instructions on a barrier, in `immediate`.
enum BarrierFlag : int64_t {
  kArrives = 1,
  kExpects = 2,
  kDrops = 4,      ///< and never comes again
  kRelaxed = 8,    ///< orders no memory
  kOfCluster = 16, ///< what it orders is for the cluster
  kInCluster = 32, ///< the address may be of another block
  kByState = 64,   ///< waits for the phase that an arrival was in, not for a parity
};

/// The mbarrier at an address, after checking the access. Null, with a finding, if there is none.
std::pair<Cta *, MBarrier *> find(Warp &warp, const Instr &instr, unsigned lane, uint64_t address) {
  SharedPlace place = instr.immediate & kInCluster ? findInCluster(warp, instr, lane, address)
                                                   : SharedPlace{&warp.cta, toShared(address)};
  if (!place.cta)
    return {};
  auto found = place.cta->mbarriers.find(place.offset);
  bool isThere = found != place.cta->mbarriers.end();
  Accessor who = warp.accessor(lane);
  who.isOnBarrier = true;
  who.isPublished = isThere;
  if (isThere)
    watchBarrier(warp, instr, lane, *place.cta, place.offset, found->second);
  if (!resolveIn(*place.cta, warp, instr, who, place.offset, 8, AccessKind::Atomic, nullptr))
    return {};
  if (isThere)
    return {place.cta, &found->second};
  bool isOwn = place.cta == &warp.cta;
  warp.machine.report(
      FindingKind::Uninitialised, instr, warp, static_cast<int>(lane), place.offset,
      llvm::formatv("uses {0} of {1} as a barrier, which it has not been made", place.offset,
                    isOwn
                        ? "shared memory"
                        : llvm::formatv("the shared memory of block {0}", place.cta->rank).str()));
  return {};
}

/// Operands: address, count.
void initialise(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *counts = warp.in(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t address = toShared(addresses[lane]), bits = counts[lane];
    Accessor maker = warp.accessor(lane);
    maker.isOnBarrier = true;
    if (uint8_t *to = resolveShared(warp, instr, maker, address, 8, AccessKind::Write, nullptr))
      std::memcpy(to, &bits, 8);
    else
      return;
    auto [known, isNew] = warp.cta.mbarriers.try_emplace(address);
    MBarrier &barrier = known->second;
    // One that is made again goes on with its clock.
    unsigned agent = isNew ? kMaxWarps + warp.cta.numBarriers++ % kBarrierAgents : barrier.agent;
    Clock clock = isNew ? 0 : barrier.getClock();
    barrier = MBarrier();
    barrier.agent = agent;
    barrier.firstClock = clock;
    maker.instr = instr.number;
    barrier.maker = SharedRecord(maker.clock, Lanes(1) << lane, maker);
    barrier.expected = barrier.pending = static_cast<int64_t>(static_cast<uint32_t>(bits));
  });
}

void invalidate(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0);
  forEachLane(lanes, [&](unsigned lane) { warp.cta.mbarriers.erase(toShared(addresses[lane])); });
}

/// The cluster knows the barriers that the warp has made once it has synchronised, even if no
/// memory is ordered then.
void fenceBarriers(Warp &warp, const Instr &, Lanes) {
  for (auto &[address, barrier] : warp.cta.mbarriers)
    barrier.isFenced |= barrier.maker.agent == warp.id;
}

//===----------------------------------------------------------------------===//
// Arrivals and waits
//===----------------------------------------------------------------------===//

/// A warp arrives at a barrier of a block, whose waiters acquire its release.
void release(Warp &warp, Cta &cta, MBarrier &barrier, int64_t flags) {
  bool isRelaxed = flags & kRelaxed;
  if (&cta == &warp.cta) {
    if (!isRelaxed)
      barrier.times.join(warp.times);
    else if (warp.fenced)
      barrier.times.join(warp.fenced->times);
    return;
  }
  if (!barrier.timesOfOthers)
    barrier.timesOfOthers = std::make_shared<Times>();
  Times &times = *barrier.timesOfOthers;
  if (!isRelaxed && flags & kOfCluster)
    return acquire(times, cta.number, warp.times, warp.cta.number);
  if (!isRelaxed) {
    Times known;
    acquire(known, cta.number, warp.times, warp.cta.number);
    times.others.join(known.others.asReads());
  }
  if (warp.fenced)
    acquire(times, cta.number, *warp.fenced, warp.machine.clusterSize);
}

/// Operands: address; bytes if it expects some, else how many arrive. A result is the phase
/// that it arrives in.
void arrive(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *numbers = warp.in(instr, 1);
  uint64_t *states = instr.results.empty() ? nullptr : warp.out(instr);
  bool expects = instr.immediate & kExpects;
  forEachLane(lanes, [&](unsigned lane) {
    if (states)
      states[lane] = 0;
    auto [cta, barrier] = find(warp, instr, lane, addresses[lane]);
    if (!barrier)
      return;
    auto number = static_cast<int64_t>(static_cast<uint32_t>(numbers[lane]));
    if (expects)
      barrier->bytes += number;
    if (!(instr.immediate & kArrives))
      return;
    if (states)
      states[lane] = barrier->phase;
    release(warp, *cta, *barrier, instr.immediate);
    int64_t arrivals = expects ? 1 : number;
    barrier->pending -= arrivals;
    if (instr.immediate & kDrops)
      barrier->expected -= arrivals;
    cta->completePhase(*barrier);
  });
  warp.tick();
}

/// Bytes have come, says a thread. Operands: address, bytes.
void completeBytes(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *numbers = warp.in(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    auto [cta, barrier] = find(warp, instr, lane, addresses[lane]);
    if (!barrier)
      return;
    barrier->bytes -= static_cast<int64_t>(static_cast<uint32_t>(numbers[lane]));
    cta->completePhase(*barrier);
  });
  warp.tick();
}

/// The warp acquires the releases of the completed phase.
void acquireFrom(Warp &warp, const MBarrier &barrier, int64_t flags) {
  if (!(flags & kRelaxed))
    warp.times.join(barrier.released);
  if (!barrier.releasedByOthers)
    return;
  const Times &others = *barrier.releasedByOthers;
  if (flags & kOfCluster && !(flags & kRelaxed))
    return warp.times.join(others);
  if (!(flags & kRelaxed))
    warp.times.others.join(others.others.asReads());
  // A fence may come.
  auto release = std::make_shared<Release>();
  release->program = warp.cta.number;
  release->isMixed = true;
  release->times = others;
  warp.seen.push_back(std::move(release));
}

/// Operands: address, parity or state. With a result, it says whether that phase is over;
/// without one, the warp tries again until it is.
void tryWait(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *phases = warp.in(instr, 1);
  uint64_t *result = instr.results.empty() ? nullptr : warp.out(instr);
  bool allOver = true;
  const MBarrier *joined = nullptr;
  forEachLane(lanes, [&](unsigned lane) {
    MBarrier *barrier = find(warp, instr, lane, addresses[lane]).second;
    bool isOver =
        !barrier || (instr.immediate & kByState ? barrier->phase != phases[lane]
                                                : (barrier->phase & 1) != (phases[lane] & 1));
    if (isOver && barrier && barrier != joined) {
      acquireFrom(warp, *barrier, instr.immediate);
      joined = barrier;
    }
    allOver &= isOver;
    if (result)
      result[lane] = isOver;
  });
  if (allOver)
    return;
  warp.wait.isSpinning = true;
  warp.wait.at = &instr;
  warp.wait.reason = "a barrier in shared memory whose phase never ends";
  warp.wait.repeats = !result;
}

} // namespace

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

bool simulator::decodeTransactionPTX(Decoder &decoder, const PTXInstr &instr) {
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  ArrayRef<PTXOperand> operands = instr.operands;
  auto scalar = [&](size_t number) { return operands[number].registers.front(); };
  if (instr.words[0] == "fence" && has("mbarrier_init")) {
    decoder.emit(fenceBarriers, {}, {});
    return true;
  }
  if (instr.words.front() == "mbarrier" && instr.words.size() > 1 && !operands.empty()) {
    StringRef kind = instr.words[1];
    if (kind == "init" && operands.size() == 2) {
      decoder.emit(initialise, {}, {scalar(0), scalar(1)}, Flow::Memory);
      return true;
    }
    if (kind == "inval") {
      decoder.emit(invalidate, {}, scalar(0), Flow::Memory);
      return true;
    }
    bool isShared = has("shared") || has("shared::cta");
    int64_t flags = (has("relaxed") ? kRelaxed : 0) | (has("cluster") ? kOfCluster : 0) |
                    (isShared ? 0 : kInCluster);
    bool hasState = operands.front().kind != PTXOperand::Address;
    ArrayRef<PTXOperand> rest = operands.drop_front(hasState);
    bool arrives = kind == "arrive" || kind == "arrive_drop";
    if ((arrives || kind == "expect_tx" || kind == "complete_tx") && !rest.empty() &&
        rest[0].offset == 0 && !has("noComplete")) {
      flags |= (arrives ? kArrives : 0) | (kind == "arrive_drop" ? kDrops : 0) |
               (kind == "expect_tx" || has("expect_tx") ? kExpects : 0);
      Register number = rest.size() > 1 ? rest[1].registers.front() : decoder.constant(1);
      Registers results;
      if (hasState)
        results = {scalar(0)};
      decoder
          .emit(kind == "complete_tx" ? completeBytes : arrive, results,
                {rest[0].registers.front(), number}, Flow::Memory)
          .immediate = flags;
      return true;
    }
    if ((kind == "try_wait" || kind == "test_wait") && operands.size() >= 3 &&
        operands[1].offset == 0) {
      decoder.emit(tryWait, operands[0].registers, {scalar(1), scalar(2)}, Flow::Memory).immediate =
          flags | (has("parity") ? 0 : kByState);
      return true;
    }
    return false;
  }
  // A launch begins when the one before it is over.
  if (instr.words[0] == "griddepcontrol")
    return has("wait") || has("launch_dependents");
  return false;
}

bool simulator::decodeWaitLoop(Decoder &decoder, size_t first, Register over) {
  if (decoder.getNumInstrs() != first + 1)
    return false;
  Instr &instr = decoder.getInstr(first);
  if (instr.run != tryWait || instr.results.size() != 1 || instr.results.front() != over)
    return false;
  instr.results.clear();
  return true;
}

/// Flags of an operation by its attributes and by the address of its barrier.
template <typename Op> static int64_t getFlags(Op op) {
  unsigned space = cast<LLVM::LLVMPointerType>(op.getAddr().getType()).getAddressSpace();
  return (space == 3 ? 0 : kInCluster) |
         (op.getScope() == NVVM::MemScopeKind::CTA ? 0 : kOfCluster);
}

bool simulator::decodeTransaction(Decoder &decoder, Operation &op) {
  auto scalar = [&](Value value) { return decoder.getScalar(value); };
  auto emitArrival = [&](Value address, Value number, int64_t flags) {
    Registers results;
    if (op.getNumResults() != 0)
      results = decoder.define(op.getResult(0));
    decoder
        .emit(arrive, results, {scalar(address), number ? scalar(number) : decoder.constant(1)},
              Flow::Memory)
        .immediate = flags;
    return true;
  };
  auto emitWait = [&](auto wait) {
    bool byState = wait.getStateOrPhase().getType().isInteger(64);
    decoder
        .emit(tryWait, decoder.define(wait.getRes()),
              {scalar(wait.getAddr()), scalar(wait.getStateOrPhase())}, Flow::Memory)
        .immediate = getFlags(wait) | (wait.getRelaxed() ? kRelaxed : 0) | (byState ? kByState : 0);
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::MBarrierInitOp init) {
        size_t first = decoder.getNumInstrs();
        decoder.emit(initialise, {}, {scalar(init.getAddr()), scalar(init.getCount())},
                     Flow::Memory);
        if (init.getPredicate())
          decoder.predicate(first, scalar(init.getPredicate()), /*isNegated=*/false);
        return true;
      })
      .Case([&](NVVM::MBarrierInvalOp inval) {
        decoder.emit(invalidate, {}, scalar(inval.getAddr()), Flow::Memory);
        return true;
      })
      .Case([&](NVVM::FenceMbarrierInitOp) {
        decoder.emit(fenceBarriers, {}, {});
        return true;
      })
      .Case([&](NVVM::MBarrierArriveOp arrival) {
        return emitArrival(arrival.getAddr(), arrival.getCount(),
                           kArrives | getFlags(arrival) | (arrival.getRelaxed() ? kRelaxed : 0));
      })
      .Case([&](NVVM::MBarrierArriveDropOp arrival) {
        return emitArrival(arrival.getAddr(), arrival.getCount(),
                           kArrives | kDrops | getFlags(arrival) |
                               (arrival.getRelaxed() ? kRelaxed : 0));
      })
      .Case([&](NVVM::MBarrierArriveExpectTxOp arrival) {
        size_t first = decoder.getNumInstrs();
        emitArrival(arrival.getAddr(), arrival.getTxcount(),
                    kArrives | kExpects | getFlags(arrival) |
                        (arrival.getRelaxed() ? kRelaxed : 0));
        if (arrival.getPredicate())
          decoder.predicate(first, scalar(arrival.getPredicate()), /*isNegated=*/false);
        return true;
      })
      .Case([&](NVVM::MBarrierExpectTxOp expect) {
        return emitArrival(expect.getAddr(), expect.getTxcount(), kExpects | getFlags(expect));
      })
      .Case([&](NVVM::MBarrierCompleteTxOp complete) {
        decoder
            .emit(completeBytes, {}, {scalar(complete.getAddr()), scalar(complete.getTxcount())},
                  Flow::Memory)
            .immediate = getFlags(complete);
        return true;
      })
      .Case([&](NVVM::MBarrierTestWaitOp wait) { return emitWait(wait); })
      .Case([&](NVVM::MBarrierTryWaitOp wait) { return emitWait(wait); })
      .Case([&](NVVM::MBarrierTryWaitParityOp wait) {
        decoder.emit(tryWait, {}, {scalar(wait.getAddr()), scalar(wait.getPhase())}, Flow::Memory);
        return true;
      })
      .Default([](Operation *) { return false; });
}
