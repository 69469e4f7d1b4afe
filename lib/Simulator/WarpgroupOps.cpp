// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma: dots of four warps, whose operands the asynchronous units read from shared memory. A warp
// has 16 of the 64 rows, so each is simulated separately. Operands of an instruction may not be
// overwritten before the wait for its group. Writes of threads to them must be fenced before.

#include "InlinePTX.h"
#include "Machine.h"
#include "MatrixOps.h"
#include "MemoryOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

/// The rows of a warp of the group.
constexpr unsigned kRows = 16;

struct Wgmma {
  unsigned n = 0, k = 0;
  MatrixType a, b, accumulator;
  bool isAInMemory = false, isAKMajor = true, isBKMajor = true;
  bool negatesA = false, negatesB = false;
  Registers accumulators, wordsA;
  Register descriptorA = kNoRegister, descriptorB = kNoRegister, adds = kNoRegister;
};

/// The strides and the swizzle of an operand in memory.
struct Descriptor {
  uint64_t start, leading, stride;
  unsigned swizzle; ///< bytes of a row, 0 without

  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4) {
    constexpr unsigned widths[] = {0, 128, 64, 32};
    swizzle = widths[bits >> 62];
  }

  /// The place of the element (mn, k) of `bytes` bytes.
  uint64_t find(unsigned mn, unsigned k, unsigned bytes, bool isKMajor) const {
    uint64_t row = swizzle ? swizzle : 16, perRow = row / bytes;
    uint64_t fast = isKMajor ? k : mn, slow = isKMajor ? mn : k;
    uint64_t at = start + slow % 8 * row;
    if (isKMajor && swizzle) // a step along K lies within a row
      at += slow / 8 * stride + fast * bytes;
    else if (isKMajor)
      at += slow / 8 * stride + fast / perRow * leading + fast % perRow * bytes;
    else if (swizzle)
      at += slow / 8 * stride + fast / perRow * leading + fast % perRow * bytes;
    else
      at += slow / 8 * leading + fast / perRow * stride + fast % perRow * bytes;
    // 16-byte pieces change places with the number of the row.
    uint64_t pieces = swizzle ? swizzle / 16 - 1 : 0;
    return at ^ (at >> 7 & pieces) << 4;
  }
};

/// Reads elements by the asynchronous units. Each 16 bytes are checked once.
class OperandReader {
public:
  OperandReader(Warp &warp, const Instr &instr)
      : warp(warp), instr(instr), states(warp.cta.shared.size() / 16 + 1) {}

  double read(uint64_t address, MatrixType type) {
    uint64_t piece = address / 16;
    if (piece >= states.size() || states[piece] == Unseen)
      look(piece);
    uint64_t bits = 0;
    if (piece < states.size() && states[piece] == There)
      std::memcpy(&bits, warp.cta.shared.data(address), getBits(type) / 8);
    return toDouble(type, bits);
  }

  /// The reads until a wait.
  void keep(std::vector<uint64_t> &pieces) { llvm::append_range(pieces, seen); }

private:
  enum State : uint8_t { Unseen, There, Missing };

  void look(uint64_t piece) {
    Accessor who = warp.accessor(kLanes);
    who.isAsync = true;
    who.isSpeculative = true;
    bool isThere =
        resolveShared(warp, instr, who, piece * 16, 16, AccessKind::Read, nullptr) != nullptr;
    if (piece < states.size())
      states[piece] = isThere ? There : Missing;
    if (!isThere)
      return;
    warp.cta.shared.beginRead(piece, instr.number);
    seen.push_back(piece);
  }

  Warp &warp;
  const Instr &instr;
  std::vector<State> states; ///< of each 16 bytes
  std::vector<uint64_t> seen;
};

void multiply(Warp &warp, const Instr &instr, Lanes lanes) {
  if (!warp.checkWhole(instr, lanes, "wgmma"))
    return;
  const auto &wgmma = *static_cast<const Wgmma *>(instr.detail);
  unsigned bytes = getBits(wgmma.a) / 8, perWord = std::max(1u, 4 / bytes);
  unsigned firstRow = warp.id % 4 * kRows;
  OperandReader reader(warp, instr);
  std::vector<double> a(kRows * wgmma.k), b(size_t(wgmma.n) * wgmma.k);
  if (wgmma.isAInMemory) {
    Descriptor descriptor(warp.row(wgmma.descriptorA)[0]);
    for (unsigned row = 0; row < kRows; ++row)
      for (unsigned k = 0; k < wgmma.k; ++k)
        a[row * wgmma.k + k] =
            reader.read(descriptor.find(firstRow + row, k, bytes, wgmma.isAKMajor), wgmma.a);
  } else {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned word = 0; word < wgmma.wordsA.size(); ++word)
        for (unsigned j = 0; j < perWord; ++j) {
          unsigned row = lane / 4 + 8 * (word % 2);
          unsigned k = perWord * (lane % 4) + j + 4 * perWord * (word / 2);
          a[row * wgmma.k + k] =
              toDouble(wgmma.a, warp.row(wgmma.wordsA[word])[lane] >> (8 * bytes * j));
        }
  }
  Descriptor descriptor(warp.row(wgmma.descriptorB)[0]);
  for (unsigned column = 0; column < wgmma.n; ++column)
    for (unsigned k = 0; k < wgmma.k; ++k)
      b[column * wgmma.k + k] =
          reader.read(descriptor.find(column, k, bytes, wgmma.isBKMajor), wgmma.b);
  reader.keep(warp.matrixReads.open);

  bool adds = warp.row(wgmma.adds)[0] & 1;
  double sign = wgmma.negatesA != wgmma.negatesB ? -1 : 1;
  auto addTo = [&](double accumulator, unsigned row, unsigned column) {
    return addProducts(wgmma.accumulator, adds ? accumulator : 0, &a[row * wgmma.k],
                       &b[column * wgmma.k], wgmma.k, /*stride=*/1, sign);
  };
  bool isPacked = wgmma.accumulator == MatrixType::F16;
  for (unsigned number = 0; number < wgmma.accumulators.size(); ++number) {
    uint64_t *accumulators = warp.out(instr, number);
    // Pairs of columns; f16 has both in a register.
    unsigned pair = isPacked ? number : number / 2;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4 + 8 * (pair % 2), column = pair / 2 * 8 + lane % 4 * 2;
      if (!isPacked) {
        double accumulator = toDouble(wgmma.accumulator, accumulators[lane]);
        accumulators[lane] = addTo(accumulator, row, column + number % 2);
        continue;
      }
      uint64_t both = 0;
      for (unsigned half = 0; half < 2; ++half) {
        double accumulator = toDouble(wgmma.accumulator, accumulators[lane] >> (16 * half));
        both |= addTo(accumulator, row, column + half) << (16 * half);
      }
      accumulators[lane] = both;
    }
  }
}

void commitProducts(Warp &warp, const Instr &, Lanes) {
  warp.matrixReads.groups.push_back(std::move(warp.matrixReads.open));
  warp.matrixReads.open.clear();
}

/// All but the last `immediate` groups are waited for.
void waitForProducts(Warp &warp, const Instr &instr, Lanes lanes) {
  warp.checkWhole(instr, lanes, "a wait for wgmma");
  while (warp.matrixReads.groups.size() > static_cast<size_t>(instr.immediate)) {
    for (uint64_t piece : warp.matrixReads.groups.front())
      warp.cta.shared.endRead(piece, warp.accessor(kLanes));
    warp.matrixReads.groups.pop_front();
  }
  warp.tick(); // what was read is over for all of its lanes
}

enum Fenced : int64_t { kFencesShared = 1, kFencesGlobal = 2 };

/// From here on, the asynchronous units see writes of threads, own and acquired ones. `immediate`:
/// in which memory.
void fenceProxy(Warp &warp, const Instr &instr, Lanes) {
  Times &times = warp.times;
  if (instr.immediate & kFencesShared)
    times.fenced = times.of;
  if (instr.immediate & kFencesGlobal)
    times.fencedGlobal = times.of;
  times.others.fence(instr.immediate & kFencesShared, instr.immediate & kFencesGlobal);
  warp.tick();
}

std::optional<unsigned> readExtent(StringRef &text, char name) {
  unsigned value;
  if (!text.consume_front(StringRef(&name, 1)) || text.consumeInteger(10, value))
    return std::nullopt;
  return value;
}

bool decodeWgmma(Decoder &decoder, const PTXInstr &instr) {
  // wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 d, a, b, adds, 1, 1, 0, 0
  ArrayRef<PTXOperand> operands = instr.operands;
  if (instr.words.size() < 8 || operands.size() < 4)
    return false;
  StringRef shape = instr.words[4];
  std::optional<unsigned> m = readExtent(shape, 'm'), n = readExtent(shape, 'n'),
                          k = readExtent(shape, 'k');
  std::optional<MatrixType> accumulator = parseMatrixType(instr.words[5]),
                            a = parseMatrixType(instr.words[6]),
                            b = parseMatrixType(instr.words[7]);
  if (!m || !n || !k || *m != 64 || !accumulator || !a || !b)
    return false;
  Wgmma wgmma;
  wgmma.n = *n;
  wgmma.k = *k;
  wgmma.accumulator = *accumulator;
  wgmma.a = *a;
  wgmma.b = *b;
  wgmma.accumulators.assign(operands[0].registers.begin(), operands[0].registers.end());
  wgmma.isAInMemory = operands[1].kind != PTXOperand::Vector;
  if (wgmma.isAInMemory)
    wgmma.descriptorA = operands[1].registers.front();
  else
    wgmma.wordsA.assign(operands[1].registers.begin(), operands[1].registers.end());
  wgmma.descriptorB = operands[2].registers.front();
  wgmma.adds = operands[3].registers.front();
  ArrayRef<PTXOperand> flags = operands.drop_front(4);
  if (flags.size() >= 2) {
    wgmma.negatesA = flags[0].offset == -1;
    wgmma.negatesB = flags[1].offset == -1;
    flags = flags.drop_front(2);
  }
  if (!flags.empty() && wgmma.isAInMemory) {
    wgmma.isAKMajor = flags.front().offset == 0;
    flags = flags.drop_front();
  }
  if (!flags.empty())
    wgmma.isBKMajor = flags.front().offset == 0;
  size_t perLane = kRows * wgmma.n / kLanes;
  if (wgmma.accumulators.size() != (wgmma.accumulator == MatrixType::F16 ? perLane / 2 : perLane) ||
      (!wgmma.isAInMemory && wgmma.wordsA.size() != 4))
    return false;
  decoder.emit(multiply, wgmma.accumulators, {}, Flow::Memory).detail = decoder.keep(wgmma);
  return true;
}

} // namespace

bool simulator::decodeWarpgroupPTX(Decoder &decoder, const PTXInstr &instr) {
  if (instr.words.front() == "wgmma" && instr.words.size() > 1) {
    StringRef kind = instr.words[1];
    if (kind == "mma_async")
      return decodeWgmma(decoder, instr);
    if (kind == "fence")
      return true;
    if (kind == "commit_group") {
      decoder.emit(commitProducts, {}, {});
      return true;
    }
    if (kind == "wait_group" && instr.operands.size() == 1) {
      decoder.emit(waitForProducts, {}, {}, Flow::Memory).immediate = instr.operands[0].offset;
      return true;
    }
  }
  if (instr.words.front() == "setmaxnreg")
    return true;
  if (instr.words.front() == "fence" && llvm::is_contained(instr.words, "proxy") &&
      !llvm::is_contained(instr.words, "tensormap::generic")) {
    auto has = [&](StringRef word) { return llvm::is_contained(instr.words, word); };
    decoder.emit(fenceProxy, {}, {}, Flow::Memory).immediate =
        has("global") ? kFencesGlobal
        : has("shared::cta") || has("shared::cluster") || has("shared")
            ? kFencesShared
            : kFencesShared | kFencesGlobal;
    return true;
  }
  return false;
}

bool simulator::decodeWarpgroup(Decoder &decoder, Operation &op) {
  return llvm::TypeSwitch<Operation *, bool>(&op)
      // Instructions that only describe the use of registers, or order accesses that are ordered
      // here anyway.
      .Case<NVVM::WgmmaFenceAlignedOp, NVVM::SetMaxRegisterOp>([](auto) { return true; })
      .Case([&](NVVM::WgmmaGroupSyncAlignedOp) {
        decoder.emit(commitProducts, {}, {});
        return true;
      })
      .Case([&](NVVM::WgmmaWaitGroupSyncOp wait) {
        decoder.emit(waitForProducts, {}, {}, Flow::Memory).immediate = wait.getGroup();
        return true;
      })
      .Case([&](NVVM::FenceProxyOp fence) {
        NVVM::ProxyKind kind = fence.getKind();
        decoder.emit(fenceProxy, {}, {}, Flow::Memory).immediate =
            kind == NVVM::ProxyKind::async_global   ? kFencesGlobal
            : kind == NVVM::ProxyKind::async_shared ? kFencesShared
            : kind == NVVM::ProxyKind::async        ? kFencesShared | kFencesGlobal
                                                    : 0;
        return true;
      })
      .Default([](Operation *) { return false; });
}
