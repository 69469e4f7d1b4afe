// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The asynchronous units: when copies read, write and arrive. A thread begins a copy, and
// nothing of it is certain before the wait for it; the seed, or the option, says when it is.

#include "Machine.h"
#include "MemoryOps.h"

#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace tessera;
using namespace tessera::simulator;

void PendingCopy::read() {
  if (!isRead && source)
    std::memcpy(data.data(), source, filled);
  isRead = true;
}

void BulkCopy::read() {
  if (gather)
    gather(data);
  gather = nullptr;
}

void BulkStore::read() {
  if (!isRead)
    gather(data);
  isRead = true;
}

void BulkStore::write() {
  read();
  if (isDone)
    return;
  for (const Row &row : rows) {
    auto *to = reinterpret_cast<uint8_t *>(row.target);
    if (combine)
      combine(to, data.data() + row.offset, row.bytes);
    else
      std::memcpy(to, data.data() + row.offset, row.bytes);
  }
  isDone = true;
}

void Cluster::begin(BulkCopy copy) {
  CopyTimes when = machine.options.copies;
  if (when == CopyTimes::Early || (when == CopyTimes::Random && machine.drawBits() & 1))
    copy.read();
  copies.push_back(std::move(copy));
  if (when == CopyTimes::Early)
    arriveCopy(copies.size() - 1);
}

void Cluster::arriveCopy(size_t number) {
  BulkCopy copy = std::move(copies[number]);
  copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(number));
  copy.read();
  idleRuns = 0;
  Cta &target = *copy.target;
  auto found = target.mbarriers.find(copy.barrier);
  MBarrier *barrier = found == target.mbarriers.end() ? nullptr : &found->second;
  Accessor who = copy.warp->accessor(copy.lane);
  who.agent = barrier ? barrier->agent : kMaxWarps;
  who.rank = target.rank;
  who.lane = kLanes;
  who.clock = barrier ? barrier->getClock() : kPending;
  who.acquired = &copy.times;
  who.isAsync = copy.isAsync;
  AccessKind kind = copy.combine ? AccessKind::Atomic : AccessKind::Write;
  if (uint8_t *to = resolveIn(target, *copy.warp, *copy.instr, who, copy.address, copy.data.size(),
                              kind, copy.combine ? nullptr : copy.data.data())) {
    if (copy.combine)
      copy.combine(to, copy.data.data(), copy.data.size());
    else
      std::memcpy(to, copy.data.data(), copy.data.size());
  }
  if (!barrier) {
    std::string block = &target == &copy.warp->cta
                            ? "shared memory"
                            : llvm::formatv("the shared memory of block {0}", target.rank).str();
    machine.report(FindingKind::Uninitialised, *copy.instr, *copy.warp, static_cast<int>(copy.lane),
                   copy.barrier,
                   llvm::formatv("begins a copy that reports to {0} of {1} as a barrier, which it "
                                 "has not been made",
                                 copy.barrier, block));
    return;
  }
  barrier->times.of[barrier->agent] = barrier->getClock();
  barrier->bytes -= static_cast<int64_t>(copy.data.size());
  target.completePhase(*barrier);
}

void Cluster::begin(std::shared_ptr<BulkStore> store) {
  CopyTimes when = machine.options.copies;
  if (when == CopyTimes::Early)
    return store->write();
  if (when == CopyTimes::Random && machine.drawBits() & 1)
    store->read();
  stores.push_back(std::move(store));
}

void Cluster::stepEngines(bool isStuck) {
  CopyTimes when = machine.options.copies;
  bool goesOn = when == CopyTimes::Late ? isStuck : machine.drawBits() % 4 == 0;
  if (!copies.empty() && goesOn)
    arriveCopy(machine.drawBits() % copies.size());
  if (stores.empty() || when != CopyTimes::Random || machine.drawBits() % 16 != 0)
    return;
  size_t number = machine.drawBits() % stores.size();
  BulkStore &store = *stores[number];
  store.isRead ? store.write() : store.read();
  llvm::erase_if(stores, [](const auto &any) { return any->isDone; });
}
