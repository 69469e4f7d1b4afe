// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/BlockExchange.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

using namespace llvm;

namespace tessera {

/// The bits of an element's number that number the parts of blocks.
static uint64_t getPartBits(const LinearLayout &layout) {
  uint64_t bits = 0;
  for (uint64_t column : layout.columns(HwDim::Block))
    bits |= column;
  return bits;
}

unsigned countBlockParts(const LinearLayout &layout) {
  return 1u << llvm::popcount(getPartBits(layout));
}

BlockExchange::BlockExchange(const LinearLayout &whole, const LinearLayout &wanted)
    : parts(whole, getPartBits(whole), /*together=*/true), source(parts.getLayout(whole)),
      destination(parts.getLayout(wanted)) {
  ArrayRef<uint64_t> blocks = whole.columns(HwDim::Block);
  // The block that has an element, as far as the element decides that.
  auto blockOf = [&](uint64_t element) {
    uint64_t block = 0;
    for (auto [bit, column] : llvm::enumerate(blocks))
      if (element & column)
        block |= uint64_t(1) << bit;
    return block;
  };
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block})
    for (auto [bit, column] : llvm::enumerate(wanted.columns(dim))) {
      uint64_t block = blockOf(column), own = uint64_t(1) << bit;
      if (dim == HwDim::Block) {
        if (bit < blocks.size() && blocks[bit] == 0)
          block |= own;
        acrossBlocks |= block != own;
      } else {
        acrossBlocks |= block != 0;
      }
      blockColumns[static_cast<unsigned>(dim)].push_back(block);
    }

  // A part of the bits that number parts is of registers; others are known at run time alone.
  uint64_t inRegisters = 0;
  for (uint64_t column : wanted.columns(HwDim::Reg))
    inRegisters |= column & parts.getMask();
  acrossBlocks |= inRegisters != 0;
  // The bits of a slice's number are those of the mask from the lowest.
  uint64_t counted = 0;
  unsigned position = 0;
  for (uint64_t mask = parts.getMask(); mask; mask &= mask - 1, ++position)
    if (inRegisters & mask & -mask)
      counted |= uint64_t(1) << position;
  for (uint64_t slice = 0; slice < uint64_t(1) << position; ++slice) {
    if (slice & ~counted)
      continue;
    uint64_t element = 0;
    position = 0;
    for (uint64_t mask = parts.getMask(); mask; mask &= mask - 1, ++position)
      if (slice >> position & 1)
        element |= mask & -mask;
    Group group;
    group.block = blockOf(element);
    for (uint64_t number : parts.getShare(wanted, slice).registers)
      group.registers.push_back(number);
    groups.push_back(std::move(group));
  }
}

} // namespace tessera
