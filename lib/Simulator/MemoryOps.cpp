// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores and atomics: resolves and checks addresses, and counts bank conflicts of 32
// addresses in shared memory.

#include "MemoryOps.h"

#include "Floats.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

uint8_t *simulator::resolveGlobal(Warp &warp, const Instr &instr, unsigned lane, uint64_t address,
                                  uint64_t size, AccessKind kind, const GlobalAccessor &who,
                                  const uint8_t *data) {
  if (const char *problem = warp.machine.checkGlobal(address, size, isWrite(kind))) {
    warp.machine.report(FindingKind::OutOfBounds, instr, warp, static_cast<int>(lane), address,
                        llvm::formatv("{0} {1} bytes at {2:x}, which {3}",
                                      isWrite(kind) ? "writes" : "reads", size, address, problem));
    return nullptr;
  }
  // The callers check atomics.
  if (warp.machine.shadow && (kind == AccessKind::Read || kind == AccessKind::Write))
    watchGlobal(warp, instr, lane, address, size, kind, who, data);
  return reinterpret_cast<uint8_t *>(address);
}

uint8_t *simulator::resolve(Warp &warp, const Instr &instr, unsigned lane, uint64_t address,
                            unsigned size, unsigned alignment, Space space, AccessKind kind,
                            const uint8_t *data) {
  if (space == Space::Generic) {
    if (address - kSharedWindow < kWindowBytes) {
      space = (address - kSharedWindow) >> kRankShift ? Space::Cluster : Space::Shared;
      address -= kSharedWindow;
    } else if (address - kLocalWindow < kWindowBytes) {
      space = Space::Local;
      address -= kLocalWindow;
    } else {
      space = Space::Global;
    }
  }
  const char *verb = isWrite(kind) ? "writes" : "reads";
  int thread = static_cast<int>(lane);
  if (address % alignment != 0) {
    warp.machine.report(FindingKind::Misaligned, instr, warp, thread, address,
                        llvm::formatv("{0} {1} bytes at {2:x}, which is no multiple of {3}", verb,
                                      size, address, alignment));
  }
  switch (space) {
  case Space::Shared:
    return resolveShared(warp, instr, warp.accessor(lane), address, size, kind, data);
  case Space::Cluster:
    if (SharedPlace place = findInCluster(warp, instr, lane, address); place.cta)
      return resolveIn(*place.cta, warp, instr, warp.accessor(lane), place.offset, size, kind,
                       data);
    return nullptr;
  case Space::Local:
    if (address + size <= warp.localMemory.threadBytes)
      return warp.local(lane, address);
    warp.machine.report(FindingKind::OutOfBounds, instr, warp, thread, address,
                        llvm::formatv("{0} {1} bytes at {2} of its own memory, which has {3}", verb,
                                      size, address, warp.localMemory.threadBytes));
    return nullptr;
  case Space::Generic:
  case Space::Global:
    return resolveGlobal(warp, instr, lane, address, size, kind, warp.globalAccessor(instr, lane),
                         data);
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Banks
//===----------------------------------------------------------------------===//

std::pair<unsigned, unsigned> tessera::countWavefronts(const uint64_t *addresses, uint32_t lanes,
                                                       unsigned bytes) {
  // 8 bytes a lane go in halves of the warp, 16 in quarters.
  unsigned phases = bytes <= 4 ? 1 : bytes / 4, perPhase = kLanes / phases, total = 0, ideal = 0;
  for (unsigned phase = 0; phase < phases; ++phase) {
    std::array<llvm::SmallVector<uint64_t, 4>, 32> banks;
    unsigned most = 0;
    for (unsigned lane = phase * perPhase; lane < (phase + 1) * perPhase; ++lane) {
      if (!(lanes >> lane & 1))
        continue;
      for (uint64_t word = addresses[lane] / 4; word * 4 < addresses[lane] + bytes; ++word) {
        auto &bank = banks[word % 32];
        if (!llvm::is_contained(bank, word))
          bank.push_back(word);
        most = std::max(most, static_cast<unsigned>(bank.size()));
      }
    }
    total += most;
    ideal += most != 0;
  }
  return {total, ideal};
}

static void noteBanks(Warp &warp, const Instr &instr, Lanes lanes, const uint64_t *addresses,
                      const WarpAccess &access, const char *name) {
  if (access.space != Space::Shared)
    return;
  std::array<uint64_t, kLanes> moved;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    moved[lane] = addresses[lane] + static_cast<uint64_t>(access.offset);
  auto [wavefronts, ideal] = countWavefronts(moved.data(), lanes, access.total());
  warp.machine.noteShared(instr, name, wavefronts, ideal);
}

//===----------------------------------------------------------------------===//
// Handlers
//===----------------------------------------------------------------------===//

/// Which memory bytes are of that were found: a thread's own, shared or global.
static Space findSpace(Warp &warp, const uint8_t *at) {
  if (warp.localMemory.threadBytes && at >= warp.local(0, 0) && at < warp.local(kLanes, 0))
    return Space::Local;
  for (const auto &cta : warp.cta.cluster.ctas)
    if (at >= cta->shared.data(0) && at < cta->shared.data(0) + cta->shared.size())
      return Space::Shared;
  return Space::Global;
}

/// The release of an atomic access; null if none. Later accesses are not part of it.
static std::shared_ptr<const Release> findRelease(Warp &warp, const WarpAccess &access) {
  if (!access.isAtomic)
    return nullptr;
  if (!releases(access.order))
    return warp.fenced;
  std::shared_ptr<const Release> release = makeRelease(warp, access.reach);
  ++warp.times.of[warp.id];
  return release;
}

void simulator::runLoad(Warp &warp, const Instr &instr, Lanes lanes) {
  const auto &access = *static_cast<const WarpAccess *>(instr.detail);
  const uint64_t *addresses = warp.in(instr, 0);
  std::array<uint64_t *, 16> results;
  for (unsigned i = 0; i < access.count; ++i)
    results[i] = warp.out(instr, i);
  noteBanks(warp, instr, lanes, addresses, access, "load");
  AccessKind kind = access.isAtomic ? AccessKind::AtomicRead : AccessKind::Read;
  forEachLane(lanes, [&](unsigned lane) {
    const uint8_t *from =
        resolve(warp, instr, lane, addresses[lane] + static_cast<uint64_t>(access.offset),
                access.total(), access.alignment, access.space, kind, nullptr);
    for (unsigned i = 0; i < access.count; ++i) {
      uint64_t value = 0;
      if (from)
        std::memcpy(&value, from + i * access.bytes, access.bytes);
      else
        std::memset(&value, 0xcd, access.bytes);
      results[i][lane] = value;
    }
    if (from && access.isAtomic)
      acquireAt(warp, findSpace(warp, from), reinterpret_cast<uint64_t>(from), access);
  });
}

void simulator::runStore(Warp &warp, const Instr &instr, Lanes lanes) {
  const auto &access = *static_cast<const WarpAccess *>(instr.detail);
  const uint64_t *addresses = warp.in(instr, 0);
  noteBanks(warp, instr, lanes, addresses, access, "store");
  AccessKind kind = access.isAtomic ? AccessKind::AtomicWrite : AccessKind::Write;
  warp.countExecution(instr);
  std::shared_ptr<const Release> release = findRelease(warp, access);
  forEachLane(lanes, [&](unsigned lane) {
    std::array<uint8_t, 128> data;
    for (unsigned i = 0; i < access.count; ++i)
      std::memcpy(data.data() + i * access.bytes, &warp.in(instr, 1 + i)[lane], access.bytes);
    uint8_t *to = resolve(warp, instr, lane, addresses[lane] + static_cast<uint64_t>(access.offset),
                          access.total(), access.alignment, access.space, kind, data.data());
    if (!to)
      return;
    if (access.isAtomic) {
      auto at = reinterpret_cast<uint64_t>(to);
      Space space = findSpace(warp, to);
      if (space == Space::Global)
        watchAtomic(warp, instr, lane, at, access.total(), kind, access);
      releaseAt(warp, space, at, /*isUpdate=*/false, release);
    }
    std::memcpy(to, data.data(), access.total());
  });
}

template <typename Format, typename F> static uint64_t inFloat(uint64_t a, uint64_t b, F f) {
  return Format::store(f(Format::load(a), Format::load(b)));
}

template <typename F> static uint64_t inFloat(Type type, uint64_t a, uint64_t b, F f) {
  if (type.isF64())
    return inFloat<F64>(a, b, f);
  if (type.isF32())
    return inFloat<F32>(a, b, f);
  return type.isF16() ? inFloat<F16>(a, b, f) : inFloat<BF16>(a, b, f);
}

uint64_t simulator::combineAtomic(const WarpAccess &access, uint64_t old, uint64_t value,
                                  uint64_t replacement) {
  unsigned width = access.bytes * 8;
  int64_t a = signExtend(old, width), b = signExtend(value, width);
  switch (access.atomic) {
  case AtomicKind::Exchange:
    return value;
  case AtomicKind::Add:
    return old + value;
  case AtomicKind::And:
    return old & value;
  case AtomicKind::Or:
    return old | value;
  case AtomicKind::Xor:
    return old ^ value;
  case AtomicKind::Max:
    return a > b ? old : value;
  case AtomicKind::Min:
    return a < b ? old : value;
  case AtomicKind::UMax:
    return std::max(old, value);
  case AtomicKind::UMin:
    return std::min(old, value);
  case AtomicKind::Increment:
    return old >= value ? 0 : old + 1;
  case AtomicKind::Decrement:
    return old == 0 || old > value ? value : old - 1;
  case AtomicKind::FAdd:
    return inFloat(access.type, old, value, [](auto x, auto y) { return x + y; });
  case AtomicKind::FMax:
    return inFloat(access.type, old, value, [](auto x, auto y) { return std::fmax(x, y); });
  case AtomicKind::FMin:
    return inFloat(access.type, old, value, [](auto x, auto y) { return std::fmin(x, y); });
  case AtomicKind::CAS:
    return old == value ? replacement : old;
  }
  llvm_unreachable("covered switch");
}

/// An atomic operation replaces `old` by `value`.
static void watchUpdate(Warp &warp, const Instr &instr, unsigned lane, const uint8_t *at,
                        const WarpAccess &access, uint64_t old, uint64_t value,
                        const std::shared_ptr<const Release> &release) {
  auto address = reinterpret_cast<uint64_t>(at);
  bool mayFail = access.atomic == AtomicKind::CAS;
  if (mayFail && old == value)
    return;
  if (Space space = findSpace(warp, at); space != Space::Global)
    return releaseAt(warp, space, address, /*isUpdate=*/true, release);
  // There are no atomics of 8 bits. One of 16 bits keeps the other half, and is tried again if that
  // has changed.
  if (mayFail && access.bytes == 2 && ((old ^ value) & 0xff) == 0)
    watchAtomic(warp, instr, lane, address + 1, 1, AccessKind::Atomic, access);
  else if (mayFail && access.bytes == 2 && ((old ^ value) & 0xff00) == 0)
    watchAtomic(warp, instr, lane, address, 1, AccessKind::Atomic, access);
  else
    watchAtomic(warp, instr, lane, address, access.bytes, AccessKind::Atomic, access);
  releaseAt(warp, Space::Global, address, /*isUpdate=*/true, release);
}

/// Lanes run one after another, at each element of a vector. There may be no result. A lane
/// acquires before it releases: both are complete when another lane observes it.
void simulator::runAtomic(Warp &warp, const Instr &instr, Lanes lanes) {
  const auto &access = *static_cast<const WarpAccess *>(instr.detail);
  const uint64_t *addresses = warp.in(instr, 0);
  std::array<uint8_t *, kLanes> places{};
  forEachLane(lanes, [&](unsigned lane) {
    places[lane] =
        resolve(warp, instr, lane, addresses[lane] + static_cast<uint64_t>(access.offset),
                access.total(), access.total(), access.space, AccessKind::Atomic, nullptr);
    if (uint8_t *at = places[lane])
      for (unsigned i = 0; i < access.count; ++i, at += access.bytes)
        acquireAt(warp, findSpace(warp, at), reinterpret_cast<uint64_t>(at), access);
  });
  std::shared_ptr<const Release> release = findRelease(warp, access);
  for (unsigned i = 0; i < access.count; ++i) {
    const uint64_t *values = warp.in(instr, 1 + i);
    const uint64_t *others = access.atomic == AtomicKind::CAS ? warp.in(instr, 2) : values;
    uint64_t *results = instr.results.empty() ? nullptr : warp.out(instr, i);
    forEachLane(lanes, [&](unsigned lane) {
      if (!places[lane])
        return;
      uint8_t *at = places[lane] + i * access.bytes;
      uint64_t old = 0, mask = maskOf(access.bytes * 8);
      std::memcpy(&old, at, access.bytes);
      uint64_t value = combineAtomic(access, old, values[lane] & mask, others[lane] & mask);
      watchUpdate(warp, instr, lane, at, access, old, value, release);
      std::memcpy(at, &value, access.bytes);
      if (results)
        results[lane] = old;
    });
  }
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

namespace {

WarpAccess describeAccess(Decoder &decoder, Value address, Type type,
                          std::optional<uint64_t> alignment) {
  SmallVector<Type> scalars = getScalars(type);
  WarpAccess access;
  switch (cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace()) {
  case 0:
    access.space = Space::Generic;
    break;
  case 1:
  case 4: // of constants, which lie in global memory here
    access.space = Space::Global;
    break;
  case 3:
    access.space = Space::Shared;
    break;
  case 5:
    access.space = Space::Local;
    break;
  case 7:
    access.space = Space::Cluster;
    break;
  default:
    decoder.refuse("the memory of this access");
  }
  access.bytes = (getWidth(scalars.front()) + 7) / 8;
  access.count = scalars.size();
  if (access.count > 16 || (access.count > 1 && getWidth(scalars.front()) % 8 != 0))
    decoder.refuse("accesses of this type");
  for (Type scalar : scalars)
    if (getWidth(scalar) != getWidth(scalars.front()))
      decoder.refuse("accesses of structs");
  // The code generator makes one access of what is said to be aligned, several otherwise.
  uint64_t natural = isa<VectorType>(type) ? access.total() : access.bytes;
  access.alignment = static_cast<unsigned>(alignment.value_or(natural));
  if (access.space == Space::Generic || access.space == Space::Local)
    access.alignment = std::min(access.alignment, access.bytes);
  return access;
}

} // namespace

Reach simulator::getReach(std::optional<StringRef> scope) {
  return scope == "block" || scope == "singlethread" ? Reach::Program
         : scope == "cluster"                        ? Reach::Cluster
                                                     : Reach::Device;
}

namespace {

/// The ordering of an operation of LLVM, and its scope.
void setOrdering(WarpAccess &access, LLVM::AtomicOrdering order, std::optional<StringRef> scope) {
  access.isAtomic = true;
  access.reach = getReach(scope);
  switch (order) {
  case LLVM::AtomicOrdering::acquire:
    access.order = Ordering::Acquire;
    break;
  case LLVM::AtomicOrdering::release:
    access.order = Ordering::Release;
    break;
  case LLVM::AtomicOrdering::acq_rel:
  case LLVM::AtomicOrdering::seq_cst:
    access.order = Ordering::AcquireRelease;
    break;
  default:
    break;
  }
}

AtomicKind getKind(Decoder &decoder, LLVM::AtomicBinOp op) {
  using B = LLVM::AtomicBinOp;
  switch (op) {
  case B::xchg:
    return AtomicKind::Exchange;
  case B::add:
    return AtomicKind::Add;
  case B::_and:
    return AtomicKind::And;
  case B::_or:
    return AtomicKind::Or;
  case B::_xor:
    return AtomicKind::Xor;
  case B::max:
    return AtomicKind::Max;
  case B::min:
    return AtomicKind::Min;
  case B::umax:
    return AtomicKind::UMax;
  case B::umin:
    return AtomicKind::UMin;
  case B::fadd:
    return AtomicKind::FAdd;
  case B::fmax:
    return AtomicKind::FMax;
  case B::fmin:
    return AtomicKind::FMin;
  case B::uinc_wrap:
    return AtomicKind::Increment;
  case B::udec_wrap:
    return AtomicKind::Decrement;
  default:
    decoder.refuse("this atomic operation");
  }
}

void fillLocal(Warp &warp, const Instr &instr, Lanes lanes) {
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = static_cast<uint64_t>(instr.immediate); });
}

} // namespace

bool simulator::decodeMemory(Decoder &decoder, Operation &op) {
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](LLVM::LoadOp load) {
        WarpAccess access =
            describeAccess(decoder, load.getAddr(), load.getType(), load.getAlignment());
        if (load.getOrdering() != LLVM::AtomicOrdering::not_atomic || load.getVolatile_())
          setOrdering(access, load.getOrdering(), load.getSyncscope());
        Instr &instr = decoder.emit(runLoad, decoder.define(load.getResult()),
                                    decoder.getScalar(load.getAddr()), Flow::Memory);
        instr.detail = decoder.keep(access);
        return true;
      })
      .Case([&](LLVM::StoreOp store) {
        WarpAccess access = describeAccess(decoder, store.getAddr(), store.getValue().getType(),
                                           store.getAlignment());
        if (store.getOrdering() != LLVM::AtomicOrdering::not_atomic || store.getVolatile_())
          setOrdering(access, store.getOrdering(), store.getSyncscope());
        Registers operands{decoder.getScalar(store.getAddr())};
        llvm::append_range(operands, decoder.get(store.getValue()));
        decoder.emit(runStore, {}, operands, Flow::Memory).detail = decoder.keep(access);
        return true;
      })
      .Case([&](LLVM::AtomicRMWOp atomic) {
        Type type = atomic.getVal().getType();
        WarpAccess access = describeAccess(decoder, atomic.getPtr(), type, std::nullopt);
        if (access.count != 1)
          decoder.refuse("atomics of vectors");
        access.atomic = getKind(decoder, atomic.getBinOp());
        setOrdering(access, atomic.getOrdering(), atomic.getSyncscope());
        access.type = type;
        Instr &instr = decoder.emit(
            runAtomic, decoder.define(atomic.getRes()),
            {decoder.getScalar(atomic.getPtr()), decoder.getScalar(atomic.getVal())}, Flow::Memory);
        instr.detail = decoder.keep(access);
        return true;
      })
      .Case([&](LLVM::AllocaOp alloca) {
        std::optional<uint64_t> count;
        if (auto constant = alloca.getArraySize().getDefiningOp<LLVM::ConstantOp>())
          if (auto number = dyn_cast<IntegerAttr>(constant.getValue()))
            count = number.getValue().getZExtValue();
        if (!count)
          decoder.refuse("memory of a thread whose size is not constant");
        uint64_t at = decoder.allocateLocal(*count * decoder.sizeOf(alloca.getElemType()),
                                            alloca.getAlignment().value_or(16));
        unsigned space = cast<LLVM::LLVMPointerType>(alloca.getType()).getAddressSpace();
        decoder.emit(fillLocal, decoder.define(alloca.getResult()), {}).immediate =
            static_cast<int64_t>(space == 0 ? kLocalWindow + at : at);
        return true;
      })
      .Default([](Operation *) { return false; });
}
