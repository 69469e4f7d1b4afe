// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers in shared memory that count arrivals and bytes (mbarrier), and the bulk copies
// that report to them (Engines.cpp says when).

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
  idleRuns = 0;
}

GlobalAccessor simulator::getBulkReader(Warp &warp, const Instr &instr, unsigned lane,
                                        uint64_t barrier) {
  GlobalAccessor who = warp.globalAccessor(instr, lane);
  who.isAsync = true;
  auto found = warp.cta.mbarriers.find(barrier);
  bool isThere = found != warp.cta.mbarriers.end();
  who.access.agent = isThere ? found->second.agent : kMaxWarps;
  who.access.clock = isThere ? found->second.getClock() : kPending;
  who.access.lanes = kAllLanes;
  return who;
}

namespace {

uint64_t toShared(uint64_t address) {
  return address - kSharedWindow < kWindowBytes ? address - kSharedWindow : address;
}

/// The barrier at an address, after a look at who may touch it; null, and reported, if
/// there is none.
MBarrier *find(Warp &warp, const Instr &instr, unsigned lane, uint64_t address) {
  address = toShared(address);
  if (!resolveShared(warp, instr, warp.accessor(lane), address, 8, AccessKind::Atomic, nullptr))
    return nullptr;
  auto found = warp.cta.mbarriers.find(address);
  if (found != warp.cta.mbarriers.end())
    return &found->second;
  warp.machine.report(
      FindingKind::Uninitialised, instr, warp, static_cast<int>(lane), address,
      llvm::formatv("uses {0} of shared memory as a barrier, which it has not been made", address));
  return nullptr;
}

/// Operands: address, count.
void initialise(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *counts = warp.in(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t address = toShared(addresses[lane]), bits = counts[lane];
    if (uint8_t *to =
            resolveShared(warp, instr, warp.accessor(lane), address, 8, AccessKind::Write, nullptr))
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
    barrier.expected = barrier.pending = static_cast<int64_t>(static_cast<uint32_t>(bits));
  });
}

void invalidate(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0);
  forEachLane(lanes, [&](unsigned lane) { warp.cta.mbarriers.erase(toShared(addresses[lane])); });
}

enum Arrival : int64_t { kArrives = 1, kExpects = 2 };

/// Operands: address; bytes if it expects some, else how many arrive. `immediate`: both or
/// one of the above.
void arrive(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *numbers = warp.in(instr, 1);
  bool expects = instr.immediate & kExpects;
  forEachLane(lanes, [&](unsigned lane) {
    MBarrier *barrier = find(warp, instr, lane, addresses[lane]);
    if (!barrier)
      return;
    auto number = static_cast<int64_t>(static_cast<uint32_t>(numbers[lane]));
    if (expects)
      barrier->bytes += number;
    if (!(instr.immediate & kArrives))
      return;
    barrier->times.join(warp.times);
    barrier->pending -= expects ? 1 : number;
    warp.cta.completePhase(*barrier);
  });
  warp.tick();
}

/// Operands: address, parity. With a result, it says whether that phase is over; without
/// one, the warp tries again until it is.
void tryWait(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *parities = warp.in(instr, 1);
  uint64_t *result = instr.results.empty() ? nullptr : warp.out(instr);
  bool allOver = true;
  const MBarrier *joined = nullptr;
  forEachLane(lanes, [&](unsigned lane) {
    MBarrier *barrier = find(warp, instr, lane, addresses[lane]);
    bool isOver = !barrier || (barrier->phase & 1) != (parities[lane] & 1);
    if (isOver && barrier && barrier != joined) {
      warp.times.join(barrier->released);
      joined = barrier;
    }
    allOver &= isOver;
    if (result)
      result[lane] = isOver;
  });
  if (allOver)
    return;
  warp.isSpinning = true;
  warp.waitsAt = &instr;
  warp.waitsFor = "a barrier in shared memory whose phase never ends";
  warp.repeats = !result;
}

/// Operands: to, from, bytes, barrier.
void copyBulk(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *to = warp.in(instr, 0), *from = warp.in(instr, 1), *sizes = warp.in(instr, 2),
                 *barriers = warp.in(instr, 3);
  forEachLane(lanes, [&](unsigned lane) {
    auto size = static_cast<uint32_t>(sizes[lane]);
    if (size % 16 != 0 || to[lane] % 16 != 0)
      warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), to[lane],
                          llvm::formatv("copies {0} bytes in bulk, not in units of 16", size));
    BulkCopy copy;
    copy.warp = &warp;
    copy.instr = &instr;
    copy.address = toShared(to[lane]);
    copy.barrier = toShared(barriers[lane]);
    copy.times = warp.times;
    copy.data.assign(size, 0xcd);
    if (from[lane] % 16 != 0)
      warp.machine.report(
          FindingKind::Misaligned, instr, warp, static_cast<int>(lane), from[lane],
          llvm::formatv("reads {0} bytes at {1:x}, which is no multiple of 16", size, from[lane]));
    GlobalAccessor who = getBulkReader(warp, instr, lane, copy.barrier);
    if (const uint8_t *source =
            resolveGlobal(warp, instr, lane, from[lane], size, AccessKind::Read, who, nullptr))
      copy.gather = [source](auto &data) { std::memcpy(data.data(), source, data.size()); };
    warp.cta.beginBulk(std::move(copy));
  });
  warp.tick();
}

} // namespace

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

bool simulator::decodeTransactionPTX(Decoder &decoder, const PTXInstr &instr) {
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  ArrayRef<PTXOperand> operands = instr.operands;
  auto scalar = [&](size_t number) { return operands[number].registers.front(); };
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
    // The state that an arrival gives is of no use to who waits by parity.
    bool hasState = operands.front().kind != PTXOperand::Address;
    ArrayRef<PTXOperand> rest = operands.drop_front(hasState);
    if ((kind == "arrive" || kind == "expect_tx") && !rest.empty() && !has("noComplete")) {
      bool expects = kind == "expect_tx" || has("expect_tx");
      Register number = rest.size() > 1 ? rest[1].registers.front() : decoder.constant(1);
      decoder.emit(arrive, {}, {rest[0].registers.front(), number}, Flow::Memory).immediate =
          (kind == "arrive" ? kArrives : 0) | (expects ? kExpects : 0);
      return true;
    }
    if ((kind == "try_wait" || kind == "test_wait") && has("parity") && operands.size() >= 3) {
      decoder.emit(tryWait, operands[0].registers, {scalar(1), scalar(2)}, Flow::Memory);
      return true;
    }
    return false;
  }
  // A launch begins when the one before it is over.
  if (instr.words[0] == "griddepcontrol")
    return has("wait") || has("launch_dependents");
  if (instr.words.size() > 4 && instr.words[0] == "cp" && has("bulk") && !has("tensor") &&
      has("mbarrier::complete_tx::bytes") && instr.words[3].starts_with("shared") &&
      instr.words[4] == "global" && operands.size() == 4) {
    decoder.emit(copyBulk, {}, {scalar(0), scalar(1), scalar(2), scalar(3)}, Flow::Memory);
    return true;
  }
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

bool simulator::decodeTransaction(Decoder &decoder, Operation &op) {
  auto scalar = [&](Value value) { return decoder.getScalar(value); };
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
      .Case([&](NVVM::MBarrierArriveExpectTxOp expect) {
        if (op.getNumResults() != 0)
          decoder.refuse("the state of a barrier");
        size_t first = decoder.getNumInstrs();
        decoder
            .emit(arrive, {}, {scalar(expect.getAddr()), scalar(expect.getTxcount())}, Flow::Memory)
            .immediate = kArrives | kExpects;
        if (expect.getPredicate())
          decoder.predicate(first, scalar(expect.getPredicate()), /*isNegated=*/false);
        return true;
      })
      // Who made a barrier has to meet who uses it all the same.
      .Case([](NVVM::FenceMbarrierInitOp) { return true; })
      .Case([&](NVVM::MBarrierTryWaitParityOp wait) {
        decoder.emit(tryWait, {}, {scalar(wait.getAddr()), scalar(wait.getPhase())}, Flow::Memory);
        return true;
      })
      .Default([](Operation *) { return false; });
}
