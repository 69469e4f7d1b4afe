// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix instructions of a warp: ldmatrix, stmatrix and mma.sync. Products are summed in double.
// Accumulators of f32 are truncated as an H200 does. Others are rounded once, which is at least as
// precise as the machine.

#include "MatrixOps.h"

#include "Floats.h"
#include "MemoryOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

double simulator::toDouble(MatrixType type, uint64_t bits) {
  auto narrow = [&](const llvm::fltSemantics &semantics) {
    llvm::APFloat value(semantics, llvm::APInt(8, bits & 255));
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  };
  switch (type) {
  case MatrixType::F16:
    return F16::load(bits & 0xffff);
  case MatrixType::BF16:
    return BF16::load(bits & 0xffff);
  case MatrixType::TF32: // the low bits are not looked at
    return F32::load(bits & 0xffffe000);
  case MatrixType::F32:
    return F32::load(bits);
  case MatrixType::F64:
    return F64::load(bits);
  case MatrixType::E4M3:
    return narrow(llvm::APFloat::Float8E4M3FN());
  case MatrixType::E5M2:
    return narrow(llvm::APFloat::Float8E5M2());
  case MatrixType::S8:
    return static_cast<double>(signExtend(bits & 255, 8));
  case MatrixType::U8:
    return static_cast<double>(bits & 255);
  case MatrixType::S32:
    return static_cast<double>(signExtend(bits, 32));
  }
  llvm_unreachable("covered switch");
}

uint64_t simulator::fromDouble(MatrixType type, double value) {
  switch (type) {
  case MatrixType::F16:
    return F16::round(value);
  case MatrixType::F32:
    return F32::round(value);
  case MatrixType::F64:
    return F64::store(value);
  case MatrixType::S32: // exact in a double, and wraps
    return static_cast<uint32_t>(static_cast<int64_t>(value));
  default:
    llvm_unreachable("no type of accumulators");
  }
}

/// The exponent of zero. It is so small that a product with zero never has the largest exponent.
constexpr int kNoExponent = std::numeric_limits<int>::min() / 4;

/// The exponent of zero or of a normal double, such as any number of a narrower type.
static int getExponent(double value) {
  auto biased = static_cast<int>(llvm::bit_cast<uint64_t>(value) >> 52 & 0x7ff);
  return value == 0 ? kNoExponent : biased - 1023;
}

static double getPowerOfTwo(int exponent) {
  assert(exponent > -1023 && exponent < 1024 && "not a normal number");
  return llvm::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

uint64_t simulator::addProducts(MatrixType type, double accumulator, const double *x,
                                const double *y, unsigned count, unsigned stride, double sign) {
  auto multiply = [&](unsigned index) { return sign * (x[index] * y[index * stride]); };
  double total = accumulator;
  for (unsigned index = 0; index < count; ++index)
    total += multiply(index);
  constexpr double kMaxFloat = std::numeric_limits<float>::max();
  if (type != MatrixType::F32 || !(std::abs(total) <= kMaxFloat))
    return fromDouble(type, total);
  int largest = getExponent(accumulator);
  for (unsigned index = 0; index < count; ++index)
    largest = std::max(largest, getExponent(x[index]) + getExponent(y[index * stride]));
  if (largest < kNoExponent / 2) // all are zero
    return fromDouble(type, total);
  constexpr int kBits = 24, kMoreBits = 2,
                kMinExponent = std::numeric_limits<float>::min_exponent - 1;
  int last = std::max(largest, kMinExponent) - (kBits - 1) - kMoreBits;
  double unitsPerOne = getPowerOfTwo(-last);
  auto cut = [&](double value) { return static_cast<int64_t>(value * unitsPerOne); };
  int64_t units = cut(accumulator);
  for (unsigned index = 0; index < count; ++index)
    units += cut(multiply(index));
  // Truncate the units that a float cannot hold; a part below the smallest unit is rounded.
  uint64_t magnitude = units < 0 ? -units : units;
  if (unsigned width = llvm::Log2_64(magnitude | 1) + 1; width > kBits)
    magnitude &= ~uint64_t(0) << (width - kBits);
  double result = static_cast<double>(magnitude) * getPowerOfTwo(last);
  return F32::store(static_cast<float>(units < 0 ? -result : result));
}

unsigned simulator::getBits(MatrixType type) {
  switch (type) {
  case MatrixType::F16:
  case MatrixType::BF16:
    return 16;
  case MatrixType::TF32:
  case MatrixType::F32:
  case MatrixType::S32:
    return 32;
  case MatrixType::F64:
    return 64;
  case MatrixType::E4M3:
  case MatrixType::E5M2:
  case MatrixType::S8:
  case MatrixType::U8:
    return 8;
  }
  llvm_unreachable("covered switch");
}

std::optional<MatrixType> simulator::parseMatrixType(StringRef name) {
  return llvm::StringSwitch<std::optional<MatrixType>>(name)
      .Case("f16", MatrixType::F16)
      .Case("bf16", MatrixType::BF16)
      .Case("tf32", MatrixType::TF32)
      .Case("f32", MatrixType::F32)
      .Case("f64", MatrixType::F64)
      .Case("e4m3", MatrixType::E4M3)
      .Case("e5m2", MatrixType::E5M2)
      .Case("s8", MatrixType::S8)
      .Case("u8", MatrixType::U8)
      .Case("s32", MatrixType::S32)
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// ldmatrix and stmatrix
//===----------------------------------------------------------------------===//

namespace {

/// Lanes 8 i to 8 i + 7 give the rows of matrix i. `immediate`: transposed.
void loadMatrices(Warp &warp, const Instr &instr, Lanes lanes) {
  if (!warp.checkWhole(instr, lanes, "ldmatrix"))
    return;
  const uint64_t *addresses = warp.in(instr, 0);
  size_t matrices = instr.results.size();
  Lanes used = matrices == 4 ? kAllLanes : (Lanes(1) << (8 * matrices)) - 1;
  auto [wavefronts, ideal] = countWavefronts(addresses, used, 16);
  warp.machine.noteShared(instr, "ldmatrix", wavefronts, ideal);
  for (size_t matrix = 0; matrix < matrices; ++matrix) {
    uint16_t elements[8][8];
    for (unsigned row = 0; row < 8; ++row) {
      auto lane = static_cast<unsigned>(8 * matrix + row);
      std::memset(elements[row], 0xcd, 16);
      if (addresses[lane] % 16 != 0)
        warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane),
                            addresses[lane], "gives ldmatrix a row that is not aligned to 16");
      if (const uint8_t *from = resolveShared(warp, instr, warp.accessor(kLanes), addresses[lane],
                                              16, AccessKind::Read, nullptr))
        std::memcpy(elements[row], from, 16);
    }
    uint64_t *result = warp.out(instr, matrix);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned row = lane / 4, column = lane % 4 * 2;
      uint32_t low = instr.immediate ? elements[column][row] : elements[row][column];
      uint32_t high = instr.immediate ? elements[column + 1][row] : elements[row][column + 1];
      result[lane] = low | high << 16;
    }
  }
}

void storeMatrices(Warp &warp, const Instr &instr, Lanes lanes) {
  if (!warp.checkWhole(instr, lanes, "stmatrix"))
    return;
  const uint64_t *addresses = warp.in(instr, 0);
  size_t matrices = instr.operands.size() - 1;
  Lanes used = matrices == 4 ? kAllLanes : (Lanes(1) << (8 * matrices)) - 1;
  auto [wavefronts, ideal] = countWavefronts(addresses, used, 16);
  warp.machine.noteShared(instr, "stmatrix", wavefronts, ideal);
  for (size_t matrix = 0; matrix < matrices; ++matrix) {
    const uint64_t *words = warp.in(instr, 1 + matrix);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned half = 0; half < 2; ++half) {
        unsigned row = lane / 4, column = lane % 4 * 2 + half;
        if (instr.immediate)
          std::swap(row, column);
        uint64_t start = addresses[8 * matrix + row];
        auto value = static_cast<uint16_t>(words[lane] >> (16 * half));
        auto *bytes = reinterpret_cast<const uint8_t *>(&value);
        if (column == 0 && start % 16 != 0)
          warp.machine.report(FindingKind::Misaligned, instr, warp, static_cast<int>(lane), start,
                              "stmatrix to a row that is not aligned to 16");
        if (uint8_t *to = resolveShared(warp, instr, warp.accessor(lane), start + 2 * column, 2,
                                        AccessKind::Write, bytes))
          std::memcpy(to, bytes, 2);
      }
  }
}

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

struct Mma {
  int64_t m, n, k;
  MatrixType a, b, accumulator;
  std::vector<PackedElement> elementsA, elementsB, elementsC, results;
};

double read(Warp &warp, const PackedElement &element, unsigned lane, MatrixType type) {
  return toDouble(type, warp.row(element.reg)[lane] >> element.shift);
}

/// Multiplies by mma.sync. With row group g = lane / 4, t = lane % 4 and e elements per word,
/// element j of word i of a lane is
///
///     A              (g + 8 (i mod 2), e t + j + 4 e (i / 2)), with one row group for f64
///     B              (e t + j + 4 e i, g)
///     accumulators   (g + 8 (i / 2), 2 t + i mod 2)
void multiplyOfWarp(Warp &warp, const Instr &instr, Lanes lanes) {
  if (!warp.checkWhole(instr, lanes, "mma"))
    return;
  const auto &mma = *static_cast<const Mma *>(instr.detail);
  std::array<std::array<double, 64>, 16> a;
  std::array<std::array<double, 8>, 64> b;
  unsigned perWord = std::max(1u, 32 / getBits(mma.a)), rowGroups = mma.m / 8;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    for (size_t at = 0; at < mma.elementsA.size(); ++at) {
      unsigned word = at / perWord, j = at % perWord;
      a[g + 8 * (word % rowGroups)][perWord * t + j + 4 * perWord * (word / rowGroups)] =
          read(warp, mma.elementsA[at], lane, mma.a);
    }
    for (size_t at = 0; at < mma.elementsB.size(); ++at) {
      unsigned word = at / perWord, j = at % perWord;
      b[perWord * t + j + 4 * perWord * word][g] = read(warp, mma.elementsB[at], lane, mma.b);
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    for (size_t at = 0; at < mma.results.size(); ++at) {
      unsigned row = g + 8 * (at / 2), column = 2 * t + at % 2;
      warp.out(instr, at)[lane] =
          addProducts(mma.accumulator, read(warp, mma.elementsC[at], lane, mma.accumulator),
                      a[row].data(), &b[0][column], mma.k, /*stride=*/b[0].size());
    }
  }
}

std::optional<MatrixType> getType(NVVM::MMATypes type) {
  return parseMatrixType(NVVM::stringifyMMATypes(type));
}

void emitMma(Decoder &decoder, Mma mma, ValueRange a, ValueRange b, ValueRange c, Value result) {
  SmallVector<Type> results = getScalars(result.getType());
  Type accumulator = results.front();
  std::optional<MatrixType> accumulatorType;
  if (accumulator.isF64())
    accumulatorType = MatrixType::F64;
  else if (accumulator.isF32())
    accumulatorType = MatrixType::F32;
  else if (accumulator.isF16())
    accumulatorType = MatrixType::F16;
  else if (accumulator.isInteger(32))
    accumulatorType = MatrixType::S32;
  if (!accumulatorType || mma.n != 8 || mma.m > 16)
    decoder.refuse("this form of mma");
  mma.accumulator = *accumulatorType;
  for (Value operand : a)
    unpack(decoder, operand, getBits(mma.a), mma.elementsA);
  for (Value operand : b)
    unpack(decoder, operand, getBits(mma.b), mma.elementsB);
  for (Value operand : c)
    unpack(decoder, operand, getBits(mma.accumulator), mma.elementsC);
  Registers registers = decoder.define(result);
  for (Register reg : registers)
    mma.results.push_back({reg, 0});
  if (mma.elementsA.size() * kLanes != static_cast<size_t>(mma.m * mma.k) ||
      mma.elementsB.size() * kLanes != static_cast<size_t>(mma.n * mma.k) ||
      mma.elementsC.size() != mma.results.size())
    decoder.refuse("this form of mma");
  decoder.emit(multiplyOfWarp, registers, {}).detail = decoder.keep(mma);
}

bool decodeMma(Decoder &decoder, NVVM::MmaOp op) {
  Mma mma;
  std::optional<MatrixType> a, b;
  if (op.getMultiplicandAPtxType())
    a = getType(*op.getMultiplicandAPtxType());
  if (op.getMultiplicandBPtxType())
    b = getType(*op.getMultiplicandBPtxType());
  if (!a || !b || op.getLayoutA() != NVVM::MMALayout::row ||
      op.getLayoutB() != NVVM::MMALayout::col)
    decoder.refuse("this form of mma");
  mma.a = *a;
  mma.b = *b;
  mma.m = op.getShape().getM();
  mma.n = op.getShape().getN();
  mma.k = op.getShape().getK();
  emitMma(decoder, mma, op.getOperandA(), op.getOperandB(), op.getOperandC(), op.getResult());
  return true;
}

/// For 8-bit floats, "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32", whose operands are words.
bool decodeMmaIntrinsic(Decoder &decoder, LLVM::CallIntrinsicOp call) {
  StringRef name = call.getIntrin();
  if (!name.consume_front("llvm.nvvm.mma."))
    return false;
  Mma mma;
  mma.m = 16;
  mma.n = 8;
  mma.k = 32;
  std::optional<MatrixType> a, b;
  if (name.consume_front("m16n8k32.row.col.f32.")) {
    a = parseMatrixType(name.take_front(4));
    b = parseMatrixType(name.drop_front(5).take_front(4));
  }
  ValueRange operands = call.getArgs();
  constexpr unsigned kWordsOfA = 4, kWordsOfB = 2, kWordsOfC = 4;
  if (!a || !b || getBits(*a) != 8 || getBits(*b) != 8 ||
      operands.size() != kWordsOfA + kWordsOfB + kWordsOfC)
    decoder.refuse("this form of mma");
  mma.a = *a;
  mma.b = *b;
  emitMma(decoder, mma, operands.take_front(kWordsOfA), operands.slice(kWordsOfA, kWordsOfB),
          operands.take_back(kWordsOfC), call->getResult(0));
  return true;
}

} // namespace

void simulator::unpack(Decoder &decoder, Value value, unsigned bits,
                       std::vector<PackedElement> &elements) {
  for (auto [reg, type] : llvm::zip_equal(decoder.get(value), getScalars(value.getType())))
    for (unsigned shift = 0; shift < getWidth(type); shift += bits)
      elements.push_back({reg, shift});
}

bool simulator::decodeMatrix(Decoder &decoder, Operation &op) {
  auto check = [&](NVVM::LdStMatrixShapeAttr shape, NVVM::LdStMatrixEltType type) {
    if (shape.getM() != 8 || shape.getN() != 8 || type != NVVM::LdStMatrixEltType::B16)
      decoder.refuse("this form of ldmatrix or stmatrix");
  };
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](NVVM::LdMatrixOp load) {
        check(load.getShape(), load.getEltType());
        Instr &instr = decoder.emit(loadMatrices, decoder.define(load.getResult()),
                                    decoder.getScalar(load.getPtr()), Flow::Memory);
        instr.immediate = load.getLayout() == NVVM::MMALayout::col;
        return true;
      })
      .Case([&](NVVM::StMatrixOp store) {
        check(store.getShape(), store.getEltType());
        Registers operands{decoder.getScalar(store.getPtr())};
        for (Value source : store.getSources())
          operands.push_back(decoder.getScalar(source));
        decoder.emit(storeMatrices, {}, operands, Flow::Memory).immediate =
            store.getLayout() == NVVM::MMALayout::col;
        return true;
      })
      .Case([&](NVVM::MmaOp mma) { return decodeMma(decoder, mma); })
      .Case([&](LLVM::CallIntrinsicOp call) { return decodeMmaIntrinsic(decoder, call); })
      .Default([](Operation *) { return false; });
}
