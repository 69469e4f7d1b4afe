// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Named ways to build a layout. There is no zoo of layout kinds: a blocked layout, a
// tensor-core fragment and a swizzle are all LinearLayouts, and differ only in which of
// these functions made them.
//
// A tile is a product of atoms, innermost first; an atom "hw:dim x size" gives the next
// log2(size) bits of a dimension to a part of the place. `fit` then stretches the tile to
// the tensor: more registers where the tensor is larger, copies where it is smaller.

#ifndef TESSERA_LAYOUT_LAYOUTCONSTRUCTORS_H
#define TESSERA_LAYOUT_LAYOUTCONSTRUCTORS_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// Registers, then lanes, then warps along one dimension after the other. `order` lists the
/// dimensions from the fastest.
LinearLayout blocked(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<unsigned> registersPerThread,
                     llvm::ArrayRef<unsigned> threadsPerWarp, llvm::ArrayRef<unsigned> warps,
                     llvm::ArrayRef<unsigned> order);

/// `part`, of which each of the blocks along each dimension has one: so many for each dimension,
/// the last one's counted fastest. Each block holds the same elements of a dimension with one
/// block.
LinearLayout overBlocks(const LinearLayout &part, llvm::ArrayRef<unsigned> blocks);

/// For each dimension how many of 2^blockBits blocks are along it: they divide the slowest
/// dimensions, as far as these are even. Fewer in all where there is not enough to divide.
llvm::SmallVector<unsigned> divideOverBlocks(llvm::ArrayRef<int64_t> shape, unsigned blockBits);

/// Row-major shared memory with the XOR swizzle: the column of row r is moved by
/// vec * ((r / perPhase) mod maxPhase). All powers of two; rank 2.
LinearLayout swizzledMemory(llvm::ArrayRef<int64_t> shape, unsigned vec, unsigned perPhase,
                            unsigned maxPhase);

/// The swizzle modes of TMA and wgmma: 0 (none), 32, 64 or 128 bytes wide. A tile whose
/// rows are longer than the width is stored as panels of that width, one after another.
LinearLayout nvidiaSwizzle(llvm::ArrayRef<int64_t> shape, unsigned widthBytes, unsigned bits);

/// Assigns the bits of the element number in order of their strides in memory, smallest first.
/// `vectorBits` bits go to registers, five to lanes, `warpBits` to warps, and the rest to
/// registers. A stride is in bytes, one a bit of the element number; none where it is not known.
LinearLayout coalesced(llvm::ArrayRef<int64_t> shape,
                       llvm::ArrayRef<std::optional<int64_t>> strides, unsigned vectorBits,
                       unsigned warpBits);

} // namespace tessera

#endif // TESSERA_LAYOUT_LAYOUTCONSTRUCTORS_H
