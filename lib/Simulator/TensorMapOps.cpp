// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of boxes of arrays by tensor maps, which go on beside the program (Engines.cpp). A load
// may read the array until its barrier completes. A store may read shared memory until the wait for
// its read, and write the array until the wait for all of it.

#include "BulkOps.h"
#include "InlinePTX.h"
#include "MadeTensorMaps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

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
  /// The place of byte `offset` of the box in shared memory: a rule on addresses.
  uint64_t place(uint64_t address, uint64_t offset) const {
    uint64_t to = address + offset;
    uint64_t chunks = map->swizzleBytes ? map->swizzleBytes / 16 - 1 : 0;
    return to ^ (to >> 7 & chunks) << 4;
  }

  /// Calls `f(offset in the box, address in the array, bytes)` for what each row has inside the
  /// array. For a store (`inChunks`), 16 bytes are inside if one of them is. This was observed on
  /// an H200, where a load gives zeros for every element outside.
  template <typename F> void forEachRow(bool inChunks, F &&f) const {
    const cuda::TensorMapShape &shape = map->shape;
    uint64_t rows = getBytes() / (uint64_t(shape.box[0]) * map->elementBytes);
    auto extent = static_cast<int64_t>(shape.extents[0]);
    int64_t end = extent - at[0];
    if (inChunks)
      end = static_cast<int64_t>(
          llvm::alignTo(static_cast<uint64_t>(std::max<int64_t>(0, end)) * map->elementBytes, 16) /
          map->elementBytes);
    int64_t first = std::max<int64_t>(0, -at[0]), last = std::min<int64_t>(shape.box[0], end);
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

/// The box that operands `first` (the map) and `first + 1` up to `end` name; no map, and
/// reported, if there is none such. `address` is where it lies in shared memory.
Box findBox(Warp &warp, const Instr &instr, unsigned lane, unsigned first, size_t end,
            uint64_t address) {
  Box box;
  uint64_t where = warp.in(instr, first)[lane];
  for (const TensorMap &map : warp.machine.tensorMaps.given)
    if (reinterpret_cast<uint64_t>(&map) == where)
      box.map = &map;
  if (!box.map)
    box.map = findMadeMap(warp, instr, lane, where);
  auto coordinates = static_cast<unsigned>(end - first - 1);
  if (!box.map || box.map->shape.rank != static_cast<int>(coordinates)) {
    warp.machine.report(
        FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), where,
        llvm::formatv("copies with {0} coordinates by what is no such tensor map", coordinates));
    return {};
  }
  for (unsigned dim = 0; dim < coordinates; ++dim)
    box.at[dim] = static_cast<int32_t>(warp.in(instr, first + 1 + dim)[lane]);
  constexpr int64_t kRowAlignment = 16;
  if (box.at[0] * box.map->elementBytes % kRowAlignment != 0)
    warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), where,
                        llvm::formatv("copies a box that begins at element {0} of a row, which is "
                                      "at no multiple of {1} bytes: an illegal instruction",
                                      box.at[0], kRowAlignment));
  constexpr uint64_t kAlignment = 128;
  if (address % kAlignment != 0)
    warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), address,
                        llvm::formatv("copies a box to or from {0} of shared memory, which is no "
                                      "multiple of {1}",
                                      address, kAlignment));
  return box;
}

/// The result of a reduction by a tensor map on two elements; reported if it is not one of theirs.
WarpAccess describeReduction(Warp &warp, const Instr &instr, unsigned lane, const TensorMap &map,
                             NVVM::TMAReduxKind kind) {
  using E = cuda::TensorMapElement;
  MLIRContext *context = instr.op->getContext();
  WarpAccess access;
  access.bytes = map.elementBytes;
  bool isSigned = map.element == E::Int32 || map.element == E::Int64;
  if (map.element == E::Float16)
    access.type = Float16Type::get(context);
  else if (map.element == E::BFloat16)
    access.type = BFloat16Type::get(context);
  else if (map.element == E::Float32)
    access.type = Float32Type::get(context);
  else if (map.element == E::Float64)
    access.type = Float64Type::get(context);
  bool isFloat = access.type != nullptr;
  bool isKnown = map.elementBytes >= (isFloat ? 2 : 4);
  switch (kind) {
  case NVVM::TMAReduxKind::ADD:
    access.atomic = isFloat ? AtomicKind::FAdd : AtomicKind::Add;
    break;
  case NVVM::TMAReduxKind::MAX:
    access.atomic = isFloat ? AtomicKind::FMax : isSigned ? AtomicKind::Max : AtomicKind::UMax;
    isKnown &= !isFloat || map.elementBytes == 2;
    break;
  case NVVM::TMAReduxKind::MIN:
    access.atomic = isFloat ? AtomicKind::FMin : isSigned ? AtomicKind::Min : AtomicKind::UMin;
    isKnown &= !isFloat || map.elementBytes == 2;
    break;
  case NVVM::TMAReduxKind::INC:
    access.atomic = AtomicKind::Increment;
    isKnown &= map.element == E::UInt32;
    break;
  case NVVM::TMAReduxKind::DEC:
    access.atomic = AtomicKind::Decrement;
    isKnown &= map.element == E::UInt32;
    break;
  case NVVM::TMAReduxKind::AND:
    access.atomic = AtomicKind::And;
    isKnown &= !isFloat;
    break;
  case NVVM::TMAReduxKind::OR:
    access.atomic = AtomicKind::Or;
    isKnown &= !isFloat;
    break;
  case NVVM::TMAReduxKind::XOR:
    access.atomic = AtomicKind::Xor;
    isKnown &= !isFloat;
    break;
  }
  if (!isKnown)
    warp.machine.report(FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), 0,
                        "reduces elements of a tensor map that cannot be reduced like that");
  return access;
}

/// Operands: to, barrier, map, coordinates; then the mask of blocks if `immediate` is 1.
void loadBox(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *to = warp.in(instr, 0), *barriers = warp.in(instr, 1);
  const uint64_t *masks = instr.immediate ? warp.in(instr, instr.operands.size() - 1) : nullptr;
  forEachLane(lanes, [&](unsigned lane) {
    SmallVector<CopyTarget, 1> targets =
        findTargets(warp, instr, lane, to[lane], barriers[lane],
                    masks ? std::optional<uint64_t>(masks[lane]) : std::nullopt);
    if (targets.empty())
      return;
    Box box = findBox(warp, instr, lane, 2, instr.operands.size() - (masks != nullptr),
                      targets.front().address);
    if (!box.map)
      return;
    for (const CopyTarget &target : targets) {
      BulkCopy copy = makeCopy(warp, instr, lane, target);
      // Elements outside of the array are zeros, and count.
      copy.data.assign(box.getBytes(), 0);
      GlobalAccessor who = getBulkReader(warp, instr, lane, *target.cta, target.barrier);
      std::vector<uint64_t> missing; // rows that are not the kernel's
      box.forEachRow(/*inChunks=*/false, [&](uint64_t, uint64_t address, unsigned bytes) {
        if (!resolveGlobal(warp, instr, lane, address, bytes, AccessKind::Read, who, nullptr))
          missing.push_back(address);
      });
      copy.gather = [box, to = copy.address, missing = std::move(missing)](auto &data) {
        box.forEachRow(/*inChunks=*/false, [&](uint64_t offset, uint64_t address, unsigned bytes) {
          if (!missing.empty() && llvm::is_contained(missing, address))
            return;
          const auto *source = reinterpret_cast<const uint8_t *>(address);
          for (unsigned i = 0; i < bytes; ++i)
            data[box.place(to, offset + i) - to] = source[i];
        });
      };
      noteCopyTo(warp, instr, lane, *target.cta, target.address, box.getBytes(), target.barrier);
      warp.cta.cluster.begin(std::move(copy));
    }
  });
  warp.tick();
}

/// Operands: from, map, coordinates. With a detail it is a reduction.
void storeBox(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *from = warp.in(instr, 0);
  warp.countExecution(instr);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t address = toShared(from[lane]);
    Box box = findBox(warp, instr, lane, 1, instr.operands.size(), address);
    if (!box.map)
      return;
    for (size_t number = 2; number < instr.operands.size(); ++number)
      if (static_cast<int32_t>(warp.in(instr, number)[lane]) < 0) {
        warp.machine.report(FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), 0,
                            "stores a box at a negative coordinate of its tensor map");
        return;
      }
    std::shared_ptr<BulkStore> store =
        makeStore(warp, instr, lane, address, box.getBytes(),
                  [box, address](uint64_t offset) { return box.place(address, offset); });
    if (!store)
      return;
    if (instr.detail)
      store->combine = makeCombine(describeReduction(
          warp, instr, lane, *box.map, *static_cast<const NVVM::TMAReduxKind *>(instr.detail)));
    box.forEachRow(/*inChunks=*/!instr.detail,
                   [&](uint64_t offset, uint64_t target, unsigned bytes) {
                     addRow(warp, lane, *store, target, offset, bytes);
                   });
    beginStore(warp, lane, std::move(store));
  });
  warp.tick();
}

std::optional<NVVM::TMAReduxKind> findReduction(const PTXInstr &instr) {
  for (StringRef word : instr.words)
    if (std::optional<NVVM::TMAReduxKind> kind = NVVM::symbolizeTMAReduxKind(word))
      return kind;
  return std::nullopt;
}

} // namespace

bool simulator::decodeTensorMapPTX(Decoder &decoder, const PTXInstr &instr) {
  auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
  ArrayRef<PTXOperand> operands = instr.operands;
  auto scalar = [&](size_t number) { return operands[number].registers.front(); };
  if (decodeMaking(decoder, instr))
    return true;
  if (instr.words.front() != "cp" || !has("bulk") || !has("tensor") || has("im2col"))
    return false;
  if (has("prefetch"))
    return true;
  // cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [map, {x, y}], from
  // cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [map, {x, y}], from
  if (has("bulk_group")) {
    bool isReduction = instr.words[1] == "reduce";
    std::optional<NVVM::TMAReduxKind> kind = findReduction(instr);
    if (operands.size() < 2 || operands[0].more.empty() || isReduction != kind.has_value())
      return false;
    Registers registers{scalar(1), scalar(0)};
    llvm::append_range(registers, operands[0].more);
    Instr &store = decoder.emit(storeBox, {}, registers, Flow::Memory);
    if (isReduction)
      store.detail = decoder.keep(*kind);
    return true;
  }
  // cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes to, [map, {x, y}],
  // barrier{, mask}{, policy}
  bool isMulticast = has("multicast::cluster");
  if (instr.words.size() < 7 || !instr.words[5].starts_with("shared") ||
      instr.words[6] != "global" || !has("mbarrier::complete_tx::bytes") ||
      operands.size() < (isMulticast ? 4 : 3) || operands[1].more.empty())
    return false;
  Registers registers{scalar(0), scalar(2), scalar(1)};
  llvm::append_range(registers, operands[1].more);
  if (isMulticast)
    registers.push_back(scalar(3));
  decoder.emit(loadBox, {}, registers, Flow::Memory).immediate = isMulticast;
  return true;
}

bool simulator::decodeTensorMap(Decoder &decoder, Operation &op) {
  auto scalars = [&](ValueRange values) { return decoder.getEach(values); };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp load) {
        if (!load.getIm2colOffsets().empty() || load.getMode() != NVVM::TMALoadMode::TILE)
          decoder.refuse("a copy by a tensor map that is not of a box");
        Registers operands = scalars({load.getDstMem(), load.getMbar(), load.getTmaDescriptor()});
        llvm::append_range(operands, scalars(load.getCoordinates()));
        if (load.getMulticastMask())
          operands.push_back(decoder.getScalar(load.getMulticastMask()));
        size_t first = decoder.getNumInstrs();
        decoder.emit(loadBox, {}, operands, Flow::Memory).immediate =
            load.getMulticastMask() != nullptr;
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
      .Case([&](NVVM::CpAsyncBulkTensorReduceOp reduce) {
        if (reduce.getMode() != NVVM::TMAStoreMode::TILE)
          decoder.refuse("a copy by a tensor map that is not of a box");
        Registers operands = scalars({reduce.getSrcMem(), reduce.getTmaDescriptor()});
        llvm::append_range(operands, scalars(reduce.getCoordinates()));
        decoder.emit(storeBox, {}, operands, Flow::Memory).detail =
            decoder.keep(reduce.getRedKind());
        return true;
      })
      .Default([](Operation *) { return false; });
}
