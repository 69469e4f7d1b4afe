// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of boxes of arrays by tensor maps, which go on beside the program (Engines.cpp).
// A load may read the array until the barrier that it reports to says that it is over; a
// store may read shared memory until that has been waited for, and write the array until all
// of it has.

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

namespace {

/// A box: a map, and the coordinates of its first element, innermost first.
struct Box {
  const TensorMap *map = nullptr;
  std::array<int64_t, cuda::TensorMapShape::kMaxRank> at{};

  uint64_t getBytes() const {
    uint64_t bytes = map->elementBytes;
    for (int dim = 0; dim < map->shape.rank; ++dim)
      bytes *= map->shape.box[dim];
    return bytes;
  }
  /// Where byte `offset` of the box lies in shared memory: a rule on addresses.
  uint64_t place(uint64_t address, uint64_t offset) const {
    uint64_t to = address + offset;
    uint64_t chunks = map->swizzleBytes ? map->swizzleBytes / 16 - 1 : 0;
    return to ^ (to >> 7 & chunks) << 4;
  }

  /// Calls `f(offset in the box, address in the array, bytes)` for what each row has inside
  /// the array.
  template <typename F> void forEachRow(F &&f) const {
    const cuda::TensorMapShape &shape = map->shape;
    uint64_t rows = getBytes() / (uint64_t(shape.box[0]) * map->elementBytes);
    auto extent = static_cast<int64_t>(shape.extents[0]);
    int64_t first = std::max<int64_t>(0, -at[0]),
            last = std::min<int64_t>(shape.box[0], extent - at[0]);
    for (uint64_t row = 0; row < rows && first < last; ++row) {
      uint64_t rest = row;
      int64_t address = static_cast<int64_t>(shape.base) + (at[0] + first) * map->elementBytes;
      bool isInside = true;
      for (int dim = 1; dim < shape.rank; ++dim) {
        int64_t index = at[dim] + static_cast<int64_t>(rest % shape.box[dim]);
        rest /= shape.box[dim];
        isInside &= index >= 0 && index < static_cast<int64_t>(shape.extents[dim]);
        address += index * static_cast<int64_t>(shape.strides[dim]);
      }
      if (isInside)
        f((row * shape.box[0] + first) * map->elementBytes, static_cast<uint64_t>(address),
          static_cast<unsigned>((last - first) * map->elementBytes));
    }
  }
};

uint64_t toShared(uint64_t address) {
  return address - kSharedWindow < kWindowBytes ? address - kSharedWindow : address;
}

/// The box that operands `first` (the map) and `first + 1` up name; no map, and reported, if
/// there is none such. `address` is where it lies in shared memory.
Box findBox(Warp &warp, const Instr &instr, unsigned lane, unsigned first, uint64_t address) {
  Box box;
  uint64_t where = warp.in(instr, first)[lane];
  for (const TensorMap &map : warp.machine.tensorMaps)
    if (reinterpret_cast<uint64_t>(&map) == where)
      box.map = &map;
  unsigned coordinates = instr.operands.size() - first - 1;
  if (!box.map || box.map->shape.rank != static_cast<int>(coordinates)) {
    warp.machine.report(
        FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), where,
        llvm::formatv("copies with {0} coordinates by what is no such tensor map", coordinates));
    return {};
  }
  for (unsigned dim = 0; dim < coordinates; ++dim)
    box.at[dim] = static_cast<int32_t>(warp.in(instr, first + 1 + dim)[lane]);
  constexpr uint64_t kAlignment = 128;
  if (address % kAlignment != 0)
    warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), address,
                        llvm::formatv("copies a box to or from {0} of shared memory, which is no "
                                      "multiple of {1}",
                                      address, kAlignment));
  return box;
}

/// Operands: to, barrier, map, coordinates.
void loadBox(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *to = warp.in(instr, 0), *barriers = warp.in(instr, 1);
  forEachLane(lanes, [&](unsigned lane) {
    BulkCopy copy;
    copy.warp = &warp;
    copy.instr = &instr;
    copy.address = toShared(to[lane]);
    copy.barrier = toShared(barriers[lane]);
    copy.times = warp.times;
    Box box = findBox(warp, instr, lane, 2, copy.address);
    if (!box.map)
      return;
    // What is outside of the array is zeros, and counts.
    copy.data.assign(box.getBytes(), 0);
    GlobalAccessor who = getBulkReader(warp, instr, lane, copy.barrier);
    std::vector<uint64_t> missing; // rows that are not the kernel's
    box.forEachRow([&](uint64_t, uint64_t address, unsigned bytes) {
      if (!resolveGlobal(warp, instr, lane, address, bytes, AccessKind::Read, who, nullptr))
        missing.push_back(address);
    });
    copy.gather = [box, to = copy.address, missing = std::move(missing)](auto &data) {
      box.forEachRow([&](uint64_t offset, uint64_t address, unsigned bytes) {
        if (!missing.empty() && llvm::is_contained(missing, address))
          return;
        const auto *source = reinterpret_cast<const uint8_t *>(address);
        for (unsigned i = 0; i < bytes; ++i)
          data[box.place(to, offset + i) - to] = source[i];
      });
    };
    warp.cta.beginBulk(std::move(copy));
  });
  warp.tick();
}

/// Operands: from, map, coordinates.
void storeBox(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *from = warp.in(instr, 0);
  warp.countExecution(instr);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t address = toShared(from[lane]);
    Box box = findBox(warp, instr, lane, 1, address);
    if (!box.map)
      return;
    Accessor who = warp.accessor(lane);
    who.isAsync = true;
    SharedMemory &shared = warp.cta.shared;
    LaneStores &stores = warp.stores[lane];
    stores.last = &instr;
    auto store = std::make_shared<BulkStore>();
    store->instr = &instr;
    for (uint64_t at = address; at < address + box.getBytes(); at += 16) {
      if (!resolveShared(warp, instr, who, at, 16, AccessKind::Read, nullptr))
        return;
      shared.beginRead(at / 16);
      store->pieces.push_back(at / 16);
    }
    store->data.resize(box.getBytes());
    store->gather = [box, address, &shared](auto &data) {
      for (uint64_t offset = 0; offset < data.size(); ++offset)
        data[offset] = *shared.data(box.place(address, offset));
    };
    // What is there now: a program that changes it is found out otherwise.
    store->gather(store->data);
    GlobalAccessor writer = warp.globalAccessor(instr, lane);
    writer.isAsync = true;
    writer.access.clock = kPending;
    box.forEachRow([&](uint64_t offset, uint64_t target, unsigned bytes) {
      if (resolveGlobal(warp, instr, lane, target, bytes, AccessKind::Write, writer,
                        store->data.data() + offset))
        store->rows.push_back({target, offset, bytes});
    });
    stores.open.stores.push_back(store);
    warp.cta.beginStore(std::move(store));
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

bool simulator::decodeTensorMapPTX(Decoder &decoder, const PTXInstr &instr) {
  // cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes to, [map, {x, y}],
  // barrier
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  ArrayRef<PTXOperand> operands = instr.operands;
  if (instr.words.size() < 8 || instr.words[0] != "cp" || instr.words[3] != "tensor" ||
      !instr.words[5].starts_with("shared") || instr.words[6] != "global" || !has("tile") ||
      has("multicast::cluster") || operands.size() < 3 || operands[1].more.empty())
    return false;
  auto scalar = [&](size_t number) { return operands[number].registers.front(); };
  Registers registers{scalar(0), scalar(2), scalar(1)};
  llvm::append_range(registers, operands[1].more);
  decoder.emit(loadBox, {}, registers, Flow::Memory);
  return true;
}

bool simulator::decodeTensorMap(Decoder &decoder, Operation &op) {
  auto scalars = [&](ValueRange values) { return decoder.getEach(values); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp load) {
        if (load.getMulticastMask() || !load.getIm2colOffsets().empty() ||
            load.getMode() != NVVM::TMALoadMode::TILE)
          decoder.refuse("a copy by a tensor map that is not of a box to its own program");
        Registers operands = scalars({load.getDstMem(), load.getMbar(), load.getTmaDescriptor()});
        llvm::append_range(operands, scalars(load.getCoordinates()));
        size_t first = decoder.getNumInstrs();
        decoder.emit(loadBox, {}, operands, Flow::Memory);
        if (load.getPredicate())
          decoder.predicate(first, decoder.getScalar(load.getPredicate()), /*isNegated=*/false);
        return true;
      })
      .Case([&](NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp store) {
        if (store.getMode() != NVVM::TMAStoreMode::TILE)
          decoder.refuse("a copy by a tensor map that is not of a box");
        Registers operands = scalars({store.getSrcMem(), store.getTmaDescriptor()});
        llvm::append_range(operands, scalars(store.getCoordinates()));
        size_t first = decoder.getNumInstrs();
        decoder.emit(storeBox, {}, operands, Flow::Memory);
        if (store.getPredicate())
          decoder.predicate(first, decoder.getScalar(store.getPredicate()), /*isNegated=*/false);
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
      .Default([](Operation *) { return false; });
}
