// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of a thread that no thread may read before their issuer has waited for them: cp.async and
// its groups. When the bytes arrive is decided by the seed.

#include "Decoder.h"
#include "InlinePTX.h"
#include "MemoryOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

/// The global memory that a copy reads until the thread has waited for it; null, and reported, if
/// it must not.
const uint8_t *beginRead(Warp &warp, const Instr &instr, unsigned lane, uint64_t address,
                         unsigned size, unsigned alignment) {
  GlobalAccessor who = warp.globalAccessor(instr, lane);
  who.access.clock = kPending;
  if (address % alignment != 0)
    warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), address,
                        llvm::formatv("reads {0} bytes at {1:x}, which is no multiple of {2}", size,
                                      address, alignment));
  return resolveGlobal(warp, instr, lane, address, size, AccessKind::Read, who, nullptr);
}

/// Operands: where to, where from, and how many bytes are read; the rest are zeros.
/// `immediate`: bytes.
void copyAsync(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *to = warp.in(instr, 0), *from = warp.in(instr, 1), *sizes = warp.in(instr, 2);
  auto size = static_cast<unsigned>(instr.immediate);
  auto [wavefronts, ideal] = countWavefronts(to, lanes, size);
  warp.machine.noteShared(instr, "cp.async", wavefronts, ideal);
  forEachLane(lanes, [&](unsigned lane) {
    PendingCopy copy;
    copy.instr = &instr;
    copy.address = to[lane];
    copy.size = size;
    copy.data.fill(0);
    copy.filled = static_cast<unsigned>(std::min<uint64_t>(sizes[lane], size));
    if (copy.filled)
      copy.source = beginRead(warp, instr, lane, from[lane], copy.filled, size);
    if (to[lane] % size != 0)
      warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), to[lane],
                          "copies to an address of shared memory that is no multiple of the size");
    Accessor who = warp.accessor(lane);
    who.isPending = true;
    uint8_t *target = resolveShared(warp, instr, who, to[lane], size, AccessKind::Write, nullptr);
    if (!target)
      return;
    // It has read and arrived, only read, or neither.
    CopyTimes when = warp.machine.options.copies;
    uint64_t bits = when == CopyTimes::Random ? warp.machine.drawBits() & 3
                    : when == CopyTimes::Late ? 0
                                              : 3;
    copy.isDone = bits & 1;
    if (bits)
      copy.read();
    if (copy.isDone)
      std::memcpy(target, copy.data.data(), size);
    warp.copies[lane].open.push_back(copy);
  });
}

void commitGroup(Warp &warp, const Instr &, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    LaneCopies &copies = warp.copies[lane];
    copies.groups.push_back(std::move(copies.open));
    copies.open.clear();
  });
}

void finish(Warp &warp, unsigned lane, std::vector<PendingCopy> &group) {
  SharedMemory &shared = warp.cta.shared;
  for (PendingCopy &copy : group) {
    copy.read();
    if (copy.source && warp.machine.shadow)
      warp.machine.shadow->completeReads(reinterpret_cast<uint64_t>(copy.source), copy.filled,
                                         warp.globalAccessor(*copy.instr, lane).access);
    if (!copy.isDone)
      std::memcpy(shared.data(copy.address), copy.data.data(), copy.size);
    shared.complete(copy.address, copy.size, warp.id, warp.times.of[warp.id]);
  }
  group.clear();
}

/// All but the last `immediate` groups are waited for; -1: what is not in a group, too.
void waitForGroups(Warp &warp, const Instr &instr, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    LaneCopies &copies = warp.copies[lane];
    auto left = static_cast<size_t>(std::max<int64_t>(instr.immediate, 0));
    while (copies.groups.size() > left) {
      finish(warp, lane, copies.groups.front());
      copies.groups.pop_front();
    }
    if (instr.immediate < 0)
      finish(warp, lane, copies.open);
  });
}

/// How soon lines may leave a cache is nothing that is simulated.
void makePolicy(Warp &warp, const Instr &instr, Lanes lanes) {
  uint64_t *policies = warp.out(instr, 0);
  forEachLane(lanes, [&](unsigned lane) { policies[lane] = 0; });
}

} // namespace

bool simulator::decodeAsyncPTX(Decoder &decoder, const PTXInstr &instr) {
  ArrayRef<StringRef> words = instr.words;
  ArrayRef<PTXOperand> operands = instr.operands;
  if (words.front() == "createpolicy" && operands.size() == 1) {
    decoder.emit(makePolicy, operands.front().registers, {});
    return true;
  }
  // cp.async.cg.shared.global.L2::cache_hint [to], [from], bytes{, size}, policy
  if (words.size() < 5 || words[0] != "cp" || words[1] != "async" || words[3] != "shared" ||
      operands.size() < 4)
    return false;
  auto scalar = [&](size_t number) { return operands[number].registers.front(); };
  int64_t bytes = operands[2].offset;
  Register size = operands.size() > 4 ? scalar(3) : decoder.constant(bytes);
  decoder.emit(copyAsync, {}, {scalar(0), scalar(1), size}, Flow::Memory).immediate = bytes;
  return true;
}

bool simulator::decodeAsync(Decoder &decoder, Operation &op) {
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::CpAsyncOp copy) {
        Registers operands{decoder.getScalar(copy.getDst()), decoder.getScalar(copy.getSrc()),
                           copy.getCpSize() ? decoder.getScalar(copy.getCpSize())
                                            : decoder.constant(copy.getSize())};
        decoder.emit(copyAsync, {}, operands, Flow::Memory).immediate = copy.getSize();
        return true;
      })
      .Case([&](NVVM::CpAsyncCommitGroupOp) {
        decoder.emit(commitGroup, {}, {});
        return true;
      })
      .Case([&](NVVM::CpAsyncWaitGroupOp wait) {
        decoder.emit(waitForGroups, {}, {}, Flow::Memory).immediate = wait.getN();
        return true;
      })
      .Default([](Operation *) { return false; });
}
