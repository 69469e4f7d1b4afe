// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The asynchronous units: when copies read, write and arrive. A thread begins a copy, and
// nothing of it is certain before the wait for it; the seed, or the option, says when it is.

#include "Machine.h"
#include "MemoryOps.h"

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
  for (const Row &row : rows)
    std::memcpy(reinterpret_cast<void *>(row.target), data.data() + row.offset, row.bytes);
  isDone = true;
}

void Cta::beginBulk(BulkCopy copy) {
  CopyTimes when = machine.options.copies;
  if (when == CopyTimes::Early || (when == CopyTimes::Random && machine.drawBits() & 1))
    copy.read();
  bulkCopies.push_back(std::move(copy));
  if (when == CopyTimes::Early)
    arriveBulk(bulkCopies.size() - 1);
}

void Cta::arriveBulk(size_t number) {
  BulkCopy copy = std::move(bulkCopies[number]);
  bulkCopies.erase(bulkCopies.begin() + static_cast<std::ptrdiff_t>(number));
  copy.read();
  idleRuns = 0;
  auto found = mbarriers.find(copy.barrier);
  MBarrier *barrier = found == mbarriers.end() ? nullptr : &found->second;
  Accessor who{barrier ? barrier->agent : kMaxWarps, kLanes,
               barrier ? barrier->getClock() : kPending, &copy.times};
  who.isAsync = true;
  if (uint8_t *to = resolveShared(*copy.warp, *copy.instr, who, copy.address, copy.data.size(),
                                  AccessKind::Write, copy.data.data()))
    std::memcpy(to, copy.data.data(), copy.data.size());
  if (!barrier)
    return;
  barrier->times.of[barrier->agent] = barrier->getClock();
  barrier->bytes -= static_cast<int64_t>(copy.data.size());
  completePhase(*barrier);
}

void Cta::beginStore(std::shared_ptr<BulkStore> store) {
  CopyTimes when = machine.options.copies;
  if (when == CopyTimes::Early)
    return store->write();
  if (when == CopyTimes::Random && machine.drawBits() & 1)
    store->read();
  bulkStores.push_back(std::move(store));
}

void Cta::stepEngines(bool isStuck) {
  CopyTimes when = machine.options.copies;
  bool goesOn = when == CopyTimes::Late ? isStuck : machine.drawBits() % 4 == 0;
  if (!bulkCopies.empty() && goesOn)
    arriveBulk(machine.drawBits() % bulkCopies.size());
  if (bulkStores.empty() || when != CopyTimes::Random || machine.drawBits() % 16 != 0)
    return;
  size_t number = machine.drawBits() % bulkStores.size();
  BulkStore &store = *bulkStores[number];
  store.isRead ? store.write() : store.read();
  llvm::erase_if(bulkStores, [](const auto &any) { return any->isDone; });
}
