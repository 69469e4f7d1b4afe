// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bulk copies, which run beside the program (Engines.cpp). Those to shared memory, of the block or
// of others of its cluster, complete at a barrier. For those from shared memory to global, a thread
// waits in groups.

#include "BulkOps.h"

#include "InlinePTX.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

//===----------------------------------------------------------------------===//
// Shared parts
//===----------------------------------------------------------------------===//

GlobalAccessor simulator::getBulkReader(Warp &warp, const Instr &instr, unsigned lane, Cta &target,
                                        uint64_t barrier) {
  GlobalAccessor who = warp.globalAccessor(instr, lane);
  who.isAsync = true;
  auto found = target.mbarriers.find(barrier);
  bool isThere = found != target.mbarriers.end();
  who.access.program = target.number;
  who.access.agent = isThere ? found->second.agent : kMaxWarps;
  who.access.clock = isThere ? found->second.getClock() : kPending;
  who.access.lanes = kAllLanes;
  return who;
}

SmallVector<CopyTarget, 1> simulator::findTargets(Warp &warp, const Instr &instr, unsigned lane,
                                                  uint64_t to, uint64_t barrier,
                                                  std::optional<uint64_t> mask) {
  auto report = [&](std::string message) {
    warp.machine.report(FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), to,
                        std::move(message));
  };
  SharedPlace place = findInCluster(warp, instr, lane, to),
              reported = findInCluster(warp, instr, lane, barrier);
  if (!place.cta || !reported.cta)
    return {};
  if (!mask) {
    if (place.cta != reported.cta) {
      report(llvm::formatv("copies to block {0} of the cluster, and reports to a barrier of block "
                           "{1}",
                           place.cta->rank, reported.cta->rank));
      return {};
    }
    return {{place.cta, place.offset, reported.offset}};
  }
  const auto &ctas = warp.cta.cluster.ctas;
  SmallVector<CopyTarget, 1> targets;
  for (unsigned rank = 0; rank < kMaxClusterSize; ++rank) {
    if (!(*mask >> rank & 1))
      continue;
    if (rank < ctas.size())
      targets.push_back({ctas[rank].get(), place.offset, reported.offset});
    else
      report(llvm::formatv("copies to block {0} of the cluster, which has {1}", rank, ctas.size()));
  }
  return targets;
}

BulkCopy simulator::makeCopy(Warp &warp, const Instr &instr, unsigned lane,
                             const CopyTarget &target) {
  BulkCopy copy;
  copy.warp = &warp;
  copy.lane = lane;
  copy.instr = &instr;
  copy.target = target.cta;
  copy.address = target.address;
  copy.barrier = target.barrier;
  copy.times = warp.times;
  return copy;
}

std::shared_ptr<BulkStore> simulator::makeStore(Warp &warp, const Instr &instr, unsigned lane,
                                                uint64_t address, uint64_t bytes,
                                                std::function<uint64_t(uint64_t)> place) {
  Accessor who = warp.accessor(lane);
  who.isAsync = true;
  SharedMemory &shared = warp.cta.shared;
  auto store = std::make_shared<BulkStore>();
  store->instr = &instr;
  for (uint64_t at = address; at < address + bytes; at += 16) {
    if (!resolveShared(warp, instr, who, at, 16, AccessKind::Read, nullptr))
      return nullptr;
    store->pieces.push_back(at / 16);
  }
  for (uint64_t piece : store->pieces)
    shared.beginRead(piece, instr.number);
  store->data.resize(bytes);
  store->gather = [&shared, place = std::move(place)](auto &data) {
    for (uint64_t offset = 0; offset < data.size(); ++offset)
      data[offset] = *shared.data(place(offset));
  };
  // The current contents: a program that changes them is reported otherwise.
  store->gather(store->data);
  return store;
}

void simulator::addRow(Warp &warp, unsigned lane, BulkStore &store, uint64_t target,
                       uint64_t offset, uint64_t bytes) {
  const Instr &instr = *store.instr;
  GlobalAccessor writer = warp.globalAccessor(instr, lane);
  writer.isAsync = true;
  writer.access.clock = kPending;
  AccessKind kind = store.combine ? AccessKind::Atomic : AccessKind::Write;
  if (!resolveGlobal(warp, instr, lane, target, bytes, kind, writer, store.data.data() + offset))
    return;
  if (store.combine && warp.machine.shadow)
    watchGlobal(warp, instr, lane, target, bytes, kind, writer, nullptr);
  store.rows.push_back({target, offset, bytes});
}

void simulator::beginStore(Warp &warp, unsigned lane, std::shared_ptr<BulkStore> store) {
  LaneStores &stores = warp.stores[lane];
  stores.last = store->instr;
  stores.open.stores.push_back(store);
  warp.cta.cluster.begin(std::move(store));
}

Combine simulator::makeCombine(const WarpAccess &reduction) {
  return [reduction](uint8_t *to, const uint8_t *from, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += reduction.bytes) {
      uint64_t old = 0, value = 0;
      std::memcpy(&old, to + at, reduction.bytes);
      std::memcpy(&value, from + at, reduction.bytes);
      value = combineAtomic(reduction, old, value, value);
      std::memcpy(to + at, &value, reduction.bytes);
    }
  };
}

namespace {

/// Bulk copies move units of 16 bytes between multiples of that.
void checkUnits(Warp &warp, const Instr &instr, unsigned lane, uint64_t size, uint64_t shared,
                uint64_t other, const char *verb) {
  auto report = [&](uint64_t address, std::string message) {
    warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), address,
                        std::move(message));
  };
  if (size % 16 != 0 || shared % 16 != 0)
    report(shared, llvm::formatv("copies {0} bytes in bulk, not in units of 16", size));
  if (other % 16 != 0)
    report(other,
           llvm::formatv("{0} {1} bytes at {2:x}, which is no multiple of 16", verb, size, other));
}

//===----------------------------------------------------------------------===//
// To shared memory
//===----------------------------------------------------------------------===//

/// Operands: to, from, bytes, barrier, and the mask of blocks if there is one.
void copyBulk(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *to = warp.in(instr, 0), *from = warp.in(instr, 1), *sizes = warp.in(instr, 2),
                 *barriers = warp.in(instr, 3);
  const uint64_t *masks = instr.operands.size() > 4 ? warp.in(instr, 4) : nullptr;
  forEachLane(lanes, [&](unsigned lane) {
    auto size = static_cast<uint32_t>(sizes[lane]);
    checkUnits(warp, instr, lane, size, to[lane], from[lane], "reads");
    for (const CopyTarget &target :
         findTargets(warp, instr, lane, to[lane], barriers[lane],
                     masks ? std::optional<uint64_t>(masks[lane]) : std::nullopt)) {
      BulkCopy copy = makeCopy(warp, instr, lane, target);
      copy.data.assign(size, 0xcd);
      GlobalAccessor who = getBulkReader(warp, instr, lane, *target.cta, target.barrier);
      if (const uint8_t *source =
              resolveGlobal(warp, instr, lane, from[lane], size, AccessKind::Read, who, nullptr))
        copy.gather = [source](auto &data) { std::memcpy(data.data(), source, data.size()); };
      noteCopyTo(warp, instr, lane, *target.cta, target.address, size, target.barrier);
      warp.cta.cluster.begin(std::move(copy));
    }
  });
  warp.tick();
}

/// From the block's own shared memory to that of another one. Operands: to, from, bytes,
/// barrier. With a detail it is a reduction.
void copyToBlock(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *to = warp.in(instr, 0), *from = warp.in(instr, 1), *sizes = warp.in(instr, 2),
                 *barriers = warp.in(instr, 3);
  forEachLane(lanes, [&](unsigned lane) {
    auto size = static_cast<uint32_t>(sizes[lane]);
    uint64_t source = toShared(from[lane]);
    checkUnits(warp, instr, lane, size, to[lane], source, "reads");
    for (const CopyTarget &target :
         findTargets(warp, instr, lane, to[lane], barriers[lane], std::nullopt)) {
      BulkCopy copy = makeCopy(warp, instr, lane, target);
      copy.data.assign(size, 0xcd);
      // Only a thread that has waited at the barrier knows that all has been read.
      GlobalAccessor reader = getBulkReader(warp, instr, lane, *target.cta, target.barrier);
      Accessor who = warp.accessor(lane);
      who.isAsync = true;
      who.lane = kLanes;
      who.rank = target.cta->rank;
      who.agent = reader.access.agent;
      who.clock = reader.access.clock;
      if (resolveShared(warp, instr, who, source, size, AccessKind::Read, nullptr)) {
        SharedMemory &shared = warp.cta.shared;
        copy.gather = [&shared, source](auto &data) {
          std::memcpy(data.data(), shared.data(source), data.size());
        };
      }
      if (instr.detail)
        copy.combine = makeCombine(*static_cast<const WarpAccess *>(instr.detail));
      warp.cta.noteVisit({&instr, &warp, lane, who.rank, who.agent, who.clock, source,
                          /*isRead=*/true, llvm::formatv("copies {0} bytes", size)});
      noteCopyTo(warp, instr, lane, *target.cta, target.address, size, target.barrier);
      warp.cta.cluster.begin(std::move(copy));
    }
  });
  warp.tick();
}

/// The data of st.async and red.async: registers.
struct AsyncStore {
  WarpAccess access;
  bool isReduction = false;
};

/// Operands: to, barrier, values.
void storeAsync(Warp &warp, const Instr &instr, Lanes lanes) {
  const auto &store = *static_cast<const AsyncStore *>(instr.detail);
  const WarpAccess &access = store.access;
  const uint64_t *to = warp.in(instr, 0), *barriers = warp.in(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t address = to[lane] + static_cast<uint64_t>(access.offset);
    if (address % access.total() != 0)
      warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), address,
                          llvm::formatv("writes {0} bytes at {1:x}, which is no multiple of {0}",
                                        access.total(), address));
    for (const CopyTarget &target :
         findTargets(warp, instr, lane, address, barriers[lane], std::nullopt)) {
      BulkCopy copy = makeCopy(warp, instr, lane, target);
      copy.isAsync = false; // as threads write
      copy.data.resize(access.total());
      for (unsigned i = 0; i < access.count; ++i)
        std::memcpy(copy.data.data() + i * access.bytes, &warp.in(instr, 2 + i)[lane],
                    access.bytes);
      if (store.isReduction)
        copy.combine = makeCombine(access);
      noteCopyTo(warp, instr, lane, *target.cta, target.address, access.total(), target.barrier);
      warp.cta.cluster.begin(std::move(copy));
    }
  });
  warp.tick();
}

//===----------------------------------------------------------------------===//
// To global memory
//===----------------------------------------------------------------------===//

/// Operands: to, from, bytes. With a detail it is a reduction.
void storeBulk(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *to = warp.in(instr, 0), *from = warp.in(instr, 1), *sizes = warp.in(instr, 2);
  warp.countExecution(instr);
  forEachLane(lanes, [&](unsigned lane) {
    auto size = static_cast<uint32_t>(sizes[lane]);
    uint64_t source = toShared(from[lane]);
    checkUnits(warp, instr, lane, size, source, to[lane], "writes");
    std::shared_ptr<BulkStore> store = makeStore(
        warp, instr, lane, source, size, [source](uint64_t offset) { return source + offset; });
    if (!store)
      return;
    if (instr.detail)
      store->combine = makeCombine(*static_cast<const WarpAccess *>(instr.detail));
    addRow(warp, lane, *store, to[lane], 0, size);
    beginStore(warp, lane, std::move(store));
  });
  warp.tick();
}

void commitStores(Warp &warp, const Instr &, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    LaneStores &stores = warp.stores[lane];
    stores.groups.push_back(std::move(stores.open));
    stores.open = {};
  });
}

void endReads(Warp &warp, unsigned lane, LaneStores::Group &group) {
  if (group.isRead)
    return;
  for (const std::shared_ptr<BulkStore> &store : group.stores) {
    store->read();
    for (uint64_t piece : store->pieces)
      warp.cta.shared.endRead(piece, warp.accessor(lane));
  }
  group.isRead = true;
}

void endWrites(Warp &warp, unsigned lane, const LaneStores::Group &group) {
  for (const std::shared_ptr<BulkStore> &store : group.stores) {
    store->write();
    GlobalAccess now = warp.globalAccessor(*store->instr, lane).access;
    if (GlobalShadow *shadow = warp.machine.shadow.get())
      for (const BulkStore::Row &row : store->rows)
        shadow->completeWrites(row.target, row.bytes, now);
  }
}

/// All but the last `immediate` groups have read shared memory.
void waitForReads(Warp &warp, const Instr &instr, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    std::deque<LaneStores::Group> &groups = warp.stores[lane].groups;
    for (size_t i = 0; i + static_cast<size_t>(instr.immediate) < groups.size(); ++i)
      endReads(warp, lane, groups[i]);
  });
  warp.tick();
}

/// All but the last `immediate` groups are over.
void waitForStores(Warp &warp, const Instr &instr, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    std::deque<LaneStores::Group> &groups = warp.stores[lane].groups;
    while (groups.size() > static_cast<size_t>(instr.immediate)) {
      endReads(warp, lane, groups.front());
      endWrites(warp, lane, groups.front());
      groups.pop_front();
    }
  });
  warp.tick();
}

} // namespace

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

bool simulator::decodeBulkPTX(Decoder &decoder, const PTXInstr &instr) {
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  ArrayRef<PTXOperand> operands = instr.operands;
  auto scalar = [&](size_t number) { return operands[number].registers.front(); };
  StringRef opcode = instr.words.front();

  // st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [to], {...}, [barrier]
  if ((opcode == "st" || opcode == "red") && has("async")) {
    AsyncStore store;
    store.isReduction = opcode == "red";
    store.access.bytes = getPTXWidth(instr.words.back()) / 8;
    if (operands.size() != 3 || store.access.bytes == 0 ||
        (store.isReduction && !readAtomicKind(decoder, instr, store.access)))
      return false;
    store.access.count = operands[1].registers.size();
    store.access.offset = operands[0].offset;
    Registers registers{scalar(0), scalar(2)};
    llvm::append_range(registers, operands[1].registers);
    decoder.emit(storeAsync, {}, registers, Flow::Memory).detail = decoder.keep(store);
    return true;
  }

  if (opcode != "cp" || !has("bulk") || has("tensor") || instr.words.size() < 3)
    return false;
  if (has("prefetch") || instr.words.back() == "L2")
    return true;
  if (instr.words.back() == "commit_group") {
    decoder.emit(commitStores, {}, {});
    return true;
  }
  if (has("wait_group") && operands.size() == 1) {
    decoder.emit(has("read") ? waitForReads : waitForStores, {}, {}, Flow::Memory).immediate =
        operands[0].offset;
    return true;
  }
  // cp.async.bulk.TO.FROM..., cp.reduce.async.bulk.TO.FROM...
  bool isReduction = instr.words[1] == "reduce";
  size_t first = isReduction ? 4 : 3;
  if (instr.words.size() <= first + 1 || operands.size() < 3)
    return false;
  StringRef to = instr.words[first], from = instr.words[first + 1];
  const WarpAccess *reduction = nullptr;
  if (isReduction) {
    WarpAccess access;
    access.bytes = getPTXWidth(instr.words.back()) / 8;
    if (access.bytes == 0 || !readAtomicKind(decoder, instr, access))
      return false;
    reduction = decoder.keep(access);
  }
  bool toShared = to.starts_with("shared"), fromShared = from.starts_with("shared");
  if (to == "global" && fromShared && has("bulk_group")) {
    decoder.emit(storeBulk, {}, {scalar(0), scalar(1), scalar(2)}, Flow::Memory).detail = reduction;
    return true;
  }
  if (!toShared || !has("mbarrier::complete_tx::bytes") || operands.size() < 4)
    return false;
  Registers registers{scalar(0), scalar(1), scalar(2), scalar(3)};
  if (fromShared) {
    decoder.emit(copyToBlock, {}, registers, Flow::Memory).detail = reduction;
    return true;
  }
  if (from != "global" || isReduction)
    return false;
  if (has("multicast::cluster")) {
    if (operands.size() < 5)
      return false;
    registers.push_back(scalar(4));
  }
  decoder.emit(copyBulk, {}, registers, Flow::Memory);
  return true;
}

bool simulator::decodeBulk(Decoder &decoder, Operation &op) {
  auto scalars = [&](ValueRange values) { return decoder.getEach(values); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::CpAsyncBulkGlobalToSharedClusterOp copy) {
        Registers operands =
            scalars({copy.getDstMem(), copy.getSrcMem(), copy.getSize(), copy.getMbar()});
        if (copy.getMulticastMask())
          operands.push_back(decoder.getScalar(copy.getMulticastMask()));
        decoder.emit(copyBulk, {}, operands, Flow::Memory);
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkSharedCTAToSharedClusterOp copy) {
        decoder.emit(copyToBlock, {},
                     scalars({copy.getDstMem(), copy.getSrcMem(), copy.getSize(), copy.getMbar()}),
                     Flow::Memory);
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkSharedCTAToGlobalOp copy) {
        if (copy.getByteMask())
          decoder.refuse("a bulk copy with a mask of bytes");
        decoder.emit(storeBulk, {}, scalars({copy.getDstMem(), copy.getSrcMem(), copy.getSize()}),
                     Flow::Memory);
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkCommitGroupOp) {
        decoder.emit(commitStores, {}, {});
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkWaitGroupOp wait) {
        decoder.emit(wait.getRead() ? waitForReads : waitForStores, {}, {}, Flow::Memory)
            .immediate = wait.getGroup();
        return true;
      })
      // Prefetches into a cache.
      .Case<NVVM::CpAsyncBulkPrefetchOp, NVVM::CpAsyncBulkTensorPrefetchOp, NVVM::PrefetchOp>(
          [](auto) { return true; })
      .Default([](Operation *) { return false; });
}
