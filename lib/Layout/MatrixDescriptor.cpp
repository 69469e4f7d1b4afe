// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/MatrixDescriptor.h"

#include "tessera/Layout/LayoutConstructors.h"
#include "tessera/Machine/MatrixCopy.h"
#include "tessera/Machine/Swizzle.h"

using namespace llvm;

namespace tessera {

/// Bytes that a row has in the part of its extent that is a power of two.
static int64_t rowBytes(ArrayRef<int64_t> shape, unsigned fast, unsigned bits) {
  return (int64_t(bits) << LinearLayout(shape).dimBits(fast)) / 8;
}

/// Memory with dimension `fast` in rows, swizzled over `width` bytes.
static LinearLayout swizzled(ArrayRef<int64_t> shape, unsigned fast, unsigned width,
                             unsigned bits) {
  if (fast == 1)
    return nvidiaSwizzle(shape, width, bits);
  int64_t transposed[2] = {shape[1], shape[0]};
  return nvidiaSwizzle(transposed, width, bits).transpose({1, 0});
}

LinearLayout operandMemory(ArrayRef<int64_t> shape, unsigned fast, unsigned bits) {
  for (unsigned width : Swizzle::kWidths)
    if (rowBytes(shape, fast, bits) >= width && LinearLayout(shape).dimBits(1 - fast) >= 3)
      return swizzled(shape, fast, width, bits);
  return swizzled(shape, fast, 0, bits);
}

LinearLayout fragmentMemory(ArrayRef<int64_t> shape, unsigned fast, unsigned bits) {
  LinearLayout memory = operandMemory(shape, fast, bits);
  unsigned rowBits = memory.dimBits(1 - fast);
  constexpr int64_t kWidth = Swizzle::kWidths[0], kChunkBits = 8 * Swizzle::kChunkBytes;
  if (bits == MatrixCopy::kTransposedBits || rowBytes(shape, fast, bits) < kWidth || rowBits < 4)
    return memory;
  // Which chunks the lowest bits of a row's number move it by. Any three rows in a line
  // that are independent here have no conflicts.
  static constexpr uint64_t kOfBytes[] = {1, 2, 4, 2}, kOfWords[] = {2, 5, 1, 0};
  ArrayRef<uint64_t> moves = bits == 8 ? ArrayRef(kOfBytes) : ArrayRef(kOfWords);
  unsigned rowShift = memory.dimShift(1 - fast), fastShift = memory.dimShift(fast);
  uint64_t chunk = kChunkBits / bits, chunks = (kWidth * 8 / bits - 1) & ~(chunk - 1);
  for (uint64_t &column : memory.columns(HwDim::Offset))
    for (unsigned bit = 0; bit < moves.size(); ++bit)
      if (column >> (rowShift + bit) & 1) {
        column &= ~(chunks << fastShift);
        column |= (moves[bit] * chunk) << fastShift;
      }
  return memory;
}

MatrixDescriptor::MatrixDescriptor(const LinearLayout &memory, unsigned kDim, unsigned bits,
                                   bool kMajor, unsigned swizzleBytes)
    : memory(memory), kDim(kDim), bits(bits), kMajor(kMajor), swizzleBytes(swizzleBytes),
      offsets(*memory.memoryOffsets()) {}

std::optional<MatrixDescriptor> MatrixDescriptor::match(const LinearLayout &memory, unsigned kDim,
                                                        unsigned bits) {
  if (memory.rank() != 2 || !memory.whyNotMemory().empty())
    return std::nullopt;
  SmallVector<int64_t> shape = memory.shape();
  for (unsigned fast : {kDim, 1 - kDim})
    for (unsigned width : Swizzle::kWidths)
      if (rowBytes(shape, fast, bits) >= width && memory.dimBits(1 - fast) >= 3 &&
          swizzled(shape, fast, width, bits) == memory)
        return MatrixDescriptor(memory, kDim, bits, fast == kDim, width);
  return std::nullopt;
}

int64_t MatrixDescriptor::getOffset(int64_t mn, int64_t k) const {
  int64_t coordinates[2] = {kDim == 0 ? k : mn, kDim == 0 ? mn : k};
  int64_t repeat = 0;
  SmallVector<int64_t> inner;
  for (unsigned dim = 0; dim < 2; ++dim) {
    repeat = repeat * memory.oddFactor(dim) + (coordinates[dim] >> memory.dimBits(dim));
    inner.push_back(coordinates[dim] & ((int64_t(1) << memory.dimBits(dim)) - 1));
  }
  int64_t elements =
      (repeat << memory.elementBits()) + int64_t(f2::apply(offsets, memory.element(inner)));
  return elements * bits / 8;
}

int64_t MatrixDescriptor::getStep() const {
  return kMajor ? Swizzle::kLines : swizzleBytes * 8 / bits;
}

bool MatrixDescriptor::covers(int64_t extent) const {
  int64_t step = getStep(), total = memory.extent(1 - kDim);
  if (total % extent != 0 || extent % Swizzle::kLines != 0)
    return false;
  for (int64_t first = 0; first < total; first += extent)
    for (int64_t at = step; at < extent; at += step)
      if (getOffset(first + at, 0) - getOffset(first, 0) != at / step * getStride())
        return false;
  // A part of a panel must not go on in the next one.
  return extent % step == 0 || step % extent == 0;
}

uint64_t MatrixDescriptor::getBits() const {
  // Both strides are of blocks; a K-major operand has one of them.
  bool hasPanels = !kMajor && memory.extent(1 - kDim) > getStep();
  int64_t panels = hasPanels ? getStride() : Swizzle::kChunkBytes;
  int64_t blocks = kMajor ? getOffset(Swizzle::kLines, 0) : getOffset(0, Swizzle::kLines);
  return Swizzle::encode(panels, blocks, swizzleBytes);
}

} // namespace tessera
