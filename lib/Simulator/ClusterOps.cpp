// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The barrier of a cluster, and addresses of the shared memory of its blocks.

#include "InlinePTX.h"
#include "Machine.h"
#include "MemoryOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

enum ArrivalFlag : int64_t { kIsRelaxed = 1, kIsAligned = 2 };

/// `immediate`: of the above.
void arriveAtCluster(Warp &warp, const Instr &instr, Lanes lanes) {
  bool isAligned = instr.immediate & kIsAligned;
  if (isAligned)
    warp.checkWhole(instr, lanes, "a barrier of the cluster");
  warp.cta.cluster.arrive(warp, instr, isAligned ? kAllLanes : lanes, instr.immediate & kIsRelaxed);
}

void waitForCluster(Warp &warp, const Instr &instr, Lanes lanes) {
  if (instr.immediate & kIsAligned)
    warp.checkWhole(instr, lanes, "a wait for the cluster");
  warp.cta.cluster.wait(warp, instr, lanes);
}

/// Operands: an address of the block's own shared memory, and the number of a block in the
/// cluster. A generic address gives a generic one.
void mapAddress(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0), *ranks = warp.in(instr, 1);
  uint64_t *results = warp.out(instr);
  size_t size = warp.cta.cluster.ctas.size();
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t address = addresses[lane], rank = static_cast<uint32_t>(ranks[lane]);
    bool isGeneric = address - kSharedWindow < kWindowBytes;
    uint64_t offset = toShared(address) & maskOf(kRankShift);
    if (rank >= size) {
      warp.machine.report(FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), offset,
                          llvm::formatv("maps {0} of shared memory to block {1} of the cluster, "
                                        "which has {2}",
                                        offset, rank, size));
      rank = std::min<uint64_t>(rank, kMaxClusterSize);
    }
    results[lane] = (isGeneric ? kSharedWindow : 0) + ((rank + 1) << kRankShift | offset);
  });
}

/// The block of an address of shared memory.
void findRank(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *addresses = warp.in(instr, 0);
  uint64_t *results = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t rank = toShared(addresses[lane]) >> kRankShift;
    results[lane] = rank == 0 ? warp.cta.rank : rank - 1;
  });
}

} // namespace

bool simulator::decodeClusterPTX(Decoder &decoder, const PTXInstr &instr) {
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  ArrayRef<PTXOperand> operands = instr.operands;
  StringRef opcode = instr.words.front();
  if (opcode == "barrier" && has("cluster") && operands.empty()) {
    bool arrives = has("arrive");
    if (!arrives && !has("wait"))
      return false;
    decoder.emit(arrives ? arriveAtCluster : waitForCluster, {}, {}, Flow::Memory).immediate =
        (has("relaxed") ? kIsRelaxed : 0) | (has("aligned") ? kIsAligned : 0);
    return true;
  }
  if (opcode == "mapa" && operands.size() == 3) {
    decoder.emit(mapAddress, operands[0].registers,
                 {operands[1].registers.front(), operands[2].registers.front()});
    return true;
  }
  if (opcode == "getctarank" && operands.size() == 2) {
    decoder.emit(findRank, operands[0].registers, operands[1].registers.front());
    return true;
  }
  return false;
}

bool simulator::decodeCluster(Decoder &decoder, Operation &op) {
  auto emit = [&](Handler run, int64_t flags) {
    decoder.emit(run, {}, {}, Flow::Memory).immediate = flags;
    return true;
  };
  auto getAligned = [](auto barrier) { return barrier.getAligned() ? kIsAligned : 0; };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::ClusterArriveOp arrive) { return emit(arriveAtCluster, getAligned(arrive)); })
      .Case([&](NVVM::ClusterArriveRelaxedOp arrive) {
        return emit(arriveAtCluster, kIsRelaxed | getAligned(arrive));
      })
      .Case([&](NVVM::ClusterWaitOp wait) { return emit(waitForCluster, getAligned(wait)); })
      .Case([&](NVVM::MapaOp map) {
        decoder.emit(mapAddress, decoder.define(map.getRes()),
                     {decoder.getScalar(map.getA()), decoder.getScalar(map.getB())});
        return true;
      })
      .Case([&](NVVM::FenceScClusterOp) {
        return emit(runFence, static_cast<int64_t>(Reach::Cluster));
      })
      .Case([&](NVVM::MembarOp fence) {
        NVVM::MemScopeKind scope = fence.getScope();
        return emit(runFence,
                    static_cast<int64_t>(scope == NVVM::MemScopeKind::CTA       ? Reach::Program
                                         : scope == NVVM::MemScopeKind::CLUSTER ? Reach::Cluster
                                                                                : Reach::Device));
      })
      .Default([](Operation *) { return false; });
}
